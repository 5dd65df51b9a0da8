//! Tests of connections, dispatch, topics and leaders, on frames.

use super::durable::tests::{Model, check_replay};
use super::*;
use kafka_share_messages::create_topics_request::CreatableTopic;
use kafka_share_messages::metadata_request::MetadataRequestTopic;
use kafka_share_messages::{
    ApiVersionsRequest, CreateTopicsRequest, DeleteTopicsRequest, ErrorCode, MetadataRequest, Request, frame,
};
use kafka_share_wire::Str;

/// A cluster with a client, for tests. After each request what it has changed is replayed and compared.
pub(crate) struct Client {
    saved: Model,
    /// Whether changes are replayed; off for tests that take them.
    pub(crate) replay: bool,
    pub(crate) cluster: Cluster,
    pub(crate) conn: ConnId,
    pub(crate) now: Now,
}

impl Client {
    pub(crate) fn new(nodes: i32) -> Self {
        Self::with(nodes, |_| {})
    }

    pub(crate) fn with(nodes: i32, change: impl FnOnce(&mut ClusterConfig)) -> Self {
        let node = |id| crate::NodeConfig { id, host: "localhost".into(), port: 9000 + id as u16 };
        let mut config = ClusterConfig { nodes: (1..=nodes).map(node).collect(), ..Default::default() };
        change(&mut config);
        let now = Now { wall_ms: 1_700_000_000_000, ..Now::default() };
        let mut cluster = Cluster::restore(config, 7, now, crate::persistence::Saved::default()).unwrap();
        cluster.resume_service(now);
        let conn = cluster.connect(now, 1);
        Client { saved: Model::default(), replay: true, cluster, conn, now }
    }

    /// Ends the whole cluster and starts it from what was saved; connections are gone.
    pub(crate) fn restart(&mut self) {
        check_replay(&mut self.cluster, self.now, &mut self.saved);
        self.cluster = self.saved.restore(&self.cluster.config.clone(), self.now);
        self.cluster.resume_service(self.now);
        self.conn = self.cluster.connect(self.now, 1);
    }

    /// A further connection of the same cluster.
    pub(crate) fn connect(&mut self, node: i32) -> ConnId {
        self.cluster.connect(self.now, node)
    }

    pub(crate) fn send_on<R: Request>(&mut self, conn: ConnId, request: &R, version: i16) -> Result<(), CloseReason> {
        let frame = frame::encode_request(request, version, 5, &Str::from_static("test")).unwrap().to_vec();
        let result = self.cluster.handle_frame(self.now, conn, Bytes::from(frame).slice(4..));
        if self.replay {
            check_replay(&mut self.cluster, self.now, &mut self.saved);
        }
        result
    }

    /// The answer that is due on `conn`.
    pub(crate) fn receive<R: Request>(&mut self, conn: ConnId, version: i16) -> Option<R::Response> {
        let at = self.cluster.output.iter().position(|o| matches!(o, Output::Send { conn: c, .. } if *c == conn))?;
        let Some(Output::Send { segments, .. }) = self.cluster.output.remove(at) else { return None };
        let frame = Bytes::from(segments.concat()).slice(4..);
        let (correlation, response) = frame::decode_response::<R>(frame, version).unwrap();
        assert_eq!(correlation, 5);
        Some(response)
    }

    pub(crate) fn call_on<R: Request>(&mut self, conn: ConnId, request: &R, version: i16) -> R::Response {
        self.send_on(conn, request, version).unwrap();
        self.receive::<R>(conn, version).expect("an answer at once")
    }

    pub(crate) fn call<R: Request>(&mut self, request: &R) -> R::Response {
        self.call_on(self.conn, request, R::MAX_VERSION)
    }

    pub(crate) fn create_topic(&mut self, name: &str, partitions: i32) -> Uuid {
        let topic = CreatableTopic {
            name: Str::from(name),
            num_partitions: partitions,
            replication_factor: 1,
            ..Default::default()
        };
        let response = self.call(&CreateTopicsRequest { topics: vec![topic], ..Default::default() });
        assert_eq!(response.topics[0].error_code, ErrorCode::NONE);
        response.topics[0].topic_id
    }

