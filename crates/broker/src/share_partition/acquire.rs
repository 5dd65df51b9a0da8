//! Acquiring: which records a member gets, by Kafka's rules for the two modes and for suspicious batches.

use super::SharePartition;
use super::slot::{Batch, OwnerId, Slot, State};
use kafka_share_wire::Str;
use std::time::Duration;

/// Offsets of a record batch in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Extent {
    pub(crate) base: i64,
    pub(crate) last: i64,
}

/// What bounds an acquisition.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AcquireLimits {
    /// Records wanted; kept strictly only in `record_limit` mode.
    pub(crate) max_records: i64,
    /// Records per in-flight batch, roughly: batches of the log stay whole.
    pub(crate) batch_size: i64,
    /// `record_limit` mode (KIP-1206).
    pub(crate) strict: bool,
    /// `share.partition.max.record.locks`
    pub(crate) max_locks: i64,
    /// `share.delivery.count.limit`
    pub(crate) delivery_limit: i16,
    /// When the locks end.
    pub(crate) deadline: Duration,
}

/// Records that a member got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Acquired {
    pub(crate) first: i64,
    pub(crate) last: i64,
    pub(crate) count: i16,
}

impl Acquired {
    pub(crate) fn len(&self) -> i64 {
        self.last - self.first + 1
    }
}

/// From this delivery count on a batch is suspected to hold a bad record and handed out in ever smaller parts.
fn throttle_from(delivery_limit: i16) -> i16 {
    ((delivery_limit + 1) / 2).max(2)
}

/// How an acquisition stands.
struct Progress<'a> {
    owner: OwnerId,
    limits: &'a AcquireLimits,
    /// Records wanted in all.
    max: i64,
    taken: i64,
    /// Nothing more may be acquired along with what was.
    stop: bool,
    out: &'a mut Vec<Acquired>,
}

impl SharePartition {
    /// Acquires records of `extents`, the record batches that the log has from the next fetch offset on, for `member`.
    /// Gives them in `out`, ascending; each range has one delivery count.
    pub(crate) fn acquire(
        &mut self,
        member: &Str,
        limits: &AcquireLimits,
        extents: &[Extent],
        out: &mut Vec<Acquired>,
    ) {
        let (Some(head), Some(tail)) = (extents.first(), extents.last()) else { return };
        if limits.max_records <= 0 || tail.last < self.start {
            return;
        }
        let fetch = head.base.max(self.next_fetch_offset());
        let Some((max, to)) = self.room(limits, fetch, tail.last) else { return };
        let begin = out.len();
        let owner = self.owner(member);
        let mut progress = Progress { owner, limits, max, taken: 0, stop: false, out };
        let overlap = self.acquire_in_flight(head.base, to, &mut progress);
        if !progress.stop && progress.taken < max && to >= self.end {
            let first = if overlap { self.end } else { head.base.max(self.end) };
            self.acquire_new(first, to, extents, &mut progress);
        }
        for found in &out[begin..] {
            self.lock(limits.deadline, found.first, found.last);
        }
    }

    /// How many records there is room for, and up to which offset.
    fn room(&self, limits: &AcquireLimits, fetch: i64, last: i64) -> Option<(i64, i64)> {
        let room = limits.max_records.min(limits.max_locks - (self.end - self.start));
        if room > 0 {
            return Some((room, last));
        }
        // Full, but for what is in flight already.
        (fetch < self.end).then(|| (limits.max_records.min(self.end - fetch), last.min(self.end - 1)))
    }

    /// Acquires available records among those in flight; says whether there are any in flight in this part.
    fn acquire_in_flight(&mut self, from: i64, to: i64, progress: &mut Progress<'_>) -> bool {
        let from = from.max(self.start);
        if from > to {
            return false;
        }
        let key = self.floor(from);
        let mut overlap = false;
        let mut taken = (0, 0);
        for (_, batch) in self.batches.range_mut(key..=to) {
            overlap = true;
            if progress.taken >= progress.max || progress.stop {
                break;
            }
            let before = progress.taken;
            let (fresh, again) = acquire_batch(batch, from, to, progress);
            debug_assert_eq!(progress.taken - before, fresh + again);
            taken = (taken.0 + fresh, taken.1 + again);
        }
        let records = taken.0 + taken.1;
        self.available -= records;
        self.acquired += records;
        self.owners[progress.owner as usize].locked += records;
        overlap
    }

    /// Acquires records that were never in flight.
    fn acquire_new(&mut self, first: i64, to: i64, extents: &[Extent], progress: &mut Progress<'_>) {
        let wanted = first + (progress.max - progress.taken) - 1;
        let last = if wanted >= to {
            to
        } else {
            let at = extents.partition_point(|extent| extent.last < wanted);
            extents.get(at).map_or(to, |extent| extent.last.min(to))
        };
        if self.batches.is_empty() {
            self.start = self.start.max(first);
        }
        let mut begin = first;
        let size = progress.limits.batch_size.max(1);
        if !progress.limits.strict && last - first + 1 > size {
            for extent in extents {
                if extent.base > last {
                    break;
                }
                if extent.base - begin >= size {
                    self.insert(begin, extent.base - 1, progress);
                    begin = extent.base;
                }
            }
        }
        self.insert(begin, last, progress);
        self.end = last + 1;
    }

