//! DeleteTopics (v1-6): by name, or by id from v6 on. A topic of the same name created later has another id.

use super::{Outcome, RequestContext};
use crate::cluster::{Cluster, Refusal};
use kafka_share_messages::delete_topics_request::DeleteTopicState;
use kafka_share_messages::delete_topics_response::DeletableTopicResult;
use kafka_share_messages::{DeleteTopicsRequest, DeleteTopicsResponse, ErrorCode};
use kafka_share_wire::Str;

pub(crate) fn handle(
    cluster: &mut Cluster,
    ctx: &RequestContext,
    request: DeleteTopicsRequest,
) -> Outcome<DeleteTopicsResponse> {
    let by_name = |name| DeleteTopicState { name: Some(name), ..Default::default() };
    let asked = if ctx.version >= 6 { request.topics } else { request.topic_names.into_iter().map(by_name).collect() };
    let responses = asked.into_iter().map(|topic| delete(cluster, ctx, topic)).collect();
    Outcome::Reply(DeleteTopicsResponse { responses, ..Default::default() })
}

fn delete(cluster: &mut Cluster, ctx: &RequestContext, asked: DeleteTopicState) -> DeletableTopicResult {
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
