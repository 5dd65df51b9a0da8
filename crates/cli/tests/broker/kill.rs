//! `kshare broker --data-dir` under `kill -9`: whatever was acknowledged is there after the restart, and nothing of it
//! comes twice.
//!
//! One worker writes numbers with an idempotent producer and repeats a batch until it is acknowledged; the other moves
//! them from topic `in` to topic `out` through a share group, acknowledgements and output in one transaction. The broker
//! is killed after random numbers of acknowledged steps. A third worker reads `in` in another group, with ordinary
//! acknowledgements: what was answered may not be delivered again. In the end `in` must hold each number once (sequence numbers
//! survive), and so must `out` (transactions, staged acknowledgements and share state survive).

use crate::process::{Broker, LIMIT};
use crate::wire::{self, Topic};
use crate::workers;
use kafka_share_tests::raw::Raw;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Mutex, mpsc};
use std::time::Instant;

const KILLS: usize = 6;
pub(crate) const PARTITIONS: i32 = 2;

/// What the workers share with the killer.
pub(crate) struct Shared {
    address: Mutex<SocketAddr>,
    pub(crate) input: Topic,
    pub(crate) output: Topic,
    /// No more numbers are written.
    pub(crate) enough: AtomicBool,
    /// Numbers that were acknowledged.
    pub(crate) written: AtomicI64,
    /// The writer has ended.
    pub(crate) finished: AtomicBool,
    started: Instant,
}

impl Shared {
    /// A connection to the broker that runs now or next.
    pub(crate) fn connect(&self) -> Raw {
        loop {
            assert!(self.started.elapsed() < 4 * LIMIT, "no progress");
            let address = *self.address.lock().unwrap();
            match Raw::connect(address) {
                Ok(raw) => return raw,
                Err(_) => std::thread::park_timeout(std::time::Duration::from_millis(5)),
            }
        }
    }
}

/// SplitMix64.
fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

fn start(directory: &Path) -> Broker {
    Broker::start(Some(directory), &["--topic", "in:2", "--topic", "out:2"])
}

fn run(seed: u64) {
    let directory = tempfile::tempdir().expect("folder");
    let mut broker = start(directory.path());
    let mut raw = Raw::connect(broker.address).unwrap();
    let (cluster, topics) = wire::topics(&mut raw);
    wire::read_from_the_start(&mut raw, "g");
    wire::read_from_the_start(&mut raw, "h");
    let shared = Shared {
        address: Mutex::new(broker.address),
        input: topics["in"],
        output: topics["out"],
        enough: AtomicBool::new(false),
        written: AtomicI64::new(0),
        finished: AtomicBool::new(false),
        started: Instant::now(),
    };
    let (progress, steps) = mpsc::channel();
    let mut state = seed;
    std::thread::scope(|scope| {
        let (shared, other, third) = (&shared, progress.clone(), progress.clone());
        scope.spawn(move || workers::write(shared, &other));
        scope.spawn(move || workers::acknowledge(shared, &third));
        scope.spawn(move || workers::shift(shared, &progress));
        for _ in 0..KILLS {
            for _ in 0..5 + random(&mut state) % 60 {
                steps.recv_timeout(LIMIT).expect("progress");
            }
            // Somewhere inside the next step.
            std::thread::park_timeout(std::time::Duration::from_micros(random(&mut state) % 3000));
            broker.kill();
            broker = start(directory.path());
            *shared.address.lock().unwrap() = broker.address;
            let again = wire::topics(&mut Raw::connect(broker.address).unwrap());
            assert_eq!(again, (cluster.clone(), topics.clone()), "cluster id and topic ids");
        }
        shared.enough.store(true, Ordering::SeqCst);
        while steps.recv_timeout(LIMIT).is_ok() {}
    });
    let mut raw = Raw::connect(broker.address).unwrap();
    let written = shared.written.load(Ordering::SeqCst);
    let count = |raw: &mut Raw, topic: Topic| {
        let mut counts = BTreeMap::new();
        for number in (0..PARTITIONS).flat_map(|index| wire::read_committed(raw, topic, index)) {
            *counts.entry(number).or_insert(0) += 1;
        }
        let wrong = |number: &i64| counts.get(number) != Some(&1);
        let mut wrong: Vec<i64> = (0..written).filter(wrong).collect();
        wrong.extend(counts.keys().filter(|number| **number >= written));
        wrong
    };
    assert_eq!(count(&mut raw, shared.input), [0; 0], "seed {seed}: input that is not there once");
    assert_eq!(count(&mut raw, shared.output), [0; 0], "seed {seed}: output that is not there once");
    assert!(written > 50, "seed {seed} wrote only {written}");
    // All is acknowledged, and the group knows it after one more kill.
    broker.kill();
    let broker = start(directory.path());
    let mut raw = Raw::connect(broker.address).unwrap();
    assert_eq!((wire::lag(&mut raw, "g"), wire::lag(&mut raw, "h")), (0, 0), "seed {seed}");
}

#[test]
fn kill_9_loses_and_doubles_nothing_that_was_acknowledged() {
    for seed in [1, 2, 3] {
        run(seed);
    }
}
