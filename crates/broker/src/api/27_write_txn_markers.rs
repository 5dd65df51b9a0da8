//! WriteTxnMarkers (v1-2): a coordinator's request to partition leaders. Without an authoriser anybody may send it, as on
//! Kafka. v2 says which transaction version the markers follow.

use super::{Outcome, RequestContext};
use crate::cluster::{Cluster, TopicRef};
use crate::log::Marker;
use crate::security::Operation;
use kafka_share_messages::write_txn_markers_request::WritableTxnMarker;
use kafka_share_messages::write_txn_markers_response::{
    WritableTxnMarkerPartitionResult, WritableTxnMarkerResult, WritableTxnMarkerTopicResult,
};
use kafka_share_messages::{ErrorCode, WriteTxnMarkersRequest, WriteTxnMarkersResponse};
use kafka_share_wire::Str;

pub(crate) fn handle(
    cluster: &mut Cluster,
    ctx: &RequestContext,
    request: WriteTxnMarkersRequest,
) -> Outcome<WriteTxnMarkersResponse> {
    let mut markers = Vec::with_capacity(request.markers.len());
    for marker in &request.markers {
        let mut topics = Vec::with_capacity(marker.topics.len());
        for topic in &marker.topics {
            let result = |index: &i32| WritableTxnMarkerPartitionResult {
                partition_index: *index,
                error_code: write(cluster, ctx, marker, &topic.name, *index).err().unwrap_or(ErrorCode::NONE),
                ..Default::default()
            };
            let partitions = topic.partition_indexes.iter().map(result).collect();
            topics.push(WritableTxnMarkerTopicResult { name: topic.name.clone(), partitions, ..Default::default() });
        }
        markers.push(WritableTxnMarkerResult { producer_id: marker.producer_id, topics, ..Default::default() });
    }
    Outcome::Reply(WriteTxnMarkersResponse { markers, ..Default::default() })
}

fn write(
    cluster: &mut Cluster,
    ctx: &RequestContext,
    marker: &WritableTxnMarker,
    topic: &Str,
    index: i32,
) -> Result<(), ErrorCode> {
    cluster.may_cluster(ctx, Operation::Alter).or_else(|_| cluster.may_cluster(ctx, Operation::ClusterAction))?;
    let id = cluster.find_topic(&TopicRef::Name(topic))?.id;
    cluster.led_partition(ctx.node, id, index, -1)?;
    if marker.producer_id < 0 || marker.producer_epoch < 0 {
        // As Kafka, which fails to build the record.
        return Err(ErrorCode::UNKNOWN_SERVER_ERROR);
    }
    cluster.check_marker_memory(1)?;
    let written = Marker {
        producer_id: marker.producer_id,
        epoch: marker.producer_epoch,
        committed: marker.transaction_result,
        coordinator_epoch: marker.coordinator_epoch,
        epoch_per_transaction: marker.transaction_version >= 2,
    };
    cluster.write_marker(ctx.now, id, index, &written)
}
