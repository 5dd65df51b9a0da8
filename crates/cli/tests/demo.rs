//! `kshare demo` as a user runs it: on the embedded broker, and on real Kafka brokers.

use kafka_share_tests::java::JavaProject;
use kafka_share_tests::kafka::RealKafka;
use kafka_share_tests::kafka_cluster::RealCluster;
use serde_json::Value;
use std::collections::BTreeMap;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

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

/// Java's word on what is in a topic: each source exactly once, and as many as there were.
fn judged_by_java(server: &str, json: &Value) {
    let dir = tempfile::tempdir().expect("folder");
    let file = dir.path().join("output");
    let topic = json["output_topic"].as_str().expect("a topic");
    let args = [server.as_ref(), topic.as_ref(), file.as_os_str()];
    JavaProject::build("clients").run("clients.ReadCommitted", args);
    let mut times = BTreeMap::<String, usize>::new();
    for line in std::fs::read_to_string(file).expect("lines").lines() {
        let (_, source) = line.split_once(" source-partition=").expect("a source");
        *times.entry(source.to_owned()).or_default() += 1;
    }
    let doubled: Vec<_> = times.iter().filter(|(_, n)| **n > 1).collect();
    assert!(doubled.is_empty(), "{} doubled: {doubled:?}", doubled.len());
    assert_eq!(Some(times.len() as u64), json["input_records"].as_u64());
}

/// How long chaos lasts on a real Kafka, for the long form.
const CHAOS_SECONDS: &str = "KAFKA_SHARE_CHAOS_SECONDS";

/// Members that are killed and stopped, on what is at `server`: nothing is missing or doubled, says Java too.
fn chaos(server: &str, what: &str) {
    let long = std::env::var(CHAOS_SECONDS).ok().map(|seconds| seconds.parse::<u64>().expect(CHAOS_SECONDS));
    let (duration, tasks) = (format!("{}s", long.unwrap_or(30)), if long.is_some() { "8" } else { "6" });
    let limits = ["--duration", &duration, "--timeout", "240", "--tasks", tasks];
    let json = counts(&[&["--bootstrap-server", server, "--chaos", "--keep"], &limits[..]].concat());
    println!("FIGURE demo --chaos on {what}: {json}");
    assert_eq!((&json["missing"], &json["duplicated"]), (&Value::from(0), &Value::from(0)));
    let at_least = |name: &str, n: u64| assert!(json[name].as_u64() >= Some(n), "{name}: {json}");
    at_least("kills", 3);
    at_least("stops", 3);
    if let Some(seconds) = long {
        // 225 in the 30 minutes of three releases.
        at_least("kills", seconds / 8);
        // What the rules of forgetting are for must have happened.
        for (name, every) in [("long_stops_after_poll", 120), ("ledger_restarts", 120), ("fences", 60)] {
            at_least(name, seconds / every);
        }
    }
    judged_by_java(server, &json);
}

/// Exactly once on a released Kafka, with members that are killed and stopped; and what it is told that it cannot do.
fn on_a_real_kafka(version: &str) {
    // Each death costs the records it held a delivery, and at the limit brokers give up a record. Before 4.4 that is the
    // broker's setting, which the demo cannot raise for its group.
    let limit = "group.share.delivery.count.limit=10";
    // The lock that the demo takes where it may choose, so that it is at the broker's minimum.
    let lock = "group.share.min.record.lock.duration.ms=2000";
    let Some(kafka) = RealKafka::start_with(&format!("demo_on_kafka_{version}"), version, &[limit, lock]) else {
        return;
    };
    let server = kafka.bootstrap();
    let refused = demo(&["--bootstrap-server", &server, "--backend", "native"]);
    let text = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(1), "{text}");
    assert!(text.contains("no transactional acknowledgements") && text.contains("ledger"), "{text}");
    assert!(refused.stdout.is_empty(), "nothing may start before the refusal");
    let json = counts(&["--bootstrap-server", &server, "--semantics", "at-least-once"]);
    assert_eq!((&json["input_records"], &json["missing"]), (&Value::from(8760), &Value::from(0)));
    assert_eq!(json["backend"], "none");
    let json = counts(&["--bootstrap-server", &server]);
    assert_eq!((&json["backend"], &json["output_records"]), (&Value::from("ledger"), &Value::from(8760)));
    chaos(&server, &format!("Kafka {version}"));
}

#[test]
fn on_kafka_4_4_0() {
    on_a_real_kafka("4.4.0");
}

#[test]
fn on_kafka_4_2_0() {
    on_a_real_kafka("4.2.0");
}

#[test]
fn on_kafka_4_1_1() {
    on_a_real_kafka("4.1.1");
}

/// Three brokers, one of which is killed and started again over and over.
#[test]
fn on_three_brokers_one_of_which_comes_and_goes() {
    let Some(cluster) = RealCluster::start("demo_on_three_brokers", "4.4.0") else { return };
    let server = cluster.bootstrap();
    let over = AtomicBool::new(false);
    let restarts = std::thread::scope(|scope| {
        let breaking = scope.spawn(|| {
            let mut restarts = 0;
            while !over.load(Ordering::Acquire) {
                std::thread::sleep(Duration::from_secs(4));
                cluster.kill(2);
                std::thread::sleep(Duration::from_secs(2));
                cluster.restart(2).expect("it starts again");
                restarts += 1;
            }
            restarts
        });
        let verdict = std::panic::catch_unwind(|| chaos(&server, "three brokers, one of which comes and goes"));
        over.store(true, Ordering::Release);
        let restarts = breaking.join().expect("brokers");
        verdict.map(|_| restarts)
    });
    let restarts = restarts.unwrap_or_else(|failure| std::panic::resume_unwind(failure));
    assert!(restarts >= 2, "{restarts} restarts");
}

/// The same program with either backend gives the same output.
#[test]
fn each_backend_on_the_embedded_broker() {
    for backend in ["native", "ledger", "both"] {
        let json = counts(&["--backend", backend]);
        assert_eq!((&json["backend"], &json["output_records"]), (&Value::from(backend), &Value::from(8760)));
        assert_eq!((&json["missing"], &json["duplicated"]), (&Value::from(0), &Value::from(0)));
    }
    let json = counts(&["--backend", "ledger", "--chaos", "--seed", "3"]);
    assert_eq!((&json["missing"], &json["duplicated"]), (&Value::from(0), &Value::from(0)));
}
