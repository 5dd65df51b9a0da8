//! The process of a real Kafka node: started by `kafka/kafka-up`, killed, stopped and started again.

use std::fs::File;
use std::io;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::java;

/// What a node is started with.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Node<'a> {
    pub(crate) version: &'a str,
    pub(crate) port: u16,
    pub(crate) controller: u16,
    pub(crate) dir: &'a Path,
    /// Of the Java virtual machine; `None` for what `kafka-up` gives it.
    pub(crate) heap: Option<&'a str>,
}

/// A broker's process. It is killed when this is dropped.
#[derive(Debug)]
pub(crate) struct Process {
    pid: u32,
    /// Kills the broker once its input closes, so that no way for a test process to end leaves a broker behind.
    watchdog: Child,
}

impl Process {
    /// Starts a node on empty data. `options` are those of `kafka-up`.
    pub(crate) fn first(node: &Node<'_>, options: &[&str], properties: &[String]) -> io::Result<Self> {
        Self::start(node, |up| {
            up.arg(node.version).arg(node.port.to_string()).arg(node.dir).args(options).args(properties)
        })
    }

    /// Starts it again on the data that it has.
    pub(crate) fn again(node: &Node<'_>) -> io::Result<Self> {
        Self::start(node, |up| up.arg("--again").arg(node.version).arg(node.port.to_string()).arg(node.dir))
    }

    fn start(node: &Node<'_>, arguments: impl FnOnce(&mut Command) -> &mut Command) -> io::Result<Self> {
        // The broker inherits the script's error output, so a pipe would stay open as long as the broker lives.
        let errors = node.dir.join("kafka-up.err");
        let mut up = Command::new("bash");
        arguments(up.arg(java::crate_dir().join("kafka/kafka-up")));
        if let Some(heap) = node.heap {
            up.env("KAFKA_HEAP", heap);
        }
        let output = up
            .env("KAFKA_CONTROLLER_PORT", node.controller.to_string())
            .stdin(Stdio::null())
            .stderr(File::create(&errors)?)
            .output()?;
        let printed = String::from_utf8_lossy(&output.stdout);
        match printed.trim().parse() {
            Ok(pid) if output.status.success() => Ok(Self { pid, watchdog: watch(pid)? }),
            _ => Err(io::Error::other(std::fs::read_to_string(errors)?)),
        }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    /// Kills it, and does not wait until it is gone.
    pub(crate) fn kill(&mut self) {
        if self.is_running().is_ok_and(|running| !running) {
            // It has ended by itself; whoever gets its id next is not to be killed.
            let _ = self.watchdog.kill();
        }
        drop(self.watchdog.stdin.take());
    }

    /// Waits until a process that was killed is gone.
    pub(crate) fn wait(&mut self) {
        self.watchdog.wait().ok();
    }

    pub(crate) fn is_running(&self) -> io::Result<bool> {
        signal("-0", self.pid)
    }

    /// Has the node stop by itself, as on SIGTERM, and waits for that.
    ///
    /// # Errors
    /// It did not stop in time; it is killed then.
    pub(crate) fn terminate(mut self, within: Duration) -> io::Result<()> {
        if !signal("-TERM", self.pid)? {
            return Err(io::Error::other(format!("process {} has ended before", self.pid)));
        }
        let deadline = Instant::now() + within;
        while signal("-0", self.pid)? {
            if Instant::now() > deadline {
                return Err(io::Error::other(format!("process {} does not stop", self.pid)));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        // It has nothing left to watch, and must not kill whoever gets this id next.
        self.watchdog.kill()?;
        self.watchdog.wait().map(drop)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Its data goes away with it, or it is killed on purpose: nothing that a gentle end would save.
        self.kill();
        self.watchdog.wait().ok();
    }
}

/// Whether there was such a process.
fn signal(signal: &str, pid: u32) -> io::Result<bool> {
    let mut kill = Command::new("kill");
    kill.args([signal, &pid.to_string()]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    Ok(kill.status()?.success())
}

fn watch(pid: u32) -> io::Result<Child> {
    let script = format!("cat > /dev/null; kill -9 {pid}; while kill -0 {pid} 2> /dev/null; do sleep 0.05; done");
    let mut command = Command::new("bash");
    command.args(["-c", &script]).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    // In a group of its own it outlives a Ctrl-C in the terminal, to do its work afterwards.
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    command.spawn()
}
