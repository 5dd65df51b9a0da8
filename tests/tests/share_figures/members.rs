//! Members: how soon a new one has work, how soon another gets what one leaves, and a producer beside one.

use crate::lab::{Counts, LONG, Lab, Place, assert_came, limit, numbers, receive, subscribed, until};
use kafka_share::net::Cluster;
use kafka_share::{AcknowledgementMode, AcquireMode, ClientConfig, Producer, ProducerRecord};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

/// Until the first record: the assignment comes before it.
pub(crate) async fn join_of_a_new_group(lab: Arc<Lab>) {
    let mut times = Vec::new();
    for _ in 0..3 {
        let place = lab.place(1).await;
        lab.heartbeats_every(&place, "15000").await;
        lab.produce(&place, 0, 0..1).await;
        let started = Instant::now();
        let consumer = lab.member(&place);
        receive(&consumer, 1).await;
        times.push(started.elapsed());
        consumer.close(LONG).await.unwrap();
    }
    times.sort_unstable();
    lab.show("a new group's first record", format_args!("median {:?} of {times:?}", times[1]));
    // Without extra heartbeats it is their interval.
    assert!(times[1] < limit(Duration::from_secs(12), Duration::from_millis(1_300)), "{times:?}");
}

/// How soon the records are free shows to a member whose fetches wait for a moment only.
pub(crate) async fn unsubscribe_frees(lab: Arc<Lab>) {
    let median = after_unsubscribe(&lab, Duration::from_millis(10)).await;
    lab.show("records free for others after unsubscribe", format_args!("{median:?}"));
    // Who does not free them leaves them to the end of their locks, after half a minute.
    assert!(median < limit(Duration::from_secs(15), Duration::from_millis(100)), "{median:?}");
}

/// Kafka 4.4.0 does not wake a fetch that waits already for what is released: its next one brings the records, after
/// `fetch.max.wait.ms` (500) at most. The embedded broker does.
pub(crate) async fn unsubscribe_beside_a_waiting_poll(lab: Arc<Lab>) {
    let median = after_unsubscribe(&lab, Duration::from_millis(500)).await;
    lab.show("records with a poll that waited, after unsubscribe", format_args!("{median:?}"));
    assert!(median < limit(Duration::from_secs(15), Duration::from_millis(600)), "{median:?}");
}

async fn after_unsubscribe(lab: &Lab, max_wait: Duration) -> Duration {
    let mut times = Vec::new();
    for _ in 0..3 {
        let place = lab.place(1).await;
        lab.produce(&place, 0, 0..10).await;
        let first = lab.member(&place);
        receive(&first, 10).await;
        let second = subscribed(&place, lab.builder(&place).fetch_max_wait(max_wait));
        // It has its assignment and a session once it has this one.
        lab.produce(&place, 0, 10..11).await;
        assert_came(&receive(&second, 1).await, [10], 1, lab.counts);
        let waiting = tokio::spawn(async move { (receive(&second, 10).await, Instant::now()) });
        tokio::time::sleep(Duration::from_millis(50)).await;
        let started = Instant::now();
        first.unsubscribe();
        let (got, at) = waiting.await.unwrap();
        times.push(at - started);
        assert_came(&got, 0..10, 2, lab.counts);
    }
    times.sort_unstable();
    times[1]
}

