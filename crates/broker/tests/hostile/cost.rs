//! Requests within the frame limit that name very much: the work must grow with their length, not with its square. Each would
//! take minutes or hours otherwise; the limit is far above what a busy machine needs.

use bytes::Bytes;
use kafka_share_broker::{Cluster, ClusterConfig, ConnId, NodeConfig, Now, Output};
use kafka_share_messages::*;
use kafka_share_wire::{Str, Uuid};
use std::time::{Duration, Instant};

const LIMIT: Duration = Duration::from_secs(60);

struct Victim {
    cluster: Cluster,
    now: Now,
    began: Instant,
}

impl Victim {
    fn new() -> Self {
        let nodes = vec![NodeConfig { id: 1, host: "localhost".into(), port: 9000 }];
        let config = ClusterConfig { nodes, internal_partitions: 3, auto_create_topics: false, ..Default::default() };
        let now = Now { mono: Duration::ZERO, wall_ms: 1_700_000_000_000 };
        Victim { cluster: Cluster::new(config, 1), now, began: Instant::now() }
    }

    fn topic(&mut self, name: &str, partitions: i32) -> Uuid {
        self.cluster.create_topic(name, partitions).expect("a topic")
    }

    fn connect(&mut self) -> ConnId {
        self.cluster.connect(self.now, 1)
    }

    fn send<R: Request>(&mut self, conn: ConnId, request: &R, version: i16) {
        let frame = frame::encode_request(request, version, 1, &Str::from_static("c")).expect("a frame").to_vec();
        assert!(frame.len() < 100 << 20);
        self.cluster.handle_frame(self.now, conn, Bytes::from(frame).slice(4..)).expect("a valid request");
    }

    /// Bytes of the next answer.
    fn answer(&mut self) -> Option<Bytes> {
        match self.cluster.poll_output()? {
            Output::Send { segments, .. } => Some(Bytes::from(segments.concat())),
            other => panic!("{other:?}"),
        }
    }

    fn call<R: Request>(&mut self, request: &R, version: i16) -> R::Response {
        let conn = self.connect();
        self.send(conn, request, version);
        let frame = self.answer().expect("an answer").slice(4..);
        frame::decode_response::<R>(frame, version).expect("a valid answer").1
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            assert!(self.began.elapsed() < LIMIT, "took {:?}", self.began.elapsed());
        }
    }
}

#[test]
fn partitions_for_many_topics() {
    let mut victim = Victim::new();
    let topic = |n| create_partitions_request::CreatePartitionsTopic {
        name: Str::from(format!("{n:06}")),
        count: 2,
        ..Default::default()
    };
    let request = CreatePartitionsRequest { topics: (0..200_000).map(topic).collect(), ..Default::default() };
    assert_eq!(victim.call(&request, 3).results.len(), 200_000);
}

#[test]
fn a_member_of_a_topic_with_many_partitions() {
    let mut victim = Victim::new();
    for name in ["a", "b", "c"] {
        victim.topic(name, 30_000);
    }
    // The same subscription, then different ones.
    for (member, topics) in [("m", &["a"][..]), ("n", &["b"]), ("o", &["a", "c"])] {
        let beat = ShareGroupHeartbeatRequest {
            group_id: Str::from_static("g"),
            member_id: Str::from_static(member),
            subscribed_topic_names: Some(topics.iter().map(|name| Str::from(*name)).collect()),
            ..Default::default()
        };
        let answer = victim.call(&beat, 1);
        assert!(answer.error_code.is_ok(), "{:?}", answer.error_message);
    }
}

#[test]
fn parked_fetches_of_one_partition_many_times() {
    let mut victim = Victim::new();
    let id = victim.topic("t", 1);
    let part = fetch_request::FetchPartition {
        current_leader_epoch: -1,
        last_fetched_epoch: -1,
        partition_max_bytes: 1,
        ..Default::default()
    };
    let topic = fetch_request::FetchTopic { topic_id: id, partitions: vec![part; 100_000], ..Default::default() };
    let request =
        FetchRequest { session_epoch: -1, max_wait_ms: 1_000, min_bytes: 1, topics: vec![topic], ..Default::default() };
    for _ in 0..3 {
        let conn = victim.connect();
        victim.send(conn, &request, 18);
    }
    assert_eq!(victim.cluster.waiting_requests(), 3);
    victim.now = victim.now.plus(Duration::from_secs(2));
    victim.cluster.handle_timeout(victim.now);
    for _ in 0..3 {
        assert!(victim.answer().expect("an answer").len() < 1_000, "a partition is answered once");
    }
}

