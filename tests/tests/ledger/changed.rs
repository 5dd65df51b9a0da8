//! Ledgers that somebody has changed under their members, and acknowledgements that are handed over for another group.

use super::refusals::{refused, says};
use super::stage::*;
use kafka_share::ledger::NewLedger;
use kafka_share::net::Purpose;
use kafka_share::{AckType, ErrorKind, ShareAcknowledgements, TransactionSession};
use kafka_share_core::metadata::TopicIdPartition;
use kafka_share_messages::delete_records_request::{DeleteRecordsPartition, DeleteRecordsTopic};
use kafka_share_messages::{DeleteRecordsRequest, ErrorCode};
use kafka_share_wire::Str;
use std::time::{Duration, Instant};

const POLICY: &str = "cleanup.policy";
const LOOK: Duration = Duration::from_millis(100);

pub(crate) async fn all(bootstrap: &str) {
    tokio::join!(
        partitions_that_were_added(bootstrap),
        a_topic_that_was_made_anew(bootstrap),
        records_that_were_deleted(bootstrap),
        acknowledgements_for_another_group(bootstrap),
        a_generation_that_is_raised_beside_a_transaction(bootstrap),
    );
}

/// Whether a consumer is refused on it or is handed records, over and over until it is as wanted.
async fn works(stage: &Stage, group: &str) -> bool {
    let consumer = stage.consumer_of(group);
    let until = Instant::now() + LONG;
    loop {
        match consumer.poll(LOOK).await {
            Err(error) if error.is_retriable() => {}
            Err(_) => return false,
            Ok(records) if !records.is_empty() => return true,
            Ok(_) => {}
        }
        assert!(Instant::now() < until, "neither records nor an error came");
    }
}

/// A group whose partition is a new one finds nothing there, and must not take that for an answer.
async fn partitions_that_were_added(bootstrap: &str) {
    let stage = Stage::set(bootstrap, 6).await;
    let (consumer, producer) = (stage.consumer(), stage.producer().await);
    let records = some(&consumer).await;
    stage.attempt(&producer, &consumer, &records).await.unwrap();
    drop(consumer);
    stage.admin().create_partitions(&stage.ledger, 16).await.unwrap();
    let until = Instant::now() + LONG;
    while stage.cluster.topic(&stage.ledger, false, until).await.unwrap().leaders.len() != 16 {
        assert!(Instant::now() < until, "brokers do not tell of the new partitions");
        stage.cluster.refresh_topics(&[Str::from(&stage.ledger)], until).await.unwrap();
    }
    for group in (0..4).map(|n| format!("{}-{n}", stage.group)) {
        stage.configure(&group).await;
        let consumer = stage.consumer_of(&group);
        let words = [stage.ledger.as_str(), "2 partitions", "here are 16", "must never change"];
        says(&refused(&consumer).await, ErrorKind::Config, &words);
    }
}

async fn a_topic_that_was_made_anew(bootstrap: &str) {
    let stage = Stage::set(bootstrap, 3).await;
    let consumer = stage.consumer();
    let records = some(&consumer).await;
    assert!(!records.is_empty());
    stage.admin().delete_topics(&[&stage.ledger]).await.unwrap();
    let until = Instant::now() + LONG;
    let ledger = NewLedger::new().topic(&stage.ledger).partitions(2).replication_factor(1);
    while stage.admin().create_ledger(&ledger).await.is_err() {
        assert!(Instant::now() < until, "the old one does not go");
        tokio::time::sleep(LOOK).await;
    }
    let error = loop {
        match consumer.poll(LOOK).await {
            Err(error) if error.kind() == ErrorKind::Config => break error,
            _ => assert!(Instant::now() < until, "no error came"),
        }
    };
    says(&error, ErrorKind::Config, &[&stage.ledger, "deleted and made anew", "stop all members"]);
}

