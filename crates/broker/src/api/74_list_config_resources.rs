//! ListConfigResources (v0-1): topics, brokers and groups that have settings. v0 asked for client metrics only.

use super::{Outcome, RequestContext};
use crate::api::configs::{BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP, TOPIC};
use crate::cluster::Cluster;
use crate::security::Operation;
use kafka_share_messages::list_config_resources_response::ConfigResource;
use kafka_share_messages::{ErrorCode, ListConfigResourcesRequest, ListConfigResourcesResponse};
use kafka_share_wire::Str;

pub(crate) fn handle(
    cluster: &mut Cluster,
    ctx: &RequestContext,
    request: ListConfigResourcesRequest,
) -> Outcome<ListConfigResourcesResponse> {
    if let Err(error_code) = cluster.may_cluster(ctx, Operation::DescribeConfigs) {
        return Outcome::Reply(ListConfigResourcesResponse { error_code, ..Default::default() });
    }
    let known = [BROKER_LOGGER, BROKER, TOPIC, GROUP, CLIENT_METRICS];
    if request.resource_types.iter().any(|asked| !known.contains(asked)) {
        let error_code = ErrorCode::UNSUPPORTED_VERSION;
        return Outcome::Reply(ListConfigResourcesResponse { error_code, ..Default::default() });
    }
    let asked = |kind: i8| match ctx.version {
        0 => false,
        _ => request.resource_types.is_empty() || request.resource_types.contains(&kind),
    };
    let mut config_resources = Vec::new();
    let mut add = |name: Str, kind: i8| {
        if asked(kind) {
            config_resources.push(ConfigResource { resource_name: name, resource_type: kind, ..Default::default() });
        }
    };
    for node in cluster.alive_nodes() {
        add(Str::from(node.id.to_string()), BROKER_LOGGER);
        add(Str::from(node.id.to_string()), BROKER);
    }
    for topic in cluster.topics.iter() {
        add(topic.name.clone(), TOPIC);
    }
    for group in cluster.configured_groups() {
        add(Str::from(group), GROUP);
    }
    Outcome::Reply(ListConfigResourcesResponse { config_resources, ..Default::default() })
}
