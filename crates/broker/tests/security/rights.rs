//! Rights: what is refused without them, API by API, with Kafka's codes.

use crate::raw::Raw;
use bytes::Bytes;
use kafka_share_broker::{Authorizer, EmbeddedBroker, Listener, Mechanism, Operation, Resource};
use kafka_share_messages::produce_request::{PartitionProduceData, TopicProduceData};
use kafka_share_messages::*;
use kafka_share_wire::records::{BatchBuilder, BatchOptions};
use kafka_share_wire::{Str, Uuid};
use std::fmt::Debug;
use tokio::io::DuplexStream;

const TOPIC: &str = "TOPIC_AUTHORIZATION_FAILED";
const GROUP: &str = "GROUP_AUTHORIZATION_FAILED";
const TXN: &str = "TRANSACTIONAL_ID_AUTHORIZATION_FAILED";
const CLUSTER: &str = "CLUSTER_AUTHORIZATION_FAILED";

fn text(text: &'static str) -> Str {
    Str::from_static(text)
}

/// A broker with a topic, and two users: one that may do everything and one that may do nothing.
async fn start() -> EmbeddedBroker {
    let listener = Listener::sasl_plaintext("SASL", [Mechanism::Plain]).user("root", "pw").user("alice", "pw");
    let rights = Authorizer::new().super_user("User:root");
    let builder = EmbeddedBroker::builder().manual_clock().listener(listener).authorizer(rights).topic("t", 1);
    builder.configure(|config| config.features.two_phase_commit = true).start().await.unwrap()
}

async fn connect(broker: &EmbeddedBroker, user: &str) -> Raw<DuplexStream> {
    let mut raw = Raw { stream: broker.connect_in_memory(1).unwrap() };
    assert!(raw.plain(user, "pw").await.error_code.is_ok());
    raw
}

struct Case {
    broker: EmbeddedBroker,
    alice: Raw<DuplexStream>,
    root: Raw<DuplexStream>,
    topic: Uuid,
}

impl Case {
    async fn new() -> Self {
        let broker = start().await;
        let (alice, root) = (connect(&broker, "alice").await, connect(&broker, "root").await);
        let topic = broker.with_cluster(|cluster, _| cluster.topic_id("t").unwrap());
        Case { broker, alice, root, topic }
    }

    /// Who may do nothing is answered with a code, as often as told; who may do everything is not.
    async fn refused<R: Request<Response: Debug> + Clone>(&mut self, request: R, code: &str, times: usize) {
        let refused = format!("{:?}", self.alice.call(&request).await);
        assert_eq!(refused.matches(code).count(), times, "{refused}");
        let served = format!("{:?}", self.root.call(&request).await);
        assert!(!served.contains("AUTHORIZATION_FAILED"), "{served}");
    }

    /// The right is what was missing, and nothing else.
    async fn allowed<R: Request<Response: Debug> + Clone>(
        &mut self,
        request: R,
        code: &str,
        rights: &[(Operation, Resource)],
    ) {
        for (done, (operation, resource)) in rights.iter().enumerate() {
            let refused = format!("{:?}", self.alice.call(&request).await);
            assert!(refused.contains("AUTHORIZATION_FAILED"), "with {done} rights: {refused}");
            assert!(done > 0 || refused.contains(code), "{refused}");
            self.broker.allow("User:alice", *operation, resource.clone());
        }
        let served = format!("{:?}", self.alice.call(&request).await);
        assert!(!served.contains("AUTHORIZATION_FAILED"), "{served}");
        for (operation, resource) in rights {
            assert!(self.broker.remove_allow("User:alice", *operation, resource));
        }
    }
}

fn batch(transactional: bool) -> Bytes {
    let mut options = BatchOptions::default();
    if transactional {
        (options.transactional, options.producer_id, options.producer_epoch) = (true, 1, 0);
        options.base_sequence = 0;
    }
    let mut builder = BatchBuilder::new(options);
    builder.append(0, None, Some(b"value"), []).unwrap();
    builder.finish().unwrap().freeze()
}

