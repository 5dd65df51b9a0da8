//! Renewed locks: per record, whether the application asked for them or they are kept alive for it.

use super::slot::{
    ASIDE, EXTEND, FOLLOWS, FOLLOWS_EXTENSION, HELD, LOST, Outcomes, PENDING, SENT, STAGED, Slot, phase, type_of,
};
use super::{AckBatch, AckError, AckOutcome, AckTable, AckType, Outcome, RecordHandle, SlotRef, Taken};
use crate::share_fetch::Delivery;
use std::sync::Arc;
use std::time::{Duration, Instant};

impl AckTable {
    /// Keeps the records of a slot, so that they can be handed out again after a renewal.
    pub fn attach(&mut self, at: SlotRef, delivery: Arc<Delivery>) {
        if let Some(slot) = self.slot_mut(at) {
            slot.delivery = Some(delivery);
        }
    }

    /// Records of a slot, where they were attached and it still is live.
    #[must_use]
    pub fn delivery(&self, at: SlotRef) -> Option<&Arc<Delivery>> {
        self.slot(at)?.delivery.as_ref()
    }

    /// Records that were renewed at the application's wish since this was asked last and are still held; `most` of them.
    pub fn take_renewed(&mut self, most: usize) -> Vec<RecordHandle> {
        let mut taken = Vec::new();
        while taken.len() < most
            && let Some(handle) = self.renewed.pop_first()
        {
            if self.is_held(handle) {
                taken.push(handle);
            }
        }
        taken
    }

    /// Whether a renewed record waits to be handed out again.
    #[must_use]
    pub fn has_renewed(&self) -> bool {
        self.renewed.iter().any(|handle| self.is_held(*handle))
    }

    /// When the lock of a record ends, as far as this client knows; `None` where it is lost.
    #[must_use]
    pub fn record_lock(&self, handle: RecordHandle) -> Option<Instant> {
        let slot = self.slot(handle.slot).filter(|s| !s.stale && (handle.index as usize) < s.states.len())?;
        Some(slot.lock_of(handle.index))
    }

    /// Renews the lock of a record without a word of it to the application, and without handing it out again.
    ///
    /// # Errors
    /// Records that are not held, or that were acknowledged before. A renewal that is on its way already is no error.
    pub fn extend(&mut self, handle: RecordHandle, now: Instant) -> Result<(), AckError> {
        self.check_renewal(handle.slot, AckType::Renew)?;
        let Some(slot) = self.slot_mut(handle.slot) else { return Err(self.gone(handle.slot)) };
        if slot.stale {
            return Err(AckError::LockLost);
        }
        match slot.states.get(handle.index as usize).map(|s| (phase(*s), super::slot::renews(type_of(*s)))) {
            Some((HELD, _)) => {
                slot.states[handle.index as usize] = PENDING | EXTEND;
                slot.pending += 1;
                slot.pending_since.get_or_insert(now);
                self.pending += 1;
                Ok(())
            }
            Some((PENDING | SENT, true)) => Ok(()),
            Some((LOST, _)) => Err(AckError::LockLost),
            Some(_) => Err(AckError::AlreadyAcknowledged),
            None => Err(AckError::NotHeld),
        }
    }

    /// As [`AckTable::extend`], those of `indexes` that are held; answers how many renewals that makes, with those that are
    /// on their way already.
    pub fn extend_held(&mut self, at: SlotRef, indexes: impl Iterator<Item = u32>, now: Instant) -> usize {
        let mut extended = |index: &u32| self.extend(RecordHandle { slot: at, index: *index }, now).is_ok();
        indexes.filter(|index| extended(index)).count()
    }

    /// The offsets of a slot below number `index` were handed out. Where `limit` is given their locks are renewed unasked
    /// from half of `lock` on, for that long.
    pub fn hand_out(&mut self, at: SlotRef, index: u32, now: Instant, lock: Duration, limit: Option<Duration>) {
        let Some(slot) = self.slot_mut(at) else { return };
        slot.handed = slot.handed.max(index);
        if let Some(limit) = limit {
            let first = slot.lock_until.checked_sub(lock / 2).unwrap_or(now);
            // What was handed out last must have its full time.
            let (due, _) = slot.extend.unwrap_or((first, now));
            slot.extend = Some((due, now + limit));
        }
    }

    /// When [`AckTable::take_extensions`] has something to take.
    #[must_use]
    pub fn extension_due(&self) -> Option<Instant> {
        let live = self.slots.iter().filter(|s| !s.stale && s.open > 0);
        live.filter_map(|s| s.extend).map(|(due, _)| due).min()
    }

