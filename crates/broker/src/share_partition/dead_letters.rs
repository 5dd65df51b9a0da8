//! Records that are delivered no more: done at once, or handed to the dead letter queue first (KIP-1191).

use super::SharePartition;
use super::slot::{Cause, Slot, State};

/// How often records are delivered, and what becomes of those that are not delivered again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Deliveries {
    /// `share.delivery.count.limit`
    pub(crate) limit: i16,
    /// The group has a dead letter queue.
    pub(crate) dead_letters: bool,
}

/// Records for the dead letter queue. They stay in flight until [`SharePartition::buried`] is told of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DeadLetter {
    pub(crate) first: i64,
    pub(crate) last: i64,
    pub(crate) count: i16,
    pub(crate) cause: Cause,
}

impl Deliveries {
    /// Where records go whose lock is over without an acknowledgement, or that were released.
    pub(super) fn give_back(self, slot: Slot) -> Slot {
        if slot.count < self.limit {
            return Slot { state: State::Available, ..slot };
        }
        self.end(slot, Cause::DeliveryLimit)
    }

    /// Where records go that are delivered no more.
    pub(super) fn end(self, slot: Slot, cause: Cause) -> Slot {
        let state = if self.dead_letters { State::Archiving { cause } } else { State::Archived };
        Slot { state, ..slot }
    }
}

impl SharePartition {
    /// What is to be written to the dead letter queue, each record once.
    pub(crate) fn take_dead_letters(&mut self) -> Vec<DeadLetter> {
        std::mem::take(&mut self.letters)
    }

    /// The dead letter queue has these records, or cannot have them: they are done.
    pub(crate) fn buried(&mut self, first: i64, last: i64) {
        self.update(first, last, |piece| match piece.slot.state {
            State::Archiving { .. } => Slot { state: State::Archived, ..piece.slot },
            _ => piece.slot,
        });
        self.settle();
    }

    /// After a move of the leader: nobody knows whether the old one had written what it was archiving, so it is written
    /// again. The cause is not stored; Kafka guesses it in the same way.
    pub(super) fn resume_dead_letters(&mut self, limit: i16) {
        let mut letters = Vec::new();
        for piece in self.pieces(self.start, i64::MAX) {
            if matches!(piece.slot.state, State::Archiving { .. }) {
                let count = piece.slot.count;
                let cause = if count >= limit { Cause::DeliveryLimit } else { Cause::Rejected };
                letters.push(DeadLetter { first: piece.first, last: piece.last, count, cause });
            }
        }
        self.letters = letters;
    }
}
