//! A task of the pipe: polls, has the program answer, writes the answers and acknowledges, in one transaction or after it.

use super::command::{Running, Unanswered};
use super::counts::Counts;
use super::framing::{self, Misfit};
use super::{Plan, Semantics};
use crate::exit::{Failure, note};
use crate::text;
use kafka_share::{
    AckType, AcknowledgementMode, Error, ErrorKind, KafkaShareConsumer, Producer, ProducerRecord, RecordId,
    ShareAcknowledgements, ShareRecord, ShareRecords, TransactionalProducer,
};
use kafka_share_connect::Renewal;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// How long a poll waits.
const POLL: Duration = Duration::from_millis(500);
const CLOSE: Duration = Duration::from_secs(10);
/// How long a batch that is under way may go on once the pipe is to stop.
const GRACE: Duration = Duration::from_secs(10);
/// How long a commit is asked for again whose outcome is not known.
const COMMIT: Duration = Duration::from_secs(60);
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LAST_PAUSE: Duration = Duration::from_secs(5);

/// Whether the pipe is to stop.
pub(super) type Stop = watch::Receiver<bool>;

/// Why a task's life, or its work on some records, ended.
enum Trouble {
    /// No new try can help.
    Hopeless(Failure),
    /// The client must be made anew.
    Again(Error),
    /// The records go back, and come again.
    Once(String),
    /// So do they; what the program died of may be with them.
    Died(String),
    /// The pipe is to stop.
    Stopped,
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        match error.kind() {
            ErrorKind::Unsupported
            | ErrorKind::Config
            | ErrorKind::Authorization
            | ErrorKind::Authentication
            | ErrorKind::InvalidInput => Trouble::Hopeless(error.into()),
            _ if error.is_fatal() => Trouble::Again(error),
            _ => Trouble::Once(error.to_string()),
        }
    }
}

impl From<Misfit> for Trouble {
    fn from(misfit: Misfit) -> Self {
        Trouble::Hopeless(Failure::new(misfit))
    }
}

/// Runs a task until the pipe is to stop, again and again where something ends it.
pub(super) async fn keep_running(
    plan: Arc<Plan>,
    counts: Arc<Counts>,
    number: usize,
    stop: Stop,
) -> Result<(), Failure> {
    let mut pause = FIRST_PAUSE;
    while !*stop.borrow() {
        let began = Instant::now();
        let error = match live(&plan, &counts, number, stop.clone()).await {
            Ok(()) | Err(Trouble::Stopped) => return Ok(()),
            Err(Trouble::Hopeless(failure)) => return Err(failure),
            Err(Trouble::Again(error)) => error.to_string(),
            Err(Trouble::Once(text) | Trouble::Died(text)) => text,
        };
        counts.restarts.fetch_add(1, Relaxed);
        note(format_args!("task {number} starts anew: {error}"));
        pause = if began.elapsed() > LAST_PAUSE * 2 { FIRST_PAUSE } else { (pause * 2).min(LAST_PAUSE) };
        wait(pause, stop.clone()).await;
    }
    Ok(())
}

async fn wait(pause: Duration, mut stop: Stop) {
    let _ = tokio::time::timeout(pause, stop.wait_for(|stop| *stop)).await;
}

enum Output {
    Transactional(TransactionalProducer),
    Plain(Producer),
}

struct Life<'a> {
    plan: &'a Plan,
    counts: &'a Counts,
    consumer: KafkaShareConsumer,
    output: Output,
    program: Option<Running>,
    stop: Stop,
    /// After deaths of the program in a row.
    pause: Duration,
}

async fn live(plan: &Plan, counts: &Counts, number: usize, stop: Stop) -> Result<(), Trouble> {
    let output = output(plan, number).await?;
    let mut builder = KafkaShareConsumer::builder("", &plan.group).allow_auto_create_topics(false);
    if plan.semantics == Semantics::ExactlyOnce {
        // Where there is a ledger, what others have done is known before it is handed out.
        builder.set("share.ack.transaction.backend", "auto")?;
    }
    for (name, value) in plan.properties.iter().filter(|(name, _)| name != "group.id") {
        builder.set(name, value)?;
    }
    let consumer = builder.acknowledgement_mode(AcknowledgementMode::Explicit).build()?;
    consumer.subscribe(&plan.from)?;
    let program = plan.program.clone().map(Running::new);
    let mut life = Life { plan, counts, consumer, output, program, stop, pause: FIRST_PAUSE };
    let result = life.work().await;
    let closed = life.consumer.close(CLOSE).await;
    match life.output {
        Output::Transactional(producer) => producer.close(CLOSE).await,
        Output::Plain(producer) => producer.close(CLOSE).await,
    }
    .unwrap_or_else(|error| tracing::warn!(%error, "the producer was not closed in time"));
    if let Err(error) = closed {
        tracing::warn!(%error, "the group was not left in time");
    }
    result
}

