//! A share group on its way from the ledger to native acknowledgements (KIP-1289), member by member: those that know the
//! ledger alone, those that do both, and those that are native, on an embedded broker that offers it.

mod crowd;

use kafka_share::ledger::{AckBackendChoice as Backend, NewLedger};
use kafka_share::net::Cluster;
use kafka_share::{
    AckType, AcknowledgementMode, Admin, ClientConfig, Error, ErrorKind, KafkaShareConsumer, Outcome, PartitionReader,
    Producer, ProducerRecord, ShareAcknowledgements, ShareGroupMetadata, ShareRecords, TopicIdPartition,
    TransactionalProducer,
};
use kafka_share_broker::{EmbeddedBroker, Fault, FaultAction, GroupBounds};
use kafka_share_messages::ApiKey;
use std::sync::Arc;
use std::time::{Duration, Instant};

const LONG: Duration = Duration::from_secs(30);
const SHORT: Duration = Duration::from_millis(100);
const GROUP: &str = "group";
const LEDGER: &str = "share-ack-ledger";

struct Lab {
    broker: EmbeddedBroker,
    cluster: Arc<Cluster>,
}

impl Lab {
    /// Ten records in one partition of `in`, an empty `out`, and a ledger.
    async fn new(transaction_version: i16) -> Lab {
        let lab = Self::without_ledger(transaction_version).await;
        lab.admin().create_ledger(&NewLedger::new().partitions(2)).await.unwrap();
        lab
    }

    async fn without_ledger(transaction_version: i16) -> Lab {
        let bounds = GroupBounds { record_lock_ms: (1_000, 60_000), ..GroupBounds::default() };
        let builder = EmbeddedBroker::builder().topic("in", 1).topic("out", 1).group_bounds(bounds);
        let broker = builder.transaction_version(transaction_version).start().await.unwrap();
        let cluster = Cluster::new(ClientConfig::new(&broker.bootstrap_servers())).unwrap();
        let lab = Lab { broker, cluster };
        lab.admin().alter_share_group_configs(GROUP, &[("share.auto.offset.reset", "earliest")]).await.unwrap();
        lab.produce(0..10).await;
        lab
    }

    fn admin(&self) -> Admin {
        Admin::on(Arc::clone(&self.cluster))
    }

    async fn produce(&self, values: std::ops::Range<usize>) {
        let producer = Producer::builder("").cluster(Arc::clone(&self.cluster)).build().unwrap();
        for n in values {
            producer.send(ProducerRecord::new("in").value(n.to_string())).await.unwrap().await.unwrap();
        }
    }

    async fn member(&self, id: &str, backend: Backend) -> Member {
        let consumer = self.consumer(Some(backend));
        Member { consumer, producer: self.producer(id, backend).await }
    }

    fn consumer(&self, backend: Option<Backend>) -> KafkaShareConsumer {
        let builder = KafkaShareConsumer::builder("", GROUP).cluster(Arc::clone(&self.cluster));
        let builder = builder.acknowledgement_mode(AcknowledgementMode::Explicit);
        let builder = match backend {
            Some(backend) => builder.share_ack_backend(backend),
            None => builder,
        };
        let consumer = builder.build().unwrap();
        consumer.subscribe(["in"]).unwrap();
        consumer
    }

    async fn producer(&self, id: &str, backend: Backend) -> TransactionalProducer {
        let builder = TransactionalProducer::builder("", id).cluster(Arc::clone(&self.cluster));
        let producer = builder.share_ack_backend(backend).build().unwrap();
        producer.init_transactions().await.unwrap();
        producer
    }

    /// Values that a read_committed reader finds in the output.
    async fn output(&self) -> Vec<usize> {
        let mut reader = PartitionReader::read_committed(Arc::clone(&self.cluster), "out").await.unwrap();
        let batches = reader.read_to_end().await.unwrap();
        let value = |value: Option<&[u8]>| std::str::from_utf8(value.unwrap()).unwrap().parse().unwrap();
        let mut all: Vec<usize> = batches.iter().flat_map(|b| b.iter().map(|r| value(r.value()))).collect();
        all.sort_unstable();
        all
    }

    async fn is_done(&self) -> bool {
        let offsets = self.admin().describe_share_group_offsets(GROUP).await.unwrap();
        offsets.first().is_some_and(|o| o.lag == Some(0))
    }

    /// Waits until the broker has nothing left for the group; nothing may be handed out meanwhile.
    async fn until_done(&self, member: &Member) {
        let until = Instant::now() + LONG;
        while !self.is_done().await {
            assert!(Instant::now() < until, "it does not end");
            assert!(member.consumer.poll(SHORT).await.unwrap().is_empty());
        }
    }
}

