//! `kshare broker --config FILE`: Kafka's names of server properties, as far as they mean something here.

use super::jaas;
use crate::exit::Failure;
use kafka_share_broker::{
    Authorizer, BrokerBuilder, ClientAuth, Listener, Mechanism, OAuthKey, Operation, Resource, SecurityProtocol,
};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{SocketAddr, ToSocketAddrs};
use std::time::Duration;

/// Properties by name, and which of them were asked for.
pub(super) struct Properties {
    values: BTreeMap<String, String>,
    used: BTreeSet<String>,
}

impl Properties {
    pub(super) fn new(list: Vec<(String, String)>) -> Self {
        Properties { values: list.into_iter().collect(), used: BTreeSet::new() }
    }

    fn get(&mut self, name: &str) -> Option<String> {
        let value = self.values.get(name).map(|value| value.trim().to_owned());
        if value.is_some() {
            self.used.insert(name.to_owned());
        }
        value.filter(|value| !value.is_empty())
    }

    /// A listener's own value, or that of all.
    fn of_listener(&mut self, listener: &str, name: &str) -> Option<String> {
        let own = format!("listener.name.{}.{name}", listener.to_ascii_lowercase());
        // Both count as known.
        let (own, all) = (self.get(&own), self.get(name));
        own.or(all)
    }

    fn parsed<T: std::str::FromStr>(&mut self, name: &str) -> Result<Option<T>, Failure> {
        let Some(value) = self.get(name) else { return Ok(None) };
        value.parse().map(Some).map_err(|_| Failure::usage(format_args!("{name}: {value:?} is not a valid value")))
    }

    /// Names that mean nothing here.
    pub(super) fn unknown(&self) -> impl Iterator<Item = &str> {
        self.values.keys().filter(|name| !self.used.contains(*name)).map(String::as_str)
    }
}

/// Where the broker listens by the file, and how.
pub(super) struct Listeners {
    /// Of each node, for the first listener.
    pub(super) addresses: Vec<SocketAddr>,
    pub(super) first: Listener,
    pub(super) further: Vec<Listener>,
}

/// `NAME://host:port`.
fn endpoint<'a>(property: &str, text: &'a str) -> Result<(&'a str, &'a str, u16), Failure> {
    let bad = || Failure::usage(format_args!("{property}: {text:?} is not NAME://host:port"));
    let (name, at) = text.split_once("://").ok_or_else(bad)?;
    let (host, port) = at.rsplit_once(':').ok_or_else(bad)?;
    let host = host.trim_start_matches('[').trim_end_matches(']');
    Ok((name, host, port.parse().map_err(|_| bad())?))
}

/// One address for each node: ports follow each other, port 0 takes free ones.
fn addresses(text: &str, host: &str, port: u16, nodes: u16) -> Result<Vec<SocketAddr>, Failure> {
    let host = if host.is_empty() { "0.0.0.0" } else { host };
    let refused = |why: String| Failure::usage(format_args!("listeners: {text}: {why}"));
    let mut found = (host, port).to_socket_addrs().map_err(|error| refused(error.to_string()))?;
    let first = found.next().ok_or_else(|| refused("no address".into()))?;
    let port = |node: u16| match port {
        0 => Ok(0),
        port => port.checked_add(node).ok_or_else(|| refused("the ports of the nodes go past 65535".into())),
    };
    (0..nodes).map(|node| Ok(SocketAddr::new(first.ip(), port(node)?))).collect()
}

