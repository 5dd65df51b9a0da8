//! One batch through both phases, and what a process that died left behind.
//!
//! 1. Kafka is prepared: receipts and acknowledgements are with the brokers.
//! 2. The database is prepared.
//! 3. The decision is written to the recovery log.
//! 4. Kafka is committed, and first: it alone has a time limit (`transaction.timeout.ms`). Where that has passed, nothing
//!    is committed anywhere yet; the database's part is rolled back, and the orders come again.
//! 5. The database is committed, which cannot fail for good any more.
//! 6. The log has it done.
//!
//! What dies before 3 was not decided: the database's part is rolled back by its name, and Kafka's aborted by the next
//! `TransactionSession::open` of the same transactional id. For the same reason decisions are carried out before that.

use crate::database::{Database, Order};
use crate::recovery_log::RecoveryLog;
use crate::{Failure, Options};
use kafka_share::{
    AckType, AcknowledgementMode, Error, ErrorKind, KafkaShareConsumer, ProducerRecord, ShareAcknowledgements,
    ShareRecords, TransactionSession, TransactionalProducer, TransactionalProducerBuilder,
};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const CLOSE: Duration = Duration::from_secs(10);

/// Steps of a batch, to die after.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Step {
    Sent,
    KafkaPrepared,
    DatabasePrepared,
    Decided,
    KafkaCommitted,
    DatabaseCommitted,
    Done,
}

pub(crate) struct Pipeline {
    options: Options,
    database: Database,
    log: RecoveryLog,
    consumer: KafkaShareConsumer,
    session: TransactionSession,
    batches: u64,
}

impl Pipeline {
    /// Finishes what a former process left, and joins the group.
    pub(crate) async fn start(options: Options) -> Result<Self, Failure> {
        let settings = TransactionalProducer::builder(&options.bootstrap_server, &options.group);
        let database = Database::connect(&options.database).await?;
        let log = recover(&options, &database, &settings).await?;
        let session = TransactionSession::open(settings).await?;
        let consumer = KafkaShareConsumer::builder(&options.bootstrap_server, &options.group)
            .acknowledgement_mode(AcknowledgementMode::Explicit)
            .max_poll_records(10)
            .build()?;
        consumer.subscribe([&options.input])?;
        Ok(Pipeline { options, database, log, consumer, session, batches: 0 })
    }

    /// Takes one batch through; answers how many orders it had, 0 where none came in time.
    pub(crate) async fn batch(&mut self, idle: Duration) -> Result<u64, Failure> {
        let Some(records) = self.poll(idle).await? else { return Ok(0) };
        self.batches += 1;
        let orders = records.iter().map(|record| Order {
            partition: record.partition(),
            offset: record.offset(),
            text: String::from_utf8_lossy(record.value().unwrap_or_default()).into_owned(),
        });
        let orders: Vec<Order> = orders.collect();
        let staged = match self.send(&records, &orders).await {
            Ok(staged) => staged,
            // Nothing is prepared: the orders come again.
            Err(error) if error.is_abortable() => {
                eprintln!("a batch is given up: {error}");
                self.session.abort().await?;
                return Ok(orders.len() as u64);
            }
            Err(error) => return Err(error.into()),
        };
        self.reached(Step::Sent);
        self.commit(&orders).await?;
        if !staged {
            self.consumer.acknowledge_all(&records, AckType::Accept)?;
            self.consumer.commit_sync(CLOSE).await?;
        }
        Ok(orders.len() as u64)
    }

    async fn poll(&self, idle: Duration) -> Result<Option<ShareRecords>, Failure> {
        let end = Instant::now() + idle;
        while let Some(left) = end.checked_duration_since(Instant::now()) {
            let records = self.consumer.poll(left).await?;
            if !records.is_empty() {
                return Ok(Some(records));
            }
        }
        Ok(None)
    }

    /// Receipts, and acknowledgements where the cluster takes them into the transaction; answers whether it did.
    async fn send(&self, records: &ShareRecords, orders: &[Order]) -> kafka_share::Result<bool> {
        self.session.begin().await?;
        let producer = self.session.producer();
        for order in orders {
            let receipt = ProducerRecord::new(&self.options.output).value(order.text.as_str());
            // A receipt that cannot be delivered is told by `prepare`.
            drop(producer.send(receipt).await?);
        }
        let acks = ShareAcknowledgements::from_records(records, AckType::Accept)?;
        match producer.send_share_acks_to_transaction(acks, &self.consumer.share_group_metadata()?).await {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::Unsupported => Ok(false),
            Err(error) => Err(error),
        }
    }

    async fn commit(&mut self, orders: &[Order]) -> Result<(), Failure> {
        let gid = new_gid(&self.options.group);
        let paper = self.session.prepare().await?;
        self.reached(Step::KafkaPrepared);
        self.database.prepare(&gid, orders).await?;
        self.reached(Step::DatabasePrepared);
        self.log.commit(&gid, &paper)?;
        self.reached(Step::Decided);
        let committed = self.session.commit().await;
        finish(&mut self.log, &self.database, &gid, committed, |step| reached(&self.options, self.batches, step)).await
    }

    fn reached(&self, step: Step) {
        reached(&self.options, self.batches, step);
    }

    pub(crate) async fn close(self) -> Result<(), Failure> {
        self.consumer.close(CLOSE).await?;
        Ok(self.session.close(CLOSE).await?)
    }
}

/// The end of a batch that was decided, as Kafka's end has it.
async fn finish(
    log: &mut RecoveryLog,
    database: &Database,
    gid: &str,
    kafka: kafka_share::Result<()>,
    reached: impl Fn(Step),
) -> Result<(), Failure> {
    match kafka {
        Ok(()) => {
            reached(Step::KafkaCommitted);
            database.commit(gid).await?;
            reached(Step::DatabaseCommitted);
        }
        Err(error) if is_over(&error) => {
            eprintln!("{gid} was aborted by Kafka, and is rolled back: {error}");
            database.roll_back(gid).await?;
        }
        // Not known yet: it stays in the log.
        Err(error) => return Err(error.into()),
    }
    log.done(gid)?;
    reached(Step::Done);
    Ok(())
}

/// Whether Kafka has aborted the transaction. A later epoch means just that here: this application finishes what was decided
/// before it initialises its transactional id again, and nobody else uses it.
fn is_over(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::TransactionAborted | ErrorKind::Fenced)
}

/// Carries out what was decided, and rolls back what was not.
async fn recover(
    options: &Options,
    database: &Database,
    settings: &TransactionalProducerBuilder,
) -> Result<RecoveryLog, Failure> {
    let (mut log, decided) = RecoveryLog::open(&options.log)?;
    for (gid, paper) in decided {
        eprintln!("finishing {gid}");
        let committed = TransactionSession::resume(settings.clone(), &paper).await?.commit().await;
        finish(&mut log, database, &gid, committed, |_| {}).await?;
    }
    for gid in database.prepared(&prefix(&options.group)).await? {
        eprintln!("rolling back {gid}");
        database.roll_back(&gid).await?;
    }
    Ok(log)
}

fn prefix(group: &str) -> String {
    format!("kafka-share-{group}-")
}

/// A name that no other transaction has, also none of an earlier process.
fn new_gid(group: &str) -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    format!("{}{:x}-{:x}", prefix(group), since.as_nanos(), std::process::id())
}

/// Dies here, where that is asked for: at once, without a word to anybody.
fn reached(options: &Options, batch: u64, step: Step) {
    if options.die_after == Some(step) && options.die_in == batch {
        std::process::abort();
    }
}
