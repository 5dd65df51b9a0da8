//! Lost answers, moving leaders and coordinators, on the embedded broker.

use super::embedded;
use super::scenarios::{topic, transactional, values};
use kafka_share::{ErrorCode, ErrorKind, Producer, ProducerRecord, TransactionalProducer};
use kafka_share_broker::{CoordinatorKind, Fault, FaultAction};
use kafka_share_messages::ApiKey;
use std::sync::Arc;
use std::time::{Duration, Instant};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r067_lost_and_damaged_produce_answers_write_each_record_once() {
    let broker = embedded(2).await;
    let (cluster, topic) = topic(&broker.bootstrap_servers(), 1).await;
    for action in [
        FaultAction::ApplyAndClose,
        FaultAction::Close,
        FaultAction::Truncate(3),
        FaultAction::Error(ErrorCode::NOT_LEADER_OR_FOLLOWER),
    ] {
        broker.fault(Fault::new(action).key(ApiKey::PRODUCE).skip(2).times(2));
    }
    let producer = Producer::builder("").cluster(Arc::clone(&cluster)).batch_size(200).build().unwrap();
    for i in 0..200 {
        if i == 100 {
            let leader = cluster.cached_topic(&topic).unwrap().leaders[0].id;
            let other = cluster.node_ids().into_iter().find(|n| *n != leader).unwrap();
            assert!(broker.move_leader(&topic, 0, other));
        }
        drop(producer.send(ProducerRecord::new(&topic).value(i.to_string())).await.unwrap());
        if i % 10 == 0 {
            producer.flush().await.unwrap();
        }
    }
    producer.flush().await.unwrap();
    assert_eq!(values(&cluster, &topic).await, (0..200).map(|i| i.to_string()).collect::<Vec<_>>());
}

async fn r054_a_lost_commit_answer_is_resolved_by_the_same_commit(version: i16) {
    let broker = embedded(version).await;
    let (cluster, topic) = topic(&broker.bootstrap_servers(), 2).await;
    let builder = TransactionalProducer::builder("", "txn").cluster(Arc::clone(&cluster));
    let producer = builder.max_block(Duration::from_secs(4)).build().unwrap();
    producer.init_transactions().await.unwrap();
    for action in [FaultAction::ApplyAndClose, FaultAction::Close] {
        // Once: healed inside the call. Always: unknown until the fault is gone.
        for times in [1, u32::MAX] {
            producer.begin_transaction().unwrap();
            let record = ProducerRecord::new(&topic).partition(0).value(format!("{action:?} {times}"));
            producer.send(record).await.unwrap().await.unwrap();
            broker.fault(Fault::new(action.clone()).key(ApiKey::END_TXN).times(times));
            let result = producer.commit_transaction().await;
            if times > 1 {
                let error = result.unwrap_err();
                assert_eq!(error.kind(), ErrorKind::OutcomeUnknown, "{error}");
                assert_eq!(producer.abort_transaction().await.unwrap_err().kind(), ErrorKind::OutcomeUnknown);
                assert_eq!(producer.begin_transaction().unwrap_err().kind(), ErrorKind::OutcomeUnknown);
                broker.clear_faults();
                producer.commit_transaction().await.unwrap();
            } else {
                result.unwrap();
            }
        }
    }
    assert_eq!(values(&cluster, &topic).await.len(), 4);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r054_on_version_1() {
    r054_a_lost_commit_answer_is_resolved_by_the_same_commit(1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r054_on_version_2() {
    r054_a_lost_commit_answer_is_resolved_by_the_same_commit(2).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_moving_coordinator_is_followed() {
    let broker = embedded(2).await;
    let (cluster, topic) = topic(&broker.bootstrap_servers(), 1).await;
    let producer = transactional(&cluster, "txn");
    producer.init_transactions().await.unwrap();
    for (i, node) in cluster.node_ids().into_iter().cycle().take(6).enumerate() {
        producer.begin_transaction().unwrap();
        drop(producer.send(ProducerRecord::new(&topic).value(i.to_string())).await.unwrap());
        broker.move_coordinator(CoordinatorKind::Transaction, "txn", node);
        producer.commit_transaction().await.unwrap();
    }
    assert_eq!(values(&cluster, &topic).await, (0..6).map(|i| i.to_string()).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r074_calls_end_at_max_block_and_abort_still_works() {
    let broker = embedded(2).await;
    let (cluster, topic) = topic(&broker.bootstrap_servers(), 1).await;
    let builder = TransactionalProducer::builder("", "txn").cluster(Arc::clone(&cluster));
    let producer = builder.max_block(Duration::from_secs(4)).build().unwrap();
    producer.init_transactions().await.unwrap();
    producer.begin_transaction().unwrap();
    drop(producer.send(ProducerRecord::new(&topic).value("x")).await.unwrap());
    let code = ErrorCode::COORDINATOR_LOAD_IN_PROGRESS;
    broker.fault(Fault::new(FaultAction::Error(code)).key(ApiKey::PRODUCE).times(u32::MAX));
    let started = Instant::now();
    let error = producer.commit_transaction().await.unwrap_err();
    assert!(error.is_timeout(), "{error:?}");
    let took = started.elapsed();
    // Far from the two minutes that the delivery of a record may take.
    assert!(took >= Duration::from_millis(3900) && took < Duration::from_secs(30), "{took:?}");
    broker.clear_faults();
    producer.abort_transaction().await.unwrap();
    assert!(values(&cluster, &topic).await.is_empty());
}
