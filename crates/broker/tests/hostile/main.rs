//! Hostile clients: whatever frames come in, over however many connections, the broker answers or closes, panics never and
//! keeps nothing. `fuzz/fuzz_targets/broker` does the same for longer.

mod cost;
mod driver;
mod seeds;

use kafka_share_broker::{CloseReason, Output};
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn any_sequence_of_frames_is_answered_or_closed(input in prop::collection::vec(any::<u8>(), 0..4_000)) {
        driver::run(&input, &seeds::seeds());
    }
}

#[test]
fn the_valid_requests_are_of_every_kind() {
    let keys: std::collections::BTreeSet<u8> = seeds::seeds().iter().map(|frame| frame[1]).collect();
    let served = [
        0, 1, 2, 3, 10, 16, 18, 19, 20, 21, 22, 24, 26, 27, 32, 37, 42, 44, 60, 61, 65, 66, 74, 75, 76, 77, 78, 79, 90,
        91, 92, 95, 96,
    ];
    assert_eq!(keys.into_iter().collect::<Vec<_>>(), served);
}

#[test]
fn every_version_is_answered_in_its_own_shape() {
    let node = kafka_share_broker::NodeConfig { id: 1, host: "localhost".into(), port: 9000 };
    let mut config = kafka_share_broker::ClusterConfig { nodes: vec![node], ..Default::default() };
    config.features.two_phase_commit = true;
    let now = kafka_share_broker::Now { wall_ms: 1_700_000_000_000, ..Default::default() };
    for seed in seeds::seeds() {
        let mut cluster = kafka_share_broker::Cluster::new(config.clone(), 1);
        let id = cluster.create_topic("t", 2).unwrap();
        let conn = cluster.connect(now, 1);
        let mut frame = seed.to_vec();
        let at: Vec<usize> = (0..frame.len().saturating_sub(15)).filter(|at| frame[*at..*at + 16] == [7; 16]).collect();
        at.into_iter().for_each(|at| frame[at..at + 16].copy_from_slice(&id.0));
        let what = format!("API {} version {}", seed[1], seed[3]);
        match cluster.handle_frame(now, conn, frame.into()) {
            Ok(()) => {}
            // Nothing else tells a producer that wants no answers.
            Err(CloseReason::UnansweredError) => continue,
            Err(reason) => panic!("{what}: {reason}"),
        }
        let closed = std::iter::from_fn(|| cluster.poll_output()).any(|output| matches!(output, Output::Close { .. }));
        assert!(!closed, "{what}");
    }
}

#[test]
fn every_valid_request_alone() {
    let seeds = seeds::seeds();
    for at in 0..seeds.len() {
        // Kind of cluster, then: a seed as it is, over the first connection; then time.
        for kind in 0..16 {
            let [high, low] = (at as u16).to_be_bytes();
            driver::run(&[kind, 7, 0, high, low, 0, 0, 0, 255, 255], &seeds);
        }
    }
}
