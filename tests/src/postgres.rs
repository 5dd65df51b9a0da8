//! A PostgreSQL for tests, started by `postgres-up` of the two-phase example on loopback and ended with the test.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::process::{Child, ChildStdout, Command, Stdio};

use crate::java;

/// A PostgreSQL of its own; it ends when this is dropped, or the test in whatever way.
#[derive(Debug)]
pub struct Postgres {
    port: u16,
    up: Child,
    lines: BufReader<ChildStdout>,
}

impl Postgres {
    /// Starts one. `None`: it is not installed, and `test` is reported as skipped.
    ///
    /// # Panics
    /// If it does not come up.
    #[must_use]
    pub fn start(test: &str) -> Option<Self> {
        let port =
            TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port").local_addr().expect("an address").port();
        let script = java::crate_dir().join("../examples/two-phase-postgres/postgres-up");
        let mut command = Command::new("bash");
        command.arg(script).arg(port.to_string()).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut up = command.spawn().expect("bash");
        let lines = BufReader::new(up.stdout.take().expect("a pipe"));
        let mut errors = up.stderr.take().expect("a pipe");
        let mut postgres = Postgres { port, up, lines };
        if postgres.line() == "ready" {
            return Some(postgres);
        }
        let mut why = String::new();
        errors.read_to_string(&mut why).expect("what it says");
        assert!(why.contains("is not installed"), "PostgreSQL did not start: {why}");
        assert!(
            std::env::var_os(java::REQUIRE_JAVA).is_none_or(|v| v != "1"),
            "{test} needs PostgreSQL, and {} forbids to skip it: {why}",
            java::REQUIRE_JAVA
        );
        // Written past the test harness, which hides the output of passing tests.
        writeln!(std::io::stderr(), "SKIPPED: {test} ({})", why.trim()).ok();
        None
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.lines.read_line(&mut line).expect("a line");
        line.trim().to_owned()
    }

    fn order(&mut self, order: &str, answer: &str) {
        let input = self.up.stdin.as_mut().expect("a pipe");
        writeln!(input, "{order}").expect("an order");
        assert_eq!(self.line(), answer, "PostgreSQL did not {order}");
    }

    /// Stops the server at once, as if the power were out; its data stays.
    ///
    /// # Panics
    /// If it does not stop.
    pub fn crash(&mut self) {
        self.order("crash", "crashed");
    }

    /// Starts it again after a crash.
    ///
    /// # Panics
    /// If it does not come up.
    pub fn start_again(&mut self) {
        self.order("start", "ready");
    }

    /// For a superuser, without a password, as keys and values.
    #[must_use]
    pub fn connection(&self) -> String {
        format!("host=127.0.0.1 port={} user=example dbname=postgres", self.port)
    }

    /// The same as a URL.
    #[must_use]
    pub fn url(&self) -> String {
        format!("postgres://example@127.0.0.1:{}/postgres", self.port)
    }

    /// Its port.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        drop(self.up.stdin.take());
        self.up.wait().ok();
    }
}
