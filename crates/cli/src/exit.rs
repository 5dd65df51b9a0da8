//! How a command ends: one clear line on standard error, and the exit code.

use std::fmt::Display;
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

    /// Prints the line and gives the code.
    pub(crate) fn report(&self) -> ExitCode {
        // One line, whatever an error text holds.
        let line: Vec<&str> = self.message.split_whitespace().collect();
        eprintln!("kshare: {}", line.join(" "));
        ExitCode::from(self.code)
    }
}

impl From<kafka_share::Error> for Failure {
    fn from(error: kafka_share::Error) -> Self {
        match error.kind() {
            kafka_share::ErrorKind::Config => Failure::usage(error),
            _ => Failure::new(error),
        }
    }
}
