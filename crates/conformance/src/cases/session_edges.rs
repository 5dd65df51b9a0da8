//! Share sessions in detail: what they are bound to, repeated and impossible epochs, changes of their partitions.

use super::SHARE;
use crate::case::list;
use crate::expect::{Check, code, equal, ok, that};
use crate::lab::{Lab, Member, Producer, Topic};
use kafka_share_messages::share_fetch_request::ForgottenTopic;
use kafka_share_messages::{ErrorCode, ShareAcknowledgeRequest, ShareFetchRequest};

list! {
    epoch_zero_replaces_the_session(932, SHARE) "SHARE-SESSION-17";
    fetch_needs_a_group_id(932, SHARE) "SHARE-SESSION-18" => nameless_fetch("no group id", |r| r.group_id = None);
    fetch_needs_a_member_id(932, SHARE) "SHARE-SESSION-18" => nameless_fetch("no member id", |r| r.member_id = None);
    acknowledge_needs_a_group_id(932, SHARE) "SHARE-SESSION-19" => nameless_ack("no group id", |r| r.group_id = None);
    acknowledge_needs_a_member_id(932, SHARE) "SHARE-SESSION-19"
        => nameless_ack("no member id", |r| r.member_id = None);
    closing_by_fetch_needs_a_session(932, SHARE) "SHARE-SESSION-20";
    closing_by_acknowledge_needs_a_session(932, SHARE) "SHARE-SESSION-20";
    sessions_of_members_are_apart(932, SHARE) "SHARE-SESSION-21";
    sessions_of_groups_are_apart(932, SHARE) "SHARE-SESSION-22";
    repeated_fetch_epoch_is_refused(932, SHARE) "SHARE-SESSION-23" => epoch_refused(|next| next - 1, true);
    repeated_acknowledge_epoch_is_refused(932, SHARE) "SHARE-SESSION-23" => epoch_refused(|next| next - 1, false);
    fetch_epoch_minus_two_is_refused(932, SHARE) "SHARE-SESSION-24" => epoch_refused(|_| -2, true);
    acknowledge_epoch_minus_two_is_refused(932, SHARE) "SHARE-SESSION-24" => epoch_refused(|_| -2, false);
    largest_epoch_is_refused(932, SHARE) "SHARE-SESSION-04" => epoch_refused(|_| i32::MAX, true);
    smallest_epoch_is_refused(932, SHARE) "SHARE-SESSION-24" => epoch_refused(|_| i32::MIN, true);
    fetch_and_acknowledge_share_the_epoch(932, SHARE) "SHARE-SESSION-25";
    closing_fetch_acquires_nothing(932, SHARE) "SHARE-SESSION-26";
    closing_fetch_may_acknowledge(932, SHARE) "SHARE-SESSION-27";
    forgotten_partition_keeps_what_is_acquired(932, SHARE) "SHARE-SESSION-28";
    named_partition_joins_the_session(932, SHARE) "SHARE-SESSION-29";
    forgotten_partition_may_come_back(932, SHARE) "SHARE-SESSION-30";
    wrong_epoch_does_not_count(932, SHARE) "SHARE-SESSION-31";
    wrong_epoch_acknowledges_nothing_by_fetch(932, SHARE) "SHARE-SESSION-32" => nothing_acknowledged(true);
    wrong_epoch_acknowledges_nothing(932, SHARE) "SHARE-SESSION-32" => nothing_acknowledged(false);
    session_may_be_opened_again(932, SHARE) "SHARE-SESSION-33";
    session_serves_all_partitions(932, SHARE) "SHARE-SESSION-34";
}

async fn quick(member: &mut Member, topic: &Topic, partitions: &[i32]) -> Check<ErrorCode> {
    let mut request = member.fetch(topic, partitions);
    request.max_wait_ms = 10;
    Ok(member.send_fetch(topic, &request).await?.error_code)
}