fn produce(topic_id: Uuid, transactional: bool) -> ProduceRequest {
    let data = PartitionProduceData { records: Some(batch(transactional)), ..Default::default() };
    let transactional_id = transactional.then(|| text("id"));
    let topic = TopicProduceData { topic_id, partition_data: vec![data], ..Default::default() };
    ProduceRequest { acks: -1, transactional_id, topic_data: vec![topic], ..Default::default() }
}

fn metadata(name: &'static str, create: bool) -> MetadataRequest {
    let topic = metadata_request::MetadataRequestTopic { name: Some(text(name)), ..Default::default() };
    MetadataRequest { topics: Some(vec![topic]), allow_auto_topic_creation: create, ..Default::default() }
}

fn fetch(topic_id: Uuid) -> FetchRequest {
    let partition = fetch_request::FetchPartition { partition_max_bytes: 1000, ..Default::default() };
    let topic = fetch_request::FetchTopic { topic_id, partitions: vec![partition], ..Default::default() };
    FetchRequest { session_epoch: -1, max_bytes: 1000, topics: vec![topic], ..Default::default() }
}

#[tokio::test]
async fn records_are_written_and_read_with_rights_on_the_topic() {
    let mut case = Case::new().await;
    let topic = case.topic;
    case.refused(produce(topic, false), TOPIC, 1).await;
    case.allowed(produce(topic, false), TOPIC, &[(Operation::Write, Resource::topic("t"))]).await;
    let rights =
        [(Operation::Write, Resource::transactional_id("id")), (Operation::Write, Resource::topic("t").prefixed())];
    case.allowed(produce(topic, true), TXN, &rights).await;
    case.refused(fetch(topic), TOPIC, 1).await;
    case.allowed(fetch(topic), TOPIC, &[(Operation::Read, Resource::topic("*"))]).await;
    // Whether an id exists is no secret.
    let answer = case.alice.call(&fetch(Uuid::from_halves(1, 1))).await;
    assert_eq!(answer.responses[0].partitions[0].error_code, ErrorCode::UNKNOWN_TOPIC_ID);
    let partitions = vec![list_offsets_request::ListOffsetsPartition { timestamp: -1, ..Default::default() }];
    let topics = vec![list_offsets_request::ListOffsetsTopic { name: text("t"), partitions, ..Default::default() }];
    let list = ListOffsetsRequest { topics, ..Default::default() };
    case.refused(list.clone(), TOPIC, 1).await;
    case.allowed(list, TOPIC, &[(Operation::Describe, Resource::topic("t"))]).await;
    let partitions = vec![delete_records_request::DeleteRecordsPartition { offset: 0, ..Default::default() }];
    let topics = vec![delete_records_request::DeleteRecordsTopic { name: text("t"), partitions, ..Default::default() }];
    let delete = DeleteRecordsRequest { topics, ..Default::default() };
    case.allowed(delete, TOPIC, &[(Operation::Delete, Resource::topic("t"))]).await;
    let topics = vec![describe_producers_request::TopicRequest {
        name: text("t"),
        partition_indexes: vec![0],
        ..Default::default()
    }];
    let describe = DescribeProducersRequest { topics, ..Default::default() };
    case.allowed(describe, TOPIC, &[(Operation::Read, Resource::topic("t"))]).await;
}

