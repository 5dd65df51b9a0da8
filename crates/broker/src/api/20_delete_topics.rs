//! DeleteTopics (v1-6): by name, or by id from v6 on. A topic of the same name created later has another id.
//!
//! As in Kafka, a topic's rights are asked for before anything is said of it: whether a name exists, and which id it has.

use super::{Outcome, RequestContext};
use crate::cluster::Cluster;
use crate::security::Operation;
use kafka_share_messages::delete_topics_request::DeleteTopicState;
use kafka_share_messages::delete_topics_response::DeletableTopicResult;
use kafka_share_messages::{DeleteTopicsRequest, DeleteTopicsResponse, ErrorCode};
use kafka_share_wire::{Str, Uuid};
use std::collections::{HashMap, HashSet};

pub(crate) fn handle(
    cluster: &mut Cluster,
    ctx: &RequestContext,
    request: DeleteTopicsRequest,
) -> Outcome<DeleteTopicsResponse> {
    let by_name = |name| DeleteTopicState { name: Some(name), ..Default::default() };
    let asked = if ctx.version >= 6 { request.topics } else { request.topic_names.into_iter().map(by_name).collect() };
    let mut ids: HashMap<Uuid, usize> = HashMap::new();
    let mut names: HashMap<Str, usize> = HashMap::new();
    for topic in &asked {
        match (&topic.name, topic.topic_id.is_zero()) {
            (Some(name), true) => *names.entry(name.clone()).or_default() += 1,
            (None, false) => *ids.entry(topic.topic_id).or_default() += 1,
            _ => {}
        }
    }
    let rights = Rights { ctx, all: cluster.may_cluster(ctx, Operation::Delete).is_ok() };
    // A name may stand for a topic that its id stands for too. Only who may delete it is told so.
    let once = names.iter().filter(|(_, times)| **times == 1);
    let named = once.filter_map(|(name, _)| rights.named(cluster, name).ok());
    let both: HashSet<Uuid> = named.filter(|id| ids.contains_key(id)).collect();
    let mut responses = Vec::with_capacity(asked.len());
    for DeleteTopicState { name, topic_id, .. } in asked {
        match (name, topic_id.is_zero()) {
            (Some(name), true) => match names.get_mut(&name).map_or(0, std::mem::take) {
                0 => {}
                1 => responses.push(delete_named(cluster, &rights, name, &both)),
                // Answered once, with an error, as in Kafka.
                _ => responses.push(invalid(Some(name), topic_id, TWICE)),
            },
            (None, false) => match ids.get_mut(&topic_id).map_or(0, std::mem::take) {
                0 => {}
                1 if both.contains(&topic_id) => {}
                1 => responses.push(delete_by_id(cluster, &rights, topic_id)),
                _ => responses.push(invalid(None, topic_id, TWICE)),
            },
            (Some(name), false) => {
                let why = "Topic name and topic id can not both be specified.";
                responses.push(invalid(Some(name), topic_id, why));
            }
            (None, true) => responses.push(invalid(None, topic_id, "Neither topic name nor id were specified.")),
        }
    }
    Outcome::Reply(DeleteTopicsResponse { responses, ..Default::default() })
}

const TWICE: &str = "The topic is named more than once.";

/// What who asks may delete.
struct Rights<'a> {
    ctx: &'a RequestContext,
    /// Every topic, by a right on the cluster.
    all: bool,
}

impl Rights<'_> {
    fn may(&self, cluster: &Cluster, operation: Operation, name: &str) -> Result<(), ErrorCode> {
        if self.all { Ok(()) } else { cluster.may_topic(self.ctx, operation, name) }
    }

    /// The id of a topic that may be deleted.
    fn named(&self, cluster: &Cluster, name: &str) -> Result<Uuid, ErrorCode> {
        self.may(cluster, Operation::Describe, name)?;
        let found = cluster.topics.get(name).ok_or(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)?.id;
        self.may(cluster, Operation::Delete, name).map(|()| found)
    }
}

fn delete_named(cluster: &mut Cluster, rights: &Rights<'_>, name: Str, both: &HashSet<Uuid>) -> DeletableTopicResult {
    match rights.named(cluster, &name) {
        Ok(id) if both.contains(&id) => invalid(Some(name), id, TWICE),
        Ok(id) => deleted(cluster, rights, name, id),
        Err(code) => refused(Some(name), Uuid::ZERO, code),
    }
}

/// Who may not see the topic of an id is not told its name.
fn delete_by_id(cluster: &mut Cluster, rights: &Rights<'_>, id: Uuid) -> DeletableTopicResult {
    let Some(name) = cluster.topics.by_id(id).map(|topic| topic.name.clone()) else {
        return refused(None, id, ErrorCode::UNKNOWN_TOPIC_ID);
    };
    match rights.may(cluster, Operation::Delete, &name) {
        Ok(()) => deleted(cluster, rights, name, id),
        Err(code) => {
            let seen = rights.may(cluster, Operation::Describe, &name).is_ok();
            refused(seen.then_some(name), id, code)
        }
    }
}

fn deleted(cluster: &mut Cluster, rights: &Rights<'_>, name: Str, id: Uuid) -> DeletableTopicResult {
    cluster.delete_topic(rights.ctx.now, id);
    DeletableTopicResult { name: Some(name), topic_id: id, ..Default::default() }
}

fn invalid(name: Option<Str>, topic_id: Uuid, why: &'static str) -> DeletableTopicResult {
    let error_message = Some(Str::from_static(why));
    DeletableTopicResult { name, topic_id, error_code: ErrorCode::INVALID_REQUEST, error_message, ..Default::default() }
}

fn refused(name: Option<Str>, topic_id: Uuid, error_code: ErrorCode) -> DeletableTopicResult {
    let why = match error_code {
        ErrorCode::UNKNOWN_TOPIC_OR_PARTITION => "This server does not host this topic-partition.",
        ErrorCode::UNKNOWN_TOPIC_ID => "This server does not host this topic ID.",
        _ => "Topic authorization failed.",
    };
    let error_message = Some(Str::from_static(why));
    DeletableTopicResult { name, topic_id, error_code, error_message, ..Default::default() }
}
