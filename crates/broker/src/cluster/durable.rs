//! What of the cluster outlives a restart: noted as it changes, taken by whoever keeps it, and restored.
//!
//! Sessions, locks, connections and waiting requests do not: clients begin anew, as after a restart of all brokers.

use super::{Cluster, Partition, Topic};
use crate::log::{LogDefect, PartitionLog};
use crate::persistence::{Changes, Decoder, Encoder, Key, LogChange, LogId, RestoreError, Saved};
use crate::rng::Rng;
use crate::settings::{GROUP_DEFINITIONS, Overrides, TOPIC_DEFINITIONS, TopicConfig, find};
use crate::share_coordinator::ShareKey;
use crate::share_partition::StoredShareState;
use crate::{ClusterConfig, Now};
use bytes::Bytes;
use kafka_share_wire::{Result as Decoded, Str, Uuid};
use std::collections::BTreeSet;

/// What has changed since the last [`Cluster::take_changes`].
#[derive(Debug, Default)]
pub(super) struct Dirty {
    /// Nobody keeps the changes of a cluster in memory.
    on: bool,
    topics: BTreeSet<Uuid>,
    logs: BTreeSet<LogId>,
    removed_logs: BTreeSet<LogId>,
    configs: BTreeSet<String>,
    /// The next producer id that is saved.
    producer_id: i64,
}

impl Dirty {
    pub(super) fn topic(&mut self, id: Uuid) {
        if self.on {
            self.topics.insert(id);
        }
    }

    pub(super) fn log(&mut self, id: LogId) {
        if self.on {
            self.logs.insert(id);
        }
    }

    pub(super) fn topic_removed(&mut self, id: Uuid, partitions: usize) {
        if self.on {
            self.topics.insert(id);
            self.removed_logs.extend((0..partitions as i32).map(|index| (id, index)));
        }
    }

    pub(super) fn group_config(&mut self, group: &str) {
        if self.on {
            self.configs.insert(group.to_owned());
        }
    }
}

fn put_overrides(out: &mut Encoder, overrides: &Overrides) {
    out.list(overrides.iter(), |out, (name, value)| {
        out.text(name).text(value);
    });
}

/// Settings that this version does not know are dropped.
fn overrides(input: &mut Decoder, definitions: &'static [crate::settings::Definition]) -> Decoded<Overrides> {
    let all: Vec<(Str, Str)> = input.list(|input| Ok((input.text()?, input.text()?)))?;
    let known = |(name, value): (Str, Str)| Some((find(definitions, &name)?.name, value.as_str().to_owned()));
    Ok(all.into_iter().filter_map(known).collect())
}

fn encode_topic(topic: &Topic) -> Bytes {
    let mut out = Encoder::default();
    out.text(&topic.name).bool(topic.internal);
    put_overrides(&mut out, &topic.overrides);
    out.list(topic.partitions.iter(), |out, partition| {
        out.i32(partition.leader).i32(partition.leader_epoch);
        out.list(partition.replicas.iter(), |out, node| {
            out.i32(*node);
        });
    });
    out.finish()
}

fn decode_topic(id: Uuid, value: Bytes) -> Decoded<Topic> {
    let mut input = Decoder::new(value);
    let (name, internal) = (input.text()?, input.bool()?);
    let overrides = overrides(&mut input, TOPIC_DEFINITIONS)?;
    let partitions = input.list(|input| {
        let (leader, leader_epoch) = (input.i32()?, input.i32()?);
        let replicas = input.list(Decoder::i32)?;
        Ok(Partition { leader, leader_epoch, replicas, log: PartitionLog::default() })
    })?;
    input.finish()?;
    Ok(Topic { id, name, internal, partitions, config: TopicConfig::new(&overrides), overrides })
}

impl Cluster {
    /// A cluster that goes on from what was saved, which may be nothing, and notes its changes.
    pub(crate) fn restore(config: ClusterConfig, seed: u64, now: Now, saved: Saved) -> Result<Cluster, RestoreError> {
        let mut cluster = Cluster::new(config, seed);
        let mut logs = saved.logs;
        let mut snapshots = Vec::new();
        for (key, value) in saved.values {
            match key {
                Key::Log(id) => snapshots.push((id, value)),
                key => cluster
                    .restore_value(now, &key, value)
                    .map_err(|error| RestoreError::Value(format!("{key:?}"), error.to_string()))?,
            }
        }
        let mut snapshots: std::collections::BTreeMap<LogId, Bytes> = snapshots.into_iter().collect();
        let mut bytes = 0;
        for topic in cluster.topics.iter_mut() {
            for (index, partition) in topic.partitions.iter_mut().enumerate() {
                let id = (topic.id, index as i32);
                let batches = logs.remove(&id).unwrap_or_default();
                let log = PartitionLog::restore(snapshots.remove(&id), &batches);
                partition.log = log.map_err(|LogDefect { position, why }| RestoreError::Log {
                    topic: topic.name.to_string(),
                    id,
                    partition: id.1,
                    position,
                    why,
                })?;
                bytes += partition.log.bytes();
            }
        }
        cluster.log_bytes = bytes;
        cluster.dirty.on = true;
        cluster.transactions.record();
        cluster.share.groups.record();
        cluster.share.track_changes();
        Ok(cluster)
    }

