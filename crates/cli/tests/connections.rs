//! `kshare connections` as a user runs it: every broker is told, with what it is to be known by, and no secret.

use kafka_share_broker::{EmbeddedBroker, Listener, Mechanism};
use serde_json::Value;
use std::process::{Command, Output};

const SECRET: &str = "hunter2";

fn run(args: Vec<String>) -> Output {
    Command::new(env!("CARGO_BIN_EXE_kshare")).arg("connections").args(args).output().expect("kshare starts")
}

/// Of a cluster of three nodes whose clients authenticate.
async fn connections(password: &str, more: &[&str]) -> Output {
    let listener = Listener::sasl_plaintext("SASL", [Mechanism::ScramSha512]).user("alice", SECRET);
    let broker = EmbeddedBroker::builder().nodes(3).listener(listener).start().await.expect("a broker");
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("client.properties");
    let properties = format!(
        "bootstrap.servers={}\nsecurity.protocol=SASL_PLAINTEXT\nsasl.mechanism=SCRAM-SHA-512\nsasl.jaas.config=\
         org.apache.kafka.common.security.scram.ScramLoginModule required username=\"alice\" password=\"{password}\";\n",
        broker.bootstrap_servers()
    );
    std::fs::write(&path, properties).expect("a file");
    let mut args = vec!["--config".to_owned(), path.display().to_string()];
    args.extend(more.iter().map(ToString::to_string));
    tokio::task::spawn_blocking(move || run(args)).await.expect("no panic")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_broker_is_told_without_secrets() {
    let output = connections(SECRET, &["--json"]).await;
    let text = String::from_utf8(output.stdout).expect("text");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(!text.contains(SECRET), "{text}");
    let all: Vec<Value> = serde_json::from_str(&text).expect("JSON");
    for node in 1..=3 {
        let one = all.iter().find(|c| c["node"] == node).unwrap_or_else(|| panic!("broker {node}: {text}"));
        assert_eq!((&one["state"], &one["purpose"]), (&"ready".into(), &"coordination".into()));
        assert_eq!(
            (&one["security_protocol"], &one["principal"]),
            (&"SASL_PLAINTEXT".into(), &"SCRAM-SHA-512 alice".into())
        );
        assert!(one["bytes_sent"].as_u64() > Some(0) && one["bytes_received"].as_u64() > Some(0), "{one}");
        assert!(one["api_versions"].as_array().is_some_and(|apis| apis.len() > 20), "{one}");
    }
    let output = connections(SECRET, &[]).await;
    let text = String::from_utf8(output.stdout).expect("text");
    assert!(text.contains("BROKER") && text.matches("ready").count() >= 3 && !text.contains(SECRET), "{text}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refusal_is_exit_code_1() {
    let output = connections("wrong", &[]).await;
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(1) && errors.contains("SASL_AUTHENTICATION_FAILED"), "{errors}");
    assert!(!errors.contains("wrong\""), "{errors}");
}
