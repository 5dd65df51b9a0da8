//! The transactional producer (KIP-98, KIP-447's successor for share groups: KIP-1289).

use super::ack_backend::{AckBackend, Refusals, Staging};
use super::builder::TransactionalProducerBuilder;
use super::delivery::Delivery;
use super::ledger_backend::{Commit, SealError};
use super::metrics::Call;
use super::record::ProducerRecord;
use super::sender::Stop;
use super::shared::{Shared, transaction_error};
use super::spans;
use crate::acknowledgements::{
    ShareAcknowledgements, ShareGroupMetadata, StagedPart, TopicIdPartition, TransactionEnd,
};
use crate::net::CoordinatorKind;
use crate::{Error, ErrorKind, MetricsSnapshot, Result};
use kafka_share_core::ledger::Conflict;
use kafka_share_core::producer::BatchErrorKind;
use kafka_share_core::transaction::{End, Transaction, TxnError, TxnErrorKind, Verdict};
use kafka_share_messages::{
    EndTxnRequest, EndTxnResponse, ErrorCode, InitProducerIdRequest, InitProducerIdResponse, Message, Request,
};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{Semaphore, SemaphorePermit};
use tracing::Instrument;

/// Last EndTxn version without a new epoch in its answer.
const LAST_V1_END_TXN: i16 = 4;
/// First InitProducerId version with two-phase commit.
const TWO_PHASE_INIT: i16 = 6;

/// A producer whose records and share acknowledgements take effect together or not at all.
///
/// Order of calls: [`init_transactions`](Self::init_transactions) once, then
/// [`begin_transaction`](Self::begin_transaction), any number of [`send`](Self::send) and
/// [`send_share_acks_to_transaction`](Self::send_share_acks_to_transaction), then
/// [`commit_transaction`](Self::commit_transaction) or [`abort_transaction`](Self::abort_transaction); again and again.
/// Or [`transaction`](Self::transaction), which does all but the first.
///
/// Errors say what helps: [retriable](Error::is_retriable) the same call again, [abortable](Error::is_abortable)
/// `abort_transaction` and a new transaction, [fatal](Error::is_fatal) a new producer. Each call ends within
/// `max.block.ms`. Nothing is ever committed by dropping: a dropped producer leaves its open transaction to the
/// coordinator's timeout.
#[derive(Debug)]
pub struct TransactionalProducer {
    shared: Arc<Shared>,
    stop: Arc<Stop>,
    backend: Box<dyn AckBackend>,
    /// One init, commit, abort or staging at a time.
    turn: Semaphore,
    staged: Staged,
    /// A transaction given to a closure was dropped half-way.
    pub(super) abandoned: AtomicBool,
    /// How often `transaction` does its work, at most.
    pub(super) attempts: u32,
}

/// Acknowledgements that wait for the transaction's end.
#[derive(Default)]
struct Staged(Mutex<Vec<Box<dyn StagedPart>>>);

impl Staged {
    fn add(&self, parts: Vec<Box<dyn StagedPart>>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend(parts);
    }

    fn refused(&self, which: &dyn Fn(TopicIdPartition) -> bool) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter_mut().for_each(|part| part.refused(which));
    }

    fn contended(&self, group: &str, done: &[Conflict]) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter_mut().for_each(|part| part.contended(group, done));
    }

    fn renew(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().for_each(|part| part.renew());
    }

    fn take(&self) -> Vec<Box<dyn StagedPart>> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn end(&self, end: TransactionEnd) {
        self.take().into_iter().for_each(|part| part.ended(end));
    }
}

impl std::fmt::Debug for Staged {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Staged")
    }
}

impl TransactionalProducer {
    /// Settings, with `bootstrap.servers` as a comma-separated list of `host:port`, and a `transactional.id` that no
    /// other live producer has: a second one fences the first.
    pub fn builder(bootstrap_servers: &str, transactional_id: &str) -> TransactionalProducerBuilder {
        TransactionalProducerBuilder::new(bootstrap_servers, transactional_id)
    }

    /// From Kafka's property names.
    ///
    /// # Errors
    /// As [`TransactionalProducerBuilder::from_properties`] and [`TransactionalProducerBuilder::build`].
    pub fn from_properties<K: AsRef<str>, V: AsRef<str>>(properties: impl IntoIterator<Item = (K, V)>) -> Result<Self> {
        TransactionalProducerBuilder::from_properties(properties)?.build()
    }

