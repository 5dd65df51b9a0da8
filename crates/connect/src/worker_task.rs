//! `WorkerShareSinkTask`: drives one [`SinkTask`] from a share group.

use crate::task::Report;
use crate::{ConnectError, ConnectorConfig, DeliverySemantics, SinkRecord, SinkTask, SinkTaskContext, Tolerance};
use kafka_share::{
    AckType, AcknowledgementMode, Acknowledger, ErrorKind, KafkaShareConsumer, ShareAcknowledgements,
    ShareConsumerBuilder, ShareRecord, ShareRecords, TransactionalProducer,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// How long one poll waits; a stop is noticed in between.
const POLL: Duration = Duration::from_millis(500);
/// First pause between tries of a put.
const RETRY_PAUSE: Duration = Duration::from_millis(300);
/// Time for the end of a task: last acknowledgements, sessions, group.
const CLOSE: Duration = Duration::from_secs(10);
const COMMIT: Duration = Duration::from_secs(60);

/// Counters of a task.
#[derive(Debug, Default)]
pub struct TaskCounters {
    /// Records read.
    pub read: AtomicU64,
    /// Records that the sink has and that were accepted.
    pub accepted: AtomicU64,
    /// Records released for another try.
    pub released: AtomicU64,
    /// Records rejected.
    pub rejected: AtomicU64,
}

/// One task: a consumer, a sink, and, exactly-once, a transactional producer.
pub struct WorkerShareSinkTask {
    config: ConnectorConfig,
    number: usize,
    sink: Box<dyn SinkTask>,
    consumer: KafkaShareConsumer,
    producer: Option<Arc<TransactionalProducer>>,
    context: SinkTaskContext,
    counters: Arc<TaskCounters>,
}

impl std::fmt::Debug for WorkerShareSinkTask {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WorkerShareSinkTask")
            .field("connector", &self.config.name)
            .field("task", &self.number)
            .finish_non_exhaustive()
    }
}

/// What becomes of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Undecided,
    Accept,
    Release,
    Reject,
}

impl WorkerShareSinkTask {
    /// Starts the sink and subscribes.
    ///
    /// # Errors
    /// Settings that make no sense, a sink that does not start, a transactional producer that cannot be had.
    pub async fn start(
        config: ConnectorConfig,
        number: usize,
        mut sink: Box<dyn SinkTask>,
        counters: Arc<TaskCounters>,
    ) -> Result<Self, ConnectError> {
        let mut builder = ShareConsumerBuilder::from_properties(config.consumer.iter())?;
        builder.set("group.id", &config.group_id)?;
        let consumer = builder.acknowledgement_mode(AcknowledgementMode::Explicit).build()?;
        let producer = match config.semantics {
            DeliverySemantics::AtLeastOnce => None,
            DeliverySemantics::ExactlyOnce => {
                // One id per task: a task that is started again fences what it left behind.
                let id = format!("connect-{}-{number}", config.name);
                let mut properties = config.producer.clone();
                properties.insert("transactional.id".into(), id);
                let producer = TransactionalProducer::from_properties(properties.iter())?;
                producer.init_transactions().await?;
                Some(Arc::new(producer))
            }
        };
        let context = SinkTaskContext::new(number, producer.clone());
        let mut properties = config.properties.clone();
        properties.extend(config.producer.iter().map(|(n, v)| (format!("producer.{n}"), v.clone())));
        sink.start(context.clone(), &properties).await?;
        consumer.subscribe(&config.topics)?;
        Ok(WorkerShareSinkTask { config, number, sink, consumer, producer, context, counters })
    }

    /// Runs until `stop` says so, or until the task fails. Ends orderly in both cases: nothing is accepted that was not
    /// put, and what is held is released.
    ///
    /// # Errors
    /// Why the task failed.
    pub async fn run(mut self, mut stop: watch::Receiver<bool>) -> Result<(), ConnectError> {
        let result = self.run_inner(&mut stop).await;
        self.sink.stop().await;
        if let Err(error) = self.consumer.close(CLOSE).await {
            tracing::warn!(connector = %self.config.name, task = self.number, %error, "the share consumer did not close in time");
        }
        if let Some(producer) = &self.producer {
            let _ = producer.close(CLOSE).await;
        }
        result
    }

    async fn run_inner(&mut self, stop: &mut watch::Receiver<bool>) -> Result<(), ConnectError> {
        while !*stop.borrow() {
            let records = match self.consumer.poll(POLL).await {
                Ok(records) => records,
                Err(error) if error.is_retriable() || error.kind() == ErrorKind::Wakeup => continue,
                Err(error) => return Err(error.into()),
            };
            if !records.is_empty() {
                self.counters.read.fetch_add(records.len() as u64, Ordering::Relaxed);
                self.batch(&records, stop).await?;
            }
        }
        Ok(())
    }

