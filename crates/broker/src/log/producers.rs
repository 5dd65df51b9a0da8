//! Idempotent producers of a partition: epochs, sequences, the last five batches, open transactions.

use crate::persistence::{Decoder, Encoder};
use kafka_share_messages::ErrorCode;
use std::collections::{BTreeMap, VecDeque};

/// Batches that a repeated request is recognised by.
const REMEMBERED: usize = 5;

/// Producer ids that a partition keeps: anybody may make them up.
const MOST: usize = 100_000;

/// A batch that was appended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Appended {
    first_sequence: i32,
    last_sequence: i32,
    base_offset: i64,
    timestamp: i64,
}

/// What is known of a producer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProducerState {
    pub(crate) epoch: i16,
    batches: VecDeque<Appended>,
    /// First offset of its open transaction.
    pub(crate) txn_start: Option<i64>,
    pub(crate) coordinator_epoch: i32,
    pub(crate) last_timestamp: i64,
}

impl ProducerState {
    fn new(epoch: i16) -> Self {
        ProducerState { epoch, batches: VecDeque::new(), txn_start: None, coordinator_epoch: -1, last_timestamp: -1 }
    }

    /// Last sequence number of the current epoch, -1 if nothing was written in it.
    pub(crate) fn last_sequence(&self) -> i32 {
        self.batches.back().map_or(-1, |batch| batch.last_sequence)
    }

    fn bump(&mut self, epoch: i16) {
        if epoch != self.epoch {
            self.epoch = epoch;
            self.batches.clear();
        }
    }
}

/// The identity and numbering of a batch to append.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Numbered {
    pub(super) producer_id: i64,
    pub(super) epoch: i16,
    pub(super) first_sequence: i32,
    pub(super) last_sequence: i32,
}

/// A batch that is in the log already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Duplicate {
    pub(super) base_offset: i64,
    pub(super) timestamp: i64,
}

/// All producers of a partition.
#[derive(Debug, Default)]
pub(crate) struct Producers {
    known: BTreeMap<i64, ProducerState>,
}

