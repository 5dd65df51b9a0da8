//! Which node coordinates what: the leader of the internal topic's partition that the key hashes to, as in Kafka.

use super::Cluster;
use super::topics::{CONSUMER_OFFSETS, SHARE_GROUP_STATE, TRANSACTION_STATE};
use crate::java::coordinator_partition;
use kafka_share_messages::ErrorCode;
use kafka_share_wire::{Str, Uuid};

/// What a coordinator coordinates; the numbers are FindCoordinator's key types.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CoordinatorKind {
    /// Groups, by group id.
    Group,
    /// Transactions, by transactional id.
    Transaction,
    /// Stored share-group state, by `group:topic id:partition`.
    Share,
}

impl CoordinatorKind {
    pub(crate) fn from_key_type(key_type: i8) -> Option<Self> {
        Some(match key_type {
            0 => Self::Group,
            1 => Self::Transaction,
            2 => Self::Share,
            _ => return None,
        })
    }

    pub(crate) fn topic(self) -> &'static str {
        match self {
            Self::Group => CONSUMER_OFFSETS,
            Self::Transaction => TRANSACTION_STATE,
            Self::Share => SHARE_GROUP_STATE,
        }
    }
}

/// The share coordinator's key of a share-partition.
pub(crate) fn share_key(group: &str, topic: Uuid, partition: i32) -> String {
    format!("{group}:{topic}:{partition}")
}

impl Cluster {
    /// The internal topic's id; created at first use, whatever clients may create.
    pub(crate) fn coordinator_topic(&mut self, kind: CoordinatorKind) -> Uuid {
        match self.topics.get(kind.topic()) {
            Some(topic) => topic.id,
            None => {
                let replicas = self.nodes.len().min(3);
                self.insert_topic(&Str::from_static(kind.topic()), self.config.internal_partitions, replicas)
            }
        }
    }

    /// Partition of the internal topic that `key` belongs to.
    pub(crate) fn coordinator_slot(&self, kind: CoordinatorKind, key: &str) -> i32 {
        let count =
            self.topics.get(kind.topic()).map_or(self.config.internal_partitions, |t| t.partitions.len() as i32);
        coordinator_partition(key, count)
    }

    /// The coordinating node; -1 where none is alive.
    pub(crate) fn coordinator_node(&mut self, kind: CoordinatorKind, key: &str) -> i32 {
        let topic = self.coordinator_topic(kind);
        let slot = self.coordinator_slot(kind, key);
        self.topics.by_id(topic).and_then(|t| t.partition(slot)).map_or(-1, |p| p.leader)
    }

    /// `NOT_COORDINATOR` where `node` does not coordinate `key`.
    pub(crate) fn check_coordinator(&mut self, node: i32, kind: CoordinatorKind, key: &str) -> Result<(), ErrorCode> {
        match self.coordinator_node(kind, key) {
            -1 => Err(ErrorCode::COORDINATOR_NOT_AVAILABLE),
            found if found == node => Ok(()),
            _ => Err(ErrorCode::NOT_COORDINATOR),
        }
    }

    /// Epoch of the coordinator, which markers carry.
    pub(crate) fn coordinator_epoch(&mut self, kind: CoordinatorKind, key: &str) -> i32 {
        let topic = self.coordinator_topic(kind);
        let slot = self.coordinator_slot(kind, key);
        self.topics.by_id(topic).and_then(|t| t.partition(slot)).map_or(0, |p| p.leader_epoch)
    }
}
