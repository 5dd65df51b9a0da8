//! How large a ledger gets over a run of a million records, and that its size stays bounded.
//!
//! `cargo run --release -p kafka-share-tests --example ledger_size -- [--records 1000000] [--per-transaction 10]
//! [--tasks 8] [--servers HOST:PORT]`
//!
//! Tasks copy records exactly once, through the ledger, on a real Kafka 4.4.0 (or the servers given), while the ledger is
//! read from its start every few seconds. Its segments are of 1 MiB or 20 s, are compacted after 10 s, and their tombstones
//! kept for 10 s, so that the run is long beside all of these; the other settings are those of `kshare ledger create`. It
//! fails where the second half of the run leaves the ledger with more than twice what the first half had at its highest.

use kafka_share::admin::{Isolation, NewTopic, OffsetSpec};
use kafka_share::consumer::AcquireMode;
use kafka_share::ledger::NewLedger;
use kafka_share::net::Cluster;
use kafka_share::{AcknowledgementMode, Admin, ClientConfig, KafkaShareConsumer, PartitionReader};
use kafka_share::{Producer, ProducerRecord, TransactionalProducer};
use kafka_share_tests::kafka::RealKafka;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

const LEDGER: &str = "share-ack-ledger";
const INPUT: &str = "in";
const OUTPUT: &str = "out";
const GROUP: &str = "billing";
const EVERY: Duration = Duration::from_secs(5);
const LONG: Duration = Duration::from_secs(60);

struct Options {
    records: u64,
    per_transaction: usize,
    tasks: usize,
    servers: Option<String>,
}

fn options() -> Result<Options, String> {
    let mut options = Options { records: 1_000_000, per_transaction: 10, tasks: 8, servers: None };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let value = words.next().ok_or_else(|| format!("{word} needs a value"))?;
        let number = || value.parse::<u32>().map_err(|_| format!("{word} needs a number, not {value:?}"));
        match word.as_str() {
            "--records" => options.records = number()?.into(),
            "--per-transaction" => options.per_transaction = number()?.max(1) as usize,
            "--tasks" => options.tasks = number()?.max(1) as usize,
            "--servers" => options.servers = Some(value),
            _ => return Err(format!("{word} is not an option; see the head of this example's source")),
        }
    }
    Ok(options)
}

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// What all tasks have done.
#[derive(Default)]
struct Done {
    records: AtomicU64,
    transactions: AtomicU64,
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let options = options()?;
    let kafka = match options.servers {
        Some(_) => None,
        None => Some(RealKafka::start("ledger_size", "4.4.0").ok_or("Java or Maven is missing")?),
    };
    let servers = options.servers.clone().or(kafka.as_ref().map(|k| k.bootstrap())).unwrap_or_default();
    let cluster = Cluster::new(ClientConfig::new(&servers))?;
    let admin = Admin::on(Arc::clone(&cluster));
    prepare(&admin, &cluster, options.records).await?;
    let done = Arc::new(Done::default());
    let mut tasks = tokio::task::JoinSet::new();
    for task in 0..options.tasks {
        let (servers, done) = (servers.clone(), Arc::clone(&done));
        let (records, per) = (options.records, options.per_transaction);
        tasks.spawn(async move { copy(&servers, task, per, records, &done).await });
    }
    let sizes = watch(&admin, &cluster, &done, options.records).await?;
    while let Some(ended) = tasks.join_next().await {
        ended??;
    }
    judge(&sizes)
}

async fn prepare(admin: &Admin, cluster: &Arc<Cluster>, records: u64) -> Result<(), Failure> {
    let settings = [
        ("segment.ms", "20000"),
        ("segment.bytes", "1048576"),
        ("delete.retention.ms", "10000"),
        ("min.compaction.lag.ms", "10000"),
    ];
    let ledger = settings.iter().fold(NewLedger::new(), |ledger, (name, value)| ledger.config(*name, *value));
    admin.create_ledger(&ledger).await?;
    admin.create_topic(NewTopic::new(INPUT, 12)).await?;
    admin.create_topic(NewTopic::new(OUTPUT, 12)).await?;
    admin.alter_share_group_configs(GROUP, &[("share.auto.offset.reset", "earliest")]).await?;
    let producer = Producer::builder("").cluster(Arc::clone(cluster)).build()?;
    for _ in 0..records {
        drop(producer.send(ProducerRecord::new(INPUT).value(&[b'x'; 100][..])).await?);
    }
    producer.flush().await?;
    Ok(producer.close(LONG).await?)
}

