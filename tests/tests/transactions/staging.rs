//! Share acknowledgements in transactions, on the embedded broker (no released Kafka has them).

use super::embedded;
use kafka_share::admin::NewTopic;
use kafka_share::net::Cluster;
use kafka_share::{
    AckType, AcknowledgementMode, Admin, ClientConfig, ErrorCode, ErrorKind, KafkaShareConsumer, PartitionReader,
    Producer, ProducerRecord, ShareAcknowledgements, ShareGroupMetadata, ShareRecords, TopicIdPartition,
    TransactionalProducer,
};
use kafka_share_broker::{EmbeddedBroker, Fault, FaultAction};
use kafka_share_messages::ApiKey;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

const CLOSE: Duration = Duration::from_secs(30);
pub(crate) const RECORDS: usize = 60;

pub(crate) struct Setup {
    pub(crate) cluster: Arc<Cluster>,
    pub(crate) consumer: Arc<KafkaShareConsumer>,
    pub(crate) producer: TransactionalProducer,
}

pub(crate) async fn setup(broker: &EmbeddedBroker) -> Setup {
    let admin = Admin::new(ClientConfig::new(&broker.bootstrap_servers())).unwrap();
    let cluster = Arc::clone(admin.cluster());
    for topic in ["in", "out"] {
        admin.create_topic(NewTopic::new(topic, 3)).await.unwrap();
    }
    admin.alter_share_group_configs("g", &[("share.auto.offset.reset", "earliest")]).await.unwrap();
    let producer = Producer::builder("").cluster(Arc::clone(&cluster)).build().unwrap();
    for i in 0..RECORDS {
        let record = ProducerRecord::new("in").partition((i % 3) as i32).value(i.to_string());
        drop(producer.send(record).await.unwrap());
    }
    producer.close(CLOSE).await.unwrap();
    let builder = KafkaShareConsumer::builder("", "g").cluster(Arc::clone(&cluster));
    let consumer = builder.acknowledgement_mode(AcknowledgementMode::Explicit).build().unwrap();
    consumer.subscribe(["in"]).unwrap();
    let producer = TransactionalProducer::builder("", "txn").cluster(Arc::clone(&cluster)).build().unwrap();
    producer.init_transactions().await.unwrap();
    Setup { cluster, consumer: Arc::new(consumer), producer }
}

impl Setup {
    /// One poll that has records, forwarded and acknowledged in the open transaction.
    pub(crate) async fn forward(&self) -> Option<(usize, ShareRecords)> {
        let records = self.poll().await?;
        self.producer.begin_transaction().unwrap();
        for record in records.iter() {
            let out = ProducerRecord::new("out").value(record.value().unwrap());
            drop(self.producer.send(out).await.unwrap());
        }
        let acks = ShareAcknowledgements::from_records(&records, AckType::Accept).unwrap();
        let member = self.consumer.share_group_metadata().unwrap();
        self.producer.send_share_acks_to_transaction(acks, &member).await.unwrap();
        Some((records.len(), records))
    }

    /// Each abort costs a delivery, and at the limit records are archived.
    pub(crate) async fn more_deliveries(&self) {
        let admin = Admin::on(Arc::clone(&self.cluster));
        admin.alter_share_group_configs("g", &[("share.delivery.count.limit", "10")]).await.unwrap();
    }

    pub(crate) async fn poll(&self) -> Option<ShareRecords> {
        let until = Instant::now() + Duration::from_secs(30);
        while Instant::now() < until {
            let records = self.consumer.poll(Duration::from_millis(500)).await.unwrap();
            if !records.is_empty() {
                return Some(records);
            }
        }
        None
    }

    pub(crate) async fn output(&self) -> Vec<usize> {
        let mut reader = PartitionReader::read_committed(Arc::clone(&self.cluster), "out").await.unwrap();
        let batches = reader.read_to_end().await.unwrap();
        let number = |v: Option<&[u8]>| std::str::from_utf8(v.unwrap()).unwrap().parse().unwrap();
        let mut all: Vec<usize> = batches.iter().flat_map(|b| b.iter().map(|r| number(r.value()))).collect();
        all.sort_unstable();
        all
    }
}

