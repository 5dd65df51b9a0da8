//! A broker, and `kshare` run against it.

use kafka_share_broker::{BrokerBuilder, EmbeddedBroker};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;

/// How long anything may take.
pub(crate) const LIMIT: Duration = Duration::from_secs(60);

/// An embedded broker with the topic `orders` of two partitions.
pub(crate) struct Rig {
    pub(crate) runtime: Runtime,
    pub(crate) broker: EmbeddedBroker,
    pub(crate) kshare: Kshare,
}

impl Rig {
    pub(crate) fn new() -> Rig {
        Rig::with(|builder| builder.nodes(2).topic("orders", 2))
    }

    pub(crate) fn with(build: impl FnOnce(BrokerBuilder) -> BrokerBuilder) -> Rig {
        let runtime = Runtime::new().expect("a runtime");
        let broker = runtime.block_on(build(EmbeddedBroker::builder()).start()).expect("a broker");
        let kshare = Kshare { servers: broker.bootstrap_servers() };
        Rig { runtime, broker, kshare }
    }
}

impl std::ops::Deref for Rig {
    type Target = Kshare;

    fn deref(&self) -> &Kshare {
        &self.kshare
    }
}

/// `kshare` with a cluster to talk to.
#[derive(Debug, Clone)]
pub(crate) struct Kshare {
    pub(crate) servers: String,
}

/// What a run came to.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Run {
    /// Expects success; gives what was printed.
    #[track_caller]
    pub(crate) fn ok(self) -> String {
        assert_eq!(self.code, Some(0), "{}{}", self.out, self.err);
        self.out
    }

    /// Expects success; gives the lines that were printed.
    #[track_caller]
    pub(crate) fn lines(self) -> Vec<String> {
        self.ok().lines().map(str::to_owned).collect()
    }

    /// Expects success; gives the JSON that was printed.
    #[track_caller]
    pub(crate) fn json(self) -> Value {
        let out = self.ok();
        serde_json::from_str(&out).unwrap_or_else(|e| panic!("{e}: {out}"))
    }

    /// Expects failure with one line that holds these words.
    #[track_caller]
    pub(crate) fn fails(&self, code: i32, words: &[&str]) {
        assert_eq!(self.code, Some(code), "{}{}", self.out, self.err);
        assert!(!self.err.contains("panicked"), "{}", self.err);
        // Wrong usage is told in several lines, with a hint.
        assert!(code == 2 || self.err.trim_end().lines().count() == 1, "more than a line: {}", self.err);
        for word in words {
            assert!(self.err.contains(word), "it does not say {word:?}: {}", self.err);
        }
    }
}

/// Starts `kshare` without a word about the cluster.
pub(crate) fn start(args: &[&str]) -> Running {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kshare"));
    command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    Running::new(command.spawn().expect("kshare starts"))
}

/// `kshare` without a word about the cluster.
pub(crate) fn bare(args: &[&str], input: &[u8]) -> Run {
    let mut running = start(args);
    let mut stdin = running.take_input();
    let input = input.to_owned();
    let writer = std::thread::spawn(move || drop(stdin.write_all(&input)));
    let mut out = String::new();
    running.out.read_to_string(&mut out).expect("text");
    let (status, err) = running.wait();
    writer.join().expect("written");
    Run { code: status.code(), out, err }
}

impl Kshare {
    /// Runs to the end, with nothing on standard input.
    pub(crate) fn run(&self, args: &[&str]) -> Run {
        self.run_with(args, b"")
    }

    /// Runs to the end.
    pub(crate) fn run_with(&self, args: &[&str], input: &[u8]) -> Run {
        bare(&[args, &["--bootstrap-server", &self.servers]].concat(), input)
    }

    /// Starts it.
    pub(crate) fn spawn(&self, args: &[&str]) -> Running {
        start(&[args, &["--bootstrap-server", &self.servers]].concat())
    }

