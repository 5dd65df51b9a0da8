//! Putting records: again after errors that pass, in parts after those that do not, and not for ever.

use super::{COMMIT, COMMIT_PAUSE, RETRY_PAUSE, WorkerShareSinkTask};
use crate::batch::{Batch, PutError};
use crate::error::Blame;
use crate::metrics::Counted;
use crate::orders::{CLOSE, Cut, Orders};
use crate::rows::{Converted, Fate, Part, Rows};
use crate::task::Report;
use crate::{ConnectError, SinkRecord, Tolerance};
use kafka_share::{AckType, ErrorKind, ShareAcknowledgements, TransactionalProducer};
use std::ops::Range;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// How often a batch that is put again and again is told of.
const TELL_AGAIN: Duration = Duration::from_secs(60);

impl WorkerShareSinkTask {
    /// Puts all records; a batch that fails for good is split, so that one bad record does not take its neighbours.
    pub(super) async fn put_all(&mut self, converted: &Converted, batch: &mut Batch<'_>, orders: &Orders) {
        let mut parts: Vec<Range<usize>> = Vec::from([Range { start: 0, end: converted.records.len() }]);
        while let Some(range) = parts.pop() {
            let part = converted.part(range.clone());
            if part.records.is_empty() {
                continue;
            }
            match self.put_with_retries(part, batch, orders).await {
                Ok(reports) if self.must_leave_out(part.records, &reports) => {
                    self.judge(part, &reports, batch);
                    self.abort(part.rows, batch, orders).await;
                    parts.extend(batch.take_accepted_runs(&range, converted));
                }
                Ok(reports) => {
                    self.judge(part, &reports, batch);
                    if let Some(producer) = self.producer.clone() {
                        self.end_transaction(&producer, part, batch, orders).await;
                    }
                }
                Err(PutError { blame, error }) => match blame {
                    Blame::Passing => self.release(part.rows, &error, batch),
                    Blame::Record if range.len() == 1 => {
                        self.bad_record(batch, converted.row(range.start), &error.to_string());
                    }
                    Blame::Record => {
                        let middle = range.start + range.len() / 2;
                        parts.push(middle..range.end);
                        parts.push(range.start..middle);
                    }
                    Blame::Task => batch.fail(part.rows, error),
                },
            }
            if batch.over {
                break;
            }
        }
    }

    /// Exactly-once, what a sink has sent for a record that it reports must not commit unless the record is rejected: it
    /// comes again. The others are put once more, in transactions without it.
    fn must_leave_out(&self, records: &[SinkRecord], reports: &[Report]) -> bool {
        let reported = |record: &SinkRecord| reports.iter().any(|r| r.is_about(record));
        self.producer.is_some() && self.config.tolerance == Tolerance::None && records.iter().any(reported)
    }

    fn judge(&self, part: Part<'_>, reports: &[Report], batch: &mut Batch<'_>) {
        if reports.is_empty() {
            return batch.decide(part.rows, Fate::Accept);
        }
        for (row, record) in part.rows.into_iter().zip(part.records) {
            match reports.iter().find(|r| r.is_about(record)) {
                Some(report) => self.bad_record(batch, row, &report.error),
                None => batch.fates.set(row, Fate::Accept),
            }
        }
    }

    /// What a sink has reported while it flushed: too late to put the others without it, where that must not be committed.
    fn judge_flushed(&self, part: Part<'_>, batch: &mut Batch<'_>) -> Result<(), ConnectError> {
        let reports = self.context.errant_record_reporter().take();
        if reports.is_empty() {
            return Ok(());
        }
        for (row, record) in part.rows.into_iter().zip(part.records) {
            let Some(report) = reports.iter().find(|r| r.is_about(record)) else { continue };
            if batch.fates.of(row) != Fate::Accept {
                continue;
            }
            if self.producer.is_some() && self.config.tolerance == Tolerance::None {
                return Err(ConnectError::fatal(format!("{}: {}", batch.place(row), report.error)));
            }
            self.bad_record(batch, row, &report.error);
        }
        Ok(())
    }

    /// As [`judge_flushed`](Self::judge_flushed), of all that a batch has put, without transactions.
    pub(super) fn judge_all_flushed(&self, converted: &Converted, batch: &mut Batch<'_>) {
        // Without a transaction nothing has to be undone.
        let _ = self.judge_flushed(converted.part(0..converted.records.len()), batch);
    }

    fn release(&self, rows: Rows<'_>, error: &dyn std::fmt::Display, batch: &mut Batch<'_>) {
        self.counters.meters.error_logged();
        tracing::warn!(connector = %self.config.name, task = self.number, %error, records = rows.len(), "records released");
        batch.decide(rows, Fate::Release);
    }

