//! A cluster to measure on: topics and groups for each scenario, and what it takes to fill and read them.

use kafka_share::admin::{AutoOffsetReset, NewTopic, ShareGroupSettings};
use kafka_share::net::Cluster;
use kafka_share::{
    AckType, AcknowledgementMode, Admin, ClientConfig, KafkaShareConsumer, Outcome, Producer, ProducerRecord,
    ShareConsumerBuilder,
};
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

pub(crate) use kafka_share_tests::share::{Counts, assert_came, assert_numbers, numbers, receive};

/// More than anything here takes.
pub(crate) const LONG: Duration = Duration::from_secs(60);
/// One turn of waiting.
pub(crate) const SHORT: Duration = Duration::from_millis(200);

/// What figures of the embedded broker are of.
pub(crate) const EMBEDDED: &str = "embedded";

/// A cluster.
pub(crate) struct Lab {
    /// What the figures are of.
    pub(crate) broker: &'static str,
    pub(crate) counts: Counts,
    pub(crate) servers: String,
    pub(crate) cluster: Arc<Cluster>,
    admin: Admin,
    producer: Producer,
}

/// A topic and a group of a scenario.
pub(crate) struct Place {
    pub(crate) topic: String,
    pub(crate) group: String,
}

impl Lab {
    pub(crate) fn new(broker: &'static str, servers: &str) -> Lab {
        let cluster = Cluster::new(ClientConfig::new(servers)).unwrap();
        let admin = Admin::on(Arc::clone(&cluster));
        // What is written together is one batch, which the flush ends.
        let linger = Duration::from_secs(5);
        let producer = Producer::builder("").cluster(Arc::clone(&cluster)).linger(linger).build().unwrap();
        let counts = if broker == EMBEDDED { Counts::Exact } else { Counts::AtMost };
        Lab { broker, counts, servers: servers.to_owned(), cluster, admin, producer }
    }

    /// A topic, and a group that reads it from its start.
    pub(crate) async fn place(&self, partitions: i32) -> Place {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let place = Place { topic: format!("topic-{number}"), group: format!("group-{number}") };
        self.admin.create_topic(NewTopic::new(&place.topic, partitions)).await.unwrap();
        let settings = ShareGroupSettings::new().auto_offset_reset(AutoOffsetReset::Earliest);
        self.admin.apply_share_group_settings(&place.group, &settings).await.unwrap();
        place
    }

    /// Sets the interval of the group's heartbeats, in milliseconds.
    pub(crate) async fn heartbeats_every(&self, place: &Place, interval: &str) {
        let settings = ShareGroupSettings::new().set("share.heartbeat.interval.ms", interval);
        self.admin.apply_share_group_settings(&place.group, &settings).await.unwrap();
    }

    /// Writes records whose values are numbers, one partition after the other, as one batch or a few.
    pub(crate) async fn produce(&self, place: &Place, partition: i32, numbers: Range<u32>) {
        for number in numbers {
            let record = ProducerRecord::new(&place.topic).partition(partition).value(number.to_string());
            drop(self.producer.send(record).await.unwrap());
        }
        self.producer.flush().await.unwrap();
    }

    /// A member to be, with connections of its own, that acknowledges explicitly.
    pub(crate) fn builder(&self, place: &Place) -> ShareConsumerBuilder {
        KafkaShareConsumer::builder(&self.servers, &place.group).acknowledgement_mode(AcknowledgementMode::Explicit)
    }

    pub(crate) fn member(&self, place: &Place) -> KafkaShareConsumer {
        subscribed(place, self.builder(place))
    }

    /// Shows a figure.
    pub(crate) fn show(&self, what: &str, figure: impl std::fmt::Display) {
        println!("FIGURE {}: {what}: {figure}", self.broker);
    }
}

/// What a figure must stay under: `usual` on any machine, `strict` where `KAFKA_SHARE_FIGURES=strict` says that this one is
/// idle and the build optimised.
pub(crate) fn limit(usual: Duration, strict: Duration) -> Duration {
    match std::env::var("KAFKA_SHARE_FIGURES").as_deref() {
        Err(_) | Ok("") => usual,
        Ok("strict") if cfg!(debug_assertions) => panic!("KAFKA_SHARE_FIGURES=strict is for cargo test --release"),
        Ok("strict") => strict,
        Ok(other) => panic!("KAFKA_SHARE_FIGURES={other}: strict, or nothing, is expected"),
    }
}

pub(crate) fn subscribed(place: &Place, builder: ShareConsumerBuilder) -> KafkaShareConsumer {
    let consumer = builder.build().unwrap();
    consumer.subscribe([&place.topic]).unwrap();
    consumer
}

/// Accepts what comes until `all` records are acknowledged, and tells what came. On the embedded broker each acknowledgement
/// is taken; a real one may notice the end of a connection late, and take back what was acquired since.
pub(crate) async fn accept_all(lab: &Lab, consumer: &KafkaShareConsumer, all: usize) -> Vec<(u32, i16)> {
    let (mut came, mut done) = (Vec::new(), BTreeSet::new());
    let end = Instant::now() + 2 * LONG;
    while done.len() < all {
        assert!(Instant::now() < end, "{} of {all} are acknowledged", done.len());
        let records = consumer.poll(SHORT).await.unwrap();
        let taken = consumer.acknowledge_all(&records, AckType::Accept).unwrap();
        assert!(taken == records.len() || lab.counts == Counts::AtMost, "{taken} of {}", records.len());
        came.extend(numbers(&[records]));
        consumer.commit_sync(LONG).await.unwrap();
        for told in consumer.poll_outcomes() {
            if told.outcome == Outcome::Acknowledged {
                assert!((told.first_offset..=told.last_offset).all(|offset| done.insert(offset)), "twice: {told:?}");
            } else {
                assert_eq!(lab.counts, Counts::AtMost, "{told:?}");
            }
        }
    }
    if lab.counts == Counts::AtMost {
        came.sort_unstable();
        came.dedup_by_key(|(number, _)| *number);
    }
    came
}

/// Waits until something is so.
pub(crate) async fn until(what: &str, mut check: impl FnMut() -> bool) {
    let end = Instant::now() + LONG;
    while !check() {
        assert!(Instant::now() < end, "{what}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// Records that the outcomes told since the last call are of; all must be one of `allowed`.
pub(crate) fn outcomes(consumer: &KafkaShareConsumer, allowed: &[Outcome]) -> i64 {
    let told = consumer.poll_outcomes();
    assert!(told.iter().all(|o| allowed.contains(&o.outcome)), "{told:?}");
    told.iter().map(|o| o.last_offset - o.first_offset + 1).sum()
}
