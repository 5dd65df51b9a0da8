//! A group under load goes from the ledger by way of both to native acknowledgements, member by member, while members are
//! killed, work longer than their locks last, and stop in the middle of a commit. Every record comes out once.

use kafka_share::ledger::{AckBackendChoice as Backend, NewLedger};
use kafka_share::net::Cluster;
use kafka_share::{
    AckType, AcknowledgementMode as Mode, Admin, ClientConfig, Error, KafkaShareConsumer, PartitionReader, Producer,
    ProducerRecord, ShareAcknowledgements, ShareRecords, TransactionalProducer,
};
use kafka_share_broker::{EmbeddedBroker, GroupBounds};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::JoinHandle;

const PARTITIONS: usize = 2;
const MEMBERS: usize = 4;
/// Records of each of the three parts of the way.
const RECORDS: usize = 150;
const LOCK: Duration = Duration::from_secs(1);
const TURN: Duration = Duration::from_millis(100);
const PATIENCE: Duration = Duration::from_secs(120);
const GROUP: &str = "crowd";
const LEDGER: &str = "share-ack-ledger";

struct Dice(u64);

impl Dice {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

struct Member {
    dice: Dice,
    consumer: KafkaShareConsumer,
    producer: TransactionalProducer,
}

impl Member {
    async fn run(mut self) {
        loop {
            let records = self.consumer.poll(TURN).await.unwrap();
            if records.is_empty() {
                continue;
            }
            if let Err(error) = self.process(&records).await {
                assert!(error.is_abortable(), "{error:?}");
                self.producer.abort_transaction().await.unwrap();
            }
        }
    }

    async fn process(&mut self, records: &ShareRecords) -> Result<(), Error> {
        let past = LOCK + Duration::from_millis(self.dice.below(500));
        self.producer.begin_transaction()?;
        for record in records {
            let value = record.value().unwrap().to_vec();
            drop(self.producer.send(ProducerRecord::new("out").value(value)).await?);
        }
        let conduct = self.dice.below(10);
        if conduct == 0 {
            tokio::time::sleep(past).await;
        }
        let acks = ShareAcknowledgements::from_records(records, AckType::Accept)?;
        self.producer.send_share_acks_to_transaction(acks, &self.consumer.share_group_metadata()?).await?;
        if conduct == 1 {
            self.producer.prepare_transaction().await?;
            tokio::time::sleep(past).await;
        }
        if conduct == 2 {
            return self.producer.abort_transaction().await;
        }
        self.producer.commit_transaction().await
    }
}

struct Crowd {
    /// Ends with the test.
    _broker: EmbeddedBroker,
    cluster: Arc<Cluster>,
    dice: Dice,
    members: Vec<(Backend, JoinHandle<()>)>,
    produced: usize,
    kills: usize,
}

impl Crowd {
    async fn gather(transaction_version: i16) -> Crowd {
        // What is killed with all that it holds must not be archived in the end.
        let (record_lock_ms, delivery_count_limit) = ((1_000, 60_000), (2, 10_000));
        // Who was killed is soon missed.
        let (heartbeat_ms, session_timeout_ms) = ((200, 15_000), (2_000, 60_000));
        let bounds = GroupBounds {
            record_lock_ms,
            delivery_count_limit,
            heartbeat_ms,
            session_timeout_ms,
            ..GroupBounds::default()
        };
        let builder = EmbeddedBroker::builder().topic("in", PARTITIONS as i32).topic("out", 3).group_bounds(bounds);
        let broker = builder.transaction_version(transaction_version).start().await.unwrap();
        let cluster = Cluster::new(ClientConfig::new(&broker.bootstrap_servers())).unwrap();
        let admin = Admin::on(Arc::clone(&cluster));
        admin.create_ledger(&NewLedger::new().partitions(2)).await.unwrap();
        let lock = LOCK.as_millis().to_string();
        let settings = [
            ("share.auto.offset.reset", "earliest"),
            ("share.record.lock.duration.ms", lock.as_str()),
            ("share.delivery.count.limit", "10000"),
            ("share.heartbeat.interval.ms", "300"),
            ("share.session.timeout.ms", "3000"),
        ];
        admin.alter_share_group_configs(GROUP, &settings).await.unwrap();
        let dice = Dice(transaction_version as u64);
        let mut crowd = Crowd { _broker: broker, cluster, dice, members: Vec::new(), produced: 0, kills: 0 };
        for number in 0..MEMBERS {
            let member = crowd.start(number, Backend::Ledger).await;
            crowd.members.push(member);
        }
        crowd
    }

