//! `kshare broker`: the embedded broker as a process.

mod config;
mod jaas;

use crate::exit::Failure;
use crate::properties::read_properties;
use crate::signals::Signals;
use clap::Args;
use kafka_share_broker::{BrokerBuilder, EmbeddedBroker, StartError};
use std::io::Write;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;

/// Options of `kshare broker`.
#[derive(Debug, Args)]
#[command(after_help = "For development and tests: one process, no replication. Production is Apache \
Kafka.

Examples:
  kshare broker                                            one node on 127.0.0.1:9092, in memory
  kshare broker --topic orders:4 --topic results           with topics of 4 partitions and of 1
  kshare broker --nodes 3                                  three nodes, on ports 9092, 9093 and 9094
  kshare broker --data-dir ./data                          goes on where the last run ended, however it ended
  kshare broker --listen 0.0.0.0:9092 --advertise myhost   for clients on other machines
  kshare broker --config server.properties                 listeners, TLS, SASL and rights by Kafka's names
  kshare broker --released                                 nothing that Apache Kafka 4.4 does not offer

--config takes, of a Kafka server's properties: listeners, advertised.listeners, listener.security.protocol.map,
ssl.keystore.* and ssl.truststore.* (PEM), ssl.client.auth, sasl.enabled.mechanisms, MECHANISM.sasl.jaas.config with
user_NAME=\"PASSWORD\" (also for SCRAM, whose users Kafka keeps elsewhere), connections.max.reauth.ms, all of them also after
listener.name.NAME.; authorizer.class.name, super.users, allow.everyone.if.no.acl.found; num.partitions and some more. Others are
named and have no effect. What Kafka has no properties for:
  kshare.acl.1=allow User:alice read topic:orders          further ones as kshare.acl.2 and so on; `deny`, `topic:ord*`,
                                                           `group:`, `transactional-id:` and `cluster`
  kshare.oauthbearer.hs256.secret=..                       how tokens are checked, or kshare.oauthbearer.rs256.key.location
  kshare.scram.iterations=4096

With --data-dir an answer is sent once the operating system has the data: they survive the end of the process, by
kill -9 too. --fsync waits for the device as well. All data stay in memory besides. Without --data-dir everything is gone
when the broker ends.

Ctrl-C or SIGTERM ends it with exit code 0. Exit code 1: it could not start or go on, for instance as the port is in use
or the disk is full. Exit code 2: wrong usage. KSHARE_LOG=kafka_share_broker=debug shows more, =error less.")]
pub(crate) struct BrokerArgs {
    /// Address of the first node; further nodes take the ports that follow. Port 0 takes free ones
    /// [default: 127.0.0.1:9092, or as --config says]
    #[arg(long, value_name = "HOST:PORT")]
    listen: Option<String>,
    /// Properties of a Kafka server: listeners, TLS, SASL, rights
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Number of nodes
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=64))]
    nodes: u16,
    /// Where clients are told to connect to, if not to the address that is listened on. A port is the first node's
    #[arg(long, value_name = "HOST[:PORT]", value_parser = advertised)]
    advertise: Option<(String, Option<u16>)>,
    /// Keep everything in this directory, which is created if needed, and go on from what it holds
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// Answer only once the device has the data, to survive a power cut; slow
    #[arg(long, requires = "data_dir")]
    fsync: bool,
    /// Create a topic unless it exists, with 1 partition or as many as are given; can be repeated
    #[arg(long = "topic", value_name = "NAME[:PARTITIONS]", value_parser = topic)]
    topics: Vec<(String, i32)>,
    /// transaction.version to run with
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(i16).range(1..=2))]
    transaction_version: i16,
    /// Offer only what Apache Kafka 4.4 offers: no transactional acknowledgements
    #[arg(long)]
    released: bool,
}

fn advertised(text: &str) -> Result<(String, Option<u16>), String> {
    let (host, port) = match text.rsplit_once(':') {
        // An IPv6 address without a port has colons too.
        Some((host, port)) if !host.contains(':') || host.ends_with(']') => {
            let port = port.parse().ok().filter(|port| *port != 0);
            (host, Some(port.ok_or("the port must be a number from 1 to 65535")?))
        }
        _ => (text, None),
    };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    if host.is_empty() || host.contains(char::is_whitespace) {
        return Err("the host is missing".into());
    }
    Ok((host.to_owned(), port))
}

