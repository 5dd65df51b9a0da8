//! Tests of the log: appends, reads, producers, transactions.

use super::*;
use crate::settings::{Overrides, TopicConfig};
use kafka_share_messages::ErrorCode;
use kafka_share_wire::records::{BatchBuilder, BatchIter, BatchOptions, RecordBatch};

const NOW: i64 = 1_700_000_000_000;

fn options(producer_id: i64, producer_epoch: i16, base_sequence: i32) -> BatchOptions {
    BatchOptions { producer_id, producer_epoch, base_sequence, ..BatchOptions::default() }
}

fn batch(options: BatchOptions, records: usize) -> Bytes {
    let mut builder = BatchBuilder::new(options);
    for i in 0..records {
        builder.append(NOW + i as i64, Some(b"k"), Some(b"value"), []).unwrap();
    }
    builder.finish().unwrap().freeze()
}

fn append_with(log: &mut PartitionLog, records: &Bytes, config: &TopicConfig) -> Result<Appended, ErrorCode> {
    let request = AppendRequest {
        records,
        config,
        leader_epoch: 3,
        now_ms: NOW,
        in_transaction: true,
        epoch_per_transaction: false,
    };
    log.append(&request).map_err(|refusal| refusal.code)
}

fn append(log: &mut PartitionLog, records: &Bytes) -> Result<i64, ErrorCode> {
    append_with(log, records, &TopicConfig::new(&Overrides::new())).map(|appended| appended.base_offset)
}

#[test]
fn a_replay_tells_when_producers_were_last_heard_of() {
    let mut log = PartitionLog::default();
    append(&mut log, &batch(options(1, 0, 0), 2)).unwrap();
    append(&mut log, &transactional(2, 0, 1)).unwrap();
    mark(&mut log, 2, true);
    let restored = PartitionLog::restore(None, &log.all_batches()).unwrap();
    assert!(log.producers().iter().eq(restored.producers().iter()));
    let last: Vec<i64> = restored.producers().iter().map(|(_, state)| state.last_timestamp).collect();
    assert_eq!(last, [NOW + 1, NOW], "the greatest time of the batch, and the marker's");
}

#[test]
fn offsets_by_time_pass_over_what_was_deleted() {
    let timed = |times: &[i64]| {
        let mut builder = BatchBuilder::new(BatchOptions::default());
        for at in times {
            builder.append(*at, None, None, []).unwrap();
        }
        builder.finish().unwrap().freeze()
    };
    let mut log = PartitionLog::default();
    append(&mut log, &timed(&[100, 50])).unwrap();
    append(&mut log, &timed(&[90])).unwrap();
    log.delete_below(1);
    assert_eq!(log.first_at(80, i64::MAX), Some(TimestampedOffset { offset: 2, timestamp: 90 }));
    assert_eq!(log.first_at(100, i64::MAX), None);
    let mut log = PartitionLog::default();
    let own = Overrides::from([("message.timestamp.type", "LogAppendTime".to_owned())]);
    append_with(&mut log, &timed(&[1, 1, 1]), &TopicConfig::new(&own)).unwrap();
    log.delete_below(2);
    assert_eq!(log.first_at(0, i64::MAX), Some(TimestampedOffset { offset: 2, timestamp: NOW }));
}

fn transactional(producer_id: i64, sequence: i32, records: usize) -> Bytes {
    batch(BatchOptions { transactional: true, ..options(producer_id, 0, sequence) }, records)
}

fn mark(log: &mut PartitionLog, producer_id: i64, committed: bool) {
    let marker = Marker { producer_id, epoch: 0, committed, coordinator_epoch: 0, epoch_per_transaction: false };
    log.append_marker(&marker, 3, NOW).unwrap();
}

