//! Acknowledgements of this consumer on their way into a transaction, and what becomes of them.

use super::KafkaShareConsumer;
use super::builder::AcknowledgementMode;
use super::ledger::Member;
use super::records::{RecordId, ShareRecords};
use super::shared::Shared;
use crate::acknowledgements::{ShareAcknowledgements, StagedPart, TransactionEnd};
use crate::ledger::LedgerPart;
use crate::{Error, ErrorKind, Result};
use kafka_share_core::ledger::Conflict;
use kafka_share_core::metadata::TopicIdPartition;
use kafka_share_core::share_acks::{AckType, Outcome, Taken};
use std::sync::Arc;

/// Acknowledgements that left this consumer's ordinary path.
struct Staged {
    shared: Arc<Shared>,
    taken: Vec<Taken>,
    /// Whether the application had acknowledged them one by one: where the cluster cannot take them, and there is no output
    /// that they belong to, that counts again.
    pending_before: bool,
    /// Those that the transaction may not have.
    refused: Vec<Taken>,
    /// No broker knows of them before the end, and each is told after it.
    by_ledger: bool,
    /// Others were in the way, and have committed this.
    contended: Option<Vec<Conflict>>,
}

impl Staged {
    fn new(shared: &Arc<Shared>, taken: Vec<Taken>, pending_before: bool) -> Self {
        let shared = Arc::clone(shared);
        Staged { shared, taken, pending_before, refused: Vec::new(), by_ledger: false, contended: None }
    }

    /// The end of a transaction whose acknowledgements are in the ledger.
    fn ended_by_ledger(&mut self, taken: &[Taken], committed: bool) {
        let (again, done) = (self.contended.is_some(), self.contended.take().unwrap_or_default());
        self.shared.with(|m, now| match committed {
            true => m.commit_by_ledger(now, taken),
            false => m.abort_by_ledger(now, taken, &done, again),
        });
        if !committed {
            self.shared.wake_driver();
            // Some may come again at once.
            self.shared.wake_app();
        }
    }
}

impl StagedPart for Staged {
    fn refused(&mut self, which: &dyn Fn(TopicIdPartition) -> bool) {
        self.refused.extend(self.taken.extract_if(.., |taken| which(taken.tp)));
    }

    fn ledger(&self) -> Option<LedgerPart> {
        let lowest_ask = self.taken.iter().map(|taken| taken.ask).min()?;
        Some(LedgerPart { member: Arc::new(Member(Arc::clone(&self.shared))), lowest_ask })
    }

    fn staged_by_ledger(&mut self) {
        self.by_ledger = true;
    }

    fn contended(&mut self, group: &str, done: &[Conflict]) {
        let known = self.contended.get_or_insert_default();
        if group == self.shared.group_id.as_str() {
            known.extend_from_slice(done);
        }
    }

    fn renew(&self) {
        if self.shared.with(|m, now| m.renew_staged(now, &self.taken)) {
            self.shared.wake_driver();
        }
    }

    fn ended(mut self: Box<Self>, end: TransactionEnd) {
        let refused = std::mem::take(&mut self.refused);
        if !refused.is_empty() && end == TransactionEnd::Aborted && !self.by_ledger {
            self.shared.with(|m, now| m.release_from_transaction(now, &refused));
            self.shared.wake_driver();
        } else {
            self.taken.extend(refused);
        }
        let taken = std::mem::take(&mut self.taken);
        let outcome = match end {
            TransactionEnd::Committed | TransactionEnd::Aborted if self.by_ledger => {
                return self.ended_by_ledger(&taken, end == TransactionEnd::Committed);
            }
            TransactionEnd::Committed => Outcome::Acknowledged,
            TransactionEnd::Aborted => Outcome::LockLost,
            TransactionEnd::Unknown => Outcome::Unknown,
            TransactionEnd::GivenBack if self.pending_before => {
                return self.shared.with(|m, now| m.return_from_transaction(now, &taken));
            }
            TransactionEnd::NotStaged | TransactionEnd::GivenBack
                if self.shared.mode == AcknowledgementMode::Implicit =>
            {
                // Held, the next poll would accept them, and their output is not committed.
                self.shared.with(|m, now| m.release_from_transaction(now, &taken));
                return self.shared.wake_driver();
            }
            TransactionEnd::NotStaged | TransactionEnd::GivenBack => return self.shared.with(|m, _| m.unstage(&taken)),
        };
        self.shared.with(|m, _| m.finish_transaction(&taken, outcome));
    }
}

/// Whoever lets go of them has most likely failed, and aborts the transaction with their output: they must not be accepted
/// without it.
impl Drop for Staged {
    fn drop(&mut self) {
        let mut taken = std::mem::take(&mut self.taken);
        taken.append(&mut self.refused);
        if taken.is_empty() {
            return;
        }
        if self.shared.mode == AcknowledgementMode::Implicit {
            // Held, the next poll would accept them.
            self.shared.with(|m, now| m.release_from_transaction(now, &taken));
            self.shared.wake_driver();
        } else {
            self.shared.with(|m, _| m.unstage(&taken));
        }
    }
}

