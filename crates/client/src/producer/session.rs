//! A transaction that may outlive its process: prepared here, ended there (KIP-1310; KIP-939 where brokers have it).

use super::TransactionalProducer;
use super::builder::TransactionalProducerBuilder;
use super::metrics::Call;
use super::shared::{Shared, transaction_error};
use crate::net::CoordinatorKind;
use crate::{Error, ErrorKind, Result};
use kafka_share_core::transaction::{PreparedTransaction, ProducerIdentity, Transaction};
use kafka_share_messages::describe_transactions_response::TransactionState;
use kafka_share_messages::{DescribeTransactionsRequest, ErrorCode};
use kafka_share_wire::Str;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// A transaction in two phases, for those who commit something else with it (a database, a checkpoint).
///
/// [`prepare`](Self::prepare) brings everything to the brokers and answers a [`PreparedTransaction`], which is written down
/// with the other side's prepared state. Then either side is committed. After a crash in between,
/// [`resume`](Self::resume) ends the transaction with what was written down; it may be repeated.
///
/// The coordinator aborts a transaction that is older than `transaction.timeout.ms` (the broker's
/// `transaction.max.timeout.ms`, 15 minutes by default, is its limit); a commit that comes later fails and says so. Until
/// then its records hold up read_committed readers. `transaction.two.phase.commit.enable` lifts the limit (KIP-939).
///
/// On the [ledger](crate::ledger) another member aborts a prepared transaction that stands in its way: one that is given records
/// of it when their lock has run out. With `two_phase_commit` none does; without it, the record lock of the group
/// (`share.record.lock.duration.ms`) has to be longer than the decision takes.
///
/// A new producer with the same transactional id aborts a prepared transaction when it is initialised: resume first.
///
/// ```no_run
/// # async fn example() -> kafka_share::Result<()> {
/// use kafka_share::{PreparedTransaction, ProducerRecord, TransactionSession, TransactionalProducer};
///
/// let settings = TransactionalProducer::builder("127.0.0.1:9092", "payments-0");
/// let session = TransactionSession::open(settings.clone()).await?;
/// session.begin().await?;
/// session.producer().send(ProducerRecord::new("payments").value("42")).await?;
/// let written_down = session.prepare().await?.to_string();
/// session.commit().await?;
///
/// // In another process, where this one died before or during its commit:
/// let prepared: PreparedTransaction = written_down.parse().expect("undamaged");
/// let session = TransactionSession::resume(settings, &prepared).await?;
/// session.commit().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct TransactionSession {
    producer: TransactionalProducer,
}

impl TransactionSession {
    /// A session of a new producer; initialises its transactional id.
    ///
    /// # Cancel safety
    /// As [`TransactionalProducer::init_transactions`].
    ///
    /// # Errors
    /// As [`TransactionalProducerBuilder::build`] and [`TransactionalProducer::init_transactions`].
    pub async fn open(settings: TransactionalProducerBuilder) -> Result<Self> {
        let producer = settings.build()?;
        producer.init_transactions().await?;
        Ok(TransactionSession { producer })
    }

    /// A session that has a transaction to end, which this or another process prepared. `settings` name the same
    /// transactional id. Nothing is fenced, and nothing sent that changes anything.
    ///
    /// # Cancel safety
    /// May be called again.
    ///
    /// # Errors
    /// [`InvalidInput`](ErrorKind::InvalidInput), where it was prepared with another transactional id or on another cluster.
    pub async fn resume(settings: TransactionalProducerBuilder, prepared: &PreparedTransaction) -> Result<Self> {
        if settings.transactional_id() != Some(&prepared.transactional_id) {
            let text = format!(
                "the transaction was prepared with transactional id {:?}, and these settings have {:?}: give the same one",
                prepared.transactional_id,
                settings.transactional_id().unwrap_or_default()
            );
            return Err(Error::new(ErrorKind::InvalidInput, text));
        }
        let producer = settings.build_with(Some(prepared))?;
        let shared = producer.shared();
        let here = cluster_id(shared, shared.block_deadline()).await?;
        if !prepared.cluster_id.is_empty() && !here.is_empty() && prepared.cluster_id != here {
            let text = format!(
                "the transaction was prepared on cluster {}, and this is cluster {here}: check bootstrap.servers",
                prepared.cluster_id
            );
            return Err(Error::new(ErrorKind::InvalidInput, text));
        }
        Ok(TransactionSession { producer })
    }

