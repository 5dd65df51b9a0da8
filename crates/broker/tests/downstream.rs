//! R182: what a user's own tests can do with the broker, by its public interface alone: faults on the Nth request and at
//! once, a clock that moves only by hand, and dumps.

use bytes::Bytes;
use kafka_share_broker::{BrokerBuilder, CoordinatorKind, EmbeddedBroker, Fault, FaultAction};
use kafka_share_messages::metadata_request::MetadataRequestTopic;
use kafka_share_messages::produce_request::{PartitionProduceData, TopicProduceData};
use kafka_share_messages::{
    ApiKey, EndTxnRequest, ErrorCode, FindCoordinatorRequest, InitProducerIdRequest, ListTransactionsRequest,
    MetadataRequest, ProduceRequest, Request, ShareFetchRequest, ShareGroupHeartbeatRequest, frame,
    share_fetch_request,
};
use kafka_share_wire::records::{BatchBuilder, BatchOptions};
use kafka_share_wire::{Str, Uuid};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

/// A broker whose time stands still, and a connection without a socket.
struct Rig {
    broker: EmbeddedBroker,
    stream: DuplexStream,
}

impl Rig {
    async fn new(builder: BrokerBuilder) -> Self {
        let broker = builder.manual_clock().topic("t", 1).start().await.unwrap();
        let stream = broker.connect_in_memory(1).unwrap();
        Rig { broker, stream }
    }

    async fn send<R: Request>(&mut self, request: &R) {
        let bytes = frame::encode_request(request, R::MAX_VERSION, 9, &Str::from_static("test")).unwrap().to_vec();
        self.stream.write_all(&bytes).await.unwrap();
    }

    async fn frame(&mut self) -> Bytes {
        let size = self.stream.read_i32().await.unwrap();
        let mut body = vec![0; size as usize];
        self.stream.read_exact(&mut body).await.unwrap();
        Bytes::from(body)
    }

    async fn call<R: Request>(&mut self, request: &R) -> R::Response {
        self.send(request).await;
        frame::decode_response::<R>(self.frame().await, R::MAX_VERSION).unwrap().1
    }

    /// All that is left to read until the broker closes.
    async fn rest(&mut self) -> usize {
        let mut rest = Vec::new();
        // A broken pipe is as good an end as a clean one.
        let _ = self.stream.read_to_end(&mut rest).await;
        rest.len()
    }

    async fn metadata(&mut self) -> (Uuid, i32) {
        let topic = self.call(&metadata()).await.topics.remove(0);
        (topic.topic_id, topic.partitions[0].leader_id)
    }

    async fn produce(&mut self, options: BatchOptions, txn: Option<&'static str>) -> ErrorCode {
        let (topic_id, _) = self.metadata().await;
        let mut builder = BatchBuilder::new(options);
        builder.append(self.broker.now().wall_ms, None, Some(b"v"), []).unwrap();
        let data = PartitionProduceData { records: Some(builder.finish().unwrap().freeze()), ..Default::default() };
        let topic = TopicProduceData { topic_id, partition_data: vec![data], ..Default::default() };
        let request = ProduceRequest {
            transactional_id: txn.map(Str::from_static),
            acks: -1,
            topic_data: vec![topic],
            ..Default::default()
        };
        self.call(&request).await.responses[0].partition_responses[0].error_code
    }

    /// Opens a transaction with a record in it; gives its producer.
    async fn begin(&mut self) -> (i64, i16) {
        let init = InitProducerIdRequest {
            transactional_id: Some(Str::from_static("x")),
            transaction_timeout_ms: 60_000,
            ..Default::default()
        };
        let bytes = frame::encode_request(&init, 5, 9, &Str::from_static("test")).unwrap().to_vec();
        self.stream.write_all(&bytes).await.unwrap();
        let frame = self.frame().await;
        let answer = frame::decode_response::<InitProducerIdRequest>(frame, 5).unwrap().1;
        assert_eq!(answer.error_code, ErrorCode::NONE);
        let producer = (answer.producer_id, answer.producer_epoch);
        let options = BatchOptions {
            producer_id: producer.0,
            producer_epoch: producer.1,
            base_sequence: 0,
            transactional: true,
            ..Default::default()
        };
        assert_eq!(self.produce(options, Some("x")).await, ErrorCode::NONE);
        producer
    }

