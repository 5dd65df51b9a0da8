//! Acknowledgements in transactions (KIP-1289 draft): staging, and what a transaction's end does to them.

use super::Share;
use crate::Now;
use crate::cluster::{Cluster, CoordinatorKind, Refusal, WaitKey, share_key};
use crate::share_coordinator::ShareKey;
use crate::share_partition::{AckRange, StagedBy};
use kafka_share_messages::ErrorCode;
use kafka_share_wire::Str;

impl Share {
    /// Stages one partition's acknowledgements, which were checked.
    pub(crate) fn stage(
        &mut self,
        key: &ShareKey,
        member: &str,
        ranges: &[AckRange<'_>],
        by: StagedBy,
    ) -> Result<(), Refusal> {
        let Some(live) = self.live_mut(key) else {
            return Err(Refusal::new(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION, ""));
        };
        live.machine.stage(member, ranges, by)?;
        self.wrote(key);
        let key = ShareKey { group: key.group.detached(), ..key.clone() };
        self.staged.entry(by.producer_id).or_default().insert(key);
        Ok(())
    }
}

impl Cluster {
    /// Partition of `__share_group_state` that holds a share-partition's state.
    pub(crate) fn share_state_slot(&self, key: &ShareKey) -> i32 {
        let computed =
            || self.coordinator_slot(CoordinatorKind::Share, &share_key(&key.group, key.topic, key.partition));
        self.share.live(key).map_or_else(computed, |live| live.state_slot)
    }
}

/// A producer's transaction ended, and its marker reached partition `slot` of `__share_group_state`: what it staged
/// there is settled, at leaders and in store. Repeating a marker does nothing.
pub(crate) fn apply_marker(cluster: &mut Cluster, now: Now, slot: i32, producer_id: i64, epoch: i16, committed: bool) {
    let Some(keys) = cluster.share.staged.get(&producer_id) else { return };
    let here: Vec<ShareKey> = keys.iter().filter(|key| cluster.share_state_slot(key) == slot).cloned().collect();
    let by = StagedBy { producer_id, epoch };
    for key in here {
        let deliveries = cluster.share_config(&key.group).deliveries();
        match cluster.share.live_mut(&key) {
            Some(live) => {
                live.machine.complete(by, committed, deliveries);
                cluster.share.wrote(&key);
                cluster.write_dead_letters(now, &key);
            }
            None => cluster.share.store.complete(&key, by, committed, deliveries),
        }
        // What a newer epoch of the producer staged stays.
        let left = match cluster.share.live(&key) {
            Some(live) => live.machine.stages(producer_id),
            None => cluster.share.store.stages(&key, producer_id),
        };
        if let Some(keys) = cluster.share.staged.get_mut(&producer_id).filter(|_| !left) {
            keys.remove(&key);
        }
        cluster.wake(&WaitKey::SharePartition(key.group, key.topic, key.partition));
    }
    if cluster.share.staged.get(&producer_id).is_some_and(std::collections::BTreeSet::is_empty) {
        cluster.share.staged.remove(&producer_id);
    }
}

/// Whether `member` is in the group at this epoch, or was at the one before, as heartbeats allow.
pub(crate) fn check_member(cluster: &Cluster, group: &Str, member: &Str, epoch: i32) -> Result<(), Refusal> {
    let refuse = |code: ErrorCode, why: String| Err(Refusal::new(code, why));
    let found = cluster.share.groups.get(group).and_then(|group| group.members.get(member));
    match found {
        None => refuse(
            ErrorCode::UNKNOWN_MEMBER_ID,
            format!("Member {} is not a member of group {}.", member.as_str(), group.as_str()),
        ),
        Some(known) if !known.is_at(epoch) => refuse(
            ErrorCode::FENCED_MEMBER_EPOCH,
            format!("The member epoch {epoch} is not the member's epoch {}.", known.epoch),
        ),
        Some(_) => Ok(()),
    }
}