#[test]
fn reads_give_whole_batches_with_their_offsets() {
    let mut log = PartitionLog::default();
    for count in [3, 1, 5] {
        append(&mut log, &batch(BatchOptions::default(), count)).unwrap();
    }
    let all = log.read(0, i64::MAX, usize::MAX, true);
    assert_eq!(all.next_offset, 9);
    let offsets: Vec<i64> = BatchIter::new(all.records.clone())
        .flat_map(|b| {
            let decoded = b.unwrap();
            decoded.verify_crc().unwrap();
            assert_eq!(decoded.partition_leader_epoch, 3);
            decoded.decode(1 << 20).unwrap().iter().map(|r| r.unwrap().offset).collect::<Vec<_>>()
        })
        .collect();
    assert_eq!(offsets, (0..9).collect::<Vec<_>>());
    // From the middle of a batch, its whole is given.
    let middle = log.read(1, i64::MAX, 1, true);
    assert_eq!((middle.next_offset, RecordBatch::parse(&middle.records).unwrap().base_offset), (3, 0));
    assert!(log.read(0, i64::MAX, 1, false).records.is_empty());
    assert!(log.read(9, i64::MAX, 1, true).records.is_empty());
    assert_eq!(log.read(0, 3, usize::MAX, true).next_offset, 3);
}

#[test]
fn reads_of_what_was_frozen_share_memory() {
    let mut log = PartitionLog::default();
    let data = batch(BatchOptions::default(), 100);
    append(&mut log, &data).unwrap();
    let first = log.read(0, i64::MAX, usize::MAX, true).records;
    append(&mut log, &data).unwrap();
    let again = log.read(0, i64::MAX, data.len(), true).records;
    assert_eq!(first.as_ptr(), again.as_ptr());
    // Across chunks: copied once, shared from then on.
    let merged = log.read(0, i64::MAX, usize::MAX, true).records;
    assert_eq!(merged.len(), 2 * data.len());
    assert_eq!(log.read(0, i64::MAX, usize::MAX, true).records.as_ptr(), merged.as_ptr());
}

#[test]
fn many_batches_survive_reads_at_any_point() {
    let mut log = PartitionLog::default();
    for i in 0..300 {
        append(&mut log, &batch(BatchOptions::default(), 1 + i % 7)).unwrap();
        if i % 5 == 0 {
            let _ = log.read(i as i64, i64::MAX, 2000, true);
        }
        if i == 150 {
            log.delete_below(200);
        }
    }
    let mut at = log.start_offset();
    while at < log.high_watermark() {
        let read = log.read(at, i64::MAX, 5000, true);
        let first = RecordBatch::parse(&read.records).unwrap();
        assert!(first.base_offset <= at && read.next_offset > at);
        assert!(BatchIter::new(read.records).all(|b| b.unwrap().verify_crc().is_ok()));
        at = read.next_offset;
    }
}

#[test]
fn r061_duplicates_are_recognised_among_the_last_five() {
    let mut log = PartitionLog::default();
    for i in 0..6 {
        assert_eq!(append(&mut log, &batch(options(7, 0, i), 1)), Ok(i64::from(i)));
    }
    assert_eq!(append(&mut log, &batch(options(7, 0, 1), 1)), Ok(1));
    assert_eq!(append(&mut log, &batch(options(7, 0, 0), 1)), Err(ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER));
    assert_eq!(append(&mut log, &batch(options(7, 0, 7), 1)), Err(ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER));
    assert_eq!(log.high_watermark(), 6);
}

#[test]
fn r062_sequences_wrap_at_two_to_the_31() {
    let mut log = PartitionLog::default();
    append(&mut log, &batch(options(7, 0, i32::MAX - 1), 3)).unwrap();
    assert_eq!(log.producers().get(7).unwrap().last_sequence(), 0);
    assert_eq!(append(&mut log, &batch(options(7, 0, 1), 1)), Ok(3));
    let mut log = PartitionLog::default();
    append(&mut log, &batch(options(7, 0, i32::MAX - 2), 3)).unwrap();
    assert_eq!(append(&mut log, &batch(options(7, 0, 0), 1)), Ok(3));
}

#[test]
fn r059_a_new_epoch_starts_at_zero_and_fences_the_old() {
    let mut log = PartitionLog::default();
    append(&mut log, &batch(options(7, 0, 0), 5)).unwrap();
    assert_eq!(append(&mut log, &batch(options(7, 1, 5), 1)), Err(ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER));
    assert_eq!(append(&mut log, &batch(options(7, 1, 0), 1)), Ok(5));
    assert_eq!(append(&mut log, &batch(options(7, 0, 5), 1)), Err(ErrorCode::INVALID_PRODUCER_EPOCH));
}

