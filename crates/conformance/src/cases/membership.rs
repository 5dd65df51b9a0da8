//! Joining, leaving, fencing: ShareGroupHeartbeat and ShareGroupDescribe.

use super::SHARE;
use crate::Need;
use crate::case::list;
use crate::expect::{Check, code, equal, ok, that};
use crate::lab::{Lab, SOON};
use kafka_share::net::CoordinatorKind;
use kafka_share_messages::{ApiKey, ErrorCode, ShareGroupDescribeRequest, ShareGroupDescribeResponse};
use std::time::{Duration, Instant};

const DESCRIBE: &[Need] = &[Need::Api(ApiKey::SHARE_GROUP_DESCRIBE, 1), Need::Feature("share.version", 1)];

list! {
    join_answers_epoch_and_interval(932, SHARE) "SHARE-MEMBER-01" "SHARE-MEMBER-02";
    join_assigns_every_partition(932, SHARE) "SHARE-MEMBER-03";
    one_partition_serves_two_members(932, SHARE) "SHARE-MEMBER-04";
    leaving_ends_the_membership(932, SHARE) "SHARE-MEMBER-05";
    unknown_member_is_refused(932, SHARE) "SHARE-MEMBER-06";
    unknown_group_is_refused(932, SHARE) "SHARE-MEMBER-07";
    epoch_ahead_is_fenced(932, SHARE) "SHARE-MEMBER-08";
    join_needs_a_subscription(932, SHARE) "SHARE-MEMBER-09";
    describe_shows_the_members(932, DESCRIBE) "SHARE-GROUP-01";
}

async fn join_answers_epoch_and_interval(lab: Lab) -> Check {
    let topic = lab.topic(1).await?;
    let member = lab.member(&lab.plain_group()).await?;
    let response = member.heartbeat(0, Some(&[&topic])).await?;
    ok("joining", response.error_code)?;
    that(response.member_epoch > 0, || format!("a member's epoch is above 0, got {}", response.member_epoch))?;
    that(response.heartbeat_interval_ms > 0, || format!("heartbeat interval {} ms", response.heartbeat_interval_ms))?;
    equal("member id", response.member_id.as_deref(), Some(member.id.as_str()))?;
    let again = member.heartbeat(response.member_epoch, None).await?;
    ok("the next heartbeat", again.error_code)?;
    that(again.member_epoch >= response.member_epoch, || "the member epoch went back".into())
}

async fn join_assigns_every_partition(lab: Lab) -> Check {
    let topic = lab.topic(3).await?;
    let mut member = lab.member(&lab.plain_group()).await?;
    member.join(&topic).await
}

async fn one_partition_serves_two_members(lab: Lab) -> Check {
    let topic = lab.topic(1).await?;
    let group = lab.plain_group();
    let (mut first, mut second) = (lab.member(&group).await?, lab.member(&group).await?);
    first.join(&topic).await?;
    second.join(&topic).await?;
    let response = first.heartbeat(first.epoch, None).await?;
    ok("the first member's heartbeat", response.error_code)?;
    let taken = response.assignment.iter().any(|a| a.topic_partitions.iter().all(|t| t.partitions.is_empty()));
    that(!taken, || "the first member lost the only partition to the second".into())
}

async fn leaving_ends_the_membership(lab: Lab) -> Check {
    let topic = lab.topic(1).await?;
    let group = lab.plain_group();
    let (mut stays, mut leaves) = (lab.member(&group).await?, lab.member(&group).await?);
    stays.join(&topic).await?;
    leaves.join(&topic).await?;
    let response = leaves.heartbeat(-1, None).await?;
    ok("leaving", response.error_code)?;
    equal("member epoch of the answer", response.member_epoch, -1)?;
    let late = leaves.heartbeat(leaves.epoch, None).await?;
    code("a heartbeat after leaving", late.error_code, &[ErrorCode::UNKNOWN_MEMBER_ID])
}

async fn unknown_member_is_refused(lab: Lab) -> Check {
    let topic = lab.topic(1).await?;
    let group = lab.plain_group();
    lab.member(&group).await?.join(&topic).await?;
    let stranger = lab.member(&group).await?;
    let response = stranger.heartbeat(3, None).await?;
    code("a heartbeat of a member that never joined", response.error_code, &[ErrorCode::UNKNOWN_MEMBER_ID])
}

async fn unknown_group_is_refused(lab: Lab) -> Check {
    let stranger = lab.member(&lab.plain_group()).await?;
    let response = stranger.heartbeat(3, None).await?;
    let allowed = [ErrorCode::GROUP_ID_NOT_FOUND, ErrorCode::UNKNOWN_MEMBER_ID];
    code("a heartbeat to a group that does not exist", response.error_code, &allowed)
}

async fn epoch_ahead_is_fenced(lab: Lab) -> Check {
    let topic = lab.topic(1).await?;
    let mut member = lab.member(&lab.plain_group()).await?;
    member.join(&topic).await?;
    let response = member.heartbeat(member.epoch + 7, None).await?;
    code("a heartbeat with an epoch ahead", response.error_code, &[ErrorCode::FENCED_MEMBER_EPOCH])
}

async fn join_needs_a_subscription(lab: Lab) -> Check {
    let member = lab.member(&lab.plain_group()).await?;
    let response = member.heartbeat(0, None).await?;
    code("joining without a subscription", response.error_code, &[ErrorCode::INVALID_REQUEST])?;
    let response = member.heartbeat(0, Some(&[])).await?;
    code("joining with an empty subscription", response.error_code, &[ErrorCode::INVALID_REQUEST])
}

async fn describe_shows_the_members(lab: Lab) -> Check {
    let topic = lab.topic(2).await?;
    let mut member = lab.member(&lab.plain_group()).await?;
    member.join(&topic).await?;
    let request = ShareGroupDescribeRequest { group_ids: vec![member.group.clone()], ..Default::default() };
    let until = Instant::now() + SOON;
    loop {
        let code =
            |r: &ShareGroupDescribeResponse| r.groups.first().map_or(ErrorCode::UNKNOWN_SERVER_ERROR, |g| g.error_code);
        let response = lab.coordinate(CoordinatorKind::Group, &member.group, &request, None, code).await?;
        ok("ShareGroupDescribe", code(&response))?;
        let group = &response.groups[0];
        let me = group.members.iter().find(|m| m.member_id == member.id);
        let partitions: usize =
            me.iter().flat_map(|m| &m.assignment.topic_partitions).map(|t| t.partitions.len()).sum();
        if partitions == 2 && group.group_state.as_str() == "Stable" {
            return equal("subscription", me.map(|m| m.subscribed_topic_names.clone()), Some(vec![topic.name.clone()]));
        }
        let (state, members) = (&group.group_state, group.members.len());
        that(Instant::now() < until, || {
            format!("state {state}, {members} members, {partitions} partitions, not Stable, 1, 2")
        })?;
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
