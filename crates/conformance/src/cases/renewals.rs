//! Renewals in detail (KIP-1222): whose, what beside them, where they are refused.

use super::{SHARE, SHARE_V2};
use crate::case::list;
use crate::expect::{Check, Stop, code, equal, ok};
use crate::lab::{Ack, Lab, Member, Topic};
use kafka_share_messages::{ErrorCode, ShareFetchRequest};

const RENEW: i8 = 4;

list! {
    renewed_record_can_be_accepted(1222, SHARE_V2) "SHARE-RENEW-04" => renewed_then(1, &[]);
    renewed_record_can_be_released(1222, SHARE_V2) "SHARE-RENEW-04" "SHARE-RENEW-08" => renewed_then(2, &[(0, 2)]);
    renewed_record_can_be_rejected(1222, SHARE_V2) "SHARE-RENEW-04" => renewed_then(3, &[]);
    another_members_lock_cannot_be_renewed(1222, SHARE_V2) "SHARE-RENEW-05";
    accepted_record_cannot_be_renewed(1222, SHARE_V2) "SHARE-RENEW-06" => done_then_renewed(1);
    released_record_cannot_be_renewed(1222, SHARE_V2) "SHARE-RENEW-06" => done_then_renewed(2);
    rejected_record_cannot_be_renewed(1222, SHARE_V2) "SHARE-RENEW-06" => done_then_renewed(3);
    group_may_forbid_renewals(1240, SHARE_V2) "SHARE-RENEW-07";
    renewing_twice_does_not_count(1222, SHARE_V2) "SHARE-RENEW-08";
    renewals_may_be_mixed(1222, SHARE_V2) "SHARE-RENEW-09";
    version_1_has_no_renewals(1222, SHARE) "SHARE-RENEW-10" => old_version(false);
    version_1_fetch_has_no_renewals(1222, SHARE) "SHARE-RENEW-10" => old_version(true);
    offset_never_acquired_cannot_be_renewed(1222, SHARE_V2) "SHARE-RENEW-11";
    renewing_fetch_with_max_wait_is_refused(1222, SHARE_V2) "SHARE-RENEW-03" => loud(|r| r.max_wait_ms = 100);
    renewing_fetch_with_min_bytes_is_refused(1222, SHARE_V2) "SHARE-RENEW-03" => loud(|r| r.min_bytes = 1);
    renewing_fetch_with_max_bytes_is_refused(1222, SHARE_V2) "SHARE-RENEW-03" => loud(|r| r.max_bytes = 1);
    renewing_fetch_with_max_records_is_refused(1222, SHARE_V2) "SHARE-RENEW-03" => loud(|r| r.max_records = 1);
    fetch_renewal_needs_its_flag(1222, SHARE_V2) "SHARE-RENEW-02";
}

