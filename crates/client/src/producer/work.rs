//! Work in a transaction: begun before it, committed or aborted after it, and done again where that helps.

use super::TransactionalProducer;
use crate::{Error, ErrorKind, Result};
use std::sync::atomic::Ordering;

impl TransactionalProducer {
    /// Runs `work` in a transaction: commits where it succeeds, aborts where it fails. After an
    /// [abortable](Error::is_abortable) error, of `work` or of the commit, both are done again in a new transaction, three
    /// times in all unless [`transaction_attempts`](super::TransactionalProducerBuilder::transaction_attempts) says otherwise.
    /// Before that it aborts a transaction that an earlier, dropped call left open.
    ///
    /// Work that can be done once only, such as acknowledgements that it moves, goes to
    /// [`transaction_once`](Self::transaction_once).
    ///
    /// # Cancel safety
    /// Dropping the call never commits, unless the commit was already on its way: then `commit_transaction` tells what
    /// became of it. Otherwise the transaction is aborted by the next call of this method, which settles either, or by
    /// `abort_transaction`.
    ///
    /// # Errors
    /// The last one of `work`, or of the commit; the transaction was aborted then, unless the error is
    /// [`OutcomeUnknown`](ErrorKind::OutcomeUnknown) or fatal.
    // Bounds on `AsyncFnMut` would make a future that cannot be spawned: its `Send` is not general enough for the compiler.
    pub async fn transaction<'a, T, F, W>(&'a self, mut work: F) -> Result<T>
    where
        F: FnMut(&'a Self) -> W,
        W: Future<Output = Result<T>>,
    {
        let mut attempt = 1;
        loop {
            let result = self.transaction_once(&mut work).await;
            let again = result.as_ref().is_err_and(Error::is_abortable) && attempt < self.attempts;
            if !again || !self.shared().cluster.pause_before_retry(attempt, self.shared().block_deadline()).await {
                return result;
            }
            attempt += 1;
        }
    }

    /// As [`transaction`](Self::transaction), without doing it again.
    ///
    /// # Cancel safety
    /// As there.
    ///
    /// # Errors
    /// As there.
    pub async fn transaction_once<'a, T, F, W>(&'a self, work: F) -> Result<T>
    where
        F: FnOnce(&'a Self) -> W,
        W: Future<Output = Result<T>>,
    {
        self.settle_abandoned().await?;
        self.begin_transaction()?;
        let mut guard = AbandonGuard { producer: self, armed: true };
        let result = match work(self).await {
            Ok(value) => self.commit_transaction().await.map(|()| value),
            Err(error) => Err(error),
        };
        if let Err(error) = &result
            && error.kind() != ErrorKind::OutcomeUnknown
            && self.shared().with_transaction(|t| t.is_unfinished())?
        {
            tracing::debug!(%error, "aborting the transaction");
            self.abort_transaction().await?;
        }
        guard.armed = false;
        result
    }
}

impl TransactionalProducer {
    /// Ends what a dropped call left: its commit is completed where it was on its way, else it is aborted.
    async fn settle_abandoned(&self) -> Result<()> {
        if !self.abandoned.load(Ordering::Acquire) {
            return Ok(());
        }
        if self.shared().with_transaction(|t| t.may_be_committed())? {
            match self.commit_transaction().await {
                Err(error) if error.is_abortable() => {}
                result => return result,
            }
        }
        if self.shared().with_transaction(|t| t.is_unfinished())? {
            self.abort_transaction().await?;
        }
        self.abandoned.store(false, Ordering::Release);
        Ok(())
    }
}

/// Marks the transaction when the closure's future is dropped.
struct AbandonGuard<'a> {
    producer: &'a TransactionalProducer,
    armed: bool,
}

impl Drop for AbandonGuard<'_> {
    fn drop(&mut self) {
        if self.armed {
            self.producer.abandoned.store(true, Ordering::Release);
        }
    }
}
