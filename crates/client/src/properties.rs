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

/// What a property does for a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum PropertyEffect {
    /// It was taken.
    Taken,
    /// It is one of Kafka's and has no effect here, for this reason.
    Without(&'static str),
    /// It is not known to this kind of client.
    Unknown,
}

/// What a property does that a kind of client does not take.
pub(crate) fn without_effect(name: &str, own: &[(&str, &'static str)]) -> PropertyEffect {
    let known = own.iter().find(|(n, _)| *n == name).or_else(|| WITHOUT_EFFECT.iter().find(|(n, _)| *n == name));
    let of_security = || OF_SECURITY.iter().any(|start| name.starts_with(start)).then_some(PLAIN);
    match known.map(|(_, reason)| *reason).or_else(of_security) {
        Some(reason) => PropertyEffect::Without(reason),
        None => PropertyEffect::Unknown,
    }
}

/// Says in the log that a property is not taken by a kind of client, and why.
pub(crate) fn warn_without_effect(client: &str, name: &str, own: &[(&str, &'static str)]) {
    warn_of(client, name, without_effect(name, own));
}

/// The same where it is known already.
pub(crate) fn warn_of(client: &str, name: &str, effect: PropertyEffect) {
    match effect {
        PropertyEffect::Taken => {}
        PropertyEffect::Without(reason) => {
            tracing::warn!(client, name, reason, "property has no effect on this client");
        }
        PropertyEffect::Unknown => {
            tracing::warn!(client, name, "property is not known to this client and has no effect");
        }
    }
}
