//! Groups: listing, members, deletion.

use super::topics::missing;
use super::{Admin, Outcomes, check};
use crate::Result;
use crate::net::{CoordinatorKind, Purpose};
use kafka_share_messages::share_group_describe_response::{DescribedGroup, Member};
use kafka_share_messages::{DeleteGroupsRequest, ErrorCode, ListGroupsRequest, Request, ShareGroupDescribeRequest};
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
    /// Group epoch: raised when members or subscriptions change.
    pub epoch: i32,
    /// Group epoch that the present assignment was worked out for.
    pub assignment_epoch: i32,
    /// Name of the assignor, `simple` say.
    pub assignor: String,
    /// Broker that coordinates the group.
    pub coordinator: i32,
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
    /// Host the member connects from, as the broker writes it (`/127.0.0.1`).
    pub host: String,
    /// `client.rack`, where the member has one.
    pub rack: Option<String>,
    /// Member epoch: raised by the coordinator at each change.
    pub epoch: i32,
    /// Topics the member subscribes to.
    pub subscription: Vec<String>,
    /// Topics and partitions assigned.
    pub assignment: Vec<(String, Vec<i32>)>,
}

/// Which groups [`Admin::list_groups_with`] lists. The default is all.
///
/// Brokers compare without regard to case; a type or state that they do not know lists nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GroupFilter {
    types: Vec<String>,
    states: Vec<String>,
}

impl GroupFilter {
    /// All share groups.
    #[must_use]
    pub fn share() -> Self {
        Self::default().group_type("share")
    }

    /// Also groups of this type: `share`, `consumer`, `classic` or `streams`.
    #[must_use]
    pub fn group_type(mut self, name: &str) -> Self {
        self.types.push(name.to_owned());
        self
    }

    /// Also groups in this state: `Empty`, `Stable` or `Dead` for share groups.
    #[must_use]
    pub fn state(mut self, name: &str) -> Self {
        self.states.push(name.to_owned());
        self
    }

    fn to_wire(&self) -> ListGroupsRequest {
        let strings = |names: &[String]| names.iter().map(Str::from).collect();
        ListGroupsRequest {
            types_filter: strings(&self.types),
            states_filter: strings(&self.states),
            ..ListGroupsRequest::default()
        }
    }
}

impl Admin {
    pub(super) async fn at_group<R: Request>(
        &self,
        group: &str,
        request: &R,
        code_of: impl Fn(&R::Response) -> ErrorCode,
    ) -> Result<R::Response> {
        self.cluster().call_coordinator(CoordinatorKind::Group, group, request, self.deadline(), code_of).await
    }

    /// All groups of all brokers.
    ///
    /// # Cancel safety
    /// Only asks (Metadata, ListGroups to each broker): nothing is half done.
    ///
    /// # Errors
    /// As [`Admin::list_groups_with`].
    pub async fn list_groups(&self) -> Result<Vec<GroupListing>> {
        self.list_groups_with(&GroupFilter::default()).await
    }

