//! A rolling restart of a real cluster of three nodes, twice, under a transactional pipeline: the application sees errors
//! only that its documentation tells it to go on after, and each record is in the output once.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use kafka_share::admin::{AutoOffsetReset, NewTopic, ShareGroupSettings};
use kafka_share::ledger::{AckBackendChoice, NewLedger};
use kafka_share::{
    AckType, AcknowledgementMode, Admin, ClientConfig, Error, ErrorKind, KafkaShareConsumer, PartitionReader, Producer,
    ProducerRecord, Result, ShareAcknowledgements, ShareRecords, TransactionalProducer,
};
use kafka_share_tests::kafka_cluster::RealCluster;

const TEST: &str = "a_rolling_restart_twice_under_a_transactional_pipeline";
const INPUT: &str = "rolling-in";
const OUTPUT: &str = "rolling-out";
const LEDGER: &str = "rolling-ledger";
const GROUP: &str = "rolling";
/// The cluster's own topics that the pipeline needs.
const INTERNAL: [&str; 2] = ["__transaction_state", "__share_group_state"];
const PARTITIONS: i32 = 6;
const MEMBERS: usize = 2;
const ROUNDS: usize = 2;
const LONG: Duration = Duration::from_secs(60);
/// Between two records of the input.
const PACE: Duration = Duration::from_millis(2);

/// What the members of the pipeline tell.
#[derive(Default)]
struct Book {
    over: AtomicBool,
    committed: AtomicU64,
    /// How often which error reached the application, and whether it may.
    errors: Mutex<BTreeMap<String, u64>>,
    wrong: Mutex<Vec<String>>,
}

impl Book {
    fn note(&self, call: &str, error: &Error) {
        let name = format!("{call}: {:?}, {:?}, {:?}", error.severity(), error.kind(), error.code());
        *self.errors.lock().unwrap().entry(name).or_default() += 1;
        // What is retriable may be called again, after what is abortable the records come again, and of an unknown outcome
        // only another commit tells. No other error is one that a restart may bring.
        if error.is_fatal() && error.kind() != ErrorKind::OutcomeUnknown {
            self.wrong.lock().unwrap().push(format!("{call}: {error:?}"));
        }
    }

    fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }
}

struct Member {
    consumer: KafkaShareConsumer,
    producer: TransactionalProducer,
    book: Arc<Book>,
}

impl Member {
    async fn new(bootstrap: &str, number: usize, book: Arc<Book>) -> Self {
        let consumer = KafkaShareConsumer::builder(bootstrap, GROUP)
            .acknowledgement_mode(AcknowledgementMode::Explicit)
            .share_ack_backend(AckBackendChoice::Ledger)
            .ledger_topic(LEDGER)
            .build()
            .unwrap();
        consumer.subscribe([INPUT]).unwrap();
        let producer = TransactionalProducer::builder(bootstrap, &format!("rolling-{number}"))
            .share_ack_backend(AckBackendChoice::Ledger)
            .ledger_topic(LEDGER)
            .build()
            .unwrap();
        producer.init_transactions().await.unwrap();
        Member { consumer, producer, book }
    }

    /// As an application would: whatever fails is logged, and the records come again.
    async fn run(self) {
        while !self.book.is_over() {
            match self.consumer.poll(Duration::from_millis(200)).await {
                Ok(records) if records.is_empty() => {}
                Ok(records) => self.batch(&records).await,
                Err(error) => self.book.note("poll", &error),
            }
        }
        if let Err(error) = self.consumer.close(LONG).await {
            self.book.note("close of the consumer", &error);
        }
        if let Err(error) = self.producer.close(LONG).await {
            self.book.note("close of the producer", &error);
        }
    }

    async fn batch(&self, records: &ShareRecords) {
        let mut result = self.producer.transaction_once(|txn| self.work(txn, records)).await;
        // Only the commit itself can tell.
        while let Err(error) = &result
            && error.kind() == ErrorKind::OutcomeUnknown
        {
            self.book.note("commit", error);
            result = self.producer.commit_transaction().await;
        }
        match result {
            Ok(()) => drop(self.book.committed.fetch_add(1, Ordering::Relaxed)),
            Err(error) => self.book.note("transaction", &error),
        }
    }

    async fn work(&self, txn: &TransactionalProducer, records: &ShareRecords) -> Result<()> {
        for record in records {
            let value = record.value().unwrap_or_default().to_vec();
            drop(txn.send(ProducerRecord::new(OUTPUT).value(value)).await?);
        }
        let acks = ShareAcknowledgements::from_records(records, AckType::Accept)?;
        txn.send_share_acks_to_transaction(acks, &self.consumer.share_group_metadata()?).await
    }
}

/// The values 0, 1, 2 and so on, at an even pace, until the cluster is whole again.
async fn produce(bootstrap: &str, restarted: Arc<AtomicBool>) -> u64 {
    let producer = Producer::builder(bootstrap).linger(Duration::from_millis(5)).build().unwrap();
    let mut deliveries = Vec::new();
    let mut pace = tokio::time::interval(PACE);
    while !restarted.load(Ordering::Acquire) {
        pace.tick().await;
        let value = deliveries.len().to_string();
        deliveries.push(producer.send(ProducerRecord::new(INPUT).value(value)).await.expect("taken"));
    }
    producer.flush().await.expect("all input is written");
    // What failed before the flush is told by its delivery only.
    let count = deliveries.len() as u64;
    for delivery in deliveries {
        delivery.await.expect("it is written");
    }
    count
}

