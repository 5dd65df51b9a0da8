//! Acknowledgements: validation of a request as a whole, then one change of state.

use super::slot::{Cause, OwnerId, Slot, State};
use super::{Deliveries, SharePartition};
use crate::cluster::Refusal;
use kafka_share_messages::ErrorCode;
use std::time::Duration;

/// What an acknowledgement says of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ack {
    /// 0: there is no such record.
    Gap,
    /// 1
    Accept,
    /// 2
    Release,
    /// 3
    Reject,
    /// 4 (KIP-1222)
    Renew,
}

impl Ack {
    pub(crate) fn from_wire(code: i8) -> Option<Self> {
        Some(match code {
            0 => Self::Gap,
            1 => Self::Accept,
            2 => Self::Release,
            3 => Self::Reject,
            4 => Self::Renew,
            _ => return None,
        })
    }
}

/// An acknowledgement batch whose form was checked: ascending, without overlap, one type or one per offset.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AckRange<'a> {
    pub(crate) first: i64,
    pub(crate) last: i64,
    /// One for all, or one per offset.
    pub(crate) types: &'a [i8],
}

impl<'a> AckRange<'a> {
    /// Ranges of one type each.
    pub(super) fn runs(self) -> impl Iterator<Item = (i64, i64, Ack)> + 'a {
        let mut offset = self.first;
        let whole = self.types.len() == 1;
        self.types.chunk_by(|a, b| a == b).map(move |same| {
            let first = offset;
            offset = if whole { self.last + 1 } else { offset + same.len() as i64 };
            (first, offset - 1, Ack::from_wire(same[0]).unwrap_or(Ack::Gap))
        })
    }
}

const NOT_ACQUIRED: &str = "The batch cannot be acknowledged. The batch is not in the acquired state.";

fn bad_state(why: &str) -> Refusal {
    Refusal::new(ErrorCode::INVALID_RECORD_STATE, why)
}

/// How acknowledgements of a request are applied.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AckRules {
    pub(crate) deliveries: Deliveries,
    /// `share.renew.acknowledge.enable`
    pub(crate) renew_enabled: bool,
    /// When renewed locks end.
    pub(crate) deadline: Duration,
}

impl SharePartition {
    /// Applies a member's acknowledgements: all of them, or none and the first reason why not. Says whether records became
    /// available.
    pub(crate) fn acknowledge(
        &mut self,
        member: &str,
        ranges: &[AckRange<'_>],
        rules: &AckRules,
    ) -> Result<bool, Refusal> {
        let owner = self.find_owner(member);
        for (at, range) in ranges.iter().enumerate() {
            self.check(owner, range)?;
            self.check_twice(&ranges[..=at])?;
            if !rules.renew_enabled && range.types.contains(&4) {
                return Err(bad_state("Renewing acquisition locks is disabled for the group."));
            }
        }
        let mut freed = false;
        for range in ranges {
            for (first, last, ack) in range.runs() {
                self.update(first, last, |piece| {
                    let slot = apply(ack, piece.slot, rules);
                    freed |= slot.state == State::Available;
                    slot
                });
                if ack == Ack::Renew {
                    self.lock(rules.deadline, first.max(self.start), last);
                }
            }
        }
        self.settle();
        Ok(freed)
    }

    /// The last batch may touch the one before in one offset, which is then acknowledged twice: only a renewal allows that.
    pub(super) fn check_twice(&self, ranges: &[AckRange<'_>]) -> Result<(), Refusal> {
        let [.., before, last] = ranges else { return Ok(()) };
        let touching = before.last == last.first && before.last >= self.start;
        if touching && before.types.last() != Some(&4) {
            return Err(bad_state(NOT_ACQUIRED));
        }
        Ok(())
    }

    /// Checks one acknowledgement batch against what is in flight. What lies below the start offset passes: it will
    /// not come again, whatever is said of it.
    pub(super) fn check(&self, owner: Option<OwnerId>, range: &AckRange<'_>) -> Result<(), Refusal> {
        if range.last < self.start {
            return Ok(());
        }
        let from = range.first.max(self.start);
        if self.batches.is_empty() || self.pieces(from, range.last).next().is_none() && from < self.end {
            return Err(bad_state("Batch record not found. The request batch offsets are not found in the cache."));
        }
        let past = |what: &str| {
            let why = format!("Batch record not found. The {what} offset in request is past acquired records.");
            Err(Refusal::new(ErrorCode::INVALID_REQUEST, why))
        };
        if range.first >= self.end {
            return past("first");
        }
        if range.last >= self.end {
            return past("last");
        }
        for piece in self.pieces(from, range.last) {
            match piece.slot.state {
                State::Acquired { owner: held_by, .. } if Some(held_by) == owner => {}
                State::Acquired { .. } => return Err(bad_state("Member is not the owner of batch record")),
                _ => return Err(bad_state(NOT_ACQUIRED)),
            }
        }
        Ok(())
    }
}

fn apply(ack: Ack, slot: Slot, rules: &AckRules) -> Slot {
    match ack {
        Ack::Accept => Slot { state: State::Acknowledged, ..slot },
        Ack::Gap => Slot { state: State::Archived, ..slot },
        Ack::Reject => rules.deliveries.end(slot, Cause::Rejected),
        Ack::Release => rules.deliveries.give_back(slot),
        Ack::Renew => match slot.state {
            State::Acquired { owner, .. } => {
                Slot { state: State::Acquired { owner, deadline: rules.deadline }, ..slot }
            }
            _ => slot,
        },
    }
}

impl SharePartition {
    /// Archives records that were just acquired and must not be delivered, such as those of aborted transactions.
    pub(crate) fn archive_acquired(&mut self, first: i64, last: i64) {
        self.update(first, last, |piece| Slot { state: State::Archived, ..piece.slot });
        self.settle();
    }
}
