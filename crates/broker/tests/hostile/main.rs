//! Hostile clients: whatever frames come in, over however many connections, the broker answers or closes, panics never and
//! keeps nothing. `fuzz/fuzz_targets/broker` does the same for longer.

mod driver;
mod seeds;

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
