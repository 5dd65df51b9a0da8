//! One connection under many tasks, brokers that are not there, requests that wait behind others.

use crate::support::{GROUP, LONG, Mode, Rig, offsets};
use crate::wide::{builder, each_answer, until};
use kafka_share::net::Purpose;
use kafka_share::{AckType, Error, KafkaShareConsumer, Outcome, Str};
use kafka_share_broker::{Fault, FaultAction};
use kafka_share_messages::metadata_request::MetadataRequestTopic;
use kafka_share_messages::{
    ApiKey, DescribeClusterRequest, FindCoordinatorRequest, MetadataRequest, MetadataResponse,
    ShareGroupDescribeRequest,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// A few bits of a hash: which request, and when it is given up.
fn random(task: u64, round: u64, part: u64) -> u64 {
    let mut x = (task << 32 | round << 8 | part).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x ^= x >> 29;
    x = x.wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x ^ x >> 32
}

/// Sends one of four requests whose answer names what was asked for; answers whether it does.
async fn ask(rig: &Rig, node: i32, task: u64, round: u64) -> Result<bool, Error> {
    let cluster = &rig.cluster;
    let deadline = Instant::now() + LONG;
    let name = format!("{task}-{round}");
    match random(task, round, 0) % 4 {
        0 => {
            let coordinator_keys = vec![Str::from(name.as_str())];
            let request = FindCoordinatorRequest { coordinator_keys, ..Default::default() };
            let answer = cluster.call_node(node, Purpose::Coordination, &request, deadline).await?;
            Ok(answer.coordinators.len() == 1 && answer.coordinators[0].key.as_str() == name)
        }
        1 => {
            let topic = MetadataRequestTopic { name: Some(Str::from(name.as_str())), ..Default::default() };
            let request =
                MetadataRequest { topics: Some(vec![topic]), allow_auto_topic_creation: false, ..Default::default() };
            let answer = cluster.call_node(node, Purpose::Coordination, &request, deadline).await?;
            Ok(answer.topics.len() == 1 && answer.topics[0].name.as_ref().is_some_and(|n| n.as_str() == name))
        }
        2 => {
            let request = ShareGroupDescribeRequest { group_ids: vec![Str::from(name.as_str())], ..Default::default() };
            let answer = cluster.call_node(node, Purpose::Coordination, &request, deadline).await?;
            Ok(answer.groups.len() == 1 && answer.groups[0].group_id.as_str() == name)
        }
        _ => {
            let request = DescribeClusterRequest::default();
            let answer = cluster.call_node(node, Purpose::Coordination, &request, deadline).await?;
            Ok(answer.brokers.len() == 1 && answer.brokers[0].broker_id == node)
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r088_answers_belong_to_their_requests_whoever_gives_up() {
    let rig = Arc::new(Rig::new(1).await);
    let node = rig.leader_node();
    let connections = rig.broker.connection_count();
    let answered = Arc::new(AtomicUsize::new(0));
    let tasks: Vec<_> = (0..64_u64)
        .map(|task| {
            let (rig, answered) = (Arc::clone(&rig), Arc::clone(&answered));
            tokio::spawn(async move {
                for round in 0..160 {
                    let wait = match random(task, round, 1) % 3 {
                        0 => Duration::from_micros(random(task, round, 2) % 3_000),
                        _ => LONG,
                    };
                    // Every third one is given up at some moment: before it is written, while it is, or after.
                    if let Ok(answer) = tokio::time::timeout(wait, ask(&rig, node, task, round)).await {
                        assert!(answer.unwrap(), "the answer to {task}-{round} is another's");
                        answered.fetch_add(1, Ordering::SeqCst);
                    }
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    assert!(answered.load(Ordering::SeqCst) > 64 * 160 / 2, "{} answers", answered.load(Ordering::SeqCst));
    assert_eq!(rig.broker.connection_count(), connections, "they shared what was there, and it held");
    // An answer to nobody ends the connection, and goes to nobody; the next request has a new one.
    rig.broker.fault(Fault::new(FaultAction::ShiftCorrelationId(1_000)).key(ApiKey::DESCRIBE_CLUSTER));
    let request = DescribeClusterRequest::default();
    let lost = rig.cluster.call_node(node, Purpose::Coordination, &request, Instant::now() + LONG).await.unwrap_err();
    assert!(lost.maybe_done(), "{lost}");
    assert!(ask(&rig, node, 1, 1).await.unwrap());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r082_brokers_that_refuse_are_tried_less_and_less_often() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let attempts = Arc::new(AtomicUsize::new(0));
    let accepting = tokio::spawn({
        let attempts = Arc::clone(&attempts);
        async move {
            while let Ok((socket, _)) = listener.accept().await {
                attempts.fetch_add(1, Ordering::SeqCst);
                drop(socket);
            }
        }
    });
    let consumer = KafkaShareConsumer::builder(&address, GROUP).build().unwrap();
    consumer.subscribe(["orders"]).unwrap();
    let since = Instant::now();
    until("the first attempts", || attempts.load(Ordering::SeqCst) > 0).await;
    assert!(consumer.poll(Duration::from_secs(3)).await.unwrap().is_empty());
    // From 50 ms, doubling to a second, give or take a fifth: seven in three seconds, and those of a second task.
    let (count, seconds) = (attempts.load(Ordering::SeqCst), since.elapsed().as_secs());
    let most = 14 + 2 * seconds as usize;
    assert!((2..=most).contains(&count), "{count} attempts in {seconds} s");
    let _ = consumer.close(Duration::from_millis(100)).await;
    accepting.abort();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r007_a_commit_waits_for_a_fetch_no_longer_than_brokers_hold_it() {
    let rig = Rig::new(1).await;
    rig.produce(0..2).await;
    let consumer = Arc::new(builder(&rig).fetch_max_wait(Duration::from_secs(1)).build().unwrap());
    consumer.subscribe([rig.topic()]).unwrap();
    let records = rig.receive(&consumer, 2).await;
    let ids: Vec<_> = records.iter().flatten().map(|r| r.id()).collect();
    let polling = tokio::spawn({
        let consumer = Arc::clone(&consumer);
        async move { consumer.poll(LONG).await.map(|records| offsets(&[records])) }
    });
    until("a fetch that waits", || rig.broker.dump().waiting_requests > 0).await;
    consumer.acknowledger().acknowledge(ids[0], AckType::Accept).unwrap();
    // One request of a session at a time: the acknowledgement comes after the fetch, in the same session.
    let outcome = consumer.commit_sync(LONG).await.unwrap()[&(rig.topic(), 0)];
    assert_eq!(outcome, Outcome::Acknowledged);
    // A connection that ends under a fetch that waits: a new session, and no error for the poll.
    until("a fetch that waits", || rig.broker.dump().waiting_requests > 0).await;
    rig.broker.restart_node(rig.leader_node());
    until("another session", || rig.broker.dump().share.sessions.len() == 1).await;
    assert_eq!(polling.await.unwrap().unwrap(), [(1, 2)]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r013_a_leader_that_is_only_named_in_an_error_is_asked_next() {
    let rig = Rig::new(3).await;
    rig.produce(0..1).await;
    let old = rig.leader_node();
    // Metadata know of no other broker, and of no other leader, ever.
    each_answer(&rig, ApiKey::METADATA, move |answer: &mut MetadataResponse| {
        answer.brokers.retain(|broker| broker.node_id == old);
        for partition in answer.topics.iter_mut().flat_map(|t| &mut t.partitions) {
            (partition.leader_id, partition.leader_epoch) = (old, 0);
        }
    });
    let consumer = rig.own_consumer(Mode::Explicit);
    rig.receive(&consumer, 1).await;
    let new = rig.broker.nodes().iter().map(|n| n.id).find(|id| *id != old).unwrap();
    assert!(rig.broker.move_leader(&rig.topic(), 0, new));
    assert_eq!(offsets(&rig.receive(&consumer, 1).await), [(0, 1)], "the new leader knows of no delivery");
    let sessions = rig.broker.dump().share.sessions;
    assert!(sessions.iter().any(|s| s.node == new), "{sessions:?}");
}

/// Whichever is first, the client's notice of the cut or its next request.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r004_nothing_of_a_session_goes_out_on_another_connection() {
    let rig = Rig::new(1).await;
    let consumer = rig.own_consumer(Mode::Explicit);
    for turn in 0..20 {
        rig.produce(turn..turn + 1).await;
        let records = rig.receive(&consumer, 1).await;
        assert_eq!(consumer.acknowledge_all(&records[0], AckType::Accept).unwrap(), 1);
        rig.broker.restart_node(rig.leader());
        consumer.commit_sync(LONG).await.unwrap();
        let outcomes = consumer.poll_outcomes();
        assert_eq!(outcomes.len(), 1, "{outcomes:?}");
        assert!(matches!(outcomes[0].outcome, Outcome::LockLost | Outcome::Unknown), "{outcomes:?}");
        let again = rig.receive(&consumer, 1).await;
        assert_eq!(consumer.acknowledge_all(&again[0], AckType::Accept).unwrap(), 1);
        let outcome = consumer.commit_sync(LONG).await.unwrap()[&(rig.topic(), 0)];
        assert_eq!(outcome, Outcome::Acknowledged);
        assert_eq!(consumer.poll_outcomes().len(), 1);
    }
}
