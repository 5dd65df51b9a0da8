//! A database for each test, and keyed records.

use crate::common::Bench;
use bytes::Bytes;
use kafka_share::{Producer, ProducerRecord};
use kafka_share_connect::{ConnectorConfig, Worker, sinks};
use kafka_share_tests::postgres::Postgres;
use std::sync::OnceLock;
use std::time::{Duration, Instant};
use tokio_postgres::{Client, NoTls};

use crate::common::{PATIENCE, TOPIC};

/// A database on a server that all tests share.
pub(crate) struct Database {
    pub(crate) url: String,
    pub(crate) client: Client,
}

/// One for the whole program; it ends with it. `None`: not installed.
fn server() -> Option<&'static Postgres> {
    static SERVER: OnceLock<Option<Postgres>> = OnceLock::new();
    SERVER.get_or_init(|| Postgres::start("the postgres sink")).as_ref()
}

impl Database {
    /// `None`: PostgreSQL is not installed.
    pub(crate) async fn new(name: &str, definitions: &str) -> Option<Self> {
        let server = server()?;
        let admin = connect(&server.connection()).await;
        admin.batch_execute(&format!("CREATE DATABASE {name}")).await.expect("database");
        let url = format!("postgres://example@127.0.0.1:{}/{name}", server.port());
        let client = connect(&url).await;
        client.batch_execute(definitions).await.expect("definitions");
        Some(Database { url, client })
    }

    /// On a server of its own.
    pub(crate) async fn of(server: &Postgres, definitions: &str) -> Self {
        let url = server.url();
        let client = connect(&url).await;
        client.batch_execute(definitions).await.expect("definitions");
        Database { url, client }
    }

    pub(crate) async fn number(&self, sql: &str) -> i64 {
        self.client.query_one(sql, &[]).await.expect("a number").get(0)
    }

    /// The first column of all rows.
    pub(crate) async fn texts(&self, sql: &str) -> Vec<String> {
        let rows = self.client.query(sql, &[]).await.expect("rows");
        rows.iter().map(|row| row.get::<_, Option<String>>(0).unwrap_or("NULL".into())).collect()
    }

    /// Waits until a query gives true.
    pub(crate) async fn until(&self, what: &str, sql: &str) {
        let end = Instant::now() + PATIENCE;
        while !self.client.query_one(sql, &[]).await.expect("an answer").get::<_, bool>(0) {
            assert!(Instant::now() < end, "{what}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

/// A server that starts again takes no connections for a moment.
pub(crate) async fn connect(connection: &str) -> Client {
    let end = Instant::now() + PATIENCE;
    loop {
        match tokio_postgres::connect(connection, NoTls).await {
            Ok((client, driver)) => {
                tokio::spawn(driver);
                return client;
            }
            Err(error) if Instant::now() > end => panic!("no connection: {error:?}"),
            Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    }
}

/// Key and value; null for tombstones.
pub(crate) type Keyed = (Option<Bytes>, Option<Bytes>);

pub(crate) fn keyed(key: &str, value: &str) -> Keyed {
    (Some(Bytes::copy_from_slice(key.as_bytes())), Some(Bytes::copy_from_slice(value.as_bytes())))
}

pub(crate) fn tombstone(key: &str) -> Keyed {
    (Some(Bytes::copy_from_slice(key.as_bytes())), None)
}

impl Bench {
    pub(crate) async fn send(&self, partitions: i32, records: impl IntoIterator<Item = Keyed>) {
        let producer = Producer::builder(&self.servers).build().expect("producer");
        for (i, (key, value)) in records.into_iter().enumerate() {
            let mut record = ProducerRecord::new(TOPIC).partition((i % partitions as usize) as i32);
            if let Some(key) = key {
                record = record.key(key);
            }
            if let Some(value) = value {
                record = record.value(value);
            }
            drop(producer.send(record).await.expect("send"));
        }
        producer.flush().await.expect("flush");
        producer.close(PATIENCE).await.expect("close");
    }

    pub(crate) fn to_postgres(&self, url: &str, more: &[(&str, &str)]) -> ConnectorConfig {
        let mut all = vec![
            ("connector.class", "postgres"),
            ("connection.url", url),
            ("key.converter", "json"),
            ("value.converter", "json"),
            ("errors.retry.delay.max.ms", "200"),
        ];
        all.extend(more);
        self.config(&all)
    }

    pub(crate) async fn sink(&self, url: &str, more: &[(&str, &str)]) -> Worker {
        let sink = sinks::connector("postgres").expect("sink");
        Worker::start(self.to_postgres(url, more), sink).await.expect("worker")
    }
}
