//! Own writes: a member that knows every record between the end of what it has read and its own intent has read up to there,
//! without asking a broker for what it has written itself.
//!
//! Between two writes of a producer to a partition lies the marker of its transaction before, and nothing else of its own:
//! brokers let a producer add to a partition only once that marker is written. So where own records fill the offsets from the
//! reader's position to the intent, but for one offset if that marker was not read yet, nobody else's lies between.

use super::error::LedgerError;
use super::format::{IntentKey, LedgerRecord};
use super::picture::IntentState;
use super::reader::LedgerReader;
use crate::transaction::ProducerIdentity;
use std::time::{Duration, Instant};

/// So long after a write of its own, and after one of somebody else, a member counts as writing, or as not alone.
const RECENT: Duration = Duration::from_secs(1);

#[derive(Debug, Default)]
pub(super) struct OwnWrites {
    /// The producer whose transaction was committed last, as its coordinator has said, with its marker not read.
    committed: Option<i64>,
    /// The producer that writes, and when it was last done with it.
    producer: Option<i64>,
    at: Option<Instant>,
    /// When something of others was read.
    others: Option<Instant>,
}

impl OwnWrites {
    /// A producer is about to write.
    pub(super) fn begin(&mut self, producer_id: i64) {
        self.producer = Some(producer_id);
    }

    pub(super) fn handle_marker(&mut self, producer_id: i64) {
        if self.committed == Some(producer_id) {
            self.committed = None;
        }
    }

    pub(super) fn handle_batch(&mut self, now: Instant, producer_id: i64) {
        if self.producer != Some(producer_id) {
            self.others = Some(now);
        }
    }

    pub(super) fn forget(&mut self) {
        self.committed = None;
    }
}

impl LedgerReader {
    /// The coordinator has said that the transaction of an own intent is committed.
    pub(super) fn note_committed(&mut self, key: &IntentKey) {
        if let Some((_, entry)) = self.picture.get(key).filter(|(_, e)| e.state == IntentState::Open) {
            self.own.committed = Some(entry.owner.id);
        }
    }

    /// A transaction has written these records to the partition, in this order, at these offsets, and nothing else: takes
    /// them as read if all that lies between them and what was read is known.
    ///
    /// # Errors
    /// A ledger that cannot be used; it stays so.
    pub fn handle_own_records(
        &mut self,
        now: Instant,
        owner: ProducerIdentity,
        records: Vec<(i64, LedgerRecord)>,
    ) -> Result<(), LedgerError> {
        self.own.at = Some(now);
        let (Some(position), Some(first)) = (self.tail(), records.first().map(|(offset, _)| *offset)) else {
            return Ok(());
        };
        let one_by_one = records.windows(2).all(|two| two[0].0.checked_add(1) == Some(two[1].0));
        let last = records.last().and_then(|(offset, _)| offset.checked_add(1));
        let (true, Some(end)) = (one_by_one, last) else { return Ok(()) };
        match self.picture.is_open(owner.id) {
            false if first == position => {}
            true if self.own.committed == Some(owner.id) && first.checked_sub(1) == Some(position) => {
                self.take_marker(position, owner.id, true);
            }
            _ => return Ok(()),
        }
        for (offset, record) in records {
            if let Err(error) = self.take_record(now, offset, (owner, true), record) {
                return Err(self.fail(error));
            }
        }
        self.move_to(end);
        Ok(())
    }

    /// Whether nothing is missed by asking for records now and then only: this member writes, and has for a while been the only
    /// one. What lies before its intents it knows or asks for in any case.
    #[must_use]
    pub fn is_alone(&self, now: Instant) -> bool {
        let recent = |at: Instant| now.saturating_duration_since(at) < RECENT;
        let quiet = self.own.at.is_some_and(recent) && !self.own.others.is_some_and(recent);
        quiet && self.tail().is_some() && self.picture.owners_open().all(|owner| self.own.producer == Some(owner))
    }
}
