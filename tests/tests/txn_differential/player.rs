//! Plays raw requests of transactional producers to a broker and writes down what it answers. Producer ids are written as
//! P1, P2 and so on, in the order in which they were first handed out; times and texts are left out.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use kafka_share_messages::add_partitions_to_txn_request::{AddPartitionsToTxnTopic, AddPartitionsToTxnTransaction};
use kafka_share_messages::produce_request::{PartitionProduceData, TopicProduceData};
use kafka_share_messages::write_txn_markers_request::{WritableTxnMarker, WritableTxnMarkerTopic};
use kafka_share_messages::{
    AddPartitionsToTxnRequest, ApiKey, CreateTopicsRequest, DescribeTransactionsRequest, EndTxnRequest, ErrorCode,
    FindCoordinatorRequest, InitProducerIdRequest, MetadataRequest, ProduceRequest, Request, WriteTxnMarkersRequest,
    create_topics_request, metadata_request,
};
use kafka_share_tests::raw::Raw;
use kafka_share_wire::records::{BatchBuilder, BatchOptions};
use kafka_share_wire::{Str, Uuid};

/// How long a broker may take for what it does in the background.
const PATIENCE: Duration = Duration::from_secs(120);

/// Producer id and epoch.
pub(crate) type Identity = (i64, i16);

/// An InitProducerId.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Init {
    pub(crate) current: Identity,
    pub(crate) timeout_ms: i32,
    pub(crate) two_phase: bool,
    pub(crate) keep: bool,
    pub(crate) version: i16,
}

impl Default for Init {
    fn default() -> Self {
        Init { current: (-1, -1), timeout_ms: 60_000, two_phase: false, keep: false, version: 5 }
    }
}

/// A WriteTxnMarkers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Marker {
    /// The script's own by default.
    pub(crate) topic: Option<&'static str>,
    pub(crate) partition: i32,
    pub(crate) commit: bool,
    pub(crate) coordinator_epoch: i32,
    /// `transaction.version`, from v2 on.
    pub(crate) level: i8,
    pub(crate) version: i16,
}

impl Default for Marker {
    fn default() -> Self {
        Marker { topic: None, partition: 0, commit: true, coordinator_epoch: 0, level: 0, version: 1 }
    }
}

/// A broker under test and the transcript of its answers.
pub(crate) struct Player {
    address: SocketAddr,
    raw: Raw,
    /// Ends all names, so that scripts do not meet on one broker.
    pub(crate) unique: String,
    pub(crate) topic: String,
    pub(crate) topic_id: Uuid,
    /// `transaction.version`.
    pub(crate) level: i16,
    pub(crate) lines: Vec<String>,
    known: HashMap<i64, usize>,
}

impl Player {
    /// Connects and creates a topic of three partitions.
    pub(crate) fn new(address: SocketAddr, name: &str, level: i16) -> Self {
        let nanos = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_nanos();
        let unique = format!("{name}-{:x}", nanos % (1 << 48));
        let mut player = Player {
            address,
            raw: Raw::connect(address).expect("the broker is there"),
            topic: format!("topic-{unique}"),
            unique,
            topic_id: Uuid::ZERO,
            level,
            lines: Vec::new(),
            known: HashMap::new(),
        };
        player.create_topic();
        player.find_coordinator();
        player
    }

    pub(crate) fn call<R: Request>(&mut self, request: &R, version: i16) -> R::Response {
        self.raw.call(request, version).unwrap_or_else(|e| panic!("{} v{version}: {e}", ApiKey(R::KEY.0)))
    }

    /// Says whether the broker closes the connection on a request, and connects again.
    pub(crate) fn refused<R: Request>(&mut self, request: &R, version: i16) {
        let result = self.raw.call(request, version);
        self.say(format!("{} v{version} -> closed {}", ApiKey(R::KEY.0), result.is_err()));
        self.raw = Raw::connect(self.address).expect("the broker is there");
    }

    pub(crate) fn say(&mut self, line: impl Into<String>) {
        self.lines.push(line.into());
    }

