//! Errors of sinks: whether the same records may work later decides between RELEASE and REJECT.

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
}
