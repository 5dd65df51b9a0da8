//! Groups as administrators see them: describing, listing, deleting, finding their coordinators.

use super::{ANY, SHARE};
use crate::Need;
use crate::case::list;
use crate::expect::{Check, code, equal, ok, that};
use crate::lab::{Lab, Member, SOON};
use kafka_share::net::{CoordinatorKind, Purpose};
use kafka_share_messages::share_group_describe_response::DescribedGroup;
use kafka_share_messages::{
    ApiKey, DeleteGroupsRequest, DeleteGroupsResponse, ErrorCode, FindCoordinatorRequest, ListGroupsRequest,
    ShareGroupDescribeRequest, ShareGroupDescribeResponse,
};
use kafka_share_wire::Str;
use std::time::{Duration, Instant};

const DESCRIBE: &[Need] = &[Need::Api(ApiKey::SHARE_GROUP_DESCRIBE, 1), Need::Feature("share.version", 1)];
const DELETE: &[Need] = &[Need::Api(ApiKey::DELETE_GROUPS, 2), Need::Feature("share.version", 1)];
const LIST: &[Need] = &[Need::Api(ApiKey::LIST_GROUPS, 5), Need::Feature("share.version", 1)];
const FIND: &[Need] = &[Need::Api(ApiKey::FIND_COORDINATOR, 6), Need::Feature("share.version", 1)];

list! {
    describe_of_no_group_is_told(932, DESCRIBE) "SHARE-GROUP-03";
    describe_of_an_empty_id_is_told(932, DESCRIBE) "SHARE-GROUP-04";
    describe_answers_each_group(932, DESCRIBE) "SHARE-GROUP-05";
    operations_are_told_where_asked_for(932, DESCRIBE) "SHARE-GROUP-06";
    operations_are_not_told_else(932, DESCRIBE) "SHARE-GROUP-06";
    group_without_members_is_empty(932, DESCRIBE) "SHARE-GROUP-07";
    assignor_is_simple(932, DESCRIBE) "SHARE-GROUP-08";
    group_epoch_rises_with_members(932, DESCRIBE) "SHARE-GROUP-09";
    describe_tells_the_client_id(932, DESCRIBE) "SHARE-GROUP-15";
    describe_tells_the_member_epoch(932, DESCRIBE) "SHARE-GROUP-16";
    deleting_no_group_is_refused(932, DELETE) "SHARE-GROUP-10";
    deleting_twice_is_refused(932, DELETE) "SHARE-GROUP-10";
    deleted_group_starts_anew(932, DELETE) "SHARE-GROUP-11";
    share_groups_are_listed(932, LIST) "SHARE-GROUP-12" => listed(&[], &["share"], true);
    share_groups_are_listed_without_filter(932, LIST) "SHARE-GROUP-12" => listed(&[], &[], true);
    other_types_leave_share_groups_out(932, LIST) "SHARE-GROUP-13" => listed(&[], &["consumer"], false);
    classic_leaves_share_groups_out(932, LIST) "SHARE-GROUP-13" => listed(&[], &["classic"], false);
    stable_groups_are_listed(932, LIST) "SHARE-GROUP-14" => listed(&["Stable"], &["share"], true);
    empty_leaves_stable_groups_out(932, LIST) "SHARE-GROUP-14" => listed(&["Empty"], &["share"], false);
    share_key_needs_its_form(932, FIND) "SHARE-GROUP-17" => not_found(2, "group");
    share_key_needs_a_topic_id(932, FIND) "SHARE-GROUP-17" => not_found(2, "group:topic:0");
    share_key_needs_a_partition(932, FIND) "SHARE-GROUP-17" => not_found(2, "group:AAAAAAAAAAAAAAAAAAAAAQ:x");
    unknown_coordinator_type_is_refused(932, ANY) "SHARE-GROUP-18" => not_found(9, "group");
    heartbeat_is_offered_from_version_1(932, SHARE) "SHARE-GROUP-19" => offered(ApiKey::SHARE_GROUP_HEARTBEAT);
    describe_is_offered_from_version_1(932, SHARE) "SHARE-GROUP-19" => offered(ApiKey::SHARE_GROUP_DESCRIBE);
    fetch_is_offered_from_version_1(932, SHARE) "SHARE-GROUP-19" => offered(ApiKey::SHARE_FETCH);
    acknowledge_is_offered_from_version_1(932, SHARE) "SHARE-GROUP-19" => offered(ApiKey::SHARE_ACKNOWLEDGE);
}

