//! One slot: the acquired offsets of one partition in one fetch answer, with a state byte for each.

use super::{AckOutcome, AckType, GAP, Outcome, QuietOutcome};
use crate::metadata::TopicIdPartition;
use crate::share_fetch::Delivery;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Instant;

/// A run of acquired offsets with one delivery count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AcquiredRange {
    /// First offset.
    pub first: i64,
    /// Last offset, inclusive.
    pub last: i64,
    /// How often these records have been handed out, this time included.
    pub delivery_count: i16,
    /// Index of `first` among the acquired offsets of the slot.
    pub start: u32,
}

/// Acknowledgements of a run of offsets, as they go on the wire.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AckBatch {
    /// First offset.
    pub first: i64,
    /// Last offset, inclusive.
    pub last: i64,
    /// One type for the whole run, or one per offset.
    pub types: Vec<i8>,
}

// State of an offset: the phase in the upper half, the acknowledgement type in the lower.
pub(super) const HELD: u8 = 0x00;
pub(super) const PENDING: u8 = 0x10;
pub(super) const SENT: u8 = 0x20;
pub(super) const STAGED: u8 = 0x30;
pub(super) const DONE: u8 = 0x40;
/// A renewal is on its way; this type goes out after it.
pub(super) const FOLLOWS: u8 = 0x50;
/// Given up without a word from the application, as its lock was lost.
pub(super) const LOST: u8 = 0x60;
/// As `FOLLOWS`, after a renewal that the application did not ask for.
pub(super) const FOLLOWS_EXTENSION: u8 = 0x70;
/// Held, and kept from the application: it comes to it later, or not at all.
pub(super) const ASIDE: u8 = 0x80;
/// Added to a type that the application is not told the outcome of, as it had one or never knew of the record.
pub(super) const QUIET: u8 = 0x08;
/// A renewal of a record that the application works on: RENEW on the wire, without an outcome of its own, and the record
/// is not handed out again.
pub(super) const EXTEND: u8 = 5;
const PHASE: u8 = 0xf0;
const TYPE: u8 = 0x0f;

pub(super) fn phase(state: u8) -> u8 {
    state & PHASE
}

pub(super) fn type_of(state: u8) -> i8 {
    (state & TYPE) as i8
}

/// Type of a state as it goes on the wire.
fn wire_type(state: u8) -> i8 {
    if state & TYPE == EXTEND { AckType::Renew.code() } else { type_of(state & !QUIET) }
}

/// Whether a type keeps the record.
pub(super) fn renews(code: i8) -> bool {
    code == AckType::Renew.code() || code == EXTEND as i8
}

/// Outcomes that wait to be asked for.
#[derive(Debug, Default)]
pub(super) struct Outcomes {
    /// For the application.
    pub(super) told: VecDeque<AckOutcome>,
    /// Of what the application is not told of.
    pub(super) quiet: VecDeque<QuietOutcome>,
}

/// Outcomes of consecutive offsets.
struct Run {
    outcome: AckOutcome,
    quiet: bool,
}

impl Outcomes {
    fn push(&mut self, run: Run, ask: u64) {
        let Run { outcome, quiet } = run;
        if !quiet {
            return self.told.push_back(outcome);
        }
        let AckOutcome { tp, first_offset, last_offset, ack_type, outcome } = outcome;
        self.quiet.push_back(QuietOutcome { tp, ask, first_offset, last_offset, ack_type, outcome });
    }
}

