//! `kshare bench` as a user runs it: figures that hang together, the official client as a peer, peers that fail.

use kafka_share_tests::java::{JavaProject, available};
use serde_json::Value;
use std::process::{Command, Output};

fn run(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_kshare")).arg("bench").args(args).output().expect("kshare starts")
}

/// Without a command, which consumes.
fn bench(args: &[&str]) -> Output {
    run(&[&["--records", "20000", "--partitions", "3"], args].concat())
}

fn report(output: &Output) -> Value {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// `kshare`'s own client as a peer of another name.
fn own() -> String {
    format!("again={} bench-peer", env!("CARGO_BIN_EXE_kshare"))
}

fn java() -> String {
    let command = JavaProject::build("share").command("share.Bench");
    let words: Vec<_> = command.get_args().map(|word| word.to_string_lossy().into_owned()).collect();
    format!("java=java {}", words.join(" "))
}

fn clients(output: &Output) -> Vec<Value> {
    report(output)["clients"].as_array().expect("clients").clone()
}

#[test]
fn figures_of_one_run_hang_together() {
    let clients = clients(&bench(&["--json", "--peer", &own()]));
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
fn clients_take_turns_in_rounds() {
    let peer = own();
    for command in ["consume", "produce"] {
        let args = [command, "--json", "--records", "2000", "--partitions", "3", "--rounds", "3", "--peer", &peer];
        let output = run(&args);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(errors.contains("round 1 of 3") && errors.contains("round 3 of 3"), "{errors}");
        // A group or topic that were those of the round before would hold nothing to consume, or too much.
        assert!(!errors.contains("twice"), "{errors}");
        let clients = clients(&output);
        assert_eq!(clients.iter().map(|c| c["client"].as_str().unwrap()).collect::<Vec<_>>(), ["kshare", "again"]);
        assert!(clients.iter().all(|client| client["records"] == 2000), "{clients:?}");
    }
    assert_eq!(bench(&["--rounds", "0"]).status.code(), Some(2));
}

#[test]
fn tls_stands_beside_in_the_same_run() {
    for command in ["consume", "produce"] {
        let rows = clients(&run(&[command, "--json", "--records", "20000", "--size", "1024", "--tls"]));
        assert_eq!(rows.iter().map(|c| c["client"].as_str().unwrap()).collect::<Vec<_>>(), ["kshare", "kshare-tls"]);
        assert!(rows.iter().all(|client| client["records"] == 20_000), "{rows:?}");
        if cfg!(target_os = "linux") {
            assert!(rows[1]["records_per_cpu_second_ratio"].as_f64().unwrap() > 0.0, "{rows:?}");
        }
    }
    let output = run(&["--tls", "--bootstrap-server", "localhost:1"]);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(2) && errors.contains("--tls-config"), "{errors}");
}

#[test]
fn java_stands_beside() {
    if !available("java_stands_beside") {
        return;
    }
    let peer = java();
    let consumed = clients(&bench(&["--json", "--peer", &peer]));
    assert_eq!((&consumed[1]["client"], &consumed[1]["records"]), (&"java".into(), &20_000.into()));
    let produced = clients(&run(&["produce", "--json", "--records", "20000", "--peer", &peer]));
    assert_eq!((&produced[1]["client"], &produced[1]["records"]), (&"java".into(), &20_000.into()));
    let args = ["transactions", "--json", "--records-per-transaction", "10", "--transactions", "20", "--peer", &peer];
    let transacted = report(&run(&args));
    assert_eq!(transacted["sizes"][0]["clients"][3]["client"], "java");
    assert_eq!(transacted["sizes"][0]["clients"][3]["records"], 200);
}

#[test]
fn producing_is_counted_in_the_topic() {
    let args = ["produce", "--json", "--records", "20000", "--partitions", "3", "--size", "10", "--peer"];
    let rows = clients(&run(&[&args[..], &[&own()]].concat()));
    assert_eq!(rows.len(), 2);
    for client in &rows {
        assert_eq!(client["records"], 20_000);
        assert!(client["records_per_second"].as_f64().unwrap() > 0.0, "{client}");
    }
    // A peer that says it wrote what it did not. Its command is split at spaces, so that the line has none.
    let output = run(&[&args[..], &[r#"x=printf {"records":20000,"seconds":1}\n"#]].concat());
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(1) && errors.contains("holds 0 of 20000"), "{errors}");
}

#[test]
fn transactions_are_of_the_size_that_was_asked_for() {
    let args = ["transactions", "--json", "--partitions", "3", "--transactions", "20", "--peer"];
    let own = own();
    let report = report(&run(&[&args[..], &[&own, "--records-per-transaction", "1,50"]].concat()));
    let sizes = report["sizes"].as_array().expect("sizes");
    assert_eq!(sizes.iter().map(|s| s["records_per_transaction"].as_u64().unwrap()).collect::<Vec<_>>(), [1, 50]);
    for size in sizes {
        let each = size["records_per_transaction"].as_u64().unwrap();
        let rows = size["clients"].as_array().expect("clients");
        let names: Vec<&str> = rows.iter().map(|c| c["client"].as_str().unwrap()).collect();
        // The embedded broker takes acknowledgements into transactions, and can do with a ledger.
        assert_eq!(names, ["kshare", "kshare-native", "kshare-ledger", "again"]);
        for client in rows {
            let (records, transactions) =
                (client["records"].as_u64().unwrap(), client["transactions"].as_u64().unwrap());
            // A poll may bring less than R, never more.
            assert!(records == each * 20 && transactions >= 20, "{client}");
            assert!(client["transactions_per_second"].as_f64().unwrap() > 0.0, "{client}");
        }
        assert_eq!(rows[0]["transactions_ratio"], 1.0);
    }
    let wrong = run(&["transactions", "--records-per-transaction", "0"]);
    assert_eq!(wrong.status.code(), Some(2));
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
