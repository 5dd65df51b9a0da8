//! `kshare conformance --client` on `kshare consume`, and on programs that are no clients.

use std::process::{Command, Output};

fn judge(client: &str, more: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kshare"));
    command.args(["conformance", "--client", client]).args(more).output().expect("kshare runs")
}

#[test]
#[cfg(unix)]
fn the_own_consumer_passes() {
    let own = env!("CARGO_BIN_EXE_kshare");
    let client = format!("{own} consume {{topic}} --group {{group}} --bootstrap-server {{bootstrap}}");
    let output = judge(&client, &["--report", "json"]);
    let text = String::from_utf8_lossy(&output.stdout);
    let report: serde_json::Value = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {output:?}"));
    let scenarios = report["scenarios"].as_array().expect("scenarios");
    assert!(scenarios.len() > 10 && scenarios.iter().all(|s| s["passed"] == true), "{text}");
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn what_is_no_client_is_refused_or_fails() {
    let output = judge("cat", &[]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("{bootstrap} is not in it"), "{output:?}");
    let output = judge("no-such-program {bootstrap} {topic} {group}", &[]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("does not start") && text.contains("0 passed"), "{text}");
}
