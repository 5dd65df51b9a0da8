//! What several APIs say about settings.

use crate::settings::{Definition, Overrides, TOPIC_DEFINITIONS};
use kafka_share_messages::create_topics_response::CreatableTopicConfigs;
use kafka_share_wire::Str;

/// Where a value comes from, as on the wire.
pub(super) const SOURCE_TOPIC: i8 = 1;
pub(super) const SOURCE_STATIC_BROKER: i8 = 4;
pub(super) const SOURCE_DEFAULT: i8 = 5;
pub(super) const SOURCE_GROUP: i8 = 8;

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
