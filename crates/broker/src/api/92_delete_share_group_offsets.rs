//! DeleteShareGroupOffsets (v0): deletes the share state of topics, of a group without members.

use super::{Outcome, RequestContext};
use crate::cluster::Cluster;
use crate::security::Operation;
use kafka_share_messages::delete_share_group_offsets_response::DeleteShareGroupOffsetsResponseTopic;
use kafka_share_messages::{DeleteShareGroupOffsetsRequest, DeleteShareGroupOffsetsResponse, ErrorCode};
use kafka_share_wire::{Str, Uuid};
use std::collections::HashSet;

pub(crate) fn handle(
    cluster: &mut Cluster,
    ctx: &RequestContext,
    request: DeleteShareGroupOffsetsRequest,
) -> Outcome<DeleteShareGroupOffsetsResponse> {
    if let Err(error_code) = cluster.may_group(ctx, Operation::Delete, &request.group_id) {
        return Outcome::Reply(DeleteShareGroupOffsetsResponse { error_code, ..Default::default() });
    }
    if let Err(error_code) = cluster.check_empty_group(ctx.node, &request.group_id) {
        return Outcome::Reply(DeleteShareGroupOffsetsResponse { error_code, ..Default::default() });
    }
    if cluster.share.groups.get(&request.group_id).is_none() {
        let error_code = ErrorCode::GROUP_ID_NOT_FOUND;
        return Outcome::Reply(DeleteShareGroupOffsetsResponse { error_code, ..Default::default() });
    }
    let mut stored: HashSet<Uuid> = cluster.share.store.of_group(&request.group_id).map(|key| key.topic).collect();
    let mut one = |name: Str| {
        if let Err(error_code) = cluster.may_topic(ctx, Operation::Read, &name) {
            return DeleteShareGroupOffsetsResponseTopic { topic_name: name, error_code, ..Default::default() };
        }
        let topic = cluster.topics.get(&name).map(|topic| topic.id);
        let error_code = match topic.filter(|topic| stored.remove(topic)) {
            Some(topic) => {
                cluster.share.delete_state(&request.group_id, Some(topic));
                cluster.share.groups.forget_topic(&request.group_id, topic);
                ErrorCode::NONE
            }
            None => ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
        };
        let topic_id = topic.unwrap_or(Uuid::ZERO);
        DeleteShareGroupOffsetsResponseTopic { topic_name: name, topic_id, error_code, ..Default::default() }
    };
    let responses = request.topics.into_iter().map(|topic| one(topic.topic_name)).collect();
    Outcome::Reply(DeleteShareGroupOffsetsResponse { responses, ..Default::default() })
}
