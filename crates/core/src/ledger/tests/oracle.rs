//! Random schedules, read in pieces, against a naive reading of the same log.

use super::super::*;
use super::log::*;
use crate::transaction::ProducerIdentity;
use proptest::prelude::*;
use std::time::Instant;

const PRODUCERS: i64 = 4;
const OFFSETS: i64 = 12;

#[derive(Debug, Clone)]
enum Step {
    Intent {
        producer: i64,
        first: i64,
        length: i64,
    },
    Tombstone {
        producer: i64,
        which: prop::sample::Index,
    },
    Marker {
        producer: i64,
        commit: bool,
    },
    Read {
        most: usize,
    },
    Ask,
    Settle {
        how_many: u64,
    },
    /// The reader's own producer ends its transaction, if one is open, and writes the next: tombstones, and an intent.
    Own {
        told: bool,
        commit: bool,
        tombstones: Vec<prop::sample::Index>,
        first: i64,
        length: i64,
    },
    /// Somebody ends the own producer's transaction.
    Fence,
}

fn step() -> impl Strategy<Value = Step> {
    let producer = || 1..=PRODUCERS;
    let index = any::<prop::sample::Index>;
    let own = (any::<bool>(), prop::bool::weighted(0.8), prop::collection::vec(index(), 0..3), 0..OFFSETS, 0..4_i64);
    prop_oneof![
        5 => own.prop_map(|(told, commit, tombstones, first, length)| Step::Own { told, commit, tombstones, first, length }),
        1 => Just(Step::Fence),
        3 => (producer(), 0..OFFSETS, 0..4_i64).prop_map(|(producer, first, length)| Step::Intent { producer, first, length }),
        2 => (producer(), index()).prop_map(|(producer, which)| Step::Tombstone { producer, which }),
        3 => (producer(), any::<bool>()).prop_map(|(producer, commit)| Step::Marker { producer, commit }),
        4 => (1..6_usize).prop_map(|most| Step::Read { most }),
        1 => Just(Step::Ask),
        1 => (0..3_u64).prop_map(|how_many| Step::Settle { how_many }),
    ]
}

#[derive(Debug, Clone, Copy)]
enum Event {
    Intent { producer: i64, counter: u64, first: i64, last: i64 },
    Tombstone { producer: i64, counter: u64 },
    Marker { producer: i64, commit: bool },
}

/// All there is to know, with no cleverness: each question goes through the whole log.
#[derive(Default)]
struct Oracle {
    events: Vec<Event>,
    /// Number of the next request when each event was read.
    read_at: Vec<u64>,
    lowest_ask: u64,
}

impl Oracle {
    /// How the transaction of an event ended, and where, as far as was read.
    fn end_of(&self, at: usize, of: i64) -> Option<(usize, bool)> {
        let read = &self.events[..self.read_at.len()];
        read.iter().enumerate().skip(at + 1).find_map(|(i, event)| match event {
            Event::Marker { producer, commit } if *producer == of => Some((i, *commit)),
            _ => None,
        })
    }

    fn freed(&self, counter: u64) -> bool {
        self.events.iter().enumerate().take(self.read_at.len()).any(|(at, event)| match event {
            Event::Tombstone { producer, counter: c } if *c == counter => {
                self.end_of(at, *producer).is_some_and(|(end, commit)| commit && self.read_at[end] <= self.lowest_ask)
            }
            _ => false,
        })
    }

    fn standing(&self, offset: i64) -> Standing {
        let mut open = false;
        for (at, event) in self.events.iter().enumerate().take(self.read_at.len()) {
            let Event::Intent { producer, counter, first, last } = *event else { continue };
            if !(first..=last).contains(&offset) || self.freed(counter) {
                continue;
            }
            match self.end_of(at, producer) {
                Some((_, true)) => return DONE,
                Some((_, false)) => {}
                None => open = true,
            }
        }
        if open { Standing::Open } else { Standing::Free }
    }

    /// Whether a transaction with its intent at a place may commit.
    fn may_commit(&self, own: usize) -> Option<Check> {
        let Event::Intent { first, last, .. } = self.events[own] else { return None };
        let mut waiting = false;
        for (at, event) in self.events.iter().enumerate().take(own) {
            let Event::Intent { producer, counter, first: f, last: l } = *event else { continue };
            if l < first || f > last || self.freed(counter) {
                continue;
            }
            match self.end_of(at, producer) {
                Some((_, true)) => return Some(Check::Conflicts(Vec::new())),
                Some((_, false)) => {}
                None => waiting = true,
            }
        }
        Some(if waiting { Check::Waiting } else { Check::Clear })
    }
}

/// Producer of the member that reads.
const OWN: i64 = 0;

/// The own intent whose transaction is open.
fn own_open(oracle: &Oracle) -> Option<u64> {
    let last = oracle.events.iter().rev().find_map(|event| match *event {
        Event::Intent { producer: OWN, counter, .. } => Some(Some(counter)),
        Event::Marker { producer: OWN, .. } => Some(None),
        _ => None,
    });
    last.flatten()
}

