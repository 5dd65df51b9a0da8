//! One pass of produce, consume and groups on real Kafka brokers.

use crate::rig::Kshare;
use kafka_share_tests::kafka::RealKafka;
use serde_json::{Value, json};

/// The preview of Kafka 4.1 tells no lag, and takes requests to move offsets without doing anything.
fn pass(kshare: &Kshare, preview: bool) {
    let lines: String = (0..1000).map(|n| format!("k{n}:{n}\n")).collect();
    let args = ["produce", "orders", "--partitions", "3", "--key-separator", ":"];
    kshare.run_with(&args, lines.as_bytes()).ok();
    kshare.produce("created", "by the broker\n");
    assert_eq!(kshare.consume("created", "other", 1, &["--ack-mode", "explicit"]), ["by the broker"]);
    let mut all = kshare.consume("orders", "billing", 400, &["--format", "json"]);
    all.extend(kshare.consume("orders", "billing", 600, &["--format", "json"]));
    let parse = |line: &String| serde_json::from_str::<Value>(line).expect("JSON");
    let mut values: Vec<u32> = all.iter().map(parse).filter_map(|r| r["value"].as_str()?.parse().ok()).collect();
    values.sort_unstable();
    assert_eq!(values, (0..1000).collect::<Vec<_>>(), "each record once");
    let listed = kshare.run(&["groups", "list", "--json"]).json();
    let names: Vec<&Value> = listed.as_array().expect("list").iter().map(|g| &g["group"]).collect();
    assert_eq!(names, ["billing", "other"]);
    let group = kshare.run(&["groups", "describe", "billing", "--json"]).json();
    assert_eq!((&group["state"], &group["members"]), (&json!("Empty"), &json!([])));
    assert_eq!(group["partitions"].as_array().map(Vec::len), Some(3), "{group}");
    assert!(group["partitions"].as_array().is_some_and(|all| all.iter().all(|p| p["lag"].is_i64() != preview)));
    let reset = kshare.run(&["groups", "reset", "billing", "--to-earliest", "--json"]);
    if preview {
        reset.fails(1, &["it needs Kafka 4.2"]);
    } else {
        let reset = reset.json();
        assert!(reset["partitions"].as_array().is_some_and(|all| all.iter().all(|p| p["start_offset"] == 0)));
        assert_eq!(kshare.consume("orders", "billing", 1000, &[]).len(), 1000);
    }
    let config = kshare.run(&["groups", "config", "billing", "--json", "--set", "share.record.lock.duration.ms=20000"]);
    assert_eq!(config.json()["share.record.lock.duration.ms"], json!({ "value": "20000", "default": false }));
    kshare.run(&["groups", "offsets", "billing", "--topic", "orders", "--delete"]).ok();
    kshare.run(&["groups", "delete", "billing", "other"]).ok();
    assert_eq!(kshare.run(&["groups", "list", "--json"]).json(), json!([]));
    kshare.run(&["groups", "describe", "billing"]).fails(1, &["GROUP_ID_NOT_FOUND"]);
}

fn on_real(test: &str, version: &str, preview: bool) {
    let Some(kafka) = RealKafka::start(test, version) else { return };
    pass(&Kshare { servers: kafka.bootstrap() }, preview);
}

#[test]
fn on_the_embedded_broker() {
    pass(&crate::rig::Rig::with(|builder| builder), false);
}

#[test]
fn on_kafka_4_4_0() {
    on_real("on_kafka_4_4_0", "4.4.0", false);
}

#[test]
fn on_kafka_4_1_1() {
    on_real("on_kafka_4_1_1", "4.1.1", true);
}