#[tokio::test]
async fn topics_are_seen_by_whom_they_concern() {
    let mut case = Case::new().await;
    case.refused(metadata("t", false), TOPIC, 1).await;
    for operation in [Operation::Describe, Operation::Read, Operation::Write, Operation::Delete, Operation::Alter] {
        case.allowed(metadata("t", false), TOPIC, &[(operation, Resource::topic("t"))]).await;
    }
    let all = MetadataRequest { topics: None, ..Default::default() };
    // A name that does not exist is no different.
    let answer = case.alice.call(&metadata("none", false)).await;
    assert_eq!(answer.topics[0].error_code, ErrorCode::TOPIC_AUTHORIZATION_FAILED);
    assert!(case.alice.call(&all).await.topics.is_empty(), "all that she may see");
    assert_eq!(case.root.call(&all).await.topics.len(), 1);
    let rights = [(Operation::Describe, Resource::topic("new")), (Operation::Create, Resource::topic("new"))];
    case.allowed(metadata("new", true), TOPIC, &rights).await;
    let rights = [(Operation::Describe, Resource::topic("new2")), (Operation::Create, Resource::cluster())];
    case.allowed(metadata("new2", true), TOPIC, &rights).await;
    let by_id = metadata_request::MetadataRequestTopic { topic_id: case.topic, ..Default::default() };
    let by_id = MetadataRequest { topics: Some(vec![by_id]), ..Default::default() };
    let answer = case.alice.call(&by_id).await;
    assert_eq!(answer.topics[0].error_code, ErrorCode::TOPIC_AUTHORIZATION_FAILED);
    assert_eq!((&answer.topics[0].name, answer.topics[0].topic_id), (&None, case.topic));
    let topics = vec![describe_topic_partitions_request::TopicRequest { name: text("t"), ..Default::default() }];
    let request = DescribeTopicPartitionsRequest { topics, response_partition_limit: 9, ..Default::default() };
    case.allowed(request, TOPIC, &[(Operation::Describe, Resource::topic("t"))]).await;
}

#[tokio::test]
async fn topics_are_managed_with_rights_on_them_or_the_cluster() {
    let mut case = Case::new().await;
    let new = |name| create_topics_request::CreatableTopic {
        name: text(name),
        num_partitions: 1,
        replication_factor: 1,
        ..Default::default()
    };
    let create = |name| CreateTopicsRequest { topics: vec![new(name)], validate_only: true, ..Default::default() };
    case.refused(create("a"), TOPIC, 1).await;
    let rights = [(Operation::Create, Resource::cluster()), (Operation::DescribeConfigs, Resource::topic("b"))];
    case.allowed(create("b"), TOPIC, &rights).await;
    let grow = create_partitions_request::CreatePartitionsTopic { name: text("t"), count: 2, ..Default::default() };
    let grow = CreatePartitionsRequest { topics: vec![grow], validate_only: true, ..Default::default() };
    case.allowed(grow, TOPIC, &[(Operation::Alter, Resource::topic("t"))]).await;
    for (kind, name, code, resource) in [
        (2, "t", TOPIC, Resource::topic("t")),
        (32, "g", GROUP, Resource::group("g")),
        (4, "1", CLUSTER, Resource::cluster()),
    ] {
        let asked = describe_configs_request::DescribeConfigsResource {
            resource_type: kind,
            resource_name: text(name),
            ..Default::default()
        };
        let describe = DescribeConfigsRequest { resources: vec![asked], ..Default::default() };
        case.allowed(describe, code, &[(Operation::DescribeConfigs, resource.clone())]).await;
        let asked = incremental_alter_configs_request::AlterConfigsResource {
            resource_type: kind,
            resource_name: text(name),
            ..Default::default()
        };
        let alter = IncrementalAlterConfigsRequest { resources: vec![asked], ..Default::default() };
        case.allowed(alter, code, &[(Operation::AlterConfigs, resource)]).await;
    }
    case.allowed(ListConfigResourcesRequest::default(), CLUSTER, &[(Operation::DescribeConfigs, Resource::cluster())])
        .await;
    let state = |name, topic_id| delete_topics_request::DeleteTopicState { name, topic_id, ..Default::default() };
    let delete = |state| DeleteTopicsRequest { topics: vec![state], ..Default::default() };
    let answer = case.alice.call(&delete(state(None, case.topic))).await;
    assert_eq!(answer.responses[0].error_code, ErrorCode::TOPIC_AUTHORIZATION_FAILED);
    assert_eq!(answer.responses[0].name, None, "the name of an id is a secret");
    let by_name = delete(state(Some(text("t")), Uuid::ZERO));
    case.allowed(
        by_name,
        TOPIC,
        &[(Operation::Describe, Resource::topic("t")), (Operation::Delete, Resource::topic("t"))],
    )
    .await;
}

