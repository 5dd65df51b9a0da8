//! What can happen, and what it does.

use super::config::{Config, Planted};
use super::log::key_bit;
use super::reader::Verdict;
use super::state::{Chunk, Coordinator, Keys, Member, Mine, Mode, Phase, Record, Stage, State, Txn, Wire, bit, each};
use crate::faults::Fault;

/// What becomes of the records of an aborted transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Then {
    /// The member tries them again.
    Keep,
    /// It gives them back.
    Release,
}

/// A step of somebody. Members are named by their place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    /// A ShareFetch acquires a record; the answer waits in the member's socket.
    Acquire(u8),
    /// The member takes the answer.
    Receive(u8),
    /// Step 0: the member acknowledges a record that its picture knows as done.
    SettleDone(u8, u8),
    /// The member opens a transaction with the outputs of what it holds, and sends the intent.
    Send(u8),
    /// Planted: it sends a RELEASE as an intent, without output.
    SendRelease(u8),
    /// The intent's request reaches the ledger, or is refused.
    Arrive(u8),
    /// The member reads the ledger.
    Read(u8),
    /// The last stable offset tells a reader that it has missed a marker: it begins again.
    Reread(u8),
    /// The check finds nothing: EndTxn(commit) is sent.
    Pass(u8),
    /// The member aborts its transaction.
    Abort(u8, Then),
    /// The member fences the owner of an open intent.
    Fence(u8, u8),
    /// EndTxn(commit) reaches the coordinator and is answered.
    Commit(u8),
    /// EndTxn's answer is lost; whether the request was applied.
    CommitUnheard(u8, bool),
    /// InitProducerId by the member itself.
    Init(u8),
    /// After InitProducerId the own intent's marker decides.
    Resolve(u8, Then),
    /// The coordinator writes a marker.
    Marker(u8),
    /// A committed transaction's acknowledgements are sent and answered; the place of its intent in the member's list.
    Acknowledge(u8, u8),
    /// A lock expires.
    Expire(u8),
    /// The share-partition's leader moves: all locks are lost.
    LeaderMove,
    /// The coordinator aborts a transaction at its timeout.
    Timeout(u8),
    /// The member gives its transaction up: a request timed out, the application wants it so.
    GiveUp(u8, Then),
    /// The process is killed.
    Crash(u8),
    /// It is started anew, with the same transactional id.
    Restart(u8),
    /// Compaction passes a reader that is behind.
    Compact(Pass),
}

/// How far compaction goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Pass {
    /// Aborted batches and dead intents.
    Records,
    /// Also what is left of them: tombstones and markers.
    Deletes,
    /// The same, but emptied control batches stay.
    DeletesKeepingBatches,
}

const THEN: [Then; 2] = [Then::Keep, Then::Release];

/// Everything that can happen in this state.
pub(super) fn actions(config: &Config, state: &State, into: &mut Vec<Action>) {
    if state.ended() {
        return;
    }
    for at in 0..state.members.len() as u8 {
        if state.members[usize::from(at)].up {
            consumer_actions(config, state, at, into);
            transaction_actions(config, state, at, into);
        } else {
            into.push(Action::Restart(at));
        }
        broker_actions(config, state, at, into);
    }
    for record in 0..state.records.len() {
        let live = matches!(state.records[record], Record::Acquired(_)) && config.may(state.faults, Fault::Expire);
        if live || state.abandoned(record) {
            into.push(Action::Expire(record as u8));
        }
    }
    let locked = |record: &&Record| matches!(record, Record::Acquired(_));
    if config.may(state.faults, Fault::LeaderMove) && state.records.iter().filter(locked).count() > 1 {
        into.push(Action::LeaderMove);
    }
    if state.compactions > 0 {
        into.extend([Pass::Records, Pass::Deletes].map(Action::Compact));
        into.extend(config.empty_markers.then_some(Action::Compact(Pass::DeletesKeepingBatches)));
    }
}

