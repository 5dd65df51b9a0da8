//! The ledger: records of anybody decoded, and a reader between an arbitrary log, an arbitrary compaction and a consumer.
#![no_main]

use arbitrary::Unstructured;
use bytes::{Bytes, BytesMut};
use kafka_share_core::ledger::{
    ClaimedRange, Claims, GroupClaims, Intent, IntentKey, Layout, LedgerReader, LedgerRecord, ReaderConfig, Want,
};
use kafka_share_core::metadata::TopicIdPartition;
use kafka_share_core::share_acks::AckType;
use kafka_share_core::transaction::ProducerIdentity;
use kafka_share_wire::Uuid;
use kafka_share_wire::records::{BatchBuilder, BatchOptions, EndTxnMarker};
use libfuzzer_sys::fuzz_target;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

const TP: TopicIdPartition = TopicIdPartition { topic_id: Uuid([1; 16]), partition: 0 };
const MAX_RANGES: usize = 64;

fuzz_target!(|data: &[u8]| {
    let layout = Layout::new(1).expect("one partition");
    let (key, value) = data.split_at(data.len().min(25));
    for value in [Some(value), None] {
        if let Ok(record) = LedgerRecord::decode(Some(key), value, layout) {
            let (key, value) = record.encode(layout);
            assert_eq!(LedgerRecord::decode(Some(&key), value.as_deref(), layout), Ok(record));
        }
    }
    // The error of Unstructured is only its end.
    let _ = walk(&mut Unstructured::new(data), layout);
});

enum Step<'a> {
    Intent {
        producer: u8,
        counter: u8,
        ranges: Vec<(u8, u8, bool)>,
        two_phase: bool,
        native: bool,
    },
    /// The reader's own producer, 9, which nobody else uses: ends its transaction, writes the next, and tells the reader;
    /// or tells it something else.
    Own {
        counter: u8,
        tombstone: Option<u8>,
        first: u8,
        commit: bool,
        lie: Option<(i64, i64)>,
    },
    Left(u8),
    Tombstone {
        producer: u8,
        counter: u8,
    },
    Marker {
        producer: u8,
        commit: bool,
    },
    Generation(u8),
    Strange {
        key: &'a [u8],
        value: Option<&'a [u8]>,
        transactional: bool,
    },
    Compact(u8),
    Read {
        most: u8,
        stable: i8,
    },
    OutOfRange,
    Ask,
    Settle(u8),
    Look {
        first: u8,
        length: u8,
    },
    Wait {
        first: u8,
        length: u8,
    },
    Check {
        counter: u8,
        offset: u8,
        lowest_ask: u8,
    },
    Committed(u8),
    Confirmed {
        first: u8,
        length: u8,
    },
    Later(u16),
}

fn step<'a>(u: &mut Unstructured<'a>) -> arbitrary::Result<Step<'a>> {
    Ok(match u.int_in_range(0..=17)? {
        0 | 1 => Step::Intent {
            producer: u.arbitrary()?,
            counter: u.arbitrary()?,
            ranges: u.arbitrary()?,
            two_phase: u.ratio(1, 8)?,
            native: u.ratio(1, 4)?,
        },
        16 | 17 => Step::Own {
            counter: u.arbitrary()?,
            tombstone: u.arbitrary()?,
            first: u.arbitrary()?,
            commit: u.ratio(7, 8)?,
            lie: if u.ratio(1, 16)? { Some(u.arbitrary()?) } else { None },
        },
        4 if u.ratio(1, 8)? => Step::Left(u.arbitrary()?),
        2 => Step::Tombstone { producer: u.arbitrary()?, counter: u.arbitrary()? },
        3 => Step::Marker { producer: u.arbitrary()?, commit: u.arbitrary()? },
        4 if u.ratio(1, 8)? => Step::Generation(u.arbitrary()?),
        4 if u.ratio(1, 8)? => {
            Step::Strange { key: u.arbitrary()?, value: u.arbitrary()?, transactional: u.arbitrary()? }
        }
        5 => Step::Compact(u.arbitrary()?),
        6 if u.ratio(1, 8)? => Step::OutOfRange,
        7 => Step::Ask,
        8 => Step::Settle(u.arbitrary()?),
        9 => Step::Look { first: u.arbitrary()?, length: u.arbitrary()? },
        10 => Step::Wait { first: u.arbitrary()?, length: u.arbitrary()? },
        11 => Step::Check { counter: u.arbitrary()?, offset: u.arbitrary()?, lowest_ask: u.arbitrary()? },
        12 => Step::Committed(u.arbitrary()?),
        13 => Step::Confirmed { first: u.arbitrary()?, length: u.arbitrary()? },
        14 => Step::Later(u.arbitrary()?),
        _ => Step::Read { most: u.arbitrary()?, stable: u.arbitrary()? },
    })
}

