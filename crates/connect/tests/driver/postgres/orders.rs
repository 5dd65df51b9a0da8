//! Orders from Kafka into PostgreSQL, with workers killed at random: the table is complete, and has nothing twice.
//!
//! The long form: `KAFKA_SHARE_ORDERS=1000000 cargo test --release -p kafka-share-connect --features postgres --test driver
//! orders_on_kafka -- --nocapture`.

use super::common::{Database, Keyed};
use crate::common::{Bench, PATIENCE, accepted, until};
use bytes::Bytes;
use kafka_share_connect::{Worker, sinks};
use kafka_share_tests::dice::Dice;
use kafka_share_tests::kafka::RealKafka;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

const PARTITIONS: i32 = 3;
const TASKS: &str = "3";
/// One in so many orders is cancelled, and one is shipped.
const CANCELLED: u64 = 10;
const SHIPPED: u64 = 7;
const COLUMNS: &str =
    "customer text NOT NULL, items jsonb NOT NULL, amount numeric(12,2) NOT NULL, currency char(3) NOT NULL,
    status text NOT NULL, ordered_at timestamptz NOT NULL, shipped_at timestamptz";

fn orders() -> u64 {
    std::env::var("KAFKA_SHARE_ORDERS").ok().map_or(3_000, |n| n.parse().expect("KAFKA_SHARE_ORDERS is a number"))
}

/// An order, always the same for its number; its amount is in cents.
fn order(number: u64, shipped: bool) -> (Value, u64) {
    let mut dice = Dice::new(number, 7);
    let (mut items, mut amount) = (Vec::new(), 0);
    for _ in 0..=dice.below(3) {
        let (quantity, cents) = (1 + dice.below(9), 99 + dice.below(20_000));
        amount += quantity * cents;
        let sku = format!("{}-{:04}", ["BK", "TOY", "KIT"][dice.below(3) as usize], dice.below(5_000));
        items.push(json!({"sku": sku, "quantity": quantity, "price": format!("{}.{:02}", cents / 100, cents % 100)}));
    }
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

/// Workers that are dropped as they are, each after some more records, until all are done.
async fn killed(bench: &Bench, database: &Database, settings: &[(&str, &str)], records: u64, seed: u64) -> usize {
    let config = bench.to_postgres(&database.url, settings);
    let mut dice = Dice::new(seed, 1);
    let (mut kills, mut done) = (0, 0);
    let part = (records / 6).max(50);
    while kills < 20 {
        let worker = Worker::start(config.clone(), sinks::connector("postgres").expect("sink")).await.expect("worker");
        // What the last one wrote and could not accept is counted again: this may be more than there is.
        let some = 1 + dice.below(part);
        if done + some + part >= records {
            return last(bench, worker, kills).await;
        }
        done += accepted(&until(&worker, "some accepted", |s| accepted(s) >= some).await);
        drop(worker);
        kills += 1;
    }
    let worker = Worker::start(config, sinks::connector("postgres").expect("sink")).await.expect("worker");
    last(bench, worker, kills).await
}

async fn last(bench: &Bench, mut worker: Worker, kills: usize) -> usize {
    let end = Instant::now() + PATIENCE + Duration::from_millis(orders());
    loop {
        let offsets = bench.admin.describe_share_group_offsets("connect-sink").await.expect("offsets");
        if offsets.len() == PARTITIONS as usize && offsets.iter().all(|o| o.lag == Some(0)) {
            break;
        }
        assert!(Instant::now() < end, "the group has not done all: {offsets:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    worker.stop(PATIENCE).await;
    kills
}

/// Count, count of different ids, sum of amounts in cents, shipped ones.
async fn totals(database: &Database) -> [i64; 4] {
    let sql =
        "SELECT count(*), count(DISTINCT id), coalesce(sum(amount * 100), 0)::bigint, count(shipped_at) FROM orders";
    let row = database.client.query_one(sql, &[]).await.expect("totals");
    [0, 1, 2, 3].map(|i| row.get(i))
}

fn expected(of: impl Iterator<Item = (u64, bool)>) -> [i64; 4] {
    let mut totals = [0; 4];
    for (number, shipped) in of {
        totals[0] += 1;
        totals[1] += 1;
        totals[2] += order(number, shipped).1 as i64;
        totals[3] += i64::from(shipped);
    }
    totals
}

async fn orders_with_kills(bench: &Bench, exactly_once: bool, seed: u64) {
    let (name, id) = match exactly_once {
        // Nothing in the database keeps a row from being there twice.
        true => ("orders_exactly", "bigint NOT NULL"),
        false => ("orders_least", "bigint PRIMARY KEY"),
    };
    let Some(database) =
        Database::new(&format!("{name}_{seed}"), &format!("CREATE TABLE orders (id {id}, {COLUMNS})")).await
    else {
        return;
    };
    let mut settings = vec![
        ("table.name.format", "orders"),
        ("key.converter", "long"),
        ("pk.mode", "record_key"),
        ("pk.fields", "id"),
        ("delete.enabled", "true"),
        ("tasks.max", TASKS),
        ("share.max.delivery.count", "10"),
        ("offsets.cleanup.interval.ms", "500"),
    ];
    settings.extend(match exactly_once {
        true => [("share.delivery.semantics", "exactly-once"), ("insert.mode", "insert")],
        false => [("share.delivery.semantics", "at-least-once"), ("insert.mode", "upsert")],
    });
    let count = orders();
    bench.send(PARTITIONS, (0..count).map(|n| record(n, Some(order(n, false).0)))).await;
    let began = Instant::now();
    let mut kills = killed(bench, &database, &settings, count, seed).await;
    let took = began.elapsed().as_secs_f64();
    assert_eq!(totals(&database).await, expected((0..count).map(|n| (n, false))));
    // Their order among themselves does not count, as no order is both; those of before are all done.
    let cancelled = |n: &u64| n.is_multiple_of(CANCELLED);
    let shipped = |n: &u64| !exactly_once && !cancelled(n) && n.is_multiple_of(SHIPPED);
    let changes = (0..count).filter(|n| cancelled(n) || shipped(n));
    let changes: Vec<Keyed> = changes.map(|n| record(n, shipped(&n).then(|| order(n, true).0))).collect();
    let more = changes.len() as u64;
    bench.send(PARTITIONS, changes).await;
    kills += killed(bench, &database, &settings, more, seed + 1).await;
    let left = (0..count).filter(|n| !cancelled(n)).map(|n| (n, shipped(&n)));
    assert_eq!(totals(&database).await, expected(left));
    let offsets = match exactly_once {
        true => database.number("SELECT count(*) FROM _kafka_share_offsets").await,
        false => 0,
    };
    println!(
        "{name}: {count} orders in {took:.1} s ({:.0}/s), then {more} cancelled or shipped; {kills} kills of {TASKS} tasks each; 0 missing, \
         0 twice; {offsets} rows of offsets left",
        count as f64 / took
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn orders_on_the_embedded_broker() {
    orders_with_kills(&Bench::start(PARTITIONS).await, false, 11).await;
    orders_with_kills(&Bench::start(PARTITIONS).await, true, 12).await;
}

#[test]
fn orders_on_kafka_4_4() {
    // Each on a broker of its own: the group's name is the connector's.
    for (exactly_once, seed) in [(false, 21), (true, 22)] {
        let Some(kafka) = RealKafka::start("orders_on_kafka_4_4", "4.4.0") else { return };
        let run =
            async { orders_with_kills(&Bench::real(kafka.bootstrap(), PARTITIONS).await, exactly_once, seed).await };
        tokio::runtime::Runtime::new().expect("runtime").block_on(run);
    }
}
