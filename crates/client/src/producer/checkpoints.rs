//! Transactions that follow the checkpoints of a stream processor (the end-to-end case of KIP-1289, on sessions of KIP-1310).

use super::TransactionSession;
use super::builder::TransactionalProducerBuilder;
use crate::{Error, ErrorKind, Result};
use kafka_share_core::transaction::{CheckpointError, CheckpointState, Checkpoints, MAX_POOL};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Semaphore, SemaphorePermit};

/// Ties transactions to the checkpoints of a processor that keeps its own state: what was written and acknowledged before
/// a checkpoint takes effect when that checkpoint is complete, and not before.
///
/// 1. [`transaction`](Self::transaction) is where records and share acknowledgements go.
/// 2. [`prepare_commit`](Self::prepare_commit), when the processor takes a checkpoint: all of it is brought to the
///    brokers, and the next transaction takes what comes after.
/// 3. [`snapshot_state`](Self::snapshot_state) goes into the checkpoint.
/// 4. [`notify_checkpoint_complete`](Self::notify_checkpoint_complete), when the checkpoint is safe: its transaction is
///    committed, and those of earlier checkpoints that are not.
/// 5. After a crash, [`recover`](Self::recover) with the state of the last complete checkpoint: what is in it is committed,
///    all else that the dead process left is aborted.
///
/// Acknowledgements that are aborted, or whose transaction is given up by the coordinator for its age, make their records
/// available again: a source that is a share group loses nothing and doubles nothing, whatever happens.
///
/// ```no_run
/// # async fn example(settings: kafka_share::TransactionalProducerBuilder) -> kafka_share::Result<()> {
/// use kafka_share::{CheckpointCoordinator, ProducerRecord};
///
/// let coordinator = CheckpointCoordinator::open(settings, 3).await?;
/// let transaction = coordinator.transaction().await?;
/// transaction.producer().send(ProducerRecord::new("out").value("1")).await?;
/// coordinator.prepare_commit(1).await?;
/// let state = coordinator.snapshot_state().to_string();
/// // .. the checkpoint, with `state` in it, is made safe ..
/// coordinator.notify_checkpoint_complete(1).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct CheckpointCoordinator {
    sessions: Vec<Arc<TransactionSession>>,
    books: Mutex<Checkpoints>,
    /// One prepare, commit or abort at a time.
    turn: Semaphore,
}

/// What [`CheckpointCoordinator::recover`] found.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Recovered {
    /// Checkpoints whose transactions are committed, now or before the crash.
    pub committed: Vec<u64>,
    /// Checkpoints whose transactions were aborted, and why: for their age, say. Their acknowledgements have no effect: the
    /// records come again.
    pub lost: Vec<(u64, Error)>,
    /// Checkpoints whose end cannot be told any more, as their transactional id has a later epoch: an earlier call with this
    /// state, which did not get to its end, or the dead process may have committed them; or the coordinator aborted them for
    /// their age (brokers answer that in the same way).
    pub unknown: Vec<(u64, Error)>,
}

impl CheckpointCoordinator {
    /// A coordinator without a past. Transactional ids are that of `settings` followed by `-0`, `-1` and so on, `pool` of
    /// them (2 to 1024): one takes records, and each of the others can hold a prepared checkpoint. What other processes
    /// left open under these ids is aborted.
    ///
    /// # Cancel safety
    /// May be called again.
    ///
    /// # Errors
    /// As [`TransactionSession::open`]; a pool out of range.
    pub async fn open(settings: TransactionalProducerBuilder, pool: usize) -> Result<Self> {
        if !(2..=MAX_POOL).contains(&pool) {
            let text = format!("a pool of {pool} transactional ids: 2 to {MAX_POOL} are possible");
            return Err(Error::new(ErrorKind::InvalidInput, text));
        }
        let mut sessions = Vec::with_capacity(pool);
        for number in 0..pool {
            sessions.push(Arc::new(TransactionSession::open(numbered(&settings, number)).await?));
        }
        Ok(CheckpointCoordinator { sessions, books: Mutex::new(Checkpoints::new(pool)), turn: Semaphore::new(1) })
    }