#[test]
fn many_parked_fetches_of_one_partition() {
    let mut victim = Victim::new();
    let topic_id = victim.topic("t", 1);
    let part = fetch_request::FetchPartition { current_leader_epoch: -1, last_fetched_epoch: -1, ..Default::default() };
    let topic = fetch_request::FetchTopic { topic_id, partitions: vec![part], ..Default::default() };
    let request = FetchRequest { max_wait_ms: 1_000, min_bytes: 1, topics: vec![topic], ..Default::default() };
    for _ in 0..30_000 {
        let conn = victim.connect();
        victim.send(conn, &FetchRequest { session_epoch: -1, ..request.clone() }, 18);
    }
    // Each change wakes them all.
    for _ in 0..3 {
        victim.cluster.move_leader(victim.now, "t", 0, 1);
    }
    victim.now = victim.now.plus(Duration::from_secs(2));
    victim.cluster.handle_timeout(victim.now);
    assert_eq!(victim.cluster.waiting_requests(), 0);
}

#[test]
fn a_share_session_of_many_topics() {
    let mut victim = Victim::new();
    let topic = |n: u64| share_fetch_request::FetchTopic {
        topic_id: Uuid::from_halves(n, n),
        partitions: vec![share_fetch_request::FetchPartition::default()],
        ..Default::default()
    };
    let request = ShareFetchRequest {
        group_id: Some(Str::from_static("g")),
        member_id: Some(Str::from_static("AAAAAAAAAAAAAAAAAAAAAQ")),
        max_records: 1,
        max_bytes: 1,
        topics: (1..90_000).map(topic).collect(),
        ..Default::default()
    };
    assert_eq!(victim.call(&request, 2).responses.len(), 89_999);
}

#[test]
fn lists_with_many_filters() {
    let mut victim = Victim::new();
    for n in 0..2_000 {
        let group_id = Str::from(format!("g{n}"));
        let group = AlterShareGroupOffsetsRequest { group_id, ..Default::default() };
        assert!(victim.call(&group, 0).error_code.is_ok());
        let init = InitProducerIdRequest {
            transactional_id: Some(Str::from(format!("t{n}"))),
            transaction_timeout_ms: 1_000,
            producer_id: -1,
            producer_epoch: -1,
            ..Default::default()
        };
        assert!(victim.call(&init, 5).error_code.is_ok());
    }
    let filters: Vec<Str> = (0..300_000).map(|n| Str::from(format!("f{n:04}"))).collect();
    let groups = ListGroupsRequest { states_filter: filters.clone(), types_filter: filters, ..Default::default() };
    assert!(victim.call(&groups, 5).groups.is_empty());
    let transactions =
        ListTransactionsRequest { producer_id_filters: (1_000_000..1_500_000).collect(), ..Default::default() };
    assert!(victim.call(&transactions, 2).transaction_states.is_empty());
}

#[test]
fn offsets_of_one_topic_many_times() {
    let mut victim = Victim::new();
    victim.topic("a", 20_000);
    victim.topic("b", 1);
    let beat = ShareGroupHeartbeatRequest {
        group_id: Str::from_static("g"),
        member_id: Str::from_static("m"),
        subscribed_topic_names: Some(vec![Str::from_static("a")]),
        ..Default::default()
    };
    assert!(victim.call(&beat, 1).error_code.is_ok());
    let leave = ShareGroupHeartbeatRequest { member_epoch: -1, subscribed_topic_names: None, ..beat };
    assert!(victim.call(&leave, 1).error_code.is_ok());
    let topic = delete_share_group_offsets_request::DeleteShareGroupOffsetsRequestTopic {
        topic_name: Str::from_static("b"),
        ..Default::default()
    };
    let request = DeleteShareGroupOffsetsRequest {
        group_id: Str::from_static("g"),
        topics: vec![topic; 200_000],
        ..Default::default()
    };
    assert_eq!(victim.call(&request, 0).responses.len(), 200_000);
}

/// An answer that is a thousand times as long as its request would be a way to fill the memory.
#[test]
fn metadata_of_one_topic_many_times() {
    let mut victim = Victim::new();
    let topic_id = victim.topic("t", 100);
    let by_name = metadata_request::MetadataRequestTopic { name: Some(Str::from_static("t")), ..Default::default() };
    let by_id = metadata_request::MetadataRequestTopic { topic_id, name: None, ..Default::default() };
    for topic in [by_name, by_id] {
        let request = MetadataRequest { topics: Some(vec![topic; 20_000]), ..Default::default() };
        assert_eq!(victim.call(&request, 13).topics.len(), 1);
    }
}
