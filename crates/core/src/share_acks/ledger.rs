//! What the acknowledgement ledger needs of the table: the ShareFetch that records came by, records kept aside, and
//! acknowledgements that took effect elsewhere and are only told to the broker.

use super::slot::{ASIDE, DONE, HELD, PENDING, QUIET, SENT, STAGED, phase, type_of};
use super::{AckBatch, AckTable, AckType, GAP, Outcome, QuietOutcome, RecordHandle, SlotRef, Taken};
use crate::metadata::TopicIdPartition;
use std::time::Instant;

/// What becomes of a record whose transaction was aborted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Aborted {
    /// It was acknowledged by another transaction: the broker is told of that.
    Done(AckType),
    /// It is held and comes to the application again from here.
    Again,
    /// It is released.
    Released,
}

impl AckTable {
    /// The smallest number of a ShareFetch whose records are not all settled.
    #[must_use]
    pub fn lowest_ask(&self) -> Option<u64> {
        self.slots.iter().filter(|s| s.open > 0).map(|s| s.ask).min()
    }

    /// Number of the ShareFetch that a slot came by.
    #[must_use]
    pub fn ask(&self, at: SlotRef) -> Option<u64> {
        self.slot(at).map(|s| s.ask)
    }

    /// Offset of a record of a slot, by number.
    #[must_use]
    pub fn offset(&self, at: SlotRef, index: u32) -> Option<i64> {
        self.slot(at).filter(|s| (index as usize) < s.states.len()).map(|s| s.offset(index))
    }

    /// Gives up all that was acquired by a ShareFetch with a number below `floor`. Nothing of it is sent any more; what is
    /// staged belongs to its transaction, which can only be aborted.
    pub fn drop_below(&mut self, floor: u64) {
        self.lose_where(|s| s.ask < floor);
    }

    /// Keeps held records from the application.
    pub fn set_aside(&mut self, at: SlotRef, indexes: impl IntoIterator<Item = u32>) {
        self.exchange(at, indexes, HELD, ASIDE);
    }

    /// Ends what [`AckTable::set_aside`] began.
    pub fn hold_again(&mut self, at: SlotRef, indexes: impl IntoIterator<Item = u32>) {
        self.exchange(at, indexes, ASIDE, HELD);
    }

    fn exchange(&mut self, at: SlotRef, indexes: impl IntoIterator<Item = u32>, from: u8, to: u8) {
        let Some(slot) = self.slot_mut(at) else { return };
        for index in indexes {
            if let Some(state) = slot.states.get_mut(index as usize).filter(|s| **s == from) {
                *state = to;
            }
        }
    }

    /// Tells the broker of records that were acknowledged elsewhere and that the application does not see; answers of how
    /// many.
    pub fn settle_quietly(
        &mut self,
        at: SlotRef,
        indexes: impl IntoIterator<Item = u32>,
        ack: AckType,
        now: Instant,
    ) -> usize {
        let Some(slot) = self.slot_mut(at).filter(|s| !s.stale) else { return 0 };
        let mut marked = 0;
        for index in indexes {
            if let Some(state) = slot.states.get_mut(index as usize).filter(|s| matches!(**s, HELD | ASIDE)) {
                *state = PENDING | QUIET | ack as u8;
                marked += 1;
            }
        }
        slot.pending += marked;
        self.note_pending(at, marked, now);
        marked as usize
    }

    /// The transaction of staged acknowledgements was committed, which the broker is to be told: they are pending now, with
    /// a quiet outcome to come. Answers how many; the others have no lock any more.
    pub fn commit_staged(&mut self, taken: &Taken, now: Instant) -> u64 {
        self.end_staged(taken, Outcome::Acknowledged, now, |_, _, kind| PENDING | QUIET | kind)
    }

    /// The transaction of staged acknowledgements was aborted, of which the broker knows nothing; `fate` says what becomes
    /// of a record, by offset. Answers the numbers of those that are kept aside, to be handed out again.
    pub fn abort_staged(&mut self, taken: &Taken, now: Instant, fate: impl Fn(i64) -> Aborted) -> Vec<u32> {
        let mut again = Vec::new();
        self.end_staged(taken, Outcome::LockLost, now, |index, offset, _| match fate(offset) {
            Aborted::Done(ack) => PENDING | QUIET | ack as u8,
            Aborted::Released => PENDING | QUIET | AckType::Release as u8,
            Aborted::Again => {
                again.push(index);
                ASIDE
            }
        });
        again
    }

    fn end_staged(
        &mut self,
        taken: &Taken,
        outcome: Outcome,
        now: Instant,
        mut next: impl FnMut(u32, i64, u8) -> u8,
    ) -> u64 {
        let mut outcomes = std::mem::take(&mut self.outcomes);
        let mut pending = 0;
        if let Some(slot) = self.slot_mut(taken.slot) {
            for batch in &taken.batches {
                pending += slot.end_staged(batch, outcome, &mut outcomes, &mut next);
            }
        }
        self.outcomes = outcomes;
        self.note_pending(taken.slot, pending, now);
        self.release_slot(taken.slot);
        u64::from(pending)
    }

