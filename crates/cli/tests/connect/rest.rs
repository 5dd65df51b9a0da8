//! The REST interface and its page for Prometheus, as their users see them.

use crate::{Bench, LIMIT, RECORDS, values};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::process::Stdio;
use std::time::{Duration, Instant};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};

struct Running {
    process: Child,
    address: SocketAddr,
}

/// Starts `kshare connect`, and waits until its REST interface is there and its connector has started.
async fn start(bench: &Bench, config: Value) -> Running {
    let running = start_all(bench, &[("copy", config)]).await;
    running.until("/connectors/copy/status", |s| s["connector"]["state"] == "RUNNING").await;
    running
}

async fn start_all(bench: &Bench, connectors: &[(&str, Value)]) -> Running {
    let mut files = Vec::new();
    for (name, config) in connectors {
        files.push(bench.file(&format!("{name}.json")));
        let text = json!({ "name": name, "config": config }).to_string();
        std::fs::write(files.last().expect("a file"), text).expect("file");
    }
    let worker = bench.file("worker.properties");
    let text = std::fs::read_to_string(&worker).expect("file");
    std::fs::write(&worker, text + "listeners=http://127.0.0.1:0\n").expect("file");
    let mut process = Command::new(env!("CARGO_BIN_EXE_kshare"))
        .args(["connect", &worker])
        .args(&files)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .expect("kshare runs");
    let mut lines = BufReader::new(process.stdout.take().expect("stdout")).lines();
    let address = async {
        loop {
            let line = lines.next_line().await.expect("stdout").expect("kshare goes on");
            if let Some(address) = line.strip_prefix("REST interface: http://") {
                break address.parse().expect("an address");
            }
        }
    };
    let address = tokio::time::timeout(LIMIT, address).await.expect("a REST interface");
    // Nobody must have to read on.
    tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
    Running { process, address }
}

impl Running {
    /// Status and body of an answer; `head` are more lines of the request's head.
    async fn ask_with(&self, method: &str, path: &str, head: &str, body: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(self.address).await.expect("connection");
        let length = body.len();
        let host = if head.contains("Host:") { String::new() } else { format!("Host: {}\r\n", self.address) };
        let request = format!("{method} {path} HTTP/1.1\r\nContent-Length: {length}\r\n{host}{head}\r\n{body}");
        let mut answer = String::new();
        let talk = async {
            // The server need not read all of what it refuses.
            let _ = stream.write_all(request.as_bytes()).await;
            let _ = stream.read_to_string(&mut answer).await;
        };
        tokio::time::timeout(LIMIT, talk).await.expect("an answer");
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
        (head[9..12].parse().expect("a status"), body.to_owned())
    }

    async fn ask(&self, method: &str, path: &str) -> (u16, Value) {
        let (status, body) = self.ask_with(method, path, "", "").await;
        (status, if body.is_empty() { Value::Null } else { serde_json::from_str(&body).expect("JSON") })
    }

