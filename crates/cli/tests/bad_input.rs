//! Bad input to `kshare`: one clear line on standard error, the right exit code, no hang, no panic.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

const LIMIT: Duration = Duration::from_secs(90);

/// Runs `kshare` and checks what holds for every failure.
fn fails(args: &[&str], code: i32, words: &[&str]) -> String {
    let started = Instant::now();
    let output = run(args);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{args:?}: {text}");
    assert!(started.elapsed() < LIMIT, "{args:?} took {:?}", started.elapsed());
    assert!(!text.contains("panicked"), "{args:?}: {text}");
    for word in words {
        assert!(text.contains(word), "{args:?} does not say {word:?}: {text}");
    }
    text
}

fn run(args: &[&str]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_kshare"))
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("kshare starts");
    let end = Instant::now() + LIMIT;
    while child.try_wait().expect("status").is_none() {
        if Instant::now() >= end {
            child.kill().expect("kill");
            panic!("{args:?} hangs");
        }
        std::thread::park_timeout(Duration::from_millis(20));
    }
    child.wait_with_output().expect("output")
}

fn one_line(text: &str) {
    assert_eq!(text.trim_end().lines().count(), 1, "more than one line: {text}");
}

fn file(dir: &Path, name: &str, content: &[u8]) -> String {
    let path = dir.join(name);
    std::fs::write(&path, content).expect("file");
    path.to_string_lossy().into_owned()
}

#[test]
fn inputs_that_cannot_be_used() {
    let dir = tempfile::tempdir().expect("folder");
    let cases = [
        (dir.path().join("none").to_string_lossy().into_owned(), "none"),
        (file(dir.path(), "empty", b""), "empty"),
        (file(dir.path(), "bytes", b"good\n\xff\xfe bad\n"), "line 2"),
        (file(dir.path(), "long", &[b'x'; 1 << 20]), "1048576"),
        (dir.path().to_string_lossy().into_owned(), "directory"),
    ];
    for (path, word) in cases {
        one_line(&fails(&["demo", "--input", &path], 2, &[word]));
    }
}

#[test]
fn wrong_usage_is_exit_code_2() {
    fails(&["demo", "--tasks", "0"], 2, &["--tasks"]);
    fails(&["demo", "--partitions", "many"], 2, &["--partitions"]);
    fails(&["nonsense"], 2, &["nonsense"]);
    one_line(&fails(&["demo", "--bootstrap-server", "no-port"], 2, &["no-port", "host:port"]));
}

#[test]
fn ports_where_no_kafka_answers() {
    // Nobody listens.
    let closed = TcpListener::bind("127.0.0.1:0").expect("port").local_addr().expect("address").to_string();
    // Somebody listens who speaks HTTP.
    let http = TcpListener::bind("127.0.0.1:0").expect("port");
    let address = http.local_addr().expect("address").to_string();
    std::thread::spawn(move || {
        for stream in http.incoming() {
            let Ok(mut stream) = stream else { return };
            let mut some = [0; 64];
            let _ = stream.read(&mut some);
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
        }
    });
    // Both wait for as long as they may.
    std::thread::scope(|scope| {
        for address in [&closed, &address] {
            scope.spawn(move || one_line(&fails(&["demo", "--bootstrap-server", address], 1, &[address])));
        }
    });
}

#[test]
fn a_used_port_is_named() {
    let used = TcpListener::bind("127.0.0.1:0").expect("port");
    let address = used.local_addr().expect("address").to_string();
    one_line(&fails(&["broker", "--listen", &address], 1, &[&address]));
}

#[test]
fn connector_files_that_cannot_be_used() {
    let dir = tempfile::tempdir().expect("folder");
    let worker =
        file(dir.path(), "worker.properties", b"bootstrap.servers=127.0.0.1:1\nconsumer.group.protocol=share\n");
    let no_servers = file(dir.path(), "empty.properties", b"# nothing\n");
    let broken = file(dir.path(), "broken.properties", b"broken\n");
    let good = file(
        dir.path(),
        "good.json",
        br#"{"name":"s","config":{"connector.class":"file","topics":"t","file":"/nowhere/x"}}"#,
    );
    let no_file = file(dir.path(), "nofile.json", br#"{"name":"s","config":{"connector.class":"file","topics":"t"}}"#);
    let class = file(dir.path(), "class.json", br#"{"name":"s","config":{"connector.class":"magic","topics":"t"}}"#);
    let json = file(dir.path(), "json.json", b"{");
    one_line(&fails(&["connect", &no_servers, &good], 2, &["bootstrap.servers"]));
    one_line(&fails(&["connect", &broken, &good], 2, &["broken.properties:1"]));
    one_line(&fails(&["connect", &worker, &json], 2, &["json.json", "JSON"]));
    one_line(&fails(&["connect", &worker, &class], 2, &["magic"]));
    one_line(&fails(&["connect", &worker, &no_file], 2, &["file is missing"]));
}

#[test]
fn an_unwritable_report_is_named() {
    let id = "SHARE-SESSION-01";
    one_line(&fails(
        &["conformance", "--id", id, "--report", "json", "--out", "/nonexistent/report"],
        2,
        &["/nonexistent/report"],
    ));
}
