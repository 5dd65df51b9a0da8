//! What can happen with the native backend, and what it does.

use super::state::{Marker, Member, Phase, RECORDS, Record, Records, Stage, State, bit};
use super::{NativeConfig, NativePlanted};
use crate::faults::Fault;
use crate::ledger::Coordinator;

/// A step of somebody. Members are named by their place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    /// A ShareFetch acquires a record; the answer waits in the member's socket.
    Acquire(u8, u8),
    /// The member takes the answer.
    Receive(u8),
    /// The member gives back what it holds.
    Release(u8),
    /// The member writes the outputs of what it holds and sends its acknowledgements to be staged.
    Send(u8),
    /// The request to stage reaches the leader.
    Arrive(u8),
    /// The member aborts.
    Abort(u8),
    /// EndTxn(commit) reaches the coordinator and is answered.
    Commit(u8),
    /// EndTxn's answer is lost; whether the request was applied.
    CommitUnheard(u8, bool),
    /// InitProducerId.
    Init(u8),
    /// A marker reaches the share-partition; whether a copy of it is still under way.
    MarkerArrives(u8, bool),
    /// A lock expires.
    Expire(u8),
    /// The share-partition's leader moves: locks are lost, what is pending is not.
    LeaderMove,
    /// The coordinator aborts a transaction at its timeout.
    Timeout(u8),
    /// The member gives its transaction up: a request timed out, the application wants it so.
    GiveUp(u8),
    /// The process is killed.
    Crash(u8),
    /// It is started anew, with the same transactional id.
    Restart(u8),
}

pub(super) fn actions(config: &NativeConfig, state: &State, into: &mut Vec<Action>) {
    if state.ended() {
        return;
    }
    for at in 0..state.members.len() as u8 {
        if state.members[usize::from(at)].up {
            member_actions(config, state, at, into);
        } else {
            into.push(Action::Restart(at));
        }
        if !state.stages[usize::from(at)].is_empty() {
            into.push(Action::Arrive(at));
        }
        let open = state.coordinators[usize::from(at)] == Coordinator::Ongoing;
        if open && (config.may(state.faults, Fault::Timeout) || !state.members[usize::from(at)].up) {
            into.push(Action::Timeout(at));
        }
    }
    for place in 0..state.markers.len() as u8 {
        into.push(Action::MarkerArrives(place, false));
        let twice = config.transaction_version == 2 || config.planted(NativePlanted::SecondMarkerWithoutEpochs);
        if twice && config.may(state.faults, Fault::SecondMarker) && state.markers.has_room() {
            into.push(Action::MarkerArrives(place, true));
        }
    }
    for record in 0..RECORDS {
        let pending = matches!(state.records[record], Record::Pending { .. });
        let locked = matches!(state.records[record], Record::Acquired(_))
            || (pending && config.planted(NativePlanted::PendingExpires));
        if (locked && config.may(state.faults, Fault::Expire)) || state.abandoned(record) {
            into.push(Action::Expire(record as u8));
        }
    }
    let moved = |record: &Record| matches!(record, Record::Acquired(_) | Record::Pending { .. });
    if config.may(state.faults, Fault::LeaderMove) && state.records.iter().any(moved) {
        into.push(Action::LeaderMove);
    }
}

fn member_actions(config: &NativeConfig, state: &State, at: u8, into: &mut Vec<Action>) {
    let place = usize::from(at);
    let member = &state.members[place];
    if member.socket.is_some() {
        into.push(Action::Receive(at));
    } else if let Some(record) = acquirable(config, state, at) {
        into.push(Action::Acquire(at, record));
    }
    match member.phase {
        Phase::Idle => {
            let room = state.stages[place].is_empty()
                || (config.planted(NativePlanted::NoInitAfterAbort) && state.stages[place].has_room());
            let ready = !member.must_init && room && state.coordinators[place] == Coordinator::Empty;
            if ready && member.held != 0 {
                into.push(Action::Send(at));
            }
            if member.held != 0 {
                into.push(Action::Release(at));
            }
            let settled = matches!(state.coordinators[place], Coordinator::Empty | Coordinator::Ongoing);
            if member.must_init && settled {
                into.push(Action::Init(at));
            }
        }
        Phase::Staging => {}
        Phase::Committing => {
            into.push(Action::Commit(at));
            if config.may(state.faults, Fault::LostAnswer) {
                into.extend([Action::CommitUnheard(at, true), Action::CommitUnheard(at, false)]);
            }
        }
        Phase::Doomed => into.push(Action::Abort(at)),
    }
    if config.may(state.faults, Fault::GiveUp) && matches!(member.phase, Phase::Staging | Phase::Committing) {
        into.push(Action::GiveUp(at));
    }
    into.extend(config.may(state.faults, Fault::Crash).then_some(Action::Crash(at)));
}

