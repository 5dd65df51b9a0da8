//! Orders from Kafka into PostgreSQL, with workers killed at random: the table is complete, and has nothing twice.
//!
//! The long form: `KAFKA_SHARE_ORDERS=1000000 cargo test --release -p kafka-share-connect --features postgres --test driver
//! orders_on_kafka -- --nocapture`.

use super::common::{Database, Keyed};
use crate::common::{Bench, PATIENCE, accepted};
use bytes::Bytes;
use kafka_share_connect::{Worker, sinks};
use kafka_share_tests::dice::Dice;
use kafka_share_tests::kafka::RealKafka;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

const PARTITIONS: i32 = 3;
const TASKS: &str = "3";
/// Most kills of one way.
const KILLS: u64 = 9;
/// One in so many orders is cancelled in the end, and one is shipped.
const CANCELLED: u64 = 10;
const SHIPPED: u64 = 7;
const COLUMNS: &str =
    "customer text NOT NULL, items jsonb NOT NULL, amount numeric(12,2) NOT NULL, currency char(3) NOT NULL,
    status text NOT NULL, ordered_at timestamptz NOT NULL, shipped_at timestamptz";

fn orders() -> u64 {
    std::env::var("KAFKA_SHARE_ORDERS").ok().map_or(3_000, |n| n.parse().expect("KAFKA_SHARE_ORDERS is a number"))
}

/// An order, always the same for its number; its amount is in cents.
fn order(number: u64) -> (Value, u64) {
    let mut dice = Dice::new(number, 7);
    let (mut items, mut amount) = (Vec::new(), 0);
    for _ in 0..=dice.below(3) {
        let (quantity, cents) = (1 + dice.below(9), 99 + dice.below(20_000));
        amount += quantity * cents;
        let sku = format!("{}-{:04}", ["BK", "TOY", "KIT"][dice.below(3) as usize], dice.below(5_000));
        items.push(json!({"sku": sku, "quantity": quantity, "price": format!("{}.{:02}", cents / 100, cents % 100)}));
    }
    let shipped = number.is_multiple_of(SHIPPED);
    let currency = ["EUR", "USD", "CZK"][dice.below(3) as usize];
    let at = 1_700_000_000_000 + number * 1_337;
    let order = json!({
        "id": number,
        "customer": format!("c{:05} O'Brien", dice.below(50_000)),
        "items": items,
        "amount": format!("{}.{:02}", amount / 100, amount % 100),
        "currency": currency,
        "status": if shipped { "shipped" } else { "new" },
        "ordered_at": at,
        "shipped_at": if shipped { json!(at + 86_400_000) } else { Value::Null },
    });
    (order, amount)
}

fn record(number: u64, value: Option<Value>) -> Keyed {
    let key = Bytes::copy_from_slice(&number.to_be_bytes());
    (Some(key), value.map(|v| Bytes::from(v.to_string())))
}

/// One group's way, and its database.
struct Way {
    name: &'static str,
    group: &'static str,
    database: Database,
    settings: Vec<(&'static str, &'static str)>,
    seed: u64,
}

impl Way {
    async fn new(exactly_once: bool, seed: u64) -> Option<Self> {
        let (name, group, id) = match exactly_once {
            // Nothing in the database keeps a row from being there twice.
            true => ("exactly-once", "connect-exactly", "bigint NOT NULL"),
            false => ("at-least-once", "connect-sink", "bigint PRIMARY KEY"),
        };
        let table = format!("CREATE TABLE orders (id {id}, {COLUMNS}); CREATE INDEX by_id ON orders (id)");
        let database = Database::new(&format!("orders_{seed}"), &table).await?;
        let mut settings = vec![
            ("share.group.id", group),
            ("share.delivery.semantics", name),
            ("insert.mode", if exactly_once { "insert" } else { "upsert" }),
            ("table.name.format", "orders"),
            ("key.converter", "long"),
            ("pk.mode", "record_key"),
            ("pk.fields", "id"),
            ("delete.enabled", "true"),
            ("tasks.max", TASKS),
            ("share.max.delivery.count", "10"),
        ];
        if exactly_once {
            settings.push(("offsets.cleanup.interval.ms", "500"));
        }
        Some(Way { name, group, database, settings, seed })
    }

    /// Workers that are dropped as they are, each after some more records, until all are done. Answers how many.
    async fn killed(&self, bench: &Bench, records: u64) -> usize {
        let config = bench.to_postgres(&self.database.url, &self.settings);
        let start = || Worker::start(config.clone(), sinks::connector("postgres").expect("sink"));
        let mut dice = Dice::new(self.seed, records);
        let mut kills = 0;
        loop {
            let mut worker = start().await.expect("worker");
            let some = if kills == KILLS { u64::MAX } else { 1 + dice.below((records / KILLS).max(50)) };
            if self.runs_until(bench, &worker, some).await {
                worker.stop(PATIENCE).await;
                return kills as usize;
            }
            drop(worker);
            kills += 1;
        }
    }