/// Stops one node after the other and starts it again, each once all is replicated.
fn restart_all(cluster: &RealCluster) -> std::io::Result<()> {
    let topics = [INPUT, OUTPUT, LEDGER, INTERNAL[0], INTERNAL[1]];
    for round in 1..=ROUNDS {
        for node in cluster.nodes() {
            cluster.wait_in_sync(&topics, LONG)?;
            let started = Instant::now();
            cluster.terminate(node)?;
            cluster.restart(node)?;
            eprintln!("round {round}: node {node} was away for {:.1} s", started.elapsed().as_secs_f64());
        }
    }
    cluster.wait_in_sync(&topics, LONG)
}

async fn read(admin: &Admin) -> Vec<u64> {
    let mut reader = PartitionReader::read_committed(Arc::clone(admin.cluster()), OUTPUT).await.unwrap();
    let batches = reader.read_to_end().await.unwrap();
    let number = |value: Option<&[u8]>| std::str::from_utf8(value.unwrap_or_default()).unwrap().parse().unwrap();
    let mut all: Vec<u64> =
        batches.iter().flat_map(|b| b.iter().map(|r| number(r.value())).collect::<Vec<_>>()).collect();
    all.sort_unstable();
    all
}

/// Until the group has no lag: every acknowledgement of the ledger has reached the brokers, too. (Start offsets may trail.)
async fn until_done(admin: &Admin) {
    let deadline = Instant::now() + 2 * LONG;
    loop {
        let offsets = admin.describe_share_group_offsets(GROUP).await;
        let at = offsets.as_ref().map_or(&[][..], Vec::as_slice);
        if at.len() == PARTITIONS as usize && at.iter().all(|p| p.lag == Some(0)) {
            return;
        }
        assert!(Instant::now() < deadline, "the group does not come to the end: {offsets:?}");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

async fn pipeline(cluster: &Arc<RealCluster>) {
    let bootstrap = cluster.bootstrap();
    let admin = Admin::new(ClientConfig::new(&bootstrap)).unwrap();
    for topic in [INPUT, OUTPUT] {
        admin.create_topic(NewTopic::new(topic, PARTITIONS).replication_factor(3)).await.unwrap();
    }
    admin.create_ledger(&NewLedger::new().topic(LEDGER).partitions(3).replication_factor(3)).await.unwrap();
    let settings = ShareGroupSettings::new().auto_offset_reset(AutoOffsetReset::Earliest);
    admin.apply_share_group_settings(GROUP, &settings).await.unwrap();

    let book = Arc::new(Book::default());
    let mut members = Vec::new();
    for number in 0..MEMBERS {
        members.push(tokio::spawn(Member::new(&bootstrap, number, Arc::clone(&book)).await.run()));
    }
    let restarted = Arc::new(AtomicBool::new(false));
    let producing = tokio::spawn({
        let (bootstrap, restarted) = (bootstrap.clone(), Arc::clone(&restarted));
        async move { produce(&bootstrap, restarted).await }
    });
    // From the first transaction on, so that the cluster's own topics are there.
    while book.committed.load(Ordering::Relaxed) < 5 {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let restarts = tokio::task::spawn_blocking({
        let cluster = Arc::clone(cluster);
        move || restart_all(&cluster)
    });
    let restarts = restarts.await.unwrap();
    restarted.store(true, Ordering::Release);
    if let Err(error) = restarts {
        panic!("the cluster cannot be restarted: {error}\n{}", cluster.logs());
    }
    let count = producing.await.unwrap();
    until_done(&admin).await;
    book.over.store(true, Ordering::Release);
    for member in members {
        member.await.unwrap();
    }
    let output = read(&admin).await;
    let transactions = book.committed.load(Ordering::Relaxed);
    eprintln!("{count} records in, {} out, in {transactions} transactions", output.len());
    eprintln!("errors that reached the application: {:#?}", book.errors.lock().unwrap());
    assert_eq!(*book.wrong.lock().unwrap(), Vec::<String>::new());
    assert!(output.iter().copied().eq(0..count), "{count} in: {}", differences(&output, count));
}

fn differences(output: &[u64], count: u64) -> String {
    let missing: Vec<u64> = (0..count).filter(|n| output.binary_search(n).is_err()).collect();
    let twice: Vec<u64> = output.windows(2).filter(|w| w[0] == w[1]).map(|w| w[0]).collect();
    format!("missing {missing:?}, more than once {twice:?}")
}

#[test]
fn a_rolling_restart_twice_under_a_transactional_pipeline() {
    let Some(cluster) = RealCluster::start(TEST, "4.4.0") else { return };
    let cluster = Arc::new(cluster);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime").block_on(pipeline(&cluster));
}
