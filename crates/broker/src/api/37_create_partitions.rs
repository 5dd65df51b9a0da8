//! CreatePartitions (v0-3): raises a topic's number of partitions.

use super::{Outcome, RequestContext};
use crate::cluster::{Cluster, Refusal};
use crate::security::Operation;
use kafka_share_messages::create_partitions_request::CreatePartitionsTopic;
use kafka_share_messages::create_partitions_response::CreatePartitionsTopicResult;
use kafka_share_messages::{CreatePartitionsRequest, CreatePartitionsResponse, ErrorCode};
use kafka_share_wire::Str;
use std::collections::BTreeMap;

pub(crate) fn handle(
    cluster: &mut Cluster,
    ctx: &RequestContext,
    request: CreatePartitionsRequest,
) -> Outcome<CreatePartitionsResponse> {
    let mut topics: BTreeMap<&Str, (&CreatePartitionsTopic, bool)> = BTreeMap::new();
    for topic in &request.topics {
        topics.entry(&topic.name).and_modify(|(_, twice)| *twice = true).or_insert((topic, false));
    }
    let mut results = Vec::new();
    for (name, (topic, twice)) in topics {
        let result = if twice {
            Err(Refusal::new(ErrorCode::INVALID_REQUEST, "Duplicate topic name."))
        } else {
            cluster
                .may_topic(ctx, Operation::Alter, name)
                .map_err(|code| Refusal::new(code, "The topic authorization is failed."))
                .and_then(|()| grow(cluster, topic, request.validate_only))
        };
        let refusal = result.err();
        results.push(CreatePartitionsTopicResult {
            name: name.clone(),
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
    let mut placed: Vec<Vec<i32>> = Vec::new();
    if let Some(assignments) = &asked.assignments {
        let bad = |why: &str| Err(Refusal::new(ErrorCode::INVALID_REPLICA_ASSIGNMENT, why));
        if assignments.len() as i32 != asked.count - have {
            return bad("there must be one assignment for each new partition");
        }
        placed = assignments.iter().map(|assignment| assignment.broker_ids.clone()).collect();
        cluster.check_placement(&placed, topic.partitions.first().map_or(1, |p| p.replicas.len()))?;
    }
    cluster.check_room((asked.count - have) as usize)?;
    if !validate_only {
        cluster.grow_topic(id, asked.count);
        cluster.place_replicas(id, have as usize, placed);
    }
    Ok(())
}
