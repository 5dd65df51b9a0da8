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
    /// The task cannot go on, and must not be started again by itself: it stays FAILED, whatever `task.restart.max` says,
    /// until [`Worker::restart`](crate::Worker::restart).
    #[error("{0}")]
    StaysFailed(String),
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

    /// Whether the restart policy does not count. Another process has the transactional id of a task that is fenced, and the
    /// two would fence each other for ever.
    pub(crate) fn stays_failed(&self) -> bool {
        match self {
            ConnectError::StaysFailed(_) => true,
            ConnectError::Kafka(error) => error.kind() == ErrorKind::Fenced,
            _ => false,
        }
    }

    /// Says more.
    pub(crate) fn add(&mut self, text: &str) {
        match self {
            ConnectError::Fatal(message)
            | ConnectError::Config(message)
            | ConnectError::StaysFailed(message)
            | ConnectError::Retriable { message, .. } => message.push_str(text),
            ConnectError::Kafka(_) => {}
        }
    }

    /// The same, for a task that must not be started again by itself for the sake of a record.
    pub(crate) fn staying(self, place: &str, deliveries: u32, limit: u32) -> Self {
        let fate = match deliveries < limit {
            true => "its next would be its last",
            false => "it is archived",
        };
        ConnectError::StaysFailed(format!(
            "{self}; not restarted by itself: {place} has had {deliveries} of {limit} deliveries, {fate}; mend the cause, then restart the task"
        ))
    }

    /// What a failed put says about the records.
    pub(crate) fn blame(&self) -> Blame {
        match self {
            ConnectError::Retriable { .. } => Blame::Passing,
            ConnectError::Fatal(_) => Blame::Record,
            ConnectError::Config(_) | ConnectError::StaysFailed(_) => Blame::Task,
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
