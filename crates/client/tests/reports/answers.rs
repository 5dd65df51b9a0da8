//! Answers that brokers may give, and how each record and acknowledgement fares with them.

use crate::log::Log;
use crate::support::{GROUP, LONG, Mode, Rig, SHORT, offsets};
use crate::wide::{WIDE, builder, count, each_answer, one_answer, until, wide_topic};
use bytes::BytesMut;
use kafka_share::{
    AckType, Admin, ClientConfig, ErrorCode, KafkaShareConsumer, Outcome, Producer, ProducerRecord,
    TransactionalProducer,
};
use kafka_share_messages::share_fetch_response::AcquiredRecords;
use kafka_share_messages::{ApiKey, MetadataResponse, ProduceResponse, ShareAcknowledgeResponse, ShareFetchResponse};
use kafka_share_wire::records::{BatchBuilder, BatchOptions};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

fn acquired(first: i64, last: i64) -> AcquiredRecords {
    AcquiredRecords { first_offset: first, last_offset: last, delivery_count: 1, ..AcquiredRecords::default() }
}

/// The first partition of an answer, if all of `first..=last` was acquired in it.
fn holds(
    answer: &mut ShareFetchResponse,
    first: i64,
    last: i64,
) -> Option<&mut kafka_share_messages::share_fetch_response::PartitionData> {
    let partition = answer.responses.first_mut()?.partitions.first_mut()?;
    let all = partition.acquired_records.first()?.first_offset == first
        && partition.acquired_records.last()?.last_offset == last;
    all.then_some(partition)
}

/// Offsets with their acknowledgement types, from outcomes.
fn flat(outcomes: &[kafka_share::AckOutcome]) -> Vec<(i64, Option<AckType>, Outcome)> {
    let mut all: Vec<_> =
        outcomes.iter().flat_map(|o| (o.first_offset..=o.last_offset).map(|at| (at, o.ack_type, o.outcome))).collect();
    all.sort_by_key(|(offset, _, _)| *offset);
    all
}

#[tokio::test]
async fn r031_offsets_acquired_twice_are_delivered_and_acknowledged_once() {
    let log = Log::start();
    let rig = Rig::new(1).await;
    rig.produce(0..7).await;
    one_answer(&rig, ApiKey::SHARE_FETCH, |answer: &mut ShareFetchResponse| {
        let Some(partition) = holds(answer, 0, 6) else { return false };
        partition.acquired_records = vec![acquired(0, 4), acquired(3, 6)];
        true
    });
    let consumer = rig.consumer(Mode::Explicit);
    let records = rig.receive(&consumer, 7).await;
    assert_eq!(offsets(&records), (0..7).map(|offset| (offset, 1)).collect::<Vec<_>>());
    for records in &records {
        consumer.acknowledge_all(records, AckType::Accept).unwrap();
    }
    assert_eq!(consumer.commit_sync(LONG).await.unwrap()[&(rig.topic(), 0)], Outcome::Acknowledged);
    let each: Vec<_> = (0..7).map(|offset| (offset, Some(AckType::Accept), Outcome::Acknowledged)).collect();
    assert_eq!(flat(&consumer.poll_outcomes()), each, "no gap, nothing twice");
    let told = log.events("more than once");
    assert_eq!(told.iter().map(|e| e.fields["offsets"].as_str()).collect::<Vec<_>>(), ["2"]);
}

