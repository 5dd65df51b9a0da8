//! DescribeTopicPartitions (v0): topics in the order of their names, a page at a time.

use super::metadata::{NOT_ASKED, TOPIC_OPERATIONS};
use super::{Outcome, RequestContext};
use crate::cluster::{Cluster, Partition, check_topic_name};
use crate::security::{Operation, ResourceKind};
use kafka_share_messages::describe_topic_partitions_response::{
    Cursor, DescribeTopicPartitionsResponsePartition, DescribeTopicPartitionsResponseTopic,
};
use kafka_share_messages::{DescribeTopicPartitionsRequest, DescribeTopicPartitionsResponse, ErrorCode};
use kafka_share_wire::Str;
use std::collections::BTreeSet;

/// Most partitions of one answer (`max.request.partition.size.limit`).
const MOST: usize = 2000;

pub(crate) fn handle(
    cluster: &mut Cluster,
    ctx: &RequestContext,
    request: DescribeTopicPartitionsRequest,
) -> Outcome<DescribeTopicPartitionsResponse> {
    let from = request.cursor.as_ref().map(|cursor| (cursor.topic_name.clone(), cursor.partition_index));
    let asked: Vec<Str> = request.topics.into_iter().map(|topic| topic.name).collect();
    let mut names: BTreeSet<Str> = asked.iter().cloned().collect();
    if let Some((topic, index)) = &from {
        // A list that goes on must hold the topic that it goes on with.
        if *index < 0 || !(names.is_empty() || names.contains(topic)) {
            return Outcome::Reply(refuse(asked));
        }
    }
    if names.is_empty() {
        let seen = |name: &Str| cluster.may_topic(ctx, Operation::Describe, name).is_ok();
        names = cluster.topics.iter().map(|topic| topic.name.clone()).filter(seen).collect();
    }
    let mut left = usize::try_from(request.response_partition_limit).unwrap_or(0).clamp(1, MOST);
    let mut topics = Vec::new();
    let mut refused = Vec::new();
    let mut next_cursor = None;
    for name in names {
        let first = match &from {
            Some((topic, _)) if name < *topic => continue,
            Some((topic, index)) if name == *topic => usize::try_from(*index).unwrap_or(0),
            _ => 0,
        };
        if let Err(error_code) = cluster.may_topic(ctx, Operation::Describe, &name) {
            let (name, topic_authorized_operations) = (Some(name), NOT_ASKED);
            refused.push(DescribeTopicPartitionsResponseTopic {
                error_code,
                name,
                topic_authorized_operations,
                ..Default::default()
            });
            continue;
        }
        let count = cluster.topics.get(&name).map_or(0, |topic| topic.partitions.len());
        if left == 0 {
            next_cursor = Some(Cursor { topic_name: name, partition_index: 0, ..Default::default() });
            break;
        }
        let take = left.min(count.saturating_sub(first));
        topics.push(describe(cluster, ctx, &name, first, take));
        left -= take;
        if first + take < count {
            let partition_index = (first + take) as i32;
            next_cursor = Some(Cursor { topic_name: name, partition_index, ..Default::default() });
            break;
        }
    }
    topics.extend(refused);
    Outcome::Reply(DescribeTopicPartitionsResponse { topics, next_cursor, ..Default::default() })
}

/// The answer to a request that is refused as a whole.
fn refuse(names: Vec<Str>) -> DescribeTopicPartitionsResponse {
    let topic = |name| DescribeTopicPartitionsResponseTopic {
        error_code: ErrorCode::INVALID_REQUEST,
        name: Some(name),
        topic_authorized_operations: NOT_ASKED,
        ..Default::default()
    };
    DescribeTopicPartitionsResponse { topics: names.into_iter().map(topic).collect(), ..Default::default() }
}

fn describe(
    cluster: &Cluster,
    ctx: &RequestContext,
    name: &Str,
    first: usize,
    take: usize,
) -> DescribeTopicPartitionsResponseTopic {
    let topic_authorized_operations = cluster.operations(ctx, TOPIC_OPERATIONS, ResourceKind::Topic, name);
    let Some(topic) = cluster.topics.get(name) else {
        return DescribeTopicPartitionsResponseTopic {
            error_code: check_topic_name(name)
                .map_or_else(|refusal| refusal.code, |()| ErrorCode::UNKNOWN_TOPIC_OR_PARTITION),
            name: Some(name.clone()),
            topic_authorized_operations,
            ..Default::default()
        };
    };
    let one = |(index, partition): (usize, &Partition)| {
        let alive = |id: &i32| cluster.node(*id).is_some_and(|node| node.alive);
        let (isr_nodes, offline_replicas) = partition.replicas.iter().partition(|id| alive(id));
        DescribeTopicPartitionsResponsePartition {
            error_code: if partition.leader < 0 { ErrorCode::LEADER_NOT_AVAILABLE } else { ErrorCode::NONE },
            partition_index: index as i32,
            leader_id: partition.leader,
            leader_epoch: partition.leader_epoch,
            replica_nodes: partition.replicas.clone(),
            isr_nodes,
            eligible_leader_replicas: Some(Vec::new()),
            last_known_elr: Some(Vec::new()),
            offline_replicas,
            ..Default::default()
        }
    };
    DescribeTopicPartitionsResponseTopic {
        name: Some(topic.name.clone()),
        topic_id: topic.id,
        is_internal: topic.internal,
        partitions: topic.partitions.iter().enumerate().skip(first).take(take).map(one).collect(),
        topic_authorized_operations,
        ..Default::default()
    }
}