    /// Joins a share group and acquires what there is.
    async fn acquire(&mut self, epoch: i32) -> Vec<(i64, i64, i16)> {
        let (group, member) = (Str::from_static("g"), Str::from_static("AAAAAAAAQAGAAAAAAAAAAQ"));
        if epoch == 0 {
            let join = ShareGroupHeartbeatRequest {
                group_id: group.clone(),
                member_id: member.clone(),
                subscribed_topic_names: Some(vec![Str::from_static("t")]),
                ..Default::default()
            };
            assert_eq!(self.call(&join).await.error_code, ErrorCode::NONE);
        }
        let (topic_id, _) = self.metadata().await;
        let topic =
            share_fetch_request::FetchTopic { topic_id, partitions: vec![Default::default()], ..Default::default() };
        let request = ShareFetchRequest {
            group_id: Some(group),
            member_id: Some(member),
            share_session_epoch: epoch,
            max_bytes: 1 << 20,
            max_records: 10,
            batch_size: 10,
            topics: vec![topic],
            ..Default::default()
        };
        let answer = self.call(&request).await;
        let all = answer.responses.iter().flat_map(|topic| &topic.partitions).flat_map(|p| &p.acquired_records);
        all.map(|a| (a.first_offset, a.last_offset, a.delivery_count)).collect()
    }
}

fn metadata() -> MetadataRequest {
    let topic = MetadataRequestTopic { name: Some(Str::from_static("t")), ..Default::default() };
    MetadataRequest { topics: Some(vec![topic]), ..Default::default() }
}

#[tokio::test]
async fn r182_errors_on_the_nth_request_of_a_key() {
    let mut rig = Rig::new(EmbeddedBroker::builder()).await;
    let fault = Fault::new(FaultAction::Error(ErrorCode::COORDINATOR_NOT_AVAILABLE)).skip(2).times(2);
    let id = rig.broker.fault(fault.key(ApiKey::LIST_TRANSACTIONS));
    let mut codes = Vec::new();
    for _ in 0..5 {
        codes.push(rig.call(&ListTransactionsRequest::default()).await.error_code.0);
        // Other keys are not counted.
        rig.metadata().await;
    }
    assert_eq!((codes, rig.broker.fault_hits(id)), (vec![0, 0, 15, 15, 0], 2));
}

#[tokio::test]
async fn r182_wrong_correlation_ids_cuts_and_lost_answers() {
    let mut rig = Rig::new(EmbeddedBroker::builder()).await;
    rig.broker.fault(Fault::new(FaultAction::ShiftCorrelationId(7)));
    rig.send(&metadata()).await;
    let frame = rig.frame().await;
    assert_eq!(frame::correlation_id(&frame).unwrap(), 9 + 7);
    rig.broker.fault(Fault::new(FaultAction::CutAfter(11)));
    rig.send(&metadata()).await;
    assert_eq!(rig.rest().await, 11, "cut in the middle of a frame");
    rig.stream = rig.broker.connect_in_memory(1).unwrap();
    rig.broker.fault(Fault::new(FaultAction::ApplyAndClose).key(ApiKey::FIND_COORDINATOR));
    let keys = vec![Str::from_static("x")];
    rig.send(&FindCoordinatorRequest { key_type: 1, coordinator_keys: keys, ..Default::default() }).await;
    assert_eq!(rig.rest().await, 0, "applied, and the answer lost");
    assert!(rig.broker.with_cluster(|cluster, _| cluster.topic_id("__transaction_state").is_some()));
}

#[tokio::test]
async fn r182_delays_take_as_long_as_the_clock_says() {
    let mut rig = Rig::new(EmbeddedBroker::builder()).await;
    rig.broker.fault(Fault::new(FaultAction::Delay(Duration::from_secs(3600))));
    rig.send(&metadata()).await;
    until(|| rig.broker.dump().waiting_requests == 1).await;
    rig.broker.advance_clock(Duration::from_millis(3_599_999));
    assert_eq!(rig.broker.dump().waiting_requests, 1);
    rig.broker.advance_clock(Duration::from_millis(1));
    assert_eq!(frame::correlation_id(&rig.frame().await).unwrap(), 9);
}

#[tokio::test]
async fn r182_leaders_coordinators_and_nodes_on_request() {
    let mut rig = Rig::new(EmbeddedBroker::builder().nodes(3)).await;
    let (_, leader) = rig.metadata().await;
    let next = leader % 3 + 1;
    let mv = FaultAction::MoveLeader { topic: "t".into(), partition: 0, node: next };
    rig.broker.fault(Fault::new(mv).key(ApiKey::METADATA).skip(1));
    assert_eq!(rig.metadata().await.1, leader);
    assert_eq!(rig.metadata().await.1, next);
    assert!(rig.broker.move_leader("t", 0, leader));
    assert_eq!(rig.metadata().await.1, leader);
    let keys = vec![Str::from_static("x")];
    let find = FindCoordinatorRequest { key_type: 1, coordinator_keys: keys, ..Default::default() };
    let kind = CoordinatorKind::Transaction;
    for node in [2, 3] {
        rig.broker.fault(Fault::new(FaultAction::MoveCoordinator { kind, key: "x".into(), node }));
        assert_eq!(rig.call(&find).await.coordinators[0].node_id, node);
    }
    assert!(rig.broker.move_coordinator(kind, "x", 1));
    assert_eq!(rig.call(&find).await.coordinators[0].node_id, 1);
    rig.broker.fault(Fault::new(FaultAction::RestartNode(1)));
    rig.send(&metadata()).await;
    assert_eq!(rig.rest().await, 0, "the node that was asked restarts");
}

