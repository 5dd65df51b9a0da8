//! Requests of the test, one function each.

use bytes::Bytes;
use kafka_share_messages::describe_share_group_offsets_request::DescribeShareGroupOffsetsRequestGroup;
use kafka_share_messages::fetch_request::{FetchPartition, FetchTopic};
use kafka_share_messages::incremental_alter_configs_request::{AlterConfigsResource, AlterableConfig};
use kafka_share_messages::metadata_request::MetadataRequestTopic;
use kafka_share_messages::produce_request::{PartitionProduceData, TopicProduceData};
use kafka_share_messages::{
    DescribeShareGroupOffsetsRequest, ErrorCode, FetchRequest, IncrementalAlterConfigsRequest, InitProducerIdRequest,
    MetadataRequest, ProduceRequest, ShareGroupHeartbeatRequest,
};
use kafka_share_tests::raw::Raw;
use kafka_share_wire::records::{BatchBuilder, BatchIter, BatchOptions};
use kafka_share_wire::{Str, Uuid};
use std::collections::{BTreeMap, BTreeSet};
use std::io;

pub(crate) type Topic = Uuid;

/// Cluster id, and the ids of both topics.
pub(crate) fn topics(raw: &mut Raw) -> (Option<String>, BTreeMap<String, Topic>) {
    let named = |name| MetadataRequestTopic { name: Some(Str::from_static(name)), ..Default::default() };
    let request = MetadataRequest { topics: Some(vec![named("in"), named("out")]), ..Default::default() };
    let response = raw.latest(&request).unwrap();
    let name = |topic: &kafka_share_messages::metadata_response::MetadataResponseTopic| {
        assert!(topic.error_code.is_ok());
        (topic.name.as_ref().unwrap().to_string(), topic.topic_id)
    };
    (response.cluster_id.map(|id| id.to_string()), response.topics.iter().map(name).collect())
}

/// Where the nodes say they are.
pub(crate) fn brokers(raw: &mut Raw) -> Vec<(String, u16)> {
    let response = raw.latest(&MetadataRequest::default()).unwrap();
    response.brokers.iter().map(|node| (node.host.to_string(), node.port as u16)).collect()
}

/// Sets a group's reset to earliest; it is set once and has to survive.
pub(crate) fn read_from_the_start(raw: &mut Raw, group: &'static str) {
    let config = AlterableConfig {
        name: Str::from_static("share.auto.offset.reset"),
        value: Some(Str::from_static("earliest")),
        ..Default::default()
    };
    let resource = AlterConfigsResource {
        resource_type: 32,
        resource_name: Str::from_static(group),
        configs: vec![config],
        ..Default::default()
    };
    let request = IncrementalAlterConfigsRequest { resources: vec![resource], ..Default::default() };
    assert!(raw.latest(&request).unwrap().responses[0].error_code.is_ok());
}

/// Joins or leaves the group, by the member epoch.
pub(crate) fn beat(raw: &mut Raw, member_epoch: i32) {
    let beat = ShareGroupHeartbeatRequest {
        group_id: Str::from_static("g"),
        member_id: Str::from_static("AAAAAAAAAAAAAAAAAAAAAA"),
        member_epoch,
        subscribed_topic_names: Some(vec![Str::from_static("in")]),
        ..Default::default()
    };
    assert!(raw.latest(&beat).unwrap().error_code.is_ok());
}

/// A producer's identity.
pub(crate) fn init(raw: &mut Raw, txn_id: Option<&'static str>) -> io::Result<(i64, i16)> {
    loop {
        let request = InitProducerIdRequest {
            transactional_id: txn_id.map(Str::from_static),
            transaction_timeout_ms: 60_000,
            producer_id: -1,
            producer_epoch: -1,
            ..Default::default()
        };
        let response = raw.call(&request, 5)?;
        match response.error_code {
            ErrorCode::NONE => return Ok((response.producer_id, response.producer_epoch)),
            ErrorCode::CONCURRENT_TRANSACTIONS => {}
            code => panic!("InitProducerId: {code}"),
        }
    }
}

