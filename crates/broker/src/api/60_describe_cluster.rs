//! DescribeCluster (v0-2): id, nodes, controller. Only broker endpoints (type 1) are described here, as by a broker.

use super::{Outcome, RequestContext};
use crate::cluster::Cluster;
use kafka_share_messages::describe_cluster_response::DescribeClusterBroker;
use kafka_share_messages::{DescribeClusterRequest, DescribeClusterResponse, ErrorCode};
use kafka_share_wire::Str;

/// Create, alter, describe, cluster action, configs, idempotent write: all that Kafka grants without an authoriser.
pub(super) const CLUSTER_OPERATIONS: i32 = 0b1_1111_1010_0000;

pub(crate) fn handle(
    cluster: &mut Cluster,
    _ctx: &RequestContext,
    request: DescribeClusterRequest,
) -> Outcome<DescribeClusterResponse> {
    if request.endpoint_type != 1 {
        let code = if request.endpoint_type == 2 {
            ErrorCode::MISMATCHED_ENDPOINT_TYPE
        } else {
            ErrorCode::UNSUPPORTED_ENDPOINT_TYPE
        };
        let error_message =
            Some(Str::from_static("The request was sent to a broker, which knows broker endpoints only."));
        return Outcome::Reply(DescribeClusterResponse { error_code: code, error_message, ..Default::default() });
    }
    let asked = request.include_cluster_authorized_operations;
    let shown = |alive: bool| alive || request.include_fenced_brokers;
    Outcome::Reply(DescribeClusterResponse {
        cluster_id: Str::from(&cluster.cluster_id),
        controller_id: cluster.controller_id(),
        endpoint_type: 1,
        brokers: cluster
            .nodes
            .iter()
            .filter(|node| shown(node.alive))
            .map(|node| DescribeClusterBroker {
                broker_id: node.id,
                host: node.host.clone(),
                port: node.port,
                is_fenced: !node.alive,
                ..Default::default()
            })
            .collect(),
        cluster_authorized_operations: if asked { CLUSTER_OPERATIONS } else { i32::MIN },
        ..Default::default()
    })
}
