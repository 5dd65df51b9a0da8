//! Members of one group that meet again and again: they work longer than their locks last, give up, stop in the middle of a
//! commit and are replaced. A read_committed reader finds every record once.

use kafka_share::ledger::{AckBackendChoice, NewLedger};
use kafka_share::net::Cluster;
use kafka_share::{
    AckType, AcknowledgementMode as Mode, AcquireMode, Admin, ClientConfig, Error, KafkaShareConsumer, PartitionReader,
    Producer, ProducerRecord, ShareAcknowledgements, ShareRecords, TransactionalProducer,
};
use kafka_share_broker::{EmbeddedBroker, GroupBounds};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const RECORDS: usize = 600;
const PARTITIONS: i32 = 2;
const MEMBERS: u64 = 5;
const LOCK: Duration = Duration::from_secs(1);
const PATIENCE: Duration = Duration::from_secs(300);

/// What a member does with a poll's records.
#[derive(Debug, Clone, Copy)]
enum Conduct {
    Honest,
    /// Works longer than its lock lasts.
    Slow,
    /// Stops between its intent and its commit.
    Stalls,
    GivesUp,
    /// Leaves the transaction, and is replaced.
    Dies,
}

struct Dice(u64);

impl Dice {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }

    fn conduct(&mut self) -> Conduct {
        match self.below(20) {
            0 | 1 => Conduct::Slow,
            2 | 3 => Conduct::Stalls,
            4 => Conduct::GivesUp,
            5 => Conduct::Dies,
            _ => Conduct::Honest,
        }
    }
}

struct Member {
    cluster: Arc<Cluster>,
    number: u64,
    dice: Dice,
    consumer: KafkaShareConsumer,
    producer: TransactionalProducer,
}

impl Member {
    async fn new(cluster: &Arc<Cluster>, number: u64, seed: u64) -> Member {
        let builder = KafkaShareConsumer::builder("", "crowd").cluster(Arc::clone(cluster)).max_poll_records(20);
        let builder =
            builder.acknowledgement_mode(if number.is_multiple_of(2) { Mode::Explicit } else { Mode::Implicit });
        let builder = match number % 3 {
            0 => builder.prefetch(40),
            1 => builder.acquire_mode(AcquireMode::RecordLimit),
            _ => builder,
        };
        // One of them joins the ledger late.
        let builder = if number == 3 { builder } else { builder.share_ack_backend(AckBackendChoice::Ledger) };
        let consumer = builder.build().unwrap();
        consumer.subscribe(["in"]).unwrap();
        let producer = Self::producer(cluster, number).await;
        Member { cluster: Arc::clone(cluster), number, dice: Dice(seed), consumer, producer }
    }

    async fn producer(cluster: &Arc<Cluster>, number: u64) -> TransactionalProducer {
        let builder = TransactionalProducer::builder("", &format!("member-{number}")).cluster(Arc::clone(cluster));
        let producer = builder.transaction_timeout(Duration::from_secs(60)).build().unwrap();
        producer.init_transactions().await.unwrap();
        producer
    }

    async fn run(mut self, done: Arc<AtomicBool>) {
        while !done.load(Ordering::Acquire) {
            let records = match self.consumer.poll(Duration::from_millis(100)).await {
                Ok(records) if records.is_empty() => continue,
                Ok(records) => records,
                Err(error) => panic!("member {}: {error}", self.number),
            };
            let conduct = self.dice.conduct();
            if let Err(error) = self.process(&records, conduct).await {
                assert!(error.is_abortable(), "member {} ({conduct:?}): {error:?}", self.number);
                self.producer.abort_transaction().await.unwrap();
            }
        }
    }