    /// One poll's records: converted, put, acknowledged.
    async fn batch(&mut self, records: &ShareRecords, stop: &watch::Receiver<bool>) -> Result<(), ConnectError> {
        let all: Vec<ShareRecord<'_>> = records.iter().collect();
        let mut fates = vec![Fate::Undecided; all.len()];
        let mut converted: Vec<(usize, SinkRecord)> = Vec::with_capacity(all.len());
        let mut failure = None;
        for (i, record) in all.iter().enumerate() {
            match self.convert(record) {
                Ok(record) => converted.push((i, record)),
                Err(error) => self.bad_record(&mut fates[i], &place(record), &error.to_string(), &mut failure),
            }
        }
        if failure.is_none() {
            self.begin()?;
            failure = self.put_all(&converted, &mut fates, stop).await.err();
        }
        if failure.is_none() {
            failure = self.flush(&mut fates).await.err();
        }
        self.settle(&all, &fates, failure.is_none()).await?;
        failure.map_or(Ok(()), Err)
    }

    fn convert(&self, record: &ShareRecord<'_>) -> Result<SinkRecord, ConnectError> {
        let key = self.config.key_converter.convert(record.key())?;
        let value = self.config.value_converter.convert(record.value())?;
        Ok(SinkRecord::new(record, key, value))
    }

    fn bad_record(&self, fate: &mut Fate, place: &str, error: &str, failure: &mut Option<ConnectError>) {
        match self.config.tolerance {
            Tolerance::All => {
                tracing::warn!(connector = %self.config.name, task = self.number, record = place, error, "record rejected");
                *fate = Fate::Reject;
            }
            Tolerance::None => {
                *fate = Fate::Release;
                let text = format!("{place}: {error} (errors.tolerance=all would reject the record and go on)");
                failure.get_or_insert(ConnectError::Fatal(text));
            }
        }
    }

    fn begin(&self) -> Result<(), ConnectError> {
        if let Some(producer) = &self.producer {
            producer.begin_transaction()?;
        }
        Ok(())
    }

    /// Puts all records; a batch that fails for good is split, so that one bad record does not take its neighbours.
    async fn put_all(
        &mut self,
        records: &[(usize, SinkRecord)],
        fates: &mut [Fate],
        stop: &watch::Receiver<bool>,
    ) -> Result<(), ConnectError> {
        let mut failure = None;
        let mut parts: Vec<std::ops::Range<usize>> = Vec::from([std::ops::Range { start: 0, end: records.len() }]);
        while let Some(part) = parts.pop() {
            if part.is_empty() {
                continue;
            }
            let rows = &records[part.clone()];
            match self.put_with_retries(rows, stop).await {
                Ok(reports) => {
                    for (i, record) in rows {
                        let report = reports.iter().find(|r| r.is_about(record));
                        match report {
                            Some(report) => {
                                self.bad_record(&mut fates[*i], &record.place(), &report.error, &mut failure)
                            }
                            None => fates[*i] = Fate::Accept,
                        }
                    }
                }
                Err(error) if error.is_retriable() => {
                    tracing::warn!(connector = %self.config.name, task = self.number, %error, records = rows.len(), "records released");
                    rows.iter().for_each(|(i, _)| fates[*i] = Fate::Release);
                }
                Err(error)
                    if rows.len() == 1 || self.producer.is_some() && self.config.tolerance == Tolerance::None =>
                {
                    for (i, record) in rows {
                        self.bad_record(&mut fates[*i], &record.place(), &error.to_string(), &mut failure);
                    }
                }
                Err(_) => {
                    let middle = part.start + part.len() / 2;
                    parts.push(middle..part.end);
                    parts.push(part.start..middle);
                }
            }
            if failure.is_some() {
                break;
            }
        }
        failure.map_or(Ok(()), Err)
    }

    /// Puts records, the same again after retriable errors, for as long as `errors.retry.timeout` allows. Their locks
    /// are renewed meanwhile where the broker can.
    async fn put_with_retries(
        &mut self,
        rows: &[(usize, SinkRecord)],
        stop: &watch::Receiver<bool>,
    ) -> Result<Vec<Report>, ConnectError> {
        let records: Vec<SinkRecord> = rows.iter().map(|(_, r)| r.clone()).collect();
        let started = Instant::now();
        let mut pause = RETRY_PAUSE;
        loop {
            self.context.errant_record_reporter().take();
            match self.sink.put(&records).await {
                Ok(()) => return Ok(self.context.errant_record_reporter().take()),
                Err(error) if error.is_retriable() && !*stop.borrow() => {
                    let asked = match &error {
                        ConnectError::Retriable { backoff: Some(time), .. } => *time,
                        _ => pause,
                    };
                    let late = self.config.retry_timeout.is_some_and(|limit| started.elapsed() + asked > limit);
                    if late {
                        return Err(error);
                    }
                    tokio::time::sleep(asked).await;
                    pause = (pause * 2).min(self.config.retry_delay_max);
                }
                Err(error) => return Err(error),
            }
        }
    }

