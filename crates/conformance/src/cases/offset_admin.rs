//! Describing, setting and deleting offsets of share groups, in detail.

use crate::Need;
use crate::case::list;
use crate::expect::{Check, code, equal, fail, ok, that};
use crate::lab::{Lab, Member, Producer, Topic};
use kafka_share::net::CoordinatorKind;
use kafka_share_messages::alter_share_group_offsets_request as alter;
use kafka_share_messages::delete_share_group_offsets_request as delete;
use kafka_share_messages::describe_share_group_offsets_request as describe;
use kafka_share_messages::{
    AlterShareGroupOffsetsRequest, AlterShareGroupOffsetsResponse, ApiKey, DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse, DescribeShareGroupOffsetsRequest, DescribeShareGroupOffsetsResponse, ErrorCode,
    ShareGroupDescribeRequest, ShareGroupDescribeResponse,
};
use kafka_share_wire::Str;

const OFFSETS: &[Need] = &[Need::Api(ApiKey::DESCRIBE_SHARE_GROUP_OFFSETS, 0), Need::Feature("share.version", 1)];
const LAG: &[Need] = &[Need::Api(ApiKey::DESCRIBE_SHARE_GROUP_OFFSETS, 1), Need::Feature("share.version", 1)];
const ALTER: &[Need] = &[
    Need::Api(ApiKey::DESCRIBE_SHARE_GROUP_OFFSETS, 0),
    Need::Api(ApiKey::ALTER_SHARE_GROUP_OFFSETS, 0),
    Need::Feature("share.version", 1),
];
const DELETE: &[Need] = &[
    Need::Api(ApiKey::DESCRIBE_SHARE_GROUP_OFFSETS, 0),
    Need::Api(ApiKey::DELETE_SHARE_GROUP_OFFSETS, 0),
    Need::Feature("share.version", 1),
];

list! {
    describe_without_topics_tells_all(932, OFFSETS) "SHARE-OFFSET-05";
    group_that_does_not_exist_has_no_offset(932, OFFSETS) "SHARE-OFFSET-06";
    topic_without_state_has_no_offset(932, OFFSETS) "SHARE-OFFSET-07";
    altering_an_unknown_topic_is_told(932, ALTER) "SHARE-OFFSET-08";
    altering_an_unknown_partition_is_told(932, ALTER) "SHARE-OFFSET-09";
    altering_makes_the_group(932, ALTER) "SHARE-OFFSET-10";
    deleted_offsets_are_forgotten(932, DELETE) "SHARE-OFFSET-11";
    offsets_of_a_group_with_members_cannot_be_deleted(932, DELETE) "SHARE-OFFSET-12";
    offsets_of_no_group_cannot_be_deleted(932, DELETE) "SHARE-OFFSET-13";
    deleting_offsets_of_an_unknown_topic_is_told(932, DELETE) "SHARE-OFFSET-14";
    lag_counts_acquired_records(1226, LAG) "SHARE-OFFSET-15";
    lag_counts_released_records(1226, LAG) "SHARE-OFFSET-16";
    lag_counts_new_records(1226, LAG) "SHARE-OFFSET-17";
    lag_leaves_rejected_records_out(1226, LAG) "SHARE-OFFSET-18";
    no_offset_has_no_lag(1226, LAG) "SHARE-OFFSET-19";
    set_offset_forgets_states(932, ALTER) "SHARE-OFFSET-20";
}

async fn told(lab: &Lab, group: &Str, topics: Option<Vec<(Str, i32)>>) -> Check<DescribeShareGroupOffsetsResponse> {
    let row = |(topic_name, partition): (Str, i32)| describe::DescribeShareGroupOffsetsRequestTopic {
        topic_name,
        partitions: vec![partition],
        ..Default::default()
    };
    let row = describe::DescribeShareGroupOffsetsRequestGroup {
        group_id: group.clone(),
        topics: topics.map(|all| all.into_iter().map(row).collect()),
        ..Default::default()
    };
    let request = DescribeShareGroupOffsetsRequest { groups: vec![row], ..Default::default() };
    let of = |r: &DescribeShareGroupOffsetsResponse| r.groups.first().map_or(ErrorCode::NONE, |g| g.error_code);
    lab.coordinate(CoordinatorKind::Group, group, &request, None, of).await
}

/// Start offset and lag of partition 0, whatever codes stand beside them.
async fn offset(lab: &Lab, group: &Str, topic: &Topic) -> Check<(i64, i64)> {
    let response = told(lab, group, Some(vec![(topic.name.clone(), 0)])).await?;
    match response.groups.iter().flat_map(|g| &g.topics).flat_map(|t| &t.partitions).next() {
        Some(row) => Ok((row.start_offset, row.lag)),
        None => fail("DescribeShareGroupOffsets was answered without a row for the partition"),
    }
}