/// The first record that a ShareFetch of this member acquires.
fn acquirable(config: &NativeConfig, state: &State, at: u8) -> Option<u8> {
    let free = |record: &Record| match record {
        Record::Available => true,
        Record::Pending { owner, .. } => config.planted(NativePlanted::PendingDelivered) && *owner != at,
        _ => false,
    };
    state.records.iter().position(free).map(|record| record as u8)
}

pub(super) fn is_fault(state: &State, action: Action) -> bool {
    match action {
        Action::Expire(record) => !state.abandoned(usize::from(record)),
        Action::Timeout(owner) => state.members[usize::from(owner)].up,
        Action::LeaderMove | Action::GiveUp(_) | Action::Crash(_) | Action::CommitUnheard(..) => true,
        Action::MarkerArrives(_, copy) => copy,
        _ => false,
    }
}

pub(super) fn next(config: &NativeConfig, before: &State, action: Action) -> Option<State> {
    let mut state = *before;
    state.faults -= u8::from(is_fault(before, action));
    match action {
        Action::Acquire(at, record) => {
            state.records[usize::from(record)] = Record::Acquired(at);
            state.members[usize::from(at)].socket = Some(record);
        }
        Action::Receive(at) => {
            let member = &mut state.members[usize::from(at)];
            member.held |= member.socket.take().map_or(0, bit);
        }
        Action::Release(at) => state.release(at),
        Action::Send(at) => state.send(usize::from(at)),
        Action::Arrive(at) => state.arrive(config, at),
        Action::Abort(at) | Action::GiveUp(at) => state.give_up(config, usize::from(at)),
        Action::Commit(at) => {
            let done = state.end_by_commit(config, usize::from(at));
            state.finish(usize::from(at), !done);
        }
        Action::CommitUnheard(at, applied) => {
            let _ = applied && state.end_by_commit(config, usize::from(at));
            state.finish(usize::from(at), true);
        }
        Action::Init(at) => state.init(config, usize::from(at)),
        Action::MarkerArrives(place, copy) => state.marker_arrives(config, usize::from(place), copy),
        Action::Expire(record) => state.records[usize::from(record)] = Record::Available,
        Action::LeaderMove => {
            let lost = config.planted(NativePlanted::PendingLostAtLeaderMove);
            let locked = |record: &&mut Record| match record {
                Record::Acquired(_) | Record::Orphaned => true,
                Record::Pending { .. } => lost,
                _ => false,
            };
            state.records.iter_mut().filter(locked).for_each(|record| *record = Record::Available);
        }
        Action::Timeout(at) => state.abort(config, usize::from(at), true),
        Action::Crash(at) => {
            let epoch = state.members[usize::from(at)].epoch;
            state.members[usize::from(at)] = Member { epoch, ..Member::default() };
            let own = |record: &&mut Record| **record == Record::Acquired(at);
            state.records.iter_mut().filter(own).for_each(|record| *record = Record::Orphaned);
            state.stages[usize::from(at)].iter_mut().for_each(|stage| stage.awaited = false);
        }
        Action::Restart(at) => {
            let epoch = state.members[usize::from(at)].epoch;
            state.members[usize::from(at)] = Member { up: true, must_init: true, epoch, ..Member::default() };
        }
    }
    let state = state.normal();
    (state != *before).then_some(state)
}

impl State {
    fn release(&mut self, at: u8) {
        let held = std::mem::take(&mut self.members[usize::from(at)].held);
        for record in (0..RECORDS as u8).filter(|record| held & bit(*record) != 0) {
            let state = &mut self.records[usize::from(record)];
            if *state == Record::Acquired(at) {
                *state = Record::Available;
            }
        }
    }

    fn send(&mut self, at: usize) {
        let member = &mut self.members[at];
        member.phase = Phase::Staging;
        member.staged = std::mem::take(&mut member.held);
        self.coordinators[at] = Coordinator::Ongoing;
        self.stages[at].push(Stage { epoch: member.epoch, records: member.staged, awaited: true });
    }

