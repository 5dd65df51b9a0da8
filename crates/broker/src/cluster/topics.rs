//! Topics by name and id, their partitions and leaders.

use super::Cluster;
use crate::log::PartitionLog;
use crate::settings::{Overrides, TopicConfig};
use kafka_share_messages::ErrorCode;
use kafka_share_wire::{Str, Uuid};
use std::collections::{BTreeMap, HashMap};

/// Topics that Kafka keeps for itself, which ordinary clients cannot delete or write to.
pub(crate) const CONSUMER_OFFSETS: &str = "__consumer_offsets";
/// Places transaction coordinators.
pub(crate) const TRANSACTION_STATE: &str = "__transaction_state";
/// Places share coordinators.
pub(crate) const SHARE_GROUP_STATE: &str = "__share_group_state";

/// Longest topic name.
const MAX_NAME: usize = 249;

/// A partition on its leader.
#[derive(Debug)]
pub(crate) struct Partition {
    /// -1 while no replica is alive.
    pub(crate) leader: i32,
    pub(crate) leader_epoch: i32,
    pub(crate) replicas: Vec<i32>,
    pub(crate) log: PartitionLog,
}

/// A topic.
#[derive(Debug)]
pub(crate) struct Topic {
    pub(crate) id: Uuid,
    pub(crate) name: Str,
    pub(crate) internal: bool,
    pub(crate) partitions: Vec<Partition>,
    pub(crate) overrides: Overrides,
    pub(crate) config: TopicConfig,
}

impl Topic {
    pub(crate) fn partition(&self, index: i32) -> Option<&Partition> {
        self.partitions.get(usize::try_from(index).ok()?)
    }

    pub(crate) fn partition_mut(&mut self, index: i32) -> Option<&mut Partition> {
        self.partitions.get_mut(usize::try_from(index).ok()?)
    }
}

/// All topics.
#[derive(Debug, Default)]
pub(crate) struct Topics {
    names: BTreeMap<Str, Uuid>,
    topics: HashMap<Uuid, Topic>,
    partitions: usize,
}

impl Topics {
    pub(crate) fn len(&self) -> usize {
        self.topics.len()
    }

    pub(crate) fn partitions(&self) -> usize {
        self.partitions
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Topic> {
        self.topics.get(self.names.get(name)?)
    }

    pub(crate) fn by_id(&self, id: Uuid) -> Option<&Topic> {
        self.topics.get(&id)
    }

    pub(crate) fn by_id_mut(&mut self, id: Uuid) -> Option<&mut Topic> {
        self.topics.get_mut(&id)
    }

    /// In the order of their names.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Topic> {
        self.names.values().filter_map(|id| self.topics.get(id))
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Topic> {
        self.topics.values_mut()
    }

    pub(super) fn insert(&mut self, topic: Topic) {
        self.partitions += topic.partitions.len();
        self.names.insert(topic.name.clone(), topic.id);
        self.topics.insert(topic.id, topic);
    }

    pub(crate) fn remove(&mut self, id: Uuid) -> Option<Topic> {
        let topic = self.topics.remove(&id)?;
        self.names.remove(&topic.name);
        self.partitions -= topic.partitions.len();
        Some(topic)
    }
}

/// A refusal that the client is told of, with a sentence for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) code: ErrorCode,
    pub(crate) message: String,
}

impl Refusal {
    pub(crate) fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Refusal { code, message: message.into() }
    }
}

impl From<ErrorCode> for Refusal {
    fn from(code: ErrorCode) -> Self {
        Refusal::new(code, "")
    }
}

/// Checks a topic's name by Kafka's rules.
pub(crate) fn check_name(name: &str) -> Result<(), Refusal> {
    let bad = |why: String| Err(Refusal::new(ErrorCode::INVALID_TOPIC_EXCEPTION, why));
    if name.is_empty() {
        return bad("Topic name is invalid: the empty string is not allowed".into());
    }
    if name == "." || name == ".." {
        return bad(format!("Topic name is invalid: '{name}' is not allowed"));
    }
    if name.len() > MAX_NAME {
        return bad(format!("Topic name is invalid: the length of '{name}' is longer than the max allowed length 249"));
    }
    if !name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-')) {
        return bad(format!(
            "Topic name is invalid: '{name}' contains characters other than letters, digits, '.', '_' and '-'"
        ));
    }
    Ok(())
}

pub(crate) fn is_internal(name: &str) -> bool {
    matches!(name, CONSUMER_OFFSETS | TRANSACTION_STATE | SHARE_GROUP_STATE)
}

