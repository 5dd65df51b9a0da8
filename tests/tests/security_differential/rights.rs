//! Requests of a user with more and more rights, on both brokers.

use std::fmt::Debug;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use crate::{embedded, real, user};
use kafka_share_broker::{self as broker, EmbeddedBroker};
use kafka_share_messages::*;
use kafka_share_tests::acls::{self, Operation, Resource};
use kafka_share_tests::raw::Raw;
use kafka_share_wire::records::{BatchBuilder, BatchOptions};
use kafka_share_wire::{Str, Uuid};

/// Codes that a real broker answers until its coordinators are there.
const NOT_YET: [&str; 4] =
    ["NOT_COORDINATOR", "COORDINATOR_NOT_AVAILABLE", "COORDINATOR_LOAD_IN_PROGRESS", "CONCURRENT_TRANSACTIONS"];

/// What everybody may do with the things of one round, which have names of their own.
const ROUNDS: &[&[(Resource, &[Operation])]] = &[
    &[],
    &[(Resource::Topic, &[Operation::Describe])],
    &[(Resource::Topic, &[Operation::Read])],
    &[(Resource::Topic, &[Operation::Write])],
    &[(Resource::Topic, &[Operation::DescribeConfigs])],
    &[(Resource::Group, &[Operation::Describe])],
    &[(Resource::Group, &[Operation::Read])],
    &[(Resource::Group, &[Operation::Read]), (Resource::Topic, &[Operation::Describe])],
    &[(Resource::Group, &[Operation::Read]), (Resource::Topic, &[Operation::Read])],
    &[(Resource::TransactionalId, &[Operation::Describe])],
    &[(Resource::TransactionalId, &[Operation::Write])],
    &[(Resource::TransactionalId, &[Operation::Write]), (Resource::Topic, &[Operation::Write])],
];

/// The things of a round.
struct Names {
    topic: Str,
    topic_id: Uuid,
    group: Str,
    txn: Str,
}

impl Names {
    fn new(round: usize) -> Self {
        let name = |what: &str| Str::from(format!("{what}{round}"));
        Names { topic: name("topic"), topic_id: Uuid::ZERO, group: name("group"), txn: name("txn") }
    }

    fn of(&self, resource: Resource) -> &str {
        match resource {
            Resource::Topic => &self.topic,
            Resource::Group => &self.group,
            Resource::TransactionalId => &self.txn,
        }
    }
}

/// All codes and sets of operations in an answer, in their order.
fn codes(answer: &impl Debug) -> Vec<String> {
    let text = format!("{answer:?}");
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let named = |part: &str| part.starts_with(|c: char| c.is_ascii_uppercase()) && part.len() > 3;
    let mut found = Vec::new();
    for (at, _) in text.match_indices('(') {
        let start = text[..at].rfind(|c| !word(c)).map_or(0, |start| start + 1);
        let (name, inside) = (&text[start..at], &text[at + 1..]);
        let number = inside.split(')').next().unwrap_or_default();
        if named(name) && name.bytes().all(|b| b.is_ascii_uppercase() || b == b'_') && number.parse::<i16>().is_ok() {
            found.push(name.to_owned());
        }
    }
    for part in text.split("authorized_operations: ").skip(1) {
        found.push(part.chars().take_while(|c| c.is_ascii_digit() || *c == '-').collect());
    }
    found
}

