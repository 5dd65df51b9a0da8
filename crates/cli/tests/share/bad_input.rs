//! What holds for all three commands: help with examples, clusters that are missing or do not answer, wrong usage.

use crate::rig::bare;
use std::net::TcpListener;

const COMMANDS: &[&[&str]] = &[
    &["produce", "t"],
    &["consume", "t", "--group", "g"],
    &["groups", "list"],
    &["groups", "describe", "g"],
    &["groups", "offsets", "g"],
    &["groups", "reset", "g", "--to-latest"],
    &["groups", "delete", "g"],
    &["groups", "config", "g"],
];

#[test]
fn help_has_examples() {
    for command in COMMANDS {
        let text = bare(&[command, &["--help"][..]].concat(), b"").ok();
        for words in ["Examples:", "--bootstrap-server", "--config", "--json"] {
            assert!(text.contains(words), "{command:?} says nothing of {words}: {text}");
        }
    }
    let text = bare(&["consume", "--help"], b"").ok();
    for words in ["base64", "accepted only after its line is written", "Exit code 1", "delivery_count"] {
        assert!(text.contains(words), "{text}");
    }
}

#[test]
fn a_cluster_must_be_named_and_answer() {
    let closed = TcpListener::bind("127.0.0.1:0").expect("port").local_addr().expect("address").to_string();
    std::thread::scope(|scope| {
        for command in COMMANDS {
            let closed = &closed;
            scope.spawn(move || {
                bare(command, b"").fails(2, &["no cluster is named", "--bootstrap-server"]);
                bare(&[command, &["--bootstrap-server", "nowhere"][..]].concat(), b"").fails(2, &["nowhere"]);
                bare(&[command, &["--config", "/nonexistent/file"][..]].concat(), b"").fails(2, &["/nonexistent/file"]);
                let args = ["--bootstrap-server", closed, "--property", "default.api.timeout.ms=1000"];
                bare(&[command, &args[..]].concat(), b"").fails(1, &[closed]);
            });
        }
    });
}

#[test]
fn wrong_usage_is_exit_code_2() {
    let at = ["--bootstrap-server", "127.0.0.1:1"];
    for (args, word) in [
        (&["consume"][..], "TOPIC"),
        (&["consume", "t"], "--group"),
        (&["consume", "t", "--group", ""], "--group"),
        (&["consume", "t", "--group", "g", "--count", "0"], "--count"),
        (&["consume", "t", "--group", "g", "--count", "many"], "--count"),
        (&["consume", "t", "--group", "g", "--timeout", "10"], "10s"),
        (&["consume", "t", "--group", "g", "--timeout", "0s"], "more than 0"),
        (&["consume", "t", "--group", "g", "--ack-mode", "maybe"], "maybe"),
        (&["consume", "t", "--group", "g", "--format", "xml"], "xml"),
        (&["consume", "t", "--group", "g", "--property", "max.poll.records=none"], "max.poll.records=none"),
        (&["consume", "t", "--group", "g", "--property", "nothing"], "NAME=VALUE"),
        (&["consume", "t", "--group", "g", "--property", "security.protocol=TLS"], "security.protocol=TLS"),
        (&["groups", "drop"], "drop"),
        (&["groups", "delete"], "GROUPS"),
        (&["groups", "offsets", "g", "--delete"], "--topic"),
        (&["groups", "reset", "g", "--to-offset", "-1"], "-1"),
    ] {
        bare(&[args, &at[..]].concat(), b"").fails(2, &[word]);
    }
    bare(&["groups"], b"").fails(2, &["describe", "reset"]);
}