impl Cluster {
    /// Creates a topic with the default replication and settings.
    ///
    /// # Errors
    /// Why the name or the count is refused, or that the topic exists.
    pub fn create_topic(&mut self, name: &str, partitions: i32) -> Result<Uuid, String> {
        check_name(name).map_err(|refusal| refusal.message)?;
        if self.topics.get(name).is_some() {
            return Err(format!("topic '{name}' already exists"));
        }
        if partitions <= 0 {
            return Err(format!("{partitions} partitions: at least one is needed"));
        }
        self.check_room(partitions as usize).map_err(|refusal| refusal.message)?;
        let replicas = usize::try_from(self.config.default_replication).unwrap_or(1).max(1);
        Ok(self.insert_topic(&Str::from(name), partitions, replicas))
    }

    /// Creates a topic whose name and numbers were checked. Leaders go round the nodes.
    pub(crate) fn insert_topic(&mut self, name: &Str, partitions: i32, replicas: usize) -> Uuid {
        let id = self.rng.uuid();
        let shift = if is_internal(name) { 0 } else { self.topics.len() };
        let placed = (0..partitions).map(|index| self.place(shift + index as usize, replicas)).collect();
        // Detached: names must not keep a request's frame in memory.
        self.topics.insert(Topic {
            id,
            name: name.detached(),
            internal: is_internal(name),
            partitions: placed,
            config: TopicConfig::new(&Overrides::new()),
            overrides: Overrides::new(),
        });
        self.dirty.topic(id);
        tracing::info!(topic = name.as_str(), %id, partitions, "topic created");
        id
    }

    fn place(&self, slot: usize, replicas: usize) -> Partition {
        let alive: Vec<i32> = self.alive_nodes().map(|node| node.id).collect();
        let replicas: Vec<i32> = (0..replicas.min(alive.len())).map(|r| alive[(slot + r) % alive.len()]).collect();
        Partition {
            leader: replicas.first().copied().unwrap_or(-1),
            leader_epoch: 0,
            replicas,
            log: PartitionLog::default(),
        }
    }

    /// Adds partitions up to `count`.
    pub(crate) fn grow_topic(&mut self, id: Uuid, count: i32) {
        let Some(topic) = self.topics.by_id(id) else { return };
        let (have, replicas) = (topic.partitions.len(), topic.partitions.first().map_or(1, |p| p.replicas.len()));
        let added: Vec<Partition> = (have..count.max(0) as usize).map(|index| self.place(index, replicas)).collect();
        self.topics.partitions += added.len();
        if let Some(topic) = self.topics.by_id_mut(id) {
            topic.partitions.extend(added);
            self.dirty.topic(id);
        }
    }

    /// Puts the replicas of partitions from `first` on where they were asked for; the first that is alive leads. For partitions
    /// that nobody uses yet.
    pub(crate) fn place_replicas(&mut self, id: Uuid, first: usize, placed: Vec<Vec<i32>>) {
        let alive: Vec<i32> = self.alive_nodes().map(|node| node.id).collect();
        let Some(topic) = self.topics.by_id_mut(id) else { return };
        for (partition, replicas) in topic.partitions.iter_mut().skip(first).zip(placed) {
            partition.leader = replicas.iter().find(|id| alive.contains(id)).copied().unwrap_or(-1);
            partition.replicas = replicas;
        }
    }

    /// Checks replicas that were asked for: as many for each partition, on nodes that exist.
    pub(crate) fn check_placement(&self, placed: &[Vec<i32>], replicas: usize) -> Result<(), Refusal> {
        let bad = |why: &str| Err(Refusal::new(ErrorCode::INVALID_REPLICA_ASSIGNMENT, why));
        for nodes in placed {
            if nodes.is_empty() || nodes.iter().any(|id| self.node(*id).is_none()) {
                return bad("The manual partition assignment is empty or includes an unknown broker.");
            }
            let distinct: std::collections::BTreeSet<&i32> = nodes.iter().collect();
            if distinct.len() < nodes.len() {
                return bad("The manual partition assignment includes a broker more than once.");
            }
            if nodes.len() != replicas {
                return bad("The manual partition assignment has partitions with different numbers of replicas.");
            }
        }
        Ok(())
    }

    /// The topic of this name, created if the request and the cluster allow it.
    pub(crate) fn topic_or_create(&mut self, name: &Str, allow: bool) -> Result<Uuid, Refusal> {
        if let Some(topic) = self.topics.get(name) {
            return Ok(topic.id);
        }
        check_name(name)?;
        if !(allow && self.config.auto_create_topics) {
            let why = format!("This server does not host this topic-partition: {}", name.as_str());
            return Err(Refusal::new(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION, why));
        }
        let count = if is_internal(name) { self.config.internal_partitions } else { self.config.default_partitions };
        self.check_room(count as usize)?;
        let replicas = usize::try_from(self.config.default_replication).unwrap_or(1).max(1);
        Ok(self.insert_topic(name, count, replicas))
    }
}
