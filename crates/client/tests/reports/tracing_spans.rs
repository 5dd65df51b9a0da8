//! Spans and log lines of a share consumer.

use crate::log::Log;
use crate::support::{GROUP, LONG, Mode, Rig, SHORT};
use kafka_share::{AckType, ProducerRecord, ShareAcknowledgements, TransactionalProducer};
use std::sync::Arc;
use tracing::Level;

#[tokio::test]
async fn requests_and_polls_have_spans_with_the_names_of_opentelemetry() {
    let log = Log::start();
    let rig = Rig::new(1).await;
    rig.produce(0..3).await;
    let consumer = rig.consumer(Mode::Explicit);
    let records = rig.receive(&consumer, 3).await;
    consumer.acknowledge_all(&records[0], AckType::Accept).unwrap();
    consumer.commit_sync(LONG).await.unwrap();
    let member = consumer.share_group_metadata().unwrap().member_id().to_owned();
    let broker = rig.leader().to_string();
    for (name, operation, kind) in [
        ("share_poll", "poll", Some("receive")),
        ("share_fetch", "fetch", Some("receive")),
        ("share_acknowledge", "acknowledge", Some("settle")),
        ("share_group_heartbeat", "heartbeat", None),
    ] {
        let spans = log.spans(name);
        assert!(!spans.is_empty(), "no span {name}");
        for span in &spans {
            let field = |name: &str| span.fields.get(name).map(String::as_str);
            assert_eq!(span.level, Some(Level::DEBUG));
            assert_eq!(field("messaging.system"), Some("kafka"), "{span:?}");
            assert_eq!(field("messaging.operation.name"), Some(operation), "{span:?}");
            assert_eq!(field("messaging.operation.type"), kind, "{span:?}");
            assert_eq!(field("messaging.consumer.group.name"), Some(GROUP), "{span:?}");
            assert_eq!(field("member"), Some(member.as_str()), "{span:?}");
        }
        if name != "share_poll" {
            assert!(spans.iter().any(|s| s.fields.get("broker") == Some(&broker)), "{spans:?}");
        }
    }
    for name in ["share_poll", "share_fetch", "share_acknowledge"] {
        let counts = log.spans(name).into_iter().filter_map(|s| s.fields.get("messaging.batch.message_count").cloned());
        let total: u32 = counts.map(|n| n.parse::<u32>().unwrap()).sum();
        assert_eq!(total, 3, "{name}");
    }
    consumer.close(LONG).await.unwrap();
}

#[tokio::test]
async fn transactions_have_spans_too() {
    let log = Log::start();
    let rig = Rig::new(1).await;
    rig.produce(0..3).await;
    let consumer = rig.consumer(Mode::Explicit);
    let records = rig.receive(&consumer, 3).await;
    let producer = TransactionalProducer::builder("", "spans").cluster(Arc::clone(&rig.cluster)).build().unwrap();
    producer.init_transactions().await.unwrap();
    producer.begin_transaction().unwrap();
    drop(producer.send(ProducerRecord::new("orders").value("out")).await.unwrap());
    let acks = ShareAcknowledgements::from_records(&records[0], AckType::Accept).unwrap();
    producer.send_share_acks_to_transaction(acks, &consumer.share_group_metadata().unwrap()).await.unwrap();
    producer.commit_transaction().await.unwrap();
    producer.begin_transaction().unwrap();
    producer.abort_transaction().await.unwrap();
    let ends: Vec<_> =
        log.spans("transaction_end").iter().map(|s| s.fields["messaging.operation.name"].clone()).collect();
    assert_eq!(ends, ["commit", "abort"]);
    let staged = log.spans("transaction_acknowledge");
    let field = |name: &str| staged[0].fields.get(name).map(String::as_str);
    assert_eq!((staged.len(), field("messaging.batch.message_count")), (1, Some("3")));
    assert_eq!(field("messaging.consumer.group.name"), Some(GROUP));
    // Of the three that were consumed, and of one in the transaction.
    let counts = log.spans("produce").into_iter().map(|s| s.fields["messaging.batch.message_count"].clone());
    assert_eq!(counts.map(|n| n.parse::<u32>().unwrap()).sum::<u32>(), 4);
    consumer.close(LONG).await.unwrap();
}

#[tokio::test]
async fn a_topic_that_is_waited_for_is_named_once() {
    let log = Log::start();
    let rig = Rig::new(1).await;
    let consumer = rig.consumer(Mode::Explicit);
    consumer.subscribe(["nowhere", "orders"]).unwrap();
    // Several refreshes of the metadata: pauses between them grow to a second.
    for _ in 0..20 {
        assert!(consumer.poll(SHORT).await.unwrap().is_empty());
    }
    let told = log.events("does not exist");
    let topics: Vec<_> = told.iter().map(|e| e.fields["topic"].as_str()).collect();
    assert_eq!(topics, ["nowhere"]);
    assert_eq!(told[0].level, Some(Level::WARN));
    let admin = kafka_share::Admin::on(Arc::clone(&rig.cluster));
    admin.create_topic(kafka_share::admin::NewTopic::new("nowhere", 1)).await.unwrap();
    let end = std::time::Instant::now() + LONG;
    while log.events("exists now").is_empty() {
        assert!(std::time::Instant::now() < end, "the topic is not found");
        assert!(consumer.poll(SHORT).await.unwrap().is_empty());
    }
    assert_eq!(log.events("exists now")[0].fields["topic"], "nowhere");
}
