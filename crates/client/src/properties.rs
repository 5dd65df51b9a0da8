//! Properties of Kafka's clients that have no effect here: each is known, with the reason.

/// Of every client. Others belong to one kind of client.
const WITHOUT_EFFECT: &[(&str, &str)] = &[
    ("client.dns.lookup", "all addresses of a name are tried"),
    ("bootstrap.resolve.timeout.ms", "names are resolved at each attempt to connect"),
    ("socket.connection.setup.timeout.max.ms", "each attempt has socket.connection.setup.timeout.ms"),
    ("receive.buffer.bytes", "the system sizes socket buffers"),
    ("send.buffer.bytes", "the system sizes socket buffers"),
    ("metadata.recovery.strategy", "bootstrap.servers are asked whenever no known broker answers"),
    ("metadata.recovery.rebootstrap.trigger.ms", "bootstrap.servers are asked whenever no known broker answers"),
    ("metadata.cluster.check.enable", "brokers are not told whom the client takes them for"),
    ("metric.reporters", "read the client's metrics()"),
    ("enable.metrics.push", "read the client's metrics(): they are not sent to brokers"),
    ("metrics.num.samples", "averages, maxima and rates are of the last 30 to 60 seconds"),
    ("metrics.sample.window.ms", "averages, maxima and rates are of the last 30 to 60 seconds"),
    ("metrics.recording.level", "all metrics are recorded"),
    ("config.providers", "resolve values before they come here"),
    ("security.providers", PLAIN),
];

/// Beginnings of the names of what only encrypted and authenticated connections have.
const OF_SECURITY: &[&str] = &["ssl.", "sasl."];
/// Any other `security.protocol` is refused, so that nobody takes a connection for a safe one.
const PLAIN: &str = "security.protocol is PLAINTEXT, which is all there is so far";

/// Says in the log that a property has no effect on a kind of client, and why.
pub(crate) fn warn_without_effect(client: &str, name: &str, own: &[(&str, &str)]) {
    let known = own.iter().chain(WITHOUT_EFFECT).find(|(n, _)| *n == name).map(|(_, reason)| *reason);
    let reason = known.or_else(|| OF_SECURITY.iter().any(|start| name.starts_with(start)).then_some(PLAIN));
    match reason {
        Some(reason) => tracing::warn!(client, name, reason, "property has no effect on this client"),
        None => tracing::warn!(client, name, "property is not known to this client and has no effect"),
    }
}
