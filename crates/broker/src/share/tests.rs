//! Tests of share groups on frames: sessions, fetches that wait, acknowledgements, leaders that move.

use crate::cluster::tests::Client;
use crate::log::{AppendRequest, Marker};
use crate::settings::{Change, GROUP_DEFINITIONS, change};
use crate::share_coordinator::ShareKey;
use crate::{ClusterConfig, ConnId};
use bytes::Bytes;
use kafka_share_messages::share_acknowledge_request as ack_request;
use kafka_share_messages::share_fetch_request::{AcknowledgementBatch, FetchPartition, FetchTopic, ForgottenTopic};
use kafka_share_messages::share_fetch_response::PartitionData;
use kafka_share_messages::{
    ErrorCode, ShareAcknowledgeRequest, ShareAcknowledgeResponse, ShareFetchRequest, ShareFetchResponse,
    ShareGroupHeartbeatRequest,
};
use kafka_share_wire::records::{BatchBuilder, BatchOptions};
use kafka_share_wire::{Str, Uuid};

/// A cluster with one topic `t`, its leader on node 1.
pub(super) struct World {
    pub(super) client: Client,
    pub(super) topic: Uuid,
}

pub(super) type Acks<'a> = &'a [(i64, i64, &'a [i8])];

impl World {
    pub(super) fn new(nodes: i32, partitions: i32) -> Self {
        Self::with(nodes, partitions, |_| {})
    }

    pub(super) fn with(nodes: i32, partitions: i32, change: impl FnOnce(&mut ClusterConfig)) -> Self {
        let mut client = Client::with(nodes, change);
        let topic = client.create_topic("t", partitions);
        let mut world = World { client, topic };
        for partition in 0..partitions {
            world.client.cluster.move_leader(world.client.now, "t", partition, 1);
        }
        world.set("share.auto.offset.reset", "earliest");
        world.initialize("g");
        world
    }

    /// What a member's subscription does.
    fn initialize(&mut self, group: &'static str) {
        let count = self.client.cluster.topics.by_id(self.topic).unwrap().partitions.len() as i32;
        for partition in 0..count {
            let key = ShareKey { group: Str::from_static(group), topic: self.topic, partition };
            self.client.cluster.share.store.initialize(&key, -1);
        }
    }

    pub(super) fn set(&mut self, name: &str, value: &str) {
        let mut overrides = self.client.cluster.group_overrides("g").cloned().unwrap_or_default();
        change(GROUP_DEFINITIONS, &mut overrides, name, Change::Set, Some(value)).unwrap();
        self.client.cluster.set_group_overrides("g", overrides);
    }

    pub(super) fn produce(&mut self, partition: i32, records: usize) {
        self.append(partition, records, BatchOptions::default());
    }

    pub(super) fn append(&mut self, partition: i32, records: usize, options: BatchOptions) {
        let mut builder = BatchBuilder::new(options);
        for _ in 0..records {
            builder.append(self.client.now.wall_ms, None, Some(b"value"), []).unwrap();
        }
        let records = builder.finish().unwrap().freeze();
        let now_ms = self.client.now.wall_ms;
        let topic = self.client.cluster.topics.by_id_mut(self.topic).unwrap();
        let config = topic.config;
        let request = AppendRequest {
            records: &records,
            config: &config,
            leader_epoch: 0,
            now_ms,
            in_transaction: true,
            epoch_per_transaction: false,
        };
        let log = &mut topic.partition_mut(partition).unwrap().log;
        let before = log.bytes();
        log.append(&request).unwrap();
        self.client.cluster.log_bytes += log.bytes() - before;
        self.wake(partition);
    }

    fn mark(&mut self, partition: i32, producer_id: i64, committed: bool) {
        let marker = Marker { producer_id, epoch: 0, committed, coordinator_epoch: 0, epoch_per_transaction: false };
        let now_ms = self.client.now.wall_ms;
        let topic = self.client.cluster.topics.by_id_mut(self.topic).unwrap();
        topic.partition_mut(partition).unwrap().log.append_marker(&marker, 0, now_ms).unwrap();
        self.wake(partition);
    }

    fn wake(&mut self, partition: i32) {
        self.client.cluster.wake(&crate::cluster::WaitKey::Partition(self.topic, partition));
        self.client.cluster.run_woken(self.client.now);
    }

    fn request(&self, member: &str, epoch: i32, partitions: &[(i32, Acks<'_>)]) -> ShareFetchRequest {
        let batches = |acks: Acks<'_>| {
            let batch = |(first, last, types): &(i64, i64, &[i8])| AcknowledgementBatch {
                first_offset: *first,
                last_offset: *last,
                acknowledge_types: types.to_vec(),
                ..Default::default()
            };
            acks.iter().map(batch).collect()
        };
        let partition = |(index, acks): &(i32, Acks<'_>)| FetchPartition {
            partition_index: *index,
            acknowledgement_batches: batches(acks),
            ..Default::default()
        };
        let topic = FetchTopic {
            topic_id: self.topic,
            partitions: partitions.iter().map(partition).collect(),
            ..Default::default()
        };
        ShareFetchRequest {
            group_id: Some(Str::from_static("g")),
            member_id: Some(Str::from(member)),
            share_session_epoch: epoch,
            min_bytes: 1,
            max_bytes: 1 << 20,
            max_records: 500,
            batch_size: 500,
            topics: if partitions.is_empty() { Vec::new() } else { vec![topic] },
            ..Default::default()
        }
    }

    pub(super) fn fetch_on(
        &mut self,
        conn: ConnId,
        member: &str,
        epoch: i32,
        parts: &[(i32, Acks<'_>)],
    ) -> ShareFetchResponse {
        let request = self.request(member, epoch, parts);
        self.client.call_on(conn, &request, 2)
    }

    pub(super) fn fetch(&mut self, member: &str, epoch: i32, parts: &[(i32, Acks<'_>)]) -> ShareFetchResponse {
        self.fetch_on(self.client.conn, member, epoch, parts)
    }

    pub(super) fn ack(&mut self, member: &str, epoch: i32, partition: i32, acks: Acks<'_>) -> ShareAcknowledgeResponse {
        let batch = |(first, last, types): &(i64, i64, &[i8])| ack_request::AcknowledgementBatch {
            first_offset: *first,
            last_offset: *last,
            acknowledge_types: types.to_vec(),
            ..Default::default()
        };
        let partition = ack_request::AcknowledgePartition {
            partition_index: partition,
            acknowledgement_batches: acks.iter().map(batch).collect(),
            ..Default::default()
        };
        let topic =
            ack_request::AcknowledgeTopic { topic_id: self.topic, partitions: vec![partition], ..Default::default() };
        let request = ShareAcknowledgeRequest {
            group_id: Some(Str::from_static("g")),
            member_id: Some(Str::from(member)),
            share_session_epoch: epoch,
            topics: if acks.is_empty() { Vec::new() } else { vec![topic] },
            ..Default::default()
        };
        self.client.call(&request)
    }

    pub(super) fn held(&self) -> (i64, i64) {
        let dump = self.client.cluster.share_dump();
        let sum = |f: fn(&crate::SharePartitionDump) -> i64| dump.partitions.iter().map(f).sum();
        (sum(|p| p.acquired), sum(|p| p.pending))
    }
}

fn parts(response: &ShareFetchResponse) -> Vec<&PartitionData> {
    assert_eq!(response.error_code, ErrorCode::NONE, "{:?}", response.error_message);
    response.responses.iter().flat_map(|topic| &topic.partitions).collect()
}

pub(super) fn ranges(response: &ShareFetchResponse) -> Vec<(i32, i64, i64, i16)> {
    let of = |p: &&PartitionData| {
        assert_eq!(p.error_code, ErrorCode::NONE);
        let index = p.partition_index;
        let range = move |a: &kafka_share_messages::share_fetch_response::AcquiredRecords| {
            (index, a.first_offset, a.last_offset, a.delivery_count)
        };
        p.acquired_records.iter().map(range).collect::<Vec<_>>()
    };
    parts(response).iter().flat_map(of).collect()
}

pub(super) fn ack_code(response: &ShareAcknowledgeResponse) -> ErrorCode {
    assert_eq!(response.error_code, ErrorCode::NONE);
    response.responses[0].partitions[0].error_code
}

#[test]
fn records_come_whole_and_acknowledged_ones_never_again() {
    let mut world = World::new(1, 1);
    world.produce(0, 10);
    world.produce(0, 5);
    let first = world.fetch("m", 0, &[(0, &[])]);
    assert_eq!(ranges(&first), [(0, 0, 14, 1)]);
    assert_eq!(first.acquisition_lock_timeout_ms, 30_000);
    let bytes: Bytes = parts(&first)[0].records.clone().unwrap();
    assert_eq!(kafka_share_wire::records::BatchIter::new(bytes).count(), 2);
    let second = world.fetch("m", 1, &[(0, &[(0, 9, &[1]), (10, 14, &[2])])]);
    assert_eq!(parts(&second)[0].acknowledge_error_code, ErrorCode::NONE);
    assert_eq!(ranges(&second), [(0, 10, 14, 2)]);
}

#[test]
fn r170_acknowledgements_at_epoch_0_do_not_harm_the_session() {
    let mut world = World::new(1, 1);
    world.produce(0, 3);
    world.fetch("m", 0, &[(0, &[])]);
    let refused = world.fetch("m", 0, &[(0, &[(0, 0, &[1])])]);
    assert_eq!(refused.error_code, ErrorCode::INVALID_REQUEST);
    assert_eq!(world.ack("m", 0, 0, &[(0, 0, &[1])]).error_code, ErrorCode::INVALID_SHARE_SESSION_EPOCH);
    assert_eq!(ack_code(&world.ack("m", 1, 0, &[(0, 0, &[1])])), ErrorCode::NONE);
    assert_eq!(world.held(), (2, 0));
}

#[test]
fn r170_the_form_of_acknowledgements_is_checked() {
    let bad: &[Acks<'_>] = &[
        &[(3, 2, &[1])],
        &[(2, 3, &[1]), (0, 1, &[1])],
        &[(0, 2, &[1]), (1, 3, &[1])],
        &[(0, 2, &[])],
        &[(0, 2, &[1, 1])],
        &[(0, 2, &[5])],
        &[(0, 2, &[4])],
        &[(0, 2, &[-1])],
    ];
    let mut world = World::new(1, 1);
    world.produce(0, 5);
    world.fetch("m", 0, &[(0, &[])]);
    for (epoch, acks) in bad.iter().enumerate() {
        let epoch = epoch as i32 + 1;
        assert_eq!(ack_code(&world.ack("m", epoch, 0, acks)), ErrorCode::INVALID_REQUEST, "{acks:?}");
    }
    let all = world.ack("m", bad.len() as i32 + 1, 0, &[(0, 4, &[1, 3, 2, 0, 1])]);
    assert_eq!(ack_code(&all), ErrorCode::NONE, "one type per offset");
    assert_eq!(world.held(), (0, 0));
}

#[test]
fn r170_acknowledgements_come_before_forgotten_partitions() {
    let mut world = World::new(1, 1);
    world.produce(0, 5);
    world.fetch("m", 0, &[(0, &[])]);
    let mut request = world.request("m", 1, &[(0, &[(0, 4, &[1])])]);
    let forgotten = ForgottenTopic { topic_id: world.topic, partitions: vec![0], ..Default::default() };
    request.forgotten_topics_data = vec![forgotten];
    let response = world.client.call_on(world.client.conn, &request, 2);
    assert_eq!(parts(&response)[0].acknowledge_error_code, ErrorCode::NONE);
    assert_eq!(world.held(), (0, 0));
    world.produce(0, 5);
    assert_eq!(ranges(&world.fetch("m", 2, &[])), [], "no longer part of the session");
}

//= SHARE-SESSION-16
#[test]
fn r170_limits_of_sessions_and_locks_and_the_default_reset() {
    let mut world = World::with(1, 1, |config| config.groups.max_share_sessions = 1);
    world.produce(0, 1_500);
    world.produce(0, 1_500);
    let mut request = world.request("m", 0, &[(0, &[])]);
    request.max_records = 10_000;
    let got = world.client.call_on(world.client.conn, &request, 2);
    assert_eq!(ranges(&got), [(0, 0, 1_499, 1), (0, 1_500, 2_999, 1)], "2,000 locks, but batches stay whole");
    world.produce(0, 10);
    assert_eq!(ranges(&world.fetch("m", 1, &[])), []);
    assert_eq!(world.fetch("n", 0, &[(0, &[])]).error_code, ErrorCode::SHARE_SESSION_LIMIT_REACHED);
    world.fetch("m", -1, &[]);
    world.client.cluster.set_group_overrides("g", std::collections::BTreeMap::new());
    world.initialize("other");
    let latest = ShareFetchRequest { group_id: Some("other".into()), ..world.request("n", 0, &[(0, &[])]) };
    let got = world.client.call_on(world.client.conn, &latest, 2);
    assert_eq!(ranges(&got), [], "the default reset is latest");
}

#[test]
fn session_epochs_are_checked() {
    let mut world = World::new(1, 1);
    assert_eq!(world.fetch("m", 1, &[]).error_code, ErrorCode::SHARE_SESSION_NOT_FOUND);
    assert_eq!(world.fetch("m", -1, &[]).error_code, ErrorCode::SHARE_SESSION_NOT_FOUND);
    world.fetch("m", 0, &[(0, &[])]);
    assert_eq!(world.fetch("m", 2, &[]).error_code, ErrorCode::INVALID_SHARE_SESSION_EPOCH);
    assert_eq!(world.fetch("m", 1, &[]).error_code, ErrorCode::NONE);
    assert_eq!(world.ack("m", 1, 0, &[]).error_code, ErrorCode::INVALID_SHARE_SESSION_EPOCH);
    assert_eq!(world.ack("m", 2, 0, &[]).error_code, ErrorCode::NONE);
    assert_eq!(world.ack("m", -1, 0, &[]).error_code, ErrorCode::NONE);
    assert_eq!(world.fetch("m", 3, &[]).error_code, ErrorCode::SHARE_SESSION_NOT_FOUND);
}

#[test]
fn r172_closing_a_session_frees_only_what_that_node_leads() {
    let mut world = World::new(2, 2);
    world.client.cluster.move_leader(world.client.now, "t", 1, 2);
    let second = world.client.connect(2);
    world.produce(0, 5);
    world.produce(1, 5);
    assert_eq!(ranges(&world.fetch("m", 0, &[(0, &[])])), [(0, 0, 4, 1)]);
    assert_eq!(ranges(&world.fetch_on(second, "m", 0, &[(1, &[])])), [(1, 0, 4, 1)]);
    world.fetch("m", -1, &[]);
    assert_eq!(world.held(), (5, 0));
    assert_eq!(ranges(&world.fetch("n", 0, &[(0, &[])])), [(0, 0, 4, 2)]);
    assert_eq!(ranges(&world.fetch_on(second, "n", 0, &[(1, &[])])), []);
}

#[test]
fn r173_an_empty_topic_list_means_the_whole_session() {
    let mut world = World::new(1, 3);
    world.fetch("m", 0, &[(0, &[]), (1, &[])]);
    world.fetch("m", 1, &[(2, &[])]);
    for partition in 0..3 {
        world.produce(partition, 2);
    }
    let mut got = ranges(&world.fetch("m", 2, &[]));
    got.sort_unstable();
    assert_eq!(got, [(0, 0, 1, 1), (1, 0, 1, 1), (2, 0, 1, 1)]);
}

#[test]
fn r173_read_committed_waits_for_the_stable_offset_and_skips_aborted_records() {
    let mut world = World::new(1, 1);
    world.set("share.isolation.level", "read_committed");
    let txn = |sequence| BatchOptions {
        producer_id: 9,
        producer_epoch: 0,
        base_sequence: sequence,
        transactional: true,
        ..BatchOptions::default()
    };
    world.produce(0, 2);
    world.append(0, 3, txn(0));
    world.produce(0, 1);
    assert_eq!(ranges(&world.fetch("m", 0, &[(0, &[])])), [(0, 0, 1, 1)]);
    world.mark(0, 9, false);
    let got = ranges(&world.fetch("m", 1, &[(0, &[(0, 1, &[1])])]));
    assert_eq!(got, [(0, 5, 6, 1)], "without the aborted 2 to 4, with the marker at 6, which clients answer as a gap");
    assert_eq!(ack_code(&world.ack("m", 2, 0, &[(5, 6, &[1, 0])])), ErrorCode::NONE);
    assert_eq!(world.client.cluster.share_dump().partitions[0].start_offset, 7);
}

#[test]
fn r175_a_new_topic_of_the_same_name_starts_afresh() {
    let mut world = World::new(1, 1);
    world.produce(0, 5);
    world.fetch("m", 0, &[(0, &[])]);
    world.client.cluster.delete_topic(world.client.now, world.topic);
    assert_eq!(world.held(), (0, 0));
    let stale = world.ack("m", 1, 0, &[(0, 4, &[1])]);
    assert_eq!(ack_code(&stale), ErrorCode::UNKNOWN_TOPIC_ID);
    world.topic = world.client.create_topic("t", 1);
    world.initialize("g");
    world.produce(0, 3);
    assert_eq!(ranges(&world.fetch("m", 2, &[(0, &[])]).clone_without_errors()), [(0, 0, 2, 1)]);
}

/// Drops partitions with errors, for sessions that still hold a topic that is gone.
trait WithoutErrors {
    fn clone_without_errors(&self) -> Self;
}

impl WithoutErrors for ShareFetchResponse {
    fn clone_without_errors(&self) -> Self {
        let mut copy = self.clone();
        for topic in &mut copy.responses {
            topic.partitions.retain(|p| p.error_code.is_ok());
        }
        copy
    }
}

#[test]
fn r178_locks_end_with_the_session_and_with_the_connection() {
    let mut world = World::new(1, 1);
    world.produce(0, 5);
    world.fetch("m", 0, &[(0, &[])]);
    world.ack("m", -1, 0, &[]);
    assert_eq!(world.held(), (0, 0));
    let other = world.client.connect(1);
    assert_eq!(ranges(&world.fetch_on(other, "n", 0, &[(0, &[])])), [(0, 0, 4, 2)]);
    world.client.cluster.disconnect(world.client.now, other);
    assert_eq!(world.held(), (0, 0));
    assert_eq!(world.client.cluster.share_dump().sessions, []);
    assert_eq!(ranges(&world.fetch("m", 0, &[(0, &[])])), [(0, 0, 4, 3)]);
}

#[test]
fn a_fetch_waits_for_records_releases_and_locks_that_end() {
    let mut world = World::new(1, 1);
    let waiting = |world: &World, member: &str, epoch| ShareFetchRequest {
        max_wait_ms: 60_000,
        ..world.request(member, epoch, &[(0, &[])])
    };
    let conn = world.client.connect(1);
    let request = waiting(&world, "m", 0);
    world.client.send_on(conn, &request, 2).unwrap();
    assert_eq!(world.client.receive::<ShareFetchRequest>(conn, 2), None);
    world.produce(0, 5);
    let produced = world.client.receive::<ShareFetchRequest>(conn, 2).unwrap();
    assert_eq!(ranges(&produced), [(0, 0, 4, 1)]);

    let request = waiting(&world, "n", 0);
    let other = world.client.connect(1);
    world.client.send_on(other, &request, 2).unwrap();
    assert_eq!(world.client.receive::<ShareFetchRequest>(other, 2), None);
    let release = world.request("m", 1, &[(0, &[(0, 1, &[2])])]);
    let conn_answer = world.client.call_on(conn, &ShareFetchRequest { max_records: 0, ..release }, 2);
    assert_eq!(conn_answer.error_code, ErrorCode::NONE);
    let released = world.client.receive::<ShareFetchRequest>(other, 2).unwrap();
    assert_eq!(ranges(&released), [(0, 0, 1, 2)]);

    let request = waiting(&world, "n", 1);
    world.client.send_on(other, &request, 2).unwrap();
    world.client.advance(29_999);
    assert_eq!(world.client.receive::<ShareFetchRequest>(other, 2), None);
    world.client.advance(1);
    let expired = world.client.receive::<ShareFetchRequest>(other, 2).unwrap();
    assert_eq!(ranges(&expired), [(0, 0, 1, 3), (0, 2, 4, 2)]);

    let request = waiting(&world, "m", 2);
    world.client.send_on(conn, &ShareFetchRequest { max_wait_ms: 500, ..request }, 2).unwrap();
    world.client.advance(500);
    let empty = world.client.receive::<ShareFetchRequest>(conn, 2).unwrap();
    assert_eq!(ranges(&empty), []);
}

#[test]
fn a_fetch_that_outlives_its_session_acquires_nothing() {
    let mut world = World::new(1, 1);
    let conn = world.client.connect(1);
    let request = ShareFetchRequest { max_wait_ms: 60_000, ..world.request("m", 0, &[(0, &[])]) };
    world.client.send_on(conn, &request, 2).unwrap();
    world.fetch("m", -1, &[]);
    world.produce(0, 5);
    let answer = world.client.receive::<ShareFetchRequest>(conn, 2).unwrap();
    assert_eq!((ranges(&answer), world.held()), (Vec::new(), (0, 0)));
}

//= SHARE-FETCH-21
#[test]
fn a_leader_that_moves_ends_locks_and_is_named() {
    let mut world = World::new(2, 1);
    world.produce(0, 5);
    world.fetch("m", 0, &[(0, &[])]);
    world.ack("m", 1, 0, &[(0, 1, &[1])]);
    let request = ShareFetchRequest { max_wait_ms: 60_000, ..world.request("m", 2, &[]) };
    let conn = world.client.conn;
    world.client.send_on(conn, &request, 2).unwrap();
    world.client.cluster.move_leader(world.client.now, "t", 0, 2);
    let told = world.client.receive::<ShareFetchRequest>(conn, 2).unwrap();
    let part = parts(&told)[0];
    assert_eq!(part.error_code, ErrorCode::NOT_LEADER_OR_FOLLOWER);
    assert_eq!((part.current_leader.leader_id, told.node_endpoints[0].node_id), (2, 2));
    let refused = world.ack("m", 3, 0, &[(2, 2, &[1])]);
    assert_eq!(ack_code(&refused), ErrorCode::NOT_LEADER_OR_FOLLOWER);
    assert_eq!(refused.node_endpoints[0].port, 9002);
    let second = world.client.connect(2);
    assert_eq!(ranges(&world.fetch_on(second, "m", 0, &[(0, &[])])), [(0, 2, 4, 1)]);
}

#[test]
fn renewals_need_a_quiet_request_and_keep_the_lock() {
    let mut world = World::new(1, 1);
    world.produce(0, 2);
    world.fetch("m", 0, &[(0, &[])]);
    let loud = ShareFetchRequest { is_renew_ack: true, ..world.request("m", 1, &[(0, &[(0, 1, &[4])])]) };
    let conn = world.client.conn;
    assert_eq!(world.client.call_on(conn, &loud, 2).error_code, ErrorCode::INVALID_REQUEST);
    world.client.advance(20_000);
    let quiet = ShareFetchRequest { max_bytes: 0, min_bytes: 0, max_records: 0, ..loud };
    let renewed = world.client.call_on(conn, &quiet, 2);
    assert_eq!(parts(&renewed)[0].acknowledge_error_code, ErrorCode::NONE);
    world.client.advance(29_999);
    assert_eq!(world.held(), (2, 0));
    world.client.advance(1);
    assert_eq!(world.held(), (0, 0));
}

//= SHARE-MEMBER-12
#[test]
fn a_member_that_is_silent_or_leaves_loses_its_session() {
    let mut world = World::new(1, 1);
    world.produce(0, 4);
    let beat = |epoch| ShareGroupHeartbeatRequest {
        group_id: Str::from_static("g"),
        member_id: Str::from_static("m"),
        member_epoch: epoch,
        subscribed_topic_names: (epoch == 0).then(|| vec![Str::from_static("t")]),
        ..Default::default()
    };
    let joined = world.client.call(&beat(0));
    assert_eq!((joined.error_code, joined.heartbeat_interval_ms), (ErrorCode::NONE, 5_000));
    let assigned = joined.assignment.unwrap().topic_partitions;
    assert_eq!((assigned[0].topic_id, assigned[0].partitions.as_slice()), (world.topic, &[0][..]));
    world.fetch("m", 0, &[(0, &[])]);
    assert_eq!(world.client.call(&beat(-1)).member_epoch, -1);
    assert_eq!(world.held(), (0, 0));
    world.client.call(&beat(0));
    world.set("share.record.lock.duration.ms", "60000");
    world.fetch("m", 0, &[(0, &[])]);
    world.client.advance(44_999);
    assert_eq!(world.held(), (4, 0));
    world.client.advance(1);
    assert_eq!(world.held(), (0, 0));
}

#[test]
fn records_are_shared_by_members_until_the_limit_of_each_request() {
    let mut world = World::new(1, 2);
    for _ in 0..10 {
        world.produce(0, 10);
        world.produce(1, 10);
    }
    let strict = |world: &World, member: &str| ShareFetchRequest {
        share_acquire_mode: 1,
        max_records: 25,
        ..world.request(member, 0, &[(0, &[]), (1, &[])])
    };
    let conn = world.client.conn;
    let request = strict(&world, "a");
    let a = ranges(&world.client.call_on(conn, &request, 2));
    assert_eq!(a, [(0, 0, 24, 1)], "all partitions together keep to the limit");
    let request = strict(&world, "b");
    assert_eq!(ranges(&world.client.call_on(conn, &request, 2)), [(0, 25, 29, 1), (0, 30, 49, 1)]);
}

#[test]
fn what_changes_stored_state_is_marked() {
    let mut world = World::new(2, 1);
    world.client.replay = false;
    world.client.cluster.share.track_changes();
    let key = ShareKey { group: Str::from_static("g"), topic: world.topic, partition: 0 };
    let changed = |world: &mut World| {
        let keys = world.client.cluster.share.changed();
        (!keys.is_empty()).then(|| {
            assert!(keys.iter().eq([&key]));
            world.client.cluster.share.stored_state(&key).map(|state| (state.start_offset, state.batches.len()))
        })
    };
    world.produce(0, 10);
    world.fetch("m", 0, &[(0, &[])]);
    assert_eq!(changed(&mut world), Some(Some((-1, 0))), "acquiring is not stored, and so is not the start");
    world.ack("m", 1, 0, &[(0, 3, &[1])]);
    assert_eq!(changed(&mut world), Some(Some((0, 2))), "a write carries the start from before its effect");
    world.produce(0, 1);
    world.fetch("m", 2, &[]);
    assert_eq!(changed(&mut world), None, "acquiring is not stored");
    world.client.advance(30_000);
    assert_eq!(changed(&mut world), Some(Some((4, 1))), "locks are over, deliveries count");
    world.client.cluster.move_leader(world.client.now, "t", 0, 2);
    assert_eq!(changed(&mut world), Some(Some((4, 1))));
    let stored = world.client.cluster.share.stored_state(&key).unwrap();
    let stale = crate::share_partition::StoredShareState { leader_epoch: stored.leader_epoch - 1, ..stored.clone() };
    assert_eq!(world.client.cluster.share.store.write(&key, stale), Err(ErrorCode::FENCED_LEADER_EPOCH));
    world.client.cluster.share.store.initialize(&key, 2);
    assert_eq!(world.client.cluster.share.store.write(&key, stored), Err(ErrorCode::FENCED_STATE_EPOCH));
    assert_eq!(changed(&mut world), Some(Some((2, 0))));
    world.client.cluster.share.delete_state(&key.group, None);
    assert_eq!(changed(&mut world), Some(None), "deleted");
}

//= SHARE-FETCH-18
#[test]
fn few_bytes_wait_for_more_or_for_their_time() {
    let mut world = World::new(1, 1);
    let conn = world.client.connect(1);
    let patient = ShareFetchRequest { max_wait_ms: 500, min_bytes: 400, ..world.request("m", 0, &[(0, &[])]) };
    world.client.send_on(conn, &patient, 2).unwrap();
    world.produce(0, 1);
    assert_eq!(world.client.receive::<ShareFetchRequest>(conn, 2), None, "one record is not enough");
    world.produce(0, 30);
    let enough = world.client.receive::<ShareFetchRequest>(conn, 2).unwrap();
    assert_eq!(ranges(&enough), [(0, 0, 30, 1)]);
    let patient = ShareFetchRequest { max_wait_ms: 500, min_bytes: 400, ..world.request("m", 1, &[]) };
    world.client.send_on(conn, &patient, 2).unwrap();
    world.produce(0, 1);
    world.client.advance(499);
    assert_eq!(world.client.receive::<ShareFetchRequest>(conn, 2), None);
    world.client.advance(1);
    let late = world.client.receive::<ShareFetchRequest>(conn, 2).unwrap();
    assert_eq!(ranges(&late), [(0, 31, 31, 1)], "what there is when the time is over");
}

#[test]
fn by_duration_starts_at_the_first_record_that_is_new_enough() {
    let mut world = World::new(1, 1);
    world.set("share.auto.offset.reset", "by_duration:PT1H");
    world.produce(0, 3);
    world.client.advance(3_600_001);
    let refused = world.fetch("m", 0, &[(0, &[])]);
    assert_eq!(parts(&refused)[0].error_code, ErrorCode::OFFSET_NOT_AVAILABLE, "all are older");
    world.produce(0, 2);
    world.client.advance(1_800_000);
    world.produce(0, 1);
    assert_eq!(ranges(&world.fetch("m", 1, &[])), [(0, 3, 5, 1)]);
    world.client.advance(7_200_000);
    world.fetch("m", -1, &[]);
    assert_eq!(ranges(&world.fetch("m", 0, &[(0, &[])])), [(0, 3, 5, 2)], "the start stays, once it is known");
}

//= SHARE-SESSION-14
#[test]
fn session_epochs_wrap_to_1() {
    let mut world = World::new(1, 1);
    world.fetch("m", 0, &[(0, &[])]);
    let key = super::sessions::SessionKey { node: 1, group: Str::from_static("g"), member: Str::from_static("m") };
    world.client.cluster.share.sessions.get_mut(&key).unwrap().epoch = i32::MAX;
    assert_eq!(world.fetch("m", i32::MAX, &[]).error_code, ErrorCode::NONE);
    assert_eq!(world.fetch("m", 0x7fff_fffe, &[]).error_code, ErrorCode::INVALID_SHARE_SESSION_EPOCH);
    assert_eq!(world.fetch("m", 1, &[]).error_code, ErrorCode::NONE);
}
