//! `WorkerShareSinkTask`: drives one [`SinkTask`] from a share group.

use crate::batch::{Batch, Fate, PutError, place};
use crate::error::Blame;
use crate::status::{TargetState, TaskCounters};
use crate::task::Report;
use crate::{ConnectError, ConnectorConfig, DeliverySemantics, SinkRecord, SinkTask, SinkTaskContext, Tolerance};
use kafka_share::{
    AckType, AcknowledgementMode, Acknowledger, ErrorKind, KafkaShareConsumer, ShareAcknowledgements,
    ShareConsumerBuilder, ShareRecord, ShareRecords, TransactionalProducer,
};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// How long one poll waits; a stop is noticed in between.
const POLL: Duration = Duration::from_millis(500);
/// First pause between tries of a put.
const RETRY_PAUSE: Duration = Duration::from_millis(300);
/// Longest pause after a batch with records that were released: far below any lock.
const RELEASE_PAUSE_MAX: Duration = Duration::from_secs(5);
/// Time for the end of a task: last acknowledgements, sessions, group.
const CLOSE: Duration = Duration::from_secs(10);
/// How long acknowledgements may take, and how long a commit is asked for again whose outcome is not known.
const COMMIT: Duration = Duration::from_secs(60);
const COMMIT_PAUSE: Duration = Duration::from_millis(100);

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

impl WorkerShareSinkTask {
    /// Starts the sink and subscribes.
    ///
    /// # Cancel safety
    /// The sink is dropped with it, started or not; the group may have a member that is thrown out when its session ends.
    /// Another start for the same task fences the transactional producer.
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

    /// Runs until it is told to stop, or until the task fails. Ends orderly in both cases: nothing is accepted that was not
    /// put, and what is held is released. While it is told to pause, the group is left and nothing is held.
    ///
    /// # Cancel safety
    /// Everything is dropped with it, as if the process died: a put is cut off where it waits, records that were not
    /// acknowledged come again once their locks end or the broker sees the connection gone, and an open transaction is
    /// aborted by the next start of the task, or by the coordinator after `transaction.timeout.ms`.
    ///
    /// # Errors
    /// Why the task failed.
    pub async fn run(mut self, mut target: watch::Receiver<TargetState>) -> Result<(), ConnectError> {
        let result = self.run_inner(&mut target).await;
        self.sink.stop().await;
        if let Err(error) = self.consumer.close(CLOSE).await {
            tracing::warn!(connector = %self.config.name, task = self.number, %error, "the share consumer did not close in time");
        }
        if let Some(producer) = &self.producer {
            let _ = producer.close(CLOSE).await;
        }
        result
    }

    async fn run_inner(&mut self, target: &mut watch::Receiver<TargetState>) -> Result<(), ConnectError> {
        let mut pause = RETRY_PAUSE;
        self.counters.paused.store(false, Ordering::Release);
        while self.may_go_on(target).await? {
            let polled = tokio::select! {
                biased;
                polled = self.consumer.poll(POLL) => polled,
                told = target.wait_for(|t| *t != TargetState::Started) => match told {
                    Ok(_) => continue,
                    Err(_) => return Ok(()),
                },
            };
            let records = match polled {
                Ok(records) => records,
                Err(error) if error.is_retriable() || error.kind() == ErrorKind::Wakeup => continue,
                Err(error) => return Err(error.into()),
            };
            if self.consumer.acquisition_lock_timeout().is_some() {
                self.counters.fetching.store(true, Ordering::Relaxed);
            }
            if records.is_empty() {
                continue;
            }
            self.counters.read.fetch_add(records.len() as u64, Ordering::Relaxed);
            if self.batch(&records, target).await? {
                // Each release costs a delivery, and the limit of these is low: what is down gets time to come back.
                let _ = tokio::time::timeout(pause, target.wait_for(|t| *t != TargetState::Started)).await;
                pause = (pause * 2).min(RELEASE_PAUSE_MAX);
            } else {
                pause = RETRY_PAUSE;
            }
        }
        Ok(())
    }

    /// Waits while the task is to pause. Answers whether it is to go on.
    async fn may_go_on(&mut self, target: &mut watch::Receiver<TargetState>) -> Result<bool, ConnectError> {
        loop {
            let now = *target.borrow();
            match now {
                TargetState::Started => return Ok(true),
                TargetState::Stopped => return Ok(false),
                // What was fetched ahead would lose its locks meanwhile; others have it at once.
                TargetState::Paused => self.consumer.unsubscribe(),
            }
            self.counters.fetching.store(false, Ordering::Relaxed);
            self.counters.paused.store(true, Ordering::Release);
            let told = target.wait_for(|t| *t != TargetState::Paused).await.map(|t| *t);
            self.counters.paused.store(false, Ordering::Release);
            match told {
                Ok(TargetState::Started) => self.consumer.subscribe(&self.config.topics)?,
                Ok(_) => {}
                Err(_) => return Ok(false),
            }
        }
    }