/// Numbers as one batch.
pub(crate) fn produce(
    raw: &mut Raw,
    topic: (Topic, i32),
    options: BatchOptions,
    txn_id: Option<&'static str>,
    numbers: &[i64],
) -> io::Result<ErrorCode> {
    let mut builder = BatchBuilder::new(options);
    for number in numbers {
        builder.append(0, None, Some(&number.to_be_bytes()), []).unwrap();
    }
    let records = Some(builder.finish().unwrap().freeze());
    let data = PartitionProduceData { index: topic.1, records, ..Default::default() };
    let topic = TopicProduceData { topic_id: topic.0, partition_data: vec![data], ..Default::default() };
    let transactional_id = txn_id.map(Str::from_static);
    let request = ProduceRequest {
        transactional_id,
        acks: -1,
        timeout_ms: 10_000,
        topic_data: vec![topic],
        ..Default::default()
    };
    Ok(raw.latest(&request)?.responses[0].partition_responses[0].error_code)
}

fn numbers_of(records: Bytes, skip: impl Fn(i64, i64) -> bool) -> (Vec<(i64, i64)>, Option<i64>) {
    let mut numbers = Vec::new();
    let mut next = None;
    for batch in BatchIter::new(records) {
        let batch = batch.unwrap();
        batch.verify_crc().unwrap();
        next = Some(batch.next_offset());
        if batch.is_control() || skip(batch.producer_id, batch.base_offset) {
            continue;
        }
        for record in &batch.decode(1 << 20).unwrap() {
            let record = record.unwrap();
            numbers.push((record.offset, i64::from_be_bytes(record.value.unwrap().try_into().unwrap())));
        }
    }
    (numbers, next)
}

/// Offsets and numbers of a share fetch.
pub(crate) fn numbers(records: Bytes) -> Vec<(i64, i64)> {
    numbers_of(records, |_, _| false).0
}

/// All committed numbers of a partition.
pub(crate) fn read_committed(raw: &mut Raw, topic: Topic, index: i32) -> Vec<i64> {
    let (mut offset, mut all) = (0, Vec::new());
    let mut open: BTreeSet<i64> = BTreeSet::new();
    loop {
        let partition = FetchPartition {
            partition: index,
            current_leader_epoch: -1,
            fetch_offset: offset,
            last_fetched_epoch: -1,
            partition_max_bytes: 1 << 20,
            ..Default::default()
        };
        let request = FetchRequest {
            max_bytes: 1 << 20,
            isolation_level: 1,
            session_epoch: -1,
            topics: vec![FetchTopic { topic_id: topic, partitions: vec![partition], ..Default::default() }],
            ..Default::default()
        };
        let response = raw.latest(&request).unwrap();
        let data = &response.responses[0].partitions[0];
        assert!(data.error_code.is_ok(), "{}", data.error_code);
        assert_eq!(data.last_stable_offset, data.high_watermark, "a transaction hangs");
        let mut aborted: Vec<(i64, i64)> = data
            .aborted_transactions
            .iter()
            .flatten()
            .map(|aborted| (aborted.first_offset, aborted.producer_id))
            .collect();
        aborted.sort_unstable();
        let records = data.records.clone().unwrap();
        // As consumers do: an aborted transaction is open from its first offset to its marker.
        let mut skipped = BTreeSet::new();
        for batch in BatchIter::new(records.clone()) {
            let batch = batch.unwrap();
            while aborted.first().is_some_and(|(first, _)| *first <= batch.last_offset()) {
                open.insert(aborted.remove(0).1);
            }
            if batch.is_control() {
                open.remove(&batch.producer_id);
            } else if batch.is_transactional() && open.contains(&batch.producer_id) {
                skipped.insert(batch.base_offset);
            }
        }
        let (found, next) = numbers_of(records, |_, base| skipped.contains(&base));
        all.extend(found.into_iter().map(|(_, number)| number));
        match next {
            Some(next) => offset = next,
            None => return all,
        }
    }
}

/// Records that a group has not done with.
pub(crate) fn lag(raw: &mut Raw, group: &'static str) -> i64 {
    let group =
        DescribeShareGroupOffsetsRequestGroup { group_id: Str::from_static(group), topics: None, ..Default::default() };
    let response = raw.latest(&DescribeShareGroupOffsetsRequest { groups: vec![group], ..Default::default() }).unwrap();
    let group = &response.groups[0];
    assert!(group.error_code.is_ok(), "{}", group.error_code);
    let partitions: Vec<_> = group.topics.iter().flat_map(|topic| &topic.partitions).collect();
    assert_eq!(partitions.len(), 2);
    partitions.iter().map(|partition| partition.lag).sum()
}
