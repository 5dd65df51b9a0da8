//! One session: its partitions in the order they are read, and what its reader knows of them.

use kafka_share_messages::FetchRequest;
use kafka_share_messages::fetch_request::FetchPartition;
use kafka_share_wire::{Str, Uuid};
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

/// A partition as the request names it: by topic id, or by name before v13.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct PartitionKey {
    pub(crate) topic_id: Uuid,
    pub(crate) topic: Str,
    pub(crate) partition: i32,
}

/// A partition to read and where.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Followed {
    pub(crate) key: PartitionKey,
    pub(crate) asked: FetchPartition,
}

/// What an answer says of a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) high_watermark: i64,
    pub(crate) log_start_offset: i64,
    pub(crate) has_records: bool,
    pub(crate) failed: bool,
    pub(crate) diverges: bool,
}

/// A partition of a session.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CachedPartition {
    pub(super) followed: Followed,
    high_watermark: i64,
    log_start_offset: i64,
}

impl CachedPartition {
    pub(crate) fn new(followed: Followed, seen: Option<&Seen>) -> Self {
        // Detached: names must not keep a request's frame in memory.
        let key = PartitionKey { topic: followed.key.topic.detached(), ..followed.key };
        CachedPartition {
            followed: Followed { key, asked: followed.asked },
            high_watermark: seen.map_or(-1, |seen| seen.high_watermark),
            log_start_offset: seen.map_or(-1, |seen| seen.log_start_offset),
        }
    }

    pub(super) fn weight(&self) -> usize {
        size_of::<CachedPartition>() * 2 + self.followed.key.topic.len()
    }

    /// Whether the reader must be told; from then on it knows.
    fn tell(&mut self, seen: &Seen) -> bool {
        let known = self.high_watermark == seen.high_watermark && self.log_start_offset == seen.log_start_offset;
        self.high_watermark = seen.high_watermark;
        self.log_start_offset = seen.log_start_offset;
        if seen.failed {
            // Once the error is gone the partition is told again.
            self.high_watermark = -1;
        }
        seen.has_records || seen.failed || seen.diverges || !known
    }
}

/// A session.
#[derive(Debug)]
pub(crate) struct Session {
    pub(super) epoch: i32,
    pub(super) by_id: bool,
    pub(super) created: Duration,
    pub(super) last_used: Duration,
    pub(super) weight: usize,
    next: u64,
    order: BTreeMap<u64, CachedPartition>,
    places: HashMap<PartitionKey, u64>,
}

impl Session {
    pub(super) fn new(now: Duration, by_id: bool, partitions: Vec<CachedPartition>) -> Self {
        let mut session = Session {
            epoch: 1,
            by_id,
            created: now,
            last_used: now,
            weight: 0,
            next: 0,
            order: BTreeMap::new(),
            places: HashMap::new(),
        };
        partitions.into_iter().for_each(|partition| session.push(partition));
        session
    }

    pub(super) fn len(&self) -> usize {
        self.order.len()
    }

    /// Adds a partition at the end; one that is there keeps its place and takes the new position.
    fn push(&mut self, partition: CachedPartition) {
        let key = partition.followed.key.clone();
        if let Some(known) = self.places.get(&key).and_then(|place| self.order.get_mut(place)) {
            known.followed.asked = partition.followed.asked;
            return;
        }
        self.weight += partition.weight();
        self.places.insert(key, self.next);
        self.order.insert(self.next, partition);
        self.next += 1;
    }

    fn forget(&mut self, key: &PartitionKey) -> Option<CachedPartition> {
        let gone = self.order.remove(&self.places.remove(key)?)?;
        self.weight -= gone.weight();
        Some(gone)
    }

    /// Takes a request's changes in.
    pub(super) fn change(&mut self, request: &FetchRequest) {
        for followed in asked(request, self.by_id) {
            self.push(CachedPartition::new(followed, None));
        }
        for topic in &request.forgotten_topics_data {
            for partition in &topic.partitions {
                self.forget(&key(self.by_id, topic.topic_id, &topic.topic, *partition));
            }
        }
    }

    pub(super) fn followed(&self) -> Vec<Followed> {
        self.order.values().map(|cached| cached.followed.clone()).collect()
    }

    /// Whether the reader must be told of a partition. One with records goes to the end, so that others come first the next
    /// time.
    pub(super) fn tell(&mut self, key: &PartitionKey, seen: &Seen) -> bool {
        let Some(cached) = self.places.get(key).and_then(|place| self.order.get_mut(place)) else { return true };
        let told = cached.tell(seen);
        if seen.has_records
            && let Some(cached) = self.forget(key)
        {
            self.push(cached);
        }
        told
    }
}

fn key(by_id: bool, topic_id: Uuid, topic: &Str, partition: i32) -> PartitionKey {
    if by_id {
        PartitionKey { topic_id, topic: Str::default(), partition }
    } else {
        PartitionKey { topic_id: Uuid::ZERO, topic: topic.clone(), partition }
    }
}

/// The partitions of a request. One that is named twice is read once, where it was named first and as it was named last.
pub(super) fn asked(request: &FetchRequest, by_id: bool) -> Vec<Followed> {
    let topic = |topic: &kafka_share_messages::fetch_request::FetchTopic| {
        let one = |asked: &FetchPartition| Followed {
            key: key(by_id, topic.topic_id, &topic.topic, asked.partition),
            // Fields that nobody knows are dropped: they would keep the frame in memory.
            asked: FetchPartition { tagged: Default::default(), ..asked.clone() },
        };
        topic.partitions.iter().map(one).collect::<Vec<_>>()
    };
    let mut all: Vec<Followed> = Vec::new();
    let mut places = HashMap::new();
    for followed in request.topics.iter().flat_map(topic) {
        match places.entry(followed.key.clone()) {
            Entry::Occupied(place) => all[*place.get()] = followed,
            Entry::Vacant(place) => {
                place.insert(all.len());
                all.push(followed);
            }
        }
    }
    all
}