struct World {
    reader: LedgerReader,
    layout: Layout,
    log: BTreeMap<i64, (i64, Bytes)>,
    end: i64,
    now: Instant,
    asked: u64,
    /// The own intent that is open.
    own: Option<IntentKey>,
}

const OWN: i64 = 9;

fn key(counter: u8) -> IntentKey {
    IntentKey { instance: Uuid([9; 16]), counter: counter.into() }
}

fn walk(u: &mut Unstructured<'_>, layout: Layout) -> arbitrary::Result<()> {
    let config = ReaderConfig { group: "g".into(), layout, max_ranges: MAX_RANGES };
    let reader = LedgerReader::new(config);
    let mut world = World { reader, layout, log: BTreeMap::new(), end: 0, now: Instant::now(), asked: 1, own: None };
    let mut floor = 0;
    for _ in 0..200 {
        world.step(step(u)?);
        let reader = &mut world.reader;
        assert!(
            reader.floor() >= floor && reader.floor() <= world.asked,
            "nobody is told to drop what is not asked for"
        );
        floor = reader.floor();
        assert!(reader.error().is_some() || reader.ranges() <= MAX_RANGES);
        assert_eq!(reader.error().is_some(), reader.want() == Want::Nothing);
        while reader.poll_fence(world.now).is_some() {}
        assert!(reader.next_deadline().is_none_or(|at| at > world.now));
    }
    Ok(())
}

impl World {
    fn push(&mut self, producer: u8, transactional: bool, key: &[u8], value: Option<&[u8]>) {
        let options = BatchOptions {
            base_offset: self.end,
            producer_id: if transactional { producer.into() } else { -1 },
            producer_epoch: if transactional { 0 } else { -1 },
            base_sequence: if transactional { 0 } else { -1 },
            transactional,
            ..BatchOptions::default()
        };
        let mut builder = BatchBuilder::new(options);
        builder.append(0, Some(key), value, []).expect("a small record");
        self.put(builder.finish().expect("a batch").freeze());
    }

    fn put(&mut self, batch: Bytes) {
        self.log.insert(self.end, (self.end + 1, batch));
        self.end += 1;
    }

    fn marker(&mut self, producer_id: i64, commit: bool) {
        let marker = EndTxnMarker { commit, coordinator_epoch: 0, producer_id, producer_epoch: 1 };
        let batch = marker.write(self.end, 0, 0, BytesMut::new()).expect("a marker").freeze();
        self.put(batch);
    }

    /// The reader must know of its own records what it would have read.
    fn write_own(&mut self, own: IntentKey, tombstone: Option<u8>, range: ClaimedRange, lie: Option<(i64, i64)>) {
        let groups = vec![GroupClaims { group: "g".into(), generation: 0, claims: Claims::from([(TP, vec![range])]) }];
        let intent = Intent { transactional_id: "t".into(), two_phase: false, native: false, groups };
        let mut records: Vec<LedgerRecord> = tombstone.map(|t| LedgerRecord::Tombstone(key(t))).into_iter().collect();
        records.push(LedgerRecord::Intent(own, intent));
        let base = self.end;
        for record in &records {
            self.record(OWN as u8, true, record);
        }
        let unread = self.log.range(self.reader.position().unwrap_or(0)..base).count();
        let gone = self.reader.position().is_none_or(|p| (p..base).any(|offset| !self.log.contains_key(&offset)));
        let before = self.reader.position();
        let placed = records.into_iter().zip(base..).map(|(record, offset)| match lie {
            Some((at, step)) => (at.wrapping_add(step.wrapping_mul(offset - base)), record),
            None => (offset, record),
        });
        let owner = ProducerIdentity { id: OWN, epoch: 0 };
        let _ = self.reader.handle_own_records(self.now, owner, placed.collect());
        if lie.is_none() && self.reader.position() != before && self.reader.error().is_none() {
            assert!(unread <= 1 && !gone, "only its own marker may be unread");
            assert_eq!(self.reader.position(), Some(self.end));
        }
    }

    fn record(&mut self, producer: u8, transactional: bool, record: &LedgerRecord) {
        let (key, value) = record.encode(self.layout);
        self.push(producer, transactional, &key, value.as_deref());
    }

