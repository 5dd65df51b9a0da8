//! DeleteGroups (v0-3): deletes share groups without members, with their share state.

use super::{Outcome, RequestContext};
use crate::cluster::{Cluster, CoordinatorKind};
use crate::security::Operation;
use kafka_share_messages::delete_groups_response::DeletableGroupResult;
use kafka_share_messages::{DeleteGroupsRequest, DeleteGroupsResponse, ErrorCode};
use kafka_share_wire::Str;
use std::collections::HashSet;

pub(crate) fn handle(
    cluster: &mut Cluster,
    ctx: &RequestContext,
    request: DeleteGroupsRequest,
) -> Outcome<DeleteGroupsResponse> {
    let result = |group: Str| {
        let error_code = delete(cluster, ctx, &group).err().unwrap_or(ErrorCode::NONE);
        DeletableGroupResult { group_id: group, error_code, ..Default::default() }
    };
    // A group that is named twice is answered once, as in Kafka.
    let mut seen = HashSet::new();
    let names = request.groups_names.into_iter().filter(|name| seen.insert(name.clone()));
    Outcome::Reply(DeleteGroupsResponse { results: names.map(result).collect(), ..Default::default() })
}

fn delete(cluster: &mut Cluster, ctx: &RequestContext, name: &Str) -> Result<(), ErrorCode> {
    cluster.may_group(ctx, Operation::Delete, name)?;
    cluster.check_coordinator(ctx.node, CoordinatorKind::Group, name)?;
    let group = cluster.share.groups.get(name).ok_or(ErrorCode::GROUP_ID_NOT_FOUND)?;
    if !group.members.is_empty() {
        return Err(ErrorCode::NON_EMPTY_GROUP);
    }
    cluster.share.groups.delete(name);
    cluster.share.delete_state(name, None);
    Ok(())
}
