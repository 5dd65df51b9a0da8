//! When a failed task is started again by itself.

use std::time::Duration;

/// The restart policy of a worker, which Connect does not have: there, as here by default, a failed task stays failed.
///
/// Each failure of a task costs the records that it held a delivery, and at the group's limit of these
/// (`share.max.delivery.count`, 5 by default) the broker archives a record, good or bad. Hence a task is not started again by
/// itself, however often `max` allows, where the next delivery of a record that it released would be the last: it stays
/// FAILED, and its trace says so, until [`Worker::restart`](crate::Worker::restart). Nor is a task started again by itself
/// whose transactional id another process has taken over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RestartPolicy {
    /// `task.restart.max`: how often in a row; `None` (-1) without end, 0 (the default) never.
    pub max: Option<u32>,
    /// `task.restart.backoff.ms` (default 1 s): the wait before the first restart, doubled with each further one.
    pub backoff: Duration,
    /// `task.restart.backoff.max.ms` (default 60 s): the longest wait. A task that has run for longer than this before it
    /// failed, and has accepted or rejected records in that time, is counted from anew.
    pub backoff_max: Duration,
}

impl RestartPolicy {
    /// The wait before what has failed so often in a row before this time is started again, if it is.
    #[must_use]
    pub fn wait(&self, failed_before: u32) -> Option<Duration> {
        if self.max.is_some_and(|max| failed_before >= max) {
            return None;
        }
        let factor = 1_u32.checked_shl(failed_before).unwrap_or(u32::MAX);
        Some(self.backoff.saturating_mul(factor).min(self.backoff_max))
    }
}

impl Default for RestartPolicy {
    fn default() -> Self {
        RestartPolicy { max: Some(0), backoff: Duration::from_secs(1), backoff_max: Duration::from_secs(60) }
    }
}

/// Failures of one task in a row.
#[derive(Debug)]
pub(crate) struct Failures {
    policy: RestartPolicy,
    count: u32,
}

impl Failures {
    pub(crate) fn new(policy: RestartPolicy) -> Self {
        Failures { policy, count: 0 }
    }

    /// Another failure, of a task that had run well for so long: the wait before it is started again, if it is.
    pub(crate) fn next(&mut self, ran: Duration) -> Option<Duration> {
        if ran > self.policy.backoff_max {
            self.count = 0;
        }
        let wait = self.policy.wait(self.count)?;
        self.count = self.count.saturating_add(1);
        Some(wait)
    }

    /// Somebody has looked at it.
    pub(crate) fn forget(&mut self) {
        self.count = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn waits_double_up_to_the_longest_and_end_at_the_limit() {
        let mut off = Failures::new(RestartPolicy::default());
        assert_eq!(off.next(SECOND), None);
        let policy = RestartPolicy { max: Some(4), backoff: SECOND, backoff_max: SECOND * 5 };
        let mut failures = Failures::new(policy);
        let waits: Vec<_> = (0..5).map(|_| failures.next(Duration::ZERO)).collect();
        assert_eq!(waits, [Some(SECOND), Some(SECOND * 2), Some(SECOND * 4), Some(SECOND * 5), None]);
        assert_eq!(failures.next(SECOND * 6), Some(SECOND), "it had run for long");
        failures.forget();
        assert_eq!(failures.next(Duration::ZERO), Some(SECOND));
        let mut endless = Failures::new(RestartPolicy { max: None, ..policy });
        assert!((0..100).all(|_| endless.next(Duration::ZERO).is_some()));
    }
}