    /// Renewals of locks that are due, by node, to be sent at once; the next are due after `pause`.
    pub fn take_extensions(&mut self, now: Instant, pause: Duration) -> Vec<(i32, Vec<Taken>)> {
        let mut nodes = Vec::new();
        for slot in &mut self.slots {
            let Some((due, until)) = slot.extend.filter(|(due, _)| *due <= now) else { continue };
            if slot.stale || slot.open == 0 || until <= now {
                slot.extend = None;
                continue;
            }
            slot.extend = Some((due.max(now) + pause, until));
            let mut marked = 0;
            for state in slot.states.iter_mut().take(slot.handed as usize).filter(|s| **s == HELD) {
                *state = PENDING | EXTEND;
                marked += 1;
            }
            slot.pending += marked;
            self.pending += marked as usize;
            if marked > 0 && !nodes.contains(&slot.node) {
                nodes.push(slot.node);
            }
        }
        let mut take = |node| self.take_phase(SENT, |s| s.node == node, |code| code == EXTEND as i8);
        nodes.into_iter().map(|node| (node, take(node))).filter(|(_, taken)| !taken.is_empty()).collect()
    }
}

/// Slots with locks that ended before a moment.
pub(super) fn expired(slots: &[Slot], before: Instant) -> Vec<u32> {
    let gone = |s: &Slot| match s.base_expired {
        false => s.lock_until < before,
        true => s.renewed.values().any(|until| *until < before),
    };
    let live = slots.iter().enumerate().filter(|(_, s)| !s.stale && gone(s));
    live.map(|(at, _)| at as u32).collect()
}

/// Ends renewals that were sent, where the record outlives them; answers the numbers of those to hand out again.
pub(super) fn settle_renewed(
    slot: &mut Slot,
    batch: &AckBatch,
    outcome: Outcome,
    until: Option<Instant>,
    outcomes: &mut Outcomes,
) -> Vec<u32> {
    let mut again = Vec::new();
    if !matches!(outcome, Outcome::Acknowledged | Outcome::Refused(_)) {
        return again;
    }
    for offset in batch.first..=batch.last {
        let Some(index) = slot.index_of(offset) else { continue };
        let state = slot.states[index as usize];
        if matches!(phase(state), STAGED | ASIDE) {
            note_lock(slot, index, outcome, until);
            continue;
        }
        let asked = state == SENT | AckType::Renew as u8;
        if !asked && state != SENT | EXTEND {
            continue;
        }
        note_lock(slot, index, outcome, until);
        // The session was lost meanwhile, and the lock with it; or it ended while the broker refused another.
        let lost = slot.stale || (slot.base_expired && !slot.renewed.contains_key(&index));
        slot.states[index as usize] = if lost { LOST } else { HELD };
        slot.lost |= u64::from(lost);
        slot.open -= u32::from(lost);
        if asked {
            push_outcome(slot, offset, outcome, outcomes);
            if !lost && outcome == Outcome::Acknowledged {
                again.push(index);
            }
        }
    }
    again
}

fn note_lock(slot: &mut Slot, index: u32, outcome: Outcome, until: Option<Instant>) {
    if let Some(until) = until.filter(|_| outcome == Outcome::Acknowledged && !slot.stale) {
        slot.renewed.insert(index, until);
    }
}

fn push_outcome(slot: &Slot, offset: i64, outcome: Outcome, outcomes: &mut Outcomes) {
    let ack_type = Some(AckType::Renew);
    let same = |last: &&mut AckOutcome| {
        last.tp == slot.tp && last.last_offset + 1 == offset && last.ack_type == ack_type && last.outcome == outcome
    };
    match outcomes.told.back_mut().filter(same) {
        Some(last) => last.last_offset = offset,
        None => outcomes.told.push_back(AckOutcome {
            tp: slot.tp,
            first_offset: offset,
            last_offset: offset,
            ack_type,
            outcome,
        }),
    }
}

/// Ends renewals that another acknowledgement follows. Where the broker answered, it is pending now (answers how many);
/// else the lock is as good as lost, and it ends too.
pub(super) fn settle_followed(
    slot: &mut Slot,
    batch: &AckBatch,
    outcome: Outcome,
    until: Option<Instant>,
    outcomes: &mut Outcomes,
) -> u32 {
    let mut moved = 0;
    for offset in batch.first..=batch.last {
        let Some(index) = slot.index_of(offset) else { continue };
        let state = slot.states[index as usize];
        let follows = phase(state);
        if follows != FOLLOWS && follows != FOLLOWS_EXTENSION {
            continue;
        }
        if follows == FOLLOWS {
            push_outcome(slot, offset, outcome, outcomes);
        }
        note_lock(slot, index, outcome, until);
        if matches!(outcome, Outcome::Acknowledged | Outcome::Refused(_)) && !slot.stale {
            slot.states[index as usize] = PENDING | (type_of(state) as u8);
            moved += 1;
        } else {
            slot.finish(follows, offset, offset, Outcome::LockLost, outcomes);
        }
    }
    slot.pending += moved;
    let since = slot.follows_since.filter(|_| moved > 0);
    slot.pending_since = slot.pending_since.or(since);
    moved
}
