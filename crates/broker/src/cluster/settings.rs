//! Settings of topics and groups, as the cluster keeps them.

use super::Cluster;
use crate::GroupConfig;
use crate::settings::{Overrides, TopicConfig};
use kafka_share_wire::Uuid;

impl Cluster {
    /// Replaces a topic's settings with checked ones.
    pub(crate) fn set_topic_overrides(&mut self, topic: Uuid, overrides: Overrides) {
        if let Some(topic) = self.topics.by_id_mut(topic) {
            topic.config = TopicConfig::new(&overrides);
            topic.overrides = overrides;
            self.dirty.topic(topic.id);
        }
    }

    /// What was set for `group` itself.
    pub(crate) fn group_overrides(&self, group: &str) -> Option<&Overrides> {
        self.group_overrides.get(group)
    }

    /// Groups that have settings of their own.
    pub(crate) fn configured_groups(&self) -> impl Iterator<Item = &str> {
        self.group_overrides.keys().map(String::as_str)
    }

    /// Replaces a group's settings with checked ones.
    pub(crate) fn set_group_overrides(&mut self, group: &str, overrides: Overrides) {
        self.share.forget_config(group);
        self.dirty.group_config(group);
        if overrides.is_empty() {
            self.group_overrides.remove(group);
        } else {
            self.group_overrides.insert(group.to_owned(), overrides);
        }
    }

    /// The settings in force for a share group, whether or not it exists.
    #[must_use]
    pub fn group_config(&self, group: &str) -> GroupConfig {
        let none = Overrides::new();
        GroupConfig::new(self.group_overrides.get(group).unwrap_or(&none), &self.config.groups)
    }
}
