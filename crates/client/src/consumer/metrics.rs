//! Metrics under Java's names: counted per request and per poll, never per record.

use kafka_share_core::share_acks::{AckOutcome, Outcome};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::metrics::{Meter, Metric, MetricsSnapshot, millis};

const FETCH: &str = "consumer-share-fetch-manager-metrics";
const COORDINATOR: &str = "consumer-share-coordinator-metrics";
const CONSUMER: &str = "consumer-share-metrics";
const LEDGER: [&str; 5] = [
    "share-ack-ledger-done-elsewhere-total",
    "share-ack-ledger-confirmed-total",
    "share-ack-ledger-unconfirmed-total",
    "share-ack-ledger-fences-total",
    "share-ack-ledger-restarts-total",
];

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
    dropped: u64,
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

    /// An outcome went before the application asked for it.
    pub(super) fn outcome_dropped(&self) {
        self.state().dropped += 1;
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

    /// `ledger`: records that others had done, acknowledgements after a commit that brokers took and did not take, owners that
    /// were fenced, and times that the ledger was read from its start again.
    pub(super) fn snapshot(&self, ledger: [u64; LEDGER.len()]) -> MetricsSnapshot {
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
        // Not one of Java's: its outcomes go to a callback only.
        put(FETCH, "acknowledgement-outcomes-dropped-total", state.dropped as f64);
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
        for (name, count) in LEDGER.into_iter().zip(ledger) {
            put(FETCH, name, count as f64);
        }
        MetricsSnapshot::new(all)
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
            meter.catch_up(now);
        }
    }
}
