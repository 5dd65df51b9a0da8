//! Members that stop for longer than their locks last and die at any point, on a broker that delays, loses and moves: in
//! the end each record is in the output once.
//!
//! Each life of a member is a runtime of its own on a thread of its own: one that ends without a word is a killed process,
//! and one whose thread sleeps is a stopped one, its reader of the ledger and its heartbeats included.

use super::stage::*;
use kafka_share::admin::ConfigResource;
use kafka_share::{
    AckType, AcknowledgementMode, KafkaShareConsumer, ProducerRecord, ShareAcknowledgements, ShareRecords,
    TransactionalProducer,
};
use kafka_share_broker::{EmbeddedBroker, Fault, FaultAction, GroupBounds};
use kafka_share_messages::{ApiKey, ErrorCode};
use kafka_share_tests::dice::Dice;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const RECORDS: usize = 400;
const MEMBERS: usize = 5;
/// On the embedded broker, which hands records out as often as it takes.
const LOCK_MS: u64 = 1_000;
/// On a real one, which gives records up at a limit: more than a step takes on a busy machine.
const REAL_LOCK_MS: u64 = 2_500;
const LIMIT: Duration = Duration::from_secs(300);

/// What the members share.
struct World {
    bootstrap: String,
    input: String,
    output: String,
    ledger: String,
    group: String,
    lock_ms: u64,
    over: AtomicBool,
    kills: AtomicUsize,
    pauses: AtomicUsize,
    conflicts: AtomicUsize,
}

/// Why a member's life ends.
struct Killed;

struct Life<'a> {
    world: &'a World,
    dice: Dice,
    consumer: KafkaShareConsumer,
    producer: TransactionalProducer,
}

impl<'a> Life<'a> {
    async fn begin(world: &'a World, slot: usize, dice: Dice) -> kafka_share::Result<Self> {
        let properties = [
            ("bootstrap.servers", world.bootstrap.as_str()),
            ("request.timeout.ms", "2000"),
            ("share.ack.transaction.backend", "ledger"),
            ("share.ack.ledger.topic", &world.ledger),
            ("share.ack.ledger.sweep.interval.ms", "300"),
            ("retry.backoff.ms", "20"),
        ];
        let mut consumer =
            KafkaShareConsumer::builder("", &world.group).acknowledgement_mode(AcknowledgementMode::Explicit);
        let mut producer = TransactionalProducer::builder("", &format!("chaos-{slot}"));
        for (name, value) in properties {
            consumer.set(name, value)?;
            producer.set(name, value)?;
        }
        consumer.set("max.poll.records", "20")?;
        let producer =
            producer.transaction_timeout(Duration::from_secs(10)).max_block(Duration::from_secs(8)).build()?;
        producer.init_transactions().await?;
        let consumer = consumer.build()?;
        consumer.subscribe([&world.input])?;
        Ok(Life { world, dice, consumer, producer })
    }

    /// A place where a process may be stopped or killed.
    fn stumble(&mut self) -> Result<(), Killed> {
        if self.dice.one_in(25) {
            self.world.kills.fetch_add(1, Ordering::Relaxed);
            return Err(Killed);
        }
        if self.dice.one_in(18) {
            self.world.pauses.fetch_add(1, Ordering::Relaxed);
            let lock = self.world.lock_ms;
            let past = if self.dice.one_in(3) { 3 * lock } else { lock };
            std::thread::sleep(Duration::from_millis(past + self.dice.below(400)));
        }
        Ok(())
    }

    async fn live(mut self) -> Result<(), Killed> {
        while !self.world.over.load(Ordering::Relaxed) {
            let Ok(records) = self.consumer.poll(Duration::from_millis(200)).await else { continue };
            self.stumble()?;
            if records.is_empty() {
                continue;
            }
            match self.transaction(&records).await? {
                Ok(()) => {}
                Err(error) if error.is_abortable() => {
                    self.world.conflicts.fetch_add(1, Ordering::Relaxed);
                }
                // A new process, as an operator would have it.
                Err(_) => return Err(Killed),
            }
            if !self.settle().await {
                return Err(Killed);
            }
        }
        let _ = self.consumer.close(Duration::from_secs(5)).await;
        Ok(())
    }

