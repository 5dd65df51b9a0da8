//! TxnShareAcknowledge (v0, draft of KIP-1289): acknowledgements that take effect when a transaction commits.
//!
//! Sent to the leader of the source partitions. Checks, in order: the request's form, the member and its epoch, each
//! partition, the transaction. All partitions are staged, or none: then those that were fine are answered with
//! OPERATION_NOT_ATTEMPTED. Under transaction.version 2 the share state is enrolled in the transaction here; before, the
//! client has enrolled it with AddShareAcksToTxn and it is verified. Served only with `share.version` 3.

use super::{Outcome, RequestContext};
use crate::cluster::{Cluster, Refusal};
use crate::security::Operation;
use crate::share::acks::{AllowedTypes, check_form};
use crate::share_coordinator::ShareKey;
use crate::share_partition::{AckRange, StagedBy};
use kafka_share_messages::txn_share_acknowledge_request::AcknowledgePartition;
use kafka_share_messages::txn_share_acknowledge_response::{PartitionData, TxnShareAcknowledgeTopicResponse};
use kafka_share_messages::{ErrorCode, TxnShareAcknowledgeRequest, TxnShareAcknowledgeResponse};
use kafka_share_wire::{Str, Uuid};
use std::collections::BTreeSet;

pub(crate) fn handle(
    cluster: &mut Cluster,
    ctx: &RequestContext,
    request: TxnShareAcknowledgeRequest,
) -> Outcome<TxnShareAcknowledgeResponse> {
    let answer = check(cluster, ctx, &request).and_then(|txn_id| stage(cluster, ctx, &request, &txn_id));
    Outcome::Reply(answer.unwrap_or_else(|refusal| {
        tracing::debug!(code = %refusal.code, reason = refusal.message, "transactional acknowledgements refused");
        TxnShareAcknowledgeResponse { error_code: refusal.code, ..Default::default() }
    }))
}

/// Checks what is not about a partition; gives the transactional id.
fn check(cluster: &Cluster, ctx: &RequestContext, request: &TxnShareAcknowledgeRequest) -> Result<Str, Refusal> {
    let Some(txn_id) = request.transactional_id.clone().filter(|id| !id.is_empty()) else {
        return Err(Refusal::new(ErrorCode::INVALID_REQUEST, "the transactional id must be set"));
    };
    if request.group_id.is_empty() || request.member_id.is_empty() {
        return Err(Refusal::new(ErrorCode::INVALID_REQUEST, "the group id and the member id must be set"));
    }
    cluster.may_transact(ctx, Operation::Write, &txn_id)?;
    cluster.may_group(ctx, Operation::Read, &request.group_id)?;
    crate::share::check_member(cluster, &request.group_id, &request.member_id, request.member_epoch)?;
    Ok(txn_id)
}

/// A partition's acknowledgements, or why they are refused.
struct Checked<'a> {
    key: ShareKey,
    ranges: Result<Vec<AckRange<'a>>, Refusal>,
}

fn stage(
    cluster: &mut Cluster,
    ctx: &RequestContext,
    request: &TxnShareAcknowledgeRequest,
    txn_id: &Str,
) -> Result<TxnShareAcknowledgeResponse, Refusal> {
    let mut all: Vec<Checked<'_>> = Vec::new();
    let mut seen = BTreeSet::new();
    for topic in &request.topics {
        for asked in &topic.partitions {
            let mut checked = check_partition(cluster, ctx, request, topic.topic_id, asked);
            if !seen.insert((topic.topic_id, asked.partition_index)) {
                checked.ranges = Err(Refusal::new(ErrorCode::INVALID_REQUEST, "the partition is named twice"));
            }
            all.push(checked);
        }
    }
    let good = all.iter().all(|checked| checked.ranges.is_ok());
    if good && !all.is_empty() {
        let slots: BTreeSet<i32> = all.iter().map(|checked| cluster.share_state_slot(&checked.key)).collect();
        enrol(cluster, ctx, request, txn_id, &slots)?;
        let by = StagedBy { producer_id: request.producer_id, epoch: request.producer_epoch };
        for checked in &mut all {
            if let Ok(ranges) = &checked.ranges
                && let Err(refusal) = cluster.share.stage(&checked.key, &request.member_id, ranges, by)
            {
                checked.ranges = Err(refusal);
            }
        }
    }
    Ok(response(request, all, good))
}

fn check_partition<'a>(
    cluster: &mut Cluster,
    ctx: &RequestContext,
    request: &TxnShareAcknowledgeRequest,
    topic: Uuid,
    asked: &'a AcknowledgePartition,
) -> Checked<'a> {
    let key = ShareKey { group: request.group_id.clone(), topic, partition: asked.partition_index };
    let ranges = asked.acknowledgement_batches.iter().map(|batch| AckRange {
        first: batch.first_offset,
        last: batch.last_offset,
        types: &batch.acknowledge_types,
    });
    let checked = cluster
        .may_read(ctx, topic)
        .and_then(|()| cluster.share_leader(ctx.node, topic, asked.partition_index))
        .map_err(|code| Refusal::new(code, ""))
        .and_then(|()| check_form(ranges, AllowedTypes::Transactional))
        .and_then(|ranges| {
            let unknown = || Refusal::new(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION, "");
            let live = cluster.share.live(&key).ok_or_else(unknown)?;
            live.machine.check_stage(&request.member_id, &ranges).map(|()| ranges)
        });
    Checked { key, ranges: checked }
}

fn enrol(
    cluster: &mut Cluster,
    ctx: &RequestContext,
    request: &TxnShareAcknowledgeRequest,
    txn_id: &Str,
    slots: &BTreeSet<i32>,
) -> Result<(), Refusal> {
    let producer = (request.producer_id, request.producer_epoch);
    let done = if cluster.config.features.transaction_version >= 2 {
        let slots: Vec<i32> = slots.iter().copied().collect();
        cluster.txn_enrol_share_state(ctx.now, txn_id, producer, &slots, true)
    } else {
        slots.iter().try_for_each(|slot| cluster.txn_verify_share_state(txn_id, producer, *slot))
    };
    done.map_err(|code| Refusal::new(code, "the transaction cannot take the acknowledgements"))
}

fn response(request: &TxnShareAcknowledgeRequest, all: Vec<Checked<'_>>, good: bool) -> TxnShareAcknowledgeResponse {
    let mut results = all.into_iter();
    let topics = request.topics.iter().map(|topic| {
        let partitions = results.by_ref().take(topic.partitions.len()).map(|checked| {
            let (error_code, message) = match checked.ranges {
                Ok(_) if good => (ErrorCode::NONE, None),
                Ok(_) => (ErrorCode::OPERATION_NOT_ATTEMPTED, None),
                Err(refusal) => (refusal.code, Some(Str::from(refusal.message)).filter(|text| !text.is_empty())),
            };
            let partition_index = checked.key.partition;
            PartitionData { partition_index, error_code, error_message: message, ..Default::default() }
        });
        let partitions = partitions.collect();
        TxnShareAcknowledgeTopicResponse { topic_id: topic.topic_id, partitions, ..Default::default() }
    });
    TxnShareAcknowledgeResponse { responses: topics.collect(), ..Default::default() }
}
