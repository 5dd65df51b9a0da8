//! Deliveries that are repeated, and where a group begins: counts, limits, locks, deleted records.

use super::{SHARE, SHARE_V2};
use crate::Need;
use crate::case::list;
use crate::expect::{Check, code, equal, ok, that};
use crate::lab::{Lab, Member, Producer, Topic};
use kafka_share::net::Purpose;
use kafka_share_messages::delete_records_request::{DeleteRecordsPartition, DeleteRecordsTopic};
use kafka_share_messages::{ApiKey, DeleteRecordsRequest, ErrorCode};
use std::time::{Duration, Instant};

const DELETE: &[Need] = &[Need::Api(ApiKey::DELETE_RECORDS, 2), Need::Feature("share.version", 1)];
/// Short, so that cases end soon; see locks.rs.
const SHORT: &[(&str, &str)] = &[("share.record.lock.duration.ms", "3000")];
const TWICE: &[(&str, &str)] = &[("share.delivery.count.limit", "2")];
const TWICE_SHORT: &[(&str, &str)] = &[("share.delivery.count.limit", "2"), ("share.record.lock.duration.ms", "3000")];
const FEW_LOCKS: &[(&str, &str)] = &[("share.partition.max.record.locks", "100")];

list! {
    count_belongs_to_the_record(932, SHARE) "SHARE-DELIVERY-07";
    last_delivery_is_alone(932, SHARE_V2) "SHARE-DELIVERY-08";
    archived_record_does_not_stop_the_others(932, SHARE) "SHARE-DELIVERY-09";
    held_record_does_not_stop_the_others(932, SHARE) "SHARE-DELIVERY-09";
    lowest_offsets_come_first(932, SHARE) "SHARE-DELIVERY-10";
    by_duration_begins_with_recent_records(932, SHARE) "SHARE-DELIVERY-11";
    by_duration_leaves_old_records_out(932, SHARE) "SHARE-DELIVERY-11";
    group_begins_at_the_start_of_the_log(932, DELETE) "SHARE-DELIVERY-12";
    deleted_records_are_not_delivered(932, DELETE) "SHARE-DELIVERY-13";
    members_get_different_records(932, SHARE) "SHARE-DELIVERY-14";
    group_without_members_keeps_its_position(932, SHARE) "SHARE-DELIVERY-15";
    end_of_a_lock_counts(932, SHARE) "SHARE-LOCK-04" "SHARE-LOCK-05";
    late_word_is_refused_though_nobody_has_it(932, SHARE) "SHARE-LOCK-06" => late_word(1);
    late_release_is_refused(932, SHARE) "SHARE-LOCK-06" => late_word(2);
    late_rejection_is_refused(932, SHARE) "SHARE-LOCK-06" => late_word(3);
    other_locks_of_the_batch_stay(932, SHARE) "SHARE-LOCK-07";
    lock_on_the_last_delivery_archives(1240, SHARE) "SHARE-CONFIG-07" "SHARE-LOCK-08";
    delivery_limit_of_the_group_counts(1240, SHARE) "SHARE-CONFIG-07";
    locks_are_limited(1240, SHARE) "SHARE-LOCK-09";
    acknowledging_makes_room(1240, SHARE) "SHARE-LOCK-10";
}

async fn count_belongs_to_the_record(lab: Lab) -> Check {
    let (topic, mut first) = lab.with_records(1).await?;
    let mut second = lab.another(&first, &topic).await?;
    for count in [1, 3] {
        first.acquire_exactly(&topic, 0..1, count).await?;
        first.acknowledge_ok(&topic, &[(0, 0, &[2])]).await?;
        second.acquire_exactly(&topic, 0..1, count + 1).await?;
        second.acknowledge_ok(&topic, &[(0, 0, &[2])]).await?;
    }
    Ok(())
}

/// Delivers and releases records 0 to 2 until their next delivery is the last.
async fn before_the_last(lab: &Lab, member: &mut Member, topic: &Topic) -> Check<i16> {
    let name = "group.share.delivery.count.limit";
    let limit: i16 = lab.broker_config(topic.node, name).await?.and_then(|v| v.parse().ok()).unwrap_or(5);
    for count in 1..limit {
        let got = member.acquire(topic, 3).await?;
        equal("offsets and delivery counts", got, (0..3).map(|offset| (offset, count)).collect())?;
        member.acknowledge_ok(topic, &[(0, 2, &[2])]).await?;
    }
    Ok(limit)
}

async fn last_delivery_is_alone(lab: Lab) -> Check {
    let (topic, mut member) = lab.with_records(3).await?;
    let limit = before_the_last(&lab, &mut member, &topic).await?;
    for offset in 0..3 {
        let got = member.acquire(&topic, 1).await?;
        equal("acquired for the last time", got, vec![(offset, limit)])?;
    }
    member.acknowledge_ok(&topic, &[(0, 2, &[1])]).await
}