    /// A coordinator in place of a dead one, with the state of its last complete checkpoint: commits what is in it, then
    /// aborts what else was left open. Where the transaction was committed before the crash, that is found out.
    ///
    /// # Cancel safety
    /// May be called again with the same state; what an earlier call committed may be among the
    /// [unknown](Recovered::unknown) then.
    ///
    /// # Errors
    /// As [`open`](Self::open), and commits whose outcome is not known within `max.block.ms`; call again then.
    pub async fn recover(
        settings: TransactionalProducerBuilder,
        pool: usize,
        state: &CheckpointState,
    ) -> Result<(Self, Recovered)> {
        let mut recovered = Recovered::default();
        for (checkpoint, prepared) in &state.prepared {
            let own = settings.clone().under(prepared.transactional_id.clone());
            match TransactionSession::resume(own, prepared).await?.commit().await {
                Ok(()) => recovered.committed.push(*checkpoint),
                Err(error) if error.kind() == ErrorKind::Fenced => recovered.unknown.push((*checkpoint, error)),
                Err(error) if is_final(&error) => recovered.lost.push((*checkpoint, error)),
                Err(error) => return Err(error.context(format_args!("committing checkpoint {checkpoint}"))),
            }
        }
        // The dead coordinator may have had more ids than this one.
        for number in pool..state.pool {
            TransactionSession::open(numbered(&settings, number)).await?;
        }
        Ok((CheckpointCoordinator::open(settings, pool).await?, recovered))
    }

    fn books(&self) -> MutexGuard<'_, Checkpoints> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn turn(&self) -> Result<SemaphorePermit<'_>> {
        let closed = |_| Error::new(ErrorKind::Closed, "the checkpoint coordinator is closed");
        self.turn.acquire().await.map_err(closed)
    }

    /// The transaction that takes records and acknowledgements now, begun where it is not yet. Ask again after each
    /// [`prepare_commit`](Self::prepare_commit).
    ///
    /// # Cancel safety
    /// May be called again.
    ///
    /// # Errors
    /// As [`TransactionSession::begin`].
    pub async fn transaction(&self) -> Result<Arc<TransactionSession>> {
        let _turn = self.turn().await?;
        self.current().await
    }

    /// With the turn.
    async fn current(&self) -> Result<Arc<TransactionSession>> {
        let session = Arc::clone(&self.sessions[self.books().current()]);
        // An abort that was dropped or not answered in time, and maybe of a checkpoint that is forgotten by now.
        if session.producer().shared().with_transaction(|t| t.is_aborting())? {
            session.abort().await?;
        }
        if !session.producer().is_unfinished()? {
            session.begin().await?;
        }
        Ok(session)
    }

    /// First phase, for a checkpoint with a number above those before: see
    /// [`prepare_transaction`](super::TransactionalProducer::prepare_transaction). An empty transaction is prepared too.
    ///
    /// # Cancel safety
    /// May be called again with the same number; until then the transaction may take nothing more.
    ///
    /// # Errors
    /// Numbers that do not ascend; a pool whose other ids all hold prepared checkpoints. Abortable, where a record or an
    /// acknowledgement failed: [`abort_current`](Self::abort_current), and process its input again.
    pub async fn prepare_commit(&self, checkpoint: u64) -> Result<()> {
        let _turn = self.turn().await?;
        self.books().check(checkpoint).map_err(refused)?;
        let session = self.current().await?;
        let prepared = session.prepare().await?;
        self.books().handle_prepared(checkpoint, prepared).map_err(refused)
    }

    /// What the checkpoint must remember. Take it after [`prepare_commit`](Self::prepare_commit).
    #[must_use]
    pub fn snapshot_state(&self) -> CheckpointState {
        self.books().state()
    }