    /// Returns once the worker has accepted `some`, or the group is done. Answers which.
    async fn runs_until(&self, bench: &Bench, worker: &Worker, some: u64) -> bool {
        let end = Instant::now() + PATIENCE + Duration::from_millis(orders());
        loop {
            let status = worker.status();
            if accepted(&status) >= some {
                return false;
            }
            let offsets = bench.admin.describe_share_group_offsets(self.group).await.expect("offsets");
            if offsets.len() == PARTITIONS as usize && offsets.iter().all(|o| o.lag == Some(0)) {
                return true;
            }
            assert!(Instant::now() < end, "the group has not done all: {offsets:?}, {status:?}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    async fn check(&self, of: impl Iterator<Item = u64>) {
        assert_eq!(totals(&self.database).await, expected(of), "{}", self.name);
    }
}

/// Count, count of different ids, sum of amounts in cents, shipped ones.
async fn totals(database: &Database) -> [i64; 4] {
    let sql =
        "SELECT count(*), count(DISTINCT id), coalesce(sum(amount * 100), 0)::bigint, count(shipped_at) FROM orders";
    let row = database.client.query_one(sql, &[]).await.expect("totals");
    [0, 1, 2, 3].map(|i| row.get(i))
}

fn expected(of: impl Iterator<Item = u64>) -> [i64; 4] {
    let mut totals = [0; 4];
    for number in of {
        totals[0] += 1;
        totals[1] += 1;
        totals[2] += order(number).1 as i64;
        totals[3] += i64::from(number.is_multiple_of(SHIPPED));
    }
    totals
}

async fn orders_with_kills(bench: &Bench, seeds: [u64; 2]) {
    let Some(least) = Way::new(false, seeds[0]).await else { return };
    let Some(exactly) = Way::new(true, seeds[1]).await else { return };
    for way in [&least, &exactly] {
        let mut group = vec![("share.auto.offset.reset", "earliest")];
        if bench.broker.is_none() {
            // Who is killed says no goodbye, and has its partitions until then.
            group.extend([("share.session.timeout.ms", "2000"), ("share.heartbeat.interval.ms", "500")]);
        }
        bench.admin.alter_share_group_configs(way.group, &group).await.expect("group config");
    }
    let count = orders();
    bench.send(PARTITIONS, (0..count).map(|n| record(n, Some(order(n).0)))).await;
    let cancelled = |n: &u64| n.is_multiple_of(CANCELLED);
    let run = async |way: &Way| {
        let began = Instant::now();
        let kills = way.killed(bench, count).await;
        let took = began.elapsed().as_secs_f64();
        way.check(0..count).await;
        (kills, took)
    };
    // In the long form the rates are of one at a time.
    let told = match std::env::var_os("KAFKA_SHARE_ORDERS").is_none() {
        true => tokio::join!(run(&least), run(&exactly)),
        false => (run(&least).await, run(&exactly).await),
    };
    // Those that they cancel are all stored: share groups do not keep the order of records.
    let tombstones: Vec<Keyed> = (0..count).filter(cancelled).map(|n| record(n, None)).collect();
    let more = tombstones.len() as u64;
    bench.send(PARTITIONS, tombstones).await;
    let after = tokio::join!(least.killed(bench, more), exactly.killed(bench, more));
    for (way, (kills, took), more_kills) in [(&least, told.0, after.0), (&exactly, told.1, after.1)] {
        way.check((0..count).filter(|n| !cancelled(n))).await;
        println!(
            "{}: {count} orders in {took:.1} s ({:.0}/s), then {more} cancelled; {} kills of {TASKS} tasks each; 0 missing, 0 twice",
            way.name,
            count as f64 / took,
            kills + more_kills,
        );
    }
    let left = exactly.database.number("SELECT count(*) FROM _kafka_share_offsets").await;
    println!("exactly-once: {left} rows of offsets are left");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn orders_on_the_embedded_broker() {
    orders_with_kills(&Bench::start(PARTITIONS).await, [11, 12]).await;
}

#[test]
fn orders_on_kafka_4_4() {
    let Some(kafka) = RealKafka::start("orders_on_kafka_4_4", "4.4.0") else { return };
    let run = async { orders_with_kills(&Bench::real(kafka.bootstrap(), PARTITIONS).await, [21, 22]).await };
    tokio::runtime::Runtime::new().expect("runtime").block_on(run);
}
