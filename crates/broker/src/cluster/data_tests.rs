//! Tests of produce, fetch, transactions and faults, on frames.

use super::tests::Client;
use super::*;
use crate::{Fault, FaultAction};
use kafka_share_messages::fetch_request::{FetchPartition, FetchTopic};
use kafka_share_messages::produce_request::{PartitionProduceData, TopicProduceData};
use kafka_share_messages::{
    ApiKey, EndTxnRequest, ErrorCode, FetchRequest, FetchResponse, FindCoordinatorRequest, InitProducerIdRequest,
    MetadataRequest, ProduceRequest,
};
use kafka_share_wire::Str;
use kafka_share_wire::records::{BatchBuilder, BatchOptions};

pub(super) fn batch(options: BatchOptions, count: usize) -> Bytes {
    let mut builder = BatchBuilder::new(options);
    for i in 0..count {
        builder.append(1_700_000_000_000 + i as i64, None, Some(b"value"), []).unwrap();
    }
    builder.finish().unwrap().freeze()
}

pub(super) fn produce(topic: Uuid, index: i32, acks: i16, records: Bytes) -> ProduceRequest {
    let data = PartitionProduceData { index, records: Some(records), ..Default::default() };
    let topic = TopicProduceData { topic_id: topic, partition_data: vec![data], ..Default::default() };
    ProduceRequest { acks, timeout_ms: 1000, topic_data: vec![topic], ..Default::default() }
}

fn fetch(topic: Uuid, index: i32, offset: i64, wait: i32, committed: bool) -> FetchRequest {
    let partition = FetchPartition {
        partition: index,
        current_leader_epoch: -1,
        fetch_offset: offset,
        last_fetched_epoch: -1,
        partition_max_bytes: 1 << 20,
        ..Default::default()
    };
    FetchRequest {
        max_wait_ms: wait,
        min_bytes: 1,
        max_bytes: 1 << 20,
        isolation_level: i8::from(committed),
        session_epoch: -1,
        topics: vec![FetchTopic { topic_id: topic, partitions: vec![partition], ..Default::default() }],
        ..Default::default()
    }
}

fn bytes_of(response: &FetchResponse) -> usize {
    response.responses[0].partitions[0].records.as_ref().map_or(0, Bytes::len)
}

fn code_of(response: &kafka_share_messages::ProduceResponse) -> ErrorCode {
    response.responses[0].partition_responses[0].error_code
}

#[test]
fn a_waiting_fetch_is_answered_by_a_produce_or_in_time() {
    let mut client = Client::new(1);
    let topic = client.create_topic("t", 1);
    let reader = client.connect(1);
    client.send_on(reader, &fetch(topic, 0, 0, 500, false), 18).unwrap();
    assert!(client.receive::<FetchRequest>(reader, 18).is_none());
    let data = batch(BatchOptions::default(), 3);
    let size = data.len();
    assert_eq!(code_of(&client.call(&produce(topic, 0, -1, data))), ErrorCode::NONE);
    assert_eq!(bytes_of(&client.receive::<FetchRequest>(reader, 18).unwrap()), size);
    client.send_on(reader, &fetch(topic, 0, 3, 500, false), 18).unwrap();
    client.advance(499);
    assert!(client.receive::<FetchRequest>(reader, 18).is_none());
    client.advance(1);
    assert_eq!(bytes_of(&client.receive::<FetchRequest>(reader, 18).unwrap()), 0);
}

#[test]
fn requests_behind_a_waiting_fetch_are_answered_in_order() {
    let mut client = Client::new(1);
    let topic = client.create_topic("t", 1);
    client.send_on(client.conn, &fetch(topic, 0, 0, 500, false), 18).unwrap();
    client.send_on(client.conn, &MetadataRequest::default(), 13).unwrap();
    assert_eq!(client.cluster.output.len(), 0);
    client.advance(500);
    let keys: Vec<_> = client.cluster.output.iter().collect();
    assert_eq!(keys.len(), 2);
    assert!(client.receive::<FetchRequest>(client.conn, 18).is_some());
    assert!(client.receive::<MetadataRequest>(client.conn, 13).is_some());
}

#[test]
fn r176_produce_without_acks_does_not_block_the_connection() {
    let mut client = Client::new(1);
    let topic = client.create_topic("t", 1);
    client.send_on(client.conn, &produce(topic, 0, 0, batch(BatchOptions::default(), 1)), 13).unwrap();
    assert!(client.cluster.output.is_empty());
    assert!(!client.call(&MetadataRequest::default()).brokers.is_empty());
    // There is no answer to carry an error.
    let bad = produce(topic, 9, 0, batch(BatchOptions::default(), 1));
    assert_eq!(client.send_on(client.conn, &bad, 13), Err(CloseReason::UnansweredError));
}

