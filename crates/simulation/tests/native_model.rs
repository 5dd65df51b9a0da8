//! The native backend's model: all holds within its bounds, and every broken rule is found.

use kafka_share_simulation::explore::{Limits, Trace, explore};
use kafka_share_simulation::native::{NOT_LOST, NativeConfig, NativePlanted, ONCE};
use stateright::{Checker, HasDiscoveries, Model};

fn breaks(planted: NativePlanted) -> &'static str {
    match planted {
        NativePlanted::PendingDelivered
        | NativePlanted::PendingExpires
        | NativePlanted::PendingLostAtLeaderMove
        | NativePlanted::StagedBelowStart => ONCE,
        NativePlanted::AppliedBeforeMarker
        | NativePlanted::AnyMarkerEpoch
        | NativePlanted::EqualMarkerEpoch
        | NativePlanted::NotVerified
        | NativePlanted::NoInitAfterAbort
        | NativePlanted::AbortLeavesPending
        | NativePlanted::SecondMarkerWithoutEpochs => NOT_LOST,
    }
}

fn holds(config: NativeConfig) {
    let report = explore(&config, Limits { states: 10_000_000 }, |_, _| {});
    println!("{config:?}: {report}");
    assert!(report.holds(), "{config:?}: {report}");
}

#[test]
fn every_broken_rule_is_found_with_its_trace() {
    for planted in NativePlanted::ALL {
        let checker = planted.config().checker().finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join();
        let path = checker.discovery(breaks(planted)).unwrap_or_else(|| panic!("{planted:?} is not found"));
        let trace = Trace::of_path(checker.model(), path);
        println!("{planted:?}, {} states: {}\n{trace}", checker.unique_state_count(), breaks(planted));
        assert!(trace.steps.len() > 2, "{planted:?}: {trace}");
    }
}

#[test]
fn two_members() {
    holds(NativeConfig { faults: 3, ..NativeConfig::default() });
    holds(NativeConfig { faults: 3, transaction_version: 1, ..NativeConfig::default() });
}

#[test]
fn three_members() {
    holds(NativeConfig { members: 3, faults: 2, ..NativeConfig::default() });
    holds(NativeConfig { members: 3, faults: 2, transaction_version: 1, ..NativeConfig::default() });
}

#[test]
fn both_searches_see_the_same_states() {
    let config = NativeConfig::default();
    let report = explore(&config, Limits { states: 10_000_000 }, |_, _| {});
    let checker = config.checker().spawn_bfs().join();
    checker.assert_properties();
    assert_eq!((report.states, report.depth + 1), (checker.unique_state_count(), checker.max_depth()));
    assert_eq!(report.steps + 1, checker.state_count() as u64);
    assert!(report.holds(), "{report}");
}
