//! Every async method of the share consumer, dropped at each of its await points: nothing is lost, nothing is accepted
//! unasked, and no acknowledgement has two outcomes.

#[path = "../support/mod.rs"]
mod support;

/// Calls a method, dropped after 0, 1, 2, .. polls, until one call comes to its end; then once more, on the same client. A
/// call answers whether it did what it should.
macro_rules! dropped_at_each_point {
    ($new:expr, $called:expr, $($name:ident => $call:expr),* $(,)?) => {$({
        // A client of its own each time: the first call has to connect, and so has the most await points.
        let mut points = 0;
        loop {
            let client = $new();
            let whole = crate::drop_after(points, ($call)(&client)).await;
            let again = tokio::time::timeout(crate::support::LONG, ($call)(&client)).await;
            assert!(again.unwrap_or(false), "{} after one that was dropped at point {points}", stringify!($name));
            if let Some(done) = whole {
                assert!(done, "{} came to its end and failed", stringify!($name));
                break;
            }
            points += 1;
            assert!(points < 200, "{} has no end", stringify!($name));
        }
        assert!(points > 1, "{} never waited", stringify!($name));
        $called.push(stringify!($name));
    })*};
}

mod admin;
mod net;
mod producer;
mod reader;
mod streams;

use kafka_share::{AckOutcome, AckType, KafkaShareConsumer, Outcome};
use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use support::{LONG, Mode, Rig, SHORT, offsets};

/// More await points than any of the calls has here.
pub(crate) const POINTS: usize = 40;