    /// Lets `ms` milliseconds pass.
    pub(crate) fn advance(&mut self, ms: u64) {
        self.now.mono += Duration::from_millis(ms);
        self.now.wall_ms += ms as i64;
        self.cluster.handle_timeout(self.now);
    }
}

#[test]
fn unknown_versions_are_answered_or_closed_as_kafka_does() {
    let mut client = Client::new(1);
    let mut raw = vec![0, 18, 0, 99, 0, 0, 0, 5, 0, 1, b'c', 0];
    client.cluster.handle_frame(client.now, client.conn, Bytes::from(raw.clone())).unwrap();
    let response = client.receive::<ApiVersionsRequest>(client.conn, 0).unwrap();
    assert_eq!(response.error_code, ErrorCode::UNSUPPORTED_VERSION);
    assert_eq!((response.api_keys.len(), response.api_keys[0].max_version), (1, 5));
    raw[1] = 3;
    let reason = client.cluster.handle_frame(client.now, client.conn, Bytes::from(raw)).unwrap_err();
    assert!(matches!(reason, CloseReason::Unsupported { version: 99, .. }));
    assert_eq!(client.cluster.poll_output(), Some(Output::Close { conn: client.conn }));
    assert_eq!(client.cluster.connection_count(), 0);
}

#[test]
fn replicas_are_where_they_were_asked_for() {
    use kafka_share_messages::create_partitions_request::{CreatePartitionsAssignment, CreatePartitionsTopic};
    use kafka_share_messages::create_topics_request::CreatableReplicaAssignment;
    let mut client = Client::new(3);
    let create = |nodes: &[&[i32]]| {
        let one = |(index, ids): (usize, &&[i32])| CreatableReplicaAssignment {
            partition_index: index as i32,
            broker_ids: ids.to_vec(),
            ..Default::default()
        };
        let topic = CreatableTopic {
            name: Str::from_static("t"),
            num_partitions: -1,
            replication_factor: -1,
            assignments: nodes.iter().enumerate().map(one).collect(),
            ..Default::default()
        };
        CreateTopicsRequest { topics: vec![topic], ..Default::default() }
    };
    for bad in [&[&[1, 2][..], &[3]][..], &[&[1, 1]], &[&[4]], &[&[]]] {
        let code = client.call(&create(bad)).topics[0].error_code;
        assert_eq!(code, ErrorCode::INVALID_REPLICA_ASSIGNMENT, "{bad:?}");
    }
    let created = client.call(&create(&[&[3, 1], &[2, 3]])).topics.remove(0);
    assert_eq!((created.error_code, created.replication_factor), (ErrorCode::NONE, 2));
    let mut grow = |ids: &[i32]| {
        let assignment = CreatePartitionsAssignment { broker_ids: ids.to_vec(), ..Default::default() };
        let topic = CreatePartitionsTopic {
            name: Str::from_static("t"),
            count: 3,
            assignments: Some(vec![assignment]),
            ..Default::default()
        };
        let request = kafka_share_messages::CreatePartitionsRequest { topics: vec![topic], ..Default::default() };
        client.call(&request).results[0].error_code
    };
    assert_eq!(grow(&[1]), ErrorCode::INVALID_REPLICA_ASSIGNMENT, "two replicas each");
    assert_eq!(grow(&[1, 2]), ErrorCode::NONE);
    client.restart();
    let topic = client.cluster.topics.get("t").unwrap();
    let found: Vec<_> = topic.partitions.iter().map(|p| (p.leader, p.replicas.clone())).collect();
    assert_eq!(found, [(3, vec![3, 1]), (2, vec![2, 3]), (1, vec![1, 2])]);
}

#[test]
fn bad_frames_close_and_never_panic() {
    let good = frame::encode_request(&MetadataRequest::default(), 12, 5, &Str::from_static("test")).unwrap().to_vec();
    for len in 0..good.len() - 4 {
        let mut client = Client::new(1);
        let cut = Bytes::from(good.clone()).slice(4..4 + len);
        assert!(client.cluster.handle_frame(client.now, client.conn, cut).is_err(), "{len} bytes");
        assert_eq!(client.cluster.connection_count(), 0);
    }
}

