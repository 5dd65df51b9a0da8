//! The transaction coordinators of all nodes as one machine: identities, states, timeouts. It decides; the cluster writes
//! the markers and then reports [`Transactions::completed`].

mod durable;
mod end;
mod init;
mod state;

pub(crate) use end::Ended;
pub(crate) use init::{Identity, InitRequest};
pub(crate) use state::{Participant, Status, Txn};

use crate::Now;
use crate::tracked::Tracked;
use kafka_share_messages::ErrorCode;
use kafka_share_wire::Str;
use std::collections::BTreeSet;
use std::time::Duration;

/// A transaction whose markers are to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Completion {
    pub(crate) txn_id: Str,
    pub(crate) producer_id: i64,
    /// The epoch that the markers carry.
    pub(crate) epoch: i16,
    pub(crate) committed: bool,
    pub(crate) participants: BTreeSet<Participant>,
    /// An epoch per transaction (TV2): the markers' epoch is beyond that of the records.
    pub(crate) epoch_per_transaction: bool,
}

/// All transactional ids.
#[derive(Debug)]
pub(crate) struct Transactions {
    txns: Tracked<Str, Txn>,
    next_producer_id: i64,
    /// When open transactions time out.
    timeouts: BTreeSet<(Duration, Str)>,
    /// When markers are to be written.
    completions: BTreeSet<(Duration, Str)>,
    limits: Limits,
}

/// Settings of the coordinators.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) max_timeout_ms: i32,
    /// Transactions may have no timeout.
    pub(crate) two_phase_commit: bool,
    /// Prepared transactions may be kept: two-phase commit and an epoch per transaction.
    pub(crate) keep_prepared: bool,
    /// How long markers take.
    pub(crate) marker_delay: Duration,
    /// Most transactional ids.
    pub(crate) max_ids: usize,
}

impl Transactions {
    pub(crate) fn new(limits: Limits) -> Self {
        Transactions {
            txns: Tracked::default(),
            next_producer_id: 0,
            timeouts: BTreeSet::new(),
            completions: BTreeSet::new(),
            limits,
        }
    }

