//! The machine behind a lock, shared by the senders of records and the task that carries requests.

use super::delivery::{Delivery, Promise, settled};
use super::metrics::{Call, Metrics};
use super::promises::Promises;
use super::record::ProducerRecord;
use crate::net::Cluster;
use crate::{Error, ErrorKind, MetricsSnapshot, Result, Severity};
use kafka_share_core::producer::{
    AppendError, BatchError, BatchErrorKind, Output, ProduceFailure, Producer as Machine, RecordParts,
};
use kafka_share_core::transaction::{Transaction, TxnError, TxnErrorKind};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::sync::Notify;

#[derive(Debug)]
pub(super) struct Shared {
    pub(super) cluster: Arc<Cluster>,
    state: Mutex<State>,
    /// Something is to be done by the task.
    pub(super) work: Notify,
    /// Batches were settled, or the task is gone.
    progress: Notify,
    pub(super) max_block: Duration,
    pub(super) metrics: Metrics,
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) machine: Machine,
    promises: Promises,
    /// The task has ended; nothing will ever be sent again.
    gone: bool,
    /// Whether nothing was left to do when the task looked last.
    was_idle: bool,
    /// Bytes in the buffer at the task's last turn.
    was_buffered: usize,
}

/// What the producer's task is to do.
pub(super) struct Turn {
    pub(super) outputs: Vec<Output>,
    /// When it looks again, if nothing rings.
    pub(super) deadline: Option<Instant>,
    /// Nothing waits, and nothing is in flight.
    pub(super) idle: bool,
}

impl Shared {
    pub(super) fn new(cluster: Arc<Cluster>, machine: Machine, max_block: Duration) -> Arc<Self> {
        let state = State { machine, promises: Promises::default(), gone: false, was_idle: true, was_buffered: 0 };
        Arc::new(Shared {
            cluster,
            state: Mutex::new(state),
            work: Notify::new(),
            progress: Notify::new(),
            max_block,
            metrics: Metrics::default(),
        })
    }