    /// Puts a batch in flight. In `record_limit` mode too it is a whole one of the log; what goes beyond the limit waits
    /// in it, never delivered so far.
    fn insert(&mut self, first: i64, last: i64, progress: &mut Progress<'_>) {
        let state = State::Acquired { owner: progress.owner, deadline: progress.limits.deadline };
        let mut batch = Batch::new(first, last, Slot { state, count: 1 });
        let taken = if progress.limits.strict { last.min(first + progress.max - progress.taken - 1) } else { last };
        if taken < last {
            batch.update(taken + 1, last, |_| Slot { state: State::Available, count: 0 });
            self.available += last - taken;
            self.first_available = self.first_available.min(taken + 1);
        }
        self.batches.insert(first, batch);
        let last = taken;
        let records = last - first + 1;
        self.acquired += records;
        self.owners[progress.owner as usize].locked += records;
        progress.taken += records;
        progress.out.push(Acquired { first, last, count: 1 });
    }
}

/// Acquires from one batch in flight. Gives the records of it that are on their first delivery and the others.
fn acquire_batch(batch: &mut Batch, from: i64, to: i64, progress: &mut Progress<'_>) -> (i64, i64) {
    let limits = progress.limits;
    let throttle = throttle_from(limits.delivery_limit);
    let (lo, hi) = (batch.first.max(from), batch.last.min(to));
    let free = |slot: &Slot| slot.state == State::Available;
    let counts = batch.pieces_in(lo, hi).filter(|piece| free(&piece.slot)).map(|piece| piece.slot.count);
    let Some(most) = counts.max() else { return (0, 0) };
    let suspicious = most >= throttle;
    if suspicious && progress.taken > 0 {
        progress.stop = true;
        return (0, 0);
    }
    let too_many = limits.strict && batch.size() > progress.max - progress.taken;
    if let Some(slot) = batch.whole()
        && lo == batch.first
        && hi == batch.last
        && !too_many
        && !suspicious
        && slot.count > 0
    {
        let state = State::Acquired { owner: progress.owner, deadline: limits.deadline };
        let slot = Slot { state, count: slot.count + 1 };
        batch.update(lo, hi, |_| slot);
        progress.taken += hi - lo + 1;
        progress.out.push(Acquired { first: lo, last: hi, count: slot.count });
        return (0, hi - lo + 1);
    }
    let taken = acquire_part(batch, lo, hi, progress);
    if suspicious && taken.0 + taken.1 > 0 {
        progress.stop = true;
    }
    taken
}

/// Acquires from a batch whose records differ, or that must be split.
fn acquire_part(batch: &mut Batch, lo: i64, hi: i64, progress: &mut Progress<'_>) -> (i64, i64) {
    let Progress { owner, limits, max, .. } = *progress;
    let limit = limits.delivery_limit;
    let throttle = throttle_from(limit);
    let size = batch.size();
    let mut taken = (0, 0);
    // Between batches that were stored at a move of the leader: as good as new, so it keeps to the limit.
    let gap = batch.whole().is_some_and(|slot| slot.count == 0);
    // Chosen first and changed after, as changing splits and merges the ranges.
    let mut chosen: Vec<Acquired> = Vec::new();
    let mut cap: Option<i64> = None;
    for piece in batch.pieces_in(lo, hi).filter(|piece| piece.slot.state == State::Available) {
        let (count, so_far) = (piece.slot.count, taken.0 + taken.1);
        let last_try = limit > 2 && count + 1 >= limit;
        if last_try && so_far > 0 {
            break;
        }
        if count >= throttle && cap.is_none() {
            // Kafka stops where the number acquired equals the cap; one that was passed before never stops it.
            let records = (size >> (count - throttle + 1).clamp(0, 62)).max(1);
            cap = Some(if records > so_far { records } else { i64::MAX });
        }
        let mut room = cap.unwrap_or(i64::MAX) - so_far;
        if limits.strict || gap {
            room = room.min(max - progress.taken - so_far);
        }
        let records = piece.len().min(room).min(if last_try { 1 } else { i64::MAX });
        if records <= 0 {
            break;
        }
        let found = Acquired { first: piece.first, last: piece.first + records - 1, count: count + 1 };
        if count == 0 {
            taken.0 += records;
        } else {
            taken.1 += records;
        }
        chosen.push(found);
        if last_try || records < piece.len() {
            break;
        }
    }
    let state = State::Acquired { owner, deadline: limits.deadline };
    for found in chosen {
        batch.update(found.first, found.last, |piece| Slot { state, count: piece.slot.count + 1 });
        match progress.out.last_mut() {
            Some(before) if before.last + 1 == found.first && before.count == found.count && before.first >= lo => {
                before.last = found.last;
            }
            _ => progress.out.push(found),
        }
    }
    progress.taken += taken.0 + taken.1;
    taken
}
