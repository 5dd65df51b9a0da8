//! A partition's log: stored batches, producers, open and aborted transactions. Pure, unit-tested alone.

mod append;
mod compact;
mod durable;
mod lookup;
mod producers;
mod storage;

pub(crate) use append::{AppendRequest, Appended, Marker, parse_batch};
pub(crate) use durable::LogDefect;
#[cfg(test)]
use lookup::TimestampedOffset;
pub(crate) use producers::{ProducerState, Producers};
pub(crate) use storage::BatchEntry;

use bytes::Bytes;
use std::collections::BTreeMap;
use storage::Storage;

/// Bytes that one batch may decompress to where its records must be looked at, and at most what the topic allows
/// (`max.decompressed.message.bytes`). Kafka's own default is 2 GiB, which no test wants to spend.
const DECOMPRESS_LIMIT: usize = 64 << 20;

/// A transaction that was aborted, for readers that skip its records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AbortedTxn {
    pub(crate) producer_id: i64,
    pub(crate) first_offset: i64,
    /// Offset of the marker.
    pub(crate) last_offset: i64,
    /// The last stable offset once the marker was written: later entries cannot matter below it.
    stable_after: i64,
}

/// A partition's log. As there is one copy, the high watermark is the log's end.
#[derive(Debug, Default)]
pub(crate) struct PartitionLog {
    storage: Storage,
    start_offset: i64,
    end_offset: i64,
    producers: Producers,
    /// First offset of each open transaction, with its producer.
    open: BTreeMap<i64, i64>,
    /// In the order of their markers.
    aborted: Vec<AbortedTxn>,
    /// Leader epochs and the offset each began at.
    epochs: Vec<(i32, i64)>,
    /// Compaction has been through what lies below.
    cleaned_to: i64,
    saved: durable::Progress,
}

/// What a fetch reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Read {
    /// Whole batches, one after the other; shared with the log.
    pub(crate) records: Bytes,
    /// Offset after the last batch, or where the read began if there is none.
    pub(crate) next_offset: i64,
}

impl PartitionLog {
    /// First offset that can be read.
    pub(crate) fn start_offset(&self) -> i64 {
        self.start_offset
    }

    /// Offset of the next record; also the log end offset.
    pub(crate) fn high_watermark(&self) -> i64 {
        self.end_offset
    }

    /// Readers of committed data see only what lies below.
    pub(crate) fn last_stable_offset(&self) -> i64 {
        self.open.keys().next().copied().unwrap_or(self.end_offset)
    }

    /// Bytes of the batches.
    pub(crate) fn bytes(&self) -> usize {
        self.storage.bytes()
    }

    pub(crate) fn producers(&self) -> &Producers {
        &self.producers
    }

    /// Batches with an offset in `from..to`, in order.
    pub(crate) fn batches(&self, from: i64, to: i64) -> impl Iterator<Item = &BatchEntry> {
        self.storage.entries_from(from).take_while(move |batch| batch.base_offset < to)
    }

    /// Whole batches from the one that holds `from` on that begin below `upper`, to `max_bytes`; with `at_least_one` the
    /// first comes whatever its size. Zero copy but for reads that span batches which were stored apart.
    pub(crate) fn read(&mut self, from: i64, upper: i64, max_bytes: usize, at_least_one: bool) -> Read {
        self.storage.read(from, upper, max_bytes, at_least_one)
    }

    /// Bytes that [`PartitionLog::read`] would give, up to `enough`.
    pub(crate) fn readable(&self, from: i64, upper: i64, enough: usize) -> usize {
        let mut bytes = 0;
        for batch in self.batches(from, upper) {
            bytes += batch.len as usize;
            if bytes >= enough {
                break;
            }
        }
        bytes
    }

    /// Aborted transactions with records in `from..upper`.
    pub(crate) fn aborted(&self, from: i64, upper: i64) -> Vec<AbortedTxn> {
        let first = self.aborted.partition_point(|txn| txn.last_offset < from);
        let mut found = Vec::new();
        for txn in &self.aborted[first..] {
            if txn.first_offset < upper {
                found.push(*txn);
            }
            if txn.stable_after >= upper {
                break;
            }
        }
        found
    }

    /// Drops everything below `offset` (which must not exceed the end) and gives the new start.
    pub(crate) fn delete_below(&mut self, offset: i64) -> i64 {
        if offset > self.start_offset {
            self.start_offset = offset.min(self.end_offset);
            self.storage.drop_below(self.start_offset);
            self.aborted.retain(|txn| txn.last_offset >= self.start_offset);
            self.epochs_below(self.start_offset);
            self.saved.snapshot = true;
        }
        self.start_offset
    }

    fn epochs_below(&mut self, offset: i64) {
        let keep = self.epochs.partition_point(|(_, start)| *start <= offset).saturating_sub(1);
        self.epochs.drain(..keep);
    }

    /// Drops old batches by age and size, but never an open transaction's. `-1` sets no limit.
    pub(crate) fn retain(&mut self, now_ms: i64, max_age_ms: i64, max_bytes: i64) {
        let stable = self.last_stable_offset();
        let mut bytes = self.bytes();
        let mut cut = self.start_offset;
        for batch in self.storage.entries_from(self.start_offset) {
            let old = max_age_ms >= 0 && now_ms.saturating_sub(batch.max_timestamp) > max_age_ms;
            let large = usize::try_from(max_bytes).is_ok_and(|max| bytes.saturating_sub(batch.len as usize) >= max);
            if !(old || large) || batch.last_offset >= stable {
                break;
            }
            bytes -= batch.len as usize;
            cut = batch.last_offset + 1;
        }
        self.delete_below(cut);
    }

    /// Forgets producers that were idle for too long and have no open transaction.
    pub(crate) fn expire_producers(&mut self, now_ms: i64, max_idle_ms: i64) {
        self.saved.snapshot |= self.producers.expire(now_ms, max_idle_ms);
    }

    fn note_epoch(&mut self, epoch: i32, offset: i64) {
        if self.epochs.last().is_none_or(|(last, _)| *last < epoch) {
            self.epochs.push((epoch, offset));
        }
    }

    /// The leader epoch that wrote `offset`; of the latest batch for offsets beyond the end.
    pub(crate) fn epoch_of(&self, offset: i64) -> i32 {
        let at = self.epochs.partition_point(|(_, start)| *start <= offset);
        self.epochs.get(at.wrapping_sub(1)).or(self.epochs.first()).map_or(-1, |(epoch, _)| *epoch)
    }

    /// Where a reader that last saw `epoch` diverges: the largest known epoch not beyond it and its end offset.
    pub(crate) fn end_of_epoch(&self, epoch: i32) -> (i32, i64) {
        let at = self.epochs.partition_point(|(known, _)| *known <= epoch);
        let end = self.epochs.get(at).map_or(self.end_offset, |(_, start)| *start);
        match self.epochs.get(at.wrapping_sub(1)) {
            Some((known, _)) => (*known, end),
            None => (-1, -1),
        }
    }
}

#[cfg(test)]
mod compact_tests;
#[cfg(test)]
mod tests;
