//! Settings of share groups as typed names: what there is, which values each takes, and setting several at once.

use super::{Admin, ConfigEntry, ConfigResource};
use crate::{Error, ErrorKind, Result};
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// A setting of a share group (KIP-932, KIP-1191, KIP-1222). Brokers bound many of them further, and older ones do not
/// know all of them; a name that is not here can be set with [`ShareGroupSettings::set`] all the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum GroupSetting {
    /// `share.auto.offset.reset`: where the group starts in a partition that it has not read yet.
    AutoOffsetReset,
    /// `share.record.lock.duration.ms`: how long a member keeps a record that it has not acknowledged.
    RecordLockDuration,
    /// `share.delivery.count.limit`: deliveries of a record before it is archived (Kafka 4.3).
    DeliveryCountLimit,
    /// `share.partition.max.record.locks`: records of a partition that may be locked at a time (Kafka 4.3).
    MaxRecordLocks,
    /// `share.isolation.level`: whether records of open and aborted transactions are delivered.
    IsolationLevel,
    /// `share.renew.acknowledge.enable`: whether members may renew locks (Kafka 4.3).
    RenewEnable,
    /// `share.heartbeat.interval.ms`: time between the heartbeats of a member.
    HeartbeatInterval,
    /// `share.session.timeout.ms`: silence after which a member is gone.
    SessionTimeout,
    /// `share.assignment.interval.ms`: least time between two assignments (Kafka 4.3).
    AssignmentInterval,
    /// `errors.deadletterqueue.topic.name`: topic for records that were rejected or delivered too often (Kafka 4.4).
    DeadLetterTopic,
    /// `errors.deadletterqueue.copy.record.enable`: whether that topic gets their keys, values and headers (4.4).
    DeadLetterCopy,
}

/// Which values a [`GroupSetting`] takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SettingKind {
    /// Milliseconds, from this many to 2^31-1.
    Millis(i32),
    /// A number, from this one to 2^31-1.
    Count(i32),
    /// `true` or `false`.
    Bool,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// `earliest`, `latest` or `by_duration:` and an ISO-8601 duration.
    OffsetReset,
    /// A topic's name; empty for none.
    Topic,
}

impl fmt::Display for SettingKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SettingKind::Millis(min) => write!(f, "a number of milliseconds from {min} to {}", i32::MAX),
            SettingKind::Count(min) => write!(f, "a number from {min} to {}", i32::MAX),
            SettingKind::Bool => f.write_str("true or false"),
            SettingKind::Choice(words) => f.write_str(&words.join(" or ")),
            SettingKind::OffsetReset => {
                f.write_str("earliest, latest or by_duration:<ISO-8601 duration, such as PT1H>")
            }
            SettingKind::Topic => f.write_str("a topic name that does not start with __, or nothing"),
        }
    }
}

impl GroupSetting {
    /// All of them.
    pub const ALL: &[GroupSetting] = &[
        GroupSetting::AutoOffsetReset,
        GroupSetting::RecordLockDuration,
        GroupSetting::DeliveryCountLimit,
        GroupSetting::MaxRecordLocks,
        GroupSetting::IsolationLevel,
        GroupSetting::RenewEnable,
        GroupSetting::HeartbeatInterval,
        GroupSetting::SessionTimeout,
        GroupSetting::AssignmentInterval,
        GroupSetting::DeadLetterTopic,
        GroupSetting::DeadLetterCopy,
    ];

