//! What the REST interface answers, in Connect's shapes.

use super::workers::{Connector, Phase, Standing, Workers};
use super::{mask, prometheus};
use kafka_share_connect::settings::{CONNECTOR_SETTINGS, Setting};
use kafka_share_connect::{ConnectError, ConnectorConfig, Properties, TaskState, TaskStatus, sinks, validate};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// An answer.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) body: Body,
}

#[derive(Debug)]
pub(super) enum Body {
    Nothing,
    Json(Value),
    /// For Prometheus.
    Page(String),
}

impl Answer {
    fn json(status: u16, body: Value) -> Self {
        Answer { status, body: Body::Json(body) }
    }

    /// `{"error_code": .., "message": ..}`
    pub(super) fn error(status: u16, message: impl AsRef<str>) -> Self {
        Self::json(status, json!({ "error_code": status, "message": mask::text(message.as_ref()) }))
    }

    fn nothing(status: u16) -> Self {
        Answer { status, body: Body::Nothing }
    }
}

/// What is asked for.
#[derive(Debug)]
pub(super) struct Question<'a> {
    pub(super) method: &'a str,
    pub(super) path: &'a str,
    pub(super) query: &'a str,
    pub(super) body: &'a [u8],
    /// Properties of the worker.
    pub(super) worker: &'a Properties,
}

impl Question<'_> {
    fn flag(&self, name: &str) -> bool {
        let value = self.query.split('&').filter_map(|pair| pair.split_once('=')).find(|(n, _)| *n == name);
        value.is_some_and(|(_, v)| v.eq_ignore_ascii_case("true"))
    }

    fn expands(&self, what: &str) -> bool {
        self.query.split('&').any(|pair| pair.strip_prefix("expand=") == Some(what))
    }
}

/// Answers.
pub(super) async fn answer(workers: &Workers, question: &Question<'_>) -> Answer {
    let Some(parts) = parts(question.path) else { return Answer::error(400, "the path is not UTF-8") };
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    match (question.method, parts.as_slice()) {
        ("GET", []) => Answer::json(
            200,
            json!({ "version": env!("CARGO_PKG_VERSION"), "commit": "unknown", "kafka_cluster_id": workers.cluster_id.get() }),
        ),
        ("GET", ["health"]) => Answer::json(200, json!({ "status": "healthy", "message": "the worker runs" })),
        ("GET", ["metrics"]) => Answer { status: 200, body: Body::Page(prometheus::page(workers)) },
        ("GET", ["connectors"]) => list(workers, question),
        ("GET", ["connector-plugins"]) => plugins(),
        ("PUT", ["connector-plugins", class, "config", "validate"]) => validated(question, class).await,
        (_, ["connectors", name, rest @ ..]) => match workers.named(name) {
            Some(connector) => of_connector(workers, connector, question, rest),
            None => Answer::error(404, format!("Connector {name} not found")),
        },
        (_, [] | ["health" | "metrics" | "connectors" | "connector-plugins"]) => {
            Answer::error(405, format!("{} is not for {}: connectors come from files", question.method, question.path))
        }
        _ => Answer::error(404, format!("there is no {}", question.path)),
    }
}

