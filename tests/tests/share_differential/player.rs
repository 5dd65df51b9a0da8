//! Plays raw share-group requests to a broker and writes down what it answers.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use kafka_share_messages::incremental_alter_configs_request::{AlterConfigsResource, AlterableConfig};
use kafka_share_messages::produce_request::{PartitionProduceData, TopicProduceData};
use kafka_share_messages::share_acknowledge_request as acknowledge;
use kafka_share_messages::share_fetch_request as fetch;
use kafka_share_messages::{
    ApiKey, CreateTopicsRequest, ErrorCode, FindCoordinatorRequest, IncrementalAlterConfigsRequest, MetadataRequest,
    ProduceRequest, Request, ShareAcknowledgeRequest, ShareFetchRequest, ShareFetchResponse,
    ShareGroupHeartbeatRequest, create_topics_request, metadata_request,
};
use kafka_share_tests::raw::Raw;
use kafka_share_wire::records::{BatchBuilder, BatchOptions};
use kafka_share_wire::{Str, Uuid};

/// First offset, last offset, types.
pub(crate) type Acks<'a> = &'a [(i64, i64, &'a [i8])];

/// Member ids are UUIDs, as Kafka's own client makes them.
pub(crate) const A: &str = "AAAAAAAAQAGAAAAAAAAAAQ";
/// Another member.
pub(crate) const B: &str = "AAAAAAAAQAGAAAAAAAAAAg";

/// A broker under test and the transcript of its answers.
pub(crate) struct Player {
    address: SocketAddr,
    pub(crate) conns: Vec<Raw>,
    pub(crate) group: String,
    pub(crate) topic: String,
    pub(crate) topic_id: Uuid,
    pub(crate) lines: Vec<String>,
    /// Member epoch that [`Player::join`] ended with: epochs are written down relative to it.
    base: i32,
}

/// How a fetch differs from the usual one.
#[derive(Debug, Clone)]
pub(crate) struct Fetch {
    pub(crate) conn: usize,
    pub(crate) wait_ms: i32,
    pub(crate) min_bytes: i32,
    pub(crate) max_bytes: i32,
    pub(crate) max_records: i32,
    pub(crate) batch_size: i32,
    pub(crate) strict: bool,
    pub(crate) renew: bool,
    pub(crate) forget: Vec<i32>,
    pub(crate) topic: Option<Uuid>,
    pub(crate) version: i16,
}

impl Default for Fetch {
    fn default() -> Self {
        Fetch {
            conn: 0,
            wait_ms: 0,
            min_bytes: 1,
            max_bytes: 1 << 20,
            max_records: 500,
            batch_size: 500,
            strict: false,
            renew: false,
            forget: Vec::new(),
            topic: None,
            version: 2,
        }
    }
}

impl Player {
    /// Connects and creates a topic; the group reads from the start with locks of `lock_ms`.
    pub(crate) fn new(address: SocketAddr, name: &str, partitions: i32, lock_ms: i64) -> Self {
        let unique = format!("{:x}", std::process::id() as u128 * 1_000 + nanos() % 1_000);
        let mut player = Player {
            address,
            conns: vec![Raw::connect(address).expect("the broker is there")],
            group: format!("{name}-{unique}"),
            topic: format!("{name}-{unique}"),
            topic_id: Uuid::ZERO,
            lines: Vec::new(),
            base: 0,
        };
        player.create_topic(partitions);
        player.find_coordinator();
        player.configure(&[
            ("share.auto.offset.reset", "earliest"),
            ("share.record.lock.duration.ms", &lock_ms.to_string()),
        ]);
        player
    }

    /// A real broker creates its internal topics when it is first asked for a coordinator.
    fn find_coordinator(&mut self) {
        self.coordinator(0, &self.group.clone());
    }

    /// Waits until the coordinator of a key answers.
    pub(crate) fn coordinator(&mut self, key_type: i8, key: &str) {
        let request = FindCoordinatorRequest { key_type, coordinator_keys: vec![Str::from(key)], ..Default::default() };
        let deadline = Instant::now() + Duration::from_secs(60);
        while !self.call(&request).coordinators[0].error_code.is_ok() {
            assert!(Instant::now() < deadline, "{key} has no coordinator");
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Joins members to the group and waits until they have partitions: share-partitions exist from then on.
    pub(crate) fn join(&mut self, members: &[&str]) {
        let deadline = Instant::now() + Duration::from_secs(60);
        for member in members {
            let mut epoch = 0;
            loop {
                let request = ShareGroupHeartbeatRequest {
                    group_id: Str::from(&self.group),
                    member_id: Str::from(*member),
                    member_epoch: epoch,
                    subscribed_topic_names: (epoch == 0).then(|| vec![Str::from(&self.topic)]),
                    ..Default::default()
                };
                let answer = self.call(&request);
                epoch = answer.member_epoch;
                if answer.assignment.is_some_and(|assignment| !assignment.topic_partitions.is_empty()) {
                    self.base = epoch;
                    break;
                }
                assert!(Instant::now() < deadline, "no assignment: {:?}", answer.error_code);
                std::thread::sleep(Duration::from_millis(100));
            }
        }
    }

    pub(crate) fn connect(&mut self) -> usize {
        self.conns.push(Raw::connect(self.address).expect("the broker is there"));
        self.conns.len() - 1
    }

    /// Closes connection 0 and opens another in its place.
    pub(crate) fn reconnect(&mut self) {
        self.conns[0] = Raw::connect(self.address).expect("the broker is there");
    }

    pub(crate) fn call<R: Request>(&mut self, request: &R) -> R::Response {
        self.conns[0].latest(request).unwrap_or_else(|e| panic!("{}: {e}", ApiKey(R::KEY.0)))
    }

    pub(crate) fn say(&mut self, line: impl Into<String>) {
        self.lines.push(line.into());
    }

    fn create_topic(&mut self, partitions: i32) {
        self.topic_id = self.create(&self.topic.clone(), partitions, &[]);
    }

    /// Creates a topic and waits until its partitions are led.
    pub(crate) fn create(&mut self, name: &str, partitions: i32, configs: &[(&str, &str)]) -> Uuid {
        let config = |(name, value): &(&str, &str)| create_topics_request::CreatableTopicConfig {
            name: Str::from(*name),
            value: Some(Str::from(*value)),
            ..Default::default()
        };
        let topic = create_topics_request::CreatableTopic {
            name: Str::from(name),
            num_partitions: partitions,
            replication_factor: 1,
            configs: configs.iter().map(config).collect(),
            ..Default::default()
        };
        let answer = self.call(&CreateTopicsRequest { topics: vec![topic], timeout_ms: 10_000, ..Default::default() });
        assert_eq!(answer.topics[0].error_code, ErrorCode::NONE);
        let asked = metadata_request::MetadataRequestTopic { name: Some(Str::from(name)), ..Default::default() };
        let request = MetadataRequest { topics: Some(vec![asked]), ..Default::default() };
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            let led = self.call(&request).topics.iter().all(|t| {
                t.error_code.is_ok() && !t.partitions.is_empty() && t.partitions.iter().all(|p| p.leader_id >= 0)
            });
            if led {
                return answer.topics[0].topic_id;
            }
            assert!(Instant::now() < deadline, "the topic has no leaders");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    pub(crate) fn configure(&mut self, settings: &[(&str, &str)]) {
        let (code, message) = self.try_configure(settings);
        assert_eq!(code, ErrorCode::NONE, "{message:?}");
        // A real broker applies them when its metadata catches up.
        std::thread::sleep(Duration::from_millis(200));
    }

    /// Changes settings of the group; answers how that went.
    pub(crate) fn try_configure(&mut self, settings: &[(&str, &str)]) -> (ErrorCode, Option<Str>) {
        let config = |(name, value): &(&str, &str)| AlterableConfig {
            name: Str::from(*name),
            config_operation: 0,
            value: Some(Str::from(*value)),
            ..Default::default()
        };
        let resource = AlterConfigsResource {
            resource_type: 32,
            resource_name: Str::from(&self.group),
            configs: settings.iter().map(config).collect(),
            ..Default::default()
        };
        let request = IncrementalAlterConfigsRequest { resources: vec![resource], ..Default::default() };
        let response = self.call(&request).responses.remove(0);
        (response.error_code, response.error_message)
    }

    /// Produces one batch.
    pub(crate) fn produce(&mut self, partition: i32, records: usize) {
        self.produce_as(partition, records, None, BatchOptions::default());
    }

    /// Produces one batch whose records are as old as this.
    pub(crate) fn produce_old(&mut self, partition: i32, records: usize, age: Duration) {
        let mut builder = BatchBuilder::new(BatchOptions::default());
        for _ in 0..records {
            let then = (nanos() / 1_000_000) as i64 - age.as_millis() as i64;
            builder.append(then, None, Some(b"old"), []).expect("fits");
        }
        self.send_batch(partition, None, builder);
    }

    /// Produces one batch, perhaps in a transaction.
    pub(crate) fn produce_as(&mut self, partition: i32, records: usize, txn: Option<&str>, options: BatchOptions) {
        let mut builder = BatchBuilder::new(options);
        for n in 0..records {
            let (key, value) = (format!("key {n}"), format!("value {n}"));
            let now = nanos() as i64 / 1_000_000;
            builder.append(now, Some(key.as_bytes()), Some(value.as_bytes()), []).expect("fits");
        }
        self.send_batch(partition, txn, builder);
    }

    fn send_batch(&mut self, partition: i32, txn: Option<&str>, builder: BatchBuilder) {
        let data = PartitionProduceData {
            index: partition,
            records: Some(builder.finish().expect("a batch").freeze()),
            ..Default::default()
        };
        let topic = TopicProduceData {
            name: Str::from(&self.topic),
            topic_id: self.topic_id,
            partition_data: vec![data],
            ..Default::default()
        };
        let request = ProduceRequest {
            transactional_id: txn.map(Str::from),
            acks: -1,
            timeout_ms: 10_000,
            topic_data: vec![topic],
            ..Default::default()
        };
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            // The transaction coordinator of a real broker may still be busy with the markers of the last one.
            match self.call(&request).responses[0].partition_responses[0].error_code {
                ErrorCode::NONE => return,
                ErrorCode::CONCURRENT_TRANSACTIONS | ErrorCode::NOT_ENOUGH_REPLICAS if Instant::now() < deadline => {
                    std::thread::sleep(Duration::from_millis(50));
                }
                code => panic!("produce: {code:?}"),
            }
        }
    }

    /// Member epoch after [`Player::join`].
    pub(crate) fn epoch(&self) -> i32 {
        self.base
    }

    /// A heartbeat that the transcript does not tell of.
    pub(crate) fn heartbeat_quietly(&mut self, member: &str, epoch: i32, topics: Option<&[&str]>) -> i32 {
        let lines = self.lines.len();
        let epoch = self.heartbeat(member, epoch, topics);
        self.lines.truncate(lines);
        epoch
    }

    pub(crate) fn heartbeat(&mut self, member: &str, epoch: i32, topics: Option<&[&str]>) -> i32 {
        let names = topics.map(|list| list.iter().map(|name| Str::from(*name)).collect());
        let request = ShareGroupHeartbeatRequest {
            group_id: Str::from(&self.group),
            member_id: Str::from(member),
            member_epoch: epoch,
            subscribed_topic_names: names,
            ..Default::default()
        };
        let answer = self.call(&request);
        let assigned = answer.assignment.map(|a| a.topic_partitions.iter().map(|t| t.partitions.len()).sum::<usize>());
        let (code, next, ms) = (answer.error_code, answer.member_epoch, answer.heartbeat_interval_ms);
        let relative =
            |epoch: i32| if epoch > 0 && self.base > 0 { format!("+{}", epoch - self.base) } else { epoch.to_string() };
        let line = format!(
            "heartbeat({}) -> {code:?} epoch {} every {ms} assigned {assigned:?}",
            relative(epoch),
            relative(next)
        );
        self.say(line);
        next
    }

    pub(crate) fn fetch_request(
        &self,
        member: &str,
        epoch: i32,
        parts: &[(i32, Acks<'_>)],
        how: &Fetch,
    ) -> ShareFetchRequest {
        let batch = |(first, last, types): &(i64, i64, &[i8])| fetch::AcknowledgementBatch {
            first_offset: *first,
            last_offset: *last,
            acknowledge_types: types.to_vec(),
            ..Default::default()
        };
        let partition = |(index, acks): &(i32, Acks<'_>)| fetch::FetchPartition {
            partition_index: *index,
            acknowledgement_batches: acks.iter().map(batch).collect(),
            ..Default::default()
        };
        let topic_id = how.topic.unwrap_or(self.topic_id);
        let topic =
            fetch::FetchTopic { topic_id, partitions: parts.iter().map(partition).collect(), ..Default::default() };
        let forgotten = fetch::ForgottenTopic { topic_id, partitions: how.forget.clone(), ..Default::default() };
        ShareFetchRequest {
            group_id: Some(Str::from(&self.group)),
            member_id: Some(Str::from(member)),
            share_session_epoch: epoch,
            max_wait_ms: how.wait_ms,
            min_bytes: how.min_bytes,
            max_bytes: how.max_bytes,
            max_records: how.max_records,
            batch_size: how.batch_size,
            share_acquire_mode: i8::from(how.strict),
            is_renew_ack: how.renew,
            topics: if parts.is_empty() { Vec::new() } else { vec![topic] },
            forgotten_topics_data: if how.forget.is_empty() { Vec::new() } else { vec![forgotten] },
            ..Default::default()
        }
    }

    pub(crate) fn fetch_with(&mut self, member: &str, epoch: i32, parts: &[(i32, Acks<'_>)], how: &Fetch) {
        let request = self.fetch_request(member, epoch, parts, how);
        let answer = self.conns[how.conn].call(&request, how.version);
        let text = match answer {
            Ok(answer) => describe(&answer),
            Err(error) => format!("{:?}", error.kind()),
        };
        self.say(format!("fetch({epoch}, {parts:?}) -> {text}"));
    }

    pub(crate) fn fetch(&mut self, member: &str, epoch: i32, parts: &[(i32, Acks<'_>)]) {
        self.fetch_with(member, epoch, parts, &Fetch::default());
    }

    /// Fetches until something comes; a real broker initialises a share-partition while the first fetch waits.
    pub(crate) fn fetch_some(&mut self, member: &str, epoch: i32, parts: &[(i32, Acks<'_>)]) {
        self.fetch_with(member, epoch, parts, &Fetch { wait_ms: 5_000, ..Fetch::default() });
    }

    pub(crate) fn ack_with(&mut self, member: &str, epoch: i32, parts: &[(i32, Acks<'_>)], renew: bool, conn: usize) {
        let batch = |(first, last, types): &(i64, i64, &[i8])| acknowledge::AcknowledgementBatch {
            first_offset: *first,
            last_offset: *last,
            acknowledge_types: types.to_vec(),
            ..Default::default()
        };
        let partition = |(index, acks): &(i32, Acks<'_>)| acknowledge::AcknowledgePartition {
            partition_index: *index,
            acknowledgement_batches: acks.iter().map(batch).collect(),
            ..Default::default()
        };
        let topic = acknowledge::AcknowledgeTopic {
            topic_id: self.topic_id,
            partitions: parts.iter().map(partition).collect(),
            ..Default::default()
        };
        let request = ShareAcknowledgeRequest {
            group_id: Some(Str::from(&self.group)),
            member_id: Some(Str::from(member)),
            share_session_epoch: epoch,
            is_renew_ack: renew,
            topics: if parts.is_empty() { Vec::new() } else { vec![topic] },
            ..Default::default()
        };
        let text = match self.conns[conn].latest(&request) {
            Ok(answer) => {
                let part = |p: &kafka_share_messages::share_acknowledge_response::PartitionData| {
                    format!("{}:{:?}", p.partition_index, p.error_code)
                };
                let parts: Vec<String> = answer.responses.iter().flat_map(|t| &t.partitions).map(part).collect();
                format!("{:?} lock {} {parts:?}", answer.error_code, answer.acquisition_lock_timeout_ms)
            }
            Err(error) => format!("{:?}", error.kind()),
        };
        self.say(format!("ack({epoch}, {parts:?}{}) -> {text}", if renew { ", renew" } else { "" }));
    }

    pub(crate) fn ack(&mut self, member: &str, epoch: i32, parts: &[(i32, Acks<'_>)]) {
        self.ack_with(member, epoch, parts, false, 0);
    }
}

fn nanos() -> u128 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970").as_nanos()
}

fn describe(answer: &ShareFetchResponse) -> String {
    let mut text = format!("{:?} lock {}", answer.error_code, answer.acquisition_lock_timeout_ms);
    let mut parts: Vec<_> = answer.responses.iter().flat_map(|topic| &topic.partitions).collect();
    parts.sort_by_key(|p| p.partition_index);
    for part in parts {
        let acquired: Vec<(i64, i64, i16)> =
            part.acquired_records.iter().map(|a| (a.first_offset, a.last_offset, a.delivery_count)).collect();
        let bytes = part.records.as_ref().map_or(0, bytes::Bytes::len);
        let (index, code, acks) = (part.partition_index, part.error_code, part.acknowledge_error_code);
        write!(text, " | {index} {code:?} acks {acks:?} {acquired:?} {bytes} bytes").expect("a string");
        let leader = &part.current_leader;
        if leader.leader_id != 0 || leader.leader_epoch != 0 {
            write!(text, " leader {}/{}", leader.leader_id, leader.leader_epoch).expect("a string");
        }
    }
    text
}