/// Sends acknowledgements in a request that says IsRenewAck; answers the code of the partition.
async fn renew(member: &mut Member, topic: &Topic, acks: &[Ack<'_>]) -> Check<ErrorCode> {
    let mut request = member.acknowledgement(topic, acks);
    request.is_renew_ack = true;
    let response = member.send_acknowledgement(topic, &request).await?;
    ok("ShareAcknowledge that renews", response.error_code)?;
    let row = response.responses.iter().flat_map(|t| &t.partitions).next();
    row.map(|p| p.error_code).ok_or_else(|| Stop::Failed("no row for the partition".into()))
}

async fn renewed_then(lab: Lab, kind: i8, again: &[(i64, i16)]) -> Check {
    let (topic, mut member) = lab.with_records(1).await?;
    member.acquire_exactly(&topic, 0..1, 1).await?;
    ok("renewing", renew(&mut member, &topic, &[(0, 0, &[RENEW])]).await?)?;
    member.acknowledge_ok(&topic, &[(0, 0, &[kind])]).await?;
    match again {
        [] => member.acquire_nothing(&topic, "the record is done").await,
        _ => equal("what comes again", member.acquire(&topic, again.len()).await?, again.to_vec()),
    }
}

async fn another_members_lock_cannot_be_renewed(lab: Lab) -> Check {
    let (topic, mut member) = lab.with_records(1).await?;
    let mut other = lab.another(&member, &topic).await?;
    member.acquire_exactly(&topic, 0..1, 1).await?;
    other.acquire_nothing(&topic, "another member holds the record").await?;
    let got = renew(&mut other, &topic, &[(0, 0, &[RENEW])]).await?;
    code("renewing a record of another member", got, &[ErrorCode::INVALID_RECORD_STATE])
}

async fn done_then_renewed(lab: Lab, kind: i8) -> Check {
    let (topic, mut member) = lab.with_records(2).await?;
    member.acquire_exactly(&topic, 0..2, 1).await?;
    member.acknowledge_ok(&topic, &[(1, 1, &[kind])]).await?;
    let got = renew(&mut member, &topic, &[(1, 1, &[RENEW])]).await?;
    code(&format!("renewing after type {kind}"), got, &[ErrorCode::INVALID_RECORD_STATE])
}

async fn group_may_forbid_renewals(lab: Lab) -> Check {
    let (topic, mut member) = lab.with_records_and(1, &[("share.renew.acknowledge.enable", "false")]).await?;
    member.acquire_exactly(&topic, 0..1, 1).await?;
    let got = renew(&mut member, &topic, &[(0, 0, &[RENEW])]).await?;
    code("renewing where the group forbids it", got, &[ErrorCode::INVALID_RECORD_STATE])?;
    member.acknowledge_ok(&topic, &[(0, 0, &[1])]).await
}

async fn renewing_twice_does_not_count(lab: Lab) -> Check {
    let (topic, mut member) = lab.with_records(2).await?;
    member.acquire_exactly(&topic, 0..2, 1).await?;
    for _ in 0..3 {
        ok("renewing", renew(&mut member, &topic, &[(0, 1, &[RENEW])]).await?)?;
    }
    member.acknowledge_ok(&topic, &[(0, 1, &[2])]).await?;
    member.acquire_exactly(&topic, 0..2, 2).await
}

async fn renewals_may_be_mixed(lab: Lab) -> Check {
    let (topic, mut member) = lab.with_records(3).await?;
    member.acquire_exactly(&topic, 0..3, 1).await?;
    ok("types 1, 4 and 2 in one request", renew(&mut member, &topic, &[(0, 2, &[1, RENEW, 2])]).await?)?;
    member.acquire_exactly(&topic, 2..3, 2).await?;
    member.acknowledge_ok(&topic, &[(1, 1, &[1])]).await
}

async fn old_version(lab: Lab, by_fetch: bool) -> Check {
    let (topic, mut member) = lab.with_records(1).await?;
    member.acquire_exactly(&topic, 0..1, 1).await?;
    let got = match by_fetch {
        true => {
            let request = member.fetch_with(&topic, &[(0, 0, &[RENEW])]);
            let response = member.send_fetch_as(&topic, &request, Some(1)).await?;
            let rows = response.responses.iter().flat_map(|t| &t.partitions).map(|p| p.acknowledge_error_code);
            std::iter::once(response.error_code).chain(rows).find(|c| c.is_err()).unwrap_or_default()
        }
        false => {
            let request = member.acknowledgement(&topic, &[(0, 0, &[RENEW])]);
            let response = member.send_acknowledgement_as(&topic, &request, Some(1)).await?;
            let rows = response.responses.iter().flat_map(|t| &t.partitions).map(|p| p.error_code);
            std::iter::once(response.error_code).chain(rows).find(|c| c.is_err()).unwrap_or_default()
        }
    };
    code("type 4 in version 1", got, &[ErrorCode::INVALID_REQUEST])
}

async fn offset_never_acquired_cannot_be_renewed(lab: Lab) -> Check {
    let (topic, mut member) = lab.with_records(1).await?;
    member.acquire_exactly(&topic, 0..1, 1).await?;
    let got = renew(&mut member, &topic, &[(40, 40, &[RENEW])]).await?;
    let allowed = [ErrorCode::INVALID_RECORD_STATE, ErrorCode::INVALID_REQUEST];
    code("renewing an offset that was never acquired", got, &allowed)
}

fn quiet(member: &Member, topic: &Topic) -> ShareFetchRequest {
    let mut request = member.fetch_with(topic, &[(0, 0, &[RENEW])]);
    request.is_renew_ack = true;
    (request.max_wait_ms, request.min_bytes, request.max_bytes, request.max_records) = (0, 0, 0, 0);
    request
}

async fn loud(lab: Lab, spoil: fn(&mut ShareFetchRequest)) -> Check {
    let (topic, mut member) = lab.with_records(1).await?;
    member.acquire_exactly(&topic, 0..1, 1).await?;
    let mut request = quiet(&member, &topic);
    spoil(&mut request);
    let got = member.send_fetch(&topic, &request).await?.error_code;
    code("ShareFetch that renews and asks for records", got, &[ErrorCode::INVALID_REQUEST])?;
    let request = quiet(&member, &topic);
    ok("ShareFetch that renews only", member.send_fetch(&topic, &request).await?.error_code)
}

async fn fetch_renewal_needs_its_flag(lab: Lab) -> Check {
    let (topic, mut member) = lab.with_records(1).await?;
    member.acquire_exactly(&topic, 0..1, 1).await?;
    let mut request = quiet(&member, &topic);
    request.is_renew_ack = false;
    let response = member.send_fetch(&topic, &request).await?;
    let rows = response.responses.iter().flat_map(|t| &t.partitions).map(|p| p.acknowledge_error_code);
    let got = std::iter::once(response.error_code).chain(rows).find(|c| c.is_err()).unwrap_or_default();
    code("type 4 in a ShareFetch without IsRenewAck", got, &[ErrorCode::INVALID_REQUEST])
}
