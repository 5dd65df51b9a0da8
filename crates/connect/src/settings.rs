//! The settings of workers and connectors: what there is to look a name up in.

/// A setting that the driver knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Setting {
    /// Its name.
    pub name: &'static str,
    /// Its type, in Connect's words.
    pub kind: &'static str,
    /// Its default, where it has one.
    pub default: Option<&'static str>,
    /// What it is for.
    pub doc: &'static str,
}

const fn setting(name: &'static str, kind: &'static str, default: Option<&'static str>, doc: &'static str) -> Setting {
    Setting { name, kind, default, doc }
}

/// Settings of connectors; a worker may have those that need not differ between its connectors.
pub const CONNECTOR_SETTINGS: &[Setting] = &[
    setting("name", "STRING", None, "name of the connector"),
    setting("connector.class", "STRING", None, "which sink: file, kafka, .."),
    setting("topics", "LIST", None, "topics to read"),
    setting("tasks.max", "INT", Some("1"), "how many tasks run; more than there are partitions have work too"),
    setting("share.group.id", "STRING", None, "share group of the tasks; connect-<name> by default"),
    setting(
        "share.acknowledgement.mode",
        "STRING",
        Some("explicit"),
        "explicit: acknowledgements are waited for; implicit: they go with the next poll",
    ),
    setting("share.delivery.semantics", "STRING", Some("at-least-once"), "at-least-once or exactly-once"),
    setting("share.acquisition.lock.timeout.ms", "LONG", None, "share.record.lock.duration.ms of the group"),
    setting("share.max.delivery.count", "INT", None, "share.delivery.count.limit of the group"),
    setting("share.ack.transaction.backend", "STRING", Some("auto"), "exactly-once: auto, native, ledger or both"),
    setting("share.ack.ledger.topic", "STRING", Some("share-ack-ledger"), "exactly-once: topic of the ledger"),
    setting("share.ack.ledger.sweep.interval.ms", "LONG", None, "exactly-once: how often the ledger is swept"),
    setting("ledger.auto.create", "BOOLEAN", Some("false"), "exactly-once: whether a missing ledger is created"),
    setting("errors.tolerance", "STRING", Some("none"), "none: a bad record fails the task; all: it is rejected"),
    setting("errors.retry.timeout", "LONG", Some("-1"), "ms for which a put is tried again; -1 without end"),
    setting("errors.retry.delay.max.ms", "LONG", Some("60000"), "longest wait between two tries"),
    setting("errors.deadletterqueue.topic.name", "STRING", None, "dead letter queue of the group (Kafka 4.4)"),
    setting("errors.deadletterqueue.topic.replication.factor", "SHORT", None, "of that topic, where it is created"),
    setting("task.restart.max", "INT", Some("0"), "how often in a row a failed task is started again; -1 without end"),
    setting("task.restart.backoff.ms", "LONG", Some("1000"), "wait before the first restart, doubled each time"),
    setting("task.restart.backoff.max.ms", "LONG", Some("60000"), "longest wait before a restart"),
    setting("task.put.timeout.ms", "LONG", Some("300000"), "how long one put or flush may take; -1 without end"),
    setting("task.shutdown.graceful.timeout.ms", "LONG", Some("5000"), "how long a put may go on after a stop"),
    setting("offset.flush.interval.ms", "LONG", Some("60000"), "how often a sink without records is flushed"),
    setting("key.converter", "STRING", Some("bytes"), "how keys are read"),
    setting("value.converter", "STRING", Some("bytes"), "how values are read"),
    setting("header.converter", "STRING", Some("bytes"), "how headers are read"),
    setting("transforms", "LIST", Some(""), "names of transforms, in their order"),
    setting("predicates", "LIST", Some(""), "names of predicates"),
];

/// Settings of workers alone.
pub const WORKER_SETTINGS: &[Setting] = &[
    setting("bootstrap.servers", "LIST", None, "brokers to start from"),
    setting("consumer.group.protocol", "STRING", None, "share"),
    setting(
        "listeners",
        "LIST",
        Some(""),
        "where the REST interface listens: http://127.0.0.1:8083; nowhere where it is not set",
    ),
    setting(
        "rest.advertised.host.name",
        "STRING",
        None,
        "host that the worker is called by in answers; requests for other hosts than this, listeners' and localhost are refused, \
         but for addresses (several, with commas between them)",
    ),
    setting("rest.advertised.port", "INT", None, "port that the worker is called by in answers"),
];