async fn epoch_zero_replaces_the_session(lab: Lab) -> Check {
    let (topic, mut member) = lab.with_records(0).await?;
    for _ in 0..3 {
        ok("ShareFetch", quick(&mut member, &topic, &[0]).await?)?;
    }
    member.session = 0;
    ok("ShareFetch at epoch 0 again", quick(&mut member, &topic, &[0]).await?)?;
    member.session = 3;
    let got = quick(&mut member, &topic, &[]).await?;
    code("the next epoch of the session that was replaced", got, &[ErrorCode::INVALID_SHARE_SESSION_EPOCH])?;
    member.session = 1;
    ok("ShareFetch at epoch 1 of the new session", quick(&mut member, &topic, &[]).await?)
}

async fn nameless_fetch(lab: Lab, what: &'static str, spoil: fn(&mut ShareFetchRequest)) -> Check {
    let (topic, mut member) = lab.with_records(0).await?;
    let mut request = member.fetch(&topic, &[0]);
    spoil(&mut request);
    let got = member.send_fetch(&topic, &request).await?.error_code;
    code(&format!("ShareFetch with {what}"), got, &[ErrorCode::INVALID_REQUEST])
}

async fn nameless_ack(lab: Lab, what: &'static str, spoil: fn(&mut ShareAcknowledgeRequest)) -> Check {
    let (topic, mut member) = lab.with_records(1).await?;
    member.acquire_exactly(&topic, 0..1, 1).await?;
    let mut request = member.acknowledgement(&topic, &[(0, 0, &[1])]);
    spoil(&mut request);
    let got = member.send_acknowledgement(&topic, &request).await?.error_code;
    code(&format!("ShareAcknowledge with {what}"), got, &[ErrorCode::INVALID_REQUEST])
}

async fn closing_by_fetch_needs_a_session(lab: Lab) -> Check {
    let (topic, mut member) = lab.with_records(0).await?;
    member.session = -1;
    let got = quick(&mut member, &topic, &[]).await?;
    code("closing by ShareFetch without a session", got, &[ErrorCode::SHARE_SESSION_NOT_FOUND])
}

async fn closing_by_acknowledge_needs_a_session(lab: Lab) -> Check {
    let (topic, mut member) = lab.with_records(0).await?;
    member.session = -1;
    let mut request = member.acknowledgement(&topic, &[]);
    request.topics.clear();
    let got = member.send_acknowledgement(&topic, &request).await?.error_code;
    code("closing by ShareAcknowledge without a session", got, &[ErrorCode::SHARE_SESSION_NOT_FOUND])
}

async fn sessions_of_members_are_apart(lab: Lab) -> Check {
    let (topic, mut member) = lab.with_records(0).await?;
    let mut other = lab.another(&member, &topic).await?;
    for _ in 0..3 {
        ok("ShareFetch of the first member", quick(&mut member, &topic, &[0]).await?)?;
    }
    ok("the second member opens a session", quick(&mut other, &topic, &[0]).await?)?;
    ok("its next epoch", quick(&mut other, &topic, &[]).await?)?;
    ok("the first member goes on", quick(&mut member, &topic, &[]).await?)
}

async fn sessions_of_groups_are_apart(lab: Lab) -> Check {
    let (topic, mut member) = lab.with_records(0).await?;
    let mut other = lab.member(&lab.group(&[]).await?).await?;
    other.id = member.id.clone();
    other.join(&topic).await?;
    ok("ShareFetch in the first group", quick(&mut member, &topic, &[0]).await?)?;
    ok("and again", quick(&mut member, &topic, &[]).await?)?;
    ok("ShareFetch in the second group", quick(&mut other, &topic, &[0]).await?)?;
    ok("the first group goes on", quick(&mut member, &topic, &[]).await?)?;
    ok("leaving the second group", other.heartbeat(-1, None).await?.error_code)
}

