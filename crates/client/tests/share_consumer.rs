//! The share consumer as a whole against the embedded broker: delivery, acknowledgement, trouble, shutdown.

mod support;

use futures_core::Stream;
use kafka_share::{AckType, ErrorCode, ErrorKind, Outcome};
use kafka_share_broker::{Fault, FaultAction, GroupBounds};
use kafka_share_messages::ApiKey;
use std::sync::Arc;
use std::time::{Duration, Instant};
use support::{LONG, Mode, Rig, SHORT, offsets};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r022_implicit_mode_accepts_by_the_next_poll_and_never_by_closing() {
    let rig = Rig::new(1).await;
    rig.produce(0..3).await;
    let first = rig.consumer(Mode::Implicit);
    assert_eq!(offsets(&rig.receive(&first, 3).await), [(0, 1), (1, 1), (2, 1)]);
    first.close(LONG).await.unwrap();
    let second = rig.consumer(Mode::Implicit);
    assert_eq!(offsets(&rig.receive(&second, 3).await), [(0, 2), (1, 2), (2, 2)]);
    assert_eq!(second.commit_sync(LONG).await.unwrap()[&(rig.topic(), 0)], Outcome::Acknowledged);
    second.close(LONG).await.unwrap();
    rig.produce(3..4).await;
    let third = rig.consumer(Mode::Implicit);
    assert_eq!(offsets(&rig.receive(&third, 1).await), [(3, 1)]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn explicit_release_comes_again_and_accept_and_reject_do_not() {
    let rig = Rig::new(1).await;
    rig.produce(0..3).await;
    let consumer = rig.consumer(Mode::Explicit);
    let records = rig.receive(&consumer, 3).await;
    let record = |at: usize| records.iter().flatten().nth(at).unwrap();
    consumer.acknowledge(&record(0)).unwrap();
    consumer.acknowledge_with(&record(1), AckType::Release).unwrap();
    consumer.acknowledge_with(&record(2), AckType::Reject).unwrap();
    let again = consumer.acknowledge(&record(1)).unwrap_err();
    assert_eq!(again.kind(), ErrorKind::InvalidState);
    consumer.commit_sync(LONG).await.unwrap();
    rig.produce(3..4).await;
    assert_eq!(offsets(&rig.receive(&consumer, 2).await), [(1, 2), (3, 1)]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_members_share_one_partition_without_overlap() {
    let rig = Rig::new(1).await;
    let members = [rig.consumer_with(Mode::Implicit, 5), rig.consumer_with(Mode::Implicit, 5)];
    // Both have the partition, and know it.
    let sessions = || rig.broker.dump().share.sessions.len();
    let until = Instant::now() + LONG;
    while sessions() < 2 {
        assert!(Instant::now() < until, "{:?}", rig.broker.dump().groups);
        for member in &members {
            assert!(member.poll(SHORT).await.unwrap().is_empty());
        }
    }
    // Whole batches are acquired, so they must be small.
    for batch in 0..40 {
        rig.produce(batch * 5..batch * 5 + 5).await;
    }
    let mut seen = Vec::new();
    let mut by_member = [0, 0];
    let until = Instant::now() + LONG;
    while seen.len() < 200 && Instant::now() < until {
        for (at, member) in members.iter().enumerate() {
            let got = offsets(&[member.poll(SHORT).await.unwrap()]);
            by_member[at] += got.len();
            seen.extend(got);
        }
    }
    seen.sort_unstable();
    assert_eq!(seen, (0..200).map(|offset| (offset, 1)).collect::<Vec<_>>());
    assert!(by_member.iter().all(|n| *n > 0), "{by_member:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn closing_frees_records_for_another_member_at_once() {
    let rig = Rig::new(1).await;
    rig.produce(0..2).await;
    let first = rig.consumer(Mode::Explicit);
    let records = rig.receive(&first, 2).await;
    first.acknowledge(&records.iter().flatten().next().unwrap()).unwrap();
    let second = rig.consumer(Mode::Explicit);
    first.close(LONG).await.unwrap();
    assert_eq!(first.poll(SHORT).await.unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(offsets(&rig.receive(&second, 1).await), [(1, 2)]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r004_a_restart_with_nothing_in_flight_ends_every_acknowledgement() {
    let rig = Rig::new(1).await;
    rig.produce(0..5).await;
    let consumer = rig.consumer(Mode::Explicit);
    let records = rig.receive(&consumer, 5).await;
    rig.broker.restart_node(rig.leader());
    let given: usize = records.iter().flatten().filter(|r| consumer.acknowledge(r).is_ok()).count();
    let outcomes = consumer.commit_sync(LONG).await.unwrap();
    assert!(outcomes.values().all(|o| *o != Outcome::Acknowledged), "{outcomes:?}");
    let told: i64 = consumer.poll_outcomes().iter().map(|o| o.last_offset - o.first_offset + 1).sum();
    assert_eq!(told, given as i64, "one outcome for each acknowledgement that was taken");
    assert_eq!(offsets(&rig.receive(&consumer, 5).await), (0..5).map(|o| (o, 2)).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_moved_leader_is_followed_and_its_old_locks_are_lost() {
    let rig = Rig::new(3).await;
    rig.produce(0..2).await;
    let consumer = rig.consumer(Mode::Explicit);
    let held = rig.receive(&consumer, 2).await;
    let other = rig.broker.nodes().iter().map(|n| n.id).find(|n| *n != rig.leader()).unwrap();
    assert!(rig.broker.move_leader(&rig.topic(), 0, other));
    rig.produce(2..3).await;
    let again = rig.receive(&consumer, 3).await;
    let mut got = offsets(&again);
    got.sort_unstable();
    // The new leader knows of no deliveries: acquiring is not persisted.
    assert_eq!(got, [(0, 1), (1, 1), (2, 1)]);
    for record in held.iter().flatten() {
        assert!(consumer.acknowledge(&record).is_err(), "the lock of the former leader");
    }
    for records in &again {
        consumer.acknowledge_all(records, AckType::Accept).unwrap();
    }
    assert_eq!(consumer.commit_sync(LONG).await.unwrap()[&(rig.topic(), 0)], Outcome::Acknowledged);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn records_of_an_expired_lock_come_again() {
    let rig = Rig::new(1).await;
    rig.produce(0..1).await;
    let consumer = rig.consumer(Mode::Explicit);
    let old = rig.receive(&consumer, 1).await;
    rig.broker.advance_clock(Duration::from_secs(31));
    let again = rig.receive(&consumer, 1).await;
    assert_eq!(offsets(&again), [(0, 2)]);
    assert!(consumer.acknowledge(&old[0].iter().next().unwrap()).is_err(), "an ended lock");
    consumer.acknowledge_all(&again[0], AckType::Accept).unwrap();
    assert_eq!(consumer.commit_sync(LONG).await.unwrap()[&(rig.topic(), 0)], Outcome::Acknowledged);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r161_wakeup_ends_one_poll_and_nothing_else() {
    let rig = Rig::new(1).await;
    let consumer = Arc::new(rig.consumer(Mode::Explicit));
    let polling = tokio::spawn({
        let consumer = Arc::clone(&consumer);
        async move { consumer.poll(LONG).await.map(|r| r.len()) }
    });
    consumer.wakeup();
    assert_eq!(polling.await.unwrap().unwrap_err().kind(), ErrorKind::Wakeup);
    consumer.wakeup();
    assert!(consumer.commit_sync(LONG).await.unwrap().is_empty());
    assert_eq!(consumer.poll(LONG).await.unwrap_err().kind(), ErrorKind::Wakeup);
    rig.produce(0..1).await;
    assert_eq!(offsets(&rig.receive(&consumer, 1).await), [(0, 1)]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r160_a_dropped_poll_loses_nothing_and_accepts_nothing() {
    let rig = Rig::new(1).await;
    let consumer = rig.consumer(Mode::Implicit);
    assert!(consumer.poll(SHORT).await.unwrap().is_empty());
    rig.produce(0..50).await;
    let mut seen = Vec::new();
    for micros in (0..).map(|i: u64| i * 300 % 20_000) {
        match tokio::time::timeout(Duration::from_micros(micros), consumer.poll(LONG)).await {
            Ok(records) => seen.extend(offsets(&[records.unwrap()])),
            Err(_) => continue,
        }
        if seen.len() >= 50 {
            break;
        }
    }
    assert_eq!(seen, (0..50).map(|offset| (offset, 1)).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r008_a_refusal_of_the_group_is_shown_by_poll_and_not_hammered() {
    for (key, code) in [
        (ApiKey::SHARE_FETCH, ErrorCode::GROUP_AUTHORIZATION_FAILED),
        (ApiKey::SHARE_GROUP_HEARTBEAT, ErrorCode::GROUP_AUTHORIZATION_FAILED),
        (ApiKey::FIND_COORDINATOR, ErrorCode::GROUP_AUTHORIZATION_FAILED),
        (ApiKey::METADATA, ErrorCode::TOPIC_AUTHORIZATION_FAILED),
    ] {
        let rig = Rig::new(1).await;
        let fault = rig.broker.fault(Fault::new(FaultAction::Error(code)).key(key).times(u32::MAX));
        let consumer = rig.own_consumer(Mode::Explicit);
        let error = consumer.poll(LONG).await.expect_err("the refusal is shown");
        assert_eq!((error.kind(), error.code()), (ErrorKind::Authorization, Some(code)), "{key:?}: {error}");
        let (shown, since) = (rig.broker.fault_hits(fault), Instant::now());
        tokio::time::sleep(Duration::from_secs(1)).await;
        let more = rig.broker.fault_hits(fault) - shown;
        let seconds = since.elapsed().as_secs_f64();
        assert!(f64::from(more) < 15.0 * seconds, "{key:?}: {more} requests in {seconds} s");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r008_rights_that_are_withdrawn_are_missed_aloud_and_consuming_goes_on_once_they_are_back() {
    for (key, code, times) in [
        (ApiKey::SHARE_FETCH, ErrorCode::GROUP_AUTHORIZATION_FAILED, 3),
        (ApiKey::SHARE_GROUP_HEARTBEAT, ErrorCode::GROUP_AUTHORIZATION_FAILED, 3),
        (ApiKey::SHARE_GROUP_HEARTBEAT, ErrorCode::TOPIC_AUTHORIZATION_FAILED, 3),
        (ApiKey::FIND_COORDINATOR, ErrorCode::GROUP_AUTHORIZATION_FAILED, 3),
        (ApiKey::METADATA, ErrorCode::TOPIC_AUTHORIZATION_FAILED, 3),
    ] {
        let rig = Rig::new(1).await;
        rig.produce(0..1).await;
        // One that is there already loses its rights, and so does one that joins; the heartbeats of the first are far apart.
        let member = rig.own_consumer(Mode::Explicit);
        let first = rig.receive(&member, 1).await;
        member.acknowledge_all(&first[0], AckType::Accept).unwrap();
        member.commit_sync(LONG).await.unwrap();
        rig.broker.fault(Fault::new(FaultAction::Error(code)).key(key).times(times));
        let joining = rig.own_consumer(Mode::Explicit);
        let reached = if key == ApiKey::SHARE_FETCH { &member } else { &joining };
        let mut errors = 0;
        let deadline = Instant::now() + LONG;
        while errors < 2 {
            assert!(Instant::now() < deadline, "{key:?}: {errors} errors");
            match reached.poll(SHORT).await {
                Ok(records) => assert!(records.is_empty()),
                Err(error) => {
                    assert_eq!(
                        (error.kind(), error.code()),
                        (ErrorKind::Authorization, Some(code)),
                        "{key:?}: {error}"
                    );
                    errors += 1;
                }
            }
        }
        rig.produce(1..2).await;
        let mut got = 0;
        while got == 0 {
            assert!(Instant::now() < deadline, "{key:?}: no record after the rights were back");
            for consumer in [&member, &joining] {
                got += consumer.poll(SHORT).await.map_or(0, |records| records.len());
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refusal_for_good_is_returned_by_every_poll_until_the_next_subscription() {
    let rig = Rig::new(1).await;
    rig.produce(0..1).await;
    let full = FaultAction::Error(ErrorCode::GROUP_MAX_SIZE_REACHED);
    rig.broker.fault(Fault::new(full).key(ApiKey::SHARE_GROUP_HEARTBEAT));
    let consumer = rig.consumer(Mode::Explicit);
    for _ in 0..3 {
        let error = consumer.poll(LONG).await.unwrap_err();
        assert_eq!(error.code(), Some(ErrorCode::GROUP_MAX_SIZE_REACHED), "{error}");
    }
    let mut stream = std::pin::pin!(consumer.stream());
    assert!(std::future::poll_fn(|cx| stream.as_mut().poll_next(cx)).await.is_some_and(|item| item.is_err()));
    assert!(std::future::poll_fn(|cx| stream.as_mut().poll_next(cx)).await.is_none());
    assert_eq!(rig.broker.dump().groups.iter().map(|g| g.members.len()).sum::<usize>(), 0, "it has not joined");
    consumer.subscribe([rig.topic()]).unwrap();
    assert_eq!(offsets(&rig.receive(&consumer, 1).await), [(0, 1)]);
    consumer.close(LONG).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r039_commits_that_time_out_are_sent_once_each() {
    let rig = Rig::new(1).await;
    rig.produce(0..3).await;
    let consumer = rig.consumer(Mode::Explicit);
    let records = rig.receive(&consumer, 3).await;
    let delay = FaultAction::Delay(Duration::from_secs(2));
    let fault = rig.broker.fault(Fault::new(delay).key(ApiKey::SHARE_ACKNOWLEDGE).times(u32::MAX));
    for record in records.iter().flatten() {
        consumer.acknowledge(&record).unwrap();
        let error = consumer.commit_sync(Duration::from_millis(200)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Timeout);
    }
    consumer.close(LONG).await.unwrap();
    let outcomes = consumer.poll_outcomes();
    assert!(outcomes.iter().all(|o| o.outcome == Outcome::Acknowledged), "{outcomes:?}");
    assert_eq!(outcomes.iter().map(|o| o.last_offset - o.first_offset + 1).sum::<i64>(), 3);
    assert!(rig.broker.fault_hits(fault) <= 4, "three commits and the close");
    rig.produce(3..4).await;
    let second = rig.consumer(Mode::Explicit);
    assert_eq!(offsets(&rig.receive(&second, 1).await), [(3, 1)]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn acknowledgements_go_out_by_their_age_alone() {
    // Nothing polls, nothing commits, no heartbeat is due: the age limit (a quarter of the lock) is all there is.
    let bounds = |bounds: &mut GroupBounds| {
        bounds.record_lock_ms.0 = 1_000;
        bounds.heartbeat_ms = (100, 60_000);
        bounds.session_timeout_ms = (1_000, 200_000);
    };
    let rig = Rig::with(1, bounds).await;
    rig.configure("share.session.timeout.ms", "180000").await;
    rig.configure("share.heartbeat.interval.ms", "60000").await;
    rig.configure("share.record.lock.duration.ms", "10000").await;
    rig.produce(0..1).await;
    let consumer = rig.consumer(Mode::Explicit);
    let records = rig.receive(&consumer, 1).await;
    let given = Instant::now();
    consumer.acknowledge_all(&records[0], AckType::Accept).unwrap();
    let outcomes = loop {
        let outcomes = consumer.poll_outcomes();
        if !outcomes.is_empty() || given.elapsed() > LONG {
            break outcomes;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    };
    assert_eq!(outcomes.first().map(|o| o.outcome), Some(Outcome::Acknowledged));
    assert!(given.elapsed() < Duration::from_secs(10), "after {:?}", given.elapsed());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r169_a_consumer_dropped_without_close_frees_its_records() {
    let rig = Rig::new(1).await;
    rig.produce(0..2).await;
    let first = rig.consumer(Mode::Explicit);
    let records = rig.receive(&first, 2).await;
    drop(first);
    drop(records);
    let second = rig.consumer(Mode::Explicit);
    assert_eq!(offsets(&rig.receive(&second, 2).await), [(0, 2), (1, 2)]);
    // In the middle of a poll.
    let polling = tokio::spawn(async move { second.poll(LONG).await.map(|r| r.len()) });
    tokio::task::yield_now().await;
    polling.abort();
    assert!(polling.await.is_err());
    let third = rig.consumer(Mode::Explicit);
    assert_eq!(offsets(&rig.receive(&third, 2).await), [(0, 3), (1, 3)]);
    // Outside of any runtime.
    std::thread::spawn(move || drop(third)).join().unwrap();
    let fourth = rig.consumer(Mode::Explicit);
    assert_eq!(offsets(&rig.receive(&fourth, 2).await), [(0, 4), (1, 4)]);
    // Nor do those who went stay in the group.
    let end = Instant::now() + LONG;
    while rig.broker.dump().groups.iter().map(|g| g.members.len()).sum::<usize>() > 1 {
        assert!(Instant::now() < end, "{:?}", rig.broker.dump().groups);
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    fourth.close(LONG).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r163_calls_fail_at_once_when_the_background_task_is_gone() {
    let rig = Rig::new(1).await;
    rig.produce_at_once(2).await;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let consumer = {
        let _inside = runtime.enter();
        Arc::new(rig.own_consumer(Mode::Explicit))
    };
    let records = rig.receive(&consumer, 2).await;
    let seen = Fault::new(FaultAction::Delay(2 * LONG)).key(ApiKey::SHARE_FETCH).times(u32::MAX);
    let seen = rig.broker.fault(seen);
    let waiting = tokio::spawn({
        let consumer = Arc::clone(&consumer);
        async move { consumer.poll(LONG).await.map(|r| r.len()) }
    });
    while rig.broker.fault_hits(seen) == 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    // Said, and not sent: a fetch is under way.
    let (said, held) = (records[0].iter().next().unwrap(), records[0].iter().nth(1).unwrap());
    consumer.acknowledge(&said).unwrap();
    runtime.shutdown_background();
    assert_eq!(waiting.await.unwrap().unwrap_err().kind(), ErrorKind::Closed);
    let outcome = tokio::time::timeout(LONG, consumer.next_outcome()).await.unwrap().unwrap();
    assert_eq!((outcome.first_offset, outcome.last_offset, outcome.outcome), (0, 0, Outcome::LockLost));
    assert_eq!(tokio::time::timeout(LONG, consumer.next_outcome()).await.unwrap(), None);
    assert_eq!(consumer.acknowledge(&held).unwrap_err().kind(), ErrorKind::Fenced);
    let refused = consumer.acknowledge_all(&records[0], AckType::Accept);
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(consumer.commit_sync(LONG).await.unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(consumer.poll(LONG).await.unwrap_err().kind(), ErrorKind::Closed);
    consumer.close(LONG).await.unwrap();
}
