//! Delivery when all goes well, or passes.

use crate::common::{Bench, PATIENCE, Scripted, TOPIC, accepted, failure, released, until, values};
use async_trait::async_trait;
use kafka_share::{Producer, ProducerRecord};
use kafka_share_connect::{
    ConnectError, Properties, SinkConnector, SinkRecord, SinkTask, SinkTaskContext, TaskState, Worker, sinks,
};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::Barrier;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn file_sink_has_every_record_once_as_json_lines() {
    let bench = Bench::start(3).await;
    bench.load(3, values(300), false).await;
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("out.jsonl");
    let file = path.to_str().expect("path");
    let config = bench.config(&[("connector.class", "file"), ("file", file), ("tasks.max", "4")]);
    let mut worker = Worker::start(config, sinks::connector("file").expect("sink")).await.expect("worker");
    let status = until(&worker, "300 accepted", |s| accepted(s) == 300).await;
    assert_eq!(status.len(), 4);
    bench.all_done(&[(0, 100), (1, 100), (2, 100)]).await;
    worker.stop(PATIENCE).await;
    assert!(worker.status().iter().all(|t| t.state == TaskState::Unassigned), "{:?}", worker.status());
    let mut seen = BTreeSet::new();
    for entry in std::fs::read_dir(folder.path()).expect("folder") {
        let text = std::fs::read_to_string(entry.expect("entry").path()).expect("text");
        for line in text.lines() {
            let row: serde_json::Value = serde_json::from_str(line).expect("JSON");
            let (partition, offset) =
                (row["partition"].as_u64().expect("number"), row["offset"].as_u64().expect("number"));
            assert_eq!(row["topic"], "in");
            assert_eq!(row["value"], format!("v{:04}", offset * 3 + partition));
            assert!(seen.insert((partition, offset)), "twice: {line}");
        }
    }
    assert_eq!(seen.len(), 300);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r142_a_retriable_error_gives_the_same_records_in_the_same_order() {
    let bench = Bench::start(1).await;
    bench.load(1, values(20), false).await;
    let calls = AtomicUsize::new(0);
    let sink = Scripted::new(move |_, _| match calls.fetch_add(1, Ordering::Relaxed) {
        0 | 1 => Err(ConnectError::Retriable { message: "busy".into(), backoff: Some(Duration::from_millis(1)) }),
        _ => Ok(()),
    });
    let config = bench.config(&[("errors.retry.timeout", "600000")]);
    let mut worker = Worker::start(config, sink.boxed()).await.expect("worker");
    let status = until(&worker, "20 accepted", |s| accepted(s) == 20).await;
    assert_eq!((released(&status), failure(&status)), (0, None));
    worker.stop(PATIENCE).await;
    let puts = sink.puts();
    assert_eq!([puts[0].ok, puts[1].ok, puts[2].ok], [false, false, true]);
    assert_eq!(puts[0].records, puts[1].records);
    assert_eq!(puts[1].records, puts[2].records);
    assert!(puts[2].records.iter().all(|r| r.2 == 1));
    assert_eq!(sink.stored(), values(20));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r142_beyond_the_retry_timeout_records_are_released_and_come_again() {
    let bench = Bench::start(1).await;
    bench.load(1, values(20), false).await;
    let sink = Scripted::new(|records, _| match records.iter().any(|r| r.delivery_count == 1) {
        true => Err(ConnectError::retriable("busy")),
        false => Ok(()),
    });
    let config = bench.config(&[("errors.retry.timeout", "0")]);
    let mut worker = Worker::start(config, sink.boxed()).await.expect("worker");
    let status = until(&worker, "20 accepted", |s| accepted(s) == 20).await;
    assert!(released(&status) >= 20, "{status:?}");
    bench.all_done(&[(0, 20)]).await;
    worker.stop(PATIENCE).await;
    assert_eq!(sink.stored(), values(20));
    let counts = sink.puts().into_iter().filter(|p| p.ok).flat_map(|p| p.records).map(|r| r.2);
    assert!(counts.min() >= Some(2));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_that_waits_to_try_again_stops_at_once() {
    let bench = Bench::start(1).await;
    bench.load(1, values(3), false).await;
    let hour = Some(Duration::from_secs(3600));
    let sink = Scripted::new(move |_, _| Err(ConnectError::Retriable { message: "later".into(), backoff: hour }));
    let config = bench.config(&[("errors.retry.timeout", "-1")]);
    let mut worker = Worker::start(config, sink.boxed()).await.expect("worker");
    let log = sink.clone();
    until(&worker, "a put", |_| !log.puts().is_empty()).await;
    worker.stop(PATIENCE).await;
    let status = worker.status();
    assert_eq!(status[0].state, TaskState::Unassigned);
    assert_eq!((accepted(&status), released(&status)), (0, 3));
}

/// Task, offset and delivery count of each record put.
type Puts = Arc<Mutex<Vec<(usize, i64, i16)>>>;

/// A put that waits for something; the first one only.
struct Waiting {
    barrier: Arc<Barrier>,
    pause: Duration,
    puts: Puts,
}

struct WaitingTask {
    barrier: Arc<Barrier>,
    pause: Duration,
    puts: Puts,
    task: usize,
    waited: bool,
}

impl SinkConnector for Waiting {
    fn start(&mut self, _properties: &Properties) -> Result<(), ConnectError> {
        Ok(())
    }

    fn new_task(&self) -> Box<dyn SinkTask> {
        let (barrier, puts) = (Arc::clone(&self.barrier), Arc::clone(&self.puts));
        Box::new(WaitingTask { barrier, pause: self.pause, puts, task: 0, waited: false })
    }
}

#[async_trait]
impl SinkTask for WaitingTask {
    fn version(&self) -> &str {
        "1"
    }

    async fn start(&mut self, context: SinkTaskContext, _properties: &Properties) -> Result<(), ConnectError> {
        self.task = context.task();
        Ok(())
    }

    async fn put(&mut self, records: &[SinkRecord]) -> Result<(), ConnectError> {
        if !std::mem::replace(&mut self.waited, true) {
            self.barrier.wait().await;
            tokio::time::sleep(self.pause).await;
        }
        let rows = records.iter().map(|r| (self.task, r.offset, r.delivery_count));
        self.puts.lock().expect("puts").extend(rows);
        Ok(())
    }
}

fn waiting(tasks: usize, pause: Duration) -> (Box<dyn SinkConnector>, Puts) {
    let puts = Puts::default();
    (Box::new(Waiting { barrier: Arc::new(Barrier::new(tasks)), pause, puts: Arc::clone(&puts) }), puts)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r140_one_partition_keeps_four_tasks_busy_at_the_same_time() {
    let bench = Bench::start(1).await;
    bench.load(1, values(60), true).await;
    // No put of a first batch ends before all four tasks are in one.
    let (sink, puts) = waiting(4, Duration::ZERO);
    let few = [
        ("tasks.max", "4"),
        ("consumer.override.max.poll.records", "5"),
        ("consumer.override.share.acquire.mode", "record_limit"),
    ];
    let mut worker = Worker::start(bench.config(&few), sink).await.expect("worker");
    let status = until(&worker, "60 accepted", |s| accepted(s) == 60).await;
    assert!(status.iter().all(|t| t.accepted > 0), "{status:?}");
    worker.stop(PATIENCE).await;
    let mut offsets: Vec<i64> = puts.lock().expect("puts").iter().map(|p| p.1).collect();
    offsets.sort_unstable();
    assert_eq!(offsets, (0..60).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r151_locks_are_renewed_while_a_put_takes_longer_than_the_lock() {
    let bench = Bench::start(1).await;
    bench.load(1, values(10), false).await;
    let (sink, puts) = waiting(1, Duration::from_secs(14));
    let config = bench.config(&[("tasks.max", "2"), ("share.acquisition.lock.timeout.ms", "6000")]);
    let mut worker = Worker::start(config, sink).await.expect("worker");
    until(&worker, "slow", |s| s.iter().any(|t| t.slow)).await;
    until(&worker, "10 accepted", |s| accepted(s) == 10).await;
    bench.all_done(&[(0, 10)]).await;
    let renewed = (0..2).filter_map(|t| worker.metrics(t)?.get("records-renewed-total")).sum::<f64>();
    let lost = (0..2).filter_map(|t| worker.metrics(t)?.get("records-lock-lost-total")).sum::<f64>();
    assert!(renewed >= 10.0 && lost == 0.0, "renewed {renewed}, lost {lost}");
    worker.stop(PATIENCE).await;
    let mut rows: Vec<(i64, i16)> = puts.lock().expect("puts").iter().map(|p| (p.1, p.2)).collect();
    rows.sort_unstable();
    assert_eq!(rows, (0..10).map(|o| (o, 1)).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_put_that_never_returns_is_cancelled_at_stop_and_accepts_nothing() {
    let bench = Bench::start(1).await;
    bench.load(1, values(3), false).await;
    // Nobody else comes to the barrier.
    let (sink, _) = waiting(2, Duration::ZERO);
    let mut worker = Worker::start(bench.config(&[]), sink).await.expect("worker");
    until(&worker, "3 read", |s| s[0].read == 3).await;
    worker.stop(Duration::from_millis(100)).await;
    let status = worker.status();
    assert!(failure(&status).is_some_and(|why| why.contains("cancelled")), "{status:?}");
    assert_eq!(accepted(&status), 0);
    let again = Scripted::new(|_, _| Ok(()));
    let mut worker = Worker::start(bench.config(&[]), again.boxed()).await.expect("worker");
    until(&worker, "3 accepted", |s| accepted(s) == 3).await;
    worker.stop(PATIENCE).await;
    assert_eq!(again.stored(), values(3));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bytes_reach_the_sink_as_they_are_with_their_keys_and_headers() {
    let bench = Bench::start(2).await;
    let producer = Producer::builder(&bench.servers).build().expect("producer");
    for i in 0..6_u8 {
        let mut record = ProducerRecord::new(TOPIC).partition(i32::from(i % 2)).key(vec![i, 0xff]);
        if i != 3 {
            record = record.value(vec![0xfe, i]);
        }
        if i == 4 {
            record = record.header("h", &b"one"[..]).header("h", &b"two"[..]);
        }
        drop(producer.send(record).await.expect("send"));
    }
    producer.close(PATIENCE).await.expect("close");
    let seen: Arc<Mutex<Vec<SinkRecord>>> = Arc::default();
    let of = Arc::clone(&seen);
    let sink = Scripted::new(move |records, _| {
        of.lock().expect("records").extend(records.iter().cloned());
        Ok(())
    });
    let config = bench.config(&[("value.converter", "bytes")]);
    let mut worker = Worker::start(config, sink.boxed()).await.expect("worker");
    until(&worker, "6 accepted", |s| accepted(s) == 6).await;
    worker.stop(PATIENCE).await;
    let mut seen = std::mem::take(&mut *seen.lock().expect("records"));
    seen.sort_by_key(|r| (r.partition, r.offset));
    for (record, i) in seen.iter().zip([0_u8, 2, 4, 1, 3, 5]) {
        assert_eq!((record.partition, record.offset), (i32::from(i % 2), i64::from(i / 2)));
        assert_eq!((&*record.topic, &*record.original_topic, record.delivery_count), (TOPIC, TOPIC, 1));
        assert_eq!(record.key.to_bytes().as_deref(), Some(&[i, 0xff][..]));
        assert_eq!(record.value.to_bytes().as_deref(), (i != 3).then_some(&[0xfe, i][..]));
        let headers: Vec<_> =
            record.headers.iter().map(|(n, v)| (n.as_str(), v.to_bytes().expect("a value"))).collect();
        let expected: &[(&str, &[u8])] = if i == 4 { &[("h", b"one"), ("h", b"two")] } else { &[] };
        assert!(headers.iter().map(|(n, v)| (*n, &v[..])).eq(expected.iter().copied()), "{headers:?}");
    }
    assert_eq!(seen.len(), 6);
}
