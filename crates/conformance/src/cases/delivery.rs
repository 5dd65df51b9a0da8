//! What is delivered, to whom, how often.

use super::{SHARE, SHARE_V2};
use crate::case::list;
use crate::expect::{Check, code, equal, fail, ok, that};
use crate::lab::{Lab, Producer};
use kafka_share_messages::ErrorCode;

list! {
    acquired_records_are_locked_for_others(932, SHARE) "SHARE-DELIVERY-01";
    each_delivery_counts_one(932, SHARE) "SHARE-DELIVERY-02";
    delivery_limit_archives_the_record(932, SHARE) "SHARE-DELIVERY-03";
    answer_tells_the_lock_time(932, SHARE) "SHARE-FETCH-03";
    new_group_starts_at_the_end(932, SHARE) "SHARE-DELIVERY-04";
    earliest_starts_at_the_beginning(932, SHARE) "SHARE-DELIVERY-05";
    groups_do_not_share_state(932, SHARE) "SHARE-DELIVERY-06";
    record_limit_is_strict(1206, SHARE_V2) "SHARE-FETCH-04";
    unknown_acquire_mode_is_refused(1206, SHARE_V2) "SHARE-FETCH-05";
}

async fn acquired_records_are_locked_for_others(lab: Lab) -> Check {
    let (topic, mut member) = lab.with_records(3).await?;
    let mut other = lab.another(&member, &topic).await?;
    member.acquire_exactly(&topic, 0..3, 1).await?;
    other.acquire_nothing(&topic, "another member holds all records").await?;
    member.acquire_nothing(&topic, "the member itself holds all records").await
}

async fn each_delivery_counts_one(lab: Lab) -> Check {
    let (topic, mut member) = lab.with_records(1).await?;
    for count in 1..=3 {
        member.acquire_exactly(&topic, 0..1, count).await?;
        member.acknowledge_ok(&topic, &[(0, 0, &[2])]).await?;
    }
    Ok(())
}

async fn delivery_limit_archives_the_record(lab: Lab) -> Check {
    let (topic, mut member) = lab.with_records(1).await?;
    let name = "group.share.delivery.count.limit";
    let limit: i16 = lab.broker_config(topic.node, name).await?.and_then(|v| v.parse().ok()).unwrap_or(5);
    for count in 1..=limit {
        member.acquire_exactly(&topic, 0..1, count).await?;
        member.acknowledge_ok(&topic, &[(0, 0, &[2])]).await?;
    }
    member.acquire_nothing(&topic, &format!("the record was delivered {limit} times")).await?;
    lab.lag_becomes(&member.group, &topic, 1, 0).await
}

async fn answer_tells_the_lock_time(lab: Lab) -> Check {
    let (topic, mut member) = lab.with_records(1).await?;
    let request = member.fetch(&topic, &[0]);
    let response = member.send_fetch(&topic, &request).await?;
    ok("ShareFetch", response.error_code)?;
    let lock = response.acquisition_lock_timeout_ms;
    that((1..=3_600_000).contains(&lock), || format!("acquisition lock of {lock} ms"))
}

async fn new_group_starts_at_the_end(lab: Lab) -> Check {
    let topic = lab.topic(1).await?;
    let producer = Producer::plain(&lab).await?;
    producer.produce(&topic, 0, 3).await?;
    let mut member = lab.member(&lab.plain_group()).await?;
    member.join(&topic).await?;
    // The start is fixed at the first fetch, which may come back before the share-partition is ready.
    for _ in 0..3 {
        member.acquire_nothing(&topic, "share.auto.offset.reset is latest").await?;
    }
    producer.produce(&topic, 0, 1).await?;
    member.acquire_exactly(&topic, 3..4, 1).await
}

async fn earliest_starts_at_the_beginning(lab: Lab) -> Check {
    let (topic, mut member) = lab.with_records(3).await?;
    member.acquire_exactly(&topic, 0..3, 1).await
}

async fn groups_do_not_share_state(lab: Lab) -> Check {
    let (topic, mut member) = lab.with_records(2).await?;
    let mut stranger = lab.member(&lab.group(&[]).await?).await?;
    stranger.join(&topic).await?;
    member.acquire_exactly(&topic, 0..2, 1).await?;
    member.acknowledge_ok(&topic, &[(0, 1, &[1])]).await?;
    stranger.acquire_exactly(&topic, 0..2, 1).await
}

async fn record_limit_is_strict(lab: Lab) -> Check {
    let (topic, mut member) = lab.with_records(10).await?;
    let mut next = 0;
    for _ in 0..30 {
        let mut request = member.fetch(&topic, &[0]);
        (request.share_acquire_mode, request.max_records) = (1, 3);
        let response = member.send_fetch(&topic, &request).await?;
        ok("ShareFetch", response.error_code)?;
        let got: Vec<i64> = crate::lab::acquired(&response)?.iter().map(|(offset, _)| *offset).collect();
        that(got.len() <= 3, || format!("record_limit of 3, but {got:?} were acquired"))?;
        equal("offsets acquired", got.clone(), (next..next + got.len() as i64).collect())?;
        next += got.len() as i64;
        if next == 10 {
            return Ok(());
        }
    }
    fail(format!("{next} of 10 records came within 30 fetches"))
}

async fn unknown_acquire_mode_is_refused(lab: Lab) -> Check {
    let (topic, mut member) = lab.with_records(1).await?;
    let mut request = member.fetch(&topic, &[0]);
    request.share_acquire_mode = 7;
    let response = member.send_fetch(&topic, &request).await?;
    // Kafka 4.4.0 answers UNKNOWN_SERVER_ERROR, where INVALID_REQUEST would say what is wrong.
    let allowed = [ErrorCode::INVALID_REQUEST, ErrorCode::UNKNOWN_SERVER_ERROR];
    code("ShareFetch with acquire mode 7", response.error_code, &allowed)
}
