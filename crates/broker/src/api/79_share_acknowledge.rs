//! ShareAcknowledge (v1-2): acknowledgements apart from a fetch; epoch -1 closes the session and frees what it holds.

use super::{Outcome, RequestContext};
use crate::cluster::{Cluster, Refusal};
use crate::security::Operation;
use crate::share::acks::{self, AllowedTypes};
use crate::share::sessions::{CLOSE, OPEN, SessionKey};
use crate::share_partition::AckRange;
use kafka_share_messages::share_acknowledge_request::AcknowledgePartition;
use kafka_share_messages::share_acknowledge_response::{
    LeaderIdAndEpoch, NodeEndpoint, PartitionData, ShareAcknowledgeTopicResponse,
};
use kafka_share_messages::{ErrorCode, ShareAcknowledgeRequest, ShareAcknowledgeResponse};
use kafka_share_wire::{Str, Uuid};

pub(crate) fn handle(
    cluster: &mut Cluster,
    ctx: &RequestContext,
    request: ShareAcknowledgeRequest,
) -> Outcome<ShareAcknowledgeResponse> {
    Outcome::Reply(serve(cluster, ctx, &request).unwrap_or_else(|refusal| ShareAcknowledgeResponse {
        error_code: refusal.code,
        error_message: Some(Str::from(refusal.message)).filter(|text| !text.is_empty()),
        ..Default::default()
    }))
}

fn serve(
    cluster: &mut Cluster,
    ctx: &RequestContext,
    request: &ShareAcknowledgeRequest,
) -> Result<ShareAcknowledgeResponse, Refusal> {
    let (Some(group), Some(member)) = (&request.group_id, &request.member_id) else {
        return Err(Refusal::new(ErrorCode::INVALID_REQUEST, "The group id and the member id must be set."));
    };
    cluster.may_group(ctx, Operation::Read, group)?;
    let key = SessionKey { node: ctx.node, group: group.clone(), member: member.clone() };
    let epoch = request.share_session_epoch;
    if epoch == OPEN {
        return Err(Refusal::new(ErrorCode::INVALID_SHARE_SESSION_EPOCH, ""));
    }
    cluster.share.sessions.enter(&key, epoch)?;
    let allowed = if request.is_renew_ack { AllowedTypes::Renew } else { AllowedTypes::Plain };
    let mut endpoints: Vec<NodeEndpoint> = Vec::new();
    let mut responses = Vec::with_capacity(request.topics.len());
    for topic in &request.topics {
        let mut partitions = Vec::with_capacity(topic.partitions.len());
        // Partitions without acknowledgements are not answered, as in Kafka.
        for asked in topic.partitions.iter().filter(|asked| !asked.acknowledgement_batches.is_empty()) {
            partitions.push(one(cluster, ctx, &key, topic.topic_id, asked, allowed, &mut endpoints));
        }
        if !partitions.is_empty() {
            let topic_id = topic.topic_id;
            responses.push(ShareAcknowledgeTopicResponse { topic_id, partitions, ..Default::default() });
        }
    }
    let lock_ms = cluster.share_config(group).record_lock_duration_ms;
    if epoch == CLOSE {
        cluster.close_share_session(ctx.now, &key);
    }
    Ok(ShareAcknowledgeResponse {
        acquisition_lock_timeout_ms: i32::try_from(lock_ms).unwrap_or(i32::MAX),
        responses,
        node_endpoints: endpoints,
        ..Default::default()
    })
}

fn one(
    cluster: &mut Cluster,
    ctx: &RequestContext,
    key: &SessionKey,
    topic: Uuid,
    asked: &AcknowledgePartition,
    allowed: AllowedTypes,
    endpoints: &mut Vec<NodeEndpoint>,
) -> PartitionData {
    let tp = (topic, asked.partition_index);
    let ranges = asked.acknowledgement_batches.iter().map(|batch| AckRange {
        first: batch.first_offset,
        last: batch.last_offset,
        types: &batch.acknowledge_types,
    });
    let checked = acks::check_form(ranges, allowed);
    let mut data = PartitionData { partition_index: tp.1, ..Default::default() };
    if let Err(refusal) = acks::apply(cluster, ctx, &key.group, &key.member, tp, checked) {
        data.error_code = refusal.code;
        data.error_message = Some(Str::from(refusal.message)).filter(|text| !text.is_empty());
        if refusal.code == ErrorCode::NOT_LEADER_OR_FOLLOWER {
            let (leader_id, leader_epoch) = crate::share::leader_of(cluster, tp.0, tp.1);
            data.current_leader = LeaderIdAndEpoch { leader_id, leader_epoch, ..Default::default() };
            let known = endpoints.iter().any(|endpoint| endpoint.node_id == leader_id);
            if let Some(node) = cluster.node(leader_id).filter(|_| !known) {
                let (host, port) = node.endpoint(ctx.listener);
                endpoints.push(NodeEndpoint { node_id: node.id, host, port, ..Default::default() });
            }
        }
    }
    data
}
