//! Parts of responses: leader hints.

use crate::cluster::Cluster;
use kafka_share_messages::share_fetch_response as fetch;
use kafka_share_wire::Uuid;
use std::collections::BTreeSet;

/// The leader of a partition and its epoch, -1 where there is none.
pub(crate) fn leader_of(cluster: &Cluster, topic: Uuid, partition: i32) -> (i32, i32) {
    let found = cluster.topics.by_id(topic).and_then(|topic| topic.partition(partition));
    found.map_or((-1, -1), |partition| (partition.leader, partition.leader_epoch))
}

/// Where the nodes of these leader hints listen.
pub(super) fn fetch_endpoints(cluster: &Cluster, listener: usize, leaders: &BTreeSet<i32>) -> Vec<fetch::NodeEndpoint> {
    let endpoint = |node: &crate::cluster::Node| {
        let (host, port) = node.endpoint(listener);
        fetch::NodeEndpoint { node_id: node.id, host, port, ..Default::default() }
    };
    leaders.iter().filter_map(|id| cluster.node(*id)).map(endpoint).collect()
}
