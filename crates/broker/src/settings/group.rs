//! Share-group settings (KIP-932, KIP-1240, KIP-1191): Kafka 4.4.0's names and defaults, bounds set by the broker.

use super::definition::{Definition, Kind, Overrides, find};
use crate::cluster::Refusal;
use crate::share_partition::Deliveries;
use Kind::{Bool, Int, List, Text};
use kafka_share_messages::ErrorCode;

const MAX_I32: i64 = i32::MAX as i64;

const fn def(name: &'static str, kind: Kind, default: &'static str, synonym: &'static str) -> Definition {
    Definition { name, kind, default, synonym }
}

/// Every group setting of Kafka 4.4.0. Those of consumer and streams groups are kept and shown, without effect.
pub(crate) const GROUP_DEFINITIONS: &[Definition] = &[
    def("consumer.assignment.interval.ms", Int(0, MAX_I32), "1000", "group.consumer.assignment.interval.ms"),
    def("consumer.heartbeat.interval.ms", Int(1, MAX_I32), "5000", "group.consumer.heartbeat.interval.ms"),
    def("consumer.session.timeout.ms", Int(1, MAX_I32), "45000", "group.consumer.session.timeout.ms"),
    def("errors.deadletterqueue.copy.record.enable", Bool, "false", "errors.deadletterqueue.copy.record.enable"),
    def("errors.deadletterqueue.topic.name", Text(&[]), "", "errors.deadletterqueue.topic.name"),
    def("share.assignment.interval.ms", Int(0, MAX_I32), "1000", "group.share.assignment.interval.ms"),
    def("share.auto.offset.reset", Text(&[]), "latest", "share.auto.offset.reset"),
    def("share.delivery.count.limit", Int(2, MAX_I32), "5", "group.share.delivery.count.limit"),
    def("share.heartbeat.interval.ms", Int(1, MAX_I32), "5000", "group.share.heartbeat.interval.ms"),
    def(
        "share.isolation.level",
        Text(&["read_committed", "read_uncommitted"]),
        "read_uncommitted",
        "share.isolation.level",
    ),
    def("share.partition.max.record.locks", Int(100, MAX_I32), "2000", "group.share.partition.max.record.locks"),
    def("share.record.lock.duration.ms", Int(1000, MAX_I32), "30000", "group.share.record.lock.duration.ms"),
    def("share.renew.acknowledge.enable", Bool, "true", "share.renew.acknowledge.enable"),
    def("share.session.timeout.ms", Int(1, MAX_I32), "45000", "group.share.session.timeout.ms"),
    def("streams.assignment.interval.ms", Int(0, MAX_I32), "1000", "group.streams.assignment.interval.ms"),
    def("streams.assignor.name", Text(&[]), "sticky", "group.streams.assignors"),
    def("streams.heartbeat.interval.ms", Int(1, MAX_I32), "5000", "group.streams.heartbeat.interval.ms"),
    def("streams.initial.rebalance.delay.ms", Int(0, MAX_I32), "3000", "group.streams.initial.rebalance.delay.ms"),
    def("streams.num.standby.replicas", Int(0, MAX_I32), "0", "group.streams.num.standby.replicas"),
    def("streams.rack.aware.assignment.tags", List(&[]), "", "group.streams.rack.aware.assignment.tags"),
    def("streams.session.timeout.ms", Int(1, MAX_I32), "45000", "group.streams.session.timeout.ms"),
];

/// Where a share-partition starts that has no state yet (`share.auto.offset.reset`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OffsetReset {
    /// At the log's start.
    Earliest,
    /// At the log's end.
    Latest,
    /// At the first record whose timestamp is not older than this many milliseconds before now.
    ByDuration(i64),
}

impl OffsetReset {
    /// Reads `earliest`, `latest` or `by_duration:` with an ISO-8601 duration that is not negative.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        match text {
            "earliest" => Some(Self::Earliest),
            "latest" => Some(Self::Latest),
            _ => iso_duration_ms(text.strip_prefix("by_duration:")?).map(Self::ByDuration),
        }
    }
}