    /// A transactional id of this script.
    pub(crate) fn id(&self, name: &str) -> String {
        if name.is_empty() { String::new() } else { format!("{name}-{}", self.unique) }
    }

    /// The name of a producer id.
    pub(crate) fn named(&mut self, id: i64) -> String {
        if id < 0 {
            return id.to_string();
        }
        let next = self.known.len() + 1;
        format!("P{}", self.known.entry(id).or_insert(next))
    }

    /// The name of a producer id that was handed out before.
    pub(crate) fn name_of(&self, id: i64) -> String {
        self.known.get(&id).map_or_else(|| "other".to_owned(), |n| format!("P{n}"))
    }

    fn create_topic(&mut self) {
        let topic = create_topics_request::CreatableTopic {
            name: Str::from(&self.topic),
            num_partitions: 3,
            replication_factor: 1,
            ..Default::default()
        };
        let request = CreateTopicsRequest { topics: vec![topic], timeout_ms: 10_000, ..Default::default() };
        let answer = self.call(&request, 7);
        assert_eq!(answer.topics[0].error_code, ErrorCode::NONE);
        self.topic_id = answer.topics[0].topic_id;
        let asked = metadata_request::MetadataRequestTopic { name: Some(Str::from(&self.topic)), ..Default::default() };
        let request = MetadataRequest { topics: Some(vec![asked]), ..Default::default() };
        let led = |p: &mut Self| {
            p.call(&request, 12).topics.iter().all(|t| {
                t.error_code.is_ok() && t.partitions.len() == 3 && t.partitions.iter().all(|p| p.leader_id >= 0)
            })
        };
        self.until("the topic has leaders", led);
        // Metadata may know of them before they do.
        let led = |p: &mut Self| (0..3).all(|partition| p.offset(partition, -1, 0).0.is_ok());
        self.until("the leaders serve", led);
    }

    /// A real broker creates its internal topic when it is first asked for a coordinator.
    fn find_coordinator(&mut self) {
        let keys = vec![Str::from("any")];
        let request = FindCoordinatorRequest { key_type: 1, coordinator_keys: keys, ..Default::default() };
        self.until("there is a coordinator", |p| p.call(&request, 4).coordinators[0].error_code.is_ok());
        // It loads its partitions of the topic one after the other.
        let loaded = |p: &mut Self| {
            let ids = (0..40).map(|n| Str::from(format!("loaded-{n}"))).collect();
            let answer = p.call(&DescribeTransactionsRequest { transactional_ids: ids, ..Default::default() }, 0);
            answer.transaction_states.iter().all(|s| s.error_code == ErrorCode::TRANSACTIONAL_ID_NOT_FOUND)
        };
        self.until("the coordinator is loaded", loaded);
        let request = InitProducerIdRequest { transactional_id: None, ..Default::default() };
        self.until("there are producer ids", |p| p.call(&request, 5).error_code.is_ok());
    }

