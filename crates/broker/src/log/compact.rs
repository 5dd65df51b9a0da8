//! Compaction: of the records of a key the last one stays, at its offset.
//!
//! As in Kafka: the active segment and whatever is open or younger than `min.compaction.lag.ms` is left alone; batches of
//! aborted transactions go; a tombstone stays for `delete.retention.ms` after the pass that first found it, and so does
//! the marker of a transaction of which nothing is left (KIP-534: the batch carries its delete horizon). A batch keeps its
//! base and last offset whatever is taken out of it. A batch that lost all records goes, unless it is the last of a
//! known producer, whose sequence number readers of the log learn from it.
//!
//! Segments exist by count only: batches from where the last pass ended are counted up to `segment.bytes` and `segment.ms`
//! as Kafka would roll them, and the last such segment is the active one. A pass is over when it returns; it holds up the
//! broker for as long.

use super::DECOMPRESS_LIMIT;
use super::PartitionLog;
use super::durable::Progress;
use super::storage::{BatchEntry, Storage};
use crate::settings::TopicConfig;
use bytes::Bytes;
use kafka_share_wire::records::{BatchBuilder, BatchOptions, DecodedBatch, Record, RecordBatch, RecordError};
use std::collections::{HashMap, HashSet};

/// Offsets of the last records of all keys in the part that was not compacted before.
type Latest = HashMap<Box<[u8]>, i64>;

/// What becomes of a batch.
enum Fate {
    Keep,
    Drop,
    Replace(Bytes),
}

/// One pass.
struct Pass {
    now_ms: i64,
    delete_retention_ms: i64,
    latest: Latest,
    /// Per producer: first and last offset of aborted transactions.
    aborted: HashMap<i64, Vec<(i64, i64)>>,
    /// Last offsets of producers' last batches.
    last_of_producer: HashSet<(i64, i64)>,
    /// Producers with data since their last marker.
    seen: HashSet<i64>,
}

impl PartitionLog {
    /// Compacts what may be, if the topic's settings find it worthwhile; says whether it did.
    pub(crate) fn compact(&mut self, now_ms: i64, config: &TopicConfig) -> bool {
        self.cleaned_to = self.cleaned_to.max(self.start_offset);
        let Some(to) = self.cleanable_to(now_ms, config) else { return false };
        let mut pass = Pass {
            now_ms,
            delete_retention_ms: config.delete_retention_ms,
            latest: Latest::new(),
            aborted: HashMap::new(),
            last_of_producer: self.producers.last_offsets(),
            seen: HashSet::new(),
        };
        for txn in &self.aborted {
            pass.aborted.entry(txn.producer_id).or_default().push((txn.first_offset, txn.last_offset));
        }
        let entries: Vec<BatchEntry> = self.storage.entries().copied().collect();
        for entry in entries.iter().filter(|entry| entry.base_offset >= self.cleaned_to && entry.base_offset < to) {
            if !entry.control && !pass.is_aborted(entry) {
                pass.note_keys(&self.storage.bytes_of(entry));
            }
        }
        let mut fresh = Storage::default();
        for entry in &entries {
            let bytes = self.storage.bytes_of(entry);
            let fate = if entry.base_offset < to { pass.judge(entry, &bytes) } else { Fate::Keep };
            match fate {
                Fate::Keep => fresh.append(&bytes, *entry),
                Fate::Drop => {}
                Fate::Replace(bytes) => {
                    // Built here from a batch that was read.
                    let Ok(batch) = RecordBatch::parse(&bytes) else { continue };
                    fresh.append(&bytes, BatchEntry::new(&batch, batch.base_offset, batch.max_timestamp));
                }
            }
        }
        self.storage = fresh;
        self.cleaned_to = to;
        self.saved = Progress::rewritten();
        true
    }

    /// Where the part ends that can be compacted; `None` where that is not worthwhile yet.
    fn cleanable_to(&self, now_ms: i64, config: &TopicConfig) -> Option<i64> {
        // First offset and greatest timestamp of each segment that was not compacted.
        let mut segments: Vec<(i64, i64)> = Vec::new();
        let (mut bytes, mut first_ms) = (0, 0);
        for entry in self.storage.entries_from(self.cleaned_to) {
            let len = i64::from(entry.len);
            let full =
                bytes + len > config.segment_bytes || entry.max_timestamp.saturating_sub(first_ms) > config.segment_ms;
            if segments.is_empty() || full {
                segments.push((entry.base_offset, i64::MIN));
                (bytes, first_ms) = (0, entry.max_timestamp);
            }
            bytes += len;
            if let Some((_, newest)) = segments.last_mut() {
                *newest = (*newest).max(entry.max_timestamp);
            }
        }
        let oldest = self.storage.entries_from(self.cleaned_to).next()?.max_timestamp;
        let overdue = now_ms.saturating_sub(oldest) > config.max_compaction_lag_ms;
        let active = if overdue { self.end_offset } else { segments.last()?.0 };
        let lag = config.min_compaction_lag_ms;
        let young = |(_, newest): &&(i64, i64)| lag > 0 && *newest > now_ms.saturating_sub(lag);
        let young = segments.iter().find(young).map_or(i64::MAX, |(base, _)| *base);
        let to = active.min(young).min(self.last_stable_offset());
        let size = |entries: &mut dyn Iterator<Item = &BatchEntry>| entries.map(|e| u64::from(e.len)).sum::<u64>();
        let clean = size(&mut self.storage.entries().take_while(|entry| entry.base_offset < self.cleaned_to));
        let dirty = size(&mut self.batches(self.cleaned_to, to));
        let ratio = dirty as f64 / (clean + dirty).max(1) as f64;
        (dirty > 0 && (overdue || ratio > config.min_cleanable_dirty_ratio())).then_some(to)
    }
}

