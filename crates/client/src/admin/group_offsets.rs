//! Offsets of share groups: where they stand and how far behind, moving, resetting and forgetting them.

use super::topics::missing;
use super::{Admin, Isolation, OffsetSpec, check};
use crate::{Error, ErrorKind, Result, Uuid};
use kafka_share_messages::alter_share_group_offsets_request as alter;
use kafka_share_messages::delete_share_group_offsets_request::DeleteShareGroupOffsetsRequestTopic;
use kafka_share_messages::describe_share_group_offsets_request as describe;
use kafka_share_messages::{
    AlterShareGroupOffsetsRequest, DeleteShareGroupOffsetsRequest, DescribeShareGroupOffsetsRequest, ErrorCode,
};
use kafka_share_wire::Str;
use std::collections::BTreeMap;

/// Where a share group stands in a partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharePartitionOffset {
    /// Topic.
    pub topic: String,
    /// Its id.
    pub topic_id: Uuid,
    /// Partition.
    pub partition: i32,
    /// Share-partition start offset (SPSO): all before it is done. `None` before the first fetch.
    pub start_offset: Option<i64>,
    /// Term of the partition's leader when the offset was stored; `None` where the broker cannot tell.
    pub leader_epoch: Option<i32>,
    /// Records not yet done (KIP-1226); `None` where the broker cannot tell, as those before Kafka 4.3.
    pub lag: Option<i64>,
}

/// Where [`Admin::reset_share_group_offsets`] moves start offsets to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OffsetReset {
    /// The first record kept.
    Earliest,
    /// One after the last record, so that only new ones are delivered.
    Latest,
    /// The first record at or after a time, in milliseconds since 1970; the end where there is none.
    Timestamp(i64),
    /// This offset, which must be one that the partition has, or its end.
    Offset(i64),
}

/// Outcome per topic and partition.
pub type PartitionOutcomes = BTreeMap<(String, i32), Result<()>>;

impl Admin {
    /// Start offsets and lags of a share group, for all topics it has read.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let broker = kafka_share_broker::EmbeddedBroker::builder().topic("orders", 2).start().await?;
    /// # let servers = broker.bootstrap_servers();
    /// use kafka_share::admin::OffsetReset;
    /// use kafka_share::{Admin, ClientConfig};
    ///
    /// let admin = Admin::new(ClientConfig::new(&servers))?;
    /// admin.reset_share_group_offsets("orders-group", &["orders"], OffsetReset::Earliest).await?;
    /// for at in admin.describe_share_group_offsets("orders-group").await? {
    ///     println!("{}-{}: from {:?}, {:?} records to do", at.topic, at.partition, at.start_offset, at.lag);
    /// }
    /// # assert_eq!(admin.describe_share_group_offsets("orders-group").await?.len(), 2);
    /// # Ok(()) }
    /// ```
    ///
    /// # Cancel safety
    /// Only asks (FindCoordinator, DescribeShareGroupOffsets): nothing is half done.
    ///
    /// # Errors
    /// GROUP_ID_NOT_FOUND and other refusals, of the group or of one of its partitions.
    pub async fn describe_share_group_offsets(&self, group: &str) -> Result<Vec<SharePartitionOffset>> {
        let row = describe::DescribeShareGroupOffsetsRequestGroup {
            group_id: Str::from(group),
            topics: None,
            ..Default::default()
        };
        let request = DescribeShareGroupOffsetsRequest { groups: vec![row], ..Default::default() };
        let what = format!("describing offsets of share group {group:?}");
        let deadline = self.deadline();
        retrying!(self, deadline, async {
            let response =
                self.at_group(group, &request, |r| r.groups.first().map_or(ErrorCode::NONE, |g| g.error_code)).await?;
            let g = response.groups.first().ok_or_else(|| missing(&what))?;
            check(g.error_code, &what, g.error_message.as_ref())?;
            let mut all = Vec::new();
            for topic in &g.topics {
                for p in &topic.partitions {
                    let what = format_args!("{what}: {}-{}", topic.topic_name, p.partition_index).to_string();
                    check(p.error_code, what, p.error_message.as_ref())?;
                    all.push(SharePartitionOffset {
                        topic: topic.topic_name.to_string(),
                        topic_id: topic.topic_id,
                        partition: p.partition_index,
                        start_offset: (p.start_offset >= 0).then_some(p.start_offset),
                        leader_epoch: (p.leader_epoch >= 0).then_some(p.leader_epoch),
                        lag: (p.lag >= 0).then_some(p.lag),
                    });
                }
            }
            all.sort_by(|a, b| (&a.topic, a.partition).cmp(&(&b.topic, b.partition)));
            Ok(all)
        })
    }