#[tokio::test]
async fn r182_a_transaction_times_out_without_a_wait() {
    let mut rig = Rig::new(EmbeddedBroker::builder()).await;
    let producer = rig.begin().await;
    let state = |rig: &Rig| rig.broker.dump().transactions[0].state.clone();
    rig.broker.advance_clock(Duration::from_millis(59_999));
    assert_eq!(state(&rig), "Ongoing");
    rig.broker.advance_clock(Duration::from_millis(1));
    assert_eq!(state(&rig), "CompleteAbort");
    let end = EndTxnRequest {
        transactional_id: Str::from_static("x"),
        producer_id: producer.0,
        producer_epoch: producer.1,
        committed: true,
        ..Default::default()
    };
    assert_eq!(rig.call(&end).await.error_code, ErrorCode::INVALID_TXN_STATE);
    // The same by a fault: the clock jumps as the commit comes in.
    let mut rig = Rig::new(EmbeddedBroker::builder()).await;
    let producer = rig.begin().await;
    let before = rig.broker.now();
    rig.broker.fault(Fault::new(FaultAction::AdvanceClock(Duration::from_secs(60))).key(ApiKey::END_TXN));
    let end = EndTxnRequest { producer_id: producer.0, producer_epoch: producer.1, ..end };
    assert_eq!(rig.call(&end).await.error_code, ErrorCode::INVALID_TXN_STATE);
    let after = rig.broker.now();
    assert_eq!((after.mono - before.mono, after.wall_ms - before.wall_ms), (Duration::from_secs(60), 60_000));
}

#[tokio::test]
async fn r182_locks_expire_on_request_and_by_the_clock() {
    let mut rig = Rig::new(EmbeddedBroker::builder()).await;
    assert_eq!(rig.acquire(0).await, [], "the group begins at the end");
    assert_eq!(rig.produce(BatchOptions::default(), None).await, ErrorCode::NONE);
    assert_eq!(rig.acquire(1).await, [(0, 0, 1)]);
    let locks = rig.broker.dump().share.partitions[0].locks.clone();
    assert_eq!((locks.len(), locks[0].expires_ms, locks[0].delivery_count), (1, 30_000, 1));
    assert_eq!(rig.acquire(2).await, []);
    assert_eq!(rig.broker.expire_locks("g"), 1);
    assert_eq!(rig.acquire(3).await, [(0, 0, 2)]);
    rig.broker.fault(Fault::new(FaultAction::ExpireLocks("g".into())).key(ApiKey::SHARE_FETCH));
    assert_eq!(rig.acquire(4).await, [(0, 0, 3)]);
    rig.broker.advance_clock(Duration::from_secs(30));
    assert_eq!(rig.acquire(5).await, [(0, 0, 4)]);
}

#[tokio::test]
async fn r182_dumps_are_typed_and_json() {
    let mut rig = Rig::new(EmbeddedBroker::builder()).await;
    rig.acquire(0).await;
    rig.begin().await;
    assert_eq!(rig.acquire(1).await, [(0, 0, 1)]);
    let dump = rig.broker.dump();
    assert_eq!((dump.connections, dump.waiting_requests), (1, 0));
    assert_eq!((dump.partitions[0].end_offset, dump.partitions[0].last_stable_offset), (1, 0));
    assert_eq!(dump.transactions[0].partitions["t"], [0]);
    assert_eq!((dump.groups[0].group.as_str(), dump.groups[0].members.len()), ("g", 1));
    assert_eq!(dump.share.sessions.len(), 1);
    let json: serde_json::Value = serde_json::from_str(&rig.broker.dump_json()).unwrap();
    assert_eq!(json["transactions"][0]["transactional_id"], "x");
    assert_eq!(json["transactions"][0]["state"], "Ongoing");
    assert_eq!(json["share"]["partitions"][0]["locks"][0]["first_offset"], 0);
    assert_eq!(json["groups"][0]["members"][0]["topics"][0], "t");
    assert!(format!("{dump:?}").contains("transactional_id: \"x\""));
}

async fn until(mut holds: impl FnMut() -> bool) {
    while !holds() {
        tokio::task::yield_now().await;
    }
}