    fn restore_value(&mut self, now: Now, key: &Key, value: Bytes) -> Decoded<()> {
        let mut input = Decoder::new(value.clone());
        match key {
            Key::Cluster => {
                self.cluster_id = input.text()?.to_string();
                self.starts = input.i64()?;
            }
            Key::ProducerId => {
                self.dirty.producer_id = input.i64()?;
                self.transactions.restore_next_producer_id(self.dirty.producer_id);
            }
            Key::Topic(id) => self.topics.insert(decode_topic(*id, value)?),
            Key::GroupConfig(group) => {
                let overrides = overrides(&mut input, GROUP_DEFINITIONS)?;
                self.group_overrides.insert(group.to_string(), overrides);
            }
            Key::Txn(id) => self.transactions.restore(now, id, value)?,
            Key::Group(group) => {
                let timeout = self.group_config(group).session_timeout_ms;
                self.share.groups.restore(group, value, now.after_ms(timeout))?;
            }
            Key::Share(group, topic, partition) => {
                let key = ShareKey { group: group.clone(), topic: *topic, partition: *partition };
                self.share.restore_state(key, StoredShareState::decode(value)?);
            }
            Key::Log(_) => {}
        }
        Ok(())
    }

    /// Goes on after [`Cluster::restore`]: every partition gets a leader that lives under a new epoch, and what was
    /// decided before is completed.
    pub(crate) fn resume_service(&mut self, now: Now) {
        // Ids must differ from those of the runs before, under the same seed.
        if self.starts > 0 {
            let mixed = self.rng.next_u64() ^ (self.starts as u64).wrapping_mul(0xD1B5_4A32_D192_ED03);
            self.rng = Rng::new(mixed);
        }
        self.starts += 1;
        self.identity_changed = true;
        let all: Vec<LogId> = self
            .topics
            .iter()
            .flat_map(|topic| (0..topic.partitions.len() as i32).map(move |index| (topic.id, index)))
            .collect();
        for (id, index) in all {
            self.elect(now, id, index);
        }
        self.complete_transactions(now);
        self.run_woken(now);
    }

    /// What has changed since the last call; all of it belongs together.
    pub(crate) fn take_changes(&mut self) -> Changes {
        let mut changes = Changes::default();
        if !self.dirty.on {
            return changes;
        }
        if std::mem::take(&mut self.identity_changed) {
            let mut out = Encoder::default();
            out.text(&self.cluster_id).i64(self.starts);
            changes.values.insert(Key::Cluster, Some(out.finish()));
        }
        let next = self.transactions.next_producer_id();
        if std::mem::replace(&mut self.dirty.producer_id, next) != next {
            let mut out = Encoder::default();
            out.i64(next);
            changes.values.insert(Key::ProducerId, Some(out.finish()));
        }
        self.take_topics(&mut changes);
        self.take_logs(&mut changes);
        for group in std::mem::take(&mut self.dirty.configs) {
            let value = self.group_overrides.get(&group).map(|overrides| {
                let mut out = Encoder::default();
                put_overrides(&mut out, overrides);
                out.finish()
            });
            changes.values.insert(Key::GroupConfig(Str::from(group)), value);
        }
        for id in self.transactions.take_changed() {
            let value = self.transactions.get(&id).map(crate::txn_coordinator::Txn::encode);
            changes.values.insert(Key::Txn(id), value);
        }
        for group in self.share.groups.take_changed() {
            let value = self.share.groups.get(&group).map(crate::group_coordinator::ShareGroup::encode);
            changes.values.insert(Key::Group(group), value);
        }
        for key in self.share.changed() {
            let value = self.share.stored_state(&key).map(|state| state.encode());
            changes.values.insert(Key::Share(key.group, key.topic, key.partition), value);
        }
        changes
    }

    fn take_topics(&mut self, changes: &mut Changes) {
        for id in std::mem::take(&mut self.dirty.topics) {
            changes.values.insert(Key::Topic(id), self.topics.by_id(id).map(encode_topic));
        }
        for id in std::mem::take(&mut self.dirty.removed_logs) {
            changes.values.insert(Key::Log(id), None);
            changes.logs.insert(id, LogChange::Remove);
        }
    }

    fn take_logs(&mut self, changes: &mut Changes) {
        for id in std::mem::take(&mut self.dirty.logs) {
            let Some(partition) = self.topics.by_id_mut(id.0).and_then(|topic| topic.partition_mut(id.1)) else {
                continue;
            };
            let (snapshot, change) = partition.log.take_changes();
            if let Some(snapshot) = snapshot {
                changes.values.insert(Key::Log(id), Some(snapshot));
            }
            if let Some(change) = change {
                changes.logs.insert(id, change);
            }
        }
    }
}

#[cfg(test)]
#[path = "durable_tests.rs"]
pub(super) mod tests;
