//! Four members of a share group on a real cluster of three nodes that go down and come back, with leaders that move.
//! The long form is the example `cluster_chaos`.

use kafka_share_tests::cluster_run::{self, Plan};
use std::time::Duration;

#[test]
fn nothing_is_lost_and_what_comes_again_has_a_reason() {
    let plan = Plan {
        version: "4.4.0".into(),
        records: 100_000,
        members: 4,
        partitions: 8,
        length: Duration::from_secs(25),
        rounds: 2,
        down: Duration::from_secs(1),
        seed: 1,
    };
    let test = "nothing_is_lost_and_what_comes_again_has_a_reason";
    let Some(report) = cluster_run::run(test, &plan) else { return };
    eprintln!("{report}");
    assert!(report.is_sound());
}
