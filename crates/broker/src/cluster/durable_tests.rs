//! Tests of what outlives a restart: replaying the changes gives the live state, in every test that speaks in frames.

use super::super::tests::Client;
use super::*;
use crate::share_partition::{SharePartition, StoredBatch};
use kafka_share_messages::add_partitions_to_txn_request::AddPartitionsToTxnTopic;
use kafka_share_messages::delete_records_request::{DeleteRecordsPartition, DeleteRecordsTopic};
use kafka_share_messages::produce_request::{PartitionProduceData, TopicProduceData};
use kafka_share_messages::{
    AddPartitionsToTxnRequest, DeleteRecordsRequest, EndTxnRequest, ErrorCode, InitProducerIdRequest, ProduceRequest,
    ShareGroupHeartbeatRequest,
};
use kafka_share_wire::records::{BatchBuilder, BatchOptions};

/// A directory's contents, without a directory.
#[derive(Debug, Default)]
pub(crate) struct Model(Saved);

impl Model {
    pub(crate) fn restore(&self, config: &ClusterConfig, now: Now) -> Cluster {
        Cluster::restore(config.clone(), 1, now, self.0.clone()).unwrap()
    }

    fn apply(&mut self, changes: Changes) {
        for (key, value) in changes.values {
            match value {
                Some(value) => self.0.values.insert(key, value),
                None => self.0.values.remove(&key),
            };
        }
        for (id, change) in changes.logs {
            match change {
                LogChange::Append(bytes) => {
                    let log = self.0.logs.entry(id).or_default();
                    *log = Bytes::from([&log[..], &bytes[..]].concat());
                }
                LogChange::Rewrite(bytes) => {
                    self.0.logs.insert(id, bytes);
                }
                LogChange::Remove => {
                    self.0.logs.remove(&id);
                }
            }
        }
    }
}

/// How records were batched does not matter.
fn merged(batches: Vec<StoredBatch>) -> Vec<StoredBatch> {
    let mut all: Vec<StoredBatch> = Vec::new();
    for batch in batches {
        match all.last_mut() {
            Some(last) if (last.state, last.count, last.last + 1) == (batch.state, batch.count, batch.first) => {
                last.last = batch.last;
            }
            _ => all.push(batch),
        }
    }
    all
}

/// All that outlives a restart.
fn export(cluster: &mut Cluster) -> Saved {
    let mut all = Saved::default();
    let mut put = |key: Key, value: Bytes| all.values.insert(key, value);
    let mut out = Encoder::default();
    out.text(&cluster.cluster_id).i64(cluster.starts).i64(cluster.transactions.next_producer_id());
    put(Key::Cluster, out.finish());
    for (group, overrides) in &cluster.group_overrides {
        let mut out = Encoder::default();
        put_overrides(&mut out, overrides);
        put(Key::GroupConfig(Str::from(group)), out.finish());
    }
    for txn in cluster.transactions.iter() {
        put(Key::Txn(txn.id.clone()), txn.encode());
    }
    for (name, group) in cluster.share.groups.iter() {
        put(Key::Group(name.clone()), group.encode());
    }
    let groups: Vec<Str> = cluster.share.groups.iter().map(|(name, _)| name.clone()).chain([Str::from("g")]).collect();
    for group in groups {
        let keys: Vec<ShareKey> = cluster.share.store.of_group(&group).cloned().collect();
        for key in keys {
            let mut state = cluster.share.stored_state(&key).unwrap();
            if state.start_offset >= 0 {
                state.batches = merged(SharePartition::restore(state.start_offset, &state.batches).snapshot());
            }
            put(Key::Share(key.group, key.topic, key.partition), state.encode());
        }
    }
    let mut logs = Vec::new();
    for topic in cluster.topics.iter() {
        put(Key::Topic(topic.id), encode_topic(topic));
        for (index, partition) in topic.partitions.iter().enumerate() {
            let id = (topic.id, index as i32);
            put(Key::Log(id), partition.log.snapshot());
            logs.push((id, partition.log.all_batches()));
        }
    }
    all.logs.extend(logs);
    all
}

