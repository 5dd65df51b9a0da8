//! Brokers that answer nonsense, members that are forgotten: nothing is lost, nothing ends that should go on.

use crate::log::Log;
use crate::support::{GROUP, LONG, Mode, Rig, SHORT, offsets};
use crate::wide::{each_answer, until};
use kafka_share::{AckType, ErrorCode, KafkaShareConsumer, Outcome, ProducerRecord, Uuid};
use kafka_share_broker::{Fault, FaultAction};
use kafka_share_messages::share_group_heartbeat_response::TopicPartitions;
use kafka_share_messages::{ApiKey, ShareAcknowledgeResponse, ShareFetchResponse, ShareGroupHeartbeatResponse};
use std::time::{Duration, Instant};

#[tokio::test]
async fn answers_about_what_was_not_asked_for_are_passed_over() {
    let log = Log::start();
    let rig = Rig::new(1).await;
    rig.produce(0..3).await;
    // Each partition of an answer comes again as one of a negative number, one that is not there, and one of another topic.
    each_answer(&rig, ApiKey::SHARE_FETCH, |answer: &mut ShareFetchResponse| {
        let strangers: Vec<_> = answer
            .responses
            .iter()
            .map(|topic| {
                let mut topic = topic.clone();
                topic.topic_id = Uuid::from_halves(7, 7);
                topic
            })
            .collect();
        for topic in &mut answer.responses {
            for index in [-1, i32::MIN, i32::MAX, 1] {
                let mut partition = topic.partitions[0].clone();
                partition.partition_index = index;
                topic.partitions.push(partition);
            }
        }
        answer.responses.extend(strangers);
    });
    each_answer(&rig, ApiKey::SHARE_ACKNOWLEDGE, |answer: &mut ShareAcknowledgeResponse| {
        for topic in &mut answer.responses {
            let mut partition = topic.partitions[0].clone();
            (partition.partition_index, partition.error_code) = (-1, ErrorCode::UNKNOWN_SERVER_ERROR);
            topic.partitions.push(partition);
        }
    });
    let consumer = rig.consumer(Mode::Explicit);
    let records = rig.receive(&consumer, 3).await;
    assert_eq!(offsets(&records), [(0, 1), (1, 1), (2, 1)]);
    for records in &records {
        consumer.acknowledge_all(records, AckType::Accept).unwrap();
    }
    let outcomes = consumer.commit_sync(LONG).await.unwrap();
    assert_eq!(outcomes.into_iter().collect::<Vec<_>>(), [((rig.topic(), 0), Outcome::Acknowledged)]);
    assert_eq!(consumer.poll_outcomes().iter().map(|o| o.last_offset - o.first_offset + 1).sum::<i64>(), 3);
    assert!(!log.events("not in the share session").is_empty());
    rig.produce(3..4).await;
    assert_eq!(offsets(&rig.receive(&consumer, 1).await), [(3, 1)]);
    consumer.close(LONG).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn assignments_of_what_cannot_be_do_not_keep_the_rest_away() {
    let rig = Rig::new(1).await;
    rig.produce(0..1).await;
    each_answer(&rig, ApiKey::SHARE_GROUP_HEARTBEAT, |answer: &mut ShareGroupHeartbeatResponse| {
        let Some(assignment) = &mut answer.assignment else { return };
        for topic in &mut assignment.topic_partitions {
            topic.partitions.extend([-1, i32::MIN, i32::MAX, 0, 0]);
        }
        let partitions = vec![0, 1, -7];
        let unknown = TopicPartitions { topic_id: Uuid::from_halves(7, 7), partitions, ..Default::default() };
        assignment.topic_partitions.push(unknown);
    });
    let consumer = rig.consumer(Mode::Explicit);
    for offset in 0..3 {
        let records = rig.receive(&consumer, 1).await;
        assert_eq!(offsets(&records), [(offset, 1)]);
        consumer.acknowledge_all(&records[0], AckType::Accept).unwrap();
        assert_eq!(consumer.commit_sync(LONG).await.unwrap()[&(rig.topic(), 0)], Outcome::Acknowledged);
        rig.produce(offset + 1..offset + 2).await;
    }
    consumer.close(LONG).await.unwrap();
    assert!(rig.broker.dump().share.sessions.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_that_the_broker_forgets_joins_again_and_loses_nothing() {
    for code in [ErrorCode::UNKNOWN_MEMBER_ID, ErrorCode::FENCED_MEMBER_EPOCH, ErrorCode::GROUP_ID_NOT_FOUND] {
        let rig = Rig::with(1, |bounds| (bounds.heartbeat_ms.0, bounds.default_heartbeat_ms) = (200, 200)).await;
        rig.produce(0..4).await;
        let consumer = rig.consumer(Mode::Explicit);
        let records = rig.receive(&consumer, 4).await;
        let ids: Vec<_> = records.iter().flatten().map(|r| r.id()).collect();
        consumer.acknowledger().acknowledge(ids[0], AckType::Accept).unwrap();
        let fault = rig.broker.fault(Fault::new(FaultAction::Error(code)).key(ApiKey::SHARE_GROUP_HEARTBEAT));
        until("a heartbeat is refused", || rig.broker.fault_hits(fault) > 0).await;
        until("the member is back", || consumer.share_group_metadata().is_ok_and(|m| m.member_epoch() > 0)).await;
        // What was said before, and what is said after, ends; the rest comes again.
        let mut said: i64 = 1;
        said += i64::from(consumer.acknowledger().acknowledge(ids[1], AckType::Accept).is_ok());
        let _ = consumer.commit_sync(LONG).await.unwrap();
        let told = consumer.poll_outcomes();
        assert_eq!(told.iter().map(|o| o.last_offset - o.first_offset + 1).sum::<i64>(), said, "{code}: {told:?}");
        let done: Vec<i64> = told
            .iter()
            .filter(|o| o.outcome == Outcome::Acknowledged)
            .flat_map(|o| o.first_offset..=o.last_offset)
            .collect();
        rig.produce(4..5).await;
        let open: Vec<i64> = (0..5).filter(|offset| !done.contains(offset)).collect();
        consumer.close(LONG).await.unwrap();
        let mut rest = offsets(&rig.receive(&rig.consumer(Mode::Explicit), open.len()).await);
        rest.sort_unstable();
        assert_eq!(rest.iter().map(|(offset, _)| *offset).collect::<Vec<_>>(), open, "{code}");
    }
}

/// Batches that grow by a factor of a thousand, in one answer after the other.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r130_answers_that_expand_to_too_much_come_in_parts() {
    let rig = Rig::new(1).await;
    let builder = kafka_share::Producer::builder("").cluster(std::sync::Arc::clone(&rig.cluster));
    let producer = builder.compression(kafka_share::Compression::Gzip).build().unwrap();
    // 40 batches of 64 KiB; a quarter of them fits into one answer.
    for _ in 0..40 {
        let record = ProducerRecord::new(rig.topic()).partition(0).value(vec![0; 64 << 10]);
        producer.send(record).await.unwrap().await.unwrap();
    }
    let builder = KafkaShareConsumer::builder("", GROUP).cluster(std::sync::Arc::clone(&rig.cluster));
    let builder = builder.acknowledgement_mode(Mode::Explicit).max_decompressed_bytes(256 << 10, 640 << 10);
    let consumer = builder.build().unwrap();
    consumer.subscribe([rig.topic()]).unwrap();
    let mut seen = std::collections::BTreeMap::new();
    let end = Instant::now() + LONG;
    while seen.len() < 40 {
        assert!(Instant::now() < end, "{} records", seen.len());
        let records = consumer.poll(SHORT).await.unwrap();
        assert!(records.iter().map(|r| r.value().unwrap().len()).sum::<usize>() <= 640 << 10);
        for record in &records {
            assert_eq!(record.value().unwrap().len(), 64 << 10);
            assert!(seen.insert(record.offset(), record.delivery_count()).is_none(), "{} twice", record.offset());
        }
        consumer.acknowledge_all(&records, AckType::Accept).unwrap();
    }
    // They wait, compressed, and are not worn out by being sent back.
    assert!(seen.values().all(|count| *count == 1), "{seen:?}");
    consumer.commit_sync(LONG).await.unwrap();
    let accepted =
        |o: &kafka_share::AckOutcome| o.ack_type == Some(AckType::Accept) && o.outcome == Outcome::Acknowledged;
    let told = consumer.poll_outcomes();
    assert_eq!(told.iter().filter(|o| accepted(o)).map(|o| o.last_offset - o.first_offset + 1).sum::<i64>(), 40);
}

/// A broker that says of its own answer that it is another's, or sends what is no answer at all.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_that_cannot_be_read_end_their_connection_and_nothing_else() {
    let garbage = kafka_share_broker::Rewrite::new(|_, body| body.iter().map(|b| b ^ 0x5a).collect());
    let actions = [FaultAction::Rewrite(garbage), FaultAction::ShiftCorrelationId(3), FaultAction::Truncate(2)];
    let keys = [ApiKey::SHARE_FETCH, ApiKey::SHARE_GROUP_HEARTBEAT, ApiKey::METADATA, ApiKey::FIND_COORDINATOR];
    let runs = keys.map(|key| {
        let actions = actions.clone();
        tokio::spawn(async move {
            let rig = Rig::new(1).await;
            rig.produce(0..2).await;
            let started = Instant::now();
            for action in actions {
                rig.broker.fault(Fault::new(action).key(key));
            }
            let consumer = rig.own_consumer(Mode::Explicit);
            let mut seen = Vec::new();
            while seen.len() < 2 {
                assert!(started.elapsed() < 2 * LONG, "{key}: nothing comes");
                // An answer that cannot be read may be told; the next poll goes on.
                let Ok(records) = consumer.poll(Duration::from_millis(500)).await else { continue };
                seen.extend(records.iter().map(|r| r.offset()));
                consumer.acknowledge_all(&records, AckType::Accept).unwrap();
            }
            println!("{key}: {:?}", started.elapsed());
            assert_eq!(seen, [0, 1], "{key}");
            assert_eq!(consumer.commit_sync(LONG).await.unwrap()[&(rig.topic(), 0)], Outcome::Acknowledged);
            consumer.close(LONG).await.unwrap();
        })
    });
    for run in runs {
        run.await.unwrap();
    }
}
