//! Step 0: what is known of acquired records before they are handed out.

use super::picture::{IntentState, Picture};
use crate::metadata::TopicIdPartition;
use crate::share_acks::AckType;
use std::collections::BTreeMap;

/// What the ledger knows of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// Nobody claims it: it may be processed.
    Free,
    /// A committed transaction holds its output: acknowledge it with this type, and do not process it.
    Done(AckType),
    /// An open transaction claims it, or the ledger is still being read: set it aside until that ends.
    Open,
}

/// Neighbouring offsets with the same standing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// First offset.
    pub first: i64,
    /// Last offset, inclusive.
    pub last: i64,
    /// What is known of them.
    pub standing: Standing,
}

/// Standings of the offsets from `first` to `last`.
pub(super) fn runs(picture: &Picture, tp: TopicIdPartition, first: i64, last: i64) -> Vec<Run> {
    let mut claims: Vec<(IntentState, i64, Run)> = Vec::new();
    for (offset, entry, range) in picture.overlapping(tp, first, last) {
        let standing = match entry.state {
            IntentState::Open => Standing::Open,
            IntentState::Committed => Standing::Done(range.ack),
        };
        claims.push((entry.state, offset, Run { first: range.first.max(first), last: range.last.min(last), standing }));
    }
    let whole = Run { first, last, standing: Standing::Free };
    if claims.is_empty() {
        return vec![whole];
    }
    // Painted one over the other: what is committed counts more than what is open, and then the lower offset.
    claims.sort_by_key(|(state, offset, _)| (*state == IntentState::Committed, std::cmp::Reverse(*offset)));
    let mut canvas = BTreeMap::from([(first, whole)]);
    claims.iter().for_each(|(_, _, run)| paint(&mut canvas, *run));
    let mut runs: Vec<Run> = Vec::new();
    for run in canvas.into_values() {
        match runs.last_mut().filter(|before| before.standing == run.standing) {
            Some(before) => before.last = run.last,
            None => runs.push(run),
        }
    }
    runs
}

fn paint(canvas: &mut BTreeMap<i64, Run>, run: Run) {
    // What reaches into it from the left.
    if let Some((_, before)) = canvas.range_mut(..run.first).next_back().filter(|(_, b)| b.last >= run.first) {
        let rest = Run { first: run.first, ..*before };
        before.last = run.first - 1;
        canvas.insert(rest.first, rest);
    }
    while let Some((start, under)) = canvas.range(run.first..=run.last).next().map(|(s, u)| (*s, *u)) {
        canvas.remove(&start);
        if under.last > run.last {
            canvas.insert(run.last + 1, Run { first: run.last + 1, ..under });
        }
    }
    canvas.insert(run.first, run);
}
