//! Decoding and encoding record batches of 1 MiB, beside the kafka-protocol crate.
//!
//! `cargo bench -p kafka-share-bench --bench records`. Throughput is in records: its inverse is the time per record.
//! Decoding verifies the checksum and reads offset, timestamp, key and value of each record.
//!
//! krafka 0.28 is not here: its record batches are not part of its public API.

#![allow(missing_docs, reason = "criterion's macros generate undocumented items")]

use std::hint::black_box;

use bytes::{Bytes, BytesMut};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use kafka_protocol::records as peer;
use kafka_share_wire::compression::{Compression, DEFAULT_DECOMPRESSED_LIMIT};
use kafka_share_wire::records::{BatchBuilder, BatchIter, BatchOptions};

const BATCH_BYTES: usize = 1 << 20;
const KEY_BYTES: usize = 8;
const RECORD_BYTES: [usize; 2] = [100, 1024];
const TIMESTAMP: i64 = 1_700_000_000_000;

/// A value that compresses about as JSON does: half of it is repeated, half is not.
fn value(index: usize, bytes: usize) -> Vec<u8> {
    let mut state = index as u64 + 1;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as u8
    };
    (0..bytes).map(|at| if at % 2 == 0 { b'a' + (at % 20) as u8 } else { b'0' + next() % 10 }).collect()
}

/// Keys and values of one batch.
fn records(record_bytes: usize) -> Vec<(Bytes, Bytes)> {
    let key = |index: usize| Bytes::copy_from_slice(&(index as u64).to_be_bytes());
    (0..BATCH_BYTES / record_bytes)
        .map(|index| (key(index), Bytes::from(value(index, record_bytes - KEY_BYTES))))
        .collect()
}

fn encode(options: BatchOptions, records: &[(Bytes, Bytes)], buffer: BytesMut) -> BytesMut {
    let mut builder = BatchBuilder::with_buffer(options, buffer);
    for (index, (key, value)) in records.iter().enumerate() {
        let timestamp = TIMESTAMP + index as i64 / 8;
        builder.append(timestamp, Some(key), Some(value), []).expect("small");
    }
    builder.finish().expect("small")
}

fn read(batches: &Bytes) -> (usize, i64) {
    let mut seen = (0, 0_i64);
    for batch in BatchIter::new(batches.clone()) {
        let batch = batch.expect("whole");
        batch.verify_crc().expect("intact");
        for record in &batch.decode(DEFAULT_DECOMPRESSED_LIMIT).expect("valid") {
            let record = record.expect("valid");
            black_box((record.key, record.value));
            seen = (seen.0 + 1, seen.1 ^ record.offset ^ record.timestamp);
        }
    }
    seen
}

fn peer_records(records: &[(Bytes, Bytes)]) -> Vec<peer::Record> {
    let record = |(index, (key, value)): (usize, &(Bytes, Bytes))| peer::Record {
        transactional: false,
        control: false,
        delete_horizon: false,
        partition_leader_epoch: -1,
        producer_id: -1,
        producer_epoch: -1,
        timestamp_type: peer::TimestampType::Creation,
        offset: index as i64,
        sequence: -1 + index as i32,
        timestamp: TIMESTAMP + index as i64 / 8,
        key: Some(key.clone()),
        value: Some(value.clone()),
        headers: Default::default(),
    };
    records.iter().enumerate().map(record).collect()
}

fn peer_read(batches: &Bytes) -> (usize, i64) {
    let mut seen = (0, 0_i64);
    for record in peer::RecordBatchDecoder::decode(&mut batches.clone()).expect("valid").records {
        black_box((&record.key, &record.value));
        seen = (seen.0 + 1, seen.1 ^ record.offset ^ record.timestamp);
    }
    seen
}

fn decoding(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("decode");
    for record_bytes in RECORD_BYTES {
        let records = records(record_bytes);
        let batch = encode(BatchOptions::default(), &records, BytesMut::new()).freeze();
        assert_eq!(read(&batch), peer_read(&batch));
        group.throughput(Throughput::Elements(records.len() as u64));
        group.bench_function(BenchmarkId::new("kafka-share", record_bytes), |b| b.iter(|| read(black_box(&batch))));
        group.bench_function(BenchmarkId::new("kafka-protocol", record_bytes), |b| {
            b.iter(|| peer_read(black_box(&batch)));
        });
        for compression in Compression::ALL.into_iter().skip(1) {
            let options = BatchOptions { compression, ..BatchOptions::default() };
            let batch = encode(options, &records, BytesMut::new()).freeze();
            let name = format!("kafka-share {compression}");
            group.bench_function(BenchmarkId::new(name, record_bytes), |b| b.iter(|| read(black_box(&batch))));
        }
    }
    group.finish();
}

fn encoding(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("encode");
    for record_bytes in RECORD_BYTES {
        let records = records(record_bytes);
        group.throughput(Throughput::Elements(records.len() as u64));
        let mut buffer = BytesMut::with_capacity(2 * BATCH_BYTES);
        group.bench_function(BenchmarkId::new("kafka-share", record_bytes), |b| {
            b.iter(|| {
                buffer.clear();
                buffer = encode(BatchOptions::default(), black_box(&records), std::mem::take(&mut buffer));
            });
        });
        let theirs = peer_records(&records);
        let options = peer::RecordEncodeOptions { version: 2, compression: peer::Compression::None };
        group.bench_function(BenchmarkId::new("kafka-protocol", record_bytes), |b| {
            b.iter(|| {
                buffer.clear();
                peer::RecordBatchEncoder::encode(&mut buffer, black_box(&theirs), &options).expect("valid");
            });
        });
        for compression in Compression::ALL.into_iter().skip(1) {
            let options = BatchOptions { compression, ..BatchOptions::default() };
            let name = format!("kafka-share {compression}");
            group.bench_function(BenchmarkId::new(name, record_bytes), |b| {
                b.iter(|| encode(options, black_box(&records), BytesMut::with_capacity(2 * BATCH_BYTES)));
            });
        }
    }
    group.finish();
}

criterion_group!(benches, decoding, encoding);
criterion_main!(benches);
