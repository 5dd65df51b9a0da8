//! Settings of workers and connectors, by the names of Kafka Connect and of the KIP draft (KAFKA-20367).

use crate::converter::Converter;
use crate::problems::{Problem, Problems};
use crate::transforms::TransformationChain;
use crate::{ConnectError, ExactlyOnceSupport, Properties, RestartPolicy};
use std::fmt;
use std::time::Duration;

/// `share.delivery.semantics`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DeliverySemantics {
    /// Acknowledged after the sink has the record.
    #[default]
    AtLeastOnce,
    /// Output and acknowledgement are one Kafka transaction, for sinks that write to the same cluster; or the sink stores
    /// with its output which records it has, and passes over them when they come again.
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

/// Properties for logs: what may hold a secret is not shown.
pub(crate) struct Redacted<'a>(pub(crate) &'a Properties);

impl fmt::Debug for Redacted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let secret = |name: &str| {
            let name = name.to_ascii_lowercase();
            ["password", "secret", "token", "credential", "jaas", "private.key", "keystore.key", "connection.url"]
                .iter()
                .any(|w| name.contains(w))
        };
        f.debug_map().entries(self.0.iter().map(|(n, v)| (n, if secret(n) { "[hidden]" } else { v }))).finish()
    }
}

/// Settings of a worker (`connect-distributed.properties`).
#[derive(Clone, Default)]
pub struct WorkerConfig {
    /// All properties of the file.
    pub properties: Properties,
}

/// Without secrets.
impl fmt::Debug for WorkerConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkerConfig").field("properties", &Redacted(&self.properties)).finish()
    }
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
#[derive(Clone)]
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
    /// `task.put.timeout.ms` (default 5 minutes, which is Connect's `max.poll.interval.ms`; -1 is none): how long one put or
    /// flush may take. One that takes longer is cancelled, its records are released, and the task fails.
    pub put_timeout: Option<Duration>,
    /// `offset.flush.interval.ms` (default 60 s): how often a sink that gets no records is flushed. Others are flushed before
    /// each acknowledgement.
    pub flush_interval: Duration,
    /// `errors.deadletterqueue.topic.name`: the group's, where the broker writes rejected records (Kafka 4.4).
    pub dead_letter_topic: Option<String>,
    /// `errors.deadletterqueue.topic.replication.factor`: of that topic, where it has to be created; the broker's default
    /// where it is not set.
    pub dead_letter_replication: Option<i16>,
    /// `key.converter`
    pub key_converter: Converter,
    /// `value.converter`
    pub value_converter: Converter,
    /// `header.converter`
    pub header_converter: Converter,
    /// `transforms`, `predicates` and the settings under their names.
    pub transforms: TransformationChain,
    /// `schemas.cache.size` of the converters of keys, values and headers (default 1000): schemas of JSON that are kept.
    pub(crate) schemas_cache_sizes: [usize; 3],
    /// All properties of the connector, as its tasks get them.
    pub properties: Properties,
    /// Consumer properties: the worker's `consumer.*`, then `consumer.override.*`.
    pub consumer: Properties,
    /// Producer properties: the worker's `producer.*`, then `producer.override.*`.
    pub producer: Properties,
    /// All properties of the worker.
    pub(crate) worker: Properties,
    /// How exactly-once is kept.
    pub(crate) support: ExactlyOnceSupport,
    /// `share.ack.transaction.backend` is what it is because nobody has said anything.
    pub(crate) backend_by_default: bool,
}

/// Without secrets.
impl fmt::Debug for ConnectorConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectorConfig")
            .field("name", &self.name)
            .field("class", &self.class)
            .field("topics", &self.topics)
            .field("tasks_max", &self.tasks_max)
            .field("group_id", &self.group_id)
            .field("semantics", &self.semantics)
            .field("properties", &Redacted(&self.properties))
            .field("consumer", &Redacted(&self.consumer))
            .field("producer", &Redacted(&self.producer))
            .finish_non_exhaustive()
    }
}

impl ConnectorConfig {
    /// From a connector's JSON: `{"name": .., "config": {..}}` or the config alone with a `name` in it.
    ///
    /// # Errors
    /// JSON that is not of this form, and every setting that is wrong, by name.
    pub fn from_json(text: &str, worker: &WorkerConfig) -> Result<Self, ConnectError> {
        Self::new(Self::properties_of(text)?, worker)
    }

    /// The properties in a connector's JSON, as [`ConnectorConfig::from_json`] reads them.
    ///
    /// # Errors
    /// JSON that is not of this form.
    pub fn properties_of(text: &str) -> Result<Properties, ConnectError> {
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
        Ok(properties)
    }

    /// From properties.
    ///
    /// # Errors
    /// Every setting that is wrong or missing, by name.
    pub fn new(properties: Properties, worker: &WorkerConfig) -> Result<Self, ConnectError> {
        let (config, problems) = Self::read(properties, worker);
        if problems.is_empty() {
            return Ok(config);
        }
        let all: Vec<String> = problems.into_iter().map(|p| p.message).collect();
        Err(ConnectError::config(all.join("; ")))
    }

