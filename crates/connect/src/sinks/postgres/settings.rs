//! Settings of the postgres sink, by the names of the JDBC sinks where these have them.

use super::names::{TableFormat, check};
use crate::{ConnectError, Properties};
use std::collections::BTreeSet;
use std::time::Duration;
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};

/// How long a connection may take, where the URL does not say.
const CONNECT: Duration = Duration::from_secs(10);
/// When a connection that says nothing is looked at, and how long what was sent may stay unanswered.
const SILENCE: Duration = Duration::from_secs(30);
const DEAD: Duration = Duration::from_secs(60);

/// The sink's own settings.
pub(super) const NAMES: &[&str] = &[
    "connection.url",
    "connection.user",
    "connection.password",
    "table.name.format",
    "insert.mode",
    "pk.mode",
    "pk.fields",
    "delete.enabled",
    "auto.create",
    "auto.evolve",
    "fields.whitelist",
    "batch.size",
    "offsets.table.name",
    "offsets.cleanup.interval.ms",
];

/// `insert.mode`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum InsertMode {
    Insert,
    Upsert,
    Update,
}

/// `pk.mode`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PkMode {
    None,
    Kafka,
    RecordKey,
    RecordValue,
}

/// All of them. Without Debug: there is a password in it.
#[derive(Clone)]
pub(super) struct Settings {
    pub(super) connection: Config,
    /// Where that leads to, for messages: no user, no password.
    pub(super) place: String,
    pub(super) table: TableFormat,
    pub(super) insert: InsertMode,
    pub(super) pk: PkMode,
    pub(super) pk_fields: Vec<String>,
    pub(super) delete: bool,
    pub(super) create: bool,
    pub(super) evolve: bool,
    /// Empty: all.
    pub(super) whitelist: BTreeSet<String>,
    pub(super) batch: usize,
    pub(super) offsets: TableFormat,
    pub(super) cleanup: Duration,
    /// Records may be routed to other topics than the connector's.
    pub(super) routed: bool,
    pub(super) topics: Vec<String>,
}

impl Settings {
    pub(super) fn new(properties: &Properties) -> Result<Self, ConnectError> {
        let get = |name: &str| properties.get(name).map(|v| v.trim()).filter(|v| !v.is_empty());
        let names = |name: &str| -> Vec<String> {
            let list = get(name).unwrap_or_default().split(',').map(|n| n.trim().to_owned());
            list.filter(|n| !n.is_empty()).collect()
        };
        let connection = connection(&get)?;
        let settings = Settings {
            place: place(&connection),
            connection,
            table: TableFormat::new("table.name.format", get("table.name.format").unwrap_or("${topic}"))?,
            insert: match choice("insert.mode", get("insert.mode"), &["insert", "upsert", "update"])? {
                0 => InsertMode::Insert,
                1 => InsertMode::Upsert,
                _ => InsertMode::Update,
            },
            pk: match choice("pk.mode", get("pk.mode"), &["none", "kafka", "record_key", "record_value"])? {
                0 => PkMode::None,
                1 => PkMode::Kafka,
                2 => PkMode::RecordKey,
                _ => PkMode::RecordValue,
            },
            pk_fields: names("pk.fields"),
            delete: flag("delete.enabled", get("delete.enabled"))?,
            create: flag("auto.create", get("auto.create"))?,
            evolve: flag("auto.evolve", get("auto.evolve"))?,
            whitelist: names("fields.whitelist").into_iter().collect(),
            batch: number("batch.size", get("batch.size"), 3_000, 100_000)? as usize,
            offsets: offsets_table(get("offsets.table.name").unwrap_or("_kafka_share_offsets"))?,
            cleanup: Duration::from_millis(number(
                "offsets.cleanup.interval.ms",
                get("offsets.cleanup.interval.ms"),
                10_000,
                i32::MAX as u64,
            )?),
            routed: get("transforms").is_some(),
            topics: names("topics"),
        };
        settings.check()
    }

    fn check(mut self) -> Result<Self, ConnectError> {
        let wrong = |text: String| Err(ConnectError::config(text));
        for name in &self.pk_fields {
            check(name).map_err(|e| ConnectError::config(format!("pk.fields: {e}")))?;
        }
        if self.pk == PkMode::None {
            if self.insert != InsertMode::Insert {
                let mode = if self.insert == InsertMode::Upsert { "upsert" } else { "update" };
                return wrong(format!(
                    "insert.mode={mode} needs to know the row of a record: set pk.mode to record_key, record_value or kafka"
                ));
            }
            if !self.pk_fields.is_empty() {
                return wrong(
                    "pk.fields is set, and pk.mode=none has no primary key: set pk.mode, or remove pk.fields".into(),
                );
            }
        }
        if self.delete && self.pk != PkMode::RecordKey {
            return wrong("delete.enabled=true deletes by the record's key: set pk.mode=record_key".into());
        }
        if self.pk == PkMode::Kafka {
            match self.pk_fields.len() {
                0 => {
                    let names = ["__connect_topic", "__connect_partition", "__connect_offset"];
                    self.pk_fields = names.map(str::to_owned).to_vec();
                }
                3 => {}
                n => {
                    return wrong(format!(
                        "pk.fields has {n} names, and pk.mode=kafka needs three: of topic, partition and offset"
                    ));
                }
            }
        }
        Ok(self)
    }
}

