//! Tests of limits: each refuses with its own error, says what is full, and leaves what is there in use.

use super::super::tests::Client;
use crate::CoordinatorKind;
use kafka_share_messages::add_partitions_to_txn_request::AddPartitionsToTxnTopic;
use kafka_share_messages::incremental_alter_configs_request::{AlterConfigsResource, AlterableConfig};
use kafka_share_messages::share_fetch_request::{FetchPartition, FetchTopic, ForgottenTopic};
use kafka_share_messages::write_txn_markers_request::{WritableTxnMarker, WritableTxnMarkerTopic};
use kafka_share_messages::{
    AddPartitionsToTxnRequest, AlterShareGroupOffsetsRequest, DeleteGroupsRequest, ErrorCode,
    IncrementalAlterConfigsRequest, InitProducerIdRequest, ShareFetchRequest, ShareGroupHeartbeatRequest,
    WriteTxnMarkersRequest,
};
use kafka_share_wire::{Str, Uuid};

fn join(client: &mut Client, group: &str, member: &str, topics: usize) -> ErrorCode {
    let topics = (0..topics).map(|i| Str::from(format!("t{i}"))).collect();
    let beat = ShareGroupHeartbeatRequest {
        group_id: Str::from(group),
        member_id: Str::from(member),
        subscribed_topic_names: Some(topics),
        ..Default::default()
    };
    let response = client.call(&beat);
    assert_eq!(response.error_code.is_ok(), response.error_message.is_none(), "errors say why");
    response.error_code
}

#[test]
fn groups_are_limited() {
    let mut client = Client::with(1, |config| config.max_groups = 2);
    let codes: Vec<_> = ["a", "b", "c", "a"].iter().map(|group| join(&mut client, group, group, 1)).collect();
    let full = ErrorCode::GROUP_MAX_SIZE_REACHED;
    assert_eq!(codes, [ErrorCode::NONE, ErrorCode::NONE, full, ErrorCode::NONE]);
    let alter = AlterShareGroupOffsetsRequest { group_id: Str::from_static("d"), ..Default::default() };
    assert_eq!(client.call(&alter).error_code, full);
    // A member that leaves empties the group, which can then be deleted.
    let leave = ShareGroupHeartbeatRequest {
        group_id: Str::from_static("b"),
        member_id: Str::from_static("b"),
        member_epoch: -1,
        ..Default::default()
    };
    assert_eq!(client.call(&leave).error_code, ErrorCode::NONE);
    let delete = DeleteGroupsRequest { groups_names: vec![Str::from_static("b")], ..Default::default() };
    assert_eq!(client.call(&delete).results[0].error_code, ErrorCode::NONE);
    assert_eq!(join(&mut client, "c", "c", 1), ErrorCode::NONE);
}

#[test]
fn members_and_their_subscriptions_are_limited() {
    let mut client = Client::with(1, |config| config.groups.max_group_size = 2);
    let codes: Vec<_> = ["m1", "m2", "m3"].iter().map(|member| join(&mut client, "g", member, 1)).collect();
    assert_eq!(codes, [ErrorCode::NONE, ErrorCode::NONE, ErrorCode::GROUP_MAX_SIZE_REACHED]);
    assert_eq!(join(&mut client, "h", "m", super::MAX_SUBSCRIBED), ErrorCode::NONE);
    assert_eq!(join(&mut client, "h", "m", super::MAX_SUBSCRIBED + 1), ErrorCode::INVALID_REQUEST);
}

#[test]
fn share_partitions_are_limited() {
    let mut client = Client::with(1, |config| config.max_share_partitions = 3);
    client.create_topic("t0", 2);
    let codes: Vec<_> = ["a", "b", "c"].iter().map(|group| join(&mut client, group, "m", 1)).collect();
    assert_eq!(codes, [ErrorCode::NONE, ErrorCode::NONE, ErrorCode::GROUP_MAX_SIZE_REACHED]);
}

#[test]
fn group_settings_are_limited() {
    let mut client = Client::with(1, |config| config.max_group_configs = 1);
    let mut set = |group: &str, operation: i8| {
        let config = AlterableConfig {
            name: Str::from_static("share.isolation.level"),
            config_operation: operation,
            value: Some(Str::from_static("read_committed")),
            ..Default::default()
        };
        let resource = AlterConfigsResource {
            resource_type: 32,
            resource_name: Str::from(group),
            configs: vec![config],
            ..Default::default()
        };
        let request = IncrementalAlterConfigsRequest { resources: vec![resource], ..Default::default() };
        client.call(&request).responses[0].error_code
    };
    assert_eq!((set("a", 0), set("a", 0)), (ErrorCode::NONE, ErrorCode::NONE));
    assert_eq!(set("b", 0), ErrorCode::POLICY_VIOLATION);
    assert_eq!((set("a", 1), set("b", 0)), (ErrorCode::NONE, ErrorCode::NONE));
}

