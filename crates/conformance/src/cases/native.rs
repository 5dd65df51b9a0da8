//! Share acknowledgements in transactions (KIP-1289, draft).

use crate::Need;
use crate::case::list;
use crate::expect::{Check, Stop, code, ok};
use crate::lab::{Lab, Member, Producer, Topic, TxnAck};
use kafka_share_messages::{ApiKey, ErrorCode};
use std::time::Duration;

const NATIVE: &[Need] =
    &[Need::Feature("share.version", 3), Need::Api(ApiKey(95), 0), Need::Feature("transaction.version", 2)];

list! {
    staged_records_are_not_delivered(1289, NATIVE) "TXN-SHARE-01";
    commit_finishes_staged_records(1289, NATIVE) "TXN-SHARE-02";
    abort_frees_staged_records(1289, NATIVE) "TXN-SHARE-03";
    staged_records_outlive_lock_and_session(1289, NATIVE) "TXN-SHARE-04" "TXN-SHARE-05";
    wrong_member_epoch_cannot_stage(1289, NATIVE) "TXN-SHARE-06";
    only_accept_and_reject_can_be_staged(1289, NATIVE) "TXN-SHARE-07";
    records_not_held_cannot_be_staged(1289, NATIVE) "TXN-SHARE-08";
    output_and_acknowledgement_end_together(1289, NATIVE) "TXN-SHARE-09";
}

fn who(producer: &Producer, member: &Member) -> Check<TxnAck> {
    let id = producer.transactional_id.clone();
    Ok(TxnAck {
        transactional_id: id.ok_or_else(|| Stop::Failed("the producer has no transactional id".into()))?,
        producer_id: producer.id,
        producer_epoch: producer.epoch,
        member_epoch: member.epoch,
    })
}

/// A member with three records acquired and a producer.
async fn start(lab: &Lab, configs: &[(&str, &str)]) -> Check<(Topic, Member, Producer)> {
    let (topic, mut member) = lab.with_records_and(3, configs).await?;
    member.acquire_exactly(&topic, 0..3, 1).await?;
    Ok((topic, member, Producer::transactional(lab).await?))
}

async fn stage(topic: &Topic, member: &Member, producer: &Producer) -> Check {
    let got = member.stage(topic, &who(producer, member)?, &[(0, 2, &[1, 3, 1])]).await?;
    ok("TxnShareAcknowledge", got)
}

async fn staged_records_are_not_delivered(lab: Lab) -> Check {
    let (topic, mut member, mut producer) = start(&lab, &[]).await?;
    let mut other = lab.another(&member, &topic).await?;
    stage(&topic, &member, &producer).await?;
    other.acquire_nothing(&topic, "all records are staged in a transaction").await?;
    let got = member.acknowledge(&topic, &[(0, 0, &[1])]).await?;
    code("acknowledging a staged record", got, &[ErrorCode::INVALID_RECORD_STATE])?;
    producer.end(false).await
}

async fn commit_finishes_staged_records(lab: Lab) -> Check {
    let (topic, mut member, mut producer) = start(&lab, &[]).await?;
    stage(&topic, &member, &producer).await?;
    producer.end(true).await?;
    lab.lag_becomes(&member.group, &topic, 3, 0).await?;
    member.acquire_nothing(&topic, "all records were committed").await
}

async fn abort_frees_staged_records(lab: Lab) -> Check {
    let (topic, mut member, mut producer) = start(&lab, &[]).await?;
    stage(&topic, &member, &producer).await?;
    producer.end(false).await?;
    member.acquire_exactly(&topic, 0..3, 2).await?;
    member.acknowledge_ok(&topic, &[(0, 2, &[1])]).await
}

async fn staged_records_outlive_lock_and_session(lab: Lab) -> Check {
    let (topic, mut member, mut producer) = start(&lab, &[("share.record.lock.duration.ms", "5000")]).await?;
    stage(&topic, &member, &producer).await?;
    member.close_session(&topic).await?;
    let mut other = lab.another(&member, &topic).await?;
    tokio::time::sleep(Duration::from_millis(5500)).await;
    other.acquire_nothing(&topic, "all records are staged, whatever became of lock and session").await?;
    producer.end(true).await?;
    lab.lag_becomes(&member.group, &topic, 3, 0).await
}

async fn wrong_member_epoch_cannot_stage(lab: Lab) -> Check {
    let (topic, mut member, producer) = start(&lab, &[]).await?;
    let mut wrong = who(&producer, &member)?;
    wrong.member_epoch += 1;
    let got = member.stage(&topic, &wrong, &[(0, 2, &[1])]).await?;
    let allowed = [ErrorCode::FENCED_MEMBER_EPOCH, ErrorCode::STALE_MEMBER_EPOCH, ErrorCode::UNKNOWN_MEMBER_ID];
    code("staging with a member epoch ahead", got, &allowed)?;
    member.acknowledge_ok(&topic, &[(0, 2, &[1])]).await
}

async fn only_accept_and_reject_can_be_staged(lab: Lab) -> Check {
    let (topic, mut member, producer) = start(&lab, &[]).await?;
    for kind in [2_i8, 4, 9] {
        let got = member.stage(&topic, &who(&producer, &member)?, &[(0, 2, &[kind])]).await?;
        code(&format!("staging type {kind}"), got, &[ErrorCode::INVALID_REQUEST])?;
    }
    member.acknowledge_ok(&topic, &[(0, 2, &[1])]).await
}

async fn records_not_held_cannot_be_staged(lab: Lab) -> Check {
    let (topic, mut member, producer) = start(&lab, &[]).await?;
    // What lies before the start offset may be skipped silently, so one record before it stays open.
    member.acknowledge_ok(&topic, &[(1, 2, &[1])]).await?;
    let got = member.stage(&topic, &who(&producer, &member)?, &[(1, 1, &[1])]).await?;
    code("staging a record that is done", got, &[ErrorCode::INVALID_RECORD_STATE])?;
    let other = lab.another(&member, &topic).await?;
    let got = other.stage(&topic, &who(&producer, &other)?, &[(0, 0, &[1])]).await?;
    code("staging a record that another member holds", got, &[ErrorCode::INVALID_RECORD_STATE])
}

async fn output_and_acknowledgement_end_together(lab: Lab) -> Check {
    let (topic, mut member, mut producer) = start(&lab, &[]).await?;
    let output = lab.topic(1).await?;
    producer.produce(&output, 0, 3).await?;
    stage(&topic, &member, &producer).await?;
    producer.end(false).await?;
    member.acquire_exactly(&topic, 0..3, 2).await?;
    producer.produce(&output, 0, 3).await?;
    stage(&topic, &member, &producer).await?;
    producer.end(true).await?;
    lab.lag_becomes(&member.group, &topic, 3, 0).await?;
    let mut seen = Vec::new();
    for _ in 0..100 {
        seen = lab.read(&output, true).await?.offsets;
        if seen.len() == 3 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    crate::expect::equal("offsets of the output that read_committed sees", seen, vec![4, 5, 6])
}
