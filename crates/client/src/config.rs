//! Settings shared by every client, under their Kafka property names and with Kafka's defaults.

use crate::sasl::Sasl;
use crate::security::{Security, SecurityProtocol};
use crate::tls::TlsConfig;
use crate::{Error, ErrorKind, Result};
use kafka_share_core::Backoff;
use kafka_share_wire::Str;
use std::collections::BTreeSet;
use std::time::Duration;

/// How to reach a cluster, and the limits of a connection.
///
/// ```
/// let config = kafka_share::ClientConfig::new("127.0.0.1:9092").client_id("billing");
/// assert!(config.validate().is_ok());
/// ```
#[derive(Debug, Clone)]
pub struct ClientConfig {
    pub(crate) bootstrap_servers: Vec<String>,
    pub(crate) client_id: Str,
    pub(crate) request_timeout: Duration,
    pub(crate) default_api_timeout: Duration,
    pub(crate) connection_setup_timeout: Duration,
    pub(crate) reconnect_backoff: Backoff,
    pub(crate) retry_backoff: Backoff,
    pub(crate) max_idle: Duration,
    pub(crate) metadata_max_age: Duration,
    pub(crate) max_frame: usize,
    pub(crate) security: Box<Security>,
    /// Names of the settings that somebody gave, defaults or not.
    given: BTreeSet<&'static str>,
}

impl ClientConfig {
    /// Defaults, with `bootstrap.servers` as a comma-separated list of `host:port`.
    #[must_use]
    pub fn new(bootstrap_servers: &str) -> Self {
        let list = bootstrap_servers.split(',').map(str::trim).filter(|s| !s.is_empty());
        let bootstrap_servers: Vec<String> = list.map(str::to_owned).collect();
        let given = if bootstrap_servers.is_empty() { None } else { Some("bootstrap.servers") };
        ClientConfig {
            bootstrap_servers,
            client_id: Str::from_static("kafka-share"),
            request_timeout: Duration::from_secs(30),
            default_api_timeout: Duration::from_secs(60),
            connection_setup_timeout: Duration::from_secs(10),
            reconnect_backoff: Backoff { first: Duration::from_millis(50), limit: Duration::from_secs(1) },
            retry_backoff: Backoff { first: Duration::from_millis(100), limit: Duration::from_secs(1) },
            max_idle: Duration::from_secs(540),
            metadata_max_age: Duration::from_secs(300),
            max_frame: 128 << 20,
            security: Box::default(),
            given: given.into_iter().collect(),
        }
    }

    fn give(mut self, name: &'static str) -> Self {
        self.given.insert(name);
        self
    }

    /// `client.id`: a name for logs and quotas (default `kafka-share`).
    #[must_use]
    pub fn client_id(mut self, id: &str) -> Self {
        self.client_id = Str::from(id);
        self.give("client.id")
    }

    /// `request.timeout.ms` (default 30 s): time for one request, from the moment it is handed over.
    #[must_use]
    pub fn request_timeout(mut self, time: Duration) -> Self {
        self.request_timeout = time;
        self.give("request.timeout.ms")
    }

    /// `default.api.timeout.ms` (default 60 s): time for a call that names no limit of its own.
    #[must_use]
    pub fn default_api_timeout(mut self, time: Duration) -> Self {
        self.default_api_timeout = time;
        self.give("default.api.timeout.ms")
    }

    /// `socket.connection.setup.timeout.ms` (default 10 s): time to open one connection.
    #[must_use]
    pub fn connection_setup_timeout(mut self, time: Duration) -> Self {
        self.connection_setup_timeout = time;
        self.give("socket.connection.setup.timeout.ms")
    }

    /// `reconnect.backoff.ms` and `reconnect.backoff.max.ms` (default 50 ms and 1 s): pause before a broker whose connection
    /// failed is connected to again, after the first failure and after many.
    #[must_use]
    pub fn reconnect_backoff(mut self, first: Duration, limit: Duration) -> Self {
        self.reconnect_backoff = Backoff { first, limit };
        self.give("reconnect.backoff.ms").give("reconnect.backoff.max.ms")
    }

    /// `retry.backoff.ms` and `retry.backoff.max.ms` (default 100 ms and 1 s): pause before a request that failed is tried
    /// again, after the first failure and after many.
    #[must_use]
    pub fn retry_backoff(mut self, first: Duration, limit: Duration) -> Self {
        self.retry_backoff = Backoff { first, limit };
        self.give("retry.backoff.ms").give("retry.backoff.max.ms")
    }

