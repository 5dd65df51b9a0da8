//! Metrics as a page for Prometheus.

use super::workers::Workers;
use kafka_share::Metric;
use kafka_share_connect::TaskState;
use std::collections::BTreeMap;
use std::fmt::Write;

pub(super) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

const STATES: [&str; 5] = ["RUNNING", "PAUSED", "RESTARTING", "FAILED", "UNASSIGNED"];

/// All metrics of all tasks: `kafka_connect_sink_task_metrics_put_batch_avg_time_ms{connector="c",task="0"} 3`.
pub(super) fn page(workers: &Workers) -> String {
    // Lines of one name must stand together.
    let mut families: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for connector in &workers.connectors {
        let name = label(&connector.config.name);
        let state = connector.standing().state().to_ascii_lowercase();
        let family = families.entry("kafka_connect_connector_metrics_status".into()).or_default();
        family.push(format!("{{connector=\"{name}\",status=\"{state}\"}} 1"));
        for (task, metrics) in connector.metrics() {
            let labels = format!("connector=\"{name}\",task=\"{}\"", task.task);
            let state = task.state.to_string();
            let family = families.entry("kafka_connect_connector_task_metrics_status".into()).or_default();
            for known in STATES {
                let here = u8::from(state == known);
                family.push(format!("{{{labels},status=\"{}\"}} {here}", known.to_ascii_lowercase()));
            }
            let restarts = families.entry("kafka_connect_share_sink_task_metrics_restarts_total".into()).or_default();
            restarts.push(format!("{{{labels}}} {}", task.restarts));
            for Metric { group, name, value } in metrics.iter() {
                let family = format!("kafka_connect_{}_{}", plain(group), plain(name));
                families.entry(family).or_default().push(format!("{{{labels}}} {}", number(*value)));
            }
        }
        let standing = connector.standing();
        let count = |wanted: fn(&TaskState) -> bool| standing.tasks.iter().filter(|t| wanted(&t.state)).count();
        for (kind, n) in [
            ("total", standing.tasks.len()),
            ("running", count(|s| *s == TaskState::Running)),
            ("paused", count(|s| *s == TaskState::Paused)),
            ("failed", count(|s| matches!(s, TaskState::Failed(_)))),
            ("restarting", count(|s| *s == TaskState::Restarting)),
            ("unassigned", count(|s| *s == TaskState::Unassigned)),
        ] {
            let family = format!("kafka_connect_worker_metrics_connector_{kind}_task_count");
            families.entry(family).or_default().push(format!("{{connector=\"{name}\"}} {n}"));
        }
    }
    let of_worker = |name: &str| format!("kafka_connect_worker_metrics_{name}");
    let all: Vec<_> = workers.connectors.iter().map(|c| c.standing()).collect();
    let starts = |which: usize| all.iter().map(|one| one.starts[which]).sum::<u64>();
    for (name, n) in [
        ("connector_count", all.len() as u64),
        ("task_count", all.iter().map(|one| one.tasks.len() as u64).sum()),
        ("connector_startup_attempts_total", starts(0)),
        ("connector_startup_success_total", starts(1)),
        ("connector_startup_failure_total", starts(2)),
    ] {
        families.entry(of_worker(name)).or_default().push(format!(" {n}"));
    }
    let mut page = String::new();
    for (family, lines) in families {
        let kind = if family.ends_with("_total") { "counter" } else { "gauge" };
        let _ = writeln!(page, "# TYPE {family} {kind}");
        for line in lines {
            let _ = writeln!(page, "{family}{line}");
        }
    }
    page
}

fn plain(name: &str) -> String {
    name.replace(['-', '.'], "_")
}

fn label(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

fn number(value: f64) -> String {
    if value.is_nan() { "NaN".into() } else { value.to_string() }
}