#[test]
fn partitions_are_limited_however_they_are_created() {
    let mut client = Client::with(1, |config| {
        config.max_partitions = 3;
        config.internal_partitions = 1;
    });
    client.create_topic("t", 2);
    assert!(client.cluster.create_topic("u", 2).unwrap_err().contains("the 3 that this broker may hold"));
    let refused = client.cluster.topic_or_create(&Str::from_static("v"), true);
    assert!(refused.is_ok(), "one fits");
    let refused = client.cluster.topic_or_create(&Str::from_static("w"), true).map_err(|refusal| refusal.code);
    assert_eq!(refused, Err(ErrorCode::INVALID_PARTITIONS));
}

/// Markers take room too, whoever asks for them.
#[test]
fn markers_are_bounded_by_the_memory_for_records() {
    let mut client = Client::with(1, |config| config.max_log_bytes = 2 * super::MARKER);
    let topic = client.create_topic("t", 1);
    let marker = WritableTxnMarker {
        producer_id: 5,
        topics: vec![WritableTxnMarkerTopic {
            name: Str::from_static("t"),
            partition_indexes: vec![0],
            ..Default::default()
        }],
        ..Default::default()
    };
    let request = WriteTxnMarkersRequest { markers: vec![marker], ..Default::default() };
    let codes: Vec<ErrorCode> =
        (0..3).map(|_| client.call(&request).markers[0].topics[0].partitions[0].error_code).collect();
    assert_eq!(codes, [ErrorCode::NONE, ErrorCode::NONE, ErrorCode::KAFKA_STORAGE_ERROR]);
    assert_eq!(client.cluster.topics.by_id(topic).unwrap().partitions[0].log.bytes(), 2 * super::MARKER);
    client.cluster.move_coordinator(client.now, CoordinatorKind::Transaction, "x", 1);
    let init = InitProducerIdRequest {
        transactional_id: Some(Str::from_static("x")),
        transaction_timeout_ms: 60_000,
        producer_id: -1,
        producer_epoch: -1,
        ..Default::default()
    };
    let producer = client.call_on(client.conn, &init, 5);
    let add = AddPartitionsToTxnRequest {
        v3_and_below_transactional_id: Str::from_static("x"),
        v3_and_below_producer_id: producer.producer_id,
        v3_and_below_producer_epoch: producer.producer_epoch,
        v3_and_below_topics: vec![AddPartitionsToTxnTopic {
            name: Str::from_static("t"),
            partitions: vec![0],
            ..Default::default()
        }],
        ..Default::default()
    };
    let response = client.call_on(client.conn, &add, 3);
    let code = response.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code;
    assert_eq!(code, ErrorCode::KAFKA_STORAGE_ERROR);
}

#[test]
fn partitions_of_a_share_session_are_limited() {
    let mut client = Client::with(1, |config| config.max_partitions = 100);
    let request = |epoch: i32, partitions: std::ops::Range<i32>, forgotten: Vec<i32>| ShareFetchRequest {
        group_id: Some(Str::from_static("g")),
        member_id: Some(Str::from_static("AAAAAAAAAAAAAAAAAAAAAA")),
        share_session_epoch: epoch,
        topics: vec![FetchTopic {
            topic_id: Uuid([9; 16]),
            partitions: partitions
                .map(|partition_index| FetchPartition { partition_index, ..Default::default() })
                .collect(),
            ..Default::default()
        }],
        forgotten_topics_data: vec![ForgottenTopic {
            topic_id: Uuid([9; 16]),
            partitions: forgotten,
            ..Default::default()
        }],
        ..Default::default()
    };
    assert_eq!(client.call(&request(0, 0..60, vec![])).error_code, ErrorCode::NONE);
    assert_eq!(client.call(&request(1, 60..120, vec![])).error_code, ErrorCode::INVALID_REQUEST);
    assert_eq!(client.call(&request(2, 0..0, (10..60).collect())).error_code, ErrorCode::NONE);
    assert_eq!(client.call(&request(3, 60..120, vec![])).error_code, ErrorCode::NONE);
}
