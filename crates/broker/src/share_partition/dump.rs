//! Acquisition locks as a dump shows them.

use super::slot::State;
use super::{Piece, SharePartition};
use crate::LockDump;

impl SharePartition {
    /// Records under a lock, by offset.
    pub(crate) fn locks(&self) -> impl Iterator<Item = LockDump> {
        let pieces = self.batches.values().flat_map(|batch| batch.pieces_in(self.start, i64::MAX));
        pieces.filter_map(|Piece { first, last, slot }| {
            let State::Acquired { owner, deadline } = slot.state else { return None };
            let member = self.owners.get(owner as usize).map(|owner| owner.member.to_string());
            Some(LockDump {
                first_offset: first,
                last_offset: last,
                member: member.unwrap_or_default(),
                delivery_count: slot.count,
                expires_ms: u64::try_from(deadline.as_millis()).unwrap_or(u64::MAX),
            })
        })
    }
}