fn of_connector(workers: &Workers, connector: &Arc<Connector>, question: &Question<'_>, rest: &[&str]) -> Answer {
    let name = &connector.config.name;
    match (question.method, rest) {
        ("GET", []) => Answer::json(200, info(connector, &connector.standing())),
        ("GET", ["config"]) => Answer::json(200, mask::properties(&connector.config.properties)),
        ("GET", ["status"]) => Answer::json(200, status(workers, connector, &connector.standing())),
        ("GET", ["topics"]) => Answer::json(200, json!({ name.as_str(): { "topics": connector.config.topics } })),
        ("GET", ["tasks"]) => {
            let config = mask::properties(&connector.config.properties);
            let count = connector.standing().tasks.len();
            let tasks = (0..count).map(|t| json!({ "id": { "connector": name, "task": t }, "config": config }));
            Answer::json(200, tasks.collect())
        }
        ("GET", ["tasks", number, "status"]) => {
            let standing = connector.standing();
            match number.parse().ok().and_then(|n: usize| standing.tasks.get(n)) {
                Some(task) => Answer::json(200, task_state(workers, connector, task)),
                None => Answer::error(404, format!("No status found for task {name}-{number}")),
            }
        }
        ("POST", ["restart"]) => restart(workers, connector, question),
        ("POST", ["tasks", number, "restart"]) => {
            let count = connector.standing().tasks.len();
            match number.parse().ok().filter(|n: &usize| *n < count) {
                Some(task) => acted(204, 409, connector.restart_task(task)),
                None => Answer::error(404, format!("Unknown task: {name}-{number}")),
            }
        }
        ("PUT", ["pause"]) => {
            connector.pause();
            Answer::nothing(202)
        }
        // Puts that are under way may take their time, and so may a start; nobody waits for either here.
        ("PUT", ["resume"]) => {
            connector.resume();
            Answer::nothing(202)
        }
        ("PUT", ["stop"]) => {
            connector.stop();
            Answer::nothing(202)
        }
        (_, [] | ["config" | "status" | "topics" | "tasks" | "restart" | "pause" | "resume" | "stop"])
        | (_, ["tasks", _, "status" | "restart"]) => {
            Answer::error(405, format!("{} is not for {}: connectors come from files", question.method, question.path))
        }
        _ => Answer::error(404, format!("there is no {}", question.path)),
    }
}

fn acted(well: u16, refused: u16, result: Result<(), ConnectError>) -> Answer {
    match result {
        Ok(()) => Answer::nothing(well),
        Err(error) => Answer::error(refused, error.to_string()),
    }
}

fn list(workers: &Workers, question: &Question<'_>) -> Answer {
    let (with_status, with_info) = (question.expands("status"), question.expands("info"));
    if !with_status && !with_info {
        return Answer::json(200, workers.connectors.iter().map(|c| json!(c.config.name)).collect());
    }
    let mut all = Map::new();
    for connector in &workers.connectors {
        let (standing, mut one) = (connector.standing(), Map::new());
        if with_info {
            one.insert("info".into(), info(connector, &standing));
        }
        if with_status {
            one.insert("status".into(), status(workers, connector, &standing));
        }
        all.insert(connector.config.name.clone(), Value::Object(one));
    }
    Answer::json(200, Value::Object(all))
}

/// A connector that did not start is started again. With `includeTasks`, tasks start anew.
fn restart(workers: &Workers, connector: &Connector, question: &Question<'_>) -> Answer {
    connector.restart();
    if !question.flag("includeTasks") {
        return Answer::nothing(204);
    }
    let only_failed = question.flag("onlyFailed");
    for task in connector.standing().tasks {
        if only_failed && !matches!(task.state, TaskState::Failed(_)) {
            continue;
        }
        if let Err(error) = connector.restart_task(task.task) {
            return Answer::error(409, error.to_string());
        }
    }
    Answer::json(202, status(workers, connector, &connector.standing()))
}

fn info(connector: &Connector, standing: &Standing) -> Value {
    let name = &connector.config.name;
    let task = |t: &TaskStatus| json!({ "connector": name, "task": t.task });
    json!({
        "name": name,
        "config": mask::properties(&connector.config.properties),
        "tasks": standing.tasks.iter().map(task).collect::<Vec<_>>(),
        "type": "sink",
    })
}

fn status(workers: &Workers, connector: &Connector, standing: &Standing) -> Value {
    let mut of_connector = json!({ "state": standing.state(), "worker_id": workers.id, "version": connector.version });
    if let Phase::Failed(error) = &standing.phase {
        of_connector["trace"] = json!(mask::text(&error.to_string()));
    }
    json!({
        "name": connector.config.name,
        "connector": of_connector,
        "tasks": standing.tasks.iter().map(|t| task_state(workers, connector, t)).collect::<Vec<_>>(),
        "type": "sink",
    })
}

fn task_state(workers: &Workers, connector: &Connector, task: &TaskStatus) -> Value {
    let mut state = json!({
        "id": task.task, "state": task.state.to_string(), "worker_id": workers.id, "version": connector.version,
    });
    if let TaskState::Failed(why) = &task.state {
        state["trace"] = json!(mask::text(why));
    }
    state
}

