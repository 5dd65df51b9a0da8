//! Members that come, go and share the work.

use crate::lab::{AT_ONCE, EXPLICIT, IMPLICIT, LONG, Lab, SHORT, joined, numbers, receive};
use kafka_share::admin::{NewTopic, ShareGroupSettings};
use kafka_share::{AckType, ErrorCode, Outcome};
use kafka_share_messages::ShareFetchRequest;
use kafka_share_tests::raw::Raw;
use std::time::{Duration, Instant};

pub(crate) async fn unsubscribing_frees_records_at_once(lab: &Lab) {
    let place = lab.place_with_long_locks().await;
    lab.produce(&place, 0..10).await;
    let first = lab.member(&place, EXPLICIT);
    receive(&first, 10).await;
    let second = lab.member(&place, EXPLICIT);
    joined(&second).await;
    let started = Instant::now();
    first.unsubscribe();
    lab.came(&receive(&second, 10).await, 0..10, lab.after_lost_sessions(1));
    assert!(started.elapsed() < AT_ONCE, "{:?}", started.elapsed());
    // And it can come back.
    assert!(first.subscription().is_empty());
    first.subscribe([&place.topic]).unwrap();
    second.close(LONG).await.unwrap();
    lab.came(&receive(&first, 10).await, 0..10, lab.after_lost_sessions(2));
    first.close(LONG).await.unwrap();
}

pub(crate) async fn closing_frees_records_at_once(lab: &Lab) {
    let place = lab.place_with_long_locks().await;
    lab.produce(&place, 0..10).await;
    let first = lab.member(&place, EXPLICIT);
    let records = receive(&first, 10).await;
    first.acknowledge(&records.iter().flatten().next().unwrap()).unwrap();
    let started = Instant::now();
    first.close(LONG).await.unwrap();
    let second = lab.member(&place, EXPLICIT);
    lab.came(&receive(&second, 9).await, 1..10, lab.after_lost_sessions(1));
    assert!(started.elapsed() < AT_ONCE, "{:?}", started.elapsed());
    second.close(LONG).await.unwrap();
}

pub(crate) async fn two_members_share_partitions_without_overlap(lab: &Lab) {
    let place = lab.place(2).await;
    let build = || lab.subscribed(&place, lab.builder(&place).acknowledgement_mode(IMPLICIT).max_poll_records(5));
    let members = [build(), build()];
    for member in &members {
        joined(member).await;
    }
    lab.produce_batches(&place, 0, 0..100, 5).await;
    lab.produce_batches(&place, 1, 100..200, 5).await;
    let (mut seen, mut by_member, mut written) = (Vec::new(), [0, 0], 200);
    let until = Instant::now() + LONG;
    loop {
        for (at, member) in members.iter().enumerate() {
            let got = numbers(&[member.poll(SHORT).await.unwrap()]);
            by_member[at] += got.len();
            seen.extend(got.iter().map(|(number, _)| *number));
        }
        assert!(Instant::now() < until, "{} of {written} came, {by_member:?}", seen.len());
        if seen.len() < written as usize {
            continue;
        }
        if by_member.iter().all(|n| *n > 0) {
            break;
        }
        // Who came second may have no assignment yet.
        for partition in [0, 1] {
            lab.produce_to(&place, partition, written..written + 5).await;
            written += 5;
        }
    }
    seen.sort_unstable();
    assert_eq!(seen, (0..written).collect::<Vec<_>>());
    for member in members {
        member.close(LONG).await.unwrap();
    }
}

pub(crate) async fn a_topic_that_comes_later_is_found(lab: &Lab) {
    let mut place = lab.place(1).await;
    place.topic.push_str("-later");
    // Or the broker creates it as soon as it is asked for.
    let builder = lab.builder(&place).acknowledgement_mode(IMPLICIT).allow_auto_create_topics(false);
    let consumer = lab.subscribed(&place, builder);
    joined(&consumer).await;
    lab.admin.create_topic(NewTopic::new(&place.topic, 1)).await.unwrap();
    lab.produce(&place, 0..1).await;
    assert_eq!(numbers(&receive(&consumer, 1).await), [(0, 1)]);
    consumer.close(LONG).await.unwrap();
}

/// A new member hears of its assignment with a heartbeat, and those are 15 s apart here later on.
pub(crate) async fn join_to_first_record_is_quick(lab: &Lab) {
    let place = lab.place_with(1, ShareGroupSettings::new().set("share.heartbeat.interval.ms", "15000")).await;
    lab.produce(&place, 0..1).await;
    let mut times = Vec::new();
    for _ in 0..3 {
        let started = Instant::now();
        let consumer = lab.member(&place, EXPLICIT);
        // The count is another matter: where the group was empty meanwhile, a broker may have forgotten that it was delivered.
        assert_eq!(numbers(&receive(&consumer, 1).await)[0].0, 0);
        times.push(started.elapsed());
        consumer.close(LONG).await.unwrap();
    }
    let best = times.iter().min().unwrap();
    // The best of three, as all scenarios keep the machine busy; one that waits for a heartbeat takes 15 s each time.
    assert!(*best < Duration::from_secs(12), "{times:?}");
}

/// Somebody else goes on with the member's share session, so that its next request has an epoch that the broker refuses.
pub(crate) async fn r002_a_session_whose_epoch_is_refused_frees_its_records_at_once(lab: &Lab) {
    let place = lab.place_with_long_locks().await;
    lab.produce(&place, 0..5).await;
    let consumer = lab.member(&place, EXPLICIT);
    let records = receive(&consumer, 5).await;
    let member = consumer.share_group_metadata().unwrap();
    let address = lab.servers.parse().expect("one broker");
    let mut other = Raw::connect(address).unwrap();
    let stolen = (1..100).find(|epoch| {
        let request = ShareFetchRequest {
            group_id: Some(place.group.as_str().into()),
            member_id: Some(member.member_id().into()),
            share_session_epoch: *epoch,
            max_bytes: 1 << 20,
            max_records: 1,
            batch_size: 1,
            ..ShareFetchRequest::default()
        };
        other.call(&request, 1).unwrap().error_code.is_ok()
    });
    assert!(stolen.is_some(), "the session's epoch was not found");
    for records in &records {
        consumer.acknowledge_all(records, AckType::Accept).unwrap();
    }
    let outcomes = consumer.commit_sync(LONG).await.unwrap();
    let refused = Outcome::Refused(ErrorCode::INVALID_SHARE_SESSION_EPOCH);
    assert_eq!(outcomes[&(place.topic.clone(), 0)], refused, "{outcomes:?}");
    let started = Instant::now();
    lab.came(&receive(&consumer, 5).await, 0..5, lab.after_lost_sessions(1));
    assert!(started.elapsed() < AT_ONCE, "they waited for their locks: {:?}", started.elapsed());
    consumer.close(LONG).await.unwrap();
}
