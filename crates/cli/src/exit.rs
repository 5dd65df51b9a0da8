//! How a command ends: one clear line on standard error, and the exit code.

use std::fmt::Display;
use std::io::Write;
use std::process::ExitCode;

/// A command that did not do what it was asked for.
#[derive(Debug)]
pub(crate) struct Failure {
    message: String,
    code: u8,
}

impl Failure {
    /// Exit code 1.
    pub(crate) fn new(message: impl Display) -> Self {
        Failure { message: message.to_string(), code: 1 }
    }

    /// Exit code 2: the command line or a file it names is not as it must be.
    pub(crate) fn usage(message: impl Display) -> Self {
        Failure { message: message.to_string(), code: 2 }
    }

    /// Standard output cannot be written to. Where its reader has gone away there is nobody to tell, and nothing wrong.
    pub(crate) fn output(error: &std::io::Error) -> Self {
        match error.kind() {
            std::io::ErrorKind::BrokenPipe => Failure { message: String::new(), code: 0 },
            _ => Failure::new(format_args!("standard output: {error}")),
        }
    }

    /// Whether this is no failure but a reader that went away.
    pub(crate) fn is_quiet(&self) -> bool {
        self.message.is_empty()
    }

    /// The same with words put before it.
    pub(crate) fn context(mut self, what: impl Display) -> Self {
        if !self.is_quiet() {
            self.message = format!("{what}: {}", self.message);
        }
        self
    }

    /// Prints the line and gives the code.
    pub(crate) fn report(&self) -> ExitCode {
        if !self.is_quiet() {
            note(&self.message);
        }
        ExitCode::from(self.code)
    }
}

impl Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

/// A line on standard error, whatever the text holds. It must not matter whether anybody reads it.
pub(crate) fn note(text: impl Display) {
    let text = text.to_string();
    let line: Vec<&str> = text.split_whitespace().collect();
    let _ = writeln!(std::io::stderr(), "kshare: {}", line.join(" "));
}

impl From<kafka_share::Error> for Failure {
    fn from(error: kafka_share::Error) -> Self {
        match error.kind() {
            kafka_share::ErrorKind::Config => Failure::usage(error),
            _ => Failure::new(error),
        }
    }
}
