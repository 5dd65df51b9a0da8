//! `kshare connect` as a user runs it, on an embedded broker.

mod rest;
mod validate;

use kafka_share::{Admin, ClientConfig, PartitionReader, Producer, ProducerRecord};
use kafka_share_broker::EmbeddedBroker;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Output, Stdio};
use std::sync::Arc;
use std::time::Duration;

pub(crate) const LIMIT: Duration = Duration::from_secs(90);
pub(crate) const RECORDS: usize = 200;

pub(crate) struct Bench {
    broker: EmbeddedBroker,
    admin: Admin,
    pub(crate) folder: tempfile::TempDir,
}

impl Bench {
    pub(crate) async fn start(values: impl IntoIterator<Item = String>) -> Self {
        let broker = EmbeddedBroker::builder().topic("in", 2).topic("out", 2).start().await.expect("broker");
        let servers = broker.bootstrap_servers();
        let admin = Admin::new(ClientConfig::new(&servers)).expect("admin");
        let earliest = [("share.auto.offset.reset", "earliest")];
        admin.alter_share_group_configs("connect-copy", &earliest).await.expect("group config");
        let producer = Producer::builder(&servers).build().expect("producer");
        for (i, value) in values.into_iter().enumerate() {
            let record = ProducerRecord::new("in").partition(i as i32 % 2).value(value.into_bytes());
            drop(producer.send(record).await.expect("send"));
        }
        producer.flush().await.expect("flush");
        let folder = tempfile::tempdir().expect("folder");
        let worker = format!("bootstrap.servers={servers}\nconsumer.group.protocol=share\nvalue.converter=string\n");
        std::fs::write(folder.path().join("worker.properties"), worker).expect("file");
        Bench { broker, admin, folder }
    }

    pub(crate) fn file(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().expect("path").to_owned()
    }

    async fn connect(&self, config: serde_json::Value) -> Output {
        let run = self.command(config).args(["--stop-when-idle", "6"]).output();
        tokio::time::timeout(LIMIT, run).await.expect("kshare ends").expect("kshare runs")
    }

