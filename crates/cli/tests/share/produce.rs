//! `kshare produce`: lines as records, topics that do not exist, errors with their line.

use crate::rig::{Rig, bare};
use serde_json::{Value, json};

fn records(rig: &Rig, topic: &str, count: usize) -> Vec<Value> {
    let lines = rig.consume(topic, "reader", count, &["--format", "json"]);
    lines.iter().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

#[test]
fn every_line_is_a_record_as_it_is() {
    let rig = Rig::with(|builder| builder.topic("orders", 1));
    let written = rig.run_with(&["produce", "orders", "--json"], b"a b\tc\n\n\xff\xfe\nwith \\n and : \r\nno line end");
    assert_eq!(written.json(), json!({ "topic": "orders", "records": 5, "bytes": 33 }));
    let values: Vec<Value> = records(&rig, "orders", 5).into_iter().map(|mut r| r["value"].take()).collect();
    let expected = json!(["a b\tc", "", { "base64": "//4=" }, "with \\n and : \r", "no line end"]);
    assert_eq!(Value::from(values), expected);
    let none = rig.run_with(&["produce", "orders"], b"");
    assert!(none.err.contains("0 records written"), "{}", none.err);
    none.ok();
}

#[test]
fn keys_are_split_off_and_choose_partitions() {
    let rig = Rig::with(|builder| builder.topic("orders", 8));
    let lines: String = (0..40).map(|n| format!("key{}=>value=>{n}\n", n % 4)).collect();
    rig.run_with(&["produce", "orders", "--key-separator", "=>"], lines.as_bytes()).ok();
    let all = records(&rig, "orders", 40);
    for key in ["key0", "key1", "key2", "key3"] {
        let of: Vec<&Value> = all.iter().filter(|r| r["key"] == key).collect();
        assert_eq!(of.len(), 10);
        assert!(of.iter().all(|r| r["partition"] == of[0]["partition"]), "a key belongs to one partition");
    }
    assert!(all.iter().all(|r| r["value"].as_str().is_some_and(|v| v.starts_with("value=>"))));
}

#[test]
fn a_missing_topic_is_created_where_the_broker_allows_it() {
    let rig = Rig::with(|builder| builder);
    rig.produce("fresh", "one\n");
    assert_eq!(rig.consume("fresh", "g", 1, &[]), ["one"]);
    let strict = Rig::with(|builder| builder.auto_create_topics(false));
    let args = ["produce", "fresh", "--property", "default.api.timeout.ms=6000"];
    strict.run_with(&args, b"one\n").fails(1, &["\"fresh\" does not exist", "--partitions N"]);
    strict.run_with(&["produce", "fresh", "--partitions", "3"], b"one\n").ok();
    strict.run_with(&["produce", "fresh", "--partitions", "9"], b"two\n").ok();
    let plan = strict.run(&["groups", "reset", "g", "--to-latest", "--topic", "fresh", "--json"]).json();
    assert_eq!(plan["partitions"].as_array().map(Vec::len), Some(3), "an old topic stays as it is");
}

#[test]
fn errors_name_the_line_and_what_was_written() {
    let rig = Rig::with(|builder| builder.topic("orders", 1));
    let run = rig.run_with(&["produce", "orders", "--key-separator", ":"], b"a:1\nb:2\nc3\nd:4\n");
    run.fails(1, &["after 2 records", "line 3", "\":\" is missing"]);
    let long = [&b"short\n"[..], &[b'x'; 2 << 20], b"\nshort\n"].concat();
    rig.run_with(&["produce", "orders"], &long).fails(1, &["after 1 records", "line 2"]);
    rig.run_with(&["produce", "no spaces"], b"x\n").fails(1, &["no spaces"]);
    rig.run_with(&["produce", "orders", "--property", "acks=0"], b"x\n").fails(2, &["acks=0", "idempotent"]);
    rig.run_with(&["produce", "orders", "--partitions", "0"], b"x\n").fails(2, &["--partitions"]);
    rig.run_with(&["produce", "orders", "--key-separator", ""], b"x\n").fails(2, &["--key-separator"]);
    bare(&["produce"], b"").fails(2, &["<TOPIC>"]);
}

#[cfg(unix)]
#[test]
fn an_interrupted_producer_delivers_what_it_took() {
    use std::io::Write;
    let rig = Rig::with(|builder| builder.topic("orders", 1));
    let mut running = rig.spawn(&["produce", "orders"]);
    let mut input = running.take_input();
    input.write_all(b"one\n").expect("written");
    input.flush().expect("flushed");
    // It is there while the producer waits for more.
    assert_eq!(rig.consume("orders", "g", 1, &[]), ["one"]);
    running.signal("INT");
    running.finish().fails(1, &["after 1 records", "interrupted"]);
    drop(input);
}