    fn step(&mut self, step: Step<'_>) {
        let span = |first: u8, length: u8| (i64::from(first), i64::from(first) + i64::from(length));
        match step {
            Step::Intent { producer, counter, ranges, two_phase, native } => {
                let mut next = 0;
                let mut claimed = Vec::new();
                for (distance, length, accept) in ranges.into_iter().take(4) {
                    let first = next + i64::from(distance % 16);
                    let last = first + i64::from(length % 16);
                    next = last + 1;
                    claimed.push(ClaimedRange {
                        first,
                        last,
                        ack: if accept { AckType::Accept } else { AckType::Reject },
                    });
                }
                if claimed.is_empty() {
                    return;
                }
                let groups =
                    vec![GroupClaims { group: "g".into(), generation: 0, claims: Claims::from([(TP, claimed)]) }];
                let intent = Intent { transactional_id: "t".into(), two_phase, native, groups };
                self.record(producer % 4, true, &LedgerRecord::Intent(key(counter), intent));
            }
            Step::Tombstone { producer, counter } => {
                self.record(producer % 4, true, &LedgerRecord::Tombstone(key(counter)));
            }
            Step::Marker { producer, commit } => {
                self.marker(i64::from(producer % 4), commit);
            }
            Step::Own { counter, tombstone, first, commit, lie } => {
                if let Some(open) = self.own {
                    self.marker(OWN, commit);
                    if commit {
                        self.reader.handle_committed(&open, false);
                    }
                }
                let own = IntentKey { instance: Uuid([8; 16]), counter: counter.into() };
                self.own = Some(own);
                let first = i64::from(first);
                let range = ClaimedRange { first, last: first + 3, ack: AckType::Accept };
                self.write_own(own, tombstone, range, lie);
            }
            Step::Left(generation) => {
                let left = LedgerRecord::Left { group: "g".into(), generation: u64::from(generation % 4) };
                self.record(0, false, &left);
            }
            Step::Generation(generation) => {
                let raised = LedgerRecord::Generation { group: "g".into(), generation: u64::from(generation % 4) };
                self.record(0, false, &raised);
            }
            Step::Strange { key, value, transactional } => self.push(0, transactional, key, value),
            Step::Compact(which) => {
                let at = self.log.keys().nth(usize::from(which)).copied();
                at.and_then(|at| self.log.remove(&at));
            }
            Step::Read { most, stable } => self.read(usize::from(most % 16) + 1, stable.into()),
            Step::OutOfRange => self.reader.handle_out_of_range(),
            Step::Ask => {
                self.asked += 1;
                self.reader.note_asked(self.asked);
            }
            Step::Settle(lowest) => self.reader.set_lowest_ask(lowest.into()),
            Step::Look { first, length } => {
                let (first, last) = span(first, length);
                let mut next = first;
                for run in self.reader.standings(TP, first, last) {
                    assert!(run.first == next && run.last >= run.first);
                    next = run.last + 1;
                }
                assert_eq!(next, last + 1, "every offset has one standing");
            }
            Step::Wait { first, length } => {
                let (first, last) = span(first, length);
                self.reader.wait_for(self.now, self.now + Duration::from_secs(60), TP, first, last);
            }
            Step::Check { counter, offset, lowest_ask } => {
                let until = self.now + Duration::from_secs(60);
                let _ = self.reader.check(self.now, until, &key(counter), offset.into(), lowest_ask.into());
            }
            Step::Committed(counter) => self.reader.handle_committed(&key(counter), false),
            Step::Confirmed { first, length } => {
                let (first, last) = span(first, length);
                self.reader.handle_confirmed(TP, first, last);
                let taken = self.reader.take_tombstones(3);
                self.reader.return_tombstones(taken);
            }
            Step::Later(millis) => self.now += Duration::from_millis(millis.into()),
        }
    }

    fn read(&mut self, most: usize, stable: i64) {
        match self.reader.want() {
            Want::Nothing => {}
            // Compaction leaves the log's start where it is.
            Want::Bounds => self.reader.handle_bounds(0, self.end),
            Want::Records(offset) => {
                let wanted = self.log.values().filter(|(next, _)| *next > offset).take(most);
                let bytes: Bytes = wanted.flat_map(|(_, batch)| batch.to_vec()).collect();
                let _ = self.reader.handle_records(self.now, bytes, stable);
            }
        }
    }
}
