//! Every async method of the producers, dropped at each of its await points: nothing is written twice or half, nothing is
//! committed unasked, and the same call may follow where it says so.

use super::admin::async_methods;
use super::support::{LONG, Mode, Rig};
use super::{POINTS, drop_after};
use kafka_share::{
    AckType, CheckpointCoordinator, ErrorKind, PartitionReader, PreparedTransaction, Producer, ProducerRecord, Result,
    ShareAcknowledgements, TransactionSession, TransactionalProducer, TransactionalProducerBuilder,
};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

fn settings(rig: &Rig, id: &str) -> TransactionalProducerBuilder {
    TransactionalProducer::builder("", id).cluster(Arc::clone(&rig.cluster)).max_block(LONG)
}

async fn initialised(rig: &Rig, id: &str) -> TransactionalProducer {
    let producer = settings(rig, id).build().unwrap();
    producer.init_transactions().await.unwrap();
    producer
}

fn record(value: usize) -> ProducerRecord<'static> {
    ProducerRecord::new("orders").partition(0).value(value.to_string())
}

/// What read_committed readers see, in order.
async fn values(rig: &Rig) -> Vec<usize> {
    let mut reader = PartitionReader::read_committed(Arc::clone(&rig.cluster), &rig.topic()).await.unwrap();
    let batches = reader.read_to_end().await.unwrap();
    let number = |value: Option<&[u8]>| std::str::from_utf8(value.unwrap()).unwrap().parse().unwrap();
    batches.iter().flat_map(|b| b.iter().map(|r| number(r.value())).collect::<Vec<_>>()).collect()
}

