//! Metrics under Java's names: counted per request and per poll, never per record.

use kafka_share_core::share_acks::{AckOutcome, Outcome};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

const FETCH: &str = "consumer-share-fetch-manager-metrics";
const COORDINATOR: &str = "consumer-share-coordinator-metrics";
const CONSUMER: &str = "consumer-share-metrics";

/// Averages, maxima and rates look back this long, and up to twice that.
const WINDOW: Duration = Duration::from_secs(30);

/// One metric.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Metric {
    /// Group, as in Java.
    pub group: &'static str,
    /// Name, as in Java.
    pub name: &'static str,
    /// Value; `NaN` where there is none yet, as in Java.
    pub value: f64,
}

/// The metrics of a consumer at one moment.
#[derive(Debug, Clone)]
pub struct MetricsSnapshot(Vec<Metric>);

impl MetricsSnapshot {
    /// The value of a metric by its Java name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<f64> {
        self.iter().find(|m| m.name == name).map(|m| m.value)
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Metric> {
        self.0.iter()
    }
}

#[derive(Debug, Default, Clone, Copy)]
struct Sums {
    sum: f64,
    count: u64,
    max: f64,
}

/// Sums over the current window and the one before, and over all time.
#[derive(Debug, Default)]
struct Meter {
    since: Option<Instant>,
    current: Sums,
    previous: Sums,
    total: f64,
}

impl Meter {
    fn add(&mut self, now: Instant, value: f64) {
        self.roll(now);
        self.total += value;
        let sums = &mut self.current;
        *sums = Sums { sum: sums.sum + value, count: sums.count + 1, max: sums.max.max(value) };
    }

    fn roll(&mut self, now: Instant) {
        let since = *self.since.get_or_insert(now);
        let age = now.saturating_duration_since(since);
        if age >= WINDOW {
            self.previous = if age < 2 * WINDOW { self.current } else { Sums::default() };
            self.current = Sums::default();
            self.since = Some(now);
        }
    }

    fn recent(&self) -> Sums {
        let (a, b) = (self.current, self.previous);
        Sums { sum: a.sum + b.sum, count: a.count + b.count, max: a.max.max(b.max) }
    }

    fn average(&self) -> f64 {
        self.recent().sum / self.recent().count as f64
    }

    fn max(&self) -> f64 {
        if self.recent().count == 0 { f64::NAN } else { self.recent().max }
    }

    fn per_second(&self, now: Instant) -> f64 {
        let Some(since) = self.since else { return 0.0 };
        let before = if self.previous.count > 0 { WINDOW } else { Duration::ZERO };
        self.recent().sum / (now.saturating_duration_since(since) + before).max(WINDOW).as_secs_f64()
    }
}

#[derive(Debug, Default)]
struct State {
    fetch_bytes: Meter,
    fetch_records: Meter,
    fetch_latency: Meter,
    fetches: Meter,
    throttle: Meter,
    consumed: Meter,
    sent: Meter,
    failed: Meter,
    heartbeats: Meter,
    heartbeat_latency: Meter,
    rebalances: Meter,
    between_polls: Meter,
    idle: Meter,
    last_heartbeat: Option<Instant>,
    poll_start: Option<Instant>,
    poll_end: Option<Instant>,
}

/// Counters of one consumer.
#[derive(Debug, Default)]
pub(super) struct Metrics(Mutex<State>);

impl Metrics {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn fetched(&self, bytes: usize, records: usize, latency: Duration, throttle_ms: i32) {
        let now = Instant::now();
        let mut state = self.state();
        state.fetch_bytes.add(now, bytes as f64);
        state.fetch_records.add(now, records as f64);
        state.fetch_latency.add(now, millis(latency));
        state.fetches.add(now, 1.0);
        state.throttle.add(now, f64::from(throttle_ms.max(0)));
    }

    pub(super) fn consumed(&self, records: usize) {
        self.state().consumed.add(Instant::now(), records as f64);
    }

    pub(super) fn acknowledged(&self, outcome: &AckOutcome) {
        if outcome.ack_type.is_none() {
            return;
        }
        let now = Instant::now();
        let count = (outcome.last_offset - outcome.first_offset + 1) as f64;
        let mut state = self.state();
        if outcome.outcome != Outcome::LockLost {
            state.sent.add(now, count);
        }
        if outcome.outcome != Outcome::Acknowledged {
            state.failed.add(now, count);
        }
    }

    pub(super) fn heartbeat(&self, latency: Duration, assigned: bool) {
        let now = Instant::now();
        let mut state = self.state();
        state.last_heartbeat = Some(now.checked_sub(latency).unwrap_or(now));
        state.heartbeats.add(now, 1.0);
        state.heartbeat_latency.add(now, millis(latency));
        if assigned {
            state.rebalances.add(now, 1.0);
        }
    }

