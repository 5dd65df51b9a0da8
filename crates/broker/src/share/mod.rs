//! Share groups: the state of this half of the broker, and the points where the cluster calls into it.

pub(crate) mod acks;
mod dead_letters;
mod dump;
pub(crate) mod fetch;
mod live;
mod response;
pub(crate) mod sessions;
mod txn;

pub use dump::{LockDump, ShareDump, SharePartitionDump, ShareSessionDump};
pub(crate) use response::leader_of;
pub(crate) use txn::{apply_marker, check_member};

use crate::cluster::{Cluster, ConnId, CoordinatorKind, WaitKey};
use crate::group_coordinator::GroupCoordinator;
use crate::share_coordinator::{ShareCoordinator, ShareKey};
use crate::share_partition::Extent;
use crate::{ClusterConfig, GroupConfig, Now};
use dead_letters::DeadLetters;
use kafka_share_wire::{Str, Uuid};
use live::Live;
use sessions::{SessionKey, Sessions};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

/// State of all share groups.
#[derive(Debug)]
pub(crate) struct Share {
    pub(crate) groups: GroupCoordinator,
    pub(crate) store: ShareCoordinator,
    pub(crate) sessions: Sessions,
    /// Share-partitions at their leaders.
    live: HashMap<Str, HashMap<(Uuid, i32), Live>>,
    /// When to look for locks that are over: each live partition at most once, early rather than late.
    timers: BTreeSet<(Duration, ShareKey)>,
    /// Share-partitions with acknowledgements staged by a producer.
    staged: BTreeMap<i64, BTreeSet<ShareKey>>,
    configs: HashMap<Str, Arc<GroupConfig>>,
    dead_letters: DeadLetters,
    /// Reused from fetch to fetch.
    extents: Vec<Extent>,
}

impl Share {
    pub(crate) fn new(_config: &ClusterConfig) -> Self {
        Share {
            groups: GroupCoordinator::default(),
            store: ShareCoordinator::default(),
            sessions: Sessions::default(),
            live: HashMap::new(),
            timers: BTreeSet::new(),
            staged: BTreeMap::new(),
            configs: HashMap::new(),
            dead_letters: DeadLetters::default(),
            extents: Vec::new(),
        }
    }

    /// A group's settings have changed.
    pub(crate) fn forget_config(&mut self, group: &str) {
        self.configs.remove(group);
    }
}

impl Cluster {
    /// A group's settings, kept from request to request.
    pub(crate) fn share_config(&mut self, group: &Str) -> Arc<GroupConfig> {
        if let Some(config) = self.share.configs.get(group) {
            return config.clone();
        }
        let config = Arc::new(self.group_config(group));
        if self.share.configs.len() >= CONFIGS {
            self.share.configs.clear();
        }
        self.share.configs.insert(group.detached(), config.clone());
        config
    }

    /// Closes a share session and frees what the member holds of its partitions. What it holds of partitions that were
    /// forgotten before waits for the locks to end, as in Kafka.
    pub(crate) fn close_share_session(&mut self, now: Now, key: &SessionKey) {
        let Some(session) = self.share.sessions.remove(key) else { return };
        let deliveries = self.share_config(&key.group).deliveries();
        let Some(partitions) = self.share.live.get_mut(&key.group) else { return };
        let mut freed = Vec::new();
        for tp in session.partitions {
            let led = partitions.get_mut(&tp).filter(|live| live.leader == key.node);
            if led.is_some_and(|live| live.machine.release_member(&key.member, deliveries)) {
                freed.push(tp);
            }
        }
        for (topic, partition) in freed {
            let share_key = ShareKey { group: key.group.clone(), topic, partition };
            self.share.wrote(&share_key);
            self.write_dead_letters(now, &share_key);
            self.wake(&WaitKey::SharePartition(key.group.clone(), topic, partition));
        }
    }
}

/// Settings of groups that are kept parsed.
const CONFIGS: usize = 1_000;

