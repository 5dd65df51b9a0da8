//! `kshare pipe`: programs between topics, their deaths and its own.

use crate::rig::{Kshare, LIMIT, Rig, Run};
use kafka_share::net::Cluster;
use kafka_share::{ClientConfig, PartitionReader, Producer, ProducerRecord};
use kafka_share_broker::GroupBounds;
use kafka_share_tests::kafka::RealKafka;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

pub(crate) type Key = Option<Vec<u8>>;
pub(crate) type Headers = Vec<(Vec<u8>, Option<Vec<u8>>)>;
/// A record of the output: key, value, headers.
pub(crate) type Written = (Key, Key, Headers);

fn rig() -> Rig {
    Rig::with(|builder| builder.topic("in", 2).topic("out", 2))
}

/// What is committed in a topic.
pub(crate) async fn committed(servers: &str, topic: &str) -> Vec<Written> {
    let cluster = Cluster::new(ClientConfig::new(servers)).expect("a cluster");
    let mut reader = PartitionReader::read_committed(cluster, topic).await.expect("a reader");
    let bytes = |field: Option<&[u8]>| field.map(<[u8]>::to_vec);
    let mut all = Vec::new();
    for batch in reader.read_to_end().await.expect("records") {
        for record in batch.iter() {
            let headers = record.headers().into_iter().map(|h| (h.key.to_vec(), bytes(h.value))).collect();
            all.push((bytes(record.key()), bytes(record.value()), headers));
        }
    }
    all
}

pub(crate) fn values(written: &[Written]) -> Vec<String> {
    let mut values: Vec<String> = written
        .iter()
        .map(|(_, value, _)| String::from_utf8_lossy(value.as_deref().unwrap_or(b"null")).into_owned())
        .collect();
    values.sort();
    values
}

fn counts(run: Run) -> Value {
    run.json()
}

const BASE: [&str; 9] = ["pipe", "--from", "in", "--to", "out", "--group", "g", "--from-beginning", "--json"];

fn pipe(kshare: &Kshare, options: &[&str], command: &[&str]) -> Run {
    let args = [&BASE[..], options, &["--bootstrap-server", &kshare.servers]].concat();
    let command = if command.is_empty() { vec![] } else { [&["--"], command].concat() };
    crate::rig::bare(&[args, command].concat(), b"")
}

#[test]
fn without_a_program_records_are_copied_whole() {
    for semantics in ["exactly-once", "at-least-once"] {
        let rig = rig();
        rig.runtime.block_on(async {
            let producer = Producer::builder(&rig.servers).build().expect("a producer");
            let record = ProducerRecord::new("in").key(b"\xff").value("two\nlines").header("a", b"1").null_header("b");
            producer.send(record).await.expect("taken").await.expect("written");
            producer.send(ProducerRecord::new("in").key("k")).await.expect("taken").await.expect("written");
        });
        let done = counts(pipe(&rig, &["--count", "2", "--semantics", semantics], &[]));
        assert_eq!((&done["records_in"], &done["records_out"]), (&json!(2), &json!(2)));
        let mut written = rig.runtime.block_on(committed(&rig.servers, "out"));
        written.sort();
        let headers: Headers = vec![(b"a".to_vec(), Some(b"1".to_vec())), (b"b".to_vec(), None)];
        assert_eq!(
            written,
            [(Some(b"k".to_vec()), None, vec![]), (Some(b"\xff".to_vec()), Some(b"two\nlines".to_vec()), headers),]
        );
        rig.lag_becomes("g", 0);
    }
}