#[test]
fn transactions_bound_stable_reads_and_aborts_are_listed() {
    let mut log = PartitionLog::default();
    append(&mut log, &transactional(1, 0, 2)).unwrap();
    append(&mut log, &transactional(2, 0, 2)).unwrap();
    assert_eq!(log.last_stable_offset(), 0);
    mark(&mut log, 1, true);
    assert_eq!(log.last_stable_offset(), 2);
    mark(&mut log, 2, false);
    assert_eq!((log.last_stable_offset(), log.high_watermark()), (6, 6));
    let aborted = log.aborted(0, 6);
    assert_eq!(aborted.iter().map(|a| (a.producer_id, a.first_offset)).collect::<Vec<_>>(), [(2, 2)]);
    assert!(log.aborted(0, 2).is_empty());
    assert!(log.aborted(6, 7).is_empty());
}

#[test]
fn markers_are_checked_and_repeats_let_through() {
    let mut log = PartitionLog::default();
    append(&mut log, &transactional(1, 0, 2)).unwrap();
    let marker =
        Marker { producer_id: 1, epoch: 1, committed: true, coordinator_epoch: 4, epoch_per_transaction: true };
    let stale = Marker { epoch: 0, ..marker };
    assert_eq!(log.append_marker(&stale, 3, NOW), Err(ErrorCode::INVALID_PRODUCER_EPOCH));
    assert_eq!(log.append_marker(&marker, 3, NOW), Ok(2));
    assert_eq!(log.append_marker(&marker, 3, NOW), Ok(3), "r181: a repeated marker is a success");
    let deposed = Marker { epoch: 2, coordinator_epoch: 3, ..marker };
    assert_eq!(log.append_marker(&deposed, 3, NOW), Err(ErrorCode::TRANSACTION_COORDINATOR_FENCED));
}

#[test]
fn bad_batches_are_refused_by_kind() {
    let mut log = PartitionLog::default();
    let good = batch(BatchOptions::default(), 2);
    let changed = |at: usize, to: u8| {
        let mut bytes = good.to_vec();
        bytes[at] = to;
        Bytes::from(bytes)
    };
    assert_eq!(append(&mut log, &changed(70, 0xff)), Err(ErrorCode::CORRUPT_MESSAGE));
    assert_eq!(append(&mut log, &changed(16, 1)), Err(ErrorCode::INVALID_RECORD));
    assert_eq!(append(&mut log, &Bytes::new()), Err(ErrorCode::INVALID_RECORD));
    assert_eq!(append(&mut log, &good.slice(..40)), Err(ErrorCode::CORRUPT_MESSAGE));
    assert_eq!(append(&mut log, &Bytes::from([&good[..], &good[..]].concat())), Err(ErrorCode::INVALID_RECORD));
    let control = batch(BatchOptions { control: true, ..options(1, 0, 0) }, 1);
    assert_eq!(append(&mut log, &control), Err(ErrorCode::INVALID_RECORD));
    let mut overrides = Overrides::new();
    overrides.insert("max.message.bytes", "50".into());
    let small = TopicConfig::new(&overrides);
    assert_eq!(append_with(&mut log, &good, &small), Err(ErrorCode::MESSAGE_TOO_LARGE));
    assert_eq!(log.high_watermark(), 0);
}

#[test]
fn log_append_time_replaces_timestamps() {
    let mut log = PartitionLog::default();
    let mut overrides = Overrides::new();
    overrides.insert("message.timestamp.type", "LogAppendTime".into());
    let config = TopicConfig::new(&overrides);
    let appended = append_with(&mut log, &batch(BatchOptions::default(), 2), &config).unwrap();
    assert_eq!(appended.log_append_time, NOW);
    let stored = RecordBatch::parse(&log.read(0, 9, 9999, true).records).unwrap();
    stored.verify_crc().unwrap();
    assert_eq!(stored.max_timestamp, NOW);
}