/// The listeners of the file; `None` if it names none.
pub(super) fn listeners(properties: &mut Properties, nodes: u16) -> Result<Option<Listeners>, Failure> {
    let map = properties.get("listener.security.protocol.map").unwrap_or_default();
    let advertised = properties.get("advertised.listeners").unwrap_or_default();
    let Some(text) = properties.get("listeners") else { return Ok(None) };
    let mut all = Vec::new();
    for one in text.split(',').map(str::trim) {
        let (name, host, port) = endpoint("listeners", one)?;
        let mapped = map.split(',').filter_map(|pair| pair.split_once(':'));
        let mapped = mapped.map(|(name, protocol)| (name.trim(), protocol.trim())).find(|(known, _)| *known == name);
        let protocol = mapped.map_or(name, |(_, protocol)| protocol);
        let protocol = SecurityProtocol::from_name(protocol).ok_or_else(|| {
            Failure::usage(format_args!("listeners: {name}: no protocol; listener.security.protocol.map must name one"))
        })?;
        let mut listener = secured(properties, Listener::with_protocol(name, protocol), name, protocol)?;
        let addresses = addresses(one, host, port, nodes)?;
        for told in advertised.split(',').map(str::trim).filter(|told| !told.is_empty()) {
            let (of, host, port) = endpoint("advertised.listeners", told)?;
            if of == name {
                listener = listener.advertise(host, Some(port));
            }
        }
        if advertised.is_empty() && addresses.iter().any(|address| address.ip().is_unspecified()) {
            // No client can connect to "any address".
            listener = listener.advertise("localhost", None);
        }
        all.push((listener.addresses(addresses.clone()), addresses));
    }
    let mut all = all.into_iter();
    let Some((first, addresses)) = all.next() else { return Ok(None) };
    Ok(Some(Listeners { addresses, first, further: all.map(|(listener, _)| listener).collect() }))
}

fn secured(
    properties: &mut Properties,
    listener: Listener,
    name: &str,
    protocol: SecurityProtocol,
) -> Result<Listener, Failure> {
    let listener = if protocol.has_tls() { with_tls(properties, listener, name)? } else { listener };
    if protocol.has_sasl() { with_sasl(properties, listener, name) } else { Ok(listener) }
}

/// PEM from a property, where Java has `\n` for its lines, or from a file that another property names.
fn pem(properties: &mut Properties, listener: &str, inline: &str, file: &str) -> Result<Option<String>, Failure> {
    if let Some(text) = properties.of_listener(listener, inline) {
        return Ok(Some(text.replace("\\n", "\n")));
    }
    let Some(path) = properties.of_listener(listener, file) else { return Ok(None) };
    let read = std::fs::read_to_string(&path);
    read.map(Some).map_err(|error| Failure::usage(format_args!("{file}: {path}: {error}")))
}

fn with_tls(properties: &mut Properties, listener: Listener, name: &str) -> Result<Listener, Failure> {
    for kind in ["ssl.keystore.type", "ssl.truststore.type"] {
        if let Some(other) = properties.of_listener(name, kind).filter(|kind| !kind.eq_ignore_ascii_case("PEM")) {
            return Err(Failure::usage(format_args!("{kind}={other}: only PEM is read here")));
        }
    }
    let chain = pem(properties, name, "ssl.keystore.certificate.chain", "ssl.keystore.location")?.unwrap_or_default();
    // A file holds both.
    let key = pem(properties, name, "ssl.keystore.key", "ssl.keystore.location")?.unwrap_or_default();
    let trusted = pem(properties, name, "ssl.truststore.certificates", "ssl.truststore.location")?.unwrap_or_default();
    let client_auth = properties.of_listener(name, "ssl.client.auth").unwrap_or_else(|| "none".into());
    let client_auth = match client_auth.as_str() {
        "none" => ClientAuth::None,
        "requested" => ClientAuth::Requested,
        "required" => ClientAuth::Required,
        other => {
            let why = format_args!("ssl.client.auth: {other:?} is none of none, requested, required");
            return Err(Failure::usage(why));
        }
    };
    Ok(listener.certificate(chain, key).client_auth(client_auth, trusted))
}

