//! Produced batches in detail: their form, their numbers, requests that make no sense.

use super::ANY;
use crate::case::list;
use crate::expect::{Check, code, equal, fail, ok, that};
use crate::lab::{Lab, Producer, Topic};
use bytes::Bytes;
use kafka_share::net::Purpose;
use kafka_share_messages::produce_request::{PartitionProduceData, TopicProduceData};
use kafka_share_messages::{ErrorCode, ProduceRequest};
use kafka_share_wire::compression::Compression;
use kafka_share_wire::{Str, Uuid};

/// Places in a batch's header.
const MAGIC: usize = 16;
const CRC: usize = 17;
const ATTRIBUTES: usize = 21;
const COUNT: usize = 57;

list! {
    message_format_0_is_refused(98, ANY) "PRODUCE-BATCH-02" => altered(|b| b[MAGIC] = 0);
    message_format_1_is_refused(98, ANY) "PRODUCE-BATCH-02" => altered(|b| b[MAGIC] = 1);
    two_batches_are_refused(98, ANY) "PRODUCE-BATCH-03";
    record_count_must_fit(98, ANY) "PRODUCE-BATCH-04" => altered(|b| b[COUNT + 3] = 5);
    negative_record_count_is_refused(98, ANY) "PRODUCE-BATCH-04" => altered(|b| b[COUNT] = 0xff);
    control_batch_is_refused(98, ANY) "PRODUCE-BATCH-05" => altered(|b| b[ATTRIBUTES + 1] |= 0x20);
    too_large_batch_is_refused(98, ANY) "PRODUCE-BATCH-06";
    unknown_codec_is_refused(98, ANY) "PRODUCE-BATCH-07" => altered(|b| b[ATTRIBUTES + 1] |= 0x07);
    batch_cut_by_a_byte_is_refused(98, ANY) "PRODUCE-BATCH-08" => cut(1);
    batch_cut_in_its_header_is_refused(98, ANY) "PRODUCE-BATCH-08" => cut(60);
    acks_of_two_are_refused(98, ANY) "PRODUCE-REQ-01" => acks_refused(2);
    acks_of_minus_two_are_refused(98, ANY) "PRODUCE-REQ-01" => acks_refused(-2);
    unknown_topic_is_told(98, ANY) "PRODUCE-REQ-02";
    unknown_partition_is_told(98, ANY) "PRODUCE-REQ-03";
    no_records_are_refused(98, ANY) "PRODUCE-REQ-04";
    acks_of_one_tell_the_offset(98, ANY) "PRODUCE-REQ-05";
    older_epoch_is_refused(98, ANY) "PRODUCE-IDEM-04";
    new_epoch_must_begin_at_zero(98, ANY) "PRODUCE-IDEM-05" => new_epoch(4, ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER);
    new_epoch_may_begin_at_zero(98, ANY) "PRODUCE-IDEM-05" => new_epoch(0, ErrorCode::NONE);
    last_batch_is_recognised(98, ANY) "PRODUCE-IDEM-06" => recognised(5);
    second_last_batch_is_recognised(98, ANY) "PRODUCE-IDEM-06" => recognised(4);
    third_last_batch_is_recognised(98, ANY) "PRODUCE-IDEM-06" => recognised(3);
    fourth_last_batch_is_recognised(98, ANY) "PRODUCE-IDEM-06" => recognised(2);
    fifth_last_batch_is_recognised(98, ANY) "PRODUCE-IDEM-06" => recognised(1);
    partitions_count_apart(98, ANY) "PRODUCE-IDEM-07";
    sequence_wraps_to_zero(98, ANY) "PRODUCE-IDEM-08";
    overlapping_batch_is_refused(98, ANY) "PRODUCE-IDEM-09";
    gzip_batch_is_taken(98, ANY) "PRODUCE-REQ-05" => taken(Compression::Gzip);
    snappy_batch_is_taken(98, ANY) "PRODUCE-REQ-05" => taken(Compression::Snappy);
    lz4_batch_is_taken(98, ANY) "PRODUCE-REQ-05" => taken(Compression::Lz4);
    zstd_batch_is_taken(98, ANY) "PRODUCE-REQ-05" => taken(Compression::Zstd);
}

/// CRC-32C of what it covers, put in place.
fn seal(batch: &mut [u8]) {
    let mut crc = !0_u32;
    for byte in &batch[ATTRIBUTES..] {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 { (crc >> 1) ^ 0x82f6_3b78 } else { crc >> 1 };
        }
    }
    batch[CRC..CRC + 4].copy_from_slice(&(!crc).to_be_bytes());
}

