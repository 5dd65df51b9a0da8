//! Producers against the embedded broker where calls of several tasks meet.

mod support;

use kafka_share::{ErrorCode, PartitionReader, Producer, ProducerRecord, Result, TransactionalProducer};
use kafka_share_broker::{Fault, FaultAction};
use kafka_share_messages::ApiKey;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use support::{LONG, Rig};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn closing_beside_a_commit_never_commits_without_the_records() {
    let rig = Rig::new(1).await;
    let builder = TransactionalProducer::builder("", "closing").cluster(Arc::clone(&rig.cluster));
    let producer = Arc::new(builder.build().unwrap());
    producer.init_transactions().await.unwrap();
    producer.begin_transaction().unwrap();
    let record = |value: &'static str| ProducerRecord::new("orders").partition(0).value(value);
    producer.send(record("written")).await.unwrap().await.unwrap();
    let refuse = FaultAction::Error(ErrorCode::NOT_LEADER_OR_FOLLOWER);
    let fault = rig.broker.fault(Fault::new(refuse).key(ApiKey::PRODUCE).times(u32::MAX));
    let late = producer.send(record("never written")).await.unwrap();
    // The commit has its turn, so that the close cannot abort in time.
    let mut committing = Box::pin({
        let producer = Arc::clone(&producer);
        async move { producer.commit_transaction().await }
    });
    assert!(poll_fn(|context| Poll::Ready(committing.as_mut().poll(context).is_pending())).await);
    let committing = tokio::spawn(committing);
    while rig.broker.fault_hits(fault) == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(producer.close(Duration::from_millis(50)).await.is_err());
    assert!(committing.await.unwrap().is_err(), "committed, though a record was given up");
    assert!(late.await.is_err());
    rig.broker.clear_faults();
    // The next producer ends what was left open.
    let builder = TransactionalProducer::builder("", "closing").cluster(Arc::clone(&rig.cluster));
    builder.build().unwrap().init_transactions().await.unwrap();
    let mut reader = PartitionReader::read_committed(Arc::clone(&rig.cluster), &rig.topic()).await.unwrap();
    let read = tokio::time::timeout(LONG, reader.read_to_end()).await.unwrap().unwrap();
    assert_eq!(read.iter().map(|batch| batch.iter().count()).sum::<usize>(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn metrics_have_javas_names_and_the_right_numbers() {
    let rig = Rig::new(1).await;
    let builder = TransactionalProducer::builder("", "measured").cluster(Arc::clone(&rig.cluster));
    // What is sent between two flushes is one batch, however long it takes.
    let producer = builder.linger(LONG).build().unwrap();
    let metric = |name: &str| producer.metrics().get(name).unwrap_or_else(|| panic!("{name} is missing"));
    assert_eq!((metric("record-send-total"), metric("buffer-total-bytes")), (0.0, 33_554_432.0));
    assert!(metric("request-latency-avg").is_nan());
    producer.init_transactions().await.unwrap();
    producer.begin_transaction().unwrap();
    // Ten in one batch, which is written at the second try; three in one that is refused for good.
    let again = FaultAction::Error(ErrorCode::NOT_LEADER_OR_FOLLOWER);
    rig.broker.fault(Fault::new(again).key(ApiKey::PRODUCE));
    for value in 0..10 {
        drop(producer.send(ProducerRecord::new(rig.topic()).partition(0).value(value.to_string())).await.unwrap());
    }
    producer.flush().await.unwrap();
    rig.broker.clear_faults();
    let refused = FaultAction::Error(ErrorCode::INVALID_RECORD);
    rig.broker.fault(Fault::new(refused).key(ApiKey::PRODUCE));
    for value in 0..3 {
        drop(producer.send(ProducerRecord::new(rig.topic()).partition(0).value(value.to_string())).await.unwrap());
    }
    assert!(producer.flush().await.is_err());
    producer.abort_transaction().await.unwrap();
    assert_eq!((metric("record-send-total"), metric("record-retry-total")), (13.0, 10.0));
    assert_eq!(metric("record-error-total"), 3.0);
    assert_eq!((metric("requests-in-flight"), metric("buffer-available-bytes")), (0.0, 33_554_432.0));
    assert!((metric("records-per-request-avg") - 23.0 / 3.0).abs() < 1e-9);
    assert!(metric("batch-size-max") >= metric("batch-size-avg") && metric("batch-size-avg") > 60.0);
    assert!(metric("record-queue-time-max") >= 0.0 && metric("request-latency-max") > 0.0);
    for time in ["txn-init-time-ns-total", "txn-abort-time-ns-total", "flush-time-ns-total"] {
        assert!(metric(time) > 0.0, "{time}");
    }
    assert_eq!(metric("txn-commit-time-ns-total"), 0.0);
    assert_eq!(metric("txn-share-acks-total"), 0.0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_buffer_does_not_wait_for_what_lingers() {
    let rig = Rig::new(1).await;
    let mut builder = Producer::builder("").cluster(Arc::clone(&rig.cluster)).linger(2 * LONG).max_block(LONG);
    builder.set("buffer.memory", "1000").unwrap();
    builder.set("max.request.size", "1000").unwrap();
    let producer = builder.batch_size(1000).build().unwrap();
    let record = || ProducerRecord::new("orders").partition(0).value(vec![0; 600]);
    let first = producer.send(record()).await.unwrap();
    drop(producer.send(record()).await.unwrap());
    assert_eq!(first.await.unwrap().offset(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn work_that_ended_its_transaction_and_is_dropped_leaves_nothing_behind() {
    let rig = Rig::new(1).await;
    let producer = TransactionalProducer::builder("", "ends").cluster(Arc::clone(&rig.cluster)).build().unwrap();
    producer.init_transactions().await.unwrap();
    let record = || ProducerRecord::new("orders").partition(0).value("1");
    let ended = tokio::sync::Notify::new();
    let work = producer.transaction_once(async |txn| {
        drop(txn.send(record()).await?);
        txn.commit_transaction().await?;
        ended.notify_one();
        std::future::pending::<Result<()>>().await
    });
    tokio::select! {
        _ = work => unreachable!("it never ends"),
        () = ended.notified() => {}
    }
    producer.begin_transaction().unwrap();
    drop(producer.send(record()).await.unwrap());
    producer.commit_transaction().await.unwrap();
}

/// Where all share one thread, a loop of sends would otherwise hand nothing over until the buffer is full.
#[tokio::test(flavor = "current_thread")]
async fn a_loop_of_sends_leaves_the_producers_task_its_turn() {
    let rig = Rig::new(1).await;
    let producer = Producer::builder("").cluster(Arc::clone(&rig.cluster)).build().unwrap();
    // Less than `buffer.memory`, so that no send waits for room.
    let mut first = None;
    for sent in 0..100_000 {
        let delivery = producer.send(ProducerRecord::new("orders").partition(0).value(vec![0; 100])).await.unwrap();
        if first.get_or_insert(delivery).try_result().is_some() {
            assert!(sent > 0);
            return producer.close(LONG).await.unwrap();
        }
    }
    panic!("nothing was written while records were sent");
}