async fn describe_without_topics_tells_all(lab: Lab) -> Check {
    let (topic, mut member) = lab.with_records(2).await?;
    member.acquire_exactly(&topic, 0..2, 1).await?;
    member.acknowledge_ok(&topic, &[(0, 1, &[1])]).await?;
    let response = told(&lab, &member.group, None).await?;
    let names: Vec<&str> = response.groups.iter().flat_map(|g| &g.topics).map(|t| t.topic_name.as_str()).collect();
    equal("topics that are told", names, vec![topic.name.as_str()])
}

async fn group_that_does_not_exist_has_no_offset(lab: Lab) -> Check {
    let topic = lab.topic(1).await?;
    equal("start offset", offset(&lab, &lab.plain_group(), &topic).await?.0, -1)
}

async fn topic_without_state_has_no_offset(lab: Lab) -> Check {
    let (_, member) = lab.with_records(1).await?;
    let other = lab.topic(1).await?;
    equal("start offset", offset(&lab, &member.group, &other).await?.0, -1)
}

async fn set(lab: &Lab, group: &Str, topic: &Str, partition_index: i32, start_offset: i64) -> Check<ErrorCode> {
    let row = alter::AlterShareGroupOffsetsRequestPartition { partition_index, start_offset, ..Default::default() };
    let row = alter::AlterShareGroupOffsetsRequestTopic {
        topic_name: topic.clone(),
        partitions: vec![row],
        ..Default::default()
    };
    let request = AlterShareGroupOffsetsRequest { group_id: group.clone(), topics: vec![row], ..Default::default() };
    let of = |r: &AlterShareGroupOffsetsResponse| {
        let rows = r.responses.iter().flat_map(|t| &t.partitions).map(|p| p.error_code);
        std::iter::once(r.error_code).chain(rows).find(|c| c.is_err()).unwrap_or_default()
    };
    Ok(of(&lab.coordinate(CoordinatorKind::Group, group, &request, None, of).await?))
}

/// A group of which all members are gone, with their connections.
async fn emptied(lab: &Lab, topic: &Topic, mut member: Member) -> Check<Str> {
    if member.session > 0 {
        member.close_session(topic).await?;
    }
    ok("leaving", member.heartbeat(-1, None).await?.error_code)?;
    let group = member.group.clone();
    lab.note("the member's connections end");
    member.vanish();
    Ok(group)
}

async fn altering_an_unknown_topic_is_told(lab: Lab) -> Check {
    let (topic, member) = lab.with_records(1).await?;
    let group = emptied(&lab, &topic, member).await?;
    let got = set(&lab, &group, &Str::from(lab.upcoming()), 0, 0).await?;
    code("setting an offset of a topic that does not exist", got, &[ErrorCode::UNKNOWN_TOPIC_OR_PARTITION])
}

async fn altering_an_unknown_partition_is_told(lab: Lab) -> Check {
    let (topic, member) = lab.with_records(1).await?;
    let group = emptied(&lab, &topic, member).await?;
    let got = set(&lab, &group, &topic.name, 44, 0).await?;
    code("setting an offset of a partition that does not exist", got, &[ErrorCode::UNKNOWN_TOPIC_OR_PARTITION])
}

async fn altering_makes_the_group(lab: Lab) -> Check {
    let topic = lab.topic(1).await?;
    Producer::plain(&lab).await?.produce(&topic, 0, 4).await?;
    let group = lab.plain_group();
    ok("AlterShareGroupOffsets", set(&lab, &group, &topic.name, 0, 2).await?)?;
    let request = ShareGroupDescribeRequest { group_ids: vec![group.clone()], ..Default::default() };
    let of = |r: &ShareGroupDescribeResponse| r.groups.first().map_or(ErrorCode::NONE, |g| g.error_code);
    let response = lab.coordinate(CoordinatorKind::Group, &group, &request, None, of).await?;
    ok("describing the group", of(&response))?;
    let mut member = lab.member(&group).await?;
    member.join(&topic).await?;
    member.acquire_exactly(&topic, 2..4, 1).await
}

async fn forget(lab: &Lab, group: &Str, topic: &Str) -> Check<ErrorCode> {
    let row = delete::DeleteShareGroupOffsetsRequestTopic { topic_name: topic.clone(), ..Default::default() };
    let request = DeleteShareGroupOffsetsRequest { group_id: group.clone(), topics: vec![row], ..Default::default() };
    let of = |r: &DeleteShareGroupOffsetsResponse| {
        let rows = r.responses.iter().map(|t| t.error_code);
        std::iter::once(r.error_code).chain(rows).find(|c| c.is_err()).unwrap_or_default()
    };
    Ok(of(&lab.coordinate(CoordinatorKind::Group, group, &request, None, of).await?))
}