async fn copy(servers: &str, task: usize, per: usize, records: u64, done: &Done) -> Result<(), Failure> {
    let mut builder = KafkaShareConsumer::builder(servers, GROUP);
    builder.set("share.ack.transaction.backend", "ledger")?;
    let mode = AcknowledgementMode::Explicit;
    let builder = builder.acknowledgement_mode(mode).max_poll_records(per).acquire_mode(AcquireMode::RecordLimit);
    let consumer = builder.build()?;
    consumer.subscribe([INPUT])?;
    let mut builder = TransactionalProducer::builder(servers, &format!("task-{task}"));
    builder.set("share.ack.transaction.backend", "ledger")?;
    let producer = builder.build()?;
    producer.init_transactions().await?;
    while done.records.load(Ordering::Relaxed) < records {
        let polled = consumer.poll(Duration::from_millis(500)).await?;
        if polled.is_empty() {
            continue;
        }
        producer.begin_transaction()?;
        for record in &polled {
            drop(producer.send(ProducerRecord::new(OUTPUT).value(record.value().unwrap_or_default())).await?);
            consumer.acknowledge(&record)?;
        }
        let acks = consumer.acknowledgements_for_transaction()?;
        producer.send_share_acks_to_transaction(acks, &consumer.share_group_metadata()?).await?;
        match producer.commit_transaction().await {
            Ok(()) => {
                done.records.fetch_add(polled.len() as u64, Ordering::Relaxed);
                done.transactions.fetch_add(1, Ordering::Relaxed);
            }
            Err(error) if error.is_abortable() => producer.abort_transaction().await?,
            Err(error) => return Err(error.into()),
        }
    }
    consumer.close(LONG).await?;
    Ok(producer.close(LONG).await?)
}

/// The ledger's size every few seconds until the records are done: how much of the run was done then, and bytes.
async fn watch(admin: &Admin, cluster: &Arc<Cluster>, done: &Done, records: u64) -> Result<Vec<(u64, u64)>, Failure> {
    let (started, mut sizes) = (Instant::now(), Vec::new());
    println!(
        "{:>6}  {:>9}  {:>12}  {:>14}  {:>12}  {:>10}",
        "s", "records", "transactions", "ledger's end", "left", "KiB left"
    );
    loop {
        tokio::time::sleep(EVERY).await;
        let now = done.records.load(Ordering::Relaxed);
        let end: i64 = admin.list_offsets(LEDGER, OffsetSpec::Latest, Isolation::ReadUncommitted).await?.iter().sum();
        let mut reader = PartitionReader::new(Arc::clone(cluster), LEDGER, Isolation::ReadUncommitted, None).await?;
        let (mut left, mut bytes) = (0_u64, 0_u64);
        while let Some(batch) = reader.next_batch().await? {
            for record in batch.iter() {
                left += 1;
                bytes += (record.key().map_or(0, <[u8]>::len) + record.value().map_or(0, <[u8]>::len)) as u64;
            }
        }
        let seconds = started.elapsed().as_secs();
        let transactions = done.transactions.load(Ordering::Relaxed);
        println!("{seconds:>6}  {now:>9}  {transactions:>12}  {end:>14}  {left:>12}  {:>10}", bytes / 1024);
        sizes.push((now, bytes));
        if now >= records {
            return Ok(sizes);
        }
    }
}

fn judge(sizes: &[(u64, u64)]) -> Result<(), Failure> {
    let half = sizes.last().map_or(0, |(records, _)| records / 2);
    let highest = |late: bool| {
        sizes.iter().filter(|(records, _)| (*records > half) == late).map(|(_, bytes)| *bytes).max().unwrap_or_default()
    };
    let (first, second) = (highest(false), highest(true));
    println!("highest in the first half {} KiB, in the second {} KiB", first / 1024, second / 1024);
    if second > first.saturating_mul(2) { Err("the ledger grows with the run".into()) } else { Ok(()) }
}
