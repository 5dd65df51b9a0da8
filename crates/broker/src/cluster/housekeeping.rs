//! What brokers do now and then: retention, compaction, forgetting idle producers and transactional ids.

use super::Cluster;
use crate::Now;
use std::time::Duration;

/// How often.
pub(super) const EVERY: Duration = Duration::from_secs(10);
/// How often idle producers are looked for (`producer.id.expiration.check.interval.ms`).
const PRODUCERS_EVERY: Duration = Duration::from_secs(600);

impl Cluster {
    pub(super) fn keep_house(&mut self, now: Now) {
        if now.mono < self.housekeeping {
            return;
        }
        self.housekeeping = now.mono + EVERY;
        self.transactions.expire_ids(now.wall_ms, self.config.transactional_id_expiration_ms);
        let idle = self.config.producer_id_expiration_ms;
        let look_for_idle = now.mono >= self.producers_checked + PRODUCERS_EVERY;
        if look_for_idle {
            self.producers_checked = now.mono;
        }
        let mut bytes = 0;
        let mut moved = Vec::new();
        for topic in self.topics.iter_mut() {
            let config = topic.config;
            for (index, partition) in topic.partitions.iter_mut().enumerate() {
                let start = partition.log.start_offset();
                if config.delete {
                    partition.log.retain(now.wall_ms, config.retention_ms, config.retention_bytes);
                }
                if partition.log.start_offset() > start {
                    moved.push((topic.id, index as i32, partition.log.start_offset()));
                }
                if config.compact && partition.log.compact(now.wall_ms, &config) {
                    tracing::debug!(topic = %topic.name, index, bytes = partition.log.bytes(), "partition compacted");
                }
                if look_for_idle {
                    partition.log.expire_producers(now.wall_ms, idle);
                }
                self.dirty.log((topic.id, index as i32));
                bytes += partition.log.bytes();
            }
        }
        self.log_bytes = bytes;
        for (topic, partition, start) in moved {
            crate::share::on_log_start_moved(self, now, topic, partition, start);
        }
    }
}