    /// From properties, with all that is wrong in them; what is wrong has its default.
    pub(crate) fn read(properties: Properties, worker: &WorkerConfig) -> (Self, Vec<Problem>) {
        let mut problems = Problems::default();
        let source = properties.clone();
        let get = |name: &str| source.get(name).or_else(|| worker.properties.get(name)).map(|v| v.trim());
        problems.check("consumer.override.group.protocol", check_protocol(&properties, worker));
        let name = problems.need("name", get("name"));
        let topics = problems.need("topics", get("topics"));
        let mut config = ConnectorConfig {
            class: problems.need("connector.class", get("connector.class")),
            topics: topics.split(',').map(|t| t.trim().to_owned()).filter(|t| !t.is_empty()).collect(),
            group_id: get("share.group.id").map_or_else(|| format!("connect-{name}"), str::to_owned),
            consumer: overrides("consumer.", worker, &properties),
            producer: overrides("producer.", worker, &properties),
            name,
            properties,
            worker: worker.properties.clone(),
            support: ExactlyOnceSupport::KafkaTransaction,
            ..ConnectorConfig::default()
        };
        config.read_delivery(&get, &mut problems);
        config.read_times(&get, &mut problems);
        config.read_converters(worker, &mut problems);
        let agreed = crate::backend::agree(get, config.semantics, &mut config.consumer, &mut config.producer);
        config.backend_by_default = problems.or("share.ack.transaction.backend", agreed, false);
        config.check(&mut problems);
        (config, problems.0)
    }