    /// Its name in Kafka.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            GroupSetting::AutoOffsetReset => "share.auto.offset.reset",
            GroupSetting::RecordLockDuration => "share.record.lock.duration.ms",
            GroupSetting::DeliveryCountLimit => "share.delivery.count.limit",
            GroupSetting::MaxRecordLocks => "share.partition.max.record.locks",
            GroupSetting::IsolationLevel => "share.isolation.level",
            GroupSetting::RenewEnable => "share.renew.acknowledge.enable",
            GroupSetting::HeartbeatInterval => "share.heartbeat.interval.ms",
            GroupSetting::SessionTimeout => "share.session.timeout.ms",
            GroupSetting::AssignmentInterval => "share.assignment.interval.ms",
            GroupSetting::DeadLetterTopic => "errors.deadletterqueue.topic.name",
            GroupSetting::DeadLetterCopy => "errors.deadletterqueue.copy.record.enable",
        }
    }

    /// Which values it takes. Brokers bound numbers further (`group.share.min.*`, `group.share.max.*`).
    #[must_use]
    pub fn kind(self) -> SettingKind {
        match self {
            GroupSetting::AutoOffsetReset => SettingKind::OffsetReset,
            GroupSetting::RecordLockDuration => SettingKind::Millis(1000),
            GroupSetting::DeliveryCountLimit => SettingKind::Count(2),
            GroupSetting::MaxRecordLocks => SettingKind::Count(100),
            GroupSetting::IsolationLevel => SettingKind::Choice(&["read_committed", "read_uncommitted"]),
            GroupSetting::RenewEnable | GroupSetting::DeadLetterCopy => SettingKind::Bool,
            GroupSetting::HeartbeatInterval | GroupSetting::SessionTimeout => SettingKind::Millis(1),
            GroupSetting::AssignmentInterval => SettingKind::Millis(0),
            GroupSetting::DeadLetterTopic => SettingKind::Topic,
        }
    }

    /// Checks a value as far as a client can: the broker decides in the end.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`], with the values that are possible.
    pub fn check(self, value: &str) -> Result<()> {
        let number = |min: i32| value.trim().parse::<i32>().is_ok_and(|n| n >= min);
        let good = match self.kind() {
            SettingKind::Millis(min) | SettingKind::Count(min) => number(min),
            SettingKind::Bool => ["true", "false"].iter().any(|word| value.eq_ignore_ascii_case(word)),
            SettingKind::Choice(words) => words.contains(&value),
            SettingKind::OffsetReset => {
                matches!(value, "earliest" | "latest")
                    || value.strip_prefix("by_duration:").is_some_and(|d| d.starts_with(['P', 'p']))
            }
            SettingKind::Topic => !value.starts_with("__") && value.len() <= 249,
        };
        if good {
            return Ok(());
        }
        let text = format!("{}={value}: {} is expected", self.name(), self.kind());
        Err(Error::new(ErrorKind::InvalidInput, text))
    }
}

impl fmt::Display for GroupSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for GroupSetting {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        GroupSetting::ALL.iter().copied().find(|s| s.name() == name).ok_or_else(|| {
            let text = format!("{name:?} is not a setting of share groups that this client knows");
            Error::new(ErrorKind::InvalidInput, text)
        })
    }
}

/// `share.auto.offset.reset`: where a group starts in a partition that it has not read yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AutoOffsetReset {
    /// At the first record kept.
    Earliest,
    /// At the end, so that only new records are delivered. Kafka's default.
    #[default]
    Latest,
    /// At the first record that is not older than this, to the millisecond (KIP-1106).
    ByDuration(Duration),
}

impl fmt::Display for AutoOffsetReset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AutoOffsetReset::Earliest => f.write_str("earliest"),
            AutoOffsetReset::Latest => f.write_str("latest"),
            AutoOffsetReset::ByDuration(time) => {
                write!(f, "by_duration:PT{}.{:03}S", time.as_secs(), time.subsec_millis())
            }
        }
    }
}

/// Settings of a share group to set, or to take back to the broker's defaults.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let broker = kafka_share_broker::EmbeddedBroker::builder().start().await?;
/// # let servers = broker.bootstrap_servers();
/// use kafka_share::admin::{AutoOffsetReset, GroupSetting, ShareGroupSettings};
/// use kafka_share::{Admin, ClientConfig};
/// use std::time::Duration;
///
/// let admin = Admin::new(ClientConfig::new(&servers))?;
/// let settings = ShareGroupSettings::new()
///     .auto_offset_reset(AutoOffsetReset::Earliest)
///     .record_lock_duration(Duration::from_secs(20))
///     .set("share.heartbeat.interval.ms", "5000");
/// admin.apply_share_group_settings("orders-group", &settings).await?;
/// let now = admin.share_group_settings("orders-group").await?;
/// assert_eq!(now[GroupSetting::RecordLockDuration.name()].value.as_deref(), Some("20000"));
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[must_use = "settings do nothing until they are applied"]
pub struct ShareGroupSettings {
    changes: BTreeMap<String, Option<String>>,
}

impl ShareGroupSettings {
    /// Nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// `share.auto.offset.reset`.
    pub fn auto_offset_reset(self, reset: AutoOffsetReset) -> Self {
        self.set(GroupSetting::AutoOffsetReset.name(), &reset.to_string())
    }

    /// `share.record.lock.duration.ms`, in whole milliseconds. Brokers allow 15 to 60 s by default.
    pub fn record_lock_duration(self, time: Duration) -> Self {
        self.millis(GroupSetting::RecordLockDuration, time)
    }

    /// `share.delivery.count.limit` (Kafka 4.3). Brokers allow 2 to 10 by default.
    pub fn delivery_count_limit(self, deliveries: i16) -> Self {
        self.set(GroupSetting::DeliveryCountLimit.name(), &deliveries.to_string())
    }

    /// `share.partition.max.record.locks` (Kafka 4.3). Brokers allow 100 to 4,000 by default.
    pub fn max_record_locks(self, records: i32) -> Self {
        self.set(GroupSetting::MaxRecordLocks.name(), &records.to_string())
    }

    /// `share.isolation.level`: whether only records of committed transactions are delivered (default: all).
    pub fn read_committed(self, only: bool) -> Self {
        let level = if only { "read_committed" } else { "read_uncommitted" };
        self.set(GroupSetting::IsolationLevel.name(), level)
    }

