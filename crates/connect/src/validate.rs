//! Settings looked at without a cluster: everything that is wrong with them at once.

use crate::settings::{
    CLIENT_NAMES, CONNECTOR_SETTINGS, CONSUMER_NAMES, PREFIXES, WITHOUT_EFFECT, WORKER_SETTINGS, nearest,
};
use crate::{ConnectorConfig, DeliverySemantics, Problem, Properties, SinkConnector, WorkerConfig};
use kafka_share::{KafkaShareConsumer, PropertyEffect, TransactionalProducer};

/// What is to be said of a connector's settings and its worker's.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Validation {
    /// Name of the connector; empty where it has none.
    pub connector: String,
    /// What is wrong: the connector does not start, or does not do what its settings say.
    pub errors: Vec<Problem>,
    /// What has no effect, and why.
    pub warnings: Vec<Problem>,
}

impl Validation {
    fn error(&mut self, setting: &str, message: impl Into<String>) {
        self.errors.push(Problem { setting: setting.to_owned(), message: message.into() });
    }

    fn warn(&mut self, setting: &str, message: impl Into<String>) {
        self.warnings.push(Problem { setting: setting.to_owned(), message: message.into() });
    }
}

/// Checks a connector and its worker: values, names that nobody knows, settings that contradict each other, and what the sink
/// itself says. `connector` makes the sink of a class. Nothing is asked over the network, so that topics, rights and what a
/// cluster offers are not looked at.
pub fn validate(
    worker: &Properties,
    properties: &Properties,
    connector: impl FnOnce(&str) -> Result<Box<dyn SinkConnector>, crate::ConnectError>,
) -> Validation {
    let mut all = Validation::default();
    if worker.get("bootstrap.servers").is_none_or(|s| s.trim().is_empty()) {
        all.error("bootstrap.servers", "bootstrap.servers is missing in the worker's properties");
    }
    let (mut config, problems) =
        ConnectorConfig::read(properties.clone(), &WorkerConfig { properties: worker.clone() });
    all.connector.clone_from(&config.name);
    all.errors.extend(problems);
    let mut own = None;
    if !config.class.is_empty() {
        match connector(&config.class) {
            Ok(mut sink) => {
                own = sink.settings();
                if let Err(error) = sink.start(&config.properties) {
                    all.error("connector.class", error.to_string());
                }
                if config.semantics == DeliverySemantics::ExactlyOnce
                    && let Err(error) = config.exactly_once(sink.exactly_once_support())
                {
                    all.error("share.delivery.semantics", error.to_string());
                }
            }
            Err(error) => all.error("connector.class", error.to_string()),
        }
    }
    names(&mut all, worker, properties, own);
    consumer(&mut all, &config, worker);
    producer(&mut all, &config, worker);
    all
}

/// Settings of a connector, its worker and their clients that nobody knows or that have no effect, with the name that may be meant.
/// `sink`: the connector's own. [`Worker::start`](crate::Worker::start) writes them to the log.
#[must_use]
pub fn unknown_settings(config: &ConnectorConfig, sink: &dyn SinkConnector) -> Vec<Problem> {
    let mut all = Validation::default();
    names(&mut all, &config.worker, &config.properties, sink.settings());
    consumer(&mut all, config, &config.worker);
    producer(&mut all, config, &config.worker);
    all.errors.into_iter().chain(all.warnings).collect()
}

/// Names that nobody knows.
fn names(all: &mut Validation, worker: &Properties, connector: &Properties, sink: Option<&[&str]>) {
    let known: Vec<&str> = CONNECTOR_SETTINGS.iter().map(|s| s.name).collect();
    let of_worker = || WORKER_SETTINGS.iter().map(|s| s.name);
    let by_prefix = |name: &str| PREFIXES.iter().any(|p| name.starts_with(p));
    for name in worker.keys().filter(|n| !by_prefix(n)) {
        // What is said for all connectors may be said here.
        if known.contains(&name.as_str()) || of_worker().any(|k| k == name) {
            continue;
        }
        unknown(all, "worker", name, known.iter().copied().chain(of_worker()), true);
    }
    let own = sink.unwrap_or_default();
    for name in connector.keys().filter(|n| !by_prefix(n)) {
        if known.contains(&name.as_str()) || own.contains(&name.as_str()) {
            continue;
        }
        if of_worker().any(|k| k == name) {
            all.error(name, format!("{name} is a setting of the worker, and has no effect on a connector"));
            continue;
        }
        unknown(all, "connector", name, known.iter().chain(own).copied(), sink.is_some());
    }
    for name in worker.keys().chain(connector.keys()).filter(|n| by_prefix(n)) {
        let part = |suffix: &str| name.strip_suffix(suffix).is_some_and(|n| n.ends_with(".converter"));
        if name.contains(".converter.") && !part(".schemas.enable") && !part(".schemas.cache.size") {
            all.warn(name, format!("{name} has no effect: converters have schemas.enable and schemas.cache.size"));
        }
    }
}

/// `sure`: all names are known, so that this one has no effect.
fn unknown<'a>(all: &mut Validation, whose: &str, name: &str, known: impl Iterator<Item = &'a str>, sure: bool) {
    if let Some((_, reason)) = WITHOUT_EFFECT.iter().find(|(n, _)| *n == name) {
        return all.warn(name, format!("{name} has no effect here: {reason}"));
    }
    match nearest(name, known) {
        Some(near) => all.error(name, format!("{name} is no setting of a {whose}: is {near} meant?")),
        None if sure => all.error(name, format!("{name} is no setting of a {whose}")),
        None => {}
    }
}

/// Where a client's property was set: on the connector, or else its worker.
fn origin(config: &ConnectorConfig, worker: &Properties, client: &str, name: &str) -> String {
    let (own, of_worker) = (format!("{client}.override.{name}"), format!("{client}.{name}"));
    let told = config.properties.contains_key(&own);
    let plain = !told && !worker.contains_key(&of_worker);
    if told {
        own
    } else if plain {
        name.to_owned()
    } else {
        of_worker
    }
}

fn consumer(all: &mut Validation, config: &ConnectorConfig, worker: &Properties) {
    let mut builder = KafkaShareConsumer::builder("", &config.group_id);
    let mut well = true;
    for (name, value) in &config.consumer {
        let setting = origin(config, worker, "consumer", name);
        match builder.set_and_tell(name, value) {
            Ok(PropertyEffect::Taken) => {}
            Ok(PropertyEffect::Without(reason)) => all.warn(&setting, format!("{setting} has no effect: {reason}")),
            Ok(_) => {
                let near = nearest(name, CONSUMER_NAMES.iter().chain(CLIENT_NAMES).copied());
                let near = near.map_or_else(String::new, |near| format!(": is {near} meant?"));
                all.error(&setting, format!("{setting} is no property of a share consumer{near}"));
            }
            Err(error) => {
                well = false;
                all.error(&setting, format!("{setting}: {error}"));
            }
        }
    }
    if let Err(error) = builder.validate()
        && well
    {
        all.error("consumer.override", format!("the consumers of tasks: {error}"));
    }
}

fn producer(all: &mut Validation, config: &ConnectorConfig, worker: &Properties) {
    for (name, value) in &config.producer {
        let setting = origin(config, worker, "producer", name);
        if let Err(error) = TransactionalProducer::builder("", "validated").set(name, value) {
            all.error(&setting, format!("{setting}: {error}"));
        }
    }
}
