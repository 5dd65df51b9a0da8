//! The reader that applications run, beside the model's: random walks through the model, each log read by both.
//!
//! What the model shows of its reader holds of the real one as far as they agree here: what each record's standing is, what
//! a check says, when a gap drops what was asked for, and how a transaction of unknown outcome ended.

mod bytes_of_log;

use bytes_of_log::{GROUP, Log, TP, intent_key, layout, producer_id};
use kafka_share_core::ledger::{Check, LedgerReader, ReaderConfig, Standing, Verdict as Ending, Want};
use kafka_share_core::share_acks::AckType;
use kafka_share_simulation::explore::Checked;
use kafka_share_simulation::ledger::{Action, Config, Phase, Stage, State, Verdict};
use stateright::Model;
use std::time::{Duration, Instant};

const WALKS: u64 = 6000;
const STEPS: usize = 150;

/// xorshift64*.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) as usize % limit
    }
}

/// How often things were compared that may go wrong.
#[derive(Debug, Default)]
struct Seen {
    steps: usize,
    done: usize,
    open: usize,
    drops: usize,
    kept: usize,
    clear: usize,
    waiting: usize,
    aborts: usize,
    endings: usize,
}

struct Walk {
    config: Config,
    state: State,
    log: Log,
    readers: Vec<Option<LedgerReader>>,
    floors: Vec<u64>,
    now: Instant,
    trace: Vec<String>,
}

fn reader() -> LedgerReader {
    LedgerReader::new(ReaderConfig { group: GROUP.into(), layout: layout(), max_ranges: 1000 })
}

impl Walk {
    fn new(config: Config) -> Self {
        let state = config.init_states().remove(0);
        let readers = state.members.iter().map(|_| Some(reader())).collect();
        let floors = vec![0; state.members.len()];
        let mut walk =
            Self { config, state, log: Log::default(), readers, floors, now: Instant::now(), trace: Vec::new() };
        (0..walk.readers.len()).for_each(|at| walk.read(at));
        walk
    }

    /// Whether the model's small lists may overflow with another step.
    fn is_full(&self) -> bool {
        let full = |m: &kafka_share_simulation::ledger::Member| m.picture.len() >= 7 || m.mine.len() >= 3;
        self.state.log.len() >= 14 || self.state.members.iter().any(full) || self.state.names.next > 14
    }

    fn step(&mut self, action: Action, seen: &mut Seen) {
        self.trace.push(self.config.describe(&self.state, &action));
        let before = self.state;
        let Some(after) = self.config.step(&before, action) else { return };
        if let Action::Resolve(at, _) = action {
            self.compare_ending(usize::from(at), seen);
        }
        self.state = after;
        self.log.follow(&self.state);
        self.tell_reader(&before, action);
        seen.steps += 1;
        for at in 0..self.readers.len() {
            if self.readers[at].is_some() {
                self.compare(at, &before, action, seen);
            }
        }
    }

    /// What the real client would tell its reader after this step.
    fn tell_reader(&mut self, before: &State, action: Action) {
        let state = self.state;
        match action {
            Action::Crash(at) => self.readers[usize::from(at)] = None,
            Action::Restart(at) => {
                self.readers[usize::from(at)] = Some(reader());
                self.floors[usize::from(at)] = 0;
                self.read(usize::from(at));
            }
            Action::Read(at) => self.read(usize::from(at)),
            Action::Send(at) => {
                let key = intent_key(&state, state.members[usize::from(at)].txn.key);
                self.reader(usize::from(at)).watch(key, producer_id(at));
            }
            Action::Arrive(at) => {
                let txn = state.members[usize::from(at)].txn;
                if txn.phase == Phase::Checking && before.members[usize::from(at)].txn.phase == Phase::Writing {
                    let offset = self.log.intent_before(txn.reach);
                    self.reader(usize::from(at)).handle_written(&intent_key(&state, txn.key), offset);
                }
            }
            _ => {}
        }
        for (member, reader) in state.members.iter().zip(self.readers.iter_mut()) {
            if let Some(reader) = reader {
                reader.note_asked(u64::from(member.next_ask));
                reader.set_lowest_ask(u64::from(member.lowest_ask()));
            }
        }
    }

    fn reader(&mut self, at: usize) -> &mut LedgerReader {
        self.readers[at].as_mut().expect("a live member")
    }

    fn read(&mut self, at: usize) {
        let end = self.log.end();
        loop {
            let reader = self.readers[at].as_mut().expect("a live member");
            match reader.want() {
                Want::Bounds => reader.handle_bounds(0, end),
                Want::Records(offset) if offset >= end => return,
                Want::Records(offset) => {
                    let records = self.log.fetch(offset, false);
                    if records.is_empty() {
                        // What was at the end is gone: a broker gives nothing until something follows.
                        return;
                    }
                    reader.handle_records(self.now, records, -1).expect("a good log");
                }
                Want::Nothing => panic!("{:?}", reader.error()),
            }
        }
    }