    async fn process(&mut self, records: &ShareRecords, conduct: Conduct) -> Result<(), Error> {
        self.producer.begin_transaction()?;
        for record in records {
            let value = record.value().unwrap().to_vec();
            drop(self.producer.send(ProducerRecord::new("out").value(value)).await?);
        }
        let past = LOCK + Duration::from_millis(self.dice.below(700));
        if matches!(conduct, Conduct::Slow) {
            tokio::time::sleep(past).await;
        }
        let acks = ShareAcknowledgements::from_records(records, AckType::Accept)?;
        self.producer.send_share_acks_to_transaction(acks, &self.consumer.share_group_metadata()?).await?;
        match conduct {
            Conduct::Stalls => {
                self.producer.prepare_transaction().await?;
                tokio::time::sleep(past).await;
            }
            Conduct::GivesUp => return self.producer.abort_transaction().await,
            Conduct::Dies => {
                if self.dice.below(2) == 0 {
                    self.producer.prepare_transaction().await?;
                }
                self.producer = Self::producer(&self.cluster, self.number).await;
                return Ok(());
            }
            Conduct::Honest | Conduct::Slow => {}
        }
        self.producer.commit_transaction().await
    }
}

/// How often each value is in the output.
async fn output(cluster: &Arc<Cluster>) -> BTreeMap<usize, usize> {
    let mut reader = PartitionReader::read_committed(Arc::clone(cluster), "out").await.unwrap();
    let batches = reader.read_to_end().await.unwrap();
    let mut counts = BTreeMap::new();
    for record in batches.iter().flat_map(|b| b.iter()) {
        let value = std::str::from_utf8(record.value().unwrap()).unwrap().parse().unwrap();
        *counts.entry(value).or_default() += 1;
    }
    counts
}

async fn crowd(transaction_version: i16) {
    // What members that stop let expire unseen, with all that they fetched, must not be archived in the end.
    let limits = ((1_000, 60_000), (2, 10_000));
    let bounds = GroupBounds { record_lock_ms: limits.0, delivery_count_limit: limits.1, ..GroupBounds::default() };
    let builder = EmbeddedBroker::builder().topic("in", PARTITIONS).topic("out", 3).group_bounds(bounds);
    let builder = builder.transactional_acks(false).transaction_version(transaction_version);
    let broker = builder.start().await.unwrap();
    let cluster = Cluster::new(ClientConfig::new(&broker.bootstrap_servers())).unwrap();
    let admin = Admin::on(Arc::clone(&cluster));
    admin.create_ledger(&NewLedger::new().partitions(2)).await.unwrap();
    let lock = LOCK.as_millis().to_string();
    let settings = [
        ("share.auto.offset.reset", "earliest"),
        ("share.record.lock.duration.ms", lock.as_str()),
        ("share.delivery.count.limit", "10000"),
    ];
    admin.alter_share_group_configs("crowd", &settings).await.unwrap();
    let source = Producer::builder("").cluster(Arc::clone(&cluster)).build().unwrap();
    for n in 0..RECORDS {
        let partition = n as i32 % PARTITIONS;
        drop(source.send(ProducerRecord::new("in").partition(partition).value(n.to_string())).await.unwrap());
    }
    source.flush().await.unwrap();
    let done = Arc::new(AtomicBool::new(false));
    let mut members = Vec::new();
    for number in 0..MEMBERS {
        let member = Member::new(&cluster, number, 1_000 * transaction_version as u64 + number).await;
        members.push(tokio::spawn(member.run(Arc::clone(&done))));
    }
    let until = Instant::now() + PATIENCE;
    let mut counts = output(&cluster).await;
    while counts.len() < RECORDS {
        assert!(Instant::now() < until, "only {} records came", counts.len());
        assert!(members.iter().all(|m| !m.is_finished()), "a member ended");
        tokio::time::sleep(Duration::from_millis(200)).await;
        counts = output(&cluster).await;
    }
    done.store(true, Ordering::Release);
    for member in members {
        member.await.unwrap();
    }
    let doubled: Vec<_> = output(&cluster).await.into_iter().filter(|(_, count)| *count != 1).collect();
    assert!(doubled.is_empty(), "{doubled:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn members_that_meet_double_nothing_and_lose_nothing() {
    tokio::join!(crowd(1), crowd(2));
}
