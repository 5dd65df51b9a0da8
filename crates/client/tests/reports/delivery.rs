//! Delivery and acknowledgement as applications use them: orders, tails, long runs, words said twice.

use crate::support::{GROUP, LONG, Mode, Rig, SHORT, offsets};
use crate::wide::{WIDE, builder, count, produce_to, until, wide_topic};
use kafka_share::admin::AutoOffsetReset;
use kafka_share::admin::ShareGroupSettings;
use kafka_share::{
    AckOutcome, AckType, Admin, ClientConfig, ErrorKind, KafkaShareConsumer, Outcome, ProducerRecord, ShareRecords,
};
use kafka_share_broker::{Fault, FaultAction, Rewrite};
use kafka_share_messages::{ApiKey, DescribeConfigsResponse};
use std::collections::BTreeSet;
use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

fn runs(outcomes: &[AckOutcome]) -> Vec<(i64, i64)> {
    outcomes.iter().map(|o| (o.first_offset, o.last_offset)).collect()
}

fn record_at(records: &[ShareRecords], offset: i64) -> kafka_share::RecordId {
    records.iter().flatten().find(|r| r.offset() == offset).unwrap().id()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r019_a_poll_waits_through_a_coordinator_that_loads_and_for_the_assignment() {
    let rig = Rig::new(1).await;
    rig.produce(0..1).await;
    let loading = FaultAction::Error(kafka_share::ErrorCode::COORDINATOR_LOAD_IN_PROGRESS);
    let fault = rig.broker.fault(Fault::new(loading.clone()).key(ApiKey::SHARE_GROUP_HEARTBEAT).times(3));
    rig.broker.fault(Fault::new(loading).key(ApiKey::FIND_COORDINATOR).times(2));
    let consumer = rig.own_consumer(Mode::Explicit);
    // One poll, begun before there is a member, and long before there is an assignment.
    assert_eq!(offsets(&[consumer.poll(LONG).await.unwrap()]), [(0, 1)]);
    assert_eq!(rig.broker.fault_hits(fault), 3);
    // One that finds nothing takes all of its time.
    let unassigned = builder(&rig).build().unwrap();
    unassigned.subscribe(["nowhere"]).unwrap();
    let started = Instant::now();
    assert!(unassigned.poll(Duration::from_millis(700)).await.unwrap().is_empty());
    assert!(started.elapsed() >= Duration::from_millis(700));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r023_the_tail_of_an_implicit_consumer_comes_again_unless_it_was_committed() {
    for committed in [false, true] {
        let rig = Rig::new(1).await;
        for batch in 0..10 {
            rig.produce(batch * 10..batch * 10 + 10).await;
        }
        let first = rig.consumer_with(Mode::Implicit, 30);
        let mut polls = Vec::new();
        while polls.iter().map(Vec::len).sum::<usize>() < 100 {
            let got = offsets(&[first.poll(LONG).await.unwrap()]);
            polls.push(got);
        }
        let mut again: Vec<(i64, i16)> = polls.last().unwrap().iter().map(|(offset, _)| (*offset, 2)).collect();
        if committed {
            first.commit_sync(LONG).await.unwrap();
            again.clear();
        }
        first.close(LONG).await.unwrap();
        rig.produce(100..101).await;
        again.push((100, 1));
        let second = rig.consumer(Mode::Explicit);
        assert_eq!(offsets(&rig.receive(&second, again.len()).await), again, "committed: {committed}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r001_a_partition_whose_last_acknowledgements_ride_along_is_forgotten() {
    let rig = Rig::new(1).await;
    wide_topic(&rig, 1).await;
    rig.produce(0..2).await;
    let consumer = builder(&rig).fetch_max_wait(Duration::from_millis(50)).build().unwrap();
    consumer.subscribe([rig.topic().as_str(), WIDE]).unwrap();
    let records = rig.receive(&consumer, 3).await;
    // One topic goes; its record is still in hand, and accepted with the next fetch.
    consumer.subscribe([rig.topic()]).unwrap();
    let session = || rig.broker.dump().share.sessions.iter().flat_map(|s| s.partitions.clone()).collect::<Vec<_>>();
    let end = Instant::now() + LONG;
    while rig.broker.dump().groups.iter().flat_map(|g| &g.members).any(|m| m.assigned.len() != 1) {
        assert!(Instant::now() < end);
        assert!(consumer.poll(Duration::from_millis(20)).await.unwrap().is_empty());
    }
    for records in &records {
        consumer.acknowledge_all(records, AckType::Accept).unwrap();
    }
    let mut told = Vec::new();
    while told.is_empty() {
        assert!(Instant::now() < end);
        assert!(consumer.poll(Duration::from_millis(20)).await.unwrap().is_empty());
        told = consumer.poll_outcomes();
    }
    // What is written to it now is not acquired, and the session does not have it.
    produce_to(&rig, WIDE, 0, 1..2).await;
    let id = rig.cluster.cached_topic(&rig.topic()).unwrap().id.to_string();
    while session() != [(id.clone(), 0)] {
        assert!(Instant::now() < end, "{:?}", session());
        assert!(consumer.poll(Duration::from_millis(20)).await.unwrap().is_empty());
    }
    let (fetches, since) = (count(&rig, ApiKey::SHARE_FETCH), Instant::now());
    assert!(consumer.poll(Duration::from_millis(500)).await.unwrap().is_empty());
    // Each is held for 50 ms.
    let (fetched, most) = (rig.broker.fault_hits(fetches), since.elapsed().as_millis() / 50 + 1);
    assert!(u128::from(fetched) <= most, "{fetched} fetches in {:?}", since.elapsed());
    let wide = rig.broker.dump().share.partitions.into_iter().find(|p| p.topic == WIDE).unwrap();
    assert_eq!(wide.acquired, 0, "{wide:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r026_renew_and_accept_from_another_task_are_one_final_word() {
    let rig = Rig::new(1).await;
    rig.produce(0..1).await;
    let consumer = rig.consumer(Mode::Explicit);
    let records = rig.receive(&consumer, 1).await;
    let (acknowledger, id) = (consumer.acknowledger(), record_at(&records, 0));
    tokio::spawn(async move {
        acknowledger.acknowledge(id, AckType::Renew).unwrap();
        acknowledger.acknowledge(id, AckType::Accept).unwrap();
        let error = acknowledger.acknowledge(id, AckType::Reject).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidState);
    })
    .await
    .unwrap();
    assert_eq!(consumer.commit_sync(LONG).await.unwrap()[&(rig.topic(), 0)], Outcome::Acknowledged);
    let accepted = consumer.poll_outcomes().iter().filter(|o| o.ack_type == Some(AckType::Accept)).count();
    assert_eq!(accepted, 1);
    assert_eq!(consumer.acknowledger().acknowledge(id, AckType::Reject).unwrap_err().kind(), ErrorKind::InvalidState);
    rig.produce(1..2).await;
    assert_eq!(offsets(&rig.receive(&consumer, 1).await), [(1, 1)]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r034_acknowledgements_in_any_order_end_one_by_one() {
    let rig = Rig::new(1).await;
    rig.produce(0..10).await;
    let consumer = rig.consumer(Mode::Explicit);
    let records = rig.receive(&consumer, 10).await;
    let mut twice = 0;
    for offset in [7, 3, 3, 4, 5, 9] {
        match consumer.acknowledger().acknowledge(record_at(&records, offset), AckType::Accept) {
            Ok(()) => {}
            Err(error) => {
                assert_eq!((offset, error.kind()), (3, ErrorKind::InvalidState));
                twice += 1;
            }
        }
    }
    assert_eq!(twice, 1);
    // The broker refuses a request whose ranges do not ascend, or overlap.
    assert_eq!(consumer.commit_sync(LONG).await.unwrap()[&(rig.topic(), 0)], Outcome::Acknowledged);
    assert_eq!(runs(&consumer.poll_outcomes()), [(3, 5), (7, 7), (9, 9)]);
    consumer.close(LONG).await.unwrap();
    let rest = offsets(&rig.receive(&rig.consumer(Mode::Explicit), 5).await);
    assert_eq!(rest, [(0, 2), (1, 2), (2, 2), (6, 2), (8, 2)]);
}

/// Task A polls and takes what is pending into its own request; B commits, or closes, at the same time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r043_a_commit_and_a_close_beside_a_poll_leave_nothing_behind() {
    let rig = Rig::new(1).await;
    let consumer = Arc::new(rig.consumer(Mode::Explicit));
    let polling = tokio::spawn({
        let consumer = Arc::clone(&consumer);
        async move {
            let mut got = 0;
            while let Ok(records) = consumer.poll(LONG).await {
                got += records.len();
                consumer.acknowledge_all(&records, AckType::Accept).unwrap();
            }
            got
        }
    });
    for round in 0..20 {
        rig.produce(round * 5..round * 5 + 5).await;
        until("records", || consumer.metrics().get("records-consumed-total") >= Some((round * 5 + 5) as f64)).await;
        consumer.commit_sync(LONG).await.unwrap();
    }
    consumer.close(LONG).await.unwrap();
    assert_eq!(polling.await.unwrap(), 100);
    let outcomes = consumer.poll_outcomes();
    assert!(outcomes.iter().all(|o| o.outcome == Outcome::Acknowledged), "{outcomes:?}");
    assert_eq!(outcomes.iter().map(|o| o.last_offset - o.first_offset + 1).sum::<i64>(), 100);
    rig.produce(100..101).await;
    assert_eq!(offsets(&rig.receive(&rig.consumer(Mode::Explicit), 1).await), [(100, 1)]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r049_a_new_group_that_starts_at_the_earliest_gets_what_is_older_than_itself() {
    let rig = Rig::new(3).await;
    rig.produce(0..100).await;
    let admin = Admin::on(Arc::clone(&rig.cluster));
    let settings = ShareGroupSettings::new().auto_offset_reset(AutoOffsetReset::Earliest);
    // Waits until every broker shows it: a member may join at once.
    admin.apply_share_group_settings("newborn", &settings).await.unwrap();
    let consumer = KafkaShareConsumer::builder("", "newborn").cluster(Arc::clone(&rig.cluster)).build().unwrap();
    consumer.subscribe([rig.topic()]).unwrap();
    assert_eq!(offsets(&rig.receive(&consumer, 100).await), (0..100).map(|o| (o, 1)).collect::<Vec<_>>());
    // And without it: from the end, which is the default of the brokers.
    let late = KafkaShareConsumer::builder("", "latest").cluster(Arc::clone(&rig.cluster)).build().unwrap();
    late.subscribe([rig.topic()]).unwrap();
    let started = || rig.broker.dump().share.partitions.iter().any(|p| p.group == "latest");
    while !started() {
        assert!(late.poll(SHORT).await.unwrap().is_empty());
    }
    rig.produce(100..101).await;
    assert_eq!(offsets(&rig.receive(&late, 1).await), [(100, 1)]);
}

/// Has a node show `earliest` as before, whatever the group's configs are, until it is told to be up to date.
fn behind(rig: &Rig, node: i32) -> (Arc<AtomicBool>, Arc<AtomicUsize>) {
    let (fresh, asked) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let rewrite = Rewrite::message({
        let (fresh, asked) = (Arc::clone(&fresh), Arc::clone(&asked));
        move |_, answer: &mut DescribeConfigsResponse| {
            asked.fetch_add(1, Ordering::SeqCst);
            for config in answer.results.iter_mut().flat_map(|r| &mut r.configs) {
                if !fresh.load(Ordering::SeqCst) && config.name.as_str() == "share.auto.offset.reset" {
                    config.value = Some("earliest".into());
                }
            }
        }
    });
    let fault = Fault::new(FaultAction::Rewrite(rewrite)).key(ApiKey::DESCRIBE_CONFIGS).node(node);
    rig.broker.fault(fault.times(u32::MAX));
    (fresh, asked)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r049_a_group_config_is_waited_for_at_every_broker() {
    let rig = Rig::new(3).await;
    let last = rig.broker.nodes()[2].id;
    let (fresh, asked) = behind(&rig, last);
    let altering = tokio::spawn({
        let admin = Admin::on(Arc::clone(&rig.cluster));
        async move { admin.alter_share_group_configs(GROUP, &[("share.auto.offset.reset", "latest")]).await }
    });
    tokio::time::sleep(Duration::from_secs(1)).await;
    until("the broker that is behind is asked again", || asked.load(Ordering::SeqCst) >= 3).await;
    assert!(!altering.is_finished(), "one broker shows the former value");
    fresh.store(true, Ordering::SeqCst);
    altering.await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r049_a_broker_that_never_shows_a_group_config_is_named() {
    tokio::join!(never_shown(false), never_shown(true));
}

/// In the end no broker answers any more, where `silent` says so: it is still the one that is behind.
async fn never_shown(silent: bool) {
    let rig = Rig::new(3).await;
    let last = rig.broker.nodes()[2].id;
    let (_, asked) = behind(&rig, last);
    let config = ClientConfig::new(&rig.broker.bootstrap_servers()).default_api_timeout(Duration::from_secs(8));
    let admin = Admin::new(config).unwrap();
    let fall_silent = async {
        until("it is asked again", || asked.load(Ordering::SeqCst) >= 2).await;
        if silent {
            rig.broker.fault(Fault::new(FaultAction::Ignore).key(ApiKey::METADATA).times(u32::MAX));
        }
    };
    let altering = admin.alter_share_group_configs(GROUP, &[("share.auto.offset.reset", "latest")]);
    let (altered, ()) = tokio::join!(altering, fall_silent);
    let error = altered.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout);
    assert!(error.to_string().contains(&format!("broker {last} does not show")), "silent: {silent}: {error}");
    let asked = asked.load(Ordering::SeqCst);
    assert!((2..100).contains(&asked), "asked {asked} times");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r020_nothing_is_asked_without_an_assignment_and_at_once_with_one() {
    let rig = Rig::new(1).await;
    let fetches = count(&rig, ApiKey::SHARE_FETCH);
    let consumer = builder(&rig).build().unwrap();
    consumer.subscribe(["later"]).unwrap();
    assert!(consumer.poll(Duration::from_secs(2)).await.unwrap().is_empty());
    assert_eq!(rig.broker.fault_hits(fetches), 0, "there is nothing to fetch");
    let assigned = || rig.broker.dump().groups.iter().flat_map(|g| &g.members).any(|m| !m.assigned.is_empty());
    Admin::on(Arc::clone(&rig.cluster)).create_topic(kafka_share::admin::NewTopic::new("later", 1)).await.unwrap();
    let polling = tokio::spawn(async move {
        let records = consumer.poll(LONG).await.unwrap();
        records.iter().map(|r| r.offset()).collect::<Vec<_>>()
    });
    until("the assignment", assigned).await;
    until("a fetch for it", || rig.broker.fault_hits(fetches) > 0).await;
    let record = ProducerRecord::new("later").partition(0).value("0");
    rig.producer().send(record).await.unwrap().await.unwrap();
    assert_eq!(polling.await.unwrap(), [0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn acknowledgements_of_what_is_not_held_are_refused_and_change_nothing() {
    let rig = Rig::new(1).await;
    rig.produce(0..4).await;
    let consumer = rig.consumer(Mode::Explicit);
    let records = rig.receive(&consumer, 4).await;
    let other = builder(&rig).build().unwrap();
    other.subscribe([rig.topic()]).unwrap();
    let topic = rig.topic();
    let invalid = |result: kafka_share::Result<()>| assert_eq!(result.unwrap_err().kind(), ErrorKind::InvalidState);
    // Never delivered: beyond the end, negative, of partitions and topics that are not, of no consumer's session.
    for offset in [4, 1_000_000, -1, i64::MIN, i64::MAX] {
        invalid(consumer.acknowledge_offset(&topic, 0, offset, AckType::Accept));
    }
    for partition in [1, -1, i32::MIN, i32::MAX] {
        invalid(consumer.acknowledge_offset(&topic, partition, 0, AckType::Accept));
    }
    invalid(consumer.acknowledge_offset("nowhere", 0, 0, AckType::Accept));
    invalid(consumer.acknowledge_offset("", 0, 0, AckType::Accept));
    // Of another consumer, which has handed out records under equal handles itself.
    rig.produce(4..8).await;
    let others = rig.receive(&other, 4).await;
    for offset in 0..4 {
        invalid(other.acknowledger().acknowledge(record_at(&records, offset), AckType::Reject));
        invalid(other.extend_lock(record_at(&records, offset)));
        assert_eq!(other.lock_deadline(record_at(&records, offset)), None);
    }
    assert_eq!(other.acknowledge_all(&records[0], AckType::Reject).unwrap_err().kind(), ErrorKind::InvalidState);
    let foreign = [(record_at(&records, 0), AckType::Accept)];
    assert!(kafka_share::ShareAcknowledgements::from_record_ids(&other, foreign).is_err());
    invalid(other.acknowledge_offset(&topic, 0, 0, AckType::Reject));
    // Twice, in any way of saying it.
    consumer.acknowledge(&records[0].iter().next().unwrap()).unwrap();
    invalid(consumer.acknowledge(&records[0].iter().next().unwrap()));
    invalid(consumer.acknowledge_offset(&topic, 0, 0, AckType::Release));
    consumer.commit_sync(LONG).await.unwrap();
    invalid(consumer.acknowledger().acknowledge(record_at(&records, 0), AckType::Reject));
    // All that was refused left no trace: what follows is taken, each of it once.
    let rest: usize = records.iter().map(|r| consumer.acknowledge_all(r, AckType::Accept).unwrap()).sum();
    assert_eq!(rest, 3);
    for records in &others {
        other.acknowledge_all(records, AckType::Accept).unwrap();
    }
    for (consumer, count) in [(&consumer, 4), (&other, 4)] {
        consumer.commit_sync(LONG).await.unwrap();
        let outcomes = consumer.poll_outcomes();
        assert!(outcomes.iter().all(|o| o.outcome == Outcome::Acknowledged && o.ack_type == Some(AckType::Accept)));
        assert_eq!(outcomes.iter().map(|o| o.last_offset - o.first_offset + 1).sum::<i64>(), count);
    }
    let start = rig.broker.dump().share.partitions.iter().find(|p| p.group == GROUP).map(|p| p.start_offset);
    assert_eq!(start, Some(8));
}

/// Short of a million records and an hour: members come and go, outcomes and metrics are asked for, the reader is slow at
/// times. A wake-up that is lost shows as a stall of more than two waits of a fetch.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r167_a_stream_yields_for_as_long_as_there_are_records() {
    const RECORDS: i64 = 50_000;
    let rig = Rig::new(1).await;
    let wait = Duration::from_secs(5);
    let consumer = Arc::new(builder(&rig).max_poll_records(200).fetch_max_wait(wait).build().unwrap());
    consumer.subscribe([rig.topic()]).unwrap();
    let stall = 2 * wait;
    let produce = async {
        for first in (0..RECORDS).step_by(100) {
            rig.produce(first..first + 100).await;
            if first % 5_000 == 0 {
                // A member that comes, takes nothing, and goes.
                let passing = rig.consumer(Mode::Explicit);
                tokio::time::sleep(Duration::from_millis(5)).await;
                passing.close(LONG).await.unwrap();
            }
        }
    };
    let consume = async {
        let mut stream = std::pin::pin!(consumer.stream());
        let mut seen = BTreeSet::new();
        let mut refused = 0;
        // The first one waits for the assignment too.
        let mut limit = LONG;
        while (seen.len() as i64) < RECORDS {
            let next = poll_fn(|context| futures_core::Stream::poll_next(stream.as_mut(), context));
            let record = tokio::time::timeout(limit, next).await;
            let record = record.unwrap_or_else(|_| panic!("nothing for {limit:?} at {}", seen.len())).unwrap().unwrap();
            limit = stall;
            refused += usize::from(consumer.acknowledger().acknowledge(record.id(), AckType::Accept).is_err());
            seen.insert(record.offset());
            if seen.len() % 1_000 == 0 {
                let _ = (consumer.poll_outcomes(), consumer.metrics());
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        }
        refused
    };
    let ((), refused) = tokio::join!(produce, consume);
    assert_eq!(refused, 0);
    consumer.close(LONG).await.unwrap();
}
