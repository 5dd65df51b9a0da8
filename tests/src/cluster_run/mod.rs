//! Members of a share group consume from a real cluster whose nodes are killed, stopped and started again and whose
//! leaders move. Nothing may be lost, and what comes twice must have a reason in the outcomes of its acknowledgements.

mod book;
mod faults;
mod members;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use kafka_share::admin::{Isolation, NewTopic, OffsetSpec, ShareGroupSettings};
use kafka_share::{Admin, ClientConfig, Producer, ProducerRecord};

use crate::kafka_cluster::RealCluster;
use book::Book;
pub use book::Findings;

const TOPIC: &str = "chaos";
const GROUP: &str = "chaos";
/// Length of a lock.
const LOCK: Duration = Duration::from_secs(3);
/// Bytes of a record's value; it begins with the record's number.
const VALUE: usize = 100;
/// Within which a healthy group comes to the end of its topic.
const DRAINED_WITHIN: Duration = Duration::from_secs(120);
/// Between two lines on standard error.
const PROGRESS: Duration = Duration::from_secs(5);
/// Records of each partition that show, after all faults, that every member still gets some.
const WAVE: u64 = 20;

/// What to run.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Release of the brokers.
    pub version: String,
    /// Records to produce at least.
    pub records: u64,
    /// Members of the group.
    pub members: usize,
    /// Partitions of the topic.
    pub partitions: i32,
    /// Time over which these are produced. More follow at the same rate until the last round of faults is over.
    pub length: Duration,
    /// Rounds of faults at least; more follow while the planned records are produced. A round moves leaders and takes one
    /// node down: killed, then stopped by its own will, in turn.
    pub rounds: u32,
    /// How long a node stays down at most.
    pub down: Duration,
    /// Of all that is left to chance.
    pub seed: u64,
}

/// What came of a run.
#[derive(Debug)]
pub struct Report {
    findings: Findings,
    faults: BTreeMap<&'static str, u32>,
    length: Duration,
}

impl Report {
    /// Whether nothing was lost and all is explained.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.findings.violations.is_empty()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "time         {:.1} s", self.length.as_secs_f64())?;
        writeln!(f, "faults       {:?}", self.faults)?;
        write!(f, "{}", self.findings)
    }
}

/// Runs the plan on a cluster of its own. `None`: Java or Maven is missing, and `test` is reported as skipped.
///
/// # Panics
/// If the cluster does not start, or cannot be prepared.
#[must_use]
pub fn run(test: &str, plan: &Plan) -> Option<Report> {
    let cluster = Arc::new(RealCluster::start(test, &plan.version)?);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    Some(runtime.expect("a runtime").block_on(run_on(&cluster, plan)))
}

async fn run_on(cluster: &Arc<RealCluster>, plan: &Plan) -> Report {
    let admin = Admin::new(ClientConfig::new(&cluster.bootstrap())).expect("an admin");
    admin.create_topic(NewTopic::new(TOPIC, plan.partitions)).await.expect("the topic is created");
    let settings = ShareGroupSettings::new()
        .auto_offset_reset(kafka_share::admin::AutoOffsetReset::Earliest)
        .record_lock_duration(LOCK)
        .delivery_count_limit(10);
    admin.apply_share_group_settings(GROUP, &settings).await.expect("the group is configured");

    let started = Instant::now();
    let book = Arc::new(Book::new(plan.partitions, plan.members));
    let going = Arc::new(AtomicBool::new(true));
    let members: Vec<_> = (0..plan.members)
        .map(|number| {
            let (book, going) = (Arc::clone(&book), Arc::clone(&going));
            tokio::spawn(members::run(cluster.bootstrap(), plan.seed, number, book, going))
        })
        .collect();
    let progress = tokio::spawn(show(Arc::clone(&book), started));
    let producing = Arc::new(AtomicBool::new(true));
    let faults = {
        let (cluster, plan, producing) = (Arc::clone(cluster), plan.clone(), Arc::clone(&producing));
        tokio::task::spawn_blocking(move || faults::make(&cluster, &plan, &producing, started))
    };
    let producer =
        Producer::builder(&cluster.bootstrap()).linger(Duration::from_millis(5)).build().expect("a producer");
    produce(&producer, &book, plan, &producing, || faults.is_finished()).await;
    match faults.await.expect("no panic") {
        Ok(faults) => {
            drain(&admin, &book).await;
            all_still_get_records(&admin, &producer, &book).await;
            going.store(false, Ordering::Relaxed);
            for member in members {
                member.await.expect("no panic");
            }
            progress.abort();
            Report { findings: book.findings(), faults, length: started.elapsed() }
        }
        Err(error) => panic!("the cluster cannot be handled as planned: {error}\n{}", cluster.logs()),
    }
}