    /// With a program behind `--`.
    pub(crate) fn spawn_with(&self, args: &[&str], program: &[&str]) -> Running {
        start(&[args, &["--bootstrap-server", &self.servers, "--"], program].concat())
    }

    pub(crate) fn produce(&self, topic: &str, lines: &str) {
        self.run_with(&["produce", topic], lines.as_bytes()).ok();
    }

    /// Exactly `count` records of a new or old group.
    pub(crate) fn consume(&self, topic: &str, group: &str, count: usize, more: &[&str]) -> Vec<String> {
        let count = count.to_string();
        let args = ["consume", topic, "--group", group, "--count", &count, "--timeout", "50s", "--from-beginning"];
        self.run(&[&args[..], more].concat()).lines()
    }

    /// Sum of the lags of a group's partitions; one that the group has written nothing of has none.
    pub(crate) fn lag(&self, group: &str) -> i64 {
        let json = self.run(&["groups", "describe", group, "--json"]).json();
        let partitions = json["partitions"].as_array().expect("partitions");
        partitions.iter().filter_map(|p| p["lag"].as_i64()).sum()
    }

    /// Waits until the lag is this: start offsets trail the acknowledgements.
    #[track_caller]
    pub(crate) fn lag_becomes(&self, group: &str, expected: i64) {
        let end = Instant::now() + LIMIT;
        while self.lag(group) != expected {
            assert!(Instant::now() < end, "the lag stays {}, not {expected}", self.lag(group));
        }
    }
}

/// A `kshare` that runs.
pub(crate) struct Running {
    child: Child,
    out: BufReader<ChildStdout>,
    err: Option<std::thread::JoinHandle<String>>,
}

impl Running {
    fn new(mut child: Child) -> Self {
        let out = BufReader::new(child.stdout.take().expect("piped"));
        let mut pipe = child.stderr.take().expect("piped");
        let err = std::thread::spawn(move || {
            let mut text = String::new();
            let _ = pipe.read_to_string(&mut text);
            text
        });
        Running { child, out, err: Some(err) }
    }

    /// The next line that it prints.
    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        self.out.read_line(&mut line).expect("text");
        line.trim_end().to_owned()
    }

    /// Its standard input.
    pub(crate) fn take_input(&mut self) -> std::process::ChildStdin {
        self.child.stdin.take().expect("piped")
    }

    /// Goes away as a reader, and waits for the end.
    pub(crate) fn hang_up(self) -> HungUp {
        let Running { child, out, err } = self;
        drop(out);
        HungUp { child, err }
    }

    #[cfg(unix)]
    pub(crate) fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([&format!("-{name}"), &self.child.id().to_string()]).status();
        assert!(sent.expect("kill").success());
    }

    /// All that it prints until its end.
    pub(crate) fn finish(mut self) -> Run {
        let mut out = String::new();
        self.out.read_to_string(&mut out).expect("text");
        let (status, err) = self.wait();
        Run { code: status.code(), out, err }
    }

    fn wait(&mut self) -> (ExitStatus, String) {
        wait(&mut self.child, &mut self.err)
    }
}

/// A `kshare` whose output nobody reads.
pub(crate) struct HungUp {
    child: Child,
    err: Option<std::thread::JoinHandle<String>>,
}

impl HungUp {
    pub(crate) fn wait(mut self) -> (ExitStatus, String) {
        wait(&mut self.child, &mut self.err)
    }
}

fn wait(child: &mut Child, err: &mut Option<std::thread::JoinHandle<String>>) -> (ExitStatus, String) {
    let end = Instant::now() + LIMIT;
    loop {
        if let Some(status) = child.try_wait().expect("status") {
            return (status, err.take().and_then(|err| err.join().ok()).unwrap_or_default());
        }
        if Instant::now() >= end {
            let _ = child.kill();
            panic!("kshare does not end");
        }
        std::thread::park_timeout(Duration::from_millis(5));
    }
}
