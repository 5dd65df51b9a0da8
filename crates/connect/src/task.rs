//! What a sink implements, with Kafka Connect's names and contract.

use crate::{ConnectError, Properties, SinkRecord, TopicName};
use async_trait::async_trait;
use kafka_share::admin::SharePartitionOffset;
use kafka_share::{Admin, TransactionalProducer};
use std::sync::{Arc, Mutex, PoisonError};

/// Takes records out of Kafka. The same whether records come from a share group or not.
///
/// ```
/// use kafka_share_connect::{ConnectError, Properties, SinkRecord, SinkTask, SinkTaskContext};
///
/// struct Counting(u64);
///
/// #[async_trait::async_trait]
/// impl SinkTask for Counting {
///     fn version(&self) -> &str {
///         "1.0"
///     }
///     async fn start(&mut self, _context: SinkTaskContext, _properties: &Properties) -> Result<(), ConnectError> {
///         Ok(())
///     }
///     async fn put(&mut self, records: &[SinkRecord]) -> Result<(), ConnectError> {
///         self.0 += records.len() as u64;
///         Ok(())
///     }
/// }
/// ```
#[async_trait]
pub trait SinkTask: Send {
    /// Version of the sink.
    fn version(&self) -> &str;

    /// Called once, before any record.
    ///
    /// # Errors
    /// The task does not run then.
    async fn start(&mut self, context: SinkTaskContext, properties: &Properties) -> Result<(), ConnectError>;

    /// Writes records. A retriable error gives the same records again, in the same order; any other means that they
    /// cannot be written, and the driver looks for the one that is at fault by putting parts of them.
    ///
    /// # Errors
    /// See [`ConnectError`].
    async fn put(&mut self, records: &[SinkRecord]) -> Result<(), ConnectError>;

    /// Makes what was put durable. Records are acknowledged after it.
    ///
    /// # Errors
    /// The records since the last flush are not acknowledged then.
    async fn flush(&mut self) -> Result<(), ConnectError> {
        Ok(())
    }

    /// Called once, at the end.
    async fn stop(&mut self) {}
}

/// Makes the tasks of a sink.
pub trait SinkConnector: Send + Sync {
    /// Checks the connector's properties.
    ///
    /// # Errors
    /// Names the setting and the fix.
    fn start(&mut self, properties: &Properties) -> Result<(), ConnectError>;

    /// A new task, not started.
    fn new_task(&self) -> Box<dyn SinkTask>;

    /// Properties of each of at most `max_tasks` tasks; all the same by default.
    fn task_configs(&self, properties: &Properties, max_tasks: usize) -> Vec<Properties> {
        vec![properties.clone(); max_tasks]
    }

    /// Names of the sink's own settings, beside those of all connectors, so that others are told to be unknown when settings
    /// are [validated](crate::validate()); `None` where it does not say.
    fn settings(&self) -> Option<&'static [&'static str]> {
        None
    }

    /// Version of the sink, for its status.
    fn version(&self) -> &str {
        env!("CARGO_PKG_VERSION")
    }

    /// How `share.delivery.semantics=exactly-once` is kept, if it can be.
    fn exactly_once_support(&self) -> ExactlyOnceSupport {
        ExactlyOnceSupport::Unsupported
    }
}

/// How a sink can be exactly-once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ExactlyOnceSupport {
    /// It cannot: the setting is refused.
    #[default]
    Unsupported,
    /// Its output goes to Kafka through [`SinkTaskContext::producer`], and commits together with the acknowledgements.
    KafkaTransaction,
    /// It stores which records it has written, in one transaction with what it writes, and passes over what it has: see
    /// [`SinkTaskContext::exactly_once`]. Records are acknowledged in the ordinary way after the put.
    SourceOffsets,
}

/// What a task gets from its driver.
#[derive(Debug, Clone)]
pub struct SinkTaskContext {
    task: usize,
    producer: Option<Arc<TransactionalProducer>>,
    source: Option<SourceGroup>,
    reporter: ErrantRecordReporter,
}

impl SinkTaskContext {
    pub(crate) fn new(task: usize, producer: Option<Arc<TransactionalProducer>>, source: Option<SourceGroup>) -> Self {
        SinkTaskContext { task, producer, source, reporter: ErrantRecordReporter::default() }
    }

    /// With exactly-once semantics by [`ExactlyOnceSupport::SourceOffsets`]: the group that the records are of. The task must
    /// pass over records that it has stored before, by group, topic id, partition and offset.
    #[must_use]
    pub fn exactly_once(&self) -> Option<&SourceGroup> {
        self.source.as_ref()
    }

    /// Number of the task, from 0.
    #[must_use]
    pub fn task(&self) -> usize {
        self.task
    }

    /// With exactly-once semantics: the producer whose open transaction also holds the acknowledgements. The driver
    /// begins and commits; the task only sends.
    #[must_use]
    pub fn producer(&self) -> Option<&Arc<TransactionalProducer>> {
        self.producer.as_ref()
    }

    /// Where single bad records are reported, while the rest of a put succeeds.
    #[must_use]
    pub fn errant_record_reporter(&self) -> &ErrantRecordReporter {
        &self.reporter
    }
}

/// The share group that records come from.
#[derive(Debug, Clone)]
pub struct SourceGroup {
    group_id: String,
    admin: Admin,
}

impl SourceGroup {
    pub(crate) fn new(group_id: String, admin: Admin) -> Self {
        SourceGroup { group_id, admin }
    }

    /// Its id.
    #[must_use]
    pub fn group_id(&self) -> &str {
        &self.group_id
    }

    /// Where it stands. A record before the start offset of its share-partition is never delivered again, unless an
    /// administrator resets the group; a task whose lock has run out may still hold one.
    ///
    /// # Cancel safety
    /// Only asks.
    ///
    /// # Errors
    /// What the cluster refuses.
    pub async fn start_offsets(&self) -> Result<Vec<SharePartitionOffset>, ConnectError> {
        Ok(self.admin.describe_share_group_offsets(&self.group_id).await?)
    }
}

/// Takes reports of single bad records of the put that is under way, or of the flush after it. With `errors.tolerance=all` they are rejected,
/// and the others accepted; with `none` the task fails after the put.
#[derive(Debug, Clone, Default)]
pub struct ErrantRecordReporter {
    reports: Arc<Mutex<Vec<Report>>>,
}

#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) topic: TopicName,
    pub(crate) partition: i32,
    pub(crate) offset: i64,
    pub(crate) error: String,
}

impl ErrantRecordReporter {
    /// Reports a record.
    pub fn report(&self, record: &SinkRecord, error: impl std::fmt::Display) {
        let (topic, partition, offset) = (record.original_topic.clone(), record.partition, record.offset);
        let report = Report { topic, partition, offset, error: error.to_string() };
        self.reports.lock().unwrap_or_else(PoisonError::into_inner).push(report);
    }

    pub(crate) fn take(&self) -> Vec<Report> {
        std::mem::take(&mut *self.reports.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
