//! InitProducerId (v0-5; v6 of KIP-939 behind a switch): identities of idempotent and transactional producers.
//!
//! From v3 on a producer may bring its identity to go on with it (KIP-360). Before v4, fencing is INVALID_PRODUCER_EPOCH.

use super::{Outcome, RequestContext};
use crate::cluster::{Cluster, CoordinatorKind};
use crate::security::Operation;
use crate::txn_coordinator::{Identity, InitRequest};
use kafka_share_messages::{ErrorCode, InitProducerIdRequest, InitProducerIdResponse};

pub(crate) fn handle(
    cluster: &mut Cluster,
    ctx: &RequestContext,
    request: InitProducerIdRequest,
) -> Outcome<InitProducerIdResponse> {
    let result = init(cluster, ctx, &request);
    Outcome::Reply(match result {
        Ok(Identity { producer_id, epoch, ongoing }) => {
            let (ongoing_txn_producer_id, ongoing_txn_producer_epoch) = ongoing.unwrap_or((-1, -1));
            InitProducerIdResponse {
                producer_id,
                producer_epoch: epoch,
                ongoing_txn_producer_id,
                ongoing_txn_producer_epoch,
                ..Default::default()
            }
        }
        Err(code) => InitProducerIdResponse {
            error_code: match code {
                ErrorCode::PRODUCER_FENCED if ctx.version < 4 => ErrorCode::INVALID_PRODUCER_EPOCH,
                code => code,
            },
            producer_id: -1,
            producer_epoch: -1,
            ..Default::default()
        },
    })
}

fn init(cluster: &mut Cluster, ctx: &RequestContext, request: &InitProducerIdRequest) -> Result<Identity, ErrorCode> {
    let txn_id = request.transactional_id.as_ref();
    match txn_id {
        Some(txn_id) => {
            cluster.may_transact(ctx, Operation::Write, txn_id)?;
            if request.enable2_pc {
                cluster.may_transact(ctx, Operation::TwoPhaseCommit, txn_id)?;
            }
        }
        None => cluster.may_be_idempotent(ctx)?,
    }
    let (id, epoch) = (request.producer_id, request.producer_epoch);
    // Both or neither.
    if (id < 0) != (epoch < 0) {
        return Err(ErrorCode::INVALID_REQUEST);
    }
    if let Some(txn_id) = txn_id.filter(|id| !id.is_empty()) {
        cluster.check_coordinator(ctx.node, CoordinatorKind::Transaction, txn_id)?;
    }
    let init = InitRequest {
        txn_id,
        timeout_ms: request.transaction_timeout_ms,
        current: (id >= 0).then_some((id, epoch)),
        enable_two_phase_commit: request.enable2_pc,
        keep_prepared: request.keep_prepared_txn,
    };
    let result = cluster.transactions.init(ctx.now, &init);
    cluster.complete_transactions(ctx.now);
    result
}
