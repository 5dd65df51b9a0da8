//! Share groups: the state of this half of the broker, and the points where the cluster calls into it.

use crate::cluster::{Cluster, ConnId};
use crate::{ClusterConfig, Now};
use kafka_share_wire::Uuid;
use std::time::Duration;

/// State of all share groups.
#[derive(Debug)]
pub(crate) struct Share {}

impl Share {
    pub(crate) fn new(_config: &ClusterConfig) -> Self {
        Share {}
    }
}

/// When [`handle_timeout`] has something to do.
pub(crate) fn next_deadline(_cluster: &Cluster) -> Option<Duration> {
    None
}

/// Locks and sessions expire.
pub(crate) fn handle_timeout(_cluster: &mut Cluster, _now: Now) {}

/// A connection to `node` is gone; its share sessions end and release what they hold.
pub(crate) fn on_disconnect(_cluster: &mut Cluster, _now: Now, _conn: ConnId, _node: i32) {}

/// The partition has a new leader or leader epoch; for `__share_group_state`, that share coordinator has moved.
pub(crate) fn on_leader_change(_cluster: &mut Cluster, _now: Now, _topic: Uuid, _partition: i32) {}

/// The transaction that enrolled partition `state_partition` of `__share_group_state` has ended: acknowledgements that
/// this producer staged there come into force, or their records become available again.
pub(crate) fn apply_marker(
    _cluster: &mut Cluster,
    _now: Now,
    _state_partition: i32,
    _producer_id: i64,
    _producer_epoch: i16,
    _committed: bool,
) {
}

/// Records below `start` were deleted from the partition.
pub(crate) fn on_log_start_moved(_cluster: &mut Cluster, _now: Now, _topic: Uuid, _partition: i32, _start: i64) {}

/// The settings of a group were changed; [`Cluster::group_config`] gives the new ones.
pub(crate) fn on_group_config_changed(_cluster: &mut Cluster, _now: Now, _group: &str) {}

/// The topic is gone for good; one of the same name would have another id.
pub(crate) fn on_topic_deleted(_cluster: &mut Cluster, _now: Now, _topic: Uuid) {}