async fn epoch_refused(lab: Lab, wrong: fn(i32) -> i32, by_fetch: bool) -> Check {
    let (topic, mut member) = lab.with_records(1).await?;
    member.acquire_exactly(&topic, 0..1, 1).await?;
    ok("one more ShareFetch", quick(&mut member, &topic, &[]).await?)?;
    let right = member.session;
    member.session = wrong(right);
    let what = format!("epoch {} where {right} is next", member.session);
    let got = match by_fetch {
        true => quick(&mut member, &topic, &[0]).await?,
        false => member.acknowledge(&topic, &[(0, 0, &[1])]).await?,
    };
    code(&what, got, &[ErrorCode::INVALID_SHARE_SESSION_EPOCH])?;
    member.session = right;
    member.acknowledge_ok(&topic, &[(0, 0, &[1])]).await
}

async fn fetch_and_acknowledge_share_the_epoch(lab: Lab) -> Check {
    let (topic, mut member) = lab.with_records(3).await?;
    member.acquire_exactly(&topic, 0..3, 1).await?;
    for offset in 0..3 {
        member.acknowledge_ok(&topic, &[(offset, offset, &[1])]).await?;
        ok("ShareFetch between acknowledgements", quick(&mut member, &topic, &[]).await?)?;
    }
    Ok(())
}

async fn closing_fetch_acquires_nothing(lab: Lab) -> Check {
    let (topic, mut member) = lab.with_records(0).await?;
    ok("ShareFetch", quick(&mut member, &topic, &[0]).await?)?;
    Producer::plain(&lab).await?.produce(&topic, 0, 2).await?;
    let mut request = member.fetch(&topic, &[]);
    request.share_session_epoch = -1;
    let response = member.send_fetch(&topic, &request).await?;
    ok("ShareFetch at epoch -1", response.error_code)?;
    equal("acquired by the closing fetch", crate::lab::acquired(&response)?, vec![])
}

async fn closing_fetch_may_acknowledge(lab: Lab) -> Check {
    let (topic, mut member) = lab.with_records(2).await?;
    let mut other = lab.another(&member, &topic).await?;
    member.acquire_exactly(&topic, 0..2, 1).await?;
    let mut request = member.fetch_with(&topic, &[(0, 0, &[1])]);
    request.share_session_epoch = -1;
    let response = member.send_fetch(&topic, &request).await?;
    ok("ShareFetch at epoch -1 with an acknowledgement", response.error_code)?;
    for row in response.responses.iter().flat_map(|t| &t.partitions) {
        ok("its acknowledgement", row.acknowledge_error_code)?;
    }
    let again = other.acquire(&topic, 1).await?;
    equal("offsets that come again", again.iter().map(|(offset, _)| *offset).collect::<Vec<_>>(), vec![1])
}

async fn forget(member: &mut Member, topic: &Topic, partition: i32) -> Check {
    let mut request = member.fetch(topic, &[]);
    request.max_wait_ms = 10;
    request.forgotten_topics_data =
        vec![ForgottenTopic { topic_id: topic.id, partitions: vec![partition], ..Default::default() }];
    ok("ShareFetch that forgets a partition", member.send_fetch(topic, &request).await?.error_code)
}

async fn forgotten_partition_keeps_what_is_acquired(lab: Lab) -> Check {
    let (topic, mut member) = lab.with_records(2).await?;
    let mut other = lab.another(&member, &topic).await?;
    member.acquire_exactly(&topic, 0..2, 1).await?;
    forget(&mut member, &topic, 0).await?;
    other.acquire_nothing(&topic, "the member that forgot the partition holds its records").await?;
    member.acknowledge_ok(&topic, &[(0, 1, &[1])]).await
}

/// Fetches, naming no partition, until something of partition 1 was acquired.
async fn serves_partition_1(member: &mut Member, topic: &Topic) -> Check {
    for _ in 0..20 {
        let request = member.fetch(topic, &[]);
        let response = member.send_fetch(topic, &request).await?;
        ok("ShareFetch", response.error_code)?;
        let rows = response.responses.iter().flat_map(|t| &t.partitions);
        if rows.filter(|p| !p.acquired_records.is_empty()).any(|p| p.partition_index == 1) {
            return Ok(());
        }
    }
    that(false, || "partition 1 is in the session, and nothing of it was acquired".into())
}

