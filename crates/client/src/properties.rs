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
    ("metric.reporters", "read the client's metrics(), or take the cargo feature metrics"),
    ("enable.metrics.push", "read the client's metrics(): they are not sent to brokers"),
    ("metrics.num.samples", "averages, maxima and rates are of the last 30 to 60 seconds"),
    ("metrics.sample.window.ms", "averages, maxima and rates are of the last 30 to 60 seconds"),
    ("metrics.recording.level", "all metrics are recorded"),
    ("config.providers", "resolve values before they come here"),
    ("security.providers", JAVA),
    ("ssl.provider", JAVA),
    ("ssl.keymanager.algorithm", JAVA),
    ("ssl.trustmanager.algorithm", JAVA),
    ("ssl.secure.random.implementation", JAVA),
    ("sasl.login.class", JAVA),
    ("sasl.client.callback.handler.class", JAVA),
    ("sasl.login.retry.backoff.ms", "connections that fail are opened anew by reconnect.backoff.ms"),
    ("sasl.login.retry.backoff.max.ms", "connections that fail are opened anew by reconnect.backoff.max.ms"),
    ("sasl.oauthbearer.jwt.retriever.class", JAVA),
    ("sasl.oauthbearer.jwt.validator.class", CHECKED),
    ("sasl.oauthbearer.sub.claim.name", CHECKED),
    ("sasl.oauthbearer.scope.claim.name", CHECKED),
    ("sasl.oauthbearer.clock.skew.seconds", CHECKED),
];

const JAVA: &str =
    "it is for Java's security architecture; see TlsConfig::crypto_provider and TlsConfig::rustls_config";
const CHECKED: &str = "tokens are checked by brokers only";
/// Groups of properties of security, by the beginnings of their names.
const GROUPS: &[(&str, &str)] = &[
    ("sasl.kerberos.", "GSSAPI is not supported"),
    ("sasl.oauthbearer.jwks.", CHECKED),
    ("sasl.oauthbearer.expected.", CHECKED),
    ("sasl.oauthbearer.allow.unverified.", CHECKED),
    ("sasl.oauthbearer.assertion.", "client assertions are not supported; see Sasl::oauth_bearer"),
];

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
    let group = || GROUPS.iter().find(|(start, _)| name.starts_with(start)).map(|(_, reason)| *reason);
    match known.map(|(_, reason)| *reason).or_else(group) {
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
