//! Access to a partition as its leader, with Kafka's errors.

use super::{Cluster, Partition, Topic};
use kafka_share_messages::ErrorCode;
use kafka_share_wire::{Str, Uuid};

/// How a request names a topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TopicRef<'a> {
    Name(&'a Str),
    Id(Uuid),
}

impl Cluster {
    /// Finds a topic by name or id.
    pub(crate) fn find_topic(&self, topic: &TopicRef<'_>) -> Result<&Topic, ErrorCode> {
        match topic {
            TopicRef::Name(name) => self.topics.get(name).ok_or(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION),
            TopicRef::Id(id) if id.is_zero() => Err(ErrorCode::UNKNOWN_TOPIC_ID),
            TopicRef::Id(id) => self.topics.by_id(*id).ok_or(ErrorCode::UNKNOWN_TOPIC_ID),
        }
    }

    /// The partition, if `node` leads it and the client's leader epoch (-1 for none) is the present one.
    pub(crate) fn led_partition(
        &mut self,
        node: i32,
        topic: Uuid,
        index: i32,
        epoch: i32,
    ) -> Result<&mut Partition, ErrorCode> {
        let topic = self.topics.by_id_mut(topic).ok_or(ErrorCode::UNKNOWN_TOPIC_ID)?;
        let partition = topic.partition_mut(index).ok_or(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)?;
        if epoch >= 0 && epoch < partition.leader_epoch {
            return Err(ErrorCode::FENCED_LEADER_EPOCH);
        }
        if epoch > partition.leader_epoch {
            return Err(ErrorCode::UNKNOWN_LEADER_EPOCH);
        }
        if partition.leader != node {
            return Err(ErrorCode::NOT_LEADER_OR_FOLLOWER);
        }
        Ok(partition)
    }

    /// Leader and leader epoch, for hints; -1 where unknown.
    pub(crate) fn leader_of(&self, topic: Uuid, index: i32) -> (i32, i32) {
        let partition = self.topics.by_id(topic).and_then(|t| t.partition(index));
        partition.map_or((-1, -1), |p| (p.leader, p.leader_epoch))
    }
}