async fn archived_record_does_not_stop_the_others(lab: Lab) -> Check {
    let (topic, mut member) = lab.with_records(3).await?;
    member.acquire_exactly(&topic, 0..3, 1).await?;
    member.acknowledge_ok(&topic, &[(0, 2, &[3, 2, 2])]).await?;
    member.acquire_exactly(&topic, 1..3, 2).await
}

async fn held_record_does_not_stop_the_others(lab: Lab) -> Check {
    let (topic, mut member) = lab.with_records(2).await?;
    let mut other = lab.another(&member, &topic).await?;
    member.acquire_exactly(&topic, 0..2, 1).await?;
    Producer::plain(&lab).await?.produce(&topic, 0, 2).await?;
    other.acquire_exactly(&topic, 2..4, 1).await
}

async fn lowest_offsets_come_first(lab: Lab) -> Check {
    let (topic, mut member) = lab.with_records(4).await?;
    member.acquire_exactly(&topic, 0..4, 1).await?;
    member.acknowledge_ok(&topic, &[(2, 3, &[2])]).await?;
    member.acknowledge_ok(&topic, &[(0, 1, &[2])]).await?;
    let got = member.acquire(&topic, 4).await?;
    equal("order in which released records come", got.iter().map(|(o, _)| *o).collect::<Vec<_>>(), vec![0, 1, 2, 3])
}

async fn begins(lab: &Lab, topic: &Topic, reset: &str, want: Vec<i64>) -> Check {
    let group = lab.plain_group();
    lab.set_group_configs(&group, &[("share.auto.offset.reset", reset)]).await?;
    let mut member = lab.member(&group).await?;
    member.join(topic).await?;
    let got = member.acquire(topic, want.len()).await?;
    equal(&format!("offsets with {reset}"), got.iter().map(|(o, _)| *o).collect::<Vec<_>>(), want)
}

async fn by_duration_begins_with_recent_records(lab: Lab) -> Check {
    let topic = lab.topic(1).await?;
    Producer::plain(&lab).await?.produce(&topic, 0, 2).await?;
    begins(&lab, &topic, "by_duration:PT1H", vec![0, 1]).await
}

async fn by_duration_leaves_old_records_out(lab: Lab) -> Check {
    let topic = lab.topic(1).await?;
    let producer = Producer::plain(&lab).await?;
    let now = std::time::UNIX_EPOCH.elapsed().map_or(0, |t| t.as_millis() as i64);
    let old = producer.single(now - 7_200_000, None, Some(b"old"), &[])?;
    ok("Produce", producer.send(&topic, 0, old).await?.0)?;
    producer.produce(&topic, 0, 2).await?;
    begins(&lab, &topic, "by_duration:PT1H", vec![1, 2]).await
}

async fn delete_records(lab: &Lab, topic: &Topic, offset: i64) -> Check {
    let row = DeleteRecordsPartition { partition_index: 0, offset, ..Default::default() };
    let row = DeleteRecordsTopic { name: topic.name.clone(), partitions: vec![row], ..Default::default() };
    let request = DeleteRecordsRequest { topics: vec![row], timeout_ms: 10_000, ..Default::default() };
    let response = lab.call(lab.cluster(), topic.node, Purpose::Coordination, &request, None).await?;
    for row in response.topics.iter().flat_map(|t| &t.partitions) {
        ok("DeleteRecords", row.error_code)?;
    }
    Ok(())
}

async fn group_begins_at_the_start_of_the_log(lab: Lab) -> Check {
    let topic = lab.topic(1).await?;
    let producer = Producer::plain(&lab).await?;
    producer.produce(&topic, 0, 3).await?;
    producer.produce(&topic, 0, 3).await?;
    delete_records(&lab, &topic, 3).await?;
    begins(&lab, &topic, "earliest", vec![3, 4, 5]).await
}

async fn deleted_records_are_not_delivered(lab: Lab) -> Check {
    let (topic, mut member) = lab.with_records(3).await?;
    Producer::plain(&lab).await?.produce(&topic, 0, 3).await?;
    let got = member.acquire(&topic, 6).await?;
    equal("records before", got.len(), 6)?;
    member.acknowledge_ok(&topic, &[(0, 5, &[2])]).await?;
    delete_records(&lab, &topic, 3).await?;
    let got = member.acquire(&topic, 3).await?;
    equal("offsets after DeleteRecords", got.iter().map(|(o, _)| *o).collect::<Vec<_>>(), vec![3, 4, 5])
}

async fn members_get_different_records(lab: Lab) -> Check {
    let (topic, mut first) = lab.with_records(2).await?;
    let mut second = lab.another(&first, &topic).await?;
    let producer = Producer::plain(&lab).await?;
    for _ in 0..4 {
        producer.produce(&topic, 0, 2).await?;
    }
    let mut all = Vec::new();
    for _ in 0..20 {
        for member in [&mut first, &mut second] {
            let mut request = member.fetch(&topic, &[0]);
            (request.max_records, request.batch_size, request.max_wait_ms) = (2, 2, 100);
            let response = member.send_fetch(&topic, &request).await?;
            ok("ShareFetch", response.error_code)?;
            all.extend(crate::lab::acquired(&response)?);
        }
        if all.len() >= 10 {
            break;
        }
    }
    all.sort_unstable();
    equal("offsets and delivery counts of both members", all, (0..10).map(|offset| (offset, 1)).collect())
}

