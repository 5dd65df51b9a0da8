//! `kshare groups`: list, describe, offsets, reset, delete and config.

use crate::rig::{Kshare, Rig};
use serde_json::{Value, json};

/// A group that has read two records of four, in one partition.
fn half_done() -> Rig {
    let rig = Rig::with(|builder| builder.nodes(3).topic("orders", 1));
    rig.produce("orders", "1\n2\n3\n4\n");
    assert_eq!(rig.consume("orders", "billing", 2, &[]), ["1", "2"]);
    rig
}

fn starts(value: &Value) -> Vec<i64> {
    let partitions = value["partitions"].as_array().expect("partitions");
    partitions.iter().map(|p| p["start_offset"].as_i64().expect("offset")).collect()
}

#[test]
fn list_by_type_and_state() {
    let rig = half_done();
    let table = rig.run(&["groups", "list"]).ok();
    assert_eq!(table.split_whitespace().collect::<Vec<_>>(), ["GROUP", "TYPE", "STATE", "billing", "share", "Empty"]);
    let expected = json!([{ "group": "billing", "type": "share", "state": "Empty" }]);
    assert_eq!(rig.run(&["groups", "list", "--json"]).json(), expected);
    assert_eq!(rig.run(&["groups", "list", "--json", "--type", "all", "--state", "Empty"]).json(), expected);
    assert_eq!(rig.run(&["groups", "list", "--json", "--state", "Stable"]).json(), json!([]));
    assert_eq!(rig.run(&["groups", "list", "--json", "--type", "consumer"]).json(), json!([]));
    rig.run(&["groups", "list", "--type", "odd"]).fails(2, &["odd"]);
}

#[test]
fn describe_tells_members_assignment_and_lag() {
    let rig = half_done();
    let args = ["consume", "orders", "--group", "billing", "--property", "client.id=till", "--property"];
    let mut member = rig.spawn(&[&args[..], &["client.rack=r1"]].concat());
    assert_eq!((member.line(), member.line()), ("3".into(), "4".into()));
    let group = rig.run(&["groups", "describe", "billing", "--json"]).json();
    assert_eq!((&group["group"], &group["state"]), (&json!("billing"), &json!("Stable")));
    assert_eq!(group["partitions"][0]["topic"], "orders");
    assert!(group["partitions"][0]["lag"].is_i64(), "{group}");
    assert_eq!(group["epoch"], group["assignment_epoch"]);
    let one = &group["members"][0];
    assert_eq!((&one["client_id"], &one["rack"]), (&json!("till"), &json!("r1")));
    assert_eq!(one["assignment"], json!([{ "topic": "orders", "partitions": [0] }]));
    assert_eq!(one["subscription"], json!(["orders"]));
    assert!(rig.servers.contains(&format!(":{}", group["coordinator"]["port"])), "{group}");
    let text = rig.run(&["groups", "describe", "billing"]).ok();
    for word in ["START-OFFSET", "LAG", "COORDINATOR", "orders:0", "till", "Stable"] {
        assert!(text.contains(word), "{text}");
    }
    // What is in use is not changed.
    let reset = rig.run(&["groups", "reset", "billing", "--to-earliest"]);
    reset.fails(1, &["has 1 member: stop them first", "NON_EMPTY_GROUP"]);
    rig.run(&["groups", "delete", "billing"]).fails(1, &["NON_EMPTY_GROUP"]);
    rig.run(&["groups", "offsets", "billing", "--topic", "orders", "--delete"]).fails(1, &["stop them first"]);
    #[cfg(unix)]
    member.signal("INT");
    #[cfg(unix)]
    member.finish().ok();
    rig.run(&["groups", "describe", "nobody"]).fails(1, &["nobody", "GROUP_ID_NOT_FOUND"]);
}