    fn read_delivery<'a>(&mut self, get: &impl Fn(&str) -> Option<&'a str>, problems: &mut Problems) {
        let max = i64::from(i32::MAX);
        self.tasks_max = problems.number(get, "tasks.max", 1, (1, 10_000)) as usize;
        self.implicit = problems.choice(get, "share.acknowledgement.mode", &["explicit", "implicit"]) == 1;
        self.semantics = match problems.choice(get, "share.delivery.semantics", &["at-least-once", "exactly-once"]) {
            1 => DeliverySemantics::ExactlyOnce,
            _ => DeliverySemantics::AtLeastOnce,
        };
        self.tolerance = match problems.choice(get, "errors.tolerance", &["none", "all"]) {
            1 => Tolerance::All,
            _ => Tolerance::None,
        };
        let lock = problems.optional(get, "share.acquisition.lock.timeout.ms", (1, max));
        self.lock_timeout = lock.map(Duration::from_millis);
        let count = problems.optional(get, "share.max.delivery.count", (1, max));
        self.max_delivery_count = count.map(|n| u32::try_from(n).unwrap_or(u32::MAX));
        let topic = get("errors.deadletterqueue.topic.name").filter(|t| !t.is_empty());
        self.dead_letter_topic = topic.map(str::to_owned);
        let factor =
            problems.optional(get, "errors.deadletterqueue.topic.replication.factor", (1, i64::from(i16::MAX)));
        self.dead_letter_replication = factor.and_then(|n| i16::try_from(n).ok());
    }

    fn read_times<'a>(&mut self, get: &impl Fn(&str) -> Option<&'a str>, problems: &mut Problems) {
        let max = i64::from(i32::MAX);
        let forever = |ms: i64| u64::try_from(ms).ok().map(Duration::from_millis);
        self.retry_timeout = forever(problems.number(get, "errors.retry.timeout", -1, (-1, max)));
        self.retry_delay_max = problems.millis(get, "errors.retry.delay.max.ms", 60_000);
        self.restart = RestartPolicy {
            max: u32::try_from(problems.number(get, "task.restart.max", 0, (-1, max))).ok(),
            backoff: problems.millis(get, "task.restart.backoff.ms", 1_000),
            backoff_max: problems.millis(get, "task.restart.backoff.max.ms", 60_000),
        };
        self.shutdown_timeout = problems.millis(get, "task.shutdown.graceful.timeout.ms", 5_000);
        self.put_timeout = match problems.number(get, "task.put.timeout.ms", 300_000, (-1, max)) {
            0 => {
                let text = "task.put.timeout.ms=0: no put ends in no time; -1 is no limit".to_owned();
                problems.0.push(Problem { setting: "task.put.timeout.ms".into(), message: text });
                None
            }
            ms => forever(ms),
        };
        self.flush_interval = problems.millis(get, "offset.flush.interval.ms", 60_000);
    }

    fn read_converters(&mut self, worker: &WorkerConfig, problems: &mut Problems) {
        let mut merged = worker.properties.clone();
        merged.extend(self.properties.clone());
        let get = |name: &str| merged.get(name).map(|v| v.trim());
        let mut converter = |at: usize, name: &str| {
            let cache = format!("{name}.schemas.cache.size");
            self.schemas_cache_sizes[at] = problems.number(&get, &cache, 1_000, (0, 1_000_000)) as usize;
            problems.or(name, Converter::from_properties(name, &merged), Converter::Bytes)
        };
        self.key_converter = converter(0, "key.converter");
        self.value_converter = converter(1, "value.converter");
        self.header_converter = converter(2, "header.converter");
        let chain = TransformationChain::from_properties(&self.properties);
        self.transforms = problems.or("transforms", chain, TransformationChain::default());
    }

    /// How often a record may be delivered: what the connector says, or the group, or else the default of brokers.
    pub(crate) fn delivery_limit(&self) -> u32 {
        self.max_delivery_count.unwrap_or(5)
    }

    /// Exactly-once as the sink can.
    pub(crate) fn exactly_once(&mut self, support: ExactlyOnceSupport) -> Result<(), ConnectError> {
        self.support = support;
        match support {
            ExactlyOnceSupport::KafkaTransaction => {}
            ExactlyOnceSupport::SourceOffsets => {
                // No acknowledgement goes into a transaction: the consumer need not look at any ledger.
                if self.backend_by_default {
                    self.consumer.remove(crate::backend::BACKEND);
                }
            }
            ExactlyOnceSupport::Unsupported => {
                return Err(ConnectError::config(format!(
                    "share.delivery.semantics=exactly-once: the sink {} can only be at-least-once",
                    self.class
                )));
            }
        }
        Ok(())
    }

    /// Whether output and acknowledgements are one Kafka transaction.
    pub(crate) fn is_transactional(&self) -> bool {
        self.semantics == DeliverySemantics::ExactlyOnce && self.support == ExactlyOnceSupport::KafkaTransaction
    }

    fn check(&self, problems: &mut Problems) {
        if self.semantics == DeliverySemantics::ExactlyOnce && self.implicit {
            let text = "share.delivery.semantics=exactly-once needs share.acknowledgement.mode=explicit";
            problems.say("share.acknowledgement.mode", text);
        }
        if self.dead_letter_replication.is_some() && self.dead_letter_topic.is_none() {
            let name = "errors.deadletterqueue.topic.replication.factor";
            problems.say(name, format!("{name} counts for a topic that errors.deadletterqueue.topic.name must name"));
        }
        if let Some(topic) = self.dead_letter_topic.as_ref().filter(|t| self.topics.contains(t)) {
            let text = format!("errors.deadletterqueue.topic.name={topic}: the connector reads this topic");
            problems.say("errors.deadletterqueue.topic.name", text);
        }
        // What the driver sets itself: a value of the client's own would be lost without a word.
        let mode = self.consumer.get("share.acknowledgement.mode").map(|v| v.trim());
        let mode = mode.is_some_and(|m| m != "explicit");
        let group = self.consumer.get("group.id").is_some_and(|g| *g != self.group_id);
        let id = self.producer.contains_key("transactional.id");
        for (wrong, client, setting, instead) in [
            (mode, "consumer", "share.acknowledgement.mode", "share.acknowledgement.mode"),
            (group, "consumer", "group.id", "share.group.id"),
            (id, "producer", "transactional.id", "name"),
        ] {
            if wrong {
                let text = format!(
                    "{setting} of the tasks' {client} is set by the driver, and an override of it would not count: \
                     remove it, and set the connector's {instead}"
                );
                problems.say(&format!("{client}.override.{setting}"), text);
            }
        }
    }
}

impl Default for ConnectorConfig {
    fn default() -> Self {
        ConnectorConfig {
            name: String::new(),
            class: String::new(),
            topics: Vec::new(),
            tasks_max: 1,
            group_id: String::new(),
            implicit: false,
            semantics: DeliverySemantics::default(),
            lock_timeout: None,
            max_delivery_count: None,
            tolerance: Tolerance::default(),
            retry_timeout: None,
            retry_delay_max: Duration::from_secs(60),
            restart: RestartPolicy::default(),
            shutdown_timeout: Duration::from_secs(5),
            put_timeout: Some(Duration::from_secs(300)),
            flush_interval: Duration::from_secs(60),
            dead_letter_topic: None,
            dead_letter_replication: None,
            key_converter: Converter::Bytes,
            value_converter: Converter::Bytes,
            header_converter: Converter::Bytes,
            transforms: TransformationChain::default(),
            schemas_cache_sizes: [1_000; 3],
            properties: Properties::new(),
            consumer: Properties::new(),
            producer: Properties::new(),
            worker: Properties::new(),
            support: ExactlyOnceSupport::default(),
            backend_by_default: false,
        }
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
    fn secrets_are_not_shown() {
        let config = with(
            r#","connection.password":"s3cret","connection.url":"postgres://u:s3cret@h/d","consumer.override.sasl.jaas.config":"s3cret""#,
        );
        let shown = format!("{:?}", config.unwrap());
        assert!(shown.contains("connection.password") && shown.contains("tasks_max: 4"), "{shown}");
        assert!(!shown.contains("s3cret"), "{shown}");
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
