//! Tests of compaction: what stays, what goes, and what readers and producers see of it.

use super::*;
use crate::settings::{Change, Overrides, TOPIC_DEFINITIONS, TopicConfig, change};
use kafka_share_messages::ErrorCode;
use kafka_share_wire::compression::Compression;
use kafka_share_wire::records::{BatchBuilder, BatchIter, BatchOptions, RecordBatch, TimestampType};

const NOW: i64 = 1_700_000_000_000;
const DAY: i64 = 86_400_000;

fn config(settings: &[(&str, &str)]) -> TopicConfig {
    let mut overrides = Overrides::new();
    // A batch that is 10 ms younger than the first of its segment begins the next one.
    let all = [("cleanup.policy", "compact"), ("segment.ms", "9")];
    for (name, value) in all.iter().chain(settings) {
        change(TOPIC_DEFINITIONS, &mut overrides, name, Change::Set, Some(value)).unwrap();
    }
    TopicConfig::new(&overrides)
}

/// A log whose batches are 10 ms apart.
struct Log {
    log: PartitionLog,
    config: TopicConfig,
    at: i64,
}

impl Log {
    fn new(settings: &[(&str, &str)]) -> Self {
        Log { log: PartitionLog::default(), config: config(settings), at: NOW }
    }

    /// Keys and values; an empty value is a tombstone.
    fn append_as(&mut self, options: BatchOptions, records: &[(&str, &str)]) -> i64 {
        self.at += 10;
        let mut builder = BatchBuilder::new(options);
        for (key, value) in records {
            let value = Some(value.as_bytes()).filter(|value| !value.is_empty());
            builder.append(self.at, Some(key.as_bytes()), value, []).unwrap();
        }
        let records = builder.finish().unwrap().freeze();
        let request = AppendRequest {
            records: &records,
            config: &self.config,
            leader_epoch: 3,
            now_ms: self.at,
            in_transaction: true,
            epoch_per_transaction: false,
        };
        self.log.append(&request).unwrap().base_offset
    }

    fn append(&mut self, records: &[(&str, &str)]) -> i64 {
        self.append_as(BatchOptions::default(), records)
    }

    fn txn(&mut self, producer_id: i64, base_sequence: i32, records: &[(&str, &str)]) -> i64 {
        let options =
            BatchOptions { producer_id, producer_epoch: 0, base_sequence, transactional: true, ..Default::default() };
        self.append_as(options, records)
    }

    fn mark(&mut self, producer_id: i64, committed: bool) -> i64 {
        self.at += 10;
        let marker = Marker { producer_id, epoch: 0, committed, coordinator_epoch: 0, epoch_per_transaction: false };
        self.log.append_marker(&marker, 3, self.at).unwrap()
    }

    fn compact_at(&mut self, now: i64) -> bool {
        self.log.compact(now, &self.config)
    }

    fn compact(&mut self) -> bool {
        self.compact_at(self.at)
    }

    fn batches(&mut self) -> Vec<RecordBatch> {
        let bytes = self.log.read(0, i64::MAX, usize::MAX, true).records;
        BatchIter::new(bytes).map(|batch| batch.unwrap()).inspect(|batch| batch.verify_crc().unwrap()).collect()
    }

    /// Offset, key and value of all data records.
    fn records(&mut self) -> Vec<(i64, String, String)> {
        let text = |bytes: Option<&[u8]>| String::from_utf8(bytes.unwrap_or_default().to_vec()).unwrap();
        let mut all = Vec::new();
        for batch in self.batches().iter().filter(|batch| !batch.is_control()) {
            for record in &batch.decode(1 << 20).unwrap() {
                let record = record.unwrap();
                all.push((record.offset, text(record.key), text(record.value)));
            }
        }
        all
    }
}

fn expect(log: &mut Log, records: &[(i64, &str, &str)]) {
    let found = log.records();
    let found: Vec<(i64, &str, &str)> = found.iter().map(|(o, k, v)| (*o, k.as_str(), v.as_str())).collect();
    assert_eq!(found, records);
}

