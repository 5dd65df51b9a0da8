//! Share groups: members, epochs, assignments. Pure: topics and settings are arguments.

mod assignor;
mod durable;
mod heartbeat;

pub(crate) use assignor::TopicPartition;
pub(crate) use heartbeat::Heartbeat;

use crate::tracked::Tracked;
use assignor::Subscriber;
use kafka_share_wire::{Str, Uuid};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// A member of a share group.
#[derive(Debug, Clone)]
pub(crate) struct Member {
    pub(crate) epoch: i32,
    previous_epoch: i32,
    pub(crate) client_id: Str,
    pub(crate) rack: Option<Str>,
    /// Sorted.
    pub(crate) topics: Vec<Str>,
    pub(crate) assigned: BTreeSet<TopicPartition>,
    /// What it is to have; it gets there with its next heartbeat.
    target: BTreeSet<TopicPartition>,
    /// Without a heartbeat until then it is removed.
    deadline: Duration,
}

impl Member {
    /// Whether a request with this epoch is the member's: an answer that told of a newer one may be on its way.
    pub(crate) fn is_at(&self, epoch: i32) -> bool {
        epoch > 0 && (epoch == self.epoch || epoch == self.previous_epoch)
    }
}

/// A share group.
#[derive(Debug, Default)]
pub(crate) struct ShareGroup {
    pub(crate) epoch: i32,
    pub(crate) assignment_epoch: i32,
    pub(crate) members: BTreeMap<Str, Member>,
    /// When the assignment was last computed.
    assigned_at: Option<Duration>,
    /// Subscribed topics that exist, by name: id and partitions.
    topics: BTreeMap<Str, (Uuid, i32)>,
    /// Topics that have share state for this many partitions.
    initialized: BTreeMap<Uuid, i32>,
}

impl ShareGroup {
    /// Kafka's names of the states.
    pub(crate) fn state(&self) -> &'static str {
        if self.members.is_empty() { "Empty" } else { "Stable" }
    }

    fn remove(&mut self, member: &str) -> Option<Member> {
        let removed = self.members.remove(member)?;
        self.epoch += 1;
        Some(removed)
    }

    /// Looks the subscribed topics up again; a change raises the group's epoch.
    fn refresh_topics(&mut self, lookup: &dyn Fn(&str) -> Option<(Uuid, i32)>) {
        let mut topics = BTreeMap::new();
        for name in self.members.values().flat_map(|member| &member.topics) {
            if !topics.contains_key(name)
                && let Some(found) = lookup(name)
            {
                topics.insert(name.clone(), found);
            }
        }
        if topics != self.topics {
            self.topics = topics;
            self.epoch += 1;
        }
    }

    /// Computes a new assignment where the group has changed and the last one is old enough.
    fn assign(&mut self, now: Duration, interval_ms: i64) {
        let interval = Duration::from_millis(u64::try_from(interval_ms).unwrap_or(0));
        let early = self.assigned_at.is_some_and(|at| now < at + interval);
        if self.epoch <= self.assignment_epoch || early {
            return;
        }
        let wants = |member: &Member| {
            let topics = member.topics.iter().filter_map(|name| self.topics.get(name));
            let mut all: Vec<TopicPartition> = topics.flat_map(|(id, n)| (0..*n).map(move |p| (*id, p))).collect();
            all.sort_unstable();
            all
        };
        let subscriber = |(id, member)| Subscriber { member: id, wants: wants(member), has: &member.target };
        let subscribers: Vec<Subscriber<'_>> = self.members.iter().map(subscriber).collect();
        let targets = assignor::assign(&subscribers);
        for (id, target) in targets {
            if let Some(member) = self.members.get_mut(&id) {
                member.target = target;
            }
        }
        self.assignment_epoch = self.epoch;
        self.assigned_at = Some(now);
    }
}

/// All share groups.
#[derive(Debug, Default)]
pub(crate) struct GroupCoordinator {
    groups: Tracked<Str, ShareGroup>,
    /// Session timeouts: when, group, member.
    deadlines: BTreeSet<(Duration, Str, Str)>,
}

impl GroupCoordinator {
    pub(crate) fn get(&self, group: &str) -> Option<&ShareGroup> {
        self.groups.get(group)
    }

    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = (&Str, &ShareGroup)> {
        self.groups.iter()
    }

    /// Deletes a group, whatever is in it.
    pub(crate) fn delete(&mut self, group: &str) {
        if let Some((name, removed)) = self.groups.remove_entry(group) {
            for (id, member) in removed.members {
                self.deadlines.remove(&(member.deadline, name.clone(), id));
            }
        }
    }

    /// Share-partitions of newly subscribed topics and partitions; each is given once.
    pub(crate) fn uninitialized(&mut self, group: &str) -> Vec<TopicPartition> {
        let Some(group) = self.groups.get_mut(group) else { return Vec::new() };
        let mut fresh = Vec::new();
        for (id, count) in group.topics.values() {
            let done = group.initialized.entry(*id).or_default();
            fresh.extend((*done..*count).map(|partition| (*id, partition)));
            *done = (*done).max(*count);
        }
        fresh
    }

    /// The group's share state of a topic was deleted; another subscription begins anew.
    pub(crate) fn forget_topic(&mut self, group: &str, topic: Uuid) {
        if let Some(group) = self.groups.get_mut(group) {
            group.initialized.remove(&topic);
        }
    }

    /// Creates an empty group, as an administrator may by setting its offsets.
    pub(crate) fn create(&mut self, group: &Str) {
        self.groups.entry(group.detached()).or_default();
    }

    pub(crate) fn next_deadline(&self) -> Option<Duration> {
        self.deadlines.first().map(|(deadline, ..)| *deadline)
    }

    /// Removes a member whose session is over; the caller asks until there is none.
    pub(crate) fn expire(&mut self, now: Duration) -> Option<(Str, Str)> {
        if self.next_deadline()? > now {
            return None;
        }
        let (_, group, member) = self.deadlines.pop_first()?;
        self.groups.get_mut(&group)?.remove(&member);
        Some((group, member))
    }
}
