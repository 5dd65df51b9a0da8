//! Acknowledgements: types, gaps, order, ownership.

use super::SHARE;
use crate::case::list;
use crate::expect::{Check, code, equal, ok};
use crate::lab::{Lab, Producer};
use kafka_share_messages::ErrorCode;

const ACCEPT: i8 = 1;
const RELEASE: i8 = 2;
const REJECT: i8 = 3;
const GAP: i8 = 0;

list! {
    accepted_records_do_not_come_again(932, SHARE) "SHARE-ACK-01";
    released_records_come_again(932, SHARE) "SHARE-ACK-02";
    rejected_records_do_not_come_again(932, SHARE) "SHARE-ACK-03";
    one_batch_may_mix_types(932, SHARE) "SHARE-ACK-04";
    gaps_are_acknowledged_with_type_zero(932, SHARE) "SHARE-ACK-05";
    overlapping_batches_are_refused(932, SHARE) "SHARE-ACK-06";
    unordered_batches_are_refused(932, SHARE) "SHARE-ACK-07";
    reversed_range_is_refused(932, SHARE) "SHARE-ACK-08";
    type_count_must_fit(932, SHARE) "SHARE-ACK-09";
    unknown_type_is_refused(932, SHARE) "SHARE-ACK-10";
    records_of_another_member_are_refused(932, SHARE) "SHARE-ACK-11";
    second_acknowledgement_is_refused(932, SHARE) "SHARE-ACK-12";
    offsets_never_acquired_are_refused(932, SHARE) "SHARE-ACK-13";
    fetch_carries_acknowledgements(932, SHARE) "SHARE-ACK-14" "SHARE-FETCH-01";
    part_of_a_batch_can_be_acknowledged(932, SHARE) "SHARE-ACK-15";
}

async fn accepted_records_do_not_come_again(lab: Lab) -> Check {
    let (topic, mut member) = lab.with_records(3).await?;
    member.acquire_exactly(&topic, 0..3, 1).await?;
    member.acknowledge_ok(&topic, &[(0, 2, &[ACCEPT])]).await?;
    member.acquire_nothing(&topic, "all records were accepted").await?;
    lab.lag_becomes(&member.group, &topic, 3, 0).await
}

async fn released_records_come_again(lab: Lab) -> Check {
    let (topic, mut member) = lab.with_records(2).await?;
    member.acquire_exactly(&topic, 0..2, 1).await?;
    member.acknowledge_ok(&topic, &[(0, 1, &[RELEASE])]).await?;
    member.acquire_exactly(&topic, 0..2, 2).await
}

async fn rejected_records_do_not_come_again(lab: Lab) -> Check {
    let (topic, mut member) = lab.with_records(2).await?;
    member.acquire_exactly(&topic, 0..2, 1).await?;
    member.acknowledge_ok(&topic, &[(0, 1, &[REJECT])]).await?;
    member.acquire_nothing(&topic, "all records were rejected").await?;
    lab.lag_becomes(&member.group, &topic, 2, 0).await
}

async fn one_batch_may_mix_types(lab: Lab) -> Check {
    let (topic, mut member) = lab.with_records(4).await?;
    member.acquire_exactly(&topic, 0..4, 1).await?;
    member.acknowledge_ok(&topic, &[(0, 3, &[ACCEPT, RELEASE, REJECT, RELEASE])]).await?;
    let again = member.acquire(&topic, 2).await?;
    equal("offsets that come again, with their delivery counts", again, vec![(1, 2), (3, 2)])
}

async fn gaps_are_acknowledged_with_type_zero(lab: Lab) -> Check {
    let (topic, mut member) = lab.with_records(0).await?;
    // Offsets 0 and 1 are records, 2 is the commit marker, 3 is a record again.
    let mut producer = Producer::transactional(&lab).await?;
    producer.produce(&topic, 0, 2).await?;
    producer.end(true).await?;
    lab.settled(&topic, 3).await?;
    Producer::plain(&lab).await?.produce(&topic, 0, 1).await?;
    let mut held: Vec<i64> = Vec::new();
    while !held.contains(&3) {
        held.extend(member.acquire(&topic, 1).await?.iter().map(|(offset, _)| offset));
    }
    let types: Vec<i8> = held.iter().map(|offset| if *offset == 2 { GAP } else { ACCEPT }).collect();
    let acks: Vec<(i64, i64, &[i8])> =
        held.iter().zip(&types).map(|(o, t)| (*o, *o, std::slice::from_ref(t))).collect();
    member.acknowledge_ok(&topic, &acks).await?;
    lab.lag_becomes(&member.group, &topic, 4, 0).await
}

