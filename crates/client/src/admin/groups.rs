//! Share groups: listing, members, offsets.

use super::topics::missing;
use super::{Admin, Outcomes, check};
use crate::net::{CoordinatorKind, Purpose};
use crate::{Result, Uuid};
use kafka_share_messages::alter_share_group_offsets_request as alter;
use kafka_share_messages::delete_share_group_offsets_request::DeleteShareGroupOffsetsRequestTopic;
use kafka_share_messages::describe_share_group_offsets_request as offsets;
use kafka_share_messages::{
    AlterShareGroupOffsetsRequest, DeleteGroupsRequest, DeleteShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequest, ErrorCode, ListGroupsRequest, Request, ShareGroupDescribeRequest,
};
use kafka_share_wire::Str;
use std::collections::BTreeMap;

/// A group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupListing {
    /// Group id.
    pub id: String,
    /// `share`, `consumer`, `classic` or `streams`.
    pub group_type: String,
    /// State, `Empty` or `Stable` say.
    pub state: String,
}

/// A share group and its members.
#[derive(Debug, Clone)]
pub struct ShareGroupDescription {
    /// Group id.
    pub id: String,
    /// State, `Empty`, `Stable` or `Dead`.
    pub state: String,
    /// Group epoch.
    pub epoch: i32,
    /// Members.
    pub members: Vec<ShareGroupMember>,
}

/// A member of a share group.
#[derive(Debug, Clone)]
pub struct ShareGroupMember {
    /// Member id.
    pub id: String,
    /// `client.id`.
    pub client_id: String,
    /// Host the member connects from.
    pub host: String,
    /// Member epoch.
    pub epoch: i32,
    /// Topics and partitions assigned.
    pub assignment: Vec<(String, Vec<i32>)>,
}

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
    /// Records not yet done (KIP-1226); `None` where the broker cannot tell.
    pub lag: Option<i64>,
}

impl Admin {
    async fn at_group<R: Request>(
        &self,
        group: &str,
        request: &R,
        code_of: impl Fn(&R::Response) -> ErrorCode,
    ) -> Result<R::Response> {
        self.cluster().call_coordinator(CoordinatorKind::Group, group, request, self.deadline(), code_of).await
    }

    /// All groups of all brokers.
    ///
    /// # Errors
    /// Where a broker does not answer, or refuses.
    pub async fn list_groups(&self) -> Result<Vec<GroupListing>> {
        let deadline = self.deadline();
        self.cluster().refresh_topics(&[], deadline).await?;
        let mut groups = BTreeMap::new();
        for node in self.cluster().node_ids() {
            let request = ListGroupsRequest::default();
            let response = self.cluster().call_node(node, Purpose::Coordination, &request, deadline).await?;
            check(response.error_code, format_args!("listing groups of broker {node}"), None)?;
            for g in &response.groups {
                let listing = GroupListing {
                    id: g.group_id.to_string(),
                    group_type: g.group_type.to_ascii_lowercase(),
                    state: g.group_state.to_string(),
                };
                groups.insert(listing.id.clone(), listing);
            }
        }
        Ok(groups.into_values().collect())
    }

    /// A share group and its members.
    ///
    /// # Errors
    /// GROUP_ID_NOT_FOUND and other refusals.
    pub async fn describe_share_group(&self, group: &str) -> Result<ShareGroupDescription> {
        let request = ShareGroupDescribeRequest { group_ids: vec![Str::from(group)], ..Default::default() };
        let response =
            self.at_group(group, &request, |r| r.groups.first().map_or(ErrorCode::NONE, |g| g.error_code)).await?;
        let what = format!("describing share group {group:?}");
        let g = response.groups.first().ok_or_else(|| missing(&what))?;
        check(g.error_code, what, g.error_message.as_ref())?;
        let member = |m: &kafka_share_messages::share_group_describe_response::Member| ShareGroupMember {
            id: m.member_id.to_string(),
            client_id: m.client_id.to_string(),
            host: m.client_host.to_string(),
            epoch: m.member_epoch,
            assignment: m
                .assignment
                .topic_partitions
                .iter()
                .map(|t| (t.topic_name.to_string(), t.partitions.clone()))
                .collect(),
        };
        Ok(ShareGroupDescription {
            id: g.group_id.to_string(),
            state: g.group_state.to_string(),
            epoch: g.group_epoch,
            members: g.members.iter().map(member).collect(),
        })
    }

    /// Start offsets and lags of a share group, for all topics it has read.
    ///
    /// # Errors
    /// GROUP_ID_NOT_FOUND and other refusals, of the group or of one of its partitions.
    pub async fn describe_share_group_offsets(&self, group: &str) -> Result<Vec<SharePartitionOffset>> {
        let row = offsets::DescribeShareGroupOffsetsRequestGroup {
            group_id: Str::from(group),
            topics: None,
            ..Default::default()
        };
        let request = DescribeShareGroupOffsetsRequest { groups: vec![row], ..Default::default() };
        let response =
            self.at_group(group, &request, |r| r.groups.first().map_or(ErrorCode::NONE, |g| g.error_code)).await?;
        let what = format!("describing offsets of share group {group:?}");
        let g = response.groups.first().ok_or_else(|| missing(&what))?;
        check(g.error_code, &what, g.error_message.as_ref())?;
        let mut all = Vec::new();
        for topic in &g.topics {
            for p in &topic.partitions {
                check(p.error_code, &what, p.error_message.as_ref())?;
                all.push(SharePartitionOffset {
                    topic: topic.topic_name.to_string(),
                    topic_id: topic.topic_id,
                    partition: p.partition_index,
                    start_offset: (p.start_offset >= 0).then_some(p.start_offset),
                    lag: (p.lag >= 0).then_some(p.lag),
                });
            }
        }
        Ok(all)
    }

    /// Sets start offsets of a share group that has no members.
    ///
    /// # Errors
    /// NON_EMPTY_GROUP and other refusals, of the group or of one of its partitions.
    pub async fn alter_share_group_offsets(&self, group: &str, starts: &[(&str, i32, i64)]) -> Result<()> {
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
        check(response.error_code, &what, response.error_message.as_ref())?;
        for t in &response.responses {
            for p in &t.partitions {
                let what = format!("{what}: {}-{}", t.topic_name, p.partition_index);
                check(p.error_code, what, p.error_message.as_ref())?;
            }
        }
        Ok(())
    }

    /// Makes a share group without members forget topics.
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
        check(response.error_code, &what, response.error_message.as_ref())?;
        for t in &response.responses {
            check(t.error_code, format_args!("{what}: {}", t.topic_name), t.error_message.as_ref())?;
        }
        Ok(())
    }

    /// Deletes groups that have no members.
    ///
    /// # Errors
    /// Per group NON_EMPTY_GROUP, GROUP_ID_NOT_FOUND and other refusals.
    pub async fn delete_groups(&self, groups: &[&str]) -> Outcomes<()> {
        let mut outcomes = Vec::new();
        for group in groups {
            let request = DeleteGroupsRequest { groups_names: vec![Str::from(*group)], ..Default::default() };
            let code_of = |r: &kafka_share_messages::DeleteGroupsResponse| {
                r.results.first().map_or(ErrorCode::NONE, |g| g.error_code)
            };
            let what = format!("deleting group {group:?}");
            let result = self.at_group(group, &request, code_of).await.and_then(|response| {
                let row = response.results.first().ok_or_else(|| missing(&what))?;
                check(row.error_code, &what, row.error_message.as_ref())
            });
            outcomes.push(((*group).to_owned(), result));
        }
        outcomes
    }
}
