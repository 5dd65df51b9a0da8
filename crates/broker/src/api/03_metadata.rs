//! Metadata (v0-13): nodes, topics by name or (v10 on) by id, leaders.
//!
//! Topics asked for by name are created where the request, the broker and the name allow it; like in Kafka, the answer
//! that triggers a creation already lists the topic here, as there is nothing to wait for.

use super::describe_cluster::cluster_operations;
use super::{Outcome, RequestContext};
use crate::cluster::{Cluster, Refusal, Topic};
use crate::security::{Operation, ResourceKind};
use kafka_share_messages::metadata_request::MetadataRequestTopic;
use kafka_share_messages::metadata_response::{
    MetadataResponseBroker, MetadataResponsePartition, MetadataResponseTopic,
};
use kafka_share_messages::{ErrorCode, MetadataRequest, MetadataResponse};
use kafka_share_wire::{Str, Uuid};
use std::collections::HashSet;

/// What a client without limits may do with a topic, as Kafka answers without an authoriser:
/// read, write, create, delete, alter, describe, and their configs.
pub(super) const TOPIC_OPERATIONS: i32 = 0x0df8;
/// The bits are not filled in.
pub(super) const NOT_ASKED: i32 = i32::MIN;

pub(crate) fn handle(
    cluster: &mut Cluster,
    ctx: &RequestContext,
    request: MetadataRequest,
) -> Outcome<MetadataResponse> {
    if let Some(error_code) = request.topics.as_deref().and_then(|topics| refused_ids(ctx.version, topics)) {
        return Outcome::Reply(refuse(ctx.version, &request, error_code));
    }
    let topics = match &request.topics {
        None => all_topics(cluster, ctx),
        // v0 has no null: there the empty list asks for all.
        Some(list) if ctx.version == 0 && list.is_empty() => all_topics(cluster, ctx),
        Some(list) => {
            let allow = ctx.version < 4 || request.allow_auto_topic_creation;
            let mut seen = HashSet::new();
            // As in Kafka: a topic is answered once, and next to ids names are not looked at.
            let by_id = list.iter().any(|asked| !asked.topic_id.is_zero());
            let mut topics = Vec::new();
            for asked in list {
                let name = asked.name.as_ref().filter(|_| !by_id);
                if by_id != asked.topic_id.is_zero() && seen.insert((asked.topic_id, name)) {
                    topics.push(one(cluster, ctx, asked, allow));
                }
            }
            topics
        }
    };
    let mut topics: Vec<MetadataResponseTopic> = topics;
    if request.include_topic_authorized_operations {
        for topic in topics.iter_mut().filter(|t| t.error_code.is_ok()) {
            let name = topic.name.as_deref().unwrap_or_default();
            topic.topic_authorized_operations = cluster.operations(ctx, TOPIC_OPERATIONS, ResourceKind::Topic, name);
        }
    }
    Outcome::Reply(MetadataResponse {
        brokers: cluster
            .alive_nodes()
            .map(|node| {
                let (host, port) = node.endpoint(ctx.listener);
                MetadataResponseBroker { node_id: node.id, host, port, ..Default::default() }
            })
            .collect(),
        cluster_id: Some(Str::from(&cluster.cluster_id)),
        controller_id: cluster.controller_id(),
        topics,
        cluster_authorized_operations: match request.include_cluster_authorized_operations {
            true if (8..=10).contains(&ctx.version) => cluster_operations(cluster, ctx),
            _ => NOT_ASKED,
        },
        ..Default::default()
    })
}

/// Topic ids came with v10, but only from v12 on may topics be asked for by id.
fn refused_ids(version: i16, topics: &[MetadataRequestTopic]) -> Option<ErrorCode> {
    let unnamed = |topic: &MetadataRequestTopic| topic.name.is_none() && topic.topic_id.is_zero();
    let nameless = |topic: &MetadataRequestTopic| topic.name.is_none() || !topic.topic_id.is_zero();
    match version {
        10 | 11 if topics.iter().any(nameless) => Some(ErrorCode::INVALID_REQUEST),
        // Kafka trips over it.
        12.. if topics.iter().all(|t| t.topic_id.is_zero()) && topics.iter().any(unnamed) => {
            Some(ErrorCode::UNKNOWN_SERVER_ERROR)
        }
        _ => None,
    }
}