    fn compare(&mut self, at: usize, before: &State, action: Action, seen: &mut Seen) {
        let member = self.state.members[at];
        let trace = self.trace.join("\n");
        let reader = self.readers[at].as_mut().expect("a live member");
        for record in 0..2 {
            let standing = reader.standings(TP, i64::from(record), i64::from(record))[0].standing;
            let expected = match (member.done(record), member.contested(record)) {
                (true, _) => Standing::Done(AckType::Accept),
                (false, true) => Standing::Open,
                (false, false) => Standing::Free,
            };
            assert_eq!(standing, expected, "r{record} for member {at}\n{trace}");
            seen.done += usize::from(member.done(record));
            seen.open += usize::from(member.contested(record));
        }
        seen.kept += member.picture.iter().filter(|known| known.tombstoned != 0).count();
        let floor = std::mem::replace(&mut self.floors[at], reader.floor());
        let dropped = matches!(action, Action::Read(_)) && before.members[at].holds() & !member.holds() != 0;
        assert_eq!(reader.floor() > floor, dropped, "floor {floor} and {} of member {at}\n{trace}", reader.floor());
        if dropped {
            assert_eq!(reader.floor(), u64::from(member.next_ask), "member {at}\n{trace}");
            seen.drops += 1;
        }
        if member.txn.phase == Phase::Checking {
            self.compare_check(at, seen);
        }
    }

    fn compare_check(&mut self, at: usize, seen: &mut Seen) {
        let member = self.state.members[at];
        let verdict = self.config.verdict(&self.state, at);
        let staged = member.chunks.iter().filter(|chunk| chunk.stage == Stage::Staged);
        let lowest = staged.map(|chunk| u64::from(chunk.ask)).min().expect("a transaction has records");
        let (key, offset) = (intent_key(&self.state, member.txn.key), self.log.intent_before(member.txn.reach));
        let (now, until) = (self.now, self.now + Duration::from_secs(1));
        let check = self.reader(at).check(now, until, &key, offset, lowest).expect("a good log");
        let same = match verdict {
            Verdict::Unread => check == Check::Reading,
            Verdict::Free => check == Check::Clear,
            Verdict::Wait => check == Check::Waiting,
            Verdict::Abort => matches!(check, Check::Conflicts(_) | Check::Ended(Ending::Aborted)),
        };
        assert!(same, "{verdict:?} and {check:?} for member {at}\n{}", self.trace.join("\n"));
        seen.clear += usize::from(verdict == Verdict::Free);
        seen.waiting += usize::from(verdict == Verdict::Wait);
        seen.aborts += usize::from(verdict == Verdict::Abort);
    }

    fn compare_ending(&mut self, at: usize, seen: &mut Seen) {
        let member = self.state.members[at];
        let key = intent_key(&self.state, member.txn.key);
        let committed = member.picture.iter().any(|known| known.committed && known.key == member.txn.key);
        let expected = if committed { Ending::Committed } else { Ending::Aborted };
        let ending = self.reader(at).verdict(&key);
        // Compaction may have taken an aborted intent before the reader came to it.
        let lost = ending == Some(Ending::Lost) && !committed;
        assert!(lost || ending == Some(expected), "{ending:?}, not {expected:?}\n{}", self.trace.join("\n"));
        seen.endings += 1;
    }
}

fn walk(seed: u64, seen: &mut Seen) {
    let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    let config = Config {
        members: 2 + random.below(2) as u8,
        faults: random.below(8) as u8,
        compactions: random.below(6) as u8,
        held: 2 + random.below(2) as u8,
        transaction_version: 1 + random.below(2) as u8,
        set_aside: random.below(2) == 0,
        empty_markers: random.below(2) == 0,
        foreign_tombstones: random.below(2) == 0,
        ..Config::default()
    };
    let mut walk = Walk::new(config);
    let mut actions = Vec::new();
    for _ in 0..STEPS {
        actions.clear();
        config.actions(&walk.state, &mut actions);
        if actions.is_empty() || walk.is_full() {
            break;
        }
        let mut action = actions[random.below(actions.len())];
        if config.is_fault(&walk.state, &action) && random.below(3) > 0 {
            action = actions[random.below(actions.len())];
        }
        walk.step(action, seen);
    }
}

#[test]
fn the_real_reader_agrees_with_the_models() {
    let mut seen = Seen::default();
    (0..WALKS).for_each(|seed| walk(seed, &mut seen));
    println!("{seen:?}");
    let Seen { steps, done, open, drops, kept, clear, waiting, aborts, endings } = seen;
    for count in [steps / 100, done, open, drops, kept, clear, waiting, aborts, endings] {
        assert!(count > 10, "the walks did not come by everything: {seen:?}");
    }
}