fn with_sasl(properties: &mut Properties, mut listener: Listener, name: &str) -> Result<Listener, Failure> {
    let enabled = properties.of_listener(name, "sasl.enabled.mechanisms").unwrap_or_default();
    let mut mechanisms = Vec::new();
    for text in enabled.split(',').map(str::trim).filter(|text| !text.is_empty()) {
        let mechanism = Mechanism::from_name(text).ok_or_else(|| {
            let known = "PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER";
            Failure::usage(format_args!("sasl.enabled.mechanisms: {text} is none of {known}"))
        })?;
        mechanisms.push(mechanism);
        listener = with_users(properties, listener, name, mechanism)?;
    }
    if let Some(ms) = properties.of_listener(name, "connections.max.reauth.ms") {
        let ms = ms.parse().map_err(|_| Failure::usage("connections.max.reauth.ms must be a number"))?;
        listener = listener.max_reauth(Duration::from_millis(ms));
    }
    if let Some(iterations) = properties.of_listener(name, "kshare.scram.iterations") {
        let iterations = iterations.parse().map_err(|_| Failure::usage("kshare.scram.iterations must be a number"))?;
        listener = listener.scram_iterations(iterations);
    }
    if mechanisms.contains(&Mechanism::OAuthBearer)
        && let Some(key) = token_key(properties, name)?
    {
        listener = listener.token_key(key);
    }
    Ok(listener.mechanisms(mechanisms))
}

/// Users of a mechanism: `user_NAME="PASSWORD"` in its JAAS configuration.
fn with_users(
    properties: &mut Properties,
    mut listener: Listener,
    name: &str,
    mechanism: Mechanism,
) -> Result<Listener, Failure> {
    let property = format!("{}.sasl.jaas.config", mechanism.name().to_ascii_lowercase());
    let Some(text) = properties.of_listener(name, &property) else { return Ok(listener) };
    let login = jaas::parse(&text).map_err(|why| Failure::usage(format_args!("{property}: {why}")))?;
    if mechanism == Mechanism::OAuthBearer {
        return Ok(listener);
    }
    let class = if mechanism == Mechanism::Plain { "PlainLoginModule" } else { "ScramLoginModule" };
    if login.module.rsplit('.').next() != Some(class) {
        return Err(Failure::usage(format_args!("{property}: {} is not {class}", login.module)));
    }
    for (option, password) in login.options {
        if let Some(user) = option.strip_prefix("user_") {
            listener = listener.user_of(mechanism, user, password);
        }
    }
    Ok(listener)
}

fn token_key(properties: &mut Properties, name: &str) -> Result<Option<OAuthKey>, Failure> {
    if let Some(secret) = properties.of_listener(name, "kshare.oauthbearer.hs256.secret") {
        return Ok(Some(OAuthKey::hs256(secret)));
    }
    if let Some(path) = properties.of_listener(name, "kshare.oauthbearer.rs256.key.location") {
        let failed = |why: &dyn std::fmt::Display| {
            Failure::usage(format_args!("kshare.oauthbearer.rs256.key.location: {path}: {why}"))
        };
        let pem = std::fs::read_to_string(&path).map_err(|error| failed(&error))?;
        return OAuthKey::rs256(&pem).map(Some).map_err(|why| failed(&why));
    }
    let handler = "oauthbearer.sasl.server.callback.handler.class";
    let class = properties.of_listener(name, handler).unwrap_or_default();
    Ok(class.ends_with("OAuthBearerUnsecuredValidatorCallbackHandler").then(OAuthKey::unsecured))
}

