//! Tests of dead letter queues (KIP-1191): what is written, where it is refused, and what happens meanwhile.

use super::tests::{World, ranges};
use crate::settings::{Change, Overrides, TOPIC_DEFINITIONS, change};
use crate::share_coordinator::ShareKey;
use crate::share_partition::StoredState;
use crate::{Fault, FaultAction};
use kafka_share_messages::fetch_request::{FetchPartition, FetchTopic};
use kafka_share_messages::{ApiKey, ErrorCode, FetchRequest};
use kafka_share_wire::records::{BatchIter, BatchOptions};
use kafka_share_wire::{Str, Uuid};

/// Offset in the queue, offset of the source, delivery count, message, and whether a value came along.
pub(super) type Letter = (i64, String, String, String, bool);

fn allow(world: &mut World, topic: Uuid) {
    let mut overrides = Overrides::new();
    let name = "errors.deadletterqueue.group.enable";
    change(TOPIC_DEFINITIONS, &mut overrides, name, Change::Set, Some("true")).unwrap();
    world.client.cluster.set_topic_overrides(topic, overrides);
}

/// A world whose group `g` has the queue `dlq.g`, of two partitions.
pub(super) fn with_queue(world: &mut World) -> Uuid {
    let queue = world.client.create_topic("dlq.g", 2);
    for partition in 0..2 {
        world.client.cluster.move_leader(world.client.now, "dlq.g", partition, 1);
    }
    allow(world, queue);
    world.set("errors.deadletterqueue.topic.name", "dlq.g");
    queue
}

/// What an ordinary consumer reads of the queue.
pub(super) fn letters(world: &mut World, queue: Uuid, partition: i32) -> Vec<Letter> {
    let asked = FetchPartition { partition, partition_max_bytes: 1 << 20, ..Default::default() };
    let topic = FetchTopic { topic_id: queue, partitions: vec![asked], ..Default::default() };
    let request = FetchRequest { max_bytes: 1 << 20, topics: vec![topic], ..Default::default() };
    let response = world.client.call(&request);
    let data = &response.responses[0].partitions[0];
    assert_eq!(data.error_code, ErrorCode::NONE);
    let mut found = Vec::new();
    for batch in BatchIter::new(data.records.clone().unwrap_or_default()) {
        for record in batch.unwrap().decode(1 << 20).unwrap().iter() {
            let record = record.unwrap();
            let header = |name: &str| {
                let value = record.headers.last_with_key(name).and_then(|header| header.value);
                String::from_utf8(value.unwrap_or_else(|| panic!("no {name}")).to_vec()).unwrap()
            };
            assert_eq!((header("__dlq.errors.topic"), header("__dlq.errors.group")), ("t".into(), "g".into()));
            assert!(record.timestamp > 0, "the time of the writing");
            let (offset, count) = (header("__dlq.errors.offset"), header("__dlq.errors.delivery.count"));
            found.push((record.offset, offset, count, header("__dlq.errors.message"), record.value.is_some()));
        }
    }
    found
}

fn letter(at: i64, source: i64, count: i64, message: &str, value: bool) -> Letter {
    (at, source.to_string(), count.to_string(), message.into(), value)
}

const REJECTED: &str = "Offset rejected by client.";
const LIMIT: &str = "Offset delivery count exceeded the threshold.";

#[test]
fn rejected_records_and_those_delivered_too_often_are_written_to_the_queue() {
    let mut world = World::new(1, 4);
    let queue = with_queue(&mut world);
    world.set("share.delivery.count.limit", "2");
    world.produce(3, 6);
    world.fetch("m", 0, &[(3, &[])]);
    world.ack("m", 1, 3, &[(0, 2, &[3, 1, 3]), (3, 3, &[0])]);
    let rejected = [letter(0, 0, 1, REJECTED, false), letter(1, 2, 1, REJECTED, false)];
    assert_eq!(letters(&mut world, queue, 1), rejected, "partition 3 of 4 goes to 1 of 2; a gap has no record");
    assert_eq!(letters(&mut world, queue, 0), []);
    world.client.advance(30_000);
    assert_eq!(ranges(&world.fetch("m", 2, &[])).iter().map(|r| (r.1, r.3)).collect::<Vec<_>>(), [(4, 2)]);
    world.ack("m", 3, 3, &[(4, 4, &[2])]);
    let all = letters(&mut world, queue, 1);
    assert_eq!(all[2..], [letter(2, 4, 2, LIMIT, false)]);
    ranges(&world.fetch("m", 4, &[]));
    world.client.advance(30_000);
    assert_eq!(letters(&mut world, queue, 1).len(), 4, "an expired lock counts as well");
    let dump = world.client.cluster.share_dump();
    assert_eq!(dump.partitions.iter().map(|p| (p.archiving, p.start_offset)).max(), Some((0, 6)), "all are done");
}

