//! The command line of `kshare broker`: what it says, how it starts and ends, what it refuses.

use crate::process::{Broker, LIMIT, command};
use crate::wire;
use kafka_share_messages::{MetadataRequest, SaslAuthenticateRequest, SaslHandshakeRequest};
use kafka_share_tests::raw::Raw;
use kafka_share_wire::Str;
use kafka_share_wire::records::BatchOptions;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Output};

fn kshare(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_kshare")).arg("broker").args(args).output().expect("kshare starts")
}

/// Expects an end with this code, and these words in one line on standard error.
fn refuses(args: &[&str], code: i32, words: &[&str]) {
    let output = kshare(args);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{args:?}: {text}");
    for word in words {
        assert!(text.contains(word), "{args:?} does not say {word:?}: {text}");
    }
    assert!(output.stdout.is_empty(), "{args:?} said it was ready");
}

fn path(directory: &Path) -> &str {
    directory.to_str().expect("text")
}

#[cfg(unix)]
#[test]
fn signals_end_it_with_exit_code_0_and_all_is_kept() {
    let directory = tempfile::tempdir().expect("folder");
    let mut before = None;
    for signal in ["INT", "TERM"] {
        let mut broker = Broker::start(Some(directory.path()), &["--topic", "in:2", "--topic", "out"]);
        for words in ["for development and tests", "production is Apache Kafka", "data are kept in", "ready;"] {
            assert!(broker.greeting.contains(words), "{}", broker.greeting);
        }
        let topics = wire::topics(&mut Raw::connect(broker.address).unwrap());
        assert_eq!(*before.get_or_insert(topics.clone()), topics);
        let mut raw = Raw::connect(broker.address).unwrap();
        wire::beat(&mut raw, 0);
        wire::beat(&mut raw, -1);
        broker.signal(signal);
        let (status, log) = broker.wait();
        assert_eq!(status.code(), Some(0), "{log}");
        assert_eq!(log.contains("topic created"), signal == "INT", "{log}");
        for words in ["data directory opened", "member joined a share group", "member left a share group"] {
            assert!(log.contains(words), "no {words:?}: {log}");
        }
    }
}

#[test]
fn nodes_and_advertised_names_reach_clients() {
    let broker = Broker::start(None, &["--nodes", "3", "--advertise", "127.0.0.1"]);
    assert!(broker.greeting.contains("everything is in memory"), "{}", broker.greeting);
    assert_eq!(wire::brokers(&mut Raw::connect(broker.address).unwrap()).len(), 3);
    let port = broker.address.port();
    assert!(wire::brokers(&mut Raw::connect(broker.address).unwrap()).contains(&("127.0.0.1".to_owned(), port)));
    // Behind a forwarded port clients are told another one.
    let mut other = command(&["--nodes", "2", "--advertise", "[::1]:7000"]);
    let output = other.env("KSHARE_LOG", "error").stdout(std::process::Stdio::piped()).spawn();
    let mut child = output.expect("kshare starts");
    let mut line = String::new();
    let stdout = child.stdout.take().expect("piped");
    std::io::BufRead::read_line(&mut std::io::BufReader::new(stdout), &mut line).expect("a line");
    child.kill().expect("kill");
    child.wait().expect("wait");
    assert!(line.contains("at ::1:7000,::1:7001, for"), "{line}");
}

#[test]
fn help_has_examples_and_says_what_it_is_for() {
    let output = kshare(&["--help"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(0));
    for words in ["Examples:", "--data-dir ./data", "Production is Apache Kafka", "kill -9", "Exit code 1"] {
        assert!(text.split_whitespace().collect::<Vec<_>>().join(" ").contains(words), "no {words:?}: {text}");
    }
}

#[test]
fn wrong_usage_exits_with_2() {
    refuses(&["--listen", "nowhere"], 2, &["--listen nowhere"]);
    refuses(&["--listen", "127.0.0.1:65535", "--nodes", "2"], 2, &["65535"]);
    refuses(&["--nodes", "0"], 2, &["--nodes"]);
    refuses(&["--topic", "orders:none"], 2, &["partitions"]);
    refuses(&["--topic", ":3"], 2, &["name"]);
    refuses(&["--listen", "127.0.0.1:0", "--topic", "no spaces"], 2, &["no spaces", "Topic name is invalid"]);
    refuses(&["--advertise", "host:0"], 2, &["port"]);
    refuses(&["--advertise", ":9092"], 2, &["host"]);
    refuses(&["--fsync"], 2, &["--data-dir"]);
    refuses(&["--released=maybe"], 2, &["--released"]);
}

#[test]
fn a_port_in_use_is_told_with_exit_code_1() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("port");
    let address = taken.local_addr().expect("address").to_string();
    refuses(&["--listen", &address], 1, &[&format!("cannot listen on {address}"), "another broker", "--listen"]);
}

#[test]
fn directories_that_cannot_be_used_are_told_with_exit_code_1() {
    let directory = tempfile::tempdir().expect("folder");
    let free = ["--listen", "127.0.0.1:0", "--data-dir"];
    let refuse = |path: &str, words: &[&str]| refuses(&[&free[..], &[path]].concat(), 1, words);
    let file = directory.path().join("file");
    std::fs::write(&file, "text").expect("file");
    refuse(path(&file), &["cannot create the data directory"]);
    refuse(path(directory.path()), &["not a data directory of this broker", "\"file\"", "empty"]);
    let kafka = directory.path().join("kafka");
    std::fs::create_dir(&kafka).expect("folder");
    std::fs::write(kafka.join("meta.properties"), "version=1").expect("file");
    refuse(path(&kafka), &["it belongs to Apache Kafka"]);
    let used = directory.path().join("used");
    let mut broker = Broker::start(Some(&used), &[]);
    refuse(path(&used), &["is in use by another broker"]);
    broker.kill();
    std::fs::write(used.join("kafka-share-broker.format"), "kafka-share-broker data directory, format 9\n")
        .expect("file");
    refuse(path(&used), &["has format 9", "up to 1"]);
}

