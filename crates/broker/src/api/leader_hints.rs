//! Where a partition's leader is, as Produce and Fetch tell a client that asked the wrong node (KIP-951).

use crate::cluster::Cluster;
use kafka_share_messages::ErrorCode;
use kafka_share_wire::Str;

/// Whether the error says that the client's metadata is stale.
pub(super) fn is_stale(code: ErrorCode) -> bool {
    matches!(code, ErrorCode::NOT_LEADER_OR_FOLLOWER | ErrorCode::FENCED_LEADER_EPOCH)
}

/// Nodes to tell the client of, without repeats: id, host, port.
pub(super) fn endpoints(cluster: &Cluster, listener: usize, mut leaders: Vec<i32>) -> Vec<(i32, Str, i32)> {
    leaders.sort_unstable();
    leaders.dedup();
    let find = |id| {
        let node = cluster.node(id)?;
        let (host, port) = node.endpoint(listener);
        Some((node.id, host, port))
    };
    leaders.into_iter().filter_map(find).collect()
}