/// Connect's own that have no effect here, and why.
pub(crate) const WITHOUT_EFFECT: &[(&str, &str)] = &[
    ("group.id", "workers form no cluster here"),
    ("config.storage.topic", "connectors come from files"),
    ("config.storage.replication.factor", "connectors come from files"),
    ("offset.storage.topic", "share groups keep what is done"),
    ("offset.storage.replication.factor", "share groups keep what is done"),
    ("offset.storage.partitions", "share groups keep what is done"),
    ("offset.storage.file.filename", "share groups keep what is done"),
    ("status.storage.topic", "the REST interface tells the status"),
    ("status.storage.replication.factor", "the REST interface tells the status"),
    ("status.storage.partitions", "the REST interface tells the status"),
    ("plugin.path", "sinks are part of the program"),
    ("plugin.discovery", "sinks are part of the program"),
    ("offset.flush.timeout.ms", "flushes have task.put.timeout.ms"),
    ("exactly.once.source.support", "there are no source connectors"),
    ("connector.client.config.override.policy", "overrides are allowed, but for what the driver sets itself"),
    ("errors.log.enable", "errors are logged"),
    ("errors.log.include.messages", "records are never logged"),
    ("errors.deadletterqueue.context.headers.enable", "the broker writes dead letters, always with context headers"),
    ("config.action.reload", "connectors come from files"),
    ("topics.regex", "topics must be named"),
];

/// Beginnings of names that are looked at elsewhere.
pub(crate) const PREFIXES: &[&str] = &[
    "consumer.",
    "producer.",
    "admin.",
    "transforms.",
    "predicates.",
    "key.converter.",
    "value.converter.",
    "header.converter.",
];

/// Of the consumers and producers of tasks, to find the nearest name.
pub(crate) const CLIENT_NAMES: &[&str] = &[
    "bootstrap.servers",
    "client.id",
    "client.rack",
    "request.timeout.ms",
    "default.api.timeout.ms",
    "socket.connection.setup.timeout.ms",
    "reconnect.backoff.ms",
    "reconnect.backoff.max.ms",
    "retry.backoff.ms",
    "retry.backoff.max.ms",
    "connections.max.idle.ms",
    "metadata.max.age.ms",
    "security.protocol",
    "share.ack.transaction.backend",
    "share.ack.ledger.topic",
    "share.ack.ledger.sweep.interval.ms",
    "ledger.auto.create",
];
pub(crate) const CONSUMER_NAMES: &[&str] = &[
    "group.id",
    "share.acknowledgement.mode",
    "share.acquire.mode",
    "max.poll.records",
    "fetch.max.wait.ms",
    "fetch.min.bytes",
    "fetch.max.bytes",
    "allow.auto.create.topics",
];

/// How far two names are apart: letters put in, taken out, changed, or two that changed places.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows = vec![(0..=b.len()).collect::<Vec<usize>>()];
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let change = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            row[j] = change.min(rows[i - 1][j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(rows[i - 2][j - 2] + 1);
            }
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}

/// The known name that is nearest, where one is near.
pub(crate) fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    // A name of any length is not compared with all others.
    let name: String = name.chars().take(100).collect();
    let far = (name.len() / 4).max(2);
    known.map(|k| (distance(&name, k), k)).filter(|(d, _)| *d <= far).min().map(|(_, k)| k)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_found_where_one_is_near() {
        let known = || CONNECTOR_SETTINGS.iter().map(|s| s.name);
        for (name, found) in [
            ("task.max", Some("tasks.max")),
            ("topcis", Some("topics")),
            ("errors.tolerence", Some("errors.tolerance")),
            ("value.convertor", Some("value.converter")),
            ("colour", None),
            ("x", None),
        ] {
            assert_eq!(nearest(name, known()), found, "{name}");
        }
        assert_eq!((distance("abc", "acb"), distance("", "ab"), distance("ab", "ab")), (1, 2, 0));
        assert_eq!(nearest(&"x".repeat(1_000_000), known()), None);
    }
}
