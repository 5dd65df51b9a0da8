//! What the share consumer does for every record: acknowledgements in any order, and the decoding of a fetch.

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use kafka_share_core::metadata::TopicIdPartition;
use kafka_share_core::share_acks::{AckTable, AckType, AcquiredRange, RecordHandle};
use kafka_share_core::share_fetch::decode;
use kafka_share_messages::share_fetch_response::AcquiredRecords;
use kafka_share_wire::Uuid;
use kafka_share_wire::records::{BatchBuilder, BatchOptions};
use std::hint::black_box;
use std::time::{Duration, Instant};

const RECORDS: i64 = 5_000;

fn tp() -> TopicIdPartition {
    TopicIdPartition { topic_id: Uuid::from_halves(1, 1), partition: 0 }
}

/// A table that holds all records, and their handles.
fn held() -> (AckTable, Vec<RecordHandle>) {
    let mut table = AckTable::new();
    let range = AcquiredRange { first: 0, last: RECORDS - 1, delivery_count: 1, start: 0 };
    table.open(1, tp(), 1, vec![range], Instant::now() + Duration::from_secs(30));
    let handles = (0..RECORDS).map(|offset| table.find(tp(), offset).expect("held")).collect();
    (table, handles)
}

fn acknowledge(c: &mut Criterion) {
    let mut group = c.benchmark_group("acknowledge 5,000 records");
    group.throughput(Throughput::Elements(RECORDS as u64));
    let now = Instant::now();
    let all = |(mut table, handles): (AckTable, Vec<RecordHandle>), reverse: bool| {
        let mut ack = |handle: &RecordHandle| table.acknowledge(*handle, AckType::Accept, now).expect("held");
        match reverse {
            false => handles.iter().for_each(&mut ack),
            true => handles.iter().rev().for_each(&mut ack),
        }
        (table, handles)
    };
    group.bench_function("in order", |b| b.iter_batched(held, |held| all(held, false), BatchSize::LargeInput));
    group.bench_function("in reverse", |b| b.iter_batched(held, |held| all(held, true), BatchSize::LargeInput));
    group.bench_function("in reverse, and form the request", |b| {
        let formed = |held| {
            let (mut table, _) = all(held, true);
            black_box(table.take(1, true))
        };
        b.iter_batched(held, formed, BatchSize::LargeInput);
    });
    group.finish();
}

fn decode_fetch(c: &mut Criterion) {
    let mut records = Vec::new();
    for base in (0..RECORDS).step_by(500) {
        let mut builder = BatchBuilder::new(BatchOptions { base_offset: base, ..BatchOptions::default() });
        for at in 0..500 {
            builder.append(at, None, Some(&[7; 100]), []).expect("append");
        }
        records.extend_from_slice(&builder.finish().expect("batch"));
    }
    let records = bytes::Bytes::from(records);
    let acquired =
        [AcquiredRecords { first_offset: 0, last_offset: RECORDS - 1, delivery_count: 1, ..Default::default() }];
    let mut group = c.benchmark_group("decode 5,000 records of 100 bytes");
    group.throughput(Throughput::Elements(RECORDS as u64));
    group
        .bench_function("one range", |b| b.iter(|| decode(tp(), Some(records.clone()), black_box(&acquired), 1 << 26)));
    let single: Vec<AcquiredRecords> = (0..RECORDS)
        .map(|at| AcquiredRecords { first_offset: at, last_offset: at, delivery_count: 1, ..Default::default() })
        .collect();
    group.bench_function("a range each", |b| {
        b.iter(|| decode(tp(), Some(records.clone()), black_box(&single), 1 << 26))
    });
    group.finish();
}

criterion_group!(benches, acknowledge, decode_fetch);
criterion_main!(benches);
