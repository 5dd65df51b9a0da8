//! Tests of compacted topics on frames: readers, share groups and a restart over a log with gaps.

use super::tests::Client;
use super::*;
use kafka_share_messages::create_topics_request::{CreatableTopic, CreatableTopicConfig};
use kafka_share_messages::delete_records_request::{DeleteRecordsPartition, DeleteRecordsTopic};
use kafka_share_messages::fetch_request::{FetchPartition, FetchTopic};
use kafka_share_messages::incremental_alter_configs_request::{AlterConfigsResource, AlterableConfig};
use kafka_share_messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
use kafka_share_messages::produce_request::{PartitionProduceData, TopicProduceData};
use kafka_share_messages::{
    CreateTopicsRequest, DeleteRecordsRequest, ErrorCode, FetchRequest, IncrementalAlterConfigsRequest,
    ListOffsetsRequest, ProduceRequest, ShareFetchRequest, ShareGroupHeartbeatRequest, share_fetch_request,
};
use kafka_share_wire::Str;
use kafka_share_wire::records::{BatchBuilder, BatchIter, BatchOptions};

const NOW: i64 = 1_700_000_000_000;

fn compacted(client: &mut Client, policy: &str) -> Uuid {
    let config = |(name, value): (&str, &str)| CreatableTopicConfig {
        name: Str::from(name),
        value: Some(Str::from(value)),
        ..Default::default()
    };
    let settings = [("cleanup.policy", policy), ("segment.ms", "1"), ("min.cleanable.dirty.ratio", "0")];
    let topic = CreatableTopic {
        name: Str::from_static("t"),
        num_partitions: 1,
        replication_factor: 1,
        configs: settings.into_iter().map(config).collect(),
        ..Default::default()
    };
    let response = client.call(&CreateTopicsRequest { topics: vec![topic], ..Default::default() });
    assert_eq!(response.topics[0].error_code, ErrorCode::NONE);
    response.topics[0].topic_id
}

/// One batch, a record per key.
fn produce(client: &mut Client, topic: Uuid, at: i64, keys: &[Option<&str>]) -> ErrorCode {
    let mut builder = BatchBuilder::new(BatchOptions::default());
    for key in keys {
        builder.append(NOW + at, key.map(str::as_bytes), Some(b"value"), []).unwrap();
    }
    let records = Some(builder.finish().unwrap().freeze());
    let data = PartitionProduceData { records, ..Default::default() };
    let topic = TopicProduceData { topic_id: topic, partition_data: vec![data], ..Default::default() };
    let request = ProduceRequest { acks: -1, timeout_ms: 1000, topic_data: vec![topic], ..Default::default() };
    client.call(&request).responses[0].partition_responses[0].error_code
}

/// Offsets 0 to 5 with gaps at 0, 2 and 3.
fn with_gaps(client: &mut Client) -> Uuid {
    let topic = compacted(client, "compact");
    for (at, keys) in [[Some("a"), Some("b")], [Some("a"), Some("c")], [Some("a"), Some("c")]].iter().enumerate() {
        assert_eq!(produce(client, topic, 10 * at as i64, keys), ErrorCode::NONE);
    }
    assert_eq!(produce(client, topic, 100, &[Some("active")]), ErrorCode::NONE);
    client.advance(11_000);
    topic
}

fn offsets(records: Option<Bytes>) -> Vec<i64> {
    let batches = BatchIter::new(records.unwrap()).map(|batch| batch.unwrap().decode(1 << 20).unwrap());
    batches.flat_map(|batch| batch.iter().map(|record| record.unwrap().offset).collect::<Vec<_>>()).collect()
}

fn fetch(client: &mut Client, topic: Uuid, offset: i64) -> Vec<i64> {
    let partition = FetchPartition {
        current_leader_epoch: -1,
        fetch_offset: offset,
        last_fetched_epoch: -1,
        partition_max_bytes: 1 << 20,
        ..Default::default()
    };
    let request = FetchRequest {
        max_bytes: 1 << 20,
        session_epoch: -1,
        topics: vec![FetchTopic { topic_id: topic, partitions: vec![partition], ..Default::default() }],
        ..Default::default()
    };
    let response = client.call(&request);
    assert_eq!(response.responses[0].partitions[0].error_code, ErrorCode::NONE);
    offsets(response.responses[0].partitions[0].records.clone())
}

#[test]
fn readers_skip_the_gaps_before_and_after_a_restart() {
    let mut client = Client::new(1);
    let topic = with_gaps(&mut client);
    assert_eq!(client.cluster.log_bytes, client.cluster.topics.by_id(topic).unwrap().partitions[0].log.bytes());
    for _ in 0..2 {
        assert_eq!(fetch(&mut client, topic, 0), [1, 4, 5, 6]);
        assert_eq!(fetch(&mut client, topic, 2), [4, 5, 6]);
        client.restart();
    }
    assert_eq!(produce(&mut client, topic, 200, &[None]), ErrorCode::INVALID_RECORD, "compaction needs keys");
}