/// What the own producer writes, which the reader is told of; whether the reader has taken it as read.
fn write_own(
    (log, oracle, committed): (&mut Log, &mut Oracle, &mut Vec<u64>),
    reader: &mut LedgerReader,
    step: &Step,
) -> bool {
    let Step::Own { told, commit, tombstones, first, length } = step else { return false };
    if let Some(open) = own_open(oracle) {
        write(log, oracle, committed, &Step::Marker { producer: OWN, commit: *commit });
        if *told && *commit {
            reader.handle_committed(&key(open), false);
        }
    }
    let base = oracle.events.len() as i64;
    let mut records = Vec::new();
    for which in tombstones.iter().filter(|_| !committed.is_empty()) {
        let counter = committed[which.index(committed.len())];
        records.push(LedgerRecord::Tombstone(key(counter)));
        oracle.events.push(Event::Tombstone { producer: OWN, counter });
    }
    let (counter, last) = (oracle.events.len() as u64, first + length);
    records.push(LedgerRecord::Intent(key(counter), intent_of("g", 0, claims(&[accept(*first, last)]))));
    oracle.events.push(Event::Intent { producer: OWN, counter, first: *first, last });
    assert_eq!(log.records(OWN, &records), base);
    let owner = ProducerIdentity { id: OWN, epoch: 5 };
    let before = reader.position();
    reader.handle_own_records(Instant::now(), owner, (base..).zip(records).collect()).unwrap();
    let taken = reader.position() != before;
    assert!(!taken || reader.position() == Some(log.end));
    taken
}

fn write(log: &mut Log, oracle: &mut Oracle, committed: &mut Vec<u64>, step: &Step) {
    match step {
        Step::Intent { producer, first, length } => {
            let counter = oracle.events.len() as u64;
            let last = first + length;
            log.intent(*producer, counter, &[accept(*first, last)]);
            oracle.events.push(Event::Intent { producer: *producer, counter, first: *first, last });
        }
        Step::Tombstone { producer, which } if !committed.is_empty() => {
            let counter = committed[which.index(committed.len())];
            log.tombstone(*producer, counter);
            oracle.events.push(Event::Tombstone { producer: *producer, counter });
        }
        Step::Marker { producer, commit } => {
            let from =
                oracle.events.iter().rposition(|e| matches!(e, Event::Marker { producer: p, .. } if p == producer));
            for event in &oracle.events[from.map_or(0, |f| f + 1)..] {
                match event {
                    Event::Intent { producer: p, counter, .. } if p == producer && *commit => committed.push(*counter),
                    _ => {}
                }
            }
            log.marker(*producer, *commit);
            oracle.events.push(Event::Marker { producer: *producer, commit: *commit });
        }
        _ => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn reads_as_a_naive_reader_does(steps in prop::collection::vec(step(), 1..120)) {
        let now = Instant::now();
        let (mut log, mut oracle, mut committed) = (Log::default(), Oracle { lowest_ask: 1, ..Oracle::default() }, Vec::new());
        let mut reader = reader();
        reader.handle_bounds(0, 0);
        let (mut next_ask, mut position) = (1, 0);
        for step in steps {
            match step {
                Step::Read { most } => {
                    // Every event is one offset; a batch comes whole.
                    let until = log.batch_end((position + most).min(oracle.events.len()));
                    let bytes = log.fetch_between(position as i64, until as i64);
                    reader.handle_records(now, bytes, -1).unwrap();
                    oracle.read_at.resize(until, next_ask);
                    position = until;
                }
                Step::Ask => {
                    next_ask += 1;
                    reader.note_asked(next_ask);
                }
                Step::Settle { how_many } => {
                    oracle.lowest_ask = (oracle.lowest_ask + how_many).min(next_ask);
                    reader.set_lowest_ask(oracle.lowest_ask);
                }
                Step::Fence => {
                    if own_open(&oracle).is_some() {
                        write(&mut log, &mut oracle, &mut committed, &Step::Marker { producer: OWN, commit: false });
                    }
                }
                Step::Own { .. } => {
                    let read_all_but_marker = position + usize::from(own_open(&oracle).is_some()) >= oracle.events.len();
                    let taken = write_own((&mut log, &mut oracle, &mut committed), &mut reader, &step);
                    prop_assert!(read_all_but_marker || !taken, "something of others was not read");
                    if taken {
                        position = oracle.events.len();
                        oracle.read_at.resize(position, next_ask);
                    }
                }
                step => write(&mut log, &mut oracle, &mut committed, &step),
            }
            prop_assert_eq!(reader.floor(), 0);
            for offset in 0..OFFSETS + 4 {
                prop_assert_eq!(reader.standings(TP, offset, offset)[0].standing, oracle.standing(offset), "offset {}", offset);
            }
        }
        let runs = reader.standings(TP, 0, OFFSETS + 4);
        for (before, after) in runs.iter().zip(&runs[1..]) {
            prop_assert!(before.last + 1 == after.first && before.standing != after.standing);
        }
        for run in runs {
            for offset in run.first..=run.last {
                prop_assert_eq!(run.standing, oracle.standing(offset));
            }
        }
        for own in 0..position {
            let Event::Intent { producer, counter, .. } = oracle.events[own] else { continue };
            if oracle.end_of(own, producer).is_some() {
                continue;
            }
            let found = reader.check(now, now, &key(counter), own as i64, 1).unwrap();
            let found = if matches!(found, Check::Conflicts(_)) { Check::Conflicts(Vec::new()) } else { found };
            prop_assert_eq!(Some(found), oracle.may_commit(own));
        }
    }
}
