//! Acknowledgements in detail: outcomes that cannot change, requests of several batches and partitions.

use super::{SHARE, SHARE_V2};
use crate::case::list;
use crate::expect::{Check, code, equal, ok, that};
use crate::lab::{Ack, Lab, Member, Producer, Topic};
use kafka_share_messages::{ErrorCode, ShareAcknowledgeRequest};
use kafka_share_wire::Uuid;

const ACCEPT: i8 = 1;
const RELEASE: i8 = 2;
const REJECT: i8 = 3;
const GAP: i8 = 0;

list! {
    accepted_cannot_be_accepted(932, SHARE) "SHARE-ACK-20" => final_word(ACCEPT, ACCEPT, false);
    accepted_cannot_be_released(932, SHARE) "SHARE-ACK-20" => final_word(ACCEPT, RELEASE, false);
    accepted_cannot_be_rejected(932, SHARE) "SHARE-ACK-20" => final_word(ACCEPT, REJECT, false);
    rejected_cannot_be_accepted(932, SHARE) "SHARE-ACK-20" => final_word(REJECT, ACCEPT, false);
    rejected_cannot_be_released(932, SHARE) "SHARE-ACK-20" => final_word(REJECT, RELEASE, false);
    rejected_cannot_be_rejected(932, SHARE) "SHARE-ACK-20" => final_word(REJECT, REJECT, false);
    released_cannot_be_accepted(932, SHARE) "SHARE-ACK-20" => final_word(RELEASE, ACCEPT, false);
    released_cannot_be_released(932, SHARE) "SHARE-ACK-20" => final_word(RELEASE, RELEASE, false);
    released_cannot_be_rejected(932, SHARE) "SHARE-ACK-20" => final_word(RELEASE, REJECT, false);
    gap_cannot_be_accepted(932, SHARE) "SHARE-ACK-20" => final_word(GAP, ACCEPT, false);
    accepted_cannot_be_released_by_fetch(932, SHARE) "SHARE-ACK-20" => final_word(ACCEPT, RELEASE, true);
    rejected_cannot_be_accepted_by_fetch(932, SHARE) "SHARE-ACK-20" => final_word(REJECT, ACCEPT, true);
    released_cannot_be_accepted_by_fetch(932, SHARE) "SHARE-ACK-20" => final_word(RELEASE, ACCEPT, true);
    gap_cannot_be_released_by_fetch(932, SHARE) "SHARE-ACK-20" => final_word(GAP, RELEASE, true);
    one_accept_stands_for_all(932, SHARE) "SHARE-ACK-17" => one_for_all(ACCEPT);
    one_reject_stands_for_all(932, SHARE) "SHARE-ACK-17" => one_for_all(REJECT);
    one_gap_stands_for_all(932, SHARE) "SHARE-ACK-17" "SHARE-ACK-22" => one_for_all(GAP);
    acknowledging_backwards_works(932, SHARE) "SHARE-ACK-18" => in_order(&[4, 3, 2, 1, 0]);
    acknowledging_at_random_works(932, SHARE) "SHARE-ACK-18" => in_order(&[2, 0, 4, 1, 3]);
    one_refused_batch_spoils_its_partition(932, SHARE) "SHARE-ACK-19" => spoiled(false);
    one_refused_batch_spoils_its_partition_by_fetch(932, SHARE) "SHARE-ACK-19" => spoiled(true);
    below_the_start_offset_is_no_error(932, SHARE) "SHARE-ACK-21";
    gap_archives_a_record(932, SHARE) "SHARE-ACK-22";
    released_record_goes_to_another_member(932, SHARE) "SHARE-ACK-23" "SHARE-DELIVERY-07";
    partitions_are_judged_apart(932, SHARE) "SHARE-ACK-24" "SHARE-ACK-25";
    each_partition_is_answered(932, SHARE) "SHARE-ACK-25";
    unknown_topic_is_an_error_of_its_row(932, SHARE) "SHARE-ACK-26";
    unknown_partition_is_an_error_of_its_row(932, SHARE) "SHARE-ACK-27";
    acknowledge_tells_the_lock_time(1222, SHARE_V2) "SHARE-ACK-28";
    range_beyond_the_acquired_is_refused(932, SHARE) "SHARE-ACK-29" => beyond((0, 9, &[ACCEPT]));
    range_to_the_last_offset_of_all_is_refused(932, SHARE) "SHARE-ACK-29" => beyond((0, i64::MAX, &[ACCEPT]));
    range_before_the_acquired_is_refused(932, SHARE) "SHARE-ACK-13" => beyond((3, 3, &[ACCEPT]));
    touching_batches_are_refused(932, SHARE) "SHARE-ACK-30";
    type_five_is_refused(932, SHARE) "SHARE-ACK-10" => form(&[(0, 2, &[5])]);
    largest_type_is_refused(932, SHARE) "SHARE-ACK-10" => form(&[(0, 2, &[i8::MAX])]);
    smallest_type_is_refused(932, SHARE) "SHARE-ACK-10" => form(&[(0, 2, &[i8::MIN])]);
    bad_type_behind_good_ones_is_refused(932, SHARE) "SHARE-ACK-10" => form(&[(0, 2, &[ACCEPT, ACCEPT, 7])]);
    too_many_types_are_refused(932, SHARE) "SHARE-ACK-09" => form(&[(0, 1, &[ACCEPT, ACCEPT, ACCEPT])]);
    one_type_short_is_refused(932, SHARE) "SHARE-ACK-09" => form(&[(0, 2, &[ACCEPT, ACCEPT])]);
    second_batch_without_types_is_refused(932, SHARE) "SHARE-ACK-09" => form(&[(0, 1, &[ACCEPT]), (2, 2, &[])]);
    second_batch_reversed_is_refused(932, SHARE) "SHARE-ACK-08" => form(&[(0, 1, &[ACCEPT]), (4, 2, &[ACCEPT])]);
    same_batch_twice_is_refused(932, SHARE) "SHARE-ACK-06" => form(&[(0, 2, &[ACCEPT]), (0, 2, &[ACCEPT])]);
    batch_within_a_batch_is_refused(932, SHARE) "SHARE-ACK-06" => form(&[(0, 5, &[ACCEPT]), (2, 3, &[REJECT])]);
    third_batch_out_of_order_is_refused(932, SHARE) "SHARE-ACK-07"
        => form(&[(0, 0, &[ACCEPT]), (4, 5, &[ACCEPT]), (2, 3, &[ACCEPT])]);
}