/// When [`handle_timeout`] has something to do.
pub(crate) fn next_deadline(cluster: &Cluster) -> Option<Duration> {
    let locks = cluster.share.timers.first().map(|(deadline, _)| *deadline);
    [locks, cluster.share.groups.next_deadline(), cluster.share.dead_letters.next_deadline()]
        .into_iter()
        .flatten()
        .min()
}

/// Locks and sessions expire.
pub(crate) fn handle_timeout(cluster: &mut Cluster, now: Now) {
    while let Some((deadline, key)) = cluster.share.timers.first().cloned() {
        if deadline > now.mono {
            break;
        }
        cluster.share.timers.pop_first();
        let deliveries = cluster.share_config(&key.group).deliveries();
        let Some(live) = cluster.share.live_mut(&key) else { continue };
        live.timer = None;
        let freed = live.machine.expire(now.mono, deliveries);
        cluster.share.arm(&key);
        if freed {
            cluster.share.wrote(&key);
            cluster.write_dead_letters(now, &key);
            cluster.wake(&WaitKey::SharePartition(key.group, key.topic, key.partition));
        }
    }
    while let Some((group, member)) = cluster.share.groups.expire(now.mono) {
        member_left(cluster, now, &group, &member);
    }
    cluster.retry_dead_letters(now);
}

/// A member is no longer in its group: its session at the coordinator's node ends. Its sessions at other nodes end
/// with their connections, as in Kafka, where only the coordinator's node learns of it.
pub(crate) fn member_left(cluster: &mut Cluster, now: Now, group: &Str, member: &Str) {
    tracing::info!(group = group.as_str(), member = member.as_str(), "member left a share group");
    let node = cluster.coordinator_node(CoordinatorKind::Group, group);
    cluster.close_share_session(now, &SessionKey { node, group: group.clone(), member: member.clone() });
    if cluster.share.groups.get(group).is_none_or(|group| group.members.is_empty()) {
        cluster.share.unload_group(group, node);
    }
}

/// A connection to `node` is gone; its share sessions end and release what they hold.
pub(crate) fn on_disconnect(cluster: &mut Cluster, now: Now, conn: ConnId, _node: i32) {
    for key in cluster.share.sessions.of_conn(conn) {
        cluster.close_share_session(now, &key);
    }
}

/// The partition has a new leader or leader epoch; for `__share_group_state`, that share coordinator has moved.
pub(crate) fn on_leader_change(cluster: &mut Cluster, _now: Now, topic: Uuid, partition: i32) {
    cluster.share.unload(topic, Some(partition));
}

/// Records below `start` were deleted from the partition.
pub(crate) fn on_log_start_moved(cluster: &mut Cluster, _now: Now, topic: Uuid, partition: i32, start: i64) {
    let mut moved = Vec::new();
    for (group, partitions) in &mut cluster.share.live {
        if let Some(live) = partitions.get_mut(&(topic, partition)) {
            live.machine.advance_to(start);
            moved.push(group.clone());
        }
    }
    moved.sort_unstable();
    for group in moved {
        cluster.share.start_moved(&ShareKey { group: group.clone(), topic, partition });
        cluster.wake(&WaitKey::SharePartition(group, topic, partition));
    }
}

/// The settings of a group were changed; [`Cluster::group_config`] gives the new ones.
pub(crate) fn on_group_config_changed(cluster: &mut Cluster, _now: Now, group: &str) {
    cluster.share.forget_config(group);
}

/// The topic is gone for good; one of the same name would have another id.
pub(crate) fn on_topic_deleted(cluster: &mut Cluster, _now: Now, topic: Uuid) {
    cluster.share.unload(topic, None);
    cluster.share.store.delete_topic(topic);
    for keys in cluster.share.staged.values_mut() {
        keys.retain(|key| key.topic != topic);
    }
    cluster.share.staged.retain(|_, keys| !keys.is_empty());
}

#[cfg(test)]
mod dead_letter_tests;
#[cfg(test)]
mod empty_group_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod txn_tests;