#[test]
fn lines_go_through_a_program_that_lives_or_one_for_each_batch() {
    for (options, command) in [
        (&[][..], &["sed", "-u", "s/^/x/"][..]),
        (&["--per-batch", "--tasks", "2"], &["sed", "s/^/x/"]),
        (&["--semantics", "at-least-once", "--tasks", "3"], &["sed", "-u", "s/^/x/"]),
    ] {
        let rig = rig();
        let lines: String = (0..2000).map(|n| format!("{n}\n")).collect();
        rig.produce("in", &lines);
        let done = counts(pipe(&rig, &[options, &["--count", "2000"]].concat(), command));
        assert_eq!((&done["records_in"], &done["failed_batches"]), (&json!(2000), &json!(0)), "{options:?}");
        let mut expected: Vec<String> = (0..2000).map(|n| format!("x{n}")).collect();
        expected.sort();
        assert_eq!(values(&rig.runtime.block_on(committed(&rig.servers, "out"))), expected);
        rig.lag_becomes("g", 0);
    }
}

#[test]
fn json_answers_are_a_record_several_or_none() {
    let rig = rig();
    rig.run_with(&["produce", "in", "--key-separator", ":"], b"a:same\nb:none\nc:two\n").ok();
    let script = r#"while read -r line; do case "$line" in
        *none*) echo null;;
        *two*) echo '[{"key": "c1", "value": {"n": 1}}, {"value": {"base64": "/w=="}, "headers": [{"name": "h", "value": null}]}]';;
        *) printf '%s\n' "$line";;
    esac; done"#;
    let done = counts(pipe(&rig, &["--framing", "json", "--count", "3"], &["sh", "-c", script]));
    assert_eq!((&done["records_in"], &done["records_out"]), (&json!(3), &json!(3)));
    let mut written = rig.runtime.block_on(committed(&rig.servers, "out"));
    written.sort();
    assert_eq!(
        written,
        [
            (None, Some(b"\xff".to_vec()), vec![(b"h".to_vec(), None)]),
            (Some(b"a".to_vec()), Some(b"same".to_vec()), vec![]),
            (Some(b"c1".to_vec()), Some(b"{\"n\":1}".to_vec()), vec![]),
        ]
    );
}

/// A record that the program dies of uses up its own deliveries, and nobody else's.
#[test]
fn a_record_that_the_program_dies_of_takes_no_other_along() {
    let rig = rig();
    let lines: String = (0..50).map(|n| if n == 20 { "poison\n".into() } else { format!("{n}\n") }).collect();
    rig.produce("in", &lines);
    let script = "while read -r line; do [ \"$line\" = poison ] && exit 7; echo \"$line\"; done";
    let done = counts(pipe(&rig, &["--until-idle", "12s"], &["sh", "-c", script]));
    assert_eq!((&done["records_in"], &done["records_out"]), (&json!(49), &json!(49)));
    // The delivery limit of a group is five.
    assert_eq!(done["program_ends"], json!(5));
    let mut expected: Vec<String> = (0..50).filter(|n| *n != 20).map(|n| n.to_string()).collect();
    expected.sort();
    assert_eq!(values(&rig.runtime.block_on(committed(&rig.servers, "out"))), expected);
}

#[test]
fn what_cannot_work_is_told_and_nothing_is_lost() {
    let rig = rig();
    rig.produce("in", "one\n");
    pipe(&rig, &[], &["no-such-program-here"]).fails(1, &["no-such-program-here", "does not start"]);
    let chatty = "while read -r line; do printf '1\\n2\\n'; done";
    pipe(&rig, &[], &["sh", "-c", chatty]).fails(1, &["more lines than it read"]);
    pipe(&rig, &["--framing", "json"], &["sed", "-u", "s/.*/7/"]).fails(1, &["in-", "object"]);
    let same = ["pipe", "--from", "in", "--to", "in", "--group", "g"];
    rig.run(&same).fails(2, &["--to"]);
    rig.run(&["pipe", "--from", "in", "--to", "out", "--group", "g", "--per-batch"]).fails(2, &["COMMAND"]);
    assert!(rig.runtime.block_on(committed(&rig.servers, "out")).is_empty());
    let done = counts(pipe(&rig, &["--count", "1"], &[]));
    assert_eq!(done["records_out"], json!(1));
}

