//! Batches that the topic's `max.message.bytes` refuses.

use super::scenarios::{name, transactional, values};
use kafka_share::admin::NewTopic;
use kafka_share::{Admin, ClientConfig, Compression, ErrorCode, Producer, ProducerRecord};
use std::sync::Arc;
use std::time::Duration;

const LIMIT: usize = 1000;
const RECORDS: usize = 400;

/// 64 characters that no codec makes much shorter.
fn text(number: usize) -> String {
    let mut state = number as u64 + 1;
    let mut word = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state ^ (state >> 29)
    };
    (0..4).map(|_| format!("{:016x}", word())).collect()
}

pub(crate) async fn batches_over_the_topics_limit_are_split_and_written_once(bootstrap: &str) {
    let admin = Admin::new(ClientConfig::new(bootstrap)).unwrap();
    let cluster = admin.cluster();
    let topic = name("narrow");
    admin.create_topic(NewTopic::new(&topic, 1).config("max.message.bytes", LIMIT.to_string())).await.unwrap();
    let mut expected = Vec::new();
    for codec in Compression::ALL {
        let builder = Producer::builder("").cluster(Arc::clone(cluster)).compression(codec);
        // About ten times what the topic allows.
        let producer = builder.batch_size(10 * LIMIT).linger(Duration::from_millis(20)).build().unwrap();
        let mut deliveries = Vec::new();
        for number in 0..RECORDS {
            let value = text(number);
            let record = ProducerRecord::new(&topic).value(value.as_bytes()).header("n", b"1").null_header("n");
            deliveries.push(producer.send(record).await.unwrap());
            expected.push(value);
        }
        producer.flush().await.unwrap();
        for (number, delivery) in deliveries.into_iter().enumerate() {
            let offset = usize::try_from(delivery.await.unwrap().offset()).unwrap();
            assert_eq!(offset, expected.len() - RECORDS + number, "{}", codec.name());
        }
        let huge: String = (0..40).map(text).collect();
        let error = producer.send(ProducerRecord::new(&topic).value(huge)).await.unwrap().await.unwrap_err();
        assert_eq!(error.code(), Some(ErrorCode::MESSAGE_TOO_LARGE));
        assert!(error.to_string().contains("max.message.bytes"), "{error}");
        // What comes after a record that was given up is written as ever.
        let value = "after".to_owned();
        producer.send(ProducerRecord::new(&topic).value(value.as_bytes())).await.unwrap().await.unwrap();
        expected.push(value);
        producer.close(Duration::from_secs(10)).await.unwrap();
    }
    let producer = transactional(cluster, &name("splitting"));
    producer.init_transactions().await.unwrap();
    producer.begin_transaction().unwrap();
    for number in 0..RECORDS {
        drop(producer.send(ProducerRecord::new(&topic).value(text(number))).await.unwrap());
        expected.push(text(number));
    }
    producer.commit_transaction().await.unwrap();
    assert_eq!(values(cluster, &topic).await, expected);
}
