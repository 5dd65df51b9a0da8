//! Heartbeats in detail: their form, epochs that were lost or are too old, subscriptions that change.

use super::SHARE;
use crate::case::list;
use crate::expect::{Check, code, equal, fail, ok, that};
use crate::lab::{Lab, Member, SOON, Topic};
use kafka_share::net::{CoordinatorKind, Purpose};
use kafka_share_messages::create_partitions_request::CreatePartitionsTopic;
use kafka_share_messages::{
    CreatePartitionsRequest, ErrorCode, ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse,
};
use kafka_share_wire::{Str, Uuid};
use std::time::{Duration, Instant};

list! {
    heartbeat_needs_a_group_id(932, SHARE) "SHARE-MEMBER-13" => malformed("no group id", |r| r.group_id = Str::default());
    heartbeat_needs_a_member_id(932, SHARE) "SHARE-MEMBER-14"
        => malformed("no member id", |r| r.member_id = Str::default());
    rack_id_is_not_empty(932, SHARE) "SHARE-MEMBER-15"
        => malformed("an empty rack id", |r| r.rack_id = Some(Str::default()));
    member_epoch_minus_two_is_refused(932, SHARE) "SHARE-MEMBER-16"
        => malformed("member epoch -2", |r| r.member_epoch = -2);
    smallest_member_epoch_is_refused(932, SHARE) "SHARE-MEMBER-16"
        => malformed("the smallest member epoch", |r| r.member_epoch = i32::MIN);
    member_may_join_again(932, SHARE) "SHARE-MEMBER-17";
    previous_epoch_is_taken(932, SHARE) "SHARE-MEMBER-18";
    older_epoch_is_fenced(932, SHARE) "SHARE-MEMBER-19";
    new_subscription_is_assigned(932, SHARE) "SHARE-MEMBER-20";
    unsubscribed_topic_leaves_the_assignment(932, SHARE) "SHARE-MEMBER-21";
    subscribed_topic_may_come_later(932, SHARE) "SHARE-MEMBER-22";
    quiet_heartbeat_keeps_the_subscription(932, SHARE) "SHARE-MEMBER-23" "SHARE-MEMBER-24";
    full_heartbeat_is_told_the_assignment(932, SHARE) "SHARE-MEMBER-25";
    stranger_cannot_leave(932, SHARE) "SHARE-MEMBER-26";
    leaving_twice_is_refused(932, SHARE) "SHARE-MEMBER-26";
    partitions_go_to_those_that_stay(932, SHARE) "SHARE-MEMBER-27";
    three_members_share_one_partition(932, SHARE) "SHARE-MEMBER-28" "SHARE-MEMBER-04";
    records_of_who_left_come_again(932, SHARE) "SHARE-MEMBER-29";
    topic_named_twice_counts_once(932, SHARE) "SHARE-MEMBER-30";
    heartbeat_interval_is_the_groups(932, SHARE) "SHARE-MEMBER-31";
    one_member_id_in_two_groups(932, SHARE) "SHARE-MEMBER-32";
    who_left_may_join_again(932, SHARE) "SHARE-MEMBER-33";
    added_partitions_are_assigned(932, SHARE) "SHARE-MEMBER-34";
    silent_member_is_removed(932, SHARE) "SHARE-MEMBER-12";
}

const PAUSE: Duration = Duration::from_millis(100);

async fn ask(lab: &Lab, request: &ShareGroupHeartbeatRequest) -> Check<ShareGroupHeartbeatResponse> {
    if request.group_id.is_empty() {
        let node = lab.any_node().await?;
        return lab.call(lab.cluster(), node, Purpose::Coordination, request, None).await;
    }
    lab.coordinate(CoordinatorKind::Group, &request.group_id, request, None, |r| r.error_code).await
}

async fn malformed(lab: Lab, what: &'static str, spoil: fn(&mut ShareGroupHeartbeatRequest)) -> Check {
    let topic = lab.topic(1).await?;
    let mut request = ShareGroupHeartbeatRequest {
        group_id: lab.plain_group(),
        member_id: Str::from_static("member"),
        subscribed_topic_names: Some(vec![topic.name.clone()]),
        ..Default::default()
    };
    spoil(&mut request);
    let got = ask(&lab, &request).await?.error_code;
    code(&format!("a heartbeat with {what}"), got, &[ErrorCode::INVALID_REQUEST])
}