    pub(super) fn new(shared: Arc<Shared>, stop: Arc<Stop>, backend: Box<dyn AckBackend>, attempts: u32) -> Self {
        TransactionalProducer {
            shared,
            stop,
            backend,
            turn: Semaphore::new(1),
            staged: Staged::default(),
            abandoned: AtomicBool::new(false),
            attempts,
        }
    }

    pub(super) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Whether a transaction was begun whose end is not known yet.
    pub(super) fn is_unfinished(&self) -> Result<bool> {
        self.shared.with_transaction(|t| t.is_unfinished())
    }

    pub(super) async fn turn(&self, deadline: Instant) -> Result<SemaphorePermit<'_>> {
        match tokio::time::timeout_at(deadline.into(), self.turn.acquire()).await {
            Ok(Ok(permit)) => Ok(permit),
            _ => {
                Err(Error::new(ErrorKind::Timeout, "another call on this producer's transaction has not ended in time"))
            }
        }
    }

    /// Registers the transactional id: fences older producers and ends what they left open. Waits while that is being
    /// ended.
    ///
    /// # Cancel safety
    /// May be called again.
    ///
    /// # Errors
    /// Refusals; a fenced producer stays fenced. Timeouts are retriable.
    pub async fn init_transactions(&self) -> Result<()> {
        let _time = self.shared.metrics.time(Call::Init);
        let deadline = self.shared.block_deadline();
        let _turn = self.turn(deadline).await?;
        self.learn_features(deadline).await?;
        let request = self.shared.with_transaction(Transaction::start_init)?;
        if request.is_ok() {
            // What is left of a transaction that had failed must be over first, as before an abort's end.
            self.shared.with(|s| s.machine.abort_unsent(BatchErrorKind::Aborted, "the transaction was aborted"));
            self.shared.idle(deadline).await?;
        }
        self.init_with(request.map_err(transaction_error)?, Transaction::handle_init, deadline).await?;
        // A transaction that had failed before was aborted by this.
        self.finish(TransactionEnd::Aborted);
        Ok(())
    }

    /// Tells all who wait for the transaction's end.
    fn finish(&self, end: TransactionEnd) {
        let end = match end {
            // Without an intent it cannot have been committed.
            TransactionEnd::Unknown if self.backend.is_unsealed() => TransactionEnd::Aborted,
            TransactionEnd::Unknown => return self.finish_later(),
            end => end,
        };
        self.backend.ended(end);
        self.staged.end(end);
    }

    /// Tells all who wait for an end that this producer will not learn: once it is known elsewhere, if it can be.
    fn finish_later(&self) {
        let patience = self.shared.with(|s| s.machine.transaction().map(Transaction::timeout)).unwrap_or_default();
        let deadline = Instant::now() + patience.saturating_mul(2);
        let (following, runtime) = (self.backend.follow(deadline), tokio::runtime::Handle::try_current());
        let (Some(following), Ok(runtime)) = (following, runtime) else {
            self.backend.ended(TransactionEnd::Unknown);
            return self.staged.end(TransactionEnd::Unknown);
        };
        let parts = self.staged.take();
        runtime.spawn(async move {
            let end = match following.await {
                Some(true) => TransactionEnd::Committed,
                Some(false) => TransactionEnd::Aborted,
                None => TransactionEnd::Unknown,
            };
            parts.into_iter().for_each(|part| part.ended(end));
        });
    }

    pub(super) async fn learn_features(&self, deadline: Instant) -> Result<()> {
        let features = self.shared.cluster.features(deadline).await?;
        let two_phase = self.shared.with_transaction(|t| {
            t.handle_feature(features.feature("transaction.version"));
            t.is_two_phase_commit()
        })?;
        let offered = features.pick::<InitProducerIdRequest>().is_ok_and(|v| v >= TWO_PHASE_INIT);
        if two_phase && !offered {
            let text = "transaction.two.phase.commit.enable is not supported by this cluster: it needs InitProducerId \
                        version 6 (KIP-939; Kafka 4.4 offers it with unstable.api.versions.enable=true)";
            return Err(Error::new(ErrorKind::Unsupported, text));
        }
        Ok(())
    }

    /// Asks for an identity until there is one; `take` is what the transaction makes of the answer.
    pub(super) async fn init_with(
        &self,
        mut request: InitProducerIdRequest,
        take: fn(&mut Transaction, &InitProducerIdResponse) -> Verdict,
        deadline: Instant,
    ) -> Result<()> {
        let key = request.transactional_id.clone().unwrap_or_default();
        let mut attempt = 0;
        loop {
            let cluster = &self.shared.cluster;
            let kind = CoordinatorKind::Transaction;
            let error = match cluster.call_coordinator(kind, &key, &request, deadline, |r| r.error_code).await {
                Ok(response) => match self.shared.with_transaction(|t| take(t, &response))? {
                    Verdict::Done | Verdict::Undecided => return self.settled(),
                    Verdict::Failed(error) => return Err(transaction_error(error)),
                    // With another epoch.
                    Verdict::Retry(ErrorCode::PRODUCER_FENCED | ErrorCode::INVALID_PRODUCER_EPOCH) => {
                        request = self.shared.with_transaction(|t| t.init_again())?;
                        continue;
                    }
                    Verdict::Retry(code) => Error::broker(code, "initialising the transactional producer", None),
                },
                // Asking again is harmless: it only gives a later epoch.
                Err(error) if error.is_retriable() => error,
                Err(error) => return Err(error),
            };
            attempt += 1;
            if !cluster.pause_before_retry(attempt, deadline).await {
                let text = format!("the transactional producer was not initialised in time: {error}");
                return Err(Error::new(ErrorKind::Timeout, text).with_code(error.code()));
            }
        }
    }

    /// Begins a transaction. Nothing is sent yet.
    ///
    /// # Errors
    /// Wrong order of calls; a failed or abandoned transaction that must be aborted first.
    pub fn begin_transaction(&self) -> Result<()> {
        let _time = self.shared.metrics.time(Call::Begin);
        self.check_not_abandoned()?;
        self.shared.with_transaction(|t| t.begin(Instant::now()))?.map_err(transaction_error)?;
        // What was dropped had ended its transaction by itself.
        self.abandoned.store(false, Ordering::Release);
        Ok(())
    }

    pub(super) fn check_not_abandoned(&self) -> Result<()> {
        // A commit that was on its way is no longer to be aborted, but to be repeated.
        let left = |t: &mut Transaction| t.is_unfinished() && !t.may_be_committed();
        if self.abandoned.load(Ordering::Acquire) && self.shared.with_transaction(left)? {
            let text = "a transaction was dropped before its end: call abort_transaction first";
            return Err(Error::new(ErrorKind::TransactionAborted, text));
        }
        Ok(())
    }

    /// Takes a record into the open transaction. As [`Producer::send`](super::Producer::send); a record that fails
    /// makes the transaction abort-only.
    ///
    /// # Cancel safety
    /// A call that is dropped before it returned took nothing.
    ///
    /// # Errors
    /// No open transaction; the error that the transaction has met; as [`Producer::send`](super::Producer::send).
    pub async fn send(&self, record: ProducerRecord<'_>) -> Result<Delivery> {
        self.check_not_abandoned()?;
        self.shared.send(record).await
    }

    /// Counters and gauges under Java's names, at this moment; `txn-share-acks-*` count acknowledgements in transactions. Those
    /// of the ledger (`share-ack-ledger-*`) are listed in [its guide](crate::ledger).
    #[must_use]
    pub fn metrics(&self) -> MetricsSnapshot {
        self.shared.metrics()
    }

    /// How its connections stand, for whoever looks for what is wrong; without secrets. What shares a
    /// [`Cluster`](crate::net::Cluster) shares its connections.
    #[must_use]
    pub fn connections(&self) -> Vec<crate::net::ConnectionInfo> {
        self.shared.cluster.connections()
    }

    /// Sends all records taken so far without lingering and waits until each is settled.
    ///
    /// # Cancel safety
    /// The records stay on their way.
    ///
    /// # Errors
    /// The first record that failed; a timeout after `max.block.ms`.
    pub async fn flush(&self) -> Result<()> {
        self.shared.flush(self.shared.block_deadline()).await
    }

    /// Puts acknowledgements into the open transaction: they take effect with its commit; an abort makes the records
    /// available again. May be called several times in a transaction. Nothing to acknowledge is no error. Records sent
    /// before go out at the same time, without lingering.
    ///
    /// # Cancel safety
    /// The transaction of a call that was dropped can only be aborted: it would be committed without acknowledgements that
    /// belong to it. A call that was never polled has done nothing.
    ///
    /// # Errors
    /// [`Unsupported`](ErrorKind::Unsupported), [`Config`](ErrorKind::Config) or
    /// [`Authorization`](ErrorKind::Authorization), before anything is staged, where the cluster, the ledger's settings or
    /// missing rights forbid it: their records are held as before, and in explicit mode may be acknowledged anew, once the
    /// transaction is committed without them. No open transaction, or one that has failed: the acknowledgements are dropped, and do not take effect. Any
    /// other refusal or failure makes the transaction abort-only; the message names each partition and its refusal.
    pub async fn send_share_acks_to_transaction(
        &self,
        acks: ShareAcknowledgements,
        member: &ShareGroupMetadata,
    ) -> Result<()> {
        self.stage(acks, member, TransactionEnd::NotStaged).await
    }

    /// As [`Self::send_share_acks_to_transaction`]; `refused` is the end of acknowledgements that the cluster cannot take.
    pub(super) async fn stage(
        &self,
        mut acks: ShareAcknowledgements,
        member: &ShareGroupMetadata,
        refused_as: TransactionEnd,
    ) -> Result<()> {
        let _time = self.shared.metrics.time(Call::SendShareAcks);
        self.check_not_abandoned()?;
        let deadline = self.shared.block_deadline();
        let check = |t: &mut Transaction| t.check_open().map(|()| (t.id().clone(), t.identity(), t.is_v2()));
        self.shared.with_transaction(check)?.map_err(transaction_error)?;
        // The output of these records is in the transaction: without them it must not be committed.
        let mut guard = StagingGuard { producer: self, staged: false, failure: Some("the call was dropped".into()) };
        let turn = self.turn(deadline).await;
        let open = self.shared.with_transaction(check)?;
        if open.is_err() || acks.is_empty() {
            guard.failure = None;
            return open.map(|_| ()).map_err(transaction_error);
        }
        let (transactional_id, _, v2) = open.map_err(transaction_error)?;
        let checked = match &turn {
            Ok(_) => self.backend.check(v2, deadline).await,
            Err(error) => Err(error.clone()),
        };
        let parts = match checked.and_then(|()| self.backend.adopt(&mut acks, member)) {
            Ok(parts) => parts,
            Err(error) => {
                guard.failure = None;
                if matches!(error.kind(), ErrorKind::Unsupported | ErrorKind::Config | ErrorKind::Authorization) {
                    acks.take_origins().into_iter().for_each(|part| part.ended(refused_as));
                    return Err(error);
                }
                return Err(self.fail(error.context("staging acknowledgements")));
            }
        };
        // From here on brokers may have some of it.
        let identity = self.shared.with_transaction(|t| {
            t.check_open()?;
            if self.backend.is_ledger() {
                t.expect_contenders();
            }
            if self.backend.is_native() {
                t.handle_joined();
            }
            Ok(t.identity())
        })?;
        let identity = identity.map_err(transaction_error)?;
        let mut origins = acks.take_origins();
        if !self.backend.is_native() {
            origins.iter_mut().for_each(|part| part.staged_by_ledger());
        }
        self.staged.add(origins);
        let staging = Staging { transactional_id, identity, v2, member: member.clone(), parts };
        guard.staged = true;
        // The caller waits for brokers now: the records taken so far go out meanwhile, and the commit need not wait for
        // them afterwards.
        self.shared.with(|s| s.machine.seal_all());
        self.shared.work.notify_one();
        let started = Instant::now();
        let result = self.backend.stage(&staging, &acks, deadline).instrument(spans::stage(member, acks.len())).await;
        let staged = result.as_ref().is_ok_and(Refusals::is_empty);
        self.shared.metrics.share_acks(acks.len(), started.elapsed(), staged);
        let error = match result {
            Ok(refusals) if refusals.is_empty() => {
                guard.failure = None;
                return Ok(());
            }
            Ok(refusals) => {
                self.staged.refused(&|tp| refusals.contains_key(&tp));
                refused(&refusals)
            }
            Err(error) => {
                self.staged.refused(&|_| true);
                error.context("staging acknowledgements")
            }
        };
        guard.failure = None;
        Err(self.fail(error))
    }

    /// Makes the transaction abort-only, or the producer dead, as the error has it.
    fn fail(&self, error: Error) -> Error {
        let kind = match (error.code(), error.kind()) {
            (Some(ErrorCode::PRODUCER_FENCED), _) => TxnErrorKind::Fenced,
            (_, ErrorKind::TransactionAborted) => TxnErrorKind::Aborted,
            _ => TxnErrorKind::Abortable,
        };
        let core = TxnError { kind, code: error.code(), text: error.to_string() };
        // What is fatal to others may only be the end of this transaction.
        let found = self.shared.with(|s| {
            s.machine.fail_transaction(core.clone());
            s.machine.transaction_mut().and_then(|t| t.check().err())
        });
        self.shared.work.notify_one();
        // Of one cause, this tells more than what the machine heard.
        transaction_error(found.filter(|f| (f.kind, f.code) != (core.kind, core.code)).unwrap_or(core))
    }

    /// Sends all that is left, and commits.
    ///
    /// # Cancel safety
    /// A call that is dropped may or may not have committed; call it again to find out. An abort is possible only as
    /// long as the commit was not sent.
    ///
    /// # Errors
    /// Abortable, where a record or an acknowledgement failed, or where the coordinator had aborted the transaction
    /// for its age; nothing is committed then. [`OutcomeUnknown`](ErrorKind::OutcomeUnknown) where the answer is
    /// missing at the time limit: only `commit_transaction` again can tell. Fatal, where the producer is fenced.
    pub async fn commit_transaction(&self) -> Result<()> {
        self.commit().instrument(spans::end("commit")).await
    }

    async fn commit(&self) -> Result<()> {
        let _time = self.shared.metrics.time(Call::Commit);
        self.check_not_abandoned()?;
        let deadline = self.shared.block_deadline();
        let _turn = self.turn(deadline).await?;
        self.seal(deadline).await?;
        self.shared.with_transaction(Transaction::start_commit)?.map_err(|e| self.refuse_end(e))?;
        self.shared.with(|s| s.machine.seal_all());
        self.shared.idle(deadline).await?;
        let result = self.end(deadline).await;
        match &result {
            Ok(()) => {
                self.abandoned.store(false, Ordering::Release);
                self.finish(TransactionEnd::Committed);
            }
            Err(error) if error.kind() == ErrorKind::TransactionAborted => self.finish(TransactionEnd::Aborted),
            Err(error) if error.is_fatal() => self.finish(TransactionEnd::Unknown),
            Err(_) => {}
        }
        result
    }

    /// Has the backend do what comes before a commit or a prepare.
    pub(super) async fn seal(&self, deadline: Instant) -> Result<()> {
        let commit = self.shared.with_transaction(|t| {
            t.is_open().then(|| Commit {
                transactional_id: t.id().clone(),
                identity: t.identity(),
                two_phase: t.is_two_phase_commit(),
            })
        })?;
        let Some(commit) = commit else { return Ok(()) };
        // Those that are staged at brokers have no lock to renew.
        if !self.backend.is_native() {
            self.staged.renew();
        }
        let mut guard = StagingGuard { producer: self, staged: true, failure: Some("the commit was dropped".into()) };
        let sealed = self.backend.seal(&commit, deadline).await;
        guard.failure = None;
        if self.backend.knows_verdict() {
            self.shared.with_transaction(Transaction::expect_verdict)?;
        }
        let Err(SealError { error, contended }) = sealed else { return Ok(()) };
        for (group, done) in contended.iter().flatten() {
            self.staged.contended(group, done);
        }
        Err(self.fail(error))
    }

    /// Gives up the open transaction: its records are never seen by read_committed readers, and the acknowledgements
    /// put into it do not take effect.
    ///
    /// # Cancel safety
    /// May be called again.
    ///
    /// # Errors
    /// A commit of unknown outcome must be repeated, not aborted. Fatal, where the producer is fenced. Timeouts are
    /// retriable.
    pub async fn abort_transaction(&self) -> Result<()> {
        self.abort().instrument(spans::end("abort")).await
    }

    async fn abort(&self) -> Result<()> {
        let _time = self.shared.metrics.time(Call::Abort);
        let deadline = self.shared.block_deadline();
        let _turn = self.turn(deadline).await?;
        self.shared.with_transaction(Transaction::start_abort)?.map_err(|e| self.refuse_end(e))?;
        self.shared.with(|s| s.machine.abort_unsent(BatchErrorKind::Aborted, "the transaction was aborted"));
        // What is in flight must be over before the end, or it could come after it.
        self.shared.idle(deadline).await?;
        let result = self.end(deadline).await;
        match &result {
            Ok(()) => {
                self.abandoned.store(false, Ordering::Release);
                self.finish(TransactionEnd::Aborted);
            }
            // Whoever fenced this producer has had its transaction aborted.
            Err(error) if error.is_fatal() => self.finish(TransactionEnd::Aborted),
            Err(_) => {}
        }
        result
    }

    /// A producer that is dead learns nothing more of its transaction.
    fn refuse_end(&self, error: TxnError) -> Error {
        if matches!(error.kind, TxnErrorKind::Fatal | TxnErrorKind::Fenced) {
            self.finish(TransactionEnd::Unknown);
        }
        transaction_error(error)
    }

    /// Tells the coordinator, again until it has answered.
    async fn end(&self, deadline: Instant) -> Result<()> {
        let mut attempt = 0;
        loop {
            let (known, end, v2) = self.shared.with_transaction(|t| (t.may_be_committed(), t.end(), t.is_v2()))?;
            let why = match end.map_err(transaction_error)? {
                End::Nothing => return self.settled(),
                End::NewEpoch(request) => {
                    self.init_with(request, Transaction::handle_init, deadline).await?;
                    if !self.shared.with_transaction(|t| t.is_judging())? {
                        return Ok(());
                    }
                    continue;
                }
                End::Verdict => match self.learn_verdict(deadline).await? {
                    Verdict::Done => return self.settled(),
                    _ => continue,
                },
                End::EndTxn(request) => match self.end_once(&request, v2, deadline).await {
                    Ok(Verdict::Done) if self.shared.with_transaction(|t| t.needs_new_epoch())? => continue,
                    Ok(Verdict::Done) => return self.settled(),
                    Ok(Verdict::Undecided) => continue,
                    Ok(Verdict::Failed(error)) => return Err(transaction_error(error)),
                    Ok(Verdict::Retry(code)) => code.to_string(),
                    Err(error) => {
                        if !error.maybe_done() {
                            self.shared.with_transaction(|t| t.handle_end_unsent(known))?;
                        }
                        if error.kind() == ErrorKind::Unsupported {
                            return Err(error);
                        }
                        error.to_string()
                    }
                },
            };
            attempt += 1;
            if !self.shared.cluster.pause_before_retry(attempt, deadline).await {
                let error = self.shared.with_transaction(|t| t.handle_end_given_up(&why))?;
                return Err(transaction_error(error));
            }
        }
    }

    /// The transaction is over, and the machine goes on with the identity that it has now.
    fn settled(&self) -> Result<()> {
        self.shared.with(|s| s.machine.handle_transaction_settled());
        Ok(())
    }

    /// The coordinator cannot tell what became of the commit: another member may have ended the transaction, or an earlier
    /// try has. What the backend knows decides.
    async fn learn_verdict(&self, deadline: Instant) -> Result<Verdict> {
        let why = match self.backend.verdict(deadline).await {
            Ok(Some(committed)) => {
                return match self.shared.with_transaction(|t| t.handle_verdict(committed))? {
                    Verdict::Failed(error) => {
                        self.finish(TransactionEnd::Aborted);
                        Err(transaction_error(error))
                    }
                    verdict => Ok(verdict),
                };
            }
            Ok(None) => "the marker of the transaction is not in the ledger any more".to_owned(),
            Err(error) if error.is_fatal() => error.to_string(),
            Err(error) => {
                let unknown = self.shared.with_transaction(|t| t.handle_end_given_up(&error.to_string()))?;
                return Err(transaction_error(unknown));
            }
        };
        Err(transaction_error(self.shared.with_transaction(|t| t.handle_no_verdict(&why))?))
    }

    async fn end_once(&self, request: &EndTxnRequest, v2: bool, deadline: Instant) -> Result<Verdict> {
        let cap = if v2 { EndTxnRequest::MAX_VERSION } else { LAST_V1_END_TXN };
        let (kind, key) = (CoordinatorKind::Transaction, request.transactional_id.as_str());
        let api = (EndTxnRequest::KEY, cap);
        let cluster = &self.shared.cluster;
        // Told of every answer, also of those after which the call is made once more.
        let code = |r: &EndTxnResponse| {
            let moved = self.shared.with_transaction(|t| t.handle_end_moved(r.error_code));
            moved.map_or(ErrorCode::NONE, |()| r.error_code)
        };
        let response = cluster.call_coordinator_as(kind, key, request, api, deadline, code).await?;
        self.shared.with_transaction(|t| t.handle_end(Instant::now(), &response))
    }

    /// Aborts an open transaction, and ends. Takes at most `timeout` (and `max.block.ms`). A prepared transaction stays as
    /// it is, for whoever [resumes](super::TransactionSession::resume) it.
    ///
    /// # Cancel safety
    /// The producer ends all the same; an open transaction is left to the coordinator's timeout.
    ///
    /// # Errors
    /// The error of the abort; a fenced producer's.
    pub async fn close(&self, timeout: Duration) -> Result<()> {
        let abortable = |t: &mut Transaction| t.is_unfinished() && !t.is_prepared() && !t.may_be_committed();
        let result = if self.shared.with_transaction(abortable)? {
            let limit = Instant::now() + timeout;
            match tokio::time::timeout_at(limit.into(), self.abort_transaction()).await {
                Ok(result) => result,
                Err(_) => Err(Error::new(ErrorKind::Timeout, "the open transaction was not aborted in time")),
            }
        } else {
            self.shared.with_transaction(|t| t.check())?.map_err(transaction_error)
        };
        self.stop();
        result
    }
}

