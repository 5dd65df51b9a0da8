//! The ledger's model: all holds within its bounds, and every broken rule is found.

use kafka_share_simulation::explore::{Checked, Limits, Report, Trace, explore};
use kafka_share_simulation::faults::{Fault, Kinds};
use kafka_share_simulation::ledger::{
    Action, Config, Mode, NOT_LOST, ONCE, Pass as Cleaning, Planted, SingleBatches, State, TOLD_RIGHT,
};
use stateright::{Checker, HasDiscoveries, Model};

/// What a broken rule must break; none: progress.
fn breaks(planted: Planted) -> Option<&'static str> {
    match planted {
        Planted::CheckSkipped
        | Planted::CheckBehindOffset
        | Planted::OwnReadBlind
        | Planted::ReadCommitted
        | Planted::OwnIntentsIgnored
        | Planted::ForgetAtTombstone
        | Planted::AskCountedAtAnswer
        | Planted::AskCountedAtTombstone
        | Planted::AskedWhileReading
        | Planted::TombstoneBeforeConfirmed
        | Planted::AbortedTombstoneCounts
        | Planted::VerdictFromFencing
        | Planted::TwiceInOneTransaction
        | Planted::NativeBesideLedger => Some(ONCE),
        Planted::NoGapRule
        | Planted::PictureKeptAtGap
        | Planted::EmptyMarkerSkipped
        | Planted::SuspectsTrusted
        | Planted::ReleaseIntent
        | Planted::NoInitAfterAbort => Some(NOT_LOST),
        Planted::VerdictFromInit => Some(TOLD_RIGHT),
        Planted::NoReread | Planted::FencedForEver => None,
    }
}

fn all_of(config: Config) -> Report {
    explore(&config, Limits { states: 20_000_000 }, |_, _| {})
}

fn holds(config: Config) {
    let report = all_of(config);
    println!("{config:?}: {report}");
    assert!(report.holds(), "{config:?}: {report}");
}

/// stateright's breadth-first search finds each by its shortest trace.
#[test]
fn every_broken_rule_is_found_with_its_trace() {
    for planted in Planted::ALL.into_iter().filter(|planted| planted.is_quickly_found()) {
        let Some(property) = breaks(planted) else { continue };
        let checker = planted.config().checker().finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join();
        let path = checker.discovery(property).unwrap_or_else(|| panic!("{planted:?} is not found"));
        let trace = Trace::of_path(checker.model(), path);
        println!("{planted:?}, {} states: {property}\n{trace}", checker.unique_state_count());
        assert!(trace.steps.len() > 5, "{planted:?}: {trace}");
    }
}

#[test]
fn broken_progress_is_found_with_its_trace() {
    for planted in Planted::ALL.into_iter().filter(|planted| breaks(*planted).is_none()) {
        let report = all_of(planted.config());
        println!("{planted:?}: {report}");
        assert!(report.complete && report.broken.is_none(), "{planted:?}: {report}");
        let (count, trace) = report.stuck.unwrap_or_else(|| panic!("{planted:?} is not found"));
        assert!(count > 0 && !trace.steps.is_empty());
    }
}

/// Tombstones that wait for the confirmation are written for records that are done: then it does no harm to count them
/// early. Rules that are stricter than they need be here, and needed where tombstones are written early.
#[test]
fn counting_tombstones_early_is_harmless_while_they_wait_for_confirmation() {
    for planted in [Planted::AbortedTombstoneCounts, Planted::AskCountedAtTombstone] {
        holds(Config { planted: Some(planted), compactions: 0, ..Config::default() });
    }
}

#[test]
fn two_members_any_fault_and_compaction() {
    holds(Config::default());
}

#[test]
fn two_members_in_variants() {
    let base = Config { compactions: 0, ..Config::default() };
    holds(Config { transaction_version: 1, set_aside: false, held: 3, ..base });
    holds(Config { foreign_tombstones: true, ..base });
    holds(Config { early_tombstones: true, ..base });
}

#[test]
fn two_members_two_lost_locks_and_compaction() {
    holds(Config { faults: 2, kinds: Kinds::of(&[Fault::Expire]), ..Config::default() });
}