/// Rights by the file; `None` without an authoriser.
fn authorizer(properties: &mut Properties) -> Result<Option<Authorizer>, Failure> {
    let class = properties.get("authorizer.class.name");
    let super_users = properties.get("super.users").unwrap_or_default();
    let everyone = properties.parsed("allow.everyone.if.no.acl.found")?.unwrap_or(false);
    let rules: Vec<(String, String)> = properties
        .values
        .iter()
        .filter(|(name, _)| name.starts_with("kshare.acl."))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    properties.used.extend(rules.iter().map(|(name, _)| name.clone()));
    let Some(class) = class else {
        if rules.is_empty() {
            return Ok(None);
        }
        return Err(Failure::usage("rules need authorizer.class.name, as they decide nothing without it"));
    };
    if class.rsplit('.').next() != Some("StandardAuthorizer") {
        return Err(Failure::usage(format_args!("authorizer.class.name: {class} is not StandardAuthorizer")));
    }
    let mut authorizer = Authorizer::new().allow_without_rules(everyone);
    for user in super_users.split(';').map(str::trim).filter(|user| !user.is_empty()) {
        authorizer = authorizer.super_user(user);
    }
    for (name, text) in rules {
        let bad = || {
            Failure::usage(format_args!(
                "{name}: {text:?} is not `allow|deny PRINCIPAL OPERATION RESOURCE` (see --help)"
            ))
        };
        let (denies, principal, operation, resource) = rule(&text).ok_or_else(bad)?;
        authorizer = match denies {
            true => authorizer.deny(principal, operation, resource),
            false => authorizer.allow(principal, operation, resource),
        };
    }
    Ok(Some(authorizer))
}

/// `allow User:alice read topic:orders`; a name with `*` at its end stands for all that begin so.
fn rule(text: &str) -> Option<(bool, &str, Operation, Resource)> {
    let parts: Vec<&str> = text.split_whitespace().collect();
    let [verb, principal, operation, resource] = parts[..] else { return None };
    let denies = match verb.to_ascii_lowercase().as_str() {
        "allow" => false,
        "deny" => true,
        _ => return None,
    };
    let operation = match operation.to_ascii_lowercase().replace(['-', '_'], "").as_str() {
        "all" => Operation::All,
        "read" => Operation::Read,
        "write" => Operation::Write,
        "create" => Operation::Create,
        "delete" => Operation::Delete,
        "alter" => Operation::Alter,
        "describe" => Operation::Describe,
        "clusteraction" => Operation::ClusterAction,
        "describeconfigs" => Operation::DescribeConfigs,
        "alterconfigs" => Operation::AlterConfigs,
        "idempotentwrite" => Operation::IdempotentWrite,
        "twophasecommit" => Operation::TwoPhaseCommit,
        _ => return None,
    };
    let (kind, name) = resource.split_once(':').unwrap_or((resource, ""));
    let prefix = name.strip_suffix('*').filter(|prefix| !prefix.is_empty());
    let named = prefix.unwrap_or(name);
    let resource = match kind.to_ascii_lowercase().replace(['-', '_'], "").as_str() {
        "cluster" if name.is_empty() => return Some((denies, principal, operation, Resource::cluster())),
        _ if named.is_empty() => return None,
        "topic" => Resource::topic(named),
        "group" => Resource::group(named),
        "transactionalid" => Resource::transactional_id(named),
        _ => return None,
    };
    let resource = if prefix.is_some() { resource.prefixed() } else { resource };
    principal.contains(':').then_some((denies, principal, operation, resource))
}

