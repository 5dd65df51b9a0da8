//! Bad records, and sinks that fail.

use crate::common::{Bench, PATIENCE, Scripted, accepted, failure, rejected, released, text, until, values};
use kafka_share_connect::{ConnectError, ConnectorConfig, SinkRecord, TaskState, TaskStatus, Worker, sinks};
use std::sync::{Arc, Mutex};

fn refuse(bad: &'static [i64]) -> impl Fn(&[SinkRecord]) -> Result<(), ConnectError> + Send + Sync + 'static {
    move |records| match records.iter().find(|r| bad.contains(&r.offset)) {
        Some(record) => Err(ConnectError::fatal(format!("cannot store {}", text(&record.value)))),
        None => Ok(()),
    }
}

fn without(count: usize, bad: &[i64]) -> Vec<String> {
    values(count).into_iter().enumerate().filter(|(i, _)| !bad.contains(&(*i as i64))).map(|(_, v)| v).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r145_tolerance_all_rejects_the_bad_records_and_no_neighbour() {
    let bench = Bench::start(1).await;
    bench.load(1, values(100), false).await;
    let check = refuse(&[0, 50, 51]);
    let sink = Scripted::new(move |records, _| check(records));
    let mut worker = Worker::start(bench.config(&[("errors.tolerance", "all")]), sink.boxed()).await.expect("worker");
    let status = until(&worker, "97 + 3", |s| accepted(s) + rejected(s) == 100).await;
    assert_eq!((accepted(&status), rejected(&status), released(&status)), (97, 3, 0));
    bench.all_done(&[(0, 100)]).await;
    worker.stop(PATIENCE).await;
    assert_eq!(worker.status()[0].state, TaskState::Unassigned);
    assert_eq!(sink.stored(), without(100, &[0, 50, 51]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r145_tolerance_none_fails_the_task_and_loses_nothing() {
    let bench = Bench::start(1).await;
    bench.load(1, values(10), false).await;
    let check = refuse(&[5]);
    let sink = Scripted::new(move |records, _| check(records));
    let mut worker = Worker::start(bench.config(&[]), sink.boxed()).await.expect("worker");
    tokio::time::timeout(PATIENCE, worker.all_ended()).await.expect("the task ends");
    let status = worker.status();
    let why = failure(&status).expect("a failed task");
    assert!(why.contains("in-0@5") && why.contains("cannot store v0005") && why.contains("errors.tolerance"), "{why}");
    assert_eq!(rejected(&status), 0);
    assert_eq!(accepted(&status), sink.stored().len() as u64, "accepted is what was put: {:?}", sink.puts());
    worker.stop(PATIENCE).await;
    let second = Scripted::new(|_, _| Ok(()));
    let mut worker = Worker::start(bench.config(&[]), second.boxed()).await.expect("worker");
    bench.all_done(&[(0, 10)]).await;
    worker.stop(PATIENCE).await;
    let mut all = [sink.stored(), second.stored()].concat();
    all.sort();
    assert_eq!(all, values(10));
    assert!(second.puts().iter().flat_map(|p| &p.records).any(|r| r.0 == 5 && r.2 == 2));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r142_an_error_of_the_task_is_tried_once_and_releases_everything() {
    let bench = Bench::start(1).await;
    bench.load(1, values(10), false).await;
    let sink = Scripted::new(|_, _| Err(ConnectError::config("no such table")));
    let mut worker = Worker::start(bench.config(&[]), sink.boxed()).await.expect("worker");
    tokio::time::timeout(PATIENCE, worker.all_ended()).await.expect("the task ends");
    let status = worker.status();
    assert!(failure(&status).is_some_and(|w| w.contains("no such table")), "{status:?}");
    assert_eq!((accepted(&status), released(&status), rejected(&status)), (0, status[0].read, 0));
    assert_eq!(sink.puts().len(), 1);
    worker.stop(PATIENCE).await;
    let second = Scripted::new(|_, _| Ok(()));
    let mut worker = Worker::start(bench.config(&[]), second.boxed()).await.expect("worker");
    bench.all_done(&[(0, 10)]).await;
    worker.stop(PATIENCE).await;
    assert_eq!(second.stored(), values(10));
}

fn reporting() -> Scripted {
    Scripted::new(|records, context| {
        for record in records.iter().filter(|r| r.offset == 3) {
            context.errant_record_reporter().report(record, "not mine");
        }
        Ok(())
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r146_a_reported_record_is_rejected_with_tolerance_all() {
    let bench = Bench::start(1).await;
    bench.load(1, values(10), false).await;
    let config = bench.config(&[("errors.tolerance", "all")]);
    let mut worker = Worker::start(config, reporting().boxed()).await.expect("worker");
    let status = until(&worker, "9 + 1", |s| accepted(s) + rejected(s) == 10).await;
    assert_eq!((accepted(&status), rejected(&status)), (9, 1));
    bench.all_done(&[(0, 10)]).await;
    worker.stop(PATIENCE).await;
}

/// With tolerance `none` a reported record fails the task; the status then.
async fn fails_by_its_report(config: ConnectorConfig, sink: &Scripted) -> Vec<TaskStatus> {
    let mut worker = Worker::start(config, sink.boxed()).await.expect("worker");
    tokio::time::timeout(PATIENCE, worker.all_ended()).await.expect("the task ends");
    let status = worker.status();
    assert!(failure(&status).is_some_and(|w| w.contains("in-0@3: not mine")), "{status:?}");
    worker.stop(PATIENCE).await;
    status
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r146_a_reported_record_fails_the_task_with_tolerance_none_although_put_went_well() {
    let bench = Bench::start(1).await;
    bench.load(1, values(10), false).await;
    let status = fails_by_its_report(bench.config(&[]), &reporting()).await;
    assert_eq!((accepted(&status), rejected(&status)), (9, 0));
    let second = Scripted::new(|_, _| Ok(()));
    let mut worker = Worker::start(bench.config(&[]), second.boxed()).await.expect("worker");
    bench.all_done(&[(0, 10)]).await;
    worker.stop(PATIENCE).await;
    assert_eq!(second.puts().into_iter().flat_map(|p| p.records).collect::<Vec<_>>(), [(3, "v0003".into(), 2)]);
}

/// Finds out only as it flushes what is bad.
fn reporting_late() -> Scripted {
    let late: Arc<Mutex<Vec<SinkRecord>>> = Arc::default();
    let found = Arc::clone(&late);
    let mut sink = Scripted::new(move |records, _| {
        found.lock().unwrap().extend(records.iter().filter(|r| r.offset == 3).cloned());
        Ok(())
    });
    sink.late = late;
    sink
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r146_a_record_that_is_reported_by_a_flush_is_not_accepted() {
    let bench = Bench::start(1).await;
    bench.load(1, values(10), false).await;
    let status = fails_by_its_report(bench.config(&[]), &reporting_late()).await;
    assert_eq!((accepted(&status), rejected(&status)), (9, 0));
    let config = bench.config(&[("errors.tolerance", "all")]);
    let mut worker = Worker::start(config, reporting_late().boxed()).await.expect("worker");
    let status = until(&worker, "rejected", |s| rejected(s) == 1).await;
    assert_eq!(accepted(&status), 0);
    bench.all_done(&[(0, 10)]).await;
    worker.stop(PATIENCE).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r146_a_record_that_is_reported_by_a_flush_does_not_commit() {
    let bench = Bench::start(1).await;
    bench.load(1, values(10), false).await;
    let exactly = ("share.delivery.semantics", "exactly-once");
    let mut sink = reporting_late();
    sink.sends = true;
    let status = fails_by_its_report(bench.config(&[exactly]), &sink).await;
    assert_eq!(
        (accepted(&status), bench.output().await.contains(&"v0003".to_owned())),
        (bench.output().await.len() as u64, false)
    );
    let config = bench.config(&[exactly, ("errors.tolerance", "all")]);
    let mut worker = Worker::start(config, sink.boxed()).await.expect("worker");
    bench.all_done(&[(0, 10)]).await;
    until(&worker, "rejected", |s| rejected(s) == 1).await;
    assert_eq!(bench.output().await, values(10), "each is there once; what it has sent for the bad one, it has sent");
    worker.stop(PATIENCE).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_record_that_does_not_convert_is_rejected_alone() {
    let bench = Bench::start(1).await;
    let json = (0..10).map(|i| if i == 4 { "{".to_owned() } else { format!("{{\"n\":{i}}}") });
    bench.load(1, json, false).await;
    let sink = Scripted::new(|_, _| Ok(()));
    let config = bench.config(&[("errors.tolerance", "all"), ("value.converter", "json")]);
    let mut worker = Worker::start(config, sink.boxed()).await.expect("worker");
    let status = until(&worker, "9 + 1", |s| accepted(s) + rejected(s) == 10).await;
    assert_eq!((accepted(&status), rejected(&status)), (9, 1));
    worker.stop(PATIENCE).await;
    let offsets: Vec<i64> = sink.puts().iter().flat_map(|p| &p.records).map(|r| r.0).collect();
    assert_eq!(offsets, [0, 1, 2, 3, 5, 6, 7, 8, 9]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_record_that_does_not_convert_fails_the_task_with_tolerance_none() {
    let bench = Bench::start(1).await;
    bench.load(1, ["{}".to_owned(), "{".to_owned()], false).await;
    let sink = Scripted::new(|_, _| Ok(()));
    let mut worker = Worker::start(bench.config(&[("value.converter", "json")]), sink.boxed()).await.expect("worker");
    tokio::time::timeout(PATIENCE, worker.all_ended()).await.expect("the task ends");
    let status = worker.status();
    assert!(failure(&status).is_some_and(|w| w.contains("in-0@1") && w.contains("not JSON")), "{status:?}");
    assert_eq!((accepted(&status), rejected(&status)), (1, 0));
    worker.stop(PATIENCE).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sink_that_panics_fails_its_own_task_only() {
    let bench = Bench::start(2).await;
    bench.load(2, values(40), false).await;
    let sink = Scripted::new(|records, _| {
        assert!(!records.iter().any(|r| text(&r.value) == "v0007" && r.delivery_count == 1), "scripted");
        Ok(())
    });
    let mut worker = Worker::start(bench.config(&[("tasks.max", "2")]), sink.boxed()).await.expect("worker");
    let status = until(&worker, "40 accepted", |s| accepted(s) == 40).await;
    let why = failure(&status).expect("a failed task");
    assert!(why.contains("panicked") && why.contains("scripted"), "{why}");
    assert_eq!(status.iter().filter(|t| t.state == TaskState::Running).count(), 1);
    worker.stop(PATIENCE).await;
    assert_eq!(sink.stored(), values(40));
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_accepts_nothing() {
    let bench = Bench::start(1).await;
    bench.load(1, values(3), false).await;
    let config = bench.config(&[("connector.class", "file"), ("file", "/dev/full"), ("errors.retry.timeout", "0")]);
    let mut worker = Worker::start(config, sinks::connector("file").expect("sink")).await.expect("worker");
    let status = until(&worker, "3 released", |s| released(s) >= 3).await;
    assert_eq!((accepted(&status), rejected(&status)), (0, 0));
    worker.stop(PATIENCE).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_accepted_whose_flush_failed() {
    let bench = Bench::start(1).await;
    bench.load(1, values(5), false).await;
    let sink = Scripted::new(|_, _| Ok(()));
    // The last one first.
    *sink.flushes.lock().expect("flushes") =
        vec![ConnectError::fatal("disk gone"), ConnectError::retriable("disk full")];
    let mut worker = Worker::start(bench.config(&[]), sink.boxed()).await.expect("worker");
    tokio::time::timeout(PATIENCE, worker.all_ended()).await.expect("the task ends");
    let status = worker.status();
    assert!(failure(&status).is_some_and(|w| w.contains("disk gone")), "{status:?}");
    assert_eq!((accepted(&status), rejected(&status)), (0, 0));
    worker.stop(PATIENCE).await;
    let mut worker = Worker::start(bench.config(&[]), sink.boxed()).await.expect("worker");
    let status = until(&worker, "5 accepted", |s| accepted(s) == 5).await;
    assert_eq!(rejected(&status), 0);
    bench.all_done(&[(0, 5)]).await;
    worker.stop(PATIENCE).await;
    let last = sink.puts().pop().expect("a put");
    assert_eq!(last.records.iter().map(|r| r.2).collect::<Vec<_>>(), [3; 5]);
}
