//! IncrementalAlterConfigs (v0-1): changes settings of topics and groups, all of a resource or none.
//!
//! A broker's settings follow from how it was built: changes of them are refused with POLICY_VIOLATION.

use super::configs::{BROKER, GROUP, TOPIC, may_configure};
use super::{Outcome, RequestContext};
use crate::cluster::{Cluster, Refusal};
use crate::security::Operation;
use crate::settings::{Change, Definition, GROUP_DEFINITIONS, Overrides, TOPIC_DEFINITIONS, change};
use kafka_share_messages::incremental_alter_configs_request::AlterConfigsResource;
use kafka_share_messages::incremental_alter_configs_response::AlterConfigsResourceResponse;
use kafka_share_messages::{ErrorCode, IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse};
use kafka_share_wire::Str;
use std::collections::{HashMap, HashSet};

pub(crate) fn handle(
    cluster: &mut Cluster,
    ctx: &RequestContext,
    request: IncrementalAlterConfigsRequest,
) -> Outcome<IncrementalAlterConfigsResponse> {
    let mut responses = Vec::with_capacity(request.resources.len());
    let mut times: HashMap<(i8, &str), usize> = HashMap::new();
    for resource in &request.resources {
        *times.entry((resource.resource_type, &resource.resource_name)).or_default() += 1;
    }
    for resource in &request.resources {
        if times[&(resource.resource_type, resource.resource_name.as_str())] > 1 {
            let twice = Refusal::new(ErrorCode::INVALID_REQUEST, "Each resource must appear at most once.");
            responses.push(answer(resource, Some(twice)));
            continue;
        }
        let refusal = alter(cluster, ctx, resource, request.validate_only).err();
        responses.push(answer(resource, refusal));
    }
    Outcome::Reply(IncrementalAlterConfigsResponse { responses, ..Default::default() })
}

fn answer(resource: &AlterConfigsResource, refusal: Option<Refusal>) -> AlterConfigsResourceResponse {
    AlterConfigsResourceResponse {
        error_code: refusal.as_ref().map_or(ErrorCode::NONE, |refusal| refusal.code),
        error_message: refusal.map(|refusal| Str::from(refusal.message)),
        resource_type: resource.resource_type,
        resource_name: resource.resource_name.clone(),
        ..Default::default()
    }
}

fn alter(
    cluster: &mut Cluster,
    ctx: &RequestContext,
    resource: &AlterConfigsResource,
    validate_only: bool,
) -> Result<(), Refusal> {
    let name = resource.resource_name.as_str();
    may_configure(cluster, ctx, resource.resource_type, name, Operation::AlterConfigs)?;
    match resource.resource_type {
        TOPIC if name.is_empty() => {
            Err(Refusal::new(ErrorCode::INVALID_REQUEST, "settings belong to one topic, whose name is missing"))
        }
        TOPIC => {
            let missing = || {
                let why = format!("The topic '{name}' does not exist.");
                Refusal::new(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION, why)
            };
            let topic = cluster.topics.get(name).ok_or_else(missing)?;
            let (id, mut overrides) = (topic.id, topic.overrides.clone());
            apply(TOPIC_DEFINITIONS, &mut overrides, resource)?;
            if !validate_only {
                cluster.set_topic_overrides(id, overrides);
            }
            Ok(())
        }
        GROUP if name.is_empty() => {
            Err(Refusal::new(ErrorCode::INVALID_REQUEST, "settings belong to one group, whose id is missing"))
        }
        GROUP => {
            let mut overrides = cluster.group_overrides(name).cloned().unwrap_or_default();
            apply(GROUP_DEFINITIONS, &mut overrides, resource)?;
            cluster.config.groups.check(&overrides)?;
            cluster.check_group_config_room(name)?;
            if !validate_only {
                cluster.set_group_overrides(name, overrides);
                crate::share::on_group_config_changed(cluster, ctx.now, name);
            }
            Ok(())
        }
        BROKER => {
            let why = "the settings of an embedded broker are fixed when it is built";
            Err(Refusal::new(ErrorCode::POLICY_VIOLATION, why))
        }
        other => Err(Refusal::new(ErrorCode::INVALID_REQUEST, format!("Unknown resource type {other}"))),
    }
}

fn apply(
    definitions: &'static [Definition],
    overrides: &mut Overrides,
    resource: &AlterConfigsResource,
) -> Result<(), Refusal> {
    let mut seen = HashSet::new();
    for config in &resource.configs {
        if !seen.insert(config.name.as_str()) {
            let why = format!("Error due to duplicate config keys: {}", config.name);
            return Err(Refusal::new(ErrorCode::INVALID_REQUEST, why));
        }
        let unknown = || Refusal::new(ErrorCode::UNKNOWN_SERVER_ERROR, "");
        let operation = Change::from_wire(config.config_operation).ok_or_else(unknown)?;
        change(definitions, overrides, &config.name, operation, config.value.as_deref())?;
    }
    Ok(())
}