fn topic(text: &str) -> Result<(String, i32), String> {
    let (name, partitions) = text.split_once(':').unwrap_or((text, "1"));
    let partitions = partitions.parse().ok().filter(|n| (1..=100_000).contains(n));
    let partitions = partitions.ok_or("the number of partitions must be from 1 to 100000")?;
    if name.is_empty() {
        return Err("the name is missing".into());
    }
    Ok((name.to_owned(), partitions))
}

fn addresses(args: &BrokerArgs) -> Result<Vec<SocketAddr>, Failure> {
    let listen = args.listen.as_deref().unwrap_or("127.0.0.1:9092");
    let refused = |why: &dyn std::fmt::Display| Failure::usage(format!("--listen {listen}: {why}"));
    let mut found = listen.to_socket_addrs().map_err(|error| refused(&error))?;
    let first = found.next().ok_or_else(|| refused(&"no address"))?;
    let port = |i: u16| match first.port() {
        0 => Ok(0),
        port => port.checked_add(i).ok_or_else(|| Failure::usage("--listen and --nodes go past port 65535")),
    };
    (0..args.nodes).map(|i| Ok(SocketAddr::new(first.ip(), port(i)?))).collect()
}

fn builder(args: &BrokerArgs) -> Result<BrokerBuilder, Failure> {
    let mut properties = config::Properties::new(args.config.as_deref().map_or(Ok(Vec::new()), read_properties)?);
    let listeners = config::listeners(&mut properties, args.nodes)?;
    if listeners.is_some() && (args.listen.is_some() || args.advertise.is_some()) {
        return Err(Failure::usage("--listen and --advertise go with no listeners in --config, which says the same"));
    }
    let addresses = match &listeners {
        Some(listeners) => listeners.addresses.clone(),
        None => addresses(args)?,
    };
    let everywhere = addresses.iter().any(|address| address.ip().is_unspecified());
    let mut builder = EmbeddedBroker::builder()
        .listen(addresses)
        .transaction_version(args.transaction_version)
        .transactional_acks(!args.released)
        .sync_writes(args.fsync);
    match &args.advertise {
        Some((_, Some(port))) if port.checked_add(args.nodes - 1).is_none() => {
            return Err(Failure::usage("--advertise and --nodes go past port 65535"));
        }
        Some((host, port)) => {
            builder = builder.advertise(host);
            if let Some(port) = port {
                builder = builder.advertise_port(*port);
            }
        }
        // No client can connect to "any address".
        None if everywhere && listeners.is_none() => builder = builder.advertise("localhost"),
        None => {}
    }
    for (name, partitions) in &args.topics {
        builder = builder.topic(name, *partitions);
    }
    if let Some(path) = &args.data_dir {
        builder = builder.data_dir(path);
    }
    builder = config::settings(&mut properties, builder)?;
    if let Some(listeners) = listeners {
        builder = builder.listener(listeners.first);
        builder = listeners.further.into_iter().fold(builder, BrokerBuilder::also_listen);
    }
    for name in properties.unknown() {
        say(&format!("property {name} has no effect here"));
    }
    Ok(builder)
}

pub(crate) async fn run(args: BrokerArgs) -> Result<(), Failure> {
    // Before the first line, so that nobody who waits for it can signal too early.
    let mut end = Signals::new()?;
    let broker = builder(&args)?.start().await.map_err(|error| match error {
        StartError::Topic { .. } | StartError::Nodes(_) | StartError::Security(_) => Failure::usage(error),
        StartError::Listen { .. } => {
            Failure::new(format!("{error}; is another broker running? --listen takes another"))
        }
        error => Failure::new(error),
    })?;
    let at = broker.bootstrap_servers();
    say(&format!("embedded broker at {at}, for development and tests; production is Apache Kafka"));
    for (name, servers) in broker.listeners().skip(1) {
        say(&format!("listener {name} at {servers}"));
    }
    match &args.data_dir {
        Some(path) => say(&format!("data are kept in {}", path.display())),
        None => say("everything is in memory and gone when it ends; --data-dir keeps it"),
    }
    say("ready; Ctrl-C ends it");
    tokio::select! {
        () = end.any() => {}
        error = broker.failed() => {
            broker.shutdown().await;
            return Err(Failure::new(format!("{error}; what was acknowledged before is kept")));
        }
    }
    say("ending");
    broker.shutdown().await;
    say("ended");
    Ok(())
}

/// A broker goes on when nobody reads what it says.
fn say(line: &str) {
    let _ = writeln!(std::io::stdout(), "{line}");
}