    async fn transaction(&mut self, records: &ShareRecords) -> Result<kafka_share::Result<()>, Killed> {
        if let Err(error) = self.producer.begin_transaction() {
            return Ok(Err(error));
        }
        for record in records {
            let out = ProducerRecord::new(self.world.output.as_str()).value(record.value().unwrap_or_default());
            match self.producer.send(out).await {
                Ok(delivery) => drop(delivery),
                Err(error) => return Ok(Err(error)),
            }
        }
        self.stumble()?;
        let Ok(acks) = ShareAcknowledgements::from_records(records, AckType::Accept) else {
            return Ok(self.abort().await);
        };
        let Ok(member) = self.consumer.share_group_metadata() else { return Ok(self.abort().await) };
        if let Err(error) = self.producer.send_share_acks_to_transaction(acks, &member).await {
            return Ok(Err(error));
        }
        self.stumble()?;
        if self.dice.one_in(12) {
            return Ok(self.abort().await);
        }
        if self.dice.one_in(4) {
            // The intent is written; whatever happens here, happens between it and the commit.
            if let Err(error) = self.producer.prepare_transaction().await {
                return Ok(Err(error));
            }
            self.stumble()?;
        }
        Ok(self.producer.commit_transaction().await)
    }

    async fn abort(&self) -> kafka_share::Result<()> {
        self.producer.abort_transaction().await
    }

    /// Ends what a failed transaction left; false where only a new producer helps.
    async fn settle(&self) -> bool {
        for _ in 0..20 {
            match self.producer.begin_transaction() {
                Ok(()) => return self.producer.abort_transaction().await.is_ok(),
                Err(error) if error.kind() == kafka_share::ErrorKind::OutcomeUnknown => {
                    let _ = self.producer.commit_transaction().await;
                }
                Err(_) => match self.producer.abort_transaction().await {
                    Err(error) if error.kind() == kafka_share::ErrorKind::Fenced => return false,
                    _ => {}
                },
            }
        }
        false
    }
}

/// One member after the other in one place.
fn member(world: &World, slot: usize, seed: u64) {
    let mut life = 0;
    while !world.over.load(Ordering::Relaxed) {
        life += 1;
        let dice = Dice::new(seed, (slot * 10_000 + life) as u64);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            if let Ok(member) = Life::begin(world, slot, dice).await {
                let lives: std::pin::Pin<Box<dyn Future<Output = Result<(), Killed>>>> = Box::pin(member.live());
                // What a drop would say is not heard any more.
                let _ = lives.await;
            }
        });
        runtime.shutdown_background();
    }
}

/// Makes things go wrong at the broker.
fn trouble(broker: &EmbeddedBroker, world: &World, seed: u64) {
    let mut dice = Dice::new(seed, 1);
    while !world.over.load(Ordering::Relaxed) {
        std::thread::sleep(Duration::from_millis(40 + dice.below(80)));
        let delay = Duration::from_millis(200 + dice.below(2 * LOCK_MS));
        // What found no request would wait for those that come more seldom near the end.
        if dice.one_in(8) {
            broker.clear_faults();
        }
        let once = |action, key| _ = broker.fault(Fault::new(action).key(key));
        match dice.below(14) {
            0 => once(FaultAction::Delay(delay), ApiKey::SHARE_FETCH),
            1 => once(FaultAction::Delay(delay), ApiKey::FETCH),
            2 => once(FaultAction::Delay(delay), ApiKey::PRODUCE),
            3 => once(FaultAction::Delay(delay), ApiKey::END_TXN),
            4 => once(FaultAction::ApplyAndClose, ApiKey::END_TXN),
            5 => once(FaultAction::ApplyAndClose, ApiKey::PRODUCE),
            6 => once(FaultAction::ApplyAndClose, ApiKey::SHARE_ACKNOWLEDGE),
            7 => once(FaultAction::ApplyAndClose, ApiKey::SHARE_FETCH),
            8 => once(FaultAction::ApplyAndClose, ApiKey::INIT_PRODUCER_ID),
            9 => once(FaultAction::Error(ErrorCode::COORDINATOR_NOT_AVAILABLE), ApiKey::END_TXN),
            10 => drop(broker.expire_locks(&world.group)),
            11 | 12 => {
                let topic = [&world.input, &world.output, &world.ledger][dice.below(3) as usize];
                let node = broker.nodes()[dice.below(3) as usize].id;
                broker.move_leader(topic, dice.below(PARTITIONS as u64) as i32, node);
            }
            _ => {
                let key = format!("chaos-{}", dice.below(MEMBERS as u64));
                let node = broker.nodes()[dice.below(3) as usize].id;
                broker.move_coordinator(kafka_share_broker::CoordinatorKind::Transaction, &key, node);
            }
        }
    }
    broker.clear_faults();
}

/// On the embedded broker, which is in trouble itself. Everything but the machine's timing follows from the seed.
pub(crate) fn embedded(transaction_version: i16, seed: u64) {
    let runtime = runtime();
    let bounds = GroupBounds {
        record_lock_ms: (500, 60_000),
        // What members that stop let expire is not archived, however slow the machine.
        delivery_count_limit: (2, 10_000),
        heartbeat_ms: (100, 15_000),
        session_timeout_ms: (1_000, 60_000),
        ..GroupBounds::default()
    };
    let builder = EmbeddedBroker::builder().nodes(3).transactional_acks(false).group_bounds(bounds);
    let broker = runtime.block_on(builder.transaction_version(transaction_version).start()).expect("a broker");
    let name = format!("seed {seed}, transaction.version {transaction_version}");
    run(&name, seed, (RECORDS, "10000", LOCK_MS), &broker.bootstrap_servers(), |world| trouble(&broker, world, seed));
}