    pub(crate) fn get(&self, txn_id: &str) -> Option<&Txn> {
        self.txns.get(txn_id)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Txn> {
        self.txns.values()
    }

    #[cfg(test)]
    pub(crate) fn set_epoch(&mut self, txn_id: &str, epoch: i16) {
        if let Some(txn) = self.txns.get_mut(txn_id) {
            txn.epoch = epoch;
        }
    }

    pub(crate) fn next_deadline(&self) -> Option<Duration> {
        let first = |set: &BTreeSet<(Duration, Str)>| set.first().map(|(at, _)| *at);
        [first(&self.timeouts), first(&self.completions)].into_iter().flatten().min()
    }

    /// Aborts what timed out.
    pub(crate) fn handle_timeout(&mut self, now: Now) {
        while let Some((at, id)) = self.timeouts.first().cloned() {
            if at > now.mono {
                return;
            }
            self.timeouts.pop_first();
            self.fence_and_abort(now, &id);
        }
    }

    /// The next transaction whose markers are due.
    pub(crate) fn poll_completion(&mut self, now: Now) -> Option<Completion> {
        let (at, _) = self.completions.first()?;
        if *at > now.mono {
            return None;
        }
        let (_, id) = self.completions.pop_first()?;
        let txn = self.txns.get(&id)?;
        Some(Completion {
            txn_id: id,
            producer_id: txn.producer_id,
            epoch: txn.epoch,
            committed: txn.status == Status::PrepareCommit,
            participants: txn.participants.clone(),
            epoch_per_transaction: txn.epoch_per_transaction,
        })
    }

    /// The markers could not be written; tries again later.
    pub(crate) fn retry_completion(&mut self, txn_id: &Str, at: Duration) {
        self.completions.insert((at, txn_id.clone()));
    }

    fn allocate(&mut self) -> i64 {
        let id = self.next_producer_id;
        self.next_producer_id += 1;
        id
    }

    /// Adds members to the producer's transaction, which begins if it was not open (AddPartitionsToTxn, TV2's implicit
    /// enrolment, and that of share state). `epoch_per_transaction` says that the request is of TV2: an abort against the
    /// producer's will then takes two epochs, as in Kafka.
    pub(crate) fn enrol(
        &mut self,
        now: Now,
        txn_id: &Str,
        producer: (i64, i16),
        members: &[Participant],
        epoch_per_transaction: bool,
    ) -> Result<(), ErrorCode> {
        let txn = self.owned(txn_id, producer)?;
        if txn.status == Status::Ongoing && members.iter().all(|member| txn.participants.contains(member)) {
            return Ok(());
        }
        if !txn.status.may_become(Status::Ongoing) {
            return Err(ErrorCode::INVALID_TXN_STATE);
        }
        if txn.status != Status::Ongoing {
            txn.begin(now);
            let deadline = txn.deadline;
            if let Some(deadline) = deadline {
                self.timeouts.insert((deadline, txn_id.detached()));
            }
        }
        if let Some(txn) = self.txns.get_mut(txn_id) {
            txn.last_update_ms = now.wall_ms;
            txn.epoch_per_transaction = epoch_per_transaction;
            txn.participants.extend(members.iter().cloned());
        }
        Ok(())
    }

    /// Checks that the transaction of this producer holds `member`.
    pub(crate) fn verify(&mut self, txn_id: &Str, producer: (i64, i16), member: Participant) -> Result<(), ErrorCode> {
        let txn = self.owned(txn_id, producer)?;
        if txn.participants.contains(&member) { Ok(()) } else { Err(ErrorCode::TRANSACTION_ABORTABLE) }
    }

    /// The transaction, if the identity is the present one and no markers are under way.
    fn owned(&mut self, txn_id: &Str, producer: (i64, i16)) -> Result<&mut Txn, ErrorCode> {
        let txn = self.txns.get_mut(txn_id).ok_or(ErrorCode::INVALID_PRODUCER_ID_MAPPING)?;
        let client = txn.client();
        if client.0 != producer.0 {
            return Err(ErrorCode::INVALID_PRODUCER_ID_MAPPING);
        }
        if client.1 != producer.1 {
            return Err(ErrorCode::PRODUCER_FENCED);
        }
        if matches!(txn.status, Status::PrepareCommit | Status::PrepareAbort) {
            return Err(ErrorCode::CONCURRENT_TRANSACTIONS);
        }
        // A prepared transaction is only to be ended.
        if txn.kept_by.is_some() { Err(ErrorCode::INVALID_TXN_STATE) } else { Ok(txn) }
    }

    /// All markers are written.
    pub(crate) fn completed(&mut self, now: Now, txn_id: &str) {
        let Some(txn) = self.txns.get_mut(txn_id) else { return };
        txn.status = match txn.status {
            Status::PrepareCommit => Status::CompleteCommit,
            Status::PrepareAbort => Status::CompleteAbort,
            _ => return,
        };
        txn.participants.clear();
        txn.last_update_ms = now.wall_ms;
        let kept_by = txn.kept_by.take();
        if let Some((id, epoch)) = txn.next_identity.take() {
            let (last_id, last_epoch) = kept_by.unwrap_or((txn.producer_id, txn.last_epoch));
            if id != last_id {
                txn.previous_producer_id = last_id;
            }
            (txn.producer_id, txn.epoch, txn.last_epoch) = (id, epoch, last_epoch);
        }
    }

    /// Forgets ids that were idle for `max_idle_ms` and have no open transaction.
    pub(crate) fn expire_ids(&mut self, wall_ms: i64, max_idle_ms: i64) {
        let busy = |status| matches!(status, Status::Ongoing | Status::PrepareCommit | Status::PrepareAbort);
        self.txns.retain(|_, txn| busy(txn.status) || wall_ms.saturating_sub(txn.last_update_ms) < max_idle_ms);
    }

    /// Drops members of a topic that is gone: its markers have nowhere to go.
    pub(crate) fn forget_topic(&mut self, topic: kafka_share_wire::Uuid) {
        for txn in self.txns.values_mut() {
            txn.participants.retain(|member| !matches!(member, Participant::Partition(id, _) if *id == topic));
        }
    }
}

#[cfg(test)]
mod tests;
