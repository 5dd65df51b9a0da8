//! Share coordinator: the stored state of share-partitions, which outlives their leaders. Pure.
//!
//! Kafka's leaders write each change through. Here the leader's live state and the store are parts of one machine that
//! cannot fail by halves, so the leader only marks what has changed ([`ShareCoordinator::mark`]) and its state is taken
//! when somebody looks: when the partition moves, or when the broker keeps its data on disk
//! ([`crate::share::Share::changed`]). Transactions that end while no leader holds the state settle the stored one.

mod durable;

use crate::share_partition::{Deliveries, SharePartition, StagedBy, StoredBatch, StoredShareState, StoredState};
use kafka_share_messages::ErrorCode;
use kafka_share_wire::{Str, Uuid};
use std::collections::{BTreeMap, BTreeSet};

/// A share-partition.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ShareKey {
    pub(crate) group: Str,
    pub(crate) topic: Uuid,
    pub(crate) partition: i32,
}

/// All stored share-partitions.
#[derive(Debug, Default)]
pub(crate) struct ShareCoordinator {
    stored: BTreeMap<ShareKey, StoredShareState>,
    /// Share-partitions whose state is not what it was when this was last drained; `None`: nobody asks.
    changed: Option<BTreeSet<ShareKey>>,
}

impl ShareCoordinator {
    /// Begins to keep track of what changes.
    pub(crate) fn track(&mut self) {
        self.changed.get_or_insert_default();
    }

    /// The state of a share-partition, live or stored, has changed.
    pub(crate) fn mark(&mut self, key: &ShareKey) {
        if let Some(changed) = self.changed.as_mut().filter(|changed| !changed.contains(key)) {
            changed.insert(ShareKey { group: key.group.detached(), ..key.clone() });
        }
    }

    /// What was marked since the last call.
    pub(crate) fn take_changed(&mut self) -> BTreeSet<ShareKey> {
        self.changed.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Puts back what was kept on disk.
    pub(crate) fn restore(&mut self, key: ShareKey, state: StoredShareState) {
        self.stored.insert(key, state);
    }

    /// Share-partitions with state.
    pub(crate) fn len(&self) -> usize {
        self.stored.len()
    }

    pub(crate) fn read(&self, key: &ShareKey) -> Option<&StoredShareState> {
        self.stored.get(key)
    }

    /// Stores what a leader held. A writer whose state epoch is older than the stored one is fenced, and so is one
    /// whose leader epoch is.
    pub(crate) fn write(&mut self, key: &ShareKey, state: StoredShareState) -> Result<(), ErrorCode> {
        if let Some(old) = self.stored.get(key) {
            if old.state_epoch > state.state_epoch {
                return Err(ErrorCode::FENCED_STATE_EPOCH);
            }
            if old.leader_epoch > state.leader_epoch {
                return Err(ErrorCode::FENCED_LEADER_EPOCH);
            }
        }
        self.stored.insert(key.clone(), state);
        self.mark(key);
        Ok(())
    }

    /// Begins a new state at `start` (-1: as the group's reset says), which fences what leaders hold.
    pub(crate) fn initialize(&mut self, key: &ShareKey, start: i64) {
        let state_epoch = self.stored.get(key).map_or(0, |old| old.state_epoch + 1);
        let state = StoredShareState { state_epoch, leader_epoch: -1, start_offset: start, batches: Vec::new() };
        self.stored.insert(key.clone(), state);
        self.mark(key);
    }

    pub(crate) fn delete(&mut self, key: &ShareKey) -> bool {
        self.mark(key);
        self.stored.remove(key).is_some()
    }

    pub(crate) fn delete_topic(&mut self, topic: Uuid) {
        let gone: Vec<ShareKey> = self.stored.keys().filter(|key| key.topic == topic).cloned().collect();
        for key in gone {
            self.delete(&key);
        }
    }

    /// Share-partitions of a group.
    pub(crate) fn of_group<'a>(&'a self, group: &'a Str) -> impl Iterator<Item = &'a ShareKey> + 'a {
        let from = ShareKey { group: group.clone(), topic: Uuid::ZERO, partition: i32::MIN };
        self.stored.range(from..).map(|(key, _)| key).take_while(move |key| key.group == *group)
    }

    /// Whether the producer has staged acknowledgements of this share-partition.
    pub(crate) fn stages(&self, key: &ShareKey, producer_id: i64) -> bool {
        let staged = |batch: &StoredBatch| matches!(batch.state, StoredState::Pending { by, .. } if by.producer_id == producer_id);
        self.stored.get(key).is_some_and(|state| state.batches.iter().any(staged))
    }

    /// A transaction ended that staged acknowledgements of this share-partition. Dead letters wait for a leader.
    pub(crate) fn complete(&mut self, key: &ShareKey, by: StagedBy, committed: bool, deliveries: Deliveries) {
        let Some(state) = self.stored.get_mut(key).filter(|state| state.start_offset >= 0) else { return };
        let mut partition = SharePartition::restore(state.start_offset, &state.batches);
        partition.complete(by, committed, deliveries);
        state.start_offset = partition.start();
        state.batches = partition.snapshot();
        self.mark(key);
    }
}