/// Acknowledges in partition 0; answers the code that tells of it.
async fn send(member: &mut Member, topic: &Topic, acks: &[Ack<'_>], by_fetch: bool) -> Check<ErrorCode> {
    if !by_fetch {
        return member.acknowledge(topic, acks).await;
    }
    let mut request = member.fetch_with(topic, acks);
    request.max_wait_ms = 10;
    let response = member.send_fetch(topic, &request).await?;
    let rows = response.responses.iter().flat_map(|t| &t.partitions).map(|p| p.acknowledge_error_code);
    Ok(std::iter::once(response.error_code).chain(rows).find(|c| c.is_err()).unwrap_or_default())
}

async fn final_word(lab: Lab, first: i8, second: i8, by_fetch: bool) -> Check {
    // Record 0 stays open, so that the start offset does not move. Another member takes nothing meanwhile.
    let (topic, mut member) = lab.with_records(2).await?;
    member.acquire_exactly(&topic, 0..2, 1).await?;
    member.acknowledge_ok(&topic, &[(1, 1, &[first])]).await?;
    let got = send(&mut member, &topic, &[(1, 1, &[second])], by_fetch).await?;
    // A fetch acknowledges before it acquires.
    code(&format!("type {second} after type {first}"), got, &[ErrorCode::INVALID_RECORD_STATE])
}

async fn one_for_all(lab: Lab, kind: i8) -> Check {
    let (topic, mut member) = lab.with_records(40).await?;
    member.acquire_exactly(&topic, 0..40, 1).await?;
    member.acknowledge_ok(&topic, &[(0, 39, &[kind])]).await?;
    member.acquire_nothing(&topic, "all records are done").await?;
    lab.lag_becomes(&member.group, &topic, 40, 0).await
}

async fn in_order(lab: Lab, order: &[i64]) -> Check {
    let (topic, mut member) = lab.with_records(5).await?;
    member.acquire_exactly(&topic, 0..5, 1).await?;
    for offset in order {
        member.acknowledge_ok(&topic, &[(*offset, *offset, &[ACCEPT])]).await?;
    }
    lab.lag_becomes(&member.group, &topic, 5, 0).await
}

async fn spoiled(lab: Lab, by_fetch: bool) -> Check {
    let (topic, mut member) = lab.with_records(4).await?;
    member.acquire_exactly(&topic, 0..4, 1).await?;
    member.acknowledge_ok(&topic, &[(3, 3, &[ACCEPT])]).await?;
    let got = send(&mut member, &topic, &[(0, 1, &[ACCEPT]), (3, 3, &[ACCEPT])], by_fetch).await?;
    code("a good batch and one that is done", got, &[ErrorCode::INVALID_RECORD_STATE])?;
    member.acknowledge_ok(&topic, &[(0, 2, &[RELEASE])]).await?;
    member.acquire_exactly(&topic, 0..3, 2).await
}

async fn below_the_start_offset_is_no_error(lab: Lab) -> Check {
    let (topic, mut member) = lab.with_records(3).await?;
    member.acquire_exactly(&topic, 0..3, 1).await?;
    member.acknowledge_ok(&topic, &[(0, 1, &[ACCEPT])]).await?;
    member.acknowledge_ok(&topic, &[(0, 1, &[RELEASE])]).await?;
    member.acquire_nothing(&topic, "what lies below the start offset is done").await?;
    member.acknowledge_ok(&topic, &[(2, 2, &[ACCEPT])]).await
}

async fn gap_archives_a_record(lab: Lab) -> Check {
    let (topic, mut member) = lab.with_records(3).await?;
    member.acquire_exactly(&topic, 0..3, 1).await?;
    member.acknowledge_ok(&topic, &[(0, 2, &[RELEASE, GAP, RELEASE])]).await?;
    let again = member.acquire(&topic, 2).await?;
    equal("offsets that come again, with their delivery counts", again, vec![(0, 2), (2, 2)])
}

async fn released_record_goes_to_another_member(lab: Lab) -> Check {
    let (topic, mut member) = lab.with_records(2).await?;
    let mut other = lab.another(&member, &topic).await?;
    member.acquire_exactly(&topic, 0..2, 1).await?;
    member.acknowledge_ok(&topic, &[(0, 1, &[RELEASE])]).await?;
    other.acquire_exactly(&topic, 0..2, 2).await?;
    other.acknowledge_ok(&topic, &[(0, 1, &[RELEASE])]).await?;
    member.acquire_exactly(&topic, 0..2, 3).await
}

/// Two partitions with a record each, both held by the member.
async fn two_held(lab: &Lab) -> Check<(Topic, Member)> {
    let topic = lab.topic(2).await?;
    let mut member = lab.member(&lab.group(&[]).await?).await?;
    member.join(&topic).await?;
    let producer = Producer::plain(lab).await?;
    producer.produce(&topic, 0, 1).await?;
    producer.produce(&topic, 1, 1).await?;
    let mut held = 0;
    for _ in 0..40 {
        let request = member.fetch(&topic, &[0, 1]);
        let response = member.send_fetch(&topic, &request).await?;
        ok("ShareFetch of two partitions", response.error_code)?;
        held += crate::lab::acquired(&response)?.len();
        if held == 2 {
            return Ok((topic, member));
        }
    }
    that(false, || format!("{held} of two records were acquired"))?;
    Ok((topic, member))
}

/// The request for partition 0, and the same for partition 1 behind it.
fn both(member: &Member, topic: &Topic, first: Ack<'_>, second: Ack<'_>) -> ShareAcknowledgeRequest {
    let mut request = member.acknowledgement(topic, &[first]);
    let mut other = member.acknowledgement(topic, &[second]).topics.remove(0).partitions.remove(0);
    other.partition_index = 1;
    request.topics[0].partitions.push(other);
    request
}

async fn codes(member: &mut Member, topic: &Topic, request: &ShareAcknowledgeRequest) -> Check<Vec<(i32, ErrorCode)>> {
    let response = member.send_acknowledgement(topic, request).await?;
    ok("ShareAcknowledge", response.error_code)?;
    let rows = response.responses.iter().flat_map(|t| &t.partitions);
    let mut all: Vec<(i32, ErrorCode)> = rows.map(|p| (p.partition_index, p.error_code)).collect();
    all.sort_by_key(|(partition, _)| *partition);
    Ok(all)
}

async fn partitions_are_judged_apart(lab: Lab) -> Check {
    let (topic, mut member) = two_held(&lab).await?;
    let request = both(&member, &topic, (0, 0, &[ACCEPT]), (0, 0, &[9]));
    let got = codes(&mut member, &topic, &request).await?;
    equal("codes of the rows", got, vec![(0, ErrorCode::NONE), (1, ErrorCode::INVALID_REQUEST)])
}

async fn each_partition_is_answered(lab: Lab) -> Check {
    let (topic, mut member) = two_held(&lab).await?;
    let request = both(&member, &topic, (0, 0, &[ACCEPT]), (0, 0, &[REJECT]));
    let got = codes(&mut member, &topic, &request).await?;
    equal("codes of the rows", got, vec![(0, ErrorCode::NONE), (1, ErrorCode::NONE)])
}

const UNKNOWN: [ErrorCode; 2] = [ErrorCode::UNKNOWN_TOPIC_ID, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION];

async fn unknown_topic_is_an_error_of_its_row(lab: Lab) -> Check {
    let (topic, mut member) = lab.with_records(1).await?;
    member.acquire_exactly(&topic, 0..1, 1).await?;
    let mut request = member.acknowledgement(&topic, &[(0, 0, &[ACCEPT])]);
    request.topics[0].topic_id = Uuid::from_halves(0x5eed, 0x1d);
    let got = codes(&mut member, &topic, &request).await?;
    code("a topic id that does not exist", got.first().map_or(ErrorCode::NONE, |(_, c)| *c), &UNKNOWN)
}

async fn unknown_partition_is_an_error_of_its_row(lab: Lab) -> Check {
    let (topic, mut member) = lab.with_records(1).await?;
    member.acquire_exactly(&topic, 0..1, 1).await?;
    let mut request = member.acknowledgement(&topic, &[(0, 0, &[ACCEPT])]);
    request.topics[0].partitions[0].partition_index = 77;
    let got = codes(&mut member, &topic, &request).await?;
    code("a partition that does not exist", got.first().map_or(ErrorCode::NONE, |(_, c)| *c), &UNKNOWN)
}

async fn acknowledge_tells_the_lock_time(lab: Lab) -> Check {
    let (topic, mut member) = lab.with_records_and(1, &[("share.record.lock.duration.ms", "20000")]).await?;
    member.acquire_exactly(&topic, 0..1, 1).await?;
    let request = member.acknowledgement(&topic, &[(0, 0, &[ACCEPT])]);
    let response = member.send_acknowledgement(&topic, &request).await?;
    ok("ShareAcknowledge", response.error_code)?;
    equal("acquisition lock in milliseconds", response.acquisition_lock_timeout_ms, 20_000)
}

async fn beyond(lab: Lab, ack: Ack<'static>) -> Check {
    let (topic, mut member) = lab.with_records(3).await?;
    member.acquire_exactly(&topic, 0..3, 1).await?;
    let got = member.acknowledge(&topic, &[ack]).await?;
    let allowed = [ErrorCode::INVALID_REQUEST, ErrorCode::INVALID_RECORD_STATE];
    code(&format!("acknowledging {ack:?} where 0 to 2 are held"), got, &allowed)?;
    member.acknowledge_ok(&topic, &[(0, 2, &[ACCEPT])]).await
}

async fn touching_batches_are_refused(lab: Lab) -> Check {
    let (topic, mut member) = lab.with_records(4).await?;
    member.acquire_exactly(&topic, 0..4, 1).await?;
    let got = member.acknowledge(&topic, &[(0, 2, &[ACCEPT]), (2, 3, &[ACCEPT])]).await?;
    let allowed = [ErrorCode::INVALID_RECORD_STATE, ErrorCode::INVALID_REQUEST];
    code("batches that touch in one offset", got, &allowed)
}

/// Acknowledgements that break the form of the request; nothing of them is applied.
async fn form(lab: Lab, acks: &[Ack<'static>]) -> Check {
    let (topic, mut member) = lab.with_records(6).await?;
    member.acquire_exactly(&topic, 0..6, 1).await?;
    for by_fetch in [false, true] {
        let got = send(&mut member, &topic, acks, by_fetch).await?;
        code(&format!("acknowledging {acks:?}, by ShareFetch: {by_fetch}"), got, &[ErrorCode::INVALID_REQUEST])?;
    }
    member.acknowledge_ok(&topic, &[(0, 5, &[ACCEPT])]).await
}
