//! A handle for worker tasks: acknowledges records without borrowing the consumer.

use super::records::{RecordId, ShareRecords};
use super::shared::Shared;
use crate::Result;
use kafka_share_core::share_acks::AckType;
use std::sync::Arc;

/// Acknowledges records of a consumer from any task; cheap to clone.
///
/// Acknowledgements are states written in memory; they ride on the next fetch, or go out by age, number or commit.
#[derive(Debug, Clone)]
pub struct Acknowledger {
    shared: Arc<Shared>,
}

impl Acknowledger {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Acknowledger { shared }
    }

    /// Acknowledges a record.
    ///
    /// # Errors
    /// In implicit mode; a record that was acknowledged before, whose lock is lost, or that another consumer delivered.
    pub fn acknowledge(&self, record: RecordId, ack: AckType) -> Result<()> {
        self.shared.acknowledge(record, ack)
    }

    /// Acknowledges all records of a poll that nothing was said of yet; answers how many.
    ///
    /// # Errors
    /// In implicit mode; records of another consumer.
    pub fn acknowledge_all(&self, records: &ShareRecords, ack: AckType) -> Result<usize> {
        self.shared.acknowledge_all(records, ack)
    }

    /// Renews the lock of a record without handing it out again; see
    /// [`KafkaShareConsumer::extend_lock`](super::KafkaShareConsumer::extend_lock).
    ///
    /// # Errors
    /// Records that are not held any more; brokers that cannot renew (before Kafka 4.2).
    pub fn extend_lock(&self, record: RecordId) -> Result<()> {
        self.shared.extend_lock(record)
    }
}