    /// One poll's records: converted, put, acknowledged. Answers whether some were released.
    async fn batch(
        &mut self,
        records: &ShareRecords,
        target: &watch::Receiver<TargetState>,
    ) -> Result<bool, ConnectError> {
        let mut batch = Batch::new(records, self.consumer.acquisition_lock_timeout());
        self.counters.deliveries.store(batch.most_deliveries(), Ordering::Relaxed);
        let converted = self.convert_all(&mut batch);
        self.put_all(&converted, &mut batch, target).await;
        if self.producer.is_none() && batch.fates.contains(&Fate::Accept) {
            self.flush(&mut batch).await;
        }
        batch.keep_last_delivery(self.config.delivery_limit());
        let settled = self.settle(&batch).await;
        let released = batch.fates.contains(&Fate::Release);
        self.counters.deliveries.store(0, Ordering::Relaxed);
        batch.failure.map_or(settled.map(|()| released), Err)
    }

    fn convert_all(&self, batch: &mut Batch<'_>) -> Vec<(usize, SinkRecord)> {
        let mut converted = Vec::with_capacity(batch.all.len());
        for i in 0..batch.all.len() {
            let record = batch.all[i];
            match self.convert(&record) {
                Ok(Some(record)) => converted.push((i, record)),
                // A transform has dropped it: there is nothing to put.
                Ok(None) => batch.fates[i] = Fate::Accept,
                Err(error) => self.bad_record(batch, i, &error.to_string()),
            }
        }
        converted
    }

    fn convert(&self, record: &ShareRecord<'_>) -> Result<Option<SinkRecord>, ConnectError> {
        let of = |what: &str, error| ConnectError::fatal(format!("{what}: {error}"));
        let key = self.config.key_converter.convert(record.key()).map_err(|e| of("key", e))?;
        let value = self.config.value_converter.convert(record.value()).map_err(|e| of("value", e))?;
        let mut headers = Vec::new();
        for header in record.headers() {
            let name = String::from_utf8_lossy(header.key).into_owned();
            let value = self.config.header_converter.convert(header.value);
            let value = value.map_err(|e| of(&format!("header {name}"), e))?;
            headers.push((name, value));
        }
        self.config.transforms.apply(SinkRecord::new(record, key, value, headers))
    }

    fn bad_record(&self, batch: &mut Batch<'_>, i: usize, error: &str) {
        let place = place(&batch.all[i]);
        match self.config.tolerance {
            Tolerance::All => {
                tracing::warn!(connector = %self.config.name, task = self.number, record = place, error, "record rejected");
                batch.fates[i] = Fate::Reject;
            }
            Tolerance::None => {
                batch.fates[i] = Fate::Release;
                let text = format!("{place}: {error} (errors.tolerance=all would reject the record and go on)");
                batch.failure.get_or_insert(ConnectError::Fatal(text));
            }
        }
    }

    /// Puts all records; a batch that fails for good is split, so that one bad record does not take its neighbours.
    async fn put_all(
        &mut self,
        records: &[(usize, SinkRecord)],
        batch: &mut Batch<'_>,
        target: &watch::Receiver<TargetState>,
    ) {
        let mut parts: Vec<std::ops::Range<usize>> = Vec::from([std::ops::Range { start: 0, end: records.len() }]);
        while let Some(part) = parts.pop() {
            let rows = &records[part.clone()];
            if rows.is_empty() {
                continue;
            }
            match self.put_with_retries(rows, batch, target).await {
                Ok(reports) if self.must_leave_out(rows, &reports) => {
                    self.judge(rows, &reports, batch);
                    self.abort(rows, batch, target).await;
                    parts.extend(batch.take_accepted_runs(&part, records));
                }
                Ok(reports) => {
                    self.judge(rows, &reports, batch);
                    if let Some(producer) = self.producer.clone() {
                        self.end_transaction(&producer, rows, batch, target).await;
                    }
                }
                Err(PutError { blame, error }) => match blame {
                    Blame::Passing => self.release(rows, &error, batch),
                    Blame::Record if rows.len() == 1 => self.bad_record(batch, rows[0].0, &error.to_string()),
                    Blame::Record => {
                        let middle = part.start + part.len() / 2;
                        parts.push(middle..part.end);
                        parts.push(part.start..middle);
                    }
                    Blame::Task => batch.fail(rows, error),
                },
            }
            if batch.over {
                break;
            }
        }
    }

