//! `kshare bench` as a user runs it: figures that hang together, the official client as a peer, peers that fail.

use kafka_share_tests::java::{JavaProject, available};
use serde_json::Value;
use std::process::{Command, Output};

fn bench(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kshare"));
    command.arg("bench").args(["--records", "20000", "--partitions", "3"]).args(args).output().expect("kshare starts")
}

fn clients(output: &Output) -> Vec<Value> {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    report["clients"].as_array().expect("clients").clone()
}

#[test]
fn figures_of_one_run_hang_together() {
    let own = format!("again={} bench-peer", env!("CARGO_BIN_EXE_kshare"));
    let clients = clients(&bench(&["--json", "--peer", &own]));
    assert_eq!(clients.iter().map(|c| c["client"].as_str().unwrap()).collect::<Vec<_>>(), ["kshare", "again"]);
    for client in &clients {
        assert_eq!(client["records"], 20_000);
        let (seconds, rate) = (client["seconds"].as_f64().unwrap(), client["records_per_second"].as_f64().unwrap());
        assert!(seconds > 0.0 && (rate * seconds - 20_000.0).abs() < 1.0, "{client}");
        if cfg!(target_os = "linux") {
            assert!(client["cpu_seconds_per_million"].as_f64().unwrap() > 0.0, "{client}");
            assert!(client["peak_memory_bytes"].as_u64().unwrap() > 1 << 20, "{client}");
        }
    }
    assert_eq!(clients[0]["rate_ratio"], 1.0);
}

#[test]
fn java_stands_beside() {
    if !available("java_stands_beside") {
        return;
    }
    let command = JavaProject::build("share").command("share.Bench");
    let words: Vec<_> = command.get_args().map(|word| word.to_string_lossy().into_owned()).collect();
    let peer = format!("java=java {}", words.join(" "));
    let clients = clients(&bench(&["--json", "--peer", &peer]));
    assert_eq!((&clients[1]["client"], &clients[1]["records"]), (&"java".into(), &20_000.into()));
}

#[test]
fn peers_that_fail_are_told() {
    for (peer, code, text) in [
        ("x=/no/such/program", 1, "/no/such/program"),
        ("x=false", 1, "ended with"),
        ("x=true", 1, "printed no line"),
        ("x", 2, "NAME=VALUE"),
        ("x=", 2, "command is empty"),
    ] {
        let output = bench(&["--peer", peer]);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{peer}: {errors}");
        assert!(errors.contains(text), "{peer}: {errors}");
    }
}
