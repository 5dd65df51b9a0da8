//! Connect-style sink task driver on Kafka share groups.
//!
//! A [`SinkTask`] is written as for Kafka Connect: it is started with properties, gets records by [`SinkTask::put`], is
//! flushed, and stopped. [`WorkerShareSinkTask`] drives it from a share group (KAFKA-20367), so that there can be more
//! tasks than partitions, a slow task holds up only its own records, and records are redelivered one by one. It says
//! ACCEPT for what was put, RELEASE for what may work later, REJECT for what never will.
//!
//! # Records
//! `key.converter`, `value.converter` and `header.converter` ([`converter::Converter`]) take `bytes` (the default), `string`,
//! `json`, `boolean`, `short`, `int`, `long`, `float` and `double`, or the classes of Connect's converters; with
//! `.schemas.enable=true`, JSON is an object of a schema and a payload, and what is not of its schema is a bad record. Then
//! [`transforms`] change, route and drop records. What cannot be converted or transformed is rejected with
//! `errors.tolerance=all`, and else fails the task.
//!
//! # Exactly-once
//! With `share.delivery.semantics=exactly-once` a sink that writes to the same cluster gets a transactional producer by
//! [`SinkTaskContext::producer`]; its output and the acknowledgements commit together, or not at all. Natively where the
//! cluster has transactional acknowledgements (KIP-1289, in no released Kafka), else by the
//! [ledger](kafka_share::ledger), which is created by `kshare ledger create` or with `ledger.auto.create=true`.
//! `share.ack.transaction.backend` (`auto`, `native`, `ledger`, `both`) and `share.ack.ledger.topic` are settings of the connector or
//! its worker, and count for the consumer and the producer of each task. The transactional id of task N is
//! `connect-<name>-N`: a task that starts again fences what it left behind, and so two workers must not run connectors of
//! the same name on one cluster.
//!
//! # Failures
//! A retriable error of a put is tried again with the same records, for `errors.retry.timeout`; any other is of a record
//! (`errors.tolerance`) or fails the task. A failed task stays FAILED until [`Worker::restart`], or is started again by the
//! [`RestartPolicy`]: `task.restart.max` times in a row (0, the default, is never; -1 without end), after
//! `task.restart.backoff.ms`, doubled each time up to `task.restart.backoff.max.ms`. Not so where a record that it releases would
//! be delivered for the last time next (`share.max.delivery.count`), so that no good record is archived by restarts alone.
//!
//! With `errors.tolerance=none` a bad record is released and fails the task, after the others of its batch were put and
//! accepted.

mod backend;
mod batch;
pub mod config;
pub mod converter;
pub mod error;
mod group;
pub mod record;
mod renewal;
mod restart;
mod schema;
pub mod sinks;
mod status;
mod supervisor;
pub mod task;
pub mod transforms;
pub mod worker;
mod worker_task;

pub use config::{ConnectorConfig, DeliverySemantics, Tolerance, WorkerConfig};
pub use error::ConnectError;
pub use record::{Data, SinkRecord};
pub use renewal::Renewal;
pub use restart::RestartPolicy;
pub use schema::{Schema, SchemaType};
pub use status::{TargetState, TaskState, TaskStatus};
pub use task::{ErrantRecordReporter, SinkConnector, SinkTask, SinkTaskContext};
pub use worker::Worker;
pub use worker_task::WorkerShareSinkTask;

/// Settings by name, as tasks get them.
pub type Properties = std::collections::BTreeMap<String, String>;
