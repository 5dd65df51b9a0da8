//! Settings of workers and connectors, by the names of Kafka Connect and of the KIP draft (KAFKA-20367).

use crate::converter::Converter;
use crate::transforms::TransformationChain;
use crate::{ConnectError, Properties, RestartPolicy};
use std::time::Duration;

/// `share.delivery.semantics`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DeliverySemantics {
    /// Acknowledged after the sink has the record.
    #[default]
    AtLeastOnce,
    /// Output and acknowledgement are one Kafka transaction; for sinks that write to the same cluster.
    ExactlyOnce,
}

/// `errors.tolerance`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Tolerance {
    /// A bad record is released and fails the task, once the others of its batch have been put and accepted.
    #[default]
    None,
    /// A bad record is rejected, which sends it to the group's dead-letter queue where there is one.
    All,
}

/// Settings of a worker (`connect-distributed.properties`).
#[derive(Debug, Clone, Default)]
pub struct WorkerConfig {
    /// All properties of the file.
    pub properties: Properties,
}

impl WorkerConfig {
    /// From properties.
    ///
    /// # Errors
    /// Without `bootstrap.servers`, or with a `consumer.group.protocol` that is not `share`.
    pub fn new(properties: Properties) -> Result<Self, ConnectError> {
        if properties.get("bootstrap.servers").is_none_or(String::is_empty) {
            return Err(ConnectError::config("bootstrap.servers is missing in the worker's properties"));
        }
        Ok(WorkerConfig { properties })
    }
}

/// Settings of a connector, together with what its worker gives.
#[derive(Debug, Clone)]
pub struct ConnectorConfig {
    /// Name of the connector.
    pub name: String,
    /// `connector.class`
    pub class: String,
    /// `topics`
    pub topics: Vec<String>,
    /// `tasks.max` (default 1)
    pub tasks_max: usize,
    /// `share.group.id` (default `connect-<name>`)
    pub group_id: String,
    /// Whether acknowledgements wait for the next poll (`share.acknowledgement.mode=implicit`).
    pub implicit: bool,
    /// `share.delivery.semantics`
    pub semantics: DeliverySemantics,
    /// `share.acquisition.lock.timeout.ms`, which is `share.record.lock.duration.ms` of the group.
    pub lock_timeout: Option<Duration>,
    /// `share.max.delivery.count`, which is `share.delivery.count.limit` of the group. Where it is not set, a [`Worker`](crate::Worker)
    /// asks the group.
    pub max_delivery_count: Option<u32>,
    /// `errors.tolerance`
    pub tolerance: Tolerance,
    /// `errors.retry.timeout`: how long a put is tried again inside the renewed lock before its records are released.
    /// Default -1, for ever: each release costs a delivery, and at the group's limit the broker archives the record, so
    /// an outage of the sink longer than a few tries would lose it.
    pub retry_timeout: Option<Duration>,
    /// `errors.retry.delay.max.ms` (default 60 s)
    pub retry_delay_max: Duration,
    /// `task.restart.max`, `task.restart.backoff.ms`, `task.restart.backoff.max.ms`, of the connector or its worker.
    pub restart: RestartPolicy,
    /// `task.shutdown.graceful.timeout.ms` (default 5 s): how long a task that is restarted may take to end.
    pub shutdown_timeout: Duration,
    /// `key.converter`
    pub key_converter: Converter,
    /// `value.converter`
    pub value_converter: Converter,
    /// `header.converter`
    pub header_converter: Converter,
    /// `transforms`, `predicates` and the settings under their names.
    pub transforms: TransformationChain,
    /// All properties of the connector, as its tasks get them.
    pub properties: Properties,
    /// Consumer properties: the worker's `consumer.*`, then `consumer.override.*`.
    pub consumer: Properties,
    /// Producer properties: the worker's `producer.*`, then `producer.override.*`.
    pub producer: Properties,
}

impl ConnectorConfig {
    /// From a connector's JSON: `{"name": .., "config": {..}}` or the config alone with a `name` in it.
    ///
    /// # Errors
    /// JSON that is not of this form, and every setting that is wrong, by name.
    pub fn from_json(text: &str, worker: &WorkerConfig) -> Result<Self, ConnectError> {
        let json: serde_json::Value =
            serde_json::from_str(text).map_err(|e| ConnectError::config(format!("the connector is not JSON: {e}")))?;
        let object = json.as_object().ok_or_else(|| ConnectError::config("the connector is not a JSON object"))?;
        let config = match object.get("config") {
            Some(config) => config.as_object().ok_or_else(|| ConnectError::config("config is not a JSON object"))?,
            None => object,
        };
        let mut properties = Properties::new();
        for (name, value) in config {
            let text = match value {
                serde_json::Value::String(text) => text.clone(),
                serde_json::Value::Number(number) => number.to_string(),
                serde_json::Value::Bool(flag) => flag.to_string(),
                _ => return Err(ConnectError::config(format!("{name}: a text, number or boolean is expected"))),
            };
            properties.insert(name.clone(), text);
        }
        if let Some(name) = object.get("name").and_then(|n| n.as_str()) {
            properties.insert("name".into(), name.to_owned());
        }
        Self::new(properties, worker)
    }

