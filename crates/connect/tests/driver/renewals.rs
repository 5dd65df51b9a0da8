//! Locks that are renewed while a sink works.

use crate::common::{Bench, PATIENCE, TOPIC, values};
use kafka_share::{AcknowledgementMode, KafkaShareConsumer, RecordId};
use kafka_share_broker::{Fault, FaultAction};
use kafka_share_connect::Renewal;
use kafka_share_messages::ApiKey;
use std::time::{Duration, Instant};

const LOCK: Duration = Duration::from_millis(1_500);

/// One record of each of two partitions, which two brokers lead.
async fn one_of_each(consumer: &KafkaShareConsumer) -> [RecordId; 2] {
    let mut found: [Option<RecordId>; 2] = [None, None];
    let until = Instant::now() + PATIENCE;
    while found.iter().any(Option::is_none) {
        assert!(Instant::now() < until, "{found:?}");
        for record in &consumer.poll(Duration::from_millis(500)).await.expect("poll") {
            found[usize::try_from(record.partition()).expect("a partition")].get_or_insert(record.id());
        }
    }
    found.map(|id| id.expect("a record"))
}

/// A broker that does not answer keeps its own locks from being renewed, and those of no other.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stalled_broker_holds_up_no_renewals_but_its_own() {
    let bench = Bench::with(2, |b| b.nodes(2)).await;
    let broker = bench.broker.as_ref().expect("broker");
    let nodes: Vec<i32> = broker.nodes().iter().map(|node| node.id).collect();
    for (partition, node) in [(0, nodes[0]), (1, nodes[1])] {
        broker.move_leader(TOPIC, partition, node);
    }
    let lock = LOCK.as_millis().to_string();
    let config = [("share.record.lock.duration.ms", lock.as_str())];
    bench.admin.alter_share_group_configs("connect-sink", &config).await.expect("group config");
    bench.load(2, values(2), false).await;
    let builder = KafkaShareConsumer::builder(&bench.servers, "connect-sink");
    let consumer = builder.acknowledgement_mode(AcknowledgementMode::Explicit).build().expect("consumer");
    consumer.subscribe([TOPIC]).expect("subscription");
    let [well, stalled] = one_of_each(&consumer).await;
    broker.fault(Fault::new(FaultAction::Ignore).key(ApiKey::SHARE_ACKNOWLEDGE).node(nodes[1]).times(u32::MAX));
    let began = Instant::now();
    // Held for several times the lock: each renewal moves its end on.
    let work = async {
        while began.elapsed() < PATIENCE && consumer.lock_deadline(well).is_some_and(|at| at < began + 4 * LOCK) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let mut renewal = Renewal::new(vec![well, stalled], consumer.acquisition_lock_timeout());
    renewal.during(&consumer, work).await;
    assert!(consumer.lock_deadline(well).is_some_and(|at| at >= began + 4 * LOCK), "its lock was lost");
    broker.clear_faults();
    consumer.acknowledger().acknowledge(well, kafka_share::AckType::Accept).expect("it is held still");
    drop(consumer.poll_outcomes());
    let _ = consumer.commit_sync(LOCK).await;
    let outcomes = consumer.poll_outcomes();
    let taken = |o: &&kafka_share::AckOutcome| o.tp.partition == 0 && o.outcome == kafka_share::Outcome::Acknowledged;
    assert_eq!(outcomes.iter().filter(taken).count(), 1, "{outcomes:?}");
    let _ = consumer.close(LOCK).await;
}
