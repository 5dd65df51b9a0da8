//! Producers that wait for a slow broker cost nothing. Alone in its process, because it looks at the process's CPU time.

#![cfg(target_os = "linux")]

mod support;

use kafka_share::{ErrorKind, Producer, ProducerRecord, TransactionalProducer};
use kafka_share_broker::{Fault, FaultAction};
use kafka_share_messages::ApiKey;
use std::sync::Arc;
use std::time::{Duration, Instant};
use support::{Rig, cpu_time};

/// Two tasks that keep each other awake would use the whole time, or twice that.
async fn costs_nothing<T>(what: &str, waiting: impl Future<Output = T>) -> T {
    let (before, started) = (cpu_time(), Instant::now());
    let answer = waiting.await;
    let used = cpu_time() - before;
    assert!(started.elapsed() > Duration::from_secs(1), "{what} did not wait");
    assert!(used < started.elapsed() / 4, "{what}: {used:?} of CPU in {:?} of waiting", started.elapsed());
    answer
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn producers_that_wait_burn_no_cpu() {
    let rig = Rig::new(1).await;
    let slow_by = |by, key| rig.broker.fault(Fault::new(FaultAction::Delay(by)).key(key));
    let slow = |key| slow_by(Duration::from_secs(2), key);
    let builder = TransactionalProducer::builder("", "waits").cluster(Arc::clone(&rig.cluster));
    let producer = builder.build().unwrap();
    producer.init_transactions().await.unwrap();
    let record = |bytes: usize| ProducerRecord::new("orders").partition(0).value(vec![0; bytes]);
    for (key, what) in [(ApiKey::PRODUCE, "a commit behind its records"), (ApiKey::END_TXN, "a commit")] {
        producer.begin_transaction().unwrap();
        // Slow before there is anything to send: it may go out at once.
        slow(key);
        let sent_and_committed = async {
            drop(producer.send(record(1)).await.unwrap());
            producer.commit_transaction().await
        };
        costs_nothing(what, sent_and_committed).await.unwrap();
    }
    producer.begin_transaction().unwrap();
    slow(ApiKey::PRODUCE);
    let sent_and_flushed = async {
        drop(producer.send(record(1)).await.unwrap());
        producer.flush().await
    };
    costs_nothing("a flush", sent_and_flushed).await.unwrap();
    costs_nothing("an open transaction", tokio::time::sleep(Duration::from_millis(1_500))).await;
    producer.abort_transaction().await.unwrap();
    // A buffer that is full, and whose first batch is slower than the send may wait.
    let mut builder = Producer::builder("").cluster(Arc::clone(&rig.cluster)).max_block(Duration::from_millis(1_500));
    builder.set("buffer.memory", "1000").unwrap();
    builder.set("max.request.size", "1000").unwrap();
    let full = builder.batch_size(500).build().unwrap();
    slow_by(Duration::from_secs(60), ApiKey::PRODUCE);
    drop(full.send(record(800)).await.unwrap());
    let error = costs_nothing("a send into a full buffer", full.send(record(800))).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout, "{error}");
}