impl Producers {
    pub(crate) fn get(&self, producer_id: i64) -> Option<&ProducerState> {
        self.known.get(&producer_id)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (i64, &ProducerState)> {
        self.known.iter().map(|(id, state)| (*id, state))
    }

    /// Each producer, and the last offset of its last batch.
    pub(super) fn last_offsets(&self) -> std::collections::HashSet<(i64, i64)> {
        let last = |(id, state): (i64, &ProducerState)| {
            let batch = state.batches.back()?;
            let more = i64::from(batch.last_sequence.wrapping_sub(batch.first_sequence) & i32::MAX);
            Some((id, batch.base_offset + more))
        };
        self.iter().filter_map(last).collect()
    }

    /// Whether the producer has an open transaction here in this epoch.
    pub(crate) fn has_open(&self, producer_id: i64, epoch: i16) -> bool {
        self.get(producer_id).is_some_and(|state| state.epoch == epoch && state.txn_start.is_some())
    }

    /// A batch among the last five with this numbering.
    pub(super) fn duplicate(&self, batch: &Numbered) -> Option<Duplicate> {
        let state = self.get(batch.producer_id).filter(|state| state.epoch == batch.epoch)?;
        let same =
            |old: &&Appended| old.first_sequence == batch.first_sequence && old.last_sequence == batch.last_sequence;
        let old = state.batches.iter().find(same)?;
        Some(Duplicate { base_offset: old.base_offset, timestamp: old.timestamp })
    }

    /// Refuses one more producer id than there is room for.
    fn check_room(&self) -> Result<(), ErrorCode> {
        if self.known.len() < MOST { Ok(()) } else { Err(ErrorCode::POLICY_VIOLATION) }
    }

    /// Checks epoch and sequence of a new batch. `epoch_per_transaction` is set for transactional batches of TV2, where a
    /// producer that is new to the partition must begin at 0.
    pub(super) fn check(&self, batch: &Numbered, epoch_per_transaction: bool) -> Result<(), ErrorCode> {
        let first = batch.first_sequence;
        let Some(state) = self.get(batch.producer_id) else {
            self.check_room()?;
            let ok = !epoch_per_transaction || first == 0;
            return if ok { Ok(()) } else { Err(ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER) };
        };
        if batch.epoch < state.epoch {
            return Err(ErrorCode::INVALID_PRODUCER_EPOCH);
        }
        let expected = match state.last_sequence() {
            _ if batch.epoch != state.epoch => 0,
            i32::MAX => 0,
            last => last + 1,
        };
        if first == expected { Ok(()) } else { Err(ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER) }
    }

    /// Notes a batch that was checked and appended, with its greatest timestamp, by which the producer's idleness is told, as
    /// in Kafka. Gives the start of a transaction that it begins.
    pub(super) fn appended(
        &mut self,
        batch: &Numbered,
        base_offset: i64,
        timestamp: i64,
        transactional: bool,
    ) -> Option<i64> {
        let state = self.known.entry(batch.producer_id).or_insert_with(|| ProducerState::new(batch.epoch));
        state.bump(batch.epoch);
        if state.batches.len() == REMEMBERED {
            state.batches.pop_front();
        }
        let (first_sequence, last_sequence) = (batch.first_sequence, batch.last_sequence);
        state.batches.push_back(Appended { first_sequence, last_sequence, base_offset, timestamp });
        state.last_timestamp = timestamp;
        if transactional && state.txn_start.is_none() {
            state.txn_start = Some(base_offset);
            return Some(base_offset);
        }
        None
    }

    /// Checks a transaction marker. `strict` is TV2's rule: the marker's epoch is beyond that of the transaction's
    /// records, and a repeated marker is let through.
    pub(super) fn check_marker(
        &self,
        producer_id: i64,
        epoch: i16,
        coordinator_epoch: i32,
        strict: bool,
    ) -> Result<(), ErrorCode> {
        let Some(state) = self.get(producer_id) else { return self.check_room() };
        let repeated = state.txn_start.is_none() && epoch == state.epoch;
        let stale = if strict { epoch <= state.epoch && !repeated } else { epoch < state.epoch };
        if stale {
            return Err(ErrorCode::INVALID_PRODUCER_EPOCH);
        }
        if coordinator_epoch < state.coordinator_epoch {
            return Err(ErrorCode::TRANSACTION_COORDINATOR_FENCED);
        }
        Ok(())
    }

    /// Notes a marker that was checked. Gives the start of the transaction that it ended.
    pub(super) fn marked(&mut self, producer_id: i64, epoch: i16, coordinator_epoch: i32, now_ms: i64) -> Option<i64> {
        let state = self.known.entry(producer_id).or_insert_with(|| ProducerState::new(epoch));
        state.bump(epoch);
        state.coordinator_epoch = coordinator_epoch;
        state.last_timestamp = now_ms;
        state.txn_start.take()
    }

    /// Forgets idle producers; says whether there were any.
    pub(super) fn expire(&mut self, now_ms: i64, max_idle_ms: i64) -> bool {
        let before = self.known.len();
        let live = |state: &ProducerState| {
            state.txn_start.is_some() || now_ms.saturating_sub(state.last_timestamp) < max_idle_ms
        };
        self.known.retain(|_, state| live(state));
        self.known.len() < before
    }

    pub(super) fn encode(&self, out: &mut Encoder) {
        out.list(self.known.iter(), |out, (id, state)| {
            out.i64(*id).i16(state.epoch).i32(state.coordinator_epoch).i64(state.last_timestamp);
            out.optional(state.txn_start, |out, start| {
                out.i64(start);
            });
            out.list(state.batches.iter(), |out, batch| {
                out.i32(batch.first_sequence).i32(batch.last_sequence).i64(batch.base_offset).i64(batch.timestamp);
            });
        });
    }

    pub(super) fn decode(input: &mut Decoder) -> kafka_share_wire::Result<Self> {
        let batch = |input: &mut Decoder| {
            Ok(Appended {
                first_sequence: input.i32()?,
                last_sequence: input.i32()?,
                base_offset: input.i64()?,
                timestamp: input.i64()?,
            })
        };
        let producer = |input: &mut Decoder| {
            let (id, epoch, coordinator_epoch, last_timestamp) =
                (input.i64()?, input.i16()?, input.i32()?, input.i64()?);
            let txn_start = input.optional(Decoder::i64)?;
            let batches = input.list(batch)?;
            Ok((id, ProducerState { epoch, batches, txn_start, coordinator_epoch, last_timestamp }))
        };
        Ok(Producers { known: input.list(producer)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_producers_is_limited_until_idle_ones_expire() {
        let mut producers = Producers::default();
        let batch = |producer_id| Numbered { producer_id, epoch: 0, first_sequence: 0, last_sequence: 0 };
        for id in 0..MOST as i64 {
            assert_eq!(producers.check(&batch(id), true), Ok(()));
            producers.appended(&batch(id), id, id, id == 0);
        }
        assert_eq!(producers.check(&batch(-5), false), Err(ErrorCode::POLICY_VIOLATION));
        assert_eq!(producers.check_marker(-5, 0, 0, false), Err(ErrorCode::POLICY_VIOLATION));
        let next = Numbered { first_sequence: 1, last_sequence: 1, ..batch(7) };
        assert_eq!(producers.check(&next, false), Ok(()), "a known one goes on");
        assert!(producers.expire(2_000, 1_000));
        assert_eq!(producers.check(&batch(-5), false), Ok(()));
        assert!(producers.get(0).is_some(), "its transaction is open");
        assert_eq!((producers.get(1_000), producers.get(1_001).is_some()), (None, true));
    }
}