impl TransactionalProducer {
    fn stop(&self) {
        self.shared.with(|s| {
            s.machine.close();
            s.machine.abort_unsent(BatchErrorKind::Closed, "the producer was closed");
            // A commit that waits for its records in another task must not go on without them.
            s.machine.fail_transaction(TxnError::new(TxnErrorKind::Abortable, "the producer was closed"));
        });
        self.stop.now.store(true, Ordering::Release);
        self.shared.work.notify_one();
        // The coordinator will end the transaction, but how and when is not learned here.
        self.finish(TransactionEnd::Unknown);
    }
}

impl Drop for TransactionalProducer {
    fn drop(&mut self) {
        self.stop();
    }
}

fn refused(refusals: &Refusals) -> Error {
    let list: Vec<String> = refusals.values().map(ToString::to_string).collect();
    let first = refusals.values().find(|e| e.code() == Some(ErrorCode::PRODUCER_FENCED));
    let code = first.or_else(|| refusals.values().next()).and_then(Error::code);
    Error::new(ErrorKind::Broker, format!("{}; abort the transaction", list.join("; "))).with_code(code)
}

/// Makes the transaction abort-only when a staging call ends early.
struct StagingGuard<'a> {
    producer: &'a TransactionalProducer,
    /// Brokers, or the ledger, may have some of it.
    staged: bool,
    failure: Option<String>,
}

impl Drop for StagingGuard<'_> {
    fn drop(&mut self) {
        if let Some(why) = self.failure.take() {
            let text = format!("staging acknowledgements: {why}; abort the transaction");
            let error = TxnError::new(TxnErrorKind::Abortable, text);
            if self.staged {
                self.producer.staged.refused(&|_| true);
            }
            self.producer.shared.with(|s| {
                // A call that waited for its turn has no part in what was prepared or ended meanwhile.
                let open = s.machine.transaction_mut().is_some_and(|t| t.check_open().is_ok());
                if self.staged || open {
                    s.machine.fail_transaction(error);
                }
            });
            self.producer.shared.work.notify_one();
        }
    }
}
