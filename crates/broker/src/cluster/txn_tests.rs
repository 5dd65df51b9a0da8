//! Transactions on frames: two-phase commit, expiry of ids and producers, coordinators that move, the end of the epochs.

use super::data_tests::{batch, produce};
use super::tests::Client;
use super::*;
use kafka_share_messages::fetch_request::{FetchPartition, FetchTopic};
use kafka_share_messages::*;
use kafka_share_wire::Str;
use kafka_share_wire::records::{BatchOptions, RecordBatch};

fn id() -> Str {
    Str::from_static("x")
}

fn init(client: &mut Client, version: i16, two_phase: bool, keep: bool) -> InitProducerIdResponse {
    let request = InitProducerIdRequest {
        transactional_id: Some(id()),
        transaction_timeout_ms: 60_000,
        enable2_pc: two_phase,
        keep_prepared_txn: keep,
        ..Default::default()
    };
    client.call_on(client.conn, &request, version)
}

fn write(client: &mut Client, topic: Uuid, producer: (i64, i16), sequence: i32) -> ErrorCode {
    let options = BatchOptions {
        producer_id: producer.0,
        producer_epoch: producer.1,
        base_sequence: sequence,
        transactional: true,
        ..Default::default()
    };
    let mut request = produce(topic, 0, -1, batch(options, 1));
    request.transactional_id = Some(id());
    client.call(&request).responses[0].partition_responses[0].error_code
}

fn end(client: &mut Client, producer: (i64, i16), committed: bool) -> EndTxnResponse {
    client.call(&EndTxnRequest {
        transactional_id: id(),
        producer_id: producer.0,
        producer_epoch: producer.1,
        committed,
        ..Default::default()
    })
}

/// Producer, epoch and whether it is a marker, of every batch.
fn batches(client: &mut Client, topic_id: Uuid) -> Vec<(i64, i16, bool)> {
    let partition = FetchPartition { partition_max_bytes: 1 << 20, ..Default::default() };
    let topic = FetchTopic { topic_id, partitions: vec![partition], ..Default::default() };
    let request = FetchRequest { max_bytes: 1 << 20, session_epoch: -1, topics: vec![topic], ..Default::default() };
    let answer = client.call(&request);
    let mut rest = answer.responses[0].partitions[0].records.clone().unwrap();
    let mut all = Vec::new();
    while !rest.is_empty() {
        let batch = RecordBatch::parse(&rest).unwrap();
        all.push((batch.producer_id, batch.producer_epoch, batch.is_control()));
        rest = rest.slice(batch.as_bytes().len()..);
    }
    all
}

#[test]
fn a_prepared_transaction_is_found_again_and_committed() {
    let mut client = Client::with(2, |config| config.features.two_phase_commit = true);
    let topic = client.create_topic("t", 1);
    let leader = client.cluster.topics.by_id(topic).unwrap().partitions[0].leader;
    client.conn = client.connect(leader);
    client.cluster.move_coordinator(client.now, CoordinatorKind::Transaction, "x", leader);
    let first = init(&mut client, 6, true, false);
    let producer = (first.producer_id, first.producer_epoch);
    assert_eq!((first.error_code, first.ongoing_txn_producer_id), (ErrorCode::NONE, -1));
    assert_eq!(write(&mut client, topic, producer, 0), ErrorCode::NONE);
    // Its producer is away, and the node restarts meanwhile.
    client.cluster.restart_node(client.now, leader);
    client.cluster.move_leader(client.now, "t", 0, leader);
    client.cluster.move_coordinator(client.now, CoordinatorKind::Transaction, "x", leader);
    client.conn = client.connect(leader);
    let found = init(&mut client, 6, true, true);
    assert_eq!((found.error_code, found.producer_id, found.producer_epoch), (ErrorCode::NONE, producer.0, 1));
    assert_eq!((found.ongoing_txn_producer_id, found.ongoing_txn_producer_epoch), producer);
    let described = client.call(&DescribeTransactionsRequest { transactional_ids: vec![id()], ..Default::default() });
    let state = &described.transaction_states[0];
    assert_eq!((state.transaction_state.as_str(), state.producer_epoch), ("Ongoing", 0), "its own identity");
    assert_eq!(client.cluster.dump(client.now).transactions[0].kept_by, Some((producer.0, 1)));
    assert_eq!(end(&mut client, producer, true).error_code, ErrorCode::PRODUCER_FENCED);
    let ended = end(&mut client, (producer.0, 1), true);
    assert_eq!((ended.error_code, ended.producer_id, ended.producer_epoch), (ErrorCode::NONE, producer.0, 2));
    assert_eq!(batches(&mut client, topic), [(producer.0, 0, false), (producer.0, 1, true)]);
    assert_eq!(write(&mut client, topic, (producer.0, 2), 0), ErrorCode::NONE, "the keeper goes on");
}

#[test]
fn without_the_switch_two_phase_commit_is_what_kafka_4_4_has() {
    let mut client = Client::new(1);
    let request = InitProducerIdRequest { enable2_pc: true, ..Default::default() };
    let reason = client.send_on(client.conn, &request, 6).unwrap_err();
    assert!(matches!(reason, CloseReason::Unsupported { version: 6, .. }));
    let mut client = Client::with(1, |config| config.features.unstable_api_versions = true);
    assert_eq!(init(&mut client, 6, true, true).error_code, ErrorCode::TRANSACTIONAL_ID_AUTHORIZATION_FAILED);
    assert_eq!(init(&mut client, 6, false, true).error_code, ErrorCode::UNSUPPORTED_VERSION);
    // Keeping needs an epoch per transaction.
    let mut client = Client::with(1, |config| {
        config.features.two_phase_commit = true;
        config.features.transaction_version = 1;
    });
    assert_eq!(init(&mut client, 6, true, true).error_code, ErrorCode::UNSUPPORTED_VERSION);
    assert_eq!(init(&mut client, 6, true, false).error_code, ErrorCode::NONE);
}