#[test]
fn the_last_record_of_each_key_stays_at_its_offset() {
    let mut log = Log::new(&[("min.cleanable.dirty.ratio", "0")]);
    log.append(&[("a", "1"), ("b", "1"), ("c", "1")]);
    log.append(&[("a", "2")]);
    log.append(&[("b", "2"), ("a", "3"), ("b", "3")]);
    log.append(&[("c", "active")]);
    assert!(log.compact());
    expect(&mut log, &[(2, "c", "1"), (5, "a", "3"), (6, "b", "3"), (7, "c", "active")]);
    // Batches keep their extent, whatever is gone; those without records are gone.
    let extents: Vec<(i64, i64, i32)> =
        log.batches().iter().map(|batch| (batch.base_offset, batch.last_offset(), batch.record_count)).collect();
    assert_eq!(extents, [(0, 2, 1), (4, 6, 2), (7, 7, 1)]);
    assert_eq!((log.log.start_offset(), log.log.high_watermark()), (0, 8));
    // A read from a gap goes on with what follows.
    let read = log.log.read(3, 8, usize::MAX, true);
    assert_eq!((RecordBatch::parse(&read.records).unwrap().base_offset, read.next_offset), (4, 8));
    assert!(!log.compact(), "nothing new");
    // The next pass also takes out what an earlier one had left.
    log.append(&[("d", "1")]);
    assert!(log.compact_at(log.at + 1));
    expect(&mut log, &[(5, "a", "3"), (6, "b", "3"), (7, "c", "active"), (8, "d", "1")]);
}

#[test]
fn the_active_segment_and_young_records_are_left_alone() {
    let mut log = Log::new(&[("min.compaction.lag.ms", "1000")]);
    for value in ["1", "2", "3"] {
        log.append(&[("a", value)]);
    }
    assert!(!log.compact(), "all are young");
    assert!(log.compact_at(log.at + 2000));
    expect(&mut log, &[(1, "a", "2"), (2, "a", "3")]);
    let mut log = Log::new(&[("segment.ms", "86400000")]);
    for value in ["1", "2", "3"] {
        log.append(&[("a", value)]);
    }
    assert!(!log.compact_at(log.at + 2000), "one segment, the active one");
    log.config = config(&[("segment.ms", "86400000"), ("max.compaction.lag.ms", "1000")]);
    assert!(log.compact_at(log.at + 2000), "overdue: the segment is closed");
    expect(&mut log, &[(2, "a", "3")]);
}

#[test]
fn segments_are_counted_by_bytes_too() {
    let mut log = Log::new(&[("segment.ms", "86400000"), ("segment.bytes", "1048576")]);
    let large = "x".repeat(400_000);
    for _ in 0..4 {
        log.append(&[("a", &large)]);
    }
    assert!(log.compact(), "two fill a segment of 1 MiB, two are active");
    assert_eq!(log.records().iter().map(|(offset, ..)| *offset).collect::<Vec<_>>(), [1, 2, 3]);
}

#[test]
fn a_pass_waits_for_the_dirty_ratio() {
    let mut log = Log::new(&[("min.cleanable.dirty.ratio", "0.6")]);
    for key in ["a", "b", "c", "d"] {
        log.append(&[(key, "1")]);
    }
    assert!(log.compact(), "nothing is clean yet");
    log.append(&[("a", "2")]);
    log.append(&[("x", "active")]);
    assert!(!log.compact(), "two of five batches are dirty");
    for value in ["3", "4", "5", "6"] {
        log.append(&[("a", value)]);
    }
    assert!(log.compact());
}

#[test]
fn tombstones_stay_for_their_retention() {
    let mut log = Log::new(&[("delete.retention.ms", "86400000"), ("min.cleanable.dirty.ratio", "0")]);
    log.append(&[("a", "1"), ("b", "1")]);
    log.append(&[("a", "")]);
    log.append(&[("x", "1")]);
    assert!(log.compact());
    expect(&mut log, &[(1, "b", "1"), (2, "a", ""), (3, "x", "1")]);
    let tombstone = log.batches()[1].clone();
    assert!(tombstone.has_delete_horizon());
    assert_eq!(
        (tombstone.base_timestamp, tombstone.max_timestamp),
        (log.at + DAY, NOW + 20),
        "the record keeps its time"
    );
    log.append(&[("y", "1")]);
    assert!(log.compact_at(log.at + DAY - 100));
    expect(&mut log, &[(1, "b", "1"), (2, "a", ""), (3, "x", "1"), (4, "y", "1")]);
    assert_eq!(log.batches()[1].as_bytes(), tombstone.as_bytes(), "the horizon is set once");
    log.append(&[("z", "1")]);
    assert!(log.compact_at(log.at + DAY + 100));
    expect(&mut log, &[(1, "b", "1"), (3, "x", "1"), (4, "y", "1"), (5, "z", "1")]);
}

