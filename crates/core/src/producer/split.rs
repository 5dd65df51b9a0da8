//! A batch that is too large for the broker, taken apart: its records keep their sequence numbers, so that nothing is
//! written twice and no epoch begins, whatever became of earlier tries (KIP-126; Kafka's producer does the same).

use super::Producer;
use super::partition::{Phase, Sequenced, advance};
use super::types::{BatchId, Output, ProducerConfig};
use bytes::Bytes;
use kafka_share_wire::records::{BatchBuilder, Header, RecordBatch, RecordError};
use std::time::Instant;

impl Producer {
    /// Puts smaller batches in the place of one that was refused. Answers whether that was possible: a batch of one
    /// record has no parts.
    pub(super) fn split(&mut self, now: Instant, at: usize, id: BatchId) -> bool {
        let partition = &mut self.partitions[at];
        let Some(place) = partition.sent.iter().position(|b| b.id == id) else { return false };
        let whole = &partition.sent[place];
        let pieces = match pieces(&self.config, self.transaction.is_some(), whole) {
            Ok(pieces) if pieces.len() > 1 => pieces,
            _ => return false,
        };
        let Some(whole) = partition.sent.remove(place) else { return false };
        let (mut first, mut charge) = (0, whole.charge);
        let mut parts = Vec::with_capacity(pieces.len());
        for (index, (bytes, records)) in pieces.iter().enumerate() {
            let part = BatchId(self.next_batch);
            self.next_batch += 1;
            parts.push((part, first as u32));
            // Each takes its share, the last one what is left, so that the sum stays what was charged.
            let last = index + 1 == pieces.len();
            let share = if last { charge } else { whole.charge / whole.records as usize * *records as usize };
            charge -= share;
            first += records;
            let part = Sequenced {
                id: part,
                bytes: bytes.clone(),
                records: *records,
                charge: share,
                phase: Phase::Retry(now),
                ..whole
            };
            partition.sent.insert(place + index, part);
        }
        self.agenda.batches += pieces.len() - 1;
        self.outputs.push_back(Output::Split(id, parts));
        true
    }
}

/// Batches of half the size at most, and of no more than `batch.size`, with the number of their records.
fn pieces(config: &ProducerConfig, transactional: bool, whole: &Sequenced) -> Result<Vec<(Bytes, i32)>, RecordError> {
    let decoded = RecordBatch::parse(&whole.bytes)?.decode(i32::MAX as usize)?;
    let limit = config.batch_size.min(decoded.payload().len() / 2);
    let mut sequence = decoded.header().base_sequence;
    let next = || BatchBuilder::new(config.batch_options(transactional));
    let mut pieces = Vec::new();
    let mut finish = |mut builder: BatchBuilder| {
        let records = i32::try_from(builder.record_count()).unwrap_or(i32::MAX);
        builder.set_producer(whole.identity.id, whole.identity.epoch, sequence);
        sequence = advance(sequence, records);
        pieces.push((builder.finish()?.freeze(), records));
        Ok::<(), RecordError>(())
    };
    let mut builder = next();
    for record in decoded.iter() {
        let record = record?;
        let headers: Vec<Header<'_>> = record.headers.collect();
        let size = BatchBuilder::estimate(record.key, record.value, headers.iter().copied());
        if !builder.is_empty() && builder.would_exceed(limit, size) {
            finish(std::mem::replace(&mut builder, next()))?;
        }
        builder.append(record.timestamp, record.key, record.value, headers.iter().copied())?;
    }
    finish(builder)?;
    Ok(pieces)
}