#[test]
fn offsets_are_found_by_time() {
    let mut log = PartitionLog::default();
    append(&mut log, &batch(BatchOptions::default(), 5)).unwrap();
    assert_eq!(log.first_at(NOW + 3, 9), Some(TimestampedOffset { offset: 3, timestamp: NOW + 3 }));
    assert_eq!(log.first_at(NOW + 5, 9), None);
    assert_eq!(log.first_at(NOW + 3, 3), None);
    assert_eq!(log.latest_timestamp(), Some(TimestampedOffset { offset: 4, timestamp: NOW + 4 }));
}

#[test]
fn retention_keeps_open_transactions() {
    let mut log = PartitionLog::default();
    append(&mut log, &batch(BatchOptions::default(), 5)).unwrap();
    append(&mut log, &transactional(1, 0, 2)).unwrap();
    log.retain(NOW + 10_000, 1000, -1);
    assert_eq!((log.start_offset(), log.high_watermark()), (5, 7));
    mark(&mut log, 1, false);
    log.retain(NOW + 10_000, 1000, -1);
    assert_eq!((log.start_offset(), log.bytes()), (8, 0));
}

#[test]
fn epochs_are_found_by_offset() {
    let mut log = PartitionLog::default();
    append(&mut log, &batch(BatchOptions::default(), 5)).unwrap();
    log.note_epoch(6, 5);
    assert_eq!((log.epoch_of(0), log.epoch_of(5)), (3, 6));
    assert_eq!(log.end_of_epoch(4), (3, 5));
    assert_eq!(log.end_of_epoch(6), (6, 5));
}

fn settings(all: &[(&'static str, &str)]) -> TopicConfig {
    TopicConfig::new(&all.iter().map(|(name, value)| (*name, (*value).to_owned())).collect())
}

#[test]
fn retention_by_size_drops_whole_batches_from_the_start() {
    let mut log = PartitionLog::default();
    for _ in 0..4 {
        append(&mut log, &batch(BatchOptions::default(), 3)).unwrap();
    }
    let one = log.bytes() as i64 / 4;
    log.retain(NOW, -1, -1);
    assert_eq!((log.start_offset(), log.bytes() as i64), (0, 4 * one), "-1 sets no limit");
    log.retain(NOW, -1, 2 * one + 1);
    assert_eq!((log.start_offset(), log.bytes() as i64), (3, 3 * one), "not below the limit");
    log.retain(NOW, -1, 2 * one);
    assert_eq!((log.start_offset(), log.bytes() as i64), (6, 2 * one));
    log.retain(NOW + 2, 1, -1);
    assert_eq!(log.start_offset(), 6, "age counts from a batch's latest record");
    log.retain(NOW + 4, 1, -1);
    assert_eq!((log.start_offset(), log.high_watermark(), log.bytes()), (12, 12, 0));
}

#[test]
fn timestamps_far_from_now_are_refused_unless_the_log_sets_them() {
    let data = batch(BatchOptions::default(), 2);
    let at = |now_ms: i64, config: &TopicConfig| {
        let request = AppendRequest {
            records: &data,
            config,
            leader_epoch: 0,
            now_ms,
            in_transaction: false,
            epoch_per_transaction: false,
        };
        PartitionLog::default()
            .append(&request)
            .map(|appended| appended.log_append_time)
            .map_err(|refusal| refusal.code)
    };
    let invalid = Err(ErrorCode::INVALID_TIMESTAMP);
    let newest = NOW + 1;
    let defaults = settings(&[]);
    assert_eq!(at(newest - 3_600_000, &defaults), Ok(-1), "an hour ahead is allowed");
    assert_eq!(at(newest - 3_600_001, &defaults), invalid);
    assert_eq!(at(newest + 100 * 365 * 86_400_000, &defaults), Ok(-1), "the past is not limited");
    let before = settings(&[("message.timestamp.before.max.ms", "1000"), ("message.timestamp.after.max.ms", "10")]);
    assert_eq!((at(newest + 1000, &before), at(newest + 1001, &before)), (Ok(-1), invalid));
    assert_eq!((at(newest - 10, &before), at(newest - 11, &before)), (Ok(-1), invalid));
    let log_time = settings(&[("message.timestamp.type", "LogAppendTime"), ("message.timestamp.before.max.ms", "0")]);
    assert_eq!(at(newest + 5000, &log_time), Ok(newest + 5000));
}