#[test]
fn software_names_are_checked() {
    let mut client = Client::new(1);
    let name = |name: &'static str| ApiVersionsRequest {
        client_software_name: Str::from_static(name),
        client_software_version: Str::from_static("1.0"),
        ..Default::default()
    };
    assert_eq!(client.call_on(client.conn, &name("a!"), 3).error_code, ErrorCode::INVALID_REQUEST);
    let response = client.call_on(client.conn, &name("kafka-share"), 3);
    assert_eq!(response.error_code, ErrorCode::NONE);
    assert_eq!(response.supported_features.len(), 1, "before v4 no feature that starts at 0");
    let share = |r: &kafka_share_messages::ApiVersionsResponse| {
        r.finalized_features.iter().find(|f| f.name == "share.version").map(|f| f.max_version_level)
    };
    assert_eq!(share(&response), Some(3));
    let mut released = Client::with(1, |config| config.features.transactional_acks = false);
    let response = released.call_on(released.conn, &name("kafka-share"), 3);
    assert_eq!(share(&response), Some(2));
    assert!(response.api_keys.iter().all(|api| api.api_key < 95));
}

#[test]
fn leaders_go_round_the_nodes_and_move() {
    let mut client = Client::new(3);
    client.create_topic("t", 4);
    let ask = |client: &mut Client| {
        let topic = MetadataRequestTopic { name: Some(Str::from_static("t")), ..Default::default() };
        let response = client.call(&MetadataRequest { topics: Some(vec![topic]), ..Default::default() });
        response.topics[0].partitions.iter().map(|p| (p.leader_id, p.leader_epoch)).collect::<Vec<_>>()
    };
    let before = ask(&mut client);
    assert_eq!(before.iter().map(|p| p.0).collect::<std::collections::BTreeSet<_>>().len(), 3);
    let target = 1 + before[0].0 % 3;
    assert!(client.cluster.move_leader(client.now, "t", 0, target));
    assert_eq!(ask(&mut client)[0], (target, 1));
    assert!(!client.cluster.move_leader(client.now, "t", 9, target));
    assert!(!client.cluster.move_leader(client.now, "t", 0, 9));
}

#[test]
fn a_restarted_node_loses_connections_and_leaders() {
    let mut client = Client::new(2);
    client.create_topic("t", 2);
    let other = client.connect(2);
    assert!(client.cluster.restart_node(client.now, 2));
    assert_eq!(client.cluster.poll_output(), Some(Output::Close { conn: other }));
    assert!(client.cluster.topics.get("t").unwrap().partitions.iter().all(|p| p.leader == 1));
    assert!(client.cluster.stop_node(client.now, 1));
    assert!(client.cluster.topics.get("t").unwrap().partitions.iter().all(|p| p.leader == 2));
}

#[test]
fn r175_a_recreated_topic_has_another_id() {
    let mut client = Client::new(1);
    let first = client.create_topic("t", 1);
    let delete = DeleteTopicsRequest { topic_names: vec![Str::from_static("t")], ..Default::default() };
    assert_eq!(client.call_on(client.conn, &delete, 5).responses[0].error_code, ErrorCode::NONE);
    assert_eq!(client.call_on(client.conn, &delete, 5).responses[0].error_code, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
    assert_ne!(client.create_topic("t", 1), first);
}

#[test]
fn bytes_after_the_body_close() {
    // A request whose body has bytes left over is refused, not half served.
    let mut client = Client::new(1);
    let mut bytes = frame::encode_request(&MetadataRequest::default(), 12, 5, &Str::default()).unwrap().to_vec();
    bytes.push(0);
    let frame = Bytes::from(bytes).slice(4..);
    assert!(matches!(client.cluster.handle_frame(client.now, client.conn, frame), Err(CloseReason::Malformed(_))));
}