    /// `connections.max.idle.ms` (default 9 minutes): how long a connection that nobody uses stays open.
    #[must_use]
    pub fn connections_max_idle(mut self, time: Duration) -> Self {
        self.max_idle = time;
        self.give("connections.max.idle.ms")
    }

    /// `metadata.max.age.ms` (default 5 minutes): age at which consumers look topics up again although nothing went wrong.
    #[must_use]
    pub fn metadata_max_age(mut self, time: Duration) -> Self {
        self.metadata_max_age = time;
        self.give("metadata.max.age.ms")
    }

    /// Largest answer accepted from a broker, in bytes (default 128 MiB).
    #[must_use]
    pub fn max_frame(mut self, bytes: usize) -> Self {
        self.max_frame = bytes;
        self.give("max_frame")
    }

    /// `security.protocol` (default PLAINTEXT): whether connections are encrypted and authenticated. Call it last where it
    /// is to be something else than [`ClientConfig::tls`] and [`ClientConfig::sasl`] make of it.
    #[must_use]
    pub fn security_protocol(mut self, protocol: SecurityProtocol) -> Self {
        self.security.protocol = protocol;
        self.give("security.protocol")
    }

    /// Encrypts connections: `security.protocol` becomes SSL, or SASL_SSL where there is SASL.
    #[must_use]
    pub fn tls(mut self, tls: TlsConfig) -> Self {
        self.security.tls = tls;
        self.security.protocol = self.security.protocol.with_tls();
        self.give("security.protocol").give("ssl")
    }

    /// Authenticates the client: `security.protocol` becomes SASL_PLAINTEXT, or SASL_SSL where there is TLS.
    #[must_use]
    pub fn sasl(mut self, sasl: Sasl) -> Self {
        self.security.sasl = Some(sasl);
        self.security.protocol = self.security.protocol.with_sasl();
        self.give("security.protocol").give("sasl")
    }

    /// Time for a call that names no limit of its own.
    #[must_use]
    pub fn api_timeout(&self) -> Duration {
        self.default_api_timeout
    }

    /// Sets one property by its Kafka name. Answers `false` for names that are not of this group of settings.
    ///
    /// # Errors
    /// A value that does not parse or is out of range; the message names the property.
    pub fn set(&mut self, name: &str, value: &str) -> Result<bool> {
        match name {
            "bootstrap.servers" => self.bootstrap_servers = ClientConfig::new(value).bootstrap_servers,
            "client.id" => self.client_id = Str::from(value),
            "request.timeout.ms" => self.request_timeout = millis(name, value)?,
            "default.api.timeout.ms" => self.default_api_timeout = millis(name, value)?,
            "socket.connection.setup.timeout.ms" => self.connection_setup_timeout = millis(name, value)?,
            "reconnect.backoff.ms" => self.reconnect_backoff.first = millis(name, value)?,
            "reconnect.backoff.max.ms" => self.reconnect_backoff.limit = millis(name, value)?,
            "retry.backoff.ms" => self.retry_backoff.first = millis(name, value)?,
            "retry.backoff.max.ms" => self.retry_backoff.limit = millis(name, value)?,
            "connections.max.idle.ms" => self.max_idle = millis(name, value)?,
            "metadata.max.age.ms" => self.metadata_max_age = millis(name, value)?,
            _ if self.security.set(name, value)? => {
                let group = [("ssl.", "ssl"), ("sasl.", "sasl"), ("security.", "security.protocol")];
                self.given.extend(group.iter().filter(|(start, _)| name.starts_with(start)).map(|(_, group)| group));
            }
            _ => return Ok(false),
        }
        self.given.extend(SHOWN.iter().map(|(known, _)| *known).find(|known| *known == name));
        Ok(true)
    }

