//! Metrics of a task under Connect's names, and those of share groups. Counted per batch, never per record.

use crate::status::TaskCounters;
use kafka_share::{Meter, Metric, MetricsSnapshot};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Group of Connect's `connector-task-metrics`.
const TASK: &str = "connector-task-metrics";
/// Group of Connect's `sink-task-metrics`.
const SINK: &str = "sink-task-metrics";
/// Group of Connect's `task-error-metrics`.
const ERRORS: &str = "task-error-metrics";
/// What only tasks on share groups have.
const SHARE: &str = "share-sink-task-metrics";

/// Where the time of a task went.
#[derive(Debug, Default)]
struct Shares {
    since: Option<(Instant, bool)>,
    running: Duration,
    paused: Duration,
    began: Option<Instant>,
}

impl Shares {
    fn turn(&mut self, now: Instant, state: Option<bool>) {
        self.began.get_or_insert(now);
        if let Some((since, paused)) = self.since.take() {
            let time = now.saturating_duration_since(since);
            *if paused { &mut self.paused } else { &mut self.running } += time;
        }
        self.since = state.map(|paused| (now, paused));
    }

    fn ratios(&mut self, now: Instant) -> (f64, f64) {
        let state = self.since.map(|(_, paused)| paused);
        self.turn(now, state);
        let all = self.began.map_or(Duration::ZERO, |began| now.saturating_duration_since(began)).as_secs_f64();
        let part = |time: Duration| if all > 0.0 { time.as_secs_f64() / all } else { 0.0 };
        (part(self.running), part(self.paused))
    }
}

#[derive(Debug, Default)]
struct State {
    shares: Shares,
    read: Meter,
    sent: Meter,
    put: Meter,
    batch: Meter,
    commit: Meter,
    committed: Meter,
    commit_failed: u64,
    active: Meter,
    released: Meter,
    rejected: Meter,
    renewed: Meter,
    redelivered: Meter,
    lock_lost: Meter,
}

/// Meters of a task, over all its lives.
#[derive(Debug, Default)]
pub(crate) struct TaskMeters {
    state: Mutex<State>,
    pub(crate) failures: AtomicU64,
    pub(crate) skipped: AtomicU64,
    pub(crate) retries: AtomicU64,
    logged: AtomicU64,
    last_error: AtomicU64,
    pub(crate) partitions: AtomicU64,
    pub(crate) active: AtomicU64,
    /// Of the batches whose put and commit took longer than their locks.
    pub(crate) slow_batches: AtomicU64,
}

/// What became of records that were not accepted, or whose locks were touched.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Counted {
    Released,
    Rejected,
    Renewed,
    Redelivered,
    LockLost,
}

impl TaskMeters {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The task runs (`Some(false)`), is paused (`Some(true)`), or neither.
    pub(crate) fn turn(&self, state: Option<bool>) {
        self.state().shares.turn(Instant::now(), state);
    }

    pub(crate) fn polled(&self, records: usize, partitions: usize) {
        let now = Instant::now();
        self.partitions.store(partitions as u64, Ordering::Relaxed);
        self.active.store(records as u64, Ordering::Relaxed);
        let mut state = self.state();
        state.read.add(now, records as f64);
        state.batch.add(now, records as f64);
        state.active.add(now, records as f64);
    }

    pub(crate) fn put(&self, records: usize, time: Duration) {
        let now = Instant::now();
        let mut state = self.state();
        state.put.add(now, millis(time));
        state.sent.add(now, records as f64);
    }

    pub(crate) fn committed(&self, time: Duration, well: bool) {
        let now = Instant::now();
        let mut state = self.state();
        state.commit.add(now, millis(time));
        match well {
            true => state.committed.add(now, 1.0),
            false => state.commit_failed += 1,
        }
    }

    pub(crate) fn count(&self, what: Counted, records: u64) {
        if records == 0 {
            return;
        }
        let mut state = self.state();
        let meter = match what {
            Counted::Released => &mut state.released,
            Counted::Rejected => &mut state.rejected,
            Counted::Renewed => &mut state.renewed,
            Counted::Redelivered => &mut state.redelivered,
            Counted::LockLost => &mut state.lock_lost,
        };
        meter.add(Instant::now(), records as f64);
    }

    /// An error of `records` was written to the log.
    pub(crate) fn error_logged(&self) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.last_error.store(u64::try_from(now.as_millis()).unwrap_or(u64::MAX), Ordering::Relaxed);
        self.logged.fetch_add(1, Ordering::Relaxed);
    }
}

