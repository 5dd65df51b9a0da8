//! DescribeConfigs (v1-4): settings of topics, groups and brokers, with what they fall back to (synonyms).

use super::configs::{BROKER, GROUP, SOURCE_DEFAULT, SOURCE_GROUP, SOURCE_STATIC_BROKER, SOURCE_TOPIC, TOPIC};
use super::configs::{broker_settings, may_configure, value_of};
use super::{Outcome, RequestContext, budget};
use crate::cluster::{Cluster, Refusal, check_topic_name};
use crate::security::Operation;
use crate::settings::{Definition, GROUP_DEFINITIONS, Overrides, TOPIC_DEFINITIONS};
use kafka_share_messages::describe_configs_request::DescribeConfigsResource;
use kafka_share_messages::describe_configs_response::{
    DescribeConfigsResourceResult, DescribeConfigsResult, DescribeConfigsSynonym,
};
use kafka_share_messages::{DescribeConfigsRequest, DescribeConfigsResponse, ErrorCode};
use kafka_share_wire::Str;

pub(crate) fn handle(
    cluster: &mut Cluster,
    ctx: &RequestContext,
    request: DescribeConfigsRequest,
) -> Outcome<DescribeConfigsResponse> {
    let one = |resource: &DescribeConfigsResource| {
        let result = describe(cluster, ctx, resource, request.include_synonyms);
        let refusal = result.as_ref().err().cloned();
        DescribeConfigsResult {
            error_code: refusal.as_ref().map_or(ErrorCode::NONE, |refusal| refusal.code),
            error_message: Some(refusal.map(|refusal| Str::from(refusal.message)).unwrap_or_default()),
            resource_type: resource.resource_type,
            resource_name: resource.resource_name.clone(),
            configs: result.unwrap_or_default(),
            ..Default::default()
        }
    };
    let weight = |row: &DescribeConfigsResult| row.configs.iter().map(|config| 1 + config.synonyms.len()).sum();
    let results = budget::rows(request.resources.iter().map(one), weight);
    budget::reply(results, |results| DescribeConfigsResponse { results, ..Default::default() })
}

fn describe(
    cluster: &Cluster,
    ctx: &RequestContext,
    resource: &DescribeConfigsResource,
    synonyms: bool,
) -> Result<Vec<DescribeConfigsResourceResult>, Refusal> {
    let name = resource.resource_name.as_str();
    let keys = resource.configuration_keys.as_ref().filter(|keys| !keys.is_empty());
    let asked = |name: &str| keys.is_none_or(|keys| keys.iter().any(|key| key.as_str() == name));
    let none = Overrides::new();
    let settings = |definitions: &'static [Definition], overrides: &Overrides, source: i8| {
        let of = |d: &Definition| describe_one(cluster, d, overrides, source, synonyms);
        definitions.iter().filter(|d| asked(d.name)).map(of).collect()
    };
    may_configure(cluster, ctx, resource.resource_type, name, Operation::DescribeConfigs)?;
    match resource.resource_type {
        TOPIC => {
            check_topic_name(name)?;
            let topic = cluster.topics.get(name).ok_or(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)?;
            Ok(settings(TOPIC_DEFINITIONS, &topic.overrides, SOURCE_TOPIC))
        }
        GROUP if name.is_empty() => Err(Refusal::new(ErrorCode::INVALID_REQUEST, "a group id is needed")),
        GROUP => Ok(settings(GROUP_DEFINITIONS, cluster.group_overrides(name).unwrap_or(&none), SOURCE_GROUP)),
        BROKER if name.is_empty() => Ok(Vec::new()),
        BROKER if name == ctx.node.to_string() => Ok(broker_settings(cluster)
            .into_iter()
            .filter(|(name, ..)| asked(name))
            .map(|(name, config_type, value)| DescribeConfigsResourceResult {
                name: Str::from_static(name),
                value: Some(Str::from(value)),
                read_only: true,
                config_source: SOURCE_STATIC_BROKER,
                config_type,
                documentation: None,
                ..Default::default()
            })
            .collect()),
        BROKER => {
            let why = format!("this is broker {}, which knows nothing of broker {name}", ctx.node);
            Err(Refusal::new(ErrorCode::INVALID_REQUEST, why))
        }
        other => Err(Refusal::new(ErrorCode::INVALID_REQUEST, format!("resource type {other} is not known here"))),
    }
}

fn describe_one(
    cluster: &Cluster,
    definition: &Definition,
    overrides: &Overrides,
    source: i8,
    synonyms: bool,
) -> DescribeConfigsResourceResult {
    let own = overrides.get(definition.name);
    let fallback = match cluster.config.groups.default_of(definition.name) {
        Some(n) if source == SOURCE_GROUP => n.to_string(),
        _ => definition.default.to_owned(),
    };
    let synonym = |name: &'static str, value: &str, source: i8| DescribeConfigsSynonym {
        name: Str::from_static(name),
        value: Some(Str::from(value)),
        source,
        ..Default::default()
    };
    let mut list = Vec::new();
    if synonyms {
        list.extend(own.map(|value| synonym(definition.name, value, source)));
        if !definition.synonym.is_empty() {
            list.push(synonym(definition.synonym, &fallback, SOURCE_DEFAULT));
        }
    }
    let value = if own.is_some() { value_of(definition, overrides).to_owned() } else { fallback };
    DescribeConfigsResourceResult {
        name: Str::from_static(definition.name),
        value: Some(Str::from(value)),
        read_only: false,
        config_source: if own.is_some() { source } else { SOURCE_DEFAULT },
        is_sensitive: false,
        synonyms: list,
        config_type: definition.kind.wire_type(),
        documentation: None,
        ..Default::default()
    }
}