/// Milliseconds of an ISO-8601 duration of days, hours, minutes and seconds, such as `P1DT2H` or `PT1.5S`. As Java reads
/// it: in either case, each number with a sign of its own, only seconds with a fraction, the sum not negative.
fn iso_duration_ms(text: &str) -> Option<i64> {
    let text = text.to_ascii_uppercase();
    let rest = text.strip_prefix('P')?;
    let (days, time) = match rest.split_once('T') {
        Some((_, "")) => return None,
        Some((days, time)) => (days, time),
        None => (rest, ""),
    };
    if days.is_empty() && time.is_empty() {
        return None;
    }
    let (day_ms, rest) = whole_units(days, 'D', 86_400_000)?;
    if !rest.is_empty() {
        return None;
    }
    let (hour_ms, rest) = whole_units(time, 'H', 3_600_000)?;
    let (minute_ms, rest) = whole_units(rest, 'M', 60_000)?;
    let second_ms = if rest.is_empty() { 0 } else { seconds_ms(rest.strip_suffix('S')?)? };
    let total = day_ms.checked_add(hour_ms)?.checked_add(minute_ms)?.checked_add(second_ms)?;
    (total >= 0).then_some(total)
}

/// Milliseconds of what stands before `unit`, and what comes after it.
fn whole_units(text: &str, unit: char, ms: i64) -> Option<(i64, &str)> {
    match text.split_once(unit) {
        Some((number, rest)) => Some((number.parse::<i64>().ok()?.checked_mul(ms)?, rest)),
        None => Some((0, text)),
    }
}

fn seconds_ms(text: &str) -> Option<i64> {
    let Some((whole, fraction)) = text.split_once(['.', ',']) else {
        return text.parse::<i64>().ok()?.checked_mul(1000);
    };
    if fraction.len() > 9 || !fraction.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let thousandths: i64 = format!("{fraction:0<3}").get(..3)?.parse().ok()?;
    let sign = if whole.starts_with('-') { -1 } else { 1 };
    whole.parse::<i64>().ok()?.checked_mul(1000)?.checked_add(sign * thousandths)
}

/// Bounds that the broker sets on group settings, in milliseconds and counts. The defaults are Kafka's; a test that
/// wants short locks lowers the minimum (Kafka's hard minimum of 1000 ms does not hold here).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupBounds {
    /// `group.share.min.record.lock.duration.ms` and `.max.`: 15,000 to 60,000.
    pub record_lock_ms: (i64, i64),
    /// `group.share.min.delivery.count.limit` and `.max.`: 2 to 10.
    pub delivery_count_limit: (i64, i64),
    /// `group.share.min.partition.max.record.locks` and `.max.`: 100 to 4,000.
    pub max_record_locks: (i64, i64),
    /// `group.share.min.heartbeat.interval.ms` and `.max.`: 5,000 to 15,000.
    pub heartbeat_ms: (i64, i64),
    /// `group.share.min.session.timeout.ms` and `.max.`: 45,000 to 60,000.
    pub session_timeout_ms: (i64, i64),
    /// `group.share.min.assignment.interval.ms` and `.max.`: 0 to 15,000.
    pub assignment_interval_ms: (i64, i64),
    /// `group.share.record.lock.duration.ms`, the default of groups that set none: 30,000.
    pub default_record_lock_ms: i64,
    /// `group.share.heartbeat.interval.ms`, the default: 5,000.
    pub default_heartbeat_ms: i64,
    /// `group.share.session.timeout.ms`, the default: 45,000.
    pub default_session_timeout_ms: i64,
    /// `group.share.max.size`: members of a group, 200.
    pub max_group_size: usize,
    /// `group.share.max.share.sessions`: share sessions of a node, 2,000.
    pub max_share_sessions: usize,
}

impl Default for GroupBounds {
    fn default() -> Self {
        GroupBounds {
            record_lock_ms: (15_000, 60_000),
            delivery_count_limit: (2, 10),
            max_record_locks: (100, 4_000),
            heartbeat_ms: (5_000, 15_000),
            session_timeout_ms: (45_000, 60_000),
            assignment_interval_ms: (0, 15_000),
            default_record_lock_ms: 30_000,
            default_heartbeat_ms: 5_000,
            default_session_timeout_ms: 45_000,
            max_group_size: 200,
            max_share_sessions: 2_000,
        }
    }
}

impl GroupBounds {
    fn range(&self, name: &str) -> Option<(i64, i64)> {
        Some(match name {
            "share.record.lock.duration.ms" => self.record_lock_ms,
            "share.delivery.count.limit" => self.delivery_count_limit,
            "share.partition.max.record.locks" => self.max_record_locks,
            "share.heartbeat.interval.ms" => self.heartbeat_ms,
            "share.session.timeout.ms" => self.session_timeout_ms,
            "share.assignment.interval.ms" => self.assignment_interval_ms,
            _ => return None,
        })
    }