async fn nothing_stored(lab: &Lab, topic: &Topic) -> Check {
    equal("offsets in the log", lab.read(topic, false).await?.offsets, vec![])
}

/// A batch that is wrong in one place, under a checksum that is right.
async fn altered(lab: Lab, change: fn(&mut [u8])) -> Check {
    let topic = lab.topic(1).await?;
    let producer = Producer::plain(&lab).await?;
    let mut bytes = producer.batch(0, 2)?.to_vec();
    change(&mut bytes);
    seal(&mut bytes);
    let (got, _) = producer.send(&topic, 0, bytes.into()).await?;
    that(got.is_err(), || "the batch was taken".into())?;
    nothing_stored(&lab, &topic).await
}

async fn two_batches_are_refused(lab: Lab) -> Check {
    let topic = lab.topic(1).await?;
    let producer = Producer::plain(&lab).await?;
    let both = [producer.batch(0, 1)?, producer.batch(1, 1)?].concat();
    let (got, _) = producer.send(&topic, 0, both.into()).await?;
    code("two batches for one partition", got, &[ErrorCode::INVALID_RECORD])?;
    nothing_stored(&lab, &topic).await
}

async fn too_large_batch_is_refused(lab: Lab) -> Check {
    let topic = lab.topic(1).await?;
    let producer = Producer::plain(&lab).await?;
    // max.message.bytes is 1 MiB and a little by default.
    let batch = producer.single(0, None, Some(&vec![7; 1_200_000]), &[])?;
    let (got, _) = producer.send(&topic, 0, batch).await?;
    code("a batch of 1.2 MB", got, &[ErrorCode::MESSAGE_TOO_LARGE])?;
    nothing_stored(&lab, &topic).await
}

async fn cut(lab: Lab, bytes: usize) -> Check {
    let topic = lab.topic(1).await?;
    let producer = Producer::plain(&lab).await?;
    let whole = producer.batch(0, 2)?;
    let part = if bytes < 60 { whole.slice(..whole.len() - bytes) } else { whole.slice(..60) };
    // A broker may also find that the request cannot be read, and close the connection.
    match producer.send(&topic, 0, part).await {
        Ok((got, _)) => that(got.is_err(), || "a batch that is cut short was taken".into())?,
        Err(stop) => lab.note(format!("no answer: {stop:?}")),
    }
    nothing_stored(&lab, &topic).await
}

async fn ask(lab: &Lab, topic: &Topic, partition: i32, acks: i16, records: Option<Bytes>) -> Check<(ErrorCode, i64)> {
    let row = PartitionProduceData { index: partition, records, ..Default::default() };
    let data = TopicProduceData {
        name: topic.name.clone(),
        topic_id: topic.id,
        partition_data: vec![row],
        ..Default::default()
    };
    let request = ProduceRequest { acks, timeout_ms: 10_000, topic_data: vec![data], ..Default::default() };
    let response = lab.call(lab.cluster(), topic.node, Purpose::Produce, &request, None).await?;
    match response.responses.iter().flat_map(|t| &t.partition_responses).next() {
        Some(row) => Ok((row.error_code, row.base_offset)),
        None => fail("Produce was answered without a row for the partition"),
    }
}

async fn acks_refused(lab: Lab, acks: i16) -> Check {
    let topic = lab.topic(1).await?;
    let batch = Producer::plain(&lab).await?.batch(0, 1)?;
    let (got, _) = ask(&lab, &topic, 0, acks, Some(batch)).await?;
    code(&format!("acks of {acks}"), got, &[ErrorCode::INVALID_REQUIRED_ACKS])?;
    nothing_stored(&lab, &topic).await
}

async fn unknown_topic_is_told(lab: Lab) -> Check {
    let topic = lab.topic(1).await?;
    let batch = Producer::plain(&lab).await?.batch(0, 1)?;
    let unknown = Topic { name: Str::from(lab.upcoming()), id: Uuid::from_halves(0x5eed, 0x1d), ..topic };
    let (got, _) = ask(&lab, &unknown, 0, -1, Some(batch)).await?;
    code("a topic that does not exist", got, &[ErrorCode::UNKNOWN_TOPIC_ID, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION])
}

async fn unknown_partition_is_told(lab: Lab) -> Check {
    let topic = lab.topic(1).await?;
    let batch = Producer::plain(&lab).await?.batch(0, 1)?;
    let (got, _) = ask(&lab, &topic, 9, -1, Some(batch)).await?;
    code("a partition that does not exist", got, &[ErrorCode::UNKNOWN_TOPIC_OR_PARTITION])
}