/// Asks until the coordinators are there.
fn ask<R: Request<Response: Debug>>(raw: &mut Raw, told: &mut Vec<String>, request: &R, version: i16) {
    loop {
        let answer = raw.call(request, version).unwrap_or_else(|error| panic!("{}: {error}", R::NAME));
        let found = codes(&answer);
        if !found.iter().any(|code| NOT_YET.contains(&code.as_str())) {
            told.push(format!("{} {}", R::NAME, found.join(" ")));
            return;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

fn latest<R: Request<Response: Debug>>(raw: &mut Raw, told: &mut Vec<String>, request: &R) {
    ask(raw, told, request, R::MAX_VERSION);
}

fn batch(transactional: bool) -> Option<bytes::Bytes> {
    let mut options = BatchOptions::default();
    if transactional {
        (options.transactional, options.producer_id, options.producer_epoch) = (true, 777, 0);
        options.base_sequence = 0;
    }
    let mut builder = BatchBuilder::new(options);
    builder.append(1_700_000_000_000, None, Some(b"value"), []).expect("a record");
    Some(builder.finish().expect("a batch").freeze())
}

fn topics(raw: &mut Raw, told: &mut Vec<String>, names: &Names) {
    let named = metadata_request::MetadataRequestTopic { name: Some(names.topic.clone()), ..Default::default() };
    let by_id = metadata_request::MetadataRequestTopic { topic_id: names.topic_id, ..Default::default() };
    for topic in [named, by_id] {
        let request = MetadataRequest {
            topics: Some(vec![topic]),
            include_topic_authorized_operations: true,
            ..Default::default()
        };
        latest(raw, told, &request);
    }
    let missing = metadata_request::MetadataRequestTopic {
        name: Some(Str::from(format!("new-{}", names.topic.as_str()))),
        ..Default::default()
    };
    latest(raw, told, &MetadataRequest { topics: Some(vec![missing]), ..Default::default() });
    let request = describe_topic_partitions_request::TopicRequest { name: names.topic.clone(), ..Default::default() };
    let request =
        DescribeTopicPartitionsRequest { topics: vec![request], response_partition_limit: 10, ..Default::default() };
    latest(raw, told, &request);
    let new = create_topics_request::CreatableTopic {
        name: Str::from(format!("new-{}", names.topic.as_str())),
        num_partitions: 1,
        replication_factor: 1,
        ..Default::default()
    };
    latest(raw, told, &CreateTopicsRequest { topics: vec![new], validate_only: true, ..Default::default() });
    let grown =
        create_partitions_request::CreatePartitionsTopic { name: names.topic.clone(), count: 2, ..Default::default() };
    latest(raw, told, &CreatePartitionsRequest { topics: vec![grown], validate_only: true, ..Default::default() });
    let gone = delete_topics_request::DeleteTopicState {
        name: Some(Str::from(format!("gone-{}", names.topic.as_str()))),
        ..Default::default()
    };
    latest(raw, told, &DeleteTopicsRequest { topics: vec![gone], timeout_ms: 1000, ..Default::default() });
    if !told.iter().any(|line| line.contains("DeleteTopics") && line.contains("NONE")) {
        let by_id = delete_topics_request::DeleteTopicState { topic_id: names.topic_id, ..Default::default() };
        latest(raw, told, &DeleteTopicsRequest { topics: vec![by_id], timeout_ms: 1000, ..Default::default() });
    }
}

fn records(raw: &mut Raw, told: &mut Vec<String>, names: &Names) {
    for transactional in [false, true] {
        let data = produce_request::PartitionProduceData { records: batch(transactional), ..Default::default() };
        let topic = produce_request::TopicProduceData {
            topic_id: names.topic_id,
            partition_data: vec![data],
            ..Default::default()
        };
        let transactional_id = transactional.then(|| names.txn.clone());
        let request = ProduceRequest {
            transactional_id,
            acks: -1,
            timeout_ms: 1000,
            topic_data: vec![topic],
            ..Default::default()
        };
        // A batch of a producer that was never let in is refused in ways that this test is not about.
        if !transactional || names.txn.as_str() != "txn11" {
            latest(raw, told, &request);
        }
    }
    let partition = fetch_request::FetchPartition { partition_max_bytes: 1000, ..Default::default() };
    let topic =
        fetch_request::FetchTopic { topic_id: names.topic_id, partitions: vec![partition], ..Default::default() };
    let request =
        FetchRequest { session_epoch: -1, max_bytes: 1000, max_wait_ms: 0, topics: vec![topic], ..Default::default() };
    latest(raw, told, &request);
    let partition =
        list_offsets_request::ListOffsetsPartition { timestamp: -2, current_leader_epoch: -1, ..Default::default() };
    let topic = list_offsets_request::ListOffsetsTopic {
        name: names.topic.clone(),
        partitions: vec![partition],
        ..Default::default()
    };
    latest(raw, told, &ListOffsetsRequest { replica_id: -1, topics: vec![topic], ..Default::default() });
    let topic = delete_records_request::DeleteRecordsTopic {
        name: names.topic.clone(),
        partitions: vec![delete_records_request::DeleteRecordsPartition::default()],
        ..Default::default()
    };
    latest(raw, told, &DeleteRecordsRequest { topics: vec![topic], timeout_ms: 1000, ..Default::default() });
    let topic = describe_producers_request::TopicRequest {
        name: names.topic.clone(),
        partition_indexes: vec![0],
        ..Default::default()
    };
    latest(raw, told, &DescribeProducersRequest { topics: vec![topic], ..Default::default() });
}

fn transactions(raw: &mut Raw, told: &mut Vec<String>, names: &Names) {
    for (kind, key) in [(0, &names.group), (1, &names.txn)] {
        let request =
            FindCoordinatorRequest { key_type: kind, coordinator_keys: vec![key.clone()], ..Default::default() };
        latest(raw, told, &request);
    }
    for transactional_id in [None, Some(names.txn.clone())] {
        let request = InitProducerIdRequest {
            transactional_id,
            transaction_timeout_ms: 60_000,
            producer_id: -1,
            producer_epoch: -1,
            ..Default::default()
        };
        ask(raw, told, &request, 5);
    }
    let topic = add_partitions_to_txn_request::AddPartitionsToTxnTopic {
        name: names.topic.clone(),
        partitions: vec![0],
        ..Default::default()
    };
    let request = AddPartitionsToTxnRequest {
        v3_and_below_transactional_id: names.txn.clone(),
        v3_and_below_producer_id: 777,
        v3_and_below_topics: vec![topic],
        ..Default::default()
    };
    ask(raw, told, &request, 3);
    latest(raw, told, &AddPartitionsToTxnRequest::default());
    let request = EndTxnRequest { transactional_id: names.txn.clone(), producer_id: 777, ..Default::default() };
    latest(raw, told, &request);
    let request = DescribeTransactionsRequest { transactional_ids: vec![names.txn.clone()], ..Default::default() };
    latest(raw, told, &request);
}

fn settings(raw: &mut Raw, told: &mut Vec<String>, names: &Names) {
    for (kind, name) in [(2, names.topic.clone()), (32, names.group.clone()), (4, Str::from_static("1"))] {
        let resource = describe_configs_request::DescribeConfigsResource {
            resource_type: kind,
            resource_name: name.clone(),
            configuration_keys: Some(vec![Str::from_static("none")]),
            ..Default::default()
        };
        latest(raw, told, &DescribeConfigsRequest { resources: vec![resource], ..Default::default() });
        let resource = incremental_alter_configs_request::AlterConfigsResource {
            resource_type: kind,
            resource_name: name,
            ..Default::default()
        };
        let request =
            IncrementalAlterConfigsRequest { resources: vec![resource], validate_only: true, ..Default::default() };
        latest(raw, told, &request);
    }
    latest(raw, told, &ListConfigResourcesRequest::default());
    latest(
        raw,
        told,
        &DescribeClusterRequest { include_cluster_authorized_operations: true, endpoint_type: 1, ..Default::default() },
    );
}

fn share_group(raw: &mut Raw, told: &mut Vec<String>, names: &Names) {
    let request = ShareGroupHeartbeatRequest {
        group_id: names.group.clone(),
        member_id: Str::from_static("member"),
        subscribed_topic_names: Some(vec![names.topic.clone()]),
        ..Default::default()
    };
    latest(raw, told, &request);
    let request = ShareGroupDescribeRequest {
        group_ids: vec![names.group.clone()],
        include_authorized_operations: true,
        ..Default::default()
    };
    latest(raw, told, &request);
    let topic = describe_share_group_offsets_request::DescribeShareGroupOffsetsRequestTopic {
        topic_name: names.topic.clone(),
        partitions: vec![0],
        ..Default::default()
    };
    let group = describe_share_group_offsets_request::DescribeShareGroupOffsetsRequestGroup {
        group_id: names.group.clone(),
        topics: Some(vec![topic]),
        ..Default::default()
    };
    latest(raw, told, &DescribeShareGroupOffsetsRequest { groups: vec![group], ..Default::default() });
    let topic = alter_share_group_offsets_request::AlterShareGroupOffsetsRequestTopic {
        topic_name: names.topic.clone(),
        partitions: vec![Default::default()],
        ..Default::default()
    };
    let request =
        AlterShareGroupOffsetsRequest { group_id: names.group.clone(), topics: vec![topic], ..Default::default() };
    latest(raw, told, &request);
    let topic = delete_share_group_offsets_request::DeleteShareGroupOffsetsRequestTopic {
        topic_name: names.topic.clone(),
        ..Default::default()
    };
    let request =
        DeleteShareGroupOffsetsRequest { group_id: names.group.clone(), topics: vec![topic], ..Default::default() };
    latest(raw, told, &request);
    latest(raw, told, &DeleteGroupsRequest { groups_names: vec![names.group.clone()], ..Default::default() });
    sessions(raw, told, names);
}

fn sessions(raw: &mut Raw, told: &mut Vec<String>, names: &Names) {
    let member = Str::from_static("member");
    let topic = share_fetch_request::FetchTopic {
        topic_id: names.topic_id,
        partitions: vec![Default::default()],
        ..Default::default()
    };
    let request = ShareFetchRequest {
        group_id: Some(names.group.clone()),
        member_id: Some(member.clone()),
        max_bytes: 1000,
        max_records: 10,
        batch_size: 10,
        topics: vec![topic],
        ..Default::default()
    };
    latest(raw, told, &request);
    // Whether there is a share-partition yet is a matter of time on a real broker.
    if let Some(line) = told.last_mut().filter(|line| !line.contains("AUTHORIZATION_FAILED")) {
        *line = "ShareFetch is allowed".into();
    }
    let batch = share_acknowledge_request::AcknowledgementBatch { acknowledge_types: vec![1], ..Default::default() };
    let partition =
        share_acknowledge_request::AcknowledgePartition { acknowledgement_batches: vec![batch], ..Default::default() };
    let topic = share_acknowledge_request::AcknowledgeTopic {
        topic_id: names.topic_id,
        partitions: vec![partition],
        ..Default::default()
    };
    // With an epoch that no session has: what the log holds is not what this test is about.
    let request = ShareAcknowledgeRequest {
        group_id: Some(names.group.clone()),
        member_id: Some(member),
        share_session_epoch: 77,
        topics: vec![topic],
        ..Default::default()
    };
    latest(raw, told, &request);
}

fn create_topic(at: SocketAddr, names: &Names) -> Uuid {
    let topic = create_topics_request::CreatableTopic {
        name: names.topic.clone(),
        num_partitions: 1,
        replication_factor: 1,
        ..Default::default()
    };
    let request = CreateTopicsRequest { topics: vec![topic], timeout_ms: 30_000, ..Default::default() };
    let (mut raw, until) = (Raw::connect(at).expect("connected"), Instant::now() + Duration::from_secs(60));
    loop {
        let answer = raw.latest(&request).expect("an answer");
        let code = answer.topics[0].error_code;
        if code.is_ok() {
            return answer.topics[0].topic_id;
        }
        // A broker that has just started answers before its controller counts it.
        let early = code == ErrorCode::INVALID_REPLICATION_FACTOR || code.is_retriable();
        assert!(early && Instant::now() < until, "{}: {code}", names.topic.as_str());
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Gives the rights of all rounds on a real broker, and waits until it knows them.
fn give_real(at: SocketAddr, safe: SocketAddr, rounds: &[Names]) {
    let all = ROUNDS.iter().zip(rounds);
    let mut things: Vec<(Resource, &str, &[Operation])> = all
        .flat_map(|(rights, names)| {
            rights.iter().map(|(resource, operations)| (*resource, names.of(*resource), *operations))
        })
        .collect();
    things.push((Resource::Topic, "last", &[Operation::Describe]));
    acls::allow_only(at, &things).expect("rights");
    let topic = metadata_request::MetadataRequestTopic { name: Some(Str::from_static("last")), ..Default::default() };
    let request = MetadataRequest { topics: Some(vec![topic]), allow_auto_topic_creation: false, ..Default::default() };
    let mut alice = user(safe, "alice");
    while alice.latest(&request).expect("an answer").topics[0].error_code == ErrorCode::TOPIC_AUTHORIZATION_FAILED {
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn give_embedded(broker: &EmbeddedBroker, rounds: &[Names]) {
    for (rights, names) in ROUNDS.iter().zip(rounds) {
        for (resource, operations) in *rights {
            for operation in *operations {
                let name = names.of(*resource);
                let thing = match resource {
                    Resource::Topic => broker::Resource::topic(name),
                    Resource::Group => broker::Resource::group(name),
                    Resource::TransactionalId => broker::Resource::transactional_id(name),
                };
                let operation = match operation {
                    Operation::Read => broker::Operation::Read,
                    Operation::Write => broker::Operation::Write,
                    Operation::Describe => broker::Operation::Describe,
                    Operation::DescribeConfigs => broker::Operation::DescribeConfigs,
                };
                broker.allow("User:*", operation, thing);
            }
        }
    }
}

fn play(safe: SocketAddr, names: &Names) -> Vec<String> {
    let mut told = Vec::new();
    for part in [topics, records, transactions, settings, share_group] {
        // Sessions last three seconds.
        part(&mut user(safe, "alice"), &mut told, names);
    }
    told
}

#[tokio::test(flavor = "multi_thread")]
async fn rights_are_decided_as_by_kafka() {
    let Some((kafka, real)) = real("rights_are_decided_as_by_kafka") else { return };
    let (broker, safe) = embedded().await;
    let own = broker.bootstrap_servers().parse().expect("an address");
    let named = |at| {
        (0..ROUNDS.len()).map(Names::new).map(move |names| {
            let topic_id = create_topic(at, &names);
            Names { topic_id, ..names }
        })
    };
    let (theirs, ours): (Vec<Names>, Vec<Names>) = (named(kafka.address()).collect(), named(own).collect());
    give_real(kafka.address(), real, &theirs);
    give_embedded(&broker, &ours);
    let mut differ = Vec::new();
    for (round, (theirs, ours)) in theirs.iter().zip(&ours).enumerate() {
        let (expected, told) = (play(real, theirs), play(safe, ours));
        assert_eq!(expected.len(), told.len());
        let refused = expected.iter().filter(|line| line.contains("AUTHORIZATION_FAILED")).count();
        // Who has no right at all is refused nearly everything.
        assert!(round > 0 || refused > 25, "{expected:?}");
        let lines = expected.into_iter().zip(told).filter(|(expected, told)| expected != told);
        differ.extend(lines.map(|(expected, told)| format!("round {round}: Kafka {expected} / here {told}")));
    }
    assert!(differ.is_empty(), "{}", differ.join("\n"));
}