#[test]
fn a_session_that_closes_gives_its_last_deliveries_to_the_queue() {
    let mut world = World::new(1, 1);
    let queue = with_queue(&mut world);
    world.set("share.delivery.count.limit", "2");
    world.produce(0, 1);
    for delivery in 1..=2 {
        assert_eq!(ranges(&world.fetch("m", 0, &[(0, &[])])), [(0, 0, 0, delivery)]);
        world.fetch("m", -1, &[]);
    }
    assert_eq!(letters(&mut world, queue, 0), [letter(0, 0, 2, LIMIT, false)]);
}

#[test]
fn key_and_value_come_along_where_the_group_wants_it() {
    let mut world = World::new(1, 1);
    let queue = with_queue(&mut world);
    world.set("errors.deadletterqueue.copy.record.enable", "true");
    world.append(
        0,
        3,
        BatchOptions { compression: kafka_share_wire::compression::Compression::Gzip, ..BatchOptions::default() },
    );
    world.append(0, 2, BatchOptions::default());
    world.fetch("m", 0, &[(0, &[])]);
    world.ack("m", 1, 0, &[(1, 4, &[3])]);
    let all: Vec<_> = (0..4).map(|n| letter(n, n + 1, 1, REJECTED, true)).collect();
    assert_eq!(letters(&mut world, queue, 0), all);
}

#[test]
fn a_queue_that_takes_small_batches_gets_several() {
    let mut world = World::new(1, 1);
    let queue = with_queue(&mut world);
    let mut overrides = world.client.cluster.topics.by_id(queue).unwrap().overrides.clone();
    change(TOPIC_DEFINITIONS, &mut overrides, "max.message.bytes", Change::Set, Some("600")).unwrap();
    world.client.cluster.set_topic_overrides(queue, overrides.clone());
    world.produce(0, 10);
    world.fetch("m", 0, &[(0, &[])]);
    world.ack("m", 1, 0, &[(0, 8, &[3])]);
    assert_eq!(letters(&mut world, queue, 0).len(), 9);
    assert!(world.client.cluster.topics.by_id(queue).unwrap().partitions[0].log.batches(0, 9).count() > 2);
    change(TOPIC_DEFINITIONS, &mut overrides, "max.message.bytes", Change::Set, Some("100")).unwrap();
    world.client.cluster.set_topic_overrides(queue, overrides);
    world.ack("m", 2, 0, &[(9, 9, &[3])]);
    assert_eq!(letters(&mut world, queue, 0).len(), 9, "one that does not fit is archived without");
    assert_eq!(world.client.cluster.share_dump().partitions[0].start_offset, 10);
}

/// Rejects a record and says how many letters the queue has and whether the record is done.
fn reject_one(world: &mut World, queue: Option<Uuid>) -> (usize, bool) {
    world.produce(0, 1);
    let got = ranges(&world.fetch("m", 0, &[(0, &[])]));
    let offset = got[0].1;
    world.ack("m", 1, 0, &[(offset, offset, &[3])]);
    let start = world.client.cluster.share_dump().partitions[0].start_offset;
    (queue.map_or(0, |queue| letters(world, queue, 0).len()), start == offset + 1)
}