    /// Waits for what a broker does in the background.
    pub(crate) fn until(&mut self, what: &str, mut holds: impl FnMut(&mut Self) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !holds(self) {
            assert!(Instant::now() < deadline, "waited in vain: {what}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits until no markers are under way.
    pub(crate) fn settle(&mut self, name: &str) {
        let request =
            DescribeTransactionsRequest { transactional_ids: vec![Str::from(self.id(name))], ..Default::default() };
        self.until("the markers are written", |p| {
            let answer = p.call(&request, 0);
            !answer.transaction_states[0].transaction_state.as_str().starts_with("Prepare")
        });
    }

    pub(crate) fn init(&mut self, name: Option<&str>, how: Init) -> Identity {
        let request = InitProducerIdRequest {
            transactional_id: name.map(|name| Str::from(self.id(name))),
            transaction_timeout_ms: how.timeout_ms,
            producer_id: how.current.0,
            producer_epoch: how.current.1,
            enable2_pc: how.two_phase,
            keep_prepared_txn: how.keep,
            ..Default::default()
        };
        let answer = self.call(&request, how.version);
        let producer = self.named(answer.producer_id);
        let ongoing = self.named(answer.ongoing_txn_producer_id);
        let current = (self.name_of(how.current.0), how.current.1);
        self.say(format!(
            "init v{} {name:?} {current:?} {} ms -> {:?} {producer} {} ongoing {ongoing} {}",
            how.version, how.timeout_ms, answer.error_code, answer.producer_epoch, answer.ongoing_txn_producer_epoch
        ));
        if let Some(name) = name.filter(|name| !name.is_empty()) {
            self.settle(name);
        }
        (answer.producer_id, answer.producer_epoch)
    }

    /// An identity for a transactional id: asks again while another transaction is being ended.
    pub(crate) fn fresh(&mut self, name: &str) -> Identity {
        loop {
            let identity = self.init(Some(name), Init::default());
            if identity.0 >= 0 {
                return identity;
            }
        }
    }

    /// Takes one epoch after the other, up to `epoch`.
    pub(crate) fn spend_epochs(&mut self, name: &str, epoch: i16) -> Identity {
        let request = InitProducerIdRequest {
            transactional_id: Some(Str::from(self.id(name))),
            transaction_timeout_ms: 60_000,
            ..Default::default()
        };
        loop {
            let answer = self.call(&request, 5);
            if answer.producer_epoch >= epoch {
                return (answer.producer_id, answer.producer_epoch);
            }
        }
    }

    /// AddPartitionsToTxn of a producer.
    pub(crate) fn add(&mut self, name: &str, producer: Identity, topics: &[(&str, &[i32])], version: i16) {
        let topic = |(topic, partitions): &(&str, &[i32])| AddPartitionsToTxnTopic {
            name: Str::from(if topic.is_empty() { self.topic.as_str() } else { *topic }),
            partitions: partitions.to_vec(),
            ..Default::default()
        };
        let request = AddPartitionsToTxnRequest {
            v3_and_below_transactional_id: Str::from(self.id(name)),
            v3_and_below_producer_id: producer.0,
            v3_and_below_producer_epoch: producer.1,
            v3_and_below_topics: topics.iter().map(topic).collect(),
            ..Default::default()
        };
        let answer = self.call(&request, version);
        self.say_added(name, producer, version, &answer.results_by_topic_v3_and_below);
    }

    /// AddPartitionsToTxn as brokers send it, of partitions of the topic.
    pub(crate) fn add_as_broker(&mut self, name: &str, producer: Identity, partitions: &[i32], verify_only: bool) {
        let topic = AddPartitionsToTxnTopic {
            name: Str::from(&self.topic),
            partitions: partitions.to_vec(),
            ..Default::default()
        };
        let transaction = AddPartitionsToTxnTransaction {
            transactional_id: Str::from(self.id(name)),
            producer_id: producer.0,
            producer_epoch: producer.1,
            verify_only,
            topics: vec![topic],
            ..Default::default()
        };
        let request = AddPartitionsToTxnRequest { transactions: vec![transaction], ..Default::default() };
        let answer = self.call(&request, 5);
        self.say(format!("verify {verify_only} -> {:?}", answer.error_code));
        for result in answer.results_by_transaction {
            self.say_added(name, producer, 5, &result.topic_results);
        }
    }

    fn say_added(
        &mut self,
        name: &str,
        producer: Identity,
        version: i16,
        results: &[kafka_share_messages::add_partitions_to_txn_response::AddPartitionsToTxnTopicResult],
    ) {
        let mut parts = Vec::new();
        for topic in results {
            let shown = if topic.name.as_str() == self.topic { "own" } else { topic.name.as_str() };
            parts.extend(
                topic
                    .results_by_partition
                    .iter()
                    .map(|p| format!("{shown} {} {:?}", p.partition_index, p.partition_error_code)),
            );
        }
        parts.sort_unstable();
        let producer = (self.name_of(producer.0), producer.1);
        self.say(format!("add v{version} {name} {producer:?} -> {parts:?}"));
    }

    /// Produces a batch of `records` records; `name` makes it transactional.
    pub(crate) fn produce(
        &mut self,
        name: Option<&str>,
        producer: Identity,
        partition: i32,
        sequence: i32,
        records: usize,
    ) {
        let version = if self.level >= 2 { 12 } else { 11 };
        self.produce_in(name, producer, partition, sequence, records, version);
    }

    /// As [`Player::produce`], in a version of the request.
    pub(crate) fn produce_in(
        &mut self,
        name: Option<&str>,
        producer: Identity,
        partition: i32,
        sequence: i32,
        records: usize,
        version: i16,
    ) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_millis() as i64;
        let mut builder = BatchBuilder::new(BatchOptions {
            producer_id: producer.0,
            producer_epoch: producer.1,
            base_sequence: sequence,
            transactional: name.is_some(),
            ..Default::default()
        });
        for n in 0..records {
            builder.append(now, None, Some(format!("value {n}").as_bytes()), []).expect("fits");
        }
        let records = Some(builder.finish().expect("a batch").freeze());
        let data = PartitionProduceData { index: partition, records, ..Default::default() };
        let topic = TopicProduceData {
            name: Str::from(&self.topic),
            topic_id: self.topic_id,
            partition_data: vec![data],
            ..Default::default()
        };
        let request = ProduceRequest {
            transactional_id: name.map(|name| Str::from(self.id(name))),
            acks: -1,
            timeout_ms: 10_000,
            topic_data: vec![topic],
            ..Default::default()
        };
        let answer = self.call(&request, version);
        let part = &answer.responses[0].partition_responses[0];
        let producer = (self.name_of(producer.0), producer.1);
        let (code, base, start) = (part.error_code, part.base_offset, part.log_start_offset);
        self.say(format!(
            "produce v{version} {name:?} {producer:?} {partition} from {sequence} -> {code:?} at {base} of {start}"
        ));
    }

    /// EndTxn in the version of the cluster's level.
    pub(crate) fn end(&mut self, name: &str, producer: Identity, commit: bool) -> Identity {
        let version = if self.level >= 2 { 5 } else { 4 };
        self.end_in(name, producer, commit, version)
    }

    /// As [`Player::end`], in a version of the request.
    pub(crate) fn end_in(&mut self, name: &str, producer: Identity, commit: bool, version: i16) -> Identity {
        let request = EndTxnRequest {
            transactional_id: Str::from(self.id(name)),
            producer_id: producer.0,
            producer_epoch: producer.1,
            committed: commit,
            ..Default::default()
        };
        let answer = self.call(&request, version);
        let next = self.named(answer.producer_id);
        let producer = (self.name_of(producer.0), producer.1);
        self.say(format!(
            "end v{version} {name} {producer:?} commit {commit} -> {:?} {next} {}",
            answer.error_code, answer.producer_epoch
        ));
        if !name.is_empty() {
            self.settle(name);
        }
        (answer.producer_id, answer.producer_epoch)
    }

    /// WriteTxnMarkers of one partition.
    pub(crate) fn write_marker(&mut self, producer: Identity, how: &Marker) {
        let topic = WritableTxnMarkerTopic {
            name: Str::from(how.topic.unwrap_or(&self.topic)),
            partition_indexes: vec![how.partition],
            ..Default::default()
        };
        let marker = WritableTxnMarker {
            producer_id: producer.0,
            producer_epoch: producer.1,
            transaction_result: how.commit,
            topics: vec![topic],
            coordinator_epoch: how.coordinator_epoch,
            transaction_version: if how.version < 2 { 0 } else { how.level },
            ..Default::default()
        };
        let request = WriteTxnMarkersRequest { markers: vec![marker], ..Default::default() };
        let answer = self.call(&request, how.version);
        let codes: Vec<_> = answer
            .markers
            .iter()
            .flat_map(|marker| &marker.topics)
            .flat_map(|topic| topic.partitions.iter().map(|p| (p.partition_index, p.error_code)))
            .collect();
        let producer = (self.name_of(producer.0), producer.1);
        self.say(format!("marker {producer:?} {how:?} -> {codes:?}"));
    }
}
