//! Meters for metrics under Java's names: sums of all time, and averages, maxima and rates of about the last minute.

use std::time::{Duration, Instant};

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

/// The metrics of a client at one moment.
#[derive(Debug, Clone)]
pub struct MetricsSnapshot(Vec<Metric>);

impl MetricsSnapshot {
    /// Of these metrics.
    #[must_use]
    pub fn new(all: Vec<Metric>) -> Self {
        MetricsSnapshot(all)
    }

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

/// Sums over the current window of 30 s and the one before, and over all time.
#[derive(Debug, Default)]
pub struct Meter {
    since: Option<Instant>,
    current: Sums,
    previous: Sums,
    pub(crate) total: f64,
}

impl Meter {
    /// Adds a value.
    pub fn add(&mut self, now: Instant, value: f64) {
        self.roll(now);
        self.total += value;
        let sums = &mut self.current;
        *sums = Sums { sum: sums.sum + value, count: sums.count + 1, max: sums.max.max(value) };
    }

    /// Lets windows pass that nothing was added in.
    pub fn catch_up(&mut self, now: Instant) {
        if self.since.is_some() {
            self.roll(now);
        }
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

    /// Sum of all values.
    #[must_use]
    pub fn total(&self) -> f64 {
        self.total
    }

    /// Average of the recent values; `NaN` where there is none.
    #[must_use]
    pub fn average(&self) -> f64 {
        self.recent().sum / self.recent().count as f64
    }

    /// The highest recent value; `NaN` where there is none.
    #[must_use]
    pub fn max(&self) -> f64 {
        if self.recent().count == 0 { f64::NAN } else { self.recent().max }
    }

    /// Sum of the recent values per second.
    #[must_use]
    pub fn per_second(&self, now: Instant) -> f64 {
        let Some(since) = self.since else { return 0.0 };
        let before = if self.previous.count > 0 { WINDOW } else { Duration::ZERO };
        self.recent().sum / (now.saturating_duration_since(since) + before).max(WINDOW).as_secs_f64()
    }
}

pub(crate) fn millis(time: Duration) -> f64 {
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
