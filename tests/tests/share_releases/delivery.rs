//! Delivery and acknowledgement.

use crate::lab::{EXPLICIT, IMPLICIT, LONG, Lab, Place, SHORT, numbers, receive};
use kafka_share::admin::{AutoOffsetReset, ShareGroupSettings};
use kafka_share::{AckType, Compression, Outcome, Producer, ProducerRecord, TransactionalProducer};
use std::sync::Arc;
use std::time::Duration;

pub(crate) async fn implicit_mode_accepts_by_the_next_poll(lab: &Lab) {
    let place = lab.place(1).await;
    lab.produce(&place, 0..3).await;
    let first = lab.member(&place, IMPLICIT);
    assert_eq!(numbers(&receive(&first, 3).await), [(0, 1), (1, 1), (2, 1)]);
    // The next poll accepts these; the ones after it are not come back for.
    lab.produce(&place, 3..5).await;
    let last = receive(&first, 2).await;
    lab.came(&last, 3..5, 1);
    // Where they came in two polls, the second one accepted the first.
    let left: Vec<u32> = numbers(&last[last.len() - 1..]).iter().map(|(number, _)| *number).collect();
    first.close(LONG).await.unwrap();
    let second = lab.member(&place, IMPLICIT);
    lab.came(&receive(&second, left.len()).await, left, lab.after_lost_sessions(1));
    let outcomes = second.commit_sync(LONG).await.unwrap();
    assert_eq!(outcomes[&(place.topic.clone(), 0)], Outcome::Acknowledged);
    second.close(LONG).await.unwrap();
    let third = lab.member(&place, IMPLICIT);
    lab.produce(&place, 5..6).await;
    assert_eq!(numbers(&receive(&third, 1).await), [(5, 1)]);
    third.close(LONG).await.unwrap();
}

pub(crate) async fn accept_release_and_reject(lab: &Lab) {
    let place = lab.place(1).await;
    lab.produce(&place, 0..6).await;
    let consumer = lab.member(&place, EXPLICIT);
    let records = receive(&consumer, 6).await;
    let types = [AckType::Accept, AckType::Release, AckType::Reject];
    for record in records.iter().flatten() {
        let ack = types[record.offset() as usize % 3];
        consumer.acknowledge_with(&record, ack).unwrap();
        assert!(consumer.acknowledge_with(&record, ack).is_err(), "one acknowledgement for a delivery");
    }
    consumer.commit_sync(LONG).await.unwrap();
    let again = receive(&consumer, 2).await;
    lab.came(&again, [1, 4], 2);
    for records in &again {
        consumer.acknowledge_all(records, AckType::Accept).unwrap();
    }
    let outcomes = consumer.commit_sync(LONG).await.unwrap();
    assert_eq!(outcomes[&(place.topic.clone(), 0)], Outcome::Acknowledged);
    lab.produce(&place, 6..7).await;
    assert_eq!(numbers(&receive(&consumer, 1).await), [(6, 1)]);
    consumer.close(LONG).await.unwrap();
}

pub(crate) async fn every_codec_with_keys_headers_and_nulls(lab: &Lab) {
    let place = lab.place(1).await;
    for codec in Compression::ALL {
        let builder = Producer::builder("").cluster(Arc::clone(&lab.cluster)).compression(codec);
        let producer = builder.build().unwrap();
        for (key, value) in [(Some("k"), Some("v")), (Some(""), None), (None, Some(""))] {
            let mut record =
                ProducerRecord::new(&place.topic).partition(0).timestamp(1_234).header("codec", codec.name());
            record = record.header("codec", b"again").null_header("none");
            record = if let Some(key) = key { record.key(key) } else { record };
            record = if let Some(value) = value { record.value(value) } else { record };
            drop(producer.send(record).await.unwrap());
        }
        producer.flush().await.unwrap();
        producer.close(LONG).await.unwrap();
    }
    let consumer = lab.member(&place, IMPLICIT);
    let count = 3 * Compression::ALL.len();
    let records = receive(&consumer, count).await;
    let mut all = records.iter().flatten();
    for codec in Compression::ALL {
        for expected in [(Some(&b"k"[..]), Some(&b"v"[..])), (Some(b""), None), (None, Some(b""))] {
            let record = all.next().unwrap();
            assert_eq!((record.key(), record.value(), record.timestamp()), (expected.0, expected.1, 1_234));
            let headers: Vec<_> = record.headers().map(|h| (h.key_str().unwrap(), h.value)).collect();
            let name = codec.name().as_bytes();
            assert_eq!(headers, [("codec", Some(name)), ("codec", Some(b"again")), ("none", None)]);
        }
    }
    consumer.close(LONG).await.unwrap();
}

