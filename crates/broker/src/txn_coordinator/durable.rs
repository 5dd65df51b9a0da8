//! Transactional ids as saved values: identity, status, members.

use super::Transactions;
use super::state::{Participant, Status, Txn};
use crate::Now;
use crate::persistence::{Decoder, Encoder};
use bytes::Bytes;
use kafka_share_wire::{ErrorKind, Result, Str};
use std::collections::BTreeSet;
use std::time::Duration;

impl Transactions {
    /// Notes from now on which transactional ids change.
    pub(crate) fn record(&mut self) {
        self.txns.record();
    }

    pub(crate) fn take_changed(&mut self) -> BTreeSet<Str> {
        self.txns.take_changed()
    }

    pub(crate) fn next_producer_id(&self) -> i64 {
        self.next_producer_id
    }

    pub(crate) fn restore_next_producer_id(&mut self, next: i64) {
        self.next_producer_id = next;
    }

    /// Takes a saved transactional id back: an open transaction has the rest of its time, a decided one gets its markers.
    pub(crate) fn restore(&mut self, now: Now, id: &Str, value: Bytes) -> Result<()> {
        let mut txn = Txn::decode(id.clone(), value)?;
        match txn.status {
            Status::Ongoing if txn.timeout_ms != i32::MAX => {
                let left = txn.start_ms.saturating_add(i64::from(txn.timeout_ms)).saturating_sub(now.wall_ms);
                let deadline = now.after_ms(left.min(i64::from(txn.timeout_ms)));
                txn.deadline = Some(deadline);
                self.timeouts.insert((deadline, id.clone()));
            }
            Status::PrepareCommit | Status::PrepareAbort => {
                self.completions.insert((now.mono + Duration::ZERO, id.clone()));
            }
            _ => {}
        }
        self.txns.insert(id.clone(), txn);
        Ok(())
    }
}

impl Txn {
    pub(crate) fn encode(&self) -> Bytes {
        let mut out = Encoder::default();
        out.i64(self.producer_id).i64(self.previous_producer_id);
        for identity in [self.next_identity, self.kept_by] {
            out.optional(identity, |out, (id, epoch)| {
                out.i64(id).i16(epoch);
            });
        }
        out.i16(self.epoch).i16(self.last_epoch).i32(self.timeout_ms);
        out.i8(Status::ALL.iter().position(|status| *status == self.status).unwrap_or(0) as i8);
        out.i64(self.start_ms).i64(self.last_update_ms).bool(self.epoch_per_transaction);
        out.list(self.participants.iter(), |out, member| match member {
            Participant::Partition(topic, index) => {
                out.i8(0).uuid(*topic).i32(*index);
            }
            Participant::ShareState(index) => {
                out.i8(1).i32(*index);
            }
        });
        out.finish()
    }

    fn decode(id: Str, value: Bytes) -> Result<Txn> {
        let mut input = Decoder::new(value);
        let (producer_id, previous_producer_id) = (input.i64()?, input.i64()?);
        let mut identity = || input.optional(|input| Ok((input.i64()?, input.i16()?)));
        let (next_identity, kept_by) = (identity()?, identity()?);
        let (epoch, last_epoch, timeout_ms) = (input.i16()?, input.i16()?, input.i32()?);
        let status = input.i8()?;
        let unknown = |n: i8| ErrorKind::InvalidLength(i64::from(n)).at(0);
        let status = *usize::try_from(status).ok().and_then(|at| Status::ALL.get(at)).ok_or_else(|| unknown(status))?;
        let (start_ms, last_update_ms, epoch_per_transaction) = (input.i64()?, input.i64()?, input.bool()?);
        let participants = input.list(|input| {
            Ok(match input.i8()? {
                0 => Participant::Partition(input.uuid()?, input.i32()?),
                1 => Participant::ShareState(input.i32()?),
                kind => return Err(unknown(kind)),
            })
        })?;
        input.finish()?;
        Ok(Txn {
            id,
            producer_id,
            previous_producer_id,
            next_identity,
            kept_by,
            epoch,
            last_epoch,
            timeout_ms,
            status,
            participants,
            start_ms,
            last_update_ms,
            deadline: None,
            epoch_per_transaction,
        })
    }
}
