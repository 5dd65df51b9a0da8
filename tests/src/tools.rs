//! Kafka's own command line tools, run one after the other in one Java process.

use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use crate::java::JavaProject;
use crate::kafka;

/// What a tool printed, and its exit code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Printed {
    /// The exit code that a shell would see.
    pub code: i32,
    /// Standard output and standard error, in the order of writing.
    pub text: String,
}

/// A Java process with the tools of a Kafka release. It is ended when this is dropped.
#[derive(Debug)]
pub struct Tools {
    process: Child,
    answers: BufReader<ChildStdout>,
}

impl Tools {
    /// Starts the process with the tools of a release.
    ///
    /// # Panics
    /// Without Java and Maven ([`crate::java::available`]), and if the release's jars cannot be fetched.
    #[must_use]
    pub fn start(version: &str) -> Self {
        let jars = kafka::jars(version).unwrap_or_else(|e| panic!("the jars of Kafka {version}: {e}"));
        let mut process = command(&JavaProject::build("tools"), &jars)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("java starts");
        let answers = BufReader::new(process.stdout.take().expect("standard output is piped"));
        Self { process, answers }
    }

    /// Runs a main class to its end.
    ///
    /// # Panics
    /// If the process has ended.
    pub fn run(&mut self, words: &[&str]) -> Printed {
        self.try_run(words).unwrap_or_else(|e| panic!("{words:?}: {e}"))
    }

    fn try_run(&mut self, words: &[&str]) -> io::Result<Printed> {
        let commands = self.process.stdin.as_mut().expect("standard input is piped");
        writeln!(commands, "{}", words.join("\t"))?;
        commands.flush()?;
        let mut text = String::new();
        loop {
            let mut line = String::new();
            if self.answers.read_line(&mut line)? == 0 {
                return Err(io::Error::other(format!("the tools' process ended after\n{text}")));
            }
            if let Some(printed) = line.strip_prefix("| ") {
                text.push_str(printed);
            } else if let Some(code) = line.strip_prefix("exit ") {
                return Ok(Printed { code: code.trim().parse().map_err(io::Error::other)?, text });
            }
            // Anything else was written past the capture, by a logger that began before it.
        }
    }
}

impl Drop for Tools {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

fn command(project: &JavaProject, jars: &Path) -> Command {
    let mut command = project.command_with(jars, "tools.Main");
    // A tool's log is not its answer.
    command.env("JAVA_TOOL_OPTIONS", "-Dlog4j2.level=OFF -XX:TieredStopAtLevel=1");
    command
}