/// The answer to a request that is refused as a whole.
fn refuse(version: i16, request: &MetadataRequest, error_code: ErrorCode) -> MetadataResponse {
    let topic = |topic: &MetadataRequestTopic| MetadataResponseTopic {
        error_code,
        name: Some(topic.name.clone().unwrap_or_default()),
        topic_id: topic.topic_id,
        topic_authorized_operations: NOT_ASKED,
        ..Default::default()
    };
    MetadataResponse {
        topics: request.topics.iter().flatten().map(topic).collect(),
        controller_id: -1,
        error_code: if version >= 13 { error_code } else { ErrorCode::NONE },
        ..Default::default()
    }
}

fn all_topics(cluster: &Cluster, ctx: &RequestContext) -> Vec<MetadataResponseTopic> {
    let seen = |topic: &&Topic| cluster.may_topic(ctx, Operation::Describe, &topic.name).is_ok();
    cluster.topics.iter().filter(seen).map(|topic| describe(cluster, topic)).collect()
}

fn one(
    cluster: &mut Cluster,
    ctx: &RequestContext,
    asked: &MetadataRequestTopic,
    allow: bool,
) -> MetadataResponseTopic {
    let by_id = ctx.version >= 10 && !asked.topic_id.is_zero();
    let found = match &asked.name {
        _ if by_id => cluster
            .topics
            .by_id(asked.topic_id)
            .ok_or(ErrorCode::UNKNOWN_TOPIC_ID)
            .and_then(|topic| cluster.may_topic(ctx, Operation::Describe, &topic.name).map(|()| topic.id))
            .map_err(Refusal::from),
        Some(name) => find_or_create(cluster, ctx, name, allow),
        None => Err(Refusal::new(ErrorCode::UNKNOWN_TOPIC_ID, "")),
    };
    match found {
        Ok(id) => cluster.topics.by_id(id).map(|topic| describe(cluster, topic)).unwrap_or_default(),
        Err(refusal) => MetadataResponseTopic {
            error_code: refusal.code,
            name: if by_id && ctx.version >= 12 { None } else { Some(asked.name.clone().unwrap_or_default()) },
            topic_id: if by_id { asked.topic_id } else { Uuid::ZERO },
            topic_authorized_operations: NOT_ASKED,
            ..Default::default()
        },
    }
}

/// Who may not create a topic hears so, where it would have been created.
fn find_or_create(cluster: &mut Cluster, ctx: &RequestContext, name: &Str, allow: bool) -> Result<Uuid, Refusal> {
    cluster.may_topic(ctx, Operation::Describe, name)?;
    if allow && cluster.config.auto_create_topics && cluster.topics.get(name).is_none() {
        cluster.may_cluster(ctx, Operation::Create).or_else(|_| cluster.may_topic(ctx, Operation::Create, name))?;
    }
    cluster.topic_or_create(name, allow)
}

fn describe(cluster: &Cluster, topic: &Topic) -> MetadataResponseTopic {
    let alive = |id: &i32| cluster.node(*id).is_some_and(|node| node.alive);
    let partitions = topic.partitions.iter().enumerate().map(|(index, partition)| {
        let (isr, offline): (Vec<i32>, Vec<i32>) = partition.replicas.iter().partition(|id| alive(id));
        MetadataResponsePartition {
            error_code: if partition.leader < 0 { ErrorCode::LEADER_NOT_AVAILABLE } else { ErrorCode::NONE },
            partition_index: index as i32,
            leader_id: partition.leader,
            leader_epoch: partition.leader_epoch,
            replica_nodes: partition.replicas.clone(),
            isr_nodes: isr,
            offline_replicas: offline,
            ..Default::default()
        }
    });
    MetadataResponseTopic {
        name: Some(topic.name.clone()),
        topic_id: topic.id,
        is_internal: topic.internal,
        partitions: partitions.collect(),
        topic_authorized_operations: NOT_ASKED,
        ..Default::default()
    }
}
