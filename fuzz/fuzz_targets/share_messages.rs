//! The share-group messages from both sides, and fetched records with hostile acquired ranges.
#![no_main]

use arbitrary::Unstructured;
use bytes::Bytes;
use kafka_share_core::metadata::TopicIdPartition;
use kafka_share_core::share_consumer::decode_fetch;
use kafka_share_core::share_fetch::{self, DecodeLimits};
use kafka_share_messages::share_fetch_response::AcquiredRecords;
use kafka_share_messages::{
    Message, ShareAcknowledgeRequest, ShareAcknowledgeResponse, ShareFetchRequest, ShareFetchResponse,
    ShareGroupDescribeResponse, ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse, TxnShareAcknowledgeRequest,
    TxnShareAcknowledgeResponse,
};
use kafka_share_wire::Uuid;
use kafka_share_wire::records::{BatchBuilder, BatchOptions};
use libfuzzer_sys::fuzz_target;

/// What a batch may expand to.
const LIMIT: usize = 1 << 16;

fuzz_target!(|data: &[u8]| {
    let [kind, version, body @ ..] = data else { return };
    let bytes = Bytes::copy_from_slice(body);
    match kind % 10 {
        0 => both_ways::<ShareFetchRequest>(*version, bytes),
        1 => both_ways::<ShareAcknowledgeRequest>(*version, bytes),
        2 => both_ways::<ShareAcknowledgeResponse>(*version, bytes),
        3 => both_ways::<ShareGroupHeartbeatRequest>(*version, bytes),
        4 => both_ways::<ShareGroupHeartbeatResponse>(*version, bytes),
        5 => both_ways::<ShareGroupDescribeResponse>(*version, bytes),
        6 => both_ways::<TxnShareAcknowledgeRequest>(*version, bytes),
        7 => both_ways::<TxnShareAcknowledgeResponse>(*version, bytes),
        8 => {
            let version = pick::<ShareFetchResponse>(*version);
            if let Ok(response) = ShareFetchResponse::decode_all(bytes.clone(), version) {
                let answer = decode_fetch(response, DecodeLimits { batch: LIMIT, answer: 2 * LIMIT }, true);
                answer.partitions.iter().for_each(|p| check(&p.delivery));
            }
            both_ways::<ShareFetchResponse>(version as u8, bytes);
        }
        _ => drop(hostile_ranges(&mut Unstructured::new(body))),
    }
});

fn pick<M: Message>(version: u8) -> i16 {
    let versions = M::MAX_VERSION - M::MIN_VERSION + 1;
    M::MIN_VERSION + i16::from(version) % versions
}

fn both_ways<M: Message + PartialEq + std::fmt::Debug>(version: u8, bytes: Bytes) {
    let version = pick::<M>(version);
    let Ok(message) = M::decode_all(bytes, version) else { return };
    let encoded = message.to_bytes(version).expect("what was decoded can be encoded");
    let again = M::decode_all(encoded, version).expect("what was encoded can be decoded");
    assert_eq!(message, again);
}

/// Real batches, damaged or not, with acquired ranges that have nothing to do with them.
fn hostile_ranges(u: &mut Unstructured<'_>) -> arbitrary::Result<()> {
    let mut acquired = Vec::new();
    for _ in 0..u.int_in_range(0..=6)? {
        let mut offset = || -> arbitrary::Result<i64> {
            Ok(match u.arbitrary::<u8>()? % 4 {
                0 => u.arbitrary()?,
                1 => i64::MAX - i64::from(u.arbitrary::<u8>()?),
                _ => i64::from(u.arbitrary::<u8>()?),
            })
        };
        let (first_offset, last_offset) = (offset()?, offset()?);
        acquired.push(AcquiredRecords { first_offset, last_offset, delivery_count: 1, ..Default::default() });
    }
    // A range of a million offsets is lawful, but slow to go through thousands of times a second.
    acquired.retain(|a| a.last_offset.saturating_sub(a.first_offset) < 1 << 12);
    let mut records = bytes::BytesMut::new();
    for _ in 0..u.int_in_range(0..=3)? {
        let base_offset =
            if u.arbitrary()? { i64::from(u.arbitrary::<u8>()?) } else { i64::MAX - i64::from(u.arbitrary::<u8>()?) };
        let control = u.ratio(1, 8)?;
        let mut builder = BatchBuilder::new(BatchOptions { base_offset, control, ..BatchOptions::default() });
        for _ in 0..u.int_in_range(1..=8)? {
            let _ = builder.append(0, None, Some(&[7; 3]), []);
        }
        records.extend_from_slice(&builder.finish().expect("a batch"));
    }
    for _ in 0..u.int_in_range(0..=2)? {
        if !records.is_empty() {
            let at = u.choose_index(records.len())?;
            records[at] ^= u.arbitrary::<u8>()?;
        }
    }
    let tp = TopicIdPartition { topic_id: Uuid::ZERO, partition: 0 };
    check(&share_fetch::decode(tp, Some(records.freeze()), &acquired, LIMIT));
    Ok(())
}

/// Every acquired offset is in exactly one of the lists, in order, and records lie within their range.
fn check(delivery: &share_fetch::Delivery) {
    let mut count = 0;
    for (i, range) in delivery.ranges.iter().enumerate() {
        assert!(0 <= range.first && range.first <= range.last);
        assert_eq!(u64::from(range.start), count);
        assert!(i == 0 || delivery.ranges[i - 1].last < range.first);
        count += (range.last - range.first) as u64 + 1;
    }
    let mut seen = vec![0_u8; count as usize];
    for index in delivery.entries.iter().map(|e| e.index).chain(delivery.gaps.iter().copied()) {
        seen[index as usize] += 1;
    }
    for index in delivery.rejected.iter().chain(&delivery.missing) {
        seen[*index as usize] += 1;
    }
    assert!(seen.iter().all(|n| *n == 1), "an offset has no place or two");
    assert!(delivery.entries.is_sorted_by_key(|e| e.index));
    for entry in &delivery.entries {
        let record = delivery.batches[entry.batch as usize].record_at(entry.position).expect("decoded before");
        let range = delivery.ranges.iter().rfind(|r| r.start <= entry.index).expect("a range");
        assert_eq!(record.offset, range.first + i64::from(entry.index - range.start));
    }
}
