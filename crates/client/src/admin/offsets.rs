//! Offsets of partitions.

use super::Admin;
use crate::net::Purpose;
use crate::{Error, ErrorKind, Result};
use kafka_share_core::metadata::Topic;
use kafka_share_messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
use kafka_share_messages::{ErrorCode, ListOffsetsRequest};
use std::collections::BTreeMap;
use std::time::Instant;

/// Which offset is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OffsetSpec {
    /// The first one kept.
    Earliest,
    /// One after the last; with [`Isolation::ReadCommitted`] the last stable offset.
    Latest,
    /// The first at or after a time, in milliseconds since 1970; -1 where there is none.
    Timestamp(i64),
}

/// Whether records of open and aborted transactions are seen (`isolation.level`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Isolation {
    /// They are.
    ReadUncommitted,
    /// They are not.
    #[default]
    ReadCommitted,
}

impl Isolation {
    pub(crate) fn code(self) -> i8 {
        i8::from(self == Isolation::ReadCommitted)
    }
}

impl Admin {
    /// Offsets of a topic's partitions, in the order of their numbers.
    ///
    /// # Cancel safety
    /// Only asks (Metadata, ListOffsets to each leader): nothing is half done.
    ///
    /// # Errors
    /// Topics that do not exist, refusals, partitions without a leader for too long.
    pub async fn list_offsets(&self, topic: &str, spec: OffsetSpec, isolation: Isolation) -> Result<Vec<i64>> {
        let deadline = self.deadline();
        retrying!(self, deadline, async {
            let described = self.cluster().topic(topic, false, deadline).await?;
            let result = self.offsets_once(&described, spec, isolation, deadline).await;
            if result.as_ref().is_err_and(Error::is_retriable) {
                self.cluster().refresh_topics(std::slice::from_ref(&described.name), deadline).await?;
            }
            result
        })
    }

    async fn offsets_once(
        &self,
        topic: &Topic,
        spec: OffsetSpec,
        isolation: Isolation,
        deadline: Instant,
    ) -> Result<Vec<i64>> {
        let mut by_leader: BTreeMap<i32, Vec<ListOffsetsPartition>> = BTreeMap::new();
        for (partition, leader) in topic.leaders.iter().enumerate() {
            if leader.id < 0 {
                let what = format_args!("offsets of {}-{partition}", topic.name).to_string();
                return Err(Error::broker(ErrorCode::LEADER_NOT_AVAILABLE, what, None));
            }
            by_leader.entry(leader.id).or_default().push(ListOffsetsPartition {
                partition_index: partition as i32,
                current_leader_epoch: -1,
                timestamp: match spec {
                    OffsetSpec::Earliest => -2,
                    OffsetSpec::Latest => -1,
                    OffsetSpec::Timestamp(time) => time,
                },
                ..ListOffsetsPartition::default()
            });
        }
        let mut offsets = vec![None; topic.leaders.len()];
        for (leader, partitions) in by_leader {
            let row = ListOffsetsTopic { name: topic.name.clone(), partitions, ..ListOffsetsTopic::default() };
            let request = ListOffsetsRequest {
                replica_id: -1,
                isolation_level: isolation.code(),
                topics: vec![row],
                timeout_ms: super::millis_left(self.cluster().request_deadline(deadline)),
                ..ListOffsetsRequest::default()
            };
            let limit = self.cluster().request_deadline(deadline);
            let response = self.cluster().call_node(leader, Purpose::Coordination, &request, limit).await?;
            for p in response.topics.iter().flat_map(|t| &t.partitions) {
                super::check(p.error_code, format_args!("offsets of {}-{}", topic.name, p.partition_index), None)?;
                if let Some(slot) = usize::try_from(p.partition_index).ok().and_then(|i| offsets.get_mut(i)) {
                    *slot = Some(p.offset);
                }
            }
        }
        let whole: Option<Vec<i64>> = offsets.into_iter().collect();
        whole.ok_or_else(|| {
            Error::new(ErrorKind::Protocol, format!("offsets of {:?}: a partition is left out", topic.name))
        })
    }
}
