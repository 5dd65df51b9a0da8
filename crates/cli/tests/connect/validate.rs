//! `kshare connect validate`.

use serde_json::{Value, json};
use std::process::{Command, Output};

struct Files(tempfile::TempDir);

impl Files {
    fn new(worker: &str) -> Self {
        let files = Files(tempfile::tempdir().expect("folder"));
        files.write("worker.properties", worker);
        files
    }

    fn write(&self, name: &str, text: &str) -> String {
        let path = self.0.path().join(name);
        std::fs::write(&path, text).expect("file");
        path.to_str().expect("path").to_owned()
    }

    fn validate(&self, sinks: &[String], more: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_kshare"))
            .args(["connect", "validate", self.0.path().join("worker.properties").to_str().expect("path")])
            .args(sinks)
            .args(more)
            .output()
            .expect("kshare runs")
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

const WORKER: &str = "bootstrap.servers=127.0.0.1:1\nconsumer.group.protocol=share\nvalue.converter=string\n";

#[test]
fn what_is_right_is_said_to_be() {
    let files = Files::new(&format!("{WORKER}group.id=workers\n"));
    let sink = json!({"name": "s", "config": {"connector.class": "kafka", "topics": "in", "target.topic": "out"}});
    let output = files.validate(&[files.write("s.json", &sink.to_string())], &[]);
    let told = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{told}{}", text(&output.stderr));
    assert!(
        told.contains("connector s: 0 wrong, 1 without effect") && told.contains("workers form no cluster"),
        "{told}"
    );
}

#[test]
fn all_that_is_wrong_is_said_at_once() {
    let files = Files::new(&format!("{WORKER}value.convertor=json\nconsumer.max.pol.records=5\n"));
    let sink = json!({
        "connector.class": "kafka", "topics": "in", "taks.max": 4, "errors.tolerance": "some",
        "share.delivery.semantics": "exactly-once", "share.acknowledgement.mode": "implicit",
        "consumer.override.fetch.min.bytes": "few", "producer.override.acks": "1", "listeners": "http://:1",
        "transforms": "t", "consumer.override.max.poll.interval.ms": 5,
    });
    let first = files.write("first.json", &sink.to_string());
    let second = files.write("second.json", "{");
    let output = files.validate(&[first, second], &["--json"]);
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("settings are wrong"), "{}", text(&output.stderr));
    let json: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let errors = json["connectors"][0]["errors"].as_array().expect("errors");
    let of = |setting: &str| {
        let found: Vec<&str> =
            errors.iter().filter(|e| e["setting"] == setting).map(|e| e["message"].as_str().expect("text")).collect();
        assert!(!found.is_empty(), "{setting} is not in {errors:?}");
        found.join("; ")
    };
    for (setting, words) in [
        ("name", "name is missing"),
        ("value.convertor", "is value.converter meant?"),
        ("consumer.max.pol.records", "is max.poll.records meant?"),
        ("taks.max", "is tasks.max meant?"),
        ("errors.tolerance", "none or all is expected"),
        ("share.acknowledgement.mode", "needs share.acknowledgement.mode=explicit"),
        ("consumer.override.fetch.min.bytes", "a number is expected"),
        ("producer.override.acks", "needs all"),
        ("listeners", "a setting of the worker"),
        ("connector.class", "target.topic is missing"),
        ("transforms", "transforms.t.type"),
    ] {
        assert!(of(setting).contains(words), "{setting}: {}", of(setting));
    }
    assert_eq!(json["connectors"][0]["warnings"][0]["setting"], "consumer.override.max.poll.interval.ms");
    assert!(json["connectors"][1]["errors"][0]["message"].as_str().is_some_and(|m| m.contains("not JSON")), "{json}");
    let count = errors.len() + 1;
    assert_eq!(json["error_count"].as_u64(), Some(count as u64));
}

#[test]
fn files_that_are_not_there_and_names_twice_are_told() {
    let files = Files::new(WORKER);
    let output = files.validate(&["/no/such/sink.json".to_owned()], &[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("/no/such/sink.json"));
    let sink = json!({"name": "s", "config": {"connector.class": "kafka", "topics": "in", "target.topic": "out"}});
    let all = ["a.json", "b.json"].map(|name| files.write(name, &sink.to_string()));
    let output = files.validate(&all, &[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stdout).contains("has the same name"), "{}", text(&output.stdout));
}