    /// The default of a setting, where the broker has one of its own.
    pub(crate) fn default_of(&self, name: &str) -> Option<i64> {
        Some(match name {
            "share.record.lock.duration.ms" => self.default_record_lock_ms,
            "share.heartbeat.interval.ms" => self.default_heartbeat_ms,
            "share.session.timeout.ms" => self.default_session_timeout_ms,
            _ => return None,
        })
    }

    /// Checks values that a client wants to set, one by one and together.
    pub(crate) fn check(&self, overrides: &Overrides) -> Result<(), Refusal> {
        let bad = |why: String| Err(Refusal::new(ErrorCode::INVALID_CONFIG, why));
        for (name, value) in overrides {
            if let (Some((min, max)), Ok(n)) = (self.range(name), value.trim().parse::<i64>())
                && !(min..=max).contains(&n)
            {
                return bad(format!("{name} must be in the range {min} to {max} inclusive, as the broker is set"));
            }
        }
        if let Some(value) = overrides.get("share.auto.offset.reset").filter(|v| OffsetReset::parse(v).is_none()) {
            return bad(format!(
                "Invalid value {value} for configuration share.auto.offset.reset: \
                 earliest, latest or by_duration:<ISO-8601 duration> expected"
            ));
        }
        if overrides.get("errors.deadletterqueue.topic.name").is_some_and(|name| name.starts_with("__")) {
            return bad("errors.deadletterqueue.topic.name must not start with \"__\"".into());
        }
        let config = GroupConfig::new(overrides, self);
        if config.session_timeout_ms <= config.heartbeat_interval_ms {
            return bad("share.session.timeout.ms must be greater than share.heartbeat.interval.ms".into());
        }
        Ok(())
    }
}

/// Settings of a share group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupConfig {
    /// `share.record.lock.duration.ms`
    pub record_lock_duration_ms: i64,
    /// `share.delivery.count.limit`
    pub delivery_count_limit: i16,
    /// `share.partition.max.record.locks`
    pub max_record_locks: usize,
    /// `share.heartbeat.interval.ms`
    pub heartbeat_interval_ms: i64,
    /// `share.session.timeout.ms`
    pub session_timeout_ms: i64,
    /// `share.auto.offset.reset`
    pub auto_offset_reset: OffsetReset,
    /// `share.isolation.level` is `read_committed`
    pub read_committed: bool,
    /// `share.renew.acknowledge.enable`
    pub renew_enabled: bool,
    /// `share.assignment.interval.ms`
    pub assignment_interval_ms: i64,
    /// `errors.deadletterqueue.topic.name`; `None` where it is empty
    pub dead_letter_topic: Option<String>,
    /// `errors.deadletterqueue.copy.record.enable`
    pub dead_letter_copy: bool,
}

impl GroupConfig {
    /// What becomes of records that come back unacknowledged.
    pub(crate) fn deliveries(&self) -> Deliveries {
        Deliveries { limit: self.delivery_count_limit, dead_letters: self.dead_letter_topic.is_some() }
    }

    /// The settings that follow from checked overrides.
    pub(crate) fn new(overrides: &Overrides, bounds: &GroupBounds) -> Self {
        let text = |name: &str| {
            let default = || find(GROUP_DEFINITIONS, name).map_or("", |d| d.default).to_owned();
            let broker = || bounds.default_of(name).map(|n| n.to_string());
            overrides.get(name).cloned().or_else(broker).unwrap_or_else(default)
        };
        let number = |name: &str| text(name).trim().parse::<i64>().unwrap_or(0);
        let truth = |name: &str| text(name).trim().eq_ignore_ascii_case("true");
        GroupConfig {
            record_lock_duration_ms: number("share.record.lock.duration.ms"),
            delivery_count_limit: number("share.delivery.count.limit") as i16,
            max_record_locks: number("share.partition.max.record.locks") as usize,
            heartbeat_interval_ms: number("share.heartbeat.interval.ms"),
            session_timeout_ms: number("share.session.timeout.ms"),
            auto_offset_reset: OffsetReset::parse(&text("share.auto.offset.reset")).unwrap_or(OffsetReset::Latest),
            read_committed: text("share.isolation.level") == "read_committed",
            renew_enabled: truth("share.renew.acknowledge.enable"),
            assignment_interval_ms: number("share.assignment.interval.ms"),
            dead_letter_topic: Some(text("errors.deadletterqueue.topic.name")).filter(|name| !name.is_empty()),
            dead_letter_copy: truth("errors.deadletterqueue.copy.record.enable"),
        }
    }
}
