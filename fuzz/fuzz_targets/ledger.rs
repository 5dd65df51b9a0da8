//! The acknowledgement ledger: records of anybody, and logs of lawful and unlawful batches with gaps, read by a member.
#![no_main]

use arbitrary::{Result, Unstructured};
use bytes::{Bytes, BytesMut};
use kafka_share_core::ledger::{
    ClaimedRange, Claims, GroupClaims, Intent, IntentKey, Layout, LedgerReader, LedgerRecord, ReaderConfig, Survey,
    Want,
};
use kafka_share_core::metadata::TopicIdPartition;
use kafka_share_core::share_acks::AckType;
use kafka_share_wire::Uuid;
use kafka_share_wire::records::{BatchBuilder, BatchIter, BatchOptions, EndTxnMarker};
use libfuzzer_sys::fuzz_target;
use std::time::{Duration, Instant};

/// Ranges that a reader remembers.
const RANGES: usize = 64;
const TP: TopicIdPartition = TopicIdPartition { topic_id: Uuid([1; 16]), partition: 0 };

fuzz_target!(|data: &[u8]| {
    let [kind, body @ ..] = data else { return };
    if kind % 2 == 0 {
        record(body);
    } else {
        let _ = log(&mut Unstructured::new(body));
    }
});

/// What is read is written again the same, and read the same.
fn record(body: &[u8]) {
    let layout = Layout::new(1).expect("partitions");
    let (key, value) = body.split_at(body.len().min(usize::from(body.first().copied().unwrap_or(0) % 32)));
    if let Ok(record) = LedgerRecord::decode(Some(key), Some(value), layout) {
        let (key, value) = record.encode(layout);
        assert_eq!(LedgerRecord::decode(Some(&key), value.as_deref(), layout).as_ref(), Ok(&record));
    }
    let _ = LedgerRecord::decode(Some(body), None, layout);
}

fn log(u: &mut Unstructured<'_>) -> Result<()> {
    let layout = Layout::new(1).expect("partitions");
    let config = ReaderConfig { group: "g".into(), layout, max_ranges: RANGES };
    let (mut reader, mut survey) = (LedgerReader::new(config), Survey::new(layout, 0));
    let mut now = Instant::now();
    let (mut end, mut asked) = (0_i64, 1_u64);
    reader.note_asked(asked);
    while !u.is_empty() {
        now += Duration::from_millis(u.int_in_range(0..=20_000)?);
        let batch = batch(u, layout, &mut end)?;
        for batch in BatchIter::new(batch.clone()).flatten() {
            if let Ok(decoded) = batch.decode(1 << 20) {
                survey.handle_batch(&decoded);
            }
        }
        match reader.want() {
            Want::Bounds => reader.handle_bounds(u.int_in_range(0..=end)?, end),
            Want::Records(_) => drop(reader.handle_records(now, batch, u.int_in_range(-1..=end)?)),
            Want::Nothing => assert!(reader.error().is_some()),
        }
        if u.ratio(1, 16)? {
            reader.handle_out_of_range();
        }
        asked += u64::from(u.arbitrary::<bool>()?);
        reader.note_asked(asked);
        reader.set_lowest_ask(u.int_in_range(1..=asked)?);
        assert!(reader.ranges() <= RANGES + 1 && reader.floor() <= asked);
        let (first, length) = (u.int_in_range(0..=40)?, u.int_in_range(0..=20)?);
        reader.wait_for(now, now + Duration::from_secs(30), TP, first, first + length);
        while reader.poll_fence(now).is_some() {}
        // The runs are the range, without a gap.
        let mut next = first;
        for run in reader.standings(TP, first, first + length) {
            assert!(run.first == next && run.last >= run.first, "{run:?}");
            next = run.last + 1;
        }
        assert_eq!(next, first + length + 1);
    }
    Ok(())
}

fn batch(u: &mut Unstructured<'_>, layout: Layout, end: &mut i64) -> Result<Bytes> {
    // Now and then something is missing.
    *end += if u.ratio(1, 8)? { u.int_in_range(1..=3)? } else { 0 };
    let (producer_id, base) = (u.int_in_range(1..=3)?, *end);
    if u.ratio(1, 3)? {
        *end += 1;
        let marker = EndTxnMarker {
            commit: u.arbitrary()?,
            coordinator_epoch: 0,
            producer_id,
            producer_epoch: u.int_in_range(0..=9)?,
        };
        return Ok(marker.write(base, 0, 0, BytesMut::new()).map(BytesMut::freeze).unwrap_or_default());
    }
    let transactional = !u.ratio(1, 8)?;
    let options = BatchOptions {
        base_offset: base,
        producer_id,
        producer_epoch: 5,
        base_sequence: 0,
        transactional,
        ..Default::default()
    };
    let mut builder = BatchBuilder::new(options);
    for _ in 0..u.int_in_range(1..=3)? {
        let key = IntentKey { instance: Uuid([9; 16]), counter: u.int_in_range(0..=7)? };
        let (key, value) = match u.int_in_range(0..=9)? {
            0 => (Bytes::copy_from_slice(u.bytes(3).unwrap_or_default()), Some(Bytes::from_static(b"KL"))),
            1 => LedgerRecord::Generation { group: "g".into(), generation: u.int_in_range(1..=3)? }.encode(layout),
            2..=4 => LedgerRecord::Tombstone(key).encode(layout),
            _ => intent(u, key)?.encode(layout),
        };
        let _ = builder.append(0, Some(&key), value.as_deref(), []);
        *end += 1;
    }
    Ok(builder.finish().map(BytesMut::freeze).unwrap_or_default())
}

fn intent(u: &mut Unstructured<'_>, key: IntentKey) -> Result<LedgerRecord> {
    let first = u.int_in_range(0..=40)?;
    let ack = if u.arbitrary()? { AckType::Accept } else { AckType::Reject };
    let range = ClaimedRange { first, last: first + u.int_in_range(0..=5)?, ack };
    let claims = Claims::from([(TP, vec![range])]);
    let group = if u.ratio(1, 4)? { "other" } else { "g" };
    let part = GroupClaims { group: group.into(), generation: u.int_in_range(0..=2)?, claims };
    let transactional_id = "t".into();
    Ok(LedgerRecord::Intent(key, Intent { transactional_id, two_phase: u.ratio(1, 8)?, groups: vec![part] }))
}