impl TaskCounters {
    /// All metrics of the task.
    pub(crate) fn metrics(&self) -> MetricsSnapshot {
        let (now, meters) = (Instant::now(), &self.meters);
        let count = |n: &AtomicU64| n.load(Ordering::Relaxed) as f64;
        let mut all = Vec::with_capacity(48);
        let mut s = meters.state();
        s.roll(now);
        let (running, paused) = s.shares.ratios(now);
        let mut put = |group, name, value| all.push(Metric { group, name, value });
        let tried = s.committed.total() + s.commit_failed as f64;
        put(TASK, "running-ratio", running);
        put(TASK, "pause-ratio", paused);
        put(TASK, "batch-size-max", s.batch.max());
        put(TASK, "batch-size-avg", s.batch.average());
        put(TASK, "offset-commit-max-time-ms", s.commit.max());
        put(TASK, "offset-commit-avg-time-ms", s.commit.average());
        put(TASK, "offset-commit-success-percentage", s.committed.total() / tried);
        put(TASK, "offset-commit-failure-percentage", s.commit_failed as f64 / tried);
        put(SINK, "sink-record-read-rate", s.read.per_second(now));
        put(SINK, "sink-record-read-total", s.read.total());
        put(SINK, "sink-record-send-rate", s.sent.per_second(now));
        put(SINK, "sink-record-send-total", s.sent.total());
        put(SINK, "sink-record-active-count", count(&meters.active));
        put(SINK, "sink-record-active-count-max", s.active.max());
        put(SINK, "sink-record-active-count-avg", s.active.average());
        put(SINK, "partition-count", count(&meters.partitions));
        put(SINK, "offset-commit-seq-no", tried);
        put(SINK, "offset-commit-completion-rate", s.committed.per_second(now));
        put(SINK, "offset-commit-completion-total", s.committed.total());
        put(SINK, "put-batch-max-time-ms", s.put.max());
        put(SINK, "put-batch-avg-time-ms", s.put.average());
        put(ERRORS, "total-record-failures", count(&meters.failures));
        put(ERRORS, "total-record-errors", count(&meters.failures) + count(&meters.retries));
        put(ERRORS, "total-records-skipped", count(&meters.skipped));
        put(ERRORS, "total-retries", count(&meters.retries));
        put(ERRORS, "total-errors-logged", count(&meters.logged));
        put(ERRORS, "last-error-timestamp", count(&meters.last_error));
        put(SHARE, "records-accepted-total", count(&self.accepted));
        let both = [
            ("records-released-rate", "records-released-total", &s.released),
            ("records-rejected-rate", "records-rejected-total", &s.rejected),
            ("records-renewed-rate", "records-renewed-total", &s.renewed),
            ("records-redelivered-rate", "records-redelivered-total", &s.redelivered),
            ("records-lock-lost-rate", "records-lock-lost-total", &s.lock_lost),
        ];
        for (rate, total, meter) in both {
            put(SHARE, rate, meter.per_second(now));
            put(SHARE, total, meter.total());
        }
        put(SHARE, "slow-batches-total", count(&meters.slow_batches));
        put(SHARE, "slow", f64::from(u8::from(self.slow.load(Ordering::Relaxed))));
        MetricsSnapshot::new(all)
    }
}

impl State {
    fn roll(&mut self, now: Instant) {
        for meter in [
            &mut self.read,
            &mut self.sent,
            &mut self.put,
            &mut self.batch,
            &mut self.commit,
            &mut self.committed,
            &mut self.active,
            &mut self.released,
            &mut self.rejected,
            &mut self.renewed,
            &mut self.redelivered,
            &mut self.lock_lost,
        ] {
            meter.catch_up(now);
        }
    }
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_shared_out_between_states() {
        let (start, second) = (Instant::now(), Duration::from_secs(1));
        let mut shares = Shares::default();
        assert_eq!(shares.ratios(start), (0.0, 0.0));
        shares.turn(start, Some(false));
        shares.turn(start + 6 * second, Some(true));
        shares.turn(start + 8 * second, None);
        let (running, paused) = shares.ratios(start + 10 * second);
        assert!((running - 0.6).abs() < 1e-9 && (paused - 0.2).abs() < 1e-9, "{running} {paused}");
        shares.turn(start + 10 * second, Some(false));
        let (running, _) = shares.ratios(start + 20 * second);
        assert!((running - 0.8).abs() < 1e-9, "{running}");
    }

    #[test]
    fn what_is_counted_is_told_by_connects_names() {
        let counters = TaskCounters::default();
        counters.meters.polled(10, 3);
        counters.meters.put(10, Duration::from_millis(20));
        counters.meters.put(5, Duration::from_millis(40));
        counters.meters.committed(Duration::from_millis(4), true);
        counters.meters.committed(Duration::from_millis(8), false);
        counters.meters.count(Counted::LockLost, 2);
        counters.meters.error_logged();
        let all = counters.metrics();
        for (name, value) in [
            ("sink-record-read-total", 10.0),
            ("sink-record-send-total", 15.0),
            ("put-batch-max-time-ms", 40.0),
            ("put-batch-avg-time-ms", 30.0),
            ("partition-count", 3.0),
            ("batch-size-avg", 10.0),
            ("sink-record-active-count", 10.0),
            ("sink-record-active-count-max", 10.0),
            ("sink-record-active-count-avg", 10.0),
            ("offset-commit-seq-no", 2.0),
            ("offset-commit-avg-time-ms", 6.0),
            ("offset-commit-success-percentage", 0.5),
            ("records-lock-lost-total", 2.0),
            ("total-errors-logged", 1.0),
            ("records-released-total", 0.0),
        ] {
            assert!((all.get(name).unwrap() - value).abs() < 1e-9, "{name}: {all:?}");
        }
        assert!(all.get("last-error-timestamp").unwrap() > 1.7e12);
    }
}