    /// Sets start offsets of a share group that has no members. The group is created if it does not exist.
    ///
    /// Where members use the [ledger](crate::ledger), [`Admin::raise_ledger_generation`] comes first: records that come again
    /// would be acknowledged without output.
    ///
    /// # Cancel safety
    /// As [`Admin::alter_share_group_offsets_each`].
    ///
    /// # Errors
    /// NON_EMPTY_GROUP and other refusals of the group; else the first of those of its partitions, when the others are
    /// set. [`Admin::alter_share_group_offsets_each`] tells them apart.
    pub async fn alter_share_group_offsets(&self, group: &str, starts: &[(&str, i32, i64)]) -> Result<()> {
        self.alter_share_group_offsets_each(group, starts).await?.into_values().collect()
    }

    /// Sets start offsets of a share group that has no members, with an outcome per partition.
    ///
    /// Where members use the [ledger](crate::ledger), [`Admin::raise_ledger_generation`] comes first: records that come again
    /// would be acknowledged without output.
    ///
    /// # Cancel safety
    /// One AlterShareGroupOffsets has all of `starts`. Where it had not gone out, nothing is moved, and no group
    /// created; else each partition is moved or refused by itself, and only the answers are lost.
    /// [`Admin::describe_share_group_offsets`] tells, and the same call may follow.
    ///
    /// # Errors
    /// NON_EMPTY_GROUP and other refusals of the group, when none is set; brokers before Kafka 4.2, which cannot do it.
    pub async fn alter_share_group_offsets_each(
        &self,
        group: &str,
        starts: &[(&str, i32, i64)],
    ) -> Result<PartitionOutcomes> {
        let mut topics: BTreeMap<&str, Vec<alter::AlterShareGroupOffsetsRequestPartition>> = BTreeMap::new();
        for (topic, partition, start) in starts {
            topics.entry(topic).or_default().push(alter::AlterShareGroupOffsetsRequestPartition {
                partition_index: *partition,
                start_offset: *start,
                ..Default::default()
            });
        }
        let row = |(name, partitions): (&str, Vec<_>)| alter::AlterShareGroupOffsetsRequestTopic {
            topic_name: Str::from(name),
            partitions,
            ..Default::default()
        };
        let topics = topics.into_iter().map(row).collect();
        let request = AlterShareGroupOffsetsRequest { group_id: Str::from(group), topics, ..Default::default() };
        let response = self.at_group(group, &request, |r| r.error_code).await?;
        let what = format!("altering offsets of share group {group:?}");
        check_group(response.error_code, &what, response.error_message.as_ref())?;
        if response.responses.is_empty() && !starts.is_empty() {
            return Err(not_implemented(&what));
        }
        let mut outcomes = PartitionOutcomes::new();
        for t in &response.responses {
            for p in &t.partitions {
                let what = format!("{what}: {}-{}", t.topic_name, p.partition_index);
                let result = check(p.error_code, what, p.error_message.as_ref());
                outcomes.insert((t.topic_name.to_string(), p.partition_index), result);
            }
        }
        // A broker that says nothing of a partition has not moved it.
        for (topic, partition, _) in starts {
            let key = ((*topic).to_owned(), *partition);
            outcomes.entry(key).or_insert_with(|| Err(missing(&format!("{what}: {topic}-{partition}"))));
        }
        Ok(outcomes)
    }

    /// Moves the start offsets of a share group that has no members, in all partitions of `topics`, or of all topics
    /// that the group has read where `topics` is empty. Answers what they were moved to, by topic and partition.
    ///
    /// Where members use the [ledger](crate::ledger), [`Admin::raise_ledger_generation`] comes first: records that come again
    /// would be acknowledged without output.
    ///
    /// # Cancel safety
    /// The offsets are asked for first (Metadata, ListOffsets, and DescribeShareGroupOffsets where `topics` is empty),
    /// which changes nothing; then one AlterShareGroupOffsets moves all partitions, so that never only a part of them
    /// is asked to move: see [`Admin::alter_share_group_offsets_each`]. The same call may follow; it asks for the
    /// offsets anew, and an [`OffsetReset::Latest`] may be another then.
    ///
    /// # Errors
    /// NON_EMPTY_GROUP: stop its members first; topics that do not exist; offsets that a partition does not have;
    /// `topics` empty and a group that has read none.
    pub async fn reset_share_group_offsets(
        &self,
        group: &str,
        topics: &[&str],
        to: OffsetReset,
    ) -> Result<BTreeMap<(String, i32), i64>> {
        let plan = self.plan_share_group_reset(group, topics, to).await?;
        let starts: Vec<(&str, i32, i64)> =
            plan.iter().map(|((topic, partition), offset)| (topic.as_str(), *partition, *offset)).collect();
        self.alter_share_group_offsets(group, &starts).await?;
        Ok(plan)
    }

