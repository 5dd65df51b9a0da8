//! Settings shared by every client, under their Kafka property names and with Kafka's defaults.

use crate::{Error, ErrorKind, Result};
use kafka_share_core::Backoff;
use kafka_share_wire::Str;
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
}

impl ClientConfig {
    /// Defaults, with `bootstrap.servers` as a comma-separated list of `host:port`.
    #[must_use]
    pub fn new(bootstrap_servers: &str) -> Self {
        let list = bootstrap_servers.split(',').map(str::trim).filter(|s| !s.is_empty());
        ClientConfig {
            bootstrap_servers: list.map(str::to_owned).collect(),
            client_id: Str::from_static("kafka-share"),
            request_timeout: Duration::from_secs(30),
            default_api_timeout: Duration::from_secs(60),
            connection_setup_timeout: Duration::from_secs(10),
            reconnect_backoff: Backoff { first: Duration::from_millis(50), limit: Duration::from_secs(1) },
            retry_backoff: Backoff { first: Duration::from_millis(100), limit: Duration::from_secs(1) },
            max_idle: Duration::from_secs(540),
            metadata_max_age: Duration::from_secs(300),
            max_frame: 128 << 20,
        }
    }

    /// `client.id`: a name for logs and quotas (default `kafka-share`).
    #[must_use]
    pub fn client_id(mut self, id: &str) -> Self {
        self.client_id = Str::from(id);
        self
    }

    /// `request.timeout.ms` (default 30 s): time for one request, from the moment it is handed over.
    #[must_use]
    pub fn request_timeout(mut self, time: Duration) -> Self {
        self.request_timeout = time;
        self
    }

    /// `default.api.timeout.ms` (default 60 s): time for a call that names no limit of its own.
    #[must_use]
    pub fn default_api_timeout(mut self, time: Duration) -> Self {
        self.default_api_timeout = time;
        self
    }

    /// `socket.connection.setup.timeout.ms` (default 10 s): time to open one connection.
    #[must_use]
    pub fn connection_setup_timeout(mut self, time: Duration) -> Self {
        self.connection_setup_timeout = time;
        self
    }

    /// Largest answer accepted from a broker, in bytes (default 128 MiB).
    #[must_use]
    pub fn max_frame(mut self, bytes: usize) -> Self {
        self.max_frame = bytes;
        self
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
            "security.protocol" if value.trim().eq_ignore_ascii_case("PLAINTEXT") => {}
            "security.protocol" => {
                let text = format!("security.protocol={value} is not supported yet; only PLAINTEXT is");
                return Err(Error::new(ErrorKind::Config, text));
            }
            _ => return Ok(false),
        }
        Ok(true)
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
        ] {
            check_millis(name, time)?;
            if time.is_zero() {
                return Err(Error::new(ErrorKind::Config, format!("{name} must not be 0")));
            }
        }
        Ok(())
    }
}

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
    fn addresses() {
        assert_eq!(split_address("[::1]:9092").unwrap(), ("::1", 9092));
        for bad in ["h", "h:", ":9092", "h:0", "h:70000", ""] {
            assert!(split_address(bad).is_err(), "{bad}");
        }
        assert!(ClientConfig::new(" , ").validate().is_err());
    }
}
