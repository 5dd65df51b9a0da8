//! The share consumer machine between an arbitrary application and arbitrary brokers.
//!
//! Whatever happens: no panic, no endless planning, every acknowledgement of the application has exactly one outcome,
//! and once all is over no delivery is kept.
#![no_main]

mod world;

use arbitrary::Unstructured;
use libfuzzer_sys::fuzz_target;
use world::World;

/// Steps of one run, at most.
const STEPS: usize = 300;

fuzz_target!(|data: &[u8]| {
    let mut u = Unstructured::new(data);
    let Ok(mut world) = World::new(&mut u) else { return };
    for _ in 0..STEPS {
        if u.is_empty() || world.step(&mut u).is_err() {
            break;
        }
        world.check();
    }
    world.end();
});
