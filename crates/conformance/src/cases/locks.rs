//! Acquisition locks: expiry and renewal.

use super::{SHARE, SHARE_V2};
use crate::case::list;
use crate::expect::{Check, Stop, code, ok};
use crate::lab::{Lab, Member, Topic};
use kafka_share_messages::ErrorCode;
use std::time::{Duration, Instant};

const RENEW: i8 = 4;
/// Short, so that cases end soon. Brokers whose minimum is above refuse it, and the case is not supported there.
const LOCK: Duration = Duration::from_millis(4000);
const SHORT: &[(&str, &str)] = &[("share.record.lock.duration.ms", "4000")];

list! {
    lock_expires(932, SHARE) "SHARE-LOCK-01" "SHARE-LOCK-02";
    late_acknowledgement_is_refused(932, SHARE) "SHARE-LOCK-03";
    renewed_lock_holds(1222, SHARE_V2) "SHARE-RENEW-01";
    renewal_needs_its_flag(1222, SHARE_V2) "SHARE-RENEW-02";
    fetch_that_renews_fetches_nothing(1222, SHARE_V2) "SHARE-RENEW-03";
}

async fn lock_expires(lab: Lab) -> Check {
    let (topic, mut member) = lab.with_records_and(2, SHORT).await?;
    let mut other = lab.another(&member, &topic).await?;
    // Before the broker's clock starts: however late its answer is seen.
    let start = Instant::now();
    member.acquire_exactly(&topic, 0..2, 1).await?;
    other.acquire_exactly(&topic, 0..2, 2).await?;
    let held = start.elapsed();
    crate::expect::that(held > LOCK / 2, || format!("a lock of {LOCK:?} was over after {held:?}"))
}

async fn late_acknowledgement_is_refused(lab: Lab) -> Check {
    let (topic, mut member) = lab.with_records_and(1, SHORT).await?;
    let mut other = lab.another(&member, &topic).await?;
    member.acquire_exactly(&topic, 0..1, 1).await?;
    other.acquire_exactly(&topic, 0..1, 2).await?;
    let got = member.acknowledge(&topic, &[(0, 0, &[1])]).await?;
    code("acknowledging after the lock is over", got, &[ErrorCode::INVALID_RECORD_STATE])?;
    other.acknowledge_ok(&topic, &[(0, 0, &[1])]).await
}

/// Renews one record; answers the code.
async fn renew(member: &mut Member, topic: &Topic) -> Check<ErrorCode> {
    let mut request = member.acknowledgement(topic, &[(0, 0, &[RENEW])]);
    request.is_renew_ack = true;
    let response = member.send_acknowledgement(topic, &request).await?;
    ok("ShareAcknowledge that renews", response.error_code)?;
    let row = response.responses.iter().flat_map(|t| &t.partitions).next();
    row.map(|p| p.error_code).ok_or_else(|| Stop::Failed("no row for the partition".into()))
}

async fn renewed_lock_holds(lab: Lab) -> Check {
    // A busy machine may be late for a renewal; then nothing was shown, and it is tried again.
    for _ in 0..3 {
        let (topic, mut member) = lab.with_records_and(1, SHORT).await?;
        let mut other = lab.another(&member, &topic).await?;
        member.acquire_exactly(&topic, 0..1, 1).await?;
        let start = Instant::now();
        let (mut last, mut late) = (start, false);
        while start.elapsed() < LOCK * 2 {
            tokio::time::sleep(LOCK / 8).await;
            let got = renew(&mut member, &topic).await?;
            late |= last.elapsed() > LOCK * 3 / 4;
            if late {
                break;
            }
            ok("renewing a lock that is held", got)?;
            last = Instant::now();
        }
        if late {
            continue;
        }
        let mut request = other.fetch(&topic, &[0]);
        request.max_wait_ms = 100;
        let response = other.send_fetch(&topic, &request).await?;
        let stolen = !crate::lab::acquired(&response)?.is_empty();
        if last.elapsed() > LOCK * 3 / 4 {
            continue;
        }
        crate::expect::that(!stolen, || "another member got a record whose lock was renewed".into())?;
        return member.acknowledge_ok(&topic, &[(0, 0, &[1])]).await;
    }
    Err(Stop::NotSupported("this machine was too busy three times to renew a lock of 4 s in time".into()))
}

async fn renewal_needs_its_flag(lab: Lab) -> Check {
    let (topic, mut member) = lab.with_records(1).await?;
    member.acquire_exactly(&topic, 0..1, 1).await?;
    let request = member.acknowledgement(&topic, &[(0, 0, &[RENEW])]);
    let response = member.send_acknowledgement(&topic, &request).await?;
    let rows = response.responses.iter().flat_map(|t| &t.partitions).map(|p| p.error_code);
    let got = rows.chain([response.error_code]).find(|c| c.is_err()).unwrap_or_default();
    code("type 4 without IsRenewAck", got, &[ErrorCode::INVALID_REQUEST])
}

async fn fetch_that_renews_fetches_nothing(lab: Lab) -> Check {
    let (topic, mut member) = lab.with_records(1).await?;
    member.acquire_exactly(&topic, 0..1, 1).await?;
    let mut request = member.fetch_with(&topic, &[(0, 0, &[RENEW])]);
    request.is_renew_ack = true;
    let response = member.send_fetch(&topic, &request).await?;
    let what = "ShareFetch that renews and asks for records";
    code(what, response.error_code, &[ErrorCode::INVALID_REQUEST])?;
    let mut request = member.fetch_with(&topic, &[(0, 0, &[RENEW])]);
    request.is_renew_ack = true;
    (request.max_wait_ms, request.min_bytes, request.max_bytes, request.max_records) = (0, 0, 0, 0);
    let response = member.send_fetch(&topic, &request).await?;
    ok("ShareFetch that renews only", response.error_code)?;
    for row in response.responses.iter().flat_map(|t| &t.partitions) {
        ok("its renewal", row.acknowledge_error_code)?;
    }
    member.acknowledge_ok(&topic, &[(0, 0, &[1])]).await
}
