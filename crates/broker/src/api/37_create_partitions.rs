//! CreatePartitions (v0-3): raises a topic's number of partitions.

use super::{Outcome, RequestContext};
use crate::cluster::{Cluster, Refusal};
use kafka_share_messages::create_partitions_request::CreatePartitionsTopic;
use kafka_share_messages::create_partitions_response::CreatePartitionsTopicResult;
use kafka_share_messages::{CreatePartitionsRequest, CreatePartitionsResponse, ErrorCode};
use kafka_share_wire::Str;
use std::collections::BTreeMap;

pub(crate) fn handle(
    cluster: &mut Cluster,
    _ctx: &RequestContext,
    request: CreatePartitionsRequest,
) -> Outcome<CreatePartitionsResponse> {
    let mut times: BTreeMap<&Str, usize> = BTreeMap::new();
    for topic in &request.topics {
        *times.entry(&topic.name).or_default() += 1;
    }
    let mut results = Vec::new();
    for (name, count) in &times {
        let Some(topic) = request.topics.iter().find(|topic| topic.name == **name) else { continue };
        let result = if *count > 1 {
            Err(Refusal::new(ErrorCode::INVALID_REQUEST, "Duplicate topic name."))
        } else {
            grow(cluster, topic, request.validate_only)
        };
        let refusal = result.err();
        results.push(CreatePartitionsTopicResult {
            name: (*name).clone(),
            error_code: refusal.as_ref().map_or(ErrorCode::NONE, |refusal| refusal.code),
            error_message: refusal.map(|refusal| Str::from(refusal.message)).filter(|m| !m.is_empty()),
            ..Default::default()
        });
    }
    Outcome::Reply(CreatePartitionsResponse { results, ..Default::default() })
}

fn grow(cluster: &mut Cluster, asked: &CreatePartitionsTopic, validate_only: bool) -> Result<(), Refusal> {
    let topic = cluster.topics.get(&asked.name).ok_or(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)?;
    let (id, have) = (topic.id, topic.partitions.len() as i32);
    let invalid = |why: String| Refusal::new(ErrorCode::INVALID_PARTITIONS, why);
    if asked.count <= have {
        let why = format!("topic {} has {have} partitions; {} would not be an increase", asked.name, asked.count);
        return Err(invalid(why));
    }
    if topic.internal {
        // Kafka allows it and thereby moves keys between coordinators; state here is placed by the number there is.
        return Err(invalid("the partitions of an internal topic are fixed".into()));
    }
    if let Some(assignments) = &asked.assignments {
        let bad = |why: &str| Err(Refusal::new(ErrorCode::INVALID_REPLICA_ASSIGNMENT, why));
        if assignments.len() as i32 != asked.count - have {
            return bad("there must be one assignment for each new partition");
        }
        let known = |id: &i32| cluster.node(*id).is_some();
        if assignments.iter().any(|a| a.broker_ids.is_empty() || !a.broker_ids.iter().all(known)) {
            return bad("an assignment is empty or names an unknown broker");
        }
    }
    cluster.check_room((asked.count - have) as usize)?;
    if !validate_only {
        cluster.grow_topic(id, asked.count);
    }
    Ok(())
}
