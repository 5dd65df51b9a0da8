//! EndTxn (v0-5): commit or abort. From v5 on (TV2) the answer carries the identity of the next transaction.
//!
//! Before v2, fencing is INVALID_PRODUCER_EPOCH.

use super::{Outcome, RequestContext};
use crate::cluster::{Cluster, CoordinatorKind};
use crate::security::Operation;
use crate::txn_coordinator::Ended;
use kafka_share_messages::{EndTxnRequest, EndTxnResponse, ErrorCode};

pub(crate) fn handle(cluster: &mut Cluster, ctx: &RequestContext, request: EndTxnRequest) -> Outcome<EndTxnResponse> {
    let result = end(cluster, ctx, &request);
    cluster.complete_transactions(ctx.now);
    Outcome::Reply(match result {
        Ok(ended) => {
            EndTxnResponse { producer_id: ended.producer_id, producer_epoch: ended.epoch, ..Default::default() }
        }
        Err(code) => EndTxnResponse {
            error_code: match code {
                ErrorCode::PRODUCER_FENCED if ctx.version < 2 => ErrorCode::INVALID_PRODUCER_EPOCH,
                code => code,
            },
            producer_id: -1,
            producer_epoch: -1,
            ..Default::default()
        },
    })
}

fn end(cluster: &mut Cluster, ctx: &RequestContext, request: &EndTxnRequest) -> Result<Ended, ErrorCode> {
    let id = &request.transactional_id;
    cluster.may_transact(ctx, Operation::Write, id)?;
    if !id.is_empty() {
        cluster.check_coordinator(ctx.node, CoordinatorKind::Transaction, id)?;
    }
    let producer = (request.producer_id, request.producer_epoch);
    cluster.transactions.end(ctx.now, id, producer, request.committed, ctx.version >= 5)
}
