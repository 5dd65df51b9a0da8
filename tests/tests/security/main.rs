//! TLS and SASL against a real Kafka 4.4.0: each mechanism produces and consumes, and each way to fail says so at once.

mod bad;
mod good;
mod renewal;
mod stage;

use stage::Stage;
use std::sync::{Mutex, PoisonError};

/// One test with a real broker at a time.
static BROKERS: Mutex<()> = Mutex::new(());

fn run(test: &str, scenes: impl AsyncFnOnce(&Stage)) {
    let _turn = BROKERS.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(stage) = Stage::start(test) else { return };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime").block_on(scenes(&stage));
}

#[test]
fn each_mechanism_works_and_each_failure_is_clear() {
    run("each_mechanism_works_and_each_failure_is_clear", async |stage| {
        good::all(stage).await;
        bad::all(stage).await;
    });
}

/// `KAFKA_SHARE_RENEWAL_SECONDS` is how long (default 10).
#[test]
fn authentication_is_renewed_every_second_under_full_load() {
    run("authentication_is_renewed_every_second_under_full_load", async |stage| renewal::all(stage).await);
}