    /// Where a client is built on the connections of others: refuses, by name, settings of its own that say something else.
    pub(crate) fn check_beside(&self, cluster: &ClientConfig) -> Result<()> {
        let differs = |(name, shown): &&(&str, Shown)| self.given.contains(name) && shown(self) != shown(cluster);
        let mut text: Vec<String> = SHOWN
            .iter()
            .filter(differs)
            .map(|(name, shown)| format!("{name} ({}, of the cluster: {})", shown(self), shown(cluster)))
            .collect();
        // Their values are not for showing.
        if SECRET.iter().any(|name| self.given.contains(name)) && self.security != cluster.security {
            text.push("settings of ssl or sasl (other values)".to_owned());
        }
        if text.is_empty() {
            return Ok(());
        }
        let text = format!(
            "settings of connections have no effect beside a cluster, whose own hold; give them to its ClientConfig, or leave cluster() out: {}",
            text.join(", ")
        );
        Err(Error::new(ErrorKind::Config, text))
    }

    /// Checks that the settings make sense together.
    ///
    /// # Errors
    /// Names the setting and what is wrong with it.
    pub fn validate(&self) -> Result<()> {
        if self.bootstrap_servers.is_empty() {
            return Err(Error::new(ErrorKind::Config, "bootstrap.servers is empty: give host:port[,host:port..]"));
        }
        for server in &self.bootstrap_servers {
            split_address(server)?;
        }
        for (name, time) in [
            ("request.timeout.ms", self.request_timeout),
            ("default.api.timeout.ms", self.default_api_timeout),
            ("socket.connection.setup.timeout.ms", self.connection_setup_timeout),
            ("connections.max.idle.ms", self.max_idle),
            ("metadata.max.age.ms", self.metadata_max_age),
        ] {
            check_millis(name, time)?;
            if time.is_zero() {
                return Err(Error::new(ErrorKind::Config, format!("{name} must not be 0")));
            }
        }
        for (name, Backoff { first, limit }) in
            [("reconnect.backoff", self.reconnect_backoff), ("retry.backoff", self.retry_backoff)]
        {
            check_millis(&format!("{name}.ms"), first)?;
            check_millis(&format!("{name}.max.ms"), limit)?;
        }
        self.security.validate()
    }
}

type Shown = fn(&ClientConfig) -> String;

/// The settings of a connection, and their values to compare and to show.
const SHOWN: &[(&str, Shown)] = &[
    ("bootstrap.servers", |c| c.bootstrap_servers.join(",")),
    ("client.id", |c| c.client_id.to_string()),
    ("request.timeout.ms", |c| c.request_timeout.as_millis().to_string()),
    ("default.api.timeout.ms", |c| c.default_api_timeout.as_millis().to_string()),
    ("socket.connection.setup.timeout.ms", |c| c.connection_setup_timeout.as_millis().to_string()),
    ("reconnect.backoff.ms", |c| c.reconnect_backoff.first.as_millis().to_string()),
    ("reconnect.backoff.max.ms", |c| c.reconnect_backoff.limit.as_millis().to_string()),
    ("retry.backoff.ms", |c| c.retry_backoff.first.as_millis().to_string()),
    ("retry.backoff.max.ms", |c| c.retry_backoff.limit.as_millis().to_string()),
    ("connections.max.idle.ms", |c| c.max_idle.as_millis().to_string()),
    ("metadata.max.age.ms", |c| c.metadata_max_age.as_millis().to_string()),
    ("max_frame", |c| c.max_frame.to_string()),
    ("security.protocol", |c| c.security.protocol.name().to_owned()),
];

/// Groups of settings that are compared and not shown.
const SECRET: &[&str] = &["ssl", "sasl"];

/// Host and port of `host:port` or `[v6]:port`.
pub(crate) fn split_address(server: &str) -> Result<(&str, u16)> {
    let fail = || {
        let text = format!("bootstrap.servers: {server:?} is not host:port");
        Error::new(ErrorKind::Config, text)
    };
    let (host, port) = server.rsplit_once(':').ok_or_else(fail)?;
    let host = host.strip_prefix('[').and_then(|h| h.strip_suffix(']')).unwrap_or(host);
    let port = port.parse::<u16>().ok().filter(|p| *p > 0).ok_or_else(fail)?;
    if host.is_empty() { Err(fail()) } else { Ok((host, port)) }
}

/// Parses a property in milliseconds.
pub(crate) fn millis(name: &str, value: &str) -> Result<Duration> {
    let time =
        value.trim().parse::<u64>().map(Duration::from_millis).map_err(|_| {
            Error::new(ErrorKind::Config, format!("{name}={value}: a number of milliseconds is expected"))
        })?;
    check_millis(name, time)?;
    Ok(time)
}

