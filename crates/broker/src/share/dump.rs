//! What share groups look like inside, for debugging.

use crate::cluster::Cluster;
use crate::share_coordinator::ShareKey;
use serde::Serialize;

/// State of all share groups.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ShareDump {
    /// Sessions, by node, group and member.
    pub sessions: Vec<ShareSessionDump>,
    /// Share-partitions at their leaders, by group, topic and partition.
    pub partitions: Vec<SharePartitionDump>,
}

/// A share session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ShareSessionDump {
    /// Node that keeps it.
    pub node: i32,
    /// Group id.
    pub group: String,
    /// Member id.
    pub member: String,
    /// Epoch that the next request must carry.
    pub epoch: i32,
    /// Topic ids and partitions.
    pub partitions: Vec<(String, i32)>,
}

/// A share-partition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SharePartitionDump {
    /// Group id.
    pub group: String,
    /// Topic name.
    pub topic: String,
    /// Partition.
    pub partition: i32,
    /// Leader.
    pub leader: i32,
    /// Share-partition start offset: nothing below comes again.
    pub start_offset: i64,
    /// One after the last record in flight.
    pub end_offset: i64,
    /// Records under an acquisition lock.
    pub acquired: i64,
    /// Records in flight that wait for redelivery.
    pub available: i64,
    /// Records staged in transactions.
    pub pending: i64,
    /// Records that are to go to the dead letter queue.
    pub archiving: i64,
    /// Acquisition locks, by offset.
    pub locks: Vec<LockDump>,
}

/// An acquisition lock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LockDump {
    /// First offset.
    pub first_offset: i64,
    /// Last offset.
    pub last_offset: i64,
    /// Member that holds it.
    pub member: String,
    /// Times that the records were delivered.
    pub delivery_count: i16,
    /// When it expires, in milliseconds since the broker started.
    pub expires_ms: u64,
}

impl Cluster {
    /// Sessions and share-partitions, for debugging.
    #[must_use]
    pub fn share_dump(&self) -> ShareDump {
        let sessions = self.share.sessions.iter().map(|(key, session)| ShareSessionDump {
            node: key.node,
            group: key.group.to_string(),
            member: key.member.to_string(),
            epoch: session.epoch,
            partitions: session.partitions.iter().map(|(topic, p)| (topic.to_string(), *p)).collect(),
        });
        let partitions = self.share.all_live().map(|(group, (topic, partition), live)| SharePartitionDump {
            group: group.to_string(),
            topic: self.topics.by_id(*topic).map_or_else(|| topic.to_string(), |topic| topic.name.to_string()),
            partition: *partition,
            leader: live.leader,
            start_offset: live.machine.start(),
            end_offset: live.machine.end(),
            acquired: live.machine.acquired_records(),
            available: live.machine.available_records(),
            pending: live.machine.pending_records(),
            archiving: live.machine.archiving_records(),
            locks: live.machine.locks().collect(),
        });
        let mut partitions: Vec<SharePartitionDump> = partitions.collect();
        partitions.sort_by(|a, b| (&a.group, &a.topic, a.partition).cmp(&(&b.group, &b.topic, b.partition)));
        ShareDump { sessions: sessions.collect(), partitions }
    }

    /// Lets all acquisition locks of a group expire now; says how many share-partitions had any.
    pub fn expire_share_locks(&mut self, now: crate::Now, group: &str) -> usize {
        let group = kafka_share_wire::Str::from(group);
        let deliveries = self.share_config(&group).deliveries();
        let mut freed: Vec<(kafka_share_wire::Uuid, i32)> = Vec::new();
        for (tp, live) in self.share.live.get_mut(&group).into_iter().flatten() {
            if live.machine.expire_all(deliveries) {
                freed.push(*tp);
            }
        }
        freed.sort_unstable();
        for (topic, partition) in &freed {
            let key = ShareKey { group: group.clone(), topic: *topic, partition: *partition };
            self.share.wrote(&key);
            self.write_dead_letters(now, &key);
            self.wake(&crate::cluster::WaitKey::SharePartition(group.clone(), *topic, *partition));
        }
        self.run_woken(now);
        freed.len()
    }
}
