//! What the REST interface answers, in Connect's shapes.

use super::workers::{Connector, Standing, Workers};
use super::{mask, prometheus};
use kafka_share_connect::settings::{CONNECTOR_SETTINGS, Setting};
use kafka_share_connect::{
    ConnectError, ConnectorConfig, Properties, TargetState, TaskState, TaskStatus, sinks, validate,
};
use serde_json::{Map, Value, json};
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
            json!({ "version": env!("CARGO_PKG_VERSION"), "commit": "unknown", "kafka_cluster_id": workers.cluster_id }),
        ),
        ("GET", ["health"]) => Answer::json(200, json!({ "status": "healthy", "message": "the worker runs" })),
        ("GET", ["metrics"]) => Answer { status: 200, body: Body::Page(prometheus::page(workers).await) },
        ("GET", ["connectors"]) => list(workers, question).await,
        ("GET", ["connector-plugins"]) => plugins(),
        ("PUT", ["connector-plugins", class, "config", "validate"]) => validated(question, class),
        (_, ["connectors", name, rest @ ..]) => match workers.named(name) {
            Some(connector) => of_connector(workers, connector, question, rest).await,
            None => Answer::error(404, format!("Connector {name} not found")),
        },
        (_, [] | ["health" | "metrics" | "connectors" | "connector-plugins"]) => {
            Answer::error(405, format!("{} is not for {}: connectors come from files", question.method, question.path))
        }
        _ => Answer::error(404, format!("there is no {}", question.path)),
    }
}

async fn of_connector(workers: &Workers, connector: &Arc<Connector>, question: &Question<'_>, rest: &[&str]) -> Answer {
    let name = &connector.config.name;
    match (question.method, rest) {
        ("GET", []) => Answer::json(200, info(connector, &connector.standing().await)),
        ("GET", ["config"]) => Answer::json(200, mask::properties(&connector.config.properties)),
        ("GET", ["status"]) => Answer::json(200, status(workers, connector, &connector.standing().await)),
        ("GET", ["topics"]) => Answer::json(200, json!({ name.as_str(): { "topics": connector.config.topics } })),
        ("GET", ["tasks"]) => {
            let config = mask::properties(&connector.config.properties);
            let count = connector.standing().await.tasks.len();
            let tasks = (0..count).map(|t| json!({ "id": { "connector": name, "task": t }, "config": config }));
            Answer::json(200, tasks.collect())
        }
        ("GET", ["tasks", number, "status"]) => {
            let standing = connector.standing().await;
            match number.parse().ok().and_then(|n: usize| standing.tasks.get(n)) {
                Some(task) => Answer::json(200, task_state(workers, connector, task)),
                None => Answer::error(404, format!("No status found for task {name}-{number}")),
            }
        }
        ("POST", ["restart"]) => restart(workers, connector, question).await,
        ("POST", ["tasks", number, "restart"]) => {
            let count = connector.standing().await.tasks.len();
            match number.parse().ok().filter(|n: &usize| *n < count) {
                Some(task) => acted(204, 409, connector.restart(task).await),
                None => Answer::error(404, format!("Unknown task: {name}-{number}")),
            }
        }
        ("PUT", ["pause"]) => {
            connector.pause().await;
            Answer::nothing(202)
        }
        ("PUT", ["resume"]) => acted(202, 500, connector.resume().await),
        ("PUT", ["stop"]) => {
            // Puts that are under way may take their time.
            let connector = Arc::clone(connector);
            tokio::spawn(async move { connector.stop().await });
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

async fn list(workers: &Workers, question: &Question<'_>) -> Answer {
    let (with_status, with_info) = (question.expands("status"), question.expands("info"));
    if !with_status && !with_info {
        return Answer::json(200, workers.connectors.iter().map(|c| json!(c.config.name)).collect());
    }
    let mut all = Map::new();
    for connector in &workers.connectors {
        let (standing, mut one) = (connector.standing().await, Map::new());
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

/// With `includeTasks`, tasks start anew; the connector itself is nothing that could fail and be restarted.
async fn restart(workers: &Workers, connector: &Connector, question: &Question<'_>) -> Answer {
    if !question.flag("includeTasks") {
        return Answer::nothing(204);
    }
    let only_failed = question.flag("onlyFailed");
    for task in connector.standing().await.tasks {
        if only_failed && !matches!(task.state, TaskState::Failed(_)) {
            continue;
        }
        if let Err(error) = connector.restart(task.task).await {
            return Answer::error(409, error.to_string());
        }
    }
    Answer::json(202, status(workers, connector, &connector.standing().await))
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
    let state = match standing.target {
        TargetState::Started => "RUNNING",
        TargetState::Paused => "PAUSED",
        TargetState::Stopped => "STOPPED",
    };
    json!({
        "name": connector.config.name,
        "connector": { "state": state, "worker_id": workers.id, "version": connector.version },
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

fn validated(question: &Question<'_>, class: &str) -> Answer {
    let text = String::from_utf8_lossy(question.body);
    let properties = match ConnectorConfig::properties_of(&text) {
        Ok(properties) => properties,
        Err(error) => return Answer::error(400, error.to_string()),
    };
    match properties.get("connector.class") {
        Some(other) if other != class => {
            let text = format!("connector.class={other} in the body, and {class} in the path");
            return Answer::error(400, text);
        }
        _ => {}
    }
    let mut properties = properties;
    properties.insert("connector.class".into(), class.to_owned());
    let result = validate(question.worker, &properties, sinks::connector);
    let shown = mask::properties(&properties);
    let mut names: Vec<String> = CONNECTOR_SETTINGS.iter().map(|s| s.name.to_owned()).collect();
    let more = result.errors.iter().map(|p| &p.setting).chain(properties.keys());
    for name in more {
        if !names.contains(name) {
            names.push(name.clone());
        }
    }
    let config = |name: &String| {
        let of_this = result.errors.iter().filter(|p| p.setting == *name);
        let errors: Vec<String> = of_this.map(|p| mask::text(&p.message)).collect();
        let known = CONNECTOR_SETTINGS.iter().find(|s| s.name == name);
        json!({
            "definition": definition(name, known),
            "value": {
                "name": name, "value": shown.get(name), "recommended_values": [], "errors": errors, "visible": true,
            },
        })
    };
    let body = json!({
        "name": class, "error_count": result.errors.len(), "groups": [],
        "configs": names.iter().map(config).collect::<Vec<_>>(),
    });
    Answer::json(200, body)
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