async fn output(plan: &Plan, number: usize) -> Result<Output, Error> {
    let properties = plan.properties.iter().filter(|(name, _)| name != "transactional.id");
    if plan.semantics == Semantics::AtLeastOnce {
        let mut builder = Producer::builder("");
        properties.into_iter().try_for_each(|(name, value)| builder.set(name, value))?;
        return Ok(Output::Plain(builder.build()?));
    }
    let mut builder = TransactionalProducer::builder("", &format!("{}-{number}", plan.transactional_id));
    // Open only while answers are written: readers of the output wait for transactions of the dead.
    builder = builder.transaction_timeout(Duration::from_secs(30));
    properties.into_iter().try_for_each(|(name, value)| builder.set(name, value))?;
    let producer = builder.build()?;
    producer.init_transactions().await?;
    Ok(Output::Transactional(producer))
}

impl Life<'_> {
    async fn work(&mut self) -> Result<(), Trouble> {
        while !*self.stop.borrow() {
            let mut stop = self.stop.clone();
            if self.counts.is_used_up() {
                wait(FIRST_PAUSE, stop).await;
                continue;
            }
            let polled = tokio::select! {
                biased;
                polled = self.consumer.poll(POLL) => polled,
                _ = stop.wait_for(|stop| *stop) => return Ok(()),
            };
            match polled {
                Ok(records) => self.batch(&records).await?,
                Err(error) if error.is_retriable() => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    async fn batch(&mut self, records: &ShareRecords) -> Result<(), Trouble> {
        // Of all: what waits for its turn must not lose its locks either.
        let ids = records.iter().map(|record| record.id()).collect();
        let mut renewal = Renewal::new(ids, self.consumer.acquisition_lock_timeout());
        for whole in parts(records) {
            if *self.stop.borrow() {
                return Ok(());
            }
            let (part, rest) = whole.split_at(self.counts.claim(whole.len()));
            // As many as were asked for are under way; these are for others, should one of those fail.
            self.give_back(rest);
            if part.is_empty() {
                continue;
            }
            let result = self.part(part, &mut renewal).await;
            if result.is_ok() {
                self.counts.done(part.len());
                self.pause = FIRST_PAUSE;
                continue;
            }
            self.counts.unclaim(part.len());
            self.give_back(part);
            let (text, died) = match result {
                Err(Trouble::Once(text)) => (text, false),
                Err(Trouble::Died(text)) => (text, true),
                other => return other,
            };
            self.counts.failed.fetch_add(1, Relaxed);
            let first = framing::place(&part[0]);
            note(format_args!("{} from {first} on come again: {text}", text::count(part.len(), "record")));
            if died {
                wait(self.pause, self.stop.clone()).await;
                self.pause = (self.pause * 2).min(LAST_PAUSE);
            }
        }
        Ok(())
    }

    /// What is held still of records whose answers were not written is free at once. Staged ones are not ours any more.
    fn give_back(&self, part: &[ShareRecord<'_>]) {
        if part.is_empty() {
            return;
        }
        for record in part {
            let _ = self.consumer.acknowledge_with(record, AckType::Release);
        }
        let _ = self.consumer.commit_async();
    }

    async fn part(&mut self, part: &[ShareRecord<'_>], renewal: &mut Renewal) -> Result<(), Trouble> {
        let answers = match self.program.is_some() {
            true => Some(self.ask(part, renewal).await?),
            false => None,
        };
        let to = &self.plan.to;
        let mut outputs = Vec::with_capacity(part.len());
        match &answers {
            None => {
                for record in part {
                    outputs.push(framing::copy(record, to)?);
                }
            }
            Some(answers) => {
                for (record, answer) in part.iter().zip(answers) {
                    outputs.extend(framing::read(self.plan.framing, record, answer, to)?);
                }
            }
        }
        let written = outputs.len() as u64;
        let ids: Vec<RecordId> = part.iter().map(ShareRecord::id).collect();
        match &self.output {
            Output::Transactional(producer) => self.commit(producer, outputs, &ids).await?,
            Output::Plain(producer) => self.write(producer, outputs, &ids).await?,
        }
        self.counts.transactions.fetch_add(1, Relaxed);
        self.counts.written.fetch_add(written, Relaxed);
        Ok(())
    }

    /// The program's answers, a line for each record. The records' locks are renewed meanwhile.
    async fn ask(&mut self, part: &[ShareRecord<'_>], renewal: &mut Renewal) -> Result<Vec<Vec<u8>>, Trouble> {
        let Some(program) = &mut self.program else { return Ok(Vec::new()) };
        let mut lines = Vec::new();
        for record in part {
            framing::write(self.plan.framing, record, &mut lines)?;
        }
        let mut stop = self.stop.clone();
        let end = async {
            if stop.wait_for(|stop| *stop).await.is_err() {
                std::future::pending().await
            }
            tokio::time::sleep(GRACE).await;
        };
        let answers = renewal.during(&self.consumer, program.exchange(&lines, part.len()));
        let answers = tokio::select! {
            answers = answers => answers,
            () = end => return Err(Trouble::Stopped),
        };
        answers.map_err(|error| match error {
            Unanswered::Ended { .. } => {
                self.counts.deaths.fetch_add(1, Relaxed);
                Trouble::Died(error.to_string())
            }
            _ => Trouble::Hopeless(Failure::new(error)),
        })
    }

    /// Output and acknowledgements in one transaction.
    async fn commit(
        &self,
        producer: &TransactionalProducer,
        outputs: Vec<ProducerRecord<'_>>,
        ids: &[RecordId],
    ) -> Result<(), Trouble> {
        producer.begin_transaction()?;
        let staged = async {
            for output in outputs {
                // Whether it was written is known at the commit, which fails if it was not.
                drop(producer.send(output).await?);
            }
            let acks = ids.iter().map(|id| (*id, AckType::Accept));
            let acks = ShareAcknowledgements::from_record_ids(&self.consumer, acks)?;
            producer.send_share_acks_to_transaction(acks, &self.consumer.share_group_metadata()?).await?;
            let until = Instant::now() + COMMIT;
            loop {
                match producer.commit_transaction().await {
                    Err(error) if error.kind() == ErrorKind::OutcomeUnknown && Instant::now() < until => {
                        tokio::time::sleep(FIRST_PAUSE).await;
                    }
                    result => return result,
                }
            }
        };
        let Err(error) = staged.await else { return Ok(()) };
        // A transaction whose end is not known is for a new producer to settle, under the same transactional id.
        if error.is_fatal() || error.kind() == ErrorKind::OutcomeUnknown {
            return Err(Trouble::Again(error));
        }
        let aborted = producer.abort_transaction().await;
        match (Trouble::from(error), aborted) {
            (Trouble::Once(_), Err(error)) => Err(Trouble::Again(error)),
            (trouble, _) => Err(trouble),
        }
    }

    /// Output first; acknowledgements once all of it is written.
    async fn write(
        &self,
        producer: &Producer,
        outputs: Vec<ProducerRecord<'_>>,
        ids: &[RecordId],
    ) -> Result<(), Trouble> {
        let mut deliveries = Vec::with_capacity(outputs.len());
        for output in outputs {
            deliveries.push(producer.send(output).await?);
        }
        producer.flush().await?;
        for delivery in deliveries {
            delivery.await?;
        }
        let acknowledger = self.consumer.acknowledger();
        // Where the lock was lost meanwhile the record comes again: that is what at-least-once means.
        let lost = ids.iter().filter(|id| acknowledger.acknowledge(**id, AckType::Accept).is_err()).count();
        if lost > 0 {
            tracing::warn!(lost, "records were written, and come again: their locks were lost meanwhile");
        }
        self.consumer.commit_async()?;
        Ok(())
    }
}

/// What came for the first time, together. What came before may be what the program dies of: each by itself, so that the
/// deliveries of its neighbours are not used up with it.
fn parts(records: &ShareRecords) -> Vec<Vec<ShareRecord<'_>>> {
    let (fresh, again): (Vec<_>, Vec<_>) = records.iter().partition(|record| record.delivery_count() <= 1);
    let mut parts = Vec::with_capacity(1 + again.len());
    if !fresh.is_empty() {
        parts.push(fresh);
    }
    parts.extend(again.into_iter().map(|record| vec![record]));
    parts
}
