//! One task: poll, transform, write and acknowledge in a transaction, commit; again and again.

use super::chaos::{Dice, Strike, Strikes};
use super::state::Progress;
use super::{Plan, Semantics};
use kafka_share::consumer::AcquireMode;
use kafka_share::net::Cluster;
use kafka_share::{
    AckType, AcknowledgementMode, Error, KafkaShareConsumer, ProducerRecord, Result, ShareAcknowledgements,
    ShareRecords, TransactionalProducer,
};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Header with the partition that a record came from.
pub(super) const PARTITION_HEADER: &str = "source-partition";
/// Header with the offset that a record came from.
pub(super) const OFFSET_HEADER: &str = "source-offset";
const POLL: Duration = Duration::from_millis(500);
const CLOSE: Duration = Duration::from_secs(5);

/// What the demo does to a line.
pub(super) fn transform(value: &[u8]) -> Vec<u8> {
    value.to_ascii_uppercase()
}

/// Why a life of a task ended.
#[derive(Debug)]
pub(super) enum End {
    /// All is done.
    Stopped,
    /// Chaos dropped it, or it met an error: a new life begins.
    Dropped,
}

/// Runs a task, and starts it again whenever it ends, until the run stops.
pub(super) async fn keep_running(
    cluster: Arc<Cluster>,
    plan: Plan,
    progress: Arc<Progress>,
    number: u16,
    lock: Duration,
) {
    let dice = Dice::new(plan.seed, u64::from(number) + 1);
    let mut strikes = if plan.chaos { Strikes::Dropped(dice) } else { Strikes::None };
    let id = plan.transactional_id(number);
    while !progress.is_stopped() {
        match live(&cluster, &plan, &progress, &id, lock, &mut strikes).await {
            Ok(End::Stopped) => return,
            Ok(End::Dropped) => {}
            Err(error) => {
                tracing::warn!(task = number, %error, "task failed and is started again");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }
}

struct Life<'a> {
    consumer: KafkaShareConsumer,
    producer: TransactionalProducer,
    plan: &'a Plan,
    progress: &'a Progress,
    lock: Duration,
}

/// One life: until the run stops, or chaos or an error ends it.
pub(super) async fn live(
    cluster: &Arc<Cluster>,
    plan: &Plan,
    progress: &Progress,
    transactional_id: &str,
    lock: Duration,
    strikes: &mut Strikes,
) -> Result<End> {
    let mut producer = TransactionalProducer::builder("", transactional_id).cluster(Arc::clone(cluster));
    let mut consumer = KafkaShareConsumer::builder("", &plan.group).cluster(Arc::clone(cluster));
    for (name, value) in plan.backend_properties() {
        producer.set(name, value)?;
        consumer.set(name, value)?;
    }
    if plan.chaos {
        // Of the dead nothing is left open for longer than a lock holds.
        producer = producer.transaction_timeout(lock.max(Duration::from_secs(1)));
    }
    if plan.record_limit {
        consumer = consumer.acquire_mode(AcquireMode::RecordLimit);
    }
    let producer = producer.build()?;
    producer.init_transactions().await?;
    let consumer = consumer.acknowledgement_mode(AcknowledgementMode::Explicit).max_poll_records(plan.batch).build()?;
    consumer.subscribe([&plan.input_topic])?;
    let life = Life { consumer, producer, plan, progress, lock };
    let mut met = [0; 3];
    while !progress.is_stopped() {
        let records = life.consumer.poll(POLL).await?;
        life.count_met(&mut met);
        if records.is_empty() {
            continue;
        }
        strikes.tell_of(&records);
        let again = records.iter().filter(|r| r.delivery_count() > 1).count();
        progress.redelivered.fetch_add(again as u64, Ordering::Relaxed);
        let strike = strikes.roll();
        if strike.is_some() {
            progress.chaos.fetch_add(1, Ordering::Relaxed);
        }
        if !life.round(&records, strike, strikes).await? {
            return Ok(End::Dropped);
        }
    }
    let _ = life.consumer.close(CLOSE).await;
    let _ = life.producer.close(CLOSE).await;
    Ok(End::Stopped)
}

impl Life<'_> {
    /// Adds what the consumer met in the ledger since the last time.
    fn count_met(&self, before: &mut [u64; 3]) {
        let metrics = self.consumer.metrics();
        let progress = self.progress;
        let counters = [
            ("share-ack-ledger-fences-total", &progress.fences),
            ("share-ack-ledger-restarts-total", &progress.ledger_restarts),
            ("share-ack-ledger-done-elsewhere-total", &progress.done_elsewhere),
        ];
        for ((name, counter), before) in counters.into_iter().zip(before) {
            let now = metrics.get(name).map_or(0, |value| value as u64);
            counter.fetch_add(now.saturating_sub(*before), Ordering::Relaxed);
            *before = now;
        }
    }

    /// One transaction. Answers whether the task lives on.
    async fn round(&self, records: &ShareRecords, strike: Option<Strike>, strikes: &mut Strikes) -> Result<bool> {
        if strike == Some(Strike::AfterPoll) && strikes.at(Strike::AfterPoll).await {
            return Ok(false);
        }
        self.producer.begin_transaction()?;
        let result = self.transact(records, strike, strikes).await;
        match result {
            Ok(true) => {
                let sources: Vec<(i32, i64)> = records.iter().map(|r| (r.partition(), r.offset())).collect();
                self.progress.note_commit(&sources);
                if self.plan.semantics == Semantics::AtLeastOnce {
                    self.consumer.acknowledge_all(records, AckType::Accept)?;
                    self.consumer.commit_async()?;
                }
                Ok(true)
            }
            Ok(false) => {
                self.progress.aborts.fetch_add(1, Ordering::Relaxed);
                Ok(false)
            }
            Err(error) => self.recover(error, records).await,
        }
    }

    async fn transact(&self, records: &ShareRecords, strike: Option<Strike>, strikes: &mut Strikes) -> Result<bool> {
        let half = records.len() / 2;
        for (i, record) in records.iter().enumerate() {
            if i == half && strike == Some(Strike::MidTransaction) && strikes.at(Strike::MidTransaction).await {
                return Ok(false);
            }
            let (partition, offset) = (record.partition().to_string(), record.offset().to_string());
            let out = ProducerRecord::new(&self.plan.output_topic)
                .partition(record.partition())
                .value(transform(record.value().unwrap_or_default()))
                .header(PARTITION_HEADER, partition.as_bytes())
                .header(OFFSET_HEADER, offset.as_bytes());
            // Whether each was written is known at the commit, which fails if one was not.
            drop(self.producer.send(out).await?);
        }
        if strike == Some(Strike::AfterProduce) {
            self.producer.flush().await?;
            if strikes.at(Strike::AfterProduce).await {
                return Ok(false);
            }
        }
        if strike == Some(Strike::PausePastLock) {
            tokio::time::sleep(self.lock + self.lock / 4).await;
        }
        if self.plan.semantics == Semantics::ExactlyOnce {
            let acks = ShareAcknowledgements::from_records(records, AckType::Accept)?;
            self.producer.send_share_acks_to_transaction(acks, &self.consumer.share_group_metadata()?).await?;
        }
        if strike == Some(Strike::BeforeCommit) && strikes.at(Strike::BeforeCommit).await {
            return Ok(false);
        }
        if strike == Some(Strike::DuringCommit) && strikes.at(Strike::DuringCommit).await {
            // The commit may or may not reach the coordinator before its caller is gone.
            let _ = tokio::time::timeout(Duration::from_micros(300), self.producer.commit_transaction()).await;
            return Ok(false);
        }
        self.commit().await?;
        Ok(true)
    }

    /// Commits; where the outcome is unknown, the same commit is tried again until it is known.
    async fn commit(&self) -> Result<()> {
        let until = Instant::now() + Duration::from_secs(20);
        loop {
            match self.producer.commit_transaction().await {
                Err(error) if error.kind() == kafka_share::ErrorKind::OutcomeUnknown && Instant::now() < until => {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                result => return result,
            }
        }
    }

    async fn recover(&self, error: Error, records: &ShareRecords) -> Result<bool> {
        self.progress.aborts.fetch_add(1, Ordering::Relaxed);
        tracing::debug!(%error, "transaction failed");
        if error.is_fatal() {
            return Err(error);
        }
        self.producer.abort_transaction().await?;
        // Whatever is still held goes back, to be had again at once.
        let _ = self.consumer.acknowledge_all(records, AckType::Release);
        let _ = self.consumer.commit_async();
        Ok(true)
    }
}
