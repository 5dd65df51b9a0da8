//! Kafka share-group client: KafkaShareConsumer, TransactionalProducer and exactly-once acknowledgements.
//!
//! # A share consumer
//!
//! Records come a poll at a time, one by one ([`KafkaShareConsumer::recv`]) or as a stream
//! ([`KafkaShareConsumer::stream`]). In explicit mode each is acknowledged by itself; acknowledgements are written in
//! memory, ride on the next fetch, and have exactly one [`Outcome`] each.
//!
//! ```
//! use kafka_share::{AckType, Admin, AcknowledgementMode, ClientConfig, KafkaShareConsumer, Producer, ProducerRecord};
//! use std::time::Duration;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let broker = kafka_share_broker::EmbeddedBroker::builder().topic("orders", 1).start().await?;
//! # let servers = broker.bootstrap_servers();
//! let admin = Admin::new(ClientConfig::new(&servers))?;
//! admin.alter_share_group_configs("billing", &[("share.auto.offset.reset", "earliest")]).await?;
//! let producer = Producer::builder(&servers).build()?;
//! producer.send(ProducerRecord::new("orders").value("42")).await?.await?;
//!
//! let consumer = KafkaShareConsumer::builder(&servers, "billing")
//!     .acknowledgement_mode(AcknowledgementMode::Explicit)
//!     .build()?;
//! consumer.subscribe(["orders"])?;
//! let record = consumer.recv().await?;
//! match std::str::from_utf8(record.value().unwrap_or_default())?.parse::<u32>() {
//!     Ok(number) => {
//!         assert_eq!(number, 42);
//!         consumer.acknowledger().acknowledge(record.id(), AckType::Accept)?;
//!     }
//!     // Of no use to anybody: to the dead letter queue, where the group has one.
//!     Err(_) => consumer.acknowledger().acknowledge(record.id(), AckType::Reject)?,
//! }
//! let outcomes = consumer.commit_sync(Duration::from_secs(10)).await?;
//! assert!(outcomes.values().all(|outcome| *outcome == kafka_share::Outcome::Acknowledged));
//! consumer.close(Duration::from_secs(10)).await?;
//! # Ok(())
//! # }
//! ```
//!
//! Work that takes longer than the acquisition lock: [`ShareConsumerBuilder::lock_renewal`] renews the locks of what the
//! application holds; a record that is acknowledged with [`AckType::Renew`] comes from the next poll again with its new
//! lock, as in Java, and [`Acknowledger::extend_lock`] renews without that.
//!
//! # Spans and logs
//!
//! A share consumer has `tracing` spans at level debug: `share_poll`, `share_fetch`, `share_acknowledge` and
//! `share_group_heartbeat`, with OpenTelemetry's names (`messaging.system`, `messaging.operation.name` and `.type`,
//! `messaging.consumer.group.name`, `messaging.batch.message_count`) and `member`, `broker`, `session_epoch`,
//! `member_epoch`. A producer has `produce` for each request, `transaction_acknowledge` and `transaction_end`. Single records have none, as they cost nothing otherwise. Warnings tell of topics that are waited for and
//! of memberships that were lost, errors of corrupt batches and of brokers that answer nonsense.
//!
//! # Metrics
//!
//! `metrics()` of consumers and producers answers counters and gauges under Java's names. With the cargo feature `metrics` each
//! tells them every 5 s to the recorder that the application has installed for the `metrics` crate, with the labels `group`
//! and `client-id`, and `MetricsSnapshot::publish` does so at once.
//!
//! # Dropped futures
//!
//! Every async method says under *Cancel safety* what its drop leaves behind. None loses a record or an acknowledgement, and
//! none accepts anything that the application has not accepted.

pub mod acknowledgements;
pub mod admin;
mod alarm;
pub mod config;
pub mod consumer;
pub mod error;
#[cfg(feature = "metrics")]
mod facade;
pub mod ledger;
mod metrics;
pub mod net;
pub mod producer;
mod properties;
pub mod reader;
pub mod sasl;
mod secret;
pub mod security;
pub mod tls;

pub use acknowledgements::{AckType, ShareAcknowledgements, ShareGroupMetadata, TopicIdPartition};
pub use admin::Admin;
pub use config::ClientConfig;
pub use consumer::{
    AcknowledgementMode, Acknowledger, AcquireMode, BytesDeserializer, Deserialize, DeserializeError, Deserializer,
    KafkaShareConsumer, OwnedShareRecord, PartitionRecords, RecordId, ShareConsumerBuilder, ShareRecord, ShareRecords,
    StringDeserializer, TypedShareRecord,
};
pub use error::{Error, ErrorKind, Result, Severity};
pub use kafka_share_core::share_acks::{AckOutcome, Outcome};
pub use kafka_share_messages::ErrorCode;
pub use kafka_share_wire::records::{Header, Headers, TimestampType};
pub use kafka_share_wire::{Str, Uuid};
pub use metrics::{Meter, Metric, MetricsSnapshot};
pub use producer::{
    CheckpointCoordinator, CheckpointState, Compression, Delivery, PreparedTransaction, Producer, ProducerBuilder,
    ProducerRecord, RecordMetadata, TransactionSession, TransactionalProducer, TransactionalProducerBuilder,
    TransactionalShareAcknowledger, transactional_acknowledgements_offered,
};
pub use properties::PropertyEffect;
pub use reader::{PartitionReader, ReadBatch, ReadRecord};
pub use sasl::{OAuthToken, Sasl, TokenProvider};
pub use security::SecurityProtocol;
pub use tls::TlsConfig;

#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
