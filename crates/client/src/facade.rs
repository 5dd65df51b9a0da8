//! The client's metrics by the `metrics` facade, for whatever recorder the application has installed (feature `metrics`).

use crate::MetricsSnapshot;
use kafka_share_wire::Str;
use std::time::Duration;

/// Between two times that a client tells its metrics.
const EVERY: Duration = Duration::from_secs(5);

impl MetricsSnapshot {
    /// Tells all metrics to the recorder of the `metrics` crate, under Java's names, with the labels `group` (Java's group) and
    /// `client-id`. Names that end with `-total` are counters, all others gauges; what has no value yet is left out.
    ///
    /// Consumers and producers do so by themselves every 5 s; this is for more, such as the last moment before an end.
    pub fn publish(&self, client_id: &str) {
        for metric in self.iter().filter(|metric| metric.value.is_finite()) {
            let labels = [("group", metric.group.to_owned()), ("client-id", client_id.to_owned())];
            if metric.name.ends_with("-total") {
                metrics::counter!(metric.name, &labels).absolute(metric.value.max(0.0) as u64);
            } else {
                metrics::gauge!(metric.name, &labels).set(metric.value);
            }
        }
    }
}

/// Tells a client's metrics as long as there is one, which `snapshot` says.
pub(crate) fn keep_telling(client_id: Str, snapshot: impl Fn() -> Option<MetricsSnapshot> + Send + 'static) {
    let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
    runtime.spawn(async move {
        let mut turns = tokio::time::interval(EVERY);
        turns.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            turns.tick().await;
            let Some(snapshot) = snapshot() else { return };
            snapshot.publish(&client_id);
        }
    });
}
