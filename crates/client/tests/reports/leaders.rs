//! Leaders that move or are missing, brokers of different ages, connections that end while nobody looks.

use crate::support::{GROUP, LONG, Mode, Rig, SHORT, offsets};
use crate::wide::{WIDE, count, each_answer, until, wide_topic};
use kafka_share::{
    AckType, AcquireMode, Admin, ClientConfig, ErrorKind, KafkaShareConsumer, Outcome, Producer, ProducerRecord,
};
use kafka_share_broker::{CoordinatorKind, EmbeddedBroker, Fault, FaultAction, GroupBounds, Rewrite};
use kafka_share_messages::{ApiKey, ApiVersionsResponse, ShareAcknowledgeResponse, ShareFetchResponse};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

fn leader_of(rig: &Rig, topic: &str, partition: i32) -> i32 {
    let dump = rig.broker.dump();
    dump.partitions.iter().find(|p| p.topic == topic && p.partition == partition).unwrap().leader
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r010_acknowledgements_are_not_sent_to_a_former_leader() {
    let rig = Rig::new(3).await;
    rig.produce(0..4).await;
    let consumer = rig.consumer(Mode::Explicit);
    let records = rig.receive(&consumer, 4).await;
    let old = leader_of(&rig, &rig.topic(), 0);
    let new = rig.broker.nodes().iter().map(|n| n.id).find(|id| *id != old).unwrap();
    // From here on, whatever the former leader is told about partitions.
    let told = Arc::new(AtomicUsize::new(0));
    let watch = Rewrite::message({
        let told = Arc::clone(&told);
        move |_, answer: &mut ShareAcknowledgeResponse| {
            told.fetch_add(answer.responses.iter().map(|t| t.partitions.len()).sum(), Ordering::SeqCst);
        }
    });
    rig.broker.fault(Fault::new(FaultAction::Rewrite(watch)).key(ApiKey::SHARE_ACKNOWLEDGE).node(old).times(u32::MAX));
    // Two are acknowledged, and not sent, before the leader moves; two once metadata shows the new one.
    let ids: Vec<_> = records.iter().flatten().map(|r| r.id()).collect();
    for id in &ids[..2] {
        consumer.acknowledger().acknowledge(*id, AckType::Accept).unwrap();
    }
    assert!(rig.broker.move_leader(&rig.topic(), 0, new));
    rig.cluster.refresh_topics(&[rig.topic().into()], Instant::now() + LONG).await.unwrap();
    rig.produce(4..5).await;
    let again = rig.receive(&consumer, 5).await;
    for id in &ids[2..] {
        let error = consumer.acknowledger().acknowledge(*id, AckType::Accept).unwrap_err();
        let lost = matches!(error.kind(), ErrorKind::Fenced | ErrorKind::InvalidState);
        assert!(lost, "the lock went with the leader: {error:?}");
    }
    let outcomes = consumer.poll_outcomes();
    let lost: i64 = outcomes.iter().map(|o| o.last_offset - o.first_offset + 1).sum();
    assert_eq!(lost, 2);
    // Lost here, or refused by the broker that was asked for records before metadata came; never taken.
    assert!(outcomes.iter().all(|o| o.outcome != Outcome::Acknowledged), "{outcomes:?}");
    for records in &again {
        consumer.acknowledge_all(records, AckType::Accept).unwrap();
    }
    assert_eq!(consumer.commit_sync(LONG).await.unwrap()[&(rig.topic(), 0)], Outcome::Acknowledged);
    consumer.close(LONG).await.unwrap();
    assert_eq!(told.load(Ordering::SeqCst), 0, "the former leader was told of partitions it does not lead");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r020_partitions_without_a_leader_are_consumed_once_they_have_one() {
    let rig = Rig::new(1).await;
    rig.produce(0..1).await;
    let consumer = rig.own_consumer(Mode::Explicit);
    let records = rig.receive(&consumer, 1).await;
    consumer.acknowledge_all(&records[0], AckType::Accept).unwrap();
    consumer.commit_sync(LONG).await.unwrap();
    // Leaderless as metadata have it, for two seconds; the broker itself is there.
    let gone = each_answer(&rig, ApiKey::METADATA, |answer: &mut kafka_share_messages::MetadataResponse| {
        for partition in answer.topics.iter_mut().flat_map(|t| &mut t.partitions) {
            partition.leader_id = -1;
            partition.error_code = kafka_share::ErrorCode::LEADER_NOT_AVAILABLE;
        }
    });
    // The session ends, and with it what the client believed of leaders is looked up again.
    rig.broker.restart_node(leader_of(&rig, &rig.topic(), 0));
    let since = Instant::now();
    while since.elapsed() < Duration::from_secs(2) {
        assert!(consumer.poll(SHORT).await.unwrap().is_empty());
    }
    let (asked, seconds) = (rig.broker.fault_hits(gone), since.elapsed().as_secs_f64());
    assert!(asked >= 2 && f64::from(asked) < 30.0 * seconds, "{asked} requests for metadata in {seconds} s");
    rig.broker.clear_faults();
    rig.produce(1..2).await;
    assert_eq!(offsets(&rig.receive(&consumer, 1).await), [(1, 1)]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r011_a_former_leader_is_not_asked_again_once_it_named_the_new_one() {
    let rig = Rig::new(3).await;
    rig.produce(0..1).await;
    let consumer = rig.own_consumer(Mode::Explicit);
    rig.receive(&consumer, 1).await;
    let old = leader_of(&rig, &rig.topic(), 0);
    let new = rig.broker.nodes().iter().map(|n| n.id).find(|id| *id != old).unwrap();
    assert!(rig.broker.move_leader(&rig.topic(), 0, new));
    let slow = FaultAction::Delay(Duration::from_millis(500));
    rig.broker.fault(Fault::new(slow).key(ApiKey::METADATA).times(u32::MAX));
    // Answers of the former leader that name a partition; a moved one, each of them.
    let named = Arc::new(AtomicUsize::new(0));
    let watch = Rewrite::message({
        let named = Arc::clone(&named);
        move |_, answer: &mut ShareFetchResponse| {
            named.fetch_add(answer.responses.iter().map(|t| t.partitions.len()).sum(), Ordering::SeqCst);
        }
    });
    rig.broker.fault(Fault::new(FaultAction::Rewrite(watch)).key(ApiKey::SHARE_FETCH).node(old).times(u32::MAX));
    rig.produce(1..2).await;
    let got = offsets(&rig.receive(&consumer, 2).await);
    assert_eq!(got.iter().map(|(offset, _)| *offset).collect::<Vec<_>>(), [0, 1]);
    assert!(named.load(Ordering::SeqCst) <= 2, "the former leader was asked {} times", named.load(Ordering::SeqCst));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r085_a_connection_that_the_broker_closed_for_idleness_is_no_error() {
    let idle = 2_000;
    let broker = EmbeddedBroker::builder().configure(|c| c.connections_max_idle_ms = idle).start().await.unwrap();
    let admin = Admin::new(ClientConfig::new(&broker.bootstrap_servers())).unwrap();
    for _ in 0..3 {
        admin.describe_cluster().await.unwrap();
        let connections = broker.connection_count();
        assert!((1..=2).contains(&connections), "{connections} connections for one client that does one thing");
        until("the broker closes it", || broker.connection_count() == 0).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r086_a_session_whose_connection_was_idle_ends_aloud_and_starts_anew() {
    let broker = EmbeddedBroker::builder()
        .nodes(3)
        .topic(WIDE, 3)
        .configure(|c| c.connections_max_idle_ms = 5_000)
        .start()
        .await
        .unwrap();
    let servers = broker.bootstrap_servers();
    let admin = Admin::new(ClientConfig::new(&servers)).unwrap();
    admin.alter_share_group_configs(GROUP, &[("share.auto.offset.reset", "earliest")]).await.unwrap();
    let producer = Producer::builder(&servers).build().unwrap();
    for partition in 0..3 {
        let record = ProducerRecord::new(WIDE).partition(partition).value("0");
        producer.send(record).await.unwrap().await.unwrap();
    }
    let builder = KafkaShareConsumer::builder(&servers, GROUP).acknowledgement_mode(Mode::Explicit);
    let consumer = builder.build().unwrap();
    consumer.subscribe([WIDE]).unwrap();
    let mut records = Vec::new();
    let end = Instant::now() + LONG;
    while records.iter().map(kafka_share::ShareRecords::len).sum::<usize>() < 3 {
        assert!(Instant::now() < end);
        records.push(consumer.poll(SHORT).await.unwrap());
    }
    // The application works on the records for longer than brokers keep a quiet connection. The member lives on: it sends
    // heartbeats, to one broker.
    until("the sessions end", || broker.dump().share.sessions.is_empty()).await;
    let member = consumer.share_group_metadata().unwrap();
    let ids: Vec<_> = records.iter().flatten().map(|r| r.id()).collect();
    // What is said of them now ends as lost: refused at once, or with an outcome.
    let taken = ids.iter().filter(|id| consumer.acknowledger().acknowledge(**id, AckType::Accept).is_ok()).count();
    let outcomes = consumer.commit_sync(LONG).await.unwrap();
    assert!(outcomes.values().all(|o| *o != Outcome::Acknowledged), "{outcomes:?}");
    assert_eq!(consumer.poll_outcomes().len(), taken);
    // And no error for poll: the records come again.
    let mut again = 0;
    let end = Instant::now() + LONG;
    while again < 3 {
        assert!(Instant::now() < end);
        let records = consumer.poll(SHORT).await.unwrap();
        assert!(records.iter().all(|r| r.delivery_count() == 2));
        again += consumer.acknowledge_all(&records, AckType::Accept).unwrap();
        consumer.commit_sync(LONG).await.unwrap();
    }
    assert_eq!(consumer.share_group_metadata().unwrap().member_id(), member.member_id());
    consumer.close(LONG).await.unwrap();
}

/// Has a node tell less of an API than it can do.
fn cap(rig: &Rig, node: Option<i32>, caps: &[(ApiKey, i16, i16)]) {
    let caps = caps.to_vec();
    let rewrite = Rewrite::message(move |_, answer: &mut ApiVersionsResponse| {
        for (key, min, max) in &caps {
            for api in answer.api_keys.iter_mut().filter(|api| api.api_key == key.0) {
                (api.min_version, api.max_version) = (*min, *max);
            }
        }
    });
    let fault = Fault::new(FaultAction::Rewrite(rewrite)).key(ApiKey::API_VERSIONS).times(u32::MAX);
    rig.broker.fault(match node {
        Some(node) => fault.node(node),
        None => fault,
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r100_versions_are_those_of_each_broker() {
    let rig = Rig::new(3).await;
    wide_topic(&rig, 3).await;
    let old = leader_of(&rig, WIDE, 1);
    let caps = [(ApiKey::SHARE_FETCH, 1, 1), (ApiKey::SHARE_ACKNOWLEDGE, 1, 1), (ApiKey::PRODUCE, 3, 11)];
    cap(&rig, Some(old), &caps);
    let versions: Arc<Mutex<Vec<(bool, i16)>>> = Arc::default();
    for node in rig.broker.nodes() {
        let (versions, is_old) = (Arc::clone(&versions), node.id == old);
        let watch = Rewrite::new(move |version, body| {
            versions.lock().unwrap().push((is_old, version));
            body
        });
        rig.broker
            .fault(Fault::new(FaultAction::Rewrite(watch)).key(ApiKey::SHARE_FETCH).node(node.id).times(u32::MAX));
    }
    let consumer = rig.own_consumer(Mode::Explicit);
    consumer.subscribe([WIDE]).unwrap();
    let records = rig.receive(&consumer, 3).await;
    // RENEW is for the brokers that have it; elsewhere it is refused, and the record stays held.
    for record in records.iter().flatten() {
        let is_old = leader_of(&rig, WIDE, record.partition()) == old;
        match consumer.acknowledge_with(&record, AckType::Renew) {
            Ok(()) => assert!(!is_old, "the old broker has no RENEW"),
            Err(error) => assert!(is_old && error.kind() == ErrorKind::Unsupported, "{error}"),
        }
    }
    let renewed = consumer.commit_sync(LONG).await.unwrap();
    assert!(renewed.len() == 2 && renewed.values().all(|o| *o == Outcome::Acknowledged), "{renewed:?}");
    for record in records.iter().flatten() {
        consumer.acknowledge(&record).unwrap();
    }
    let accepted = consumer.commit_sync(LONG).await.unwrap();
    assert!(accepted.len() == 3 && accepted.values().all(|o| *o == Outcome::Acknowledged), "{accepted:?}");
    let seen = versions.lock().unwrap().clone();
    assert!(seen.iter().all(|(is_old, version)| *version == if *is_old { 1 } else { 2 }), "{seen:?}");
    assert!(seen.iter().any(|(is_old, _)| *is_old) && seen.iter().any(|(is_old, _)| !is_old));
    // Downgraded while it is known: what holds is what the new connection says.
    let other = leader_of(&rig, WIDE, 0);
    cap(&rig, Some(other), &[(ApiKey::PRODUCE, 3, 9)]);
    rig.broker.restart_node(other);
    let producer = Producer::builder(&rig.broker.bootstrap_servers()).build().unwrap();
    for partition in 0..3 {
        let record = ProducerRecord::new(WIDE).partition(partition).value("1");
        producer.send(record).await.unwrap().await.unwrap();
    }
    consumer.close(LONG).await.unwrap();
    // What the old version cannot do is refused by name, not left out.
    let client = KafkaShareConsumer::builder(&rig.broker.bootstrap_servers(), GROUP);
    let strict = client.acquire_mode(AcquireMode::RecordLimit).build().unwrap();
    strict.subscribe([WIDE]).unwrap();
    let error = loop {
        match strict.poll(LONG).await {
            Ok(_) => {}
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().contains("record_limit"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r101_a_cluster_that_tells_no_topic_ids_is_refused_by_name() {
    let rig = Rig::new(1).await;
    cap(&rig, None, &[(ApiKey::METADATA, 0, 9)]);
    let servers = rig.broker.bootstrap_servers();
    // Produce names topics by id from v13 on: the producer takes a version that does not.
    let producer = Producer::builder(&servers).build().unwrap();
    let record = ProducerRecord::new(rig.topic()).partition(0).value("0");
    producer.send(record).await.unwrap().await.unwrap();
    let fetches = count(&rig, ApiKey::SHARE_FETCH);
    let consumer = rig.own_consumer(Mode::Explicit);
    let error = tokio::time::timeout(LONG, consumer.poll(LONG)).await.unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().contains("topic id") && error.to_string().contains("Metadata"), "{error}");
    assert_eq!(rig.broker.fault_hits(fetches), 0, "nothing is asked for by an empty id");
    consumer.close(LONG).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_without_an_address_is_asked_as_soon_as_it_has_one() {
    // Heartbeats are so far apart that none of them wakes the consumer.
    let bounds = |bounds: &mut GroupBounds| {
        bounds.heartbeat_ms = (100, 60_000);
        bounds.session_timeout_ms = (1_000, 200_000);
    };
    let rig = Rig::with(3, bounds).await;
    rig.configure("share.session.timeout.ms", "180000").await;
    rig.configure("share.heartbeat.interval.ms", "60000").await;
    rig.produce(0..1).await;
    let leader = leader_of(&rig, &rig.topic(), 0);
    let other = rig.broker.nodes().iter().map(|n| n.id).find(|id| *id != leader).unwrap();
    assert!(rig.broker.move_coordinator(CoordinatorKind::Group, GROUP, other));
    let asked = each_answer(&rig, ApiKey::METADATA, move |answer: &mut kafka_share_messages::MetadataResponse| {
        answer.brokers.retain(|broker| broker.node_id != leader);
    });
    let consumer = rig.own_consumer(Mode::Explicit);
    let healed = async {
        until("metadata are asked for again and again", || rig.broker.fault_hits(asked) > 5).await;
        rig.broker.clear_faults();
    };
    let (records, ()) = tokio::join!(consumer.poll(LONG), healed);
    assert_eq!(offsets(&[records.unwrap()]), [(0, 1)]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r008_a_leader_that_moved_without_a_word_on_where_is_looked_up() {
    // Neither a heartbeat nor the age of what is known has metadata asked for.
    let bounds = |bounds: &mut GroupBounds| {
        bounds.heartbeat_ms = (100, 60_000);
        bounds.session_timeout_ms = (1_000, 200_000);
    };
    let rig = Rig::with(3, bounds).await;
    rig.configure("share.session.timeout.ms", "180000").await;
    rig.configure("share.heartbeat.interval.ms", "60000").await;
    rig.produce(0..1).await;
    let unnamed = Arc::new(AtomicUsize::new(0));
    each_answer(&rig, ApiKey::SHARE_FETCH, {
        let unnamed = Arc::clone(&unnamed);
        move |answer: &mut ShareFetchResponse| {
            answer.node_endpoints.clear();
            for partition in answer.responses.iter_mut().flat_map(|t| &mut t.partitions) {
                (partition.current_leader.leader_id, partition.current_leader.leader_epoch) = (-1, -1);
                let moved = partition.error_code == kafka_share::ErrorCode::NOT_LEADER_OR_FOLLOWER;
                unnamed.fetch_add(usize::from(moved), Ordering::SeqCst);
            }
        }
    });
    // Connections and metadata of its own: the producer learns of the move by itself.
    let consumer = rig.own_consumer(Mode::Explicit);
    let records = rig.receive(&consumer, 1).await;
    consumer.acknowledge_all(&records[0], AckType::Accept).unwrap();
    consumer.commit_sync(LONG).await.unwrap();
    let polling = tokio::spawn(async move { offsets(&[consumer.poll(LONG).await.unwrap()]) });
    let old = leader_of(&rig, &rig.topic(), 0);
    let new = rig.broker.nodes().iter().map(|n| n.id).find(|id| *id != old).unwrap();
    assert!(rig.broker.move_leader(&rig.topic(), 0, new));
    rig.produce(1..2).await;
    // No error, and a wait that is a look at the metadata away: some milliseconds, on an idle machine. Else the poll ends
    // without a record, long before a heartbeat.
    assert_eq!(polling.await.unwrap(), [(1, 1)]);
    let unnamed = unnamed.load(Ordering::SeqCst);
    assert!((1..10).contains(&unnamed), "{unnamed} answers that name no leader");
}
