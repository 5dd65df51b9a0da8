//! What the cluster looks like inside, for people who debug a test: typed, with `Debug`, and as JSON.

use crate::cluster::Cluster;
use crate::txn_coordinator::{Participant, Txn};
use crate::{Now, ShareDump};
use serde::Serialize;
use std::collections::BTreeMap;

/// State of the cluster at one moment. Fields may be added.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ClusterDump {
    /// Milliseconds since the broker started.
    pub uptime_ms: u64,
    /// Milliseconds since 1970.
    pub wall_ms: i64,
    /// Open connections.
    pub connections: usize,
    /// Requests that wait, such as fetches without news.
    pub waiting_requests: usize,
    /// Partitions of all topics that clients created, by name.
    pub partitions: Vec<PartitionDump>,
    /// Transactional ids.
    pub transactions: Vec<TransactionDump>,
    /// Share groups.
    pub groups: Vec<GroupDump>,
    /// Share sessions and share-partitions, with their locks.
    pub share: ShareDump,
    /// Incremental fetch sessions (KIP-227).
    pub fetch_sessions: Vec<FetchSessionDump>,
}

impl ClusterDump {
    /// As indented JSON.
    #[must_use]
    pub fn to_json(&self) -> String {
        // Only maps with odd keys and failing writers can fail, and there are none.
        serde_json::to_string_pretty(self).unwrap_or_default()
    }
}

/// A partition's log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PartitionDump {
    /// Topic name.
    pub topic: String,
    /// Partition.
    pub partition: i32,
    /// Leader, -1 for none.
    pub leader: i32,
    /// Leader epoch.
    pub leader_epoch: i32,
    /// First offset.
    pub start_offset: i64,
    /// One after the last offset.
    pub end_offset: i64,
    /// Last stable offset: open transactions hold it back.
    pub last_stable_offset: i64,
    /// Bytes of records.
    pub bytes: usize,
    /// Producer ids that are known.
    pub producers: usize,
}

/// A transactional id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TransactionDump {
    /// The id.
    pub transactional_id: String,
    /// Kafka's name of the state, such as `Ongoing`.
    pub state: String,
    /// Producer id.
    pub producer_id: i64,
    /// Producer epoch.
    pub producer_epoch: i16,
    /// Transaction timeout, in milliseconds.
    pub timeout_ms: i32,
    /// When the open transaction began, in milliseconds since 1970.
    pub started_ms: Option<i64>,
    /// Topics and partitions whose records belong to the open transaction.
    pub partitions: BTreeMap<String, Vec<i32>>,
    /// Partitions of `__share_group_state` with acknowledgements that are staged in the open transaction.
    pub share_state_partitions: Vec<i32>,
    /// Producer id and epoch of who may end the prepared transaction (KIP-939), if it was kept.
    pub kept_by: Option<(i64, i16)>,
}

/// A share group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GroupDump {
    /// Group id.
    pub group: String,
    /// Kafka's name of the state.
    pub state: String,
    /// Group epoch.
    pub epoch: i32,
    /// Epoch of the assignment.
    pub assignment_epoch: i32,
    /// Members.
    pub members: Vec<MemberDump>,
}

/// A member of a share group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MemberDump {
    /// Member id.
    pub member: String,
    /// Client id.
    pub client: String,
    /// Member epoch.
    pub epoch: i32,
    /// Subscribed topics.
    pub topics: Vec<String>,
    /// Topic ids and partitions.
    pub assigned: Vec<(String, i32)>,
}

/// An incremental fetch session (KIP-227).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FetchSessionDump {
    /// Node that keeps it.
    pub node: i32,
    /// Its id.
    pub session: i32,
    /// Epoch that the next request must carry.
    pub epoch: i32,
    /// Partitions that it follows.
    pub partitions: usize,
}

impl Cluster {
    /// What the cluster looks like inside.
    #[must_use]
    pub fn dump(&self, now: Now) -> ClusterDump {
        ClusterDump {
            uptime_ms: u64::try_from(now.mono.as_millis()).unwrap_or(u64::MAX),
            wall_ms: now.wall_ms,
            connections: self.connection_count(),
            waiting_requests: self.waiting_requests(),
            partitions: self.dump_partitions(),
            transactions: self.transactions.iter().map(|txn| self.dump_transaction(txn)).collect(),
            groups: self.dump_groups(),
            share: self.share_dump(),
            fetch_sessions: self
                .fetch_sessions
                .iter()
                .map(|(node, session, epoch, partitions)| FetchSessionDump { node, session, epoch, partitions })
                .collect(),
        }
    }

    fn dump_partitions(&self) -> Vec<PartitionDump> {
        let mut all = Vec::new();
        for topic in self.topics.iter().filter(|topic| !topic.internal) {
            all.extend(topic.partitions.iter().enumerate().map(|(index, p)| PartitionDump {
                topic: topic.name.to_string(),
                partition: index as i32,
                leader: p.leader,
                leader_epoch: p.leader_epoch,
                start_offset: p.log.start_offset(),
                end_offset: p.log.high_watermark(),
                last_stable_offset: p.log.last_stable_offset(),
                bytes: p.log.bytes(),
                producers: p.log.producers().iter().count(),
            }));
        }
        all.sort_by(|a, b| (&a.topic, a.partition).cmp(&(&b.topic, b.partition)));
        all
    }

    fn dump_transaction(&self, txn: &Txn) -> TransactionDump {
        let mut partitions: BTreeMap<String, Vec<i32>> = BTreeMap::new();
        let mut share_state_partitions = Vec::new();
        for member in &txn.participants {
            match member {
                Participant::Partition(topic, index) => {
                    let name = self.topics.by_id(*topic).map_or_else(|| topic.to_string(), |t| t.name.to_string());
                    partitions.entry(name).or_default().push(*index);
                }
                Participant::ShareState(index) => share_state_partitions.push(*index),
            }
        }
        TransactionDump {
            transactional_id: txn.id.to_string(),
            state: txn.status.name().to_owned(),
            producer_id: txn.producer_id,
            producer_epoch: txn.epoch,
            timeout_ms: txn.timeout_ms,
            started_ms: Some(txn.start_ms).filter(|ms| *ms >= 0),
            partitions,
            share_state_partitions,
            kept_by: txn.kept_by,
        }
    }

    fn dump_groups(&self) -> Vec<GroupDump> {
        let group = |(id, group): (&kafka_share_wire::Str, &crate::group_coordinator::ShareGroup)| GroupDump {
            group: id.to_string(),
            state: group.state().to_owned(),
            epoch: group.epoch,
            assignment_epoch: group.assignment_epoch,
            members: group
                .members
                .iter()
                .map(|(id, member)| MemberDump {
                    member: id.to_string(),
                    client: member.client_id.to_string(),
                    epoch: member.epoch,
                    topics: member.topics.iter().map(ToString::to_string).collect(),
                    assigned: member.assigned.iter().map(|(topic, p)| (topic.to_string(), *p)).collect(),
                })
                .collect(),
        };
        self.share.groups.iter().map(group).collect()
    }
}
