//! DescribeShareGroupOffsets (v0-1): start offsets of share-partitions, and from v1 on the lag (KIP-1226).
//!
//! Partitions without share state have start offset -1, whether or not group, topic and partition exist, as in Kafka.

use super::{Outcome, RequestContext, budget};
use crate::cluster::{Cluster, CoordinatorKind};
use crate::security::Operation;
use crate::share_coordinator::ShareKey;
use kafka_share_messages::describe_share_group_offsets_request::DescribeShareGroupOffsetsRequestGroup;
use kafka_share_messages::describe_share_group_offsets_response::{
    DescribeShareGroupOffsetsResponseGroup, DescribeShareGroupOffsetsResponsePartition,
    DescribeShareGroupOffsetsResponseTopic,
};
use kafka_share_messages::{DescribeShareGroupOffsetsRequest, DescribeShareGroupOffsetsResponse};
use kafka_share_wire::{Str, Uuid};
use std::collections::BTreeMap;

pub(crate) fn handle(
    cluster: &mut Cluster,
    ctx: &RequestContext,
    request: DescribeShareGroupOffsetsRequest,
) -> Outcome<DescribeShareGroupOffsetsResponse> {
    let groups = request.groups.iter().map(|group| describe(cluster, ctx, group));
    let weight =
        |group: &DescribeShareGroupOffsetsResponseGroup| group.topics.iter().map(|t| 1 + t.partitions.len()).sum();
    budget::reply(budget::rows(groups, weight), |groups| DescribeShareGroupOffsetsResponse {
        groups,
        ..Default::default()
    })
}

fn describe(
    cluster: &mut Cluster,
    ctx: &RequestContext,
    asked: &DescribeShareGroupOffsetsRequestGroup,
) -> DescribeShareGroupOffsetsResponseGroup {
    let group_id = asked.group_id.clone();
    if let Err(error_code) = cluster.may_group(ctx, Operation::Describe, &group_id) {
        return DescribeShareGroupOffsetsResponseGroup { group_id, error_code, ..Default::default() };
    }
    if let Err(error_code) = cluster.check_coordinator(ctx.node, CoordinatorKind::Group, &group_id) {
        return DescribeShareGroupOffsetsResponseGroup { group_id, error_code, ..Default::default() };
    }
    let wanted: Vec<(Str, Vec<i32>)> = match &asked.topics {
        Some(topics) => topics.iter().map(|topic| (topic.topic_name.clone(), topic.partitions.clone())).collect(),
        None => {
            let mut all = stored(cluster, &group_id);
            all.retain(|(name, _)| cluster.may_topic(ctx, Operation::Describe, name).is_ok());
            all
        }
    };
    let topics = wanted.into_iter().map(|(name, partitions)| {
        if let Err(error_code) = cluster.may_topic(ctx, Operation::Describe, &name) {
            let refused = |partition_index: i32| DescribeShareGroupOffsetsResponsePartition {
                partition_index,
                error_code,
                ..Default::default()
            };
            let partitions = partitions.into_iter().map(refused).collect();
            return DescribeShareGroupOffsetsResponseTopic { topic_name: name, partitions, ..Default::default() };
        }
        let topic_id = cluster.topics.get(&name).map_or(Uuid::ZERO, |topic| topic.id);
        let one = |index: i32| partition(cluster, &group_id, topic_id, index);
        let partitions = partitions.into_iter().map(one).collect();
        DescribeShareGroupOffsetsResponseTopic { topic_name: name, topic_id, partitions, ..Default::default() }
    });
    DescribeShareGroupOffsetsResponseGroup { topics: topics.collect(), group_id, ..Default::default() }
}

/// Partitions that the group has state of, by topic name.
fn stored(cluster: &Cluster, group: &Str) -> Vec<(Str, Vec<i32>)> {
    let mut topics: BTreeMap<Str, Vec<i32>> = BTreeMap::new();
    for key in cluster.share.store.of_group(group) {
        if let Some(topic) = cluster.topics.by_id(key.topic) {
            topics.entry(topic.name.clone()).or_default().push(key.partition);
        }
    }
    topics.into_iter().collect()
}

fn partition(cluster: &Cluster, group: &Str, topic: Uuid, index: i32) -> DescribeShareGroupOffsetsResponsePartition {
    let key = ShareKey { group: group.clone(), topic, partition: index };
    let (start_offset, done, leader_epoch) = cluster.share.progress(&key).unwrap_or((-1, 0, 0));
    let end = cluster.topics.by_id(topic).and_then(|topic| topic.partition(index)).map(|p| p.log.high_watermark());
    let lag = match end {
        Some(end) if start_offset != -1 => end - start_offset - done,
        _ => -1,
    };
    DescribeShareGroupOffsetsResponsePartition {
        partition_index: index,
        start_offset,
        leader_epoch,
        lag,
        ..Default::default()
    }
}
