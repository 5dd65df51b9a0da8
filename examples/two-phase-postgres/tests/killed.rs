//! The example killed after every step and started again: table and topic agree, and with acknowledgements in the
//! transaction each order is counted once.

use kafka_share::admin::NewTopic;
use kafka_share::{Admin, ClientConfig, PartitionReader, Producer, ProducerRecord};
use kafka_share_broker::{EmbeddedBroker, GroupBounds};
use kafka_share_tests::kafka::RealKafka;
use kafka_share_tests::postgres::Postgres;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;
use tokio_postgres::NoTls;

const STEPS: [&str; 7] =
    ["sent", "kafka-prepared", "database-prepared", "decided", "kafka-committed", "database-committed", "done"];
const ORDERS: usize = 120;

/// Texts of the table, in order, and how many transactions are prepared still.
async fn orders(postgres: &Postgres) -> (Vec<String>, i64) {
    let (client, driver) = tokio_postgres::connect(&postgres.connection(), NoTls).await.unwrap();
    tokio::spawn(driver);
    let rows = client.query("SELECT text FROM orders ORDER BY text", &[]).await.unwrap();
    let left = client.query_one("SELECT count(*) FROM pg_prepared_xacts", &[]).await.unwrap();
    (rows.iter().map(|row| row.get(0)).collect(), left.get(0))
}

/// Runs the example to its end; answers whether it lived.
fn run(bootstrap: &str, postgres: &Postgres, log: &Path, idle: u64, die_after: Option<(&str, u64)>) -> bool {
    let mut command = Command::new(env!("CARGO_BIN_EXE_two-phase-postgres"));
    command.args(["--bootstrap-server", bootstrap, "--database", &postgres.connection()]);
    command.args(["--idle", &idle.to_string()]).arg("--log").arg(log);
    if let Some((step, batch)) = die_after {
        command.args(["--die-after", step, "--die-in", &batch.to_string()]);
    }
    let output = command.output().expect("the example");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() != Some(1), "{errors}");
    output.status.success()
}

async fn fill(admin: &Admin) {
    for topic in ["orders", "receipts"] {
        admin.create_topic(NewTopic::new(topic, 2)).await.unwrap();
    }
    // Who is killed says no goodbye: its locks and its membership end by themselves, and each try costs a delivery.
    let settings = [
        ("share.auto.offset.reset", "earliest"),
        ("share.record.lock.duration.ms", "3000"),
        ("share.session.timeout.ms", "4000"),
        ("share.heartbeat.interval.ms", "400"),
        ("share.delivery.count.limit", "10"),
    ];
    admin.alter_share_group_configs("shop", &settings).await.unwrap();
    let producer = Producer::builder("").cluster(Arc::clone(admin.cluster())).build().unwrap();
    for order in 0..ORDERS {
        drop(producer.send(ProducerRecord::new("orders").value(format!("{order:03}"))).await.unwrap());
    }
    producer.close(Duration::from_secs(10)).await.unwrap();
}

/// What read_committed readers see, in order.
async fn receipts(admin: &Admin) -> Vec<String> {
    let mut reader = PartitionReader::read_committed(Arc::clone(admin.cluster()), "receipts").await.unwrap();
    let batches = reader.read_to_end().await.unwrap();
    let text = |value: Option<&[u8]>| String::from_utf8(value.unwrap().to_vec()).unwrap();
    let mut all: Vec<String> =
        batches.iter().flat_map(|b| b.iter().map(|r| text(r.value())).collect::<Vec<_>>()).collect();
    all.sort();
    all
}

/// Dies after each step once, in turns of the first and the second batch, and then runs to the end. Answers the table.
async fn killed_after_every_step(bootstrap: &str, postgres: &Postgres) -> Vec<String> {
    let admin = Admin::new(ClientConfig::new(bootstrap)).unwrap();
    fill(&admin).await;
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("recovery.log");
    for (number, step) in STEPS.iter().enumerate() {
        let batch = 1 + (number as u64 % 2);
        // Long enough for locks that the one before left behind.
        assert!(!run(bootstrap, postgres, &log, 10_000, Some((step, batch))), "it did not get to {step}");
        let (table, _) = orders(postgres).await;
        let topic = receipts(&admin).await;
        assert!(table.len().abs_diff(topic.len()) <= 10, "{step}: at most one batch apart while nobody recovers");
    }
    assert!(run(bootstrap, postgres, &log, 8_000, None));
    let (table, left) = orders(postgres).await;
    assert_eq!(left, 0, "transactions are prepared still");
    assert_eq!(table, receipts(&admin).await, "table and topic agree");
    table
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_order_is_counted_once_on_the_embedded_broker() {
    let Some(postgres) = Postgres::start("each_order_is_counted_once_on_the_embedded_broker") else { return };
    let bounds = GroupBounds {
        record_lock_ms: (1_000, 60_000),
        session_timeout_ms: (1_000, 60_000),
        heartbeat_ms: (100, 15_000),
        ..GroupBounds::default()
    };
    let broker = EmbeddedBroker::builder().nodes(2).group_bounds(bounds).start().await.unwrap();
    let table = killed_after_every_step(&broker.bootstrap_servers(), &postgres).await;
    assert_eq!(table, (0..ORDERS).map(|order| format!("{order:03}")).collect::<Vec<_>>());
}

/// Released Kafka has no acknowledgements in a transaction: an order may be counted again, but never by one party alone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn table_and_topic_agree_on_kafka_4_4() {
    let Some(postgres) = Postgres::start("table_and_topic_agree_on_kafka_4_4") else { return };
    let Some(kafka) = RealKafka::start("table_and_topic_agree_on_kafka_4_4", "4.4.0") else { return };
    let mut table = killed_after_every_step(&kafka.bootstrap(), &postgres).await;
    let counted = table.len();
    table.dedup();
    assert_eq!(table, (0..ORDERS).map(|order| format!("{order:03}")).collect::<Vec<_>>());
    println!("{} orders were counted again", counted - ORDERS);
}
