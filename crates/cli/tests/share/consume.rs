//! `kshare consume`: what is printed, what is accepted, how it ends.

use crate::rig::Rig;
use kafka_share::admin::NewTopic;
use kafka_share::{Admin, ClientConfig, Producer, ProducerRecord};
use kafka_share_broker::{Fault, FaultAction};
use kafka_share_messages::{ApiKey, ErrorCode};
use serde_json::{Value, json};

#[test]
fn values_in_both_modes_and_nothing_twice() {
    let rig = Rig::new();
    rig.produce("orders", "one\ntwo\nthree\nfour\n");
    let mut first = rig.consume("orders", "g", 2, &[]);
    let second = rig.consume("orders", "g", 2, &["--ack-mode", "explicit"]);
    first.extend(second);
    first.sort();
    assert_eq!(first, ["four", "one", "three", "two"]);
    rig.lag_becomes("g", 0);
    let none = rig.run(&["consume", "orders", "--group", "g", "--timeout", "1s"]);
    assert_eq!(none.ok(), "");
}

#[test]
fn a_count_accepts_no_record_beyond_it() {
    let rig = Rig::with(|builder| builder.topic("orders", 1));
    let lines: String = (0..100).map(|n| format!("{n}\n")).collect();
    rig.produce("orders", &lines);
    let first = rig.consume("orders", "g", 3, &[]);
    assert_eq!(first, ["0", "1", "2"]);
    rig.lag_becomes("g", 97);
    let rest = rig.consume("orders", "g", 97, &[]);
    assert_eq!(rest, (3..100).map(|n| n.to_string()).collect::<Vec<_>>());
    rig.lag_becomes("g", 0);
}

#[test]
fn json_loses_nothing() {
    let rig = Rig::with(|builder| builder.topic("orders", 1));
    rig.runtime.block_on(async {
        let producer = Producer::builder(&rig.servers).build().expect("a producer");
        let record = ProducerRecord::new("orders").timestamp(1_700_000_000_123);
        let record =
            record.key(b"\xff\x00").value("two\nlines").header("a", b"1").header("a", b"\xfe").null_header("b");
        producer.send(record).await.expect("taken").await.expect("written");
        producer.send(ProducerRecord::new("orders").value(b"")).await.expect("taken").await.expect("written");
        producer.send(ProducerRecord::new("orders").key("k")).await.expect("taken").await.expect("written");
    });
    let parse = |line: &String| serde_json::from_str::<Value>(line).expect("JSON");
    let records: Vec<Value> = rig.consume("orders", "g", 3, &["--format", "json"]).iter().map(parse).collect();
    let names: Vec<&String> = records[0].as_object().expect("object").keys().collect();
    let expected = ["topic", "partition", "offset", "timestamp", "key", "value", "headers", "delivery_count"];
    assert_eq!(names, expected);
    assert_eq!(records[0]["key"], json!({ "base64": "/wA=" }));
    assert_eq!(records[0]["value"], json!("two\nlines"));
    assert_eq!(records[0]["timestamp"], json!(1_700_000_000_123_i64));
    let headers = json!([
        { "name": "a", "value": "1" },
        { "name": "a", "value": { "base64": "/g==" } },
        { "name": "b", "value": null },
    ]);
    assert_eq!(records[0]["headers"], headers);
    assert_eq!((&records[1]["key"], &records[1]["value"]), (&Value::Null, &json!("")));
    assert_eq!((&records[2]["key"], &records[2]["value"]), (&json!("k"), &Value::Null));
    for (offset, record) in records.iter().enumerate() {
        let place = (&record["topic"], &record["partition"], &record["offset"], &record["delivery_count"]);
        assert_eq!(place, (&json!("orders"), &json!(0), &json!(offset), &json!(1)));
    }
    // The same records as lines of values.
    let values = rig.consume("orders", "other", 3, &[]);
    assert_eq!(values, ["base64:dHdvCmxpbmVz", "", "null"]);
}

#[test]
fn a_count_that_is_not_reached_is_exit_code_1() {
    let rig = Rig::new();
    rig.produce("orders", "one\n");
    let args = ["consume", "orders", "--group", "g", "--from-beginning", "--count", "2", "--timeout", "15s"];
    let run = rig.run(&args);
    run.fails(1, &["1 of 2 records came within --timeout"]);
    assert_eq!(run.out, "one\n");
    // What was printed is accepted all the same.
    rig.lag_becomes("g", 0);
}

