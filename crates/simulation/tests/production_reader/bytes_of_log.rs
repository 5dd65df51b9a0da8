//! The model's ledger partition as the bytes that a broker would give.

use bytes::{Bytes, BytesMut};
use kafka_share_core::ledger::{ClaimedRange, Claims, GroupClaims, Intent, IntentKey, Layout, LedgerRecord};
use kafka_share_core::metadata::TopicIdPartition;
use kafka_share_core::share_acks::AckType;
use kafka_share_simulation::ledger::{Batch, Entry, State};
use kafka_share_wire::Uuid;
use kafka_share_wire::records::{BatchBuilder, BatchOptions, EndTxnMarker};

pub(crate) const TP: TopicIdPartition = TopicIdPartition { topic_id: Uuid([1; 16]), partition: 0 };
pub(crate) const GROUP: &str = "g";

pub(crate) fn layout() -> Layout {
    Layout::new(1).expect("one partition")
}

/// The name of a model's key: those are used again, names are not.
pub(crate) fn intent_key(state: &State, key: u8) -> IntentKey {
    IntentKey { instance: Uuid([9; 16]), counter: u64::from(state.names.intents[usize::from(key)]) }
}

/// Producer ids are the members' places.
pub(crate) fn producer_id(owner: u8) -> i64 {
    1000 + i64::from(owner)
}

/// A batch that is in the log, or was.
struct Written {
    base: i64,
    next: i64,
    entry: Entry,
    /// Its records by model key, each with its offset delta; the intent is the last.
    records: Vec<(u8, i32, LedgerRecord)>,
    bytes: Bytes,
}

/// The log, kept in step with the model's.
#[derive(Default)]
pub(crate) struct Log {
    written: Vec<Written>,
}

impl Log {
    /// The offset behind the last batch.
    pub(crate) fn end(&self) -> i64 {
        self.written.last().map_or(0, |batch| batch.next)
    }

    /// The offset of the model's place in the log.
    pub(crate) fn offset(&self, place: u8) -> i64 {
        self.written.get(usize::from(place)).map_or(self.end(), |batch| batch.base)
    }

    /// The offset of the intent in the batch before a place.
    pub(crate) fn intent_before(&self, place: u8) -> i64 {
        self.offset(place) - 1
    }

    /// What a fetch at an offset brings: everything, or one batch.
    pub(crate) fn fetch(&self, from: i64, one: bool) -> Bytes {
        let there = self.written.iter().filter(|batch| batch.next > from && !batch.bytes.is_empty());
        there.take(if one { 1 } else { usize::MAX }).flat_map(|batch| batch.bytes.to_vec()).collect()
    }

    /// Takes over what the model has appended or compacted.
    pub(crate) fn follow(&mut self, state: &State) {
        for (place, entry) in state.log.iter().enumerate() {
            if place == self.written.len() {
                let base = self.end();
                self.written.push(new_batch(state, base, *entry));
            }
            let written = &mut self.written[place];
            let same = match (written.entry, *entry) {
                (Entry::Data(old), Entry::Data(new)) => Batch { current: new.current, ..old } == new,
                (old, new) => old == new,
            };
            if !same {
                written.compact(*entry);
            }
            written.entry = *entry;
        }
    }
}

fn options(owner: u8, base_offset: i64) -> BatchOptions {
    let producer_id = producer_id(owner);
    BatchOptions {
        base_offset,
        producer_id,
        producer_epoch: 5,
        base_sequence: 0,
        transactional: true,
        ..Default::default()
    }
}

fn new_batch(state: &State, base: i64, entry: Entry) -> Written {
    let mut records = Vec::new();
    match entry {
        Entry::Data(batch) => {
            let tombstones = (0..16).filter(|key| batch.tombstones >> key & 1 == 1);
            records.extend(tombstones.map(|key| (key, LedgerRecord::Tombstone(intent_key(state, key)))));
            let key = batch.key.expect("a new batch has its intent");
            records.push((key, LedgerRecord::Intent(intent_key(state, key), intent(batch.claims))));
        }
        Entry::Marker { owner, commit } => {
            let marker =
                EndTxnMarker { commit, coordinator_epoch: 0, producer_id: producer_id(owner), producer_epoch: 6 };
            let bytes = marker.write(base, 0, 0, BytesMut::new()).expect("a marker").freeze();
            return Written { base, next: base + 1, entry, records: Vec::new(), bytes };
        }
        Entry::Hole | Entry::EmptyMarker => unreachable!("nothing is written that is gone"),
    }
    let records: Vec<_> = records.into_iter().zip(0..).map(|((key, record), delta)| (key, delta, record)).collect();
    let next = base + records.len() as i64;
    let mut written = Written { base, next, entry, records, bytes: Bytes::new() };
    written.encode();
    written
}

fn intent(claims: u8) -> Intent {
    let range = |record: i64| ClaimedRange { first: record, last: record, ack: AckType::Accept };
    let ranges = (0..2).filter(|record| claims >> record & 1 == 1).map(range).collect();
    let part = GroupClaims { group: GROUP.into(), generation: 0, claims: Claims::from([(TP, ranges)]) };
    Intent { transactional_id: "tid".into(), two_phase: false, native: false, groups: vec![part] }
}

impl Written {
    fn compact(&mut self, now: Entry) {
        match now {
            Entry::Hole => self.bytes = Bytes::new(),
            Entry::Data(batch) => {
                self.records.retain(|(key, _, record)| match record {
                    LedgerRecord::Tombstone(_) => batch.tombstones >> key & 1 == 1,
                    _ => batch.key == Some(*key),
                });
                self.entry = now;
                self.encode();
            }
            Entry::EmptyMarker => {
                let Entry::Marker { owner, .. } = self.entry else { panic!("only markers become empty") };
                let mut builder = BatchBuilder::new(BatchOptions { control: true, ..options(owner, self.base) });
                builder.set_last_offset_delta(0).expect("a delta");
                self.bytes = builder.finish().expect("a batch").freeze();
            }
            Entry::Marker { .. } => panic!("a marker does not change"),
        }
    }

    fn encode(&mut self) {
        let Entry::Data(batch) = self.entry else { return };
        let mut builder = BatchBuilder::new(options(batch.owner, self.base));
        for (_, delta, record) in &self.records {
            let (key, value) = record.encode(layout());
            builder.append_at(*delta, 0, Some(&key), value.as_deref(), []).expect("a record");
        }
        builder.set_last_offset_delta((self.next - self.base - 1) as i32).expect("a delta");
        self.bytes = builder.finish().expect("a batch").freeze();
    }
}