    /// The leader stages all of a request's acknowledgements, or none.
    fn arrive(&mut self, config: &NativeConfig, at: u8) {
        let place = usize::from(at);
        let stage = self.stages[place].remove(0);
        let verified = self.coordinators[place] == Coordinator::Ongoing && self.epochs[place] == stage.epoch;
        let verified = verified || config.planted(NativePlanted::NotVerified);
        let below = if config.planted(NativePlanted::StagedBelowStart) { self.below_start() } else { 0 };
        let mine = |record: u8| self.records[usize::from(record)] == Record::Acquired(at);
        let records = (0..RECORDS as u8).filter(|record| stage.records & bit(*record) != 0);
        let wanted: Records = records.filter(|record| below & bit(*record) == 0).fold(0, |all, r| all | bit(r));
        let good = verified && (0..RECORDS as u8).filter(|r| wanted & bit(*r) != 0).all(mine);
        for record in (0..RECORDS as u8).filter(|record| good && wanted & bit(*record) != 0) {
            let applied = config.planted(NativePlanted::AppliedBeforeMarker);
            let pending = Record::Pending { owner: at, epoch: stage.epoch };
            self.records[usize::from(record)] = if applied { Record::Acknowledged } else { pending };
        }
        if stage.awaited {
            self.members[place].phase = if good { Phase::Committing } else { Phase::Doomed };
        }
    }

    fn give_up(&mut self, config: &NativeConfig, at: usize) {
        if self.coordinators[at] == Coordinator::Ongoing && self.epochs[at] == self.members[at].epoch {
            self.abort(config, at, false);
        }
        let waiting = !self.stages[at].is_empty();
        self.stages[at].iter_mut().for_each(|stage| stage.awaited = false);
        let stale = self.epochs[at] != self.members[at].epoch;
        self.finish(at, stale || (waiting && !config.planted(NativePlanted::NoInitAfterAbort)));
    }

    /// The transaction is over for its member. What it has staged comes again if it was not committed.
    fn finish(&mut self, at: usize, must_init: bool) {
        let member = &mut self.members[at];
        member.phase = Phase::Idle;
        member.staged = 0;
        member.must_init |= must_init;
    }

    /// The coordinator aborts. By force it does so with a new epoch that the member does not know.
    fn abort(&mut self, config: &NativeConfig, at: usize, by_force: bool) {
        self.coordinators[at] = Coordinator::PrepareAbort;
        self.send_marker(config, at, false, by_force);
    }

    fn end_by_commit(&mut self, config: &NativeConfig, at: usize) -> bool {
        if self.coordinators[at] != Coordinator::Ongoing || self.epochs[at] != self.members[at].epoch {
            return false;
        }
        self.coordinators[at] = Coordinator::PrepareCommit;
        for record in (0..RECORDS as u8).filter(|record| self.members[at].staged & bit(*record) != 0) {
            let outputs = &mut self.outputs[usize::from(record)];
            *outputs = (*outputs + 1).min(2);
        }
        self.send_marker(config, at, true, false);
        true
    }

    fn send_marker(&mut self, config: &NativeConfig, at: usize, commit: bool, by_force: bool) {
        let bumps = by_force || config.transaction_version == 2;
        self.epochs[at] += u8::from(bumps);
        if !by_force && bumps {
            self.members[at].epoch = self.epochs[at];
        }
        self.markers.push(Marker { owner: at as u8, epoch: self.epochs[at], commit });
    }

    fn init(&mut self, config: &NativeConfig, at: usize) {
        if self.coordinators[at] == Coordinator::Ongoing {
            return self.abort(config, at, true);
        }
        self.epochs[at] += 1;
        self.members[at].epoch = self.epochs[at];
        self.members[at].must_init = false;
    }

    fn marker_arrives(&mut self, config: &NativeConfig, place: usize, copy: bool) {
        let marker = self.markers[place];
        if !copy {
            self.markers.remove(place);
        }
        for at in 0..RECORDS {
            if let Record::Pending { owner, epoch } = self.records[at]
                && owner == marker.owner
                && self.decides(marker, epoch, config.transaction_version, config.planted)
            {
                let kept = !marker.commit && config.planted(NativePlanted::AbortLeavesPending);
                let back = if kept { self.records[at] } else { Record::Available };
                self.records[at] = if marker.commit { Record::Acknowledged } else { back };
            }
        }
        // The answer: the coordinator has nothing more to do for this transaction.
        let owner = usize::from(marker.owner);
        let prepared = matches!(self.coordinators[owner], Coordinator::PrepareCommit | Coordinator::PrepareAbort);
        if prepared && self.epochs[owner] == marker.epoch {
            self.coordinators[owner] = Coordinator::Empty;
        }
    }
}
