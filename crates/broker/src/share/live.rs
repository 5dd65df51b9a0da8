//! Share-partitions at their leaders: loading, storing, lock timers.

use super::Share;
use crate::Now;
use crate::cluster::{Cluster, Partition, Refusal};
use crate::settings::OffsetReset;
use crate::share_coordinator::ShareKey;
use crate::share_partition::{SharePartition, StoredBatch, StoredShareState, StoredState};
use kafka_share_messages::ErrorCode;
use kafka_share_wire::{Str, Uuid};
use std::collections::BTreeSet;
use std::time::Duration;

/// A share-partition at its leader.
#[derive(Debug)]
pub(crate) struct Live {
    pub(crate) machine: SharePartition,
    pub(crate) leader: i32,
    leader_epoch: i32,
    state_epoch: i32,
    /// The start offset that the last write carried, which is what descriptions tell; -1 before the first. As in Kafka
    /// it trails: a write carries the start from before its own effect.
    written_start: i64,
    /// What the next write carries.
    next_start: i64,
    /// The entry in the table of timers.
    pub(super) timer: Option<Duration>,
    /// Partition of `__share_group_state` that its state belongs to.
    pub(super) state_slot: i32,
}

impl Live {
    fn stored(&self) -> StoredShareState {
        let (state_epoch, leader_epoch, start_offset) = (self.state_epoch, self.leader_epoch, self.written_start);
        let start = self.machine.start();
        let mut batches = Vec::new();
        if start_offset >= 0 {
            if start > start_offset {
                let state = StoredState::Archived;
                batches.push(StoredBatch { first: start_offset, last: start - 1, state, count: 1 });
            }
            batches.extend(self.machine.snapshot());
        }
        StoredShareState { state_epoch, leader_epoch, start_offset, batches }
    }

    fn new(
        machine: SharePartition,
        partition: &Partition,
        state_slot: i32,
        state_epoch: i32,
        written_start: i64,
    ) -> Self {
        let next_start = machine.start();
        let (leader, leader_epoch) = (partition.leader, partition.leader_epoch);
        Live { machine, leader, leader_epoch, state_epoch, written_start, next_start, timer: None, state_slot }
    }
}

const NOT_INITIALIZED: &str = "The share-partition has no state: no member of the group has subscribed to the topic.";

/// Where a group begins to read a partition that it has no state of.
fn start_offset(partition: &mut Partition, reset: OffsetReset, now: Now) -> Result<i64, Refusal> {
    let log = &mut partition.log;
    Ok(match reset {
        OffsetReset::Earliest => log.start_offset(),
        OffsetReset::Latest => log.high_watermark(),
        OffsetReset::ByDuration(ms) => {
            let upper = log.high_watermark();
            // As in Kafka: where all records are older, there is nowhere to start until a new one comes.
            let none = || Refusal::new(ErrorCode::OFFSET_NOT_AVAILABLE, "No record is as new as the group wants it.");
            log.first_at(now.wall_ms.saturating_sub(ms), upper).ok_or_else(none)?.offset
        }
    })
}

impl Share {
    pub(crate) fn live_mut(&mut self, key: &ShareKey) -> Option<&mut Live> {
        self.live.get_mut(&key.group)?.get_mut(&(key.topic, key.partition))
    }

    pub(crate) fn live(&self, key: &ShareKey) -> Option<&Live> {
        self.live.get(&key.group)?.get(&(key.topic, key.partition))
    }

    pub(crate) fn all_live(&self) -> impl Iterator<Item = (&Str, &(Uuid, i32), &Live)> {
        self.live.iter().flat_map(|(group, partitions)| partitions.iter().map(move |(tp, live)| (group, tp, live)))
    }

    /// Makes sure that a lock which ends is noticed.
    pub(crate) fn arm(&mut self, key: &ShareKey) {
        let Some(live) = self.live.get_mut(&key.group).and_then(|all| all.get_mut(&(key.topic, key.partition))) else {
            return;
        };
        let Some(next) = live.machine.next_deadline() else { return };
        match live.timer {
            Some(set) if set <= next => return,
            Some(set) => {
                self.timers.remove(&(set, key.clone()));
            }
            None => {}
        }
        live.timer = Some(next);
        self.timers.insert((next, key.clone()));
    }

    /// The partition's leader, or all of the topic's, is no longer what it was: the state goes to the store.
    pub(super) fn unload(&mut self, topic: Uuid, partition: Option<i32>) {
        let mut gone = Vec::new();
        for (group, partitions) in &self.live {
            let hit = partitions.keys().filter(|(t, p)| *t == topic && partition.is_none_or(|wanted| wanted == *p));
            gone.extend(hit.map(|(t, p)| ShareKey { group: group.clone(), topic: *t, partition: *p }));
        }
        for key in gone {
            self.unload_one(&key, true);
        }
    }

    /// The group has lost its last member: its coordinator's node drops what it leads. The next member finds what is
    /// stored, which joins records of equal state to one batch whatever batches they came in.
    pub(super) fn unload_group(&mut self, group: &Str, node: i32) {
        let led = self.live.get(group).into_iter().flatten().filter(|(_, live)| live.leader == node);
        let keys: Vec<ShareKey> = led
            .map(|((topic, partition), _)| ShareKey { group: group.clone(), topic: *topic, partition: *partition })
            .collect();
        for key in keys {
            self.unload_one(&key, true);
        }
    }