#[tokio::test]
async fn nothing_is_said_of_a_topic_before_its_rights() {
    let mut case = Case::new().await;
    let state = |name, topic_id| delete_topics_request::DeleteTopicState { name, topic_id, ..Default::default() };
    let delete = |topics| DeleteTopicsRequest { topics, ..Default::default() };
    let codes = |answer: DeleteTopicsResponse| -> Vec<_> {
        answer.responses.into_iter().map(|one| (one.name, one.topic_id, one.error_code)).collect()
    };
    let (t, refused) = (Some(text("t")), ErrorCode::TOPIC_AUTHORIZATION_FAILED);
    // Whether the id is that of the name is not told.
    let pair = delete(vec![state(t.clone(), Uuid::ZERO), state(None, case.topic)]);
    let answer = codes(case.alice.call(&pair).await);
    assert_eq!(answer, [(t.clone(), Uuid::ZERO, refused), (None, case.topic, refused)]);
    let both = delete(vec![state(t.clone(), case.topic)]);
    assert_eq!(codes(case.alice.call(&both).await), [(t.clone(), case.topic, ErrorCode::INVALID_REQUEST)]);
    // Who may see a name is told that it does not exist, whether or not she might delete it.
    let (none, unknown) = (Some(text("none")), ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
    let absent = delete(vec![state(none.clone(), Uuid::ZERO)]);
    assert_eq!(codes(case.alice.call(&absent).await), [(none.clone(), Uuid::ZERO, refused)]);
    case.broker.allow("User:alice", Operation::Describe, Resource::topic("*"));
    assert_eq!(codes(case.alice.call(&absent).await), [(none, Uuid::ZERO, unknown)]);
    assert_eq!(codes(case.alice.call(&pair).await)[1], (t.clone(), case.topic, refused));
    // The right on the cluster is enough.
    assert!(case.broker.remove_allow("User:alice", Operation::Describe, &Resource::topic("*")));
    case.broker.allow("User:alice", Operation::Delete, Resource::cluster());
    assert_eq!(codes(case.alice.call(&pair).await), [(t.clone(), case.topic, ErrorCode::INVALID_REQUEST)]);
    let named = delete(vec![state(t.clone(), Uuid::ZERO)]);
    assert_eq!(codes(case.alice.call(&named).await), [(t, case.topic, ErrorCode::NONE)]);
}

#[tokio::test]
async fn transactions_need_their_id() {
    let mut case = Case::new().await;
    let keys =
        |kind| FindCoordinatorRequest { key_type: kind, coordinator_keys: vec![text("id")], ..Default::default() };
    let id = || Resource::transactional_id("id");
    case.allowed(keys(1), TXN, &[(Operation::Describe, id())]).await;
    case.allowed(keys(0), GROUP, &[(Operation::Describe, Resource::group("id"))]).await;
    let init = |transactional_id| InitProducerIdRequest {
        transactional_id,
        transaction_timeout_ms: 1000,
        producer_id: -1,
        producer_epoch: -1,
        ..Default::default()
    };
    case.allowed(init(Some(text("id"))), TXN, &[(Operation::Write, id())]).await;
    let two_phase = InitProducerIdRequest { enable2_pc: true, ..init(Some(text("id"))) };
    case.allowed(two_phase, TXN, &[(Operation::Write, id()), (Operation::TwoPhaseCommit, id())]).await;
    // Who may write anywhere may be idempotent.
    case.allowed(init(None), CLUSTER, &[(Operation::IdempotentWrite, Resource::cluster())]).await;
    case.allowed(init(None), CLUSTER, &[(Operation::Write, Resource::topic("any").prefixed())]).await;
    let end = EndTxnRequest { transactional_id: text("id"), producer_id: 1, ..Default::default() };
    case.allowed(end, TXN, &[(Operation::Write, id())]).await;
    let describe = DescribeTransactionsRequest { transactional_ids: vec![text("id")], ..Default::default() };
    case.allowed(describe, TXN, &[(Operation::Describe, id())]).await;
    case.root.call(&init(Some(text("id")))).await;
    assert_eq!(case.root.call(&ListTransactionsRequest::default()).await.transaction_states.len(), 1);
    assert!(case.alice.call(&ListTransactionsRequest::default()).await.transaction_states.is_empty());
    let batched = AddPartitionsToTxnRequest::default();
    case.refused(batched, CLUSTER, 1).await;
    let topic = || add_partitions_to_txn_request::AddPartitionsToTxnTopic {
        name: text("t"),
        partitions: vec![0],
        ..Default::default()
    };
    let add = AddPartitionsToTxnRequest {
        v3_and_below_transactional_id: text("id"),
        v3_and_below_topics: vec![topic()],
        ..Default::default()
    };
    let codes = |answer: AddPartitionsToTxnResponse| {
        answer.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code
    };
    let id_refused = codes(case.alice.try_call(&add, 3).await.unwrap());
    assert_eq!(id_refused, ErrorCode::TRANSACTIONAL_ID_AUTHORIZATION_FAILED);
    case.broker.allow("User:alice", Operation::Write, id());
    assert_eq!(codes(case.alice.try_call(&add, 3).await.unwrap()), ErrorCode::TOPIC_AUTHORIZATION_FAILED);
    let topics = vec![write_txn_markers_request::WritableTxnMarkerTopic {
        name: text("t"),
        partition_indexes: vec![0],
        ..Default::default()
    }];
    let markers = vec![write_txn_markers_request::WritableTxnMarker { topics, ..Default::default() }];
    let markers = WriteTxnMarkersRequest { markers, ..Default::default() };
    case.refused(markers, CLUSTER, 1).await;
}

fn heartbeat(topic: &'static str) -> ShareGroupHeartbeatRequest {
    ShareGroupHeartbeatRequest {
        group_id: text("g"),
        member_id: text("m"),
        subscribed_topic_names: Some(vec![text(topic)]),
        ..Default::default()
    }
}

fn share_fetch(topic_id: Uuid) -> ShareFetchRequest {
    let partitions = vec![share_fetch_request::FetchPartition::default()];
    let topic = share_fetch_request::FetchTopic { topic_id, partitions, ..Default::default() };
    ShareFetchRequest {
        group_id: Some(text("g")),
        member_id: Some(text("m")),
        max_bytes: 1000,
        max_records: 10,
        batch_size: 10,
        topics: vec![topic],
        ..Default::default()
    }
}

//= SHARE-AUTH-01 SHARE-AUTH-02 SHARE-AUTH-03 SHARE-AUTH-04 SHARE-AUTH-05 SHARE-AUTH-06 SHARE-AUTH-07 SHARE-AUTH-08 SHARE-AUTH-09 SHARE-AUTH-10
#[tokio::test]
async fn share_groups_need_the_group_and_the_topics() {
    let mut case = Case::new().await;
    let topic = case.topic;
    let (read_group, read_topic) = ((Operation::Read, Resource::group("g")), (Operation::Read, Resource::topic("t")));
    let seen = (Operation::Describe, Resource::topic("t"));
    case.allowed(heartbeat("t"), GROUP, &[read_group.clone(), seen.clone()]).await;
    case.allowed(share_fetch(topic), GROUP, &[read_group.clone(), read_topic.clone()]).await;
    let batch = share_acknowledge_request::AcknowledgementBatch { acknowledge_types: vec![1], ..Default::default() };
    let partition =
        share_acknowledge_request::AcknowledgePartition { acknowledgement_batches: vec![batch], ..Default::default() };
    let acks = share_acknowledge_request::AcknowledgeTopic {
        topic_id: topic,
        partitions: vec![partition],
        ..Default::default()
    };
    let acknowledge = ShareAcknowledgeRequest {
        group_id: Some(text("g")),
        member_id: Some(text("m")),
        share_session_epoch: 1,
        topics: vec![acks],
        ..Default::default()
    };
    case.refused(acknowledge.clone(), GROUP, 1).await;
    case.broker.allow("User:alice", Operation::Read, Resource::group("g"));
    // It was the super user that used the epoch.
    let again = ShareAcknowledgeRequest { share_session_epoch: 2, ..acknowledge };
    let answer = case.alice.call(&again).await;
    assert_eq!(answer.responses[0].partitions[0].error_code, ErrorCode::TOPIC_AUTHORIZATION_FAILED);
    assert!(case.broker.remove_allow("User:alice", Operation::Read, &Resource::group("g")));
    let describe = ShareGroupDescribeRequest { group_ids: vec![text("g")], ..Default::default() };
    case.allowed(describe, GROUP, &[(Operation::Describe, Resource::group("g")), seen.clone()]).await;
    // What is subscribed to and not assigned is no secret.
    let waiting = ShareGroupHeartbeatRequest { group_id: text("g2"), ..heartbeat("none") };
    case.root.call(&waiting).await;
    case.broker.allow("User:alice", Operation::Describe, Resource::group("g2"));
    let describe = ShareGroupDescribeRequest { group_ids: vec![text("g2")], ..Default::default() };
    assert!(case.alice.call(&describe).await.groups[0].error_code.is_ok());
    assert!(case.broker.remove_allow("User:alice", Operation::Describe, &Resource::group("g2")));
    case.root.call(&ShareGroupHeartbeatRequest { member_epoch: -1, ..waiting }).await;
    case.root.call(&DeleteGroupsRequest { groups_names: vec![text("g2")], ..Default::default() }).await;
    assert!(case.alice.call(&ListGroupsRequest::default()).await.groups.is_empty());
    assert_eq!(case.root.call(&ListGroupsRequest::default()).await.groups.len(), 1);
    let topic = describe_share_group_offsets_request::DescribeShareGroupOffsetsRequestTopic {
        topic_name: text("t"),
        partitions: vec![0],
        ..Default::default()
    };
    let group = describe_share_group_offsets_request::DescribeShareGroupOffsetsRequestGroup {
        group_id: text("g"),
        topics: Some(vec![topic]),
        ..Default::default()
    };
    let offsets = DescribeShareGroupOffsetsRequest { groups: vec![group], ..Default::default() };
    case.allowed(offsets, GROUP, &[(Operation::Describe, Resource::group("g")), seen]).await;
    case.root.call(&ShareGroupHeartbeatRequest { member_epoch: -1, ..heartbeat("t") }).await;
    let topic = alter_share_group_offsets_request::AlterShareGroupOffsetsRequestTopic {
        topic_name: text("t"),
        partitions: vec![Default::default()],
        ..Default::default()
    };
    let alter = AlterShareGroupOffsetsRequest { group_id: text("g"), topics: vec![topic], ..Default::default() };
    case.allowed(alter, GROUP, &[read_group, read_topic.clone()]).await;
    let topic = delete_share_group_offsets_request::DeleteShareGroupOffsetsRequestTopic {
        topic_name: text("t"),
        ..Default::default()
    };
    let delete = DeleteShareGroupOffsetsRequest { group_id: text("g"), topics: vec![topic], ..Default::default() };
    case.allowed(delete, GROUP, &[(Operation::Delete, Resource::group("g")), read_topic]).await;
    let delete = DeleteGroupsRequest { groups_names: vec![text("g")], ..Default::default() };
    case.allowed(delete, GROUP, &[(Operation::Delete, Resource::group("g"))]).await;
}

#[tokio::test]
async fn staged_acknowledgements_need_id_group_and_topic() {
    let mut case = Case::new().await;
    let id = (Operation::Write, Resource::transactional_id("id"));
    let group = (Operation::Read, Resource::group("g"));
    let topic = (Operation::Read, Resource::topic("t"));
    let topics = vec![add_share_acks_to_txn_request::AddShareAcksToTxnTopic {
        topic_id: case.topic,
        partitions: vec![0],
        ..Default::default()
    }];
    let enrol =
        AddShareAcksToTxnRequest { transactional_id: text("id"), group_id: text("g"), topics, ..Default::default() };
    case.allowed(enrol, TXN, &[id.clone(), group.clone(), topic]).await;
    let stage = TxnShareAcknowledgeRequest {
        transactional_id: Some(text("id")),
        group_id: text("g"),
        member_id: text("m"),
        ..Default::default()
    };
    case.allowed(stage.clone(), TXN, &[id.clone(), group.clone()]).await;
    // Without the right on the topic nothing else is said of its partitions, not even that there is none.
    let epoch = case.root.call(&heartbeat("t")).await.member_epoch;
    for (operation, resource) in [id, group] {
        case.broker.allow("User:alice", operation, resource);
    }
    let partitions =
        vec![txn_share_acknowledge_request::AcknowledgePartition { partition_index: 9, ..Default::default() }];
    let topics = vec![txn_share_acknowledge_request::AcknowledgeTopic {
        topic_id: case.topic,
        partitions,
        ..Default::default()
    }];
    let stage = TxnShareAcknowledgeRequest { member_epoch: epoch, topics, ..stage };
    let answer = case.alice.call(&stage).await;
    assert_eq!(answer.responses[0].partitions[0].error_code, ErrorCode::TOPIC_AUTHORIZATION_FAILED, "{answer:?}");
}

#[tokio::test]
async fn what_may_be_done_is_told_to_who_asks() {
    let mut case = Case::new().await;
    case.broker.allow("User:alice", Operation::Read, Resource::topic("t"));
    let request = MetadataRequest { include_topic_authorized_operations: true, ..metadata("t", false) };
    let told = case.alice.call(&request).await.topics[0].topic_authorized_operations;
    assert_eq!(told, (1 << 3) | (1 << 8), "to read and to describe");
    assert_eq!(case.root.call(&request).await.topics[0].topic_authorized_operations, 0x0df8);
    let request =
        DescribeClusterRequest { include_cluster_authorized_operations: true, endpoint_type: 1, ..Default::default() };
    assert_eq!(case.alice.call(&request).await.cluster_authorized_operations, 0);
    assert_ne!(case.root.call(&request).await.cluster_authorized_operations, 0);
}

#[tokio::test]
async fn a_right_that_is_taken_away_ends_a_waiting_share_fetch() {
    let mut case = Case::new().await;
    for (operation, resource) in [(Operation::Read, Resource::group("g")), (Operation::Read, Resource::topic("t"))] {
        case.broker.allow("User:alice", operation, resource);
    }
    case.alice.call(&heartbeat("t")).await;
    let waiting = ShareFetchRequest { max_wait_ms: 60_000, min_bytes: 1, ..share_fetch(case.topic) };
    case.alice.send(&waiting, 2).await;
    while case.broker.with_cluster(|cluster, _| cluster.waiting_requests()) == 0 {
        tokio::task::yield_now().await;
    }
    case.broker.deny("User:*", Operation::Read, Resource::topic("t"));
    // Records arrive; she must not get them.
    let produced = case.root.call(&produce(case.topic, false)).await;
    assert!(produced.responses[0].partition_responses[0].error_code.is_ok());
    let answer = frame::decode_response::<ShareFetchRequest>(case.alice.frame().await.unwrap(), 2).unwrap().1;
    assert_eq!(answer.responses[0].partitions[0].error_code, ErrorCode::TOPIC_AUTHORIZATION_FAILED);
}
