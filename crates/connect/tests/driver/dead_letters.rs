//! Rejected records and the broker's dead letter queue.

use crate::common::{Bench, PATIENCE, Scripted, accepted, failure, rejected, text, until, values};
use kafka_share::admin::NewTopic;
use kafka_share::{PartitionReader, Producer, ProducerRecord};
use kafka_share_broker::{Fault, FaultAction};
use kafka_share_connect::{ConnectError, Worker, sinks};
use kafka_share_messages::{ApiKey, ErrorCode};
use std::sync::Arc;
use std::time::{Duration, Instant};

const QUEUE: (&str, &str) = ("errors.deadletterqueue.topic.name", "dlq.sink");
const ALL: (&str, &str) = ("errors.tolerance", "all");
const ALLOWED: &str = "errors.deadletterqueue.group.enable";

/// A record's headers, in their order.
type Headers = Vec<(String, String)>;

/// What `topic` holds, once it holds `count` records: headers and values.
async fn letters(bench: &Bench, topic: &str, count: usize) -> Vec<(Headers, Option<Vec<u8>>)> {
    let until = Instant::now() + PATIENCE;
    loop {
        let cluster = Arc::clone(bench.admin.cluster());
        let mut reader = PartitionReader::read_committed(cluster, topic).await.expect("reader");
        let mut all = Vec::new();
        for batch in reader.read_to_end().await.expect("records") {
            for record in batch.iter() {
                let lossy = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                let headers = record.headers().map(|h| (lossy(h.key), lossy(h.value.unwrap_or_default())));
                all.push((headers.collect(), record.value().map(<[u8]>::to_vec)));
            }
        }
        if all.len() >= count {
            return all;
        }
        assert!(Instant::now() < until, "{topic} has {all:?}, and not {count} records");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

fn header<'a>(headers: &'a Headers, name: &str) -> &'a str {
    let found: Vec<&str> = headers.iter().filter(|(n, _)| n == name).map(|(_, v)| v.as_str()).collect();
    assert_eq!(found.len(), 1, "{name}: {headers:?}");
    found[0]
}

fn refusing(bad: &'static [i64]) -> Scripted {
    Scripted::new(move |records, _| match records.iter().any(|r| bad.contains(&r.offset)) {
        true => Err(ConnectError::fatal("cannot store it")),
        false => Ok(()),
    })
}

