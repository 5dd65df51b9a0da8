//! What a poll hands out: records that borrow the fetched frames.

use super::shared::Shared;
use bytes::Bytes;
use kafka_share_core::share_acks::RecordHandle;
use kafka_share_core::share_consumer::Chunk;
use kafka_share_core::share_fetch::Entry;
use kafka_share_wire::records::{DecodedBatch, Headers, Record, TimestampType};
use kafka_share_wire::{Str, Uuid};
use std::sync::Arc;
use std::time::Instant;

/// Names a delivered record, to acknowledge it by; small, `Copy`, and free of borrows. Of use to the consumer that delivered
/// it only: others refuse it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RecordId {
    /// Number of the consumer that delivered it: handles of two consumers may be equal.
    pub(super) consumer: u32,
    pub(super) handle: RecordHandle,
}

/// Records of one poll. They keep the frames they came in alive.
#[derive(Debug)]
pub struct ShareRecords {
    shared: Arc<Shared>,
    chunks: Vec<Chunk>,
    /// Topic names, one per chunk.
    names: Vec<Str>,
}

impl ShareRecords {
    pub(super) fn new(shared: Arc<Shared>, chunks: Vec<Chunk>, names: Vec<Str>) -> Self {
        ShareRecords { shared, chunks, names }
    }

    pub(super) fn empty(shared: Arc<Shared>) -> Self {
        Self::new(shared, Vec::new(), Vec::new())
    }

    pub(super) fn chunks(&self) -> &[Chunk] {
        &self.chunks
    }

    pub(super) fn into_parts(self) -> (Vec<Chunk>, Vec<Str>) {
        (self.chunks, self.names)
    }

    pub(super) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Number of records.
    #[must_use]
    pub fn len(&self) -> usize {
        self.chunks.iter().map(|c| c.entries().len()).sum()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    /// The records, partition by partition, in offset order.
    #[must_use]
    pub fn iter(&self) -> ShareRecordIter<'_> {
        ShareRecordIter { records: self, chunk: 0, entry: 0 }
    }

    /// The record at a place, counted from 0 in the order of [`iter`](Self::iter).
    #[must_use]
    pub fn get(&self, mut index: usize) -> Option<ShareRecord<'_>> {
        for part in self.partitions() {
            match part.chunk.entries().get(index) {
                Some(entry) => return Some(part.record(entry)),
                None => index -= part.len(),
            }
        }
        None
    }

    /// The records in parts that are of one share-partition each, in the order of [`iter`](Self::iter): what is the same for
    /// all of them need not be looked at for each. A share-partition may have several parts in one poll.
    pub fn partitions(&self) -> impl Iterator<Item = PartitionRecords<'_>> {
        let consumer = self.shared.number;
        self.chunks.iter().zip(&self.names).map(move |(chunk, topic)| PartitionRecords { topic, consumer, chunk })
    }
}

/// Records of one share-partition in a poll; see [`ShareRecords::partitions`].
#[derive(Debug, Clone, Copy)]
pub struct PartitionRecords<'a> {
    topic: &'a Str,
    consumer: u32,
    chunk: &'a Chunk,
}

impl<'a> PartitionRecords<'a> {
    /// Topic.
    #[must_use]
    pub fn topic(&self) -> &'a Str {
        self.topic
    }

    /// Id of the topic.
    #[must_use]
    pub fn topic_id(&self) -> Uuid {
        self.chunk.tp().topic_id
    }

    /// Partition, from 0.
    #[must_use]
    pub fn partition(&self) -> i32 {
        self.chunk.tp().partition
    }

    /// Number of records.
    #[must_use]
    pub fn len(&self) -> usize {
        self.chunk.entries().len()
    }

    /// Whether there are none; a poll hands out no such part.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.chunk.entries().is_empty()
    }

    /// The records, in offset order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = ShareRecord<'a>> + use<'a> {
        let part = *self;
        self.chunk.entries().iter().map(move |entry| part.record(entry))
    }

    #[inline]
    fn record(&self, entry: &Entry) -> ShareRecord<'a> {
        ShareRecord::read(self.topic.as_str(), self.consumer, self.chunk, entry)
    }
}

