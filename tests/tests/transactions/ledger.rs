//! Acknowledgements in transactions by the ledger, which any cluster can do: committed once, told to the broker, and taken
//! over from a member that does not come to its end.

use super::scenarios::{name, values};
use kafka_share::admin::NewTopic;
use kafka_share::ledger::{AckBackendChoice, NewLedger};
use kafka_share::net::Cluster;
use kafka_share::{
    AckType, AcknowledgementMode, Admin, ClientConfig, ErrorKind, KafkaShareConsumer, Outcome, Producer,
    ProducerRecord, ShareAcknowledgements, ShareRecords, TransactionalProducer,
};
use std::sync::Arc;
use std::time::{Duration, Instant};

const LONG: Duration = Duration::from_secs(60);
const TURN: Duration = Duration::from_millis(100);

/// A group of its own on topics of its own.
struct Stage {
    cluster: Arc<Cluster>,
    input: String,
    output: String,
    ledger: String,
    group: String,
}

impl Stage {
    async fn set(bootstrap: &str) -> Stage {
        let admin = Admin::new(ClientConfig::new(bootstrap)).unwrap();
        let stage = Stage {
            cluster: Arc::clone(admin.cluster()),
            input: name("in"),
            output: name("out"),
            ledger: name("ledger"),
            group: name("group"),
        };
        for topic in [&stage.input, &stage.output] {
            admin.create_topic(NewTopic::new(topic, 1)).await.unwrap();
        }
        admin.create_ledger(&NewLedger::new().topic(&stage.ledger).partitions(3).replication_factor(1)).await.unwrap();
        // The shortest that brokers allow by default.
        let settings = [("share.auto.offset.reset", "earliest"), ("share.record.lock.duration.ms", "15000")];
        admin.alter_share_group_configs(&stage.group, &settings).await.unwrap();
        stage
    }

    async fn produce(&self, values: std::ops::Range<usize>) {
        let producer = Producer::builder("").cluster(Arc::clone(&self.cluster)).build().unwrap();
        for value in values {
            producer.send(ProducerRecord::new(&self.input).value(value.to_string())).await.unwrap().await.unwrap();
        }
    }

    fn consumer(&self) -> KafkaShareConsumer {
        let builder = KafkaShareConsumer::builder("", &self.group).cluster(Arc::clone(&self.cluster));
        let builder = builder.acknowledgement_mode(AcknowledgementMode::Explicit).ledger_topic(&self.ledger);
        let consumer = builder.share_ack_backend(AckBackendChoice::Ledger).build().unwrap();
        consumer.subscribe([&self.input]).unwrap();
        consumer
    }

    async fn producer(&self) -> TransactionalProducer {
        let builder = TransactionalProducer::builder("", &name("txn")).cluster(Arc::clone(&self.cluster));
        let builder = builder.share_ack_backend(AckBackendChoice::Ledger).ledger_topic(&self.ledger);
        let producer = builder.build().unwrap();
        producer.init_transactions().await.unwrap();
        producer
    }

    /// Puts a poll's records and their output into a transaction.
    async fn process(&self, producer: &TransactionalProducer, consumer: &KafkaShareConsumer, records: &ShareRecords) {
        producer.begin_transaction().unwrap();
        for record in records {
            let value = record.value().unwrap().to_vec();
            drop(producer.send(ProducerRecord::new(&self.output).value(value)).await.unwrap());
        }
        let acks = ShareAcknowledgements::from_records(records, AckType::Accept).unwrap();
        producer.send_share_acks_to_transaction(acks, &consumer.share_group_metadata().unwrap()).await.unwrap();
    }

    /// Waits until brokers have confirmed so many acknowledgements to the consumer, of transactions that it has committed.
    /// (Start offsets of the group trail them, and the first release tells no lag.)
    async fn until_confirmed(&self, consumer: &KafkaShareConsumer, count: f64) {
        let until = Instant::now() + LONG;
        while consumer.metrics().get("share-ack-ledger-confirmed-total").unwrap() < count {
            assert!(Instant::now() < until, "{count} acknowledgements are not confirmed");
            assert!(consumer.poll(TURN).await.unwrap().is_empty());
        }
    }

    async fn output(&self) -> Vec<usize> {
        let mut all: Vec<usize> =
            values(&self.cluster, &self.output).await.iter().map(|v| v.parse().unwrap()).collect();
        all.sort_unstable();
        all
    }
}

async fn some(consumer: &KafkaShareConsumer) -> ShareRecords {
    let until = Instant::now() + LONG;
    loop {
        let records = consumer.poll(TURN).await.unwrap();
        if !records.is_empty() {
            return records;
        }
        assert!(Instant::now() < until, "no records came");
    }
}

pub(crate) async fn the_ledger_takes_over_from_who_stops_and_doubles_nothing(bootstrap: &str) {
    let stage = Stage::set(bootstrap).await;
    stage.produce(0..10).await;
    let (first, stopped) = (stage.consumer(), stage.producer().await);
    let records = some(&first).await;
    let count = records.len();
    stage.process(&stopped, &first, &records).await;
    stopped.commit_transaction().await.unwrap();
    let outcomes = first.poll_outcomes();
    assert!(outcomes.iter().all(|o| o.outcome == Outcome::Acknowledged), "{outcomes:?}");
    let mut left = 10 - count;
    while left > 0 {
        let records = some(&first).await;
        left -= records.len();
        stage.process(&stopped, &first, &records).await;
        stopped.commit_transaction().await.unwrap();
    }
    stage.until_confirmed(&first, 10.0).await;
    // It goes as far as the intent, and stops. Its records are free as its sessions are closed, but claimed.
    stage.produce(10..20).await;
    let records = some(&first).await;
    let claimed = records.len();
    stage.process(&stopped, &first, &records).await;
    stopped.prepare_transaction().await.unwrap();
    first.close(LONG).await.unwrap();
    let (second, producer) = (stage.consumer(), stage.producer().await);
    let begun = Instant::now();
    let mut taken_over = 0;
    while taken_over < 10 {
        let records = some(&second).await;
        taken_over += records.len();
        stage.process(&producer, &second, &records).await;
        producer.commit_transaction().await.unwrap();
    }
    assert!(claimed < 10 || begun.elapsed() > Duration::from_secs(3), "not before a quarter of the lock");
    let error = stopped.commit_transaction().await.unwrap_err();
    assert!(error.is_abortable() && error.kind() == ErrorKind::TransactionAborted, "{error}");
    stopped.abort_transaction().await.unwrap();
    stage.until_confirmed(&second, 10.0).await;
    // Who was fenced goes on, under the same producer id.
    stage.produce(20..21).await;
    let records = some(&second).await;
    stage.process(&stopped, &second, &records).await;
    stopped.commit_transaction().await.unwrap();
    stage.until_confirmed(&second, 11.0).await;
    assert_eq!(stage.output().await, (0..21).collect::<Vec<_>>());
}