    /// Groups of all brokers, by type (KIP-848) and state (KIP-518), in the order of their ids.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let broker = kafka_share_broker::EmbeddedBroker::builder().start().await?;
    /// use kafka_share::admin::GroupFilter;
    /// use kafka_share::{Admin, ClientConfig};
    ///
    /// let admin = Admin::new(ClientConfig::new(&broker.bootstrap_servers()))?;
    /// for group in admin.list_groups_with(&GroupFilter::share().state("Empty")).await? {
    ///     println!("{} is {}", group.id, group.state);
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// # Cancel safety
    /// Only asks (Metadata, ListGroups to each broker): nothing is half done.
    ///
    /// # Errors
    /// Where a broker does not answer, or refuses.
    pub async fn list_groups_with(&self, filter: &GroupFilter) -> Result<Vec<GroupListing>> {
        let deadline = self.deadline();
        let request = filter.to_wire();
        retrying!(self, deadline, async {
            self.cluster().refresh_topics(&[], deadline).await?;
            let mut groups = BTreeMap::new();
            for node in self.cluster().node_ids() {
                let limit = self.cluster().request_deadline(deadline);
                let response = self.cluster().call_node(node, Purpose::Coordination, &request, limit).await?;
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
        })
    }

    /// A share group: its state, epochs, coordinator and members with what they are assigned.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let broker = kafka_share_broker::EmbeddedBroker::builder().start().await?;
    /// use kafka_share::{Admin, ClientConfig, ErrorCode};
    ///
    /// let admin = Admin::new(ClientConfig::new(&broker.bootstrap_servers()))?;
    /// match admin.describe_share_group("orders-group").await {
    ///     Ok(group) => println!("{} with {} members", group.state, group.members.len()),
    ///     Err(error) if error.code() == Some(ErrorCode::GROUP_ID_NOT_FOUND) => println!("no such group"),
    ///     Err(error) => return Err(error.into()),
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// # Cancel safety
    /// Only asks (FindCoordinator, ShareGroupDescribe): nothing is half done.
    ///
    /// # Errors
    /// GROUP_ID_NOT_FOUND, also for groups of other types, and other refusals.
    pub async fn describe_share_group(&self, group: &str) -> Result<ShareGroupDescription> {
        let deadline = self.deadline();
        let request = ShareGroupDescribeRequest { group_ids: vec![Str::from(group)], ..Default::default() };
        let what = format!("describing share group {group:?}");
        retrying!(self, deadline, async {
            let response =
                self.at_group(group, &request, |r| r.groups.first().map_or(ErrorCode::NONE, |g| g.error_code)).await?;
            let coordinator = self.cluster().coordinator(CoordinatorKind::Group, group, deadline).await?;
            let g = response.groups.first().ok_or_else(|| missing(&what))?;
            check(g.error_code, &what, g.error_message.as_ref())?;
            Ok(describe(g, coordinator))
        })
    }

    /// Several share groups, each as [`Admin::describe_share_group`].
    ///
    /// # Cancel safety
    /// Only asks (FindCoordinator and ShareGroupDescribe, group by group): nothing is half done.
    ///
    /// # Errors
    /// Per group, as of [`Admin::describe_share_group`].
    pub async fn describe_share_groups(&self, groups: &[&str]) -> Outcomes<ShareGroupDescription> {
        let mut outcomes = Vec::new();
        for group in groups {
            outcomes.push(((*group).to_owned(), self.describe_share_group(group).await));
        }
        outcomes
    }

    /// Deletes groups that have no members.
    ///
    /// Where members use the [ledger](crate::ledger), [`Admin::raise_ledger_generation`] comes first: records that come again
    /// in a group of the same name would be acknowledged without output.
    ///
    /// # Cancel safety
    /// A DeleteGroups goes out for each group, in their order, once the one before is answered. So groups before the
    /// one that was under way are deleted or refused, that one may be, and those after it are as they were. The same
    /// call may follow; what is gone is refused with GROUP_ID_NOT_FOUND then.
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

fn describe(g: &DescribedGroup, coordinator: i32) -> ShareGroupDescription {
    let member = |m: &Member| ShareGroupMember {
        id: m.member_id.to_string(),
        client_id: m.client_id.to_string(),
        host: m.client_host.to_string(),
        rack: m.rack_id.as_ref().map(ToString::to_string),
        epoch: m.member_epoch,
        subscription: m.subscribed_topic_names.iter().map(ToString::to_string).collect(),
        assignment: m
            .assignment
            .topic_partitions
            .iter()
            .map(|t| (t.topic_name.to_string(), t.partitions.clone()))
            .collect(),
    };
    ShareGroupDescription {
        id: g.group_id.to_string(),
        state: g.group_state.to_string(),
        epoch: g.group_epoch,
        assignment_epoch: g.assignment_epoch,
        assignor: g.assignor_name.to_string(),
        coordinator,
        members: g.members.iter().map(member).collect(),
    }
}