#[test]
fn a_line_end_in_a_value_needs_json() {
    let rig = rig();
    rig.runtime.block_on(async {
        let producer = Producer::builder(&rig.servers).build().expect("a producer");
        producer.send(ProducerRecord::new("in").value("two\nlines")).await.expect("taken").await.expect("written");
    });
    pipe(&rig, &[], &["cat"]).fails(1, &["line end", "--framing json"]);
    counts(pipe(&rig, &["--framing", "json", "--count", "1"], &["cat"]));
    assert_eq!(values(&rig.runtime.block_on(committed(&rig.servers, "out"))), ["two\nlines"]);
}

#[cfg(unix)]
#[test]
fn a_signal_ends_it_in_order() {
    let rig = rig();
    rig.produce("in", "one\ntwo\n");
    let running = rig.spawn(&BASE);
    let end = Instant::now() + LIMIT;
    while rig.runtime.block_on(committed(&rig.servers, "out")).len() < 2 {
        assert!(Instant::now() < end, "nothing comes out");
    }
    running.signal("TERM");
    let done = counts(running.finish());
    assert_eq!((&done["records_in"], &done["task_restarts"]), (&json!(2), &json!(0)));
    rig.lag_becomes("g", 0);
}

/// While the program works on a batch: the batch is done first.
#[cfg(unix)]
#[test]
fn ctrl_c_waits_for_the_batch_under_way() {
    let rig = rig();
    rig.produce("in", "one\ntwo\n");
    let folder = tempfile::tempdir().expect("a folder");
    let mark = |name: &str| folder.path().join(name);
    // It answers once it is told to, so that nothing depends on how long anything takes.
    let script = format!(
        "while read -r line; do : > {}; while [ ! -e {} ]; do sleep 0.05; done; echo \"x$line\"; done",
        mark("begun").display(),
        mark("go").display()
    );
    let running = rig.spawn_with(&BASE, &["sh", "-c", &script]);
    let end = Instant::now() + LIMIT;
    while !mark("begun").exists() {
        assert!(Instant::now() < end, "the program gets nothing");
        std::thread::sleep(Duration::from_millis(10));
    }
    running.signal("INT");
    assert!(rig.runtime.block_on(committed(&rig.servers, "out")).is_empty());
    std::fs::write(mark("go"), "").expect("a file");
    let done = counts(running.finish());
    let out = rig.runtime.block_on(committed(&rig.servers, "out"));
    let values: BTreeSet<_> = out.into_iter().filter_map(|(_, value, _)| value).collect();
    let records_in = done["records_in"].as_u64().expect("a count");
    assert_eq!((values.len() as u64, &done["task_restarts"]), (records_in, &json!(0)), "{values:?}");
    assert!(records_in >= 1, "{done}");
    rig.lag_becomes("g", 2 - values.len() as i64);
}

