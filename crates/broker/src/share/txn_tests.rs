//! Tests of transactional acknowledgements on frames: staging, markers, moves, refusals (R76, R77, R79, R80).

use super::dead_letter_tests::{letters, with_queue};
use super::tests::{World, ack_code, ranges};
use crate::cluster::CoordinatorKind;
use kafka_share_messages::add_share_acks_to_txn_request::AddShareAcksToTxnTopic;
use kafka_share_messages::txn_share_acknowledge_request::{
    AcknowledgePartition, AcknowledgeTopic, AcknowledgementBatch,
};
use kafka_share_messages::{
    AddShareAcksToTxnRequest, EndTxnRequest, ErrorCode, InitProducerIdRequest, ShareGroupHeartbeatRequest,
    TxnShareAcknowledgeRequest, TxnShareAcknowledgeResponse,
};
use kafka_share_wire::Str;

/// First offset, last offset, types; of partition 0.
type Acks<'a> = &'a [(i64, i64, &'a [i8])];

/// A member with records and a transactional producer.
struct Pipeline {
    world: World,
    producer: (i64, i16),
    member_epoch: i32,
}

impl Pipeline {
    fn new(transaction_version: i16) -> Self {
        let mut world = World::with(3, 1, |config| config.features.transaction_version = transaction_version);
        let beat = ShareGroupHeartbeatRequest {
            group_id: Str::from_static("g"),
            member_id: Str::from_static("m"),
            subscribed_topic_names: Some(vec![Str::from_static("t")]),
            ..Default::default()
        };
        world.client.cluster.move_coordinator(world.client.now, CoordinatorKind::Group, "g", 1);
        world.client.cluster.move_coordinator(world.client.now, CoordinatorKind::Transaction, "txn", 1);
        let member_epoch = world.client.call(&beat).member_epoch;
        let producer = init(&mut world);
        world.produce(0, 10);
        assert_eq!(ranges(&world.fetch("m", 0, &[(0, &[])])), [(0, 0, 9, 1)]);
        Pipeline { world, producer, member_epoch }
    }

    fn request(&self, acks: Acks<'_>) -> TxnShareAcknowledgeRequest {
        let batch = |(first, last, types): &(i64, i64, &[i8])| AcknowledgementBatch {
            first_offset: *first,
            last_offset: *last,
            acknowledge_types: types.to_vec(),
            ..Default::default()
        };
        let partition =
            AcknowledgePartition { acknowledgement_batches: acks.iter().map(batch).collect(), ..Default::default() };
        TxnShareAcknowledgeRequest {
            transactional_id: Some(Str::from_static("txn")),
            group_id: Str::from_static("g"),
            producer_id: self.producer.0,
            producer_epoch: self.producer.1,
            member_id: Str::from_static("m"),
            member_epoch: self.member_epoch,
            topics: vec![AcknowledgeTopic {
                topic_id: self.world.topic,
                partitions: vec![partition],
                ..Default::default()
            }],
            ..Default::default()
        }
    }

    fn stage(&mut self, acks: Acks<'_>) -> TxnShareAcknowledgeResponse {
        let request = self.request(acks);
        self.world.client.call(&request)
    }

    fn staged(&mut self, acks: Acks<'_>) {
        let response = self.stage(acks);
        assert_eq!(code(&response), ErrorCode::NONE);
    }

    fn end(&mut self, committed: bool) -> ErrorCode {
        let request = EndTxnRequest {
            transactional_id: Str::from_static("txn"),
            producer_id: self.producer.0,
            producer_epoch: self.producer.1,
            committed,
            ..Default::default()
        };
        let version = if self.world.client.cluster.config.features.transaction_version >= 2 { 5 } else { 4 };
        let conn = self.world.client.conn;
        let response = self.world.client.call_on(conn, &request, version);
        if version == 5 && response.error_code.is_ok() {
            self.producer = (response.producer_id, response.producer_epoch);
        }
        response.error_code
    }

    fn start_offset(&self) -> i64 {
        self.world.client.cluster.share_dump().partitions[0].start_offset
    }
}

fn init(world: &mut World) -> (i64, i16) {
    let request = InitProducerIdRequest {
        transactional_id: Some(Str::from_static("txn")),
        transaction_timeout_ms: 60_000,
        ..Default::default()
    };
    let conn = world.client.conn;
    let mut response = world.client.call_on(conn, &request, 4);
    if response.error_code == ErrorCode::CONCURRENT_TRANSACTIONS {
        // The open transaction is aborted first.
        response = world.client.call_on(conn, &request, 4);
    }
    assert_eq!(response.error_code, ErrorCode::NONE);
    (response.producer_id, response.producer_epoch)
}

fn code(response: &TxnShareAcknowledgeResponse) -> ErrorCode {
    assert_eq!(response.error_code, ErrorCode::NONE);
    response.responses[0].partitions[0].error_code
}

#[test]
fn committed_acknowledgements_are_final_and_aborted_ones_undone() {
    let mut pipeline = Pipeline::new(2);
    pipeline.staged(&[(0, 3, &[1]), (4, 5, &[3, 1])]);
    assert_eq!(pipeline.world.held(), (4, 6));
    assert_eq!(ranges(&pipeline.world.fetch("n", 0, &[(0, &[])])), []);
    assert_eq!(pipeline.end(true), ErrorCode::NONE);
    assert_eq!((pipeline.world.held(), pipeline.start_offset()), ((4, 0), 6));
    pipeline.staged(&[(6, 9, &[1])]);
    assert_eq!(pipeline.end(false), ErrorCode::NONE);
    assert_eq!(ranges(&pipeline.world.fetch("n", 1, &[])), [(0, 6, 9, 2)], "redelivered with the next count");
}

//= TXN-SHARE-14
#[test]
fn a_rejection_reaches_the_dead_letter_queue_only_by_a_commit() {
    let mut pipeline = Pipeline::new(2);
    let queue = with_queue(&mut pipeline.world);
    pipeline.staged(&[(0, 2, &[1, 3, 0])]);
    assert_eq!(letters(&mut pipeline.world, queue, 0), [], "staged");
    assert_eq!(pipeline.end(false), ErrorCode::NONE);
    assert_eq!(letters(&mut pipeline.world, queue, 0), [], "aborted");
    assert_eq!(ranges(&pipeline.world.fetch("m", 1, &[])), [(0, 0, 2, 2)]);
    pipeline.staged(&[(0, 2, &[1, 3, 0])]);
    assert_eq!(pipeline.end(true), ErrorCode::NONE);
    let offsets = |world: &mut World| {
        letters(world, queue, 0).iter().map(|letter| (letter.1.clone(), letter.2.clone())).collect::<Vec<_>>()
    };
    assert_eq!(offsets(&mut pipeline.world), [("1".into(), "2".into())]);
    assert_eq!(pipeline.start_offset(), 3);

    // The marker comes while the source has no leader that knows it: the next one writes the letter.
    pipeline.staged(&[(3, 9, &[3])]);
    let now = pipeline.world.client.now;
    pipeline.world.client.cluster.move_leader(now, "t", 0, 2);
    assert_eq!(pipeline.end(true), ErrorCode::NONE);
    assert_eq!(offsets(&mut pipeline.world).len(), 1);
    let conn = pipeline.world.client.connect(2);
    pipeline.world.fetch_on(conn, "m", 0, &[(0, &[])]);
    assert_eq!(offsets(&mut pipeline.world).len(), 8);
    assert_eq!(pipeline.start_offset(), 10);
}

#[test]
fn a_second_call_joins_the_same_transaction() {
    let mut pipeline = Pipeline::new(2);
    pipeline.staged(&[(0, 3, &[1])]);
    pipeline.staged(&[(4, 9, &[1])]);
    assert_eq!(code(&pipeline.stage(&[(4, 9, &[1])])), ErrorCode::INVALID_RECORD_STATE, "staged already");
    assert_eq!(pipeline.end(true), ErrorCode::NONE);
    assert_eq!(pipeline.start_offset(), 10);
}

//= TXN-SHARE-13
#[test]
fn r76_a_call_that_fails_stages_nothing() {
    let mut pipeline = Pipeline::new(2);
    assert_eq!(ack_code(&pipeline.world.ack("m", 1, 0, &[(7, 7, &[2])])), ErrorCode::NONE);
    let response = pipeline.stage(&[(0, 4, &[1]), (5, 9, &[1])]);
    assert_eq!(code(&response), ErrorCode::INVALID_RECORD_STATE);
    assert_eq!(pipeline.world.held(), (9, 0));
    let mut request = pipeline.request(&[(0, 4, &[1])]);
    let mut unknown = request.topics[0].partitions[0].clone();
    unknown.partition_index = 5;
    request.topics[0].partitions.push(unknown);
    let response = pipeline.world.client.call(&request);
    let codes: Vec<ErrorCode> = response.responses[0].partitions.iter().map(|p| p.error_code).collect();
    assert_eq!(codes, [ErrorCode::OPERATION_NOT_ATTEMPTED, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION]);
    assert_eq!(pipeline.world.held(), (9, 0));
}

#[test]
fn only_acceptance_and_rejection_can_be_staged() {
    let mut pipeline = Pipeline::new(2);
    for types in [&[2][..], &[4], &[1, 2, 1], &[7]] {
        let acks = [(0, types.len() as i64 - 1, types)];
        assert_eq!(code(&pipeline.stage(&acks)), ErrorCode::INVALID_REQUEST, "{types:?}");
    }
    assert_eq!(pipeline.world.held(), (10, 0));
}

#[test]
fn strangers_and_old_members_are_fenced() {
    let mut pipeline = Pipeline::new(2);
    let epoch = pipeline.member_epoch;
    for (member, member_epoch, expected) in [
        ("m", epoch + 1, ErrorCode::FENCED_MEMBER_EPOCH),
        ("m", epoch - 2, ErrorCode::FENCED_MEMBER_EPOCH),
        ("x", epoch, ErrorCode::UNKNOWN_MEMBER_ID),
        ("", epoch, ErrorCode::INVALID_REQUEST),
    ] {
        let mut request = pipeline.request(&[(0, 3, &[1])]);
        request.member_id = Str::from(member);
        request.member_epoch = member_epoch;
        assert_eq!(pipeline.world.client.call(&request).error_code, expected, "{member} at {member_epoch}");
    }
    let mut request = pipeline.request(&[(0, 3, &[1])]);
    request.transactional_id = None;
    assert_eq!(pipeline.world.client.call(&request).error_code, ErrorCode::INVALID_REQUEST);
    assert_eq!(pipeline.world.held(), (10, 0));
}

#[test]
fn r77_pending_acknowledgements_survive_moves_of_leader_and_coordinators() {
    for committed in [true, false] {
        let mut pipeline = Pipeline::new(2);
        pipeline.staged(&[(0, 5, &[1])]);
        let now = pipeline.world.client.now;
        let state_key = crate::cluster::share_key("g", pipeline.world.topic, 0);
        let cluster = &mut pipeline.world.client.cluster;
        assert!(cluster.move_leader(now, "t", 0, 2));
        assert!(cluster.move_coordinator(now, CoordinatorKind::Share, &state_key, 3));
        let second = pipeline.world.client.connect(2);
        let before = pipeline.world.fetch_on(second, "n", 0, &[(0, &[])]);
        assert_eq!(ranges(&before), [(0, 6, 9, 1)], "what is pending is not delivered");
        assert!(pipeline.world.client.cluster.move_leader(now, "t", 0, 3));
        assert_eq!(pipeline.end(committed), ErrorCode::NONE, "with no leader that has loaded the state");
        let third = pipeline.world.client.connect(3);
        let after = ranges(&pipeline.world.fetch_on(third, "n", 0, &[(0, &[])]));
        let expected: &[_] = if committed { &[(0, 6, 9, 1)] } else { &[(0, 0, 5, 2), (0, 6, 9, 1)] };
        assert_eq!(after, expected, "committed {committed}");
    }
}

#[test]
fn r79_locks_do_not_run_on_what_is_staged_but_on_the_rest() {
    let mut pipeline = Pipeline::new(2);
    pipeline.staged(&[(0, 3, &[1])]);
    pipeline.world.client.advance(30_000);
    assert_eq!(pipeline.world.held(), (0, 4));
    assert_eq!(code(&pipeline.stage(&[(4, 5, &[1])])), ErrorCode::INVALID_RECORD_STATE, "too late");
    pipeline.world.fetch("m", -1, &[]);
    assert_eq!(pipeline.world.held(), (0, 4), "closing the session does not release what is staged");
    assert_eq!(pipeline.end(true), ErrorCode::NONE);
    assert_eq!(pipeline.start_offset(), 4);
}

#[test]
fn r80_fencing_and_timeouts_give_the_records_back() {
    let mut fenced = Pipeline::new(2);
    fenced.staged(&[(0, 9, &[1])]);
    init(&mut fenced.world);
    assert_eq!(fenced.world.held(), (0, 0));
    assert_eq!(ranges(&fenced.world.fetch("n", 0, &[(0, &[])])), [(0, 0, 9, 2)]);
    let refused = fenced.stage(&[(0, 9, &[1])]);
    assert!(refused.error_code != ErrorCode::NONE || code(&refused) != ErrorCode::NONE, "the old producer is out");

    let mut late = Pipeline::new(2);
    late.staged(&[(0, 9, &[1])]);
    late.world.client.advance(70_000);
    assert_eq!(late.world.held(), (0, 0));
    assert_eq!(ranges(&late.world.fetch("n", 0, &[(0, &[])])), [(0, 0, 9, 2)]);
}

#[test]
fn transaction_version_1_needs_the_state_enrolled_first() {
    let mut pipeline = Pipeline::new(1);
    let refused = pipeline.stage(&[(0, 3, &[1])]);
    assert_ne!(refused.error_code, ErrorCode::NONE);
    assert_eq!(pipeline.world.held(), (10, 0));
    let topic = AddShareAcksToTxnTopic { topic_id: pipeline.world.topic, partitions: vec![0], ..Default::default() };
    let request = AddShareAcksToTxnRequest {
        transactional_id: Str::from_static("txn"),
        producer_id: pipeline.producer.0,
        producer_epoch: pipeline.producer.1,
        group_id: Str::from_static("g"),
        topics: vec![topic],
        ..Default::default()
    };
    assert_eq!(pipeline.world.client.call(&request).error_code, ErrorCode::NONE);
    pipeline.staged(&[(0, 3, &[1])]);
    assert_eq!(pipeline.end(true), ErrorCode::NONE);
    assert_eq!((pipeline.world.held(), pipeline.start_offset()), ((6, 0), 4));
}

/// What AddShareAcksToTxn of partition 0 to coordinator node 1 asks.
fn enrolment(pipeline: &Pipeline) -> AddShareAcksToTxnRequest {
    let topic = AddShareAcksToTxnTopic { topic_id: pipeline.world.topic, partitions: vec![0], ..Default::default() };
    AddShareAcksToTxnRequest {
        transactional_id: Str::from_static("txn"),
        producer_id: pipeline.producer.0,
        producer_epoch: pipeline.producer.1,
        group_id: Str::from_static("g"),
        topics: vec![topic],
        ..Default::default()
    }
}

#[test]
fn enrolment_is_refused_with_the_error_that_says_why() {
    let mut pipeline = Pipeline::new(1);
    let good = enrolment(&pipeline);
    let mut unknown_topic = good.clone();
    unknown_topic.topics[0].topic_id = kafka_share_wire::Uuid::from_halves(7, 7);
    let mut unknown_partition = good.clone();
    unknown_partition.topics[0].partitions = vec![0, 9];
    let (id, epoch) = pipeline.producer;
    for (request, expected) in [
        (unknown_topic, ErrorCode::UNKNOWN_TOPIC_ID),
        (unknown_partition, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION),
        (AddShareAcksToTxnRequest { producer_epoch: epoch - 1, ..good.clone() }, ErrorCode::PRODUCER_FENCED),
        (AddShareAcksToTxnRequest { producer_id: id + 1, ..good.clone() }, ErrorCode::INVALID_PRODUCER_ID_MAPPING),
        (AddShareAcksToTxnRequest { group_id: Str::default(), ..good.clone() }, ErrorCode::INVALID_REQUEST),
        (
            AddShareAcksToTxnRequest { transactional_id: Str::from_static("other"), ..good.clone() },
            ErrorCode::INVALID_PRODUCER_ID_MAPPING,
        ),
    ] {
        let conn = pipeline.world.client.conn;
        let now = pipeline.world.client.now;
        pipeline.world.client.cluster.move_coordinator(now, CoordinatorKind::Transaction, "other", 1);
        assert_eq!(pipeline.world.client.call_on(conn, &request, 0).error_code, expected, "{request:?}");
    }
    let elsewhere = pipeline.world.client.connect(2);
    assert_eq!(pipeline.world.client.call_on(elsewhere, &good, 0).error_code, ErrorCode::NOT_COORDINATOR);
    assert_ne!(pipeline.stage(&[(0, 3, &[1])]).error_code, ErrorCode::NONE, "nothing was enrolled");
}

//= TXN-SHARE-12
#[test]
fn an_abort_on_the_last_delivery_gives_the_record_another_one() {
    let mut pipeline = Pipeline::new(2);
    pipeline.world.set("share.delivery.count.limit", "2");
    assert_eq!(ack_code(&pipeline.world.ack("m", 1, 0, &[(0, 9, &[2])])), ErrorCode::NONE);
    // Suspicious records come one by one.
    let last = ranges(&pipeline.world.fetch("m", 2, &[]));
    let (_, first, end, count) = last[0];
    assert_eq!((first, count), (0, 2));
    pipeline.staged(&[(first, end, &[1])]);
    assert_eq!(pipeline.end(false), ErrorCode::NONE);
    assert_eq!(pipeline.start_offset(), 0, "not archived: the record was processed by nobody");
    let again = ranges(&pipeline.world.fetch("m", 3, &[]));
    assert_eq!((again[0].1, again[0].3), (0, 3), "the count is kept and goes on");
    pipeline.staged(&[(0, 0, &[1])]);
    assert_eq!(pipeline.end(true), ErrorCode::NONE);
    assert!(pipeline.start_offset() >= 1);
}

#[test]
fn pending_acknowledgements_survive_a_restart_of_all_that_coordinates_them() {
    for committed in [true, false] {
        let mut pipeline = Pipeline::new(2);
        pipeline.staged(&[(0, 9, &[1])]);
        // Node 1 leads the source and coordinates group and transaction.
        let now = pipeline.world.client.now;
        assert!(pipeline.world.client.cluster.stop_node(now, 1));
        let node = pipeline.world.client.cluster.coordinator_node(CoordinatorKind::Transaction, "txn");
        assert_ne!(node, 1);
        pipeline.world.client.conn = pipeline.world.client.connect(node);
        assert_eq!(pipeline.end(committed), ErrorCode::NONE);
        let leader = pipeline.world.client.cluster.leader_of(pipeline.world.topic, 0).0;
        let conn = pipeline.world.client.connect(leader);
        let after = ranges(&pipeline.world.fetch_on(conn, "m", 0, &[(0, &[])]));
        let expected: &[_] = if committed { &[] } else { &[(0, 0, 9, 2)] };
        assert_eq!(after, expected, "committed {committed}");
    }
}

//= TXN-SHARE-15
#[test]
fn a_marker_for_state_that_an_administrator_has_reset_changes_nothing() {
    let mut pipeline = Pipeline::new(2);
    pipeline.staged(&[(0, 9, &[1])]);
    let key =
        crate::share_coordinator::ShareKey { group: Str::from_static("g"), topic: pipeline.world.topic, partition: 0 };
    pipeline.world.client.cluster.share.unload_one(&key, false);
    pipeline.world.client.cluster.share.store.initialize(&key, 4);
    assert_eq!(pipeline.end(true), ErrorCode::NONE);
    assert_eq!(ranges(&pipeline.world.fetch("n", 0, &[(0, &[])])), [(0, 4, 9, 1)]);
    assert_eq!(ack_code(&pipeline.world.ack("n", 1, 0, &[(4, 9, &[1])])), ErrorCode::NONE);
}