struct Member {
    consumer: KafkaShareConsumer,
    producer: TransactionalProducer,
}

impl Member {
    /// Polls until something comes.
    async fn some(&self) -> ShareRecords {
        let until = Instant::now() + LONG;
        loop {
            let records = self.consumer.poll(SHORT).await.unwrap();
            if !records.is_empty() {
                return records;
            }
            assert!(Instant::now() < until, "no records came");
        }
    }

    /// Writes the records to the output and stages their acknowledgements.
    async fn stage(&self, records: &ShareRecords) -> Result<(), Error> {
        self.producer.begin_transaction()?;
        for record in records {
            let value = record.value().unwrap().to_vec();
            drop(self.producer.send(ProducerRecord::new("out").value(value)).await?);
        }
        let acks = ShareAcknowledgements::from_records(records, AckType::Accept)?;
        self.producer.send_share_acks_to_transaction(acks, &self.consumer.share_group_metadata()?).await
    }

    async fn process(&self, records: &ShareRecords) -> Result<(), Error> {
        self.stage(records).await?;
        self.producer.commit_transaction().await
    }

    /// The transaction cannot be committed, and is given up.
    async fn fails(&self, result: Result<(), Error>) -> Error {
        let error = result.unwrap_err();
        self.producer.abort_transaction().await.unwrap();
        error
    }

