//! Sends requests and writes down the answers, without what differs from broker to broker.

use kafka_share_messages::create_topics_request::{CreatableTopic, CreatableTopicConfig};
use kafka_share_messages::produce_request::{PartitionProduceData, TopicProduceData};
use kafka_share_messages::{CreateTopicsRequest, ErrorCode, ProduceRequest, Request};
use kafka_share_tests::raw::Raw;
use kafka_share_wire::records::{BatchBuilder, BatchOptions};
use kafka_share_wire::{Str, Uuid};
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::time::{Duration, Instant};

/// How long a broker may take to get a partition or a coordinator ready.
const LIMIT: Duration = Duration::from_secs(120);

pub(crate) struct Player {
    address: SocketAddr,
    raw: Raw,
    pub(crate) lines: Vec<String>,
    /// Text that differs from broker to broker, and what stands for it.
    masks: Vec<(String, String)>,
}

impl Player {
    pub(crate) fn new(address: SocketAddr) -> Self {
        let raw = Raw::connect(address).expect("a connection");
        let masks = vec![(format!("port: {}", address.port()), "port: P".to_owned())];
        Player { address, raw, lines: Vec::new(), masks }
    }

    pub(crate) fn mask(&mut self, text: String, token: &str) {
        self.masks.push((text, token.to_owned()));
    }

    /// Plays a request and writes the answer down; a closed connection is an answer too.
    pub(crate) fn play<R: Request<Response: std::fmt::Debug>>(&mut self, what: &str, request: &R, version: i16) {
        self.play_as(what, request, version, |_| {});
    }

    /// As [`Player::play`], with the answer put in order first.
    pub(crate) fn play_as<R: Request<Response: std::fmt::Debug>>(
        &mut self,
        what: &str,
        request: &R,
        version: i16,
        order: impl FnOnce(&mut R::Response),
    ) {
        let line = match self.raw.call(request, version) {
            Ok(mut answer) => {
                order(&mut answer);
                self.clean(&format!("{answer:?}"))
            }
            Err(_) => {
                self.raw = Raw::connect(self.address).expect("a connection");
                "closed".to_owned()
            }
        };
        self.lines.push(format!("{} v{version} {what} -> {line}", R::NAME));
    }

    pub(crate) fn play_all<R: Request<Response: std::fmt::Debug>>(
        &mut self,
        what: &str,
        request: &R,
        versions: RangeInclusive<i16>,
    ) {
        versions.for_each(|version| self.play(what, request, version));
    }

    pub(crate) fn latest<R: Request<Response: std::fmt::Debug>>(&mut self, what: &str, request: &R) {
        self.play(what, request, R::MAX_VERSION);
    }

    pub(crate) fn call<R: Request<Response: std::fmt::Debug>>(&mut self, request: &R, version: i16) -> R::Response {
        self.raw.call(request, version).expect("an answer")
    }

    fn clean(&self, text: &str) -> String {
        let mut text = strip(text, "error_message: Some(\"", "\")", "error_message: None");
        for (from, to) in &self.masks {
            text = text.replace(from, to);
        }
        text.replace(", tagged: TaggedFields([])", "").replace("throttle_time_ms: 0, ", "")
    }

    /// Creates a topic whose partitions have leaders.
    pub(crate) fn topic(&mut self, name: &str, partitions: i32, settings: &[(&str, &str)]) -> Uuid {
        let config = |(name, value): &(&str, &str)| CreatableTopicConfig {
            name: Str::from(*name),
            value: Some(Str::from(*value)),
            ..Default::default()
        };
        let topic = CreatableTopic {
            name: Str::from(name),
            num_partitions: partitions,
            replication_factor: 1,
            // Records of long ago stay.
            configs: [("retention.ms", "-1")].iter().chain(settings).map(config).collect(),
            ..Default::default()
        };
        let request = CreateTopicsRequest { topics: vec![topic], timeout_ms: 10_000, ..Default::default() };
        let answer = self.call(&request, 7);
        assert!(answer.topics[0].error_code.is_ok(), "{answer:?}");
        let id = answer.topics[0].topic_id;
        self.mask(format!("{id:?}"), &format!("ID({name})"));
        self.until_led(name, partitions);
        id
    }

    /// Waits until the topic can be used.
    pub(crate) fn until_led(&mut self, name: &str, partitions: i32) {
        use kafka_share_messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
        let end = Instant::now() + LIMIT;
        let part = |partition_index| ListOffsetsPartition {
            partition_index,
            current_leader_epoch: -1,
            timestamp: -1,
            ..Default::default()
        };
        let request = kafka_share_messages::ListOffsetsRequest {
            topics: vec![ListOffsetsTopic {
                name: Str::from(name),
                partitions: (0..partitions).map(part).collect(),
                ..Default::default()
            }],
            ..Default::default()
        };
        loop {
            let answer = self.call(&request, 5);
            if answer.topics[0].partitions.iter().all(|p| p.error_code.is_ok()) {
                return;
            }
            assert!(Instant::now() < end, "{answer:?}");
            std::thread::park_timeout(Duration::from_millis(20));
        }
    }

    /// Appends a batch of records at these times, which must succeed.
    pub(crate) fn append(&mut self, topic: Uuid, times: &[i64]) {
        let request = produce(topic, batch(BatchOptions::default(), times));
        let end = Instant::now() + LIMIT;
        loop {
            let answer = self.call(&request, 13);
            let code = answer.responses[0].partition_responses[0].error_code;
            if code == ErrorCode::NONE {
                return;
            }
            assert!(Instant::now() < end, "{code}");
            std::thread::park_timeout(Duration::from_millis(20));
        }
    }
}

fn strip(text: &str, from: &str, to: &str, by: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(from) {
        out.push_str(&rest[..at]);
        out.push_str(by);
        let tail = &rest[at + from.len()..];
        rest = tail.find(to).map_or("", |end| &tail[end + to.len()..]);
    }
    out + rest
}

pub(crate) fn batch(options: BatchOptions, times: &[i64]) -> bytes::Bytes {
    let mut builder = BatchBuilder::new(options);
    for at in times {
        builder.append(*at, Some(b"k"), Some(b"v"), []).expect("a record");
    }
    builder.finish().expect("a batch").freeze()
}

/// Records for partition 0.
pub(crate) fn produce(topic: Uuid, records: bytes::Bytes) -> ProduceRequest {
    let data = PartitionProduceData { records: Some(records), ..Default::default() };
    let topic = TopicProduceData { topic_id: topic, partition_data: vec![data], ..Default::default() };
    ProduceRequest { acks: -1, timeout_ms: 10_000, topic_data: vec![topic], ..Default::default() }
}