/// Sends acknowledgements that break the form of the request, twice: alone and on a fetch.
async fn malformed(lab: Lab, what: &str, acks: &[crate::lab::Ack<'_>]) -> Check {
    let (topic, mut member) = lab.with_records(6).await?;
    member.acquire_exactly(&topic, 0..6, 1).await?;
    let request = member.acknowledgement(&topic, acks);
    let response = member.send_acknowledgement(&topic, &request).await?;
    let rows = response.responses.iter().flat_map(|t| &t.partitions).map(|p| p.error_code);
    let got = rows.chain([response.error_code]).find(|c| c.is_err()).unwrap_or_default();
    code(&format!("ShareAcknowledge with {what}"), got, &[ErrorCode::INVALID_REQUEST])?;
    let request = member.fetch_with(&topic, acks);
    let response = member.send_fetch(&topic, &request).await?;
    let rows = response.responses.iter().flat_map(|t| &t.partitions).map(|p| p.acknowledge_error_code);
    let got = rows.chain([response.error_code]).find(|c| c.is_err()).unwrap_or_default();
    code(&format!("ShareFetch with {what}"), got, &[ErrorCode::INVALID_REQUEST])?;
    // Nothing of it was applied: all six are still held, and can be acknowledged.
    member.acknowledge_ok(&topic, &[(0, 5, &[ACCEPT])]).await
}

async fn overlapping_batches_are_refused(lab: Lab) -> Check {
    malformed(lab, "overlapping batches", &[(0, 3, &[ACCEPT]), (2, 5, &[ACCEPT])]).await
}

async fn unordered_batches_are_refused(lab: Lab) -> Check {
    malformed(lab, "batches in falling order", &[(3, 5, &[ACCEPT]), (0, 2, &[ACCEPT])]).await
}

async fn reversed_range_is_refused(lab: Lab) -> Check {
    malformed(lab, "a range whose last offset is below its first", &[(4, 2, &[ACCEPT])]).await
}

async fn type_count_must_fit(lab: Lab) -> Check {
    malformed(lab.clone(), "two types for three offsets", &[(0, 2, &[ACCEPT, ACCEPT])]).await?;
    malformed(lab, "no types", &[(0, 2, &[])]).await
}

async fn unknown_type_is_refused(lab: Lab) -> Check {
    malformed(lab.clone(), "type 9", &[(0, 2, &[9])]).await?;
    malformed(lab, "type -1", &[(0, 2, &[-1])]).await
}

async fn records_of_another_member_are_refused(lab: Lab) -> Check {
    let (topic, mut member) = lab.with_records(2).await?;
    let mut other = lab.another(&member, &topic).await?;
    member.acquire_exactly(&topic, 0..2, 1).await?;
    other.acquire_nothing(&topic, "another member holds all records").await?;
    let got = other.acknowledge(&topic, &[(0, 1, &[ACCEPT])]).await?;
    code("acknowledging records of another member", got, &[ErrorCode::INVALID_RECORD_STATE])?;
    member.acknowledge_ok(&topic, &[(0, 1, &[ACCEPT])]).await
}

async fn second_acknowledgement_is_refused(lab: Lab) -> Check {
    let (topic, mut member) = lab.with_records(2).await?;
    member.acquire_exactly(&topic, 0..2, 1).await?;
    member.acknowledge_ok(&topic, &[(1, 1, &[ACCEPT])]).await?;
    let got = member.acknowledge(&topic, &[(1, 1, &[RELEASE])]).await?;
    code("acknowledging a record twice", got, &[ErrorCode::INVALID_RECORD_STATE])
}

async fn offsets_never_acquired_are_refused(lab: Lab) -> Check {
    let (topic, mut member) = lab.with_records(2).await?;
    member.acquire_exactly(&topic, 0..2, 1).await?;
    let got = member.acknowledge(&topic, &[(50, 51, &[ACCEPT])]).await?;
    let allowed = [ErrorCode::INVALID_RECORD_STATE, ErrorCode::INVALID_REQUEST];
    code("acknowledging offsets that were never acquired", got, &allowed)?;
    member.acknowledge_ok(&topic, &[(0, 1, &[ACCEPT])]).await
}

async fn fetch_carries_acknowledgements(lab: Lab) -> Check {
    let (topic, mut member) = lab.with_records(2).await?;
    member.acquire_exactly(&topic, 0..2, 1).await?;
    let request = member.fetch_with(&topic, &[(0, 0, &[ACCEPT]), (1, 1, &[REJECT])]);
    let response = member.send_fetch(&topic, &request).await?;
    ok("ShareFetch with acknowledgements", response.error_code)?;
    let rows = response.responses.iter().flat_map(|t| &t.partitions);
    let codes: Vec<ErrorCode> = rows.map(|p| p.acknowledge_error_code).collect();
    equal("acknowledge error codes", codes, vec![ErrorCode::NONE])?;
    lab.lag_becomes(&member.group, &topic, 2, 0).await
}

async fn part_of_a_batch_can_be_acknowledged(lab: Lab) -> Check {
    let (topic, mut member) = lab.with_records(5).await?;
    let mut other = lab.another(&member, &topic).await?;
    member.acquire_exactly(&topic, 0..5, 1).await?;
    member.acknowledge_ok(&topic, &[(1, 2, &[RELEASE])]).await?;
    other.acquire_exactly(&topic, 1..3, 2).await?;
    member.acknowledge_ok(&topic, &[(0, 0, &[ACCEPT]), (3, 4, &[ACCEPT])]).await?;
    lab.lag_becomes(&member.group, &topic, 1, 2).await
}