    pub(super) fn with<T>(&self, run: impl FnOnce(&mut State) -> T) -> T {
        run(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Runs on the transaction; an idempotent producer has none.
    pub(super) fn with_transaction<T>(&self, run: impl FnOnce(&mut Transaction) -> T) -> Result<T> {
        let none = || Error::new(ErrorKind::InvalidState, "this producer has no transactional.id");
        self.with(|s| s.machine.transaction_mut().map(run)).ok_or_else(none)
    }

    pub(super) fn block_deadline(&self) -> Instant {
        Instant::now() + self.max_block
    }

    /// Deadline of a request that no caller waits for: `request.timeout.ms`.
    pub(super) fn request_deadline(&self) -> Instant {
        self.cluster.request_deadline(Instant::now() + Duration::from_secs(86_400))
    }

    /// Appends a record; waits for the topic's metadata and for room in the buffer.
    pub(super) async fn send(&self, record: ProducerRecord<'_>) -> Result<Delivery> {
        // A loop of sends that all find room must leave the producer's task its turn, where both share one thread.
        tokio::task::coop::consume_budget().await;
        match self.try_append(&record) {
            Ok(delivery) => Ok(delivery),
            Err(_) => self.send_when_possible(&record).await,
        }
    }

    async fn send_when_possible(&self, record: &ProducerRecord<'_>) -> Result<Delivery> {
        let deadline = self.block_deadline();
        let mut refreshed = false;
        loop {
            // Registered before the attempt, so that progress in between is not missed.
            let progress = self.progress.notified();
            let error = match self.try_append(record) {
                Ok(delivery) => return Ok(delivery),
                Err(error) => error,
            };
            match error {
                AppendError::UnknownTopic => self.learn(&record.topic, deadline).await?,
                // The topic may have grown since.
                AppendError::NoSuchPartition(..) if !refreshed => {
                    refreshed = true;
                    self.cluster.refresh_topics(&[record.topic.as_ref().into()], deadline).await?;
                    self.learn(&record.topic, deadline).await?;
                }
                AppendError::Full => {
                    // What lingers would keep its room until it has lingered.
                    self.with(|s| s.machine.seal_all());
                    self.work.notify_one();
                    let _time = self.metrics.time(Call::Buffer);
                    if tokio::time::timeout_at(deadline.into(), progress).await.is_err() {
                        self.metrics.buffer_exhausted();
                        let text = "the producer's buffer (buffer.memory) stayed full for max.block.ms";
                        return Err(Error::new(ErrorKind::Timeout, text));
                    }
                }
                error => return Err(append_error(&record.topic, error)),
            }
        }
    }

    async fn learn(&self, topic: &str, deadline: Instant) -> Result<()> {
        let _time = self.metrics.time(Call::Metadata);
        let topic = self.cluster.topic(topic, true, deadline).await?;
        self.with(|s| s.machine.handle_topic(&topic));
        Ok(())
    }

    fn try_append(&self, record: &ProducerRecord<'_>) -> std::result::Result<Delivery, AppendError> {
        let headers = record.wire_headers();
        let timestamp = record.timestamp.unwrap_or_else(wall_clock);
        let parts =
            RecordParts { timestamp, key: record.key.as_deref(), value: record.value.as_deref(), headers: &headers };
        let (delivery, wake) = self.with(|s| {
            if s.gone {
                return Err(AppendError::Closed);
            }
            let partition = match record.partition {
                Some(partition) => partition,
                None => s
                    .machine
                    .choose_partition(&record.topic, parts.key, Machine::estimate(&parts))
                    .ok_or(AppendError::UnknownTopic)?,
            };
            let appended = s.machine.append_at(Instant::now, &record.topic, partition, parts)?;
            let promise = s.promises.count(appended.batch);
            Ok((Delivery { promise, partition, index: appended.index, timestamp }, appended.wake))
        })?;
        if wake {
            self.work.notify_one();
        }
        Ok(delivery)
    }

    /// Sends all that is collected and waits until it is settled.
    pub(super) async fn flush(&self, deadline: Instant) -> Result<()> {
        let _time = self.metrics.time(Call::Flush);
        let promises: Vec<Arc<Promise>> = self.with(|s| {
            let last = s.machine.seal_all();
            s.promises.up_to(last)
        });
        self.work.notify_one();
        let all = async {
            let mut first = Ok(());
            for promise in promises {
                if let Err(error) = settled(promise).await {
                    first = first.and(Err(error));
                }
            }
            first
        };
        match tokio::time::timeout_at(deadline.into(), all).await {
            Ok(result) => result,
            Err(_) => Err(Error::new(ErrorKind::Timeout, "not all records were delivered in time")),
        }
    }

    /// Waits until nothing is collected and nothing is in flight.
    pub(super) async fn idle(&self, deadline: Instant) -> Result<()> {
        self.work.notify_one();
        loop {
            let progress = self.progress.notified();
            match self.with(|s| (s.gone, s.machine.is_idle())) {
                (_, true) => return Ok(()),
                (true, _) => return Err(closed()),
                _ => {}
            }
            if tokio::time::timeout_at(deadline.into(), progress).await.is_err() {
                return Err(self.not_idle());
            }
        }
    }

    fn not_idle(&self) -> Error {
        self.with(|s| match s.machine.any_refusal() {
            None => Error::new(ErrorKind::Timeout, "not all requests were answered in time"),
            Some((topic, partition, code)) => {
                let text = format!("not all records were written in time: {topic}-{partition} answers {code}");
                Error::new(ErrorKind::Timeout, text).with_code(Some(code))
            }
        })
    }

    /// Takes what the machine wants done; settles batches on the way.
    pub(super) fn take_turn(&self) -> Turn {
        let mut settled = Vec::new();
        let (turn, news) = self.with(|s| {
            let mut outputs = Vec::new();
            while let Some(output) = s.machine.poll_output(Instant::now()) {
                match output {
                    Output::Done(batch, result) => {
                        let severity = s.machine.transaction().map(severity);
                        settled.extend(s.promises.remove(batch).map(|p| (p, result, severity)));
                    }
                    Output::Split(batch, parts) => s.promises.split(batch, &parts),
                    other => outputs.push(other),
                }
            }
            let idle = s.machine.is_idle();
            let before = std::mem::replace(&mut s.was_idle, idle);
            // An answer gives room back even where its batches were done before, by their time.
            let buffered = s.machine.buffered_bytes();
            let room = buffered < std::mem::replace(&mut s.was_buffered, buffered);
            // Of the same moment: what comes after it wakes the task where it must not wait for this deadline.
            (Turn { outputs, deadline: s.machine.next_deadline(), idle }, room || (idle && !before))
        });
        let news = news || !settled.is_empty();
        for ((promise, records), result, severity) in settled {
            if result.is_err() {
                self.metrics.failed(records);
            }
            promise.settle(result.map_err(|error| match severity {
                Some(severity) => batch_error(error).with_severity(severity),
                None => batch_error(error),
            }));
        }
        // For news alone: who waits rings the task, and the two would keep each other awake.
        if news {
            self.progress.notify_waiters();
        }
        turn
    }

    pub(super) fn metrics(&self) -> MetricsSnapshot {
        let (used, total, in_flight) = self
            .with(|s| (s.machine.buffered_bytes(), s.machine.config().buffer_memory, s.machine.requests_in_flight()));
        self.metrics.snapshot(used, total, in_flight)
    }

    /// The task has ended: all that waits fails now.
    pub(super) fn handle_gone(&self) {
        let promises = self.with(|s| {
            s.gone = true;
            s.machine.close();
            std::mem::take(&mut s.promises)
        });
        for promise in promises.into_all() {
            promise.settle(Err(closed()));
        }
        self.progress.notify_waiters();
    }
}

pub(super) fn closed() -> Error {
    Error::new(ErrorKind::Closed, "the producer is closed, or its runtime has stopped")
}

fn wall_clock() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

fn append_error(topic: &str, error: AppendError) -> Error {
    match error {
        AppendError::Transaction(error) => transaction_error(error),
        AppendError::Closed => closed(),
        error => Error::new(ErrorKind::InvalidInput, format!("a record for topic {topic:?}: {error}")),
    }
}

/// What helps after a record of a transaction has failed: an abort, unless the producer is dead.
fn severity(transaction: &Transaction) -> Severity {
    match transaction.check() {
        Err(error) if matches!(error.kind, TxnErrorKind::Fatal | TxnErrorKind::Fenced) => Severity::Fatal,
        _ => Severity::Abortable,
    }
}

fn batch_error(error: BatchError) -> Error {
    let kind = match error.kind {
        BatchErrorKind::TimedOut => ErrorKind::Timeout,
        BatchErrorKind::Aborted => ErrorKind::TransactionAborted,
        BatchErrorKind::Closed => ErrorKind::Closed,
        BatchErrorKind::Fenced => ErrorKind::Fenced,
        _ => ErrorKind::Broker,
    };
    let made = match error.code {
        // Takes the kind from the code where that says more.
        Some(code) if kind == ErrorKind::Broker => Error::new(Error::broker(code, "", None).kind(), error.text),
        _ => Error::new(kind, error.text),
    };
    let made = made.with_code(error.code);
    if error.maybe_written { made.after_sending() } else { made }
}

/// A transaction's error as the application sees it.
pub(super) fn transaction_error(error: TxnError) -> Error {
    let (kind, severity) = match error.kind {
        TxnErrorKind::Retriable => (ErrorKind::Timeout, Severity::Retriable),
        TxnErrorKind::Abortable => (ErrorKind::Broker, Severity::Abortable),
        TxnErrorKind::Aborted => (ErrorKind::TransactionAborted, Severity::Abortable),
        TxnErrorKind::OutcomeUnknown => (ErrorKind::OutcomeUnknown, Severity::Retriable),
        TxnErrorKind::Fenced => (ErrorKind::Fenced, Severity::Fatal),
        TxnErrorKind::WrongOrder => (ErrorKind::InvalidState, Severity::Fatal),
        _ => (ErrorKind::Broker, Severity::Fatal),
    };
    Error::new(kind, error.text).with_severity(severity).with_code(error.code)
}

/// As the machine takes it.
pub(super) fn failure(error: &Error) -> ProduceFailure {
    // A damaged answer says nothing about the request: it is sent again as it is.
    let damaged = error.kind() == ErrorKind::Protocol;
    ProduceFailure { maybe_done: error.maybe_done(), fatal: error.is_fatal() && !damaged, text: error.to_string() }
}
