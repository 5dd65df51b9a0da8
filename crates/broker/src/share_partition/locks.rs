//! Acquisition locks: one queue of deadlines, and what happens when they pass, are renewed or given back.

use super::slot::State;
use super::{Deliveries, SharePartition};
use std::collections::VecDeque;
use std::time::Duration;

/// Entries from which on the queue is checked for ones that no longer matter.
const SPARSE: usize = 64;

#[derive(Debug, Clone, Copy)]
struct Lock {
    deadline: Duration,
    first: i64,
    last: i64,
}

/// Ranges that were locked, by deadline. An entry may be stale: the records' own state says whether they are locked.
#[derive(Debug, Clone, Default)]
pub(super) struct LockQueue {
    queue: VecDeque<Lock>,
}

impl LockQueue {
    pub(super) fn push(&mut self, deadline: Duration, first: i64, last: i64) {
        // Nearly always at the back; the lock duration of a group may change.
        let at = self.queue.partition_point(|lock| lock.deadline <= deadline);
        match self.queue.get_mut(at.wrapping_sub(1)) {
            Some(before) if before.deadline == deadline && before.last + 1 == first => before.last = last,
            _ => self.queue.insert(at, Lock { deadline, first, last }),
        }
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.queue.len()
    }

    /// Drops the front as far as it lies below the start offset.
    pub(super) fn prune(&mut self, start: i64) {
        while self.queue.front().is_some_and(|lock| lock.last < start) {
            self.queue.pop_front();
        }
    }
}

impl SharePartition {
    /// When [`SharePartition::expire`] has something to do. May be early, never late.
    pub(crate) fn next_deadline(&self) -> Option<Duration> {
        self.locks.queue.front().map(|lock| lock.deadline)
    }

    /// Frees records whose lock is over. Says whether any was.
    pub(crate) fn expire(&mut self, now: Duration, deliveries: Deliveries) -> bool {
        let mut any = false;
        while let Some(lock) = self.locks.queue.front().copied().filter(|lock| lock.deadline <= now) {
            self.locks.queue.pop_front();
            self.update(lock.first, lock.last, |piece| match piece.slot.state {
                State::Acquired { deadline, .. } if deadline <= now => {
                    any = true;
                    deliveries.give_back(piece.slot)
                }
                _ => piece.slot,
            });
        }
        if any {
            self.settle();
        }
        any
    }

    /// Frees everything that a member holds; what it staged in a transaction stays. Says whether it held anything.
    pub(crate) fn release_member(&mut self, member: &str, deliveries: Deliveries) -> bool {
        let Some(held) = self.find_owner(member) else { return false };
        self.update(self.start, i64::MAX, |piece| match piece.slot.state {
            State::Acquired { owner, .. } if owner == held => deliveries.give_back(piece.slot),
            _ => piece.slot,
        });
        self.settle();
        true
    }

    /// Lets all locks expire now.
    pub(crate) fn expire_all(&mut self, deliveries: Deliveries) -> bool {
        self.expire(Duration::MAX, deliveries)
    }

    /// Notes a lock, and forgets stale entries where they have become many.
    pub(super) fn lock(&mut self, deadline: Duration, first: i64, last: i64) {
        self.locks.push(deadline, first, last);
        if self.locks.queue.len() > SPARSE + 4 * self.batches.len() {
            self.rebuild_locks();
        }
    }

    fn rebuild_locks(&mut self) {
        let mut locks = Vec::new();
        for piece in self.pieces(self.start, i64::MAX) {
            if let State::Acquired { deadline, .. } = piece.slot.state {
                locks.push(Lock { deadline, first: piece.first, last: piece.last });
            }
        }
        locks.sort_by_key(|lock| lock.deadline);
        self.locks.queue.clear();
        for lock in locks {
            self.locks.push(lock.deadline, lock.first, lock.last);
        }
    }
}
