//! Leaders that move, nodes that stop, topics that go.

use super::{CloseReason, Cluster, CoordinatorKind, WaitKey};
use crate::Now;
use kafka_share_wire::Uuid;

impl Cluster {
    /// Deletes a topic: requests that wait for it are answered, its state is dropped everywhere.
    pub(crate) fn delete_topic(&mut self, now: Now, id: Uuid) {
        let Some(topic) = self.topics.remove(id) else { return };
        tracing::info!(topic = %topic.name, id = %topic.id, "topic deleted");
        self.dirty.topic_removed(id, topic.partitions.len());
        self.log_bytes -= topic.partitions.iter().map(|p| p.log.bytes()).sum::<usize>();
        self.transactions.forget_topic(id);
        crate::share::on_topic_deleted(self, now, id);
        for index in 0..topic.partitions.len() {
            self.wake(&WaitKey::Partition(id, index as i32));
        }
    }

    /// Makes `node` the leader of a partition, under a new leader epoch. `false` where the topic, the partition or a
    /// live node of that id does not exist. The node becomes a replica if it was none.
    pub fn move_leader(&mut self, now: Now, topic: &str, partition: i32, node: i32) -> bool {
        let Some(id) = self.topic_id(topic) else { return false };
        let moved = self.node(node).is_some_and(|n| n.alive) && self.set_leader(now, id, partition, node);
        self.run_woken(now);
        moved
    }

    /// Moves the coordinator of `key` (a group id, a transactional id, or `group:topic id:partition`) to `node`,
    /// with all keys that share its partition of the internal topic.
    pub fn move_coordinator(&mut self, now: Now, kind: CoordinatorKind, key: &str, node: i32) -> bool {
        self.coordinator_topic(kind);
        let slot = self.coordinator_slot(kind, key);
        self.move_leader(now, kind.topic(), slot, node)
    }

    /// Restarts a node: its connections close, what it led and coordinated moves to other nodes where there are any,
    /// under new epochs. `false` where there is no such node.
    pub fn restart_node(&mut self, now: Now, node: i32) -> bool {
        self.stop_node(now, node) && self.start_node(now, node)
    }

    /// Stops a node until [`Cluster::start_node`]. Partitions without another live replica have no leader meanwhile.
    pub fn stop_node(&mut self, now: Now, node: i32) -> bool {
        let Some(found) = self.nodes.iter_mut().find(|n| n.id == node) else { return false };
        found.alive = false;
        self.fetch_sessions.forget_node(node);
        for conn in self.connections.of_node(node) {
            self.close(now, conn, CloseReason::NodeStopped);
        }
        for (id, index) in self.led_by(node) {
            let heir = self.heir(id, index);
            self.set_leader(now, id, index, heir);
        }
        self.run_woken(now);
        true
    }

    /// Starts a stopped node: it takes over what has no leader.
    pub fn start_node(&mut self, now: Now, node: i32) -> bool {
        let Some(found) = self.nodes.iter_mut().find(|n| n.id == node) else { return false };
        found.alive = true;
        for (id, index) in self.led_by(-1) {
            let heir = self.heir(id, index);
            self.set_leader(now, id, index, heir);
        }
        self.run_woken(now);
        true
    }

    fn led_by(&self, node: i32) -> Vec<(Uuid, i32)> {
        let led = |topic: &super::Topic| {
            let ours = |(i, p): (usize, &super::Partition)| (p.leader == node).then_some((topic.id, i as i32));
            topic.partitions.iter().enumerate().filter_map(ours).collect::<Vec<_>>()
        };
        self.topics.iter().flat_map(led).collect()
    }

    /// The next live node after the present leader: a replica first, else any, as all nodes see the same memory.
    fn heir(&self, topic: Uuid, index: i32) -> i32 {
        let Some(partition) = self.topics.by_id(topic).and_then(|t| t.partition(index)) else { return -1 };
        let alive = |id: &&i32| self.node(**id).is_some_and(|n| n.alive);
        let replica = partition.replicas.iter().find(alive).copied();
        // A single copy moves only where it is coordinated or read by others than its node: any live node will do.
        replica
            .or_else(|| self.alive_nodes().map(|n| n.id).find(|id| *id > partition.leader))
            .or_else(|| self.alive_nodes().map(|n| n.id).next())
            .unwrap_or(-1)
    }

    /// Gives a partition a leader among the nodes that are there now, under a new epoch.
    pub(super) fn elect(&mut self, now: Now, topic: Uuid, index: i32) {
        let led = self.leader_of(topic, index).0;
        let leader = if self.node(led).is_some_and(|n| n.alive) { led } else { self.heir(topic, index) };
        let known: Vec<i32> = self.nodes.iter().map(|node| node.id).collect();
        if let Some(partition) = self.topics.by_id_mut(topic).and_then(|t| t.partition_mut(index)) {
            partition.replicas.retain(|id| known.contains(id));
        }
        self.set_leader(now, topic, index, leader);
    }

    fn set_leader(&mut self, now: Now, topic: Uuid, index: i32, node: i32) -> bool {
        let Some(partition) = self.topics.by_id_mut(topic).and_then(|t| t.partition_mut(index)) else { return false };
        if node >= 0 && !partition.replicas.contains(&node) {
            // The copy itself moves: nodes share one memory.
            match partition.replicas.iter_mut().find(|id| **id == partition.leader) {
                Some(old) => *old = node,
                None => partition.replicas.push(node),
            }
        }
        partition.leader = node;
        partition.leader_epoch += 1;
        self.dirty.topic(topic);
        crate::share::on_leader_change(self, now, topic, index);
        self.wake(&WaitKey::Partition(topic, index));
        true
    }
}
