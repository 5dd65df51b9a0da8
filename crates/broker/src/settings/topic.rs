//! Topic settings of Kafka 4.4.0, and the typed view of those that this broker acts on.

use super::definition::{Definition, Kind, Overrides, find, items};
use Kind::{Bool, Int, List, Long, Ratio, Text};

const MAX_I32: i64 = i32::MAX as i64;
const MAX: i64 = i64::MAX;

const fn def(name: &'static str, kind: Kind, default: &'static str, synonym: &'static str) -> Definition {
    Definition { name, kind, default, synonym }
}

/// Every topic setting of Kafka 4.4.0. Those that describe disks and replication are kept and shown, without effect.
pub(crate) const TOPIC_DEFINITIONS: &[Definition] = &[
    def("cleanup.policy", List(&["compact", "delete"]), "delete", "log.cleanup.policy"),
    def("compression.gzip.level", Int(-1, 9), "-1", "compression.gzip.level"),
    def("compression.lz4.level", Int(1, 17), "9", "compression.lz4.level"),
    def(
        "compression.type",
        Text(&["uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"]),
        "producer",
        "compression.type",
    ),
    def("compression.zstd.level", Int(-131_072, 22), "3", "compression.zstd.level"),
    def("delete.retention.ms", Long(0, MAX), "86400000", "log.cleaner.delete.retention.ms"),
    def("errors.deadletterqueue.group.enable", Bool, "false", ""),
    def("file.delete.delay.ms", Long(0, MAX), "60000", "log.segment.delete.delay.ms"),
    def("flush.messages", Long(1, MAX), "9223372036854775807", "log.flush.interval.messages"),
    def("flush.ms", Long(0, MAX), "9223372036854775807", ""),
    def("follower.replication.throttled.replicas", List(&[]), "", ""),
    def("index.interval.bytes", Int(0, MAX_I32), "4096", "log.index.interval.bytes"),
    def("leader.replication.throttled.replicas", List(&[]), "", ""),
    def("local.retention.bytes", Long(-2, MAX), "-2", "log.local.retention.bytes"),
    def("local.retention.ms", Long(-2, MAX), "-2", "log.local.retention.ms"),
    def("max.compaction.lag.ms", Long(1, MAX), "9223372036854775807", "log.cleaner.max.compaction.lag.ms"),
    def("max.decompressed.message.bytes", Int(1, MAX_I32), "2147483639", "max.decompressed.message.bytes"),
    def("max.message.bytes", Int(0, MAX_I32), "1048588", "message.max.bytes"),
    def("message.timestamp.after.max.ms", Long(0, MAX), "3600000", "log.message.timestamp.after.max.ms"),
    def("message.timestamp.before.max.ms", Long(0, MAX), "9223372036854775807", "log.message.timestamp.before.max.ms"),
    def("message.timestamp.type", Text(&["CreateTime", "LogAppendTime"]), "CreateTime", "log.message.timestamp.type"),
    def("min.cleanable.dirty.ratio", Ratio, "0.5", "log.cleaner.min.cleanable.ratio"),
    def("min.compaction.lag.ms", Long(0, MAX), "0", "log.cleaner.min.compaction.lag.ms"),
    def("min.insync.replicas", Int(1, MAX_I32), "1", "min.insync.replicas"),
    def("preallocate", Bool, "false", "log.preallocate"),
    def("remote.copy.lag.bytes", Long(-1, MAX), "-1", "log.remote.copy.lag.bytes"),
    def("remote.copy.lag.ms", Long(-1, MAX), "0", "log.remote.copy.lag.ms"),
    def("remote.log.copy.disable", Bool, "false", ""),
    def("remote.log.delete.on.disable", Bool, "false", ""),
    def("remote.storage.enable", Bool, "false", ""),
    def("retention.bytes", Long(-1, MAX), "-1", "log.retention.bytes"),
    def("retention.ms", Long(-1, MAX), "604800000", ""),
    def("segment.bytes", Int(1_048_576, MAX_I32), "1073741824", "log.segment.bytes"),
    def("segment.index.bytes", Int(4, MAX_I32), "10485760", "log.index.size.max.bytes"),
    def("segment.jitter.ms", Long(0, MAX), "0", ""),
    def("segment.ms", Long(1, MAX), "604800000", ""),
    def("unclean.leader.election.enable", Bool, "false", "unclean.leader.election.enable"),
];

/// Topic settings that the broker acts on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TopicConfig {
    pub(crate) max_message_bytes: usize,
    pub(crate) max_decompressed_bytes: usize,
    pub(crate) log_append_time: bool,
    pub(crate) timestamp_before_max_ms: i64,
    pub(crate) timestamp_after_max_ms: i64,
    pub(crate) delete: bool,
    pub(crate) compact: bool,
    /// -1 for no limit.
    pub(crate) retention_ms: i64,
    /// -1 for no limit.
    pub(crate) retention_bytes: i64,
    pub(crate) segment_bytes: i64,
    pub(crate) segment_ms: i64,
    pub(crate) delete_retention_ms: i64,
    pub(crate) min_compaction_lag_ms: i64,
    pub(crate) max_compaction_lag_ms: i64,
    /// `min.cleanable.dirty.ratio` in millionths.
    dirty_ratio: u32,
    pub(crate) min_insync_replicas: usize,
    /// Whether groups may use the topic as their dead letter queue (KIP-1191).
    pub(crate) dead_letter_queue: bool,
}

impl TopicConfig {
    /// From which part of a compacted log on a pass is worthwhile, 0 to 1.
    pub(crate) fn min_cleanable_dirty_ratio(&self) -> f64 {
        f64::from(self.dirty_ratio) / 1e6
    }

    /// The settings that follow from checked overrides.
    pub(crate) fn new(overrides: &Overrides) -> Self {
        let text = |name: &str| {
            let default = find(TOPIC_DEFINITIONS, name).map_or("", |d| d.default);
            overrides.get(name).map_or(default, String::as_str)
        };
        let number = |name: &str| text(name).trim().parse::<i64>().unwrap_or(0);
        let policy = |which: &str| items(text("cleanup.policy")).any(|item| item == which);
        TopicConfig {
            max_message_bytes: number("max.message.bytes") as usize,
            max_decompressed_bytes: number("max.decompressed.message.bytes") as usize,
            log_append_time: text("message.timestamp.type") == "LogAppendTime",
            timestamp_before_max_ms: number("message.timestamp.before.max.ms"),
            timestamp_after_max_ms: number("message.timestamp.after.max.ms"),
            delete: policy("delete"),
            compact: policy("compact"),
            retention_ms: number("retention.ms"),
            retention_bytes: number("retention.bytes"),
            segment_bytes: number("segment.bytes"),
            segment_ms: number("segment.ms"),
            delete_retention_ms: number("delete.retention.ms"),
            min_compaction_lag_ms: number("min.compaction.lag.ms"),
            max_compaction_lag_ms: number("max.compaction.lag.ms"),
            dirty_ratio: (text("min.cleanable.dirty.ratio").trim().parse().unwrap_or(0.5) * 1e6) as u32,
            min_insync_replicas: number("min.insync.replicas") as usize,
            dead_letter_queue: text("errors.deadletterqueue.group.enable").trim().eq_ignore_ascii_case("true"),
        }
    }
}