impl<'a> IntoIterator for &'a ShareRecords {
    type Item = ShareRecord<'a>;
    type IntoIter = ShareRecordIter<'a>;

    fn into_iter(self) -> ShareRecordIter<'a> {
        self.iter()
    }
}

/// Iterator over the records of a poll.
#[derive(Debug, Clone)]
pub struct ShareRecordIter<'a> {
    records: &'a ShareRecords,
    chunk: usize,
    entry: usize,
}

impl<'a> Iterator for ShareRecordIter<'a> {
    type Item = ShareRecord<'a>;

    #[inline]
    fn next(&mut self) -> Option<ShareRecord<'a>> {
        loop {
            let chunk = self.records.chunks.get(self.chunk)?;
            let Some(entry) = chunk.entries().get(self.entry) else {
                self.chunk += 1;
                self.entry = 0;
                continue;
            };
            self.entry += 1;
            let topic = self.records.names.get(self.chunk).map_or("", |n| n.as_str());
            return Some(ShareRecord::read(topic, self.records.shared.number, chunk, entry));
        }
    }
}

/// A delivered record, borrowing the frame it came in.
#[derive(Debug, Clone, Copy)]
pub struct ShareRecord<'a> {
    topic: &'a str,
    chunk: &'a Chunk,
    timestamp_type: TimestampType,
    delivery_count: i16,
    id: RecordId,
    batch: &'a DecodedBatch,
    record: Record<'a>,
}

impl<'a> ShareRecord<'a> {
    #[inline]
    pub(super) fn read(topic: &'a str, consumer: u32, chunk: &'a Chunk, entry: &Entry) -> Self {
        let batch = &chunk.delivery.batches[entry.batch as usize];
        ShareRecord {
            topic,
            chunk,
            batch,
            timestamp_type: batch.timestamp_type(),
            delivery_count: entry.delivery_count,
            id: RecordId { consumer, handle: chunk.handle(entry) },
            record: chunk.record(entry),
        }
    }

    /// Topic.
    #[must_use]
    pub fn topic(&self) -> &'a str {
        self.topic
    }

    /// Id of the topic.
    #[must_use]
    pub fn topic_id(&self) -> Uuid {
        self.chunk.tp().topic_id
    }

    /// Partition, from 0.
    #[must_use]
    pub fn partition(&self) -> i32 {
        self.chunk.tp().partition
    }

    /// Offset in the partition.
    #[must_use]
    pub fn offset(&self) -> i64 {
        self.record.offset
    }

    /// Milliseconds since 1970.
    #[must_use]
    pub fn timestamp(&self) -> i64 {
        self.record.timestamp
    }

    /// Who set the timestamp.
    #[must_use]
    pub fn timestamp_type(&self) -> TimestampType {
        self.timestamp_type
    }

    /// Key; null and empty are different.
    #[must_use]
    pub fn key(&self) -> Option<&'a [u8]> {
        self.record.key
    }

    /// Value; null and empty are different.
    #[must_use]
    pub fn value(&self) -> Option<&'a [u8]> {
        self.record.value
    }

    /// A handle to `part`, a key, value or header of this record, that outlives it: nothing is copied, and the fetched frame is
    /// kept alive. What is not of this record is copied.
    #[must_use]
    pub fn share(&self, part: &[u8]) -> Bytes {
        self.batch.share(part)
    }

    /// Headers in order, duplicates and nulls kept.
    #[must_use]
    pub fn headers(&self) -> Headers<'a> {
        self.record.headers
    }

    /// How often the record has been handed out, this time included.
    #[must_use]
    pub fn delivery_count(&self) -> i16 {
        self.delivery_count
    }

    /// When the acquisition lock of the record ends, as known when it was handed out: the lock time counted from the answer
    /// to the fetch, or to the last renewal. The broker counts from a little earlier.
    #[must_use]
    pub fn lock_deadline(&self) -> Instant {
        self.chunk.lock_until()
    }

    /// Name of this delivery, to acknowledge it by later or from another task.
    #[must_use]
    pub fn id(&self) -> RecordId {
        self.id
    }
}