fn partitions(response: &ShareGroupHeartbeatResponse) -> Vec<(Uuid, usize)> {
    let all = response.assignment.iter().flat_map(|a| &a.topic_partitions);
    all.map(|t| (t.topic_id, t.partitions.len())).filter(|(_, count)| *count > 0).collect()
}

/// Sends heartbeats that name the topics until the member has as many partitions of each as wanted, in any order.
async fn assigned(member: &mut Member, topics: &[&Topic], want: &[(&Topic, usize)]) -> Check {
    let until = Instant::now() + SOON;
    loop {
        let response = member.heartbeat(member.epoch, Some(topics)).await?;
        ok("ShareGroupHeartbeat", response.error_code)?;
        member.epoch = response.member_epoch;
        let got = partitions(&response);
        if got.len() == want.len() && want.iter().all(|(t, n)| got.contains(&(t.id, *n))) {
            return Ok(());
        }
        that(Instant::now() < until, || format!("assigned within {SOON:?}: {got:?}, expected {want:?}"))?;
        tokio::time::sleep(PAUSE).await;
    }
}

/// Has another member join, and waits until the first one's epoch rises.
async fn bump(lab: &Lab, member: &mut Member, topic: &Topic) -> Check<Member> {
    let other = lab.member(&member.group).await?;
    ok("another member joins", other.heartbeat(0, Some(&[topic])).await?.error_code)?;
    let until = Instant::now() + SOON;
    loop {
        let response = member.heartbeat(member.epoch, None).await?;
        ok("ShareGroupHeartbeat", response.error_code)?;
        if response.member_epoch > member.epoch {
            member.epoch = response.member_epoch;
            return Ok(other);
        }
        that(Instant::now() < until, || "the member epoch stays as it is though another member joined".into())?;
        tokio::time::sleep(PAUSE).await;
    }
}

async fn joined(lab: &Lab) -> Check<(Topic, Member)> {
    let topic = lab.topic(1).await?;
    let mut member = lab.member(&lab.plain_group()).await?;
    member.join(&topic).await?;
    Ok((topic, member))
}

async fn member_may_join_again(lab: Lab) -> Check {
    let (topic, member) = joined(&lab).await?;
    let response = member.heartbeat(0, Some(&[&topic])).await?;
    ok("joining again", response.error_code)?;
    equal("member id", response.member_id.as_deref(), Some(member.id.as_str()))?;
    equal("partitions that are told", partitions(&response), vec![(topic.id, 1)])
}

async fn previous_epoch_is_taken(lab: Lab) -> Check {
    let (topic, mut member) = joined(&lab).await?;
    let old = member.epoch;
    let _other = bump(&lab, &mut member, &topic).await?;
    let response = member.heartbeat(old, None).await?;
    ok("a heartbeat with the previous epoch", response.error_code)?;
    that(response.member_epoch >= member.epoch, || format!("epoch {} is told again", response.member_epoch))
}

async fn older_epoch_is_fenced(lab: Lab) -> Check {
    let (topic, mut member) = joined(&lab).await?;
    let old = member.epoch;
    let _first = bump(&lab, &mut member, &topic).await?;
    let _second = bump(&lab, &mut member, &topic).await?;
    let got = member.heartbeat(old, None).await?.error_code;
    code("a heartbeat two epochs behind", got, &[ErrorCode::FENCED_MEMBER_EPOCH])
}

async fn new_subscription_is_assigned(lab: Lab) -> Check {
    let (topic, mut member) = joined(&lab).await?;
    let (second, old) = (lab.topic(2).await?, member.epoch);
    assigned(&mut member, &[&topic, &second], &[(&topic, 1), (&second, 2)]).await?;
    that(member.epoch > old, || format!("epoch {} after {old}", member.epoch))
}