/// Kills the pipe and its program at random moments; in the end each line is in the output once. A kill costs what it held
/// a delivery: `deliveries` are more than it can come to.
#[cfg(unix)]
fn killed_over_and_over(
    kshare: &Kshare,
    runtime: &tokio::runtime::Runtime,
    deliveries: u32,
    lock: u32,
    time: Duration,
) {
    let lines: usize = 20_000;
    let mut moments = kafka_share_tests::dice::Dice::new(7, 0);
    let input: String = (0..lines).map(|n| format!("{n}\n")).collect();
    kshare.run_with(&["produce", "in", "--partitions", "2"], input.as_bytes()).ok();
    let mut settings = vec!["groups", "config", "g"];
    let deliveries = format!("share.delivery.count.limit={deliveries}");
    let (lock, session) = (format!("share.record.lock.duration.ms={lock}"), format!("share.session.timeout.ms={lock}"));
    for setting in [deliveries.as_str(), lock.as_str(), session.as_str(), "share.heartbeat.interval.ms=500"] {
        settings.extend(["--set", setting]);
    }
    kshare.run(&settings).ok();
    // The program dies by itself as well, at a line that nobody knows before, and leaves a mark.
    let folder = tempfile::tempdir().expect("a folder");
    let marks = folder.path().join("deaths");
    let script = format!(
        "n=$(($(od -An -N2 -tu2 /dev/urandom) % 300)); i=0; while read -r line; do i=$((i+1)); \
         [ $i -gt $n ] && {{ echo >> {}; kill -9 $$; }}; echo \"x$line\"; done",
        marks.display()
    );
    let small = [
        "--property",
        "max.poll.records=20",
        "--property",
        "ledger.auto.create=true",
        "--property",
        "transaction.timeout.ms=3000",
    ];
    let options =
        [&BASE[..], &small, &["--tasks", "2", "--bootstrap-server", &kshare.servers, "--", "sh", "-c", &script]]
            .concat();
    let deaths = || std::fs::read_to_string(&marks).map_or(0, |marks| marks.lines().count());
    let (end, limit, mut kills) = (Instant::now() + time, Instant::now() + LIMIT, 0);
    while Instant::now() < end || deaths() == 0 {
        assert!(Instant::now() < limit, "the program never died");
        let running = crate::rig::start(&options);
        if kills == 0 {
            // The first one lives until it has done something, on however busy a machine.
            while runtime.block_on(committed(&kshare.servers, "out")).is_empty() {
                assert!(Instant::now() < limit, "nothing comes out");
            }
        } else {
            let longer = if deaths() == 0 { 500 * kills } else { 0 };
            std::thread::sleep(Duration::from_millis(300 + moments.below(1500) + longer));
        }
        running.signal("KILL");
        let killed = running.finish();
        assert_eq!(killed.code, None, "it was to be killed: {}", killed.err);
        kills += 1;
    }
    let rest = pipe(kshare, &[&small[..], &["--until-idle", "15s"]].concat(), &["sed", "-u", "s/^/x/"]);
    let done = counts(rest);
    // What was left open is ended by its age; readers wait for that.
    let (mut written, end) = (Vec::new(), Instant::now() + LIMIT);
    while written.len() < lines && Instant::now() < end {
        written = values(&runtime.block_on(committed(&kshare.servers, "out")));
    }
    let mut times = BTreeMap::<String, usize>::new();
    for value in written {
        *times.entry(value).or_default() += 1;
    }
    println!(
        "FIGURE pipe killed {kills} times, its program {}: {} of {lines} lines, last run {done}",
        deaths(),
        times.len()
    );
    assert!(done["records_in"].as_u64() < Some(lines as u64), "those that were killed had done nothing: {done}");
    let missing: Vec<String> = (0..lines).map(|n| format!("x{n}")).filter(|line| !times.contains_key(line)).collect();
    assert!(missing.is_empty(), "{} missing: {missing:?}", missing.len());
    let doubled: Vec<_> = times.iter().filter(|(_, n)| **n > 1).collect();
    assert!(doubled.is_empty(), "{} doubled: {doubled:?}", doubled.len());
}

#[cfg(unix)]
#[test]
fn killed_over_and_over_each_line_is_in_the_output_once() {
    let bounds = GroupBounds {
        record_lock_ms: (1_000, 60_000),
        session_timeout_ms: (1_000, 60_000),
        heartbeat_ms: (100, 15_000),
        delivery_count_limit: (2, 10_000),
        ..GroupBounds::default()
    };
    let rig = Rig::with(|builder| builder.topic("in", 2).topic("out", 2).group_bounds(bounds));
    killed_over_and_over(&rig, &rig.runtime, 10_000, 2_000, Duration::from_secs(15));
}

#[cfg(unix)]
#[test]
fn killed_over_and_over_on_kafka_4_4_0() {
    let limit = ["group.share.max.delivery.count.limit=25"];
    let Some(kafka) = RealKafka::start_with("killed_over_and_over_on_kafka_4_4_0", "4.4.0", &limit) else { return };
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let kshare = Kshare { servers: kafka.bootstrap() };
    kshare.run_with(&["produce", "out", "--partitions", "2"], b"").ok();
    killed_over_and_over(&kshare, &runtime, 25, 5_000, Duration::from_secs(20));
}