fn consumer_actions(config: &Config, state: &State, at: u8, into: &mut Vec<Action>) {
    let member = &state.members[usize::from(at)];
    let room = member.chunks.len() < usize::from(config.held);
    if member.socket.is_some() {
        into.push(Action::Receive(at));
    } else if room
        && (!member.reading || config.planted(Planted::AskedWhileReading))
        && state.records.contains(&Record::Available)
    {
        into.push(Action::Acquire(at));
    }
    let held = member.chunks.iter().filter(|chunk| chunk.stage == Stage::Held && !member.reading);
    let done = held.filter(|chunk| member.done(chunk.record)).fold(0, |all, chunk| all | bit(chunk.record));
    into.extend(each(done).map(|record| Action::SettleDone(at, record)));
    if member.reads() && usize::from(member.position) < state.log.len() {
        into.push(Action::Read(at));
    }
    if member.reads()
        && config.one_batch(true)
        && !config.planted(Planted::NoReread)
        && state.must_reread(usize::from(at))
    {
        into.push(Action::Reread(at));
    }
    let acking = (0..member.mine.len()).filter(|place| !member.mine[*place].acknowledged);
    into.extend(acking.map(|place| Action::Acknowledge(at, place as u8)));
}

fn transaction_actions(config: &Config, state: &State, at: u8, into: &mut Vec<Action>) {
    let place = usize::from(at);
    let member = &state.members[place];
    match member.txn.phase {
        Phase::Idle => {
            let wires = state.wires[place].is_empty() || config.planted(Planted::NoInitAfterAbort);
            let ready = member.epoch_ok && state.coordinators[place] == Coordinator::Empty && wires;
            if ready && !staged(config, member).is_empty() && state.wires[place].has_room() {
                into.push(Action::Send(at));
                into.extend(config.planted(Planted::ReleaseIntent).then_some(Action::SendRelease(at)));
            }
        }
        Phase::Writing => {}
        Phase::Checking => match member.check(config) {
            Verdict::Free if member.tombstones_confirmed() => into.push(Action::Pass(at)),
            Verdict::Abort => into.extend(THEN.map(|then| Action::Abort(at, then))),
            Verdict::Free | Verdict::Unread | Verdict::Wait => {}
        },
        Phase::Committing => {
            into.push(Action::Commit(at));
            if config.may(state.faults, Fault::LostAnswer) && member.epoch_ok {
                into.extend([Action::CommitUnheard(at, true), Action::CommitUnheard(at, false)]);
            }
        }
        Phase::Doomed => into.push(Action::Abort(at, Then::Keep)),
        Phase::Unknown => {
            let read = !member.reading && usize::from(member.position) == state.log.len();
            if member.epoch_ok && (read || !member.reads()) {
                into.extend(THEN.map(|then| Action::Resolve(at, then)));
            }
        }
    }
    if config.may(state.faults, Fault::GiveUp) && matches!(member.txn.phase, Phase::Writing | Phase::Checking) {
        into.extend(THEN.map(|then| Action::GiveUp(at, then)));
    }
    let settled = matches!(state.coordinators[place], Coordinator::Empty | Coordinator::Ongoing);
    let tries = !config.planted(Planted::FencedForEver);
    if tries && !member.epoch_ok && settled && matches!(member.txn.phase, Phase::Idle | Phase::Unknown) {
        into.push(Action::Init(at));
    }
    for owner in (0..state.members.len() as u8).filter(|owner| *owner != at) {
        if can_fence(config, state, place, owner) {
            into.push(Action::Fence(at, owner));
        }
    }
    into.extend(config.may(state.faults, Fault::Crash).then_some(Action::Crash(at)));
}

fn broker_actions(config: &Config, state: &State, at: u8, into: &mut Vec<Action>) {
    let place = usize::from(at);
    if !state.wires[place].is_empty() {
        into.push(Action::Arrive(at));
    }
    match state.coordinators[place] {
        Coordinator::Ongoing => {
            let timeout = config.may(state.faults, Fault::Timeout) || !state.members[place].up;
            into.extend(timeout.then_some(Action::Timeout(at)));
        }
        Coordinator::PrepareCommit | Coordinator::PrepareAbort => into.push(Action::Marker(at)),
        Coordinator::Empty => {}
    }
}

/// Whether an open intent of `owner` stands in the member's way, and fencing would do something.
fn can_fence(config: &Config, state: &State, at: usize, owner: u8) -> bool {
    let member = &state.members[at];
    let open = |known: &&super::state::Known| {
        let wanted = match member.txn.phase {
            Phase::Checking => member.txn.claims,
            _ => member.chunks.iter().filter(|c| c.stage == Stage::Held).fold(0, |all, c| all | bit(c.record)),
        };
        known.owner == owner && !known.committed && known.claims & wanted != 0
    };
    if member.txn.phase == Phase::Checking && member.check(config) != Verdict::Wait {
        return false;
    }
    let takes_part = !member.reading && matches!(member.txn.phase, Phase::Checking | Phase::Idle);
    let ongoing = state.coordinators[usize::from(owner)] == Coordinator::Ongoing;
    let allowed = config.may(state.faults, Fault::Fence) || !state.members[usize::from(owner)].up;
    let before_own = member.picture.iter().take_while(|k| member.txn.phase == Phase::Idle || k.key != member.txn.key);
    let found = before_own.filter(open).collect::<Vec<_>>();
    if config.planted(Planted::VerdictFromFencing) {
        return takes_part && !found.is_empty() && (!ongoing || allowed);
    }
    takes_part && ongoing && allowed && found.iter().any(|known| known.current)
}

