//! `kshare ledger`, and what an offset reset and a deleted group mean to it.

use crate::pipe::{committed, values};
use crate::rig::{Kshare, LIMIT, Rig};
use kafka_share::ledger::AckBackendChoice;
use kafka_share::{AckType, KafkaShareConsumer, ProducerRecord, ShareAcknowledgements, TransactionalProducer};
use kafka_share_tests::kafka::RealKafka;
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;

fn rig() -> Rig {
    Rig::with(|builder| builder.transactional_acks(false).topic("in", 2).topic("out", 2))
}

fn pipe(kshare: &Kshare, count: &str) -> Value {
    let args = ["pipe", "--from", "in", "--to", "out", "--group", "g", "--from-beginning", "--json", "--count", count];
    kshare.run(&args).json()
}

fn sum(found: &Value, field: &str) -> u64 {
    found["partitions"].as_array().expect("partitions").iter().filter_map(|p| p[field].as_u64()).sum()
}

fn describe(kshare: &Kshare) -> Value {
    kshare.run(&["ledger", "describe", "--json"]).json()
}

/// A member that has written its intent and goes away with its transaction open.
async fn die_in_the_middle(servers: &str) {
    let builder = KafkaShareConsumer::builder(servers, "g").max_poll_records(5);
    let consumer =
        builder.acknowledgement_mode(kafka_share::AcknowledgementMode::Explicit).build().expect("a consumer");
    consumer.subscribe(["in"]).expect("subscribed");
    let builder = TransactionalProducer::builder(servers, "dead").share_ack_backend(AckBackendChoice::Ledger);
    let producer = builder.build().expect("a producer");
    producer.init_transactions().await.expect("initialised");
    let end = Instant::now() + LIMIT;
    let records = loop {
        let records = consumer.poll(Duration::from_secs(1)).await.expect("records");
        if !records.is_empty() {
            break records;
        }
        assert!(Instant::now() < end, "nothing comes");
    };
    producer.begin_transaction().expect("begun");
    producer.send(ProducerRecord::new("out").value("of the dead")).await.expect("taken").await.expect("written");
    let acks = ShareAcknowledgements::from_records(&records, AckType::Accept).expect("held");
    producer
        .send_share_acks_to_transaction(acks, &consumer.share_group_metadata().expect("a member"))
        .await
        .expect("staged");
    // Prepared: the intent is in the ledger, and the end is missing.
    drop(producer.prepare_transaction().await.expect("prepared"));
    consumer.close(LIMIT).await.expect("closed");
}

#[test]
fn a_ledger_is_created_once_and_shown() {
    let rig = rig();
    rig.run(&["ledger", "describe"]).fails(2, &["does not exist", "kshare ledger create"]);
    let made = rig.run(&["ledger", "create", "--partitions", "3", "--json"]).json();
    assert_eq!((&made["topic"], &made["partitions"]), (&json!("share-ack-ledger"), &json!(3)));
    assert_eq!(rig.run(&["ledger", "create", "--partitions", "3", "--json"]).json()["topic_id"], made["topic_id"]);
    rig.run(&["ledger", "create", "--partitions", "4"]).fails(2, &["3 partitions"]);
    rig.run(&["ledger", "check"]).ok();
    let found = describe(&rig);
    assert_eq!((found["partitions"].as_array().map(Vec::len), sum(&found, "intents")), (Some(3), 0));
    // Another name, by option or by property.
    rig.run(&["ledger", "create", "--topic", "other"]).ok();
    rig.run(&["ledger", "check", "--property", "share.ack.ledger.topic=other"]).ok();
    rig.run(&["ledger", "check", "--topic", "orders"]).fails(2, &["does not exist"]);
    rig.run(&["ledger", "check", "--topic", "in"]).fails(2, &["cleanup.policy", "compact"]);
}

#[test]
fn records_of_somebody_else_are_told_by_check_and_refused_by_members() {
    let rig = rig();
    rig.run(&["ledger", "create", "--partitions", "1"]).ok();
    rig.run_with(&["produce", "share-ack-ledger", "--key-separator", ":"], b"k:hello\n").ok();
    rig.run(&["ledger", "check", "--json"]).fails(1, &["1 fault"]);
    rig.run(&["ledger", "compact"]).fails(1, &["not of a ledger", "create a ledger under another name"]);
    rig.produce("in", "one\n");
    let args = ["pipe", "--from", "in", "--to", "out", "--group", "g", "--from-beginning", "--count", "1"];
    let run = rig.run(&args);
    assert!(run.code == Some(2) && run.err.contains("not of a ledger"), "{}", run.err);
    assert!(rig.runtime.block_on(committed(&rig.servers, "out")).is_empty());
}

