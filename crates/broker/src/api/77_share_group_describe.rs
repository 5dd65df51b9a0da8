//! ShareGroupDescribe (v1): state, epochs, members and their assignments.

use super::{Outcome, RequestContext, budget};
use crate::cluster::{Cluster, CoordinatorKind};
use crate::group_coordinator::Member as GroupMember;
use crate::security::{Operation, ResourceKind};
use kafka_share_messages::share_group_describe_response::{Assignment, DescribedGroup, Member, TopicPartitions};
use kafka_share_messages::{ErrorCode, ShareGroupDescribeRequest, ShareGroupDescribeResponse};
use kafka_share_wire::{Str, Uuid};
use std::collections::BTreeSet;

/// Read, delete, describe, and configs: what Kafka grants on a group without an authoriser.
const GROUP_OPERATIONS: i32 = 0b1101_0100_1000;

pub(crate) fn handle(
    cluster: &mut Cluster,
    ctx: &RequestContext,
    request: ShareGroupDescribeRequest,
) -> Outcome<ShareGroupDescribeResponse> {
    let operations = |cluster: &Cluster, id: &Str| match request.include_authorized_operations {
        true => cluster.operations(ctx, GROUP_OPERATIONS, ResourceKind::Group, id),
        false => i32::MIN,
    };
    let one = |id: Str| {
        if let Err(error_code) = cluster.may_group(ctx, Operation::Describe, &id) {
            return DescribedGroup { group_id: id, error_code, ..Default::default() };
        }
        if let Err(error_code) = cluster.check_coordinator(ctx.node, CoordinatorKind::Group, &id) {
            return DescribedGroup { group_id: id, error_code, ..Default::default() };
        }
        let Some(group) = cluster.share.groups.get(&id) else {
            let error_message = Some(Str::from(format!("Group {} not found.", id.as_str())));
            let error_code = ErrorCode::GROUP_ID_NOT_FOUND;
            return DescribedGroup { group_id: id, error_code, error_message, ..Default::default() };
        };
        // As in Kafka, those that members are assigned count, not those that they subscribe to.
        let assigned: BTreeSet<Uuid> =
            group.members.values().flat_map(|member| &member.assigned).map(|(topic, _)| *topic).collect();
        let names = assigned.into_iter().filter_map(|id| cluster.topics.by_id(id)).map(|topic| &topic.name);
        if let Some(error_code) = names.filter_map(|t| cluster.may_topic(ctx, Operation::Describe, t).err()).next() {
            let why = "The group has described topic(s) that the client is not authorized to describe.";
            let error_message = Some(Str::from_static(why));
            return DescribedGroup { group_id: id, error_code, error_message, ..Default::default() };
        }
        DescribedGroup {
            group_state: Str::from_static(group.state()),
            group_epoch: group.epoch,
            assignment_epoch: group.assignment_epoch,
            assignor_name: Str::from_static("simple"),
            members: group.members.iter().map(|(id, member)| describe(cluster, id, member)).collect(),
            authorized_operations: operations(cluster, &id),
            group_id: id,
            ..Default::default()
        }
    };
    // Kafka answers for what has no name first.
    let (unnamed, named): (Vec<Str>, Vec<Str>) = request.group_ids.into_iter().partition(|id| id.is_empty());
    let invalid = |_| DescribedGroup { error_code: ErrorCode::INVALID_GROUP_ID, ..Default::default() };
    let groups = unnamed.into_iter().map(invalid).chain(named.into_iter().map(one));
    let partitions = |member: &Member| member.assignment.topic_partitions.iter().map(|t| 1 + t.partitions.len()).sum();
    let weight =
        |group: &DescribedGroup| group.members.iter().map(|member| 1usize.saturating_add(partitions(member))).sum();
    budget::reply(budget::rows(groups, weight), |groups| ShareGroupDescribeResponse { groups, ..Default::default() })
}

fn describe(cluster: &Cluster, id: &Str, member: &GroupMember) -> Member {
    let mut topics: Vec<TopicPartitions> = Vec::new();
    for (topic_id, partition) in &member.assigned {
        match topics.last_mut() {
            Some(last) if last.topic_id == *topic_id => last.partitions.push(*partition),
            _ => topics.push(TopicPartitions {
                topic_id: *topic_id,
                topic_name: cluster.topics.by_id(*topic_id).map(|topic| topic.name.clone()).unwrap_or_default(),
                partitions: vec![*partition],
                ..Default::default()
            }),
        }
    }
    // Topics that are gone have no name to be told by.
    topics.retain(|topic| !topic.topic_name.is_empty());
    Member {
        member_id: id.clone(),
        rack_id: member.rack.clone(),
        member_epoch: member.epoch,
        client_id: member.client_id.clone(),
        // The machine has no sockets; all of its clients are on this host.
        client_host: Str::from_static("/127.0.0.1"),
        subscribed_topic_names: member.topics.clone(),
        assignment: Assignment { topic_partitions: topics, ..Default::default() },
        ..Default::default()
    }
}
