//! `kshare demo` as a user runs it: on the embedded broker, and on real Kafka brokers.

use kafka_share_tests::kafka::RealKafka;
use serde_json::Value;
use std::process::{Command, Output};

fn demo(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kshare"));
    command.arg("demo").args(args).output().expect("kshare starts")
}

/// Runs with `--json`, expects success, and gives the object.
fn counts(args: &[&str]) -> Value {
    let output = demo(&[args, &["--json"]].concat());
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{args:?}: {out}{err}");
    serde_json::from_str(&out).unwrap_or_else(|e| panic!("{args:?}: {e}: {out}"))
}

#[test]
fn exactly_once_on_the_embedded_broker() {
    let json = counts(&[]);
    assert_eq!((&json["input_records"], &json["output_records"]), (&Value::from(8760), &Value::from(8760)));
    assert_eq!((&json["missing"], &json["duplicated"]), (&Value::from(0), &Value::from(0)));
    assert_eq!((&json["semantics"], &json["backend"]), (&Value::from("exactly-once"), &Value::from("native")));
    assert!(json["transactions_committed"].as_u64() >= Some(88));
}

#[test]
fn chaos_loses_and_doubles_nothing() {
    let json = counts(&["--chaos", "--seed", "20"]);
    assert_eq!((&json["missing"], &json["duplicated"]), (&Value::from(0), &Value::from(0)));
    assert!(json["chaos_events"].as_u64() > Some(0), "{json}");
}

#[test]
fn input_of_ones_own_with_equal_lines() {
    let dir = tempfile::tempdir().expect("folder");
    let path = dir.path().join("lines");
    std::fs::write(&path, "same\n".repeat(500)).expect("file");
    let json = counts(&["--input", &path.to_string_lossy(), "--tasks", "3", "--partitions", "2", "--batch", "7"]);
    assert_eq!((&json["output_records"], &json["missing"]), (&Value::from(500), &Value::from(0)));
}

/// What a released Kafka can do, and how it is told what it cannot.
fn on_a_real_kafka(version: &str) {
    let Some(kafka) = RealKafka::start(&format!("demo_on_kafka_{version}"), version) else { return };
    let server = kafka.bootstrap();
    let refused = demo(&["--bootstrap-server", &server]);
    let text = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(1), "{text}");
    assert!(text.contains("no transactional acknowledgements") && text.contains("at-least-once"), "{text}");
    assert!(refused.stdout.is_empty(), "nothing may start before the refusal");
    let json = counts(&["--bootstrap-server", &server, "--semantics", "at-least-once"]);
    assert_eq!((&json["input_records"], &json["missing"]), (&Value::from(8760), &Value::from(0)));
    assert_eq!(json["backend"], "none");
}

#[test]
fn at_least_once_on_kafka_4_4_0() {
    on_a_real_kafka("4.4.0");
}

#[test]
fn at_least_once_on_kafka_4_2_0() {
    on_a_real_kafka("4.2.0");
}