    /// Looks for what a dead process left open under the transactional id of `settings`, without its
    /// [`PreparedTransaction`]; waits while a transaction is being completed. `None` where nothing is left to end.
    ///
    /// Whether to [`commit`](Self::commit) is for the caller to know: the transaction may have been prepared, or just been
    /// open. The process must be dead, or what it still sends may be committed too; with `two_phase_commit`, where brokers
    /// have KIP-939's takeover, it is fenced here.
    ///
    /// # Cancel safety
    /// May be called again.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub async fn recover(settings: TransactionalProducerBuilder) -> Result<Option<Self>> {
        let producer = settings.clone().build()?;
        if let Some(found) = producer.take_over().await? {
            return Ok(found.then_some(TransactionSession { producer }));
        }
        let shared = producer.shared();
        let deadline = shared.block_deadline();
        let id = shared.with_transaction(|t| t.id().clone())?;
        let Some(state) = ongoing(shared, &id, deadline).await? else { return Ok(None) };
        let features = shared.cluster.features(deadline).await?;
        let age = state.transaction_start_time_ms.saturating_add(i64::from(state.transaction_timeout_ms));
        let prepared = PreparedTransaction {
            cluster_id: cluster_id(shared, deadline).await?,
            transactional_id: id.as_str().to_owned(),
            identity: ProducerIdentity { id: state.producer_id, epoch: state.producer_epoch },
            v2: features.feature("transaction.version") >= 2,
            started: true,
            expires_ms: if state.transaction_timeout_ms == i32::MAX { -1 } else { age },
        };
        TransactionSession::resume(settings, &prepared).await.map(Some)
    }

    /// The producer, for records and acknowledgements in the open transaction.
    #[must_use]
    pub fn producer(&self) -> &TransactionalProducer {
        &self.producer
    }

    /// Begins a transaction. After a resumed one was ended this initialises the transactional id first.
    ///
    /// # Cancel safety
    /// May be called again.
    ///
    /// # Errors
    /// As [`TransactionalProducer::init_transactions`] and [`TransactionalProducer::begin_transaction`].
    pub async fn begin(&self) -> Result<()> {
        if self.producer.shared().with_transaction(|t| t.is_new())? {
            self.producer.init_transactions().await?;
        }
        self.producer.begin_transaction()
    }

    /// See [`TransactionalProducer::prepare_transaction`].
    ///
    /// # Cancel safety
    /// As there.
    ///
    /// # Errors
    /// As there.
    pub async fn prepare(&self) -> Result<PreparedTransaction> {
        self.producer.prepare_transaction().await
    }

    /// Commits, prepared or not. To commit what was committed before, by whoever, is no error, as long as no new
    /// transaction was begun under the transactional id.
    ///
    /// # Cancel safety
    /// As [`TransactionalProducer::commit_transaction`].
    ///
    /// # Errors
    /// As [`TransactionalProducer::commit_transaction`]. [`TransactionAborted`](ErrorKind::TransactionAborted), where the
    /// transaction was aborted before; [`Fenced`](ErrorKind::Fenced), where the coordinator has a later epoch: it aborted
    /// the transaction for its age, or another producer was initialised, before which the transaction may have been
    /// committed or aborted.
    pub async fn commit(&self) -> Result<()> {
        self.producer.commit_transaction().await
    }

    /// Aborts, prepared or not.
    ///
    /// # Cancel safety
    /// As [`TransactionalProducer::abort_transaction`].
    ///
    /// # Errors
    /// As [`TransactionalProducer::abort_transaction`]. A transaction that was committed before is not undone.
    pub async fn abort(&self) -> Result<()> {
        self.producer.abort_transaction().await
    }

    /// Ends the session. An open transaction is aborted; a prepared one stays, for whoever resumes it.
    ///
    /// # Cancel safety
    /// As [`TransactionalProducer::close`].
    ///
    /// # Errors
    /// As [`TransactionalProducer::close`].
    pub async fn close(&self, timeout: Duration) -> Result<()> {
        self.producer.close(timeout).await
    }
}