#[derive(Debug)]
pub(super) struct Slot {
    pub(super) generation: u32,
    /// Number of the ShareFetch that acquired the offsets.
    pub(super) ask: u64,
    pub(super) node: i32,
    pub(super) tp: TopicIdPartition,
    pub(super) ranges: Vec<AcquiredRange>,
    pub(super) states: Vec<u8>,
    /// Offsets whose state is not final.
    pub(super) open: u32,
    /// Offsets in phase `PENDING`.
    pub(super) pending: u32,
    /// When the first of the pending acknowledgements was given.
    pub(super) pending_since: Option<Instant>,
    /// When the first acknowledgement in phase `FOLLOWS` was given.
    pub(super) follows_since: Option<Instant>,
    pub(super) lock_until: Instant,
    /// Locks that were renewed, by number.
    pub(super) renewed: BTreeMap<u32, Instant>,
    /// `lock_until` has passed, and what had no other lock was given up.
    pub(super) base_expired: bool,
    /// Where the records are, for those that are handed out again after a renewal.
    pub(super) delivery: Option<Arc<Delivery>>,
    /// Offsets below this number were handed to the application.
    pub(super) handed: u32,
    /// When the locks of what was handed out are to be renewed unasked, and until when that may go on.
    pub(super) extend: Option<(Instant, Instant)>,
    /// The lock is gone: nothing of this slot is sent any more.
    pub(super) stale: bool,
    /// Records are still in the buffer or in the application's hands.
    pub(super) referenced: bool,
    /// Whether something was given up in this use of the slot (bit 0) and in the ones before it.
    pub(super) lost: u64,
}

impl Slot {
    pub(super) fn lock_of(&self, index: u32) -> Instant {
        self.renewed.get(&index).map_or(self.lock_until, |until| self.lock_until.max(*until))
    }

    /// Gives up what has no lock any more at `before`; answers how many acknowledgements that ended.
    pub(super) fn expire(&mut self, before: Instant, out: &mut Outcomes) -> u32 {
        let pending = self.pending;
        let gone: Vec<u32> = if self.base_expired {
            self.renewed.iter().filter(|(_, until)| **until < before).map(|(index, _)| *index).collect()
        } else {
            self.base_expired = true;
            (0..self.states.len() as u32).filter(|i| self.lock_of(*i) < before).collect()
        };
        for index in gone {
            self.renewed.remove(&index);
            let offset = self.offset(index);
            self.finish(PENDING, offset, offset, Outcome::LockLost, out);
            self.give_up_held(offset, offset);
        }
        pending - self.pending
    }

    pub(super) fn offset(&self, index: u32) -> i64 {
        let i = self.ranges.partition_point(|r| r.start <= index).saturating_sub(1);
        let range = &self.ranges[i];
        range.first + i64::from(index - range.start)
    }

    pub(super) fn index_of(&self, offset: i64) -> Option<u32> {
        let i = self.ranges.partition_point(|r| r.first <= offset).checked_sub(1)?;
        let range = &self.ranges[i];
        (offset <= range.last).then(|| range.start + (offset - range.first) as u32)
    }

    /// Changes the phase of every offset in phase `from` and answers the batches to send for them.
    pub(super) fn move_phase(&mut self, from: u8, to: u8, mut take: impl FnMut(i8) -> bool) -> Vec<AckBatch> {
        let mut batches: Vec<AckBatch> = Vec::new();
        for r in 0..self.ranges.len() {
            let range = self.ranges[r];
            for i in 0..=(range.last - range.first) {
                let index = range.start as usize + i as usize;
                let state = self.states[index];
                if phase(state) != from || !take(type_of(state)) {
                    continue;
                }
                self.states[index] = to | (state & TYPE);
                if from == PENDING {
                    self.pending -= 1;
                }
                push(&mut batches, range.first + i, wire_type(state));
            }
        }
        if self.pending == 0 {
            self.pending_since = None;
        }
        for batch in &mut batches {
            if batch.types.iter().all(|t| *t == batch.types[0]) {
                batch.types.truncate(1);
            }
        }
        batches
    }

    /// Gives up the offsets of `first..=last` that nobody spoke of.
    pub(super) fn give_up_held(&mut self, first: i64, last: i64) {
        let from = self.ranges.partition_point(|r| r.last < first);
        for range in self.ranges[from..].iter().take_while(|r| r.first <= last) {
            for offset in range.first.max(first)..=range.last.min(last) {
                let index = range.start as usize + (offset - range.first) as usize;
                if matches!(phase(self.states[index]), HELD | ASIDE) {
                    self.states[index] = LOST;
                    self.lost |= 1;
                    self.open -= 1;
                }
            }
        }
    }

