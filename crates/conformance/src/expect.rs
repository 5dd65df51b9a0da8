//! How a case ends early, and the checks that make it do so.

use kafka_share_messages::ErrorCode;
use std::fmt::Debug;

/// Why a case did not pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Stop {
    /// The broker broke a rule; the text says what was expected and what came.
    Failed(String),
    /// The broker does not offer what the case needs.
    NotSupported(String),
}

/// Result of a step of a case.
pub(crate) type Check<T = ()> = Result<T, Stop>;

impl From<kafka_share::Error> for Stop {
    fn from(error: kafka_share::Error) -> Self {
        match error.kind() {
            kafka_share::ErrorKind::Unsupported => Stop::NotSupported(error.to_string()),
            _ => Stop::Failed(error.to_string()),
        }
    }
}

/// A failure.
pub(crate) fn fail<T>(text: impl Into<String>) -> Check<T> {
    Err(Stop::Failed(text.into()))
}

/// Checks that a code is one of those allowed.
pub(crate) fn code(what: &str, got: ErrorCode, allowed: &[ErrorCode]) -> Check {
    if allowed.contains(&got) {
        return Ok(());
    }
    let names: Vec<&str> = allowed.iter().map(|c| c.name()).collect();
    fail(format!("{what}: expected {}, got {got}", names.join(" or ")))
}

/// Checks that a code is success.
pub(crate) fn ok(what: &str, got: ErrorCode) -> Check {
    code(what, got, &[ErrorCode::NONE])
}

/// Checks that two values are equal.
pub(crate) fn equal<T: PartialEq + Debug>(what: &str, got: T, want: T) -> Check {
    if got == want { Ok(()) } else { fail(format!("{what}: expected {want:?}, got {got:?}")) }
}

/// Checks a condition.
pub(crate) fn that(condition: bool, otherwise: impl FnOnce() -> String) -> Check {
    if condition { Ok(()) } else { fail(otherwise()) }
}