#[test]
fn the_wrong_node_tells_of_the_right_one() {
    let mut client = Client::new(2);
    let topic = client.create_topic("t", 1);
    assert!(client.cluster.move_leader(client.now, "t", 0, 2));
    let response = client.call(&produce(topic, 0, -1, batch(BatchOptions::default(), 1)));
    assert_eq!(code_of(&response), ErrorCode::NOT_LEADER_OR_FOLLOWER);
    assert_eq!(response.responses[0].partition_responses[0].current_leader.leader_id, 2);
    assert_eq!((response.node_endpoints[0].node_id, response.node_endpoints[0].port), (2, 9002));
    let response = client.call(&fetch(topic, 0, 0, 1000, false));
    assert_eq!(response.responses[0].partitions[0].current_leader.leader_id, 2);
    assert_eq!(response.node_endpoints[0].node_id, 2);
}

#[test]
fn a_leader_move_answers_waiting_fetches() {
    let mut client = Client::new(2);
    let topic = client.create_topic("t", 1);
    client.cluster.move_leader(client.now, "t", 0, 1);
    client.send_on(client.conn, &fetch(topic, 0, 0, 60_000, false), 18).unwrap();
    client.cluster.move_leader(client.now, "t", 0, 2);
    let response = client.receive::<FetchRequest>(client.conn, 18).unwrap();
    assert_eq!(response.responses[0].partitions[0].error_code, ErrorCode::NOT_LEADER_OR_FOLLOWER);
}

#[test]
fn memory_is_bounded() {
    let data = batch(BatchOptions::default(), 10);
    let room = data.len() * 2;
    let mut client = Client::with(1, |config| config.max_log_bytes = room);
    let topic = client.create_topic("t", 1);
    let codes: Vec<_> = (0..3).map(|_| code_of(&client.call(&produce(topic, 0, -1, data.clone())))).collect();
    assert_eq!(codes, [ErrorCode::NONE, ErrorCode::NONE, ErrorCode::KAFKA_STORAGE_ERROR]);
}

struct Txn {
    id: Str,
    producer: (i64, i16),
}

impl Txn {
    fn new(client: &mut Client) -> Self {
        let id = Str::from_static("txn");
        let request = FindCoordinatorRequest { key_type: 1, coordinator_keys: vec![id.clone()], ..Default::default() };
        assert_eq!(client.call(&request).coordinators[0].node_id, 1);
        let init = InitProducerIdRequest {
            transactional_id: Some(id.clone()),
            transaction_timeout_ms: 10_000,
            producer_id: -1,
            producer_epoch: -1,
            ..Default::default()
        };
        let response = client.call_on(client.conn, &init, 5);
        assert_eq!(response.error_code, ErrorCode::NONE);
        Txn { id, producer: (response.producer_id, response.producer_epoch) }
    }

    fn produce(&self, client: &mut Client, topic: Uuid, sequence: i32) -> ErrorCode {
        let options = BatchOptions {
            producer_id: self.producer.0,
            producer_epoch: self.producer.1,
            base_sequence: sequence,
            transactional: true,
            ..BatchOptions::default()
        };
        let request =
            ProduceRequest { transactional_id: Some(self.id.clone()), ..produce(topic, 0, -1, batch(options, 1)) };
        code_of(&client.call(&request))
    }

    fn end(&mut self, client: &mut Client, committed: bool) -> ErrorCode {
        let request = EndTxnRequest {
            transactional_id: self.id.clone(),
            producer_id: self.producer.0,
            producer_epoch: self.producer.1,
            committed,
            ..Default::default()
        };
        let response = client.call(&request);
        if response.error_code.is_ok() {
            self.producer = (response.producer_id, response.producer_epoch);
        }
        response.error_code
    }
}

#[test]
fn committed_readers_wait_for_the_marker_and_learn_of_aborts() {
    let mut client = Client::new(1);
    let topic = client.create_topic("t", 1);
    let mut txn = Txn::new(&mut client);
    assert_eq!(txn.produce(&mut client, topic, 0), ErrorCode::NONE);
    let reader = client.connect(1);
    client.send_on(reader, &fetch(topic, 0, 0, 60_000, true), 18).unwrap();
    assert!(client.receive::<FetchRequest>(reader, 18).is_none());
    assert_eq!(txn.end(&mut client, false), ErrorCode::NONE);
    let response = client.receive::<FetchRequest>(reader, 18).unwrap();
    let data = &response.responses[0].partitions[0];
    assert_eq!((data.last_stable_offset, data.high_watermark), (2, 2));
    assert_eq!(data.aborted_transactions.as_ref().unwrap()[0].producer_id, txn.producer.0);
    // The next transaction has its own epoch and starts at sequence 0.
    assert_eq!(txn.produce(&mut client, topic, 1), ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER);
    assert_eq!(txn.produce(&mut client, topic, 0), ErrorCode::NONE);
    assert_eq!(txn.end(&mut client, true), ErrorCode::NONE);
}