#[test]
fn three_members() {
    let base = Config { members: 3, compactions: 0, ..Config::default() };
    holds(Config { kinds: Kinds::of(&[Fault::Expire, Fault::Fence]), ..base });
    holds(Config { faults: 0, compactions: 1, ..base });
}

/// On the way from the ledger to native acknowledgements: each with those that it meets.
#[test]
fn members_that_move() {
    use Mode::{Both, Ledger, Native};
    let three = Config { members: 3, compactions: 0, kinds: Kinds::of(&[Fault::Expire]), ..Config::default() };
    holds(Config { modes: [Both, Both, Native], ..three });
    for pair in [[Ledger, Both], [Both, Both], [Both, Native], [Native, Native]] {
        let modes = [pair[0], pair[1], Ledger];
        holds(Config { modes, ..Config::default() });
        holds(Config { modes, faults: 2, kinds: Kinds::of(&[Fault::Expire]), compactions: 0, ..Config::default() });
    }
}

/// Compaction between any two batches that a reader fetches.
#[test]
fn reading_in_steps() {
    let steps = Config { single_batches: SingleBatches::Always, empty_markers: true, ..Config::default() };
    holds(Config { members: 1, faults: 2, compactions: 2, held: 3, ..steps });
    let kinds = Kinds::of(&[Fault::Crash]);
    holds(Config { held: 1, kinds, single_batches: SingleBatches::AtStart, ..Config::default() });
}

/// The search that keeps the graph sees what stateright sees.
#[test]
fn both_searches_see_the_same_states() {
    let config = Config { compactions: 0, ..Config::default() };
    let report = all_of(config);
    let checker = config.checker().spawn_bfs().join();
    checker.assert_properties();
    assert_eq!((report.states, report.depth + 1), (checker.unique_state_count(), checker.max_depth()));
    assert_eq!(report.steps + 1, checker.state_count() as u64);
    assert!(report.holds(), "{report}");
}

/// Takes steps, each of which the model must offer, and gives them in words.
fn script(config: &Config, steps: &[Action]) -> (State, String) {
    let mut state = config.init_states().remove(0);
    let mut words = String::new();
    for step in steps {
        let mut offered = Vec::new();
        config.actions(&state, &mut offered);
        assert!(offered.contains(step), "{step:?} is not possible after\n{words}");
        words += &format!("{}\n", config.describe(&state, step));
        state = config.step(&state, *step).expect("a step");
        words += &format!("    {}\n", config.summary(&state));
    }
    (state, words)
}

/// Too deep for a search without hints: B asks while it reads the ledger from its start, is stopped, and goes on when the
/// intent on its record has been compacted away. Holes mean nothing below the end that the log had when B began to read.
#[test]
fn a_record_asked_for_while_reading_from_the_start_is_doubled() {
    use Action::*;
    let config = Planted::AskedWhileReading.config();
    let steps = [
        [Acquire(0), Receive(0), Send(0), Arrive(0)].as_slice(),
        &[Crash(1), Restart(1), Expire(0), Acquire(1), Receive(1)],
        &[Read(0), Pass(0), Commit(0), Marker(0)],
        &[Expire(0), Acquire(0), Acknowledge(0, 0), Receive(0), Read(0), SettleDone(0, 0)],
        &[Acquire(0), Receive(0), Send(0), Arrive(0), Read(0), Pass(0), Commit(0), Marker(0)],
        &[Compact(Cleaning::Records), Read(1), Read(1)],
        &[Init(1), Send(1), Arrive(1), Read(1), Pass(1), Commit(1)],
    ];
    let (state, words) = script(&config, &steps.concat());
    println!("{words}");
    assert_eq!(state.outputs, [2, 1], "{words}");

    let sound = Config { planted: None, ..config };
    let (state, words) = script(&sound, &steps[..2].concat()[..7]);
    let mut offered = Vec::new();
    sound.actions(&state, &mut offered);
    assert!(state.members[1].reading && !offered.contains(&Acquire(1)), "{words}");
}