fn offsets_table(name: &str) -> Result<TableFormat, ConnectError> {
    if name.contains("${") {
        return Err(ConnectError::config(format!("offsets.table.name={name}: one table for all topics is expected")));
    }
    let table = TableFormat::new("offsets.table.name", name)?;
    table
        .with_suffix(super::offsets::PARTITIONS)
        .of("")
        .map_err(|e| ConnectError::config(format!("offsets.table.name={name}: {e}")))?;
    Ok(table)
}

fn flag(name: &str, value: Option<&str>) -> Result<bool, ConnectError> {
    choice(name, value, &["false", "true"]).map(|n| n == 1)
}

fn choice(name: &str, value: Option<&str>, choices: &[&str]) -> Result<usize, ConnectError> {
    let Some(value) = value else { return Ok(0) };
    let at = choices.iter().position(|c| c.eq_ignore_ascii_case(value));
    at.ok_or_else(|| ConnectError::config(format!("{name}={value}: {} is expected", choices.join(" or "))))
}

fn number(name: &str, value: Option<&str>, default: u64, max: u64) -> Result<u64, ConnectError> {
    let Some(value) = value else { return Ok(default) };
    match value.parse() {
        Ok(n) if (1..=max).contains(&n) => Ok(n),
        _ => Err(ConnectError::config(format!("{name}={value}: a number from 1 to {max} is expected"))),
    }
}

/// The URL is not repeated in messages: a password may be in it.
fn connection<'a>(get: &impl Fn(&str) -> Option<&'a str>) -> Result<Config, ConnectError> {
    let Some(url) = get("connection.url") else {
        return Err(ConnectError::config("connection.url is missing: postgres://HOST:PORT/DATABASE is expected"));
    };
    let url = match url.strip_prefix("jdbc:") {
        Some(rest) => from_jdbc(rest)?,
        None => url.to_owned(),
    };
    if !url.starts_with("postgres://") && !url.starts_with("postgresql://") {
        return Err(ConnectError::config(
            "connection.url begins with postgres://, postgresql:// or jdbc:postgresql://: other databases are not written to",
        ));
    }
    let mut config: Config = url.parse().map_err(|_| {
        ConnectError::config(
            "connection.url cannot be read: postgres://HOST:PORT/DATABASE is expected, with %-escapes for special characters, \
             and the password in connection.password",
        )
    })?;
    if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
        return Err(ConnectError::config("connection.url names no host: postgres://HOST:PORT/DATABASE is expected"));
    }
    if config.get_ssl_mode() != SslMode::Disable && config.get_ssl_mode() != SslMode::Prefer {
        return Err(ConnectError::config(
            "connection.url: sslmode=require, and TLS to the database is not supported yet: remove it, or use a local proxy",
        ));
    }
    if let Some(user) = get("connection.user") {
        config.user(user);
    }
    if let Some(password) = get("connection.password") {
        config.password(password);
    }
    if config.get_connect_timeout().is_none() {
        config.connect_timeout(CONNECT);
    }
    if config.get_tcp_user_timeout().is_none() {
        config.tcp_user_timeout(DEAD);
    }
    if config.get_application_name().is_none() {
        config.application_name("kafka-share-connect");
    }
    config.keepalives_idle(SILENCE);
    Ok(config)
}

/// The parameters of the JDBC driver that have a meaning here; those without are named.
fn from_jdbc(url: &str) -> Result<String, ConnectError> {
    let (base, query) = url.split_once('?').unwrap_or((url, ""));
    let mut kept = Vec::new();
    for pair in query.split('&').filter(|p| !p.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let name = match (name, value) {
            ("user" | "password" | "sslmode", _) => name,
            ("ApplicationName", _) => "application_name",
            ("connectTimeout" | "loginTimeout", _) => "connect_timeout",
            ("ssl", "false") | ("reWriteBatchedInserts" | "stringtype" | "tcpKeepAlive" | "prepareThreshold", _) => {
                continue;
            }
            ("ssl", _) => {
                return Err(ConnectError::config(
                    "connection.url: ssl is set, and TLS to the database is not supported yet",
                ));
            }
            _ => {
                return Err(ConnectError::config(
                    "connection.url has a JDBC parameter that is not known here, where user, password, sslmode, ApplicationName, \
                     connectTimeout and loginTimeout are: remove it, or write the URL as postgres://..",
                ));
            }
        };
        kept.push(format!("{name}={value}"));
    }
    Ok(if kept.is_empty() { base.to_owned() } else { format!("{base}?{}", kept.join("&")) })
}

fn place(config: &Config) -> String {
    let ports = config.get_ports();
    let port = |i: usize| ports.get(i).or(ports.first()).copied().unwrap_or(5432);
    let host = |(i, host): (usize, &Host)| match host {
        Host::Tcp(name) => format!("{name}:{}", port(i)),
        #[cfg(unix)]
        Host::Unix(path) => format!("{}:{}", path.display(), port(i)),
    };
    let hosts: Vec<String> = config.get_hosts().iter().enumerate().map(host).collect();
    let database = config.get_dbname().map_or_else(String::new, |name| format!("/{name}"));
    format!("{}{database}", hosts.join(","))
}