async fn deleted_offsets_are_forgotten(lab: Lab) -> Check {
    let (topic, mut member) = lab.with_records(3).await?;
    member.acquire_exactly(&topic, 0..3, 1).await?;
    member.acknowledge_ok(&topic, &[(0, 2, &[1])]).await?;
    let group = emptied(&lab, &topic, member).await?;
    ok("DeleteShareGroupOffsets", forget(&lab, &group, &topic.name).await?)?;
    equal("start offset afterwards", offset(&lab, &group, &topic).await?.0, -1)?;
    let mut later = lab.member(&group).await?;
    later.join(&topic).await?;
    later.acquire_exactly(&topic, 0..3, 1).await
}

async fn offsets_of_a_group_with_members_cannot_be_deleted(lab: Lab) -> Check {
    let (topic, member) = lab.with_records(1).await?;
    let got = forget(&lab, &member.group, &topic.name).await?;
    code("deleting offsets of a group with members", got, &[ErrorCode::NON_EMPTY_GROUP])
}

async fn offsets_of_no_group_cannot_be_deleted(lab: Lab) -> Check {
    let topic = lab.topic(1).await?;
    let got = forget(&lab, &lab.plain_group(), &topic.name).await?;
    code("deleting offsets of a group that does not exist", got, &[ErrorCode::GROUP_ID_NOT_FOUND])
}

async fn deleting_offsets_of_an_unknown_topic_is_told(lab: Lab) -> Check {
    let (topic, member) = lab.with_records(1).await?;
    let group = emptied(&lab, &topic, member).await?;
    let got = forget(&lab, &group, &Str::from(lab.upcoming())).await?;
    code("deleting offsets of a topic that does not exist", got, &[ErrorCode::UNKNOWN_TOPIC_OR_PARTITION])
}

async fn lag(lab: &Lab, member: &Member, topic: &Topic, want: i64) -> Check {
    lab.offsets_become(&member.group, topic, &format!("lag {want}"), |got| got.1 == want).await
}

async fn lag_counts_acquired_records(lab: Lab) -> Check {
    let (topic, mut member) = lab.with_records(4).await?;
    member.acquire_exactly(&topic, 0..4, 1).await?;
    member.acknowledge_ok(&topic, &[(0, 0, &[1])]).await?;
    lag(&lab, &member, &topic, 3).await
}

async fn lag_counts_released_records(lab: Lab) -> Check {
    let (topic, mut member) = lab.with_records(4).await?;
    member.acquire_exactly(&topic, 0..4, 1).await?;
    member.acknowledge_ok(&topic, &[(0, 3, &[2])]).await?;
    lag(&lab, &member, &topic, 4).await
}

async fn lag_counts_new_records(lab: Lab) -> Check {
    let (topic, mut member) = lab.with_records(2).await?;
    member.acquire_exactly(&topic, 0..2, 1).await?;
    member.acknowledge_ok(&topic, &[(0, 1, &[1])]).await?;
    lag(&lab, &member, &topic, 0).await?;
    Producer::plain(&lab).await?.produce(&topic, 0, 5).await?;
    lag(&lab, &member, &topic, 5).await
}

async fn lag_leaves_rejected_records_out(lab: Lab) -> Check {
    let (topic, mut member) = lab.with_records(4).await?;
    member.acquire_exactly(&topic, 0..4, 1).await?;
    member.acknowledge_ok(&topic, &[(2, 3, &[3])]).await?;
    lag(&lab, &member, &topic, 2).await
}

async fn no_offset_has_no_lag(lab: Lab) -> Check {
    let topic = lab.topic(1).await?;
    Producer::plain(&lab).await?.produce(&topic, 0, 3).await?;
    let got = offset(&lab, &lab.plain_group(), &topic).await?;
    equal("start offset and lag", got, (-1, -1))
}

async fn set_offset_forgets_states(lab: Lab) -> Check {
    let (topic, mut member) = lab.with_records(4).await?;
    member.acquire_exactly(&topic, 0..4, 1).await?;
    member.acknowledge_ok(&topic, &[(1, 3, &[1])]).await?;
    let group = emptied(&lab, &topic, member).await?;
    ok("AlterShareGroupOffsets", set(&lab, &group, &topic.name, 0, 0).await?)?;
    let mut later = lab.member(&group).await?;
    later.join(&topic).await?;
    let got = later.acquire(&topic, 4).await?;
    that(got.iter().map(|(o, _)| *o).eq(0..4), || format!("acquired after the start offset was set to 0: {got:?}"))
}