#[cfg(unix)]
#[test]
fn signals_end_it_and_what_was_printed_is_accepted() {
    let rig = Rig::with(|builder| builder.topic("orders", 1));
    for (signal, code, more) in [("INT", 0, &[][..]), ("TERM", 0, &[]), ("INT", 1, &["--count", "5"])] {
        rig.produce("orders", "record\n");
        let args = ["consume", "orders", "--group", "g", "--from-beginning"];
        let mut running = rig.spawn(&[&args[..], more].concat());
        assert_eq!(running.line(), "record");
        running.signal(signal);
        let run = running.finish();
        assert_eq!((run.code, run.out.as_str()), (Some(code), ""), "{}", run.err);
        assert_eq!(run.err.contains("interrupted after 1 of 5 records"), code == 1, "{}", run.err);
        rig.lag_becomes("g", 0);
        let group = rig.run(&["groups", "describe", "g", "--json"]).json();
        assert_eq!(group["members"], json!([]), "the group was left");
    }
}

#[test]
fn a_reader_that_goes_away_ends_it_quietly() {
    let rig = Rig::with(|builder| builder.topic("orders", 1));
    rig.produce("orders", "one\n");
    let mut running = rig.spawn(&["consume", "orders", "--group", "g", "--from-beginning"]);
    assert_eq!(running.line(), "one");
    let gone = running.hang_up();
    rig.produce("orders", "two\n");
    let (status, err) = gone.wait();
    assert_eq!((status.code(), err.as_str()), (Some(0), ""));
    assert_eq!(rig.consume("orders", "g", 1, &[]), ["two"], "a record that could not be printed is not accepted");
    let head = rig.spawn(&["groups", "list"]).hang_up();
    let (status, err) = head.wait();
    assert_eq!((status.code(), err.as_str()), (Some(0), ""));
}

#[test]
fn a_topic_that_does_not_exist_yet_is_waited_for_and_told() {
    let rig = Rig::with(|builder| builder.auto_create_topics(false));
    let args = ["consume", "later", "--group", "g", "--from-beginning", "--count", "1", "--timeout", "50s"];
    let running = rig.spawn(&args);
    rig.runtime.block_on(async {
        let admin = Admin::new(ClientConfig::new(&rig.servers)).expect("admin");
        // Only once it is a member: it shall not find the topic at its start.
        while !admin.describe_share_group("g").await.is_ok_and(|g| !g.members.is_empty()) {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        admin.create_topic(NewTopic::new("later", 1)).await.expect("created");
    });
    rig.produce("later", "here\n");
    let run = running.finish();
    assert!(run.err.contains("topic \"later\" does not exist yet; waiting for it"), "{}", run.err);
    assert_eq!(run.ok(), "here\n");
}

#[test]
fn acceptance_that_fails_is_exit_code_1() {
    let rig = Rig::with(|builder| builder.topic("orders", 1));
    rig.produce("orders", "one\n");
    let refuse = Fault::new(FaultAction::Error(ErrorCode::INVALID_RECORD_STATE)).key(ApiKey::SHARE_ACKNOWLEDGE);
    rig.broker.fault(refuse);
    let run = rig.run(&["consume", "orders", "--group", "g", "--from-beginning", "--count", "1", "--timeout", "50s"]);
    assert_eq!(run.out, "one\n");
    run.fails(1, &["1 of 1 printed records could not be accepted", "come again"]);
}

#[test]
fn properties_come_from_a_file_under_javas_names() {
    let rig = Rig::new();
    rig.produce("orders", "one\n");
    let dir = tempfile::tempdir().expect("folder");
    let path = dir.path().join("client.properties");
    let text = format!(
        "# a client\nbootstrap.servers={}\ngroup.id=g\nshare.acknowledgement.mode=explicit\nclient.id=me\n",
        rig.servers
    );
    std::fs::write(&path, text).expect("file");
    let path = path.to_string_lossy();
    let args = ["consume", "orders", "--config", &path, "--from-beginning", "--count", "1", "--timeout", "50s"];
    assert_eq!(crate::rig::bare(&args, b"").ok(), "one\n");
    rig.lag_becomes("g", 0);
    crate::rig::bare(&[&args[..], &["--property", "auto.offset.reset=earliest"]].concat(), b"")
        .fails(2, &["auto.offset.reset cannot be set on a share consumer"]);
    let produced = crate::rig::bare(&["produce", "orders", "--config", &path], b"two\n");
    produced.ok();
}