/// Both on the same connections, but for the fetches, which the broker holds.
pub(crate) async fn producer_beside_a_waiting_poll(lab: Arc<Lab>) {
    const SENDS: u64 = 50;
    const WARM_UP: u64 = 1000;
    // So long that no busy machine makes a send wait as long.
    const WAIT: Duration = Duration::from_secs(5);
    let place = lab.place(1).await;
    let cluster = Cluster::new(ClientConfig::new(&lab.servers)).unwrap();
    let producer = Producer::builder("").cluster(Arc::clone(&cluster)).linger(Duration::ZERO).build().unwrap();
    let send = async || {
        let sent = producer.send(ProducerRecord::new(&place.topic).partition(0).value("x")).await.unwrap();
        sent.await.unwrap();
    };
    // The first one opens the connections, and a broker on the JVM gets faster for a while.
    for _ in 0..WARM_UP {
        send().await;
    }
    let mut alone = Vec::new();
    for turn in 0..SENDS {
        pause(turn).await;
        let started = Instant::now();
        send().await;
        alone.push(started.elapsed());
    }
    let builder = lab.builder(&place).cluster(cluster).acknowledgement_mode(IMPLICIT).fetch_max_wait(WAIT);
    let consumer = subscribed(&place, builder);
    let (arrived, mut arrivals) = mpsc::unbounded_channel();
    let polling = tokio::spawn(async move {
        loop {
            let records = consumer.poll(2 * WAIT).await.unwrap();
            if records.iter().any(|_| arrived.send(Instant::now()).is_err()) {
                return consumer.close(LONG).await.unwrap();
            }
        }
    });
    // The first one, and those before, wait for the member to join.
    send().await;
    for _ in 0..WARM_UP + SENDS + 1 {
        arrivals.recv().await.unwrap();
    }
    let (mut sends, mut latencies) = (Vec::new(), Vec::new());
    for turn in 0..SENDS {
        pause(turn).await;
        let started = Instant::now();
        send().await;
        sends.push(started.elapsed());
        latencies.push(arrivals.recv().await.unwrap() - started);
    }
    drop(arrivals);
    send().await;
    polling.await.unwrap();
    for times in [&mut alone, &mut sends, &mut latencies] {
        times.sort_unstable();
    }
    let middle = SENDS as usize / 2;
    let shown = |all: &[Duration]| format!("median {:?}, highest {:?}", all[middle], all[all.len() - 1]);
    lab.show("send with no poll beside it", shown(&alone));
    lab.show("send beside a poll that waits", shown(&sends));
    lab.show("send to arrival at that poll", shown(&latencies));
    // Behind the fetch it would be half of its wait in the middle, as was measured elsewhere.
    assert!(sends[middle] < limit(WAIT / 5, Duration::from_millis(2)), "{sends:?}");
    assert!(latencies[middle] < limit(WAIT / 5, Duration::from_millis(100)), "{latencies:?}");
    assert!(sends[sends.len() - 1] < limit(2 * WAIT, Duration::from_secs(2)), "{sends:?}");
}

/// Ends at some moment of the half second that the broker holds a fetch for.
async fn pause(turn: u64) {
    tokio::time::sleep(Duration::from_millis(20 + turn * 17 % 60)).await;
}

const IMPLICIT: AcknowledgementMode = AcknowledgementMode::Implicit;

/// Three partitions led by three brokers, ten times as many records on each as may be locked.
pub(crate) async fn record_limit_on_three_brokers(lab: Arc<Lab>) {
    let place = lab.place(3).await;
    for partition in 0..3 {
        lab.produce(&place, partition, 0..100).await;
    }
    leaders_differ(&lab, &place).await;
    let builder = lab.builder(&place).acquire_mode(AcquireMode::RecordLimit).max_poll_records(10);
    let strict = subscribed(&place, builder);
    let held = receive(&strict, 1).await;
    assert!((1..=10).contains(&numbers(&held).len()));
    // Records that were locked are counted as delivered, whether or not the application saw them.
    strict.close(LONG).await.unwrap();
    let next = lab.member(&place);
    let all = numbers(&receive(&next, 300).await);
    let locked = all.iter().filter(|(_, deliveries)| *deliveries == 2).count();
    lab.show("records locked on three brokers with a limit of 10", locked);
    assert_eq!(all.len(), 300);
    // A real broker may not count all, as the group had no member left.
    assert!(locked <= 10 && (locked == 10 || lab.counts == Counts::AtMost), "{locked} locked");
    next.close(LONG).await.unwrap();
}

async fn leaders_differ(lab: &Lab, place: &Place) {
    until("leaders are known", || lab.cluster.cached_topic(&place.topic).is_some_and(|t| t.leaders.len() == 3)).await;
    let topic = lab.cluster.cached_topic(&place.topic).unwrap();
    let mut leaders: Vec<i32> = topic.leaders.iter().map(|l| l.id).collect();
    leaders.sort_unstable();
    leaders.dedup();
    assert_eq!(leaders.len(), 3, "three brokers lead a partition each");
}