    /// Exactly-once, what a sink has sent for a record that it reports must not commit unless the record is rejected: it
    /// comes again. The others are put once more, in transactions without it.
    fn must_leave_out(&self, rows: &[(usize, SinkRecord)], reports: &[Report]) -> bool {
        let reported = |(_, record): &(usize, SinkRecord)| reports.iter().any(|r| r.is_about(record));
        self.producer.is_some() && self.config.tolerance == Tolerance::None && rows.iter().any(reported)
    }

    fn judge(&self, rows: &[(usize, SinkRecord)], reports: &[Report], batch: &mut Batch<'_>) {
        for (i, record) in rows {
            match reports.iter().find(|r| r.is_about(record)) {
                Some(report) => self.bad_record(batch, *i, &report.error),
                None => batch.fates[*i] = Fate::Accept,
            }
        }
    }

    fn release(&self, rows: &[(usize, SinkRecord)], error: &dyn std::fmt::Display, batch: &mut Batch<'_>) {
        tracing::warn!(connector = %self.config.name, task = self.number, %error, records = rows.len(), "records released");
        rows.iter().for_each(|(i, _)| batch.fates[*i] = Fate::Release);
    }

    /// Puts records, the same again after retriable errors, for as long as `errors.retry.timeout` allows. The locks of
    /// the whole batch are renewed meanwhile, where the broker can. Exactly-once, each try has a transaction of its
    /// own, so that what a failed try has sent is never seen; it is still open where this succeeds.
    async fn put_with_retries(
        &mut self,
        rows: &[(usize, SinkRecord)],
        batch: &mut Batch<'_>,
        target: &watch::Receiver<TargetState>,
    ) -> Result<Vec<Report>, PutError> {
        let records: Vec<SinkRecord> = rows.iter().map(|(_, r)| r.clone()).collect();
        let mut target = target.clone();
        let started = Instant::now();
        let mut pause = RETRY_PAUSE.min(self.config.retry_delay_max);
        loop {
            if let Some(producer) = &self.producer {
                // Never passing: the next batch would find the same producer.
                producer.begin_transaction().map_err(|e| PutError { blame: Blame::Task, error: e.into() })?;
            }
            self.context.errant_record_reporter().take();
            let put = self.sink.put(&records);
            let Err(error) = batch.renewal.during(&self.consumer, put).await else {
                return Ok(self.context.errant_record_reporter().take());
            };
            if self.producer.is_some() {
                self.abort(rows, batch, &target).await;
            }
            if batch.over || error.blame() != Blame::Passing {
                return Err(error.into());
            }
            let asked = match &error {
                ConnectError::Retriable { backoff: Some(time), .. } => *time,
                _ => pause,
            };
            if self.config.retry_timeout.is_some_and(|limit| started.elapsed() + asked > limit) {
                return Err(error.into());
            }
            let waited =
                tokio::time::timeout(asked, async { drop(target.wait_for(|t| *t != TargetState::Started).await) });
            // A task that is told to stop or to pause tries no more; a worker that is gone tells just that.
            if batch.renewal.during(&self.consumer, waited).await.is_ok() {
                return Err(error.into());
            }
            pause = (pause * 2).min(self.config.retry_delay_max);
        }
    }

    /// Aborts the open transaction, again while it does not end in time: the same producer cannot go on before. Where it
    /// cannot be, the task fails, and the next one's producer settles it; where the task is told to stop, so it does.
    async fn abort(
        &mut self,
        rows: &[(usize, SinkRecord)],
        batch: &mut Batch<'_>,
        target: &watch::Receiver<TargetState>,
    ) {
        let Some(producer) = self.producer.clone() else { return };
        let mut target = target.clone();
        loop {
            let aborted = batch.renewal.during(&self.consumer, producer.abort_transaction()).await;
            let error = match aborted {
                Ok(()) => return,
                Err(error) if error.is_retriable() || error.is_abortable() => error,
                Err(error) => return batch.fail(rows, error.into()),
            };
            tracing::warn!(connector = %self.config.name, task = self.number, %error, "the abort is tried again");
            let stopped = tokio::time::timeout(RETRY_PAUSE, async {
                drop(target.wait_for(|t| *t == TargetState::Stopped).await);
            });
            if batch.renewal.during(&self.consumer, stopped).await.is_ok() {
                batch.over = true;
                return;
            }
        }
    }

