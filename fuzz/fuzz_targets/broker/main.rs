//! The whole embedded cluster between hostile clients: sequences of valid, changed and random frames over several connections,
//! with time that passes, clients that go, leaders that move and nodes that restart.
#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use std::sync::OnceLock;

#[path = "../../../crates/broker/tests/hostile/driver.rs"]
mod driver;
#[path = "../../../crates/broker/tests/hostile/seeds.rs"]
mod seeds;

static SEEDS: OnceLock<Vec<Bytes>> = OnceLock::new();

fuzz_target!(|data: &[u8]| driver::run(data, SEEDS.get_or_init(seeds::seeds)));