/// 100 records, of which three are poison: they, and only they, arrive in the queue, once, with the broker's headers.
pub(crate) async fn poison_arrives_once(bench: &Bench) {
    let topic = "letters-in";
    bench.admin.create_topic(NewTopic::new(topic, 1)).await.expect("topic");
    let earliest = [("share.auto.offset.reset", "earliest")];
    bench.admin.alter_share_group_configs("connect-letters", &earliest).await.expect("group config");
    let producer = Producer::builder(&bench.servers).build().expect("producer");
    for value in values(100) {
        drop(producer.send(ProducerRecord::new(topic).value(value.into_bytes())).await.expect("send"));
    }
    producer.close(PATIENCE).await.expect("close");
    let sink = refusing(&[0, 50, 51]);
    let config = bench.config(&[("name", "letters"), ("topics", topic), QUEUE, ALL]);
    let mut worker = Worker::start(config, sink.boxed()).await.expect("worker");
    until(&worker, "97 + 3", |s| accepted(s) == 97 && rejected(s) == 3).await;
    let queue = letters(bench, QUEUE.1, 3).await;
    worker.stop(PATIENCE).await;
    assert_eq!((queue.len(), sink.stored().len()), (3, 97), "{queue:?}");
    for ((headers, _), offset) in queue.iter().zip(["0", "50", "51"]) {
        assert_eq!(header(headers, "__dlq.errors.topic"), topic);
        assert_eq!(header(headers, "__dlq.errors.partition"), "0");
        assert_eq!(header(headers, "__dlq.errors.offset"), offset);
        assert_eq!(header(headers, "__dlq.errors.group"), "connect-letters");
        assert_eq!(header(headers, "__dlq.errors.message"), "Offset rejected by client.");
        assert!(header(headers, "__dlq.errors.delivery.count").parse::<u32>().is_ok_and(|n| n >= 1), "{headers:?}");
    }
    // Nothing comes late.
    assert_eq!(letters(bench, QUEUE.1, 3).await.len(), 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r145_the_bad_records_and_only_they_arrive_in_the_dead_letter_queue_once() {
    poison_arrives_once(&Bench::start(1).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r147_a_record_is_not_done_before_its_dead_letter_is_written() {
    let bench = Bench::start(1).await;
    bench.load(1, values(10), false).await;
    let broker = bench.broker.as_ref().expect("broker");
    let sink = refusing(&[4]);
    let config = bench.config(&[QUEUE, ALL]);
    let late = broker.fault(Fault::new(FaultAction::Error(ErrorCode::REQUEST_TIMED_OUT)).key(ApiKey::PRODUCE).times(1));
    let mut worker = Worker::start(config, sink.boxed()).await.expect("worker");
    until(&worker, "9 + 1", |s| accepted(s) == 9 && rejected(s) == 1).await;
    let offsets = bench.admin.describe_share_group_offsets("connect-sink").await.expect("offsets");
    if letters(&bench, QUEUE.1, 0).await.is_empty() {
        assert_eq!(offsets[0].lag, Some(1), "the record waits for its dead letter");
    }
    bench.all_done(&[(0, 10)]).await;
    assert_eq!((letters(&bench, QUEUE.1, 1).await.len(), broker.fault_hits(late)), (1, 1));
    worker.stop(PATIENCE).await;
    assert!(!sink.stored().contains(&"v0004".to_owned()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r147_a_reject_that_the_broker_does_not_take_is_not_counted_and_comes_again() {
    let bench = Bench::start(1).await;
    bench.load(1, values(10), false).await;
    let broker = bench.broker.as_ref().expect("broker");
    let lost = FaultAction::Error(ErrorCode::INVALID_SHARE_SESSION_EPOCH);
    let lost = broker.fault(Fault::new(lost).key(ApiKey::SHARE_ACKNOWLEDGE).times(1));
    let sink = refusing(&[4]);
    let mut worker = Worker::start(bench.config(&[QUEUE, ALL]), sink.boxed()).await.expect("worker");
    let status = until(&worker, "9 + 1", |s| accepted(s) == 9 && rejected(s) == 1).await;
    assert!(status[0].released >= 10 && broker.fault_hits(lost) == 1, "{status:?}");
    bench.all_done(&[(0, 10)]).await;
    let queue = letters(&bench, QUEUE.1, 1).await;
    assert_eq!(queue.len(), 1);
    assert_eq!(header(&queue[0].0, "__dlq.errors.delivery.count"), "2");
    let metrics = worker.metrics(0).expect("task 0");
    assert!(metrics.get("records-lock-lost-total").is_some_and(|n| n >= 1.0), "{metrics:?}");
    worker.stop(PATIENCE).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r148_a_dead_letter_queue_that_takes_nothing_is_refused_at_start() {
    let bench = Bench::start(1).await;
    bench.load(1, values(3), false).await;
    bench.admin.create_topic(NewTopic::new("dlq.closed", 1)).await.expect("topic");
    let name = "errors.deadletterqueue.topic.name";
    let factor = ("errors.deadletterqueue.topic.replication.factor", "3");
    for (extra, words) in [
        (vec![QUEUE, factor], ["dlq.sink", "replication.factor=3", ALLOWED]),
        (vec![(name, "dlq.closed")], ["dlq.closed", "takes no dead letters", ALLOWED]),
        (vec![(name, "letters")], ["letters", "must begin with \"dlq.\"", "topic.name.prefix"]),
        (vec![(name, "in")], [name, "=in", "reads this topic"]),
        (vec![factor], ["replication.factor", "counts for a topic", name]),
    ] {
        let sink = Scripted::new(|_, _| Ok(()));
        let error = match bench.try_config(&[&extra[..], &[ALL]].concat()) {
            Ok(config) => Worker::start(config, sink.boxed()).await.expect_err("is refused").to_string(),
            Err(error) => error.to_string(),
        };
        assert!(words.iter().all(|w| error.contains(w)), "{extra:?}: {error}");
    }
    // One that somebody has set on the group counts where records may be rejected.
    bench.admin.alter_share_group_configs("connect-sink", &[(name, "dlq.missing")]).await.expect("group config");
    let sink = Scripted::new(|_, _| Ok(()));
    let error = Worker::start(bench.config(&[ALL]), sink.boxed()).await.expect_err("is refused").to_string();
    assert!(error.contains("dlq.missing") && error.contains("does not exist") && error.contains(ALLOWED), "{error}");
    let mut worker = Worker::start(bench.config(&[]), sink.boxed()).await.expect("worker");
    let status = until(&worker, "3 accepted", |s| accepted(s) == 3).await;
    assert_eq!(failure(&status), None);
    worker.stop(PATIENCE).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r149_a_second_pass_has_the_latest_context_headers_once_and_copies_keep_their_order() {
    let bench = Bench::start(1).await;
    let producer = Producer::builder(&bench.servers).build().expect("producer");
    // Of somebody's first pass, between headers of the user's own.
    let names = ["b", "__dlq.errors.topic", "a", "__dlq.errors.offset", "b"];
    let mut record = ProducerRecord::new("in").value(&b"v"[..]);
    for (i, name) in names.iter().enumerate() {
        record = record.header(*name, i.to_string().into_bytes());
    }
    drop(producer.send(record).await.expect("send"));
    producer.close(PATIENCE).await.expect("close");
    let copy = [("errors.deadletterqueue.copy.record.enable", "true")];
    let earliest = ("share.auto.offset.reset", "earliest");
    bench.admin.alter_share_group_configs("connect-sink", &copy).await.expect("group config");
    let second = [earliest, copy[0]];
    bench.admin.alter_share_group_configs("connect-second", &second).await.expect("group config");
    bench.admin.alter_share_group_configs("connect-copy", &[earliest]).await.expect("group config");
    let refused = || Scripted::new(|_, _| Err(ConnectError::fatal("never")));
    let mut first = Worker::start(bench.config(&[QUEUE, ALL]), refused().boxed()).await.expect("worker");
    letters(&bench, QUEUE.1, 1).await;
    let again = ("errors.deadletterqueue.topic.name", "dlq.second");
    let config = bench.config(&[("name", "second"), ("topics", QUEUE.1), again, ALL]);
    let mut second = Worker::start(config, refused().boxed()).await.expect("worker");
    for (queue, topic, group) in [(QUEUE.1, "in", "connect-sink"), (again.1, QUEUE.1, "connect-second")] {
        let all = letters(&bench, queue, 1).await;
        assert_eq!((all.len(), all[0].1.as_deref()), (1, Some(&b"v"[..])));
        assert_eq!(header(&all[0].0, "__dlq.errors.topic"), topic);
        assert_eq!(header(&all[0].0, "__dlq.errors.group"), group);
        assert_eq!(header(&all[0].0, "__dlq.errors.offset"), "0");
    }
    first.stop(PATIENCE).await;
    second.stop(PATIENCE).await;
    let kafka = [("name", "copy"), ("connector.class", "kafka"), ("target.topic", "out")];
    let mut worker =
        Worker::start(bench.config(&kafka), sinks::connector("kafka").expect("sink")).await.expect("worker");
    let copied = letters(&bench, "out", 1).await;
    let want: Headers = names.iter().enumerate().map(|(i, n)| ((*n).to_owned(), i.to_string())).collect();
    assert_eq!(copied[0].0, want);
    worker.stop(PATIENCE).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn records_that_fail_all_the_time_end_in_the_queue_by_the_group_s_limit() {
    let bench = Bench::start(1).await;
    bench.load(1, values(4), false).await;
    let sink = Scripted::new(|records, _| match records.iter().any(|r| text(&r.value) == "v0002") {
        true => Err(ConnectError::retriable("not now")),
        false => Ok(()),
    });
    let one = [
        QUEUE,
        ("errors.retry.timeout", "0"),
        ("share.max.delivery.count", "2"),
        ("consumer.override.max.poll.records", "1"),
        ("consumer.override.share.acquire.mode", "record_limit"),
    ];
    let mut worker = Worker::start(bench.config(&one), sink.boxed()).await.expect("worker");
    until(&worker, "3 accepted", |s| accepted(s) == 3).await;
    bench.all_done(&[(0, 4)]).await;
    let queue = letters(&bench, QUEUE.1, 1).await;
    assert_eq!(queue.len(), 1);
    assert_eq!(header(&queue[0].0, "__dlq.errors.message"), "Offset delivery count exceeded the threshold.");
    worker.stop(PATIENCE).await;
}
