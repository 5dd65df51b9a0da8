//! The state that survives a move of the leader, as a share coordinator stores it.

use super::slot::{Batch, Slot, State};
use super::{Cause, SharePartition, StagedAck, StagedBy};

/// Stored state of records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StoredState {
    /// 0
    Available,
    /// 2
    Acknowledged,
    /// 3: on its way to the dead letter queue.
    Archiving,
    /// 4
    Archived,
    /// 5: staged in a transaction.
    Pending { by: StagedBy, ack: StagedAck },
}

/// Stored state of a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StoredBatch {
    pub(crate) first: i64,
    pub(crate) last: i64,
    pub(crate) state: StoredState,
    pub(crate) count: i16,
}

/// What a share coordinator stores of a share-partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StoredShareState {
    /// Raised when an administrator changes the start offset or the group is created anew.
    pub(crate) state_epoch: i32,
    /// Leader epoch of the last writer.
    pub(crate) leader_epoch: i32,
    /// -1: not known yet, `share.auto.offset.reset` decides.
    pub(crate) start_offset: i64,
    pub(crate) batches: Vec<StoredBatch>,
}

impl SharePartition {
    /// What is stored. Locks are not: records under one count as available with the deliveries that were stored
    /// before it, and records on their first delivery as never delivered. Ranges of one state are joined, as Kafka's
    /// share coordinator does.
    pub(crate) fn snapshot(&self) -> Vec<StoredBatch> {
        let stored = |piece: super::slot::Piece| {
            let Slot { state, count } = piece.slot;
            let (state, count) = match state {
                State::Available => (StoredState::Available, count),
                State::Acquired { .. } => (StoredState::Available, count - 1),
                State::Acknowledged => (StoredState::Acknowledged, count),
                State::Archived => (StoredState::Archived, count),
                State::Archiving { .. } => (StoredState::Archiving, count),
                State::Pending { producer_id, epoch, ack } => {
                    (StoredState::Pending { by: StagedBy { producer_id, epoch }, ack }, count)
                }
            };
            StoredBatch { first: piece.first, last: piece.last, state, count }
        };
        let mut all: Vec<StoredBatch> = Vec::new();
        for batch in self.pieces(self.start, i64::MAX).map(stored) {
            match all.last_mut() {
                Some(before)
                    if before.last + 1 == batch.first && (before.state, before.count) == (batch.state, batch.count) =>
                {
                    before.last = batch.last;
                }
                _ => all.push(batch),
            }
        }
        all
    }

    /// The state at a new leader, which goes on with what the old one had not finished.
    pub(crate) fn resume(start: i64, stored: &[StoredBatch], delivery_limit: i16) -> Self {
        let mut partition = Self::restore(start, stored);
        partition.resume_dead_letters(delivery_limit);
        partition
    }

    /// The state as it is stored.
    pub(crate) fn restore(start: i64, stored: &[StoredBatch]) -> Self {
        let mut partition = SharePartition::new(start);
        for batch in stored.iter().filter(|batch| batch.last >= start) {
            let first = batch.first.max(partition.end);
            if first > partition.end {
                // Not stored: never delivered.
                partition.add(partition.end, first - 1, Slot { state: State::Available, count: 0 });
            }
            let state = match batch.state {
                StoredState::Available => State::Available,
                StoredState::Acknowledged => State::Acknowledged,
                StoredState::Archived => State::Archived,
                // Told apart again by the delivery count, see `resume_dead_letters`.
                StoredState::Archiving => State::Archiving { cause: Cause::Rejected },
                StoredState::Pending { by, ack } => {
                    State::Pending { producer_id: by.producer_id, epoch: by.epoch, ack }
                }
            };
            partition.add(first, batch.last, Slot { state, count: batch.count });
        }
        partition.drop_undelivered_tail();
        partition.settle();
        partition
    }

    fn add(&mut self, first: i64, last: i64, slot: Slot) {
        let records = last - first + 1;
        match slot.state {
            State::Available => self.available += records,
            State::Pending { .. } => self.pending += records,
            State::Archiving { .. } => self.archiving += records,
            _ => {}
        }
        self.batches.insert(first, Batch::new(first, last, slot));
        self.end = last + 1;
    }

    /// Records at the end that were never delivered are not in flight.
    fn drop_undelivered_tail(&mut self) {
        while let Some(entry) = self.batches.last_entry() {
            match entry.get().whole() {
                Some(Slot { state: State::Available, count: 0 }) => {
                    self.available -= entry.get().size();
                    self.end = *entry.key();
                    entry.remove();
                }
                _ => break,
            }
        }
    }
}