/// A line now and then.
async fn show(book: Arc<Book>, started: Instant) {
    loop {
        tokio::time::sleep(PROGRESS).await;
        eprintln!("{:>6.1} s  {}", started.elapsed().as_secs_f64(), book.line());
    }
}

/// At an even rate, until all planned records are sent and all faults are over.
async fn produce(producer: &Producer, book: &Book, plan: &Plan, producing: &AtomicBool, over: impl Fn() -> bool) {
    let (started, mut sent) = (Instant::now(), 0);
    while sent < plan.records || !over() {
        let due = started.elapsed().as_secs_f64() / plan.length.as_secs_f64() * plan.records as f64;
        for _ in sent..due as u64 {
            send(producer, book).await;
        }
        sent = sent.max(due as u64);
        producing.store(sent < plan.records, Ordering::Relaxed);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    book.stop_clock();
    if let Err(error) = producer.flush().await {
        book.violation(format!("the producer cannot write: {error}"));
    }
}

async fn send(producer: &Producer, book: &Book) {
    let (number, partition) = book.next();
    let mut value = [0x2e; VALUE];
    value[..8].copy_from_slice(&number.to_be_bytes());
    match producer.send(ProducerRecord::new(TOPIC).partition(partition).value(&value[..])).await {
        // Whether it was written shows at the flush, and in the end offsets.
        Ok(delivery) => drop(delivery),
        Err(error) => book.violation(format!("record {number} cannot be sent: {error}")),
    }
}

/// Waits until the group has no lag, and all records are there, each once.
async fn drain(admin: &Admin, book: &Book) {
    let deadline = Instant::now() + DRAINED_WITHIN;
    let mut last = String::new();
    while Instant::now() < deadline {
        tokio::time::sleep(Duration::from_millis(200)).await;
        let ends = admin.list_offsets(TOPIC, OffsetSpec::Latest, Isolation::ReadUncommitted).await;
        let offsets = admin.describe_share_group_offsets(GROUP).await;
        if let (Ok(ends), Ok(offsets)) = (&ends, &offsets)
            && offsets.len() == ends.len()
            && offsets.iter().all(|partition| partition.lag == Some(0))
        {
            return book.ends_at(ends);
        }
        last = format!("ends {ends:?}, group {offsets:?}");
    }
    book.violation(format!("the group does not come to the end of its topic: {last}"));
}

/// No member may be stuck: waves of records until each has got some.
async fn all_still_get_records(admin: &Admin, producer: &Producer, book: &Book) {
    let deadline = Instant::now() + DRAINED_WITHIN;
    let before = book.by_member();
    loop {
        for _ in 0..WAVE * book.partitions() as u64 {
            send(producer, book).await;
        }
        if let Err(error) = producer.flush().await {
            return book.violation(format!("the producer cannot write after all faults: {error}"));
        }
        drain(admin, book).await;
        let now = book.by_member();
        if before.iter().zip(&now).all(|(before, now)| now > before) {
            return;
        }
        if Instant::now() > deadline {
            return book.violation(format!("a member is stuck: {before:?} records before, {now:?} after"));
        }
    }
}
