//! A share-partition at its leader: which records of a partition a share group has in flight, and in what state. Pure.
//!
//! In-flight records lie between the start offset (SPSO) and the end offset (SPEO), in batches as they were acquired;
//! a batch is split into ranges only where its records fare differently. All work is by range.

mod acks;
mod acquire;
mod dead_letters;
mod dump;
mod locks;
mod slot;
mod snapshot;
mod txn;

pub(crate) use acks::{AckRange, AckRules};
pub(crate) use acquire::{AcquireLimits, Acquired, Extent};
pub(crate) use dead_letters::{DeadLetter, Deliveries};
pub(crate) use slot::{Cause, StagedAck};
pub(crate) use snapshot::{StoredBatch, StoredShareState, StoredState};
pub(crate) use txn::StagedBy;

use kafka_share_wire::Str;
use locks::LockQueue;
use slot::{Batch, OwnerId, Piece, Slot, State};
use std::collections::BTreeMap;

/// A member that holds locks here.
#[derive(Debug, Clone)]
struct Owner {
    member: Str,
    /// Records; the entry is free at 0.
    locked: i64,
}

/// In-flight state of a partition for a group.
#[derive(Debug, Clone)]
pub(crate) struct SharePartition {
    /// Nothing below comes again.
    start: i64,
    /// One after the last record ever acquired.
    end: i64,
    batches: BTreeMap<i64, Batch>,
    owners: Vec<Owner>,
    locks: LockQueue,
    /// Records in flight that may be acquired.
    available: i64,
    /// Records under a lock.
    acquired: i64,
    /// Records staged in transactions.
    pending: i64,
    /// Records on their way to the dead letter queue.
    archiving: i64,
    /// Of those, what nobody has taken yet.
    letters: Vec<DeadLetter>,
    /// No available record lies below.
    first_available: i64,
}

impl SharePartition {
    /// Nothing in flight; delivery starts at `start`.
    pub(crate) fn new(start: i64) -> Self {
        SharePartition {
            start,
            end: start,
            batches: BTreeMap::new(),
            owners: Vec::new(),
            locks: LockQueue::default(),
            available: 0,
            acquired: 0,
            pending: 0,
            archiving: 0,
            letters: Vec::new(),
            first_available: start,
        }
    }

    /// Share-partition start offset.
    pub(crate) fn start(&self) -> i64 {
        self.start
    }

    /// One after the last record in flight.
    pub(crate) fn end(&self) -> i64 {
        self.end
    }

    /// Records under a lock.
    pub(crate) fn acquired_records(&self) -> i64 {
        self.acquired
    }

    /// Records in flight that wait for redelivery.
    pub(crate) fn available_records(&self) -> i64 {
        self.available
    }

    /// Records staged in transactions.
    pub(crate) fn pending_records(&self) -> i64 {
        self.pending
    }

    /// Records on their way to the dead letter queue.
    pub(crate) fn archiving_records(&self) -> i64 {
        self.archiving
    }

    /// In-flight records above the start offset that are done (KIP-1226: delivery complete count).
    pub(crate) fn delivery_complete(&self) -> i64 {
        let open = self.available + self.acquired + self.pending + self.archiving;
        (self.end - self.start - open).max(0)
    }

    /// The first offset that can be acquired, as far as the log reaches.
    pub(crate) fn next_fetch_offset(&mut self) -> i64 {
        if self.available == 0 {
            return self.end;
        }
        let from = self.floor(self.first_available.max(self.start));
        let start = self.start;
        let found = self.batches.range(from..).find_map(|(_, batch)| {
            let mut free = batch.pieces_in(start, i64::MAX).filter(|piece| piece.slot.state == State::Available);
            free.next().map(|piece| piece.first)
        });
        self.first_available = found.unwrap_or(self.end);
        self.first_available
    }

    /// Whether an acquisition of what the log has can succeed, given the limit of records in flight.
    pub(crate) fn can_acquire(&self, max_locks: i64) -> bool {
        self.available > 0 || self.end - self.start < max_locks
    }