#[test]
fn offsets_are_shown_reset_and_forgotten() {
    let rig = half_done();
    let at = rig.run(&["groups", "offsets", "billing", "--json"]).json();
    assert_eq!((&at[0]["start_offset"], &at[0]["lag"]), (&json!(2), &json!(2)));
    let table = rig.run(&["groups", "offsets", "billing", "--topic", "orders"]).ok();
    let words: Vec<&str> = table.split_whitespace().collect();
    assert_eq!(words, ["TOPIC", "PARTITION", "START-OFFSET", "LAG", "orders", "0", "2", "2"]);
    rig.run(&["groups", "offsets", "billing", "--topic", "other"]).fails(1, &["other"]);
    let reset = |args: &[&str]| rig.run(&[&["groups", "reset", "billing", "--json"], args].concat());
    assert_eq!(starts(&reset(&["--to-earliest", "--dry-run"]).json()), [0]);
    assert_eq!(rig.lag("billing"), 2, "a dry run changes nothing");
    assert_eq!(starts(&reset(&["--to-latest"]).json()), [4]);
    rig.lag_becomes("billing", 0);
    assert_eq!(starts(&reset(&["--to-offset", "3"]).json()), [3]);
    assert_eq!(starts(&reset(&["--to-timestamp", "2020-01-01T00:00:00Z"]).json()), [0]);
    assert_eq!(starts(&reset(&["--to-timestamp", "9999-01-01"]).json()), [4], "nothing is that new");
    reset(&["--to-offset", "5"]).fails(1, &["orders-0 has offsets 0 to 4"]);
    reset(&["--to-earliest", "--topic", "none"]).fails(1, &["\"none\"", "UNKNOWN_TOPIC_OR_PARTITION"]);
    reset(&["--to-timestamp", "soon"]).fails(2, &["soon", "2026-11-29T10:30:00Z"]);
    reset(&["--to-earliest", "--to-latest"]).fails(2, &["--to-latest"]);
    reset(&[]).fails(2, &["--to-earliest"]);
    assert_eq!(starts(&reset(&["--to-earliest", "--topic", "orders"]).json()), [0]);
    assert_eq!(rig.consume("orders", "billing", 4, &[]).len(), 4, "they come again");
    rig.run(&["groups", "offsets", "billing", "--topic", "orders", "--delete"]).ok();
    assert_eq!(rig.run(&["groups", "offsets", "billing", "--json"]).json(), json!([]));
    reset(&["--to-earliest"]).fails(1, &["has read no topic"]);
}

#[test]
fn deletion_tells_each_group() {
    let rig = half_done();
    rig.run(&["groups", "delete", "nobody"]).fails(1, &["nobody", "GROUP_ID_NOT_FOUND"]);
    let both = rig.run(&["groups", "delete", "billing", "nobody", "--json"]);
    assert_eq!(both.code, Some(1));
    let json: Value = serde_json::from_str(&both.out).expect("JSON");
    assert_eq!(json[0], json!({ "group": "billing", "deleted": true, "error": null }));
    assert_eq!((&json[1]["group"], &json[1]["deleted"]), (&json!("nobody"), &json!(false)));
    assert_eq!(rig.run(&["groups", "list", "--json"]).json(), json!([]));
}

fn config(rig: &Kshare, args: &[&str]) -> Value {
    rig.run(&[&["groups", "config", "billing", "--json"], args].concat()).json()
}

#[test]
fn settings_are_shown_changed_and_taken_back() {
    let rig = Rig::with(|builder| builder.nodes(3));
    let before = config(&rig, &[]);
    assert_eq!(before["share.record.lock.duration.ms"], json!({ "value": "30000", "default": true }));
    assert!(before.as_object().is_some_and(|all| all.keys().all(|name| !name.starts_with("consumer."))));
    let set = ["--set", "share.record.lock.duration.ms=20000", "--set", "share.auto.offset.reset=by_duration:PT1H"];
    let after = config(&rig, &set);
    assert_eq!(after["share.record.lock.duration.ms"], json!({ "value": "20000", "default": false }));
    assert_eq!(after["share.auto.offset.reset"]["value"], "by_duration:PT1H");
    let back = config(&rig, &["--unset", "share.record.lock.duration.ms"]);
    assert_eq!(back["share.record.lock.duration.ms"], before["share.record.lock.duration.ms"]);
    assert_eq!(back["share.auto.offset.reset"]["default"], json!(false));
    let refused = |args: &[&str], code, words: &[&str]| {
        rig.run(&[&["groups", "config", "billing"], args].concat()).fails(code, words);
    };
    refused(&["--set", "share.record.lock.duration.ms=soon"], 2, &["soon", "a number of milliseconds"]);
    refused(&["--set", "share.record.lock.duration.ms=1000"], 1, &["INVALID_CONFIG", "15000 to 60000"]);
    refused(&["--set", "share.unknown=1"], 1, &["INVALID_CONFIG", "share.unknown"]);
    refused(&["--set", "share.unknown"], 2, &["NAME=VALUE"]);
    refused(&["--set", "a=1", "--unset", "a"], 2, &["a stands in --set and in --unset"]);
    let text = rig.run(&["groups", "config", "billing"]).ok();
    assert!(text.contains("share.auto.offset.reset") && text.contains("by_duration:PT1H"), "{text}");
}