#[test]
fn damaged_records_are_told_with_file_and_byte() {
    let directory = tempfile::tempdir().expect("folder");
    let mut broker = Broker::start(Some(directory.path()), &["--topic", "in", "--topic", "out"]);
    let mut raw = Raw::connect(broker.address).unwrap();
    let topic = wire::topics(&mut raw).1["in"];
    for number in 0..3 {
        let code = wire::produce(&mut raw, (topic, 0), BatchOptions::default(), None, &[number]).unwrap();
        assert!(code.is_ok(), "{code}");
    }
    broker.kill();
    let mut logs = std::fs::read_dir(directory.path().join("logs")).expect("logs");
    let log = logs.next().expect("a log").expect("entry").path();
    let mut bytes = std::fs::read(&log).expect("read");
    let second = bytes.len() / 3;
    bytes[second + 70] ^= 1;
    std::fs::write(&log, bytes).expect("write");
    let place = format!("{} is damaged at byte {second}", log.display());
    let words = [place.as_str(), "partition 0 of topic in", "from a copy"];
    refuses(&["--listen", "127.0.0.1:0", "--data-dir", path(directory.path())], 1, &words);
}

/// The limit on the size of files stands for a full disk: writes beyond it fail.
#[cfg(unix)]
#[test]
fn a_full_disk_ends_the_broker_and_loses_nothing_that_was_acknowledged() {
    let directory = tempfile::tempdir().expect("folder");
    let mut shell = Command::new("sh");
    let script = "trap '' XFSZ; ulimit -f 64; exec \"$@\"";
    let broker = command(&["--topic", "in", "--topic", "out", "--data-dir"]);
    shell.args(["-c", script, "sh"]).arg(broker.get_program()).args(broker.get_args()).arg(directory.path());
    let mut broker = Broker::spawn(shell);
    let mut raw = Raw::connect(broker.address).unwrap();
    let topic = wire::topics(&mut raw).1["in"];
    let mut acknowledged = Vec::new();
    let started = std::time::Instant::now();
    for number in 0.. {
        assert!(started.elapsed() < LIMIT, "the disk is never full");
        match wire::produce(&mut raw, (topic, 0), BatchOptions::default(), None, &[number; 50]) {
            Ok(code) => assert!(code.is_ok(), "{code}"),
            Err(_) => break,
        }
        acknowledged.push(number);
    }
    let (status, log) = broker.wait();
    assert_eq!(status.code(), Some(1), "{log}");
    assert!(log.contains("cannot write to") && log.contains("what was acknowledged before is kept"), "{log}");
    let broker = Broker::start(Some(directory.path()), &[]);
    let mut found = wire::read_committed(&mut Raw::connect(broker.address).unwrap(), topic, 0);
    found.dedup();
    assert!(acknowledged.len() > 10, "only {} batches", acknowledged.len());
    assert_eq!(found, acknowledged);
}

#[test]
fn a_file_of_properties_secures_it() {
    let directory = tempfile::tempdir().expect("folder");
    let file = directory.path().join("server.properties");
    let text = "listeners=PLAINTEXT://127.0.0.1:0,SAFE://127.0.0.1:0
listener.security.protocol.map=SAFE:SASL_PLAINTEXT
sasl.enabled.mechanisms=PLAIN
listener.name.safe.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required user_alice=\"pw\";
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
kshare.acl.1=allow User:alice describe topic:in
log.dirs=/var/lib/kafka
";
    std::fs::write(&file, text).expect("written");
    let mut command = Command::new(env!("CARGO_BIN_EXE_kshare"));
    command.args(["broker", "--topic", "in", "--config", path(&file)]);
    let broker = Broker::spawn(command);
    assert!(broker.greeting.contains("property log.dirs has no effect here"), "{}", broker.greeting);
    let safe = broker.greeting.split("listener SAFE at ").nth(1).and_then(|rest| rest.lines().next());
    let mut raw = Raw::connect(safe.expect("its address").parse().expect("an address")).unwrap();
    let mechanism = Str::from_static("PLAIN");
    let shaken = raw.latest(&SaslHandshakeRequest { mechanism }).unwrap();
    assert!(shaken.error_code.is_ok());
    let auth_bytes = bytes::Bytes::from_static(b"\0alice\0pw");
    let known = raw.latest(&SaslAuthenticateRequest { auth_bytes, ..Default::default() }).unwrap();
    assert!(known.error_code.is_ok());
    let all = MetadataRequest { topics: None, ..Default::default() };
    assert_eq!(raw.latest(&all).unwrap().topics.len(), 1);
    // Nobody else sees it.
    assert!(Raw::connect(broker.address).unwrap().latest(&all).unwrap().topics.is_empty());
    refuses(&["--config", path(&file), "--listen", "127.0.0.1:0"], 2, &["--listen", "--config"]);
    std::fs::write(&file, "listeners=SSL://127.0.0.1:0\n").expect("written");
    refuses(&["--config", path(&file)], 2, &["listener SSL", "certificate"]);
    refuses(&["--config", path(&directory.path().join("none"))], 2, &["none"]);
}
