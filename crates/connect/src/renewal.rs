//! Renews the locks of a batch while the sink works on it (R151).

use crate::metrics::Counted;
use crate::status::TaskCounters;
use kafka_share::consumer::CommitOutcomes;
use kafka_share::{KafkaShareConsumer, RecordId, ShareRecords};
use std::collections::HashSet;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tokio::time::error::Elapsed;

/// When the locks of a batch are renewed.
///
/// Brokers that cannot renew locks (Kafka 4.1) are not asked to: the work must end within the lock there.
#[derive(Debug)]
pub struct Renewal {
    what: What,
    lock: Option<Duration>,
    due: Instant,
    began: Instant,
    late: Option<Arc<TaskCounters>>,
}

/// Whose locks are renewed.
#[derive(Debug)]
enum What {
    Ids(Vec<RecordId>),
    /// What is acknowledged is passed over.
    Poll(Arc<ShareRecords>),
}

impl Renewal {
    /// For the records of a poll that has just returned, with the length of their locks.
    #[must_use]
    pub fn new(ids: Vec<RecordId>, lock: Option<Duration>) -> Self {
        Self::new_of(What::Ids(ids), lock)
    }

    /// For all records of a poll that has just returned, as long as they are not acknowledged; with the length of their locks.
    #[must_use]
    pub fn of(records: Arc<ShareRecords>, lock: Option<Duration>) -> Self {
        Self::new_of(What::Poll(records), lock)
    }

    fn new_of(what: What, lock: Option<Duration>) -> Self {
        let now = Instant::now();
        Renewal { what, lock, due: now + pause(lock), began: now, late: None }
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

    fn tell(&self, lock: Duration) {
        if let Some(counters) = self.late.as_ref().filter(|_| self.elapsed() > lock) {
            counters.slow.store(true, Ordering::Relaxed);
        }
    }

    /// These are renewed no more: they are acknowledged, or are about to be.
    pub fn forget(&mut self, ids: impl IntoIterator<Item = RecordId>) {
        let gone: HashSet<RecordId> = ids.into_iter().collect();
        match &mut self.what {
            What::Ids(ids) => ids.retain(|id| !gone.contains(id)),
            What::Poll(records) => {
                let left = records.iter().map(|record| record.id()).filter(|id| !gone.contains(id));
                self.what = What::Ids(left.collect());
            }
        }
    }

    /// What is acknowledged already, or lost, needs no lock.
    fn extend(&self, consumer: &KafkaShareConsumer) -> usize {
        match &self.what {
            What::Ids(ids) => ids.iter().filter(|id| consumer.extend_lock(**id).is_ok()).count(),
            What::Poll(records) => consumer.extend_locks(records).unwrap_or(0),
        }
    }

    /// Does `work`, and renews meanwhile. A broker that does not answer holds up the renewals with no other. When it returns,
    /// no renewal is under way any more that a broker has answered in time; where one is, a final acknowledgement of the record
    /// follows it.
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
            let asked = Instant::now();
            let records = self.extend(consumer);
            tracing::debug!(records, "renewing locks");
            self.due = asked + pause(self.lock);
            // Until the next are due: what is not answered by then is still on its way, and others are not to wait for it.
            let sent = tokio::time::timeout_at(self.due.into(), consumer.commit_sync(lock));
            tokio::pin!(sent);
            tokio::select! {
                biased;
                result = &mut work => {
                    let outcome = sent.await;
                    self.tell_sent((consumer, asked, lock), outcome);
                    return result;
                }
                outcome = &mut sent => self.tell_sent((consumer, asked, lock), outcome),
            }
        }
    }

    /// What became of the renewals that were asked for at a time.
    fn tell_sent(
        &self,
        (consumer, asked, lock): (&KafkaShareConsumer, Instant, Duration),
        outcome: Result<kafka_share::Result<CommitOutcomes>, Elapsed>,
    ) {
        // The locks of before end within two thirds of the lock time from then, and those that were renewed after all of it.
        let renewed = |id: &RecordId| consumer.lock_deadline(*id).is_some_and(|until| until > asked + lock * 5 / 6);
        let count = match &self.what {
            What::Ids(ids) => ids.iter().filter(|id| renewed(id)).count(),
            What::Poll(records) => records.iter().filter(|record| renewed(&record.id())).count(),
        };
        if let Some(counters) = &self.late {
            counters.meters.count(Counted::Renewed, count as u64);
        }
        let error = match outcome {
            Ok(Ok(_)) => return,
            Ok(Err(error)) => error.to_string(),
            Err(_) => "a broker has not answered within a third of the lock".to_owned(),
        };
        tracing::warn!(error, "locks were not renewed; records may come again while the sink works on them");
    }
}

/// A third: the records may have waited in the consumer before, and one renewal may be late.
fn pause(lock: Option<Duration>) -> Duration {
    lock.unwrap_or_default() / 3
}
