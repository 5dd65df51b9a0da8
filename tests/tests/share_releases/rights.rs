//! Rights that are withdrawn from a member and given back, on brokers with an authoriser.

use crate::lab::{EXPLICIT, LONG, Lab, Place, SHORT, numbers, receive};
use kafka_share::admin::ShareGroupSettings;
use kafka_share::{AckType, ErrorCode, ErrorKind, KafkaShareConsumer, Outcome};
use kafka_share_messages::fetch_request::{FetchPartition, FetchTopic};
use kafka_share_messages::{FetchRequest, ShareGroupHeartbeatRequest};
use kafka_share_tests::acls::{self, Keeper, Resource};
use kafka_share_tests::raw::Raw;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// Within which a member that polls hears of it once the broker refuses: less than a heartbeat is away.
const TOLD_WITHIN: Duration = Duration::from_secs(12);

fn rare_heartbeats() -> ShareGroupSettings {
    ShareGroupSettings::new().set("share.heartbeat.interval.ms", "15000")
}

pub(crate) async fn withdrawn_rights_on_the_group(lab: &Lab, broker: Keeper<'_>) {
    let place = lab.place_with(1, rare_heartbeats()).await;
    withdrawn(lab, broker, &place, Resource::Group, &place.group, ErrorCode::GROUP_AUTHORIZATION_FAILED).await;
}

pub(crate) async fn withdrawn_rights_on_the_topic(lab: &Lab, broker: Keeper<'_>) {
    let place = lab.place_with(1, rare_heartbeats()).await;
    withdrawn(lab, broker, &place, Resource::Topic, &place.topic, ErrorCode::TOPIC_AUTHORIZATION_FAILED).await;
}

async fn withdrawn(lab: &Lab, broker: Keeper<'_>, place: &Place, resource: Resource, name: &str, code: ErrorCode) {
    lab.produce(place, 0..10).await;
    let consumer = lab.member(place, EXPLICIT);
    let held = receive(&consumer, 10).await;
    for record in held.iter().flatten().take(5) {
        consumer.acknowledge(&record).unwrap();
    }
    consumer.commit_sync(LONG).await.unwrap();
    let taken: i64 = consumer.poll_outcomes().iter().map(|o| o.last_offset - o.first_offset + 1).sum();
    assert_eq!(taken, 5, "the first five were taken");

    acls::deny_read(broker, resource, name).unwrap();
    until_in_force(lab.servers.parse().unwrap(), place, code);
    refused(&consumer, code, Instant::now() + TOLD_WITHIN).await;
    // What it still has in hand: nobody says that it was taken.
    let mut given = 0;
    for record in held.iter().flatten().skip(5) {
        match consumer.acknowledge_with(&record, AckType::Accept) {
            Ok(()) => given += 1,
            Err(error) => assert_eq!(error.kind(), ErrorKind::Fenced, "{error}"),
        }
    }
    consumer.commit_sync(LONG).await.unwrap();
    let outcomes = consumer.poll_outcomes();
    assert_eq!(outcomes.iter().map(|o| o.last_offset - o.first_offset + 1).sum::<i64>(), given);
    assert!(outcomes.iter().all(|o| o.outcome != Outcome::Acknowledged), "{outcomes:?}");
    // It goes on saying so, without asking in a loop.
    let (mut told, watched) = (0, Instant::now());
    while watched.elapsed() < Duration::from_secs(5) {
        match consumer.poll(SHORT).await {
            Ok(records) => assert!(records.is_empty()),
            Err(error) => told += usize::from(is(&error, code)),
        }
    }
    // A loop would make thousands; how the pauses between fall is not told here.
    let most = 20 * (watched.elapsed().as_secs() as usize).max(5);
    assert!((1..=most).contains(&told), "{told} errors in {:?}", watched.elapsed());

    acls::allow_read(broker, resource, name).unwrap();
    lab.produce(place, 10..20).await;
    let mut came = Vec::new();
    let until = Instant::now() + LONG;
    while came.len() < 15 {
        assert!(Instant::now() < until, "{came:?}");
        match consumer.poll(SHORT).await {
            Ok(records) => came.extend(numbers(&[records])),
            // From before it was given back.
            Err(error) => assert!(is(&error, code), "{error}"),
        }
    }
    let expected: Vec<u32> = (5..20).collect();
    came.sort_unstable();
    assert_eq!(came.iter().map(|(number, _)| *number).collect::<Vec<_>>(), expected, "five come again, ten are new");
    consumer.close(LONG).await.unwrap();
}

/// Waits until the broker refuses a stranger: entries take effect a moment after their answer.
fn until_in_force(broker: SocketAddr, place: &Place, code: ErrorCode) {
    let (until, mut raw) = (Instant::now() + LONG, Raw::connect(broker).unwrap());
    let partition = FetchPartition { partition_max_bytes: 1, current_leader_epoch: -1, ..Default::default() };
    let topic = FetchTopic { topic: place.topic.as_str().into(), partitions: vec![partition], ..Default::default() };
    let fetch = FetchRequest { max_bytes: 1, session_epoch: -1, topics: vec![topic], ..Default::default() };
    let leave = ShareGroupHeartbeatRequest {
        group_id: place.group.as_str().into(),
        member_id: "stranger".into(),
        member_epoch: -1,
        ..Default::default()
    };
    loop {
        let answer = raw.call(&fetch, 12).unwrap();
        let of_topic = answer.responses.iter().flat_map(|t| &t.partitions).any(|p| p.error_code == code);
        if of_topic || raw.latest(&leave).unwrap().error_code == code {
            return;
        }
        assert!(Instant::now() < until, "the entries take no effect");
        std::thread::park_timeout(Duration::from_millis(20));
    }
}

async fn refused(consumer: &KafkaShareConsumer, code: ErrorCode, until: Instant) {
    loop {
        match consumer.poll(SHORT).await {
            Ok(records) => assert!(records.is_empty() && Instant::now() < until, "polls stay empty"),
            Err(error) => return assert!(is(&error, code), "{error}"),
        }
    }
}

fn is(error: &kafka_share::Error, code: ErrorCode) -> bool {
    error.kind() == ErrorKind::Authorization && error.code() == Some(code)
}
