//! Share coordinator: the stored state of share-partitions, which outlives their leaders. Pure.
//!
//! The leader holds the live state; it is written here when the partition moves. Transactions that end meanwhile
//! settle the stored state.

use crate::share_partition::{SharePartition, StagedBy, StoredBatch, StoredShareState, StoredState};
use kafka_share_wire::{Str, Uuid};
use std::collections::BTreeMap;

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
}

impl ShareCoordinator {
    pub(crate) fn read(&self, key: &ShareKey) -> Option<&StoredShareState> {
        self.stored.get(key)
    }

    /// Stores what a leader held. A writer whose state epoch is older than the stored one is fenced: `false`.
    pub(crate) fn write(&mut self, key: &ShareKey, state: StoredShareState) -> bool {
        if self.stored.get(key).is_some_and(|old| old.state_epoch > state.state_epoch) {
            return false;
        }
        self.stored.insert(key.clone(), state);
        true
    }

    /// Begins a new state at `start` (-1: as the group's reset says), which fences what leaders hold.
    pub(crate) fn initialize(&mut self, key: &ShareKey, start: i64) {
        let state_epoch = self.stored.get(key).map_or(0, |old| old.state_epoch + 1);
        let state = StoredShareState { state_epoch, leader_epoch: -1, start_offset: start, batches: Vec::new() };
        self.stored.insert(key.clone(), state);
    }

    pub(crate) fn delete(&mut self, key: &ShareKey) -> bool {
        self.stored.remove(key).is_some()
    }

    pub(crate) fn delete_topic(&mut self, topic: Uuid) {
        self.stored.retain(|key, _| key.topic != topic);
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

    /// A transaction ended that staged acknowledgements of this share-partition.
    pub(crate) fn complete(&mut self, key: &ShareKey, by: StagedBy, committed: bool) {
        let Some(state) = self.stored.get_mut(key).filter(|state| state.start_offset >= 0) else { return };
        let mut partition = SharePartition::restore(state.start_offset, &state.batches);
        partition.complete(by, committed);
        state.start_offset = partition.start();
        state.batches = partition.snapshot();
    }
}