/// Everything of the file but the listeners.
pub(super) fn settings(properties: &mut Properties, mut builder: BrokerBuilder) -> Result<BrokerBuilder, Failure> {
    if let Some(authorizer) = authorizer(properties)? {
        builder = builder.authorizer(authorizer);
    }
    let auto_create = properties.parsed("auto.create.topics.enable")?;
    let partitions: Option<i32> = properties.parsed("num.partitions")?;
    let replication = properties.parsed("default.replication.factor")?;
    let max_request = properties.parsed("socket.request.max.bytes")?;
    let max_idle = properties.parsed("connections.max.idle.ms")?;
    let max_connections = properties.parsed("max.connections")?;
    let failed_delay = properties.parsed("connection.failed.authentication.delay.ms")?;
    let max_timeout = properties.parsed("transaction.max.timeout.ms")?;
    if partitions.is_some_and(|partitions| !(1..=100_000).contains(&partitions)) {
        return Err(Failure::usage("num.partitions must be from 1 to 100000"));
    }
    Ok(builder.configure(|config| {
        config.auto_create_topics = auto_create.unwrap_or(config.auto_create_topics);
        config.default_partitions = partitions.unwrap_or(config.default_partitions);
        config.default_replication = replication.unwrap_or(config.default_replication);
        config.max_request_bytes = max_request.unwrap_or(config.max_request_bytes);
        config.connections_max_idle_ms = max_idle.unwrap_or(config.connections_max_idle_ms);
        config.max_connections = max_connections.unwrap_or(config.max_connections);
        config.failed_authentication_delay_ms = failed_delay.unwrap_or(config.failed_authentication_delay_ms);
        config.transaction_max_timeout_ms = max_timeout.unwrap_or(config.transaction_max_timeout_ms);
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn properties(text: &str) -> Properties {
        let pair = |line: &str| line.split_once('=').map(|(name, value)| (name.trim().to_owned(), value.to_owned()));
        Properties::new(text.lines().filter_map(pair).collect())
    }

    fn message(failure: Failure) -> String {
        format!("{failure:?}")
    }

    #[test]
    fn listeners_with_users() {
        let mut all = properties(
            "listeners=PLAINTEXT://127.0.0.1:0,SAFE://127.0.0.1:9500
             listener.security.protocol.map=SAFE:SASL_PLAINTEXT
             sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-512
             listener.name.safe.plain.sasl.jaas.config=x.PlainLoginModule required user_alice=\"pw\";
             listener.name.safe.connections.max.reauth.ms=5000
             log.dirs=/tmp/kafka",
        );
        let found = listeners(&mut all, 2).unwrap().unwrap();
        assert_eq!(found.addresses.len(), 2);
        let expected = Listener::sasl_plaintext("SAFE", [Mechanism::Plain, Mechanism::ScramSha512])
            .user_of(Mechanism::Plain, "alice", "pw")
            .max_reauth(Duration::from_secs(5))
            .addresses([SocketAddr::from(([127, 0, 0, 1], 9500)), SocketAddr::from(([127, 0, 0, 1], 9501))]);
        assert_eq!(found.further, [expected]);
        assert_eq!(all.unknown().collect::<Vec<_>>(), ["log.dirs"]);
    }

    #[test]
    fn rules() {
        let mut all = properties(
            "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
             super.users=User:admin;User:CN=root,O=x
             kshare.acl.1=allow User:alice read topic:orders
             kshare.acl.2=deny User:* Write transactional-id:pre*
             kshare.acl.3=allow User:bob idempotent-write cluster",
        );
        let expected = Authorizer::new()
            .super_user("User:admin")
            .super_user("User:CN=root,O=x")
            .allow("User:alice", Operation::Read, Resource::topic("orders"))
            .deny("User:*", Operation::Write, Resource::transactional_id("pre").prefixed())
            .allow("User:bob", Operation::IdempotentWrite, Resource::cluster());
        assert_eq!(authorizer(&mut all).unwrap(), Some(expected));
        assert_eq!(all.unknown().count(), 0);
        for bad in ["allow alice read topic:t", "allow User:a eat topic:t", "allow User:a read topic:", "x", ""] {
            assert!(rule(bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn what_makes_no_sense_is_told() {
        for (text, part) in [
            ("listeners=X://127.0.0.1:1", "listener.security.protocol.map"),
            ("listeners=127.0.0.1:1", "NAME://host:port"),
            ("listeners=SSL://127.0.0.1:1\nssl.keystore.type=JKS", "only PEM"),
            ("listeners=SASL_PLAINTEXT://127.0.0.1:1\nsasl.enabled.mechanisms=GSSAPI", "GSSAPI"),
        ] {
            let failure = listeners(&mut properties(text), 1).err().map(message).unwrap_or_default();
            assert!(failure.contains(part), "{failure}");
        }
        let failure = authorizer(&mut properties("kshare.acl.1=allow User:a read topic:t")).err().map(message);
        assert!(failure.unwrap_or_default().contains("authorizer.class.name"));
    }
}
