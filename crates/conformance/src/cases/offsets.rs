//! Start offsets and lag of share-partitions, as the group coordinator tells and sets them.

use crate::Need;
use crate::case::list;
use crate::expect::{Check, code, ok};
use crate::lab::{Lab, Producer, Topic};
use kafka_share::net::CoordinatorKind;
use kafka_share_messages::alter_share_group_offsets_request::{
    AlterShareGroupOffsetsRequestPartition, AlterShareGroupOffsetsRequestTopic,
};
use kafka_share_messages::{
    AlterShareGroupOffsetsRequest, AlterShareGroupOffsetsResponse, ApiKey, DeleteGroupsRequest, DeleteGroupsResponse,
    ErrorCode,
};
use kafka_share_wire::Str;

const OFFSETS: &[Need] = &[Need::Api(ApiKey::DESCRIBE_SHARE_GROUP_OFFSETS, 0), Need::Feature("share.version", 1)];
const ALTER: &[Need] = &[
    Need::Api(ApiKey::DESCRIBE_SHARE_GROUP_OFFSETS, 0),
    Need::Api(ApiKey::ALTER_SHARE_GROUP_OFFSETS, 0),
    Need::Feature("share.version", 1),
];
const DELETE: &[Need] = &[Need::Api(ApiKey::DELETE_GROUPS, 2), Need::Feature("share.version", 1)];
const LAG: &[Need] = &[Need::Api(ApiKey::DESCRIBE_SHARE_GROUP_OFFSETS, 1), Need::Feature("share.version", 1)];

list! {
    start_offset_follows_the_oldest_open_record(932, OFFSETS) "SHARE-OFFSET-01";
    lag_counts_what_is_not_done(1226, LAG) "SHARE-OFFSET-02";
    offsets_of_an_empty_group_can_be_set(932, ALTER) "SHARE-OFFSET-03";
    offsets_of_a_group_with_members_cannot_be_set(932, ALTER) "SHARE-OFFSET-04";
    group_with_members_cannot_be_deleted(932, DELETE) "SHARE-GROUP-02";
}

async fn start_offset_follows_the_oldest_open_record(lab: Lab) -> Check {
    let (topic, mut member) = lab.with_records(5).await?;
    member.acquire_exactly(&topic, 0..5, 1).await?;
    member.acknowledge_ok(&topic, &[(0, 1, &[1]), (3, 4, &[1])]).await?;
    lab.lag_becomes(&member.group, &topic, 2, 1).await?;
    member.acknowledge_ok(&topic, &[(2, 2, &[3])]).await?;
    lab.lag_becomes(&member.group, &topic, 5, 0).await?;
    Producer::plain(&lab).await?.produce(&topic, 0, 1).await?;
    member.acquire_exactly(&topic, 5..6, 1).await?;
    member.acknowledge_ok(&topic, &[(5, 5, &[1])]).await?;
    lab.offsets_become(&member.group, &topic, "a start offset of 5 or 6", |got| (5..=6).contains(&got.0)).await
}

async fn lag_counts_what_is_not_done(lab: Lab) -> Check {
    let (topic, mut member) = lab.with_records(6).await?;
    member.acquire_exactly(&topic, 0..6, 1).await?;
    member.acknowledge_ok(&topic, &[(0, 1, &[1]), (3, 3, &[1])]).await?;
    lab.offsets_become(&member.group, &topic, "lag 3", |got| got.0 <= 2 && got.1 == 3).await?;
    member.acknowledge_ok(&topic, &[(2, 2, &[1]), (4, 5, &[3])]).await?;
    lab.offsets_become(&member.group, &topic, "lag 0", |got| got.0 <= 6 && got.1 == 0).await
}

async fn alter(lab: &Lab, group: &Str, topic: &Topic, start_offset: i64) -> Check<ErrorCode> {
    let row = AlterShareGroupOffsetsRequestPartition { partition_index: 0, start_offset, ..Default::default() };
    let row = AlterShareGroupOffsetsRequestTopic {
        topic_name: topic.name.clone(),
        partitions: vec![row],
        ..Default::default()
    };
    let request = AlterShareGroupOffsetsRequest { group_id: group.clone(), topics: vec![row], ..Default::default() };
    let code = |r: &AlterShareGroupOffsetsResponse| {
        let rows = r.responses.iter().flat_map(|t| &t.partitions).map(|p| p.error_code);
        std::iter::once(r.error_code).chain(rows).find(|c| c.is_err()).unwrap_or_default()
    };
    let response = lab.coordinate(CoordinatorKind::Group, group, &request, None, code).await?;
    Ok(code(&response))
}

async fn offsets_of_an_empty_group_can_be_set(lab: Lab) -> Check {
    let (topic, mut member) = lab.with_records(5).await?;
    member.acquire_exactly(&topic, 0..5, 1).await?;
    member.acknowledge_ok(&topic, &[(0, 4, &[1])]).await?;
    member.close_session(&topic).await?;
    ok("leaving", member.heartbeat(-1, None).await?.error_code)?;
    let group = member.group.clone();
    member.vanish();
    ok("AlterShareGroupOffsets of an empty group", alter(&lab, &group, &topic, 3).await?)?;
    lab.offsets_become(&group, &topic, "start offset 3", |got| got.0 == 3).await?;
    let mut later = lab.member(&group).await?;
    later.join(&topic).await?;
    later.acquire_exactly(&topic, 3..5, 1).await
}

async fn offsets_of_a_group_with_members_cannot_be_set(lab: Lab) -> Check {
    let (topic, member) = lab.with_records(5).await?;
    let got = alter(&lab, &member.group, &topic, 3).await?;
    code("AlterShareGroupOffsets of a group with members", got, &[ErrorCode::NON_EMPTY_GROUP])
}

async fn group_with_members_cannot_be_deleted(lab: Lab) -> Check {
    let (_, member) = lab.with_records(0).await?;
    let request = DeleteGroupsRequest { groups_names: vec![member.group.clone()], ..Default::default() };
    let of = |r: &DeleteGroupsResponse| r.results.first().map_or(ErrorCode::UNKNOWN_SERVER_ERROR, |g| g.error_code);
    let response = lab.coordinate(CoordinatorKind::Group, &member.group, &request, None, of).await?;
    code("DeleteGroups of a group with members", of(&response), &[ErrorCode::NON_EMPTY_GROUP])?;
    ok("leaving", member.heartbeat(-1, None).await?.error_code)?;
    let response = lab.coordinate(CoordinatorKind::Group, &member.group, &request, None, of).await?;
    ok("DeleteGroups of an empty group", of(&response))
}
