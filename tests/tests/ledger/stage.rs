//! Topics, a group and a ledger of their own, and the members that work on them.

use kafka_share::admin::{ConfigResource, NewTopic, SharePartitionOffset};
use kafka_share::ledger::{AckBackendChoice, NewLedger};
use kafka_share::net::Cluster;
use kafka_share::{
    AckType, AcknowledgementMode, Admin, ClientConfig, Error, KafkaShareConsumer, PartitionReader, Producer,
    ProducerRecord, RecordId, ShareAcknowledgements, ShareConsumerBuilder, ShareRecords, TransactionalProducer,
    TransactionalProducerBuilder,
};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

pub(crate) const LONG: Duration = Duration::from_secs(90);
/// Of most groups: longer than a step takes, short enough to be waited for.
pub(crate) const LOCK: Duration = Duration::from_secs(6);
const TURN: Duration = Duration::from_millis(100);
pub(crate) const PARTITIONS: i32 = 3;

/// A name that no other test of this process has.
pub(crate) fn name(what: &str) -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("{what}-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

pub(crate) struct Stage {
    pub(crate) cluster: Arc<Cluster>,
    pub(crate) input: String,
    pub(crate) output: String,
    pub(crate) ledger: String,
    pub(crate) group: String,
    /// `share.record.lock.duration.ms` of its groups.
    lock: Duration,
}

impl Stage {
    /// With `records` numbered records on the input.
    pub(crate) async fn set(bootstrap: &str, records: usize) -> Stage {
        Self::with_lock(bootstrap, records, LOCK).await
    }

    pub(crate) async fn with_lock(bootstrap: &str, records: usize, lock: Duration) -> Stage {
        Self::with(bootstrap, records, lock, (1, 1)).await
    }

    /// With so many replicas of each topic, and so many of the ledger that must be in sync.
    pub(crate) async fn with(
        bootstrap: &str,
        records: usize,
        lock: Duration,
        (replicas, in_sync): (i16, i16),
    ) -> Stage {
        let admin = Admin::new(ClientConfig::new(bootstrap)).unwrap();
        let stage = Stage {
            cluster: Arc::clone(admin.cluster()),
            input: name("in"),
            output: name("out"),
            ledger: name("ledger"),
            group: name("group"),
            lock,
        };
        for topic in [&stage.input, &stage.output] {
            let topic = NewTopic::new(topic, PARTITIONS).replication_factor(replicas);
            admin.create_topic(topic).await.unwrap();
        }
        let ledger = NewLedger::new().topic(&stage.ledger).partitions(2);
        admin.create_ledger(&ledger.replication_factor(replicas).min_in_sync_replicas(in_sync)).await.unwrap();
        stage.configure(&stage.group).await;
        stage.produce(0..records).await;
        stage
    }

    pub(crate) async fn configure(&self, group: &str) {
        let lock = self.lock.as_millis().to_string();
        let settings = [("share.auto.offset.reset", "earliest"), ("share.record.lock.duration.ms", lock.as_str())];
        self.admin().alter_share_group_configs(group, &settings).await.unwrap();
    }

    /// Changes a setting of the ledger's topic.
    pub(crate) async fn set_ledger(&self, setting: &str, value: &str) {
        let resource = ConfigResource::Topic(self.ledger.clone());
        self.admin().incremental_alter_configs(&resource, &[(setting, Some(value))]).await.unwrap();
        // The controller has it; brokers follow.
        let until = Instant::now() + LONG;
        while self.admin().describe_configs(&resource, &[setting]).await.unwrap()[setting].value.as_deref()
            != Some(value)
        {
            assert!(Instant::now() < until);
        }
    }

    pub(crate) fn admin(&self) -> Admin {
        Admin::on(Arc::clone(&self.cluster))
    }

    pub(crate) async fn produce(&self, values: std::ops::Range<usize>) {
        let producer = Producer::builder("").cluster(Arc::clone(&self.cluster)).build().unwrap();
        for value in values {
            let partition = value as i32 % PARTITIONS;
            drop(
                producer
                    .send(ProducerRecord::new(&self.input).partition(partition).value(value.to_string()))
                    .await
                    .unwrap(),
            );
        }
        producer.flush().await.unwrap();
    }

    pub(crate) fn consumer(&self) -> KafkaShareConsumer {
        self.consumer_of(&self.group)
    }

    pub(crate) fn consumer_of(&self, group: &str) -> KafkaShareConsumer {
        self.consumer_with(group, |builder| builder)
    }

    pub(crate) fn consumer_with(
        &self,
        group: &str,
        change: impl FnOnce(ShareConsumerBuilder) -> ShareConsumerBuilder,
    ) -> KafkaShareConsumer {
        let mut builder = change(KafkaShareConsumer::builder("", group).cluster(Arc::clone(&self.cluster)));
        builder = builder.acknowledgement_mode(AcknowledgementMode::Explicit).ledger_topic(&self.ledger);
        builder.set("share.ack.ledger.sweep.interval.ms", "500").unwrap();
        let consumer = builder.share_ack_backend(AckBackendChoice::Ledger).build().unwrap();
        consumer.subscribe([&self.input]).unwrap();
        consumer
    }

    pub(crate) fn settings(&self) -> TransactionalProducerBuilder {
        let builder = TransactionalProducer::builder("", &name("txn")).cluster(Arc::clone(&self.cluster));
        builder.ledger_topic(&self.ledger).max_block(LONG)
    }

    pub(crate) async fn producer(&self) -> TransactionalProducer {
        let producer = self.settings().build().unwrap();
        producer.init_transactions().await.unwrap();
        producer
    }

    /// Puts the output of a poll's records into the open transaction.
    pub(crate) async fn forward(&self, producer: &TransactionalProducer, records: &ShareRecords) {
        for record in records {
            let value = record.value().unwrap().to_vec();
            drop(producer.send(ProducerRecord::new(&self.output).value(value)).await.unwrap());
        }
    }

    /// Puts a poll's records and their output into the open transaction.
    pub(crate) async fn process(
        &self,
        producer: &TransactionalProducer,
        consumer: &KafkaShareConsumer,
        records: &ShareRecords,
    ) {
        self.forward(producer, records).await;
        let acks = ShareAcknowledgements::from_records(records, AckType::Accept).unwrap();
        producer.send_share_acks_to_transaction(acks, &consumer.share_group_metadata().unwrap()).await.unwrap();
    }

    /// A transaction with a poll's records and their output. It is still open after an error.
    pub(crate) async fn attempt(
        &self,
        producer: &TransactionalProducer,
        consumer: &KafkaShareConsumer,
        records: &ShareRecords,
    ) -> Result<(), Error> {
        producer.begin_transaction()?;
        self.forward(producer, records).await;
        let acks = ShareAcknowledgements::from_records(records, AckType::Accept)?;
        producer.send_share_acks_to_transaction(acks, &consumer.share_group_metadata()?).await?;
        producer.commit_transaction().await
    }

    /// Waits until the broker has nothing left for a group. Nothing may be handed out meanwhile.
    pub(crate) async fn until_done(&self, consumer: &KafkaShareConsumer, group: &str) {
        let (until, quiet) = (Instant::now() + LONG, Instant::now() + self.lock + self.lock / 2);
        loop {
            let offsets = self.admin().describe_share_group_offsets(group).await.unwrap();
            // Brokers before 4.3 do not tell the lag, and start offsets trail: what is not done comes again there when its
            // lock ends.
            let done = |o: &SharePartitionOffset| o.lag.map_or(Instant::now() > quiet, |lag| lag == 0);
            if offsets.iter().filter(|o| done(o)).count() == PARTITIONS as usize {
                return;
            }
            assert!(Instant::now() < until, "{offsets:?}");
            let records = consumer.poll(TURN).await.unwrap();
            assert!(records.is_empty(), "{:?}", numbers(&records));
        }
    }

    /// Numbers of the committed output, each with how often it is there.
    pub(crate) async fn output(&self) -> BTreeMap<usize, usize> {
        let mut reader = PartitionReader::read_committed(Arc::clone(&self.cluster), &self.output).await.unwrap();
        let mut all = BTreeMap::new();
        for batch in reader.read_to_end().await.unwrap() {
            for record in &batch {
                *all.entry(number(record.value())).or_default() += 1;
            }
        }
        all
    }

    /// What is committed of the numbers below `records`, each once.
    pub(crate) async fn check_output(&self, records: usize) {
        let wanted: BTreeMap<usize, usize> = (0..records).map(|n| (n, 1)).collect();
        assert_eq!(self.output().await, wanted);
    }
}

pub(crate) fn number(value: Option<&[u8]>) -> usize {
    std::str::from_utf8(value.unwrap()).unwrap().parse().unwrap()
}

pub(crate) fn numbers(records: &ShareRecords) -> Vec<usize> {
    records.iter().map(|r| number(r.value())).collect()
}

/// Each with the type that `choose` has for its number.
pub(crate) fn chosen(records: &ShareRecords, choose: impl Fn(usize) -> AckType) -> Vec<(RecordId, AckType)> {
    records.iter().map(|r| (r.id(), choose(number(r.value())))).collect()
}

pub(crate) async fn some(consumer: &KafkaShareConsumer) -> ShareRecords {
    let until = Instant::now() + LONG;
    loop {
        let records = consumer.poll(TURN).await.unwrap();
        if !records.is_empty() {
            return records;
        }
        assert!(Instant::now() < until, "no records came");
    }
}