    /// Second phase: the checkpoint is complete. Commits its transaction, and those of earlier checkpoints that have not
    /// ended. A checkpoint that is not known, or ended before, is no error.
    ///
    /// # Cancel safety
    /// May be called again; what was committed stays so.
    ///
    /// # Errors
    /// [`OutcomeUnknown`](ErrorKind::OutcomeUnknown) and timeouts: call again. Where a transaction was aborted before (for
    /// its age, say), or another coordinator took over, the checkpoint is forgotten and the error returned.
    pub async fn notify_checkpoint_complete(&self, checkpoint: u64) -> Result<()> {
        let _turn = self.turn().await?;
        let due = self.books().due(checkpoint);
        let mut first = Ok(());
        for (checkpoint, at) in due {
            let context = |error: Error| error.context(format_args!("committing checkpoint {checkpoint}"));
            match self.sessions[at].commit().await {
                Ok(()) => self.books().handle_ended(checkpoint),
                Err(error) if is_final(&error) => {
                    self.end_for_good(checkpoint, at).await;
                    first = first.and(Err(context(error)));
                }
                Err(error) => return Err(context(error)),
            }
        }
        first
    }

    /// A transaction that cannot be committed any more: frees its id, where that is possible.
    async fn end_for_good(&self, checkpoint: u64, at: usize) {
        if let Err(error) = self.sessions[at].abort().await {
            tracing::warn!(checkpoint, %error, "the transaction of a checkpoint could not be aborted");
        }
        self.books().handle_ended(checkpoint);
    }

    /// Aborts the transaction of a checkpoint that will never be complete: its output is not seen, and the records that it
    /// acknowledged are available again. A checkpoint that is not known, or ended before, is no error.
    ///
    /// # Cancel safety
    /// May be called again.
    ///
    /// # Errors
    /// As [`TransactionSession::abort`].
    pub async fn abort_checkpoint(&self, checkpoint: u64) -> Result<()> {
        let _turn = self.turn().await?;
        let Some(at) = self.books().find(checkpoint) else { return Ok(()) };
        self.sessions[at].abort().await?;
        self.books().handle_ended(checkpoint);
        Ok(())
    }

    /// Aborts the transaction that takes records now; [`transaction`](Self::transaction) begins another. No error where
    /// nothing is open.
    ///
    /// # Cancel safety
    /// May be called again.
    ///
    /// # Errors
    /// As [`TransactionSession::abort`].
    pub async fn abort_current(&self) -> Result<()> {
        let _turn = self.turn().await?;
        let session = Arc::clone(&self.sessions[self.books().current()]);
        if session.producer().is_unfinished()? {
            session.abort().await?;
        }
        Ok(())
    }

    /// Aborts what is open and not prepared, and ends, within about `timeout`. Prepared transactions stay, for
    /// [`recover`](Self::recover).
    ///
    /// # Cancel safety
    /// As [`TransactionSession::close`].
    ///
    /// # Errors
    /// As [`TransactionSession::close`]; all are closed.
    pub async fn close(&self, timeout: Duration) -> Result<()> {
        self.turn.close();
        let mut first = Ok(());
        for session in &self.sessions {
            first = first.and(session.close(timeout).await);
        }
        first
    }
}

fn numbered(settings: &TransactionalProducerBuilder, number: usize) -> TransactionalProducerBuilder {
    let prefix = settings.transactional_id().unwrap_or_default();
    settings.clone().under(format!("{prefix}-{number}"))
}

fn refused(error: CheckpointError) -> Error {
    Error::new(ErrorKind::InvalidState, error.to_string())
}

/// Whether the transaction is over, and was not committed by this call. Nothing is given up for want of a right, say.
fn is_final(error: &Error) -> bool {
    error.is_abortable() || matches!(error.kind(), ErrorKind::TransactionAborted | ErrorKind::Fenced)
}