    pub(super) fn poll_started(&self) {
        let now = Instant::now();
        let mut state = self.state();
        if let Some(before) = state.poll_start {
            let between = now - before;
            state.between_polls.add(now, millis(between));
            let worked = state.poll_end.map_or(Duration::ZERO, |end| now.saturating_duration_since(end));
            let idle = 1.0 - worked.as_secs_f64() / between.as_secs_f64().max(f64::MIN_POSITIVE);
            state.idle.add(now, idle.clamp(0.0, 1.0));
        }
        state.poll_start = Some(now);
    }

    pub(super) fn poll_ended(&self) {
        self.state().poll_end = Some(Instant::now());
    }

    pub(super) fn snapshot(&self) -> MetricsSnapshot {
        let now = Instant::now();
        let mut state = self.state();
        state.roll(now);
        let ago = |at: Option<Instant>| at.map_or(-1.0, |at| now.saturating_duration_since(at).as_secs_f64().floor());
        let mut all = Vec::with_capacity(32);
        let mut put = |group, name, value| all.push(Metric { group, name, value });
        put(FETCH, "fetch-size-avg", state.fetch_bytes.average());
        put(FETCH, "fetch-size-max", state.fetch_bytes.max());
        put(FETCH, "bytes-consumed-rate", state.fetch_bytes.per_second(now));
        put(FETCH, "bytes-consumed-total", state.fetch_bytes.total);
        put(FETCH, "records-per-request-avg", state.fetch_records.average());
        put(FETCH, "records-per-request-max", state.fetch_records.max());
        put(FETCH, "records-consumed-rate", state.consumed.per_second(now));
        put(FETCH, "records-consumed-total", state.consumed.total);
        put(FETCH, "acknowledgements-send-rate", state.sent.per_second(now));
        put(FETCH, "acknowledgements-send-total", state.sent.total);
        put(FETCH, "acknowledgements-error-rate", state.failed.per_second(now));
        put(FETCH, "acknowledgements-error-total", state.failed.total);
        put(FETCH, "fetch-latency-avg", state.fetch_latency.average());
        put(FETCH, "fetch-latency-max", state.fetch_latency.max());
        put(FETCH, "fetch-rate", state.fetches.per_second(now));
        put(FETCH, "fetch-total", state.fetches.total);
        put(FETCH, "fetch-throttle-time-avg", state.throttle.average());
        put(FETCH, "fetch-throttle-time-max", state.throttle.max());
        put(COORDINATOR, "heartbeat-response-time-max", state.heartbeat_latency.max());
        put(COORDINATOR, "heartbeat-rate", state.heartbeats.per_second(now));
        put(COORDINATOR, "heartbeat-total", state.heartbeats.total);
        put(COORDINATOR, "last-heartbeat-seconds-ago", ago(state.last_heartbeat));
        put(COORDINATOR, "rebalance-total", state.rebalances.total);
        put(COORDINATOR, "rebalance-rate-per-hour", state.rebalances.per_second(now) * 3600.0);
        put(CONSUMER, "last-poll-seconds-ago", ago(state.poll_start));
        put(CONSUMER, "time-between-poll-avg", state.between_polls.average());
        put(CONSUMER, "time-between-poll-max", state.between_polls.max());
        put(CONSUMER, "poll-idle-ratio-avg", state.idle.average());
        MetricsSnapshot(all)
    }
}

impl State {
    fn roll(&mut self, now: Instant) {
        for meter in [
            &mut self.fetch_bytes,
            &mut self.fetch_records,
            &mut self.fetch_latency,
            &mut self.fetches,
            &mut self.throttle,
            &mut self.consumed,
            &mut self.sent,
            &mut self.failed,
            &mut self.heartbeats,
            &mut self.heartbeat_latency,
            &mut self.rebalances,
            &mut self.between_polls,
            &mut self.idle,
        ] {
            if meter.since.is_some() {
                meter.roll(now);
            }
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
    fn windows_pass() {
        let start = Instant::now();
        let mut meter = Meter::default();
        assert!(meter.average().is_nan() && meter.max().is_nan());
        meter.add(start, 10.0);
        meter.add(start + Duration::from_secs(20), 20.0);
        assert_eq!((meter.average(), meter.max(), meter.total), (15.0, 20.0, 30.0));
        meter.add(start + Duration::from_secs(35), 30.0);
        assert_eq!((meter.average(), meter.max()), (20.0, 30.0));
        assert!((meter.per_second(start + Duration::from_secs(65)) - 1.0).abs() < 1e-9);
        meter.roll(start + Duration::from_secs(200));
        assert_eq!((meter.recent().count, meter.total), (0, 60.0));
    }
}
