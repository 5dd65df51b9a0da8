//! Every async method of connections and clusters, dropped at each of its await points: the connection serves those who come
//! after, and nothing that was learned is lost.

use crate::admin::async_methods;
use crate::support::{GROUP, LONG, Rig};
use kafka_share::ClientConfig;
use kafka_share::net::{Cluster, Connection, CoordinatorKind, Purpose};
use kafka_share_messages::{
    ApiKey, DescribeClusterRequest, ErrorCode, FindCoordinatorRequest, Message, MetadataRequest, Request, frame,
};
use kafka_share_wire::Str;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

fn late() -> Instant {
    Instant::now() + LONG
}

fn find() -> FindCoordinatorRequest {
    FindCoordinatorRequest { coordinator_keys: vec![Str::from(GROUP)], ..FindCoordinatorRequest::default() }
}

/// The highest version that the embedded broker and this client have in common.
const CLUSTER: (ApiKey, i16) = (DescribeClusterRequest::KEY, DescribeClusterRequest::MAX_VERSION);

// On one thread, so that nothing else moves on while a call does, and no await point is passed in a hurry.
#[tokio::test]
async fn cluster_methods_dropped_at_every_await_point() {
    let rig = Rig::new(1).await;
    rig.produce(0..1).await;
    let topic = Str::from(rig.topic());
    let topic = &topic;
    let id = rig.cluster.cached_topic(topic).unwrap().id;
    let new = || Cluster::new(ClientConfig::new(&rig.broker.bootstrap_servers())).unwrap();
    let request = DescribeClusterRequest::default();
    let request = &request;
    let node = rig.leader_node();
    let kind = CoordinatorKind::Group;
    let no_code = |_: &kafka_share_messages::DescribeClusterResponse| ErrorCode::NONE;
    let mut called = Vec::new();
    dropped_at_each_point!(new, called,
        pause_before_retry => async |c: &Arc<Cluster>| c.pause_before_retry(1, late()).await,
        // A broker has an address once metadata were asked for.
        call_node => async |c: &Arc<Cluster>| {
            c.refresh_topics(&[], late()).await.is_ok()
                && c.call_node(node, Purpose::Coordination, request, late()).await.is_ok()
        },
        call_node_as => async |c: &Arc<Cluster>| {
            c.refresh_topics(&[], late()).await.is_ok()
                && c.call_node_as(node, Purpose::Fetch, request, CLUSTER, late()).await.is_ok()
        },
        call_any => async |c: &Arc<Cluster>| c.call_any(request, late()).await.is_ok(),
        features => async |c: &Arc<Cluster>| c.features(late()).await.is_ok(),
        refresh_topics => async |c: &Arc<Cluster>| {
            c.refresh_topics(std::slice::from_ref(topic), late()).await.is_ok() && c.cached_topic(topic).is_some()
        },
        refresh_topics_by_id => async |c: &Arc<Cluster>| {
            c.refresh_topics_by_id(&[id], late()).await.is_ok() && c.cached_topic_by_id(id).is_some()
        },
        topic => async |c: &Arc<Cluster>| c.topic(topic, false, late()).await.is_ok_and(|t| t.id == id),
        coordinator => async |c: &Arc<Cluster>| c.coordinator(kind, GROUP, late()).await.is_ok_and(|n| n == node),
        call_coordinator => async |c: &Arc<Cluster>| {
            c.call_coordinator(kind, GROUP, request, late(), no_code).await.is_ok()
        },
        call_coordinator_as => async |c: &Arc<Cluster>| {
            c.call_coordinator_as(kind, GROUP, request, CLUSTER, late(), no_code).await.is_ok()
        },
    );
    CALLED_OF_CONNECTIONS.iter().for_each(|name| called.push(name));
    let called: BTreeSet<String> = called.into_iter().map(str::to_owned).collect();
    assert_eq!(called, async_methods("src/net"), "each async method, and no other");
}

const CALLED_OF_CONNECTIONS: &[&str] =
    &["ready", "version", "call", "call_version", "submit", "answer", "exchange", "send_unanswered", "closed"];

#[tokio::test]
async fn connection_methods_dropped_at_every_await_point() {
    let rig = Rig::new(1).await;
    let node = rig.leader_node();
    rig.cluster.refresh_topics(&[], late()).await.unwrap();
    // A connection of its own each time, not open yet.
    let new = || {
        let owner = rig.cluster.new_session_owner();
        rig.cluster.connection(node, Purpose::Session(owner)).unwrap()
    };
    let request = find();
    let request = &request;
    let (key, version) = (FindCoordinatorRequest::KEY, FindCoordinatorRequest::MAX_VERSION);
    let encoded = |c: &Connection| {
        let id = c.next_id();
        (id, frame::encode_request_as(key, request, version, id, c.client_id()).unwrap())
    };
    let answers = async |c: &Connection| c.call(request, late()).await.is_ok_and(|r| r.coordinators.len() == 1);
    let mut called = Vec::new();
    dropped_at_each_point!(new, called,
        ready => async |c: &Connection| c.ready(late()).await.is_ok() && !c.is_closed(),
        version => async |c: &Connection| c.version::<MetadataRequest>(ApiKey::METADATA, 12, late()).await.is_ok(),
        call => answers,
        call_version => async |c: &Connection| c.call_version(request, key, version, late()).await.is_ok(),
        answer => async |c: &Connection| {
            let submitted = c.submit(request, key, version, late()).await;
            submitted.unwrap().answer().await.is_ok_and(|r| r.coordinators.len() == 1)
        },
        exchange => async |c: &Connection| {
            let (id, frame) = encoded(c);
            c.exchange(id, frame, late(), true, "FindCoordinator").await.is_ok_and(|answer| !answer.is_empty())
        },
    );
    // These do not wait on a connection that has room; whoever drops them leaves it as it was.
    for points in 0..4 {
        let connection = new();
        drop(crate::drop_after(points, connection.submit(request, key, version, late())).await);
        assert!(answers(&connection).await, "submit, dropped at point {points}");
        let metadata = frame_of_produce(&connection);
        let sent = connection.send_unanswered(metadata.0, metadata.1, late(), "Produce");
        drop(crate::drop_after(points, sent).await);
        assert!(answers(&connection).await, "send_unanswered, dropped at point {points}");
        // Nothing wakes this one while the connection lives: it is polled once.
        assert!(crate::drop_after(points.min(1), connection.closed()).await.is_none());
        assert!(answers(&connection).await, "closed, dropped at point {points}");
    }
    called.extend(["submit", "send_unanswered", "closed"]);
    assert!(
        called.iter().all(|name| CALLED_OF_CONNECTIONS.contains(name)) && called.len() == CALLED_OF_CONNECTIONS.len()
    );
    let connection = new();
    assert!(answers(&connection).await);
    rig.broker.restart_node(node);
    tokio::time::timeout(LONG, connection.closed()).await.unwrap();
    assert!(connection.is_closed());
}

/// A produce request with acks 0, which the broker does not answer, and without a record.
fn frame_of_produce(connection: &Connection) -> (i32, kafka_share_wire::Frame) {
    let request = kafka_share_messages::ProduceRequest { acks: 0, timeout_ms: 1_000, ..Default::default() };
    let id = connection.next_id();
    let frame = frame::encode_request_as(ApiKey::PRODUCE, &request, 9, id, connection.client_id());
    (id, frame.unwrap())
}