async fn two_partitions(lab: &Lab) -> Check<(Topic, Member)> {
    let topic = lab.topic(2).await?;
    let mut member = lab.member(&lab.group(&[]).await?).await?;
    member.join(&topic).await?;
    Ok((topic, member))
}

async fn named_partition_joins_the_session(lab: Lab) -> Check {
    let (topic, mut member) = two_partitions(&lab).await?;
    ok("ShareFetch of partition 0", quick(&mut member, &topic, &[0]).await?)?;
    ok("ShareFetch that names partition 1", quick(&mut member, &topic, &[1]).await?)?;
    Producer::plain(&lab).await?.produce(&topic, 1, 1).await?;
    serves_partition_1(&mut member, &topic).await
}

async fn forgotten_partition_may_come_back(lab: Lab) -> Check {
    let (topic, mut member) = two_partitions(&lab).await?;
    ok("ShareFetch of both partitions", quick(&mut member, &topic, &[0, 1]).await?)?;
    forget(&mut member, &topic, 1).await?;
    ok("ShareFetch that names it again", quick(&mut member, &topic, &[1]).await?)?;
    Producer::plain(&lab).await?.produce(&topic, 1, 1).await?;
    serves_partition_1(&mut member, &topic).await
}

async fn wrong_epoch_does_not_count(lab: Lab) -> Check {
    let (topic, mut member) = lab.with_records(0).await?;
    ok("ShareFetch", quick(&mut member, &topic, &[0]).await?)?;
    let right = member.session;
    for _ in 0..3 {
        member.session = right + 5;
        let got = quick(&mut member, &topic, &[]).await?;
        code("a wrong epoch", got, &[ErrorCode::INVALID_SHARE_SESSION_EPOCH])?;
    }
    member.session = right;
    ok("the right epoch afterwards", quick(&mut member, &topic, &[]).await?)
}

async fn nothing_acknowledged(lab: Lab, by_fetch: bool) -> Check {
    let (topic, mut member) = lab.with_records(1).await?;
    member.acquire_exactly(&topic, 0..1, 1).await?;
    let right = member.session;
    member.session = right + 5;
    let got = match by_fetch {
        true => {
            let request = member.fetch_with(&topic, &[(0, 0, &[1])]);
            member.send_fetch(&topic, &request).await?.error_code
        }
        false => member.acknowledge(&topic, &[(0, 0, &[1])]).await?,
    };
    code("an acknowledgement with a wrong epoch", got, &[ErrorCode::INVALID_SHARE_SESSION_EPOCH])?;
    member.session = right;
    member.acknowledge_ok(&topic, &[(0, 0, &[2])]).await?;
    member.acquire_exactly(&topic, 0..1, 2).await
}

async fn session_may_be_opened_again(lab: Lab) -> Check {
    let (topic, mut member) = lab.with_records(1).await?;
    ok("ShareFetch", quick(&mut member, &topic, &[0]).await?)?;
    member.close_session(&topic).await?;
    equal("epoch of the next session", member.session, 0)?;
    ok("ShareFetch at epoch 0", quick(&mut member, &topic, &[0]).await?)?;
    ok("ShareFetch at epoch 1", quick(&mut member, &topic, &[]).await?)
}

async fn session_serves_all_partitions(lab: Lab) -> Check {
    let topic = lab.topic(3).await?;
    let mut member = lab.member(&lab.group(&[]).await?).await?;
    member.join(&topic).await?;
    let producer = Producer::plain(&lab).await?;
    for partition in 0..3 {
        producer.produce(&topic, partition, 1).await?;
    }
    let mut served = std::collections::BTreeSet::new();
    for _ in 0..30 {
        let request = member.fetch(&topic, &[0, 1, 2]);
        let response = member.send_fetch(&topic, &request).await?;
        ok("ShareFetch of three partitions", response.error_code)?;
        let rows = response.responses.iter().flat_map(|t| &t.partitions).filter(|p| !p.acquired_records.is_empty());
        served.extend(rows.map(|p| p.partition_index));
        if served.len() == 3 {
            return Ok(());
        }
    }
    that(false, || format!("only partitions {served:?} were served"))
}
