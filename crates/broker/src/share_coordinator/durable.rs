//! Share state as saved values.

use crate::persistence::{Decoder, Encoder};
use crate::share_partition::{StagedAck, StagedBy, StoredBatch, StoredShareState, StoredState};
use bytes::Bytes;
use kafka_share_wire::{ErrorKind, Result};

/// As on the wire.
fn ack_type(ack: StagedAck) -> i8 {
    match ack {
        StagedAck::Gap => 0,
        StagedAck::Accept => 1,
        StagedAck::Reject => 3,
    }
}

fn staged_ack(value: i8) -> Result<StagedAck> {
    match value {
        0 => Ok(StagedAck::Gap),
        1 => Ok(StagedAck::Accept),
        3 => Ok(StagedAck::Reject),
        other => Err(ErrorKind::InvalidLength(i64::from(other)).at(0)),
    }
}

impl StoredShareState {
    pub(crate) fn encode(&self) -> Bytes {
        let mut out = Encoder::default();
        out.i32(self.state_epoch).i32(self.leader_epoch).i64(self.start_offset);
        out.list(self.batches.iter(), |out, batch| {
            out.i64(batch.first).i64(batch.last).i16(batch.count);
            match batch.state {
                StoredState::Available => out.i8(0),
                StoredState::Acknowledged => out.i8(2),
                StoredState::Archiving => out.i8(3),
                StoredState::Archived => out.i8(4),
                StoredState::Pending { by, ack } => out.i8(5).i64(by.producer_id).i16(by.epoch).i8(ack_type(ack)),
            };
        });
        out.finish()
    }

    pub(crate) fn decode(value: Bytes) -> Result<StoredShareState> {
        let mut input = Decoder::new(value);
        let (state_epoch, leader_epoch, start_offset) = (input.i32()?, input.i32()?, input.i64()?);
        let batches = input.list(|input| {
            let (first, last, count) = (input.i64()?, input.i64()?, input.i16()?);
            let state = match input.i8()? {
                0 => StoredState::Available,
                2 => StoredState::Acknowledged,
                3 => StoredState::Archiving,
                4 => StoredState::Archived,
                5 => {
                    let by = StagedBy { producer_id: input.i64()?, epoch: input.i16()? };
                    StoredState::Pending { by, ack: staged_ack(input.i8()?)? }
                }
                other => return Err(ErrorKind::InvalidLength(i64::from(other)).at(0)),
            };
            Ok(StoredBatch { first, last, state, count })
        })?;
        input.finish()?;
        Ok(StoredShareState { state_epoch, leader_epoch, start_offset, batches })
    }
}
