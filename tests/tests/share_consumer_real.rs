//! The share consumer on real brokers of each supported release: what all can do, and what older ones refuse clearly.

use kafka_share::admin::NewTopic;
use kafka_share::{
    AckType, AcknowledgementMode, AcquireMode, Admin, ClientConfig, ErrorKind, KafkaShareConsumer, Outcome, Producer,
    ProducerRecord, ShareConsumerBuilder, ShareRecords,
};
use kafka_share_tests::kafka::RealKafka;
use std::time::{Duration, Instant};

const LONG: Duration = Duration::from_secs(30);

fn builder(servers: &str, group: &str) -> ShareConsumerBuilder {
    KafkaShareConsumer::builder(servers, group).acknowledgement_mode(AcknowledgementMode::Explicit)
}

async fn receive(consumer: &KafkaShareConsumer, count: usize) -> Vec<ShareRecords> {
    let until = Instant::now() + LONG;
    let mut all: Vec<ShareRecords> = Vec::new();
    while all.iter().map(ShareRecords::len).sum::<usize>() < count {
        assert!(Instant::now() < until, "{count} records expected");
        all.push(consumer.poll(Duration::from_secs(1)).await.expect("poll"));
    }
    all
}

fn offsets(records: &[ShareRecords]) -> Vec<(i64, i16)> {
    let mut all: Vec<_> = records.iter().flatten().map(|r| (r.offset(), r.delivery_count())).collect();
    all.sort_unstable();
    all
}

async fn released_and_accepted(servers: &str, consumer: &KafkaShareConsumer) {
    for record in receive(consumer, 5).await.iter().flatten() {
        let ack = match record.offset() {
            0 => AckType::Release,
            1 => AckType::Reject,
            _ => AckType::Accept,
        };
        consumer.acknowledge_with(&record, ack).expect("held");
    }
    let outcomes = consumer.commit_sync(LONG).await.expect("commit");
    assert_eq!(outcomes[&("orders".to_owned(), 0)], Outcome::Acknowledged, "{servers}");
    assert_eq!(offsets(&receive(consumer, 1).await), [(0, 2)]);
}

async fn renewals(servers: &str, consumer: &KafkaShareConsumer, offered: bool) {
    let held = consumer.acquisition_lock_timeout().expect("a lock time");
    assert!(held >= Duration::from_secs(1));
    if offered {
        consumer.acknowledge_offset("orders", 0, 0, AckType::Renew).expect("held");
        consumer.commit_sync(LONG).await.expect("commit");
        let again = receive(consumer, 1).await;
        assert_eq!(offsets(&again), [(0, 2)], "renewed, not delivered anew");
        consumer.acknowledge_all(&again[again.len() - 1], AckType::Accept).expect("explicit");
        consumer.commit_sync(LONG).await.expect("commit");
        return;
    }
    let refused = consumer.acknowledge_offset("orders", 0, 0, AckType::Renew).expect_err("not offered");
    assert_eq!(refused.kind(), ErrorKind::Unsupported);
    for builder in [
        builder(servers, "limited").acquire_mode(AcquireMode::RecordLimit),
        builder(servers, "renewing").lock_renewal(LONG),
    ] {
        let consumer = builder.build().expect("build");
        consumer.subscribe(["orders"]).expect("subscribe");
        assert_eq!(consumer.poll(LONG).await.expect_err("not offered").kind(), ErrorKind::Unsupported);
        consumer.close(LONG).await.expect("close");
    }
}

async fn check(servers: &str, offered: bool) {
    let admin = Admin::new(ClientConfig::new(servers)).expect("admin");
    admin.create_topic(NewTopic::new("orders", 1)).await.expect("topic");
    admin.alter_share_group_configs("real", &[("share.auto.offset.reset", "earliest")]).await.expect("configs");
    let producer = Producer::builder(servers).build().expect("producer");
    for value in 0..5 {
        producer.send(ProducerRecord::new("orders").value(value.to_string())).await.expect("send").await.expect("sent");
    }
    let consumer = builder(servers, "real").build().expect("build");
    consumer.subscribe(["orders"]).expect("subscribe");
    released_and_accepted(servers, &consumer).await;
    renewals(servers, &consumer, offered).await;
    consumer.close(LONG).await.expect("close");
}

fn on_release(test: &str, version: &str, offered: bool) {
    let Some(kafka) = RealKafka::start(test, version) else { return };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("runtime");
    runtime.block_on(check(&kafka.bootstrap(), offered));
}

#[test]
fn share_consumer_on_kafka_4_1() {
    on_release("share_consumer_on_kafka_4_1", "4.1.1", false);
}

#[test]
fn share_consumer_on_kafka_4_2() {
    on_release("share_consumer_on_kafka_4_2", "4.2.0", true);
}

#[test]
fn share_consumer_on_kafka_4_3() {
    on_release("share_consumer_on_kafka_4_3", "4.3.1", true);
}

#[test]
fn share_consumer_on_kafka_4_4() {
    on_release("share_consumer_on_kafka_4_4", "4.4.0", true);
}
