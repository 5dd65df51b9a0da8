//! Share groups over transactional data.

use super::SHARE;
use crate::case::list;
use crate::expect::{Check, equal};
use crate::lab::{Lab, Member, Producer, Topic};

const COMMITTED: &[(&str, &str)] = &[("share.isolation.level", "read_committed")];

list! {
    aborted_records_are_not_delivered(932, SHARE) "SHARE-ISOLATION-01";
    open_transactions_hold_records_back(932, SHARE) "SHARE-ISOLATION-02";
    read_uncommitted_delivers_at_once(932, SHARE) "SHARE-ISOLATION-03";
}

/// Acquires until `last` is among the offsets, and answers those of them that are records of the log.
async fn delivered(lab: &Lab, member: &mut Member, topic: &Topic, last: i64) -> Check<Vec<i64>> {
    let mut all = Vec::new();
    while !all.contains(&last) {
        all.extend(member.acquire(topic, 1).await?.iter().map(|(offset, _)| *offset));
    }
    let data = lab.read(topic, false).await?.offsets;
    Ok(all.into_iter().filter(|o| data.contains(o)).collect())
}

async fn aborted_records_are_not_delivered(lab: Lab) -> Check {
    let (topic, mut member) = lab.with_records_and(0, COMMITTED).await?;
    // Offsets 0-1 aborted, 2 marker, 3-4 committed, 5 marker, 6 plain.
    let mut producer = Producer::transactional(&lab).await?;
    producer.produce(&topic, 0, 2).await?;
    producer.end(false).await?;
    lab.settled(&topic, 3).await?;
    producer.produce_from(&topic, 0, if producer.tv2 { 0 } else { 2 }, 2).await?;
    producer.end(true).await?;
    lab.settled(&topic, 6).await?;
    Producer::plain(&lab).await?.produce(&topic, 0, 1).await?;
    let got = delivered(&lab, &mut member, &topic, 6).await?;
    equal("records delivered under read_committed", got, vec![3, 4, 6])
}

async fn open_transactions_hold_records_back(lab: Lab) -> Check {
    let (topic, mut member) = lab.with_records_and(0, COMMITTED).await?;
    let mut producer = Producer::transactional(&lab).await?;
    producer.produce(&topic, 0, 2).await?;
    Producer::plain(&lab).await?.produce(&topic, 0, 1).await?;
    for _ in 0..3 {
        member.acquire_nothing(&topic, "the transaction at the start of the log is open").await?;
    }
    producer.end(true).await?;
    let got = delivered(&lab, &mut member, &topic, 2).await?;
    equal("records delivered after the commit", got, vec![0, 1, 2])
}

async fn read_uncommitted_delivers_at_once(lab: Lab) -> Check {
    let (topic, mut member) = lab.with_records(0).await?;
    let mut producer = Producer::transactional(&lab).await?;
    producer.produce(&topic, 0, 2).await?;
    member.acquire_exactly(&topic, 0..2, 1).await?;
    producer.end(true).await
}
