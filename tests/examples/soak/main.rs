//! Soak of the embedded broker: members come and go, locks end, leaders move and nodes restart at full speed, and every
//! record must end accepted once.
//!
//! `cargo run --release -p kafka-share-tests --example soak -- [--seconds 600] [--members 8] [--partitions 4] [--seed 1]`

mod book;
mod members;
mod memory;
mod trouble;

use book::Book;
use kafka_share::admin::NewTopic;
use kafka_share::{Admin, ClientConfig, Producer, ProducerRecord};
use kafka_share_broker::EmbeddedBroker;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The group and the topic.
const GROUP: &str = "soak";
const TOPIC: &str = "soak";
/// Deliveries of a record; so many that only a broker that counts wrongly comes to it.
const DELIVERIES: u8 = 10;
/// Records that may wait for a consumer.
const BACKLOG: u64 = 200_000;

#[derive(Debug, Clone, Copy)]
struct Plan {
    length: Duration,
    members: u64,
    partitions: i32,
    seed: u64,
}

fn plan() -> Result<Plan, String> {
    let mut plan = Plan { length: Duration::from_secs(600), members: 8, partitions: 4, seed: 1 };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let value = words.next().and_then(|value| value.parse::<u64>().ok());
        let value = value.ok_or_else(|| format!("{word} needs a number"))?;
        match word.as_str() {
            "--seconds" => plan.length = Duration::from_secs(value),
            "--members" => plan.members = value,
            "--partitions" => plan.partitions = i32::try_from(value).map_err(|e| e.to_string())?,
            "--seed" => plan.seed = value,
            _ => return Err(format!("{word} is not an option; --seconds, --members, --partitions and --seed are")),
        }
    }
    Ok(plan)
}

fn main() -> ExitCode {
    let plan = match plan() {
        Ok(plan) => plan,
        Err(why) => {
            eprintln!("{why}");
            return ExitCode::from(2);
        }
    };
    if let Some(code) = memory::again_with_plain_allocator() {
        return code;
    }
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    if runtime.block_on(soak(plan)) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

async fn soak(plan: Plan) -> bool {
    let builder = EmbeddedBroker::builder().nodes(3).seed(plan.seed).configure(|config| {
        config.groups.record_lock_ms.0 = 1_000;
    });
    let broker = Arc::new(builder.start().await.expect("the embedded broker starts"));
    let admin = Admin::new(ClientConfig::new(&broker.bootstrap_servers())).expect("an admin");
    // Old records go, so that memory can be flat; what waits is far less than this.
    let topic = NewTopic::new(TOPIC, plan.partitions).config("retention.bytes", "33554432");
    admin.create_topic(topic).await.expect("the topic is created");
    let limit = DELIVERIES.to_string();
    let settings = [
        ("share.auto.offset.reset", "earliest"),
        ("share.record.lock.duration.ms", "1000"),
        ("share.delivery.count.limit", limit.as_str()),
    ];
    admin.alter_share_group_configs(GROUP, &settings).await.expect("the group is configured");

    let book = Arc::new(Book::new(plan.partitions));
    let producing = Arc::new(AtomicBool::new(true));
    let consuming = Arc::new(AtomicBool::new(true));
    let producer = tokio::spawn(produce(broker.bootstrap_servers(), plan, Arc::clone(&book), Arc::clone(&producing)));
    let members: Vec<_> = (0..plan.members)
        .map(|n| {
            tokio::spawn(members::run(
                broker.bootstrap_servers(),
                plan.seed,
                n,
                Arc::clone(&book),
                Arc::clone(&consuming),
            ))
        })
        .collect();
    let trouble = tokio::spawn(trouble::make(Arc::clone(&broker), plan, Arc::clone(&producing)));
    let memory = watch(plan, &book, &broker).await;

    producing.store(false, Ordering::Relaxed);
    producer.await.expect("the producer ends");
    let troubles = trouble.await.expect("trouble ends");
    let drained = drain(&admin, &book).await;
    consuming.store(false, Ordering::Relaxed);
    for member in members {
        member.await.expect("a member ends");
    }
    let flat = memory.flat();
    let sound = book.report(plan.length, &troubles, drained);
    println!("memory       {memory}");
    if !flat {
        println!("FAILED: memory grows");
    }
    if !drained {
        println!("FAILED: the group does not come to the end of its partitions");
    }
    sound && flat && drained
}

/// A progress line every few seconds, and samples of memory.
async fn watch(plan: Plan, book: &Book, broker: &EmbeddedBroker) -> memory::Samples {
    let started = Instant::now();
    let mut memory = memory::Samples::default();
    let step = (plan.length / 40).clamp(Duration::from_secs(1), Duration::from_secs(15));
    while started.elapsed() < plan.length {
        tokio::time::sleep(step).await;
        memory.take();
        let (seconds, connections) = (started.elapsed().as_secs(), broker.connection_count());
        let tasks = tokio::runtime::Handle::current().metrics().num_alive_tasks();
        eprintln!("{seconds:>4} s  {}  connections {connections:>3}  tasks {tasks:>4}  {memory}", book.line());
    }
    memory
}

/// As fast as the group keeps up.
async fn produce(bootstrap: String, plan: Plan, book: Arc<Book>, producing: Arc<AtomicBool>) {
    let producer = Producer::builder(&bootstrap).linger(Duration::from_millis(5)).build().expect("a producer");
    let value = [7; 100];
    let mut sent = 0;
    while producing.load(Ordering::Relaxed) {
        if book.backlog() > BACKLOG {
            tokio::time::sleep(Duration::from_millis(5)).await;
            continue;
        }
        for _ in 0..1_000 {
            let record = ProducerRecord::new(TOPIC).partition(sent % plan.partitions).value(&value[..]);
            // The idempotent producer neither loses nor doubles; the offsets are counted below, not here.
            drop(producer.send(record).await.expect("sent"));
            sent += 1;
            sent %= plan.partitions;
        }
        book.produced(1_000);
    }
    producer.flush().await.expect("flushed");
    producer.close(Duration::from_secs(30)).await.expect("closed");
}

/// Waits until the group has no lag, and gives the book the ends of the partitions.
async fn drain(admin: &Admin, book: &Book) -> bool {
    let deadline = Instant::now() + Duration::from_secs(120);
    while Instant::now() < deadline {
        if let Ok(offsets) = admin.describe_share_group_offsets(GROUP).await
            && offsets.iter().all(|partition| partition.lag == Some(0))
        {
            let spec = kafka_share::admin::OffsetSpec::Latest;
            let isolation = kafka_share::admin::Isolation::ReadUncommitted;
            let ends = admin.list_offsets(TOPIC, spec, isolation).await.expect("the ends are listed");
            return ends.iter().enumerate().all(|(partition, end)| book.ends_at(partition, *end));
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    false
}