    async fn flush(&mut self, fates: &mut [Fate]) -> Result<(), ConnectError> {
        let Err(error) = self.sink.flush().await else { return Ok(()) };
        let lost = fates.iter_mut().filter(|f| **f == Fate::Accept);
        lost.for_each(|f| *f = Fate::Release);
        if error.is_retriable() {
            tracing::warn!(connector = %self.config.name, task = self.number, %error, "flush failed, records released");
            return Ok(());
        }
        Err(error)
    }

    /// Acknowledges by fate. Undecided records are released.
    async fn settle(&mut self, all: &[ShareRecord<'_>], fates: &[Fate], healthy: bool) -> Result<(), ConnectError> {
        match self.producer.clone() {
            Some(producer) => self.settle_in_transaction(&producer, all, fates, healthy).await?,
            None => self.settle_each(all, fates, |_| true),
        }
        if !self.config.implicit || !healthy {
            for (place, outcome) in self.consumer.commit_sync(COMMIT).await? {
                if outcome != kafka_share::Outcome::Acknowledged {
                    tracing::warn!(connector = %self.config.name, task = self.number, ?place, ?outcome, "acknowledgements were not taken; the records come again");
                }
            }
        }
        Ok(())
    }

    fn settle_each(&self, all: &[ShareRecord<'_>], fates: &[Fate], which: impl Fn(Fate) -> bool) {
        let acknowledger: Acknowledger = self.consumer.acknowledger();
        for (record, fate) in all.iter().zip(fates).filter(|(_, fate)| which(**fate)) {
            let (ack, counter) = match fate {
                Fate::Accept => (AckType::Accept, &self.counters.accepted),
                Fate::Reject => (AckType::Reject, &self.counters.rejected),
                Fate::Release | Fate::Undecided => (AckType::Release, &self.counters.released),
            };
            match acknowledger.acknowledge(record.id(), ack) {
                Ok(()) => _ = counter.fetch_add(1, Ordering::Relaxed),
                // The lock was lost while the sink worked: the record comes again, which at-least-once allows.
                Err(error) => tracing::debug!(record = place(record), %error, "not acknowledged"),
            }
        }
    }

    /// Output, ACCEPT and REJECT commit together; what is released goes the ordinary way afterwards.
    async fn settle_in_transaction(
        &mut self,
        producer: &TransactionalProducer,
        all: &[ShareRecord<'_>],
        fates: &[Fate],
        healthy: bool,
    ) -> Result<(), ConnectError> {
        let decided = |f: Fate| matches!(f, Fate::Accept | Fate::Reject);
        // A batch whose put failed in part may have sent output for records that are released: not in this transaction.
        let clean = healthy && fates.iter().all(|f| decided(*f));
        let result = if clean { self.commit_transaction(producer, all, fates).await } else { Ok(false) };
        match result {
            Ok(true) => Ok(()),
            Ok(false) => {
                producer.abort_transaction().await?;
                let released = vec![Fate::Release; fates.len()];
                self.settle_each(all, &released, |_| true);
                Ok(())
            }
            Err(error) if error.is_fatal() => Err(error.into()),
            Err(error) => {
                tracing::warn!(connector = %self.config.name, task = self.number, %error, "transaction aborted, records come again");
                producer.abort_transaction().await?;
                Ok(())
            }
        }
    }

    async fn commit_transaction(
        &mut self,
        producer: &TransactionalProducer,
        all: &[ShareRecord<'_>],
        fates: &[Fate],
    ) -> kafka_share::Result<bool> {
        for (record, fate) in all.iter().zip(fates) {
            let ack = if *fate == Fate::Reject { AckType::Reject } else { AckType::Accept };
            self.consumer.acknowledge_with(record, ack)?;
        }
        let acks: ShareAcknowledgements = self.consumer.acknowledgements_for_transaction()?;
        producer.send_share_acks_to_transaction(acks, &self.consumer.share_group_metadata()?).await?;
        let until = Instant::now() + COMMIT;
        loop {
            match producer.commit_transaction().await {
                Ok(()) => break,
                Err(error) if error.kind() == ErrorKind::OutcomeUnknown && Instant::now() < until => {}
                Err(error) => return Err(error),
            }
        }
        let rejected = fates.iter().filter(|f| **f == Fate::Reject).count() as u64;
        self.counters.rejected.fetch_add(rejected, Ordering::Relaxed);
        self.counters.accepted.fetch_add(fates.len() as u64 - rejected, Ordering::Relaxed);
        Ok(true)
    }
}

fn place(record: &ShareRecord<'_>) -> String {
    format!("{}-{}@{}", record.topic(), record.partition(), record.offset())
}

impl Report {
    fn is_about(&self, record: &SinkRecord) -> bool {
        self.topic == record.topic && self.partition == record.partition && self.offset == record.offset
    }
}