/// The call dropped after `times` polls, and made again where it was not done.
async fn twice<T, W: Future<Output = Result<T>>>(times: usize, call: impl Fn() -> W) -> T {
    match drop_after(times, call()).await {
        Some(result) => result.unwrap(),
        None => call().await.unwrap(),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sends_and_flushes_dropped_at_every_await_point_write_once() {
    let rig = Rig::new(1).await;
    for times in 0..POINTS {
        // A new one each time, so that there is metadata to wait for.
        let producer = Producer::builder(&rig.broker.bootstrap_servers()).build().unwrap();
        if drop_after(times, producer.send(record(times))).await.is_none() {
            drop(producer.send(record(times)).await.unwrap());
        }
        twice(times, || producer.flush()).await;
        if let Some(result) = drop_after(times, producer.close(LONG)).await {
            result.unwrap();
        }
    }
    assert_eq!(values(&rig).await, (0..POINTS).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_of_a_transaction_dropped_at_every_await_point_may_be_made_again() {
    let rig = Rig::new(1).await;
    for times in 0..POINTS {
        let producer = settings(&rig, "again").build().unwrap();
        twice(times, || producer.init_transactions()).await;
        for commit in [true, false] {
            producer.begin_transaction().unwrap();
            if drop_after(times, producer.send(record(times))).await.is_none() {
                drop(producer.send(record(times)).await.unwrap());
            }
            twice(times, || producer.flush()).await;
            twice(times, || producer.prepare_transaction()).await;
            if commit {
                twice(times, || producer.commit_transaction()).await;
            } else if let Some(result) = drop_after(times, producer.abort_transaction()).await {
                result.unwrap();
            } else {
                // The one that was dropped may have ended it.
                let again = producer.abort_transaction().await;
                assert!(again.as_ref().is_ok_and(|()| true) || again.unwrap_err().kind() == ErrorKind::InvalidState);
            }
        }
        drop_after(times, producer.close(LONG)).await;
    }
    assert_eq!(values(&rig).await, (0..POINTS).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn staging_dropped_at_every_await_point_can_only_be_aborted() {
    let rig = Rig::new(1).await;
    let producer = initialised(&rig, "stages").await;
    let consumer = rig.consumer(Mode::Explicit);
    let mut accepted = 0;
    for times in 0..POINTS {
        rig.produce(times as i64..times as i64 + 1).await;
        let records = rig.receive(&consumer, 1).await;
        let member = consumer.share_group_metadata().unwrap();
        let acks = ShareAcknowledgements::from_records(&records[0], AckType::Accept).unwrap();
        producer.begin_transaction().unwrap();
        let staged = drop_after(times, producer.send_share_acks_to_transaction(acks, &member)).await;
        match staged {
            Some(result) => {
                result.unwrap();
                producer.commit_transaction().await.unwrap();
                accepted += 1;
                continue;
            }
            None => match producer.commit_transaction().await {
                Ok(()) => assert_eq!(times, 0, "committed without acknowledgements that belong to it"),
                Err(error) => {
                    assert!(error.is_abortable(), "{error:?}");
                    producer.abort_transaction().await.unwrap();
                }
            },
        }
        // Held still, or free again without a wait for the lock: in either case it can be accepted, and once only.
        if consumer.acknowledge_all(&records[0], AckType::Accept).unwrap() == 0 {
            let again = rig.receive(&consumer, 1).await;
            consumer.acknowledge_all(&again[0], AckType::Accept).unwrap();
        }
        consumer.commit_sync(LONG).await.unwrap();
    }
    assert!(accepted > 0, "no call ran to its end");
    assert!(consumer.poll(Duration::from_millis(300)).await.unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn work_in_a_transaction_dropped_at_every_await_point_is_committed_whole_or_not_at_all() {
    let rig = Rig::new(1).await;
    let producer = initialised(&rig, "works").await;
    let (mut done, mut unsure) = (Vec::new(), BTreeSet::new());
    for times in 0..2 * POINTS {
        let work = async |txn: &TransactionalProducer| {
            for half in 0..2 {
                txn.send(record(2 * times + half)).await?.await?;
            }
            Ok(())
        };
        let result = match times % 2 {
            0 => drop_after(times / 2, producer.transaction(work)).await,
            _ => drop_after(times / 2, producer.transaction_once(work)).await,
        };
        match result {
            Some(result) => {
                result.unwrap();
                done.push(times);
            }
            None => drop(unsure.insert(times)),
        }
        // What was on its way may have been committed: the same commit tells, and else the next call aborts it.
        if unsure.contains(&times) && producer.commit_transaction().await.is_ok() {
            unsure.remove(&times);
            done.push(times);
        }
    }
    let seen = values(&rig).await;
    for times in 0..2 * POINTS {
        let halves = seen.iter().filter(|v| **v / 2 == times).count();
        match done.contains(&times) {
            true => assert_eq!(halves, 2, "{times}: both, once"),
            false => assert!(halves == 0 || halves == 2, "{times}: half of it"),
        }
    }
    assert!(done.len() > POINTS / 2, "{done:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_dropped_at_every_await_point_end_once() {
    let rig = Rig::new(1).await;
    for times in 0..POINTS {
        let session = twice(times, || TransactionSession::open(settings(&rig, "session"))).await;
        twice(times, || session.begin()).await;
        session.producer().send(record(times)).await.unwrap().await.unwrap();
        let prepared: PreparedTransaction = twice(times, || session.prepare()).await;
        drop_after(times, session.close(LONG)).await;
        let found = twice(times, || TransactionSession::recover(settings(&rig, "session"))).await;
        assert!(found.is_some(), "a prepared transaction outlives its session");
        let resumed = twice(times, || TransactionSession::resume(settings(&rig, "session"), &prepared)).await;
        twice(times, || resumed.commit()).await;
        twice(times, || resumed.begin()).await;
        if drop_after(times, resumed.abort()).await.is_none() {
            drop(resumed.abort().await);
        }
    }
    assert_eq!(values(&rig).await, (0..POINTS).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn checkpoints_dropped_at_every_await_point_commit_once() {
    let rig = Rig::new(1).await;
    for times in 0..POINTS {
        let coordinator = twice(times, || CheckpointCoordinator::open(settings(&rig, "flow"), 2)).await;
        let transaction = twice(times, || coordinator.transaction()).await;
        transaction.producer().send(record(times)).await.unwrap().await.unwrap();
        twice(times, || coordinator.prepare_commit(1)).await;
        let state = coordinator.snapshot_state();
        if times % 2 == 0 {
            twice(times, || coordinator.notify_checkpoint_complete(1)).await;
        } else {
            drop_after(times, coordinator.close(LONG)).await;
            twice(times, || CheckpointCoordinator::recover(settings(&rig, "flow"), 2, &state)).await;
        }
        let coordinator = CheckpointCoordinator::open(settings(&rig, "flow"), 2).await.unwrap();
        for aborted in [1, 2] {
            coordinator.transaction().await.unwrap().producer().send(record(1_000)).await.unwrap().await.unwrap();
            if aborted == 1 {
                coordinator.prepare_commit(aborted).await.unwrap();
                if drop_after(times, coordinator.abort_checkpoint(aborted)).await.is_none() {
                    // The one that was dropped may have ended it.
                    drop(coordinator.abort_checkpoint(aborted).await);
                }
            } else if drop_after(times, coordinator.abort_current()).await.is_none() {
                coordinator.abort_current().await.unwrap();
            }
        }
    }
    let mut seen = values(&rig).await;
    seen.sort_unstable();
    assert_eq!(seen, (0..POINTS).collect::<Vec<_>>());
}

/// So that no method is forgotten. Those of the acknowledger are with the whole system's tests.
#[test]
fn every_async_method_of_the_producers_is_dropped_somewhere() {
    let here = include_str!("producer.rs");
    let elsewhere = ["commit_acknowledgements", "complete_commit", "abort_acknowledgements"];
    for method in async_methods("src/producer") {
        let called = here.contains(&format!(".{method}(")) || here.contains(&format!("::{method}("));
        assert!(called || elsewhere.contains(&method.as_str()), "{method} is dropped in no test");
    }
}
