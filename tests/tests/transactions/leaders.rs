//! Acknowledgements that go to several leaders: at the same time, each refusal told with its partition, all or nothing.

use super::embedded;
use super::staging::{RECORDS, Setup, setup};
use kafka_share::{AckType, ErrorCode, ProducerRecord, ShareRecords};
use kafka_share_broker::{EmbeddedBroker, Fault, FaultAction};
use kafka_share_messages::ApiKey;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// All records of the input are held, and their acknowledgements given; their partitions have three leaders.
async fn all_held(setup: &Setup) {
    let mut held = Vec::new();
    while held.iter().map(ShareRecords::len).sum::<usize>() < RECORDS {
        held.push(setup.poll().await.expect("records"));
    }
    // Only now: what is acknowledged before a poll goes out with it.
    for records in &held {
        setup.consumer.acknowledge_all(records, AckType::Accept).unwrap();
    }
    let partitions: BTreeSet<i32> = held.iter().flat_map(|r| r.iter().map(|record| record.partition())).collect();
    assert_eq!(partitions.len(), 3);
}

async fn stage(setup: &Setup) -> kafka_share::Result<()> {
    let acks = setup.consumer.acknowledgements_for_transaction().unwrap();
    let member = setup.consumer.share_group_metadata().unwrap();
    setup.producer.send_share_acks_to_transaction(acks, &member).await
}

/// Records whose acknowledgements wait for the end of a transaction.
fn pending(broker: &EmbeddedBroker) -> i64 {
    broker.dump().share.partitions.iter().map(|partition| partition.pending).sum()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_leader_gets_its_part_at_the_same_time() {
    let broker = embedded(2).await;
    let setup = setup(&broker).await;
    all_held(&setup).await;
    setup.producer.begin_transaction().unwrap();
    drop(setup.producer.send(ProducerRecord::new("out").value("1")).await.unwrap());
    let late = Duration::from_secs(3);
    broker.fault(Fault::new(FaultAction::Delay(late)).key(ApiKey::TXN_SHARE_ACKNOWLEDGE).times(3));
    let started = Instant::now();
    stage(&setup).await.unwrap();
    let took = started.elapsed();
    // One after the other they would take nine seconds.
    assert!(took >= late && took < 2 * late, "{took:?}");
    assert_eq!(pending(&broker), RECORDS as i64);
    setup.producer.commit_transaction().await.unwrap();
    assert_eq!(pending(&broker), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_leader_that_refuses_fails_the_whole_and_is_named() {
    let broker = embedded(2).await;
    let setup = setup(&broker).await;
    setup.more_deliveries().await;
    let leader = |partition: i32| {
        let partitions = broker.dump().partitions;
        partitions.iter().find(|p| p.topic == "in" && p.partition == partition).unwrap().leader
    };
    for partition in 0..3 {
        all_held(&setup).await;
        setup.producer.begin_transaction().unwrap();
        let refuse = FaultAction::Error(ErrorCode::INVALID_RECORD_STATE);
        broker.fault(Fault::new(refuse).key(ApiKey::TXN_SHARE_ACKNOWLEDGE).node(leader(partition)));
        let error = stage(&setup).await.unwrap_err();
        assert!(error.is_abortable() && error.code() == Some(ErrorCode::INVALID_RECORD_STATE), "{error:?}");
        for other in 0..3 {
            let name = format!("in-{other}");
            assert_eq!(error.to_string().contains(&name), other == partition, "{error}");
        }
        // The other two have theirs, until the abort.
        assert_eq!(pending(&broker), RECORDS as i64 * 2 / 3);
        assert!(setup.producer.commit_transaction().await.unwrap_err().is_abortable());
        setup.producer.abort_transaction().await.unwrap();
        assert_eq!(pending(&broker), 0);
        let failed = setup.producer.metrics().get("txn-share-acks-error-total");
        assert_eq!(failed, Some(f64::from(partition + 1) * RECORDS as f64));
    }
    all_held(&setup).await;
    setup.producer.begin_transaction().unwrap();
    stage(&setup).await.unwrap();
    setup.producer.commit_transaction().await.unwrap();
    assert!(setup.consumer.poll(Duration::from_millis(700)).await.unwrap().is_empty(), "all are acknowledged");
}