    async fn start(&mut self, number: usize, backend: Backend) -> (Backend, JoinHandle<()>) {
        let builder = KafkaShareConsumer::builder("", GROUP).cluster(Arc::clone(&self.cluster)).max_poll_records(10);
        let builder =
            builder.acknowledgement_mode(if number.is_multiple_of(2) { Mode::Explicit } else { Mode::Implicit });
        let consumer = builder.share_ack_backend(backend).build().unwrap();
        consumer.subscribe(["in"]).unwrap();
        let builder =
            TransactionalProducer::builder("", &format!("member-{number}")).cluster(Arc::clone(&self.cluster));
        let builder = builder.share_ack_backend(backend).transaction_timeout(Duration::from_secs(10));
        let producer = builder.build().unwrap();
        producer.init_transactions().await.unwrap();
        let dice = Dice(self.dice.below(1 << 30));
        (backend, tokio::spawn(Member { dice, consumer, producer }.run()))
    }

    /// Kills a member wherever it is, and starts another one in its place.
    async fn replace(&mut self, number: usize, backend: Backend) {
        let (_, task) = &mut self.members[number];
        task.abort();
        assert!(task.await.is_err_and(|e| e.is_cancelled()), "member {number} had ended by itself");
        self.kills += 1;
        self.members[number] = self.start(number, backend).await;
    }

    async fn produce(&mut self, count: usize) {
        let source = Producer::builder("").cluster(Arc::clone(&self.cluster)).build().unwrap();
        for n in self.produced..self.produced + count {
            let partition = (n % PARTITIONS) as i32;
            drop(source.send(ProducerRecord::new("in").partition(partition).value(n.to_string())).await.unwrap());
        }
        source.flush().await.unwrap();
        self.produced += count;
    }

    /// How often each value is in the output.
    async fn output(&self) -> BTreeMap<usize, usize> {
        let mut reader = PartitionReader::read_committed(Arc::clone(&self.cluster), "out").await.unwrap();
        let mut counts = BTreeMap::new();
        for record in reader.read_to_end().await.unwrap().iter().flat_map(|b| b.iter()) {
            let value = std::str::from_utf8(record.value().unwrap()).unwrap().parse().unwrap();
            *counts.entry(value).or_default() += 1;
        }
        counts
    }

    /// Lets the group work until so many values are out, with somebody killed now and then.
    async fn until(&mut self, wanted: usize) {
        let until = Instant::now() + PATIENCE;
        loop {
            let found = self.output().await.len();
            if found >= wanted {
                return;
            }
            assert!(Instant::now() < until, "only {found} of {wanted} values came");
            if self.dice.below(4) == 0 {
                let number = self.dice.below(MEMBERS as u64) as usize;
                self.replace(number, self.members[number].0).await;
            }
            tokio::time::sleep(TURN).await;
        }
    }

    /// One member after the other, with work done in between.
    async fn roll(&mut self, to: Backend) {
        for number in 0..MEMBERS {
            self.produce(RECORDS / MEMBERS).await;
            self.replace(number, to).await;
            self.until(self.produced - RECORDS / 2).await;
        }
    }
}

async fn moved(transaction_version: i16) {
    let mut crowd = Crowd::gather(transaction_version).await;
    crowd.produce(RECORDS).await;
    crowd.until(RECORDS / 2).await;
    crowd.roll(Backend::Both).await;
    let (admin, until) = (Admin::on(Arc::clone(&crowd.cluster)), Instant::now() + PATIENCE);
    loop {
        let left = admin.leave_ledger(LEDGER, GROUP).await.unwrap();
        if left.is_empty() {
            break;
        }
        assert!(Instant::now() < until, "{left:?}");
        tokio::time::sleep(TURN).await;
    }
    crowd.roll(Backend::Native).await;
    crowd.until(crowd.produced).await;
    for (_, task) in &crowd.members {
        task.abort();
    }
    let counts = crowd.output().await;
    assert_eq!(counts.len(), crowd.produced, "after {} kills", crowd.kills);
    let doubled: Vec<_> = counts.into_iter().filter(|(_, count)| *count != 1).collect();
    assert!(doubled.is_empty(), "after {} kills: {doubled:?}", crowd.kills);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_group_moves_member_by_member_under_load() {
    tokio::join!(moved(1), moved(2));
}
