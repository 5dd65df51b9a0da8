//! Steps and states of the native backend in words, for traces.

use super::state::{Phase, RECORDS, Record, Records, State, bit};
use super::step::Action;
use crate::ledger::Coordinator;
use std::fmt::Write;

fn name(state: &State, at: u8) -> char {
    char::from(b'A' + state.names.0[usize::from(at)])
}

fn set(records: Records) -> String {
    let names: Vec<String> =
        (0..RECORDS as u8).filter(|record| records & bit(*record) != 0).map(|record| format!("r{record}")).collect();
    names.join("+")
}

pub(super) fn action(state: &State, action: Action) -> String {
    let name = |at: u8| name(state, at);
    match action {
        Action::Acquire(at, record) => {
            format!("the broker acquires r{record} for {}, the answer waits in the socket", name(at))
        }
        Action::Receive(at) => format!("{} takes the answer", name(at)),
        Action::Release(at) => format!("{} releases what it holds", name(at)),
        Action::Send(at) => format!("{} writes outputs and sends its acknowledgements to be staged", name(at)),
        Action::Arrive(at) => format!("{}'s acknowledgements reach the leader", name(at)),
        Action::Abort(at) => format!("{} aborts", name(at)),
        Action::Commit(at) => format!("{}'s EndTxn(commit) reaches the coordinator", name(at)),
        Action::CommitUnheard(at, true) => format!("{}'s EndTxn is applied, its answer lost", name(at)),
        Action::CommitUnheard(at, false) => format!("{}'s EndTxn is lost", name(at)),
        Action::Init(at) => format!("{} sends InitProducerId", name(at)),
        Action::MarkerArrives(place, copy) => {
            let marker = state.markers[usize::from(place)];
            let kind = if marker.commit { "COMMIT" } else { "ABORT" };
            let rest = if copy { ", and a copy is still under way" } else { "" };
            format!("{}'s {kind} marker of epoch {} arrives{rest}", name(marker.owner), marker.epoch)
        }
        Action::Expire(record) => format!("the lock of r{record} expires"),
        Action::LeaderMove => "the share-partition's leader moves".into(),
        Action::Timeout(at) => format!("the coordinator aborts {}'s transaction at its timeout", name(at)),
        Action::GiveUp(at) => format!("{} gives its transaction up", name(at)),
        Action::Crash(at) => format!("{} is killed", name(at)),
        Action::Restart(at) => format!("{} starts anew", name(at)),
    }
}

/// One line: records, markers under way, members.
pub(super) fn state(state: &State) -> String {
    let mut text = String::new();
    for (record, (at, outputs)) in state.records.iter().zip(state.outputs).enumerate() {
        let held = match at {
            Record::Available => "available".into(),
            Record::Acquired(by) => format!("acquired by {}", name(state, *by)),
            Record::Orphaned => "acquired by nobody alive".into(),
            Record::Pending { owner, epoch } => format!("pending by {} at epoch {epoch}", name(state, *owner)),
            Record::Acknowledged => "acknowledged".into(),
        };
        let _ = write!(text, "r{record} {held}, outputs {outputs}; ");
    }
    for marker in state.markers.iter() {
        let kind = if marker.commit { "COMMIT" } else { "ABORT" };
        let _ = write!(text, "{kind} of {} at epoch {} under way; ", name(state, marker.owner), marker.epoch);
    }
    for at in 0..state.members.len() as u8 {
        let member = &state.members[usize::from(at)];
        let _ = write!(text, "{} ", name(state, at));
        match member.phase {
            _ if !member.up => text.push_str("dead"),
            Phase::Idle => text.push_str("idle"),
            phase => {
                let _ = write!(text, "{phase:?} {}", set(member.staged));
            }
        }
        let _ = write!(text, " epoch {} of {}", member.epoch, state.epochs[usize::from(at)]);
        if state.coordinators[usize::from(at)] != Coordinator::Empty {
            let _ = write!(text, " [{:?}]", state.coordinators[usize::from(at)]);
        }
        if member.held != 0 {
            let _ = write!(text, " holds {}", set(member.held));
        }
        if let Some(record) = member.socket {
            let _ = write!(text, " r{record} in the socket");
        }
        text.push_str("; ");
    }
    text
}