pub(super) fn take_pending(shared: &Arc<Shared>) -> Result<ShareAcknowledgements> {
    if shared.mode == AcknowledgementMode::Implicit {
        let text = "share.acknowledgement.mode is implicit: use ShareAcknowledgements::from_records";
        return Err(Error::new(ErrorKind::InvalidState, text));
    }
    let taken = shared.with(|m, _| m.take_for_transaction()).ok_or_else(|| {
        let text = "a commit of this consumer is under way, and takes acknowledgements given before it: await it first";
        Error::new(ErrorKind::InvalidState, text)
    })?;
    package(shared, taken, true)
}

/// Takes out of the ordinary path what the application has put together by itself.
pub(super) fn stage_by_hand(shared: &Arc<Shared>, acks: &ShareAcknowledgements) -> Result<Box<dyn StagedPart>> {
    let ranges = acks.iter().map(|(tp, batch)| (tp, batch.first_offset(), batch.last_offset(), batch.types()));
    let taken = shared.with(|m, _| m.stage_ranges(ranges)).ok_or_else(not_held)?;
    Ok(Box::new(Staged::new(shared, taken, false)))
}

fn package(shared: &Arc<Shared>, taken: Vec<Taken>, pending_before: bool) -> Result<ShareAcknowledgements> {
    let staged = Staged::new(shared, taken, pending_before);
    let mut acks = ShareAcknowledgements::new();
    for taken in &staged.taken {
        for batch in &taken.batches {
            let types: Option<Vec<AckType>> = batch.types.iter().map(|t| ack_type(*t)).collect();
            let types = types
                .ok_or_else(|| Error::new(ErrorKind::InvalidState, "only ACCEPT and REJECT go into a transaction"))?;
            acks.add_given(taken.tp, batch.first, batch.last, types)?;
        }
    }
    if !staged.taken.is_empty() {
        acks.add_origin(Box::new(staged));
    }
    Ok(acks)
}

fn ack_type(code: i8) -> Option<AckType> {
    [AckType::Accept, AckType::Reject].into_iter().find(|t| t.code() == code)
}

impl ShareAcknowledgements {
    /// Acknowledges all records of a poll with ACCEPT or REJECT, for a transaction. They leave the ordinary path: a
    /// later poll in implicit mode does not accept them, and an acknowledgement of one of them is refused.
    ///
    /// Dropping the result takes the acknowledgement back: the records are held as before, and in implicit mode they are
    /// released, because the next poll would accept them.
    ///
    /// # Errors
    /// Other types; records that are not held any more, or that were acknowledged before: nothing is staged then, and
    /// a transaction that holds their output must be aborted. In implicit mode the others of them are released, because the
    /// next poll would accept them.
    pub fn from_records(records: &ShareRecords, ack: AckType) -> Result<Self> {
        if ack_type(ack.code()).is_none() {
            return Err(not_for_transactions(ack));
        }
        let shared = records.shared();
        let Some(taken) = shared.with(|m, _| m.stage_chunks(records.chunks(), ack)) else {
            if shared.mode == AcknowledgementMode::Implicit {
                // The next poll would accept those that are held still, without their output.
                let _ = shared.with(|m, now| m.acknowledge_chunks(now, records.chunks(), AckType::Release));
                shared.wake_driver();
            }
            return Err(not_held());
        };
        package(shared, taken, false)
    }

    /// Acknowledges single records of a consumer's polls, each with ACCEPT or REJECT, for a transaction. As
    /// [`from_records`](Self::from_records) otherwise.
    ///
    /// # Errors
    /// As [`from_records`](Self::from_records); in implicit mode.
    pub fn from_record_ids(
        consumer: &KafkaShareConsumer,
        records: impl IntoIterator<Item = (RecordId, AckType)>,
    ) -> Result<Self> {
        let shared = consumer.shared();
        if shared.mode == AcknowledgementMode::Implicit {
            let text = "share.acknowledgement.mode is implicit: use ShareAcknowledgements::from_records";
            return Err(Error::new(ErrorKind::InvalidState, text));
        }
        let own = |(id, ack)| shared.own(id).map(|handle| (handle, ack)).map_err(|_| not_held());
        let records: Vec<_> = records.into_iter().map(own).collect::<Result<_>>()?;
        if let Some((_, ack)) = records.iter().find(|(_, ack)| ack_type(ack.code()).is_none()) {
            return Err(not_for_transactions(*ack));
        }
        let taken = shared.with(|m, _| m.stage_records(&records)).ok_or_else(not_held)?;
        package(shared, taken, false)
    }
}

fn not_for_transactions(ack: AckType) -> Error {
    let text = format!("{ack:?} cannot be part of a transaction, only Accept and Reject can");
    Error::new(ErrorKind::InvalidInput, text)
}

fn not_held() -> Error {
    let text = "some of the records are not held any more (lock, session or leader lost, or acknowledged before): abort the transaction, they come again";
    Error::new(ErrorKind::TransactionAborted, text)
}