#[test]
fn a_timeout_aborts_and_fences() {
    let mut client = Client::new(1);
    let topic = client.create_topic("t", 1);
    let mut txn = Txn::new(&mut client);
    assert_eq!(txn.produce(&mut client, topic, 0), ErrorCode::NONE);
    client.advance(10_000);
    assert_eq!(client.cluster.topics.get("t").unwrap().partitions[0].log.last_stable_offset(), 2);
    assert_eq!(txn.produce(&mut client, topic, 1), ErrorCode::INVALID_PRODUCER_EPOCH);
    // As a real 4.4.0: the old epoch passes for a repeated request (KAFKA-20785).
    assert_eq!(txn.end(&mut client, true), ErrorCode::INVALID_TXN_STATE);
}

#[test]
fn r175_markers_of_a_deleted_topic_go_nowhere() {
    let mut client = Client::new(1);
    let topic = client.create_topic("t", 1);
    let mut txn = Txn::new(&mut client);
    assert_eq!(txn.produce(&mut client, topic, 0), ErrorCode::NONE);
    client.cluster.delete_topic(client.now, topic);
    let fresh = client.create_topic("t", 1);
    assert_eq!(txn.end(&mut client, true), ErrorCode::NONE);
    assert_eq!(client.cluster.topics.by_id(fresh).unwrap().partitions[0].log.high_watermark(), 0);
    assert_eq!(client.cluster.log_bytes, 0);
}

#[test]
fn faults_pick_requests_and_bend_answers() {
    let mut client = Client::new(1);
    let topic = client.create_topic("t", 1);
    let data = batch(BatchOptions::default(), 1);
    let refuse = Fault::new(FaultAction::Error(ErrorCode::NOT_ENOUGH_REPLICAS)).key(ApiKey::PRODUCE).skip(1).times(2);
    let id = client.cluster.inject(refuse);
    let codes: Vec<_> = (0..4).map(|_| code_of(&client.call(&produce(topic, 0, -1, data.clone())))).collect();
    let refused = ErrorCode::NOT_ENOUGH_REPLICAS;
    assert_eq!(codes, [ErrorCode::NONE, refused, refused, ErrorCode::NONE]);
    assert_eq!(client.cluster.fault_hits(id), 2);
    client.cluster.inject(Fault::new(FaultAction::Delay(Duration::from_millis(70))));
    client.send_on(client.conn, &MetadataRequest::default(), 13).unwrap();
    client.advance(69);
    assert!(client.receive::<MetadataRequest>(client.conn, 13).is_none());
    client.advance(1);
    assert!(client.receive::<MetadataRequest>(client.conn, 13).is_some());
}

#[test]
fn faults_apply_and_lose_the_answer() {
    let mut client = Client::new(1);
    let topic = client.create_topic("t", 1);
    for (action, sent) in [(FaultAction::ApplyAndClose, 0), (FaultAction::CutAfter(9), 9)] {
        let conn = client.connect(1);
        client.cluster.inject(Fault::new(action).key(ApiKey::PRODUCE));
        client.send_on(conn, &produce(topic, 0, -1, batch(BatchOptions::default(), 1)), 13).unwrap();
        let outputs: Vec<_> = client.cluster.output.drain(..).collect();
        let bytes: usize = outputs
            .iter()
            .filter_map(|o| match o {
                Output::Send { segments, .. } => Some(segments.iter().map(Bytes::len).sum::<usize>()),
                Output::Close { .. } | Output::AdvanceClock { .. } => None,
            })
            .sum();
        assert_eq!((bytes, outputs.last()), (sent, Some(&Output::Close { conn })));
    }
    assert_eq!(client.cluster.topics.get("t").unwrap().partitions[0].log.high_watermark(), 2);
}

#[test]
fn every_advertised_api_survives_any_body() {
    let features = crate::BrokerFeatures::default();
    let mut seed = Rng::new(3);
    for key in 0..100 {
        let Some(range) = crate::api::versions(&features, ApiKey(key)) else { continue };
        for version in range {
            for len in [0_usize, 1, 7, 40, 200] {
                let mut client = Client::new(1);
                let mut frame = vec![0, key as u8, 0, version as u8, 0, 0, 0, 5, 0xff, 0xff];
                frame.extend((0..len).map(|_| (seed.next_u64() >> 61) as u8));
                // Whatever comes back: no panic, and a connection that is either answered or closed.
                let _ = client.cluster.handle_frame(client.now, client.conn, Bytes::from(frame));
            }
        }
    }
}