/// Every other transaction is aborted; its records come again, and in the end each is in the output once.
async fn output_and_acknowledgements_are_one(version: i16) {
    let broker = embedded(version).await;
    let setup = setup(&broker).await;
    let (mut committed, mut round) = (0, 0);
    while committed < RECORDS {
        let (count, _records) = setup.forward().await.expect("records are left");
        round += 1;
        if round % 2 == 1 {
            setup.producer.abort_transaction().await.unwrap();
        } else {
            setup.producer.commit_transaction().await.unwrap();
            committed += count;
        }
    }
    assert_eq!(committed, RECORDS);
    let metrics = setup.producer.metrics();
    assert!(metrics.get("txn-share-acks-total").unwrap() >= RECORDS as f64, "{metrics:?}");
    assert_eq!(metrics.get("txn-share-acks-error-total"), Some(0.0));
    assert!(metrics.get("txn-share-acks-latency-max").unwrap() > 0.0);
    assert_eq!(setup.output().await, (0..RECORDS).collect::<Vec<_>>());
    let left = setup.consumer.poll(Duration::from_millis(700)).await.unwrap();
    assert!(left.is_empty(), "all are acknowledged");
    setup.consumer.close(CLOSE).await.unwrap();
    setup.producer.close(CLOSE).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn output_and_acknowledgements_are_one_on_version_2() {
    output_and_acknowledgements_are_one(2).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn output_and_acknowledgements_are_one_on_version_1() {
    output_and_acknowledgements_are_one(1).await;
}

/// Where records wait for replicas, acknowledgements do not stand behind them: a connection is answered in order.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn acknowledgements_are_staged_beside_records_that_the_broker_holds() {
    let broker = embedded(2).await;
    let setup = setup(&broker).await;
    let records = setup.poll().await.expect("records");
    let acks = ShareAcknowledgements::from_records(&records, AckType::Accept).unwrap();
    let member = setup.consumer.share_group_metadata().unwrap();
    setup.producer.begin_transaction().unwrap();
    broker.fault(Fault::new(FaultAction::Delay(Duration::from_millis(50))).key(ApiKey::PRODUCE));
    setup.producer.send(ProducerRecord::new("out").value("slow")).await.unwrap().await.unwrap();
    let held = broker.fault(Fault::new(FaultAction::Ignore).key(ApiKey::PRODUCE));
    let _never = setup.producer.send(ProducerRecord::new("out").value("held")).await.unwrap();
    while broker.fault_hits(held) == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    setup.producer.send_share_acks_to_transaction(acks, &member).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r076_a_refused_acknowledgement_makes_the_transaction_abort_only() {
    let broker = embedded(2).await;
    let setup = setup(&broker).await;
    let records = setup.poll().await.expect("records");
    let first = records.iter().next().unwrap();
    let (tp, offset) = (TopicIdPartition { topic_id: first.topic_id(), partition: first.partition() }, first.offset());
    setup.producer.begin_transaction().unwrap();
    let member = setup.consumer.share_group_metadata().unwrap();
    let mut acks = ShareAcknowledgements::new();
    acks.add(tp, offset, offset, AckType::Accept).unwrap();
    acks.add(tp, offset + 1000, offset + 1004, AckType::Accept).unwrap();
    let error = setup.producer.send_share_acks_to_transaction(acks, &member).await.unwrap_err();
    assert!(error.is_abortable() && error.to_string().contains(&tp.partition.to_string()), "{error:?}");
    assert!(setup.producer.commit_transaction().await.unwrap_err().is_abortable());
    setup.producer.abort_transaction().await.unwrap();
    setup.producer.begin_transaction().unwrap();
    let fenced = ShareGroupMetadata::new(member.group_id(), member.member_id(), member.member_epoch() + 100);
    let mut acks = ShareAcknowledgements::new();
    acks.add(tp, offset + 1, offset + 1, AckType::Accept).unwrap();
    assert!(setup.producer.send_share_acks_to_transaction(acks, &fenced).await.is_err());
    setup.producer.abort_transaction().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_released_broker_is_told_apart_before_anything_is_staged() {
    let broker = EmbeddedBroker::builder().transactional_acks(false).start().await.unwrap();
    let setup = setup(&broker).await;
    let records = setup.poll().await.expect("records");
    setup.producer.begin_transaction().unwrap();
    let member = setup.consumer.share_group_metadata().unwrap();
    let acks = ShareAcknowledgements::from_records(&records, AckType::Accept).unwrap();
    let error = setup.producer.send_share_acks_to_transaction(acks, &member).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    // Nothing happened: the transaction commits, and the consumer has its records back.
    drop(setup.producer.send(ProducerRecord::new("out").value("1")).await.unwrap());
    setup.producer.commit_transaction().await.unwrap();
    assert_eq!(setup.consumer.acknowledge_all(&records, AckType::Accept).unwrap(), records.len());
    setup.consumer.commit_sync(CLOSE).await.unwrap();
    assert_eq!(setup.output().await, [1]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn acknowledgements_alone_are_committed() {
    let broker = embedded(2).await;
    let setup = setup(&broker).await;
    let mut seen = 0;
    while seen < RECORDS {
        let records = setup.poll().await.expect("records");
        seen += records.len();
        setup.producer.begin_transaction().unwrap();
        setup.consumer.acknowledge_all(&records, AckType::Accept).unwrap();
        let acks = setup.consumer.acknowledgements_for_transaction().unwrap();
        let member = setup.consumer.share_group_metadata().unwrap();
        setup.producer.send_share_acks_to_transaction(acks, &member).await.unwrap();
        let nothing = ShareAcknowledgements::new();
        setup.producer.send_share_acks_to_transaction(nothing, &member).await.unwrap();
        setup.producer.commit_transaction().await.unwrap();
    }
    assert!(setup.consumer.poll(Duration::from_millis(700)).await.unwrap().is_empty());
}

/// Acknowledgements for a transaction that has failed already: its output is never seen, so they must not take effect.
async fn what_a_failed_transaction_does_not_take_comes_again(mode: AcknowledgementMode) {
    let broker = embedded(2).await;
    let setup = setup(&broker).await;
    setup.consumer.close(CLOSE).await.unwrap();
    let builder = KafkaShareConsumer::builder("", "g").cluster(Arc::clone(&setup.cluster));
    let consumer = builder.acknowledgement_mode(mode).max_poll_records(10).build().unwrap();
    consumer.subscribe(["in"]).unwrap();
    let setup = Setup { consumer: Arc::new(consumer), ..setup };
    let records = setup.poll().await.expect("records");
    let member = setup.consumer.share_group_metadata().unwrap();
    setup.producer.begin_transaction().unwrap();
    let refuse = FaultAction::Error(ErrorCode::TOPIC_AUTHORIZATION_FAILED);
    broker.fault(Fault::new(refuse).key(ApiKey::PRODUCE));
    setup.producer.send(ProducerRecord::new("out").value("lost")).await.unwrap().await.unwrap_err();
    let acks = if mode == AcknowledgementMode::Implicit {
        ShareAcknowledgements::from_records(&records, AckType::Accept).unwrap()
    } else {
        setup.consumer.acknowledge_all(&records, AckType::Accept).unwrap();
        setup.consumer.acknowledgements_for_transaction().unwrap()
    };
    let error = setup.producer.send_share_acks_to_transaction(acks, &member).await.unwrap_err();
    assert!(error.is_abortable(), "{error:?}");
    setup.producer.abort_transaction().await.unwrap();
    // Acknowledgements go along with the fetch of the next poll, and in implicit mode are given by it.
    setup.consumer.poll(Duration::from_millis(500)).await.unwrap();
    setup.consumer.close(CLOSE).await.unwrap();
    broker.expire_locks("g");
    let builder = KafkaShareConsumer::builder("", "g").cluster(Arc::clone(&setup.cluster));
    let consumer = builder.acknowledgement_mode(AcknowledgementMode::Explicit).build().unwrap();
    consumer.subscribe(["in"]).unwrap();
    let setup = Setup { consumer: Arc::new(consumer), ..setup };
    let mut seen = BTreeSet::new();
    while seen.len() < RECORDS {
        let records = setup.poll().await.unwrap_or_else(|| panic!("{} of {RECORDS} records come again", seen.len()));
        seen.extend(records.iter().map(|record| record.value().unwrap().to_vec()));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_failed_transaction_does_not_take_comes_again_in_explicit_mode() {
    what_a_failed_transaction_does_not_take_comes_again(AcknowledgementMode::Explicit).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_failed_transaction_does_not_take_comes_again_in_implicit_mode() {
    what_a_failed_transaction_does_not_take_comes_again(AcknowledgementMode::Implicit).await;
}

/// Its markers are written when the answer to EndTxn is long there, as on a real cluster.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn acknowledgements_wait_for_the_transaction_before_them_to_be_complete() {
    for version in [1, 2] {
        let slow = EmbeddedBroker::builder().nodes(3).transaction_version(version);
        let broker = slow.configure(|config| config.marker_delay_ms = 60).start().await.unwrap();
        let setup = setup(&broker).await;
        for turn in 0..3 {
            let records = match setup.poll().await {
                Some(records) => records,
                None => break,
            };
            // Of one record, so that some are left for the next turn.
            let first = records.iter().next().unwrap();
            let tp = TopicIdPartition { topic_id: first.topic_id(), partition: first.partition() };
            let mut acks = ShareAcknowledgements::new();
            acks.add(tp, first.offset(), first.offset(), AckType::Accept).unwrap();
            let member = setup.consumer.share_group_metadata().unwrap();
            for part in 0..2 {
                setup.producer.begin_transaction().unwrap();
                if part == 0 {
                    drop(setup.producer.send(ProducerRecord::new("out").value(turn.to_string())).await.unwrap());
                } else {
                    let acks = std::mem::take(&mut acks);
                    setup.producer.send_share_acks_to_transaction(acks, &member).await.unwrap();
                }
                setup.producer.commit_transaction().await.unwrap();
            }
            let release = |r: &kafka_share::ShareRecord<'_>| setup.consumer.acknowledge_with(r, AckType::Release);
            records.iter().skip(1).for_each(|r| release(&r).unwrap());
            setup.consumer.commit_sync(CLOSE).await.unwrap();
        }
    }
}
