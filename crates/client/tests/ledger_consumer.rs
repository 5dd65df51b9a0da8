//! A share consumer whose acknowledgements go into transactions by the ledger, on an embedded broker that has no
//! transactional acknowledgements.

use kafka_share::admin::{ConfigResource, NewTopic};
use kafka_share::ledger::{AckBackendChoice, NewLedger};
use kafka_share::net::{Cluster, Purpose};
use kafka_share::{
    AckOutcome, AckType, AcknowledgementMode as Mode, Admin, ClientConfig, ErrorKind, KafkaShareConsumer, Outcome,
    PartitionReader, Producer, ProducerRecord, ShareAcknowledgements, ShareGroupMetadata, ShareRecords,
    TopicIdPartition, TransactionSession, TransactionalProducer,
};
use kafka_share_broker::{EmbeddedBroker, Fault, FaultAction, GroupBounds, Rewrite};
use kafka_share_messages::delete_records_request::{DeleteRecordsPartition, DeleteRecordsTopic};
use kafka_share_messages::{ApiKey, ApiVersionsResponse, DeleteRecordsRequest, ErrorCode, ShareFetchResponse};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const LONG: Duration = Duration::from_secs(30);
const SHORT: Duration = Duration::from_millis(100);
const GROUP: &str = "group";

struct Lab {
    broker: EmbeddedBroker,
    cluster: Arc<Cluster>,
}

impl Lab {
    /// Ten records in one partition of `in`, an empty `out`, and a ledger. `lock_ms`: `share.record.lock.duration.ms`.
    async fn new(transaction_version: i16, lock_ms: i64) -> Lab {
        let lab = Self::without_ledger(transaction_version, lock_ms).await;
        lab.admin().create_ledger(&NewLedger::new().partitions(2)).await.unwrap();
        lab
    }

    async fn without_ledger(transaction_version: i16, lock_ms: i64) -> Lab {
        let bounds = GroupBounds { record_lock_ms: (1_000, 60_000), ..GroupBounds::default() };
        let builder = EmbeddedBroker::builder().topic("in", 1).topic("out", 1).group_bounds(bounds);
        let builder = builder.transactional_acks(false).transaction_version(transaction_version);
        let broker = builder.start().await.unwrap();
        let cluster = Cluster::new(ClientConfig::new(&broker.bootstrap_servers())).unwrap();
        let lab = Lab { broker, cluster };
        let lock = lock_ms.to_string();
        let settings = [("share.auto.offset.reset", "earliest"), ("share.record.lock.duration.ms", &lock)];
        lab.admin().alter_share_group_configs(GROUP, &settings).await.unwrap();
        lab.produce(0..10).await;
        lab
    }

    fn admin(&self) -> Admin {
        Admin::on(Arc::clone(&self.cluster))
    }

    /// Takes all records of a ledger out of it, as an administrator may who wants to.
    async fn delete_all(&self, ledger: &str, partitions: i32) {
        // Compacted topics refuse that.
        let resource = ConfigResource::Topic(ledger.to_owned());
        let policy = [("cleanup.policy", Some("delete"))];
        self.admin().incremental_alter_configs(&resource, &policy).await.unwrap();
        let part = |partition_index| DeleteRecordsPartition { partition_index, offset: -1, ..Default::default() };
        let partitions = (0..partitions).map(part).collect();
        let topic = DeleteRecordsTopic { name: ledger.into(), partitions, ..Default::default() };
        let request = DeleteRecordsRequest { topics: vec![topic], timeout_ms: 10_000, ..Default::default() };
        let node = self.broker.nodes()[0].id;
        let answer =
            self.cluster.call_node(node, Purpose::Coordination, &request, Instant::now() + LONG).await.unwrap();
        let rows = answer.topics.iter().flat_map(|t| &t.partitions);
        rows.for_each(|row| assert_eq!(row.error_code, ErrorCode::NONE));
    }

    /// Works until the output has so many records.
    async fn work(&self, producer: &TransactionalProducer, consumer: &KafkaShareConsumer, records: usize) {
        while self.output().await.len() < records {
            process(producer, consumer, &some(consumer).await).await;
            producer.commit_transaction().await.unwrap();
        }
        self.until_done(consumer).await;
    }

    async fn produce(&self, values: std::ops::Range<usize>) {
        let producer = Producer::builder("").cluster(Arc::clone(&self.cluster)).build().unwrap();
        for n in values {
            producer.send(ProducerRecord::new("in").value(n.to_string())).await.unwrap().await.unwrap();
        }
    }

