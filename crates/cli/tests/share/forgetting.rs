//! Resets and deletions of groups whose ledger holds what brokers were not told of: what is refused changes nothing.

use crate::pipe::{committed, values};
use crate::rig::{Kshare, LIMIT, Rig};
use kafka_share::{
    AckType, AcknowledgementMode, ErrorCode, KafkaShareConsumer, ProducerRecord, ShareAcknowledgements,
    TransactionalProducer,
};
use kafka_share_broker::{Fault, FaultAction};
use kafka_share_messages::ApiKey;
use kafka_share_tests::kafka::RealKafka;
use serde_json::Value;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;

const LEDGER: &str = "share-ack-ledger";

fn rig() -> Rig {
    let rig = Rig::with(|b| b.transactional_acks(false).topic("in", 2).topic("in2", 1).topic("out", 1));
    rig.run(&["groups", "config", "g", "--set", "share.auto.offset.reset=earliest"]).ok();
    rig
}

fn produce(kshare: &Kshare, numbers: std::ops::Range<usize>) {
    let lines: String = numbers.map(|n| format!("k{n}:{n}\n")).collect();
    kshare.run_with(&["produce", "in", "--key-separator", ":"], lines.as_bytes()).ok();
}

/// Commits 20 records of `in` with their output by a ledger, and goes away before the broker is told.
async fn commit_unconfirmed(servers: &str, ledger: &str) {
    let builder = KafkaShareConsumer::builder(servers, "g").ledger_topic(ledger);
    let consumer = builder.acknowledgement_mode(AcknowledgementMode::Explicit).build().expect("a consumer");
    consumer.subscribe(["in"]).expect("subscribed");
    let producer = TransactionalProducer::builder(servers, "gone").ledger_topic(ledger).build().expect("a producer");
    producer.init_transactions().await.expect("initialised");
    producer.begin_transaction().expect("begun");
    let (end, mut count) = (Instant::now() + LIMIT, 0);
    while count < 20 {
        assert!(Instant::now() < end, "{count} records came");
        let records = consumer.poll(Duration::from_secs(1)).await.expect("records");
        if records.is_empty() {
            continue;
        }
        count += records.len();
        for record in &records {
            let value = record.value().expect("a value").to_vec();
            drop(producer.send(ProducerRecord::new("out").value(value)).await.expect("taken"));
        }
        let acks = ShareAcknowledgements::from_records(&records, AckType::Accept).expect("held");
        let member = consumer.share_group_metadata().expect("a member");
        producer.send_share_acks_to_transaction(acks, &member).await.expect("staged");
    }
    // The intent is in the ledger; the consumer is gone before it learns of the end.
    drop(producer.prepare_transaction().await.expect("prepared"));
    consumer.close(LIMIT).await.expect("closed");
    producer.commit_transaction().await.expect("committed");
}

fn describe(kshare: &Kshare) -> Vec<Value> {
    kshare.run(&["ledger", "describe", "--json"]).json()["partitions"].as_array().expect("partitions").clone()
}

fn to_confirm(kshare: &Kshare) -> u64 {
    describe(kshare).iter().filter_map(|p| p["to_confirm"].as_u64()).sum()
}

fn generations(kshare: &Kshare) -> Vec<u64> {
    let all = describe(kshare);
    all.iter().filter_map(|p| p["generations"]["g"].as_u64()).collect()
}

/// Runs `kshare pipe` until that much is committed, and `enough` says so.
fn pipe_until(kshare: &Kshare, runtime: &Runtime, args: &[&str], count: usize, enough: impl Fn() -> bool) {
    let pipe = ["pipe", "--from", "in", "--to", "out", "--group", "g", "--json"];
    let running = kshare.spawn(&[&pipe, args].concat());
    let end = Instant::now() + LIMIT;
    while runtime.block_on(committed(&kshare.servers, "out")).len() < count || !enough() {
        assert!(Instant::now() < end, "{:?}", values(&runtime.block_on(committed(&kshare.servers, "out"))));
    }
    running.signal("TERM");
    running.finish().ok();
}

/// How often each number of the output is there; all the same.
fn times(kshare: &Kshare, runtime: &Runtime, numbers: usize) -> usize {
    let written = values(&runtime.block_on(committed(&kshare.servers, "out")));
    let often = written.len() / numbers;
    let same = (0..numbers).all(|n| written.iter().filter(|v| **v == n.to_string()).count() == often);
    assert!(same && written.len() == often * numbers, "{written:?}");
    often
}

