//! What is known of the cluster: brokers, topics by name and id, partition leaders with their epochs.
//!
//! A leader that an error response names (KIP-951) counts at once; an older leader epoch never overwrites a newer one.

use kafka_share_messages::{ErrorCode, MetadataResponse};
use kafka_share_wire::{Str, Uuid};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A broker's address.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Node {
    /// Broker id.
    pub id: i32,
    /// Host name or address.
    pub host: Str,
    /// Port.
    pub port: u16,
}

/// Leader of a partition; id -1 where there is none at the moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Leader {
    /// Broker id, -1 for none.
    pub id: i32,
    /// Leader epoch, -1 where unknown.
    pub epoch: i32,
}

/// A topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Topic {
    /// Name.
    pub name: Str,
    /// Id; zero on brokers that have none.
    pub id: Uuid,
    /// Leaders, by partition number.
    pub leaders: Vec<Leader>,
}

/// A topic and a partition number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TopicIdPartition {
    /// Topic id.
    pub topic_id: Uuid,
    /// Partition number, from 0.
    pub partition: i32,
}

/// The cache.
#[derive(Debug, Default)]
pub struct Metadata {
    nodes: BTreeMap<i32, Node>,
    topics: BTreeMap<Str, Arc<Topic>>,
    names: BTreeMap<Uuid, Str>,
    errors: BTreeMap<Str, ErrorCode>,
    cluster_id: Option<Str>,
    controller: i32,
    generation: u64,
}

impl Metadata {
    /// An empty cache.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes a Metadata answer. Answers without brokers leave the known brokers in place.
    pub fn update(&mut self, response: &MetadataResponse) {
        self.generation += 1;
        if !response.brokers.is_empty() {
            self.nodes = response
                .brokers
                .iter()
                .filter_map(|b| {
                    Some((
                        b.node_id,
                        Node { id: b.node_id, host: b.host.detached(), port: u16::try_from(b.port).ok()? },
                    ))
                })
                .collect();
        }
        if let Some(id) = &response.cluster_id {
            self.cluster_id = Some(id.detached());
        }
        self.controller = response.controller_id;
        for topic in &response.topics {
            let name = topic.name.as_ref().map(Str::detached);
            match (topic.error_code, name) {
                (ErrorCode::NONE, Some(name)) => self.put_topic(name, topic),
                (code, Some(name)) => {
                    if code == ErrorCode::UNKNOWN_TOPIC_OR_PARTITION {
                        self.forget(&name);
                    }
                    self.errors.insert(name, code);
                }
                (_, None) => {
                    if let Some(name) = self.names.get(&topic.topic_id).cloned() {
                        self.forget(&name);
                    }
                }
            }
        }
    }

    fn put_topic(&mut self, name: Str, topic: &kafka_share_messages::metadata_response::MetadataResponseTopic) {
        self.errors.remove(&name);
        if topic.partitions.is_empty() {
            // A topic always has partitions: the broker has not caught up. Ask again later.
            self.errors.insert(name, ErrorCode::LEADER_NOT_AVAILABLE);
            return;
        }
        let known = self.topics.get(&name).filter(|t| t.id == topic.topic_id).cloned();
        let count = topic.partitions.iter().map(|p| p.partition_index.max(0) as usize + 1).max().unwrap_or(0);
        // Numbers are dense; a hostile number must not size an allocation.
        let count = count.min(topic.partitions.len().max(known.as_ref().map_or(0, |t| t.leaders.len())) + 1024);
        let mut leaders = known.map_or_else(Vec::new, |t| t.leaders.clone());
        leaders.resize(count.max(leaders.len()), Leader { id: -1, epoch: -1 });
        for partition in &topic.partitions {
            let Some(slot) = usize::try_from(partition.partition_index).ok().and_then(|i| leaders.get_mut(i)) else {
                continue;
            };
            if partition.leader_epoch >= slot.epoch || partition.leader_epoch < 0 {
                *slot = Leader { id: partition.leader_id, epoch: partition.leader_epoch };
            }
        }
        if let Some(old) = self.topics.get(&name).filter(|t| t.id != topic.topic_id) {
            self.names.remove(&old.id);
        }
        if !topic.topic_id.is_zero() {
            self.names.insert(topic.topic_id, name.clone());
        }
        self.topics.insert(name.clone(), Arc::new(Topic { name, id: topic.topic_id, leaders }));
    }

    fn forget(&mut self, name: &Str) {
        if let Some(topic) = self.topics.remove(name) {
            self.names.remove(&topic.id);
        }
    }

    /// Takes a leader named in an error response. Answers whether anything changed.
    pub fn hint_leader(&mut self, tp: TopicIdPartition, leader: Leader) -> bool {
        if leader.id < 0 {
            return false;
        }
        let Some(topic) = self.names.get(&tp.topic_id).and_then(|n| self.topics.get_mut(n)) else { return false };
        let topic = Arc::make_mut(topic);
        let Some(slot) = usize::try_from(tp.partition).ok().and_then(|i| topic.leaders.get_mut(i)) else {
            return false;
        };
        let newer = leader.epoch > slot.epoch || (leader.epoch == slot.epoch && slot.id < 0);
        if newer {
            *slot = leader;
        }
        newer
    }

