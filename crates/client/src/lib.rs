//! Kafka share-group client: KafkaShareConsumer, TransactionalProducer and exactly-once acknowledgements.

pub mod config;
pub mod error;
pub mod net;

pub use config::ClientConfig;
pub use error::{Error, ErrorKind, Result, Severity};
pub use kafka_share_messages::ErrorCode;
pub use kafka_share_wire::{Str, Uuid};
