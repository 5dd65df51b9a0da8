//! CreateTopics (v2-7): names, counts, placements and settings are checked one topic at a time.
//!
//! Unlike Kafka, a replication factor beyond the number of nodes is not refused but cut: a program that asks for three
//! replicas should run on a one-node test cluster.

use super::configs::created_configs;
use super::{Outcome, RequestContext};
use crate::cluster::{Cluster, Refusal, check_topic_name};
use crate::settings::{self, Overrides, TOPIC_DEFINITIONS};
use kafka_share_messages::create_topics_request::CreatableTopic;
use kafka_share_messages::create_topics_response::CreatableTopicResult;
use kafka_share_messages::{CreateTopicsRequest, CreateTopicsResponse, ErrorCode};
use kafka_share_wire::{Str, Uuid};
use std::collections::HashSet;

/// What a request comes down to once it was checked.
struct Plan {
    partitions: i32,
    replicas: usize,
    overrides: Overrides,
}

pub(crate) fn handle(
    cluster: &mut Cluster,
    _ctx: &RequestContext,
    request: CreateTopicsRequest,
) -> Outcome<CreateTopicsResponse> {
    let mut seen = HashSet::new();
    let mut twice = HashSet::new();
    for topic in &request.topics {
        if !seen.insert(&topic.name) {
            twice.insert(topic.name.clone());
        }
    }
    let mut topics = Vec::with_capacity(request.topics.len());
    let mut refused_twice = HashSet::new();
    for topic in &request.topics {
        let duplicate = twice.contains(&topic.name);
        if duplicate && !refused_twice.insert(&topic.name) {
            continue;
        }
        let plan = if duplicate {
            Err(Refusal::new(ErrorCode::INVALID_REQUEST, "Duplicate topic name."))
        } else {
            check(cluster, topic)
        };
        topics.push(match plan {
            Ok(plan) => create(cluster, &topic.name, plan, request.validate_only),
            Err(refusal) => CreatableTopicResult {
                name: topic.name.clone(),
                error_code: refusal.code,
                error_message: Some(Str::from(refusal.message)),
                num_partitions: -1,
                replication_factor: -1,
                ..Default::default()
            },
        });
    }
    Outcome::Reply(CreateTopicsResponse { topics, ..Default::default() })
}

fn create(cluster: &mut Cluster, name: &Str, plan: Plan, validate_only: bool) -> CreatableTopicResult {
    let replicas = plan.replicas.min(cluster.alive_nodes().count().max(1));
    let configs = created_configs(&plan.overrides);
    let topic_id = if validate_only {
        Uuid::ZERO
    } else {
        let id = cluster.insert_topic(name, plan.partitions, replicas);
        cluster.set_topic_overrides(id, plan.overrides);
        id
    };
    CreatableTopicResult {
        name: name.clone(),
        topic_id,
        num_partitions: plan.partitions,
        replication_factor: replicas as i16,
        configs: Some(configs),
        ..Default::default()
    }
}

fn check(cluster: &Cluster, topic: &CreatableTopic) -> Result<Plan, Refusal> {
    check_topic_name(&topic.name)?;
    if cluster.topics.get(&topic.name).is_some() {
        let why = format!("Topic '{}' already exists.", topic.name);
        return Err(Refusal::new(ErrorCode::TOPIC_ALREADY_EXISTS, why));
    }
    let (partitions, replicas) =
        if topic.assignments.is_empty() { counts(cluster, topic)? } else { assigned(cluster, topic)? };
    cluster.check_room(partitions as usize)?;
    let mut overrides = Overrides::new();
    for config in &topic.configs {
        let value = config.value.as_deref();
        if value.is_some() {
            settings::change(TOPIC_DEFINITIONS, &mut overrides, &config.name, settings::Change::Set, value)?;
        }
    }
    Ok(Plan { partitions, replicas, overrides })
}

fn counts(cluster: &Cluster, topic: &CreatableTopic) -> Result<(i32, usize), Refusal> {
    let partitions = match topic.num_partitions {
        -1 => cluster.config.default_partitions,
        n if n <= 0 => {
            let why = "Number of partitions was set to an invalid non-positive value.";
            return Err(Refusal::new(ErrorCode::INVALID_PARTITIONS, why));
        }
        n => n,
    };
    let replicas = match topic.replication_factor {
        -1 => cluster.config.default_replication,
        n if n <= 0 => {
            let why = "Replication factor must be larger than 0, or -1 to use the default value.";
            return Err(Refusal::new(ErrorCode::INVALID_REPLICATION_FACTOR, why));
        }
        n => n,
    };
    Ok((partitions, replicas as usize))
}

fn assigned(cluster: &Cluster, topic: &CreatableTopic) -> Result<(i32, usize), Refusal> {
    let bad = |code, why: &str| Err(Refusal::new(code, why));
    if topic.num_partitions != -1 {
        return bad(
            ErrorCode::INVALID_REQUEST,
            "A manual partition assignment was specified, but numPartitions was not set to -1.",
        );
    }
    if topic.replication_factor != -1 {
        return bad(
            ErrorCode::INVALID_REQUEST,
            "A manual partition assignment was specified, but replication factor was not set to -1.",
        );
    }
    let mut indexes: Vec<i32> = topic.assignments.iter().map(|a| a.partition_index).collect();
    indexes.sort_unstable();
    if indexes.iter().enumerate().any(|(i, index)| *index != i as i32) {
        return bad(
            ErrorCode::INVALID_REPLICA_ASSIGNMENT,
            "partitions should be a consecutive 0-based integer sequence",
        );
    }
    let replicas = topic.assignments.iter().map(|a| a.broker_ids.len()).min().unwrap_or(0);
    let known = topic.assignments.iter().flat_map(|a| &a.broker_ids).all(|id| cluster.node(*id).is_some());
    if replicas == 0 || !known {
        return bad(
            ErrorCode::INVALID_REPLICA_ASSIGNMENT,
            "The manual partition assignment is empty or includes an unknown broker.",
        );
    }
    Ok((indexes.len() as i32, replicas))
}
