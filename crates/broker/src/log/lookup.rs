//! Offsets by time.

use super::storage::BatchEntry;
use super::{DECOMPRESS_LIMIT, PartitionLog};
use kafka_share_wire::records::{RecordBatch, TimestampType};

/// An offset and the timestamp of its record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TimestampedOffset {
    pub(crate) offset: i64,
    pub(crate) timestamp: i64,
}

impl PartitionLog {
    /// The first record at or after `timestamp` that lies below `upper`.
    pub(crate) fn first_at(&mut self, timestamp: i64, upper: i64) -> Option<TimestampedOffset> {
        let from = self.start_offset;
        let mut next = from;
        let found = loop {
            let entry = *self.storage.entries_from(next).find(|entry| entry.max_timestamp >= timestamp)?;
            // The record that makes the batch late enough may be below the log's start.
            let found = self.in_batch(&entry, |found| found.timestamp >= timestamp && found.offset >= from);
            if let Some(found) = found {
                // Where the log sets the times, all records of the batch have this one.
                break TimestampedOffset { offset: found.offset.max(from), ..found };
            }
            next = entry.last_offset + 1;
        };
        (found.offset < upper).then_some(found)
    }

    /// The first of the records with the greatest timestamp.
    pub(crate) fn latest_timestamp(&mut self) -> Option<TimestampedOffset> {
        let best = self.storage.entries().map(|entry| entry.max_timestamp).max()?;
        let entry = *self.storage.entries().find(|entry| entry.max_timestamp == best)?;
        self.in_batch(&entry, |found| found.timestamp >= best)
    }

    fn in_batch(
        &mut self,
        entry: &BatchEntry,
        wanted: impl Fn(&TimestampedOffset) -> bool,
    ) -> Option<TimestampedOffset> {
        let batch = RecordBatch::parse(&self.storage.bytes_of(entry)).ok()?;
        if batch.timestamp_type() == TimestampType::LogAppendTime {
            return Some(TimestampedOffset { offset: entry.base_offset, timestamp: entry.max_timestamp });
        }
        let decoded = batch.decode(DECOMPRESS_LIMIT).ok()?;
        let found = decoded.iter().map_while(Result::ok);
        found.map(|r| TimestampedOffset { offset: r.offset, timestamp: r.timestamp }).find(|found| wanted(found))
    }
}