    /// `share.heartbeat.interval.ms`. Brokers allow 5 to 15 s by default.
    pub fn heartbeat_interval(self, time: Duration) -> Self {
        self.millis(GroupSetting::HeartbeatInterval, time)
    }

    /// `share.session.timeout.ms`. Brokers allow 45 to 60 s by default.
    pub fn session_timeout(self, time: Duration) -> Self {
        self.millis(GroupSetting::SessionTimeout, time)
    }

    /// `errors.deadletterqueue.topic.name` (Kafka 4.4).
    pub fn dead_letter_topic(self, topic: &str) -> Self {
        self.set(GroupSetting::DeadLetterTopic.name(), topic)
    }

    /// Any setting, by its Kafka name. Names that this client does not know go to the broker as they are.
    pub fn set(mut self, name: &str, value: &str) -> Self {
        self.changes.insert(name.to_owned(), Some(value.to_owned()));
        self
    }

    /// Takes a setting back to the broker's default.
    pub fn unset(mut self, name: &str) -> Self {
        self.changes.insert(name.to_owned(), None);
        self
    }

    /// Whether there is nothing to change.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    fn millis(self, setting: GroupSetting, time: Duration) -> Self {
        self.set(setting.name(), &time.as_millis().to_string())
    }

    /// Checks the values of the names that this client knows.
    ///
    /// # Errors
    /// As [`GroupSetting::check`].
    pub fn check(&self) -> Result<()> {
        for (name, value) in &self.changes {
            if let (Ok(setting), Some(value)) = (name.parse::<GroupSetting>(), value) {
                setting.check(value)?;
            }
        }
        Ok(())
    }
}

impl Admin {
    /// Settings of a share group as they hold, defaults included, by name. A group that does not exist has all defaults.
    ///
    /// # Cancel safety
    /// Only asks (DescribeConfigs): nothing is half done.
    ///
    /// # Errors
    /// The broker's refusal; where no broker answers.
    pub async fn share_group_settings(&self, group: &str) -> Result<BTreeMap<String, ConfigEntry>> {
        let mut all = self.describe_configs(&ConfigResource::Group(group.to_owned()), &[]).await?;
        // Brokers keep settings of all kinds of groups under one resource.
        all.retain(|name, _| !name.starts_with("consumer.") && !name.starts_with("streams."));
        Ok(all)
    }

    /// Changes settings of a share group, all or none, and waits until every broker shows them (see
    /// [`Admin::alter_share_group_configs`]).
    ///
    /// # Cancel safety
    /// As [`Admin::alter_share_group_configs`]: before IncrementalAlterConfigs went out nothing is changed, after it
    /// all of `settings` or none, and what is dropped then is the wait for the brokers that are behind.
    ///
    /// # Errors
    /// Values that cannot be, before anything is sent; the broker's refusal, unknown names say; a timeout where some
    /// broker does not show the change in time.
    pub async fn apply_share_group_settings(&self, group: &str, settings: &ShareGroupSettings) -> Result<()> {
        settings.check()?;
        if settings.is_empty() {
            return Ok(());
        }
        let changes: Vec<(&str, Option<&str>)> =
            settings.changes.iter().map(|(name, value)| (name.as_str(), value.as_deref())).collect();
        self.alter_group_and_wait(group, &changes).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_checked_by_name_and_unknown_names_are_possible() {
        for (name, value) in [
            ("share.record.lock.duration.ms", "999"),
            ("share.record.lock.duration.ms", "soon"),
            ("share.record.lock.duration.ms", "2147483648"),
            ("share.delivery.count.limit", "1"),
            ("share.partition.max.record.locks", "-1"),
            ("share.isolation.level", "none"),
            ("share.auto.offset.reset", "sometimes"),
            ("share.auto.offset.reset", "by_duration:1h"),
            ("share.renew.acknowledge.enable", "yes"),
            ("errors.deadletterqueue.topic.name", "__secret"),
        ] {
            let error = ShareGroupSettings::new().set(name, value).check().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput);
            assert!(error.to_string().contains(name) && error.to_string().contains("expected"), "{error}");
        }
        ShareGroupSettings::new().set("share.of.the.future", "1").unset("share.session.timeout.ms").check().unwrap();
        let day = AutoOffsetReset::ByDuration(Duration::from_millis(86_400_250));
        assert_eq!(day.to_string(), "by_duration:PT86400.250S");
        ShareGroupSettings::new().auto_offset_reset(day).check().unwrap();
    }

    #[test]
    fn names_are_read_back() {
        for setting in GroupSetting::ALL {
            assert_eq!(setting.name().parse::<GroupSetting>().unwrap(), *setting);
        }
        assert!("share.nothing".parse::<GroupSetting>().is_err());
    }
}