#[tokio::test]
async fn r047_corrupt_batches_are_rejected_and_no_neighbour() {
    let log = Log::start();
    let rig = Rig::new(1).await;
    rig.produce(0..10).await;
    one_answer(&rig, ApiKey::SHARE_FETCH, |answer: &mut ShareFetchResponse| {
        let Some(partition) = holds(answer, 0, 9) else { return false };
        let mut records = BytesMut::new();
        for base in [0, 2, 4, 6, 8] {
            let mut builder = BatchBuilder::new(BatchOptions { base_offset: base, ..BatchOptions::default() });
            for offset in [base, base + 1] {
                builder.append(0, None, Some(offset.to_string().as_bytes()), []).unwrap();
            }
            let mut batch = builder.finish().unwrap();
            if matches!(base, 2 | 6) {
                *batch.last_mut().unwrap() ^= 1;
            }
            records.extend_from_slice(&batch);
        }
        partition.records = Some(records.freeze());
        true
    });
    let consumer = rig.consumer(Mode::Explicit);
    let records = rig.receive(&consumer, 6).await;
    assert_eq!(offsets(&records), [0, 1, 4, 5, 8, 9].map(|offset| (offset, 1)));
    for records in &records {
        consumer.acknowledge_all(records, AckType::Accept).unwrap();
    }
    consumer.commit_sync(LONG).await.unwrap();
    let rejected = |offset| matches!(offset, 2 | 3 | 6 | 7);
    let each: Vec<_> = (0..10)
        .map(|offset| {
            let ack = if rejected(offset) { AckType::Reject } else { AckType::Accept };
            (offset, Some(ack), Outcome::Acknowledged)
        })
        .collect();
    assert_eq!(flat(&consumer.poll_outcomes()), each);
    let told = log.events("corrupt record batch rejected");
    let bounds: Vec<_> =
        told.iter().map(|e| (e.fields["first_offset"].as_str(), e.fields["last_offset"].as_str())).collect();
    assert_eq!(bounds, [("2", "3"), ("6", "7")]);
    // Rejected is final: nothing comes again.
    rig.produce(10..11).await;
    assert_eq!(offsets(&rig.receive(&consumer, 1).await), [(10, 1)]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r032_a_transaction_that_was_aborted_leaves_gaps_that_are_acknowledged() {
    let rig = Rig::new(1).await;
    rig.configure("share.isolation.level", "read_committed").await;
    let producer = TransactionalProducer::builder("", "tx").cluster(Arc::clone(&rig.cluster)).build().unwrap();
    producer.init_transactions().await.unwrap();
    producer.begin_transaction().unwrap();
    for value in ["a", "b"] {
        drop(producer.send(ProducerRecord::new(rig.topic()).partition(0).value(value)).await.unwrap());
    }
    producer.flush().await.unwrap();
    producer.abort_transaction().await.unwrap();
    // Nothing but that transaction: two records and the marker.
    let consumer = rig.consumer(Mode::Explicit);
    let end = Instant::now() + LONG;
    let start = || rig.broker.dump().share.partitions.first().map(|p| p.start_offset);
    while start() != Some(3) {
        assert!(Instant::now() < end, "{:?}", rig.broker.dump().share);
        assert!(consumer.poll(SHORT).await.unwrap().is_empty());
    }
    assert!(consumer.poll_outcomes().iter().all(|o| o.ack_type.is_none() && o.outcome == Outcome::Acknowledged));
    rig.produce(3..4).await;
    assert_eq!(offsets(&rig.receive(&consumer, 1).await), [(3, 1)]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r035_outcomes_are_those_of_each_partition() {
    let rig = Rig::new(1).await;
    wide_topic(&rig, 3).await;
    let asked: Arc<Mutex<Vec<Vec<i32>>>> = Arc::default();
    each_answer(&rig, ApiKey::SHARE_ACKNOWLEDGE, {
        let asked = Arc::clone(&asked);
        move |answer: &mut ShareAcknowledgeResponse| {
            let mut asked = asked.lock().unwrap();
            let partitions = answer.responses.iter_mut().flat_map(|t| &mut t.partitions);
            let mut named = Vec::new();
            for partition in partitions {
                named.push(partition.partition_index);
                partition.error_code = match (asked.is_empty(), partition.partition_index) {
                    (true, 1) => ErrorCode::NOT_LEADER_OR_FOLLOWER,
                    (true, 2) => ErrorCode::REQUEST_TIMED_OUT,
                    _ => ErrorCode::NONE,
                };
            }
            named.sort_unstable();
            if !named.is_empty() {
                asked.push(named);
            }
        }
    });
    let consumer = rig.consumer(Mode::Explicit);
    consumer.subscribe([WIDE]).unwrap();
    let records = rig.receive(&consumer, 3).await;
    for records in &records {
        consumer.acknowledge_all(records, AckType::Accept).unwrap();
    }
    let outcomes = consumer.commit_sync(LONG).await.unwrap();
    let all: Vec<_> = (0..3).map(|p| outcomes[&(WIDE.to_owned(), p)]).collect();
    let refused = Outcome::Refused(ErrorCode::NOT_LEADER_OR_FOLLOWER);
    assert_eq!(all, [Outcome::Acknowledged, refused, Outcome::Acknowledged]);
    assert_eq!(*asked.lock().unwrap(), [vec![0, 1, 2], vec![2]], "only what may be retried is");
    assert_eq!(consumer.poll_outcomes().len(), 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r040_a_commit_that_is_always_refused_for_now_ends_at_its_deadline() {
    let rig = Rig::new(1).await;
    rig.produce(0..3).await;
    each_answer(&rig, ApiKey::SHARE_ACKNOWLEDGE, |answer: &mut ShareAcknowledgeResponse| {
        for partition in answer.responses.iter_mut().flat_map(|t| &mut t.partitions) {
            partition.error_code = ErrorCode::REQUEST_TIMED_OUT;
        }
    });
    let told: Arc<Mutex<Vec<kafka_share::AckOutcome>>> = Arc::default();
    let limit = Duration::from_secs(4);
    let consumer = KafkaShareConsumer::builder(&rig.broker.bootstrap_servers(), GROUP)
        .client_config(|c| c.default_api_timeout(limit))
        .acknowledgement_mode(Mode::Explicit)
        .acknowledgement_commit_callback({
            let told = Arc::clone(&told);
            move |outcomes| told.lock().unwrap().extend_from_slice(outcomes)
        })
        .build()
        .unwrap();
    consumer.subscribe([rig.topic()]).unwrap();
    let records = rig.receive(&consumer, 3).await;
    for records in &records {
        consumer.acknowledge_all(records, AckType::Accept).unwrap();
    }
    let started = Instant::now();
    consumer.commit_async().unwrap();
    until("the failure is told", || !told.lock().unwrap().is_empty()).await;
    assert!(started.elapsed() >= limit / 2, "given up after {:?}", started.elapsed());
    let refused = Outcome::Refused(ErrorCode::REQUEST_TIMED_OUT);
    let each: Vec<_> = (0..3).map(|offset| (offset, Some(AckType::Accept), refused)).collect();
    assert_eq!(flat(&told.lock().unwrap()), each);
    assert_eq!(flat(&consumer.poll_outcomes()), each, "once, and nothing more is tried");
}

/// A topic that is gone is the end of its records, and of nothing else.
#[tokio::test]
async fn r041_unsubscribe_and_close_are_quiet_after_the_topic_is_gone() {
    let log = Log::start();
    for unsubscribes in [true, false] {
        let rig = Rig::new(1).await;
        rig.produce(0..5).await;
        let consumer = rig.consumer(Mode::Explicit);
        let records = rig.receive(&consumer, 5).await;
        for record in records.iter().flatten().take(3) {
            consumer.acknowledge(&record).unwrap();
        }
        let admin = Admin::on(Arc::clone(&rig.cluster));
        admin.delete_topics(&[&rig.topic()]).await.unwrap();
        if unsubscribes {
            consumer.unsubscribe();
        }
        let started = Instant::now();
        consumer.close(LONG).await.unwrap();
        assert!(started.elapsed() < LONG / 2, "{:?}", started.elapsed());
        // Two were in hand and nothing was said of them: they have no outcome.
        let told = flat(&consumer.poll_outcomes());
        assert_eq!(told.iter().map(|(offset, _, _)| *offset).collect::<Vec<_>>(), [0, 1, 2], "{told:?}");
        assert!(told.iter().all(|(_, _, outcome)| *outcome != Outcome::Acknowledged), "{told:?}");
        assert!(rig.broker.dump().groups.iter().all(|g| g.members.is_empty()), "the member has left");
        assert!(rig.broker.dump().share.sessions.is_empty(), "no session is left");
    }
    let told = log.events("");
    assert!(told.iter().all(|e| e.level > Some(tracing::Level::WARN)), "{told:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r110_a_throttle_time_holds_the_next_request_back_and_is_shown() {
    let rig = Rig::new(1).await;
    let throttle = Duration::from_millis(300);
    let [fetched, produced]: [Arc<Mutex<Vec<Instant>>>; 2] = Default::default();
    each_answer(&rig, ApiKey::SHARE_FETCH, {
        let fetched = Arc::clone(&fetched);
        move |answer: &mut ShareFetchResponse| {
            answer.throttle_time_ms = 300;
            fetched.lock().unwrap().push(Instant::now());
        }
    });
    each_answer(&rig, ApiKey::PRODUCE, {
        let produced = Arc::clone(&produced);
        move |answer: &mut ProduceResponse| {
            answer.throttle_time_ms = 300;
            produced.lock().unwrap().push(Instant::now());
        }
    });
    let consumer = builder(&rig).fetch_max_wait(Duration::from_millis(1)).build().unwrap();
    consumer.subscribe([rig.topic()]).unwrap();
    assert!(consumer.poll(Duration::from_secs(2)).await.unwrap().is_empty());
    until("fetches", || fetched.lock().unwrap().len() >= 3).await;
    let producer = Producer::builder(&rig.broker.bootstrap_servers()).build().unwrap();
    for _ in 0..3 {
        let record = ProducerRecord::new(rig.topic()).partition(0).value("x");
        producer.send(record).await.unwrap().await.unwrap();
    }
    // An answer leaves the broker before the client knows of its throttle time: the next one is that much later at least.
    for times in [fetched.lock().unwrap().clone(), produced.lock().unwrap().clone()] {
        assert!(times.windows(2).all(|w| w[1] - w[0] >= throttle), "{times:?}");
    }
    assert_eq!(consumer.metrics().get("fetch-throttle-time-max"), Some(300.0));
    let started = Instant::now();
    consumer.close(LONG).await.unwrap();
    assert!(started.elapsed() < LONG / 2, "{:?}", started.elapsed());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r106_metadata_without_brokers_do_not_end_what_is_known() {
    let rig = Rig::new(1).await;
    rig.produce(0..1).await;
    let mut builder = KafkaShareConsumer::builder(&rig.broker.bootstrap_servers(), GROUP);
    builder.set("metadata.max.age.ms", "50").unwrap();
    let consumer = builder.acknowledgement_mode(Mode::Explicit).build().unwrap();
    consumer.subscribe([rig.topic()]).unwrap();
    rig.receive(&consumer, 1).await;
    let empty = each_answer(&rig, ApiKey::METADATA, |answer: &mut MetadataResponse| {
        answer.brokers.clear();
        answer.topics.clear();
    });
    for offset in 1..4 {
        let before = rig.broker.fault_hits(empty);
        until("a refresh", || rig.broker.fault_hits(empty) > before + 1).await;
        rig.produce(offset..offset + 1).await;
        assert_eq!(offsets(&rig.receive(&consumer, 1).await), [(offset, 1)]);
    }
    // Nor are they asked for without a pause.
    let (before, since) = (rig.broker.fault_hits(empty), Instant::now());
    assert!(consumer.poll(Duration::from_secs(1)).await.unwrap().is_empty());
    let (asked, seconds) = (rig.broker.fault_hits(empty) - before, since.elapsed().as_secs_f64());
    assert!(f64::from(asked) < 40.0 * seconds, "{asked} in {seconds} s");
    consumer.close(LONG).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r103_topics_of_daily_use_stay_known_while_others_are_refreshed() {
    let rig = Rig::new(1).await;
    wide_topic(&rig, 1).await;
    let mut config = ClientConfig::new(&rig.broker.bootstrap_servers());
    config.set("metadata.max.age.ms", "100").unwrap();
    let cluster = kafka_share::net::Cluster::new(config).unwrap();
    let producer = Producer::builder("").cluster(Arc::clone(&cluster)).build().unwrap();
    // This one refreshes its topic, and that one only, every 100 ms.
    let builder = KafkaShareConsumer::builder("", GROUP).cluster(Arc::clone(&cluster));
    let consumer = builder.acknowledgement_mode(Mode::Explicit).build().unwrap();
    consumer.subscribe([rig.topic()]).unwrap();
    let refreshes = count(&rig, ApiKey::METADATA);
    let mut sent = 0;
    while rig.broker.fault_hits(refreshes) < 10 || sent < 20 {
        for topic in [rig.topic().as_str(), WIDE] {
            let record = ProducerRecord::new(topic).partition(0).value(sent.to_string());
            producer.send(record).await.unwrap().await.unwrap();
        }
        sent += 1;
        let records = consumer.poll(Duration::from_millis(30)).await.unwrap();
        consumer.acknowledge_all(&records, AckType::Accept).unwrap();
    }
}
