//! DescribeCluster (v0-2): id, nodes, controller. Only broker endpoints (type 1) are described here, as by a broker.

use super::{Outcome, RequestContext};
use crate::cluster::Cluster;
use crate::security::{Operation, ResourceKind};
use kafka_share_messages::describe_cluster_response::DescribeClusterBroker;
use kafka_share_messages::{DescribeClusterRequest, DescribeClusterResponse, ErrorCode};
use kafka_share_wire::Str;

/// Create, alter, describe, cluster action, configs, idempotent write: all that Kafka grants without an authoriser.
const CLUSTER_OPERATIONS: i32 = 0b1_1111_1010_0000;

/// What who asks may do with the cluster; nothing if it may not even see it.
pub(super) fn cluster_operations(cluster: &Cluster, ctx: &RequestContext) -> i32 {
    match cluster.may_cluster(ctx, Operation::Describe) {
        Ok(()) => cluster.operations(ctx, CLUSTER_OPERATIONS, ResourceKind::Cluster, ""),
        Err(_) => 0,
    }
}

pub(crate) fn handle(
    cluster: &mut Cluster,
    ctx: &RequestContext,
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
            .map(|node| {
                let (host, port) = node.endpoint(ctx.listener);
                DescribeClusterBroker { broker_id: node.id, host, port, is_fenced: !node.alive, ..Default::default() }
            })
            .collect(),
        cluster_authorized_operations: if asked { cluster_operations(cluster, ctx) } else { i32::MIN },
        ..Default::default()
    })
}
