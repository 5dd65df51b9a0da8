//! A cluster of some release, with topics and groups for each scenario.

use kafka_share::admin::{AutoOffsetReset, NewTopic, ShareGroupSettings};
use kafka_share::net::Cluster;
use kafka_share::{
    AcknowledgementMode, Admin, ClientConfig, KafkaShareConsumer, Producer, ProducerRecord, ShareConsumerBuilder,
    ShareRecords,
};
use kafka_share_messages::ApiKey;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

pub(crate) use kafka_share_tests::share::{Counts, assert_came, assert_numbers, numbers, receive, total};

/// More than anything here takes.
pub(crate) const LONG: Duration = Duration::from_secs(60);
/// One turn of waiting.
pub(crate) const SHORT: Duration = Duration::from_millis(200);
/// The longest lock that brokers allow. What is free sooner than [`AT_ONCE`] did not wait for its end.
pub(crate) const LOCK: Duration = Duration::from_secs(60);
/// Long enough for the busiest machine.
pub(crate) const AT_ONCE: Duration = Duration::from_secs(50);

/// Which release, so far as scenarios tell them apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Release {
    V4_1,
    V4_2,
    V4_3,
    V4_4,
}

/// A cluster.
pub(crate) struct Lab {
    pub(crate) release: Release,
    pub(crate) counts: Counts,
    pub(crate) servers: String,
    pub(crate) cluster: Arc<Cluster>,
    pub(crate) admin: Admin,
    producer: Producer,
}

/// A topic and a group of a scenario.
pub(crate) struct Place {
    pub(crate) topic: String,
    pub(crate) group: String,
}

impl Lab {
    pub(crate) async fn new(servers: &str, release: Release, counts: Counts) -> Lab {
        let cluster = Cluster::new(ClientConfig::new(servers)).unwrap();
        let features = cluster.features(Instant::now() + LONG).await.unwrap();
        let fetch = features.range(ApiKey::SHARE_FETCH).map(|(_, max)| max);
        assert_eq!(fetch == Some(1), release == Release::V4_1, "{fetch:?}");
        let admin = Admin::on(Arc::clone(&cluster));
        let producer = Producer::builder("").cluster(Arc::clone(&cluster)).linger(Duration::ZERO).build().unwrap();
        Lab { release, counts, servers: servers.to_owned(), cluster, admin, producer }
    }

    /// Whether the brokers know version 2 of the RPCs of share consumers.
    pub(crate) fn second_version(&self) -> bool {
        self.release > Release::V4_1
    }

    /// Whether the brokers tell the lag (KIP-1226).
    pub(crate) fn tells_lag(&self) -> bool {
        self.release >= Release::V4_3
    }

    /// Delivery count of a record that went back `times` to the group as a session ended: Kafka 4.1 does not count those.
    pub(crate) fn after_lost_sessions(&self, times: i16) -> i16 {
        if self.release == Release::V4_1 { 1 } else { 1 + times }
    }

    /// Asserts that these records came, each once, for the `deliveries`th time so far as the broker knows.
    #[track_caller]
    pub(crate) fn came(&self, got: &[ShareRecords], numbers: impl IntoIterator<Item = u32>, deliveries: i16) {
        assert_came(got, numbers, deliveries, self.counts);
    }

    /// A topic, and a group that reads it from its start with the longest locks.
    pub(crate) async fn place_with_long_locks(&self) -> Place {
        self.place_with(1, ShareGroupSettings::new().record_lock_duration(LOCK)).await
    }

    /// A topic, and a group that reads it from its start.
    pub(crate) async fn place(&self, partitions: i32) -> Place {
        self.place_with(partitions, ShareGroupSettings::new()).await
    }

    pub(crate) async fn place_with(&self, partitions: i32, settings: ShareGroupSettings) -> Place {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let place = Place { topic: format!("topic-{number}"), group: format!("group-{number}") };
        self.admin.create_topic(NewTopic::new(&place.topic, partitions)).await.unwrap();
        let settings = settings.auto_offset_reset(AutoOffsetReset::Earliest);
        self.admin.apply_share_group_settings(&place.group, &settings).await.unwrap();
        place
    }

    /// Writes records whose values are numbers, to partition 0, as one batch or a few.
    pub(crate) async fn produce(&self, place: &Place, numbers: Range<u32>) {
        self.produce_to(place, 0, numbers).await;
    }

    pub(crate) async fn produce_to(&self, place: &Place, partition: i32, numbers: Range<u32>) {
        for number in numbers {
            let record = ProducerRecord::new(&place.topic).partition(partition).value(number.to_string());
            drop(self.producer.send(record).await.unwrap());
        }
        self.producer.flush().await.unwrap();
    }

    /// Writes the numbers in batches of exactly this size: brokers acquire whole batches.
    pub(crate) async fn produce_batches(&self, place: &Place, partition: i32, numbers: Range<u32>, size: usize) {
        let all: Vec<u32> = numbers.collect();
        for batch in all.chunks(size) {
            let (first, last) = (batch[0], batch[batch.len() - 1]);
            self.produce_to(place, partition, first..last + 1).await;
        }
    }

    pub(crate) fn builder(&self, place: &Place) -> ShareConsumerBuilder {
        KafkaShareConsumer::builder(&self.servers, &place.group)
    }

    /// A member that has subscribed, with connections of its own.
    pub(crate) fn member(&self, place: &Place, mode: AcknowledgementMode) -> KafkaShareConsumer {
        self.subscribed(place, self.builder(place).acknowledgement_mode(mode))
    }

    pub(crate) fn subscribed(&self, place: &Place, builder: ShareConsumerBuilder) -> KafkaShareConsumer {
        let consumer = builder.build().unwrap();
        consumer.subscribe([&place.topic]).unwrap();
        consumer
    }
}

pub(crate) const IMPLICIT: AcknowledgementMode = AcknowledgementMode::Implicit;
pub(crate) const EXPLICIT: AcknowledgementMode = AcknowledgementMode::Explicit;

/// Polls until it is a member; nothing comes meanwhile.
pub(crate) async fn joined(consumer: &KafkaShareConsumer) {
    let until = Instant::now() + LONG;
    while consumer.share_group_metadata().is_err() {
        assert!(Instant::now() < until, "it does not become a member");
        assert!(consumer.poll(SHORT).await.unwrap().is_empty());
    }
}
