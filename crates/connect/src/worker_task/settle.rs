//! Acknowledging a batch, and what became of acknowledgements.

use super::{COMMIT, WorkerShareSinkTask};
use crate::ConnectError;
use crate::batch::Batch;
use crate::metrics::Counted;
use crate::orders::{CLOSE, Orders};
use crate::rows::Fate;
use kafka_share::{AckOutcome, AckType, ErrorKind, Outcome, ShareRecords};
use std::sync::atomic::Ordering;
use std::time::Instant;

/// Records by what was said of them.
#[derive(Debug, Default)]
struct Tally {
    accepted: u64,
    rejected: u64,
    released: u64,
    /// Their locks were lost before it could be said.
    lost: u64,
}

impl WorkerShareSinkTask {
    /// Acknowledges by fate, what a transaction has not done already. Undecided records are released. Counted is what the
    /// brokers have taken, or, in implicit mode, what is on its way.
    pub(super) async fn settle(
        &mut self,
        polled: &ShareRecords,
        batch: &mut Batch<'_>,
        orders: &Orders,
    ) -> Result<(), ConnectError> {
        let said = match batch.fates.all() == Some(Fate::Accept) {
            true => self.accept_all(polled, batch),
            false => self.acknowledge_each(batch),
        };
        if self.config.implicit && batch.failure.is_none() {
            self.count(&said, &Tally::default());
            return Ok(());
        }
        let limit = if batch.cut { CLOSE } else { COMMIT };
        let began = Instant::now();
        let result = tokio::select! {
            biased;
            result = self.consumer.commit_sync(limit) => result.map(|all| all.values().all(|o| *o == Outcome::Acknowledged)),
            // They are sent all the same, again when the consumer is closed.
            () = orders.grace_over(CLOSE) => Ok(false),
        };
        let taken = *result.as_ref().unwrap_or(&false);
        self.counters.meters.committed(began.elapsed(), taken);
        self.count(&said, &self.failures());
        match result {
            Ok(_) => Ok(()),
            Err(error) if error.is_retriable() => {
                tracing::warn!(connector = %self.config.name, task = self.number, %error, "acknowledgements are not confirmed yet");
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }

    /// All at once, as it is most often.
    fn accept_all(&self, polled: &ShareRecords, batch: &Batch<'_>) -> Tally {
        match self.consumer.acknowledge_all(polled, AckType::Accept) {
            Ok(accepted) => {
                let (accepted, all) = (accepted as u64, batch.fates.len() as u64);
                Tally { accepted, lost: all.saturating_sub(accepted), ..Tally::default() }
            }
            Err(_) => self.acknowledge_each(batch),
        }
    }

    fn acknowledge_each(&self, batch: &Batch<'_>) -> Tally {
        let acknowledger = self.consumer.acknowledger();
        let mut said = Tally::default();
        for (i, fate, record) in batch.each() {
            let (ack, count) = match fate {
                Fate::Done => continue,
                Fate::Accept => (AckType::Accept, &mut said.accepted),
                Fate::Reject => (AckType::Reject, &mut said.rejected),
                Fate::Release | Fate::Undecided => (AckType::Release, &mut said.released),
            };
            match acknowledger.acknowledge(record.id(), ack) {
                Ok(()) => *count += 1,
                Err(error) if error.kind() == ErrorKind::Fenced => said.lost += 1,
                // Aborted: the record comes again.
                Err(error) => {
                    said.released += 1;
                    tracing::debug!(record = batch.place(i), %error, "not acknowledged");
                }
            }
        }
        said
    }

    fn count(&self, said: &Tally, failed: &Tally) {
        let (counters, meters) = (&self.counters, &self.counters.meters);
        // What failed may have been counted before: additions wrap around as subtractions do.
        counters.accepted.fetch_add(said.accepted.wrapping_sub(failed.accepted), Ordering::Relaxed);
        counters.rejected.fetch_add(said.rejected.wrapping_sub(failed.rejected), Ordering::Relaxed);
        let again = said.released + said.lost + failed.accepted + failed.rejected;
        counters.released.fetch_add(again, Ordering::Relaxed);
        meters.count(Counted::Released, again);
        meters.count(Counted::Rejected, said.rejected.saturating_sub(failed.rejected));
        meters.count(Counted::LockLost, said.lost + failed.lost);
        meters.active.store(0, Ordering::Relaxed);
    }

    /// Takes in what became of acknowledgements that nothing waited for.
    pub(super) fn take_outcomes(&self) {
        let failed = self.failures();
        if failed.lost > 0 {
            self.count(&Tally::default(), &failed);
        }
    }

    /// Acknowledgements that brokers did not take, so that the records come again.
    fn failures(&self) -> Tally {
        let mut failed = Tally::default();
        for AckOutcome { tp, first_offset, last_offset, ack_type, outcome } in self.consumer.poll_outcomes() {
            let records = u64::try_from(last_offset - first_offset + 1).unwrap_or(0);
            let count = match ack_type {
                None | Some(AckType::Renew) => continue,
                Some(_) if outcome == Outcome::Acknowledged => continue,
                Some(AckType::Accept) => &mut failed.accepted,
                Some(AckType::Reject) => &mut failed.rejected,
                Some(_) => &mut failed.released,
            };
            tracing::warn!(
                connector = %self.config.name, task = self.number, partition = ?tp, first_offset, last_offset, ?outcome,
                "acknowledgements were not taken; the records come again"
            );
            // Whether it was taken is not known where the answer was lost: it stays counted as it was meant.
            if outcome != Outcome::Unknown {
                *count += records;
                failed.lost += records;
            }
        }
        failed
    }
}
