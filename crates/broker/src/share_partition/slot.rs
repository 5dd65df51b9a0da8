//! State of a range of records, and in-flight batches made of such ranges.

use std::time::Duration;

/// What a transaction's commit makes of a staged record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StagedAck {
    Accept,
    Reject,
    /// There is no such record.
    Gap,
}

/// Why a record goes to the dead letter queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cause {
    /// A consumer rejected it.
    Rejected,
    /// It was delivered as often as the group allows.
    DeliveryLimit,
}

/// Who holds a lock: an index into the partition's table of owners.
pub(super) type OwnerId = u32;

/// State of in-flight records (Kafka's `RecordState`, with KIP-1289's pending state).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// May be acquired.
    Available,
    /// Locked by a member until the deadline.
    Acquired { owner: OwnerId, deadline: Duration },
    /// Done: accepted.
    Acknowledged,
    /// Done: rejected, a gap, or delivered too often.
    Archived,
    /// Neither delivered again nor done: it goes to the dead letter queue first (KIP-1191).
    Archiving { cause: Cause },
    /// Staged in a transaction; its end decides. No lock runs.
    Pending { producer_id: i64, epoch: i16, ack: StagedAck },
}

impl State {
    pub(super) fn is_done(self) -> bool {
        matches!(self, State::Acknowledged | State::Archived)
    }
}

/// State and delivery count of a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Slot {
    pub(super) state: State,
    /// Times the records were acquired.
    pub(super) count: i16,
}

/// A range that ends at `last`; it begins where the one before it ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) last: i64,
    pub(super) slot: Slot,
}

/// A part of a batch in one state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) first: i64,
    pub(super) last: i64,
    pub(super) slot: Slot,
}

impl Piece {
    pub(super) fn len(&self) -> i64 {
        self.last - self.first + 1
    }
}

/// Records that were acquired together. As long as they share a state there is one run.
#[derive(Debug, Clone)]
pub(super) struct Batch {
    pub(super) first: i64,
    pub(super) last: i64,
    runs: Vec<Run>,
}

impl Batch {
    pub(super) fn new(first: i64, last: i64, slot: Slot) -> Self {
        Batch { first, last, runs: vec![Run { last, slot }] }
    }

    /// Records it had when it was acquired.
    pub(super) fn size(&self) -> i64 {
        self.last - self.first + 1
    }

    /// Whether all of it is in one state.
    pub(super) fn whole(&self) -> Option<Slot> {
        match self.runs.as_slice() {
            [run] => Some(run.slot),
            _ => None,
        }
    }

    /// Its ranges, in order.
    #[cfg(test)]
    pub(super) fn pieces(&self) -> impl DoubleEndedIterator<Item = Piece> {
        (0..self.runs.len()).map(|at| {
            let first = if at == 0 { self.first } else { self.runs[at - 1].last + 1 };
            Piece { first, last: self.runs[at].last, slot: self.runs[at].slot }
        })
    }

    /// Its ranges inside `from..=to`, cut to it.
    pub(super) fn pieces_in(&self, from: i64, to: i64) -> impl Iterator<Item = Piece> {
        let skip = self.runs.partition_point(|run| run.last < from);
        let pieces = (skip..self.runs.len()).map(move |at| {
            let first = if at == 0 { self.first } else { self.runs[at - 1].last + 1 };
            Piece { first: first.max(from), last: self.runs[at].last.min(to), slot: self.runs[at].slot }
        });
        pieces.take_while(move |piece| piece.first <= to)
    }

    /// Replaces the state of `from..=to`, range by range; equal neighbours become one.
    pub(super) fn update(&mut self, from: i64, to: i64, mut change: impl FnMut(Piece) -> Slot) {
        let (from, to) = (from.max(self.first), to.min(self.last));
        if from > to {
            return;
        }
        if let [run] = self.runs.as_mut_slice()
            && from == self.first
            && to == self.last
        {
            run.slot = change(Piece { first: from, last: to, slot: run.slot });
            return;
        }
        let begin = self.runs.partition_point(|run| run.last < from);
        let end = self.runs.partition_point(|run| run.last < to).min(self.runs.len() - 1);
        // The changed runs, with what is left of the first and the last one, and their neighbours to merge with.
        let mut fresh: Vec<Run> = Vec::with_capacity(end - begin + 3);
        let mut first = if begin == 0 { self.first } else { self.runs[begin - 1].last + 1 };
        if begin > 0 {
            fresh.push(self.runs[begin - 1]);
        }
        for run in &self.runs[begin..=end] {
            if first < from {
                push(&mut fresh, Run { last: from - 1, slot: run.slot });
            }
            let piece = Piece { first: first.max(from), last: run.last.min(to), slot: run.slot };
            push(&mut fresh, Run { last: piece.last, slot: change(piece) });
            if run.last > to {
                push(&mut fresh, *run);
            }
            first = run.last + 1;
        }
        let begin = begin.saturating_sub(1);
        let end = if let Some(next) = self.runs.get(end + 1) {
            push(&mut fresh, *next);
            end + 1
        } else {
            end
        };
        self.runs.splice(begin..=end, fresh);
    }
}

fn push(runs: &mut Vec<Run>, run: Run) {
    match runs.last_mut() {
        Some(last) if last.slot == run.slot => last.last = run.last,
        _ => runs.push(run),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FREE: Slot = Slot { state: State::Available, count: 1 };
    const DONE: Slot = Slot { state: State::Acknowledged, count: 1 };

    fn shape(batch: &Batch) -> Vec<(i64, i64, bool)> {
        batch.pieces().map(|p| (p.first, p.last, p.slot == DONE)).collect()
    }

    #[test]
    fn ranges_split_and_merge() {
        let mut batch = Batch::new(10, 19, FREE);
        batch.update(12, 13, |_| DONE);
        assert_eq!(shape(&batch), [(10, 11, false), (12, 13, true), (14, 19, false)]);
        batch.update(15, 15, |_| DONE);
        batch.update(14, 14, |_| DONE);
        assert_eq!(shape(&batch), [(10, 11, false), (12, 15, true), (16, 19, false)]);
        batch.update(0, 11, |_| DONE);
        batch.update(16, 99, |_| DONE);
        assert_eq!(shape(&batch), [(10, 19, true)]);
        batch.update(13, 16, |_| FREE);
        let cut: Vec<_> = batch.pieces_in(12, 14).map(|p| (p.first, p.last)).collect();
        assert_eq!(cut, [(12, 12), (13, 14)]);
    }

    #[test]
    fn every_update_is_what_a_list_of_offsets_says() {
        let mut batch = Batch::new(0, 29, FREE);
        let mut model = [false; 30];
        let mut rng = crate::rng::Rng::new(3);
        for _ in 0..2_000 {
            let (a, b) = ((rng.next_u64() % 30) as i64, (rng.next_u64() % 30) as i64);
            let (from, to) = (a.min(b), a.max(b));
            let done = rng.next_u64().is_multiple_of(2);
            batch.update(from, to, |_| if done { DONE } else { FREE });
            model[from as usize..=to as usize].fill(done);
            let mut next = 0;
            let mut previous = None;
            for piece in batch.pieces() {
                assert_eq!(piece.first, next);
                assert_ne!(previous, Some(piece.slot), "neighbours are merged");
                assert!(model[next as usize..=piece.last as usize].iter().all(|d| *d == (piece.slot == DONE)));
                (next, previous) = (piece.last + 1, Some(piece.slot));
            }
            assert_eq!(next, 30);
        }
    }
}