/// What the dead left is shown, ended and removed; their records come again, once.
fn what_the_dead_left(kshare: &Kshare, runtime: &Runtime) {
    kshare.run(&["ledger", "create"]).ok();
    let lines: String = (0..20).map(|n| format!("{n}\n")).collect();
    kshare.produce("in", &lines);
    kshare.run(&["groups", "config", "g", "--set", "share.auto.offset.reset=earliest"]).ok();
    runtime.block_on(die_in_the_middle(&kshare.servers));
    let found = describe(kshare);
    let open: Vec<&Value> =
        found["partitions"].as_array().expect("all").iter().flat_map(|p| p["open"].as_array().expect("open")).collect();
    assert_eq!((open.len(), &open[0]["transactional_id"]), (1, &json!("dead")));
    assert!(open[0]["groups"]["g"].as_u64().is_some_and(|n| n > 0), "{found}");
    kshare.run(&["ledger", "check"]).ok();
    kshare.run(&["ledger", "check", "--older-than", "1ms", "--json"]).fails(1, &["1 fault"]);
    // A reset would be judged by what that transaction comes to.
    kshare.run(&["groups", "reset", "g", "--to-earliest"]).fails(1, &["transaction open"]);
    let settled = kshare.run(&["ledger", "compact", "--older-than", "1ms", "--json"]).json();
    assert_eq!((&settled["fenced"], &settled["not_fenced"]), (&json!(1), &json!(0)));
    let end = Instant::now() + LIMIT;
    while sum(&describe(kshare), "intents") > 0 {
        assert!(Instant::now() < end, "the transaction stays open");
    }
    assert_eq!(pipe(kshare, "20")["records_out"], json!(20));
    let mut expected: Vec<String> = (0..20).map(|n| n.to_string()).collect();
    expected.sort();
    assert_eq!(values(&runtime.block_on(committed(&kshare.servers, "out"))), expected);
    // Once the broker's start offsets have moved, nothing of it is needed.
    kshare.lag_becomes("g", 0);
    let end = Instant::now() + LIMIT;
    while sum(&describe(kshare), "intents") > 0 {
        assert!(Instant::now() < end, "intents stay: {}", describe(kshare));
        kshare.run(&["ledger", "compact", "--json"]).json();
    }
}

/// Records that come again by an administrator's hand are worked on again.
fn after_a_reset(kshare: &Kshare, runtime: &Runtime) {
    kshare.run(&["groups", "reset", "g", "--to-earliest"]).ok();
    assert_eq!(pipe(kshare, "20")["records_out"], json!(20));
    let times = |written: &[String]| {
        (0..20).all(|n| written.iter().filter(|v| **v == n.to_string()).count() == written.len() / 20)
    };
    let written = values(&runtime.block_on(committed(&kshare.servers, "out")));
    assert!(written.len() == 40 && times(&written), "{written:?}");
    kshare.run(&["groups", "delete", "g"]).ok();
    assert_eq!(pipe(kshare, "20")["records_out"], json!(20));
    let written = values(&runtime.block_on(committed(&kshare.servers, "out")));
    assert!(written.len() == 60 && times(&written), "{written:?}");
    let raised = kshare.run(&["ledger", "raise", "g", "--json"]).json();
    // There was nothing to forget at the reset: what was confirmed had been removed.
    assert_eq!(raised["generation"], json!(2));
}

