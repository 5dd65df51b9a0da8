//! Metrics of a producer under Java's names: counted per request, batch and call, never per record.

use crate::metrics::{Meter, Metric, MetricsSnapshot, millis};
use kafka_share_core::producer::SentBatches;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

const GROUP: &str = "producer-metrics";

/// Calls whose time is summed up, as in Java.
#[derive(Debug, Clone, Copy)]
pub(super) enum Call {
    Init,
    Begin,
    Prepare,
    Commit,
    Abort,
    SendShareAcks,
    Flush,
    /// Waiting for the metadata of a topic.
    Metadata,
    /// Waiting for room in the buffer.
    Buffer,
}

/// Names of the sums of [`Call`], in its order. Share acknowledgements have theirs after `txn-send-offsets-time-ns-total`.
const TIMES: [&str; 9] = [
    "txn-init-time-ns-total",
    "txn-begin-time-ns-total",
    "txn-prepare-time-ns-total",
    "txn-commit-time-ns-total",
    "txn-abort-time-ns-total",
    "txn-send-share-acks-time-ns-total",
    "flush-time-ns-total",
    "metadata-wait-time-ns-total",
    "bufferpool-wait-time-ns-total",
];

/// What the ledger counts, in the order of `State::ledger`.
const LEDGER: [&str; 4] = [
    "share-ack-ledger-intents-total",
    "share-ack-ledger-tombstones-total",
    "share-ack-ledger-waits-total",
    "share-ack-ledger-conflicts-total",
];

#[derive(Debug, Default)]
struct State {
    batch_size: Meter,
    batch_size_max: Meter,
    records: Meter,
    records_per_request: Meter,
    retries: Meter,
    errors: Meter,
    queue_time: Meter,
    latency: Meter,
    throttle: Meter,
    exhausted: Meter,
    share_acks: Meter,
    share_ack_latency: Meter,
    share_ack_errors: Meter,
    times: [Duration; TIMES.len()],
    ledger: [u64; LEDGER.len()],
}

/// Counters of one producer.
#[derive(Debug, Default)]
pub(super) struct Metrics(Mutex<State>);

impl Metrics {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn sent(&self, sent: &SentBatches) {
        let now = Instant::now();
        let mut state = self.state();
        state.batch_size.add(now, sent.bytes as f64 / sent.batches.max(1) as f64);
        state.batch_size_max.add(now, sent.largest as f64);
        state.records_per_request.add(now, (sent.records + sent.retried) as f64);
        if sent.records > 0 {
            state.records.add(now, sent.records as f64);
            state.queue_time.add(now, millis(sent.queued));
        }
        if sent.retried > 0 {
            state.retries.add(now, sent.retried as f64);
        }
    }

    pub(super) fn answered(&self, latency: Duration, throttle_ms: i32) {
        let now = Instant::now();
        let mut state = self.state();
        state.latency.add(now, millis(latency));
        state.throttle.add(now, f64::from(throttle_ms.max(0)));
    }

    pub(super) fn failed(&self, records: u32) {
        self.state().errors.add(Instant::now(), f64::from(records));
    }

    pub(super) fn buffer_exhausted(&self) {
        self.state().exhausted.add(Instant::now(), 1.0);
    }

    /// Acknowledgements that were given to brokers for a transaction, and how that went.
    pub(super) fn share_acks(&self, offsets: u64, latency: Duration, staged: bool) {
        let now = Instant::now();
        let mut state = self.state();
        state.share_ack_latency.add(now, millis(latency));
        if staged {
            state.share_acks.add(now, offsets as f64);
        } else {
            state.share_ack_errors.add(now, offsets as f64);
        }
    }

    /// An intent was written.
    pub(super) fn ledger_intent(&self) {
        self.state().ledger[0] += 1;
    }

    /// Tombstones are being written.
    pub(super) fn ledger_tombstones(&self, count: usize) {
        self.state().ledger[1] += count as u64;
    }

    /// An intent has to wait for others.
    pub(super) fn ledger_wait(&self) {
        self.state().ledger[2] += 1;
    }

    /// A transaction is aborted for what the ledger says.
    pub(super) fn ledger_conflict(&self) {
        self.state().ledger[3] += 1;
    }

    /// Adds the time of a call when it ends, however it does.
    pub(super) fn time(&self, call: Call) -> Timer<'_> {
        Timer { metrics: self, call, started: Instant::now() }
    }

    /// `used` and `total`: bytes of the buffer.
    pub(super) fn snapshot(&self, used: usize, total: usize, in_flight: usize) -> MetricsSnapshot {
        let now = Instant::now();
        let mut state = self.state();
        state.catch_up(now);
        let mut all = Vec::with_capacity(40);
        let mut put = |name, value| all.push(Metric { group: GROUP, name, value });
        put("batch-size-avg", state.batch_size.average());
        put("batch-size-max", state.batch_size_max.max());
        put("record-send-rate", state.records.per_second(now));
        put("record-send-total", state.records.total);
        put("records-per-request-avg", state.records_per_request.average());
        put("record-retry-rate", state.retries.per_second(now));
        put("record-retry-total", state.retries.total);
        put("record-error-rate", state.errors.per_second(now));
        put("record-error-total", state.errors.total);
        put("record-queue-time-avg", state.queue_time.average());
        put("record-queue-time-max", state.queue_time.max());
        put("request-latency-avg", state.latency.average());
        put("request-latency-max", state.latency.max());
        put("requests-in-flight", in_flight as f64);
        put("produce-throttle-time-avg", state.throttle.average());
        put("produce-throttle-time-max", state.throttle.max());
        put("buffer-total-bytes", total as f64);
        put("buffer-available-bytes", total.saturating_sub(used) as f64);
        put("buffer-exhausted-rate", state.exhausted.per_second(now));
        put("buffer-exhausted-total", state.exhausted.total);
        put("txn-share-acks-rate", state.share_acks.per_second(now));
        put("txn-share-acks-total", state.share_acks.total);
        put("txn-share-acks-error-rate", state.share_ack_errors.per_second(now));
        put("txn-share-acks-error-total", state.share_ack_errors.total);
        put("txn-share-acks-latency-avg", state.share_ack_latency.average());
        put("txn-share-acks-latency-max", state.share_ack_latency.max());
        for (name, time) in TIMES.iter().zip(state.times) {
            put(name, time.as_nanos() as f64);
        }
        for (name, count) in LEDGER.iter().zip(state.ledger) {
            put(name, count as f64);
        }
        MetricsSnapshot::new(all)
    }
}

impl State {
    fn catch_up(&mut self, now: Instant) {
        for meter in [
            &mut self.batch_size,
            &mut self.batch_size_max,
            &mut self.records,
            &mut self.records_per_request,
            &mut self.retries,
            &mut self.errors,
            &mut self.queue_time,
            &mut self.latency,
            &mut self.throttle,
            &mut self.exhausted,
            &mut self.share_acks,
            &mut self.share_ack_latency,
            &mut self.share_ack_errors,
        ] {
            meter.catch_up(now);
        }
    }
}

/// See [`Metrics::time`].
pub(super) struct Timer<'a> {
    metrics: &'a Metrics,
    call: Call,
    started: Instant,
}

impl Drop for Timer<'_> {
    fn drop(&mut self) {
        let time = self.started.elapsed();
        self.metrics.state().times[self.call as usize] += time;
    }
}