    /// Start offset, records above it that are done, and leader epoch of a share-partition that has state.
    pub(crate) fn progress(&self, key: &ShareKey) -> Option<(i64, i64, i32)> {
        if let Some(live) = self.live(key) {
            let done = live.machine.start() - live.written_start + live.machine.delivery_complete();
            return Some((live.written_start, done, live.leader_epoch));
        }
        let state = self.store.read(key)?;
        let restored = SharePartition::restore(state.start_offset, &state.batches);
        let done = restored.start() - state.start_offset + restored.delivery_complete();
        Some((state.start_offset, done, state.leader_epoch.max(0)))
    }

    /// The state of a share-partition was written, or changed in a way that its leader writes.
    pub(super) fn wrote(&mut self, key: &ShareKey) {
        if let Some(live) = self.live_mut(key) {
            live.written_start = live.next_start;
            live.next_start = live.machine.start();
        }
        self.store.mark(key);
    }

    /// The start of a share-partition moved by itself: the log's start did, or there were only markers.
    pub(super) fn start_moved(&mut self, key: &ShareKey) {
        if let Some(live) = self.live_mut(key) {
            live.next_start = live.machine.start();
        }
        self.store.mark(key);
    }

    /// Deletes the share state of a group, of one topic or of all.
    pub(crate) fn delete_state(&mut self, group: &Str, topic: Option<Uuid>) {
        let all = self.store.of_group(group).filter(|key| topic.is_none_or(|topic| topic == key.topic));
        let gone: Vec<ShareKey> = all.cloned().collect();
        for key in gone {
            self.unload_one(&key, false);
            self.store.delete(&key);
            for keys in self.staged.values_mut() {
                keys.remove(&key);
            }
        }
    }

    /// Drops live state, stored before if `keep`.
    pub(crate) fn unload_one(&mut self, key: &ShareKey, keep: bool) {
        let Some(partitions) = self.live.get_mut(&key.group) else { return };
        let Some(live) = partitions.remove(&(key.topic, key.partition)) else { return };
        if partitions.is_empty() {
            self.live.remove(&key.group);
        }
        if let Some(timer) = live.timer {
            self.timers.remove(&(timer, key.clone()));
        }
        self.dead_letters.forget(key);
        if keep && let Err(code) = self.store.write(key, live.stored()) {
            // The state that fenced it is the newer one.
            tracing::debug!(group = key.group.as_str(), topic = %key.topic, key.partition, %code, "stale share state");
        }
    }

    /// Begins to keep track of changes, for [`Share::changed`].
    pub(crate) fn track_changes(&mut self) {
        self.store.track();
    }

    /// Share-partitions whose stored state ([`Share::stored_state`]) may have changed since the last call. Empty
    /// unless [`Share::track_changes`] was called.
    pub(crate) fn changed(&mut self) -> BTreeSet<ShareKey> {
        self.store.take_changed()
    }

    /// The state of a share-partition as a share coordinator keeps it, as of now: the leader's where there is one.
    /// `None`: it was deleted.
    pub(crate) fn stored_state(&self, key: &ShareKey) -> Option<StoredShareState> {
        let live = self.live(key).map(Live::stored);
        live.or_else(|| self.store.read(key).cloned())
    }

    /// Puts back a state that was kept on disk, before anybody connects.
    pub(crate) fn restore_state(&mut self, key: ShareKey, state: StoredShareState) {
        for batch in &state.batches {
            if let StoredState::Pending { by, .. } = batch.state {
                self.staged.entry(by.producer_id).or_default().insert(key.clone());
            }
        }
        self.store.restore(key, state);
    }
}

impl Cluster {
    /// Checks that `node` leads the partition; else the code that it answers.
    pub(crate) fn share_leader(&self, node: i32, topic: Uuid, partition: i32) -> Result<(), ErrorCode> {
        let Some(found) = self.topics.by_id(topic) else { return Err(ErrorCode::UNKNOWN_TOPIC_ID) };
        match found.partition(partition) {
            None => Err(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION),
            Some(partition) if partition.leader != node => Err(ErrorCode::NOT_LEADER_OR_FOLLOWER),
            Some(_) => Ok(()),
        }
    }

    /// Loads a share-partition whose leader was checked, unless it is there.
    pub(crate) fn load_share_partition(&mut self, now: Now, group: &Str, tp: (Uuid, i32)) -> Result<(), Refusal> {
        if self.share.live.get(group).is_some_and(|partitions| partitions.contains_key(&tp)) {
            return Ok(());
        }
        let config = self.share_config(group);
        let (reset, limit) = (config.auto_offset_reset, config.delivery_count_limit);
        let key = ShareKey { group: group.detached(), topic: tp.0, partition: tp.1 };
        let slot = self.share_state_slot(&key);
        let Some(partition) = self.topics.by_id_mut(tp.0).and_then(|topic| topic.partition_mut(tp.1)) else {
            return Err(Refusal::new(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION, ""));
        };
        let live = match self.share.store.read(&key) {
            Some(state) if state.start_offset >= 0 => {
                let machine = SharePartition::resume(state.start_offset, &state.batches, limit);
                Live::new(machine, partition, slot, state.state_epoch, state.start_offset)
            }
            Some(state) => {
                let machine = SharePartition::new(start_offset(partition, reset, now)?);
                Live::new(machine, partition, slot, state.state_epoch, -1)
            }
            // As in Kafka, where the state exists once a member has subscribed.
            None => return Err(Refusal::new(ErrorCode::UNKNOWN_SERVER_ERROR, NOT_INITIALIZED)),
        };
        // The store knows of it from now on: groups have state in the partitions they read.
        self.share.store.write(&key, live.stored()).map_err(|code| Refusal::new(code, ""))?;
        self.share.live.entry(key.group.clone()).or_default().insert(tp, live);
        self.write_dead_letters(now, &key);
        Ok(())
    }
}
