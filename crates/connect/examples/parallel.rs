//! How the rate of a slow sink grows with its tasks, whatever the number of partitions, on an embedded broker.
//!
//! `cargo run --release -p kafka-share-connect --example parallel`

use async_trait::async_trait;
use kafka_share::{Admin, ClientConfig, Producer, ProducerRecord};
use kafka_share_broker::EmbeddedBroker;
use kafka_share_connect::{
    ConnectError, ConnectorConfig, Properties, SinkConnector, SinkRecord, SinkTask, SinkTaskContext, Worker,
    WorkerConfig,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How long each put takes.
const PUT: Duration = Duration::from_millis(50);
/// Records of a put.
const BATCH: usize = 5;
/// How long a rate is measured.
const MEASURED: Duration = Duration::from_secs(5);

/// A sink as slow as a remote service. With `stuck`, the first put does not return.
#[derive(Clone)]
struct Slow {
    stuck: Arc<AtomicBool>,
}

impl SinkConnector for Slow {
    fn start(&mut self, _properties: &Properties) -> Result<(), ConnectError> {
        Ok(())
    }

    fn new_task(&self) -> Box<dyn SinkTask> {
        Box::new(self.clone())
    }
}

#[async_trait]
impl SinkTask for Slow {
    fn version(&self) -> &str {
        "1"
    }

    async fn start(&mut self, _context: SinkTaskContext, _properties: &Properties) -> Result<(), ConnectError> {
        Ok(())
    }

    async fn put(&mut self, _records: &[SinkRecord]) -> Result<(), ConnectError> {
        if self.stuck.swap(false, Ordering::SeqCst) {
            std::future::pending::<()>().await;
        }
        tokio::time::sleep(PUT).await;
        Ok(())
    }
}

type Failure = Box<dyn std::error::Error>;

async fn fill(servers: &str, topic: &str, partitions: i32, records: usize) -> Result<(), Failure> {
    let producer = Producer::builder(servers).linger(Duration::ZERO).build()?;
    for i in 0..records {
        let record = ProducerRecord::new(topic).partition(i as i32 % partitions).value(&b"order"[..]);
        drop(producer.send(record).await?);
    }
    producer.flush().await?;
    Ok(producer.close(Duration::from_secs(10)).await?)
}

/// Records per second, and the tasks that had any.
async fn rate(servers: &str, topic: &str, tasks: usize, stuck: bool) -> Result<(f64, usize), Failure> {
    let owned = |pairs: &[(&str, &str)]| -> Properties {
        pairs.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect()
    };
    let name = format!("{topic}-{tasks}-{stuck}");
    let admin = Admin::new(ClientConfig::new(servers))?;
    // A record that is held keeps the share-partition from going further than this many records beyond it.
    let window = ("share.partition.max.record.locks", "4000");
    let settings = [("share.auto.offset.reset", "earliest"), window];
    admin.alter_share_group_configs(&format!("connect-{name}"), &settings).await?;
    let (number, batch) = (tasks.to_string(), BATCH.to_string());
    let worker = WorkerConfig::new(owned(&[("bootstrap.servers", servers), ("consumer.group.protocol", "share")]))?;
    let config = owned(&[
        ("name", &name),
        ("connector.class", "slow"),
        ("topics", topic),
        ("tasks.max", &number),
        ("consumer.override.max.poll.records", &batch),
        ("consumer.override.share.acquire.mode", "record_limit"),
    ]);
    let sink = Slow { stuck: Arc::new(AtomicBool::new(stuck)) };
    let mut worker = Worker::start(ConnectorConfig::new(config, &worker)?, Box::new(sink)).await?;
    let accepted = |worker: &Worker| worker.status().iter().map(|t| t.accepted).sum::<u64>();
    // All have joined once most have something.
    while worker.status().iter().filter(|t| t.read > 0).count() < tasks {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let (began, before) = (Instant::now(), accepted(&worker));
    tokio::time::sleep(MEASURED).await;
    let rate = (accepted(&worker) - before) as f64 / began.elapsed().as_secs_f64();
    let busy = worker.status().iter().filter(|t| t.accepted > 0).count();
    worker.stop(Duration::from_secs(10)).await;
    Ok((rate, busy))
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let broker = EmbeddedBroker::builder().topic("one", 1).topic("twelve", 12).start().await?;
    let servers = broker.bootstrap_servers();
    fill(&servers, "one", 1, 40_000).await?;
    fill(&servers, "twelve", 12, 120_000).await?;
    println!("each put takes {} ms for {BATCH} records", PUT.as_millis());
    let (alone, _) = rate(&servers, "one", 1, false).await?;
    println!("1 partition, 1 task: {alone:.0} records/s");
    let (eight, busy) = rate(&servers, "one", 8, false).await?;
    println!("1 partition, 8 tasks: {eight:.0} records/s, {:.2} times one task, {busy} busy", eight / alone);
    let (stuck, busy) = rate(&servers, "one", 8, true).await?;
    println!("1 partition, 8 tasks, one stuck: {stuck:.0} records/s, {:.2} times one task, {busy} busy", stuck / alone);
    let (fifty, busy) = rate(&servers, "twelve", 50, false).await?;
    println!("12 partitions, 50 tasks: {fifty:.0} records/s, {:.2} times one task, {busy} busy", fifty / alone);
    Ok(())
}