/// Takes the changes and compares what they lead to with what is.
pub(crate) fn check_replay(cluster: &mut Cluster, now: Now, model: &mut Model) {
    model.apply(cluster.take_changes());
    let mut again = model.restore(&cluster.config, now);
    let (live, replayed) = (export(cluster), export(&mut again));
    for (key, value) in &live.values {
        assert_eq!(Some(value), replayed.values.get(key), "{key:?}");
    }
    assert_eq!(live, replayed);
}

fn records(options: BatchOptions, count: u64) -> Bytes {
    let mut builder = BatchBuilder::new(options);
    for i in 0..count {
        builder.append(1_700_000_000_000, Some(&i.to_be_bytes()), Some(&[7; 100]), []).unwrap();
    }
    builder.finish().unwrap().freeze()
}

/// A program that does anything, under a seed.
struct Chaos {
    client: Client,
    rng: Rng,
    producers: Vec<Producer>,
}

struct Producer {
    name: Str,
    identity: (i64, i16),
    sequence: std::collections::HashMap<LogId, i32>,
    open: bool,
}

impl Chaos {
    fn new(seed: u64) -> Self {
        let client = Client::with(2, |config| config.internal_partitions = 2);
        let producers = (0..3).map(|i| Producer {
            name: Str::from(format!("p{i}")),
            identity: (-1, -1),
            sequence: std::collections::HashMap::new(),
            open: false,
        });
        Chaos { client, rng: Rng::new(seed), producers: producers.collect() }
    }

    fn below(&mut self, n: u64) -> u64 {
        self.rng.next_u64() % n
    }

    /// Calls the node that leads or coordinates.
    fn on(&mut self, node: i32) -> crate::ConnId {
        self.client.connect(node)
    }

    fn coordinator(&mut self, name: &Str) -> crate::ConnId {
        let node = self.client.cluster.coordinator_node(crate::CoordinatorKind::Transaction, name);
        self.on(node)
    }

    fn step(&mut self) {
        match self.below(12) {
            0 => {
                let name = format!("t{}", self.below(3));
                match self.client.cluster.topic_id(&name) {
                    Some(id) if self.below(4) == 0 => self.client.cluster.delete_topic(self.client.now, id),
                    Some(id) => self.client.cluster.grow_topic(id, 3),
                    None => {
                        self.client.create_topic(&name, 2);
                    }
                }
            }
            1 => self.init(),
            2..=6 => self.produce(),
            7 | 8 => self.end(),
            9 => self.delete_records(),
            10 => self.heartbeat(),
            _ => {
                let topic = format!("t{}", self.below(3));
                let node = 1 + self.below(2) as i32;
                self.client.cluster.move_leader(self.client.now, &topic, 0, node);
            }
        }
    }

    fn init(&mut self) {
        let which = self.below(3) as usize;
        let name = self.producers[which].name.clone();
        let conn = self.coordinator(&name);
        let request = InitProducerIdRequest {
            transactional_id: Some(name),
            transaction_timeout_ms: 60_000,
            producer_id: -1,
            producer_epoch: -1,
            ..Default::default()
        };
        let response = self.client.call_on(conn, &request, 5);
        if response.error_code.is_ok() {
            let producer = &mut self.producers[which];
            producer.identity = (response.producer_id, response.producer_epoch);
            producer.sequence.clear();
            producer.open = false;
        }
    }