/// A group goes on natively once nothing of members that use the ledger alone is left.
#[test]
fn a_group_leaves_the_ledger() {
    let rig = Rig::with(|builder| builder.topic("in", 2).topic("out", 2));
    rig.run(&["ledger", "create"]).ok();
    let lines: String = (0..20).map(|n| format!("{n}\n")).collect();
    rig.produce("in", &lines);
    rig.run(&["groups", "config", "g", "--set", "share.auto.offset.reset=earliest"]).ok();
    rig.runtime.block_on(die_in_the_middle(&rig.servers));
    // What is left is told line by line, then the verdict.
    let early = rig.run(&["ledger", "leave", "g"]);
    assert_eq!(early.code, Some(1), "{}", early.err);
    for words in ["has not ended", "kshare ledger compact", "start no native member yet"] {
        assert!(early.err.contains(words), "{}", early.err);
    }
    rig.run(&["ledger", "compact", "--older-than", "1ms"]).ok();
    let with = |backend: &str, count: &str| {
        let property = format!("share.ack.transaction.backend={backend}");
        let args = [
            "pipe",
            "--from",
            "in",
            "--to",
            "out",
            "--group",
            "g",
            "--json",
            "--count",
            count,
            "--property",
            &property,
        ];
        rig.run(&args).json()
    };
    assert_eq!(with("both", "20")["records_out"], json!(20));
    let left = rig.run(&["ledger", "leave", "g", "--wait", "1m", "--json"]).json();
    assert_eq!((&left["safe"], &left["open"], &left["unconfirmed"]), (&json!(true), &json!(0), &json!(0)));
    let found = describe(&rig);
    assert!(found["partitions"].as_array().expect("all").iter().any(|p| p["left"] == json!(["g"])), "{found}");
    assert_eq!(sum(&found, "to_confirm"), 0, "{found}");
    rig.run(&["ledger", "leave", "g"]).ok();
    for backend in ["native", "both", "auto"] {
        rig.produce("in", "one\n");
        assert_eq!(with(backend, "1")["records_out"], json!(1));
    }
    // Records that come again come to native members.
    rig.run(&["groups", "reset", "g", "--to-earliest"]).ok();
    let found = describe(&rig);
    assert!(found["partitions"].as_array().expect("all").iter().any(|p| p["left"] == json!(["g"])), "{found}");
    assert_eq!(with("native", "23")["records_out"], json!(23));
    assert_eq!(rig.runtime.block_on(committed(&rig.servers, "out")).len(), 46);
    // A cluster that cannot do with less.
    let released = self::rig();
    released.run(&["ledger", "create"]).ok();
    let run = released.run(&["ledger", "leave", "g"]);
    assert!(run.code != Some(0) && run.err.contains("must stay on the ledger"), "{}", run.err);
}

/// While members are at work nothing is forgotten: they would do again what they have committed.
#[test]
fn a_group_with_members_is_neither_deleted_nor_forgotten() {
    let rig = rig();
    rig.run(&["ledger", "create"]).ok();
    rig.produce("in", "one\ntwo\n");
    let args = ["pipe", "--from", "in", "--to", "out", "--group", "g", "--from-beginning", "--json"];
    let running = rig.spawn(&args);
    let end = Instant::now() + LIMIT;
    while rig.runtime.block_on(committed(&rig.servers, "out")).len() < 2 {
        assert!(Instant::now() < end, "nothing comes out");
    }
    for command in
        [&["groups", "delete", "g"][..], &["groups", "reset", "g", "--to-earliest"], &["ledger", "raise", "g"]]
    {
        let run = rig.run(command);
        assert_eq!(run.code, Some(1), "{command:?}: {}", run.err);
    }
    let found = describe(&rig);
    let raised = found["partitions"].as_array().expect("all").iter().any(|p| p["generations"] != json!({}));
    assert!(!raised, "{found}");
    running.signal("TERM");
    running.finish().ok();
    assert_eq!(values(&rig.runtime.block_on(committed(&rig.servers, "out"))), ["one", "two"]);
}

#[test]
fn what_the_dead_left_is_settled_and_resets_count() {
    let rig = rig();
    what_the_dead_left(&rig, &rig.runtime);
    after_a_reset(&rig, &rig.runtime);
}

#[test]
fn what_the_dead_left_is_settled_and_resets_count_on_kafka_4_4_0() {
    let Some(kafka) = RealKafka::start("what_the_dead_left_on_kafka_4_4_0", "4.4.0") else { return };
    let runtime = Runtime::new().expect("a runtime");
    let kshare = Kshare { servers: kafka.bootstrap() };
    for topic in ["in", "out"] {
        kshare.run_with(&["produce", topic, "--partitions", "2"], b"").ok();
    }
    what_the_dead_left(&kshare, &runtime);
    after_a_reset(&kshare, &runtime);
}
