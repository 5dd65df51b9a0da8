//! DeleteRecords (v0-2): moves the log start of partitions this node leads; -1 stands for the high watermark.

use super::{Outcome, RequestContext};
use crate::cluster::{Cluster, TopicRef, WaitKey};
use crate::security::Operation;
use kafka_share_messages::delete_records_request::DeleteRecordsPartition;
use kafka_share_messages::delete_records_response::{DeleteRecordsPartitionResult, DeleteRecordsTopicResult};
use kafka_share_messages::{DeleteRecordsRequest, DeleteRecordsResponse, ErrorCode};
use kafka_share_wire::Str;
use std::collections::HashMap;

pub(crate) fn handle(
    cluster: &mut Cluster,
    ctx: &RequestContext,
    request: DeleteRecordsRequest,
) -> Outcome<DeleteRecordsResponse> {
    let mut topics = Vec::with_capacity(request.topics.len());
    for topic in &request.topics {
        let mut partitions = Vec::with_capacity(topic.partitions.len());
        // As in Kafka, what is asked last of a partition counts.
        let last: HashMap<i32, &DeleteRecordsPartition> =
            topic.partitions.iter().map(|asked| (asked.partition_index, asked)).collect();
        let is_last = |asked: &&DeleteRecordsPartition| {
            last.get(&asked.partition_index).is_some_and(|l| std::ptr::eq(*l, *asked))
        };
        for asked in topic.partitions.iter().filter(is_last) {
            let result = delete(cluster, ctx, &topic.name, asked);
            partitions.push(DeleteRecordsPartitionResult {
                partition_index: asked.partition_index,
                low_watermark: result.unwrap_or(-1),
                error_code: result.err().unwrap_or(ErrorCode::NONE),
                ..Default::default()
            });
        }
        topics.push(DeleteRecordsTopicResult { name: topic.name.clone(), partitions, ..Default::default() });
    }
    Outcome::Reply(DeleteRecordsResponse { topics, ..Default::default() })
}

fn delete(
    cluster: &mut Cluster,
    ctx: &RequestContext,
    topic: &Str,
    asked: &DeleteRecordsPartition,
) -> Result<i64, ErrorCode> {
    let found = cluster.allowed_topic(ctx, Operation::Delete, &TopicRef::Name(topic))?;
    let id = found.id;
    if found.internal {
        return Err(ErrorCode::INVALID_TOPIC_EXCEPTION);
    }
    if !found.config.delete {
        return Err(ErrorCode::POLICY_VIOLATION);
    }
    let log = &mut cluster.led_partition(ctx.node, id, asked.partition_index, -1)?.log;
    let offset = if asked.offset == -1 { log.high_watermark() } else { asked.offset };
    if offset < 0 || offset > log.high_watermark() {
        return Err(ErrorCode::OFFSET_OUT_OF_RANGE);
    }
    let before = log.bytes();
    let start = log.delete_below(offset);
    let freed = before - log.bytes();
    cluster.log_bytes -= freed;
    cluster.wake(&WaitKey::Partition(id, asked.partition_index));
    crate::share::on_log_start_moved(cluster, ctx.now, id, asked.partition_index, start);
    Ok(start)
}