async fn describe(lab: &Lab, ids: &[&Str], operations: bool) -> Check<Vec<DescribedGroup>> {
    let request = ShareGroupDescribeRequest {
        group_ids: ids.iter().map(|id| (*id).clone()).collect(),
        include_authorized_operations: operations,
        ..Default::default()
    };
    let key = ids.iter().find(|id| !id.is_empty());
    let response: ShareGroupDescribeResponse = match key {
        Some(key) => {
            let code = |r: &ShareGroupDescribeResponse| r.groups.first().map_or(ErrorCode::NONE, |g| g.error_code);
            lab.coordinate(CoordinatorKind::Group, key, &request, None, code).await?
        }
        None => lab.call(lab.cluster(), lab.any_node().await?, Purpose::Coordination, &request, None).await?,
    };
    equal("rows of the answer", response.groups.len(), ids.len())?;
    Ok(response.groups)
}

async fn joined(lab: &Lab) -> Check<Member> {
    let topic = lab.topic(1).await?;
    let mut member = lab.member(&lab.plain_group()).await?;
    member.join(&topic).await?;
    Ok(member)
}

async fn describe_of_no_group_is_told(lab: Lab) -> Check {
    let row = describe(&lab, &[&lab.plain_group()], false).await?;
    code("describing a group that does not exist", row[0].error_code, &[ErrorCode::GROUP_ID_NOT_FOUND])
}

async fn describe_of_an_empty_id_is_told(lab: Lab) -> Check {
    let row = describe(&lab, &[&Str::default()], false).await?;
    code("describing an empty group id", row[0].error_code, &[ErrorCode::INVALID_GROUP_ID])
}

async fn describe_answers_each_group(lab: Lab) -> Check {
    let (member, unknown) = (joined(&lab).await?, lab.plain_group());
    let rows = describe(&lab, &[&member.group, &unknown], false).await?;
    let of = |id: &Str| rows.iter().find(|row| row.group_id == *id).map(|row| row.error_code);
    equal("code of the group", of(&member.group), Some(ErrorCode::NONE))?;
    // The other group may have another coordinator.
    let refused = of(&unknown).is_some_and(|c| c.is_err());
    that(refused, || format!("the group that does not exist: {:?}", of(&unknown)))
}

async fn operations_are_told_where_asked_for(lab: Lab) -> Check {
    let member = joined(&lab).await?;
    let rows = describe(&lab, &[&member.group], true).await?;
    let told = rows[0].authorized_operations;
    // READ is operation 3, and who joined has it.
    that(told >= 0 && told & (1 << 3) != 0, || format!("authorised operations {told:#x}"))
}

async fn operations_are_not_told_else(lab: Lab) -> Check {
    let member = joined(&lab).await?;
    let rows = describe(&lab, &[&member.group], false).await?;
    equal("authorised operations", rows[0].authorized_operations, i32::MIN)
}

async fn group_without_members_is_empty(lab: Lab) -> Check {
    let member = joined(&lab).await?;
    ok("leaving", member.heartbeat(-1, None).await?.error_code)?;
    let rows = describe(&lab, &[&member.group], false).await?;
    ok("describing the group", rows[0].error_code)?;
    equal("state", rows[0].group_state.as_str(), "Empty")?;
    equal("members", rows[0].members.len(), 0)
}

async fn assignor_is_simple(lab: Lab) -> Check {
    let member = joined(&lab).await?;
    let rows = describe(&lab, &[&member.group], false).await?;
    equal("assignor", rows[0].assignor_name.as_str(), "simple")
}

async fn group_epoch_rises_with_members(lab: Lab) -> Check {
    let topic = lab.topic(1).await?;
    let mut member = lab.member(&lab.plain_group()).await?;
    member.join(&topic).await?;
    let before = describe(&lab, &[&member.group], false).await?[0].group_epoch;
    let _other = lab.another(&member, &topic).await?;
    let after = describe(&lab, &[&member.group], false).await?[0].group_epoch;
    that(after > before, || format!("group epoch {after} after {before} and one more member"))
}

