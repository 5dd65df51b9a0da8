//! DeleteTopics (v1-6): by name, or by id from v6 on. A topic of the same name created later has another id.

use super::{Outcome, RequestContext};
use crate::cluster::{Cluster, Refusal};
use crate::security::Operation;
use kafka_share_messages::delete_topics_request::DeleteTopicState;
use kafka_share_messages::delete_topics_response::DeletableTopicResult;
use kafka_share_messages::{DeleteTopicsRequest, DeleteTopicsResponse, ErrorCode};
use kafka_share_wire::{Str, Uuid};
use std::collections::HashMap;

pub(crate) fn handle(
    cluster: &mut Cluster,
    ctx: &RequestContext,
    request: DeleteTopicsRequest,
) -> Outcome<DeleteTopicsResponse> {
    let by_name = |name| DeleteTopicState { name: Some(name), ..Default::default() };
    let asked = if ctx.version >= 6 { request.topics } else { request.topic_names.into_iter().map(by_name).collect() };
    let mut ids: HashMap<Uuid, (usize, Option<Str>)> = HashMap::new();
    let mut names: HashMap<Str, usize> = HashMap::new();
    for topic in &asked {
        match &topic.name {
            Some(name) => *names.entry(name.clone()).or_default() += 1,
            None => ids.entry(topic.topic_id).or_default().0 += 1,
        }
    }
    // A name may stand for a topic that its id stands for too.
    for name in names.keys() {
        let named = cluster.topics.get(name).and_then(|topic| ids.get_mut(&topic.id));
        if let Some((_, also)) = named {
            *also = Some(name.clone());
        }
    }
    let also: HashMap<Str, Uuid> = ids.iter().filter_map(|(id, (_, name))| Some((name.clone()?, *id))).collect();
    let mut responses = Vec::with_capacity(asked.len());
    for topic in asked {
        let times = match &topic.name {
            Some(name) => names.get_mut(name).map(std::mem::take),
            None if topic.topic_id.is_zero() => Some(1),
            None => {
                ids.get_mut(&topic.topic_id).filter(|(_, name)| name.is_none()).map(|(times, _)| std::mem::take(times))
            }
        };
        let same = topic.name.as_ref().and_then(|name| also.get(name)).copied();
        match times {
            Some(1) if same.is_none() => responses.push(delete(cluster, ctx, topic)),
            // Answered once, with an error, as in Kafka.
            Some(1..) => responses.push(DeletableTopicResult {
                name: topic.name,
                topic_id: same.unwrap_or(topic.topic_id),
                error_code: ErrorCode::INVALID_REQUEST,
                error_message: Some(Str::from_static("The topic is named more than once.")),
                ..Default::default()
            }),
            _ => {}
        }
    }
    Outcome::Reply(DeleteTopicsResponse { responses, ..Default::default() })
}

/// Who may not see the topic of an id is not told its name.
fn allowed(cluster: &Cluster, ctx: &RequestContext, asked: &DeleteTopicState) -> Result<(), DeletableTopicResult> {
    let by_id = asked.name.is_none();
    let name = match &asked.name {
        Some(name) => Some(name.clone()),
        None => cluster.topics.by_id(asked.topic_id).map(|topic| topic.name.clone()),
    };
    let Some(name) = name else { return Ok(()) };
    let seen = cluster.may_topic(ctx, Operation::Describe, &name);
    seen.and_then(|()| cluster.may_topic(ctx, Operation::Delete, &name)).map_err(|error_code| DeletableTopicResult {
        name: if by_id && seen.is_err() { None } else { Some(name) },
        topic_id: asked.topic_id,
        error_code,
        error_message: Some(Str::from_static("Topic authorization failed.")),
        ..Default::default()
    })
}

fn delete(cluster: &mut Cluster, ctx: &RequestContext, asked: DeleteTopicState) -> DeletableTopicResult {
    if let Err(refused) = allowed(cluster, ctx, &asked) {
        return refused;
    }
    let found = match (&asked.name, asked.topic_id.is_zero()) {
        (Some(name), true) => cluster.topics.get(name).ok_or_else(|| {
            Refusal::new(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition.")
        }),
        (None, false) => cluster
            .topics
            .by_id(asked.topic_id)
            .ok_or_else(|| Refusal::new(ErrorCode::UNKNOWN_TOPIC_ID, "This server does not host this topic ID.")),
        (None, true) => Err(Refusal::new(ErrorCode::INVALID_REQUEST, "Neither topic name nor id were specified.")),
        (Some(_), false) => {
            Err(Refusal::new(ErrorCode::INVALID_REQUEST, "Topic name and topic id can not both be specified."))
        }
    };
    match found.map(|topic| (topic.id, topic.name.clone())) {
        Ok((id, name)) => {
            cluster.delete_topic(ctx.now, id);
            DeletableTopicResult { name: Some(name), topic_id: id, ..Default::default() }
        }
        Err(refusal) => DeletableTopicResult {
            name: asked.name,
            topic_id: asked.topic_id,
            error_code: refusal.code,
            error_message: Some(Str::from(refusal.message)),
            ..Default::default()
        },
    }
}
