//! Errors of sinks: whether the same records may work later decides between RELEASE and REJECT.

use kafka_share::{ErrorCode, ErrorKind};
use std::time::Duration;

/// What a sink, a converter or the driver reports.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The same records may work later (Connect's `RetriableException`): they are tried again, then released.
    #[error("{message}")]
    Retriable {
        /// What went wrong.
        message: String,
        /// How long to wait before the next try; `None` leaves it to the driver.
        backoff: Option<Duration>,
    },
    /// These records will never work: they are rejected.
    #[error("{0}")]
    Fatal(String),
    /// A setting is wrong or missing; the task does not start.
    #[error("{0}")]
    Config(String),
    /// Kafka refused something.
    #[error("{0}")]
    Kafka(#[from] kafka_share::Error),
}

impl ConnectError {
    /// An error after which the same records may work later.
    pub fn retriable(message: impl Into<String>) -> Self {
        ConnectError::Retriable { message: message.into(), backoff: None }
    }

    /// An error that the same records will always give.
    pub fn fatal(message: impl Into<String>) -> Self {
        ConnectError::Fatal(message.into())
    }

    /// A wrong or missing setting.
    pub fn config(message: impl Into<String>) -> Self {
        ConnectError::Config(message.into())
    }

    /// Whether the same records may work later.
    #[must_use]
    pub fn is_retriable(&self) -> bool {
        match self {
            ConnectError::Retriable { .. } => true,
            ConnectError::Kafka(error) => error.is_retriable(),
            _ => false,
        }
    }

    /// Whether a producer can neither go on nor end its transaction after it.
    pub(crate) fn ends_producer(&self) -> bool {
        matches!(self, ConnectError::Kafka(e) if matches!(e.kind(), ErrorKind::OutcomeUnknown | ErrorKind::Fenced))
    }

    /// What a failed put says about the records.
    pub(crate) fn blame(&self) -> Blame {
        match self {
            ConnectError::Retriable { .. } => Blame::Passing,
            ConnectError::Fatal(_) => Blame::Record,
            ConnectError::Config(_) => Blame::Task,
            ConnectError::Kafka(error) => blame_of(error),
        }
    }
}

/// Whose fault an error is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Blame {
    /// Nobody's: the same records may work later.
    Passing,
    /// Of a record, which never works.
    Record,
    /// The task cannot go on; the records are as good as before.
    Task,
}

fn blame_of(error: &kafka_share::Error) -> Blame {
    const RECORD: [ErrorCode; 4] = [
        ErrorCode::MESSAGE_TOO_LARGE,
        ErrorCode::RECORD_LIST_TOO_LARGE,
        ErrorCode::INVALID_RECORD,
        ErrorCode::INVALID_TIMESTAMP,
    ];
    let of_record = error.code().is_some_and(|code| RECORD.contains(&code));
    match error.kind() {
        _ if of_record => Blame::Record,
        ErrorKind::InvalidInput => Blame::Record,
        ErrorKind::OutcomeUnknown => Blame::Task,
        _ if error.is_retriable() || error.is_abortable() => Blame::Passing,
        _ => Blame::Task,
    }
}
