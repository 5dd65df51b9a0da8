//! CreateTopics (v2-7): names, counts, placements and settings are checked one topic at a time.

use super::configs::created_configs;
use super::{Outcome, RequestContext};
use crate::cluster::{Cluster, Refusal, check_topic_name};
use crate::security::Operation;
use crate::settings::{self, Overrides, TOPIC_DEFINITIONS};
use kafka_share_messages::create_topics_request::CreatableTopic;
use kafka_share_messages::create_topics_response::CreatableTopicResult;
use kafka_share_messages::{CreateTopicsRequest, CreateTopicsResponse, ErrorCode};
use kafka_share_wire::Str;
use std::collections::{HashMap, HashSet};

/// What a request comes down to once it was checked.
struct Plan {
    partitions: i32,
    replicas: usize,
    /// The nodes of each partition, where they were asked for.
    placed: Vec<Vec<i32>>,
    overrides: Overrides,
}

pub(crate) fn handle(
    cluster: &mut Cluster,
    ctx: &RequestContext,
    request: CreateTopicsRequest,
) -> Outcome<CreateTopicsResponse> {
    let mut seen = HashSet::new();
    let mut twice = HashSet::new();
    for topic in &request.topics {
        if !seen.insert(&topic.name) {
            twice.insert(topic.name.clone());
        }
    }
    let like = collisions(cluster, &request.topics);
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
            allowed(cluster, ctx, &topic.name).and_then(|()| check(cluster, topic, &like))
        };
        topics.push(match plan {
            Ok(plan) => {
                let mut made = create(cluster, &topic.name, plan, request.validate_only);
                // Who may not see settings is told of none, nor what follows from them.
                if let Err(code) = cluster.may_topic(ctx, Operation::DescribeConfigs, &topic.name) {
                    made.topic_config_error_code = code;
                    (made.num_partitions, made.replication_factor, made.configs) = (-1, -1, Some(Vec::new()));
                }
                made
            }
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

fn allowed(cluster: &Cluster, ctx: &RequestContext, name: &Str) -> Result<(), Refusal> {
    let may = cluster.may_cluster(ctx, Operation::Create).or_else(|_| cluster.may_topic(ctx, Operation::Create, name));
    may.map_err(|code| Refusal::new(code, "Authorization failed."))
}

fn create(cluster: &mut Cluster, name: &Str, plan: Plan, validate_only: bool) -> CreatableTopicResult {
    let configs = created_configs(&plan.overrides);
    let topic_id = if validate_only {
        // As in Kafka: the id that it would have had.
        cluster.rng.uuid()
    } else {
        let id = cluster.insert_topic(name, plan.partitions, plan.replicas);
        cluster.place_replicas(id, 0, plan.placed);
        cluster.set_topic_overrides(id, plan.overrides);
        id
    };
    CreatableTopicResult {
        name: name.clone(),
        topic_id,
        error_message: None,
        num_partitions: plan.partitions,
        replication_factor: plan.replicas as i16,
        configs: Some(configs),
        ..Default::default()
    }
}

/// Dots and underscores are one in the names of metrics, so names must not differ in them alone.
fn unified(name: &str) -> Option<String> {
    name.contains(['.', '_']).then(|| name.replace('.', "_"))
}

/// Topics that exist, by their unified name, where the new ones may collide with one.
fn collisions(cluster: &Cluster, new: &[CreatableTopic]) -> HashMap<String, Str> {
    if new.iter().all(|topic| unified(&topic.name).is_none()) {
        return HashMap::new();
    }
    cluster.topics.iter().filter_map(|topic| Some((unified(&topic.name)?, topic.name.clone()))).collect()
}

fn check(cluster: &Cluster, topic: &CreatableTopic, like: &HashMap<String, Str>) -> Result<Plan, Refusal> {
    check_topic_name(&topic.name)?;
    if topic.name.as_str() == "__cluster_metadata" {
        let why = "Creation of internal topic __cluster_metadata is prohibited.";
        return Err(Refusal::new(ErrorCode::INVALID_REQUEST, why));
    }
    if cluster.topics.get(&topic.name).is_some() {
        let why = format!("Topic '{}' already exists.", topic.name);
        return Err(Refusal::new(ErrorCode::TOPIC_ALREADY_EXISTS, why));
    }
    if let Some(other) = unified(&topic.name).and_then(|name| like.get(&name)) {
        let why = format!("Topic '{}' collides with existing topic: {other}", topic.name);
        return Err(Refusal::new(ErrorCode::INVALID_TOPIC_EXCEPTION, why));
    }
    let mut overrides = Overrides::new();
    for config in &topic.configs {
        let null = || {
            let why = format!("Null value not supported for topic configs: {}", config.name);
            Refusal::new(ErrorCode::INVALID_CONFIG, why)
        };
        let value = config.value.as_deref().ok_or_else(null)?;
        settings::change(TOPIC_DEFINITIONS, &mut overrides, &config.name, settings::Change::Set, Some(value))?;
    }
    let (partitions, replicas, placed) = if topic.assignments.is_empty() {
        let (partitions, replicas) = counts(cluster, topic)?;
        (partitions, replicas, Vec::new())
    } else {
        assigned(cluster, topic)?
    };
    cluster.check_room(partitions as usize)?;
    Ok(Plan { partitions, replicas, placed, overrides })
}

fn counts(cluster: &Cluster, topic: &CreatableTopic) -> Result<(i32, usize), Refusal> {
    let replicas = match topic.replication_factor {
        -1 => cluster.config.default_replication.min(i16::try_from(cluster.nodes.len()).unwrap_or(i16::MAX)),
        n if n <= 0 => {
            let why = "Replication factor must be larger than 0, or -1 to use the default value.";
            return Err(Refusal::new(ErrorCode::INVALID_REPLICATION_FACTOR, why));
        }
        n => n,
    };
    let partitions = match topic.num_partitions {
        -1 => cluster.config.default_partitions,
        n if n <= 0 => {
            let why = "Number of partitions was set to an invalid non-positive value.";
            return Err(Refusal::new(ErrorCode::INVALID_PARTITIONS, why));
        }
        n => n,
    };
    if replicas as usize > cluster.nodes.len() {
        let why = format!("{replicas} replicas need as many brokers, and the cluster has {}.", cluster.nodes.len());
        return Err(Refusal::new(ErrorCode::INVALID_REPLICATION_FACTOR, why));
    }
    Ok((partitions, replicas as usize))
}

fn assigned(cluster: &Cluster, topic: &CreatableTopic) -> Result<(i32, usize, Vec<Vec<i32>>), Refusal> {
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
    let mut assignments: Vec<_> = topic.assignments.iter().collect();
    assignments.sort_by_key(|assignment| assignment.partition_index);
    if assignments.iter().enumerate().any(|(i, assignment)| assignment.partition_index != i as i32) {
        return bad(
            ErrorCode::INVALID_REPLICA_ASSIGNMENT,
            "partitions should be a consecutive 0-based integer sequence",
        );
    }
    let placed: Vec<Vec<i32>> = assignments.iter().map(|assignment| assignment.broker_ids.clone()).collect();
    let replicas = placed.first().map_or(0, Vec::len);
    cluster.check_placement(&placed, replicas)?;
    Ok((placed.len() as i32, replicas, placed))
}
