//! How long a new member takes to read a ledger that has seen many intents, and how large it is.
//!
//! `cargo run --release -p kafka-share-tests --example ledger_start -- [--intents 10000000] [--wait 60] [--servers HOST:PORT]`
//!
//! Writes intents and their tombstones as members do, but thousands in a transaction, to a ledger of one partition on a real
//! Kafka 4.4.0 (or the servers given), and waits for the broker to compact it. What is measured is the time from the start
//! of a consumer that uses the ledger to its first record, beside one that uses none; it fails above two seconds.

use kafka_share::admin::{Isolation, NewTopic, OffsetSpec};
use kafka_share::ledger::NewLedger;
use kafka_share::net::Cluster;
use kafka_share::{AcknowledgementMode, Admin, ClientConfig, KafkaShareConsumer, Producer, ProducerRecord};
use kafka_share::{PartitionReader, TransactionalProducer, Uuid};
use kafka_share_core::ledger::{ClaimedRange, Claims, GroupClaims, Intent, IntentKey, Layout, LedgerRecord};
use kafka_share_core::metadata::TopicIdPartition;
use kafka_share_core::share_acks::AckType;
use kafka_share_tests::kafka::RealKafka;
use std::sync::Arc;
use std::time::{Duration, Instant};

const LEDGER: &str = "share-ack-ledger";
const INPUT: &str = "in";
const GROUP: &str = "billing";
/// What a new member may take, with its share group's own second in it.
const WITHIN: Duration = Duration::from_secs(2);
/// Intents of a transaction.
const TOGETHER: u64 = 5_000;
const LONG: Duration = Duration::from_secs(120);

struct Options {
    intents: u64,
    wait: Duration,
    servers: Option<String>,
}

fn options() -> Result<Options, String> {
    let mut options = Options { intents: 10_000_000, wait: Duration::from_secs(60), servers: None };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let value = words.next().ok_or_else(|| format!("{word} needs a value"))?;
        let number = || value.parse::<u64>().map_err(|_| format!("{word} needs a number, not {value:?}"));
        match word.as_str() {
            "--intents" => options.intents = number()?,
            "--wait" => options.wait = Duration::from_secs(number()?),
            "--servers" => options.servers = Some(value),
            _ => return Err(format!("{word} is not an option; see the head of this example's source")),
        }
    }
    Ok(options)
}

type Failure = Box<dyn std::error::Error>;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let options = options()?;
    let kafka = match options.servers {
        Some(_) => None,
        None => Some(RealKafka::start("ledger_start", "4.4.0").ok_or("Java or Maven is missing")?),
    };
    let servers = options.servers.clone().or(kafka.as_ref().map(|k| k.bootstrap())).unwrap_or_default();
    let cluster = Cluster::new(ClientConfig::new(&servers))?;
    let admin = Admin::on(Arc::clone(&cluster));
    let mut ledger = NewLedger::new().partitions(1);
    for (name, value) in [("segment.ms", "5000"), ("min.compaction.lag.ms", "0"), ("delete.retention.ms", "1000")] {
        ledger = ledger.config(name, value);
    }
    admin.create_ledger(&ledger).await?;
    let topic_id = admin.create_topic(NewTopic::new(INPUT, 1)).await?;
    admin.alter_share_group_configs(GROUP, &[("share.auto.offset.reset", "earliest")]).await?;
    let producer = Producer::builder("").cluster(Arc::clone(&cluster)).build()?;
    for _ in 0..1000 {
        drop(producer.send(ProducerRecord::new(INPUT).value("x")).await?);
    }
    producer.flush().await?;
    for _ in 0..3 {
        println!("first record without a ledger: {:?}", first_record(&servers, None).await?);
    }
    let started = Instant::now();
    write(&cluster, topic_id, options.intents).await?;
    println!("{} intents and tombstones written in {:?}", options.intents, started.elapsed());
    show(&admin, &cluster, "before compaction").await?;
    let until = Instant::now() + options.wait;
    while Instant::now() < until {
        tokio::time::sleep(Duration::from_secs(10)).await;
        // A segment that nothing is written to is never closed, and the one that is written to never compacted.
        write(&cluster, topic_id, 1).await?;
    }
    show(&admin, &cluster, "after compaction").await?;
    let mut slowest = Duration::ZERO;
    for _ in 0..3 {
        let took = first_record(&servers, Some(LEDGER)).await?;
        println!("first record with the ledger: {took:?}");
        slowest = slowest.max(took);
    }
    if slowest > WITHIN {
        return Err(format!("a new member is to start within {WITHIN:?}").into());
    }
    Ok(())
}

