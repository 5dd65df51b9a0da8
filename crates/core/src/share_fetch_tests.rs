//! Decoding of share fetches: only what was acquired, gaps, corrupt batches, hostile ranges.

use super::*;
use bytes::BytesMut;
use kafka_share_wire::Uuid;
use kafka_share_wire::records::{BatchBuilder, BatchOptions};

const LIMIT: usize = 1 << 20;

fn tp() -> TopicIdPartition {
    TopicIdPartition { topic_id: Uuid::from_halves(3, 4), partition: 1 }
}

fn batch(base: i64, count: i64) -> BytesMut {
    let mut builder = BatchBuilder::new(BatchOptions { base_offset: base, ..BatchOptions::default() });
    for i in 0..count {
        builder.append(i, None, Some(format!("v{}", base + i).as_bytes()), []).unwrap();
    }
    builder.finish().unwrap()
}

fn acquired(ranges: &[(i64, i64)]) -> Vec<AcquiredRecords> {
    let row = |(first, last): &(i64, i64)| AcquiredRecords {
        first_offset: *first,
        last_offset: *last,
        delivery_count: 1,
        ..Default::default()
    };
    ranges.iter().map(row).collect()
}

fn values(delivery: &Delivery) -> Vec<String> {
    let read = |e: &Entry| {
        let record = delivery.batches[e.batch as usize].record_at(e.position).unwrap();
        String::from_utf8_lossy(record.value.unwrap()).into_owned()
    };
    delivery.entries.iter().map(read).collect()
}

//= SHARE-FETCH-06
#[test]
fn r137_only_acquired_offsets_are_delivered() {
    let records = [batch(0, 10), batch(10, 10)].concat();
    let delivery = decode(tp(), Some(records.into()), &acquired(&[(3, 4), (8, 11)]), LIMIT);
    assert_eq!(values(&delivery), ["v3", "v4", "v8", "v9", "v10", "v11"]);
    assert!(delivery.gaps.is_empty() && delivery.rejected.is_empty() && delivery.repeated == 0);
}

//= SHARE-CLIENT-01
#[test]
fn r031_overlapping_ranges_deliver_once() {
    let delivery = decode(tp(), Some(batch(0, 7).freeze()), &acquired(&[(0, 4), (3, 6)]), LIMIT);
    assert_eq!(values(&delivery), ["v0", "v1", "v2", "v3", "v4", "v5", "v6"]);
    assert_eq!((delivery.ranges.len(), delivery.repeated), (2, 2));
    assert_eq!(delivery.ranges[1].first, 5);
}

//= SHARE-CLIENT-02
#[test]
fn r032_offsets_without_records_are_gaps() {
    let records = [batch(0, 2), batch(5, 1)].concat();
    let delivery = decode(tp(), Some(records.into()), &acquired(&[(0, 6)]), LIMIT);
    assert_eq!(delivery.gaps, [2, 3, 4, 6]);
    let empty = decode(tp(), None, &acquired(&[(7, 8)]), LIMIT);
    assert_eq!(empty.gaps, [0, 1]);
}

//= SHARE-CLIENT-03
#[test]
fn r047_bad_batches_reject_exactly_their_offsets() {
    let mut parts = [batch(0, 2), batch(2, 2), batch(4, 2), batch(6, 2), batch(8, 2)];
    for i in [1, 3] {
        let last = parts[i].len() - 1;
        parts[i][last] ^= 0x55;
    }
    let delivery = decode(tp(), Some(parts.concat().into()), &acquired(&[(0, 9)]), LIMIT);
    assert_eq!(values(&delivery), ["v0", "v1", "v4", "v5", "v8", "v9"]);
    assert_eq!(delivery.rejected, [2, 3, 6, 7]);
    let corrupt: Vec<_> = delivery.corrupt.iter().map(|c| (c.first_offset, c.last_offset)).collect();
    assert_eq!(corrupt, [(2, 3), (6, 7)]);
}

//= SHARE-CLIENT-04
#[test]
fn r115_a_cut_tail_is_released_not_taken_for_a_gap() {
    let whole = [batch(0, 2), batch(2, 2)].concat();
    let first = batch(0, 2).len();
    for cut in 0..whole.len() {
        let delivery = decode(tp(), Some(Bytes::copy_from_slice(&whole[..cut])), &acquired(&[(0, 3)]), LIMIT);
        let covered = delivery.entries.len() + delivery.gaps.len() + delivery.missing.len() + delivery.rejected.len();
        assert_eq!(covered, 4, "cut at {cut}");
        if cut > first {
            assert_eq!((delivery.entries.len(), &delivery.missing[..]), (2, &[2, 3][..]), "cut at {cut}");
        }
    }
}

#[test]
fn hostile_ranges_stay_bounded() {
    let ranges = acquired(&[(0, i64::MAX), (-5, 3), (9, 2), (i64::MAX - 1, i64::MAX)]);
    let delivery = decode(tp(), None, &ranges, LIMIT);
    assert!(delivery.gaps.len() <= 1 << 20);
}

#[test]
fn ranges_behind_the_largest_offset_are_dropped() {
    let ranges = acquired(&[(i64::MAX - 1, i64::MAX), (i64::MAX, i64::MAX), (i64::MAX - 1, i64::MAX - 1)]);
    let delivery = decode(tp(), None, &ranges, LIMIT);
    let bounds: Vec<(i64, i64)> = delivery.ranges.iter().map(|r| (r.first, r.last)).collect();
    assert_eq!(bounds, [(i64::MAX - 1, i64::MAX)]);
    assert_eq!(delivery.gaps.len(), 2);
}