async fn unsubscribed_topic_leaves_the_assignment(lab: Lab) -> Check {
    let (topic, mut member) = joined(&lab).await?;
    let second = lab.topic(2).await?;
    assigned(&mut member, &[&topic, &second], &[(&topic, 1), (&second, 2)]).await?;
    assigned(&mut member, &[&second], &[(&second, 2)]).await
}

async fn subscribed_topic_may_come_later(lab: Lab) -> Check {
    let member = lab.member(&lab.plain_group()).await?;
    let mut request = ShareGroupHeartbeatRequest {
        group_id: member.group.clone(),
        member_id: member.id.clone(),
        subscribed_topic_names: Some(vec![Str::from(lab.upcoming())]),
        ..Default::default()
    };
    let response = ask(&lab, &request).await?;
    ok("subscribing to a topic that does not exist", response.error_code)?;
    equal("partitions of no topic", partitions(&response), vec![])?;
    let topic = lab.topic(1).await?;
    equal("name of the topic", &topic.name, &request.subscribed_topic_names.take().unwrap_or_default()[0])?;
    let until = Instant::now() + SOON;
    request.member_epoch = response.member_epoch;
    loop {
        let response = ask(&lab, &request).await?;
        ok("ShareGroupHeartbeat", response.error_code)?;
        request.member_epoch = response.member_epoch;
        if partitions(&response) == [(topic.id, 1)] {
            return Ok(());
        }
        that(Instant::now() < until, || "the topic was created and is not assigned".into())?;
        tokio::time::sleep(PAUSE).await;
    }
}

async fn quiet_heartbeat_keeps_the_subscription(lab: Lab) -> Check {
    let (topic, mut member) = joined(&lab).await?;
    for _ in 0..3 {
        let response = member.heartbeat(member.epoch, None).await?;
        ok("a heartbeat without topics", response.error_code)?;
        that(response.assignment.is_none(), || format!("nothing changed, but told is {:?}", response.assignment))?;
    }
    assigned(&mut member, &[&topic], &[(&topic, 1)]).await
}

async fn full_heartbeat_is_told_the_assignment(lab: Lab) -> Check {
    let (topic, member) = joined(&lab).await?;
    for _ in 0..2 {
        let response = member.heartbeat(member.epoch, Some(&[&topic])).await?;
        ok("a heartbeat that names the topics", response.error_code)?;
        equal("partitions that are told", partitions(&response), vec![(topic.id, 1)])?;
    }
    Ok(())
}

async fn stranger_cannot_leave(lab: Lab) -> Check {
    let (_, member) = joined(&lab).await?;
    let stranger = lab.member(&member.group).await?;
    let got = stranger.heartbeat(-1, None).await?.error_code;
    code("leaving of who never joined", got, &[ErrorCode::UNKNOWN_MEMBER_ID])
}

async fn leaving_twice_is_refused(lab: Lab) -> Check {
    let (topic, member) = joined(&lab).await?;
    let _stays = lab.another(&member, &topic).await?;
    ok("leaving", member.heartbeat(-1, None).await?.error_code)?;
    code("leaving again", member.heartbeat(-1, None).await?.error_code, &[ErrorCode::UNKNOWN_MEMBER_ID])
}

async fn partitions_go_to_those_that_stay(lab: Lab) -> Check {
    let topic = lab.topic(2).await?;
    let group = lab.plain_group();
    let (mut stays, leaves) = (lab.member(&group).await?, lab.member(&group).await?);
    stays.join(&topic).await?;
    ok("the second member joins", leaves.heartbeat(0, Some(&[&topic])).await?.error_code)?;
    assigned(&mut stays, &[&topic], &[(&topic, 1)]).await?;
    ok("the second member leaves", leaves.heartbeat(-1, None).await?.error_code)?;
    assigned(&mut stays, &[&topic], &[(&topic, 2)]).await
}

async fn three_members_share_one_partition(lab: Lab) -> Check {
    let (topic, mut first) = joined(&lab).await?;
    let mut second = lab.another(&first, &topic).await?;
    let mut third = lab.another(&first, &topic).await?;
    for member in [&mut first, &mut second, &mut third] {
        assigned(member, &[&topic], &[(&topic, 1)]).await?;
    }
    Ok(())
}