/// From the start of a consumer to its first record.
async fn first_record(servers: &str, ledger: Option<&str>) -> Result<Duration, Failure> {
    let started = Instant::now();
    let mut builder = KafkaShareConsumer::builder(servers, GROUP);
    if let Some(ledger) = ledger {
        builder.set("share.ack.transaction.backend", "ledger")?;
        builder.set("share.ack.ledger.topic", ledger)?;
    }
    let consumer = builder.acknowledgement_mode(AcknowledgementMode::Explicit).max_poll_records(1).build()?;
    consumer.subscribe([INPUT])?;
    while consumer.poll(LONG).await?.is_empty() {}
    let took = started.elapsed();
    consumer.close(LONG).await?;
    Ok(took)
}

async fn write(cluster: &Arc<Cluster>, topic_id: Uuid, intents: u64) -> Result<(), Failure> {
    let layout = Layout::new(1).ok_or("a layout")?;
    let builder = TransactionalProducer::builder("", "writer").cluster(Arc::clone(cluster)).batch_size(200_000);
    let producer = builder.build()?;
    producer.init_transactions().await?;
    let tp = TopicIdPartition { topic_id, partition: 0 };
    let instance = Uuid::from_halves(started_at(), 1);
    let (mut written, mut before) = (0, Vec::new());
    while written < intents {
        producer.begin_transaction()?;
        for key in std::mem::take(&mut before) {
            let (key, _) = LedgerRecord::Tombstone(key).encode(layout);
            drop(producer.send(ProducerRecord::new(LEDGER).partition(0).key(&key[..])).await?);
        }
        for counter in written..(written + TOGETHER).min(intents) {
            // Far above what there is: nobody's records are claimed.
            let first = 1_000_000_000 + i64::try_from(counter)? * 10;
            let claims = Claims::from([(tp, vec![ClaimedRange { first, last: first + 9, ack: AckType::Accept }])]);
            let part = GroupClaims { group: GROUP.into(), generation: 0, claims };
            let intent =
                Intent { transactional_id: "writer".into(), two_phase: false, native: false, groups: vec![part] };
            let key = IntentKey { instance, counter };
            before.push(key);
            let (key, value) = LedgerRecord::Intent(key, intent).encode(layout);
            let value = value.unwrap_or_default();
            drop(producer.send(ProducerRecord::new(LEDGER).partition(0).key(&key[..]).value(&value[..])).await?);
        }
        producer.commit_transaction().await?;
        written += TOGETHER.min(intents - written);
        if written % 1_000_000 == 0 {
            println!("{written} written");
        }
    }
    // The last ones go with the next transaction, as always.
    producer.begin_transaction()?;
    for key in before {
        let (key, _) = LedgerRecord::Tombstone(key).encode(layout);
        drop(producer.send(ProducerRecord::new(LEDGER).partition(0).key(&key[..])).await?);
    }
    producer.commit_transaction().await?;
    Ok(producer.close(LONG).await?)
}

fn started_at() -> u64 {
    std::time::UNIX_EPOCH.elapsed().map_or(0, |time| time.as_nanos() as u64)
}

/// Offsets, and what is left between them.
async fn show(admin: &Admin, cluster: &Arc<Cluster>, when: &str) -> Result<(), Failure> {
    let end = admin.list_offsets(LEDGER, OffsetSpec::Latest, Isolation::ReadUncommitted).await?[0];
    let mut reader = PartitionReader::new(Arc::clone(cluster), LEDGER, Isolation::ReadUncommitted, None).await?;
    let (started, mut records, mut bytes) = (Instant::now(), 0_u64, 0_usize);
    while let Some(batch) = reader.next_batch().await? {
        for record in batch.iter() {
            records += 1;
            bytes += record.key().map_or(0, <[u8]>::len) + record.value().map_or(0, <[u8]>::len);
        }
    }
    println!("{when}: end offset {end}, {records} records of {bytes} bytes are left, read in {:?}", started.elapsed());
    Ok(())
}