    /// `more` acknowledgements of a slot are pending that were not.
    pub(super) fn note_pending(&mut self, at: SlotRef, more: u32, now: Instant) {
        let Some(slot) = self.slot_mut(at).filter(|_| more > 0) else { return };
        let first = slot.pending_since.is_none();
        slot.pending_since.get_or_insert(now);
        self.news |= first;
        self.pending += more as usize;
    }

    /// Stages ranges of offsets for a transaction: records that are held, or acknowledged with the same type and not sent.
    /// The types of a range are one for all, or one per offset. `None`, and nothing changed, where one of the records is
    /// neither.
    pub fn stage_ranges<'a>(
        &mut self,
        ranges: impl IntoIterator<Item = (TopicIdPartition, i64, i64, &'a [AckType])>,
    ) -> Option<Vec<Taken>> {
        let mut found: Vec<(RecordHandle, i64, AckType)> = Vec::new();
        for (tp, first, last, types) in ranges {
            for offset in first..=last {
                let ack = *types.get((offset - first) as usize).or(types.first())?;
                let handle = self.find(tp, offset).ok()?;
                match self.slot(handle.slot)?.states[handle.index as usize] {
                    // Nothing is there to be said of an offset without a record; that goes to the broker by itself.
                    gap if matches!(phase(gap), PENDING | SENT | DONE) && type_of(gap) == GAP => {}
                    HELD => found.push((handle, offset, ack)),
                    state if state == PENDING | ack as u8 => found.push((handle, offset, ack)),
                    _ => return None,
                }
            }
        }
        let parts = found.chunk_by(|(a, ..), (b, ..)| a.slot == b.slot);
        Some(parts.filter_map(|part| self.stage_found(part)).collect())
    }

    /// Stages records of one slot.
    fn stage_found(&mut self, found: &[(RecordHandle, i64, AckType)]) -> Option<Taken> {
        let at = found.first()?.0.slot;
        let slot = self.slot_mut(at)?;
        let (mut batches, mut moved): (Vec<AckBatch>, u32) = (Vec::new(), 0);
        for (handle, offset, ack) in found {
            let state = &mut slot.states[handle.index as usize];
            moved += u32::from(phase(*state) == PENDING);
            *state = STAGED | *ack as u8;
            match batches.last_mut().filter(|b| b.last + 1 == *offset && b.types[0] == ack.code()) {
                Some(batch) => batch.last = *offset,
                None => batches.push(AckBatch { first: *offset, last: *offset, types: vec![ack.code()] }),
            }
        }
        slot.pending -= moved;
        if slot.pending == 0 {
            slot.pending_since = None;
        }
        let taken = Taken { slot: at, ask: slot.ask, tp: slot.tp, batches };
        self.pending -= moved as usize;
        Some(taken)
    }

    /// When the first lock of staged records ends; `None` where they have none any more.
    #[must_use]
    pub fn staged_lock(&self, taken: &Taken) -> Option<Instant> {
        let slot = self.slot(taken.slot).filter(|s| !s.stale)?;
        let offsets = taken.batches.iter().flat_map(|b| b.first..=b.last);
        if slot.renewed.is_empty() {
            return Some(slot.lock_until);
        }
        offsets.filter_map(|offset| slot.index_of(offset)).map(|index| slot.lock_of(index)).min()
    }

    /// What renews the locks of staged records, and the node to send it to; `None` where they have none any more.
    #[must_use]
    pub fn renewal_of_staged(&self, taken: &Taken) -> Option<(i32, Taken)> {
        let slot = self.slot(taken.slot).filter(|s| !s.stale)?;
        let renewed = |b: &AckBatch| AckBatch { first: b.first, last: b.last, types: vec![AckType::Renew.code()] };
        let batches = taken.batches.iter().map(renewed).collect();
        Some((slot.node, Taken { batches, ..*taken }))
    }

    /// What renews the locks of records that are kept aside, and the node to send it to; `None` where there are none.
    #[must_use]
    pub fn renewal_of_aside(&self, at: SlotRef, indexes: impl IntoIterator<Item = u32>) -> Option<(i32, Taken)> {
        let slot = self.slot(at).filter(|s| !s.stale)?;
        let mut batches: Vec<AckBatch> = Vec::new();
        for index in indexes.into_iter().filter(|i| slot.states.get(*i as usize) == Some(&ASIDE)) {
            let offset = slot.offset(index);
            match batches.last_mut().filter(|b| b.last + 1 == offset) {
                Some(batch) => batch.last = offset,
                None => batches.push(AckBatch { first: offset, last: offset, types: vec![AckType::Renew.code()] }),
            }
        }
        let taken = Taken { slot: at, ask: slot.ask, tp: slot.tp, batches };
        (!taken.batches.is_empty()).then_some((slot.node, taken))
    }

    /// The next outcome of what the application is not told of.
    pub fn poll_quiet_outcome(&mut self) -> Option<QuietOutcome> {
        self.outcomes.quiet.pop_front()
    }
}
