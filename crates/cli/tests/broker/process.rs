//! A `kshare broker` process for tests.

use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long anything may take.
pub(crate) const LIMIT: Duration = Duration::from_secs(60);

/// A running broker; killed when dropped.
#[derive(Debug)]
pub(crate) struct Broker {
    child: Child,
    errors: Option<JoinHandle<String>>,
    /// Of the first node.
    pub(crate) address: SocketAddr,
    /// What it said until it was ready.
    pub(crate) greeting: String,
}

/// The command line of a broker on a free port.
pub(crate) fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kshare"));
    command.args(["broker", "--listen", "127.0.0.1:0"]).args(args);
    command
}

impl Broker {
    /// Starts a broker on a free port, with its data in `directory`, and waits until it is ready.
    pub(crate) fn start(directory: Option<&Path>, args: &[&str]) -> Broker {
        let mut command = command(args);
        if let Some(directory) = directory {
            command.arg("--data-dir").arg(directory);
        }
        Broker::spawn(command)
    }

    pub(crate) fn spawn(mut command: Command) -> Broker {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("kshare starts");
        let (sender, lines) = mpsc::channel();
        let stdout = child.stdout.take().expect("piped");
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        let mut stderr = child.stderr.take().expect("piped");
        let errors = std::thread::spawn(move || {
            let mut text = String::new();
            let _ = stderr.read_to_string(&mut text);
            text
        });
        let mut greeting = String::new();
        while !greeting.contains("ready;") {
            match lines.recv_timeout(LIMIT) {
                Ok(line) => greeting = greeting + &line + "\n",
                Err(_) => {
                    let _ = child.kill();
                    panic!("no broker: {greeting}{}", errors.join().unwrap_or_default());
                }
            }
        }
        let address = greeting.split("embedded broker at ").nth(1).and_then(|rest| rest.split(',').next());
        let address = address.and_then(|text| text.parse().ok()).unwrap_or_else(|| panic!("no address: {greeting}"));
        Broker { child, errors: Some(errors), address, greeting }
    }

    /// `kill -9`.
    pub(crate) fn kill(&mut self) {
        self.child.kill().expect("kill");
        self.child.wait().expect("wait");
    }

    /// Sends a signal by name.
    #[cfg(unix)]
    pub(crate) fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([&format!("-{name}"), &self.child.id().to_string()]).status();
        assert!(sent.expect("kill").success());
    }

    /// Waits for the end; gives what was written to standard error.
    pub(crate) fn wait(&mut self) -> (ExitStatus, String) {
        let end = Instant::now() + LIMIT;
        loop {
            if let Some(status) = self.child.try_wait().expect("status") {
                return (status, self.errors.take().and_then(|errors| errors.join().ok()).unwrap_or_default());
            }
            assert!(Instant::now() < end, "the broker does not end");
            std::thread::park_timeout(Duration::from_millis(5));
        }
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