async fn describe_tells_the_client_id(lab: Lab) -> Check {
    let member = joined(&lab).await?;
    let rows = describe(&lab, &[&member.group], false).await?;
    let row = rows[0].members.iter().find(|m| m.member_id == member.id);
    let told = row.is_some_and(|m| !m.client_id.is_empty() && !m.client_host.is_empty());
    that(told, || format!("no client id or host in {row:?}"))
}

async fn describe_tells_the_member_epoch(lab: Lab) -> Check {
    let member = joined(&lab).await?;
    let rows = describe(&lab, &[&member.group], false).await?;
    let row = rows[0].members.iter().find(|m| m.member_id == member.id);
    equal("member epoch", row.map(|m| m.member_epoch), Some(member.epoch))
}

async fn delete(lab: &Lab, group: &Str) -> Check<ErrorCode> {
    let request = DeleteGroupsRequest { groups_names: vec![group.clone()], ..Default::default() };
    let of = |r: &DeleteGroupsResponse| r.results.first().map_or(ErrorCode::UNKNOWN_SERVER_ERROR, |g| g.error_code);
    Ok(of(&lab.coordinate(CoordinatorKind::Group, group, &request, None, of).await?))
}

async fn deleting_no_group_is_refused(lab: Lab) -> Check {
    let got = delete(&lab, &lab.plain_group()).await?;
    code("deleting a group that does not exist", got, &[ErrorCode::GROUP_ID_NOT_FOUND])
}

async fn deleting_twice_is_refused(lab: Lab) -> Check {
    let member = joined(&lab).await?;
    ok("leaving", member.heartbeat(-1, None).await?.error_code)?;
    ok("deleting", delete(&lab, &member.group).await?)?;
    code("deleting again", delete(&lab, &member.group).await?, &[ErrorCode::GROUP_ID_NOT_FOUND])
}

async fn deleted_group_starts_anew(lab: Lab) -> Check {
    let (topic, mut member) = lab.with_records(3).await?;
    member.acquire_exactly(&topic, 0..3, 1).await?;
    member.acknowledge_ok(&topic, &[(0, 2, &[1])]).await?;
    member.close_session(&topic).await?;
    ok("leaving", member.heartbeat(-1, None).await?.error_code)?;
    let group = member.group.clone();
    member.vanish();
    ok("deleting", delete(&lab, &group).await?)?;
    let mut later = lab.member(&group).await?;
    later.join(&topic).await?;
    later.acquire_exactly(&topic, 0..3, 1).await
}

async fn listed(lab: Lab, states: &[&'static str], types: &[&'static str], want: bool) -> Check {
    let member = joined(&lab).await?;
    let all = |names: &[&'static str]| names.iter().map(|n| Str::from_static(n)).collect();
    let request = ListGroupsRequest { states_filter: all(states), types_filter: all(types), ..Default::default() };
    let node = lab.cluster().coordinator(CoordinatorKind::Group, &member.group, lab.deadline()).await?;
    let until = Instant::now() + SOON / 4;
    loop {
        let response = lab.call(lab.cluster(), node, Purpose::Coordination, &request, Some(5)).await?;
        ok("ListGroups", response.error_code)?;
        let row = response.groups.iter().find(|g| g.group_id == member.group);
        if let Some(row) = row.filter(|_| want) {
            return equal("type of the group", row.group_type.as_str(), "share");
        }
        if row.is_none() && !want {
            return Ok(());
        }
        that(Instant::now() < until, || format!("states {states:?}, types {types:?}: listed is {row:?}"))?;
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

async fn not_found(lab: Lab, key_type: i8, key: &'static str) -> Check {
    let key = Str::from_static(key);
    let request = FindCoordinatorRequest { key_type, coordinator_keys: vec![key], ..Default::default() };
    let response = lab.call(lab.cluster(), lab.any_node().await?, Purpose::Coordination, &request, None).await?;
    let got = response.coordinators.first().map_or(response.error_code, |c| c.error_code);
    code("FindCoordinator", got, &[ErrorCode::INVALID_REQUEST])
}

async fn offered(lab: Lab, api: ApiKey) -> Check {
    let versions = lab.cluster().features(lab.deadline()).await?;
    let range = versions.range(api);
    that(range.is_some_and(|(min, max)| min == 1 && max >= 1), || format!("{api} is offered as {range:?}"))
}