    /// Forgets everything below the log's start.
    pub(crate) fn advance_to(&mut self, log_start: i64) {
        if log_start <= self.start {
            return;
        }
        self.update(self.start, log_start - 1, |piece| Slot { state: State::Archived, ..piece.slot });
        self.settle();
        self.start = self.start.max(log_start);
        self.end = self.end.max(self.start);
    }

    /// Key of the batch that holds `offset`, else `offset`.
    fn floor(&self, offset: i64) -> i64 {
        match self.batches.range(..=offset).next_back() {
            Some((first, batch)) if batch.last >= offset => *first,
            _ => offset,
        }
    }

    /// Ranges of in-flight records in `from..=to` above the start offset.
    fn pieces(&self, from: i64, to: i64) -> impl Iterator<Item = Piece> {
        let from = from.max(self.start);
        // An empty range would panic in BTreeMap::range.
        let key = if from <= to { self.floor(from) } else { to };
        self.batches.range(key..=to).flat_map(move |(_, batch)| batch.pieces_in(from, to))
    }

    /// Changes the state of in-flight records in `from..=to` and keeps the counts right.
    fn update(&mut self, from: i64, to: i64, mut change: impl FnMut(Piece) -> Slot) {
        let from = from.max(self.start);
        if from > to {
            return;
        }
        let key = self.floor(from);
        let Self { batches, owners, available, acquired, pending, archiving, letters, first_available, .. } = self;
        let mut counts = Counts { owners, available, acquired, pending, archiving, letters, first_available };
        for (_, batch) in batches.range_mut(key..=to) {
            batch.update(from, to, |piece| {
                let slot = change(piece);
                counts.moved(piece, slot);
                slot
            });
        }
    }

    /// Moves the start offset over what is done.
    fn settle(&mut self) {
        while let Some(entry) = self.batches.first_entry() {
            let start = self.start;
            let open = entry.get().pieces_in(start, i64::MAX).find(|piece| !piece.slot.state.is_done());
            match open {
                Some(piece) => {
                    self.start = piece.first;
                    break;
                }
                None => {
                    self.start = entry.get().last + 1;
                    entry.remove();
                }
            }
        }
        if self.batches.is_empty() {
            self.start = self.start.max(self.end);
        }
        self.locks.prune(self.start);
    }

    fn owner(&mut self, member: &Str) -> OwnerId {
        if let Some(found) = self.find_owner(member) {
            return found;
        }
        let owner = Owner { member: member.detached(), locked: 0 };
        match self.owners.iter().position(|owner| owner.locked == 0) {
            Some(free) => {
                self.owners[free] = owner;
                free as OwnerId
            }
            None => {
                self.owners.push(owner);
                (self.owners.len() - 1) as OwnerId
            }
        }
    }

    fn find_owner(&self, member: &str) -> Option<OwnerId> {
        self.owners.iter().position(|owner| owner.locked > 0 && owner.member.as_str() == member).map(|at| at as OwnerId)
    }
}

/// What an update of slots counts.
struct Counts<'a> {
    owners: &'a mut Vec<Owner>,
    available: &'a mut i64,
    acquired: &'a mut i64,
    pending: &'a mut i64,
    archiving: &'a mut i64,
    letters: &'a mut Vec<DeadLetter>,
    first_available: &'a mut i64,
}

impl Counts<'_> {
    fn moved(&mut self, piece: Piece, to: Slot) {
        self.add(piece.slot.state, -piece.len());
        self.add(to.state, piece.len());
        if to.state == State::Available {
            *self.first_available = piece.first.min(*self.first_available);
        }
        if let State::Archiving { cause } = to.state
            && to != piece.slot
        {
            self.letters.push(DeadLetter { first: piece.first, last: piece.last, count: to.count, cause });
        }
    }

    fn add(&mut self, state: State, records: i64) {
        match state {
            State::Available => *self.available += records,
            State::Acquired { owner, .. } => {
                *self.acquired += records;
                if let Some(owner) = self.owners.get_mut(owner as usize) {
                    owner.locked += records;
                }
            }
            State::Pending { .. } => *self.pending += records,
            State::Archiving { .. } => *self.archiving += records,
            State::Acknowledged | State::Archived => {}
        }
    }
}

#[cfg(test)]
mod tests;
