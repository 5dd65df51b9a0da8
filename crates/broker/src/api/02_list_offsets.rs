//! ListOffsets (v1-11): earliest, latest, by time, and the special times of later versions.
//!
//! -1 latest (the last stable offset for read_committed), -2 earliest, -3 greatest timestamp (v7 on), -4 earliest local
//! (v8 on, as earliest here), -5 latest tiered (v9 on) and -6 earliest to be tiered (v11 on), both always unknown.

use super::{Outcome, RequestContext};
use crate::cluster::{Cluster, TopicRef};
use crate::security::Operation;
use kafka_share_messages::list_offsets_request::ListOffsetsPartition;
use kafka_share_messages::list_offsets_response::{ListOffsetsPartitionResponse, ListOffsetsTopicResponse};
use kafka_share_messages::{ErrorCode, ListOffsetsRequest, ListOffsetsResponse};
use kafka_share_wire::Str;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

pub(crate) fn handle(
    cluster: &mut Cluster,
    ctx: &RequestContext,
    request: ListOffsetsRequest,
) -> Outcome<ListOffsetsResponse> {
    let committed = request.isolation_level == 1;
    let mut topics: Vec<ListOffsetsTopicResponse> = Vec::with_capacity(request.topics.len());
    let mut places: HashMap<(&Str, i32), (usize, usize)> = HashMap::new();
    let mut names: HashMap<&Str, usize> = HashMap::new();
    for topic in &request.topics {
        let at = *names.entry(&topic.name).or_insert(topics.len());
        if at == topics.len() {
            topics.push(ListOffsetsTopicResponse { name: topic.name.clone(), ..Default::default() });
        }
        for asked in &topic.partitions {
            match places.entry((&topic.name, asked.partition_index)) {
                Entry::Vacant(place) => {
                    place.insert((at, topics[at].partitions.len()));
                    let found = look_up(cluster, ctx, &topic.name, asked, committed);
                    topics[at].partitions.push(found.unwrap_or_else(|code| refused(asked, code)));
                }
                // Kafka answers a partition that is named twice once, with an error.
                Entry::Occupied(place) => {
                    let (topic, partition) = *place.get();
                    topics[topic].partitions[partition] = refused(asked, ErrorCode::INVALID_REQUEST);
                }
            }
        }
    }
    Outcome::Reply(ListOffsetsResponse { topics, ..Default::default() })
}

fn refused(asked: &ListOffsetsPartition, error_code: ErrorCode) -> ListOffsetsPartitionResponse {
    ListOffsetsPartitionResponse {
        partition_index: asked.partition_index,
        error_code,
        timestamp: -1,
        offset: -1,
        leader_epoch: -1,
        ..Default::default()
    }
}

fn look_up(
    cluster: &mut Cluster,
    ctx: &RequestContext,
    topic: &Str,
    asked: &ListOffsetsPartition,
    committed: bool,
) -> Result<ListOffsetsPartitionResponse, ErrorCode> {
    let since = match asked.timestamp {
        -2.. => 1,
        -3 => 7,
        -4 => 8,
        -5 => 9,
        -6 => 11,
        _ => i16::MAX,
    };
    if ctx.version < since {
        return Err(ErrorCode::UNSUPPORTED_VERSION);
    }
    let id = cluster.allowed_topic(ctx, Operation::Describe, &TopicRef::Name(topic))?.id;
    let partition = cluster.led_partition(ctx.node, id, asked.partition_index, asked.current_leader_epoch)?;
    let leader_epoch = partition.leader_epoch;
    let log = &mut partition.log;
    let upper = if committed { log.last_stable_offset() } else { log.high_watermark() };
    let found = match asked.timestamp {
        -1 => Some((upper, -1, leader_epoch)),
        -2 | -4 => Some((log.start_offset(), -1, log.epoch_of(log.start_offset()).max(0))),
        -3 => log.latest_timestamp().map(|at| (at.offset, at.timestamp, log.epoch_of(at.offset))),
        -5 | -6 => None,
        time => log.first_at(time, upper).map(|at| (at.offset, at.timestamp, log.epoch_of(at.offset))),
    };
    let (offset, timestamp, leader_epoch) = found.unwrap_or((-1, -1, -1));
    let leader_epoch = if ctx.version >= 4 { leader_epoch } else { -1 };
    let partition_index = asked.partition_index;
    Ok(ListOffsetsPartitionResponse { partition_index, timestamp, offset, leader_epoch, ..Default::default() })
}
