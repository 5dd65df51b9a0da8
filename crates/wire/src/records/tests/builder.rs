//! The builder's own promises, and patches of finished batches.

use super::*;
use crate::compression::{Compression, CompressionError};

#[test]
fn appends_behind_what_the_buffer_holds() {
    let mut builder = BatchBuilder::with_buffer(BatchOptions::default(), BytesMut::from(&b"frame"[..]));
    builder.append(7, None, Some(b"v"), []).unwrap();
    let buffer = builder.finish().unwrap();
    assert_eq!(&buffer[..5], b"frame");
    assert_eq!(decode(&buffer[5..]).unwrap(), [Owned::new(0, 7, None, Some(b"v"))]);
}

#[test]
fn header_fields_are_as_set() {
    let options =
        BatchOptions { base_offset: 100, partition_leader_epoch: 4, transactional: true, ..BatchOptions::default() };
    let mut builder = BatchBuilder::new(options);
    for timestamp in [30, 10, 20] {
        builder.append(timestamp, None, None, []).unwrap();
    }
    builder.set_producer(77, 5, i32::MAX);
    let size = builder.size();
    let batch = builder.finish().unwrap();
    let view = RecordBatchView::parse(&batch).unwrap();
    assert_eq!((view.size(), batch.len()), (size, size));
    assert_eq!((view.base_offset, view.last_offset(), view.next_offset()), (100, 102, 103));
    assert_eq!((view.base_timestamp, view.max_timestamp), (30, 30));
    assert_eq!((view.producer_id, view.producer_epoch), (77, 5));
    assert_eq!((view.base_sequence, view.last_sequence()), (i32::MAX, 1));
    assert_eq!((view.record_count, view.partition_leader_epoch), (3, 4));
    assert!(view.is_transactional() && !view.is_control() && !view.has_delete_horizon());
    view.verify_crc().unwrap();
}

#[test]
fn offsets_must_rise() {
    let mut builder = BatchBuilder::new(BatchOptions::default());
    builder.append_at(4, 7, None, None, []).unwrap();
    assert_eq!(builder.append_at(4, 7, None, None, []), Err(RecordError::OffsetNotIncreasing { delta: 4, last: 4 }));
    assert_eq!(builder.append(7, None, None, []), Ok(5));
    builder.set_last_offset_delta(9).unwrap();
    assert!(builder.set_last_offset_delta(8).is_err());
    let batch = builder.finish().unwrap();
    assert_eq!(RecordBatchView::parse(&batch).unwrap().last_offset(), 9);
    let offsets: Vec<_> = decode(&batch).unwrap().iter().map(|r| r.offset).collect();
    assert_eq!(offsets, [4, 5]);
}

#[test]
fn estimates_are_upper_bounds() {
    let mut builder = BatchBuilder::new(BatchOptions::default());
    builder.append(0, None, None, []).unwrap();
    let header = Header::new("trace", Some(b"0123"));
    let (key, value) = (Some(&b"key"[..]), Some(&[7_u8; 500][..]));
    let estimate = BatchBuilder::estimate(key, value, [header]);
    let before = builder.size();
    assert!(builder.would_exceed(before + estimate - 1, estimate));
    assert!(!builder.would_exceed(before + estimate, estimate));
    builder.append(i64::MAX, key, value, [header]).unwrap();
    assert!(builder.size() <= before + estimate);
}

#[test]
fn delete_horizon_is_the_base_timestamp() {
    let options = BatchOptions { delete_horizon: Some(5_000), ..BatchOptions::default() };
    let batch = build(options, &plain());
    let view = RecordBatchView::parse(&batch).unwrap();
    assert!(view.has_delete_horizon());
    assert_eq!(view.base_timestamp, 5_000);
    assert_eq!(decode(&batch).unwrap(), plain());
}

#[test]
fn a_level_out_of_range_is_named() {
    let options =
        BatchOptions { compression: Compression::Gzip, compression_level: Some(10), ..BatchOptions::default() };
    let error = BatchBuilder::new(options).finish().unwrap_err();
    let expected = CompressionError::InvalidLevel { codec: Compression::Gzip, level: 10, min: 1, max: 9 };
    assert_eq!(error, RecordError::Compression(expected));
}

#[test]
fn patches_change_what_they_say_and_keep_the_checksum_valid() {
    let mut batch = build(BatchOptions::default(), &plain());
    batch.extend_from_slice(b"next");
    patch::set_base_offset(&mut batch, 40).unwrap();
    patch::set_partition_leader_epoch(&mut batch, 9).unwrap();
    patch::set_producer(&mut batch, 5, 6, 7).unwrap();
    let view = RecordBatchView::parse(&batch).unwrap();
    view.verify_crc().unwrap();
    assert_eq!((view.base_offset, view.partition_leader_epoch), (40, 9));
    assert_eq!((view.producer_id, view.producer_epoch, view.base_sequence), (5, 6, 7));
    let offsets: Vec<_> = decode(&batch).unwrap().iter().map(|r| r.offset).collect();
    assert_eq!(offsets, [40, 41, 42]);
    patch::set_log_append_time(&mut batch, 123).unwrap();
    assert!(decode(&batch).unwrap().iter().all(|r| r.timestamp == 123));
    assert!(batch.ends_with(b"next"));
    assert!(patch::set_base_offset(&mut batch[..70], 1).is_err());
}

#[test]
fn markers_round_trip() {
    for commit in [true, false] {
        let marker = EndTxnMarker { commit, coordinator_epoch: 31, producer_id: 4, producer_epoch: 2 };
        let batch = marker.write(50, 1, 99, BytesMut::new()).unwrap().freeze();
        let batch = RecordBatch::parse(&batch).unwrap();
        batch.verify_crc().unwrap();
        assert!(batch.is_control() && batch.is_transactional());
        assert_eq!((batch.producer_id, batch.producer_epoch), (4, 2));
        let decoded = batch.decode(0).unwrap();
        let records: Vec<_> = decoded.control_records().unwrap().collect();
        let kind = match commit {
            true => ControlRecordType::Commit,
            false => ControlRecordType::Abort,
        };
        let expected = ControlRecord { offset: 50, kind, coordinator_epoch: Some(31) };
        assert_eq!(records, [Ok(expected)]);
    }
}

#[test]
fn data_batches_have_no_control_records() {
    let batch = build(BatchOptions::default(), &plain()).freeze();
    let decoded = RecordBatch::parse(&batch).unwrap().decode(1024).unwrap();
    assert_eq!(decoded.control_records().err(), Some(RecordError::NotControl));
}
