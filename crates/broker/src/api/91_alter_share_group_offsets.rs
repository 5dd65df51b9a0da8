//! AlterShareGroupOffsets (v0): sets start offsets of a group without members, which is created if need be.

use super::{Outcome, RequestContext};
use crate::cluster::{Cluster, CoordinatorKind};
use crate::security::Operation;
use crate::share_coordinator::ShareKey;
use kafka_share_messages::alter_share_group_offsets_request::{
    AlterShareGroupOffsetsRequestPartition, AlterShareGroupOffsetsRequestTopic,
};
use kafka_share_messages::alter_share_group_offsets_response::{
    AlterShareGroupOffsetsResponsePartition, AlterShareGroupOffsetsResponseTopic,
};
use kafka_share_messages::{AlterShareGroupOffsetsRequest, AlterShareGroupOffsetsResponse, ErrorCode};
use kafka_share_wire::{Str, Uuid};

pub(crate) fn handle(
    cluster: &mut Cluster,
    ctx: &RequestContext,
    request: AlterShareGroupOffsetsRequest,
) -> Outcome<AlterShareGroupOffsetsResponse> {
    if let Err(error_code) = cluster.may_group(ctx, Operation::Read, &request.group_id) {
        return Outcome::Reply(AlterShareGroupOffsetsResponse { error_code, ..Default::default() });
    }
    if let Err(error_code) = cluster.check_empty_group(ctx.node, &request.group_id) {
        return Outcome::Reply(AlterShareGroupOffsetsResponse { error_code, ..Default::default() });
    }
    if let Err(refusal) = cluster.check_group_room(&request.group_id) {
        let (error_code, error_message) = (refusal.code, Some(Str::from(refusal.message)));
        return Outcome::Reply(AlterShareGroupOffsetsResponse { error_code, error_message, ..Default::default() });
    }
    cluster.share.groups.create(&request.group_id);
    let responses = request.topics.iter().map(|topic| alter(cluster, ctx, &request.group_id, topic)).collect();
    Outcome::Reply(AlterShareGroupOffsetsResponse { responses, ..Default::default() })
}

fn alter(
    cluster: &mut Cluster,
    ctx: &RequestContext,
    group: &Str,
    asked: &AlterShareGroupOffsetsRequestTopic,
) -> AlterShareGroupOffsetsResponseTopic {
    let refused = cluster.may_topic(ctx, Operation::Read, &asked.topic_name).err();
    let found = cluster.topics.get(&asked.topic_name).map(|topic| (topic.id, topic.partitions.len()));
    let one = |partition: &AlterShareGroupOffsetsRequestPartition| {
        let index = partition.partition_index;
        let known = found.filter(|(_, count)| usize::try_from(index).is_ok_and(|index| index < *count));
        let error_code = match known {
            Some((topic, _)) if refused.is_none() => {
                let key = ShareKey { group: group.detached(), topic, partition: index };
                cluster.share.unload_one(&key, false);
                cluster.share.store.initialize(&key, partition.start_offset);
                ErrorCode::NONE
            }
            _ if refused.is_some() => refused.unwrap_or_default(),
            _ => ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
        };
        AlterShareGroupOffsetsResponsePartition { partition_index: index, error_code, ..Default::default() }
    };
    AlterShareGroupOffsetsResponseTopic {
        topic_name: asked.topic_name.clone(),
        partitions: asked.partitions.iter().map(one).collect(),
        topic_id: found.filter(|_| refused.is_none()).map_or(Uuid::ZERO, |(id, _)| id),
        ..Default::default()
    }
}

impl Cluster {
    /// Checks that this node coordinates the group, and that it has no members, if it exists.
    pub(super) fn check_empty_group(&mut self, node: i32, group: &Str) -> Result<(), ErrorCode> {
        self.check_coordinator(node, CoordinatorKind::Group, group)?;
        match self.share.groups.get(group) {
            Some(group) if !group.members.is_empty() => Err(ErrorCode::NON_EMPTY_GROUP),
            _ => Ok(()),
        }
    }
}
