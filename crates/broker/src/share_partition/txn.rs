//! Acknowledgements staged in a transaction (KIP-1289 draft): pending until its marker comes.

use super::acks::{Ack, AckRange};
use super::slot::{Cause, Piece, Slot, StagedAck, State};
use super::{Deliveries, SharePartition};
use crate::cluster::Refusal;
use kafka_share_messages::ErrorCode;

/// The producer whose transaction decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StagedBy {
    pub(crate) producer_id: i64,
    pub(crate) epoch: i16,
}

impl SharePartition {
    /// Whether [`SharePartition::stage`] would succeed.
    pub(crate) fn check_stage(&self, member: &str, ranges: &[AckRange<'_>]) -> Result<(), Refusal> {
        let owner = self.find_owner(member);
        // An ordinary acknowledgement below the start offset is answered with success: that record will not come again,
        // and it does not matter who says so. In a transaction it does: the output beside it would be the second one.
        if let Some(range) = ranges.iter().find(|range| range.first < self.start) {
            let why = format!("Offset {} is below the share-partition's start offset {}.", range.first, self.start);
            return Err(Refusal::new(ErrorCode::INVALID_RECORD_STATE, why));
        }
        for (at, range) in ranges.iter().enumerate() {
            self.check(owner, range)?;
            self.check_twice(&ranges[..=at])?;
        }
        Ok(())
    }

    /// Stages a member's acknowledgements: all, or none and why not. Their locks end; the records wait for
    /// [`SharePartition::complete`]. Types other than ACCEPT, REJECT and gap must have been refused before.
    pub(crate) fn stage(&mut self, member: &str, ranges: &[AckRange<'_>], by: StagedBy) -> Result<(), Refusal> {
        self.check_stage(member, ranges)?;
        for range in ranges {
            for (first, last, ack) in range.runs() {
                let StagedBy { producer_id, epoch } = by;
                let ack = match ack {
                    Ack::Accept => StagedAck::Accept,
                    Ack::Reject => StagedAck::Reject,
                    _ => StagedAck::Gap,
                };
                let state = State::Pending { producer_id, epoch, ack };
                self.update(first, last, |piece| Slot { state, ..piece.slot });
            }
        }
        Ok(())
    }

    /// The producer's transaction ended. Aborted records become available again with the delivery count they have, be it
    /// at the limit: an abort must not lose records. Says whether any did.
    pub(crate) fn complete(&mut self, by: StagedBy, committed: bool, deliveries: Deliveries) -> bool {
        if self.pending == 0 {
            return false;
        }
        let mut freed = false;
        self.update(self.start, i64::MAX, |piece| match piece.slot.state {
            // TV2 ends a transaction with the next epoch.
            State::Pending { producer_id, epoch, ack } if producer_id == by.producer_id && epoch <= by.epoch => {
                freed |= !committed;
                match ack {
                    _ if !committed => Slot { state: State::Available, ..piece.slot },
                    StagedAck::Accept => Slot { state: State::Acknowledged, ..piece.slot },
                    StagedAck::Reject => deliveries.end(piece.slot, Cause::Rejected),
                    StagedAck::Gap => Slot { state: State::Archived, ..piece.slot },
                }
            }
            _ => piece.slot,
        });
        self.settle();
        freed
    }

    /// Whether the producer has staged acknowledgements here.
    pub(crate) fn stages(&self, by: i64) -> bool {
        let staged = |piece: Piece| matches!(piece.slot.state, State::Pending { producer_id, .. } if producer_id == by);
        self.pending > 0 && self.pieces(self.start, i64::MAX).any(staged)
    }
}