async fn group_without_members_keeps_its_position(lab: Lab) -> Check {
    let (topic, mut member) = lab.with_records(4).await?;
    member.acquire_exactly(&topic, 0..4, 1).await?;
    member.acknowledge_ok(&topic, &[(0, 1, &[1])]).await?;
    member.close_session(&topic).await?;
    ok("leaving", member.heartbeat(-1, None).await?.error_code)?;
    let group = member.group.clone();
    member.vanish();
    let mut later = lab.member(&group).await?;
    later.join(&topic).await?;
    let got = later.acquire(&topic, 2).await?;
    equal("offsets that are left", got.iter().map(|(o, _)| *o).collect::<Vec<_>>(), vec![2, 3])
}

async fn end_of_a_lock_counts(lab: Lab) -> Check {
    let (topic, mut member) = lab.with_records_and(1, SHORT).await?;
    member.acquire_exactly(&topic, 0..1, 1).await?;
    member.acquire_exactly(&topic, 0..1, 2).await
}

async fn late_word(lab: Lab, kind: i8) -> Check {
    let (topic, mut member) = lab.with_records_and(1, SHORT).await?;
    member.acquire_exactly(&topic, 0..1, 1).await?;
    let until = Instant::now() + Duration::from_millis(4500);
    tokio::time::sleep_until(until.into()).await;
    let got = member.acknowledge(&topic, &[(0, 0, &[kind])]).await?;
    code(&format!("type {kind} after the lock of 3 s is over"), got, &[ErrorCode::INVALID_RECORD_STATE])
}

async fn other_locks_of_the_batch_stay(lab: Lab) -> Check {
    let (topic, mut member) = lab.with_records(3).await?;
    let mut other = lab.another(&member, &topic).await?;
    member.acquire_exactly(&topic, 0..3, 1).await?;
    member.acknowledge_ok(&topic, &[(1, 1, &[1])]).await?;
    other.acquire_nothing(&topic, "records 0 and 2 are held, 1 is done").await?;
    member.acknowledge_ok(&topic, &[(0, 0, &[1]), (2, 2, &[1])]).await
}

async fn lock_on_the_last_delivery_archives(lab: Lab) -> Check {
    let (topic, mut member) = lab.with_records_and(1, TWICE_SHORT).await?;
    member.acquire_exactly(&topic, 0..1, 1).await?;
    member.acquire_exactly(&topic, 0..1, 2).await?;
    lab.lag_becomes(&member.group, &topic, 1, 0).await?;
    member.acquire_nothing(&topic, "the lock of the last delivery is over").await
}

async fn delivery_limit_of_the_group_counts(lab: Lab) -> Check {
    let (topic, mut member) = lab.with_records_and(1, TWICE).await?;
    for count in 1..=2 {
        member.acquire_exactly(&topic, 0..1, count).await?;
        member.acknowledge_ok(&topic, &[(0, 0, &[2])]).await?;
    }
    member.acquire_nothing(&topic, "the group's limit is two deliveries").await
}

/// 30 batches of 10 records, of which the member acquires what it can.
async fn filled(lab: &Lab) -> Check<(Topic, Member, Vec<i64>)> {
    let (topic, mut member) = lab.with_records_and(10, FEW_LOCKS).await?;
    let producer = Producer::plain(lab).await?;
    for _ in 1..30 {
        producer.produce(&topic, 0, 10).await?;
    }
    let mut held: Vec<i64> = Vec::new();
    let mut quiet = 0;
    while quiet < 3 {
        let mut request = member.fetch(&topic, &[0]);
        (request.max_records, request.batch_size, request.max_wait_ms) = (10, 10, 200);
        let response = member.send_fetch(&topic, &request).await?;
        ok("ShareFetch", response.error_code)?;
        let got = crate::lab::acquired(&response)?;
        quiet = if got.is_empty() && !held.is_empty() { quiet + 1 } else { 0 };
        held.extend(got.iter().map(|(offset, _)| *offset));
    }
    Ok((topic, member, held))
}

async fn locks_are_limited(lab: Lab) -> Check {
    let (_, _, held) = filled(&lab).await?;
    // Batches may be acquired whole, so that the last one may go beyond.
    let fits = (100..120).contains(&held.len());
    that(fits, || format!("{} records are in flight, share.partition.max.record.locks is 100", held.len()))
}

async fn acknowledging_makes_room(lab: Lab) -> Check {
    let (topic, mut member, held) = filled(&lab).await?;
    let last = held.len() as i64 - 1;
    member.acknowledge_ok(&topic, &[(0, last, &[1])]).await?;
    let got = member.acquire(&topic, 10).await?;
    equal("first offset after the acknowledgement", got[0].0, last + 1)
}
