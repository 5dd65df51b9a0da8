//! A ledger partition made by hand: written, marked, compacted, and read as a broker would give it.

use super::super::*;
use crate::metadata::TopicIdPartition;
use crate::share_acks::AckType;
use bytes::{Bytes, BytesMut};
use kafka_share_wire::Uuid;
use kafka_share_wire::records::{BatchBuilder, BatchOptions, EndTxnMarker};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

pub(super) const TP: TopicIdPartition = TopicIdPartition { topic_id: Uuid([1; 16]), partition: 0 };
pub(super) const LOCK: Duration = Duration::from_secs(40);

pub(super) fn layout() -> Layout {
    Layout::new(1).unwrap()
}

pub(super) fn key(counter: u64) -> IntentKey {
    IntentKey { instance: Uuid([9; 16]), counter }
}

pub(super) fn accept(first: i64, last: i64) -> ClaimedRange {
    ClaimedRange { first, last, ack: AckType::Accept }
}

pub(super) fn claims(ranges: &[ClaimedRange]) -> Claims {
    Claims::from([(TP, ranges.to_vec())])
}

pub(super) fn intent_of(group: &str, generation: u64, claims: Claims) -> Intent {
    let part = GroupClaims { group: group.into(), generation, claims };
    Intent { transactional_id: "tid".into(), two_phase: false, native: false, groups: vec![part] }
}

pub(super) fn reader() -> LedgerReader {
    LedgerReader::new(ReaderConfig { group: "g".into(), layout: layout(), max_ranges: 10_000 })
}

pub(super) fn run(first: i64, last: i64, standing: Standing) -> Run {
    Run { first, last, standing }
}

pub(super) const DONE: Standing = Standing::Done(AckType::Accept);

/// Batches by base offset, with the offset behind each.
#[derive(Debug, Clone, Default)]
pub(super) struct Log {
    batches: BTreeMap<i64, (i64, Bytes)>,
    pub(super) end: i64,
}

impl Log {
    pub(super) fn push(&mut self, options: BatchOptions, records: &[(Bytes, Option<Bytes>)]) -> i64 {
        let base = self.end;
        let mut builder = BatchBuilder::new(BatchOptions { base_offset: base, ..options });
        for (key, value) in records {
            builder.append(0, Some(key), value.as_deref(), []).unwrap();
        }
        self.end += records.len() as i64;
        self.batches.insert(base, (self.end, builder.finish().unwrap().freeze()));
        base
    }

    fn transactional(producer_id: i64, epoch: i16) -> BatchOptions {
        BatchOptions { producer_id, producer_epoch: epoch, base_sequence: 0, transactional: true, ..Default::default() }
    }

    pub(super) fn records(&mut self, producer_id: i64, records: &[LedgerRecord]) -> i64 {
        let encoded: Vec<_> = records.iter().map(|r| r.encode(layout())).collect();
        self.push(Self::transactional(producer_id, 5), &encoded)
    }

    pub(super) fn outside(&mut self, record: &LedgerRecord) -> i64 {
        self.push(BatchOptions::default(), &[record.encode(layout())])
    }

    pub(super) fn intent(&mut self, producer_id: i64, counter: u64, ranges: &[ClaimedRange]) -> i64 {
        self.records(producer_id, &[LedgerRecord::Intent(key(counter), intent_of("g", 0, claims(ranges)))])
    }

    pub(super) fn tombstone(&mut self, producer_id: i64, counter: u64) -> i64 {
        self.records(producer_id, &[LedgerRecord::Tombstone(key(counter))])
    }

    pub(super) fn marker(&mut self, producer_id: i64, commit: bool) -> i64 {
        self.marker_at_epoch(producer_id, commit, 5)
    }

    pub(super) fn marker_at_epoch(&mut self, producer_id: i64, commit: bool, producer_epoch: i16) -> i64 {
        let base = self.end;
        let marker = EndTxnMarker { commit, coordinator_epoch: 0, producer_id, producer_epoch };
        let bytes = marker.write(base, 0, 0, BytesMut::new()).unwrap().freeze();
        self.end += 1;
        self.batches.insert(base, (self.end, bytes));
        base
    }

    /// An intent whose transaction was committed.
    pub(super) fn committed(&mut self, producer_id: i64, counter: u64, ranges: &[ClaimedRange]) -> i64 {
        let offset = self.intent(producer_id, counter, ranges);
        self.marker(producer_id, true);
        offset
    }

    /// The tombstone of an intent, committed.
    pub(super) fn forgotten(&mut self, producer_id: i64, counter: u64) {
        self.tombstone(producer_id, counter);
        self.marker(producer_id, true);
    }

    /// Compaction takes the batch at an offset away.
    pub(super) fn compact(&mut self, base: i64) {
        self.batches.remove(&base).expect("a batch");
    }

    /// Compaction leaves a batch without its records.
    pub(super) fn empty(&mut self, base: i64, control: bool, producer_id: i64) {
        let (next, _) = self.batches[&base];
        let options = BatchOptions { base_offset: base, control, ..Self::transactional(producer_id, 5) };
        let mut builder = BatchBuilder::new(options);
        builder.set_last_offset_delta((next - base - 1) as i32).unwrap();
        self.batches.insert(base, (next, builder.finish().unwrap().freeze()));
    }

    /// What a fetch at an offset brings.
    pub(super) fn fetch(&self, from: i64) -> Bytes {
        self.fetch_between(from, i64::MAX)
    }

    /// The end of the batch that has the offset before this one.
    pub(super) fn batch_end(&self, offset: usize) -> usize {
        let next = self.batches.values().map(|(next, _)| *next as usize).find(|next| *next >= offset);
        next.unwrap_or(offset)
    }

    pub(super) fn fetch_between(&self, from: i64, until: i64) -> Bytes {
        let wanted = self.batches.values().filter(|(next, _)| *next > from && *next <= until);
        wanted.flat_map(|(_, bytes)| bytes.to_vec()).collect()
    }
}

/// Does what a reader wants until it has read to the end.
pub(super) fn catch_up(reader: &mut LedgerReader, log: &Log, now: Instant) {
    loop {
        match reader.want() {
            Want::Bounds => reader.handle_bounds(0, log.end),
            Want::Records(offset) if offset >= log.end => return,
            Want::Records(offset) => reader.handle_records(now, log.fetch(offset), -1).unwrap(),
            Want::Nothing => panic!("{:?}", reader.error()),
        }
    }
}