    /// What [`Admin::reset_share_group_offsets`] would move start offsets to. Changes nothing.
    ///
    /// # Cancel safety
    /// Only asks (Metadata, ListOffsets, DescribeShareGroupOffsets): nothing is half done.
    ///
    /// # Errors
    /// As [`Admin::reset_share_group_offsets`], except for members.
    pub async fn plan_share_group_reset(
        &self,
        group: &str,
        topics: &[&str],
        to: OffsetReset,
    ) -> Result<BTreeMap<(String, i32), i64>> {
        let mut names: Vec<String> = topics.iter().map(|t| (*t).to_owned()).collect();
        if names.is_empty() {
            names = self.describe_share_group_offsets(group).await?.into_iter().map(|o| o.topic).collect();
            names.dedup();
        }
        if names.is_empty() {
            let text = format!("share group {group:?} has read no topic: name the topics to reset");
            return Err(Error::new(ErrorKind::InvalidInput, text));
        }
        self.check_topics(&names).await?;
        let mut plan = BTreeMap::new();
        for name in names {
            let offsets = self.reset_targets(&name, to).await?;
            plan.extend(offsets.into_iter().zip(0..).map(|(offset, partition)| ((name.clone(), partition), offset)));
        }
        Ok(plan)
    }

    /// Says at once which topics do not exist; asking for their offsets would wait for them.
    async fn check_topics(&self, names: &[String]) -> Result<()> {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        self.describe_topics(&names).await?.into_iter().try_for_each(|(_, outcome)| outcome.map(|_| ()))
    }

    async fn reset_targets(&self, topic: &str, to: OffsetReset) -> Result<Vec<i64>> {
        // A group skips what it must not see by itself, so the log's end is right under both isolation levels.
        let ask = |spec| self.list_offsets(topic, spec, Isolation::ReadUncommitted);
        match to {
            OffsetReset::Earliest => ask(OffsetSpec::Earliest).await,
            OffsetReset::Latest => ask(OffsetSpec::Latest).await,
            OffsetReset::Timestamp(time) if time < 0 => {
                let text = format!("timestamp {time} is before 1970: give milliseconds since then");
                Err(Error::new(ErrorKind::InvalidInput, text))
            }
            OffsetReset::Timestamp(time) => {
                let (found, ends) = (ask(OffsetSpec::Timestamp(time)).await?, ask(OffsetSpec::Latest).await?);
                Ok(found.into_iter().zip(ends).map(|(at, end)| if at < 0 { end } else { at }).collect())
            }
            OffsetReset::Offset(offset) => {
                let (starts, ends) = (ask(OffsetSpec::Earliest).await?, ask(OffsetSpec::Latest).await?);
                for (partition, (start, end)) in starts.iter().zip(&ends).enumerate() {
                    if !(start..=end).contains(&&offset) {
                        let text =
                            format!("{topic}-{partition} has offsets {start} to {end}, {offset} is not among them");
                        return Err(Error::new(ErrorKind::InvalidInput, text));
                    }
                }
                Ok(vec![offset; ends.len()])
            }
        }
    }

    /// Makes a share group without members forget topics.
    ///
    /// Where members use the [ledger](crate::ledger), [`Admin::raise_ledger_generation`] comes first: records that come again
    /// would be acknowledged without output.
    ///
    /// # Cancel safety
    /// One DeleteShareGroupOffsets has all `topics`. Where it had not gone out, all is as it was; else each topic is
    /// forgotten or refused, and only the answers are lost. The same call may follow, and may be refused for topics
    /// that are forgotten already.
    ///
    /// # Errors
    /// NON_EMPTY_GROUP and other refusals, of the group or of one of its topics.
    pub async fn delete_share_group_offsets(&self, group: &str, topics: &[&str]) -> Result<()> {
        let row =
            |name: &&str| DeleteShareGroupOffsetsRequestTopic { topic_name: Str::from(*name), ..Default::default() };
        let topics = topics.iter().map(row).collect();
        let request = DeleteShareGroupOffsetsRequest { group_id: Str::from(group), topics, ..Default::default() };
        let response = self.at_group(group, &request, |r| r.error_code).await?;
        let what = format!("deleting offsets of share group {group:?}");
        check_group(response.error_code, &what, response.error_message.as_ref())?;
        if response.responses.len() < request.topics.len() {
            return Err(missing(&what));
        }
        for t in &response.responses {
            check(t.error_code, format_args!("{what}: topic {:?}", t.topic_name), t.error_message.as_ref())?;
        }
        Ok(())
    }
}

/// Kafka 4.1 offers the request and answers it with nothing, having done nothing.
fn not_implemented(what: &str) -> Error {
    let text = format!("{what}: the broker takes the request and does nothing; it needs Kafka 4.2");
    Error::new(ErrorKind::Unsupported, text)
}

/// Says what to do about members, which the broker's own text does not.
fn check_group(code: ErrorCode, what: &str, detail: Option<&Str>) -> Result<()> {
    let detail = if code == ErrorCode::NON_EMPTY_GROUP { None } else { detail };
    let result = check(code, what, detail);
    if code == ErrorCode::NON_EMPTY_GROUP {
        return result.map_err(|e| e.context("the group has members, stop them first"));
    }
    result
}
