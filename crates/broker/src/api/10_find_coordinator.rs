//! FindCoordinator (v0-6): coordinators of groups (type 0), transactions (1) and share-group state (2, v6 on).
//!
//! Until v3 one key per request; from v4 on many. The share coordinator's keys are `group:topic id:partition`.

use super::{Outcome, RequestContext};
use crate::cluster::{Cluster, CoordinatorKind, Refusal};
use crate::security::Operation;
use kafka_share_messages::find_coordinator_response::Coordinator;
use kafka_share_messages::{ErrorCode, FindCoordinatorRequest, FindCoordinatorResponse};
use kafka_share_wire::{Str, Uuid};

pub(crate) fn handle(
    cluster: &mut Cluster,
    ctx: &RequestContext,
    request: FindCoordinatorRequest,
) -> Outcome<FindCoordinatorResponse> {
    let keys = if ctx.version < 4 { vec![request.key] } else { request.coordinator_keys };
    let mut found: Vec<Coordinator> = keys.into_iter().map(|key| find(cluster, ctx, request.key_type, key)).collect();
    if ctx.version >= 4 {
        return Outcome::Reply(FindCoordinatorResponse { coordinators: found, ..Default::default() });
    }
    let one = found.pop().unwrap_or_default();
    Outcome::Reply(FindCoordinatorResponse {
        error_code: one.error_code,
        error_message: one.error_message,
        node_id: one.node_id,
        host: one.host,
        port: one.port,
        ..Default::default()
    })
}

fn find(cluster: &mut Cluster, ctx: &RequestContext, key_type: i8, key: Str) -> Coordinator {
    let found = kind(cluster, ctx.version, key_type, &key).and_then(|kind| {
        match kind {
            CoordinatorKind::Group => cluster.may_group(ctx, Operation::Describe, &key)?,
            CoordinatorKind::Transaction => cluster.may_transact(ctx, Operation::Describe, &key)?,
            CoordinatorKind::Share => cluster.may_cluster(ctx, Operation::ClusterAction)?,
        }
        let id = cluster.coordinator_node(kind, &key);
        let none = || Refusal::new(ErrorCode::COORDINATOR_NOT_AVAILABLE, "");
        cluster.node(id).map(|node| (node.id, node.endpoint(ctx.listener))).ok_or_else(none)
    });
    match found {
        Ok((node_id, (host, port))) => Coordinator { key, node_id, host, port, ..Default::default() },
        Err(refusal) => Coordinator {
            key,
            node_id: -1,
            port: -1,
            error_code: refusal.code,
            error_message: Some(Str::from(refusal.message)),
            ..Default::default()
        },
    }
}

fn kind(cluster: &Cluster, version: i16, key_type: i8, key: &str) -> Result<CoordinatorKind, Refusal> {
    let invalid = || Refusal::new(ErrorCode::INVALID_REQUEST, "");
    let kind = CoordinatorKind::from_key_type(key_type).ok_or_else(invalid)?;
    if kind != CoordinatorKind::Share {
        return Ok(kind);
    }
    if version < 6 || cluster.config.features.share_version() == 0 {
        return Err(invalid());
    }
    let mut parts = key.rsplitn(3, ':');
    let partition = parts.next().and_then(|p| p.parse::<i32>().ok());
    let topic = parts.next().and_then(|t| t.parse::<Uuid>().ok());
    let group = parts.next().filter(|g| !g.is_empty());
    match (partition, topic, group) {
        (Some(_), Some(_), Some(_)) => Ok(kind),
        _ => Err(invalid()),
    }
}