    fn count(&self, what: &str) -> u64 {
        self.producer.metrics().get(&format!("share-ack-ledger-{what}-total")).unwrap() as u64
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn both_acknowledges_in_the_transaction_and_shows_it_in_the_ledger() {
    for version in [1, 2] {
        let lab = Lab::new(version).await;
        let member = lab.member("t", Backend::Both).await;
        member.process(&member.some().await).await.unwrap();
        let outcomes = member.consumer.poll_outcomes();
        assert!(outcomes.iter().all(|o| o.outcome == Outcome::Acknowledged) && outcomes.len() == 1, "{outcomes:?}");
        lab.until_done(&member).await;
        let ledger = lab.admin().describe_ledger(LEDGER).await.unwrap();
        let intents: Vec<_> = ledger.partitions.iter().flat_map(|p| &p.intents).collect();
        assert_eq!(
            intents.iter().map(|i| (i.native, i.open, i.unconfirmed)).collect::<Vec<_>>(),
            [(true, false, Some(0))]
        );
        // Nothing has to be confirmed before the next transaction takes its intent out again.
        lab.produce(10..20).await;
        member.process(&member.some().await).await.unwrap();
        assert_eq!((member.count("intents"), member.count("tombstones")), (2, 1));
        assert!((member.consumer.metrics().get("share-ack-ledger-confirmed-total").unwrap()).abs() < 0.1);
        // An abort frees the records at the broker.
        lab.produce(20..30).await;
        let records = member.some().await;
        member.stage(&records).await.unwrap();
        member.producer.abort_transaction().await.unwrap();
        member.process(&member.some().await).await.unwrap();
        lab.until_done(&member).await;
        assert_eq!(lab.output().await, (0..30).collect::<Vec<_>>());
    }
}

/// One member holds records, their locks end, and another one does them.
async fn overtaken(slow: Backend, fast: Backend, staged: bool) {
    let lab = Lab::new(2).await;
    let (slow, fast) = (lab.member("slow", slow).await, lab.member("fast", fast).await);
    // The ledger is read, and nothing else holds up the first poll.
    lab.admin().describe_ledger(LEDGER).await.unwrap();
    let records = slow.some().await;
    let held = records.len();
    if staged {
        slow.stage(&records).await.unwrap();
    }
    assert!(lab.broker.expire_locks(GROUP) > 0);
    let mut done = 0;
    while done < held {
        let records = fast.some().await;
        done += records.len();
        fast.process(&records).await.unwrap();
    }
    let late = if staged { slow.producer.commit_transaction().await } else { slow.process(&records).await };
    slow.fails(late).await;
    lab.until_done(&slow).await;
    assert_eq!(lab.output().await, (0..10).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_comes_late_does_not_commit() {
    tokio::join!(
        overtaken(Backend::Ledger, Backend::Both, false),
        overtaken(Backend::Ledger, Backend::Both, true),
        overtaken(Backend::Both, Backend::Ledger, false),
        overtaken(Backend::Both, Backend::Both, false),
        overtaken(Backend::Both, Backend::Native, false),
        overtaken(Backend::Native, Backend::Both, false),
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_ledger_alone_has_committed_is_not_done_again_by_both() {
    let lab = Lab::new(2).await;
    let (old, new) = (lab.member("old", Backend::Ledger).await, lab.member("new", Backend::Both).await);
    old.process(&old.some().await).await.unwrap();
    // Before the broker is told.
    lab.broker.expire_locks(GROUP);
    drop(old);
    lab.until_done(&new).await;
    assert_eq!(lab.output().await, (0..10).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transaction_that_is_open_in_the_ledger_is_waited_for() {
    let lab = Lab::new(2).await;
    let (old, new) = (lab.member("old", Backend::Ledger).await, lab.member("new", Backend::Both).await);
    let records = old.some().await;
    old.stage(&records).await.unwrap();
    old.producer.prepare_transaction().await.unwrap();
    lab.broker.expire_locks(GROUP);
    // It stays away until the lock's quarter, and then ends the transaction.
    let again = new.some().await;
    assert_eq!(again.len(), records.len());
    new.process(&again).await.unwrap();
    old.fails(old.producer.commit_transaction().await).await;
    lab.until_done(&new).await;
    assert_eq!(lab.output().await, (0..10).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_group_leaves_the_ledger_once_nothing_is_left_to_settle() {
    let lab = Lab::new(2).await;
    let old = lab.member("old", Backend::Ledger).await;
    let records = old.some().await;
    // The broker is not told, as the member dies; a native member would do the records again.
    for key in [ApiKey::SHARE_FETCH, ApiKey::SHARE_ACKNOWLEDGE] {
        lab.broker.fault(Fault::new(FaultAction::Ignore).key(key).times(u32::MAX));
    }
    old.process(&records).await.unwrap();
    let dead = old.producer;
    drop(old.consumer);
    lab.broker.clear_faults();
    lab.broker.expire_locks(GROUP);
    let left = lab.admin().leave_ledger(LEDGER, GROUP).await.unwrap();
    assert_eq!((left.open.len(), left.unconfirmed.len(), left.is_empty()), (0, 1, false));
    let new = lab.member("new", Backend::Both).await;
    lab.until_done(&new).await;
    let left = lab.admin().leave_ledger(LEDGER, GROUP).await.unwrap();
    assert!(left.is_empty(), "{left:?}");
    let ledger = lab.admin().describe_ledger(LEDGER).await.unwrap();
    assert!(ledger.partitions.iter().any(|p| p.left.contains(GROUP)));
    // Somebody was forgotten.
    lab.produce(10..20).await;
    let forgotten = Member { consumer: lab.consumer(Some(Backend::Ledger)), producer: dead };
    for _ in 0..20 {
        let error = forgotten.consumer.poll(LONG).await.unwrap_err();
        assert!(error.to_string().contains("has left the ledger"), "{error}");
    }
    // One whose consumer learns from its producer only, and has records then: they come again once, and no more.
    let late = Member { consumer: lab.consumer(None), producer: forgotten.producer };
    let records = late.some().await;
    let counts = |records: &ShareRecords| records.iter().map(|r| r.delivery_count()).collect::<Vec<_>>();
    assert!(counts(&records).iter().all(|count| *count == 1), "{:?}", counts(&records));
    let error = late.fails(late.process(&records).await).await;
    assert!(error.to_string().contains("has left the ledger"), "{error}");
    for _ in 0..20 {
        let error = late.consumer.poll(LONG).await.unwrap_err();
        assert!(error.to_string().contains("has left the ledger"), "{error}");
    }
    forgotten.consumer.close(LONG).await.unwrap();
    late.consumer.close(LONG).await.unwrap();
    // What is left in the ledger is taken out, and from then on nothing is written there.
    assert_eq!(lab.admin().settle_ledger(LEDGER, LONG).await.unwrap().tombstoned, 1);
    while lab.output().await.len() < 20 {
        let records = new.some().await;
        assert!(counts(&records).iter().all(|count| *count <= 3), "{:?}", counts(&records));
        new.process(&records).await.unwrap();
    }
    let intents = new.count("intents");
    lab.produce(20..30).await;
    new.process(&new.some().await).await.unwrap();
    assert_eq!(new.count("intents"), intents);
    let native = lab.member("native", Backend::Native).await;
    new.consumer.close(LONG).await.unwrap();
    lab.produce(30..40).await;
    native.process(&native.some().await).await.unwrap();
    lab.until_done(&native).await;
    assert_eq!(lab.output().await, (0..40).collect::<Vec<_>>());
    // And back, without members.
    native.consumer.close(LONG).await.unwrap();
    let until = Instant::now() + LONG;
    // The one that died is a member until it has given its last answers up.
    while let Err(error) = lab.admin().raise_ledger_generation(LEDGER, GROUP).await {
        assert!(error.kind() == ErrorKind::InvalidState && Instant::now() < until, "{error}");
        tokio::time::sleep(SHORT).await;
    }
    let again = lab.member("again", Backend::Ledger).await;
    lab.produce(40..50).await;
    again.process(&again.some().await).await.unwrap();
    lab.until_done(&again).await;
    assert_eq!(lab.output().await, (0..50).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn native_alone_is_refused_beside_a_consumer_that_reads_the_ledger() {
    let lab = Lab::new(2).await;
    let member =
        Member { consumer: lab.consumer(Some(Backend::Both)), producer: lab.producer("t", Backend::Native).await };
    let records = member.some().await;
    let error = member.fails(member.stage(&records).await).await;
    assert_eq!(error.kind(), ErrorKind::Config, "{error}");
    assert!(error.to_string().contains("share.ack.transaction.backend=both"), "{error}");
    // By hand, too.
    member.producer.begin_transaction().unwrap();
    let mut acks = ShareAcknowledgements::new();
    let first = records.iter().next().unwrap();
    let tp = TopicIdPartition { topic_id: first.topic_id(), partition: first.partition() };
    acks.add(tp, first.offset(), first.offset(), AckType::Accept).unwrap();
    let metadata: ShareGroupMetadata = member.consumer.share_group_metadata().unwrap();
    let error = member.fails(member.producer.send_share_acks_to_transaction(acks, &metadata).await).await;
    assert_eq!(error.kind(), ErrorKind::Config, "{error}");
    // They are held still, and the right producer takes them.
    let member = Member { consumer: member.consumer, producer: lab.producer("t2", Backend::Both).await };
    member.process(&records).await.unwrap();
    assert!(lab.is_done().await);
    // The group has left: there is nobody any more who would not see it.
    assert!(lab.admin().leave_ledger(LEDGER, GROUP).await.unwrap().is_empty());
    lab.produce(10..20).await;
    let records = member.some().await;
    let member = Member { consumer: member.consumer, producer: lab.producer("t3", Backend::Native).await };
    let until = Instant::now() + LONG;
    while let Err(error) = member.process(&records).await {
        // The consumer has not read of it yet.
        assert!(Instant::now() < until && error.kind() == ErrorKind::Config, "{error}");
        member.producer.abort_transaction().await.unwrap();
    }
    assert_eq!(lab.output().await, (0..20).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn auto_takes_the_ledger_along_where_there_is_one() {
    let lab = Lab::without_ledger(2).await;
    let alone = lab.member("alone", Backend::Auto).await;
    alone.process(&alone.some().await).await.unwrap();
    assert!(lab.is_done().await);
    assert_eq!(alone.count("intents"), 0);
    alone.consumer.close(LONG).await.unwrap();
    lab.admin().create_ledger(&NewLedger::new().partitions(2)).await.unwrap();
    for (id, consumer) in [("said", Some(Backend::Auto)), ("late", None)] {
        lab.produce(0..10).await;
        let member = Member { consumer: lab.consumer(consumer), producer: lab.producer(id, Backend::Auto).await };
        member.process(&member.some().await).await.unwrap();
        assert!(lab.is_done().await);
        assert_eq!(member.count("intents"), 1);
        member.consumer.close(LONG).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn both_needs_brokers_and_a_ledger_and_members_that_agree() {
    let released =
        EmbeddedBroker::builder().topic("in", 1).topic("out", 1).transactional_acks(false).start().await.unwrap();
    let cluster = Cluster::new(ClientConfig::new(&released.bootstrap_servers())).unwrap();
    let lab = Lab { broker: released, cluster };
    lab.admin().create_ledger(&NewLedger::new()).await.unwrap();
    lab.admin().alter_share_group_configs(GROUP, &[("share.auto.offset.reset", "earliest")]).await.unwrap();
    lab.produce(0..10).await;
    let member = lab.member("t", Backend::Both).await;
    let records = member.some().await;
    let error = member.fails(member.stage(&records).await).await;
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().contains("KIP-1289"), "{error}");
    let error = lab.admin().leave_ledger(LEDGER, GROUP).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");

    let lab = Lab::without_ledger(2).await;
    let member = Member { consumer: lab.consumer(None), producer: lab.producer("t", Backend::Both).await };
    let records = member.some().await;
    let error = member.fails(member.stage(&records).await).await;
    assert!(error.kind() == ErrorKind::Config && error.to_string().contains("kshare ledger create"), "{error}");
    lab.admin().create_ledger(&NewLedger::new()).await.unwrap();
    for (consumer, producer) in [(Backend::Native, Backend::Both), (Backend::Both, Backend::Ledger)] {
        let member = Member { consumer: lab.consumer(Some(consumer)), producer: lab.producer("t", producer).await };
        lab.broker.expire_locks(GROUP);
        let records = member.some().await;
        let error = member.fails(member.stage(&records).await).await;
        assert!(error.to_string().contains("let both have the same"), "{error}");
        member.consumer.close(LONG).await.unwrap();
    }
}