/// The chunks that the next transaction takes, by place: at most one for each record.
fn staged(config: &Config, member: &Member) -> crate::list::List<u8, 3> {
    let mut taken = 0;
    let ready = |place: &u8| {
        let Chunk { record, stage, .. } = member.chunks[usize::from(*place)];
        let barred = member.done(record) || (config.set_aside && member.contested(record));
        let once = taken & bit(record) == 0 || config.planted(Planted::TwiceInOneTransaction);
        let takes = stage == Stage::Held && !barred && once && !member.reading;
        taken |= if takes { bit(record) } else { 0 };
        takes
    };
    (0..member.chunks.len() as u8).filter(ready).collect()
}

/// Whether an action is a fault, or a step that a fair run need not take.
pub(super) fn is_fault(state: &State, action: Action) -> bool {
    match action {
        Action::Expire(record) => !state.abandoned(usize::from(record)),
        Action::Timeout(owner) => state.members[usize::from(owner)].up,
        Action::Fence(_, owner) => {
            let owner = usize::from(owner);
            state.members[owner].up && state.coordinators[owner] == Coordinator::Ongoing
        }
        Action::LeaderMove | Action::GiveUp(..) | Action::Crash(_) | Action::CommitUnheard(..) => true,
        Action::Compact(_) => true,
        _ => false,
    }
}

/// The state after an action; none if it changes nothing.
pub(super) fn next(config: &Config, before: &State, action: Action) -> Option<State> {
    let state = apply(config, before, action)?.normal(config);
    (state != *before).then_some(state)
}

/// The state after an action as it is: with all its names, and with what nobody looks at any more.
pub(super) fn apply(config: &Config, before: &State, action: Action) -> Option<State> {
    let mut state = *before;
    state.faults -= u8::from(is_fault(before, action) && !matches!(action, Action::Compact(_)));
    match action {
        Action::Acquire(at) | Action::Receive(at) | Action::SettleDone(at, _) | Action::Acknowledge(at, _) => {
            state.consume(config, usize::from(at), action);
        }
        Action::Send(at) => state.send(config, usize::from(at), true),
        Action::SendRelease(at) => state.send(config, usize::from(at), false),
        Action::Arrive(at) => state.arrive(config, usize::from(at)),
        Action::Read(at) => state.read(config, usize::from(at)),
        Action::Reread(at) => state.reread(usize::from(at)),
        Action::Pass(at) => state.members[usize::from(at)].txn.phase = Phase::Committing,
        Action::Abort(at, then) | Action::GiveUp(at, then) => state.give_up(config, usize::from(at), then),
        Action::Fence(at, owner) => state.fence(config, usize::from(at), owner),
        Action::Commit(at) => {
            if state.end_by_commit(usize::from(at)) {
                state.finish_commit(config, usize::from(at));
            } else {
                state.lose_outcome(usize::from(at));
            }
        }
        Action::CommitUnheard(at, applied) => {
            state.members[usize::from(at)].txn.committed = applied && state.end_by_commit(usize::from(at));
            state.lose_outcome(usize::from(at));
        }
        Action::Init(at) => state.init(usize::from(at)),
        Action::Resolve(at, then) => state.resolve(config, usize::from(at), then),
        Action::Marker(at) => state.write_marker(at, config.transaction_version == 1),
        Action::Expire(record) => state.records[usize::from(record)] = Record::Available,
        Action::LeaderMove => {
            let locked = |record: &&mut Record| matches!(record, Record::Acquired(_) | Record::Orphaned);
            state.records.iter_mut().filter(locked).for_each(|record| *record = Record::Available);
        }
        Action::Timeout(at) => state.abort_by_force(usize::from(at)),
        Action::Crash(at) => {
            let mode = state.members[usize::from(at)].mode;
            state.members[usize::from(at)] = Member { mode, ..Member::default() };
            state.orphan(usize::from(at));
        }
        Action::Restart(at) => {
            let mode = state.members[usize::from(at)].mode;
            state.members[usize::from(at)] = Member { mode, up: true, next_ask: 1, ..Member::default() };
            state.read_from_start(usize::from(at));
            if !config.one_batch(true) && state.members[usize::from(at)].reads() {
                state.read(config, usize::from(at));
            }
        }
        Action::Compact(pass) => {
            state.compact(pass);
            if state.log == before.log {
                return None;
            }
            state.compactions -= 1;
        }
    }
    Some(state)
}

