//! Tracing spans of a share consumer, at level debug. Names of fields are OpenTelemetry's for messaging where it has one.

use super::shared::Shared;
use kafka_share_messages::ShareAcknowledgeRequest;
use tracing::{Span, debug_span, field::Empty};

/// Number of records that a poll or fetch brought.
pub(super) const MESSAGE_COUNT: &str = "messaging.batch.message_count";

pub(super) fn poll(shared: &Shared) -> Span {
    debug_span!(
        "share_poll",
        messaging.system = "kafka",
        messaging.operation.name = "poll",
        "messaging.operation.type" = "receive",
        messaging.consumer.group.name = %shared.group_id,
        messaging.batch.message_count = Empty,
        member = %shared.member_id,
    )
}

pub(super) fn fetch(shared: &Shared, broker: i32, session_epoch: i32) -> Span {
    debug_span!(
        "share_fetch",
        messaging.system = "kafka",
        messaging.operation.name = "fetch",
        "messaging.operation.type" = "receive",
        messaging.consumer.group.name = %shared.group_id,
        messaging.batch.message_count = Empty,
        member = %shared.member_id,
        broker,
        session_epoch,
    )
}

pub(super) fn acknowledge(shared: &Shared, broker: i32, request: &ShareAcknowledgeRequest) -> Span {
    let batches = || request.topics.iter().flat_map(|t| &t.partitions).flat_map(|p| &p.acknowledgement_batches);
    let span = debug_span!(
        "share_acknowledge",
        messaging.system = "kafka",
        messaging.operation.name = "acknowledge",
        "messaging.operation.type" = "settle",
        messaging.consumer.group.name = %shared.group_id,
        messaging.batch.message_count = Empty,
        member = %shared.member_id,
        broker,
        session_epoch = request.share_session_epoch,
    );
    if !span.is_disabled() {
        span.record(MESSAGE_COUNT, batches().map(|b| b.last_offset - b.first_offset + 1).sum::<i64>());
    }
    span
}

pub(super) fn heartbeat(shared: &Shared, member_epoch: i32) -> Span {
    debug_span!(
        "share_group_heartbeat",
        messaging.system = "kafka",
        messaging.operation.name = "heartbeat",
        messaging.consumer.group.name = %shared.group_id,
        member = %shared.member_id,
        broker = Empty,
        member_epoch,
    )
}