    async fn flush(&mut self, batch: &mut Batch<'_>) {
        let Err(error) = batch.renewal.during(&self.consumer, self.sink.flush()).await else { return };
        tracing::warn!(connector = %self.config.name, task = self.number, %error, "flush failed, records released");
        batch.fates.iter_mut().filter(|f| **f == Fate::Accept).for_each(|f| *f = Fate::Release);
        if error.blame() != Blame::Passing {
            batch.fail(&[], error);
        }
    }

    /// Acknowledges by fate, what a transaction has not done already. Undecided records are released.
    async fn settle(&mut self, batch: &Batch<'_>) -> Result<(), ConnectError> {
        let acknowledger: Acknowledger = self.consumer.acknowledger();
        for (record, fate) in batch.all.iter().zip(&batch.fates) {
            let (ack, counter) = match fate {
                Fate::Done => continue,
                Fate::Accept => (AckType::Accept, &self.counters.accepted),
                Fate::Reject => (AckType::Reject, &self.counters.rejected),
                Fate::Release | Fate::Undecided => (AckType::Release, &self.counters.released),
            };
            match acknowledger.acknowledge(record.id(), ack) {
                Ok(()) => _ = counter.fetch_add(1, Ordering::Relaxed),
                // Aborted, or the lock was lost while the sink worked: the record comes again.
                Err(error) => {
                    self.counters.released.fetch_add(1, Ordering::Relaxed);
                    tracing::debug!(record = place(record), %error, "not acknowledged");
                }
            }
        }
        if self.config.implicit && batch.failure.is_none() {
            return Ok(());
        }
        match self.consumer.commit_sync(COMMIT).await {
            Ok(outcomes) => {
                for (place, outcome) in outcomes.into_iter().filter(|(_, o)| *o != kafka_share::Outcome::Acknowledged) {
                    tracing::warn!(connector = %self.config.name, task = self.number, ?place, ?outcome, "acknowledgements were not taken; the records come again");
                }
                Ok(())
            }
            Err(error) if error.is_retriable() => {
                tracing::warn!(connector = %self.config.name, task = self.number, %error, "acknowledgements are not confirmed yet");
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Exactly-once: output, ACCEPT and REJECT of `rows` commit together, or not at all.
    async fn end_transaction(
        &mut self,
        producer: &TransactionalProducer,
        rows: &[(usize, SinkRecord)],
        batch: &mut Batch<'_>,
        target: &watch::Receiver<TargetState>,
    ) {
        let result = if let Err(error) = batch.renewal.during(&self.consumer, self.sink.flush()).await {
            Err(error)
        } else {
            self.commit_transaction(producer, rows, batch).await.map_err(ConnectError::from)
        };
        let Err(error) = result else { return rows.iter().for_each(|(i, _)| batch.fates[*i] = Fate::Done) };
        if error.ends_producer() {
            // Only a new producer under the same transactional id can tell what became of it, and end it.
            return batch.fail(rows, error);
        }
        self.abort(rows, batch, target).await;
        self.release(rows, &error, batch);
        if error.blame() != Blame::Passing {
            batch.fail(rows, error);
        }
    }

    /// The locks of the batch's other records are renewed meanwhile: by the ledger, a commit may wait for others'.
    async fn commit_transaction(
        &mut self,
        producer: &TransactionalProducer,
        rows: &[(usize, SinkRecord)],
        batch: &mut Batch<'_>,
    ) -> kafka_share::Result<()> {
        let ack = |i: &usize| if batch.fates[*i] == Fate::Reject { AckType::Reject } else { AckType::Accept };
        let ids: Vec<_> = rows.iter().map(|(i, _)| (batch.all[*i].id(), ack(i))).collect();
        let rejected = ids.iter().filter(|(_, ack)| *ack == AckType::Reject).count() as u64;
        batch.renewal.forget(ids.iter().map(|(id, _)| *id));
        let consumer = &self.consumer;
        let committed = async {
            let acks = ShareAcknowledgements::from_record_ids(consumer, ids)?;
            producer.send_share_acks_to_transaction(acks, &consumer.share_group_metadata()?).await?;
            let until = Instant::now() + COMMIT;
            loop {
                match producer.commit_transaction().await {
                    Err(error) if error.kind() == ErrorKind::OutcomeUnknown && Instant::now() < until => {
                        tokio::time::sleep(COMMIT_PAUSE).await;
                    }
                    result => return result,
                }
            }
        };
        batch.renewal.during(consumer, committed).await?;
        self.counters.rejected.fetch_add(rejected, Ordering::Relaxed);
        self.counters.accepted.fetch_add(rows.len() as u64 - rejected, Ordering::Relaxed);
        Ok(())
    }
}
