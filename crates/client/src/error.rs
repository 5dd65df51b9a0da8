//! One opaque error type: what went wrong, where, and what the caller can do about it.

use kafka_share_core::connection::CallError;
use kafka_share_messages::ErrorCode;
use std::fmt;

/// Result of a client call.
pub type Result<T> = std::result::Result<T, Error>;

/// What the caller can do about an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Severity {
    /// The same call may succeed later; nothing was changed that a retry could double.
    Retriable,
    /// The transaction must be aborted; then a new one can be begun.
    Abortable,
    /// The same call can never succeed: mend the cause first. What was refused for its arguments or its order
    /// ([`InvalidInput`](ErrorKind::InvalidInput), [`InvalidState`](ErrorKind::InvalidState)) has changed nothing, and the
    /// client goes on; after anything else (fenced, no rights, unsupported) build a new one.
    Fatal,
}

/// What kind of thing went wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A setting is wrong or missing.
    Config,
    /// No broker could be reached.
    Connect,
    /// The connection ended before the request was sent.
    Disconnected,
    /// The time limit passed.
    Timeout,
    /// The peer sent bytes that are not valid Kafka.
    Protocol,
    /// The cluster or broker does not offer what the call needs.
    Unsupported,
    /// The broker refused with an error code.
    Broker,
    /// The broker refused for lack of rights.
    Authorization,
    /// Broker and client do not take each other for whom they say they are (TLS, SASL), or speak different security
    /// protocols.
    Authentication,
    /// Another producer or member took over.
    Fenced,
    /// The call is not allowed now (wrong order of calls).
    InvalidState,
    /// An argument or record is not acceptable.
    InvalidInput,
    /// The client was closed or its runtime is gone.
    Closed,
    /// A commit may or may not have happened; only the same commit may be tried again.
    OutcomeUnknown,
    /// The transaction was aborted, by us or by the coordinator.
    TransactionAborted,
    /// A `wakeup()` ended the call.
    Wakeup,
}

/// An error of this client. It is one word wide and cheap to move.
#[derive(Clone)]
pub struct Error(Box<Inner>);

#[derive(Clone)]
struct Inner {
    kind: ErrorKind,
    severity: Severity,
    code: Option<ErrorCode>,
    message: String,
    maybe_done: bool,
}

impl Error {
    /// An error of a kind, with the severity that usually goes with it.
    #[must_use]
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        let severity = match kind {
            ErrorKind::Connect | ErrorKind::Disconnected | ErrorKind::Timeout | ErrorKind::Wakeup => {
                Severity::Retriable
            }
            ErrorKind::TransactionAborted => Severity::Abortable,
            _ => Severity::Fatal,
        };
        Error(Box::new(Inner { kind, severity, code: None, message: message.into(), maybe_done: false }))
    }

    /// An error code that a broker sent in answer to `what`.
    #[must_use]
    pub fn broker(code: ErrorCode, what: impl fmt::Display, detail: Option<&str>) -> Self {
        let kind = match code {
            ErrorCode::TOPIC_AUTHORIZATION_FAILED
            | ErrorCode::GROUP_AUTHORIZATION_FAILED
            | ErrorCode::CLUSTER_AUTHORIZATION_FAILED
            | ErrorCode::TRANSACTIONAL_ID_AUTHORIZATION_FAILED => ErrorKind::Authorization,
            ErrorCode::PRODUCER_FENCED | ErrorCode::INVALID_PRODUCER_EPOCH | ErrorCode::FENCED_MEMBER_EPOCH => {
                ErrorKind::Fenced
            }
            ErrorCode::UNSUPPORTED_VERSION => ErrorKind::Unsupported,
            _ => ErrorKind::Broker,
        };
        let about = match detail.filter(|d| !d.is_empty()) {
            Some(detail) => format!("{what}: {code}: {detail}"),
            None if code.about().is_empty() => format!("{what}: {code}"),
            None => format!("{what}: {code}: {}", code.about()),
        };
        let mut error = Error::new(kind, about);
        error.0.code = Some(code);
        if code.is_retriable() {
            error.0.severity = Severity::Retriable;
        } else if code == ErrorCode::TRANSACTION_ABORTABLE {
            error.0.severity = Severity::Abortable;
        }
        error
    }

    pub(crate) fn call(error: &CallError, what: impl fmt::Display) -> Self {
        let kind = match error {
            CallError::TimedOut { .. } => ErrorKind::Timeout,
            _ => ErrorKind::Disconnected,
        };
        let mut this = Error::new(kind, format!("{what}: {error}"));
        this.0.maybe_done = error.maybe_done();
        this
    }

    /// The same error with another severity.
    #[must_use]
    pub fn with_severity(mut self, severity: Severity) -> Self {
        self.0.severity = severity;
        self
    }

    pub(crate) fn with_code(mut self, code: Option<ErrorCode>) -> Self {
        self.0.code = code;
        self
    }

    /// The same error, of a request that the broker may have acted on.
    pub(crate) fn after_sending(mut self) -> Self {
        self.0.maybe_done = true;
        self
    }

    /// The same error with words put before its message.
    #[must_use]
    pub fn context(mut self, what: impl fmt::Display) -> Self {
        self.0.message = format!("{what}: {}", self.0.message);
        self
    }

    /// What kind of thing went wrong.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// What the caller can do.
    #[must_use]
    pub fn severity(&self) -> Severity {
        self.0.severity
    }

    /// The broker's error code, where it sent one.
    #[must_use]
    pub fn code(&self) -> Option<ErrorCode> {
        self.0.code
    }

    /// Whether the same call may succeed later.
    #[must_use]
    pub fn is_retriable(&self) -> bool {
        self.0.severity == Severity::Retriable
    }

    /// Whether the transaction must be aborted.
    #[must_use]
    pub fn is_abortable(&self) -> bool {
        self.0.severity == Severity::Abortable
    }

    /// Whether the same call can never succeed; see [`Severity::Fatal`] for what can.
    #[must_use]
    pub fn is_fatal(&self) -> bool {
        self.0.severity == Severity::Fatal
    }

    /// Whether the time limit passed.
    #[must_use]
    pub fn is_timeout(&self) -> bool {
        self.0.kind == ErrorKind::Timeout
    }

    /// Whether the request was written but its answer was lost, so that the broker may have acted on it.
    #[must_use]
    pub fn maybe_done(&self) -> bool {
        self.0.maybe_done
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Error")
            .field("kind", &self.0.kind)
            .field("severity", &self.0.severity)
            .field("code", &self.0.code)
            .field("message", &self.0.message)
            .finish()
    }
}

impl std::error::Error for Error {}

impl From<kafka_share_wire::Error> for Error {
    fn from(error: kafka_share_wire::Error) -> Self {
        Error::new(ErrorKind::Protocol, error.to_string())
    }
}
