//! What an error code means to a transaction, by request.

use kafka_share_messages::ErrorCode;

/// What kind of error it is, by what helps against it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum TxnErrorKind {
    /// The same call may succeed later.
    Retriable,
    /// The transaction must be aborted.
    Abortable,
    /// The coordinator has aborted the transaction; abort here too, then begin a new one.
    Aborted,
    /// Only the same commit may be tried again.
    OutcomeUnknown,
    /// Another producer took over; nothing helps.
    Fenced,
    /// Nothing helps.
    Fatal,
    /// The call is not allowed now.
    WrongOrder,
}

/// An error of a transaction.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct TxnError {
    /// What helps.
    pub kind: TxnErrorKind,
    /// The broker's code, where it sent one.
    pub code: Option<ErrorCode>,
    /// What happened.
    pub text: String,
}

impl TxnError {
    /// Without a broker's code.
    #[must_use]
    pub fn new(kind: TxnErrorKind, text: impl Into<String>) -> Self {
        TxnError { kind, code: None, text: text.into() }
    }
}

/// What an answer means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It is done.
    Done,
    /// Send the same request again, after a pause, for this code.
    Retry(ErrorCode),
    /// It failed.
    Failed(TxnError),
    /// How the transaction ended is not known: ask [`Transaction::end`](super::Transaction::end) what to do next.
    Undecided,
}

/// Ordered by how bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Answer {
    Done,
    Retry,
    Abort,
    AbortWithNewEpoch,
    /// The transaction is over at the coordinator, and not committed.
    Aborted,
    Fenced,
    Fatal,
}

fn common(code: ErrorCode) -> Answer {
    match code {
        ErrorCode::NONE => Answer::Done,
        ErrorCode::PRODUCER_FENCED | ErrorCode::INVALID_PRODUCER_EPOCH => Answer::Fenced,
        ErrorCode::CONCURRENT_TRANSACTIONS
        | ErrorCode::COORDINATOR_LOAD_IN_PROGRESS
        | ErrorCode::COORDINATOR_NOT_AVAILABLE
        | ErrorCode::NOT_COORDINATOR => Answer::Retry,
        ErrorCode::TRANSACTION_ABORTABLE => Answer::Abort,
        _ if code.is_retriable() => Answer::Retry,
        _ => Answer::Fatal,
    }
}

pub(super) fn init(code: ErrorCode) -> Answer {
    match common(code) {
        // There is no transaction to abort yet.
        Answer::Abort => Answer::Retry,
        answer => answer,
    }
}

pub(super) fn add(code: ErrorCode) -> Answer {
    match code {
        ErrorCode::TOPIC_AUTHORIZATION_FAILED | ErrorCode::OPERATION_NOT_ATTEMPTED => Answer::Abort,
        ErrorCode::UNKNOWN_PRODUCER_ID | ErrorCode::INVALID_PRODUCER_ID_MAPPING => Answer::AbortWithNewEpoch,
        _ => common(code),
    }
}

pub(super) fn end(code: ErrorCode, commit: bool) -> Answer {
    match code {
        // The coordinator's own timeout got there first. Brokers answer the commit with one of these codes
        // (KAFKA-20785); if it was another producer instead, the request for a new epoch will say so.
        ErrorCode::INVALID_TXN_STATE if commit => Answer::Aborted,
        // Nothing is open there: what an abort wants.
        ErrorCode::INVALID_TXN_STATE => Answer::AbortWithNewEpoch,
        ErrorCode::UNKNOWN_PRODUCER_ID | ErrorCode::INVALID_PRODUCER_ID_MAPPING => Answer::AbortWithNewEpoch,
        _ => common(code),
    }
}