fn plugins() -> Answer {
    let plugin = |class: &&str| json!({ "class": class, "type": "sink", "version": env!("CARGO_PKG_VERSION") });
    Answer::json(200, sinks::CLASSES.iter().map(plugin).collect())
}

/// Settings in one validation; a connector has some dozens.
const MAX_SETTINGS: usize = 1_000;

async fn validated(question: &Question<'_>, class: &str) -> Answer {
    let text = String::from_utf8_lossy(question.body);
    let mut properties = match ConnectorConfig::properties_of(&text) {
        Ok(properties) => properties,
        Err(error) => return Answer::error(400, error.to_string()),
    };
    if properties.len() > MAX_SETTINGS {
        return Answer::error(400, format!("{} settings: at most {MAX_SETTINGS} are looked at", properties.len()));
    }
    match properties.get("connector.class") {
        Some(other) if other != class => {
            let text = format!("connector.class={other} in the body, and {class} in the path");
            return Answer::error(400, text);
        }
        _ => {}
    }
    properties.insert("connector.class".into(), class.to_owned());
    let (worker, class) = (question.worker.clone(), class.to_owned());
    // Names that nobody knows are compared with all that are known, which takes a while where there are many.
    let result = tokio::task::spawn_blocking(move || validation(&worker, &properties, &class)).await;
    match result {
        Ok(body) => Answer::json(200, body),
        Err(error) => Answer::error(500, format!("the sink panicked over its settings: {error}")),
    }
}

fn validation(worker: &Properties, properties: &Properties, class: &str) -> Value {
    let result = validate(worker, properties, sinks::connector);
    let shown = mask::properties(properties);
    let mut errors: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for problem in &result.errors {
        errors.entry(&problem.setting).or_default().push(mask::text(&problem.message));
    }
    let known: BTreeMap<&str, &Setting> = CONNECTOR_SETTINGS.iter().map(|s| (s.name, s)).collect();
    let mut more: BTreeSet<&str> = properties.keys().map(String::as_str).chain(errors.keys().copied()).collect();
    more.retain(|name| !known.contains_key(name));
    let config = |name: &str| {
        json!({
            "definition": definition(name, known.get(name).copied()),
            "value": {
                "name": name, "value": shown.get(name), "recommended_values": [],
                "errors": errors.get(name).cloned().unwrap_or_default(), "visible": true,
            },
        })
    };
    json!({
        "name": class, "error_count": result.errors.len(), "groups": [],
        "configs": CONNECTOR_SETTINGS.iter().map(|s| s.name).chain(more).map(config).collect::<Vec<_>>(),
    })
}

fn definition(name: &str, known: Option<&Setting>) -> Value {
    let required = ["name", "connector.class", "topics"].contains(&name);
    json!({
        "name": name,
        "type": known.map_or("STRING", |s| s.kind),
        "required": required,
        "default_value": known.and_then(|s| s.default),
        "importance": if required { "HIGH" } else { "MEDIUM" },
        "documentation": known.map_or("", |s| s.doc),
        "group": null,
        "width": "NONE",
        "display_name": name,
        "dependents": [],
        "order": -1,
    })
}

/// The parts of a path, percent signs decoded.
fn parts(path: &str) -> Option<Vec<String>> {
    path.split('/').filter(|p| !p.is_empty()).map(decoded).collect()
}

fn decoded(part: &str) -> Option<String> {
    let (mut bytes, mut left) = (Vec::with_capacity(part.len()), part.bytes());
    while let Some(byte) = left.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digit = |b: Option<u8>| char::from(b?).to_digit(16);
        let (high, low) = (digit(left.next())?, digit(left.next())?);
        bytes.push(u8::try_from(high * 16 + low).ok()?);
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_taken_apart() {
        assert_eq!(parts("/connectors/a%20b/status").unwrap(), ["connectors", "a b", "status"]);
        assert_eq!(parts("/").unwrap(), [""; 0]);
        for bad in ["/%", "/%2", "/%zz", "/%ff"] {
            assert_eq!(parts(bad), None, "{bad}");
        }
    }
}