impl State {
    fn consume(&mut self, config: &Config, at: usize, action: Action) {
        match action {
            Action::Acquire(_) => {
                let member = &self.members[at];
                let ask = member.next_ask;
                let record = self.acquire(at);
                self.members[at].socket = record.map(|record| (record, ask));
                self.members[at].next_ask += 1;
            }
            Action::Receive(_) => {
                let member = &mut self.members[at];
                if let Some((record, mut ask)) = member.socket.take() {
                    if config.planted(Planted::AskCountedAtAnswer) {
                        ask = member.next_ask;
                        member.next_ask += 1;
                    }
                    member.chunks.push(Chunk { record, stage: Stage::Held, ask });
                }
            }
            Action::SettleDone(_, record) => {
                let _ = self.acknowledge(at, record);
                let chunks = &mut self.members[at].chunks;
                let held = |chunk: &Chunk| chunk.record == record && chunk.stage == Stage::Held;
                if let Some(place) = chunks.iter().position(held) {
                    chunks.remove(place);
                }
            }
            Action::Acknowledge(_, place) => self.acknowledge_mine(config, at, usize::from(place)),
            _ => {}
        }
    }

    /// The ordinary acknowledgements after a commit. If one fails, the intent stays for ever, which harms nobody.
    fn acknowledge_mine(&mut self, config: &Config, at: usize, place: usize) {
        let mine = self.members[at].mine[place];
        self.release(at, mine.claims & !mine.outputs);
        let mut confirmed = true;
        for record in each(mine.claims & mine.outputs) {
            confirmed &= self.acknowledge(at, record);
        }
        let member = &mut self.members[at];
        member.chunks.retain(|chunk| chunk.stage != Stage::Acking || mine.claims & bit(chunk.record) == 0);
        if confirmed || config.planted(Planted::TombstoneBeforeConfirmed) {
            let mine = &mut member.mine[place];
            (mine.acknowledged, mine.confirmed) = (true, true);
            return;
        }
        if mine.tombstoning && matches!(member.txn.phase, Phase::Writing | Phase::Checking) {
            member.txn.phase = Phase::Doomed;
        }
        member.mine.remove(place);
    }

    fn send(&mut self, config: &Config, at: usize, with_output: bool) {
        let key = self.fresh_key();
        self.names.intents[usize::from(key)] = self.names.next;
        self.names.next = self.names.next.wrapping_add(1);
        let below_start = self.below_start();
        let member = &mut self.members[at];
        let mut txn = Txn { phase: Phase::Writing, key, ..Txn::default() };
        for place in staged(config, member).iter() {
            let chunk = &mut member.chunks[usize::from(*place)];
            chunk.stage = Stage::Staged;
            txn.twice |= txn.claims & bit(chunk.record);
            txn.claims |= bit(chunk.record);
        }
        txn.outputs = if with_output { txn.claims } else { 0 };
        member.txn = txn;
        let mode = member.mode;
        self.coordinators[at] = Coordinator::Ongoing;
        if mode != Mode::Ledger {
            let staged = self.stage(at, txn.claims);
            if mode == Mode::Native || !staged {
                self.members[at].txn.phase = if staged { Phase::Committing } else { Phase::Doomed };
                return;
            }
        }
        let member = &mut self.members[at];
        let early = config.early_tombstones || config.planted(Planted::TombstoneBeforeConfirmed);
        let mut tombstones: Keys = 0;
        for mine in member.mine.iter_mut().filter(|mine| mine.confirmed || early) {
            mine.tombstoning = true;
            tombstones |= key_bit(mine.key);
        }
        if config.foreign_tombstones {
            let own = |key: u8| member.mine.iter().any(|mine| mine.key == key);
            for known in member.picture.iter().filter(|known| known.committed && !own(known.key)) {
                let due = known.tombstoned == 0 && known.tombstoning == 0 && known.claims & !below_start == 0;
                tombstones |= if due { key_bit(known.key) } else { 0 };
            }
        }
        self.wires[at].push(Wire { current: true, key, claims: txn.claims, tombstones });
    }

