//! Connect-style sink task driver on Kafka share groups.
//!
//! A [`SinkTask`] is written as for Kafka Connect: it is started with properties, gets records by [`SinkTask::put`], is
//! flushed, and stopped. [`WorkerShareSinkTask`] drives it from a share group (KAFKA-20367), so that there can be more
//! tasks than partitions, a slow task holds up only its own records, and records are redelivered one by one. It says
//! ACCEPT for what was put, RELEASE for what may work later, REJECT for what never will.

pub mod config;
pub mod converter;
pub mod error;
pub mod record;
mod renewal;
pub mod sinks;
pub mod task;
pub mod worker;
mod worker_task;

pub use config::{ConnectorConfig, DeliverySemantics, Tolerance, WorkerConfig};
pub use error::ConnectError;
pub use record::{Data, SinkRecord};
pub use renewal::Renewal;
pub use task::{ErrantRecordReporter, SinkConnector, SinkTask, SinkTaskContext};
pub use worker::{TaskState, TaskStatus, Worker};
pub use worker_task::WorkerShareSinkTask;

/// Settings by name, as tasks get them.
pub type Properties = std::collections::BTreeMap<String, String>;
