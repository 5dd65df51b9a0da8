//! What several APIs say about settings.

use super::RequestContext;
use crate::cluster::Cluster;
use crate::security::Operation;
use crate::settings::{Definition, Overrides, TOPIC_DEFINITIONS};
use kafka_share_messages::ErrorCode;
use kafka_share_messages::create_topics_response::CreatableTopicConfigs;
use kafka_share_wire::Str;

/// Kinds of resources, as on the wire.
pub(super) const TOPIC: i8 = 2;
pub(super) const BROKER: i8 = 4;
pub(super) const BROKER_LOGGER: i8 = 8;
pub(super) const CLIENT_METRICS: i8 = 16;
pub(super) const GROUP: i8 = 32;

/// Where a value comes from, as on the wire.
pub(super) const SOURCE_TOPIC: i8 = 1;
pub(super) const SOURCE_STATIC_BROKER: i8 = 4;
pub(super) const SOURCE_DEFAULT: i8 = 5;
pub(super) const SOURCE_GROUP: i8 = 8;

/// Whether who asks may see or change the settings of a resource.
pub(super) fn may_configure(
    cluster: &Cluster,
    ctx: &RequestContext,
    kind: i8,
    name: &str,
    operation: Operation,
) -> Result<(), ErrorCode> {
    match kind {
        TOPIC => cluster.may_topic(ctx, operation, name),
        GROUP => cluster.may_group(ctx, operation, name),
        BROKER | BROKER_LOGGER | CLIENT_METRICS => cluster.may_cluster(ctx, operation),
        // Nobody has rights on what is not known.
        _ => Ok(()),
    }
}

pub(super) fn value_of<'a>(definition: &Definition, overrides: &'a Overrides) -> &'a str {
    overrides.get(definition.name).map_or(definition.default, String::as_str)
}

/// The settings of a topic that was just created.
pub(super) fn created_configs(overrides: &Overrides) -> Vec<CreatableTopicConfigs> {
    TOPIC_DEFINITIONS
        .iter()
        .map(|definition| CreatableTopicConfigs {
            name: Str::from_static(definition.name),
            value: Some(Str::from(value_of(definition, overrides))),
            read_only: false,
            config_source: if overrides.contains_key(definition.name) { SOURCE_TOPIC } else { SOURCE_DEFAULT },
            is_sensitive: false,
            ..Default::default()
        })
        .collect()
}

/// A broker's settings: name, ConfigType, value. They follow from how the broker was built and cannot be changed.
pub(super) fn broker_settings(cluster: &Cluster) -> Vec<(&'static str, i8, String)> {
    const BOOL: i8 = 1;
    const TEXT: i8 = 2;
    const INT: i8 = 3;
    let config = &cluster.config;
    let groups = &config.groups;
    let int = |name, value: i64| (name, INT, value.to_string());
    vec![
        ("auto.create.topics.enable", BOOL, config.auto_create_topics.to_string()),
        int("default.replication.factor", i64::from(config.default_replication)),
        ("errors.deadletterqueue.auto.create.topics.enable", BOOL, config.auto_create_dead_letter_topics.to_string()),
        ("errors.deadletterqueue.topic.name.prefix", TEXT, config.dead_letter_prefix.clone()),
        int("group.share.heartbeat.interval.ms", groups.default_heartbeat_ms),
        int("group.share.max.delivery.count.limit", groups.delivery_count_limit.1),
        int("group.share.max.partition.max.record.locks", groups.max_record_locks.1),
        int("group.share.max.record.lock.duration.ms", groups.record_lock_ms.1),
        int("group.share.max.session.timeout.ms", groups.session_timeout_ms.1),
        int("group.share.max.share.sessions", groups.max_share_sessions as i64),
        int("group.share.max.size", groups.max_group_size as i64),
        int("group.share.min.delivery.count.limit", groups.delivery_count_limit.0),
        int("group.share.min.partition.max.record.locks", groups.max_record_locks.0),
        int("group.share.min.record.lock.duration.ms", groups.record_lock_ms.0),
        int("group.share.min.session.timeout.ms", groups.session_timeout_ms.0),
        int("group.share.record.lock.duration.ms", groups.default_record_lock_ms),
        int("group.share.session.timeout.ms", groups.default_session_timeout_ms),
        int("message.max.bytes", 1_048_588),
        int("num.partitions", i64::from(config.default_partitions)),
        int("producer.id.expiration.ms", config.producer_id_expiration_ms),
        int("socket.request.max.bytes", config.max_request_bytes as i64),
        int("transaction.max.timeout.ms", i64::from(config.transaction_max_timeout_ms)),
    ]
}