impl Pass {
    fn is_aborted(&self, entry: &BatchEntry) -> bool {
        let inside = |(first, last): &(i64, i64)| (*first..=*last).contains(&entry.base_offset);
        entry.transactional
            && !entry.control
            && self.aborted.get(&entry.producer_id).is_some_and(|txns| txns.iter().any(inside))
    }

    fn note_keys(&mut self, bytes: &Bytes) {
        let Some(decoded) = decode(bytes) else { return };
        for record in decoded.iter().map_while(Result::ok) {
            if let Some(key) = record.key {
                self.latest.insert(key.into(), record.offset);
            }
        }
    }

    fn judge(&mut self, entry: &BatchEntry, bytes: &Bytes) -> Fate {
        // What cannot be read is left as it is: its readers will tell.
        let Some(decoded) = decode(bytes) else { return Fate::Keep };
        let expired = decoded.has_delete_horizon() && decoded.base_timestamp <= self.now_ms;
        if entry.control {
            let needed = self.seen.remove(&entry.producer_id);
            return match (needed, decoded.has_delete_horizon()) {
                (true, _) => Fate::Keep,
                (false, true) if expired => Fate::Drop,
                (false, true) => Fate::Keep,
                (false, false) => self.rebuild(&decoded, |_| true, true),
            };
        }
        if entry.transactional {
            self.seen.insert(entry.producer_id);
        }
        let aborted = self.is_aborted(entry);
        let keep = |record: &Record<'_>| {
            let newest = record.key.is_some_and(|key| self.latest.get(key).is_none_or(|last| *last <= record.offset));
            newest && !aborted && !(record.value.is_none() && expired)
        };
        let kept = decoded.iter().map_while(Result::ok).filter(|record| keep(record));
        let (count, tombstones) = kept.fold((0, false), |(n, dead), record| (n + 1, dead | record.value.is_none()));
        let last_of_producer = self.last_of_producer.contains(&(entry.producer_id, entry.last_offset));
        let horizon = tombstones && !decoded.has_delete_horizon();
        match count {
            0 if !last_of_producer => Fate::Drop,
            _ if count == entry.record_count && !horizon => Fate::Keep,
            _ => self.rebuild(&decoded, keep, horizon),
        }
    }

    /// The batch with some of its records, under a new delete horizon or the one that it had.
    fn rebuild(&self, batch: &DecodedBatch, keep: impl Fn(&Record<'_>) -> bool, horizon: bool) -> Fate {
        let build = || -> Result<Bytes, RecordError> {
            let old = batch.has_delete_horizon().then_some(batch.base_timestamp);
            let new = horizon.then(|| self.now_ms.saturating_add(self.delete_retention_ms));
            let mut builder = BatchBuilder::new(BatchOptions {
                compression: batch.compression()?,
                compression_level: None,
                timestamp_type: batch.timestamp_type(),
                base_offset: batch.base_offset,
                partition_leader_epoch: batch.partition_leader_epoch,
                producer_id: batch.producer_id,
                producer_epoch: batch.producer_epoch,
                base_sequence: batch.base_sequence,
                transactional: batch.is_transactional(),
                control: batch.is_control(),
                delete_horizon: new.or(old),
            });
            for record in batch {
                let record = record?;
                if keep(&record) {
                    let delta = (record.offset - batch.base_offset) as i32;
                    builder.append_at(delta, record.timestamp, record.key, record.value, record.headers)?;
                }
            }
            builder.set_last_offset_delta(batch.last_offset_delta)?;
            Ok(builder.finish()?.freeze())
        };
        build().map_or(Fate::Keep, Fate::Replace)
    }
}

fn decode(bytes: &Bytes) -> Option<DecodedBatch> {
    RecordBatch::parse(bytes).ok()?.decode(DECOMPRESS_LIMIT).ok()
}