/// Polls a future `times` times at most, then drops it.
pub(crate) async fn drop_after<F: Future>(times: usize, future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    let mut left = times;
    poll_fn(|context| {
        if left == 0 {
            return Poll::Ready(None);
        }
        left -= 1;
        match future.as_mut().poll(context) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            // The last await point: dropped in it.
            Poll::Pending if left == 0 => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}

/// Each offset with its outcome.
pub(crate) fn flat(outcomes: &[AckOutcome]) -> Vec<(i64, Outcome)> {
    let mut all: Vec<_> =
        outcomes.iter().flat_map(|o| (o.first_offset..=o.last_offset).map(|at| (at, o.outcome))).collect();
    all.sort_unstable_by_key(|(offset, _)| *offset);
    all
}

pub(crate) fn all_acknowledged(count: usize) -> Vec<(i64, Outcome)> {
    (0..count as i64).map(|offset| (offset, Outcome::Acknowledged)).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r160_poll_dropped_at_every_await_point() {
    let rig = Rig::new(1).await;
    let consumer = rig.consumer(Mode::Implicit);
    assert!(consumer.poll(SHORT).await.unwrap().is_empty());
    let mut whole = 0;
    for round in 0..POINTS as i64 {
        rig.produce(round..round + 1).await;
        let got = match drop_after(round as usize, consumer.poll(LONG)).await {
            Some(records) => {
                whole += 1;
                vec![records.unwrap()]
            }
            None => rig.receive(&consumer, 1).await,
        };
        assert_eq!(offsets(&got), [(round, 1)], "after {round} await points");
    }
    assert!(whole > 0, "no poll came to its end");
    // What was handed out last was not accepted: nobody came back for more.
    consumer.close(LONG).await.unwrap();
    let second = rig.consumer(Mode::Implicit);
    assert_eq!(offsets(&rig.receive(&second, 1).await), [(POINTS as i64 - 1, 2)]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r160_recv_dropped_at_every_await_point() {
    let rig = Rig::new(1).await;
    let consumer = rig.consumer(Mode::Implicit);
    assert!(consumer.poll(SHORT).await.unwrap().is_empty());
    let mut whole = 0;
    for round in 0..POINTS as i64 {
        // Two at a time: one of them waits in the consumer meanwhile.
        rig.produce(round * 2..round * 2 + 2).await;
        for offset in [round * 2, round * 2 + 1] {
            let record = match drop_after(round as usize, consumer.recv()).await {
                Some(record) => {
                    whole += 1;
                    record.unwrap()
                }
                None => consumer.recv().await.unwrap(),
            };
            assert_eq!((record.offset(), record.delivery_count()), (offset, 1), "after {round} await points");
        }
    }
    assert!(whole > 0, "no recv came to its end");
    consumer.close(LONG).await.unwrap();
    let second = rig.consumer(Mode::Implicit);
    assert_eq!(offsets(&rig.receive(&second, 1).await), [(POINTS as i64 * 2 - 1, 2)]);
}

/// One more record, delivered and accepted, but not sent.
pub(crate) async fn acknowledged(rig: &Rig, consumer: &KafkaShareConsumer, offset: i64) {
    rig.produce(offset..offset + 1).await;
    let records = rig.receive(consumer, 1).await;
    assert_eq!(offsets(&records), [(offset, 1)]);
    assert_eq!(consumer.acknowledge_all(&records[0], AckType::Accept).unwrap(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commit_sync_dropped_at_every_await_point() {
    let rig = Rig::new(1).await;
    let consumer = rig.consumer(Mode::Explicit);
    let mut whole = 0;
    for round in 0..POINTS {
        acknowledged(&rig, &consumer, round as i64).await;
        if let Some(outcomes) = drop_after(round, consumer.commit_sync(LONG)).await {
            whole += 1;
            assert!(outcomes.unwrap().values().all(|o| *o == Outcome::Acknowledged));
        }
    }
    assert!(whole > 0, "no commit came to its end");
    consumer.commit_sync(LONG).await.unwrap();
    assert_eq!(flat(&consumer.poll_outcomes()), all_acknowledged(POINTS));
    consumer.close(LONG).await.unwrap();
    rig.produce(POINTS as i64..POINTS as i64 + 1).await;
    assert_eq!(offsets(&rig.receive(&rig.consumer(Mode::Explicit), 1).await), [(POINTS as i64, 1)]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn next_outcome_dropped_at_every_await_point() {
    let rig = Rig::new(1).await;
    let consumer = rig.consumer(Mode::Explicit);
    let mut told = Vec::new();
    for round in 0..POINTS {
        acknowledged(&rig, &consumer, round as i64).await;
        consumer.commit_async().unwrap();
        told.extend(drop_after(round, consumer.next_outcome()).await.flatten());
    }
    consumer.commit_sync(LONG).await.unwrap();
    assert!(!told.is_empty());
    told.extend(consumer.poll_outcomes());
    assert_eq!(flat(&told), all_acknowledged(POINTS));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r166_close_dropped_at_every_await_point() {
    let rig = Rig::new(1).await;
    let mut whole = 0;
    // Each needs a member of its own, which takes its time to join.
    for round in 0..POINTS / 3 {
        let consumer = rig.consumer(Mode::Explicit);
        acknowledged(&rig, &consumer, round as i64).await;
        whole += usize::from(drop_after(round, consumer.close(LONG)).await.is_some());
        // The close goes on by itself; this one only waits for it.
        consumer.close(LONG).await.unwrap();
        assert_eq!(flat(&consumer.poll_outcomes()), [(round as i64, Outcome::Acknowledged)]);
    }
    assert!(whole > 0, "no close came to its end");
    let dump = rig.broker.dump();
    assert_eq!(dump.groups.iter().map(|g| g.members.len()).sum::<usize>(), 0);
    assert!(dump.share.sessions.is_empty());
}

/// What a dropped call has done on the wire is said of every one, in the file it stands in.
#[test]
fn every_async_method_says_what_happens_when_it_is_dropped() {
    let mut seen = 0;
    for folder in ["src/admin", "src/consumer", "src/ledger", "src/net", "src/producer", "src/reader"] {
        for (name, docs) in admin::documented_async_methods(folder) {
            let said = docs.split_once("# Cancel safety").map_or("", |(_, rest)| rest);
            assert!(said.len() > 10, "{folder}: {name} has no section on cancel safety:\n{docs}");
            seen += 1;
        }
    }
    assert!(seen > 80, "{seen} methods");
}

/// Each async method has its test here, which polls and drops it; streams have theirs beside.
#[test]
fn every_async_method_is_dropped_somewhere() {
    let tested = ["poll", "recv", "commit_sync", "next_outcome", "close"];
    let tested: std::collections::BTreeSet<String> = tested.into_iter().map(str::to_owned).collect();
    assert_eq!(admin::async_methods("src/consumer"), tested);
}
