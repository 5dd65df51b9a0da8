//! Counts and lengths that lie, under a valid checksum (field report R112).

use super::*;
use crate::varint::{VarintError, encode_uvarint, encode_varint};

/// A record around a hand-made body.
fn record(body: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode_varint(body.len() as i32, &mut bytes);
    bytes.extend_from_slice(body);
    bytes
}

fn only_error(body: &[u8]) -> RecordError {
    let batch = around(&record(body), 1);
    decode(&batch).unwrap_err()
}

#[test]
fn r112_record_counts() {
    let good = build(BatchOptions::default(), &plain());
    let payload = good.len() - BATCH_HEADER_LEN;
    let forged = |count: i32| {
        let mut batch = good.clone();
        forge(&mut batch, header::RECORD_COUNT_AT, &count.to_be_bytes());
        decode(&batch)
    };
    assert_eq!(forged(-1), Err(RecordError::NegativeRecordCount(-1)));
    assert_eq!(forged(i32::MIN), Err(RecordError::NegativeRecordCount(i32::MIN)));
    assert_eq!(forged(i32::MAX), Err(RecordError::RecordCountExceedsBytes { count: i32::MAX, bytes: payload }));
    assert_eq!(forged(4), Err(RecordError::Varint(VarintError::Truncated)));
    assert!(matches!(forged(2), Err(RecordError::TrailingBytes(_))));
    assert_eq!(forged(3).unwrap(), plain());
}

#[test]
fn r112_header_counts() {
    // Attributes, deltas, null key and null value, then the header count.
    let with_count = |count: i32| {
        let mut body = vec![0, 0, 0, 1, 1];
        encode_varint(count, &mut body);
        only_error(&body)
    };
    let negative = RecordError::NegativeLength("header count");
    assert_eq!(with_count(-1), negative);
    assert_eq!(with_count(i32::MIN), negative);
    assert_eq!(with_count(i32::MAX), RecordError::HeaderCountExceedsBytes { count: i32::MAX, bytes: 0 });
    let mut body = vec![0, 0, 0, 1, 1];
    encode_uvarint(u32::MAX - 1, &mut body);
    assert_eq!(only_error(&body), RecordError::HeaderCountExceedsBytes { count: i32::MAX, bytes: 0 });
}

#[test]
fn r112_field_lengths() {
    let key_length = |length: i32| {
        let mut body = vec![0, 0, 0];
        encode_varint(length, &mut body);
        body.extend_from_slice(&[1, 0]);
        only_error(&body)
    };
    assert_eq!(key_length(-2), RecordError::NegativeLength("key"));
    assert_eq!(key_length(i32::MIN), RecordError::NegativeLength("key"));
    assert_eq!(key_length(3), RecordError::RecordTruncated("key"));
    assert_eq!(key_length(i32::MAX), RecordError::RecordTruncated("key"));

    for length in [-1, i32::MIN] {
        let mut payload = Vec::new();
        encode_varint(length, &mut payload);
        payload.extend_from_slice(&[0; 16]);
        assert_eq!(decode(&around(&payload, 1)), Err(RecordError::NegativeLength("record")));
    }
}

#[test]
fn a_record_longer_than_its_fields_is_refused() {
    assert_eq!(only_error(&[0, 0, 0, 1, 1, 0, 9, 9]), RecordError::RecordLengthMismatch(2));
}

#[test]
fn offsets_out_of_order_or_beyond_the_batch_are_refused() {
    let at = |delta: u8| record(&[0, 0, delta << 1, 1, 1, 0]);
    let out_of_batch = |delta| RecordError::OffsetOutOfBatch { delta, last: 1 };
    let payload = [at(0), at(0)].concat();
    assert_eq!(decode(&around(&payload, 2)), Err(out_of_batch(0)));
    let payload = [at(0), at(2)].concat();
    assert_eq!(decode(&around(&payload, 2)), Err(out_of_batch(2)));
    // Zig-zag 1 is -1.
    let payload = [at(0), record(&[0, 0, 1, 1, 1, 0])].concat();
    assert_eq!(decode(&around(&payload, 2)), Err(out_of_batch(-1)));
}

#[test]
fn header_fields_out_of_range_are_refused() {
    let good = build(BatchOptions::default(), &plain());
    let mut batch = good.clone();
    forge(&mut batch, header::LAST_OFFSET_DELTA_AT, &(-2_i32).to_be_bytes());
    assert!(matches!(decode(&batch), Err(RecordError::InvalidOffsets { .. })));
    for base in [-1, i64::MAX] {
        let mut batch = good.clone();
        forge(&mut batch, header::BASE_OFFSET_AT, &i64::to_be_bytes(base));
        assert!(matches!(decode(&batch), Err(RecordError::InvalidOffsets { .. })));
    }
    let mut batch = good.clone();
    forge(&mut batch, header::ATTRIBUTES_AT, &5_i16.to_be_bytes());
    assert_eq!(decode(&batch), Err(RecordError::UnknownCompression(5)));
    let mut batch = good.clone();
    forge(&mut batch, header::MAGIC_AT, &[3]);
    assert_eq!(decode(&batch), Err(RecordError::UnknownMagic(3)));
    let mut batch = good;
    batch[70] ^= 1;
    assert!(matches!(decode(&batch), Err(RecordError::CrcMismatch { .. })));
}

#[test]
fn a_damaged_batch_can_be_skipped() {
    let good = build(BatchOptions::default(), &plain());
    let mut bad = good.clone();
    forge(&mut bad, header::RECORD_COUNT_AT, &(-1_i32).to_be_bytes());
    let buffer = [&bad[..], &good[..]].concat();
    let batches: Vec<_> = BatchIter::new(buffer.into()).map(Result::unwrap).collect();
    assert_eq!(batches.len(), 2);
    assert!(batches[0].decode(1024).is_err());
    assert!(batches[1].decode(1024).is_ok());
}