    /// From properties.
    ///
    /// # Errors
    /// Every setting that is wrong or missing, by name.
    pub fn new(properties: Properties, worker: &WorkerConfig) -> Result<Self, ConnectError> {
        let get = |name: &str| properties.get(name).or_else(|| worker.properties.get(name)).map(|v| v.trim());
        let need = |name: &str| {
            get(name).filter(|v| !v.is_empty()).ok_or_else(|| ConnectError::config(format!("{name} is missing")))
        };
        check_protocol(&properties, worker)?;
        let name = need("name")?.to_owned();
        let topics: Vec<String> =
            need("topics")?.split(',').map(|t| t.trim().to_owned()).filter(|t| !t.is_empty()).collect();
        let mut merged = worker.properties.clone();
        merged.extend(properties.clone());
        let converter = |name| Converter::from_properties(name, &merged);
        let mut config = ConnectorConfig {
            class: need("connector.class")?.to_owned(),
            topics,
            tasks_max: number(get("tasks.max"), "tasks.max", 1, 1, 10_000)? as usize,
            group_id: get("share.group.id").map_or_else(|| format!("connect-{name}"), str::to_owned),
            implicit: choice(
                get("share.acknowledgement.mode"),
                "share.acknowledgement.mode",
                &["explicit", "implicit"],
            )? == 1,
            semantics: match choice(
                get("share.delivery.semantics"),
                "share.delivery.semantics",
                &["at-least-once", "exactly-once"],
            )? {
                1 => DeliverySemantics::ExactlyOnce,
                _ => DeliverySemantics::AtLeastOnce,
            },
            lock_timeout: optional(get("share.acquisition.lock.timeout.ms"), "share.acquisition.lock.timeout.ms")?
                .map(Duration::from_millis),
            max_delivery_count: optional(get("share.max.delivery.count"), "share.max.delivery.count")?
                .map(|n| u32::try_from(n).unwrap_or(u32::MAX)),
            tolerance: tolerance(get("errors.tolerance"))?,
            retry_timeout: match number(
                get("errors.retry.timeout"),
                "errors.retry.timeout",
                -1,
                -1,
                i64::from(i32::MAX),
            )? {
                -1 => None,
                ms => Some(Duration::from_millis(ms as u64)),
            },
            retry_delay_max: Duration::from_millis(number(
                get("errors.retry.delay.max.ms"),
                "errors.retry.delay.max.ms",
                60_000,
                1,
                i64::from(i32::MAX),
            )? as u64),
            restart: restart(&get)?,
            shutdown_timeout: millis(
                get("task.shutdown.graceful.timeout.ms"),
                "task.shutdown.graceful.timeout.ms",
                5_000,
            )?,
            key_converter: converter("key.converter")?,
            value_converter: converter("value.converter")?,
            header_converter: converter("header.converter")?,
            transforms: TransformationChain::from_properties(&properties)?,
            consumer: overrides("consumer.", worker, &properties),
            producer: overrides("producer.", worker, &properties),
            name,
            properties: properties.clone(),
        };
        crate::backend::agree(get, config.semantics, &mut config.consumer, &mut config.producer)?;
        config.check()?;
        Ok(config)
    }

    /// How often a record may be delivered: what the connector says, or the group, or else the default of brokers.
    pub(crate) fn delivery_limit(&self) -> u32 {
        self.max_delivery_count.unwrap_or(5)
    }

    fn check(&self) -> Result<(), ConnectError> {
        if self.semantics == DeliverySemantics::ExactlyOnce && self.implicit {
            return Err(ConnectError::config(
                "share.delivery.semantics=exactly-once needs share.acknowledgement.mode=explicit",
            ));
        }
        // What the driver sets itself: a value of the client's own would be lost without a word.
        let mode = self.consumer.get("share.acknowledgement.mode").map(|v| v.trim());
        let own = [
            (
                mode.is_some_and(|m| m != "explicit"),
                "consumer",
                "share.acknowledgement.mode",
                "share.acknowledgement.mode",
            ),
            (
                self.consumer.get("group.id").is_some_and(|g| *g != self.group_id),
                "consumer",
                "group.id",
                "share.group.id",
            ),
            (self.producer.contains_key("transactional.id"), "producer", "transactional.id", "name"),
        ];
        for (wrong, client, setting, instead) in own {
            if wrong {
                return Err(ConnectError::config(format!(
                    "{setting} of the tasks' {client} is set by the driver, and an override of it would not count: \
                     remove it, and set the connector's {instead}"
                )));
            }
        }
        Ok(())
    }
}

