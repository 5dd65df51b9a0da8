//! Settings of topics, groups and brokers: definitions with Kafka's names, defaults and ranges, and overrides.

mod definition;
mod group;
mod topic;

pub(crate) use definition::{Change, Definition, Overrides, change, find};
pub(crate) use group::GROUP_DEFINITIONS;
pub use group::{GroupBounds, GroupConfig, OffsetReset};
pub(crate) use topic::{TOPIC_DEFINITIONS, TopicConfig};

#[cfg(test)]
mod tests;
