//! Renews the locks of a batch while the sink works on it (R151).

use crate::metrics::Counted;
use crate::status::TaskCounters;
use kafka_share::{KafkaShareConsumer, RecordId};
use std::collections::HashSet;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// When the locks of a batch are renewed.
///
/// Brokers that cannot renew locks (Kafka 4.1) are not asked to: the work must end within the lock there.
#[derive(Debug)]
pub struct Renewal {
    ids: Vec<RecordId>,
    lock: Option<Duration>,
    due: Instant,
    began: Instant,
    late: Option<Arc<TaskCounters>>,
}

impl Renewal {
    /// For the records of a poll that has just returned, with the length of their locks.
    #[must_use]
    pub fn new(ids: Vec<RecordId>, lock: Option<Duration>) -> Self {
        let now = Instant::now();
        let mut renewal = Renewal { ids, lock, due: now, began: now, late: None };
        renewal.rearm();
        renewal
    }

    /// The same, and `counters` say so while the work takes longer than the lock lasts.
    pub(crate) fn telling(mut self, counters: Arc<TaskCounters>) -> Self {
        self.late = Some(counters);
        self
    }

    /// Since the records were handed out.
    pub(crate) fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    /// Length of the locks, where it is known.
    pub(crate) fn lock(&self) -> Option<Duration> {
        self.lock
    }

    pub(crate) fn push(&mut self, id: RecordId) {
        self.ids.push(id);
    }

    fn count(&self, renewed: usize, taken: bool) {
        if let Some(counters) = self.late.as_ref().filter(|_| taken) {
            counters.meters.count(Counted::Renewed, renewed as u64);
        }
    }

    fn tell(&self, lock: Duration) {
        if let Some(counters) = self.late.as_ref().filter(|_| self.elapsed() > lock) {
            counters.slow.store(true, Ordering::Relaxed);
        }
    }

    /// These are renewed no more: they are acknowledged, or are about to be.
    pub fn forget(&mut self, ids: impl IntoIterator<Item = RecordId>) {
        let gone: HashSet<RecordId> = ids.into_iter().collect();
        self.ids.retain(|id| !gone.contains(id));
    }

    fn rearm(&mut self) {
        // A third: the records may have waited in the consumer before, and one renewal may be late.
        self.due = Instant::now() + self.lock.unwrap_or_default() / 3;
    }

    /// Does `work`, and renews meanwhile. No renewal is under way any more when it returns, so that the records take
    /// their final acknowledgement.
    ///
    /// # Cancel safety
    /// The work is dropped with it; a renewal may have gone out.
    pub async fn during<T>(&mut self, consumer: &KafkaShareConsumer, work: impl Future<Output = T>) -> T {
        let Some(lock) = self.lock else { return work.await };
        tokio::pin!(work);
        loop {
            tokio::select! {
                biased;
                result = &mut work => return result,
                () = tokio::time::sleep_until(self.due.into()) => {}
            }
            self.tell(lock);
            // What is acknowledged already, or lost, needs no lock.
            let renew = |id: &&RecordId| consumer.extend_lock(**id).is_ok();
            let renewed = self.ids.iter().filter(renew).count();
            tracing::debug!(renewed, "locks renewed");
            let sent = consumer.commit_sync(lock);
            tokio::pin!(sent);
            let done = tokio::select! {
                result = &mut work => Some(result),
                outcome = &mut sent => {
                    self.count(renewed, outcome.is_ok());
                    warn_of(outcome.err());
                    None
                }
            };
            self.rearm();
            if let Some(result) = done {
                let outcome = sent.await;
                self.count(renewed, outcome.is_ok());
                warn_of(outcome.err());
                return result;
            }
        }
    }
}

fn warn_of(error: Option<kafka_share::Error>) {
    if let Some(error) = error {
        tracing::warn!(%error, "locks were not renewed; records may come again while the sink works on them");
    }
}
