//! Tracing spans of a producer, at level debug. Names of fields are OpenTelemetry's for messaging where it has one.

use crate::acknowledgements::ShareGroupMetadata;
use tracing::{Span, debug_span, field::Empty};

/// Number of records in a request, or of acknowledgements put into a transaction.
const MESSAGE_COUNT: &str = "messaging.batch.message_count";

/// A produce request, from its encoding to its answer.
pub(super) fn produce(broker: i32) -> Span {
    debug_span!(
        "produce",
        messaging.system = "kafka",
        messaging.operation.name = "send",
        "messaging.operation.type" = "send",
        messaging.batch.message_count = Empty,
        broker,
    )
}

/// Acknowledgements that are put into a transaction.
pub(super) fn stage(member: &ShareGroupMetadata, count: u64) -> Span {
    let span = debug_span!(
        "transaction_acknowledge",
        messaging.system = "kafka",
        messaging.operation.name = "acknowledge",
        "messaging.operation.type" = "settle",
        messaging.consumer.group.name = member.group_id(),
        messaging.batch.message_count = Empty,
    );
    counted(&span, count);
    span
}

/// The end of a transaction, `commit` or `abort`.
pub(super) fn end(what: &'static str) -> Span {
    debug_span!(
        "transaction_end",
        messaging.system = "kafka",
        messaging.operation.name = what,
        "messaging.operation.type" = "settle",
    )
}

pub(super) fn counted(span: &Span, count: u64) {
    if !span.is_disabled() {
        span.record(MESSAGE_COUNT, count);
    }
}