    fn produce(&mut self) {
        let which = self.below(4) as usize;
        let name = format!("t{}", self.below(3));
        let Some(topic) = self.client.cluster.topic_id(&name) else { return };
        let (index, count) = (self.below(2) as i32, 1 + self.below(4));
        let conn = self.on(self.client.cluster.leader_of(topic, index).0);
        let mut options = BatchOptions::default();
        if let Some(producer) = self.producers.get_mut(which) {
            if producer.identity.0 < 0 {
                return;
            }
            let sequence = *producer.sequence.entry((topic, index)).or_default();
            (options.producer_id, options.producer_epoch) = producer.identity;
            (options.base_sequence, options.transactional) = (sequence, true);
        }
        let data = PartitionProduceData { index, records: Some(records(options, count)), ..Default::default() };
        let topics = TopicProduceData { topic_id: topic, partition_data: vec![data], ..Default::default() };
        let transactional_id = self.producers.get(which).map(|producer| producer.name.clone());
        let request = ProduceRequest {
            transactional_id,
            acks: -1,
            timeout_ms: 1000,
            topic_data: vec![topics],
            ..Default::default()
        };
        let response = self.client.call_on(conn, &request, 13);
        let code = response.responses[0].partition_responses[0].error_code;
        if let Some(producer) = self.producers.get_mut(which).filter(|_| code.is_ok()) {
            *producer.sequence.entry((topic, index)).or_default() += count as i32;
            producer.open = true;
        }
    }

    fn end(&mut self) {
        let which = self.below(3) as usize;
        let commit = self.below(2) == 0;
        let Producer { name, identity, open, .. } = &self.producers[which];
        let (name, identity, open) = (name.clone(), *identity, *open);
        if !open {
            return;
        }
        let conn = self.coordinator(&name);
        let request = EndTxnRequest {
            transactional_id: name,
            producer_id: identity.0,
            producer_epoch: identity.1,
            committed: commit,
            ..Default::default()
        };
        let response = self.client.call_on(conn, &request, 5);
        if response.error_code.is_ok() {
            let producer = &mut self.producers[which];
            producer.identity = (response.producer_id, response.producer_epoch);
            producer.sequence.clear();
            producer.open = false;
        }
    }

    fn delete_records(&mut self) {
        let name = format!("t{}", self.below(3));
        let Some(topic) = self.client.cluster.topic_id(&name) else { return };
        let log = &self.client.cluster.topics.by_id(topic).unwrap().partitions[0].log;
        let (start, end) = (log.start_offset(), log.high_watermark());
        let offset = start + self.below((end - start + 1) as u64) as i64;
        let conn = self.on(self.client.cluster.leader_of(topic, 0).0);
        let partition = DeleteRecordsPartition { partition_index: 0, offset, ..Default::default() };
        let topic = DeleteRecordsTopic { name: Str::from(name), partitions: vec![partition], ..Default::default() };
        self.client.call_on(conn, &DeleteRecordsRequest { topics: vec![topic], ..Default::default() }, 2);
    }

    fn heartbeat(&mut self) {
        let node = self.client.cluster.coordinator_node(crate::CoordinatorKind::Group, "g");
        let conn = self.on(node);
        let topics = (0..1 + self.below(3)).map(|i| Str::from(format!("t{i}"))).collect();
        let beat = ShareGroupHeartbeatRequest {
            group_id: Str::from_static("g"),
            member_id: Str::from(format!("m{}", self.below(3))),
            member_epoch: if self.below(4) == 0 { -1 } else { 0 },
            subscribed_topic_names: Some(topics),
            ..Default::default()
        };
        self.client.call_on(conn, &beat, 1);
    }
}

/// `Client` compares after each request; this makes the requests.
#[test]
fn replaying_all_changes_gives_the_live_state() {
    for seed in 0..12 {
        let mut chaos = Chaos::new(seed);
        for _ in 0..120 {
            chaos.step();
        }
        let bytes = chaos.client.cluster.log_bytes;
        assert!(bytes > 0, "seed {seed} wrote nothing");
        chaos.client.restart();
        assert_eq!(chaos.client.cluster.log_bytes, bytes);
    }
}

