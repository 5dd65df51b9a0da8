//! An embedded broker with a topic and a group, and consumers on it.

// Each test file uses a part of it.
#![allow(dead_code, unused_imports)]

use kafka_share::net::Cluster;
use kafka_share::{
    AcknowledgementMode, Admin, ClientConfig, KafkaShareConsumer, Producer, ProducerRecord, ShareRecords,
};
use kafka_share_broker::{EmbeddedBroker, GroupBounds};
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub(crate) use kafka_share::AcknowledgementMode as Mode;

/// More than any of this takes.
pub(crate) const LONG: Duration = Duration::from_secs(20);
/// One turn of waiting.
pub(crate) const SHORT: Duration = Duration::from_millis(100);

const TOPIC: &str = "orders";
pub(crate) const GROUP: &str = "group";

pub(crate) struct Rig {
    pub(crate) broker: EmbeddedBroker,
    pub(crate) cluster: Arc<Cluster>,
    producer: Producer,
}

impl Rig {
    pub(crate) async fn new(nodes: usize) -> Rig {
        Self::with(nodes, |_| {}).await
    }

    pub(crate) async fn with(nodes: usize, bound: impl FnOnce(&mut GroupBounds)) -> Rig {
        let mut bounds = GroupBounds::default();
        bound(&mut bounds);
        let broker = EmbeddedBroker::builder().nodes(nodes).topic(TOPIC, 1).group_bounds(bounds).start().await.unwrap();
        let cluster = Cluster::new(ClientConfig::new(&broker.bootstrap_servers())).unwrap();
        let producer = Producer::builder("").cluster(Arc::clone(&cluster)).build().unwrap();
        let rig = Rig { broker, cluster, producer };
        rig.configure("share.auto.offset.reset", "earliest").await;
        rig
    }

    pub(crate) async fn configure(&self, name: &str, value: &str) {
        Admin::on(Arc::clone(&self.cluster)).alter_share_group_configs(GROUP, &[(name, value)]).await.unwrap();
    }

    pub(crate) fn producer(&self) -> &Producer {
        &self.producer
    }

    pub(crate) fn topic(&self) -> String {
        TOPIC.to_owned()
    }

    pub(crate) fn leader(&self) -> i32 {
        self.cluster.cached_topic(TOPIC).unwrap().leaders[0].id
    }

    /// The node that leads the partition, as the broker has it.
    pub(crate) fn leader_node(&self) -> i32 {
        let dump = self.broker.dump();
        dump.partitions.iter().find(|p| p.topic == TOPIC && p.partition == 0).map_or(-1, |p| p.leader)
    }

    /// Writes records whose values are their offsets.
    pub(crate) async fn produce(&self, offsets: Range<i64>) {
        for offset in offsets {
            drop(self.producer.send(ProducerRecord::new(TOPIC).partition(0).value(offset.to_string())).await.unwrap());
        }
        self.producer.flush().await.unwrap();
    }

    /// Writes records `0..count`, whose values are their offsets, as one batch.
    pub(crate) async fn produce_at_once(&self, count: i64) {
        let builder = Producer::builder("").cluster(Arc::clone(&self.cluster));
        let producer = builder.linger(LONG).batch_size(1 << 20).build().unwrap();
        for offset in 0..count {
            drop(producer.send(ProducerRecord::new(TOPIC).partition(0).value(offset.to_string())).await.unwrap());
        }
        producer.flush().await.unwrap();
    }

    pub(crate) fn consumer(&self, mode: AcknowledgementMode) -> KafkaShareConsumer {
        self.consumer_with(mode, 500)
    }

    pub(crate) fn consumer_with(&self, mode: AcknowledgementMode, max_poll_records: usize) -> KafkaShareConsumer {
        let builder = KafkaShareConsumer::builder("", GROUP).cluster(Arc::clone(&self.cluster));
        // Topics come and go by the tests' own hand.
        let builder = builder.acknowledgement_mode(mode).allow_auto_create_topics(false);
        let consumer = builder.max_poll_records(max_poll_records).build().unwrap();
        consumer.subscribe([TOPIC]).unwrap();
        consumer
    }

    /// One that shares no connection with anybody.
    pub(crate) fn own_consumer(&self, mode: AcknowledgementMode) -> KafkaShareConsumer {
        let builder = KafkaShareConsumer::builder(&self.broker.bootstrap_servers(), GROUP);
        let consumer = builder.acknowledgement_mode(mode).build().unwrap();
        consumer.subscribe([TOPIC]).unwrap();
        consumer
    }

    /// Polls until `count` records have come.
    pub(crate) async fn receive(&self, consumer: &KafkaShareConsumer, count: usize) -> Vec<ShareRecords> {
        let until = Instant::now() + LONG;
        let mut all = Vec::new();
        while all.iter().map(ShareRecords::len).sum::<usize>() < count {
            assert!(Instant::now() < until, "{count} records expected, had {:?}", offsets(&all));
            all.push(consumer.poll(SHORT).await.unwrap());
        }
        all.retain(|records| !records.is_empty());
        all
    }
}

/// Offset and delivery count of each record, after a look at its value.
pub(crate) fn offsets(records: &[ShareRecords]) -> Vec<(i64, i16)> {
    let all = records.iter().flatten();
    all.inspect(|r| assert_eq!(r.value(), Some(r.offset().to_string().as_bytes())))
        .map(|r| (r.offset(), r.delivery_count()))
        .collect()
}

/// CPU time of this process so far, to a hundredth of a second.
#[cfg(target_os = "linux")]
pub(crate) fn cpu_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("stat");
    let after_name = stat.rsplit_once(')').expect("name").1;
    let fields: Vec<&str> = after_name.split_whitespace().collect();
    let ticks = fields[11].parse::<u64>().expect("utime") + fields[12].parse::<u64>().expect("stime");
    Duration::from_millis(10 * ticks)
}