    fn arrive(&mut self, config: &Config, at: usize) {
        let wire = self.wires[at].remove(0);
        let taken = wire.current && self.coordinators[at] == Coordinator::Ongoing;
        let offset = if taken { self.append(at as u8, wire) } else { 0 };
        let member = &mut self.members[at];
        if member.txn.phase != Phase::Writing || member.txn.key != wire.key {
            return;
        }
        if taken {
            (member.txn.phase, member.txn.reach) = (Phase::Checking, offset + 1);
            // Without the fault that is one of the reader's steps, where it has read all before.
            if config.planted(Planted::OwnReadBlind) && member.reads() && member.position <= offset {
                member.position = offset;
                self.read(config, at);
            }
        } else {
            member.unstage();
            member.txn = Txn::default();
        }
    }

    fn give_up(&mut self, config: &Config, at: usize, then: Then) {
        let key = self.members[at].txn.key;
        self.end_by_abort(at);
        if self.wires[at].iter().any(|wire| wire.key == key) && !config.planted(Planted::NoInitAfterAbort) {
            self.members[at].epoch_ok = false;
        }
        self.end_aborted(at, then);
    }

    fn end_aborted(&mut self, at: usize, then: Then) {
        if self.members[at].mode != Mode::Ledger {
            // What the broker had refused to take into the transaction.
            self.release(at, self.members[at].txn.claims);
        } else if then == Then::Release {
            let member = &mut self.members[at];
            let given = |chunk: &Chunk| chunk.stage == Stage::Staged && !member.done(chunk.record);
            let records = member.chunks.iter().filter(|chunk| given(chunk)).fold(0, |all, c| all | bit(c.record));
            member.chunks.retain(|chunk| chunk.stage != Stage::Staged || records & bit(chunk.record) == 0);
            self.release(at, records);
        }
        let member = &mut self.members[at];
        self.misreported |= member.txn.committed;
        member.unstage();
        member.txn = Txn::default();
    }

    fn fence(&mut self, config: &Config, at: usize, owner: u8) {
        if self.coordinators[usize::from(owner)] == Coordinator::Ongoing {
            self.abort_by_force(usize::from(owner));
        }
        if config.planted(Planted::VerdictFromFencing) {
            self.members[at].picture.retain(|known| known.committed || known.owner != owner);
        }
    }

    fn finish_commit(&mut self, config: &Config, at: usize) {
        let member = &mut self.members[at];
        let Txn { key, claims, outputs, .. } = member.txn;
        member.mine.retain(|mine| !mine.tombstoning);
        if member.mode != Mode::Ledger {
            // Nothing is left to be told.
            member.chunks.retain(|chunk| chunk.stage != Stage::Staged);
            if member.mode == Mode::Both {
                let told = Mine { acknowledged: true, confirmed: true, ..Mine::default() };
                member.mine.push(Mine { key, claims, outputs, ..told });
            }
            member.txn = Txn::default();
            return;
        }
        let confirmed = config.planted(Planted::TombstoneBeforeConfirmed);
        member.mine.push(Mine { key, claims, outputs, confirmed, ..Mine::default() });
        for chunk in member.chunks.iter_mut().filter(|chunk| chunk.stage == Stage::Staged) {
            chunk.stage = Stage::Acking;
        }
        member.txn = Txn::default();
    }

    fn lose_outcome(&mut self, at: usize) {
        self.members[at].txn.phase = Phase::Unknown;
        self.members[at].epoch_ok = false;
    }

    fn init(&mut self, at: usize) {
        if self.coordinators[at] == Coordinator::Ongoing {
            return self.abort_by_force(at);
        }
        self.outdate(at as u8);
        self.members[at].epoch_ok = true;
    }

    fn resolve(&mut self, config: &Config, at: usize, then: Then) {
        let member = &self.members[at];
        let known = member.picture.iter().any(|known| known.committed && known.key == member.txn.key);
        // Who reads no ledger has the coordinator tell.
        let found = if member.reads() { known } else { member.txn.committed };
        if found && !config.planted(Planted::VerdictFromInit) {
            self.finish_commit(config, at);
        } else {
            self.end_aborted(at, then);
        }
    }
}

impl Member {
    /// Variant of early tombstones: all that this transaction tombstones must be confirmed before it commits.
    fn tombstones_confirmed(&self) -> bool {
        self.mine.iter().all(|mine| !mine.tombstoning || mine.confirmed)
    }
}
