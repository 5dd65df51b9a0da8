//! One slot: the acquired offsets of one partition in one fetch answer, with a state byte for each.

use super::{AckOutcome, GAP, Outcome};
use crate::metadata::TopicIdPartition;
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
const PHASE: u8 = 0xf0;
const TYPE: u8 = 0x0f;

pub(super) fn phase(state: u8) -> u8 {
    state & PHASE
}

pub(super) fn type_of(state: u8) -> i8 {
    (state & TYPE) as i8
}

#[derive(Debug)]
pub(super) struct Slot {
    pub(super) generation: u32,
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
    /// The lock is gone: nothing of this slot is sent any more.
    pub(super) stale: bool,
    /// Records are still in the buffer or in the application's hands.
    pub(super) referenced: bool,
}

impl Slot {
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
                push(&mut batches, range.first + i, type_of(state));
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
        for range in &self.ranges {
            for offset in range.first.max(first)..=range.last.min(last) {
                let index = range.start as usize + (offset - range.first) as usize;
                if phase(self.states[index]) == HELD {
                    self.states[index] = LOST;
                    self.open -= 1;
                }
            }
        }
    }

    /// Ends every offset of `first..=last` that is in `from`, with an outcome for each run.
    pub(super) fn finish(
        &mut self,
        from: u8,
        first: i64,
        last: i64,
        outcome: Outcome,
        out: &mut impl Extend<AckOutcome>,
    ) {
        let mut run: Option<AckOutcome> = None;
        for r in 0..self.ranges.len() {
            let range = self.ranges[r];
            for offset in range.first.max(first)..=range.last.min(last) {
                let index = range.start as usize + (offset - range.first) as usize;
                let state = self.states[index];
                if phase(state) != from {
                    continue;
                }
                if from == PENDING {
                    self.pending -= 1;
                }
                self.states[index] = DONE | (state & TYPE);
                self.open -= 1;
                let ack_type = ack_type(type_of(state));
                match &mut run {
                    Some(last) if last.last_offset + 1 == offset && last.ack_type == ack_type => {
                        last.last_offset = offset
                    }
                    _ => {
                        out.extend(run.take());
                        let (tp, first_offset) = (self.tp, offset);
                        run = Some(AckOutcome { tp, first_offset, last_offset: offset, ack_type, outcome });
                    }
                }
            }
        }
        out.extend(run);
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

fn ack_type(code: i8) -> Option<super::AckType> {
    use super::AckType::{Accept, Reject, Release, Renew};
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