#[test]
fn idle_transactional_ids_and_producers_expire() {
    let day = 86_400_000;
    let mut client = Client::new(1);
    let topic = client.create_topic("t", 1);
    let answer = init(&mut client, 5, false, false);
    let producer = (answer.producer_id, answer.producer_epoch);
    assert_eq!(write(&mut client, topic, producer, 0), ErrorCode::NONE);
    end(&mut client, producer, true);
    let producers = |client: &Client| client.cluster.dump(client.now).partitions[0].producers;
    client.advance(day - 20_000);
    assert_eq!(producers(&client), 1);
    // As long as it takes until they are looked for.
    client.advance(20_000 + 600_000);
    assert_eq!(producers(&client), 0, "producer.id.expiration.ms");
    let state = |client: &mut Client| {
        let request = DescribeTransactionsRequest { transactional_ids: vec![id()], ..Default::default() };
        client.call(&request).transaction_states[0].error_code
    };
    assert_eq!(state(&mut client), ErrorCode::NONE);
    client.advance(6 * day);
    assert_eq!(state(&mut client), ErrorCode::TRANSACTIONAL_ID_NOT_FOUND, "transactional.id.expiration.ms");
    assert_eq!(end(&mut client, (producer.0, 1), true).error_code, ErrorCode::INVALID_PRODUCER_ID_MAPPING);
    assert_ne!(init(&mut client, 5, false, false).producer_id, producer.0, "a new one");
}

#[test]
fn a_moved_coordinator_goes_on_with_what_is_open() {
    let mut client = Client::new(2);
    let topic = client.create_topic("t", 1);
    let leader = client.cluster.topics.by_id(topic).unwrap().partitions[0].leader;
    client.conn = client.connect(leader);
    client.cluster.move_coordinator(client.now, CoordinatorKind::Transaction, "x", leader);
    let answer = init(&mut client, 5, false, false);
    let producer = (answer.producer_id, answer.producer_epoch);
    assert_eq!(write(&mut client, topic, producer, 0), ErrorCode::NONE);
    let other = 3 - leader;
    client.cluster.move_coordinator(client.now, CoordinatorKind::Transaction, "x", other);
    assert_eq!(end(&mut client, producer, true).error_code, ErrorCode::NOT_COORDINATOR);
    let old = std::mem::replace(&mut client.conn, ConnId(0));
    client.conn = client.connect(other);
    assert_eq!(end(&mut client, producer, true).error_code, ErrorCode::NONE);
    client.conn = old;
    assert_eq!(batches(&mut client, topic).len(), 2);
}

#[test]
fn r181_commit_at_the_last_epoch_and_a_repeated_marker() {
    let mut client = Client::new(1);
    let topic = client.create_topic("t", 1);
    init(&mut client, 5, false, false);
    client.cluster.transactions.set_epoch("x", 32_765);
    let answer = init(&mut client, 5, false, false);
    assert_eq!(answer.producer_epoch, 32_766);
    let producer = (answer.producer_id, answer.producer_epoch);
    assert_eq!(write(&mut client, topic, producer, 0), ErrorCode::NONE);
    let ended = end(&mut client, producer, true);
    assert_eq!((ended.error_code, ended.producer_epoch), (ErrorCode::NONE, 0));
    assert_ne!(ended.producer_id, producer.0);
    let again = end(&mut client, producer, true);
    assert_eq!((again.error_code, again.producer_id, again.producer_epoch), (ErrorCode::NONE, ended.producer_id, 0));
    assert_eq!(batches(&mut client, topic), [(producer.0, 32_766, false), (producer.0, 32_767, true)]);
    // The coordinator asks again because the answer was lost.
    let topics = vec![write_txn_markers_request::WritableTxnMarkerTopic {
        name: Str::from_static("t"),
        partition_indexes: vec![0],
        ..Default::default()
    }];
    let marker = write_txn_markers_request::WritableTxnMarker {
        producer_id: producer.0,
        producer_epoch: 32_767,
        transaction_result: true,
        transaction_version: 2,
        topics,
        ..Default::default()
    };
    let repeated = client.call(&WriteTxnMarkersRequest { markers: vec![marker], ..Default::default() });
    assert_eq!(repeated.markers[0].topics[0].partitions[0].error_code, ErrorCode::NONE);
    assert_eq!(write(&mut client, topic, (ended.producer_id, 0), 0), ErrorCode::NONE);
}

#[test]
fn transactional_ids_are_limited() {
    let mut client = Client::with(1, |config| config.max_transactional_ids = 2);
    let init = |client: &mut Client, id: &'static str| {
        let request = InitProducerIdRequest {
            transactional_id: Some(Str::from_static(id)),
            transaction_timeout_ms: 1000,
            ..Default::default()
        };
        client.call_on(client.conn, &request, 5).error_code
    };
    assert_eq!(["a", "b", "c", "a"].map(|id| init(&mut client, id).0), [0, 0, ErrorCode::POLICY_VIOLATION.0, 0]);
    let request = InitProducerIdRequest { transactional_id: None, ..Default::default() };
    assert_eq!(client.call_on(client.conn, &request, 5).error_code, ErrorCode::NONE, "no id, nothing kept");
}
