//! Tasks that fail, are started again, pause and go on.

use crate::common::{Bench, PATIENCE, Scripted, accepted, failure, until, values};
use kafka_share_connect::{ConnectError, TaskState, TaskStatus, Worker, sinks};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Fails for good while it is told to.
fn sick() -> (Scripted, Arc<AtomicBool>) {
    let ill = Arc::new(AtomicBool::new(true));
    let of = Arc::clone(&ill);
    let check = move |_: &_, _: &_| match of.load(Ordering::SeqCst) {
        true => Err(ConnectError::config("no such table")),
        false => Ok(()),
    };
    (Scripted::new(check), ill)
}

fn all(status: &[TaskStatus], state: &TaskState) -> bool {
    status.iter().all(|t| t.state == *state)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_task_stays_failed_until_it_is_restarted() {
    let bench = Bench::start(1).await;
    bench.load(1, values(10), false).await;
    let (sink, ill) = sick();
    let mut worker = Worker::start(bench.config(&[]), sink.boxed()).await.expect("worker");
    tokio::time::timeout(PATIENCE, worker.all_ended()).await.expect("the task ends");
    let status = worker.status();
    assert!(failure(&status).is_some_and(|w| w.contains("no such table")), "{status:?}");
    assert_eq!((status[0].restarts, status[0].state.to_string().as_str()), (0, "FAILED"));
    ill.store(false, Ordering::SeqCst);
    worker.restart(0).expect("restart");
    let status = until(&worker, "10 accepted", |s| accepted(s) == 10).await;
    assert_eq!((&status[0].state, status[0].restarts), (&TaskState::Running, 1));
    assert!(status[0].trace.as_ref().is_some_and(|t| t.contains("no such table")), "{status:?}");
    let refused = worker.restart(1).expect_err("no such task").to_string();
    assert!(refused.contains("no task 1") && refused.contains("0 to 0"), "{refused}");
    worker.stop(PATIENCE).await;
    assert!(worker.restart(0).expect_err("stopped").to_string().contains("was stopped"));
    assert_eq!(sink.stored(), values(10));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_task_is_restarted_by_the_policy_up_to_its_limit() {
    let bench = Bench::start(1).await;
    bench.load(1, values(10), false).await;
    let (sink, ill) = sick();
    let policy = [("task.restart.max", "2"), ("task.restart.backoff.ms", "1")];
    let mut worker = Worker::start(bench.config(&policy), sink.boxed()).await.expect("worker");
    tokio::time::timeout(PATIENCE, worker.all_ended()).await.expect("the task ends");
    let status = worker.status();
    assert!(failure(&status).is_some_and(|w| w.contains("no such table")), "{status:?}");
    assert_eq!((status[0].restarts, accepted(&status)), (2, 0));
    assert_eq!(sink.puts().len(), 3);
    ill.store(false, Ordering::SeqCst);
    worker.restart(0).expect("restart");
    until(&worker, "10 accepted", |s| accepted(s) == 10).await;
    worker.stop(PATIENCE).await;
    assert_eq!(sink.stored(), values(10));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_panic_is_restarted_too_and_a_stop_ends_the_wait_for_it() {
    let bench = Bench::start(1).await;
    bench.load(1, values(3), false).await;
    let sink = Scripted::new(|_, _| panic!("scripted"));
    let hour = [
        ("task.restart.max", "-1"),
        ("task.restart.backoff.ms", "3600000"),
        ("task.restart.backoff.max.ms", "3600000"),
    ];
    let mut worker = Worker::start(bench.config(&hour), sink.boxed()).await.expect("worker");
    let status = until(&worker, "restarting", |s| all(s, &TaskState::Restarting)).await;
    assert!(status[0].trace.as_ref().is_some_and(|t| t.contains("panicked")), "{status:?}");
    worker.stop(PATIENCE).await;
    assert!(failure(&worker.status()).is_some_and(|w| w.contains("panicked")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r143_no_put_starts_once_paused_is_told_and_resume_goes_on() {
    let bench = Bench::start(2).await;
    let sink = Scripted::new(|_, _| Ok(()));
    let mut worker = Worker::start(bench.config(&[("tasks.max", "2")]), sink.boxed()).await.expect("worker");
    bench.load(2, values(20), false).await;
    until(&worker, "20 accepted", |s| accepted(s) == 20).await;
    worker.pause();
    until(&worker, "paused", |s| all(s, &TaskState::Paused)).await;
    assert!(worker.status().iter().all(|t| !t.fetching), "{:?}", worker.status());
    let puts = sink.puts().len();
    bench.load(2, values(40).split_off(20), false).await;
    // Somebody else gets them: paused tasks hold nothing.
    let other = Scripted::new(|records, _| match records.iter().any(|r| r.offset < 10) {
        true => Err(ConnectError::fatal("of before")),
        false => Ok(()),
    });
    let mut second = Worker::start(bench.config(&[]), other.boxed()).await.expect("worker");
    until(&second, "20 accepted", |s| accepted(s) == 20).await;
    second.stop(PATIENCE).await;
    assert_eq!(sink.puts().len(), puts);
    assert!(all(&worker.status(), &TaskState::Paused), "{:?}", worker.status());
    worker.resume();
    bench.load(2, values(60).split_off(40), false).await;
    let status = until(&worker, "40 accepted", |s| accepted(s) == 40).await;
    assert!(all(&status, &TaskState::Running), "{status:?}");
    bench.all_done(&[(0, 30), (1, 30)]).await;
    worker.pause();
    worker.stop(PATIENCE).await;
    assert!(all(&worker.status(), &TaskState::Unassigned), "{:?}", worker.status());
    let mut stored = [sink.stored(), other.stored()].concat();
    stored.sort();
    assert_eq!(stored, values(60));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_that_waits_to_try_again_pauses_and_releases() {
    let bench = Bench::start(1).await;
    bench.load(1, values(3), false).await;
    let (hour, well) = (Some(std::time::Duration::from_secs(3600)), Arc::new(AtomicBool::new(false)));
    let of = Arc::clone(&well);
    let sink = Scripted::new(move |_, _| match of.load(Ordering::SeqCst) {
        false => Err(ConnectError::Retriable { message: "later".into(), backoff: hour }),
        true => Ok(()),
    });
    let mut worker = Worker::start(bench.config(&[]), sink.boxed()).await.expect("worker");
    until(&worker, "a put", |_| !sink.puts().is_empty()).await;
    worker.pause();
    until(&worker, "paused", |s| all(s, &TaskState::Paused)).await;
    well.store(true, Ordering::SeqCst);
    worker.resume();
    until(&worker, "3 accepted", |s| accepted(s) == 3).await;
    worker.stop(PATIENCE).await;
    assert_eq!(sink.stored(), values(3));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tasks_that_are_restarted_while_they_run_copy_every_record_once() {
    for bench in Bench::both(2).await {
        let config = bench.config(&[
            ("connector.class", "kafka"),
            ("target.topic", "out"),
            ("tasks.max", "2"),
            ("share.delivery.semantics", "exactly-once"),
            ("consumer.override.max.poll.records", "10"),
            // What is committed is counted, however slow the machine is.
            ("task.shutdown.graceful.timeout.ms", "600000"),
        ]);
        let mut worker = Worker::start(config, sinks::connector("kafka").expect("sink")).await.expect("worker");
        for (round, part) in values(120).chunks(40).enumerate() {
            bench.load(2, part.to_vec(), false).await;
            let so_far = round as u64 * 40;
            until(&worker, "some accepted", |s| accepted(s) > so_far).await;
            worker.restart(round % 2).expect("restart");
            until(&worker, "all accepted", |s| accepted(s) == so_far + 40).await;
        }
        until(&worker, "3 restarts", |s| s.iter().map(|t| t.restarts).sum::<u64>() == 3).await;
        bench.all_done(&[(0, 60), (1, 60)]).await;
        worker.stop(PATIENCE).await;
        assert_eq!(bench.output().await, values(120));
    }
}
