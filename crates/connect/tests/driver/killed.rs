//! Exactly-once with tasks that are killed at random: each record's output is there once.

use crate::common::{Bench, PATIENCE, accepted, until, values};
use crate::dead_letters::poison_arrives_once;
use kafka_share_connect::{Worker, sinks};
use kafka_share_tests::dice::Dice;
use kafka_share_tests::kafka::RealKafka;

const KILLS: usize = 6;
/// What each worker finds anew: more than it is left alone for, whatever those before it hold still.
const RECORDS: usize = 100;

/// Workers that are dropped as they are, each after some more transactions; the last one ends the work.
async fn tasks_are_killed(bench: &Bench, seed: u64) {
    let all = values(RECORDS * (KILLS + 1));
    let mut parts = all.chunks(RECORDS);
    let mut dice = Dice::new(seed, 0);
    let connector = || sinks::connector("kafka").expect("sink");
    let config = bench.config(&[
        ("connector.class", "kafka"),
        ("target.topic", "out"),
        ("tasks.max", "3"),
        ("share.delivery.semantics", "exactly-once"),
        ("ledger.auto.create", "true"),
        // Each kill costs a delivery of what was held.
        ("share.max.delivery.count", "10"),
        ("consumer.override.max.poll.records", "20"),
        ("consumer.override.share.acquire.mode", "record_limit"),
    ]);
    for part in parts.by_ref().take(KILLS) {
        bench.load(3, part.to_vec(), false).await;
        let worker = Worker::start(config.clone(), connector()).await.expect("worker");
        let some = dice.below(80);
        until(&worker, "some accepted", |s| accepted(s) >= some).await;
        drop(worker);
    }
    bench.load(3, parts.next().expect("a part").to_vec(), false).await;
    let mut worker = Worker::start(config, connector()).await.expect("worker");
    bench.all_done(&[(0, 238), (1, 231), (2, 231)]).await;
    worker.stop(PATIENCE).await;
    assert_eq!(bench.output().await, all);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tasks_are_killed_natively() {
    tasks_are_killed(&Bench::start(3).await, 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tasks_are_killed_on_a_ledger() {
    tasks_are_killed(&Bench::with(3, |b| b.transactional_acks(false)).await, 2).await;
}

#[test]
fn tasks_are_killed_and_dead_letters_written_on_kafka_4_4() {
    let Some(kafka) = RealKafka::start("tasks_are_killed_and_dead_letters_written_on_kafka_4_4", "4.4.0") else {
        return;
    };
    let run = async {
        let bench = Bench::real(kafka.bootstrap(), 3).await;
        tokio::join!(tasks_are_killed(&bench, 3), poison_arrives_once(&bench));
    };
    tokio::runtime::Runtime::new().expect("runtime").block_on(run);
}