#[test]
fn a_share_group_reads_over_the_gaps() {
    let mut client = Client::new(1);
    let topic = with_gaps(&mut client);
    let config = AlterableConfig {
        name: Str::from_static("share.auto.offset.reset"),
        value: Some(Str::from_static("earliest")),
        ..Default::default()
    };
    let resource = AlterConfigsResource {
        resource_type: 32,
        resource_name: Str::from_static("g"),
        configs: vec![config],
        ..Default::default()
    };
    client.call(&IncrementalAlterConfigsRequest { resources: vec![resource], ..Default::default() });
    let beat = ShareGroupHeartbeatRequest {
        group_id: Str::from_static("g"),
        member_id: Str::from_static("m"),
        subscribed_topic_names: Some(vec![Str::from_static("t")]),
        ..Default::default()
    };
    assert_eq!(client.call(&beat).error_code, ErrorCode::NONE);
    let request = |epoch: i32, acks: &[(i64, i64, Vec<i8>)]| {
        let batch = |(first, last, types): &(i64, i64, Vec<i8>)| share_fetch_request::AcknowledgementBatch {
            first_offset: *first,
            last_offset: *last,
            acknowledge_types: types.clone(),
            ..Default::default()
        };
        let partition = share_fetch_request::FetchPartition {
            acknowledgement_batches: acks.iter().map(batch).collect(),
            ..Default::default()
        };
        ShareFetchRequest {
            group_id: Some(Str::from_static("g")),
            member_id: Some(Str::from_static("m")),
            share_session_epoch: epoch,
            min_bytes: 1,
            max_bytes: 1 << 20,
            max_records: 500,
            batch_size: 500,
            topics: vec![share_fetch_request::FetchTopic {
                topic_id: topic,
                partitions: vec![partition],
                ..Default::default()
            }],
            ..Default::default()
        }
    };
    let response = client.call(&request(0, &[]));
    let data = &response.responses[0].partitions[0];
    let ranges: Vec<(i64, i64)> = data.acquired_records.iter().map(|r| (r.first_offset, r.last_offset)).collect();
    assert_eq!((ranges, offsets(data.records.clone())), (vec![(0, 6)], vec![1, 4, 5, 6]));
    // As clients do: gaps are told apart from records.
    let response = client.call(&request(1, &[(0, 6, vec![0, 1, 0, 0, 1, 1, 1])]));
    assert_eq!(response.responses[0].partitions[0].acknowledge_error_code, ErrorCode::NONE);
    assert_eq!(client.cluster.share_dump().partitions[0].start_offset, 7);
}

/// Every special time of Kafka 4.4: -1 latest, -2 earliest, -3 greatest timestamp, -4 earliest local, -5 tiered.
#[test]
fn list_offsets_over_gaps_and_deleted_records() {
    let mut client = Client::new(1);
    let topic = with_gaps(&mut client);
    let list = |client: &mut Client, timestamp: i64| {
        let partition = ListOffsetsPartition { current_leader_epoch: -1, timestamp, ..Default::default() };
        let topic = ListOffsetsTopic { name: Str::from_static("t"), partitions: vec![partition], ..Default::default() };
        let request = ListOffsetsRequest { replica_id: -1, topics: vec![topic], ..Default::default() };
        let response = client.call(&request);
        let found = &response.topics[0].partitions[0];
        assert_eq!(found.error_code, ErrorCode::NONE, "{timestamp}");
        (found.offset, found.timestamp)
    };
    for (timestamp, expected) in [
        (-1, (7, -1)),
        (-2, (0, -1)),
        (-3, (6, NOW + 100)),
        (-4, (0, -1)),
        (-5, (-1, -1)),
        (NOW, (1, NOW)),
        (NOW + 1, (4, NOW + 20)),
        (NOW + 101, (-1, -1)),
    ] {
        assert_eq!(list(&mut client, timestamp), expected, "{timestamp}");
    }
    let delete = |client: &mut Client, offset: i64| {
        let partition = DeleteRecordsPartition { offset, ..Default::default() };
        let topic =
            DeleteRecordsTopic { name: Str::from_static("t"), partitions: vec![partition], ..Default::default() };
        let response = client.call(&DeleteRecordsRequest { topics: vec![topic], ..Default::default() });
        let found = &response.topics[0].partitions[0];
        (found.error_code, found.low_watermark)
    };
    assert_eq!(delete(&mut client, 3).0, ErrorCode::POLICY_VIOLATION, "only with cleanup.policy delete");
    let mut overrides = client.cluster.topics.by_id(topic).unwrap().overrides.clone();
    overrides.insert("cleanup.policy", "compact,delete".into());
    client.cluster.set_topic_overrides(topic, overrides);
    assert_eq!(delete(&mut client, 3), (ErrorCode::NONE, 3), "an offset in a gap");
    assert_eq!((list(&mut client, -2), list(&mut client, -4)), ((3, -1), (3, -1)));
    assert_eq!(fetch(&mut client, topic, 3), [4, 5, 6]);
    assert_eq!(delete(&mut client, 8).0, ErrorCode::OFFSET_OUT_OF_RANGE);
    client.restart();
    assert_eq!(list(&mut client, -2), (3, -1));
}

#[test]
fn compact_and_delete_does_both() {
    let mut client = Client::new(1);
    let topic = compacted(&mut client, "compact,delete");
    let mut overrides = client.cluster.topics.by_id(topic).unwrap().overrides.clone();
    overrides.insert("retention.ms", "60000".into());
    client.cluster.set_topic_overrides(topic, overrides);
    for (at, key) in ["a", "a", "b"].iter().enumerate() {
        produce(&mut client, topic, 20_000 * at as i64, &[Some(key)]);
    }
    client.advance(11_000);
    assert_eq!(fetch(&mut client, topic, 0), [1, 2], "compacted");
    client.advance(75_000);
    assert_eq!(fetch(&mut client, topic, 2), [2], "the others are too old");
    assert_eq!(client.cluster.topics.by_id(topic).unwrap().partitions[0].log.start_offset(), 2);
}