#[test]
fn aborted_records_go_and_open_transactions_stop_the_pass() {
    let mut log = Log::new(&[("delete.retention.ms", "0"), ("min.cleanable.dirty.ratio", "0")]);
    log.append(&[("a", "1")]);
    log.txn(1, 0, &[("a", "aborted"), ("b", "aborted")]);
    log.mark(1, false);
    log.txn(2, 0, &[("c", "committed")]);
    log.mark(2, true);
    log.txn(3, 0, &[("d", "open")]);
    log.append(&[("a", "behind it")]);
    log.append(&[("x", "1")]);
    assert!(log.compact());
    expect(&mut log, &[(0, "a", "1"), (4, "c", "committed"), (6, "d", "open"), (7, "a", "behind it"), (8, "x", "1")]);
    assert_eq!(log.log.last_stable_offset(), 6);
    // Both markers are there: their transactions' records were, in this pass.
    let markers = |log: &mut Log| -> Vec<i64> {
        log.batches().iter().filter(|batch| batch.is_control()).map(|batch| batch.base_offset).collect()
    };
    assert_eq!(markers(&mut log), [3, 5]);
    // The aborted batch was the last of its producer: it stays, empty.
    assert_eq!(log.batches()[1].record_count, 0);
    log.mark(3, true);
    log.append(&[("c", "2")]);
    for value in ["2", "3", "4"] {
        log.append(&[("y", value)]);
        assert!(log.compact_at(log.at + 1));
    }
    let control = markers(&mut log);
    assert!(control.contains(&3), "the aborted transaction's empty batch is still seen: {control:?}");
    let aborted = log.log.aborted(0, 100);
    assert_eq!(aborted.iter().map(|txn| txn.first_offset).collect::<Vec<_>>(), [1]);
}

#[test]
fn markers_go_once_nothing_of_their_transaction_is_left_and_the_horizon_is_over() {
    let mut log = Log::new(&[("delete.retention.ms", "1000"), ("min.cleanable.dirty.ratio", "0")]);
    log.txn(1, 0, &[("a", "1")]);
    log.mark(1, true);
    log.txn(1, 1, &[("b", "1")]);
    log.mark(1, true);
    log.append(&[("a", "2")]);
    log.append(&[("x", "1")]);
    let markers = |log: &mut Log| -> Vec<(i64, bool)> {
        let all = log.batches();
        let control = all.iter().filter(|batch| batch.is_control());
        control.map(|batch| (batch.base_offset, batch.has_delete_horizon())).collect()
    };
    assert!(log.compact());
    assert_eq!(markers(&mut log), [(1, false), (3, false)], "its record was there when the pass began");
    log.append(&[("x", "2")]);
    assert!(log.compact());
    assert_eq!(markers(&mut log), [(1, true), (3, false)]);
    log.append(&[("x", "3")]);
    assert!(log.compact_at(log.at + 2000));
    assert_eq!(markers(&mut log), [(3, false)]);
}

#[test]
fn compression_times_and_sequences_are_kept() {
    let mut log = Log::new(&[("message.timestamp.type", "LogAppendTime")]);
    let options = |base_sequence| BatchOptions {
        compression: Compression::Gzip,
        producer_id: 9,
        producer_epoch: 2,
        base_sequence,
        ..Default::default()
    };
    log.append_as(options(0), &[("a", "1"), ("b", "1")]);
    log.append_as(options(2), &[("a", "2"), ("a", "3")]);
    log.append(&[("a", "4")]);
    log.append(&[("x", "1")]);
    assert!(log.compact());
    expect(&mut log, &[(1, "b", "1"), (4, "a", "4"), (5, "x", "1")]);
    let batches = log.batches();
    assert_eq!(batches[0].compression().unwrap(), Compression::Gzip);
    assert_eq!((batches[0].timestamp_type(), batches[0].max_timestamp), (TimestampType::LogAppendTime, NOW + 10));
    assert_eq!((batches[0].producer_id, batches[0].producer_epoch, batches[0].base_sequence), (9, 2, 0));
    // The producer's last batch stays without records, and repeats of it are recognised.
    assert_eq!((batches[1].base_offset, batches[1].last_offset(), batches[1].record_count), (2, 3, 0));
    assert_eq!(log.append_as(options(2), &[("a", "2"), ("a", "3")]), 2);
    let bytes = log.log.all_batches();
    let restored = PartitionLog::restore(Some(log.log.snapshot()), &bytes).unwrap();
    assert_eq!(restored.snapshot(), log.log.snapshot());
}

#[test]
fn records_without_a_key_are_refused() {
    let mut log = Log::new(&[]);
    let mut builder = BatchBuilder::new(BatchOptions::default());
    builder.append(NOW, Some(b"a"), Some(b"1"), []).unwrap();
    builder.append(NOW, None, Some(b"1"), []).unwrap();
    let records = builder.finish().unwrap().freeze();
    let request = AppendRequest {
        records: &records,
        config: &log.config,
        leader_epoch: 0,
        now_ms: NOW,
        in_transaction: false,
        epoch_per_transaction: false,
    };
    assert_eq!(log.log.append(&request).map_err(|refusal| refusal.code), Err(ErrorCode::INVALID_RECORD));
    assert_eq!(log.log.high_watermark(), 0);
}