    /// Puts records, the same again after retriable errors, for as long as `errors.retry.timeout` allows. The locks of
    /// the whole batch are renewed meanwhile, where the broker can. Exactly-once, each try has a transaction of its
    /// own, so that what a failed try has sent is never seen; it is still open where this succeeds.
    async fn put_with_retries(
        &mut self,
        part: Part<'_>,
        batch: &mut Batch<'_>,
        orders: &Orders,
    ) -> Result<Vec<Report>, PutError> {
        let started = Instant::now();
        let mut pause = RETRY_PAUSE.min(self.config.retry_delay_max);
        let mut told: Option<Instant> = None;
        loop {
            if let Some(producer) = &self.producer {
                // Never passing: the next batch would find the same producer.
                producer.begin_transaction().map_err(|e| PutError { blame: Blame::Task, error: e.into() })?;
            }
            let error = match self.put_once(part, batch, orders).await {
                Ok(reports) => return Ok(reports),
                Err(error) => error,
            };
            if self.producer.is_some() {
                self.abort(part.rows, batch, orders).await;
            }
            let error = match error {
                Cut::Failed(error) if !batch.over && error.blame() == Blame::Passing => error,
                Cut::Failed(error) => return Err(error.into()),
                Cut::Over(error) => {
                    batch.cut = true;
                    return Err(PutError { blame: Blame::Task, error });
                }
            };
            let asked = match &error {
                ConnectError::Retriable { backoff: Some(time), .. } => *time,
                _ => pause,
            };
            if self.config.retry_timeout.is_some_and(|limit| started.elapsed() + asked > limit) {
                return Err(error.into());
            }
            self.counters.meters.retries.fetch_add(1, Ordering::Relaxed);
            if told.is_none_or(|at| at.elapsed() > TELL_AGAIN) {
                told = Some(Instant::now());
                tracing::warn!(connector = %self.config.name, task = self.number, %error, records = part.rows.len(), "the sink asks for the records again, later");
            }
            // A task that is told to stop or to pause tries no more.
            if batch.renewal.during(&self.consumer, orders.interrupt_within(asked)).await {
                return Err(error.into());
            }
            pause = (pause * 2).min(self.config.retry_delay_max);
        }
    }

    async fn put_once(&mut self, part: Part<'_>, batch: &mut Batch<'_>, orders: &Orders) -> Result<Vec<Report>, Cut> {
        self.context.errant_record_reporter().take();
        let began = Instant::now();
        let put = orders.limited("put", self.config.put_timeout, Duration::ZERO, self.sink.put(part.records));
        let result = batch.renewal.during(&self.consumer, put).await;
        self.counters.meters.put(part.rows.len(), began.elapsed());
        result.map(|()| self.context.errant_record_reporter().take())
    }

    /// Aborts the open transaction, again while it does not end in time: the same producer cannot go on before. Where it
    /// cannot be, the task fails, and the next one's producer settles it; where the task is told to stop, so it does.
    async fn abort(&mut self, rows: Rows<'_>, batch: &mut Batch<'_>, orders: &Orders) {
        let Some(producer) = self.producer.clone() else { return };
        loop {
            let aborting = async {
                tokio::select! {
                    biased;
                    aborted = producer.abort_transaction() => Some(aborted),
                    () = orders.grace_over(CLOSE) => None,
                }
            };
            let error = match batch.renewal.during(&self.consumer, aborting).await {
                Some(Ok(())) => return,
                Some(Err(error)) if error.is_retriable() || error.is_abortable() => error,
                Some(Err(error)) => return batch.fail(rows, error.into()),
                None => {
                    batch.over = true;
                    return;
                }
            };
            tracing::warn!(connector = %self.config.name, task = self.number, %error, "the abort is tried again");
            let stopped = tokio::time::timeout(RETRY_PAUSE, orders.stop());
            if batch.renewal.during(&self.consumer, stopped).await.is_ok() {
                batch.over = true;
                return;
            }
        }
    }

    /// Exactly-once: output, ACCEPT and REJECT of `rows` commit together, or not at all.
    async fn end_transaction(
        &mut self,
        producer: &TransactionalProducer,
        part: Part<'_>,
        batch: &mut Batch<'_>,
        orders: &Orders,
    ) {
        let rows = part.rows;
        self.take_outcomes();
        let flush = orders.limited("flush", self.config.put_timeout, Duration::ZERO, self.sink.flush());
        let result = match batch.renewal.during(&self.consumer, flush).await {
            Ok(()) => match self.judge_flushed(part, batch) {
                Ok(()) => {
                    let began = Instant::now();
                    let result = self.commit_transaction(producer, rows, batch).await;
                    self.counters.meters.committed(began.elapsed(), result.is_ok());
                    result.map_err(ConnectError::from)
                }
                Err(error) => Err(error),
            },
            Err(Cut::Failed(error)) => Err(error),
            Err(Cut::Over(error)) => {
                batch.cut = true;
                Err(error)
            }
        };
        self.flushed = Instant::now();
        let Err(error) = result else { return batch.decide(rows, Fate::Done) };
        if error.ends_producer() {
            // Only a new producer under the same transactional id can tell what became of it, and end it.
            return batch.fail(rows, error);
        }
        self.abort(rows, batch, orders).await;
        // Of the acknowledgements that were in the transaction, and were never counted.
        drop(self.consumer.poll_outcomes());
        self.release(rows, &error, batch);
        if batch.cut || error.blame() != Blame::Passing {
            batch.fail(rows, error);
        }
    }

    /// The locks of the batch's other records are renewed meanwhile: by the ledger, a commit may wait for others'.
    async fn commit_transaction(
        &mut self,
        producer: &TransactionalProducer,
        rows: Rows<'_>,
        batch: &mut Batch<'_>,
    ) -> kafka_share::Result<()> {
        let ack = |fate: Fate| if fate == Fate::Reject { AckType::Reject } else { AckType::Accept };
        let ids: Vec<_> = batch.ids(rows).map(|(id, fate)| (id, ack(fate))).collect();
        let rejected = ids.iter().filter(|(_, ack)| *ack == AckType::Reject).count() as u64;
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
        self.counters.meters.count(Counted::Rejected, rejected);
        self.counters.accepted.fetch_add(rows.len() as u64 - rejected, Ordering::Relaxed);
        Ok(())
    }
}