pub(crate) async fn a_record_is_archived_at_the_delivery_limit(lab: &Lab) {
    let place = lab.place(1).await;
    lab.produce(&place, 0..1).await;
    let consumer = lab.member(&place, EXPLICIT);
    // Five deliveries are Kafka's default, and a setting of groups only from some release on.
    let (mut delivery, mut told) = (0, 0);
    while told < 5 {
        let records = receive(&consumer, 1).await;
        delivery += 1;
        lab.came(&records, [0], delivery);
        told = numbers(&records)[0].1;
        consumer.acknowledge_all(&records[0], AckType::Release).unwrap();
        consumer.commit_sync(LONG).await.unwrap();
    }
    lab.produce(&place, 1..2).await;
    assert_eq!(numbers(&receive(&consumer, 1).await), [(1, 1)]);
    consumer.close(LONG).await.unwrap();
}

pub(crate) async fn aborted_records_are_not_delivered_to_read_committed_groups(lab: &Lab) {
    let place = lab.place_with(1, ShareGroupSettings::new().read_committed(true)).await;
    let producer = TransactionalProducer::builder("", &place.group).cluster(Arc::clone(&lab.cluster)).build().unwrap();
    producer.init_transactions().await.unwrap();
    for number in 0..4_u32 {
        producer.begin_transaction().unwrap();
        let record = ProducerRecord::new(&place.topic).partition(0).value(number.to_string());
        drop(producer.send(record).await.unwrap());
        producer.flush().await.unwrap();
        match number % 2 {
            0 => producer.commit_transaction().await.unwrap(),
            _ => producer.abort_transaction().await.unwrap(),
        }
    }
    let consumer = lab.member(&place, IMPLICIT);
    assert_eq!(numbers(&receive(&consumer, 2).await), [(0, 1), (2, 1)]);
    lab.produce(&place, 4..5).await;
    assert_eq!(numbers(&receive(&consumer, 1).await), [(4, 1)]);
    consumer.close(LONG).await.unwrap();
    producer.close(LONG).await.unwrap();
}

pub(crate) async fn a_new_group_starts_where_its_setting_says(lab: &Lab) {
    let place = lab.place(1).await;
    lab.produce(&place, 0..2).await;
    let hour = AutoOffsetReset::ByDuration(Duration::from_secs(3_600));
    for (round, reset) in [AutoOffsetReset::Earliest, hour, AutoOffsetReset::Latest].into_iter().enumerate() {
        let group = Place { topic: place.topic.clone(), group: format!("{}-{round}", place.group) };
        let settings = ShareGroupSettings::new().auto_offset_reset(reset);
        lab.admin.apply_share_group_settings(&group.group, &settings).await.unwrap();
        let consumer = lab.member(&group, IMPLICIT);
        if reset == AutoOffsetReset::Latest {
            // When a group meets a partition cannot be seen from outside: records come until one is delivered.
            let (mut next, mut found) = (2, Vec::new());
            while found.is_empty() && next < 200 {
                lab.produce(&place, next..next + 1).await;
                found = numbers(&[consumer.poll(SHORT).await.unwrap()]);
                next += 1;
            }
            assert!(found.first().is_some_and(|(number, _)| *number >= 2), "{found:?}");
        } else {
            assert_eq!(numbers(&receive(&consumer, 2).await)[..2], [(0, 1), (1, 1)], "{reset}");
        }
        consumer.close(LONG).await.unwrap();
    }
}

pub(crate) async fn outcomes_of_asynchronous_commits(lab: &Lab) {
    let place = lab.place(2).await;
    lab.produce_to(&place, 0, 0..10).await;
    lab.produce_to(&place, 1, 10..20).await;
    let consumer = lab.member(&place, EXPLICIT);
    let records = receive(&consumer, 20).await;
    for records in &records {
        consumer.acknowledge_all(records, AckType::Accept).unwrap();
    }
    consumer.commit_async().unwrap();
    let (mut told, until) = (0, std::time::Instant::now() + LONG);
    while told < 20 && std::time::Instant::now() < until {
        for outcome in consumer.poll_outcomes() {
            assert_eq!((outcome.ack_type, outcome.outcome), (Some(AckType::Accept), Outcome::Acknowledged));
            told += outcome.last_offset - outcome.first_offset + 1;
        }
        assert!(consumer.poll(Duration::from_millis(20)).await.unwrap().is_empty());
    }
    assert_eq!(told, 20, "one outcome for each record");
    consumer.close(LONG).await.unwrap();
}
