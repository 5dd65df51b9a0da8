//! A delivered record that borrows nothing.

use super::records::{RecordId, ShareRecord, ShareRecords};
use kafka_share_core::share_consumer::Chunk;
use kafka_share_core::share_fetch::Entry;
use kafka_share_wire::Str;
use std::time::Instant;

/// A delivered record on its own, to be sent to another task or kept for later. Nothing is copied: it shares the frame it
/// came in, and keeps all of that alive.
#[derive(Clone)]
pub struct OwnedShareRecord {
    topic: Str,
    consumer: u32,
    chunk: Chunk,
    entry: Entry,
}

impl OwnedShareRecord {
    pub(super) fn new(topic: Str, consumer: u32, chunk: Chunk, entry: Entry) -> Self {
        OwnedShareRecord { topic, consumer, chunk, entry }
    }

    /// The record as a view, with all its accessors.
    #[must_use]
    pub fn as_record(&self) -> ShareRecord<'_> {
        ShareRecord::read(self.topic.as_str(), self.consumer, &self.chunk, &self.entry)
    }

    /// Topic.
    #[must_use]
    pub fn topic(&self) -> &str {
        self.topic.as_str()
    }

    /// Partition, from 0.
    #[must_use]
    pub fn partition(&self) -> i32 {
        self.chunk.tp().partition
    }

    /// Offset in the partition.
    #[must_use]
    pub fn offset(&self) -> i64 {
        self.as_record().offset()
    }

    /// Key; null and empty are different.
    #[must_use]
    pub fn key(&self) -> Option<&[u8]> {
        self.as_record().key()
    }

    /// Value; null and empty are different.
    #[must_use]
    pub fn value(&self) -> Option<&[u8]> {
        self.as_record().value()
    }

    /// How often the record has been handed out by the broker, this time included.
    #[must_use]
    pub fn delivery_count(&self) -> i16 {
        self.entry.delivery_count
    }

    /// When the acquisition lock ends; see [`ShareRecord::lock_deadline`].
    #[must_use]
    pub fn lock_deadline(&self) -> Instant {
        self.chunk.lock_until()
    }

    /// Name of this delivery, to acknowledge it by.
    #[must_use]
    pub fn id(&self) -> RecordId {
        RecordId { consumer: self.consumer, handle: self.chunk.handle(&self.entry) }
    }
}

impl std::fmt::Debug for OwnedShareRecord {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OwnedShareRecord")
            .field("topic", &self.topic())
            .field("partition", &self.partition())
            .field("offset", &self.offset())
            .finish_non_exhaustive()
    }
}

impl ShareRecords {
    /// The records on their own, in the order of [`iter`](Self::iter).
    pub fn into_iter_owned(self) -> impl Iterator<Item = OwnedShareRecord> {
        let consumer = self.shared().number;
        let (chunks, names) = self.into_parts();
        chunks.into_iter().zip(names).flat_map(move |(chunk, name)| {
            let count = chunk.entries().len();
            (0..count).map(move |at| {
                let entry = chunk.entries()[at];
                OwnedShareRecord::new(name.clone(), consumer, chunk.clone(), entry)
            })
        })
    }
}
