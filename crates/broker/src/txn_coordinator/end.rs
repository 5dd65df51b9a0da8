//! EndTxn under both transaction versions, fencing and timeouts.
//!
//! TV1 keeps the epoch; asking again for what was decided is a success. TV2 (KIP-890) takes the next epoch with every
//! transaction, so that the same epoch means the next transaction, and the epoch before a repeated request.

use super::state::LAST_EPOCH;
use super::{Status, Transactions, Txn};
use crate::Now;
use kafka_share_messages::ErrorCode;
use kafka_share_wire::Str;

/// What an EndTxn came to: the identity for the next transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ended {
    pub(crate) producer_id: i64,
    pub(crate) epoch: i16,
}

/// What to do with a request.
enum Step {
    /// It was done before.
    Done,
    Prepare,
}

impl Transactions {
    /// Commits or aborts. `epoch_per_transaction` is set for requests in a version of TV2.
    pub(crate) fn end(
        &mut self,
        now: Now,
        txn_id: &Str,
        producer: (i64, i16),
        commit: bool,
        epoch_per_transaction: bool,
    ) -> Result<Ended, ErrorCode> {
        if txn_id.is_empty() {
            return Err(ErrorCode::INVALID_REQUEST);
        }
        let txn = self.txns.get(txn_id).ok_or(ErrorCode::INVALID_PRODUCER_ID_MAPPING)?;
        let step = if epoch_per_transaction { txn.step_v2(producer, commit)? } else { txn.step_v1(producer, commit)? };
        let present = Ended { producer_id: txn.producer_id, epoch: txn.epoch };
        Ok(match step {
            Step::Done => present,
            Step::Prepare if epoch_per_transaction => {
                self.note_mode(txn_id, true);
                self.prepare_and_bump(now, txn_id, commit)
            }
            Step::Prepare => {
                self.note_mode(txn_id, false);
                self.prepare(now, txn_id, commit);
                present
            }
        })
    }

    fn note_mode(&mut self, txn_id: &Str, epoch_per_transaction: bool) {
        if let Some(txn) = self.txns.get_mut(txn_id) {
            txn.epoch_per_transaction = epoch_per_transaction;
        }
    }

    /// Aborts an open transaction against its producer's will: its epoch is fenced. On TV2 too the epoch grows by one
    /// only, and the producer, if it lives, can get the next epoch by naming its old one; on TV1 it is fenced for good.
    /// So does a real 4.4.0.
    pub(super) fn fence_and_abort(&mut self, now: Now, txn_id: &Str) {
        let Some(txn) = self.txns.get_mut(txn_id).filter(|txn| txn.status == Status::Ongoing) else { return };
        txn.last_epoch = if txn.epoch_per_transaction { txn.epoch } else { -1 };
        txn.epoch = txn.epoch.saturating_add(1);
        if let Some(keeper) = txn.kept_by {
            let next = self.after(keeper);
            self.set_next(txn_id, next);
        }
        self.prepare(now, txn_id, false);
    }

    fn prepare_and_bump(&mut self, now: Now, txn_id: &Str, commit: bool) -> Ended {
        let Some(txn) = self.txns.get_mut(txn_id) else { return Ended { producer_id: -1, epoch: -1 } };
        let (own, kept_by) = ((txn.producer_id, txn.epoch), txn.kept_by);
        txn.last_epoch = txn.epoch;
        // Markers are beyond the records that they end.
        txn.epoch = txn.epoch.saturating_add(1);
        let (producer_id, epoch) = self.after(kept_by.unwrap_or(own));
        if kept_by.is_some() || producer_id != own.0 {
            self.set_next(txn_id, (producer_id, epoch));
        }
        self.prepare(now, txn_id, commit);
        Ended { producer_id, epoch }
    }

    fn set_next(&mut self, txn_id: &Str, identity: (i64, i16)) {
        if let Some(txn) = self.txns.get_mut(txn_id) {
            txn.next_identity = Some(identity);
        }
    }

    fn prepare(&mut self, now: Now, txn_id: &Str, commit: bool) {
        let Some(txn) = self.txns.get_mut(txn_id) else { return };
        if let Some(deadline) = txn.deadline.take() {
            self.timeouts.remove(&(deadline, txn.id.clone()));
        }
        if txn.status != Status::Ongoing {
            // As Kafka: an abort of nothing begins and ends at once.
            txn.start_ms = now.wall_ms;
        }
        txn.status = if commit { Status::PrepareCommit } else { Status::PrepareAbort };
        txn.last_update_ms = now.wall_ms;
        self.completions.insert((now.mono + self.limits.marker_delay, txn.id.clone()));
    }
}

impl Txn {
    fn step_v1(&self, producer: (i64, i16), commit: bool) -> Result<Step, ErrorCode> {
        let client = self.client();
        if client.0 != producer.0 {
            return Err(ErrorCode::INVALID_PRODUCER_ID_MAPPING);
        }
        if client.1 != producer.1 {
            return Err(ErrorCode::PRODUCER_FENCED);
        }
        // The keeper of a prepared transaction gets another identity with its end, which old versions cannot tell.
        if self.kept_by.is_some() {
            return Err(ErrorCode::INVALID_TXN_STATE);
        }
        match self.status {
            Status::Ongoing => Ok(Step::Prepare),
            Status::CompleteCommit if commit => Ok(Step::Done),
            Status::CompleteAbort if !commit => Ok(Step::Done),
            Status::PrepareCommit if commit => Err(ErrorCode::CONCURRENT_TRANSACTIONS),
            Status::PrepareAbort if !commit => Err(ErrorCode::CONCURRENT_TRANSACTIONS),
            _ => Err(ErrorCode::INVALID_TXN_STATE),
        }
    }

    fn step_v2(&self, producer: (i64, i16), commit: bool) -> Result<Step, ErrorCode> {
        let (id, epoch) = producer;
        // The producer repeats a request that handed it a new id: the old one is named.
        let repeats_rollover = self.previous_producer_id == id && epoch == LAST_EPOCH && self.epoch == 0;
        let client = self.client();
        let repeats_bump = match self.kept_by {
            Some((_, keeper)) => epoch == keeper,
            None => epoch.checked_add(1) == Some(self.epoch),
        };
        let repeats = repeats_bump || repeats_rollover;
        if client.0 != id && !repeats_rollover {
            return Err(ErrorCode::INVALID_PRODUCER_ID_MAPPING);
        }
        let current = epoch == client.1;
        let valid = match self.status {
            Status::Ongoing | Status::Empty => current,
            Status::PrepareCommit | Status::PrepareAbort => repeats_bump,
            Status::CompleteCommit | Status::CompleteAbort => repeats || current,
        };
        if !valid {
            return Err(ErrorCode::PRODUCER_FENCED);
        }
        match self.status {
            Status::Ongoing => Ok(Step::Prepare),
            // Nothing was begun: only an abort makes sense, and takes an epoch too.
            Status::Empty if !commit => Ok(Step::Prepare),
            Status::CompleteCommit if commit && repeats => Ok(Step::Done),
            Status::CompleteAbort if !commit && repeats => Ok(Step::Done),
            Status::CompleteCommit | Status::CompleteAbort if !commit && !repeats => Ok(Step::Prepare),
            Status::PrepareCommit if commit => Err(ErrorCode::CONCURRENT_TRANSACTIONS),
            Status::PrepareAbort if !commit => Err(ErrorCode::CONCURRENT_TRANSACTIONS),
            _ => Err(ErrorCode::INVALID_TXN_STATE),
        }
    }
}
