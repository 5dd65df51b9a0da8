//! ShareGroupHeartbeat (v1): joining a share group, staying in it, leaving it (KIP-932).
//!
//! Served by the group's coordinator. Clients choose their member id. The assignment is told at a join and when it
//! changes, at once where Kafka first initialises the share state and tells with a later heartbeat.

use super::{Outcome, RequestContext};
use crate::cluster::{Cluster, CoordinatorKind};
use crate::group_coordinator::{Heartbeat, TopicPartition};
use crate::security::Operation;
use crate::share_coordinator::ShareKey;
use kafka_share_messages::share_group_heartbeat_response::{Assignment, TopicPartitions};
use kafka_share_messages::{ErrorCode, ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse};
use kafka_share_wire::Str;
use std::collections::BTreeSet;

pub(crate) fn handle(
    cluster: &mut Cluster,
    ctx: &RequestContext,
    request: ShareGroupHeartbeatRequest,
) -> Outcome<ShareGroupHeartbeatResponse> {
    let unseen = || {
        let mut topics = request.subscribed_topic_names.iter().flatten();
        topics.try_for_each(|topic| cluster.may_topic(ctx, Operation::Describe, topic))
    };
    if let Err(error_code) = cluster.may_group(ctx, Operation::Read, &request.group_id).and_then(|()| unseen()) {
        return Outcome::Reply(ShareGroupHeartbeatResponse { error_code, ..Default::default() });
    }
    if cluster.coordinator_node(CoordinatorKind::Group, &request.group_id) != ctx.node {
        let error_code = ErrorCode::NOT_COORDINATOR;
        return Outcome::Reply(ShareGroupHeartbeatResponse { error_code, ..Default::default() });
    }
    let room = if request.member_epoch == 0 { cluster.check_group_room(&request.group_id) } else { Ok(()) };
    let fits = room.and_then(|()| cluster.check_subscription(request.subscribed_topic_names.as_deref()));
    if let Err(refusal) = fits {
        let (error_code, error_message) = (refusal.code, Some(Str::from(refusal.message)));
        return Outcome::Reply(ShareGroupHeartbeatResponse { error_code, error_message, ..Default::default() });
    }
    let config = cluster.share_config(&request.group_id);
    let client_id = ctx.client_id.clone().unwrap_or_default();
    let Cluster { share, topics, config: settings, .. } = cluster;
    let lookup = |name: &str| topics.get(name).map(|topic| (topic.id, topic.partitions.len() as i32));
    let beat = Heartbeat {
        group: &request.group_id,
        member: &request.member_id,
        epoch: request.member_epoch,
        rack: request.rack_id.as_ref(),
        topics: request.subscribed_topic_names.as_deref(),
        client_id: &client_id,
        session_timeout_ms: config.session_timeout_ms,
        assignment_interval_ms: config.assignment_interval_ms,
        max_members: settings.groups.max_group_size,
        lookup: &lookup,
    };
    let response = match share.groups.heartbeat(ctx.now.mono, &beat) {
        Ok(reply) => ShareGroupHeartbeatResponse {
            member_id: Some(request.member_id.clone()),
            member_epoch: reply.epoch,
            heartbeat_interval_ms: if reply.epoch < 0 {
                0
            } else {
                i32::try_from(config.heartbeat_interval_ms).unwrap_or(i32::MAX)
            },
            assignment: reply.assignment.as_ref().map(by_topic),
            ..Default::default()
        },
        Err(refusal) => ShareGroupHeartbeatResponse {
            error_code: refusal.code,
            error_message: Some(Str::from(refusal.message)),
            ..Default::default()
        },
    };
    if request.member_epoch == 0 && response.error_code.is_ok() {
        let (group, member) = (request.group_id.as_str(), request.member_id.as_str());
        tracing::info!(group, member, client = client_id.as_str(), "member joined a share group");
    }
    // Share-partitions exist from the first subscription on; until then fetches are refused.
    for (topic, partition) in cluster.share.groups.uninitialized(&request.group_id) {
        let key = ShareKey { group: request.group_id.detached(), topic, partition };
        if cluster.share.store.read(&key).is_none() {
            cluster.share.store.initialize(&key, -1);
        }
    }
    if request.member_epoch == -1 && response.error_code.is_ok() {
        crate::share::member_left(cluster, ctx.now, &request.group_id, &request.member_id);
    }
    Outcome::Reply(response)
}

fn by_topic(assignment: &BTreeSet<TopicPartition>) -> Assignment {
    let mut topics: Vec<TopicPartitions> = Vec::new();
    for (topic_id, partition) in assignment {
        match topics.last_mut() {
            Some(last) if last.topic_id == *topic_id => last.partitions.push(*partition),
            _ => {
                topics.push(TopicPartitions { topic_id: *topic_id, partitions: vec![*partition], ..Default::default() })
            }
        }
    }
    Assignment { topic_partitions: topics, ..Default::default() }
}