async fn no_records_are_refused(lab: Lab) -> Check {
    let topic = lab.topic(1).await?;
    match ask(&lab, &topic, 0, -1, Some(Bytes::new())).await {
        Ok((got, _)) => that(got.is_err(), || "a Produce without records was taken".into())?,
        Err(stop) => lab.note(format!("no answer: {stop:?}")),
    }
    nothing_stored(&lab, &topic).await
}

async fn acks_of_one_tell_the_offset(lab: Lab) -> Check {
    let topic = lab.topic(1).await?;
    let producer = Producer::plain(&lab).await?;
    for want in [0, 2] {
        let (got, offset) = ask(&lab, &topic, 0, 1, Some(producer.batch(0, 2)?)).await?;
        ok("Produce with acks 1", got)?;
        equal("base offset", offset, want)?;
    }
    Ok(())
}

async fn older_epoch_is_refused(lab: Lab) -> Check {
    let topic = lab.topic(1).await?;
    let mut producer = Producer::idempotent(&lab).await?;
    producer.epoch += 1;
    producer.produce(&topic, 0, 1).await?;
    producer.epoch -= 1;
    let (got, _) = producer.send(&topic, 0, producer.batch(1, 1)?).await?;
    code("a batch with an older epoch", got, &[ErrorCode::INVALID_PRODUCER_EPOCH])
}

async fn new_epoch(lab: Lab, sequence: i32, want: ErrorCode) -> Check {
    let topic = lab.topic(1).await?;
    let mut producer = Producer::idempotent(&lab).await?;
    producer.produce(&topic, 0, 4).await?;
    producer.epoch += 1;
    let (got, _) = producer.send(&topic, 0, producer.batch(sequence, 1)?).await?;
    code(&format!("sequence {sequence} in a new epoch"), got, &[want])
}

async fn recognised(lab: Lab, which: i32) -> Check {
    let topic = lab.topic(1).await?;
    let producer = Producer::idempotent(&lab).await?;
    let batches: Vec<Bytes> = (0..6).map(|i| producer.batch(i, 1)).collect::<Check<_>>()?;
    for batch in &batches {
        ok("Produce", producer.send(&topic, 0, batch.clone()).await?.0)?;
    }
    let (got, offset) = producer.send(&topic, 0, batches[which as usize].clone()).await?;
    code("the batch again", got, &[ErrorCode::NONE, ErrorCode::DUPLICATE_SEQUENCE_NUMBER])?;
    if got.is_ok() {
        equal("its base offset", offset, i64::from(which))?;
    }
    equal("offsets in the log", lab.read(&topic, false).await?.offsets, (0..6).collect())
}

async fn partitions_count_apart(lab: Lab) -> Check {
    let topic = lab.topic(2).await?;
    let producer = Producer::idempotent(&lab).await?;
    producer.produce_from(&topic, 0, 0, 3).await?;
    producer.produce_from(&topic, 1, 0, 1).await?;
    producer.produce_from(&topic, 0, 3, 1).await?;
    producer.produce_from(&topic, 1, 1, 1).await.map(drop)
}

async fn sequence_wraps_to_zero(lab: Lab) -> Check {
    let topic = lab.topic(1).await?;
    let producer = Producer::idempotent(&lab).await?;
    // A partition takes any first number of a producer that it does not know.
    producer.produce_from(&topic, 0, i32::MAX, 1).await?;
    producer.produce_from(&topic, 0, 0, 1).await.map(drop)
}

async fn overlapping_batch_is_refused(lab: Lab) -> Check {
    let topic = lab.topic(1).await?;
    let producer = Producer::idempotent(&lab).await?;
    producer.produce_from(&topic, 0, 0, 4).await?;
    let (got, _) = producer.send(&topic, 0, producer.batch(2, 4)?).await?;
    let allowed = [ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER, ErrorCode::DUPLICATE_SEQUENCE_NUMBER];
    code("sequences 2 to 5 after 0 to 3", got, &allowed)?;
    equal("offsets in the log", lab.read(&topic, false).await?.offsets, vec![0, 1, 2, 3])
}

async fn taken(lab: Lab, codec: Compression) -> Check {
    let topic = lab.topic(1).await?;
    let producer = Producer::plain(&lab).await?;
    let batch = producer.batch_with(0, 50, |options| options.compression = codec)?;
    let (got, offset) = ask(&lab, &topic, 0, 1, Some(batch)).await?;
    ok("Produce of a compressed batch", got)?;
    equal("base offset", offset, 0)?;
    equal("offsets in the log", lab.read(&topic, false).await?.offsets, (0..50).collect())
}
