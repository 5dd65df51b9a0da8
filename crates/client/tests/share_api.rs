//! The parts of the share consumer's interface beside `poll`, against the embedded broker.

mod support;

use kafka_share::{
    AckType, Admin, ClientConfig, Deserialize, ErrorKind, KafkaShareConsumer, Outcome, ProducerRecord,
    StringDeserializer,
};
use kafka_share_broker::{Fault, FaultAction};
use kafka_share_messages::{ApiKey, ErrorCode};
use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};
use support::{LONG, Mode, Rig, SHORT, offsets};

/// The next item of a stream, without another crate.
async fn next<S: futures_core::Stream + Unpin>(stream: &mut S) -> Option<S::Item> {
    poll_fn(|context| std::pin::Pin::new(&mut *stream).poll_next(context)).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn recv_accepts_the_record_before_and_no_other() {
    let rig = Rig::new(1).await;
    rig.produce(0..5).await;
    let first = rig.consumer(Mode::Implicit);
    for offset in 0..3 {
        let record = first.recv().await.unwrap();
        assert_eq!((record.offset(), record.value().unwrap()), (offset, offset.to_string().as_bytes()));
        assert!(record.lock_deadline() > Instant::now());
    }
    first.commit_sync(LONG).await.unwrap();
    let dropped = first.recv().await.unwrap();
    assert_eq!(dropped.offset(), 3);
    first.close(LONG).await.unwrap();
    let second = rig.consumer(Mode::Implicit);
    assert_eq!(offsets(&rig.receive(&second, 2).await), [(3, 2), (4, 2)]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_of_records_and_outcomes_end_with_the_consumer() {
    let rig = Rig::new(1).await;
    rig.produce(0..4).await;
    let consumer = rig.consumer(Mode::Explicit);
    let (mut records, mut outcomes) = (consumer.stream(), consumer.outcomes());
    for offset in 0..4 {
        let record = next(&mut records).await.unwrap().unwrap();
        assert_eq!(record.offset(), offset);
        // Records go to other tasks as they are.
        let acknowledger = consumer.acknowledger();
        tokio::spawn(async move { acknowledger.acknowledge(record.id(), AckType::Accept) }).await.unwrap().unwrap();
    }
    consumer.commit_async().unwrap();
    let mut told = 0;
    while told < 4 {
        let outcome = next(&mut outcomes).await.unwrap();
        assert_eq!(outcome.outcome, Outcome::Acknowledged);
        told += outcome.last_offset - outcome.first_offset + 1;
    }
    consumer.wakeup();
    assert_eq!(next(&mut records).await.unwrap().unwrap_err().kind(), ErrorKind::Wakeup);
    consumer.close(LONG).await.unwrap();
    assert!(next(&mut records).await.is_none() && next(&mut records).await.is_none());
    assert!(next(&mut outcomes).await.is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r046_a_record_that_does_not_deserialise_is_rejected_and_the_others_are_read() {
    let rig = Rig::new(1).await;
    for value in [&b"one"[..], &[0xff, 0xfe], b"three"] {
        let record = ProducerRecord::new(rig.topic()).partition(0).value(value.to_vec());
        rig.producer().send(record).await.unwrap().await.unwrap();
    }
    let consumer = rig.consumer(Mode::Explicit);
    let mut good = Vec::new();
    let mut bad = Vec::new();
    while good.len() + bad.len() < 3 {
        let records = consumer.poll(LONG).await.unwrap();
        for typed in records.deserialize(&Deserialize::new(|key| Ok(key.map(<[u8]>::len))), &StringDeserializer) {
            match typed.content {
                Ok((key, value)) => {
                    assert_eq!(key, None);
                    good.extend(value);
                    consumer.acknowledge(&typed.record).unwrap();
                }
                Err(error) => {
                    let text = error.to_string();
                    assert!(text.starts_with(&format!("value of {}-0@1 does not deserialise", rig.topic())), "{text}");
                    bad.push((error.partition, error.offset, error.is_key));
                    consumer.acknowledge_offset(&error.topic, error.partition, error.offset, AckType::Reject).unwrap();
                }
            }
        }
    }
    assert_eq!((good, bad), (vec!["one".to_owned(), "three".to_owned()], vec![(0, 1, false)]));
    consumer.commit_sync(LONG).await.unwrap();
    consumer.close(LONG).await.unwrap();
    rig.produce(3..4).await;
    assert_eq!(offsets(&rig.receive(&rig.consumer(Mode::Explicit), 1).await), [(3, 1)]);
}

/// A fault that may pass is given back and comes again, and its neighbours do not wait for it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r046_a_record_that_does_not_deserialise_now_can_be_released_and_read_later() {
    let rig = Rig::new(1).await;
    rig.produce(0..3).await;
    let consumer = rig.consumer(Mode::Explicit);
    // The schema of the second is not to be had at first.
    let mut knows_all = false;
    let mut read = Vec::new();
    let end = Instant::now() + LONG;
    while read.len() < 3 {
        assert!(Instant::now() < end, "{read:?}");
        let records = consumer.poll(LONG).await.unwrap();
        let value = Deserialize::new(|bytes: Option<&[u8]>| match bytes {
            Some(b"1") if !knows_all => Err("no such schema yet".into()),
            bytes => Ok(bytes.map(<[u8]>::to_vec)),
        });
        for typed in records.deserialize(&StringDeserializer, &value) {
            let (offset, count) = (typed.record.offset(), typed.record.delivery_count());
            match typed.content {
                Ok(_) => {
                    read.push((offset, count));
                    consumer.acknowledge(&typed.record).unwrap();
                }
                Err(error) => {
                    assert_eq!((error.offset, count), (1, 1), "{error}");
                    assert!(error.to_string().ends_with("no such schema yet"), "{error}");
                    consumer.acknowledge_with(&typed.record, AckType::Release).unwrap();
                }
            }
        }
        knows_all = true;
        consumer.commit_sync(LONG).await.unwrap();
    }
    assert_eq!(read, [(0, 1), (2, 1), (1, 2)]);
    assert!(consumer.poll_outcomes().iter().all(|o| o.outcome == Outcome::Acknowledged));
    consumer.close(LONG).await.unwrap();
    rig.produce(3..4).await;
    assert_eq!(offsets(&rig.receive(&rig.consumer(Mode::Explicit), 1).await), [(3, 1)]);
}

/// Records taken out of a poll outlive it, go to other tasks, and are acknowledged there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn owned_records_of_a_poll_are_those_it_had_and_can_be_acknowledged_anywhere() {
    let rig = Rig::new(1).await;
    for key in [Some("k"), None] {
        let mut record = ProducerRecord::new(rig.topic()).partition(0).value("v").header("h", "1");
        if let Some(key) = key {
            record = record.key(key);
        }
        rig.producer().send(record).await.unwrap().await.unwrap();
    }
    rig.produce(2..5).await;
    let consumer = rig.consumer(Mode::Explicit);
    let mut owned = Vec::new();
    while owned.len() < 5 {
        let records = consumer.poll(LONG).await.unwrap();
        let told: Vec<_> =
            records.iter().map(|r| (r.id(), r.offset(), r.delivery_count(), r.lock_deadline())).collect();
        let taken: Vec<_> = records.into_iter_owned().collect();
        let same: Vec<_> = taken.iter().map(|r| (r.id(), r.offset(), r.delivery_count(), r.lock_deadline())).collect();
        assert_eq!(same, told);
        owned.extend(taken);
    }
    let shown = |at: usize| (owned[at].topic(), owned[at].partition(), owned[at].key(), owned[at].value());
    let topic = rig.topic();
    assert_eq!(shown(0), (topic.as_str(), 0, Some(&b"k"[..]), Some(&b"v"[..])));
    assert_eq!(shown(1), (topic.as_str(), 0, None, Some(&b"v"[..])));
    assert_eq!(shown(4).3, Some(&b"4"[..]));
    let first = owned[0].as_record();
    let headers: Vec<_> = first.headers().map(|h| h.key).collect();
    assert_eq!(headers, [b"h"]);
    let acknowledger = consumer.acknowledger();
    let workers = owned.into_iter().map(|record| {
        let acknowledger = acknowledger.clone();
        tokio::spawn(async move { acknowledger.acknowledge(record.id(), AckType::Accept) })
    });
    for worker in workers.collect::<Vec<_>>() {
        worker.await.unwrap().unwrap();
    }
    assert_eq!(consumer.commit_sync(LONG).await.unwrap()[&(rig.topic(), 0)], Outcome::Acknowledged);
    consumer.close(LONG).await.unwrap();
    rig.produce(5..6).await;
    assert_eq!(offsets(&rig.receive(&rig.consumer(Mode::Explicit), 1).await), [(5, 1)]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r037_r038_the_callback_has_run_when_the_commit_returns_and_may_panic_and_call_back() {
    let rig = Rig::new(1).await;
    rig.produce(0..3).await;
    let told = Arc::new(Mutex::new(Vec::new()));
    let calls = Arc::new(AtomicUsize::new(0));
    let held: Arc<OnceLock<Arc<KafkaShareConsumer>>> = Arc::default();
    let builder = KafkaShareConsumer::builder("", "group").cluster(Arc::clone(&rig.cluster));
    let callback = {
        let (told, calls, held) = (Arc::clone(&told), Arc::clone(&calls), Arc::clone(&held));
        move |outcomes: &[kafka_share::AckOutcome]| {
            told.lock().unwrap().extend(outcomes.iter().map(|o| (o.first_offset, o.last_offset, o.outcome)));
            // The consumer may be called from here.
            held.get().unwrap().wakeup();
            assert!(calls.fetch_add(1, Ordering::SeqCst) > 0, "the first call fails, on purpose");
        }
    };
    let builder = builder.acknowledgement_mode(Mode::Explicit).acknowledgement_commit_callback(callback);
    let consumer = Arc::new(builder.build().unwrap());
    assert!(held.set(Arc::clone(&consumer)).is_ok());
    consumer.subscribe([rig.topic()]).unwrap();
    let records = rig.receive(&consumer, 3).await;
    for (at, record) in records.iter().flatten().enumerate() {
        consumer.acknowledge(&record).unwrap();
        consumer.commit_sync(LONG).await.unwrap();
        let expected: Vec<_> = (0..=at as i64).map(|o| (o, o, Outcome::Acknowledged)).collect();
        assert_eq!(*told.lock().unwrap(), expected);
    }
    assert_eq!(consumer.poll(LONG).await.unwrap_err().kind(), ErrorKind::Wakeup);
    assert_eq!(consumer.poll_outcomes().len(), 3);
    consumer.close(LONG).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r044_a_renewed_record_comes_from_poll_again_with_a_later_lock() {
    let rig = Rig::new(1).await;
    rig.produce(0..2).await;
    let consumer = rig.consumer(Mode::Explicit);
    let records = rig.receive(&consumer, 2).await;
    let record = records.iter().flatten().next().unwrap();
    consumer.acknowledge_with(&record, AckType::Renew).unwrap();
    consumer.commit_sync(LONG).await.unwrap();
    let again = consumer.poll(LONG).await.unwrap();
    assert_eq!(offsets(std::slice::from_ref(&again)), [(0, 1)]);
    let second = again.iter().next().unwrap();
    assert!(second.lock_deadline() > record.lock_deadline());
    assert_eq!(consumer.lock_deadline(record.id()), Some(second.lock_deadline()));
    consumer.acknowledge(&second).unwrap();
    assert_eq!(consumer.acknowledge(&record).unwrap_err().kind(), ErrorKind::InvalidState, "they are one record");
    consumer.commit_sync(LONG).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r044_renewals_that_the_group_does_not_allow_are_refused_and_the_record_stays() {
    let rig = Rig::new(1).await;
    rig.configure("share.renew.acknowledge.enable", "false").await;
    rig.produce(0..1).await;
    let consumer = rig.consumer(Mode::Explicit);
    let records = rig.receive(&consumer, 1).await;
    let record = records.iter().flatten().next().unwrap();
    consumer.acknowledge_with(&record, AckType::Renew).unwrap();
    let refused = Outcome::Refused(ErrorCode::INVALID_RECORD_STATE);
    assert_eq!(consumer.commit_sync(LONG).await.unwrap()[&(rig.topic(), 0)], refused);
    assert_eq!(consumer.poll_outcomes().last().unwrap().outcome, refused);
    consumer.acknowledge(&record).unwrap();
    assert_eq!(consumer.commit_sync(LONG).await.unwrap()[&(rig.topic(), 0)], Outcome::Acknowledged);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r151_the_renewer_keeps_locks_while_the_application_works() {
    let rig = Rig::with(1, |bounds| bounds.record_lock_ms.0 = 1_000).await;
    rig.configure("share.record.lock.duration.ms", "5000").await;
    rig.produce(0..3).await;
    let builder = KafkaShareConsumer::builder("", "group").cluster(Arc::clone(&rig.cluster));
    let consumer = builder.acknowledgement_mode(Mode::Explicit).lock_renewal(2 * LONG).build().unwrap();
    consumer.subscribe([rig.topic()]).unwrap();
    let records = rig.receive(&consumer, 3).await;
    let other = rig.consumer(Mode::Explicit);
    let until = Instant::now() + Duration::from_secs(12);
    while Instant::now() < until {
        assert!(other.poll(SHORT).await.unwrap().is_empty(), "a lock of a busy application ended");
    }
    assert!(consumer.poll_outcomes().is_empty());
    for records in &records {
        consumer.acknowledge_all(records, AckType::Accept).unwrap();
    }
    assert_eq!(consumer.commit_sync(LONG).await.unwrap()[&(rig.topic(), 0)], Outcome::Acknowledged);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn durations_of_zero_and_of_ages_are_taken() {
    let rig = Rig::new(1).await;
    rig.produce(0..3).await;
    let consumer = rig.consumer(Mode::Explicit);
    let until = Instant::now() + LONG;
    let mut seen = Vec::new();
    while seen.len() < 3 && Instant::now() < until {
        // Never waits, and gets its records all the same.
        let records = consumer.poll(Duration::ZERO).await.unwrap();
        seen.extend(offsets(std::slice::from_ref(&records)));
        consumer.acknowledge_all(&records, AckType::Accept).unwrap();
        tokio::task::yield_now().await;
    }
    assert_eq!(seen, [(0, 1), (1, 1), (2, 1)]);
    let _ = consumer.commit_sync(Duration::ZERO).await;
    consumer.commit_sync(Duration::MAX).await.unwrap();
    rig.produce(3..4).await;
    assert_eq!(offsets(&[consumer.poll(Duration::MAX).await.unwrap()]), [(3, 1)]);
    consumer.close(Duration::MAX).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn empty_huge_and_unknown_topic_lists() {
    let rig = Rig::new(1).await;
    rig.produce(0..1).await;
    let consumer = rig.consumer(Mode::Explicit);
    assert_eq!(consumer.subscribe([""]).unwrap_err().kind(), ErrorKind::InvalidInput);
    assert_eq!(consumer.subscribe(["a b"]).unwrap_err().kind(), ErrorKind::InvalidInput);
    assert_eq!(consumer.subscribe(["x".repeat(250)]).unwrap_err().kind(), ErrorKind::InvalidInput);
    assert_eq!(consumer.subscription(), [rig.topic()], "a refused list changes nothing");
    let many: Vec<String> = (0..5_000).map(|n| format!("none-{n}")).chain([rig.topic()]).collect();
    consumer.subscribe(&many).unwrap();
    assert_eq!(offsets(&rig.receive(&consumer, 1).await), [(0, 1)]);
    consumer.subscribe(Vec::<String>::new()).unwrap();
    assert!(consumer.subscription().is_empty());
    // The empty list is an unsubscribe: the record is free for others.
    let other = rig.consumer(Mode::Explicit);
    assert_eq!(offsets(&rig.receive(&other, 1).await), [(0, 2)]);
    // A topic that comes later is consumed without another subscribe.
    other.subscribe([rig.topic().as_str(), "later"]).unwrap();
    assert!(other.poll(SHORT).await.unwrap().is_empty());
    let admin = Admin::on(Arc::clone(&rig.cluster));
    admin.create_topic(kafka_share::admin::NewTopic::new("later", 1)).await.unwrap();
    let record = ProducerRecord::new("later").partition(0).value("0");
    rig.producer().send(record).await.unwrap().await.unwrap();
    let got = rig.receive(&other, 1).await;
    assert_eq!(got[0].iter().next().unwrap().topic(), "later");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_missing_topic_is_created_where_consumer_and_broker_allow_it() {
    let rig = Rig::new(1).await;
    let consumer = |properties: &[(&str, &str)]| {
        let mut builder = KafkaShareConsumer::builder("", "creators").cluster(Arc::clone(&rig.cluster));
        for (name, value) in properties {
            builder.set(name, value).unwrap();
        }
        builder.build().unwrap()
    };
    let admin = Admin::on(Arc::clone(&rig.cluster));
    let careful = consumer(&[("allow.auto.create.topics", "false")]);
    careful.subscribe(["never"]).unwrap();
    let default = consumer(&[]);
    default.subscribe(["wanted"]).unwrap();
    let exists = async |name: &str| admin.describe_topics(&[name]).await.unwrap()[0].1.is_ok();
    let deadline = Instant::now() + LONG;
    while !exists("wanted").await {
        assert!(Instant::now() < deadline, "the topic was not created");
        assert!(default.poll(SHORT).await.unwrap().is_empty() && careful.poll(SHORT).await.unwrap().is_empty());
    }
    assert!(!exists("never").await);
}

/// More is to be ready than the group lets a member lock: acknowledgements must not wait behind fetches that brokers hold.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn prefetching_does_not_stall_at_the_limit_of_locks() {
    let rig = Rig::new(1).await;
    rig.configure("share.partition.max.record.locks", "100").await;
    rig.produce(0..3_000).await;
    let builder = KafkaShareConsumer::builder("", "group").cluster(Arc::clone(&rig.cluster));
    let builder = builder.acknowledgement_mode(Mode::Explicit).max_poll_records(50).prefetch(1_000);
    let consumer = builder.fetch_max_wait(Duration::from_secs(5)).build().unwrap();
    consumer.subscribe([rig.topic()]).unwrap();
    let started = Instant::now();
    let mut seen = 0;
    while seen < 3_000 {
        let records = consumer.poll(LONG).await.unwrap();
        seen += consumer.acknowledge_all(&records, AckType::Accept).unwrap();
    }
    // Held back once per round of 100 it would take more than two minutes.
    assert!(started.elapsed() < 4 * LONG, "{:?}", started.elapsed());
    consumer.close(LONG).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r041_r107_a_topic_deleted_and_created_again_under_the_consumer() {
    let rig = Rig::new(1).await;
    rig.produce(0..5).await;
    let consumer = rig.consumer(Mode::Explicit);
    let records = rig.receive(&consumer, 5).await;
    let admin = Admin::on(Arc::clone(&rig.cluster));
    admin.delete_topics(&[&rig.topic()]).await.unwrap();
    admin.create_topic(kafka_share::admin::NewTopic::new(rig.topic(), 1)).await.unwrap();
    let taken =
        records.iter().map(|records| consumer.acknowledge_all(records, AckType::Accept).unwrap()).sum::<usize>();
    let started = Instant::now();
    let outcomes = consumer.commit_sync(2 * LONG).await.unwrap();
    assert!(outcomes.values().all(|o| *o != Outcome::Acknowledged), "{outcomes:?}");
    let told: i64 = consumer.poll_outcomes().iter().map(|o| o.last_offset - o.first_offset + 1).sum();
    assert_eq!(told, taken as i64, "each that was taken has its outcome");
    assert!(started.elapsed() < LONG, "not retried to the end");
    rig.produce(0..5).await;
    assert_eq!(offsets(&rig.receive(&consumer, 5).await), (0..5).map(|o| (o, 1)).collect::<Vec<_>>());
    consumer.close(LONG).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r017_a_leave_is_not_overtaken_by_a_join_that_is_tried_again() {
    let rig = Rig::new(1).await;
    let loading = FaultAction::Error(ErrorCode::COORDINATOR_LOAD_IN_PROGRESS);
    let fault = rig.broker.fault(Fault::new(loading).key(ApiKey::SHARE_GROUP_HEARTBEAT));
    let consumer = rig.consumer(Mode::Explicit);
    while rig.broker.fault_hits(fault) == 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    // The join waits for its second try, for about 100 ms.
    consumer.unsubscribe();
    tokio::time::sleep(Duration::from_millis(500)).await;
    // One that nobody is would stay until its session times out, after 45 s.
    let (members, end) =
        (|| rig.broker.dump().groups.iter().map(|g| g.members.len()).sum::<usize>(), Instant::now() + LONG);
    while members() > 0 {
        assert!(Instant::now() < end, "a member that nobody is");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    // The consumer is none the worse for it.
    rig.produce(0..1).await;
    consumer.subscribe([rig.topic()]).unwrap();
    assert_eq!(offsets(&rig.receive(&consumer, 1).await), [(0, 1)]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_broker_that_hangs_does_not_keep_metadata_away() {
    let rig = Rig::new(3).await;
    rig.produce(0..1).await;
    // Every metadata request to the first broker is never answered; of the bootstrap list it is the first too.
    rig.broker.fault(Fault::new(FaultAction::Ignore).key(ApiKey::METADATA).node(rig.broker.nodes()[0].id).times(1_000));
    for _ in 0..4 {
        let consumer = rig.own_consumer(Mode::Explicit);
        let started = Instant::now();
        let record = tokio::time::timeout(LONG, consumer.recv()).await.expect("within the time").unwrap();
        assert_eq!(record.offset(), 0);
        assert!(started.elapsed() < Duration::from_secs(10), "{:?}", started.elapsed());
        consumer.close(LONG).await.unwrap();
    }
}

/// Answers come in order: what waits behind a slow answer must not end the connection that the slow one is to come on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_answer_is_not_lost_by_those_who_wait_behind_it() {
    let rig = Rig::new(1).await;
    let config = ClientConfig::new(&rig.broker.bootstrap_servers());
    let admin = Admin::new(config).unwrap();
    admin.delete_groups(&["nobody"]).await.into_iter().for_each(drop);
    let slow = rig.broker.fault(Fault::new(FaultAction::Delay(Duration::from_secs(4))).key(ApiKey::DELETE_GROUPS));
    let (deleted, described) = tokio::join!(admin.delete_groups(&["nobody"]), async {
        while rig.broker.fault_hits(slow) == 0 {
            tokio::task::yield_now().await;
        }
        admin.describe_cluster().await
    });
    assert!(described.is_ok(), "{described:?}");
    let code = deleted[0].1.as_ref().unwrap_err().code();
    assert_eq!(code, Some(ErrorCode::GROUP_ID_NOT_FOUND), "{deleted:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn metrics_have_javas_names_and_the_right_numbers() {
    let rig = Rig::new(1).await;
    rig.produce(0..10).await;
    let consumer = rig.consumer(Mode::Explicit);
    let records = rig.receive(&consumer, 10).await;
    for records in &records {
        consumer.acknowledge_all(records, AckType::Accept).unwrap();
    }
    consumer.commit_sync(LONG).await.unwrap();
    let metrics = consumer.metrics();
    let value = |name: &str| metrics.get(name).unwrap_or_else(|| panic!("{name} is missing"));
    assert_eq!(value("records-consumed-total"), 10.0);
    assert_eq!((value("acknowledgements-send-total"), value("acknowledgements-error-total")), (10.0, 0.0));
    assert!(value("fetch-total") >= 1.0 && value("bytes-consumed-total") > 100.0);
    assert!(value("heartbeat-total") >= 1.0 && value("rebalance-total") >= 1.0);
    assert!((0.0..=1.0).contains(&value("poll-idle-ratio-avg")) || value("poll-idle-ratio-avg").is_nan());
    assert!((0.0..LONG.as_secs_f64()).contains(&value("last-poll-seconds-ago")));
    assert!(consumer.metrics().iter().all(|m| m.group.starts_with("consumer-share")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn prefetched_records_are_ready_while_the_application_works() {
    let rig = Rig::new(1).await;
    let builder = KafkaShareConsumer::builder("", "group").cluster(Arc::clone(&rig.cluster));
    let builder = builder.acknowledgement_mode(Mode::Explicit).max_poll_records(10).prefetch(20);
    let consumer = builder.build().unwrap();
    consumer.subscribe([rig.topic()]).unwrap();
    for batch in 0..10 {
        rig.produce(batch * 10..batch * 10 + 10).await;
    }
    let mut seen = offsets(&rig.receive(&consumer, 10).await);
    let held = || rig.broker.dump().share.partitions.iter().map(|p| p.acquired).sum::<i64>();
    let until = Instant::now() + LONG;
    while held() < 20 && Instant::now() < until {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!((20..=40).contains(&held()), "{} records are locked", held());
    while seen.len() < 100 {
        let records = consumer.poll(LONG).await.unwrap();
        consumer.acknowledge_all(&records, AckType::Accept).unwrap();
        seen.extend(offsets(std::slice::from_ref(&records)));
    }
    seen.sort_unstable();
    assert_eq!(seen, (0..100).map(|o| (o, 1)).collect::<Vec<_>>());
    let waiting = pin!(consumer.poll(SHORT));
    assert!(waiting.await.unwrap().is_empty());
}