#[test]
fn many_ranges_and_many_batches_are_read_in_one_pass() {
    // 40,000 ranges under 40,000 batches: 1.6 billion steps, minutes here, if every batch looked at every range.
    let one = batch(0, 1);
    let mut records = Vec::new();
    for offset in 0..40_000_i64 {
        let at = records.len();
        records.extend_from_slice(&one);
        records[at..at + 8].copy_from_slice(&(offset * 2).to_be_bytes());
    }
    let rows: Vec<(i64, i64)> = (0..40_000).map(|i| (i * 2, i * 2)).collect();
    let started = std::time::Instant::now();
    let delivery = decode(tp(), Some(records.into()), &acquired(&rows), LIMIT);
    assert_eq!(delivery.entries.len(), 40_000);
    assert!(started.elapsed() < std::time::Duration::from_secs(10), "{:?}", started.elapsed());
}

#[test]
fn batches_that_do_not_ascend_are_passed_over_and_their_offsets_released() {
    let mut bad = batch(0, 4);
    let end = bad.len() - 1;
    bad[end] ^= 1;
    let records = [bad.clone(), bad.clone(), bad, batch(2, 4)].concat();
    let delivery = decode(tp(), Some(records.into()), &acquired(&[(0, 5)]), LIMIT);
    assert_eq!((delivery.rejected.len(), delivery.corrupt.len()), (4, 1));
    assert!(delivery.gaps.is_empty() && delivery.entries.is_empty());
    assert_eq!(delivery.missing, [4, 5]);
}

/// Batches of `records` records of `size` zeros each, compressed to next to nothing.
fn bombs(batches: i64, records: i64, size: usize) -> Bytes {
    let mut all = BytesMut::new();
    for at in 0..batches {
        let options = BatchOptions { base_offset: at * records, compression: Compression::Gzip, ..Default::default() };
        let mut builder = BatchBuilder::new(options);
        for delta in 0..records {
            builder.append(delta, None, Some(&vec![0; size]), []).unwrap();
        }
        all.extend_from_slice(&builder.finish().unwrap());
    }
    all.freeze()
}

#[test]
fn r130_many_small_bombs_expand_to_no_more_than_an_answer_may() {
    // 64 batches of 256 KiB each, 16 MiB in all, in some 20 KiB: none of them is over the limit of a batch.
    let records = bombs(64, 4, 64 << 10);
    assert!(records.len() < 64 << 10, "{} bytes", records.len());
    let mut room = Room::new(DecodeLimits { batch: 1 << 20, answer: 1 << 20 });
    let delivery = decode_within(tp(), Some(records.clone()), &acquired(&[(0, 255)]), &mut room);
    let expanded: usize = delivery.batches.iter().map(|b| b.payload().len()).sum();
    assert!((768 << 10..=1 << 20).contains(&expanded), "{expanded} bytes");
    assert!(delivery.missing.is_empty() && delivery.gaps.is_empty() && delivery.rejected.is_empty());
    let delivered = delivery.entries.len() as i64;
    assert_eq!(delivery.ranges.iter().map(|r| (r.first, r.last)).collect::<Vec<_>>(), [(0, delivered - 1)]);
    // The room is that of the answer: the next partition has none.
    let next = decode_within(tp(), Some(records), &acquired(&[(2, 9), (12, 255)]), &mut room);
    assert!(next.entries.is_empty() && next.ranges.is_empty());
    assert_eq!(next.rest.as_ref().map(Deferred::count), Some(252));
    // What is left comes in parts of that size, each record once.
    let mut seen = values(&delivery).len();
    let mut rest = delivery.rest;
    while let Some(part) = rest {
        let delivery = part.decode(DecodeLimits { batch: 1 << 20, answer: 1 << 20 });
        assert!(delivery.batches.iter().map(|b| b.payload().len()).sum::<usize>() <= 1 << 20);
        assert_eq!(delivery.ranges[0].first, seen as i64);
        seen += delivery.entries.len();
        rest = delivery.rest;
    }
    assert_eq!(seen, 256);
    let parts = next.rest.unwrap().undecoded();
    assert_eq!((parts.missing.len(), parts.ranges[1].start), (252, 8));
}

#[test]
fn an_answer_always_has_room_for_one_batch_and_for_what_is_not_compressed() {
    let mut room = Room::new(DecodeLimits { batch: 1 << 20, answer: 0 });
    let first = decode_within(tp(), Some(bombs(1, 2, 400 << 10)), &acquired(&[(0, 1)]), &mut room);
    assert_eq!(first.entries.len(), 2);
    let second = decode_within(tp(), Some(bombs(1, 2, 400 << 10)), &acquired(&[(0, 1)]), &mut room);
    assert_eq!((second.entries.len(), second.rest.map(|r| r.count())), (0, Some(2)));
    let plain = decode_within(tp(), Some(batch(0, 3).freeze()), &acquired(&[(0, 2)]), &mut room);
    assert_eq!((plain.entries.len(), plain.rest.is_none()), (3, true));
    // Over the limit of a batch is corrupt, whatever room there is.
    let mut room = Room::new(DecodeLimits { batch: 1 << 10, answer: 1 << 20 });
    let large = decode_within(tp(), Some(bombs(1, 2, 4 << 10)), &acquired(&[(0, 1)]), &mut room);
    assert_eq!((large.rejected.len(), large.rest.is_none()), (2, true));
}