async fn records_that_were_deleted(bootstrap: &str) {
    let stage = Stage::set(bootstrap, 6).await;
    let (consumer, producer) = (stage.consumer(), stage.producer().await);
    let records = some(&consumer).await;
    stage.attempt(&producer, &consumer, &records).await.unwrap();
    consumer.close(LONG).await.unwrap();
    // Brokers delete only where the policy says so.
    stage.set_ledger(POLICY, "compact,delete").await;
    for partition in 0..2 {
        delete_all(&stage, partition).await;
    }
    stage.set_ledger(POLICY, "compact").await;
    let description = stage.admin().describe_ledger(&stage.ledger).await.unwrap();
    let faults: Vec<&String> = description.partitions.iter().flat_map(|p| &p.faults).collect();
    assert_eq!(faults.len(), 1, "{faults:?}");
    let late = stage.consumer();
    let words = [stage.ledger.as_str(), "were deleted", "kshare ledger raise"];
    says(&refused(&late).await, ErrorKind::InvalidState, &words);
    late.close(LONG).await.unwrap();
    stage.admin().raise_ledger_generation(&stage.ledger, &stage.group).await.unwrap();
    stage.produce(6..9).await;
    assert!(works(&stage, &stage.group).await, "the group begins anew");
}

async fn delete_all(stage: &Stage, partition: i32) {
    let until = Instant::now() + LONG;
    let topic = stage.cluster.topic(&stage.ledger, false, until).await.unwrap();
    let leader = stage.cluster.leader(TopicIdPartition { topic_id: topic.id, partition }).unwrap().id;
    let row = DeleteRecordsPartition { partition_index: partition, offset: -1, ..Default::default() };
    let row = DeleteRecordsTopic { name: Str::from(&stage.ledger), partitions: vec![row], ..Default::default() };
    let request = DeleteRecordsRequest { topics: vec![row], timeout_ms: 30_000, ..Default::default() };
    loop {
        let answer = stage.cluster.call_node(leader, Purpose::Coordination, &request, until).await.unwrap();
        match answer.topics[0].partitions[0].error_code {
            ErrorCode::NONE => return,
            // The partition learns of its policy a little later.
            code => assert!(code == ErrorCode::POLICY_VIOLATION && Instant::now() < until, "{code}"),
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// The partition of its group would be told of another's records, which its members could not make sense of ever after.
async fn acknowledgements_for_another_group(bootstrap: &str) {
    let stage = Stage::set(bootstrap, 3).await;
    let other = name("other");
    stage.configure(&other).await;
    let (consumer, stranger, producer) = (stage.consumer(), stage.consumer_of(&other), stage.producer().await);
    let records = some(&consumer).await;
    assert!(!some(&stranger).await.is_empty());
    let wrong = stranger.share_group_metadata().unwrap();
    producer.begin_transaction().unwrap();
    stage.forward(&producer, &records).await;
    let acks = ShareAcknowledgements::from_records(&records, AckType::Accept).unwrap();
    let error = producer.send_share_acks_to_transaction(acks, &wrong).await.unwrap_err();
    assert!(error.is_abortable(), "{error:?}");
    says(&error, error.kind(), &[&stage.group, &other, "share_group_metadata() of the same consumer"]);
    producer.abort_transaction().await.unwrap();
    let description = stage.admin().describe_ledger(&stage.ledger).await.unwrap();
    assert!(description.partitions.iter().all(|p| p.records == 0), "{description:?}");
    // They come again, and are done.
    let records = some(&consumer).await;
    stage.attempt(&producer, &consumer, &records).await.unwrap();
}

/// What is open may be committed yet: its records would be done, and nobody would know.
async fn a_generation_that_is_raised_beside_a_transaction(bootstrap: &str) {
    let stage = Stage::set(bootstrap, 3).await;
    let consumer = stage.consumer();
    let session = TransactionSession::open(stage.settings()).await.unwrap();
    let records = some(&consumer).await;
    session.begin().await.unwrap();
    stage.process(session.producer(), &consumer, &records).await;
    session.prepare().await.unwrap();
    consumer.close(LONG).await.unwrap();
    let raise = || async { stage.admin().raise_ledger_generation(&stage.ledger, &stage.group).await };
    says(
        &raise().await.unwrap_err(),
        ErrorKind::InvalidState,
        &[&stage.group, "is open in ledger", "kshare ledger compact"],
    );
    session.commit().await.unwrap();
    let until = Instant::now() + LONG;
    // Its marker is written a little later.
    let generation = loop {
        match raise().await {
            Ok(generation) => break generation,
            Err(error) => assert!(error.kind() == ErrorKind::InvalidState && Instant::now() < until, "{error}"),
        }
        tokio::time::sleep(LOOK).await;
    };
    assert_eq!(generation, 1);
}