/// Server properties of a Kafka for [`real`].
pub(crate) const PROPERTIES: &[&str] = &[
    "group.share.min.record.lock.duration.ms=1000",
    "group.share.max.delivery.count.limit=25",
    "group.share.min.heartbeat.interval.ms=100",
    "group.share.min.session.timeout.ms=1000",
    "log.cleaner.backoff.ms=300",
];

/// On a real Kafka, whose ledger is compacted all the time.
pub(crate) fn real(bootstrap: &str, release: &str, seed: u64) {
    run(&format!("seed {seed}, Kafka {release}"), seed, (RECORDS / 2, "25", REAL_LOCK_MS), bootstrap, |_| {});
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime")
}

/// With so many records, so many deliveries of each, and locks of so many milliseconds.
fn run(
    name: &str,
    seed: u64,
    (records, deliveries, lock_ms): (usize, &str, u64),
    bootstrap: &str,
    trouble: impl FnOnce(&World) + Send,
) {
    let runtime = runtime();
    let stage = runtime.block_on(prepare(bootstrap, records, deliveries, lock_ms));
    let world = World {
        bootstrap: bootstrap.to_owned(),
        input: stage.input.clone(),
        output: stage.output.clone(),
        ledger: stage.ledger.clone(),
        group: stage.group.clone(),
        lock_ms,
        over: AtomicBool::new(false),
        kills: AtomicUsize::new(0),
        pauses: AtomicUsize::new(0),
        conflicts: AtomicUsize::new(0),
    };
    let started = Instant::now();
    std::thread::scope(|scope| {
        for slot in 0..MEMBERS {
            let world = &world;
            scope.spawn(move || member(world, slot, seed));
        }
        scope.spawn(|| trouble(&world));
        let found = runtime.block_on(until_all_is_there(&stage, records, started));
        world.over.store(true, Ordering::Relaxed);
        assert_eq!(found, Ok(()), "{name}");
    });
    // Whoever comes last is given nothing: what is committed is done.
    runtime.block_on(async {
        let last = stage.consumer();
        stage.until_done(&last, &stage.group).await;
        stage.check_output(records).await;
    });
    let read = |counter: &AtomicUsize| counter.load(Ordering::Relaxed);
    let (kills, pauses, conflicts) = (read(&world.kills), read(&world.pauses), read(&world.conflicts));
    eprintln!("{name}: {kills} kills, {pauses} pauses, {conflicts} aborts, {:?}", started.elapsed());
}

async fn prepare(bootstrap: &str, records: usize, deliveries: &str, lock_ms: u64) -> Stage {
    let stage = Stage::set(bootstrap, records).await;
    let admin = stage.admin();
    let resource = ConfigResource::Topic(stage.ledger.clone());
    let eager = [
        ("segment.ms", Some("500")),
        ("min.compaction.lag.ms", Some("0")),
        ("delete.retention.ms", Some("500")),
        ("min.cleanable.dirty.ratio", Some("0.01")),
    ];
    admin.incremental_alter_configs(&resource, &eager).await.unwrap();
    let (lock, session) = (lock_ms.to_string(), (2 * lock_ms).to_string());
    let settings = [
        ("share.record.lock.duration.ms", lock.as_str()),
        ("share.delivery.count.limit", deliveries),
        ("share.heartbeat.interval.ms", "200"),
        ("share.session.timeout.ms", session.as_str()),
    ];
    admin.alter_share_group_configs(&stage.group, &settings).await.unwrap();
    stage
}

async fn until_all_is_there(stage: &Stage, records: usize, started: Instant) -> Result<(), String> {
    while started.elapsed() < LIMIT {
        tokio::time::sleep(Duration::from_millis(500)).await;
        let output = stage.output().await;
        let doubled: Vec<_> = output.iter().filter(|(_, count)| **count > 1).collect();
        if !doubled.is_empty() {
            return Err(format!("doubled: {doubled:?}"));
        }
        if output.len() == records {
            return Ok(());
        }
    }
    let output = stage.output().await;
    let missing: Vec<usize> = (0..records).filter(|n| !output.contains_key(n)).collect();
    let offsets = stage.admin().describe_share_group_offsets(&stage.group).await;
    Err(format!("not done in time, missing: {missing:?}; {offsets:?}"))
}
