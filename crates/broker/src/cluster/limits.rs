//! What clients can make the machine keep is bounded; beyond a bound they get an error that says so.
//!
//! Kafka has none of these bounds, as its limit is the disk; the codes are the closest that its clients know. Bounds that
//! Kafka does have, such as members of a group and share sessions, stand where they are used.

use super::Cluster;
use super::Refusal;
use kafka_share_messages::ErrorCode;
use kafka_share_wire::Str;

/// Topics that a member may subscribe to.
const MAX_SUBSCRIBED: usize = 10_000;
/// Bytes of a transaction marker in a log.
const MARKER: usize = 78;

impl Cluster {
    /// Refuses records beyond the memory that the cluster was given.
    pub(crate) fn check_memory(&self, more: usize) -> Result<(), ErrorCode> {
        let fits = self.log_bytes.saturating_add(more) <= self.config.max_log_bytes;
        if fits { Ok(()) } else { Err(ErrorCode::KAFKA_STORAGE_ERROR) }
    }

    /// Refuses transactions whose markers there would be no room for.
    pub(crate) fn check_marker_memory(&self, markers: usize) -> Result<(), ErrorCode> {
        self.check_memory(markers.saturating_mul(MARKER))
    }

    /// Refuses partitions beyond those that the cluster was given room for.
    pub(crate) fn check_room(&self, more: usize) -> Result<(), Refusal> {
        let (have, most) = (self.topics.partitions(), self.config.max_partitions);
        if have.saturating_add(more) > most {
            let why =
                format!("{more} partitions more would exceed the {most} that this broker may hold ({have} in use)");
            return Err(Refusal::new(ErrorCode::INVALID_PARTITIONS, why));
        }
        Ok(())
    }

    /// Refuses groups beyond the limit, unless this one exists.
    pub(crate) fn check_group_room(&self, group: &str) -> Result<(), Refusal> {
        let full = |what: &str, most: usize| {
            let why = format!("This broker may hold {most} {what}; delete groups that are not used.");
            Err(Refusal::new(ErrorCode::GROUP_MAX_SIZE_REACHED, why))
        };
        let groups = &self.share.groups;
        if groups.get(group).is_none() && groups.iter().len() >= self.config.max_groups {
            return full("share groups", self.config.max_groups);
        }
        if self.share.store.len() >= self.config.max_share_partitions {
            return full("share-partitions", self.config.max_share_partitions);
        }
        Ok(())
    }

    /// Refuses subscriptions that no group could use.
    pub(crate) fn check_subscription(&self, topics: Option<&[Str]>) -> Result<(), Refusal> {
        let topics = topics.unwrap_or_default();
        if topics.len() > MAX_SUBSCRIBED {
            let why = format!("A member may subscribe to {MAX_SUBSCRIBED} topics, these are {}.", topics.len());
            return Err(Refusal::new(ErrorCode::INVALID_REQUEST, why));
        }
        Ok(())
    }

    /// Refuses settings of groups beyond the limit, unless this one has some.
    pub(crate) fn check_group_config_room(&self, group: &str) -> Result<(), Refusal> {
        let most = self.config.max_group_configs;
        if self.group_overrides(group).is_none() && self.configured_groups().count() >= most {
            let why = format!("This broker may hold the settings of {most} groups; delete those that are not used.");
            return Err(Refusal::new(ErrorCode::POLICY_VIOLATION, why));
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "limits_tests.rs"]
mod tests;