fn check_protocol(properties: &Properties, worker: &WorkerConfig) -> Result<(), ConnectError> {
    let protocol = properties
        .get("consumer.override.group.protocol")
        .or_else(|| worker.properties.get("consumer.group.protocol"))
        .map_or("consumer", |v| v.trim());
    if protocol == "share" {
        return Ok(());
    }
    Err(ConnectError::config(format!(
        "group protocol {protocol:?} is not driven here: set consumer.override.group.protocol=share on the connector, \
         or consumer.group.protocol=share on the worker"
    )))
}

/// Client properties: those of the worker with the prefix, then the connector's overrides. `group.protocol` is for the
/// driver, not for the client.
fn overrides(prefix: &str, worker: &WorkerConfig, connector: &Properties) -> Properties {
    let strip = |props: &Properties, prefix: &str| -> Vec<(String, String)> {
        props.iter().filter_map(|(n, v)| Some((n.strip_prefix(prefix)?.to_owned(), v.clone()))).collect()
    };
    let mut all = Properties::from([(
        "bootstrap.servers".to_owned(),
        worker.properties.get("bootstrap.servers").cloned().unwrap_or_default(),
    )]);
    all.extend(strip(&worker.properties, prefix).into_iter().filter(|(n, _)| !n.starts_with("override.")));
    all.extend(strip(connector, &format!("{prefix}override.")));
    all.remove("group.protocol");
    all
}

fn number(value: Option<&str>, name: &str, default: i64, min: i64, max: i64) -> Result<i64, ConnectError> {
    let Some(value) = value else { return Ok(default) };
    match value.parse::<i64>() {
        Ok(n) if (min..=max).contains(&n) => Ok(n),
        _ => Err(ConnectError::config(format!("{name}={value}: a number from {min} to {max} is expected"))),
    }
}

fn millis(value: Option<&str>, name: &str, default: i64) -> Result<Duration, ConnectError> {
    number(value, name, default, 1, i64::from(i32::MAX)).map(|ms| Duration::from_millis(ms as u64))
}

fn restart<'a>(get: &impl Fn(&str) -> Option<&'a str>) -> Result<RestartPolicy, ConnectError> {
    let of = |name: &str, default| millis(get(name), name, default);
    Ok(RestartPolicy {
        max: match number(get("task.restart.max"), "task.restart.max", 0, -1, i64::from(i32::MAX))? {
            -1 => None,
            n => u32::try_from(n).ok(),
        },
        backoff: of("task.restart.backoff.ms", 1_000)?,
        backoff_max: of("task.restart.backoff.max.ms", 60_000)?,
    })
}

fn optional(value: Option<&str>, name: &str) -> Result<Option<u64>, ConnectError> {
    if value.is_none() {
        return Ok(None);
    }
    number(value, name, 0, 1, i64::from(i32::MAX)).map(|n| Some(n as u64))
}

fn tolerance(value: Option<&str>) -> Result<Tolerance, ConnectError> {
    Ok(match choice(value, "errors.tolerance", &["none", "all"])? {
        1 => Tolerance::All,
        _ => Tolerance::None,
    })
}

