//! Producers: idempotent ([`Producer`]) and transactional ([`TransactionalProducer`]), from one machine.

mod ack_backend;
mod backend_choice;
mod both_backend;
mod builder;
mod checkpoints;
mod delivery;
mod lane;
mod ledger_backend;
mod metrics;
mod promises;
mod record;
mod sender;
mod session;
mod share_acknowledger;
mod shared;
mod spans;
mod transactional;
mod work;

pub use ack_backend::transactional_acknowledgements_offered;
pub use builder::{Compression, ProducerBuilder, TransactionalProducerBuilder};
pub use checkpoints::{CheckpointCoordinator, Recovered};
pub use delivery::Delivery;
pub use kafka_share_core::transaction::{CheckpointState, DamagedTransaction, PreparedTransaction, ProducerIdentity};
pub use record::{Payload, ProducerRecord, RecordMetadata};
pub use session::TransactionSession;
pub use share_acknowledger::TransactionalShareAcknowledger;
pub use transactional::TransactionalProducer;

use crate::{MetricsSnapshot, Result};
use sender::Stop;
use shared::Shared;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// An idempotent producer: every record is written once and in order, also where answers are lost and leaders move.
///
/// `send` may be called from any number of tasks. Dropping the producer lets its task deliver what was sent, as long as
/// the runtime lives; [`Producer::close`] waits for it.
#[derive(Debug)]
pub struct Producer {
    shared: Arc<Shared>,
    stop: Arc<Stop>,
}

impl Producer {
    /// Settings, with `bootstrap.servers` as a comma-separated list of `host:port`.
    pub fn builder(bootstrap_servers: &str) -> ProducerBuilder {
        ProducerBuilder::new(bootstrap_servers)
    }

    /// From Kafka's property names.
    ///
    /// # Errors
    /// As [`ProducerBuilder::from_properties`] and [`ProducerBuilder::build`].
    pub fn from_properties<K: AsRef<str>, V: AsRef<str>>(properties: impl IntoIterator<Item = (K, V)>) -> Result<Self> {
        ProducerBuilder::from_properties(properties)?.build()
    }

    fn new(shared: Arc<Shared>, stop: Arc<Stop>) -> Self {
        Producer { shared, stop }
    }

    /// Takes a record. Waits, up to `max.block.ms`, for the topic's metadata and for room in the buffer; the answer
    /// resolves when the record is written.
    ///
    /// # Cancel safety
    /// A call that is dropped before it returned took nothing.
    ///
    /// # Errors
    /// Unknown topics and partitions, records over the limits, a closed producer.
    pub async fn send(&self, record: ProducerRecord<'_>) -> Result<Delivery> {
        self.shared.send(record).await
    }

    /// Counters and gauges under Java's names, at this moment.
    #[must_use]
    pub fn metrics(&self) -> MetricsSnapshot {
        self.shared.metrics()
    }

    /// How its connections stand, for whoever looks for what is wrong; without secrets. What shares a
    /// [`Cluster`](crate::net::Cluster) shares its connections.
    #[must_use]
    pub fn connections(&self) -> Vec<crate::net::ConnectionInfo> {
        self.shared.cluster.connections()
    }

    /// Sends all records taken so far without lingering and waits until each is settled.
    ///
    /// # Cancel safety
    /// The records stay on their way.
    ///
    /// # Errors
    /// The first record that failed; all others are settled too.
    pub async fn flush(&self) -> Result<()> {
        let limit = self.shared.with(|s| s.machine.config().delivery_timeout);
        self.shared.flush(Instant::now() + limit + Duration::from_secs(1)).await
    }

    /// Delivers what was sent, for at most `timeout`, and ends; later sends fail. Records that are not delivered by then fail.
    ///
    /// # Cancel safety
    /// The producer ends all the same, once all is delivered.
    ///
    /// # Errors
    /// The first record that failed.
    pub async fn close(&self, timeout: Duration) -> Result<()> {
        self.shared.with(|s| s.machine.close());
        let result = self.shared.flush(Instant::now() + timeout).await;
        self.stop.now.store(true, Ordering::Release);
        self.shared.work.notify_one();
        result
    }
}

impl Drop for Producer {
    fn drop(&mut self) {
        self.shared.with(|s| s.machine.close());
        self.stop.when_idle.store(true, Ordering::Release);
        self.shared.work.notify_one();
    }
}
