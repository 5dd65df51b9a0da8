//! Time: idle sinks, puts that are slow or never return, stops.

use crate::common::{Bench, PATIENCE, Scripted, accepted, failure, released, settled, until, values};
use crate::gated::Gated;
use kafka_share_connect::{TaskState, Worker};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r152_idle_tasks_are_flushed_too_and_hold_nobody_up() {
    let bench = Bench::start(1).await;
    let sink = Gated::new(|_, _| false);
    let config = bench.config(&[("tasks.max", "4"), ("offset.flush.interval.ms", "1")]);
    let mut worker = Worker::start(config, sink.boxed()).await.expect("worker");
    let all_flushed = |tasks: &Vec<usize>| (0..4).all(|t| tasks.contains(&t));
    let mut flushes = sink.flushes.subscribe();
    tokio::time::timeout(PATIENCE, flushes.wait_for(all_flushed)).await.expect("all are flushed").expect("a sink");
    bench.load(1, values(10), false).await;
    until(&worker, "10 accepted", |s| accepted(s) == 10).await;
    bench.all_done(&[(0, 10)]).await;
    worker.stop(PATIENCE).await;
    assert_eq!(sink.stored(), values(10));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r154_a_driver_slower_than_its_polls_keeps_what_it_holds_and_lists_it_at_shutdown() {
    let bench = Bench::start(1).await;
    bench.load(1, values(10), false).await;
    let sink = Gated::new(|_, _| true);
    let config =
        bench.config(&[("share.acquisition.lock.timeout.ms", "1000"), ("task.shutdown.graceful.timeout.ms", "100")]);
    let mut worker = Worker::start(config, sink.boxed()).await.expect("worker");
    // Renewed, and told to be slow, while the put goes on.
    until(&worker, "slow", |s| s[0].slow).await;
    let status = worker.status();
    assert_eq!((status[0].read, accepted(&status), released(&status)), (10, 0, 0), "nothing more is polled");
    worker.stop(PATIENCE).await;
    let status = worker.status();
    let why = failure(&status).expect("a failed task");
    for words in ["in-0@0", "task.shutdown.graceful.timeout.ms=100", "was cancelled", "in-0@0..9"] {
        assert!(why.contains(words), "{words}: {why}");
    }
    assert_eq!((accepted(&status), sink.inside.borrow().len()), (0, 0));
    let renewed = worker.metrics(0).and_then(|m| m.get("records-renewed-total")).unwrap_or(0.0);
    assert!(settled(&status) && renewed >= 10.0, "{status:?}");
    // They are free at once: the session was closed, and what was held is released.
    let mut worker = Worker::start(bench.config(&[]), Scripted::new(|_, _| Ok(())).boxed()).await.expect("worker");
    until(&worker, "10 accepted", |s| accepted(s) == 10).await;
    worker.stop(PATIENCE).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_put_that_ends_within_the_time_of_a_stop_is_accepted() {
    let bench = Bench::start(1).await;
    bench.load(1, values(10), false).await;
    let sink = Gated::new(|_, _| true);
    let config = bench.config(&[("task.shutdown.graceful.timeout.ms", "600000")]);
    let mut worker = Worker::start(config, sink.boxed()).await.expect("worker");
    let mut inside = sink.inside.subscribe();
    tokio::time::timeout(PATIENCE, inside.wait_for(|t| t.len() == 1)).await.expect("a put").expect("a sink");
    let later = sink.clone();
    let opener = tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(50)).await;
        later.open();
    });
    worker.stop(PATIENCE).await;
    opener.await.expect("opener");
    let status = worker.status();
    assert_eq!((&status[0].state, accepted(&status)), (&TaskState::Unassigned, 10));
    assert_eq!(sink.flushes.borrow().len(), 1);
    bench.all_done(&[(0, 10)]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_put_that_never_returns_fails_its_task_after_its_time_and_others_get_its_records() {
    let bench = Bench::start(1).await;
    bench.load(1, values(10), false).await;
    let sink = Gated::new(|task, _| task == 0);
    let config = bench.config(&[("task.put.timeout.ms", "200")]);
    let mut worker = Worker::start(config, sink.boxed()).await.expect("worker");
    tokio::time::timeout(PATIENCE, worker.all_ended()).await.expect("the task ends");
    let status = worker.status();
    let why = failure(&status).expect("a failed task").to_owned();
    assert!(why.contains("task.put.timeout.ms=200") && why.contains("max.poll.records"), "{why}");
    assert_eq!((accepted(&status), released(&status)), (0, 10));
    // The worker is up: the same task, started again, gets them.
    sink.open();
    worker.restart(0).expect("restart");
    until(&worker, "10 accepted", |s| accepted(s) == 10).await;
    worker.stop(PATIENCE).await;
    assert_eq!(sink.stored(), values(10));
}

/// A put that blocks its thread, so that not even its locks are renewed: they end, and others get the records.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn r140_records_of_a_stuck_task_are_delivered_elsewhere_after_their_locks() {
    let bench = Bench::start(1).await;
    bench.load(1, values(30), true).await;
    let (stuck, go) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let (first, free) = (Arc::clone(&stuck), Arc::clone(&go));
    let sink = Scripted::new(move |_, _| {
        if !first.swap(true, Ordering::SeqCst) {
            let began = Instant::now();
            while !free.load(Ordering::SeqCst) && began.elapsed() < PATIENCE {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        Ok(())
    });
    let few = [
        ("tasks.max", "4"),
        ("consumer.override.max.poll.records", "5"),
        ("consumer.override.share.acquire.mode", "record_limit"),
    ];
    let mut worker = Worker::start(bench.config(&few), sink.boxed()).await.expect("worker");
    until(&worker, "a stuck task and the others' 25", |s| stuck.load(Ordering::SeqCst) && accepted(s) >= 25).await;
    let held: u64 = worker.status().iter().map(|t| t.read - t.accepted - t.released).max().expect("tasks");
    assert!((1..=5).contains(&held), "{:?}", worker.status());
    bench.broker.as_ref().expect("broker").expire_locks("connect-sink");
    until(&worker, "all accepted elsewhere", |s| accepted(s) == 30).await;
    bench.all_done(&[(0, 30)]).await;
    go.store(true, Ordering::SeqCst);
    // What the stuck task says in the end changes nothing.
    let status = until(&worker, "settled", settled).await;
    assert_eq!(failure(&status), None);
    worker.stop(PATIENCE).await;
    let puts: Vec<_> = sink.puts().into_iter().flat_map(|p| p.records.into_iter().map(move |r| (p.task, r))).collect();
    let again: Vec<_> = puts.iter().filter(|(_, record)| record.2 > 1).collect();
    assert_eq!((puts.len() as u64, again.len() as u64), (30 + held, held), "{again:?}");
    for (task, (offset, _, _)) in again {
        assert!(puts.iter().any(|(other, r)| other != task && r.0 == *offset && r.2 == 1), "{offset}: {puts:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_does_not_wait_for_a_sink_that_does_not_start() {
    let bench = Bench::start(1).await;
    let sink = Scripted::new(|_, _| panic!("scripted"));
    let config = bench.config(&[("task.restart.max", "-1"), ("task.restart.backoff.ms", "1")]);
    bench.load(1, values(1), false).await;
    let start = Arc::clone(&sink.start);
    let mut worker = Worker::start(config, sink.boxed()).await.expect("worker");
    // The second life starts for an hour.
    *start.lock().expect("start") = Some(Duration::from_secs(3600));
    until(&worker, "restarting", |s| s[0].state == TaskState::Restarting).await;
    worker.stop(Duration::from_millis(100)).await;
    assert!(failure(&worker.status()).is_some(), "{:?}", worker.status());
}
