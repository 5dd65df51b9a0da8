//! Transactions: fencing, ends, what readers see.

use super::ANY;
use crate::Need;
use crate::case::list;
use crate::expect::{Check, code, equal, ok, that};
use crate::lab::{Lab, Producer, Topic};
use kafka_share_messages::{ApiKey, ErrorCode};
use kafka_share_wire::Str;

const TV2: &[Need] =
    &[Need::Feature("transaction.version", 2), Need::Api(ApiKey::END_TXN, 5), Need::Api(ApiKey::PRODUCE, 12)];

list! {
    init_bumps_the_epoch_and_fences(98, ANY) "TXN-INIT-01" "TXN-INIT-02";
    init_aborts_what_was_open(98, ANY) "TXN-INIT-03";
    too_long_timeout_is_refused(98, ANY) "TXN-INIT-04";
    commit_makes_records_visible(98, ANY) "TXN-END-01" "TXN-READ-01";
    abort_hides_records(98, ANY) "TXN-END-02" "TXN-READ-02";
    end_of_an_empty_transaction_cannot_commit(98, ANY) "TXN-END-03";
    end_bumps_the_epoch(890, TV2) "TXN-TV2-01" "TXN-TV2-02";
    old_epoch_is_fenced_after_the_end(890, TV2) "TXN-TV2-03";
    old_produce_needs_an_enrolled_partition(890, ANY) "TXN-TV1-01";
}

async fn init_bumps_the_epoch_and_fences(lab: Lab) -> Check {
    let topic = lab.topic(1).await?;
    let id = Str::from(lab.name("x"));
    let old = Producer::with_id(&lab, &id).await?;
    let new = Producer::with_id(&lab, &id).await?;
    equal("producer id", new.id, old.id)?;
    that(new.epoch > old.epoch, || format!("epoch {} after epoch {}", new.epoch, old.epoch))?;
    new.produce(&topic, 0, 1).await?;
    let fenced = [ErrorCode::PRODUCER_FENCED, ErrorCode::INVALID_PRODUCER_EPOCH];
    let (got, _) = old.send_as(&topic, 0, old.batch(0, 1)?, if old.tv2 { None } else { Some(11) }).await?;
    code("Produce of the older producer", got, &fenced)?;
    code("EndTxn of the older producer", old.send_end(true).await?.error_code, &fenced)
}

async fn init_aborts_what_was_open(lab: Lab) -> Check {
    let topic = lab.topic(1).await?;
    let id = Str::from(lab.name("x"));
    Producer::with_id(&lab, &id).await?.produce(&topic, 0, 2).await?;
    Producer::with_id(&lab, &id).await?;
    visible(&lab, &topic, &[], 3).await
}

async fn too_long_timeout_is_refused(lab: Lab) -> Check {
    let mut producer = Producer::plain(&lab).await?;
    producer.transactional_id = Some(Str::from(lab.name("x")));
    for timeout in [i32::MAX, 0, -1] {
        let got = producer.init(timeout).await?.error_code;
        code(&format!("a transaction timeout of {timeout} ms"), got, &[ErrorCode::INVALID_TRANSACTION_TIMEOUT])?;
    }
    Ok(())
}

/// Waits until the log is stable to `end`, and compares what a read_committed reader sees.
async fn visible(lab: &Lab, topic: &Topic, want: &[i64], end: i64) -> Check {
    equal("offsets that read_committed sees", lab.settled(topic, end).await?.offsets, want.to_vec())
}

async fn commit_makes_records_visible(lab: Lab) -> Check {
    let topic = lab.topic(1).await?;
    let mut producer = Producer::transactional(&lab).await?;
    producer.produce(&topic, 0, 2).await?;
    let open = lab.read(&topic, true).await?;
    equal("last stable offset while the transaction is open", open.stable, 0)?;
    equal("high watermark while the transaction is open", open.end, 2)?;
    equal("offsets that read_committed sees meanwhile", open.offsets, vec![])?;
    producer.end(true).await?;
    visible(&lab, &topic, &[0, 1], 3).await
}

async fn abort_hides_records(lab: Lab) -> Check {
    let topic = lab.topic(1).await?;
    let mut producer = Producer::transactional(&lab).await?;
    producer.produce(&topic, 0, 2).await?;
    producer.end(false).await?;
    lab.settled(&topic, 3).await?;
    Producer::plain(&lab).await?.produce(&topic, 0, 1).await?;
    visible(&lab, &topic, &[3], 4).await
}

async fn end_of_an_empty_transaction_cannot_commit(lab: Lab) -> Check {
    let producer = Producer::transactional(&lab).await?;
    let got = producer.send_end(true).await?.error_code;
    code("committing without a transaction", got, &[ErrorCode::INVALID_TXN_STATE])
}

async fn end_bumps_the_epoch(lab: Lab) -> Check {
    let topic = lab.topic(1).await?;
    let mut producer = Producer::transactional(&lab).await?;
    for round in 0..3 {
        let (id, epoch) = (producer.id, producer.epoch);
        producer.produce(&topic, 0, 1).await?;
        let response = producer.send_end(round != 1).await?;
        ok("EndTxn", response.error_code)?;
        equal("producer id of the answer", response.producer_id, id)?;
        equal("producer epoch of the answer", response.producer_epoch, epoch + 1)?;
        (producer.id, producer.epoch) = (response.producer_id, response.producer_epoch);
    }
    visible(&lab, &topic, &[0, 4], 6).await
}

async fn old_epoch_is_fenced_after_the_end(lab: Lab) -> Check {
    let topic = lab.topic(1).await?;
    let mut producer = Producer::transactional(&lab).await?;
    producer.produce(&topic, 0, 1).await?;
    let old = producer.clone();
    producer.end(true).await?;
    producer.produce(&topic, 0, 1).await?;
    let (got, _) = old.send(&topic, 0, old.batch(1, 1)?).await?;
    let fenced = [ErrorCode::PRODUCER_FENCED, ErrorCode::INVALID_PRODUCER_EPOCH];
    code("Produce with the epoch of the ended transaction", got, &fenced)?;
    producer.end(true).await
}

async fn old_produce_needs_an_enrolled_partition(lab: Lab) -> Check {
    let topic = lab.topic(1).await?;
    let producer = Producer::transactional(&lab).await?;
    let (got, _) = producer.send_as(&topic, 0, producer.batch(0, 1)?, Some(11)).await?;
    let allowed = [ErrorCode::INVALID_TXN_STATE, ErrorCode::TRANSACTION_ABORTABLE];
    code("Produce v11 to a partition that is not enrolled", got, &allowed)?;
    ok("AddPartitionsToTxn", producer.add_partition(&topic, 0).await?)?;
    let (got, _) = producer.send_as(&topic, 0, producer.batch(0, 1)?, Some(11)).await?;
    ok("Produce v11 to an enrolled partition", got)
}