    fn consumer(&self, mode: Mode, backend: Option<AckBackendChoice>) -> KafkaShareConsumer {
        let builder = KafkaShareConsumer::builder("", GROUP).cluster(Arc::clone(&self.cluster));
        let builder = builder.acknowledgement_mode(mode);
        let builder = match backend {
            Some(backend) => builder.share_ack_backend(backend),
            None => builder,
        };
        let consumer = builder.build().unwrap();
        consumer.subscribe(["in"]).unwrap();
        consumer
    }

    async fn transactional(&self, id: &str) -> TransactionalProducer {
        let producer = TransactionalProducer::builder("", id).cluster(Arc::clone(&self.cluster)).build().unwrap();
        producer.init_transactions().await.unwrap();
        producer
    }

    /// Values that a read_committed reader finds in the output.
    async fn output(&self) -> Vec<String> {
        let mut reader = PartitionReader::read_committed(Arc::clone(&self.cluster), "out").await.unwrap();
        let batches = reader.read_to_end().await.unwrap();
        let value = |value: Option<&[u8]>| String::from_utf8(value.unwrap_or_default().to_vec()).unwrap();
        let mut all: Vec<String> = batches.iter().flat_map(|b| b.iter().map(|r| value(r.value()))).collect();
        all.sort();
        all
    }

    /// Waits until the broker has nothing left for the group.
    async fn until_done(&self, consumer: &KafkaShareConsumer) {
        let until = Instant::now() + LONG;
        loop {
            let offsets = self.admin().describe_share_group_offsets(GROUP).await.unwrap();
            if offsets.first().is_some_and(|o| o.lag == Some(0)) {
                return;
            }
            assert!(Instant::now() < until, "{offsets:?}");
            assert!(consumer.poll(SHORT).await.unwrap().is_empty());
        }
    }
}

fn all_values(count: usize) -> Vec<String> {
    let mut all: Vec<String> = (0..count).map(|n| n.to_string()).collect();
    all.sort();
    all
}

/// Polls until something comes.
async fn some(consumer: &KafkaShareConsumer) -> ShareRecords {
    let until = Instant::now() + LONG;
    loop {
        let records = consumer.poll(SHORT).await.unwrap();
        if !records.is_empty() {
            return records;
        }
        assert!(Instant::now() < until, "no records came");
    }
}

fn offsets(records: &ShareRecords) -> Vec<i64> {
    records.iter().map(|r| r.offset()).collect()
}

/// Writes the records to the output and stages their acknowledgements.
async fn process(producer: &TransactionalProducer, consumer: &KafkaShareConsumer, records: &ShareRecords) {
    producer.begin_transaction().unwrap();
    for record in records {
        let value = record.value().unwrap().to_vec();
        drop(producer.send(ProducerRecord::new("out").value(value)).await.unwrap());
    }
    let acks = ShareAcknowledgements::from_records(records, AckType::Accept).unwrap();
    let member = consumer.share_group_metadata().unwrap();
    producer.send_share_acks_to_transaction(acks, &member).await.unwrap();
}

fn told(outcomes: &[AckOutcome]) -> Vec<(i64, i64, Outcome)> {
    outcomes.iter().map(|o| (o.first_offset, o.last_offset, o.outcome)).collect()
}

