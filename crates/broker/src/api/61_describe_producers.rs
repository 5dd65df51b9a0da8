//! DescribeProducers (v0): what a partition's leader knows of its producers.

use super::{Outcome, RequestContext, budget};
use crate::cluster::{Cluster, TopicRef};
use crate::security::Operation;
use kafka_share_messages::describe_producers_request::TopicRequest;
use kafka_share_messages::describe_producers_response::{PartitionResponse, ProducerState, TopicResponse};
use kafka_share_messages::{DescribeProducersRequest, DescribeProducersResponse, ErrorCode};
use kafka_share_wire::Str;

pub(crate) fn handle(
    cluster: &mut Cluster,
    ctx: &RequestContext,
    request: DescribeProducersRequest,
) -> Outcome<DescribeProducersResponse> {
    let asked =
        request.topics.iter().flat_map(|topic| topic.partition_indexes.iter().map(move |index| (topic, *index)));
    let described = asked.map(|(topic, index)| {
        let result = producers(cluster, ctx, &topic.name, index);
        PartitionResponse {
            partition_index: index,
            error_code: result.as_ref().err().copied().unwrap_or(ErrorCode::NONE),
            active_producers: result.unwrap_or_default(),
            ..Default::default()
        }
    });
    budget::reply(budget::rows(described, |row| row.active_producers.len()), |rows| {
        let mut rows = rows.into_iter();
        let of = |topic: &TopicRequest| TopicResponse {
            name: topic.name.clone(),
            partitions: rows.by_ref().take(topic.partition_indexes.len()).collect(),
            ..Default::default()
        };
        DescribeProducersResponse { topics: request.topics.iter().map(of).collect(), ..Default::default() }
    })
}

fn producers(
    cluster: &mut Cluster,
    ctx: &RequestContext,
    topic: &Str,
    index: i32,
) -> Result<Vec<ProducerState>, ErrorCode> {
    let id = cluster.allowed_topic(ctx, Operation::Read, &TopicRef::Name(topic))?.id;
    let partition = cluster.led_partition(ctx.node, id, index, -1)?;
    let describe = |(producer_id, state): (i64, &crate::log::ProducerState)| ProducerState {
        producer_id,
        producer_epoch: i32::from(state.epoch),
        last_sequence: state.last_sequence(),
        last_timestamp: state.last_timestamp,
        coordinator_epoch: state.coordinator_epoch,
        current_txn_start_offset: state.txn_start.unwrap_or(-1),
        ..Default::default()
    };
    Ok(partition.log.producers().iter().map(describe).collect())
}
