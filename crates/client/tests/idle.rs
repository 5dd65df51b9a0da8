//! R20: a poll that waits costs nothing. Alone in its process, because it looks at the process's CPU time.

#![cfg(target_os = "linux")]

mod support;

use kafka_share::ledger::AckBackendChoice;
use kafka_share::{
    AckType, Admin, ClientConfig, KafkaShareConsumer, Producer, ProducerRecord, ShareAcknowledgements,
    TransactionalProducer,
};
use kafka_share_broker::EmbeddedBroker;
use std::time::{Duration, Instant};

async fn waits_idly(consumer: &KafkaShareConsumer, what: &str) {
    // Joining and the first fetches are behind us after this poll.
    assert!(consumer.poll(Duration::from_secs(2)).await.expect("poll").is_empty());
    let (before, started) = (support::cpu_time(), Instant::now());
    assert!(consumer.poll(Duration::from_secs(3)).await.expect("poll").is_empty());
    let used = support::cpu_time() - before;
    // Two tasks that keep each other awake would use the whole time, or twice that.
    assert!(used < started.elapsed() / 4, "{what}: {used:?} of CPU in {:?} of waiting", started.elapsed());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r020_an_idle_poll_burns_no_cpu() {
    let broker = EmbeddedBroker::builder().topic("quiet", 2).transactional_acks(false).start().await.expect("broker");
    let servers = broker.bootstrap_servers();
    let admin = Admin::new(ClientConfig::new(&servers)).expect("admin");
    admin.list_topics().await.expect("topics");
    let consumer = KafkaShareConsumer::builder(&servers, "idle").build().expect("consumer");
    consumer.subscribe(["quiet"]).expect("subscribe");
    waits_idly(&consumer, "plain").await;
    consumer.close(support::LONG).await.expect("close");

    // With a ledger that is followed, first with nothing in it, then with records that wait for another's transaction.
    // Nobody is to be fenced within this test.
    let settings = [("share.auto.offset.reset", "earliest"), ("share.record.lock.duration.ms", "60000")];
    admin.alter_share_group_configs("led", &settings).await.expect("configs");
    let member = || {
        let builder = KafkaShareConsumer::builder(&servers, "led").share_ack_backend(AckBackendChoice::Ledger);
        let consumer = builder.ledger_auto_create(true).build().expect("consumer");
        consumer.subscribe(["quiet"]).expect("subscribe");
        consumer
    };
    let first = member();
    waits_idly(&first, "with a ledger").await;
    let plain = Producer::builder(&servers).build().expect("producer");
    plain.send(ProducerRecord::new("quiet").value("x")).await.expect("sent").await.expect("written");
    let records = first.poll(Duration::from_secs(20)).await.expect("poll");
    let producer = TransactionalProducer::builder(&servers, "t").build().expect("producer");
    producer.init_transactions().await.expect("init");
    producer.begin_transaction().expect("begin");
    let acks = ShareAcknowledgements::from_records(&records, AckType::Accept).expect("held");
    let metadata = first.share_group_metadata().expect("a member");
    producer.send_share_acks_to_transaction(acks, &metadata).await.expect("staged");
    producer.prepare_transaction().await.expect("prepared");
    broker.expire_locks("led");
    let second = member();
    waits_idly(&second, "behind another's transaction").await;
}
