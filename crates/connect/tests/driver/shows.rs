//! More tasks than partitions: all of them work at once. Counted by what is in flight together, not by the clock; rates are
//! measured by the example `parallel`.

use crate::common::{Bench, PATIENCE, accepted, until, values};
use crate::gated::Gated;
use kafka_share_connect::Worker;

/// `tasks` puts of one record each are under way at once, and every record is put once.
async fn all_busy(partitions: i32, tasks: usize) {
    let bench = Bench::start(partitions).await;
    let records = tasks * 2;
    bench.load(partitions, values(records), true).await;
    let sink = Gated::new(|_, _| true);
    let number = tasks.to_string();
    let config = bench.config(&[
        ("tasks.max", &number),
        ("consumer.override.max.poll.records", "1"),
        ("consumer.override.share.acquire.mode", "record_limit"),
    ]);
    let mut worker = Worker::start(config, sink.boxed()).await.expect("worker");
    let all_inside = |inside: &Vec<usize>| {
        let mut inside = inside.clone();
        inside.sort_unstable();
        inside == (0..tasks).collect::<Vec<_>>()
    };
    let mut inside = sink.inside.subscribe();
    let waited = tokio::time::timeout(PATIENCE, inside.wait_for(all_inside)).await;
    assert!(waited.is_ok(), "{} of {tasks} tasks have a put under way", sink.inside.borrow().len());
    drop(waited);
    sink.open();
    until(&worker, "all accepted", |s| accepted(s) == records as u64).await;
    worker.stop(PATIENCE).await;
    assert_eq!(sink.stored(), values(records));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r140_one_partition_has_eight_puts_under_way_at_once() {
    all_busy(1, 8).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r140_twelve_partitions_keep_fifty_tasks_busy() {
    all_busy(12, 50).await;
}

/// One of eight tasks does not come back: the seven others are all at work at once as before, and do all of the rest.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r140_a_stuck_task_takes_nothing_from_the_others() {
    let bench = Bench::start(1).await;
    let sink = Gated::new(|_, records| records.iter().any(|r| r.offset == 0));
    bench.load(1, values(80), true).await;
    let config = bench.config(&[
        ("tasks.max", "8"),
        ("consumer.override.max.poll.records", "1"),
        ("consumer.override.share.acquire.mode", "record_limit"),
    ]);
    let mut worker = Worker::start(config, sink.boxed()).await.expect("worker");
    let status = until(&worker, "79 accepted", |s| accepted(s) == 79).await;
    let stuck = sink.inside.borrow().clone();
    assert_eq!(stuck.len(), 1, "{status:?}");
    assert_eq!((status[stuck[0]].accepted, status[stuck[0]].read), (0, 1), "it had one record, and polled no more");
    sink.open();
    until(&worker, "80 accepted", |s| accepted(s) == 80).await;
    bench.all_done(&[(0, 80)]).await;
    worker.stop(PATIENCE).await;
    assert_eq!(sink.stored(), values(80));
}