/// A reset that cannot be: nothing is forgotten, and nothing done again.
fn a_refused_reset_forgets_nothing(kshare: &Kshare, runtime: &Runtime, to: &[&str], words: &[&str], tells_lag: bool) {
    kshare.run(&["ledger", "create"]).ok();
    produce(kshare, 0..20);
    runtime.block_on(commit_unconfirmed(&kshare.servers, LEDGER));
    assert_eq!(to_confirm(kshare), 20);
    kshare.run(&[&["groups", "reset", "g"], to].concat()).fails(1, words);
    assert_eq!(generations(kshare), [] as [u64; 0]);
    // What is new comes after the old of its partition.
    produce(kshare, 20..40);
    pipe_until(kshare, runtime, &[], 40, || !tells_lag || to_confirm(kshare) == 0);
    assert_eq!(times(kshare, runtime, 40), 1);
}

#[test]
fn a_refused_reset_forgets_nothing_on_the_embedded_broker() {
    let rig = rig();
    let words = ["offsets 0 to", "999999"];
    a_refused_reset_forgets_nothing(&rig, &rig.runtime, &["--to-offset", "999999"], &words, true);
}

#[test]
fn a_refused_reset_forgets_nothing_on_kafka_4_1_1() {
    let Some(kafka) = RealKafka::start("a_refused_reset_forgets_nothing_on_kafka_4_1_1", "4.1.1") else { return };
    let (runtime, kshare) = (Runtime::new().expect("a runtime"), Kshare { servers: kafka.bootstrap() });
    for (topic, partitions) in [("in", "2"), ("out", "1")] {
        kshare.run_with(&["produce", topic, "--partitions", partitions], b"").ok();
    }
    kshare.run(&["groups", "config", "g", "--set", "share.auto.offset.reset=earliest"]).ok();
    a_refused_reset_forgets_nothing(&kshare, &runtime, &["--to-earliest"], &["it needs Kafka 4.2"], false);
}

#[test]
fn a_reset_that_fails_after_all_says_what_that_means() {
    let rig = rig();
    rig.run(&["ledger", "create"]).ok();
    produce(&rig, 0..20);
    rig.runtime.block_on(commit_unconfirmed(&rig.servers, LEDGER));
    let refused = FaultAction::Error(ErrorCode::GROUP_AUTHORIZATION_FAILED);
    rig.broker.fault(Fault::new(refused).key(ApiKey::ALTER_SHARE_GROUP_OFFSETS));
    let run = rig.run(&["groups", "reset", "g", "--to-earliest"]);
    assert_eq!(run.code, Some(1), "{}", run.err);
    for word in ["has forgotten share group \"g\"", "do it again", "come twice", "GROUP_AUTHORIZATION_FAILED"] {
        assert!(run.err.contains(word), "it does not say {word:?}: {}", run.err);
    }
    rig.broker.clear_faults();
    // Done again, it is as if it had succeeded at once.
    rig.run(&["groups", "reset", "g", "--to-earliest"]).ok();
    pipe_until(&rig, &rig.runtime, &[], 40, || true);
    assert_eq!(times(&rig, &rig.runtime, 20), 2);
}

#[test]
fn a_ledger_of_another_name_must_be_named() {
    let rig = rig();
    let named = ["--property", "share.ack.ledger.topic=other"];
    rig.run(&[&["ledger", "create"][..], &named].concat()).ok();
    produce(&rig, 0..20);
    rig.runtime.block_on(commit_unconfirmed(&rig.servers, "other"));
    let reset = ["groups", "reset", "g", "--to-earliest"];
    let run = rig.run(&reset);
    assert_eq!(run.code, Some(0), "{}", run.err);
    let told = |err: &str| err.contains("there is no ledger") && err.contains("--property share.ack.ledger.topic=NAME");
    assert!(told(&run.err), "{}", run.err);
    let run = rig.run(&[&reset[..], &named].concat());
    assert!(run.code == Some(0) && !told(&run.err), "{}", run.err);
    pipe_until(&rig, &rig.runtime, &named, 40, || true);
    assert_eq!(times(&rig, &rig.runtime, 20), 2);
}

#[test]
fn a_partial_reset_is_refused_for_what_others_have_unconfirmed() {
    let rig = rig();
    rig.run(&["ledger", "create"]).ok();
    produce(&rig, 0..20);
    rig.run_with(&["produce", "in2"], b"else\n").ok();
    rig.runtime.block_on(commit_unconfirmed(&rig.servers, LEDGER));
    let reset = |topic: &str| rig.run(&["groups", "reset", "g", "--to-earliest", "--topic", topic]);
    reset("in2").fails(1, &["records of other topics", "come twice"]);
    assert_eq!(generations(&rig), [] as [u64; 0]);
    reset("in").ok();
    assert_eq!(generations(&rig), [1]);
    pipe_until(&rig, &rig.runtime, &[], 40, || true);
    assert_eq!(times(&rig, &rig.runtime, 20), 2);
}