    /// Ends every offset of `first..=last` that is in `from`, with an outcome for each run.
    pub(super) fn finish(&mut self, from: u8, first: i64, last: i64, outcome: Outcome, out: &mut Outcomes) {
        let mut run: Option<Run> = None;
        for r in self.ranges.partition_point(|r| r.last < first)..self.ranges.len() {
            let range = self.ranges[r];
            if range.first > last {
                break;
            }
            for offset in range.first.max(first)..=range.last.min(last) {
                let index = range.start as usize + (offset - range.first) as usize;
                let state = self.states[index];
                if phase(state) != from {
                    continue;
                }
                if from == PENDING {
                    self.pending -= 1;
                }
                self.open -= 1;
                if state & TYPE == EXTEND {
                    self.states[index] = LOST;
                    self.lost |= 1;
                    continue;
                }
                self.states[index] = DONE | (state & TYPE);
                self.join(&mut run, offset, state, outcome, out);
            }
        }
        run.into_iter().for_each(|run| out.push(run, self.ask));
    }

    /// Ends what a batch with renewals has sent, offset by offset: an offset that it renewed may have been acknowledged since,
    /// by a request of its own that is not answered. What is staged stays so.
    pub(super) fn finish_renewing(&mut self, batch: &AckBatch, outcome: Outcome, out: &mut Outcomes) {
        for offset in batch.first..=batch.last {
            let at = (offset - batch.first) as usize;
            let renewal = batch.types.get(at).or(batch.types.first()).is_some_and(|code| renews(*code));
            let state = self.index_of(offset).map(|index| self.states[index as usize]);
            if state.is_some_and(|state| phase(state) == SENT && renews(type_of(state)) == renewal) {
                self.finish(SENT, offset, offset, outcome, out);
            }
        }
    }

    /// Adds the outcome of an offset to the run before it, or begins a new one.
    fn join(&self, run: &mut Option<Run>, offset: i64, state: u8, outcome: Outcome, out: &mut Outcomes) {
        let (ack_type, quiet) = (ack_type(wire_type(state)), state & QUIET != 0);
        match run {
            Some(Run { outcome: last, quiet: same })
                if last.last_offset + 1 == offset && last.ack_type == ack_type && *same == quiet =>
            {
                last.last_offset = offset;
            }
            _ => {
                run.take().into_iter().for_each(|run| out.push(run, self.ask));
                let tp = self.tp;
                let outcome = AckOutcome { tp, first_offset: offset, last_offset: offset, ack_type, outcome };
                *run = Some(Run { outcome, quiet });
            }
        }
    }

    /// Tells the outcome of staged offsets, and has `next` say what they are from here on: pending, aside, or at their end
    /// (which is where a slot whose lock is lost leaves no other choice). Answers how many are pending now.
    pub(super) fn end_staged(
        &mut self,
        batch: &AckBatch,
        outcome: Outcome,
        out: &mut Outcomes,
        next: &mut impl FnMut(u32, i64, u8) -> u8,
    ) -> u32 {
        let (mut run, mut pending) = (None, 0);
        for offset in batch.first..=batch.last {
            let Some(index) = self.index_of(offset) else { continue };
            let state = self.states[index as usize];
            if phase(state) != STAGED {
                continue;
            }
            self.join(&mut run, offset, state, outcome, out);
            let state = if self.stale { DONE | (state & TYPE) } else { next(index, offset, state & TYPE) };
            self.states[index as usize] = state;
            match phase(state) {
                PENDING => pending += 1,
                ASIDE => {}
                _ => self.open -= 1,
            }
        }
        run.into_iter().for_each(|run| out.push(run, self.ask));
        self.pending += pending;
        pending
    }
}

fn push(batches: &mut Vec<AckBatch>, offset: i64, ack: i8) {
    match batches.last_mut() {
        Some(batch) if batch.last + 1 == offset => {
            batch.last = offset;
            batch.types.push(ack);
        }
        _ => batches.push(AckBatch { first: offset, last: offset, types: vec![ack] }),
    }
}

fn ack_type(code: i8) -> Option<AckType> {
    use AckType::{Accept, Reject, Release, Renew};
    match code {
        1 => Some(Accept),
        2 => Some(Release),
        3 => Some(Reject),
        4 => Some(Renew),
        _ => {
            debug_assert_eq!(code, GAP);
            None
        }
    }
}
