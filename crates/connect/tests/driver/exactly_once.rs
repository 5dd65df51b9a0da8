//! Output and acknowledgements in one transaction.

use crate::common::{Bench, PATIENCE, Scripted, accepted, failure, rejected, text, until, values};
use kafka_share_connect::{ConnectError, TaskState, Worker, sinks};
use std::sync::atomic::{AtomicUsize, Ordering};

const EXACTLY_ONCE: (&str, &str) = ("share.delivery.semantics", "exactly-once");
/// Small polls, so that there are many transactions.
const FEW: (&str, &str) = ("consumer.override.max.poll.records", "20");

fn sending(
    script: impl Fn(&[kafka_share_connect::SinkRecord]) -> Result<(), ConnectError> + Send + Sync + 'static,
) -> Scripted {
    let mut sink = Scripted::new(move |records, _| script(records));
    sink.sends = true;
    sink
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kafka_sink_copies_every_record_exactly_once() {
    for bench in Bench::both(3).await {
        bench.load(3, values(300), false).await;
        let config = bench.config(&[
            ("connector.class", "kafka"),
            ("target.topic", "out"),
            ("tasks.max", "4"),
            EXACTLY_ONCE,
            FEW,
        ]);
        let mut worker = Worker::start(config, sinks::connector("kafka").expect("sink")).await.expect("worker");
        until(&worker, "300 accepted", |s| accepted(s) == 300).await;
        bench.all_done(&[(0, 100), (1, 100), (2, 100)]).await;
        worker.stop(PATIENCE).await;
        assert!(worker.status().iter().all(|t| t.state == TaskState::Unassigned), "{:?}", worker.status());
        assert_eq!(bench.output().await, values(300));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_failed_try_has_sent_is_never_seen() {
    for bench in Bench::both(2).await {
        bench.load(2, values(120), false).await;
        let calls = AtomicUsize::new(0);
        let sink = sending(move |_| match calls.fetch_add(1, Ordering::Relaxed) % 3 {
            0 => Err(ConnectError::Retriable {
                message: "busy".into(),
                backoff: Some(std::time::Duration::from_millis(1)),
            }),
            _ => Ok(()),
        });
        let config = bench.config(&[("tasks.max", "3"), ("errors.retry.timeout", "600000"), EXACTLY_ONCE, FEW]);
        let mut worker = Worker::start(config, sink.boxed()).await.expect("worker");
        until(&worker, "120 accepted", |s| accepted(s) == 120).await;
        bench.all_done(&[(0, 60), (1, 60)]).await;
        worker.stop(PATIENCE).await;
        assert!(sink.puts().iter().any(|p| !p.ok));
        assert_eq!(bench.output().await, values(120));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn released_batches_come_again_and_are_copied_once() {
    for bench in Bench::both(1).await {
        bench.load(1, values(30), false).await;
        let sink = sending(|records| match records.iter().any(|r| r.delivery_count == 1) {
            true => Err(ConnectError::retriable("busy")),
            false => Ok(()),
        });
        let config = bench.config(&[("errors.retry.timeout", "0"), EXACTLY_ONCE]);
        let mut worker = Worker::start(config, sink.boxed()).await.expect("worker");
        until(&worker, "30 accepted", |s| accepted(s) == 30).await;
        bench.all_done(&[(0, 30)]).await;
        worker.stop(PATIENCE).await;
        assert_eq!(bench.output().await, values(30));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r145_a_bad_record_is_rejected_and_its_neighbours_are_copied_once() {
    for bench in Bench::both(1).await {
        bench.load(1, values(40), false).await;
        let sink = sending(|records| match records.iter().any(|r| text(&r.value) == "v0013") {
            true => Err(ConnectError::fatal("unlucky")),
            false => Ok(()),
        });
        let config = bench.config(&[("errors.tolerance", "all"), EXACTLY_ONCE]);
        let mut worker = Worker::start(config, sink.boxed()).await.expect("worker");
        let status = until(&worker, "39 + 1", |s| accepted(s) + rejected(s) == 40).await;
        assert_eq!((accepted(&status), rejected(&status)), (39, 1));
        bench.all_done(&[(0, 40)]).await;
        worker.stop(PATIENCE).await;
        let good: Vec<String> = values(40).into_iter().filter(|v| v != "v0013").collect();
        assert_eq!(bench.output().await, good);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_that_fails_leaves_no_output_of_what_it_did_not_accept() {
    for bench in Bench::both(1).await {
        bench.load(1, values(40), false).await;
        let sink = sending(|records| match records.iter().any(|r| text(&r.value) == "v0013") {
            true => Err(ConnectError::fatal("unlucky")),
            false => Ok(()),
        });
        let mut worker = Worker::start(bench.config(&[EXACTLY_ONCE]), sink.boxed()).await.expect("worker");
        tokio::time::timeout(PATIENCE, worker.all_ended()).await.expect("the task ends");
        let status = worker.status();
        assert!(failure(&status).is_some_and(|w| w.contains("in-0@13: unlucky")), "{status:?}");
        assert_eq!(bench.output().await.len() as u64, accepted(&status));
        worker.stop(PATIENCE).await;
        let mut worker =
            Worker::start(bench.config(&[EXACTLY_ONCE]), sending(|_| Ok(())).boxed()).await.expect("worker");
        bench.all_done(&[(0, 40)]).await;
        worker.stop(PATIENCE).await;
        assert_eq!(bench.output().await, values(40));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_record_that_does_not_convert_fails_the_task_by_its_own_name() {
    let bench = Bench::start(1).await;
    bench.load(1, ["{".to_owned()], false).await;
    let config = bench.config(&[EXACTLY_ONCE, ("value.converter", "json")]);
    let mut worker = Worker::start(config, sending(|_| Ok(())).boxed()).await.expect("worker");
    tokio::time::timeout(PATIENCE, worker.all_ended()).await.expect("the task ends");
    let status = worker.status();
    assert!(failure(&status).is_some_and(|w| w.contains("in-0@0") && w.contains("not JSON")), "{status:?}");
    worker.stop(PATIENCE).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r151_locks_renewed_while_a_put_is_tried_again_still_commit_with_its_output() {
    for bench in Bench::both(1).await {
        bench.load(1, values(10), false).await;
        let first = AtomicUsize::new(0);
        // Longer than the lock, and a try that fails in between.
        let wait = Some(std::time::Duration::from_secs(10));
        let sink = sending(move |_| match first.fetch_add(1, Ordering::Relaxed) {
            0 => Err(ConnectError::Retriable { message: "busy".into(), backoff: wait }),
            _ => Ok(()),
        });
        let lock = ("share.acquisition.lock.timeout.ms", "6000");
        let config = bench.config(&[("errors.retry.timeout", "-1"), ("tasks.max", "2"), lock, EXACTLY_ONCE]);
        let mut worker = Worker::start(config, sink.boxed()).await.expect("worker");
        until(&worker, "10 accepted", |s| accepted(s) == 10).await;
        bench.all_done(&[(0, 10)]).await;
        worker.stop(PATIENCE).await;
        assert!(sink.puts().iter().flat_map(|p| &p.records).all(|r| r.2 == 1), "{:?}", sink.puts());
        assert_eq!(bench.output().await, values(10));
    }
}