async fn records_of_who_left_come_again(lab: Lab) -> Check {
    let (topic, mut member) = lab.with_records(2).await?;
    let mut other = lab.another(&member, &topic).await?;
    member.acquire_exactly(&topic, 0..2, 1).await?;
    ok("leaving", member.heartbeat(-1, None).await?.error_code)?;
    member.vanish();
    let again = other.acquire(&topic, 2).await?;
    equal("offsets that come again", again.iter().map(|(offset, _)| *offset).collect::<Vec<_>>(), vec![0, 1])
}

async fn topic_named_twice_counts_once(lab: Lab) -> Check {
    let topic = lab.topic(1).await?;
    let mut member = lab.member(&lab.plain_group()).await?;
    ok("joining", member.heartbeat(0, Some(&[&topic, &topic])).await?.error_code)?;
    member.epoch = member.heartbeat(0, Some(&[&topic, &topic])).await?.member_epoch;
    assigned(&mut member, &[&topic, &topic], &[(&topic, 1)]).await
}

async fn heartbeat_interval_is_the_groups(lab: Lab) -> Check {
    let topic = lab.topic(1).await?;
    let group = lab.group(&[("share.heartbeat.interval.ms", "7000")]).await?;
    let response = lab.member(&group).await?.heartbeat(0, Some(&[&topic])).await?;
    ok("joining", response.error_code)?;
    equal("heartbeat interval in milliseconds", response.heartbeat_interval_ms, 7000)
}

async fn one_member_id_in_two_groups(lab: Lab) -> Check {
    let (topic, mut first) = joined(&lab).await?;
    let mut second = lab.member(&lab.plain_group()).await?;
    second.id = first.id.clone();
    let got = second.heartbeat(first.epoch, None).await?.error_code;
    code("the id in a group it did not join", got, &[ErrorCode::GROUP_ID_NOT_FOUND, ErrorCode::UNKNOWN_MEMBER_ID])?;
    second.join(&topic).await?;
    ok("leaving the second group", second.heartbeat(-1, None).await?.error_code)?;
    assigned(&mut first, &[&topic], &[(&topic, 1)]).await
}

async fn who_left_may_join_again(lab: Lab) -> Check {
    let (topic, mut member) = joined(&lab).await?;
    ok("leaving", member.heartbeat(-1, None).await?.error_code)?;
    member.join(&topic).await
}

async fn added_partitions_are_assigned(lab: Lab) -> Check {
    let (topic, mut member) = joined(&lab).await?;
    let row = CreatePartitionsTopic { name: topic.name.clone(), count: 3, assignments: None, ..Default::default() };
    let request = CreatePartitionsRequest { topics: vec![row], timeout_ms: 10_000, ..Default::default() };
    let response = lab.cluster().call_any(&request, lab.deadline()).await?;
    for row in &response.results {
        ok("CreatePartitions", row.error_code)?;
    }
    assigned(&mut member, &[&topic], &[(&topic, 3)]).await
}

/// Brokers whose shortest session is longer refuse the setting, and the case is not supported there.
async fn silent_member_is_removed(lab: Lab) -> Check {
    let topic = lab.topic(1).await?;
    let configs = [("share.session.timeout.ms", "2000"), ("share.heartbeat.interval.ms", "500")];
    let group = lab.group(&configs).await?;
    let mut member = lab.member(&group).await?;
    member.join(&topic).await?;
    let until = Instant::now() + SOON;
    let mut silence = Duration::from_millis(2500);
    while Instant::now() < until {
        tokio::time::sleep(silence).await;
        let got = member.heartbeat(member.epoch, None).await?.error_code;
        if got.is_err() {
            let allowed = [ErrorCode::UNKNOWN_MEMBER_ID, ErrorCode::GROUP_ID_NOT_FOUND];
            return code("a heartbeat after the session timeout", got, &allowed);
        }
        silence *= 2;
    }
    fail("a member that was silent for more than its session timeout is still in the group")
}
