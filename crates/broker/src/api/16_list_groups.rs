//! ListGroups (v0-5): groups that this node coordinates. All are share groups.

use super::{Outcome, RequestContext};
use crate::cluster::{Cluster, CoordinatorKind};
use crate::security::Operation;
use kafka_share_messages::list_groups_response::ListedGroup;
use kafka_share_messages::{ListGroupsRequest, ListGroupsResponse};
use kafka_share_wire::Str;
use std::collections::HashSet;

pub(crate) fn handle(
    cluster: &mut Cluster,
    ctx: &RequestContext,
    request: ListGroupsRequest,
) -> Outcome<ListGroupsResponse> {
    let lower = |filter: &[Str]| filter.iter().map(|f| f.to_ascii_lowercase()).collect::<HashSet<_>>();
    let (states, types) = (lower(&request.states_filter), lower(&request.types_filter));
    let passes = |filter: &HashSet<String>, value: &str| filter.is_empty() || filter.contains(value);
    let listed = |(name, group): (&Str, &crate::group_coordinator::ShareGroup)| {
        let shown = passes(&states, &group.state().to_ascii_lowercase()) && passes(&types, "share");
        shown.then(|| ListedGroup {
            group_id: name.clone(),
            protocol_type: Str::from_static("share"),
            group_state: Str::from_static(group.state()),
            group_type: Str::from_static("share"),
            ..Default::default()
        })
    };
    let all: Vec<ListedGroup> = cluster.share.groups.iter().filter_map(listed).collect();
    let every = cluster.may_cluster(ctx, Operation::Describe).is_ok();
    let seen = |group: &ListedGroup| every || cluster.may_group(ctx, Operation::Describe, &group.group_id).is_ok();
    let all: Vec<ListedGroup> = all.into_iter().filter(seen).collect();
    let here = |group: &ListedGroup| cluster.coordinator_node(CoordinatorKind::Group, &group.group_id) == ctx.node;
    Outcome::Reply(ListGroupsResponse { groups: all.into_iter().filter(here).collect(), ..Default::default() })
}