fn choice(value: Option<&str>, name: &str, choices: &[&str]) -> Result<usize, ConnectError> {
    let Some(value) = value else { return Ok(0) };
    let at = choices.iter().position(|c| c.eq_ignore_ascii_case(value));
    at.ok_or_else(|| ConnectError::config(format!("{name}={value}: {} is expected", choices.join(" or "))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn worker() -> WorkerConfig {
        let properties =
            [("bootstrap.servers", "h:1"), ("consumer.max.poll.records", "50"), ("consumer.group.protocol", "share")];
        WorkerConfig::new(properties.map(|(n, v)| (n.to_owned(), v.to_owned())).into()).unwrap()
    }

    fn with(extra: &str) -> Result<ConnectorConfig, ConnectError> {
        let text =
            format!(r#"{{"name":"s","config":{{"connector.class":"file","topics":"a, b","tasks.max":4{extra}}}}}"#);
        ConnectorConfig::from_json(&text, &worker())
    }

    #[test]
    fn defaults_and_overrides() {
        let config = with(r#","consumer.override.max.poll.records":"7""#).unwrap();
        assert_eq!((config.group_id.as_str(), config.tasks_max), ("connect-s", 4));
        assert_eq!(config.topics, ["a", "b"]);
        assert_eq!(config.consumer["max.poll.records"], "7");
        assert!(!config.consumer.contains_key("group.protocol"));
        assert_eq!(config.retry_timeout, None);
    }

    #[test]
    fn r025_an_override_of_what_the_driver_sets_is_refused_by_name() {
        for (extra, word) in [
            (r#","consumer.override.share.acknowledgement.mode":"implicit""#, "connector's share.acknowledgement.mode"),
            (r#","consumer.override.group.id":"other""#, "connector's share.group.id"),
            (r#","producer.override.transactional.id":"t""#, "connector's name"),
        ] {
            let error = with(extra).unwrap_err().to_string();
            assert!(error.contains(word), "{extra}: {error}");
        }
        let properties = [
            ("bootstrap.servers", "h:1"),
            ("consumer.group.protocol", "share"),
            ("consumer.share.acknowledgement.mode", "implicit"),
        ];
        let worker = WorkerConfig::new(properties.map(|(n, v)| (n.to_owned(), v.to_owned())).into()).unwrap();
        let text = r#"{"name":"s","config":{"connector.class":"file","topics":"a"}}"#;
        assert!(ConnectorConfig::from_json(text, &worker).is_err());
        // The same as the driver's is no contradiction.
        let same =
            r#","consumer.override.share.acknowledgement.mode":"explicit","consumer.override.group.id":"connect-s""#;
        assert!(with(same).is_ok());
    }

    #[test]
    fn what_one_client_is_told_of_the_ledger_both_are() {
        let exactly_once = r#","share.delivery.semantics":"exactly-once""#;
        let backend = "share.ack.transaction.backend";
        let config = with(exactly_once).unwrap();
        assert_eq!((config.consumer[backend].as_str(), config.producer[backend].as_str()), ("auto", "auto"));
        let told = format!(r#"{exactly_once},"{backend}":"ledger","consumer.override.share.ack.ledger.topic":"mine""#);
        let config = with(&told).unwrap();
        for properties in [&config.consumer, &config.producer] {
            assert_eq!(
                (properties[backend].as_str(), properties["share.ack.ledger.topic"].as_str()),
                ("ledger", "mine")
            );
        }
        for (extra, words) in [
            (r#","producer.override.share.ack.ledger.topic":"other""#, ["share.ack.ledger.topic", "mine", "other"]),
            (r#","share.ack.ledger.topic":"third""#, ["share.ack.ledger.topic", "third", "mine"]),
        ] {
            let error = with(&format!("{told}{extra}")).unwrap_err().to_string();
            assert!(words.iter().all(|w| error.contains(w)), "{error}");
        }
        for (value, word) in [("none", "exactly-once"), ("sometimes", "auto, native, ledger, both or none")] {
            let error = with(&format!(r#"{exactly_once},"{backend}":"{value}""#)).unwrap_err().to_string();
            assert!(error.contains(backend) && error.contains(word), "{error}");
        }
        // A member of a group whose others use the ledger looks at it too; at-least-once outputs know nothing of it.
        let config = with(&format!(r#","{backend}":"ledger""#)).unwrap();
        assert_eq!(config.consumer[backend], "ledger");
        assert!(!config.producer.contains_key(backend));
    }

    #[test]
    fn wrong_settings_are_named() {
        for (extra, word) in [
            (r#","consumer.override.group.protocol":"classic""#, "classic"),
            (r#","tasks.max":"0""#, "tasks.max"),
            (r#","errors.tolerance":"some""#, "errors.tolerance"),
            (r#","share.delivery.semantics":"exactly-once","share.acknowledgement.mode":"implicit""#, "explicit"),
            (r#","share.acquisition.lock.timeout.ms":"soon""#, "share.acquisition.lock.timeout.ms"),
            (r#","task.restart.max":"often""#, "task.restart.max"),
            (r#","task.restart.backoff.ms":0"#, "task.restart.backoff.ms"),
            (r#","value.converter":"avro""#, "value.converter"),
            (r#","x":[1]"#, "x"),
        ] {
            let error = with(extra).unwrap_err().to_string();
            assert!(error.contains(word), "{extra}: {error}");
        }
        assert!(ConnectorConfig::from_json("[]", &worker()).is_err());
        assert!(ConnectorConfig::from_json("{", &worker()).is_err());
    }
}
