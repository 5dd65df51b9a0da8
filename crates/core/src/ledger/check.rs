//! The check before a commit: what lies below a transaction's own intent decides whether it may be committed.

use super::error::LedgerError;
use super::format::{ClaimedRange, IntentKey};
use super::picture::IntentState;
use super::reader::LedgerReader;
use super::verdicts::Verdict;
use crate::metadata::TopicIdPartition;
use crate::share_acks::AckType;
use std::time::Instant;

/// Offsets that a committed transaction holds the output of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Conflict {
    /// Share-partition.
    pub tp: TopicIdPartition,
    /// First offset.
    pub first: i64,
    /// Last offset, inclusive.
    pub last: i64,
    /// How the committed transaction acknowledges them, and how they are to be acknowledged.
    pub ack: AckType,
}

/// What a transaction may do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Check {
    /// The ledger was not read up to its intent yet: ask again after more records.
    Reading,
    /// Commit.
    Clear,
    /// Abort, and acknowledge these as they were: others have committed their output.
    Conflicts(Vec<Conflict>),
    /// Open transactions are before it: ask again after more records. They are fenced in time.
    Waiting,
    /// Abort: open transactions are before it that must not or cannot be fenced.
    Blocked,
    /// Abort: something that it relies on may have been compacted away, or the group's offsets were reset (R2).
    Dropped,
    /// Abort: the group has left the ledger, and the brokers do not know of this transaction's acknowledgements.
    Left,
    /// Its own intent has its marker already: somebody else has ended the transaction.
    Ended(Verdict),
}

impl LedgerReader {
    /// Whether the transaction of a watched intent of this group may be committed. `lowest_ask`: the smallest number of the
    /// requests that brought the records which it acknowledges. The caller waits until `until` at most.
    ///
    /// # Errors
    /// A ledger that cannot be used.
    pub fn check(
        &mut self,
        now: Instant,
        until: Instant,
        key: &IntentKey,
        offset: i64,
        lowest_ask: u64,
    ) -> Result<Check, LedgerError> {
        if let Some(error) = self.error() {
            return Err(error.clone());
        }
        if lowest_ask < self.floor() {
            return Ok(Check::Dropped);
        }
        if !self.is_caught_up() || self.position().is_none_or(|p| p <= offset) {
            return Ok(Check::Reading);
        }
        if let Some(verdict) = self.verdict(key) {
            return Ok(Check::Ended(verdict));
        }
        // Of another generation, if it is not there.
        let Some((_, own)) = self.picture.get(key) else { return Ok(Check::Dropped) };
        if self.has_left() && !own.native {
            return Ok(Check::Left);
        }
        let (mut conflicts, mut waiting) = (Vec::new(), Vec::new());
        for (tp, ranges) in &own.claims {
            for range in ranges {
                for (at, entry, other) in self.picture.overlapping(*tp, range.first, range.last) {
                    match entry.state {
                        _ if at >= offset => {}
                        IntentState::Committed => conflicts.push(conflict(*tp, range, &other)),
                        IntentState::Open => waiting.push((at, entry.two_phase)),
                    }
                }
            }
        }
        if !conflicts.is_empty() {
            conflicts.sort_by_key(|c| (c.tp, c.first, c.last));
            return Ok(Check::Conflicts(conflicts));
        }
        if waiting.is_empty() {
            return Ok(Check::Clear);
        }
        if waiting.iter().any(|(at, two_phase)| *two_phase || self.waits.is_refused(*at)) {
            return Ok(Check::Blocked);
        }
        waiting.iter().for_each(|(at, _)| self.waits.note(now, until, *at));
        Ok(Check::Waiting)
    }
}

fn conflict(tp: TopicIdPartition, own: &ClaimedRange, other: &ClaimedRange) -> Conflict {
    Conflict { tp, first: own.first.max(other.first), last: own.last.min(other.last), ack: other.ack }
}
