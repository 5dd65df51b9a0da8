//! Kafka share-group client: KafkaShareConsumer, TransactionalProducer and exactly-once acknowledgements.

pub mod acknowledgements;
pub mod admin;
pub mod config;
pub mod consumer;
pub mod error;
pub mod net;
pub mod producer;
pub mod reader;

pub use acknowledgements::{AckType, ShareAcknowledgements, ShareGroupMetadata, TopicIdPartition};
pub use admin::Admin;
pub use config::ClientConfig;
pub use consumer::{
    AcknowledgementMode, Acknowledger, AcquireMode, BytesDeserializer, Deserialize, DeserializeError, Deserializer,
    KafkaShareConsumer, MetricsSnapshot, OwnedShareRecord, RecordId, ShareConsumerBuilder, ShareRecord, ShareRecords,
    StringDeserializer, TypedShareRecord,
};
pub use error::{Error, ErrorKind, Result, Severity};
pub use kafka_share_core::share_acks::{AckOutcome, Outcome};
pub use kafka_share_messages::ErrorCode;
pub use kafka_share_wire::records::Header;
pub use kafka_share_wire::{Str, Uuid};
pub use producer::{
    Compression, Delivery, Producer, ProducerBuilder, ProducerRecord, RecordMetadata, TransactionalProducer,
    TransactionalProducerBuilder, transactional_acknowledgements_offered,
};
pub use reader::{PartitionReader, ReadBatch, ReadRecord};

#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
