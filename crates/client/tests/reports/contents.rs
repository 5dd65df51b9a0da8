//! What is in records, from a producer through the broker to a share consumer: nulls, headers, times, sizes, codecs.

use crate::support::{GROUP, LONG, Mode, Rig};
use crate::wide::{builder, one_answer};
use bytes::BytesMut;
use kafka_share::admin::NewTopic;
use kafka_share::{
    AckType, Admin, Compression, KafkaShareConsumer, Outcome, Producer, ProducerRecord, ShareRecords, TimestampType,
};
use kafka_share_messages::{ApiKey, ShareFetchResponse};
use kafka_share_wire::records::{BatchBuilder, BatchOptions};
use std::sync::Arc;

/// All combinations of null, empty and not empty.
const PARTS: [Option<&[u8]>; 3] = [None, Some(b""), Some(b"part")];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r118_r119_nulls_and_headers_are_what_the_producer_wrote() {
    let rig = Rig::new(1).await;
    let mut written = Vec::new();
    for key in PARTS {
        for value in PARTS {
            for header in PARTS {
                let record = ProducerRecord::new(rig.topic()).partition(0);
                let record = match key {
                    Some(key) => record.key(key),
                    None => record,
                };
                let record = match value {
                    Some(value) => record.value(value),
                    None => record,
                };
                let record = record.header("x", "1").header("x", "2").header_opt("y", header).header("x", "1");
                rig.producer().send(record).await.unwrap().await.unwrap();
                written.push((key, value, header));
            }
        }
    }
    let consumer = rig.consumer(Mode::Explicit);
    let records = rig.receive(&consumer, 27).await;
    for (record, (key, value, header)) in records.iter().flatten().zip(written) {
        assert_eq!((record.key(), record.value()), (key, value), "offset {}", record.offset());
        let headers: Vec<_> = record.headers().map(|h| (h.key, h.value)).collect();
        let expected: [(&[u8], Option<&[u8]>); 4] =
            [(b"x", Some(b"1")), (b"x", Some(b"2")), (b"y", header), (b"x", Some(b"1"))];
        assert_eq!(headers, expected, "offset {}", record.offset());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r111_r121_times_are_exact_and_those_of_the_broker_where_it_sets_them() {
    let rig = Rig::new(1).await;
    let admin = Admin::on(Arc::clone(&rig.cluster));
    let stamped = NewTopic::new("stamped", 1).config("message.timestamp.type", "LogAppendTime");
    admin.create_topic(stamped).await.unwrap();
    // One batch of records that are fifty years apart.
    let times = [1_700_000_000_000, 0, 1_577_836_800_123];
    let producer =
        Producer::builder("").cluster(Arc::clone(&rig.cluster)).linger(LONG).batch_size(1 << 20).build().unwrap();
    for topic in [rig.topic().as_str(), "stamped"] {
        for time in times {
            let record = ProducerRecord::new(topic).partition(0).timestamp(time).value("x");
            drop(producer.send(record).await.unwrap());
        }
    }
    producer.flush().await.unwrap();
    let read = |records: &[ShareRecords]| {
        let row = |r: kafka_share::ShareRecord<'_>| (r.timestamp(), r.timestamp_type());
        records.iter().flatten().map(row).collect::<Vec<_>>()
    };
    let consumer = rig.consumer(Mode::Explicit);
    let created = read(&rig.receive(&consumer, 3).await);
    assert_eq!(created, times.map(|time| (time, TimestampType::CreateTime)));
    consumer.subscribe(["stamped"]).unwrap();
    let appended = read(&rig.receive(&consumer, 3).await);
    assert!(appended.iter().all(|(time, kind)| *time > times[0] && *kind == TimestampType::LogAppendTime));
    assert!(appended.iter().all(|(time, _)| *time == appended[0].0), "one time for a batch: {appended:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r116_a_record_larger_than_a_fetch_comes_whole() {
    let rig = Rig::new(1).await;
    let large: Vec<u8> = (0..1_000_000_u32).map(|n| n as u8).collect();
    for value in [&large[..], b"small"] {
        let record = ProducerRecord::new(rig.topic()).partition(0).value(value);
        rig.producer().send(record).await.unwrap().await.unwrap();
    }
    let consumer = builder(&rig).fetch_max_bytes(1_024).build().unwrap();
    consumer.subscribe([rig.topic()]).unwrap();
    let mut seen = Vec::new();
    while seen.len() < 2 {
        let records = consumer.poll(LONG).await.unwrap();
        seen.extend(records.iter().map(|r| (r.value().unwrap().to_vec(), r.delivery_count())));
        consumer.acknowledge_all(&records, AckType::Accept).unwrap();
    }
    assert!(seen[0] == (large, 1), "{} bytes of the large one", seen[0].0.len());
    assert_eq!(seen[1], (b"small".to_vec(), 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r124_r128_batches_of_every_codec_are_read() {
    let rig = Rig::new(1).await;
    let codecs = [Compression::None, Compression::Gzip, Compression::Snappy, Compression::Lz4, Compression::Zstd];
    for (at, codec) in codecs.into_iter().enumerate() {
        let builder = Producer::builder("").cluster(Arc::clone(&rig.cluster)).compression(codec);
        let producer = builder.linger(LONG).batch_size(1 << 20).build().unwrap();
        for offset in at * 100..at * 100 + 100 {
            let record = ProducerRecord::new(rig.topic()).partition(0).value(offset.to_string().repeat(20));
            drop(producer.send(record).await.unwrap());
        }
        producer.flush().await.unwrap();
    }
    let consumer = rig.consumer(Mode::Explicit);
    let records = rig.receive(&consumer, 500).await;
    for (at, record) in records.iter().flatten().enumerate() {
        assert_eq!((record.offset(), record.value().unwrap()), (at as i64, at.to_string().repeat(20).as_bytes()));
    }
}

/// Batches that lie: each is refused by itself, what is whole is delivered, and nothing is waited for again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r112_r113_r115_batches_that_lie_are_rejected_and_cut_ones_come_again() {
    let batch = |base: i64| {
        let mut builder = BatchBuilder::new(BatchOptions { base_offset: base, ..BatchOptions::default() });
        builder.append(0, None, Some(base.to_string().as_bytes()), []).unwrap();
        builder.finish().unwrap()
    };
    // Claims of 2^31-1 records, with a checksum that is right.
    let mut many = batch(1);
    many[57..61].copy_from_slice(&i32::MAX.to_be_bytes());
    let crc = crc32c_of(&many[21..]);
    many[17..21].copy_from_slice(&crc.to_be_bytes());
    let mut negative = batch(1);
    negative[8..12].copy_from_slice(&i32::MIN.to_be_bytes());
    let cut = batch(2);
    // With what becomes of the offsets 0 to 2: rejected for good, or back again.
    let lies: [(Vec<BytesMut>, &[i64], &[i64]); 3] = [
        (vec![batch(0), many, batch(2)], &[1], &[]),
        (vec![batch(0), negative, batch(2)], &[], &[1, 2]),
        (vec![batch(0), batch(1), BytesMut::from(&cut[..cut.len() - 3])], &[], &[2]),
    ];
    for (batches, rejected, again) in lies {
        let rig = Rig::new(1).await;
        rig.produce(0..3).await;
        let records = batches.concat();
        one_answer(&rig, ApiKey::SHARE_FETCH, move |answer: &mut ShareFetchResponse| {
            let Some(partition) = answer.responses.first_mut().and_then(|t| t.partitions.first_mut()) else {
                return false;
            };
            if partition.acquired_records.is_empty() {
                return false;
            }
            partition.records = Some(records.clone().into());
            true
        });
        let consumer = KafkaShareConsumer::builder("", GROUP).cluster(Arc::clone(&rig.cluster));
        let consumer = consumer.acknowledgement_mode(Mode::Explicit).build().unwrap();
        consumer.subscribe([rig.topic()]).unwrap();
        let mut seen = Vec::new();
        let expected = 3 - rejected.len();
        while seen.len() < expected {
            let records = consumer.poll(LONG).await.unwrap();
            seen.extend(records.iter().map(|r| (r.offset(), r.delivery_count())));
            consumer.acknowledge_all(&records, AckType::Accept).unwrap();
        }
        seen.sort_unstable();
        let want: Vec<_> = (0..3)
            .filter(|offset| !rejected.contains(offset))
            .map(|offset| (offset, if again.contains(&offset) { 2 } else { 1 }))
            .collect();
        assert_eq!(seen, want);
        consumer.commit_sync(LONG).await.unwrap();
        let told = consumer.poll_outcomes();
        let of_type = |ack: AckType| -> Vec<i64> {
            let mut all: Vec<_> = told
                .iter()
                .filter(|o| o.ack_type == Some(ack) && o.outcome == Outcome::Acknowledged)
                .flat_map(|o| o.first_offset..=o.last_offset)
                .collect();
            all.sort_unstable();
            all
        };
        assert_eq!(of_type(AckType::Reject), rejected);
        assert_eq!(of_type(AckType::Release), again);
    }
}

/// The checksum of record batches, bit by bit.
fn crc32c_of(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0_u32, |mut crc, byte| {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = (crc >> 1) ^ (0x82f6_3b78 * (crc & 1));
        }
        crc
    })
}
