//! AddShareAcksToTxn (v0, this project's draft beside KIP-1289): enrols the share state of source partitions in a
//! transaction, where transaction.version 1 has no implicit enrolment.
//!
//! Sent to the transaction coordinator. Served only with `share.version` 3.

use super::{Outcome, RequestContext};
use crate::cluster::{Cluster, CoordinatorKind};
use crate::security::Operation;
use crate::share_coordinator::ShareKey;
use kafka_share_messages::{AddShareAcksToTxnRequest, AddShareAcksToTxnResponse, ErrorCode};
use std::collections::BTreeSet;

pub(crate) fn handle(
    cluster: &mut Cluster,
    ctx: &RequestContext,
    request: AddShareAcksToTxnRequest,
) -> Outcome<AddShareAcksToTxnResponse> {
    let error_code = enrol(cluster, ctx, &request).err().unwrap_or(ErrorCode::NONE);
    Outcome::Reply(AddShareAcksToTxnResponse { error_code, ..Default::default() })
}

fn enrol(cluster: &mut Cluster, ctx: &RequestContext, request: &AddShareAcksToTxnRequest) -> Result<(), ErrorCode> {
    if request.transactional_id.is_empty() || request.group_id.is_empty() {
        return Err(ErrorCode::INVALID_REQUEST);
    }
    cluster.may_transact(ctx, Operation::Write, &request.transactional_id)?;
    cluster.may_group(ctx, Operation::Read, &request.group_id)?;
    for topic in &request.topics {
        cluster.may_read(ctx, topic.topic_id)?;
    }
    cluster.check_coordinator(ctx.node, CoordinatorKind::Transaction, &request.transactional_id)?;
    let mut slots = BTreeSet::new();
    for topic in &request.topics {
        for partition in &topic.partitions {
            let known = cluster.topics.by_id(topic.topic_id).ok_or(ErrorCode::UNKNOWN_TOPIC_ID)?;
            if known.partition(*partition).is_none() {
                return Err(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
            }
            let key = ShareKey { group: request.group_id.clone(), topic: topic.topic_id, partition: *partition };
            slots.insert(cluster.share_state_slot(&key));
        }
    }
    let slots: Vec<i32> = slots.into_iter().collect();
    let producer = (request.producer_id, request.producer_epoch);
    cluster.txn_enrol_share_state(ctx.now, &request.transactional_id, producer, &slots, false)
}