impl TransactionalProducer {
    /// First phase of a commit in two: sends all that is left, waits for its confirmation, and from then on takes nothing
    /// more into the transaction. What it answers is all that another process needs to end it (see [`TransactionSession`]).
    /// May be repeated until the end is begun.
    ///
    /// # Cancel safety
    /// A call that is dropped has sent the records; the transaction is open still, or prepared. May be called again.
    ///
    /// # Errors
    /// Abortable, where a record or an acknowledgement failed. No open transaction.
    pub async fn prepare_transaction(&self) -> Result<PreparedTransaction> {
        let _time = self.shared().metrics.time(Call::Prepare);
        self.check_not_abandoned()?;
        let shared = self.shared();
        let deadline = shared.block_deadline();
        let _turn = self.turn(deadline).await?;
        let id = cluster_id(shared, deadline).await?;
        self.seal(deadline).await?;
        loop {
            shared.with(|s| s.machine.seal_all());
            shared.idle(deadline).await?;
            let prepared = shared.with(|s| {
                // A record that came in meanwhile belongs to it too.
                let idle = s.machine.is_idle();
                idle.then(|| s.machine.transaction_mut().map(|t| t.prepare(id.clone(), expires_ms(t))))
            });
            if let Some(prepared) = prepared {
                let none = || Error::new(ErrorKind::InvalidState, "this producer has no transactional.id");
                return prepared.ok_or_else(none)?.map_err(transaction_error);
            }
        }
    }

    /// KIP-939: fences the former producer and keeps its transaction. `None` where the cluster cannot; else whether there
    /// is a transaction.
    async fn take_over(&self) -> Result<Option<bool>> {
        let shared = self.shared();
        let deadline = shared.block_deadline();
        let _turn = self.turn(deadline).await?;
        self.learn_features(deadline).await?;
        if !shared.with_transaction(|t| t.is_two_phase_commit())? {
            return Ok(None);
        }
        let request = shared.with_transaction(Transaction::start_takeover)?.map_err(transaction_error)?;
        match self.init_with(request, Transaction::handle_takeover, deadline).await {
            Ok(()) => shared.with_transaction(|t| t.is_prepared()).map(Some),
            // As Kafka 4.4 has it: the field is there, what it asks for is not. Another producer asks otherwise.
            Err(error) if error.code() == Some(ErrorCode::UNSUPPORTED_VERSION) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

async fn cluster_id(shared: &Shared, deadline: Instant) -> Result<String> {
    if let Some(id) = shared.cluster.cluster_id() {
        return Ok(id);
    }
    shared.cluster.refresh_topics(&[], deadline).await?;
    Ok(shared.cluster.cluster_id().unwrap_or_default())
}

/// When the coordinator aborts the transaction, at the earliest.
fn expires_ms(transaction: &Transaction) -> i64 {
    if transaction.is_two_phase_commit() {
        return -1;
    }
    let age = transaction.began().map_or(Duration::ZERO, |began| began.elapsed());
    let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from((wall + transaction.timeout()).saturating_sub(age).as_millis()).unwrap_or(i64::MAX)
}

/// The open transaction of a transactional id, as its coordinator has it.
async fn ongoing(shared: &Shared, id: &Str, deadline: Instant) -> Result<Option<TransactionState>> {
    let request = DescribeTransactionsRequest { transactional_ids: vec![id.clone()], ..Default::default() };
    let mut attempt = 0;
    loop {
        let code = |r: &<DescribeTransactionsRequest as kafka_share_messages::Request>::Response| {
            r.transaction_states.first().map_or(ErrorCode::NONE, |s| s.error_code)
        };
        let kind = CoordinatorKind::Transaction;
        let mut response = shared.cluster.call_coordinator(kind, id, &request, deadline, code).await?;
        let Some(state) = response.transaction_states.pop() else {
            return Err(Error::new(ErrorKind::Protocol, "DescribeTransactions was answered without a transaction"));
        };
        let code = match (state.error_code, state.transaction_state.as_str()) {
            (ErrorCode::TRANSACTIONAL_ID_NOT_FOUND, _) => return Ok(None),
            (ErrorCode::NONE, "Ongoing") => return Ok(Some(state)),
            // Its end is decided; it is over soon.
            (ErrorCode::NONE, "PrepareCommit" | "PrepareAbort") => ErrorCode::CONCURRENT_TRANSACTIONS,
            (ErrorCode::NONE, _) => return Ok(None),
            (code, _) => code,
        };
        attempt += 1;
        let again = code.is_retriable() || code == ErrorCode::CONCURRENT_TRANSACTIONS;
        if !again || !shared.cluster.pause_before_retry(attempt, deadline).await {
            return Err(Error::broker(code, format_args!("describing the transaction of {:?}", id.as_str()), None));
        }
    }
}
