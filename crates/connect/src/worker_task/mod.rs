//! `WorkerShareSinkTask`: drives one [`SinkTask`] from a share group.

mod convert;
mod put;
mod settle;

use crate::batch::Batch;
use crate::converter::SchemaCache;
use crate::error::Blame;
use crate::group::client_config;
use crate::held::Held;
use crate::metrics::Counted;
use crate::orders::{CLOSE, Cut, Orders};
use crate::renewal::Renewal;
use crate::rows::{Converted, Fate, Fates, Rows};
use crate::status::{TargetState, TaskCounters};
use crate::topic_name::Topics;
use crate::{ConnectError, ConnectorConfig, DeliverySemantics, SinkTask, SinkTaskContext, SourceGroup};
use kafka_share::{
    AcknowledgementMode, Admin, ErrorKind, KafkaShareConsumer, ShareConsumerBuilder, ShareRecords,
    TransactionalProducer,
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
    /// Schemas of keys, values and headers.
    schemas: [SchemaCache; 3],
    /// When the sink was flushed last.
    flushed: Instant,
    topics: Topics,
    /// See [`Self::takes_as_they_are`].
    as_they_are: bool,
    /// Room of the batch before, for the next one.
    room: (Converted, Fates),
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
        let producer = match config.is_transactional() {
            false => None,
            true => {
                // One id per task: a task that is started again fences what it left behind.
                let id = format!("connect-{}-{number}", config.name);
                let mut properties = config.producer.clone();
                properties.insert("transactional.id".into(), id);
                let producer = TransactionalProducer::from_properties(properties.iter())?;
                producer.init_transactions().await?;
                Some(Arc::new(producer))
            }
        };
        let source = match config.semantics == DeliverySemantics::ExactlyOnce && producer.is_none() {
            false => None,
            true => Some(SourceGroup::new(config.group_id.clone(), Admin::new(client_config(&config.consumer)?)?)),
        };
        let context = SinkTaskContext::new(number, producer.clone(), source);
        let mut properties = config.properties.clone();
        properties.extend(config.producer.iter().map(|(n, v)| (format!("producer.{n}"), v.clone())));
        sink.start(context.clone(), &properties).await?;
        consumer.subscribe(&config.topics)?;
        let schemas = config.schemas_cache_sizes.map(SchemaCache::new);
        let flushed = Instant::now();
        Ok(WorkerShareSinkTask {
            as_they_are: Self::takes_as_they_are(&config),
            config,
            number,
            sink,
            consumer,
            producer,
            context,
            counters,
            schemas,
            flushed,
            topics: Topics::default(),
            room: Default::default(),
        })
    }

    /// Runs until it is told to stop, or until the task fails. Ends orderly in both cases: nothing is accepted that was not
    /// put, and what is held is released. While it is told to pause, the group is left and nothing is held. A put that is
    /// under way when it is told to stop is cancelled after `task.shutdown.graceful.timeout.ms`.
    ///
    /// # Cancel safety
    /// Everything is dropped with it, as if the process died: a put is cut off where it waits, records that were not
    /// acknowledged come again once their locks end or the broker sees the connection gone, and an open transaction is
    /// aborted by the next start of the task, or by the coordinator after `transaction.timeout.ms`.
    ///
    /// # Errors
    /// Why the task failed.
    pub async fn run(mut self, target: watch::Receiver<TargetState>) -> Result<(), ConnectError> {
        let mut orders = Orders::new(target, self.config.shutdown_timeout);
        let result = self.run_inner(&mut orders).await;
        self.counters.meters.turn(None);
        if tokio::time::timeout(CLOSE, self.sink.stop()).await.is_err() {
            tracing::warn!(connector = %self.config.name, task = self.number, "the sink did not stop within {CLOSE:?}");
        }
        if let Err(error) = self.consumer.close(CLOSE).await {
            tracing::warn!(connector = %self.config.name, task = self.number, %error, "the share consumer did not close in time");
        }
        self.take_outcomes();
        if let Some(producer) = &self.producer {
            let _ = producer.close(CLOSE).await;
        }
        result
    }

    async fn run_inner(&mut self, orders: &mut Orders) -> Result<(), ConnectError> {
        let mut pause = RETRY_PAUSE;
        self.counters.paused.store(false, Ordering::Release);
        self.counters.meters.turn(Some(false));
        while self.may_go_on(orders).await? {
            let polled = tokio::select! {
                biased;
                polled = self.consumer.poll(POLL) => polled,
                told = orders.other_than(TargetState::Started) => match told {
                    Some(_) => continue,
                    None => return Ok(()),
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
            self.take_outcomes();
            if records.is_empty() {
                self.flush_idle(orders).await?;
                continue;
            }
            self.counters.read.fetch_add(records.len() as u64, Ordering::Relaxed);
            self.counters.meters.polled(records.len(), self.consumer.assigned_partitions());
            if self.batch(&Arc::new(records), orders).await? {
                // Each release costs a delivery, and the limit of these is low: what is down gets time to come back.
                orders.interrupt_within(pause).await;
                pause = (pause * 2).min(RELEASE_PAUSE_MAX);
            } else {
                pause = RETRY_PAUSE;
            }
        }
        Ok(())
    }

    /// Waits while the task is to pause. Answers whether it is to go on.
    async fn may_go_on(&mut self, orders: &mut Orders) -> Result<bool, ConnectError> {
        loop {
            match orders.now() {
                TargetState::Started => return Ok(true),
                TargetState::Stopped => return Ok(false),
                // What was fetched ahead would lose its locks meanwhile; others have it at once.
                TargetState::Paused => self.consumer.unsubscribe(),
            }
            self.counters.fetching.store(false, Ordering::Relaxed);
            self.counters.meters.turn(Some(true));
            self.counters.paused.store(true, Ordering::Release);
            let told = orders.other_than(TargetState::Paused).await;
            self.counters.paused.store(false, Ordering::Release);
            self.counters.meters.turn(Some(false));
            match told {
                Some(TargetState::Started) => self.consumer.subscribe(&self.config.topics)?,
                Some(_) => {}
                None => return Ok(false),
            }
        }
    }

    /// One poll's records: converted, put, acknowledged. Answers whether some were released.
    async fn batch(&mut self, records: &Arc<ShareRecords>, orders: &Orders) -> Result<bool, ConnectError> {
        let lock = self.consumer.acquisition_lock_timeout();
        self.counters.holds(Held(Some(Arc::clone(records))));
        let renewal = Renewal::of(Arc::clone(records), lock).telling(Arc::clone(&self.counters));
        let (mut converted, fates) = std::mem::take(&mut self.room);
        let mut batch = Batch::new(records, fates, renewal);
        self.convert_all(records, &mut batch, &mut converted);
        self.counters.deliveries.store(batch.most_deliveries(), Ordering::Relaxed);
        self.counters.meters.count(Counted::Redelivered, batch.redelivered());
        self.put_all(&converted, &mut batch, orders).await;
        if self.producer.is_none() && batch.fates.has(Fate::Accept) {
            self.flush(&mut batch, orders).await;
            self.judge_all_flushed(&converted, &mut batch);
        }
        batch.keep_last_delivery(self.config.delivery_limit());
        if batch.cut
            && let Some(failure) = &mut batch.failure
        {
            failure.add(&format!("; what was not accepted of its batch is released: {}", self.counters.held()));
        }
        let settled = self.settle(records, &mut batch, orders).await;
        let released = batch.fates.has(Fate::Release);
        self.judge_time(&batch);
        self.counters.deliveries.store(0, Ordering::Relaxed);
        self.counters.holds(Held::default());
        converted.clear();
        self.room = (converted, batch.fates);
        batch.failure.map_or(settled.map(|()| released), Err)
    }

    /// Says once when puts become slower than the lock, and when they are fast enough again.
    fn judge_time(&self, batch: &Batch<'_>) {
        let (took, lock) = (batch.renewal.elapsed(), batch.renewal.lock());
        let slow = lock.is_some_and(|lock| took > lock);
        if slow {
            self.counters.meters.slow_batches.fetch_add(1, Ordering::Relaxed);
        }
        // It may have been set while the batch was at work: what counts is whether it has been said.
        self.counters.slow.store(slow, Ordering::Relaxed);
        let said = self.counters.slow_said.swap(slow, Ordering::Relaxed);
        let (lock, took) = (lock.unwrap_or_default().as_millis(), took.as_millis());
        if slow && !said {
            tracing::warn!(
                connector = %self.config.name, task = self.number, took_ms = took, lock_ms = lock, records = batch.fates.len(),
                "put and commit take longer than the acquisition lock: raise share.acquisition.lock.timeout.ms, or lower consumer.override.max.poll.records"
            );
        } else if said && !slow {
            tracing::info!(connector = %self.config.name, task = self.number, took_ms = took, lock_ms = lock, "put and commit fit into the acquisition lock again");
        }
    }

    async fn flush(&mut self, batch: &mut Batch<'_>, orders: &Orders) {
        // After a put that was cut off there is no grace left.
        let more = if batch.over { CLOSE } else { Duration::ZERO };
        let flush = orders.limited("flush", self.config.put_timeout, more, self.sink.flush());
        let result = batch.renewal.during(&self.consumer, flush).await;
        self.flushed = Instant::now();
        let (error, cut) = match result {
            Ok(()) => return,
            Err(Cut::Failed(error)) => (error, false),
            Err(Cut::Over(error)) => (error, true),
        };
        self.counters.meters.error_logged();
        tracing::warn!(connector = %self.config.name, task = self.number, %error, "flush failed, records released");
        batch.fates.turn(Fate::Accept, Fate::Release);
        batch.cut |= cut;
        if cut || error.blame() != Blame::Passing {
            batch.fail(Rows::NONE, error);
        }
    }

    /// A sink that gets no records is flushed too, every `offset.flush.interval.ms`.
    async fn flush_idle(&mut self, orders: &Orders) -> Result<(), ConnectError> {
        if self.flushed.elapsed() < self.config.flush_interval {
            return Ok(());
        }
        self.flushed = Instant::now();
        match orders.limited("flush", self.config.put_timeout, Duration::ZERO, self.sink.flush()).await {
            Ok(()) => Ok(()),
            Err(Cut::Failed(error)) if error.blame() == Blame::Passing => {
                tracing::warn!(connector = %self.config.name, task = self.number, %error, "flush failed; nothing waits for it");
                Ok(())
            }
            Err(Cut::Failed(error) | Cut::Over(error)) => Err(error),
        }
    }
}