/// What clients see of a restart: new leader epochs, the same records, and sequence numbers still known.
#[test]
fn a_restart_keeps_records_and_recognises_repeated_batches() {
    let mut client = Client::new(1);
    let topic = client.create_topic("t", 1);
    let options = BatchOptions { producer_id: 4, producer_epoch: 0, base_sequence: 0, ..Default::default() };
    let request = |records| {
        let data = PartitionProduceData { records: Some(records), ..Default::default() };
        let topics = TopicProduceData { topic_id: topic, partition_data: vec![data], ..Default::default() };
        ProduceRequest { acks: -1, timeout_ms: 1000, topic_data: vec![topics], ..Default::default() }
    };
    let produce = |client: &mut Client, sequence: i32| {
        let options = BatchOptions { base_sequence: sequence, ..options };
        let response = client.call(&request(records(options, 3)));
        let partition = &response.responses[0].partition_responses[0];
        (partition.error_code, partition.base_offset)
    };
    assert_eq!(produce(&mut client, 0), (ErrorCode::NONE, 0));
    assert_eq!(produce(&mut client, 3), (ErrorCode::NONE, 3));
    let epoch = client.cluster.leader_of(topic, 0).1;
    client.restart();
    assert_eq!(client.cluster.leader_of(topic, 0).1, epoch + 1);
    assert_eq!(produce(&mut client, 3), (ErrorCode::NONE, 3), "the repeated batch has its first offset");
    assert_eq!(produce(&mut client, 6), (ErrorCode::NONE, 6));
    assert_eq!(produce(&mut client, 20).0, ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER);
}

#[test]
fn a_decided_transaction_is_completed_after_a_restart_and_an_open_one_times_out() {
    for decided in [true, false] {
        let mut client = Client::with(1, |config| config.marker_delay_ms = 1000);
        let topic = client.create_topic("t", 1);
        let init = InitProducerIdRequest {
            transactional_id: Some(Str::from_static("x")),
            transaction_timeout_ms: 60_000,
            producer_id: -1,
            producer_epoch: -1,
            ..Default::default()
        };
        let identity = client.call_on(client.conn, &init, 5);
        let (producer_id, producer_epoch) = (identity.producer_id, identity.producer_epoch);
        let add = AddPartitionsToTxnRequest {
            v3_and_below_transactional_id: Str::from_static("x"),
            v3_and_below_producer_id: producer_id,
            v3_and_below_producer_epoch: producer_epoch,
            v3_and_below_topics: vec![AddPartitionsToTxnTopic {
                name: Str::from_static("t"),
                partitions: vec![0],
                ..Default::default()
            }],
            ..Default::default()
        };
        let added = client.call_on(client.conn, &add, 3);
        assert_eq!(
            added.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code,
            ErrorCode::NONE
        );
        let options =
            BatchOptions { producer_id, producer_epoch, base_sequence: 0, transactional: true, ..Default::default() };
        let data = PartitionProduceData { records: Some(records(options, 2)), ..Default::default() };
        let topics = TopicProduceData { name: Str::from_static("t"), partition_data: vec![data], ..Default::default() };
        let request = ProduceRequest {
            transactional_id: Some(Str::from_static("x")),
            acks: -1,
            timeout_ms: 1000,
            topic_data: vec![topics],
            ..Default::default()
        };
        client.call_on(client.conn, &request, 11);
        if decided {
            let end = EndTxnRequest {
                transactional_id: Str::from_static("x"),
                producer_id,
                producer_epoch,
                committed: true,
                ..Default::default()
            };
            assert_eq!(client.call_on(client.conn, &end, 4).error_code, ErrorCode::NONE);
        }
        let log = |client: &Client| {
            let log = &client.cluster.topics.by_id(topic).unwrap().partitions[0].log;
            (log.last_stable_offset(), log.high_watermark(), log.aborted(0, 9).len())
        };
        assert_eq!(log(&client), (0, 2, 0), "no marker yet");
        client.restart();
        assert_eq!(log(&client), if decided { (3, 3, 0) } else { (0, 2, 0) });
        if !decided {
            // The rest of its minute, then the abort's marker a second later.
            client.advance(61_000);
            client.advance(1_000);
            assert_eq!(log(&client), (3, 3, 1));
        }
    }
}
