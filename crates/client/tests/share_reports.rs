//! Field reports and the measured rows of peers, on the whole client against the embedded broker.

mod support;

use kafka_share::admin::NewTopic;
use kafka_share::{
    AckType, AcquireMode, Admin, ErrorCode, KafkaShareConsumer, Outcome, ProducerRecord, ShareConsumerBuilder,
};
use kafka_share_broker::{Fault, FaultAction, FaultId, GroupBounds};
use kafka_share_messages::ApiKey;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use support::{LONG, Mode, Rig, SHORT, offsets};

/// Counts requests of a kind: a fault that does nothing.
fn count(rig: &Rig, key: ApiKey) -> FaultId {
    rig.broker.fault(Fault::new(FaultAction::Delay(Duration::ZERO)).key(key).times(u32::MAX))
}

fn builder(rig: &Rig) -> ShareConsumerBuilder {
    KafkaShareConsumer::builder("", "group").cluster(Arc::clone(&rig.cluster)).acknowledgement_mode(Mode::Explicit)
}

fn locked(rig: &Rig) -> i64 {
    rig.broker.dump().share.partitions.iter().map(|p| p.acquired).sum()
}

async fn until(what: &str, mut check: impl FnMut() -> bool) {
    let end = Instant::now() + LONG;
    while !check() {
        assert!(Instant::now() < end, "{what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn five_hundred_acknowledgements_a_millisecond_apart_are_one_or_two_requests() {
    let rig = Rig::new(1).await;
    rig.produce(0..500).await;
    let consumer = rig.consumer(Mode::Explicit);
    let records = rig.receive(&consumer, 500).await;
    let (sent, started) = (count(&rig, ApiKey::SHARE_ACKNOWLEDGE), Instant::now());
    for record in records.iter().flatten() {
        consumer.acknowledge(&record).unwrap();
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    consumer.commit_sync(LONG).await.unwrap();
    // By their age they go after a quarter of the lock, 7.5 s.
    let most = 2 + started.elapsed().as_secs() / 7;
    let requests = u64::from(rig.broker.fault_hits(sent));
    assert!((1..=most).contains(&requests), "{requests} requests in {:?}", started.elapsed());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_group_has_its_first_record_within_little_more_than_a_second() {
    // Who waits for the next regular heartbeat waits for a minute.
    let bounds = |bounds: &mut GroupBounds| {
        bounds.heartbeat_ms = (100, 60_000);
        bounds.session_timeout_ms = (1_000, 200_000);
    };
    let rig = Rig::with(1, bounds).await;
    rig.configure("share.session.timeout.ms", "180000").await;
    rig.configure("share.heartbeat.interval.ms", "60000").await;
    rig.produce(0..1).await;
    let consumer = rig.consumer(Mode::Explicit);
    // The group's assignment interval (1 s) and a heartbeat interval of a new member (250 ms), and room for a busy machine.
    tokio::time::timeout(LONG, consumer.recv()).await.expect("within the time").unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_returns_while_another_task_keeps_acknowledging() {
    let rig = Rig::new(1).await;
    rig.produce(0..2_000).await;
    let consumer = Arc::new(builder(&rig).max_poll_records(2_000).build().unwrap());
    consumer.subscribe([rig.topic()]).unwrap();
    let ids: Vec<_> = rig.receive(&consumer, 2_000).await.iter().flatten().map(|r| r.id()).collect();
    let (done, stop) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
    let worker = tokio::spawn({
        let (acknowledger, done, stop) = (consumer.acknowledger(), Arc::clone(&done), Arc::clone(&stop));
        async move {
            for id in ids {
                acknowledger.acknowledge(id, AckType::Accept).unwrap();
                done.fetch_add(1, Ordering::SeqCst);
                if !stop.load(Ordering::SeqCst) {
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
            }
        }
    });
    until("the first acknowledgements", || done.load(Ordering::SeqCst) > 20).await;
    consumer.commit_sync(LONG).await.unwrap();
    assert!(done.load(Ordering::SeqCst) < 2_000, "the commit waited for acknowledgements given after it");
    stop.store(true, Ordering::SeqCst);
    worker.await.unwrap();
    consumer.commit_sync(LONG).await.unwrap();
    let told: i64 = consumer.poll_outcomes().iter().map(|o| o.last_offset - o.first_offset + 1).sum();
    assert_eq!(told, 2_000);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unsubscribe_frees_records_at_once() {
    let rig = Rig::new(1).await;
    rig.produce(0..10).await;
    let first = builder(&rig).max_poll_records(3).build().unwrap();
    first.subscribe([rig.topic()]).unwrap();
    rig.receive(&first, 3).await;
    let second = rig.consumer(Mode::Explicit);
    assert!(second.poll(SHORT).await.unwrap().is_empty());
    first.unsubscribe();
    // Far sooner than their locks end, after half a minute.
    until("the records are free", || locked(&rig) == 0 || second.metrics().get("records-consumed-total") > Some(0.0))
        .await;
    assert_eq!(rig.receive(&second, 10).await.iter().map(|r| r.len()).sum::<usize>(), 10);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r029_a_record_limit_on_three_brokers_locks_no_more_than_asked_for() {
    let rig = Rig::new(3).await;
    let admin = Admin::on(Arc::clone(&rig.cluster));
    admin.create_topic(NewTopic::new("wide", 3)).await.unwrap();
    for at in 0..90 {
        let record = ProducerRecord::new("wide").partition(at % 3).value("x");
        drop(rig.producer().send(record).await.unwrap());
    }
    rig.producer().flush().await.unwrap();
    let consumer = builder(&rig).acquire_mode(AcquireMode::RecordLimit).max_poll_records(10).build().unwrap();
    consumer.subscribe(["wide"]).unwrap();
    for round in 0..9 {
        let records = consumer.poll(LONG).await.unwrap();
        assert!(records.len() <= 10 && locked(&rig) <= 10, "round {round}: {} of {}", locked(&rig), records.len());
        consumer.acknowledge_all(&records, AckType::Accept).unwrap();
        consumer.commit_sync(LONG).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r002_r003_a_session_that_the_broker_refuses_is_opened_anew_and_each_acknowledgement_ends() {
    let rig = Rig::new(1).await;
    rig.produce(0..10).await;
    let consumer = rig.consumer(Mode::Explicit);
    let records = rig.receive(&consumer, 10).await;
    let refusal = FaultAction::Error(ErrorCode::INVALID_SHARE_SESSION_EPOCH);
    rig.broker.fault(Fault::new(refusal).key(ApiKey::SHARE_ACKNOWLEDGE));
    for records in &records {
        consumer.acknowledge_all(records, AckType::Accept).unwrap();
    }
    let outcomes = consumer.commit_sync(LONG).await.unwrap();
    assert_eq!(outcomes[&(rig.topic(), 0)], Outcome::Refused(ErrorCode::INVALID_SHARE_SESSION_EPOCH));
    let told: i64 = consumer.poll_outcomes().iter().map(|o| o.last_offset - o.first_offset + 1).sum();
    assert_eq!(told, 10);
    // The broker's session is closed before the next is opened, or its locks would keep the records for half a minute.
    let again = rig.receive(&consumer, 10).await;
    assert_eq!(offsets(&again), (0..10).map(|offset| (offset, 2)).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r005_the_former_leader_keeps_no_session_of_an_idle_consumer() {
    let rig = Rig::new(2).await;
    rig.produce(0..1).await;
    let mut builder = KafkaShareConsumer::builder(&rig.broker.bootstrap_servers(), "group");
    builder.set("metadata.max.age.ms", "200").unwrap();
    let consumer = builder.acknowledgement_mode(Mode::Explicit).build().unwrap();
    consumer.subscribe([rig.topic()]).unwrap();
    let records = rig.receive(&consumer, 1).await;
    consumer.acknowledge_all(&records[0], AckType::Accept).unwrap();
    consumer.commit_sync(LONG).await.unwrap();
    let old = rig.leader_node();
    let new = rig.broker.nodes().iter().map(|n| n.id).find(|n| *n != old).unwrap();
    let nodes = || rig.broker.dump().share.sessions.iter().map(|s| s.node).collect::<Vec<_>>();
    assert_eq!(nodes(), [old]);
    // Nobody polls, nothing is fetched, nothing is acknowledged from here on: metadata tell of the move.
    let fetches = count(&rig, ApiKey::SHARE_FETCH);
    let before = rig.broker.fault_hits(fetches);
    assert!(rig.broker.move_leader(&rig.topic(), 0, new));
    until("the session at the former leader is closed", || !nodes().contains(&old)).await;
    assert_eq!(rig.broker.fault_hits(fetches), before, "it did not take a fetch");
    rig.produce(1..2).await;
    assert_eq!(offsets(&rig.receive(&consumer, 1).await), [(1, 1)]);
    assert_eq!(nodes(), [new]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r014_partitions_added_later_are_consumed_without_another_subscribe() {
    let rig = Rig::new(1).await;
    rig.produce(0..1).await;
    let consumer = rig.consumer(Mode::Implicit);
    rig.receive(&consumer, 1).await;
    let admin = Admin::on(Arc::clone(&rig.cluster));
    admin.create_partitions(&rig.topic(), 3).await.unwrap();
    let record = ProducerRecord::new(rig.topic()).partition(2).value("0");
    rig.producer().send(record).await.unwrap().await.unwrap();
    let records = rig.receive(&consumer, 1).await;
    assert_eq!(records.iter().flatten().next().unwrap().partition(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r019_close_keeps_its_time_with_a_silent_broker() {
    let rig = Rig::new(3).await;
    Admin::on(Arc::clone(&rig.cluster)).create_topic(NewTopic::new("wide", 3)).await.unwrap();
    for partition in 0..3 {
        let record = ProducerRecord::new("wide").partition(partition).value("x");
        rig.producer().send(record).await.unwrap().await.unwrap();
    }
    let consumer = builder(&rig).build().unwrap();
    consumer.subscribe(["wide"]).unwrap();
    rig.receive(&consumer, 3).await;
    let sessions = || rig.broker.dump().share.sessions.iter().map(|s| s.node).collect::<Vec<_>>();
    assert_eq!(sessions().len(), 3, "{:?}", sessions());
    let silent = rig.cluster.cached_topic("wide").unwrap().leaders[0].id;
    rig.broker.fault(Fault::new(FaultAction::Ignore).key(ApiKey::SHARE_ACKNOWLEDGE).node(silent).times(u32::MAX));
    let started = Instant::now();
    assert!(consumer.close(Duration::from_secs(3)).await.unwrap_err().is_timeout());
    assert!(started.elapsed() < LONG, "{:?}", started.elapsed());
    assert_eq!(sessions(), [silent], "the others heard of the end");
    // Nor does it keep the member in its group, until its session there times out.
    let members = || rig.broker.dump().groups.iter().map(|g| g.members.len()).sum::<usize>();
    until("the member is out of its group", || members() == 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r028_r030_whole_batches_are_delivered_once_and_released_ones_come_again() {
    let rig = Rig::new(1).await;
    for batch in 0..4 {
        rig.produce(batch * 100..batch * 100 + 100).await;
    }
    let consumer = builder(&rig).max_poll_records(30).build().unwrap();
    consumer.subscribe([rig.topic()]).unwrap();
    let mut seen = Vec::new();
    while seen.len() < 400 {
        let records = consumer.poll(LONG).await.unwrap();
        assert!(records.len() <= 30);
        seen.extend(offsets(std::slice::from_ref(&records)));
        for record in &records {
            let ack = if record.offset() % 100 < 5 { AckType::Release } else { AckType::Accept };
            consumer.acknowledge_with(&record, ack).unwrap();
        }
        if seen.iter().any(|(_, count)| *count > 1) {
            break;
        }
    }
    let mut again: Vec<_> = seen.iter().filter(|(_, count)| *count > 1).copied().collect();
    seen.retain(|(_, count)| *count == 1);
    while seen.len() < 400 || again.len() < 20 {
        let records = consumer.poll(LONG).await.unwrap();
        for record in &records {
            let first = record.delivery_count() == 1;
            let ack = if first && record.offset() % 100 < 5 { AckType::Release } else { AckType::Accept };
            consumer.acknowledge_with(&record, ack).unwrap();
        }
        for (offset, count) in offsets(std::slice::from_ref(&records)) {
            if count == 1 { seen.push((offset, count)) } else { again.push((offset, count)) }
        }
    }
    seen.sort_unstable();
    assert_eq!(seen, (0..400).map(|o| (o, 1)).collect::<Vec<_>>());
    consumer.commit_sync(LONG).await.unwrap();
    let outcomes = consumer.poll_outcomes();
    assert!(outcomes.iter().all(|o| o.outcome == Outcome::Acknowledged && o.ack_type.is_some()), "{outcomes:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r043_a_close_beside_a_poll_sends_what_was_acknowledged() {
    let rig = Rig::new(1).await;
    rig.produce(0..5).await;
    let consumer = Arc::new(rig.consumer(Mode::Explicit));
    let records = rig.receive(&consumer, 5).await;
    let polling = tokio::spawn({
        let consumer = Arc::clone(&consumer);
        async move { consumer.poll(Duration::from_secs(2)).await.map(|r| r.len()) }
    });
    tokio::task::yield_now().await;
    for records in &records {
        consumer.acknowledge_all(records, AckType::Accept).unwrap();
    }
    consumer.wakeup();
    consumer.close(LONG).await.unwrap();
    let _ = polling.await.unwrap();
    assert!(consumer.poll_outcomes().iter().all(|o| o.outcome == Outcome::Acknowledged));
    rig.produce(5..6).await;
    assert_eq!(offsets(&rig.receive(&rig.consumer(Mode::Explicit), 1).await), [(5, 1)]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cut_connection_leaves_each_acknowledgement_with_one_outcome() {
    for action in [FaultAction::Close, FaultAction::ApplyAndClose, FaultAction::CutAfter(9), FaultAction::Truncate(3)] {
        let rig = Rig::new(1).await;
        rig.produce(0..10).await;
        let consumer = rig.consumer(Mode::Explicit);
        let records = rig.receive(&consumer, 10).await;
        rig.broker.fault(Fault::new(action.clone()).key(ApiKey::SHARE_ACKNOWLEDGE));
        for records in &records {
            consumer.acknowledge_all(records, AckType::Accept).unwrap();
        }
        let outcome = consumer.commit_sync(LONG).await.unwrap()[&(rig.topic(), 0)];
        assert_eq!(outcome, Outcome::Unknown, "{action:?}");
        let told: i64 = consumer.poll_outcomes().iter().map(|o| o.last_offset - o.first_offset + 1).sum();
        assert_eq!(told, 10, "{action:?}");
        // It goes on, with what the broker did not take and what is new.
        rig.produce(10..11).await;
        let mut got = Vec::new();
        while !got.contains(&10) {
            got.extend(consumer.poll(LONG).await.unwrap().iter().map(|r| r.offset()));
        }
        let applied = !matches!(action, FaultAction::Close);
        assert_eq!(got.len(), if applied { 1 } else { 11 }, "{action:?}: {got:?}");
        consumer.close(LONG).await.unwrap();
    }
}
