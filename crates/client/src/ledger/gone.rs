//! Topics that are deleted: their records do not come again, and their start offsets are told by nobody.

use crate::Result;
use crate::net::{Cluster, Purpose};
use kafka_share_messages::metadata_request::MetadataRequestTopic;
use kafka_share_messages::{ErrorCode, MetadataRequest};
use kafka_share_wire::Uuid;
use std::collections::BTreeSet;
use std::time::Instant;

/// Those of the topics that no broker knows any more: one alone may not know of a topic yet, but then its leader does.
pub(super) async fn gone(cluster: &Cluster, topics: BTreeSet<Uuid>, deadline: Instant) -> Result<BTreeSet<Uuid>> {
    let mut gone = topics;
    if gone.is_empty() {
        return Ok(gone);
    }
    // All brokers that there are now.
    cluster.refresh_topics(&[], deadline).await?;
    for node in cluster.node_ids() {
        let row = |id: &Uuid| MetadataRequestTopic { name: None, topic_id: *id, ..MetadataRequestTopic::default() };
        let request = MetadataRequest {
            topics: Some(gone.iter().map(row).collect()),
            allow_auto_topic_creation: false,
            ..MetadataRequest::default()
        };
        let response = cluster.call_node(node, Purpose::Coordination, &request, deadline).await?;
        let unknown = response.topics.iter().filter(|t| t.error_code == ErrorCode::UNKNOWN_TOPIC_ID);
        let unknown: BTreeSet<Uuid> = unknown.map(|t| t.topic_id).collect();
        gone.retain(|id| unknown.contains(id));
        if gone.is_empty() {
            break;
        }
    }
    Ok(gone)
}
