//! Idempotent produce.

use super::ANY;
use crate::case::list;
use crate::expect::{Check, code, equal, ok};
use crate::lab::{Lab, Producer};
use kafka_share_messages::ErrorCode;

list! {
    repeated_batch_is_stored_once(98, ANY) "PRODUCE-IDEM-01";
    gap_in_sequences_is_refused(98, ANY) "PRODUCE-IDEM-02";
    damaged_batch_is_refused(98, ANY) "PRODUCE-BATCH-01";
    each_producer_id_is_new(98, ANY) "PRODUCE-IDEM-03";
}

async fn repeated_batch_is_stored_once(lab: Lab) -> Check {
    let topic = lab.topic(1).await?;
    let producer = Producer::idempotent(&lab).await?;
    let batch = producer.batch(0, 3)?;
    let (first, offset) = producer.send(&topic, 0, batch.clone()).await?;
    ok("Produce", first)?;
    producer.produce_from(&topic, 0, 3, 2).await?;
    let (again, same) = producer.send(&topic, 0, batch).await?;
    code("the same batch again", again, &[ErrorCode::NONE, ErrorCode::DUPLICATE_SEQUENCE_NUMBER])?;
    if again.is_ok() {
        equal("its base offset", same, offset)?;
    }
    equal("offsets in the log", lab.read(&topic, false).await?.offsets, vec![0, 1, 2, 3, 4])
}

async fn gap_in_sequences_is_refused(lab: Lab) -> Check {
    let topic = lab.topic(1).await?;
    let producer = Producer::idempotent(&lab).await?;
    producer.produce_from(&topic, 0, 0, 3).await?;
    let (got, _) = producer.send(&topic, 0, producer.batch(5, 1)?).await?;
    code("sequence 5 after 2", got, &[ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER])?;
    equal("offsets in the log", lab.read(&topic, false).await?.offsets, vec![0, 1, 2])
}

async fn damaged_batch_is_refused(lab: Lab) -> Check {
    let topic = lab.topic(1).await?;
    let producer = Producer::plain(&lab).await?;
    let mut bytes = producer.batch(0, 2)?.to_vec();
    if let Some(last) = bytes.last_mut() {
        *last ^= 0x55;
    }
    let (got, _) = producer.send(&topic, 0, bytes.into()).await?;
    code("a batch whose checksum is wrong", got, &[ErrorCode::CORRUPT_MESSAGE])?;
    equal("offsets in the log", lab.read(&topic, false).await?.offsets, vec![])
}

async fn each_producer_id_is_new(lab: Lab) -> Check {
    let (first, second) = (Producer::idempotent(&lab).await?, Producer::idempotent(&lab).await?);
    crate::expect::that(first.id >= 0 && first.id != second.id, || {
        format!("two producers got the ids {} and {}", first.id, second.id)
    })
}