    fn command(&self, config: serde_json::Value) -> tokio::process::Command {
        let sink = serde_json::json!({ "name": "copy", "config": config });
        std::fs::write(self.file("sink.json"), sink.to_string()).expect("file");
        let mut command = tokio::process::Command::new(env!("CARGO_BIN_EXE_kshare"));
        command.arg("connect").args([self.file("worker.properties"), self.file("sink.json")]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        command
    }
}

pub(crate) fn values() -> impl Iterator<Item = String> {
    (0..RECORDS).map(|i| format!("v{i:04}"))
}

fn succeeds(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(0), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    text
}

fn fails(output: &Output, code: i32, words: &[&str]) {
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{text}");
    assert_eq!(text.trim_end().lines().count(), 1, "more than one line: {text}");
    for word in words {
        assert!(text.contains(word), "{word:?} is missing in: {text}");
    }
}

fn lines(folder: &Path) -> Vec<String> {
    let files = std::fs::read_dir(folder).expect("folder").map(|e| e.expect("entry").path());
    let out = files.filter(|p| p.file_name().is_some_and(|n| n.to_string_lossy().starts_with("out.jsonl")));
    out.flat_map(|p| std::fs::read_to_string(p).expect("text").lines().map(str::to_owned).collect::<Vec<_>>()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn file_sink_writes_every_record_and_ends_when_idle() {
    let bench = Bench::start(values()).await;
    let config = serde_json::json!({
        "connector.class": "file", "topics": "in", "tasks.max": 3, "file": bench.file("out.jsonl"),
    });
    let text = succeeds(&bench.connect(config).await);
    assert!(text.contains("runs with 3 tasks") && text.contains("copy task 2: STOPPED"), "{text}");
    let rows = lines(bench.folder.path());
    let seen: BTreeSet<String> = rows
        .iter()
        .map(|l| {
            serde_json::from_str::<serde_json::Value>(l).expect("JSON")["value"].as_str().expect("text").to_owned()
        })
        .collect();
    assert_eq!((rows.len(), seen), (RECORDS, values().collect()));
    drop(bench.broker);
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_signal_ends_it_in_order() {
    let bench = Bench::start(values()).await;
    let config = serde_json::json!({ "connector.class": "file", "topics": "in", "file": bench.file("out.jsonl") });
    let child = bench.command(config).spawn().expect("kshare");
    let until = std::time::Instant::now() + LIMIT;
    while lines(bench.folder.path()).len() < RECORDS {
        assert!(std::time::Instant::now() < until, "not all is written");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let pid = child.id().expect("it runs").to_string();
    assert!(std::process::Command::new("kill").args(["-TERM", &pid]).status().expect("kill").success());
    let end = child.wait_with_output();
    let output = tokio::time::timeout(LIMIT, end).await.expect("kshare ends").expect("its output");
    let text = succeeds(&output);
    assert!(text.contains(&format!("copy task 0: STOPPED: read {RECORDS} accepted {RECORDS}")), "{text}");
    let offsets = bench.admin.describe_share_group_offsets("connect-copy").await.expect("offsets");
    assert!(offsets.iter().all(|o| o.lag == Some(0)), "{offsets:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kafka_sink_copies_exactly_once() {
    let bench = Bench::start(values()).await;
    let config = serde_json::json!({
        "connector.class": "kafka", "topics": "in", "tasks.max": 3, "target.topic": "out",
        "share.delivery.semantics": "exactly-once",
    });
    succeeds(&bench.connect(config).await);
    let mut reader = PartitionReader::read_committed(Arc::clone(bench.admin.cluster()), "out").await.expect("reader");
    let batches = reader.read_to_end().await.expect("output");
    let text = |v: Option<&[u8]>| String::from_utf8_lossy(v.expect("value")).into_owned();
    let mut all: Vec<String> = Vec::new();
    for batch in &batches {
        all.extend(batch.iter().map(|r| text(r.value())));
    }
    all.sort();
    assert_eq!(all, values().collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_task_is_said_in_one_line() {
    let bench = Bench::start(["{".to_owned()]).await;
    let file = bench.file("out.jsonl");
    let config = serde_json::json!({
        "connector.class": "file", "topics": "in", "file": file, "value.converter": "json",
    });
    let output = bench.connect(config).await;
    fails(&output, 1, &["copy", "task 0", "in-0@0", "not JSON", "errors.tolerance"]);
    assert!(String::from_utf8_lossy(&output.stdout).contains("copy task 0: FAILED"));
    assert!(lines(bench.folder.path()).is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wrong_settings_are_named() {
    let bench = Bench::start([]).await;
    let base = |more: &[(&str, &str)]| {
        let mut config =
            serde_json::json!({ "connector.class": "file", "topics": "in", "file": bench.file("out.jsonl") });
        for (name, value) in more {
            config[*name] = serde_json::json!(value);
        }
        config
    };
    for (more, words) in [
        (("share.delivery.semantics", "exactly-once"), &["exactly-once", "file can only be at-least-once"][..]),
        (("consumer.override.group.protocol", "classic"), &["classic", "consumer.override.group.protocol=share"]),
        (("connector.class", "mongodb"), &["connector.class=mongodb"]),
        (("consumer.override.max.poll.records", "0"), &["max.poll.records"]),
        (("file", "/no/such/folder/out"), &["file=/no/such/folder/out"]),
    ] {
        fails(&bench.connect(base(&[more])).await, 2, words);
    }
}

/// Without a REST interface there is nobody who could restart it: the others end in order first, and the end says why.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn others_go_on_beside_a_connector_that_does_not_start_and_end_in_order() {
    let bench = Bench::start(values()).await;
    let late = serde_json::json!({
        "name": "late",
        "config": { "connector.class": "file", "topics": "in", "file": bench.file("missing/out.jsonl") },
    });
    std::fs::write(bench.file("late.json"), late.to_string()).expect("file");
    let config = serde_json::json!({
        "connector.class": "file", "topics": "in,never", "file": bench.file("out.jsonl"), "file.rotat.bytes": "100",
    });
    let mut command = bench.command(config);
    let run = command.arg(bench.file("late.json")).args(["--stop-when-idle", "6"]).output();
    let output = tokio::time::timeout(LIMIT, run).await.expect("kshare ends").expect("kshare runs");
    fails(&output, 2, &["connector \"late\"", "file=", "missing"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    for words in [
        "connector \"late\": FAILED",
        "copy task 0: STOPPED",
        "warning: file.rotat.bytes is no setting of a connector: is file.rotate.bytes meant?",
        "topic \"never\" does not exist",
    ] {
        assert!(text.contains(words), "{words:?} is missing in: {text}");
    }
    assert_eq!(lines(bench.folder.path()).len(), RECORDS);
}