fn count(consumer: &KafkaShareConsumer, what: &str) -> f64 {
    consumer.metrics().get(&format!("share-ack-ledger-{what}-total")).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transaction_acknowledges_once_and_the_broker_is_told() {
    for version in [1, 2] {
        for backend in [Some(AckBackendChoice::Ledger), Some(AckBackendChoice::Auto), None] {
            for mode in [Mode::Explicit, Mode::Implicit] {
                let lab = Lab::new(version, 30_000).await;
                let consumer = lab.consumer(mode, backend);
                let producer = lab.transactional("t").await;
                let records = some(&consumer).await;
                process(&producer, &consumer, &records).await;
                producer.commit_transaction().await.unwrap();
                assert_eq!(told(&consumer.poll_outcomes()), [(0, 9, Outcome::Acknowledged)]);
                lab.until_done(&consumer).await;
                assert_eq!(lab.output().await, all_values(10));
                assert!(consumer.poll_outcomes().is_empty(), "there is no second outcome");
                // The answer to the fetch that took them along may wait for records.
                lab.produce(0..10).await;
                let records = some(&consumer).await;
                assert!((count(&consumer, "confirmed") - 10.0).abs() < 0.1);
                // So the next transaction takes its intent out of the ledger.
                process(&producer, &consumer, &records).await;
                producer.commit_transaction().await.unwrap();
                let tombstones = producer.metrics().get("share-ack-ledger-tombstones-total").unwrap();
                assert!((tombstones - 1.0).abs() < 0.1);
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_abort_makes_the_records_available_at_once() {
    let lab = Lab::new(2, 30_000).await;
    let consumer = lab.consumer(Mode::Explicit, Some(AckBackendChoice::Ledger));
    let producer = lab.transactional("t").await;
    let records = some(&consumer).await;
    process(&producer, &consumer, &records).await;
    producer.abort_transaction().await.unwrap();
    assert_eq!(told(&consumer.poll_outcomes()), [(0, 9, Outcome::LockLost)]);
    let again = some(&consumer).await;
    assert_eq!(offsets(&again), offsets(&records));
    assert!(again.iter().all(|r| r.delivery_count() == 2));
    assert!(lab.output().await.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_another_member_has_done_is_acknowledged_and_not_handed_out() {
    let lab = Lab::new(2, 30_000).await;
    let first = lab.consumer(Mode::Explicit, Some(AckBackendChoice::Ledger));
    let producer = lab.transactional("t").await;
    let records = some(&first).await;
    process(&producer, &first, &records).await;
    producer.commit_transaction().await.unwrap();
    // Before the broker is told, the locks end.
    assert!(lab.broker.expire_locks(GROUP) > 0);
    let second = lab.consumer(Mode::Explicit, Some(AckBackendChoice::Ledger));
    lab.until_done(&second).await;
    assert!((count(&second, "done-elsewhere") - 10.0).abs() < 0.1);
    assert!(second.poll_outcomes().is_empty());
    assert_eq!(lab.output().await, all_values(10));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_another_member_is_about_to_do_waits_without_holding_up_the_rest() {
    let lab = Lab::new(2, 30_000).await;
    let first = lab.consumer(Mode::Explicit, Some(AckBackendChoice::Ledger));
    let producer = lab.transactional("t").await;
    let records = some(&first).await;
    process(&producer, &first, &records).await;
    producer.prepare_transaction().await.unwrap();
    lab.broker.expire_locks(GROUP);
    let second = lab.consumer(Mode::Explicit, Some(AckBackendChoice::Ledger));
    lab.produce(0..1).await;
    // The one that nobody claims.
    let free = some(&second).await;
    assert_eq!(offsets(&free), [10]);
    second.acknowledge_all(&free, AckType::Accept).unwrap();
    producer.commit_transaction().await.unwrap();
    lab.until_done(&second).await;
    assert!((count(&second, "done-elsewhere") - 10.0).abs() < 0.1);
    assert_eq!(lab.output().await, all_values(10));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_that_holds_others_up_is_fenced_and_goes_on() {
    for version in [1, 2] {
        let lab = Lab::new(version, 8_000).await;
        let first = lab.consumer(Mode::Explicit, Some(AckBackendChoice::Ledger));
        let stopped = lab.transactional("stopped").await;
        let records = some(&first).await;
        process(&stopped, &first, &records).await;
        stopped.prepare_transaction().await.unwrap();
        lab.broker.expire_locks(GROUP);
        // A quarter of the lock later the other one has its transaction ended, and gets the records.
        let second = lab.consumer(Mode::Explicit, Some(AckBackendChoice::Ledger));
        let taken_over = some(&second).await;
        assert_eq!(offsets(&taken_over), offsets(&records));
        assert!((count(&second, "fences") - 1.0).abs() < 0.1);
        let producer = lab.transactional("t").await;
        process(&producer, &second, &taken_over).await;
        producer.commit_transaction().await.unwrap();
        // The first is told so, and is no worse for it.
        let error = stopped.commit_transaction().await.unwrap_err();
        assert!(error.is_abortable() && error.kind() == ErrorKind::TransactionAborted, "{error}");
        stopped.abort_transaction().await.unwrap();
        lab.until_done(&second).await;
        second.close(LONG).await.unwrap();
        lab.produce(0..1).await;
        let records = some(&first).await;
        assert_eq!(offsets(&records), [10]);
        process(&stopped, &first, &records).await;
        stopped.commit_transaction().await.unwrap();
        lab.until_done(&first).await;
        assert_eq!(lab.output().await.len(), 11, "version {version}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transaction_on_records_that_others_have_done_is_done_again_without_them() {
    let lab = Lab::new(2, 30_000).await;
    let first = lab.consumer(Mode::Explicit, Some(AckBackendChoice::Ledger));
    let late = lab.transactional("late").await;
    let records = some(&first).await;
    // While it works on them, the locks end, and another one does some of them.
    lab.broker.expire_locks(GROUP);
    let builder = KafkaShareConsumer::builder("", GROUP).cluster(Arc::clone(&lab.cluster)).max_poll_records(3);
    let second = builder.share_ack_backend(AckBackendChoice::Ledger).build().unwrap();
    second.subscribe(["in"]).unwrap();
    let producer = lab.transactional("t").await;
    let some_of_them = some(&second).await;
    assert_eq!(offsets(&some_of_them), [0, 1, 2]);
    process(&producer, &second, &some_of_them).await;
    producer.commit_transaction().await.unwrap();
    process(&late, &first, &records).await;
    let error = late.commit_transaction().await.unwrap_err();
    assert!(error.is_abortable() && error.to_string().contains("3 of the records"), "{error}");
    late.abort_transaction().await.unwrap();
    second.close(LONG).await.unwrap();
    // The others come again from where they are, or from the broker: its lock may be known as lost by then.
    let mut rest = 0;
    while rest < 7 {
        let records = some(&first).await;
        rest += records.len();
        process(&late, &first, &records).await;
        late.commit_transaction().await.unwrap();
    }
    lab.until_done(&first).await;
    assert_eq!(lab.output().await, all_values(10));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn acknowledgements_by_hand_are_tied_to_their_consumer() {
    let lab = Lab::new(2, 30_000).await;
    let consumer = lab.consumer(Mode::Explicit, None);
    let producer = lab.transactional("t").await;
    let records = some(&consumer).await;
    let topic_id = lab.cluster.topic("in", false, Instant::now() + LONG).await.unwrap().id;
    let tp = TopicIdPartition { topic_id, partition: 0 };
    let by_hand = |first, last| {
        let mut acks = ShareAcknowledgements::new();
        acks.add(tp, first, last, AckType::Accept).unwrap();
        acks
    };
    producer.begin_transaction().unwrap();
    // Of nobody that is known.
    let stranger = ShareGroupMetadata::new(GROUP, "me", 1);
    let error = producer.send_share_acks_to_transaction(by_hand(0, 9), &stranger).await.unwrap_err();
    assert!(error.kind() == ErrorKind::Unsupported && error.to_string().contains("share_group_metadata"), "{error}");
    // Not held.
    let member = consumer.share_group_metadata().unwrap();
    assert_eq!((&member, format!("{member:?}").contains("group_id")), (&member.clone(), true));
    let error = producer.send_share_acks_to_transaction(by_hand(5, 10), &member).await.unwrap_err();
    assert!(error.to_string().contains("not held any more"), "{error}");
    // What was sent must not be committed without the acknowledgements that belong to it.
    let error = producer.commit_transaction().await.unwrap_err();
    assert!(error.is_abortable() && error.to_string().contains("not held any more"), "{error:?}");
    producer.abort_transaction().await.unwrap();
    producer.begin_transaction().unwrap();
    producer.send_share_acks_to_transaction(by_hand(0, 4), &member).await.unwrap();
    // In a transaction they cannot be acknowledged otherwise.
    let error = consumer.acknowledge(&records.iter().next().unwrap()).unwrap_err();
    assert!(error.to_string().contains("transaction"), "{error}");
    producer.send_share_acks_to_transaction(by_hand(5, 9), &member).await.unwrap();
    producer.commit_transaction().await.unwrap();
    assert_eq!(told(&consumer.poll_outcomes()), [(0, 4, Outcome::Acknowledged), (5, 9, Outcome::Acknowledged)]);
    lab.until_done(&consumer).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_missing_ledger_is_an_error_of_every_poll_until_it_is_there() {
    let lab = Lab::without_ledger(2, 30_000).await;
    let consumer = lab.consumer(Mode::Explicit, Some(AckBackendChoice::Ledger));
    for _ in 0..2 {
        let error = consumer.poll(LONG).await.unwrap_err();
        assert!(error.to_string().contains("share-ack-ledger") && error.to_string().contains("create"), "{error}");
    }
    lab.admin().create_ledger(&NewLedger::new()).await.unwrap();
    let until = Instant::now() + LONG;
    let records = loop {
        match consumer.poll(LONG).await {
            Ok(records) => break records,
            Err(_) => assert!(Instant::now() < until),
        }
    };
    assert_eq!(records.len(), 10);
}

/// In implicit mode the next poll accepts what the last one handed out: not what was meant for a transaction that could not
/// take it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn records_whose_staging_was_refused_are_not_accepted_by_the_next_poll() {
    let lab = Lab::without_ledger(2, 30_000).await;
    let consumer = lab.consumer(Mode::Implicit, None);
    let producer = lab.transactional("t").await;
    let records = some(&consumer).await;
    producer.begin_transaction().unwrap();
    let acks = ShareAcknowledgements::from_records(&records, AckType::Accept).unwrap();
    let member = consumer.share_group_metadata().unwrap();
    let error = producer.send_share_acks_to_transaction(acks, &member).await.unwrap_err();
    assert!(error.to_string().contains("does not exist"), "{error}");
    producer.abort_transaction().await.unwrap();
    let again = some(&consumer).await;
    let first = |records: &ShareRecords| records.iter().next().map(|r| (r.offset(), r.delivery_count())).unwrap();
    assert_eq!((first(&records), first(&again)), ((0, 1), (0, 2)));
}

/// What the application acknowledged for a transaction is not acknowledged without it: the output may never be seen.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn acknowledgements_whose_staging_was_refused_do_not_take_effect_by_themselves() {
    let lab = Lab::without_ledger(2, 30_000).await;
    let consumer = lab.consumer(Mode::Explicit, None);
    let producer = lab.transactional("t").await;
    let records = some(&consumer).await;
    producer.begin_transaction().unwrap();
    drop(producer.send(ProducerRecord::new("out").value("lost")).await.unwrap());
    consumer.acknowledge_all(&records, AckType::Accept).unwrap();
    let acks = consumer.acknowledgements_for_transaction().unwrap();
    let member = consumer.share_group_metadata().unwrap();
    let error = producer.send_share_acks_to_transaction(acks, &member).await.unwrap_err();
    assert!(error.to_string().contains("does not exist"), "{error}");
    producer.abort_transaction().await.unwrap();
    assert!(consumer.commit_sync(LONG).await.unwrap().is_empty(), "nothing is acknowledged");
    consumer.close(LONG).await.unwrap();
    let other = lab.consumer(Mode::Explicit, None);
    let again = some(&other).await;
    let all = |records: &ShareRecords| records.iter().map(|r| (r.offset(), r.delivery_count())).collect::<Vec<_>>();
    assert_eq!(all(&again), all(&records).iter().map(|(offset, count)| (*offset, count + 1)).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn consumers_that_must_not_use_the_ledger_say_so() {
    let lab = Lab::new(2, 30_000).await;
    for backend in [AckBackendChoice::None, AckBackendChoice::Native] {
        let consumer = lab.consumer(Mode::Explicit, Some(backend));
        let producer = lab.transactional("t").await;
        let records = some(&consumer).await;
        producer.begin_transaction().unwrap();
        let acks = ShareAcknowledgements::from_records(&records, AckType::Accept).unwrap();
        let member = consumer.share_group_metadata().unwrap();
        let error = producer.send_share_acks_to_transaction(acks, &member).await.unwrap_err();
        assert!(error.to_string().contains("share.ack.transaction.backend"), "{error}");
        producer.abort_transaction().await.unwrap();
        consumer.close(LONG).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_lets_go_of_a_transaction_learns_from_the_ledger_what_became_of_it() {
    // Nothing is in the ledger: it cannot be committed, and the records are free at once.
    let lab = Lab::new(2, 30_000).await;
    let consumer = lab.consumer(Mode::Explicit, Some(AckBackendChoice::Ledger));
    let producer = lab.transactional("t").await;
    let records = some(&consumer).await;
    process(&producer, &consumer, &records).await;
    drop(producer);
    assert_eq!(told(&consumer.poll_outcomes()), [(0, 9, Outcome::LockLost)]);
    let records = some(&consumer).await;
    assert_eq!(offsets(&records).len(), 10);
    // It is, and another process commits.
    let producer = lab.transactional("t").await;
    process(&producer, &consumer, &records).await;
    let prepared = producer.prepare_transaction().await.unwrap();
    drop(producer);
    let settings = TransactionalProducer::builder("", "t").cluster(Arc::clone(&lab.cluster));
    let session = TransactionSession::resume(settings, &prepared).await.unwrap();
    assert!(consumer.poll_outcomes().is_empty());
    session.commit().await.unwrap();
    let outcome = tokio::time::timeout(LONG, consumer.next_outcome()).await.unwrap().unwrap();
    assert_eq!(told(&[outcome]), [(0, 9, Outcome::Acknowledged)]);
    lab.until_done(&consumer).await;
    assert_eq!(lab.output().await, all_values(10));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn records_that_could_not_be_staged_are_not_accepted_by_the_next_poll_in_implicit_mode() {
    // Each poll that has only one of them costs it a delivery.
    let bounds = GroupBounds { delivery_count_limit: (2, 10_000), ..GroupBounds::default() };
    let builder = EmbeddedBroker::builder().nodes(2).topic("in", 2).group_bounds(bounds);
    let broker = builder.start().await.unwrap();
    let cluster = Cluster::new(ClientConfig::new(&broker.bootstrap_servers())).unwrap();
    let admin = Admin::on(Arc::clone(&cluster));
    let settings = [("share.auto.offset.reset", "earliest"), ("share.delivery.count.limit", "10000")];
    admin.alter_share_group_configs(GROUP, &settings).await.unwrap();
    let nodes: Vec<i32> = broker.nodes().iter().map(|n| n.id).collect();
    for (partition, node) in [(0, nodes[0]), (1, nodes[1])] {
        broker.move_leader("in", partition, node);
    }
    let producer = Producer::builder("").cluster(Arc::clone(&cluster)).build().unwrap();
    for partition in [0, 1] {
        let record = ProducerRecord::new("in").partition(partition).value("x");
        producer.send(record).await.unwrap().await.unwrap();
    }
    let consumer = KafkaShareConsumer::builder("", GROUP).cluster(Arc::clone(&cluster)).build().unwrap();
    consumer.subscribe(["in"]).unwrap();
    // Both in one poll, which does not wait and so finds what came since the one before.
    let until = Instant::now() + LONG;
    let records = loop {
        let records = consumer.poll(Duration::ZERO).await.unwrap();
        if records.iter().any(|r| r.partition() == 0) && records.iter().any(|r| r.partition() == 1) {
            break records;
        }
        assert!(Instant::now() < until);
        // They came one by one: back with them.
        drop(ShareAcknowledgements::from_records(&records, AckType::Accept));
        tokio::time::sleep(SHORT).await;
    };
    // One of the locks goes with its session.
    let lost = records.iter().find(|r| r.partition() == 0).unwrap().id();
    assert!(broker.restart_node(nodes[0]));
    while consumer.lock_deadline(lost).is_some() {
        assert!(Instant::now() < until);
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(ShareAcknowledgements::from_records(&records, AckType::Accept).is_err());
    let mut again = std::collections::BTreeSet::new();
    let until = Instant::now() + LONG;
    while again.len() < 2 {
        assert!(Instant::now() < until, "only {again:?} came again");
        again.extend(consumer.poll(SHORT).await.unwrap().iter().map(|r| r.partition()));
    }
}

/// When the locks of the records end, in broker time.
fn locked_until(lab: &Lab) -> Vec<u64> {
    let shares = lab.broker.dump().share;
    shares.partitions.iter().flat_map(|p| &p.locks).map(|lock| lock.expires_ms).collect()
}

/// Answers to fetches tell a lock of a minute; only those with records, a third of that: so these have less than half left.
fn short_locks(lab: &Lab, empty: &Arc<AtomicUsize>) {
    let empty = Arc::clone(empty);
    let told = Rewrite::message(move |_, answer: &mut ShareFetchResponse| {
        let mut partitions = answer.responses.iter().flat_map(|t| &t.partitions);
        if partitions.any(|p| !p.acquired_records.is_empty()) {
            answer.acquisition_lock_timeout_ms = 20_000;
        } else {
            empty.fetch_add(1, Ordering::SeqCst);
        }
    });
    lab.broker.fault(Fault::new(FaultAction::Rewrite(told)).key(ApiKey::SHARE_FETCH).times(u32::MAX));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn locks_that_are_half_over_are_renewed_before_a_commit_where_brokers_can() {
    for renews in [true, false] {
        let lab = Lab::new(2, 60_000).await;
        if !renews {
            // As Kafka 4.1.
            let first = Rewrite::message(|_, answer: &mut ApiVersionsResponse| {
                let share = [ApiKey::SHARE_FETCH, ApiKey::SHARE_ACKNOWLEDGE];
                let keys = answer.api_keys.iter_mut().filter(|k| share.iter().any(|s| s.0 == k.api_key));
                keys.for_each(|k| k.max_version = 1);
            });
            lab.broker.fault(Fault::new(FaultAction::Rewrite(first)).key(ApiKey::API_VERSIONS).times(u32::MAX));
        }
        let cluster = Cluster::new(ClientConfig::new(&lab.broker.bootstrap_servers())).unwrap();
        let lab = Lab { cluster, ..lab };
        let empty = Arc::new(AtomicUsize::new(0));
        short_locks(&lab, &empty);
        let consumer = lab.consumer(Mode::Explicit, Some(AckBackendChoice::Ledger));
        let producer = lab.transactional("t").await;
        let records = some(&consumer).await;
        process(&producer, &consumer, &records).await;
        let before = locked_until(&lab);
        let later = async |answers: usize| {
            let wanted = empty.load(Ordering::SeqCst) + answers;
            let until = Instant::now() + LONG;
            while empty.load(Ordering::SeqCst) < wanted {
                assert!(consumer.poll(SHORT).await.unwrap().is_empty() && Instant::now() < until);
            }
        };
        // The second is asked for once the first was taken in.
        later(2).await;
        assert_eq!(locked_until(&lab), before);
        let told = lab.broker.fault(Fault::new(FaultAction::Delay(Duration::ZERO)).key(ApiKey::SHARE_ACKNOWLEDGE));
        producer.prepare_transaction().await.unwrap();
        if renews {
            let until = Instant::now() + LONG;
            while locked_until(&lab) == before {
                assert!(Instant::now() < until, "no lock is renewed");
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            assert!(locked_until(&lab).iter().all(|end| *end > before[0]));
        } else {
            later(2).await;
            assert_eq!(locked_until(&lab), before);
        }
        assert_eq!(lab.broker.fault_hits(told), u32::from(renews));
        producer.commit_transaction().await.unwrap();
        lab.until_done(&consumer).await;
        assert_eq!(lab.output().await, all_values(10));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn acknowledgements_that_the_broker_refuses_after_the_commit_are_counted_and_harmless() {
    let lab = Lab::new(2, 30_000).await;
    let first = lab.consumer(Mode::Explicit, Some(AckBackendChoice::Ledger));
    let producer = lab.transactional("t").await;
    let records = some(&first).await;
    process(&producer, &first, &records).await;
    let lost = FaultAction::Error(ErrorCode::INVALID_RECORD_STATE);
    lab.broker.fault(Fault::new(lost).key(ApiKey::SHARE_ACKNOWLEDGE).times(u32::MAX));
    producer.commit_transaction().await.unwrap();
    assert_eq!(told(&first.poll_outcomes()), [(0, 9, Outcome::Acknowledged)]);
    // What was not told with a fetch is told at the end.
    first.close(LONG).await.unwrap();
    assert!((count(&first, "unconfirmed") - 10.0).abs() < 0.1, "{}", count(&first, "unconfirmed"));
    assert!(count(&first, "confirmed") < 0.1);
    lab.broker.clear_faults();
    lab.broker.expire_locks(GROUP);
    let second = lab.consumer(Mode::Explicit, Some(AckBackendChoice::Ledger));
    lab.until_done(&second).await;
    assert!((count(&second, "done-elsewhere") - 10.0).abs() < 0.1);
    assert_eq!(lab.output().await, all_values(10));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broker_that_has_less_of_the_ledger_than_its_leader_is_no_gap() {
    let lab = Lab::new(2, 30_000).await;
    // As one answers that is not the leader any more. Nobody else fetches.
    let behind = lab.broker.fault(Fault::new(FaultAction::Error(ErrorCode::OFFSET_OUT_OF_RANGE)).key(ApiKey::FETCH));
    let consumer = lab.consumer(Mode::Explicit, Some(AckBackendChoice::Ledger));
    let producer = lab.transactional("t").await;
    lab.work(&producer, &consumer, 10).await;
    assert_eq!(lab.broker.fault_hits(behind), 1);
    assert!(count(&consumer, "restarts") < 0.1);
    assert_eq!(lab.output().await, all_values(10));
}

/// What is rejected in the transaction is rejected at the broker after it: it goes to the dead letter queue (KIP-1191).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_broker_hears_of_rejections_once_they_are_committed() {
    let lab = Lab::new(2, 30_000).await;
    let allowed = ("errors.deadletterqueue.group.enable", "true");
    lab.admin().create_topic(NewTopic::new("dlq.in", 1).config(allowed.0, allowed.1)).await.unwrap();
    let queue = [("errors.deadletterqueue.topic.name", "dlq.in")];
    lab.admin().alter_share_group_configs(GROUP, &queue).await.unwrap();
    let letters = async || {
        let mut reader = PartitionReader::read_committed(Arc::clone(&lab.cluster), "dlq.in").await.unwrap();
        reader.read_to_end().await.unwrap().iter().map(|batch| batch.iter().count()).sum::<usize>()
    };
    let consumer = lab.consumer(Mode::Explicit, Some(AckBackendChoice::Ledger));
    let producer = lab.transactional("t").await;
    let (mut rejected, mut seen, until) = (0, 0, Instant::now() + LONG);
    while seen < 10 {
        let records = some(&consumer).await;
        producer.begin_transaction().unwrap();
        let types =
            records.iter().map(|r| (r.id(), if r.offset() % 3 == 0 { AckType::Reject } else { AckType::Accept }));
        let types: Vec<_> = types.collect();
        rejected += types.iter().filter(|(_, ack)| *ack == AckType::Reject).count();
        seen += types.len();
        for (id, ack) in types {
            consumer.acknowledger().acknowledge(id, ack).unwrap();
        }
        let acks = consumer.acknowledgements_for_transaction().unwrap();
        producer.send_share_acks_to_transaction(acks, &consumer.share_group_metadata().unwrap()).await.unwrap();
        let before = letters().await;
        producer.commit_transaction().await.unwrap();
        assert!(before < rejected, "nothing is rejected before the commit");
    }
    lab.until_done(&consumer).await;
    while letters().await < rejected {
        assert!(Instant::now() < until, "{} of {rejected} dead letters", letters().await);
    }
    assert_eq!((letters().await, rejected), (4, 4));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_ledger_that_loses_records_under_a_reader_is_read_again_and_refused() {
    let lab = Lab::new(2, 30_000).await;
    let producer = lab.transactional("t").await;
    let first = lab.consumer(Mode::Explicit, Some(AckBackendChoice::Ledger));
    lab.work(&producer, &first, 10).await;
    first.close(LONG).await.unwrap();
    // The next one knows where the ledger begins, and then that is not so any more.
    let moved = Fault::new(FaultAction::Error(ErrorCode::NOT_LEADER_OR_FOLLOWER)).key(ApiKey::FETCH).times(u32::MAX);
    let moved = lab.broker.fault(moved);
    let consumer = lab.consumer(Mode::Explicit, Some(AckBackendChoice::Ledger));
    let until = Instant::now() + LONG;
    while lab.broker.fault_hits(moved) == 0 {
        assert!(consumer.poll(SHORT).await.unwrap().is_empty() && Instant::now() < until);
    }
    lab.delete_all("share-ack-ledger", 2).await;
    lab.broker.clear_faults();
    lab.produce(10..20).await;
    let error = loop {
        match consumer.poll(SHORT).await {
            Err(error) if error.is_fatal() => break error,
            Err(_) => {}
            Ok(records) => assert!(records.is_empty(), "what is done is not known any more"),
        }
        assert!(Instant::now() < until, "no error came");
    };
    assert_eq!(error.kind(), ErrorKind::InvalidState, "{error}");
    assert!((count(&consumer, "restarts") - 1.0).abs() < 0.1);
    assert_eq!(lab.output().await, all_values(10));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn intents_over_a_deleted_topic_are_taken_out() {
    let lab = Lab::new(2, 30_000).await;
    let consumer = lab.consumer(Mode::Explicit, Some(AckBackendChoice::Ledger));
    let producer = lab.transactional("gone").await;
    let records = some(&consumer).await;
    process(&producer, &consumer, &records).await;
    producer.commit_transaction().await.unwrap();
    // The broker is not told, and never will be.
    lab.broker.expire_locks(GROUP);
    drop((consumer, producer));
    let admin = lab.admin();
    let theirs = || async {
        let ledger = admin.describe_ledger("share-ack-ledger").await.unwrap();
        let intents = ledger.partitions.into_iter().flat_map(|p| p.intents);
        intents.filter(|i| i.transactional_id == "gone").map(|i| i.unconfirmed).collect::<Vec<_>>()
    };
    assert_eq!(theirs().await, [Some(10)]);
    admin.delete_topics(&["in"]).await.unwrap();
    assert_eq!(theirs().await, [Some(0)], "nothing of it comes again");
    // Members find out by themselves, and take it out with their next transaction.
    admin.create_topic(NewTopic::new("in", 1)).await.unwrap();
    let mut builder = KafkaShareConsumer::builder("", GROUP).cluster(Arc::clone(&lab.cluster));
    builder.set("share.ack.ledger.sweep.interval.ms", "100").unwrap();
    let consumer = builder.share_ack_backend(AckBackendChoice::Ledger).build().unwrap();
    consumer.subscribe(["in"]).unwrap();
    let (producer, until) = (lab.transactional("t").await, Instant::now() + LONG);
    while !theirs().await.is_empty() {
        assert!(Instant::now() < until, "it stays");
        lab.produce(0..1).await;
        process(&producer, &consumer, &some(&consumer).await).await;
        producer.commit_transaction().await.unwrap();
    }
}
