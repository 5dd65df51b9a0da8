//! Bad input to transactions: typed errors that name the fix, and nothing half done.

use super::embedded;
use super::scenarios::{topic, transactional, values};
use super::staging::setup;
use kafka_share::{
    AckType, Error, ErrorCode, ErrorKind, KafkaShareConsumer, Producer, ProducerRecord, ShareAcknowledgements,
    ShareGroupMetadata, TopicIdPartition, TransactionalProducer, Uuid,
};
use std::sync::Arc;
use std::time::Duration;

const CLOSE: Duration = Duration::from_secs(30);

/// What is refused at `send` is no part of the transaction, which goes on as if it had not been tried.
pub(crate) async fn bad_records_are_refused_and_the_transaction_goes_on(bootstrap: &str) {
    let (cluster, topic) = topic(bootstrap, 1).await;
    let builder = TransactionalProducer::builder("", &format!("{topic}-txn")).cluster(Arc::clone(&cluster));
    let producer = builder.max_block(Duration::from_secs(20)).build().unwrap();
    producer.init_transactions().await.unwrap();
    producer.begin_transaction().unwrap();
    let send = async |value: &str| drop(producer.send(ProducerRecord::new(&topic).value(value)).await.unwrap());
    send("before").await;
    let large = vec![b'x'; 2 << 20];
    let refused = [
        (ProducerRecord::new(&topic).partition(1).value("x"), "out of range"),
        (ProducerRecord::new(&topic).partition(-1).value("x"), "out of range"),
        (ProducerRecord::new(&topic).partition(i32::MAX).value("x"), "out of range"),
        (ProducerRecord::new(&topic).value(&large[..]), "max.request.size"),
        (ProducerRecord::new(&topic).header("h", &large[..]), "max.request.size"),
        (ProducerRecord::new(&topic).timestamp(-2).value("x"), "timestamp"),
    ];
    for (record, names) in refused {
        let error = producer.send(record).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
        assert!(error.to_string().contains(names) && error.to_string().contains(&topic), "{error}");
        send("between").await;
    }
    for name in ["", "not a legal/topic name", "..", &"x".repeat(250)] {
        let error = producer.send(ProducerRecord::new(name).value("x")).await.unwrap_err();
        assert_eq!(error.code(), Some(ErrorCode::INVALID_TOPIC_EXCEPTION), "{name:?}: {error}");
        assert!(!error.is_abortable() && error.to_string().contains(&format!("{name:?}")), "{name:?}: {error}");
    }
    assert_eq!(producer.begin_transaction().unwrap_err().kind(), ErrorKind::InvalidState);
    assert_eq!(producer.init_transactions().await.unwrap_err().kind(), ErrorKind::InvalidState);
    send("after").await;
    producer.commit_transaction().await.unwrap();
    let between = vec!["between"; 6];
    assert_eq!(values(&cluster, &topic).await, [&["before"][..], &between, &["after"]].concat());
    // A second one under its id: the first is told so, and by name.
    let rival = transactional(&cluster, &format!("{topic}-txn"));
    rival.init_transactions().await.unwrap();
    producer.begin_transaction().unwrap();
    let fenced = match producer.send(ProducerRecord::new(&topic).value("fenced")).await {
        Ok(delivery) => delivery.await.unwrap_err(),
        Err(error) => error,
    };
    assert_eq!(fenced.kind(), ErrorKind::Fenced, "{fenced}");
    let dead = producer.abort_transaction().await.unwrap_err();
    assert!(dead.kind() == ErrorKind::Fenced && dead.to_string().contains("a transactional.id of its own"), "{dead}");
}

/// Stages and must be refused; the transaction can only be aborted then.
async fn refused(producer: &TransactionalProducer, acks: ShareAcknowledgements, of: &ShareGroupMetadata) -> Error {
    producer.begin_transaction().unwrap();
    let error = producer.send_share_acks_to_transaction(acks, of).await.expect_err("they are not its own");
    assert!(error.is_abortable(), "{error}");
    assert!(producer.commit_transaction().await.unwrap_err().is_abortable());
    producer.abort_transaction().await.unwrap();
    error
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn acknowledgements_of_others_are_refused_and_take_nothing_away() {
    let broker = embedded(2).await;
    let setup = setup(&broker).await;
    setup.more_deliveries().await;
    let records = setup.poll().await.expect("records");
    let all: Vec<(TopicIdPartition, i64)> = records
        .iter()
        .map(|r| (TopicIdPartition { topic_id: r.topic_id(), partition: r.partition() }, r.offset()))
        .collect();
    let by_hand = || {
        let mut acks = ShareAcknowledgements::new();
        all.iter().for_each(|(tp, offset)| acks.add(*tp, *offset, *offset, AckType::Accept).unwrap());
        acks
    };
    let owner = setup.consumer.share_group_metadata().unwrap();
    // Another member of the group, of a group that there is not, and an epoch that the owner does not have.
    let other = KafkaShareConsumer::builder("", "g").cluster(Arc::clone(&setup.cluster)).build().unwrap();
    other.subscribe(["in"]).unwrap();
    while other.share_group_metadata().is_err() {
        other.poll(Duration::from_millis(50)).await.unwrap();
    }
    let other_member = other.share_group_metadata().unwrap();
    let nobody = ShareGroupMetadata::new("no-such-group", owner.member_id(), owner.member_epoch());
    // Far beyond: the next one is the owner's as soon as it hears of the other member.
    let later = ShareGroupMetadata::new("g", owner.member_id(), owner.member_epoch() + 100);
    let refusals = [
        (&other_member, ErrorCode::INVALID_RECORD_STATE),
        (&nobody, ErrorCode::UNKNOWN_MEMBER_ID),
        (&later, ErrorCode::FENCED_MEMBER_EPOCH),
    ];
    for (member, code) in refusals {
        let error = refused(&setup.producer, by_hand(), member).await;
        let place = format!("in-{}", all[0].0.partition);
        assert!(error.code() == Some(code) && error.to_string().contains(&place), "{error:?}");
    }
    let mut nowhere = ShareAcknowledgements::new();
    nowhere.add(TopicIdPartition { topic_id: Uuid::from_halves(1, 2), partition: 0 }, 0, 9, AckType::Accept).unwrap();
    refused(&setup.producer, nowhere, &owner).await;
    other.close(CLOSE).await.unwrap();
    // Nothing was taken away from the owner: all of it can be acknowledged still.
    let held = records.iter().filter(|r| setup.consumer.acknowledge(r).is_ok()).count();
    assert_eq!(held, all.len());
    let outcomes = setup.consumer.commit_sync(CLOSE).await.unwrap();
    assert!(outcomes.values().all(|o| *o == kafka_share::Outcome::Acknowledged), "{outcomes:?}");
    // And of a session that is no more.
    let input = Producer::builder("").cluster(Arc::clone(&setup.cluster)).build().unwrap();
    input.send(ProducerRecord::new("in").value("1000")).await.unwrap().await.unwrap();
    let records = setup.poll().await.expect("more records");
    let acks = ShareAcknowledgements::from_records(&records, AckType::Accept).unwrap();
    setup.consumer.close(CLOSE).await.unwrap();
    refused(&setup.producer, acks, &owner).await;
    assert!(setup.output().await.is_empty());
}