/// Kafka carries times as signed 32-bit milliseconds; refuses what would not fit.
pub(crate) fn check_millis(name: &str, time: Duration) -> Result<()> {
    if time.as_millis() > i32::MAX as u128 {
        let text = format!("{name} of {} ms is over the limit of {} ms (24.8 days)", time.as_millis(), i32::MAX);
        return Err(Error::new(ErrorKind::Config, text));
    }
    Ok(())
}

/// Reads a property that is true or false.
pub(crate) fn boolean(name: &str, value: &str) -> Result<bool> {
    let text = || format!("{name}={value}: true or false is expected");
    value.trim().to_ascii_lowercase().parse().map_err(|_| Error::new(ErrorKind::Config, text()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r139_times_beyond_32_bits_are_refused_by_name() {
        for days in [25_u64, 30, 50] {
            let time = Duration::from_secs(days * 86_400);
            let error = ClientConfig::new("h:1").request_timeout(time).validate().unwrap_err();
            assert!(error.to_string().contains("request.timeout.ms"), "{error}");
            let mut config = ClientConfig::new("h:1");
            assert!(config.set("request.timeout.ms", &time.as_millis().to_string()).is_err());
        }
        assert!(ClientConfig::new("h:1").request_timeout(Duration::ZERO).validate().is_err());
    }

    #[test]
    fn typed_setters_are_those_of_the_properties() {
        let time = Duration::from_millis;
        let typed = ClientConfig::new("h:1")
            .client_id("me")
            .request_timeout(time(1))
            .default_api_timeout(time(2))
            .connection_setup_timeout(time(3))
            .reconnect_backoff(time(4), time(5))
            .retry_backoff(time(6), time(7))
            .connections_max_idle(time(8))
            .metadata_max_age(time(9))
            .security_protocol(SecurityProtocol::SaslSsl);
        let mut named = ClientConfig::new("h:1");
        for (name, value) in [
            ("client.id", "me"),
            ("request.timeout.ms", "1"),
            ("default.api.timeout.ms", "2"),
            ("socket.connection.setup.timeout.ms", "3"),
            ("reconnect.backoff.ms", "4"),
            ("reconnect.backoff.max.ms", "5"),
            ("retry.backoff.ms", "6"),
            ("retry.backoff.max.ms", "7"),
            ("connections.max.idle.ms", "8"),
            ("metadata.max.age.ms", "9"),
            ("security.protocol", "SASL_SSL"),
        ] {
            assert!(named.set(name, value).unwrap(), "{name}");
        }
        assert_eq!(format!("{typed:?}"), format!("{named:?}"));
        for (name, shown) in SHOWN.iter().filter(|(name, _)| *name != "max_frame") {
            assert!(named.given.contains(name) && shown(&named) != shown(&ClientConfig::new("")), "{name}");
        }
    }

    #[test]
    fn settings_that_a_cluster_decides_are_refused_beside_it_by_name() {
        let cluster = ClientConfig::new("h:1").request_timeout(Duration::from_secs(10));
        let beside = |config: ClientConfig| config.check_beside(&cluster).map_err(|e| e.to_string());
        assert_eq!(beside(ClientConfig::new("")), Ok(()));
        assert_eq!(beside(ClientConfig::new("h:1").request_timeout(Duration::from_secs(10))), Ok(()));
        // The default, but said aloud.
        let mut given = ClientConfig::new("");
        given.set("request.timeout.ms", "30000").unwrap();
        let given = given.client_id("me");
        let text = beside(given).unwrap_err();
        assert!(text.contains("request.timeout.ms (30000, of the cluster: 10000)"), "{text}");
        assert!(text.contains("client.id (me, of the cluster: kafka-share)") && !text.contains("idle"), "{text}");
        assert!(beside(ClientConfig::new("other:1")).unwrap_err().contains("bootstrap.servers (other:1, "));
    }

    #[test]
    fn r139_zero_and_over_long_times_are_refused_by_name() {
        let long = Duration::from_secs(30 * 86_400);
        let new = || ClientConfig::new("h:1");
        for (name, config) in [
            ("reconnect.backoff.ms", new().reconnect_backoff(long, long)),
            ("reconnect.backoff.max.ms", new().reconnect_backoff(Duration::ZERO, long)),
            ("retry.backoff.ms", new().retry_backoff(long, long)),
            ("retry.backoff.max.ms", new().retry_backoff(Duration::ZERO, Duration::MAX)),
            ("connections.max.idle.ms", new().connections_max_idle(Duration::ZERO)),
            ("connections.max.idle.ms", new().connections_max_idle(long)),
            ("metadata.max.age.ms", new().metadata_max_age(Duration::ZERO)),
            ("metadata.max.age.ms", new().metadata_max_age(long)),
        ] {
            let text = config.validate().unwrap_err().to_string();
            assert!(text.contains(name), "{name}: {text}");
        }
    }

    #[test]
    fn protocols_come_by_name_and_with_what_needs_them() {
        let protocol = |config: ClientConfig| config.security.protocol.name();
        for name in ["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL", "ssl"] {
            let mut config = ClientConfig::new("h:1");
            assert!(config.set("security.protocol", name).unwrap());
            assert_eq!(protocol(config), name.to_uppercase());
        }
        let text = ClientConfig::new("h:1").set("security.protocol", "TLS").unwrap_err().to_string();
        assert!(text.contains("security.protocol=TLS") && text.contains("SASL_SSL"), "{text}");
        let (new, sasl) = (|| ClientConfig::new("h:1"), || Sasl::plain("u", "p"));
        assert_eq!(protocol(new()), "PLAINTEXT");
        assert_eq!(protocol(new().tls(TlsConfig::new())), "SSL");
        assert_eq!(protocol(new().sasl(sasl())), "SASL_PLAINTEXT");
        assert_eq!(protocol(new().sasl(sasl()).tls(TlsConfig::new())), "SASL_SSL");
        assert_eq!(protocol(new().tls(TlsConfig::new()).sasl(sasl())), "SASL_SSL");
    }

    #[test]
    fn secrets_are_neither_shown_nor_compared_aloud() {
        let jaas =
            "org.apache.kafka.common.security.plain.PlainLoginModule required username=\"u\" password=\"hunter2\";";
        let mut config = ClientConfig::new("h:1").sasl(Sasl::scram_sha_256("u", "hunter2"));
        for (name, value) in [
            ("security.protocol", "SASL_SSL"),
            ("sasl.jaas.config", jaas),
            ("ssl.key.password", "hunter2"),
            ("ssl.keystore.key", "hunter2"),
            ("sasl.oauthbearer.client.credentials.client.secret", "hunter2"),
        ] {
            assert!(config.set(name, value).unwrap(), "{name}");
        }
        assert!(!format!("{config:?}").contains("hunter2"), "{config:?}");
        let error = config.check_beside(&ClientConfig::new("h:1")).unwrap_err().to_string();
        assert!(error.contains("security.protocol (SASL_SSL, of the cluster: PLAINTEXT)"), "{error}");
        assert!(error.contains("sasl") && !error.contains("hunter2"), "{error}");
        assert!(config.check_beside(&config.clone()).is_ok());
    }

    #[test]
    fn what_the_protocol_does_not_use_is_not_refused() {
        let mut config = ClientConfig::new("h:1");
        for (name, value) in [
            ("ssl.truststore.location", ""),
            ("ssl.truststore.type", "JKS"),
            ("ssl.keystore.password", "hunter2"),
            ("ssl.engine.factory.class", "a.B"),
            ("sasl.login.callback.handler.class", "a.B"),
        ] {
            assert!(config.set(name, value).unwrap(), "{name}");
        }
        assert!(config.validate().is_ok() && config.security.open().is_ok());
        config.set("security.protocol", "SSL").unwrap();
        assert!(config.security.open().unwrap_err().to_string().contains("ssl."));
        config.set("security.protocol", "SASL_PLAINTEXT").unwrap();
        assert!(config.validate().unwrap_err().to_string().contains("sasl.login.callback.handler.class=a.B"));
    }

    #[test]
    fn sasl_without_what_it_needs_is_refused() {
        let mut config = ClientConfig::new("h:1");
        config.set("security.protocol", "SASL_SSL").unwrap();
        let text = config.validate().unwrap_err().to_string();
        assert!(text.contains("security.protocol=SASL_SSL") && text.contains("sasl.jaas.config is missing"), "{text}");
        let text = ClientConfig::new("h:1").sasl(Sasl::plain("", "p")).validate().unwrap_err().to_string();
        assert!(text.contains("PLAIN") && text.contains("empty"), "{text}");
    }
}