    async fn until(&self, path: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let end = Instant::now() + LIMIT;
        loop {
            let (_, body) = self.ask("GET", path).await;
            if wanted(&body) {
                return body;
            }
            assert!(Instant::now() < end, "{path}: {body}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Sum of a metric over all tasks.
    async fn metric(&self, name: &str) -> f64 {
        let (status, page) = self.ask_with("GET", "/metrics", "", "").await;
        assert_eq!(status, 200);
        let of_name = page.lines().filter(|l| l.strip_prefix(name).is_some_and(|rest| rest.starts_with('{')));
        of_name.map(|l| l.rsplit_once(' ').expect("a value").1.parse::<f64>().expect("a number")).sum()
    }

    async fn until_metric(&self, name: &str, value: f64) {
        let end = Instant::now() + LIMIT;
        while self.metric(name).await < value {
            assert!(Instant::now() < end, "{name}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

fn states(status: &Value, state: &str) -> bool {
    status["tasks"].as_array().is_some_and(|tasks| !tasks.is_empty() && tasks.iter().all(|t| t["state"] == state))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connectors_are_shown_paused_resumed_and_stopped() {
    let bench = Bench::start(values()).await;
    let config = json!({
        "connector.class": "file", "topics": "in", "tasks.max": 2, "file": bench.file("out.jsonl"),
        "some.password": "s3cret", "consumer.override.sasl.jaas.config": "s3cret",
        "connection.url": "postgres://me:s3cret@host/db",
    });
    let running = start(&bench, config).await;
    let root = running.until("/", |root| root["kafka_cluster_id"].as_str().is_some_and(|id| !id.is_empty())).await;
    assert_eq!(root["version"].as_str(), Some(env!("CARGO_PKG_VERSION")));
    assert_eq!(running.ask("GET", "/connectors").await, (200, json!(["copy"])));
    let (_, info) = running.ask("GET", "/connectors/copy").await;
    assert_eq!((&info["name"], &info["type"]), (&json!("copy"), &json!("sink")));
    assert_eq!(info["tasks"], json!([{"connector": "copy", "task": 0}, {"connector": "copy", "task": 1}]));
    let (_, expanded) = running.ask("GET", "/connectors?expand=info&expand=status").await;
    assert_eq!(expanded["copy"]["info"], info);
    for path in ["/connectors/copy", "/connectors/copy/config", "/connectors/copy/tasks", "/connectors?expand=info"] {
        let (status, body) = running.ask("GET", path).await;
        let text = body.to_string();
        assert!(status == 200 && !text.contains("s3cret") && text.contains("[hidden]"), "{path}: {text}");
    }
    assert_eq!(running.ask("GET", "/connectors/copy/topics").await, (200, json!({"copy": {"topics": ["in"]}})));
    running.until_metric("kafka_connect_share_sink_task_metrics_records_accepted_total", RECORDS as f64).await;
    assert!(running.metric("kafka_connect_sink_task_metrics_sink_record_read_total").await >= RECORDS as f64);
    let status = running.until("/connectors/copy/status", |s| states(s, "RUNNING")).await;
    assert_eq!(status["connector"]["state"], "RUNNING");
    assert_eq!(status["connector"]["worker_id"], running.address.to_string());
    assert_eq!(running.ask("PUT", "/connectors/copy/pause").await.0, 202);
    let paused = running.until("/connectors/copy/status", |s| states(s, "PAUSED")).await;
    assert_eq!(paused["connector"]["state"], "PAUSED");
    assert_eq!(running.ask("GET", "/connectors/copy/tasks/1/status").await.1["state"], "PAUSED");
    assert_eq!(running.ask("PUT", "/connectors/copy/resume").await.0, 202);
    running.until("/connectors/copy/status", |s| states(s, "RUNNING")).await;
    assert_eq!(running.ask("POST", "/connectors/copy/restart").await, (204, Value::Null));
    let (code, status) = running.ask("POST", "/connectors/copy/restart?includeTasks=true").await;
    assert_eq!((code, &status["name"]), (202, &json!("copy")));
    running.until_metric("kafka_connect_share_sink_task_metrics_restarts_total", 2.0).await;
    assert_eq!(running.ask("PUT", "/connectors/copy/stop").await.0, 202);
    running.until("/connectors/copy/status", |s| states(s, "UNASSIGNED") && s["connector"]["state"] == "STOPPED").await;
    assert_eq!(running.ask("POST", "/connectors/copy/tasks/0/restart").await.0, 409);
    assert_eq!(running.ask("PUT", "/connectors/copy/resume").await.0, 202);
    running.until("/connectors/copy/status", |s| states(s, "RUNNING")).await;
    // Whatever is told in a row, the last counts.
    for order in ["stop", "resume", "stop", "resume"] {
        assert_eq!(running.ask("PUT", &format!("/connectors/copy/{order}")).await.0, 202);
    }
    running.until("/connectors/copy/status", |s| states(s, "RUNNING") && s["connector"]["state"] == "RUNNING").await;
    drop(running.process);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn failed_tasks_keep_the_worker_up_and_are_restarted() {
    let bench = Bench::start(["{".to_owned()]).await;
    let config = json!({
        "connector.class": "file", "topics": "in", "file": bench.file("out.jsonl"), "value.converter": "json",
        "share.max.delivery.count": 10,
    });
    let running = start(&bench, config).await;
    let failed = running.until("/connectors/copy/status", |s| states(s, "FAILED")).await;
    assert!(failed["tasks"][0]["trace"].as_str().is_some_and(|t| t.contains("not JSON")), "{failed}");
    for (path, code) in
        [("/connectors/copy/restart?includeTasks=true&onlyFailed=true", 202), ("/connectors/copy/tasks/0/restart", 204)]
    {
        let before = running.metric("kafka_connect_share_sink_task_metrics_restarts_total").await;
        assert_eq!(running.ask("POST", path).await.0, code);
        running.until_metric("kafka_connect_share_sink_task_metrics_restarts_total", before + 1.0).await;
        running.until("/connectors/copy/status", |s| states(s, "FAILED")).await;
    }
    let (_, page) = running.ask_with("GET", "/metrics", "", "").await;
    let line = "kafka_connect_connector_task_metrics_status{connector=\"copy\",task=\"0\",status=\"failed\"} 1";
    assert!(page.contains(line) && page.contains("# TYPE kafka_connect_share_sink_task_metrics_records_"), "{page}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wrong_requests_are_refused_in_connects_form() {
    let bench = Bench::start([]).await;
    let config = json!({ "connector.class": "file", "topics": "in", "file": bench.file("out.jsonl") });
    let running = start(&bench, config).await;
    for (method, path, code) in [
        ("GET", "/connectors/none", 404),
        ("GET", "/connectors/copy/tasks/7/status", 404),
        ("POST", "/connectors/copy/tasks/7/restart", 404),
        ("POST", "/connectors/copy/tasks/x/restart", 404),
        ("GET", "/nothing", 404),
        ("POST", "/connectors", 405),
        ("DELETE", "/connectors/copy", 405),
        ("PUT", "/connectors/copy/config", 405),
        ("GET", "/connectors/%zz", 400),
        ("PUT", "/connector-plugins/file/config/validate", 400),
    ] {
        let (status, body) = running.ask(method, path).await;
        assert_eq!((status, body["error_code"].as_u64()), (code, Some(u64::from(code))), "{method} {path}: {body}");
        assert!(body["message"].as_str().is_some_and(|m| !m.is_empty()), "{method} {path}: {body}");
    }
    for head in
        ["Origin: http://elsewhere.example\r\n", "Host: elsewhere.example\r\n", "Host: elsewhere.example:8083\r\n"]
    {
        assert_eq!(running.ask_with("PUT", "/connectors/copy/stop", head, "").await.0, 403, "{head}");
    }
    assert_eq!(running.ask_with("GET", "/", "Host: LocalHost\r\n", "").await.0, 200);
    let many: serde_json::Map<String, Value> = (0..2_000).map(|i| (format!("a{i}"), json!("x"))).collect();
    let path = "/connector-plugins/file/config/validate";
    let (status, body) = running.ask_with("PUT", path, "", &Value::Object(many).to_string()).await;
    assert!(status == 400 && body.contains("2000 settings"), "{status} {body}");
    let long = "x".repeat(1024 * 1024);
    let (status, _) = running.ask_with("PUT", "/connector-plugins/file/config/validate", "", &long).await;
    assert_eq!(status, 413);
    let settings =
        json!({ "name": "new", "topics": "in", "tasks.max": "none", "topcis": "x", "db.password": "s3cret" });
    let path = "/connector-plugins/file/config/validate";
    let (status, body) = running.ask_with("PUT", path, "", &settings.to_string()).await;
    let body: Value = serde_json::from_str(&body).expect("JSON");
    // tasks.max, topcis, db.password, and the file that is missing.
    assert_eq!((status, body["error_count"].as_u64()), (200, Some(4)), "{body}");
    let configs = body["configs"].as_array().expect("configs");
    let of = |name: &str| configs.iter().find(|c| c["value"]["name"] == name).expect("a setting");
    assert!(of("tasks.max")["value"]["errors"][0].as_str().is_some_and(|e| e.contains("a number")), "{body}");
    assert!(of("topcis")["value"]["errors"][0].as_str().is_some_and(|e| e.contains("topics")), "{body}");
    assert!(!body.to_string().contains("s3cret"), "{body}");
    let (_, plugins) = running.ask("GET", "/connector-plugins").await;
    assert!(plugins.as_array().is_some_and(|all| all.iter().any(|p| p["class"] == "kafka")), "{plugins}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connector_that_does_not_start_is_failed_and_the_worker_stays_up() {
    let bench = Bench::start(values()).await;
    let file = |path: &str| json!({ "connector.class": "file", "topics": "in", "file": bench.file(path) });
    let mut other = file("out.jsonl");
    other["share.group.id"] = json!("connect-copy");
    // Both name one file, which one of them is too late for; the third's folder is not there.
    let connectors = [("copy", file("out.jsonl")), ("late", file("missing/out.jsonl")), ("other", other)];
    let running = start_all(&bench, &connectors).await;
    let failed = running.until("/connectors/late/status", |s| s["connector"]["state"] == "FAILED").await;
    let trace = failed["connector"]["trace"].as_str().expect("a trace");
    assert!(trace.contains("file=") && trace.contains("missing"), "{failed}");
    assert_eq!(failed["tasks"], json!([]));
    let ends = [
        running.until("/connectors/copy/status", |s| s["connector"]["state"] != "UNASSIGNED").await,
        running.until("/connectors/other/status", |s| s["connector"]["state"] != "UNASSIGNED").await,
    ];
    let states: Vec<&Value> = ends.iter().map(|s| &s["connector"]["state"]).collect();
    assert!(states.contains(&&json!("RUNNING")) && states.contains(&&json!("FAILED")), "{ends:?}");
    assert!(
        ends.iter().any(|s| s["connector"]["trace"].as_str().is_some_and(|t| t.contains("holds its lock"))),
        "{ends:?}"
    );
    running.until_metric("kafka_connect_share_sink_task_metrics_records_accepted_total", RECORDS as f64).await;
    let (_, page) = running.ask_with("GET", "/metrics", "", "").await;
    assert!(page.contains("kafka_connect_worker_metrics_connector_startup_failure_total 2"), "{page}");
    // Mended, it is started again.
    std::fs::create_dir(bench.file("missing")).expect("folder");
    assert_eq!(running.ask("POST", "/connectors/late/restart").await.0, 204);
    running.until("/connectors/late/status", |s| s["connector"]["state"] == "RUNNING").await;
    drop(running.process);
}