    /// Takes a broker address named in an error response.
    pub fn hint_node(&mut self, node: Node) {
        self.nodes.insert(node.id, node);
    }

    /// A topic by name.
    #[must_use]
    pub fn topic(&self, name: &str) -> Option<&Arc<Topic>> {
        self.topics.get(name)
    }

    /// A topic by id.
    #[must_use]
    pub fn topic_by_id(&self, id: Uuid) -> Option<&Arc<Topic>> {
        self.names.get(&id).and_then(|name| self.topics.get(name))
    }

    /// The last error that a Metadata answer gave for a topic.
    #[must_use]
    pub fn topic_error(&self, name: &str) -> Option<ErrorCode> {
        self.errors.get(name).copied()
    }

    /// Leader of a partition, if it has one.
    #[must_use]
    pub fn leader(&self, tp: TopicIdPartition) -> Option<Leader> {
        let topic = self.topic_by_id(tp.topic_id)?;
        let leader = usize::try_from(tp.partition).ok().and_then(|i| topic.leaders.get(i))?;
        (leader.id >= 0).then_some(*leader)
    }

    /// A broker.
    #[must_use]
    pub fn node(&self, id: i32) -> Option<&Node> {
        self.nodes.get(&id)
    }

    /// All brokers in id order.
    pub fn nodes(&self) -> impl Iterator<Item = &Node> {
        self.nodes.values()
    }

    /// Id of the cluster.
    #[must_use]
    pub fn cluster_id(&self) -> Option<&Str> {
        self.cluster_id.as_ref()
    }

    /// The controller as named by the brokers; -1 where unknown.
    #[must_use]
    pub fn controller(&self) -> i32 {
        self.controller
    }

    /// Grows with every answer taken.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.generation
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kafka_share_messages::metadata_response::{
        MetadataResponseBroker, MetadataResponsePartition, MetadataResponseTopic,
    };

    fn answer(id: Uuid, leaders: &[(i32, i32)]) -> MetadataResponse {
        let partition = |(i, (leader, epoch)): (usize, &(i32, i32))| MetadataResponsePartition {
            partition_index: i as i32,
            leader_id: *leader,
            leader_epoch: *epoch,
            ..Default::default()
        };
        MetadataResponse {
            brokers: vec![MetadataResponseBroker { node_id: 1, host: "h".into(), port: 9092, ..Default::default() }],
            topics: vec![MetadataResponseTopic {
                name: Some("t".into()),
                topic_id: id,
                partitions: leaders.iter().enumerate().map(partition).collect(),
                ..Default::default()
            }],
            ..Default::default()
        }
    }

    #[test]
    fn older_leader_epochs_do_not_win() {
        let id = Uuid::from_halves(1, 1);
        let tp = TopicIdPartition { topic_id: id, partition: 0 };
        let mut metadata = Metadata::new();
        metadata.update(&answer(id, &[(1, 5)]));
        assert!(metadata.hint_leader(tp, Leader { id: 2, epoch: 6 }));
        metadata.update(&answer(id, &[(1, 5)]));
        assert_eq!(metadata.leader(tp), Some(Leader { id: 2, epoch: 6 }));
        assert!(!metadata.hint_leader(tp, Leader { id: -1, epoch: 9 }));
        metadata.update(&answer(id, &[(1, 7)]));
        assert_eq!(metadata.leader(tp).unwrap().id, 1);
    }

    #[test]
    fn recreated_topics_get_a_new_id_and_fresh_epochs() {
        let (old, new) = (Uuid::from_halves(1, 1), Uuid::from_halves(2, 2));
        let mut metadata = Metadata::new();
        metadata.update(&answer(old, &[(1, 50)]));
        metadata.update(&answer(new, &[(1, 0)]));
        assert!(metadata.topic_by_id(old).is_none());
        assert_eq!(metadata.leader(TopicIdPartition { topic_id: new, partition: 0 }), Some(Leader { id: 1, epoch: 0 }));
    }

    #[test]
    fn r104_odd_answers_do_not_erase_what_is_known() {
        let id = Uuid::from_halves(1, 1);
        let mut metadata = Metadata::new();
        metadata.update(&answer(id, &[(1, 0), (1, 0)]));
        let mut empty = answer(id, &[]);
        empty.brokers.clear();
        metadata.update(&empty);
        assert_eq!(metadata.topic("t").unwrap().leaders.len(), 2);
        assert_eq!(metadata.nodes().count(), 1);
        metadata.update(&answer(id, &[(1, 1)]));
        assert_eq!(metadata.topic("t").unwrap().leaders.len(), 2, "a partition left out stays known");
    }
}
