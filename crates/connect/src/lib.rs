//! Connect-style sink task driver on Kafka share groups.
//!
//! A [`SinkTask`] is written as for Kafka Connect: it is started with properties, gets records by [`SinkTask::put`], is
//! flushed, and stopped. [`WorkerShareSinkTask`] drives it from a share group (KAFKA-20367), so that there can be more
//! tasks than partitions, a slow task holds up only its own records, and records are redelivered one by one. It says
//! ACCEPT for what was put, RELEASE for what may work later, REJECT for what never will.
//!
//! [How to write a sink](guide), from its first line to running it.
//!
//! # Records
//! `key.converter`, `value.converter` and `header.converter` ([`converter::Converter`]) take `bytes` (the default), `string`,
//! `json`, `boolean`, `short`, `int`, `long`, `float` and `double`, or the classes of Connect's converters; with
//! `.schemas.enable=true`, JSON is an object of a schema and a payload, and what is not of its schema is a bad record. Then
//! [`transforms`] change, route and drop records. What cannot be converted or transformed is rejected with
//! `errors.tolerance=all`, and else fails the task.
//!
//! Schemas are kept per converter (`.schemas.cache.size`, 1000). `simple` is Connect's `SimpleHeaderConverter`; the default for
//! headers is `bytes`, which leaves them as they are.
//!
//! # Dead letters
//! The broker alone writes the group's dead letter queue (KIP-1191, Kafka 4.4): of records that are rejected, or delivered too
//! often. `errors.deadletterqueue.topic.name` sets it on the group and creates the topic where it is missing (with
//! `errors.deadletterqueue.topic.replication.factor`); one that takes no records is refused at start, because a broker
//! archives a record even where it cannot write its dead letter.
//!
//! # Time
//! Locks are renewed while a put goes on, where the broker can. A put or flush may take `task.put.timeout.ms` (5 minutes; -1 is
//! without end); then it is cancelled, its records are released, and the task fails. After a stop, a put that is under way
//! may go on for `task.shutdown.graceful.timeout.ms` (5 s). A sink must bear that its future is dropped at any await; its
//! [`stop`](SinkTask::stop) is called all the same. A batch whose put and commit take longer than the lock is told in the log,
//! in [`TaskStatus::slow`] and by metrics: raise `share.acquisition.lock.timeout.ms`, or lower
//! `consumer.override.max.poll.records`. Where brokers can (Kafka 4.2), a task acquires no more records than it polls
//! (`consumer.override.share.acquire.mode=record_limit`, unless it is set): others would wait behind a long put until their locks
//! end, which costs a delivery each time. Other tasks go on meanwhile, but a share-partition gives out no more than
//! `share.partition.max.record.locks` of the group (2000) records beyond the first that is not done: where one put may take so
//! long that others do that many, raise it, or lower `task.put.timeout.ms`. Sinks that get no records are flushed every `offset.flush.interval.ms` (60 s).
//!
//! # Metrics
//! [`Worker::metrics`] has Connect's `sink-task-metrics`, `connector-task-metrics` and `task-error-metrics` by their names, and
//! in `share-sink-task-metrics` records accepted, released, rejected, renewed, redelivered, and those whose locks were lost.
//! Of Connect's, there is no `sink-record-lag-max` (the lag of a share group is the group's, not a task's: `kshare groups
//! describe`), no `offset-commit-skip-*` (each acknowledgement has its outcome, and none is skipped), and no
//! `deadletterqueue-produce-*` (the broker writes dead letters); what is a name or a version there is in the REST interface.
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
//! A sink to another store can be exactly-once by itself ([`ExactlyOnceSupport::SourceOffsets`]), as the `postgres` sink is: it
//! stores with its output which records it has, and passes over those that come again. That needs no ledger, and any number
//! of workers may share the work.
//!
//! # Sinks
//! [`sinks::connector`] has `kafka`, `file`, `console`, `blackhole` and, with the crate's feature of that name, `postgres`; their
//! settings are with [`sinks::KafkaSink`], [`sinks::FileSink`], [`sinks::ConsoleSink`] and `sinks::PostgresSink`.
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
mod dead_letters;
pub mod error;
mod group;
#[doc = include_str!("../guide.md")]
pub mod guide {}
mod handle;
mod held;
mod metrics;
mod orders;
mod problems;
pub mod record;
mod renewal;
mod restart;
mod rows;
mod schema;
mod schema_cache;
pub mod settings;
pub mod sinks;
mod status;
mod supervisor;
pub mod task;
mod topic_name;
pub mod transforms;
mod validate;
pub mod worker;
mod worker_task;

pub use config::{ConnectorConfig, DeliverySemantics, Tolerance, WorkerConfig};
pub use error::ConnectError;
pub use handle::WorkerHandle;
pub use problems::Problem;
pub use record::{Data, SinkRecord};
pub use renewal::Renewal;
pub use restart::RestartPolicy;
pub use schema::{Schema, SchemaType};
pub use status::{TargetState, TaskState, TaskStatus};
pub use task::{ErrantRecordReporter, ExactlyOnceSupport, SinkConnector, SinkTask, SinkTaskContext, SourceGroup};
pub use topic_name::TopicName;
pub use validate::{Validation, unknown_settings, validate};
pub use worker::Worker;
pub use worker_task::WorkerShareSinkTask;

/// Settings by name, as tasks get them.
pub type Properties = std::collections::BTreeMap<String, String>;
