//! Steps and states in words, for traces.

use super::state::{Coordinator, Entry, Keys, Mode, Phase, Record, Records, Stage, State, each};
use super::step::{Action, Pass, Then};
use std::fmt::Write;

/// A, B or C.
fn name(state: &State, at: u8) -> char {
    char::from(b'A' + state.names.members[usize::from(at)])
}

fn set(records: Records) -> String {
    let names: Vec<String> = each(records).map(|record| format!("r{record}")).collect();
    names.join("+")
}

fn key(state: &State, key: u8) -> String {
    format!("i{}", state.names.intents[usize::from(key)])
}

fn keys(state: &State, keys: Keys) -> String {
    let names: Vec<String> = (0..16).filter(|at| keys >> at & 1 == 1).map(|at| key(state, at)).collect();
    names.join("+")
}

fn then(then: Then) -> &'static str {
    match then {
        Then::Keep => "keeps the records",
        Then::Release => "releases the records",
    }
}

pub(super) fn action(state: &State, action: Action) -> String {
    let name = |at: u8| name(state, at);
    let phase = |at: u8| state.members[usize::from(at)].txn;
    match action {
        Action::Acquire(at) => {
            format!("{} asks; the broker acquires a record for it, the answer waits in the socket", name(at))
        }
        Action::Receive(at) => format!("{} takes the answer", name(at)),
        Action::SettleDone(at, record) => {
            format!("{} finds r{record} done in its picture and acknowledges it", name(at))
        }
        Action::Send(at) => format!("{} writes outputs and sends its intent", name(at)),
        Action::SendRelease(at) => format!("{} sends a RELEASE as its intent, without output", name(at)),
        Action::Arrive(at) => format!("{}'s intent reaches the ledger's leader", name(at)),
        Action::Read(at) => format!("{} reads the ledger", name(at)),
        Action::Reread(at) => format!("{} sees by the last stable offset that it has missed a marker", name(at)),
        Action::Pass(at) => format!("{} finds nothing against it and sends EndTxn(commit)", name(at)),
        Action::Abort(at, end) => format!("{} aborts for what it has found, {}", name(at), then(end)),
        Action::Fence(at, owner) => format!("{} sends InitProducerId for {}", name(at), name(owner)),
        Action::Commit(at) => {
            format!("{}'s EndTxn(commit of {}) reaches the coordinator", name(at), set(phase(at).claims))
        }
        Action::CommitUnheard(at, true) => format!("{}'s EndTxn is applied, its answer lost", name(at)),
        Action::CommitUnheard(at, false) => format!("{}'s EndTxn is lost", name(at)),
        Action::Init(at) => format!("{} sends InitProducerId for itself", name(at)),
        Action::Resolve(at, end) => format!("{} looks for its own marker; if aborted it {}", name(at), then(end)),
        Action::Marker(at) => format!("the coordinator writes {}'s marker", name(at)),
        Action::Acknowledge(at, _) => format!("{}'s acknowledgements after its commit are answered", name(at)),
        Action::Expire(record) => format!("the lock of r{record} expires"),
        Action::LeaderMove => "the share-partition's leader moves: all locks are lost".into(),
        Action::Timeout(at) => format!("the coordinator aborts {}'s transaction at its timeout", name(at)),
        Action::GiveUp(at, end) => format!("{} gives its transaction up, {}", name(at), then(end)),
        Action::Crash(at) => format!("{} is killed", name(at)),
        Action::Restart(at) => format!("{} starts anew and reads the ledger from its start", name(at)),
        Action::Compact(Pass::Records) => "compaction removes aborted batches and dead intents".into(),
        Action::Compact(_) => "compaction removes dead intents, their tombstones and markers".into(),
    }
}

/// One line: records, log, members.
pub(super) fn state(state: &State) -> String {
    let mut text = String::new();
    for (record, (at, outputs)) in state.records.iter().zip(state.outputs).enumerate() {
        let held = match at {
            Record::Available => "available".into(),
            Record::Acquired(by) => format!("acquired by {}", name(state, *by)),
            Record::Orphaned => "acquired by nobody alive".into(),
            Record::Staged(by) => format!("in the transaction of {}", name(state, *by)),
            Record::Acknowledged => "acknowledged".into(),
        };
        let _ = write!(text, "r{record} {held}, outputs {outputs}; ");
    }
    let entries: Vec<String> = state.log.iter().map(|entry| log_entry(state, *entry)).collect();
    let _ = write!(text, "log [{}]", entries.join(", "));
    for at in 0..state.members.len() as u8 {
        let _ = write!(text, "; {}", member(state, at));
    }
    text
}

fn log_entry(state: &State, entry: Entry) -> String {
    match entry {
        Entry::Hole => "-".into(),
        Entry::EmptyMarker => "(empty control batch)".into(),
        Entry::Marker { owner, commit } => {
            format!("{}:{}", name(state, owner), if commit { "COMMIT" } else { "ABORT" })
        }
        Entry::Data(batch) => {
            let mut text = format!("{}:", name(state, batch.owner));
            if let Some(at) = batch.key {
                let _ = write!(text, "{}({})", key(state, at), set(batch.claims));
            }
            if batch.tombstones != 0 {
                let _ = write!(text, " tombstones {}", keys(state, batch.tombstones));
            }
            text
        }
    }
}

fn member(state: &State, at: u8) -> String {
    let member = &state.members[usize::from(at)];
    let mut text = format!("{} ", name(state, at));
    match member.mode {
        Mode::Ledger => {}
        Mode::Both => text.push_str("(both) "),
        Mode::Native => text.push_str("(native) "),
    }
    if !member.up {
        text.push_str("dead");
        return text;
    }
    match member.txn.phase {
        Phase::Idle => text.push_str("idle"),
        phase => {
            let _ = write!(text, "{phase:?} {}({})", key(state, member.txn.key), set(member.txn.claims));
        }
    }
    match state.coordinators[usize::from(at)] {
        Coordinator::Empty => {}
        coordinator => {
            let _ = write!(text, " [{coordinator:?}]");
        }
    }
    if !member.epoch_ok {
        text.push_str(" fenced");
    }
    if member.reading {
        let _ = write!(text, " reading from the start, at {}", member.position);
    }
    for chunk in member.chunks.iter() {
        let stage = match chunk.stage {
            Stage::Held => "held",
            Stage::Staged => "staged",
            Stage::Acking => "acknowledging",
        };
        let _ = write!(text, " r{}:{stage}(ask {})", chunk.record, chunk.ask);
    }
    if let Some((record, ask)) = member.socket {
        let _ = write!(text, " r{record}:socket(ask {ask})");
    }
    let knows = |known: &super::state::Known| {
        let outcome = if known.committed { "committed" } else { "open" };
        let gone = if known.tombstoned != 0 { format!(" tombstoned@{}", known.tombstoned) } else { String::new() };
        format!("{}({}) {outcome}{gone}", key(state, known.key), set(known.claims))
    };
    let picture: Vec<String> = member.picture.iter().map(knows).collect();
    if !picture.is_empty() {
        let _ = write!(text, " knows {}", picture.join(", "));
    }
    text
}
