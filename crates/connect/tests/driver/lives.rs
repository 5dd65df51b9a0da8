//! What one life of a task leaves to the next: deliveries, counters, and no second sink beside it.

use crate::common::{Bench, PATIENCE, Scripted, accepted, failure, settled, text, until, values};
use kafka_share::ledger::NewLedger;
use kafka_share_broker::{Fault, FaultAction};
use kafka_share_connect::{ConnectError, TaskState, Worker};
use kafka_share_messages::{ApiKey, ErrorCode};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const EXACTLY_ONCE: (&str, &str) = ("share.delivery.semantics", "exactly-once");
const ENDLESS: [(&str, &str); 2] = [("task.restart.max", "-1"), ("task.restart.backoff.ms", "1")];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_abort_that_does_not_end_in_time_costs_no_deliveries() {
    let bench = Bench::with(1, |b| b.transactional_acks(false).transaction_version(1)).await;
    bench.admin.create_ledger(&NewLedger::new().partitions(2)).await.expect("ledger");
    bench.load(1, values(10), false).await;
    let broker = bench.broker.as_ref().expect("broker");
    // The first batch is given up, so that the abort needs a new epoch, which is not to be had for a while.
    let refused = FaultAction::Error(ErrorCode::TOPIC_AUTHORIZATION_FAILED);
    broker.fault(Fault::new(refused).key(ApiKey::PRODUCE));
    let busy = FaultAction::Error(ErrorCode::CONCURRENT_TRANSACTIONS);
    let busy = broker.fault(Fault::new(busy).key(ApiKey::INIT_PRODUCER_ID).skip(1).times(u32::MAX));
    let first = AtomicBool::new(true);
    let mut sink = Scripted::new(move |_, _| match first.swap(false, Ordering::SeqCst) {
        true => Err(ConnectError::retriable("down")),
        false => Ok(()),
    });
    sink.sends = true;
    let config = bench.config(&[("producer.override.max.block.ms", "200"), EXACTLY_ONCE]);
    let mut worker = Worker::start(config, sink.boxed()).await.expect("worker");
    // Far more than one abort asks for in 200 ms.
    let status = until(&worker, "30 refusals", |_| broker.fault_hits(busy) >= 30).await;
    assert_eq!((&status[0].state, accepted(&status)), (&TaskState::Running, 0));
    broker.clear_faults();
    until(&worker, "10 accepted", |s| accepted(s) == 10).await;
    bench.all_done(&[(0, 10)]).await;
    worker.stop(PATIENCE).await;
    assert!(sink.puts().iter().flat_map(|p| &p.records).all(|r| r.2 <= 3), "{:?}", sink.puts());
    assert_eq!(bench.output().await, values(10));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn restarts_by_the_policy_leave_records_their_last_delivery() {
    for (own, of_group, panics) in [(Some("4"), "9", false), (None, "4", false), (Some("4"), "9", true)] {
        let bench = Bench::start(1).await;
        let limit = [("share.delivery.count.limit", of_group)];
        bench.admin.alter_share_group_configs("connect-sink", &limit).await.expect("group config");
        bench.load(1, values(10), false).await;
        let (ill, lives) = (Arc::new(AtomicBool::new(true)), Arc::new(AtomicUsize::new(0)));
        let (of, count) = (Arc::clone(&ill), Arc::clone(&lives));
        let sink = Scripted::new(move |_, _| {
            count.fetch_add(1, Ordering::SeqCst);
            match of.load(Ordering::SeqCst) {
                true if panics => panic!("no such table"),
                true => Err(ConnectError::config("no such table")),
                false => Ok(()),
            }
        });
        let mut settings = ENDLESS.to_vec();
        settings.extend(own.map(|n| ("share.max.delivery.count", n)));
        let mut worker = Worker::start(bench.config(&settings), sink.boxed()).await.expect("worker");
        tokio::time::timeout(PATIENCE, worker.all_ended()).await.expect("the task ends");
        let status = worker.status();
        let why = failure(&status).expect("a failed task");
        assert!(why.contains("no such table") && why.contains("not restarted by itself"), "{why}");
        assert!(why.contains("3 of 4 deliveries"), "{why}");
        assert_eq!((lives.load(Ordering::SeqCst), status[0].restarts), (3, 2));
        ill.store(false, Ordering::SeqCst);
        worker.restart(0).expect("restart");
        until(&worker, "10 accepted", |s| accepted(s) == 10).await;
        worker.stop(PATIENCE).await;
        assert!(settled(&worker.status()), "{:?}", worker.status());
        assert_eq!(sink.stored(), values(10));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bad_record_costs_its_neighbours_no_delivery_and_ends_the_restarts_before_its_last() {
    let good: Vec<String> = values(10).into_iter().filter(|v| v != "v0005").collect();
    for (bench, reports) in
        Bench::both(1).await.into_iter().zip([false, true]).chain(Bench::both(1).await.into_iter().zip([true, false]))
    {
        bench.load(1, values(10), false).await;
        let mut sink = Scripted::new(move |records, context| {
            match records.iter().find(|r| text(&r.value) == "v0005") {
                Some(bad) if reports => context.errant_record_reporter().report(bad, "not mine"),
                Some(_) => return Err(ConnectError::fatal("not mine")),
                None => {}
            }
            Ok(())
        });
        sink.sends = true;
        let settings = [&ENDLESS[..], &[EXACTLY_ONCE, ("share.max.delivery.count", "4")]].concat();
        let mut worker = Worker::start(bench.config(&settings), sink.boxed()).await.expect("worker");
        tokio::time::timeout(PATIENCE, worker.all_ended()).await.expect("the task ends");
        let status = worker.status();
        let why = failure(&status).expect("a failed task");
        assert!(why.contains("in-0@5") && why.contains("not mine") && why.contains("3 of 4 deliveries"), "{why}");
        assert_eq!((accepted(&status), status[0].rejected), (9, 0));
        worker.stop(PATIENCE).await;
        assert_eq!(bench.output().await, good);
        assert!(sink.puts().iter().flat_map(|p| &p.records).all(|r| r.0 == 5 || r.2 == 1), "{:?}", sink.puts());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_that_was_taken_over_does_not_fence_back() {
    let bench = Bench::start(1).await;
    let mut sink = Scripted::new(|_, _| Ok(()));
    sink.sends = true;
    let settings = [&ENDLESS[..], &[EXACTLY_ONCE]].concat();
    let mut first = Worker::start(bench.config(&settings), sink.boxed()).await.expect("worker");
    let mut second = Worker::start(bench.config(&settings), sink.boxed()).await.expect("worker");
    second.pause();
    until(&second, "paused", |s| s[0].state == TaskState::Paused).await;
    bench.load(1, values(10), false).await;
    tokio::time::timeout(PATIENCE, first.all_ended()).await.expect("the task ends");
    assert!(failure(&first.status()).is_some() && first.status()[0].restarts == 0, "{:?}", first.status());
    first.stop(PATIENCE).await;
    second.resume();
    until(&second, "10 accepted", |s| accepted(s) == 10).await;
    second.stop(PATIENCE).await;
    assert_eq!(bench.output().await, values(10));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn starts_that_fail_late_count_as_failures_in_a_row() {
    let bench = Bench::start(1).await;
    bench.load(1, values(3), false).await;
    // Longer than the longest wait, from the first failure on.
    let start = Arc::new(Mutex::new(None));
    let of = Arc::clone(&start);
    let mut sink = Scripted::new(move |_, _| {
        *of.lock().expect("start") = Some(Duration::from_millis(50));
        Err(ConnectError::config("no such table"))
    });
    sink.start = start;
    let policy = [("task.restart.max", "2"), ("task.restart.backoff.ms", "1"), ("task.restart.backoff.max.ms", "10")];
    let mut worker = Worker::start(bench.config(&policy), sink.boxed()).await.expect("worker");
    tokio::time::timeout(PATIENCE, worker.all_ended()).await.expect("the task ends");
    let status = worker.status();
    assert!(failure(&status).is_some_and(|w| w.contains("no start")) && status[0].restarts == 0, "{status:?}");
    worker.stop(PATIENCE).await;
    assert!(settled(&worker.status()), "{:?}", worker.status());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_life_that_was_cut_off_leaves_nothing_to_wait_for() {
    let bench = Bench::start(1).await;
    bench.load(1, values(10), false).await;
    let sink = Scripted::new(|records, _| {
        assert!(!records.iter().any(|r| r.delivery_count == 1), "scripted");
        Ok(())
    });
    let mut worker = Worker::start(bench.config(&ENDLESS), sink.boxed()).await.expect("worker");
    let status = until(&worker, "10 accepted", |s| accepted(s) == 10).await;
    assert!(settled(&status) && status[0].read > 10, "{status:?}");
    worker.stop(PATIENCE).await;
}

/// A sink whose first put blocks its thread until it is let go, and how many puts are under way, and were at most.
fn blocking() -> (Scripted, Arc<AtomicBool>, Arc<[AtomicUsize; 2]>) {
    let (go, inside) = (Arc::new(AtomicBool::new(false)), Arc::new([AtomicUsize::new(0), AtomicUsize::new(0)]));
    let (of, count) = (Arc::clone(&go), Arc::clone(&inside));
    let sink = Scripted::new(move |_, _| {
        let now = count[0].fetch_add(1, Ordering::SeqCst) + 1;
        count[1].fetch_max(now, Ordering::SeqCst);
        let began = Instant::now();
        while !of.load(Ordering::SeqCst) && began.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(1));
        }
        count[0].fetch_sub(1, Ordering::SeqCst);
        Ok(())
    });
    (sink, go, inside)
}

/// Waits for a put. Not by the runtime's clock: that may stand still while a put holds up the thread that keeps it.
fn begun(inside: &[AtomicUsize; 2]) {
    let until = Instant::now() + PATIENCE;
    while inside[0].load(Ordering::SeqCst) != 1 {
        assert!(Instant::now() < until, "no put came");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_task_that_is_cut_off_is_gone_before_the_next_starts() {
    let bench = Bench::start(1).await;
    bench.load(1, values(10), false).await;
    let (sink, go, inside) = blocking();
    let config = bench.config(&[("task.shutdown.graceful.timeout.ms", "1")]);
    let mut worker = Worker::start(config, sink.boxed()).await.expect("worker");
    begun(&inside);
    worker.restart(0).expect("restart");
    // Time enough for a life too early to be seen.
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(worker.status()[0].restarts, 0);
    go.store(true, Ordering::SeqCst);
    until(&worker, "10 accepted", |s| accepted(s) == 10 && s[0].restarts == 1).await;
    worker.stop(PATIENCE).await;
    assert_eq!(inside[1].load(Ordering::SeqCst), 1);
    assert!(settled(&worker.status()), "{:?}", worker.status());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_stop_that_cuts_tasks_off_waits_until_they_are_gone() {
    let bench = Bench::start(1).await;
    bench.load(1, values(10), false).await;
    let (sink, go, inside) = blocking();
    let mut worker = Worker::start(bench.config(&[]), sink.boxed()).await.expect("worker");
    begun(&inside);
    let later = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(100));
        go.store(true, Ordering::SeqCst);
    });
    worker.stop(Duration::from_millis(1)).await;
    assert_eq!(inside[0].load(Ordering::SeqCst), 0);
    assert!(failure(&worker.status()).is_some_and(|w| w.contains("cancelled")), "{:?}", worker.status());
    later.join().expect("thread");
}