#[test]
fn a_queue_that_does_not_fit_loses_the_letter_but_not_the_archiving() {
    let mut world = World::new(1, 1);
    world.set("errors.deadletterqueue.topic.name", "dlq.missing");
    assert_eq!(reject_one(&mut world, None), (0, true));
    let closed = world.client.create_topic("dlq.closed", 1);
    world.set("errors.deadletterqueue.topic.name", "dlq.closed");
    assert_eq!(reject_one(&mut world, Some(closed)), (0, true), "the topic does not allow it");
    let other = world.client.create_topic("other", 1);
    allow(&mut world, other);
    world.set("errors.deadletterqueue.topic.name", "other");
    assert_eq!(reject_one(&mut world, Some(other)), (0, true), "the name lacks the prefix");
    allow(&mut world, closed);
    world.set("errors.deadletterqueue.topic.name", "dlq.closed");
    assert_eq!(reject_one(&mut world, Some(closed)), (1, true));
    world.client.cluster.inject(Fault::new(FaultAction::Error(ErrorCode::INVALID_RECORD)).key(ApiKey::PRODUCE));
    assert_eq!(reject_one(&mut world, Some(closed)), (1, true), "an error that no retry heals");
    assert_eq!(world.client.cluster.topics.get("dlq.missing").map(|topic| topic.id), None);
}

#[test]
fn queues_are_created_where_the_broker_may() {
    let mut world = World::with(1, 1, |config| config.auto_create_dead_letter_topics = true);
    world.set("errors.deadletterqueue.topic.name", "dlq.new");
    world.produce(0, 2);
    world.fetch("m", 0, &[(0, &[])]);
    world.ack("m", 1, 0, &[(0, 0, &[3])]);
    let queue = world.client.cluster.topic_id("dlq.new").expect("created");
    assert!(world.client.cluster.topics.by_id(queue).unwrap().config.dead_letter_queue);
    assert_eq!(letters(&mut world, queue, 0), [letter(0, 0, 1, REJECTED, false)]);
    world.set("errors.deadletterqueue.topic.name", "dlq.bad name");
    world.ack("m", 2, 0, &[(1, 1, &[3])]);
    assert_eq!(world.client.cluster.share_dump().partitions[0].start_offset, 2, "archived all the same");
}

//= SHARE-DLQ-13 SHARE-DLQ-14
#[test]
fn a_write_that_fails_for_now_is_tried_five_times_and_resumed_by_the_next_leader() {
    let mut world = World::new(2, 1);
    let queue = with_queue(&mut world);
    let stored = |world: &World| {
        let key = ShareKey { group: Str::from_static("g"), topic: world.topic, partition: 0 };
        world.client.cluster.share.stored_state(&key).unwrap().batches.first().map(|batch| batch.state)
    };
    let fault = Fault::new(FaultAction::Error(ErrorCode::NOT_LEADER_OR_FOLLOWER)).key(ApiKey::PRODUCE).times(5);
    let id = world.client.cluster.inject(fault.clone());
    assert_eq!(reject_one(&mut world, Some(queue)), (0, false));
    assert_eq!(stored(&world), Some(StoredState::Archiving));
    for (pause, hits) in [(1_999, 1), (1, 2), (3_999, 2), (1, 3), (8_000, 4), (15_999, 4)] {
        world.client.advance(pause);
        assert_eq!(world.client.cluster.fault_hits(id), hits);
    }
    assert_eq!(stored(&world), Some(StoredState::Archiving));
    world.client.advance(1);
    assert_eq!((world.client.cluster.fault_hits(id), stored(&world)), (5, Some(StoredState::Archived)), "given up");

    world.client.cluster.inject(fault.times(1));
    assert_eq!(reject_one(&mut world, Some(queue)), (0, false));
    let now = world.client.now;
    world.client.cluster.move_leader(now, "t", 0, 2);
    let conn = world.client.connect(2);
    world.fetch_on(conn, "m", 0, &[(0, &[])]);
    assert_eq!(letters(&mut world, queue, 0), [letter(0, 1, 1, REJECTED, false)], "the new leader writes it");
    world.client.advance(60_000);
    assert_eq!(stored(&world), Some(StoredState::Archived));
    assert_eq!(world.client.cluster.next_deadline().map(|due| due > world.client.now.mono), Some(true));
}
