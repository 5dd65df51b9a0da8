//! What an embedded broker is to be like, and how it starts.

use super::EmbeddedBroker;
use crate::net::{self, Hub, start_time};
use crate::persistence::{Saved, Store};
use crate::security::{KEY_BYTES, SecurityError};
use crate::settings::GroupBounds;
use crate::{Authorizer, Cluster, ClusterConfig, DataDirError, Listener, NodeConfig, Now};
use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

/// Why a broker did not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// An address cannot be listened on.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why.
        source: std::io::Error,
    },
    /// The data directory cannot be used.
    #[error(transparent)]
    DataDir(#[from] DataDirError),
    /// There must be at least one node, and at most 1,000.
    #[error("a cluster needs 1 to 1000 nodes, {0} were asked for")]
    Nodes(usize),
    /// The level is not one that this broker has.
    #[error("transaction.version {0} does not exist; 0, 1 and 2 do")]
    TransactionVersion(i16),
    /// The operating system gives no random bytes, without which authentication could be foreseen.
    #[error("the operating system gives no random bytes: {0}")]
    Randomness(String),
    /// A listener cannot be secured as it is to be.
    #[error(transparent)]
    Security(#[from] SecurityError),
    /// A topic of the builder cannot be created.
    #[error("cannot create topic {topic:?}: {message}")]
    Topic {
        /// Its name.
        topic: String,
        /// Why.
        message: String,
    },
}

/// What an [`EmbeddedBroker`] is to be like.
#[derive(Debug, Clone)]
#[must_use]
pub struct BrokerBuilder {
    listen: Vec<SocketAddr>,
    advertise: Option<String>,
    advertise_port: Option<u16>,
    data_dir: Option<PathBuf>,
    sync_writes: bool,
    seed: u64,
    topics: Vec<(String, i32)>,
    manual_clock: bool,
    config: ClusterConfig,
}

impl Default for BrokerBuilder {
    fn default() -> Self {
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        BrokerBuilder {
            listen: vec![any],
            advertise: None,
            advertise_port: None,
            data_dir: None,
            sync_writes: false,
            seed: 0,
            topics: Vec::new(),
            manual_clock: false,
            config: ClusterConfig::default(),
        }
    }
}

impl BrokerBuilder {
    /// Number of nodes, with ids from 1 on, each on a free loopback port. Default 1.
    pub fn nodes(mut self, count: usize) -> Self {
        self.listen = vec![SocketAddr::from((Ipv4Addr::LOCALHOST, 0)); count];
        self
    }

    /// One node per address; port 0 takes a free one.
    pub fn listen(mut self, addresses: impl IntoIterator<Item = SocketAddr>) -> Self {
        self.listen = addresses.into_iter().collect();
        self
    }

    /// The host that clients are told to connect to. Default: the address that is listened on.
    pub fn advertise(mut self, host: impl Into<String>) -> Self {
        self.advertise = Some(host.into());
        self
    }

    /// The port that clients are told to connect to for the first node; further nodes have the ports that follow.
    /// Default: the port that is listened on.
    pub fn advertise_port(mut self, first: u16) -> Self {
        self.advertise_port = Some(first);
        self
    }

    /// Keeps everything that was acknowledged in this directory, which is created if needed, and goes on from it at the
    /// next start. One broker at a time can use it. All data stay in memory as well. Default: in memory only.
    ///
    /// Answers are sent once the operating system has the data, so that it survives the end of the process in whatever
    /// way; see [`BrokerBuilder::sync_writes`] for the end of the machine. If the directory cannot be written any
    /// more, the broker closes all connections, acknowledges nothing further, and [`EmbeddedBroker::failed`] says why.
    pub fn data_dir(mut self, path: impl Into<PathBuf>) -> Self {
        self.data_dir = Some(path.into());
        self
    }

    /// Whether answers wait until the device has the data (`fsync`), which costs a device write for each request that
    /// changes something. Default false.
    pub fn sync_writes(mut self, on: bool) -> Self {
        self.sync_writes = on;
        self
    }

    /// Seed of ids and other choices. Default 0.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Creates a topic at the start, unless the data directory has it.
    pub fn topic(mut self, name: impl Into<String>, partitions: i32) -> Self {
        self.topics.push((name.into(), partitions));
        self
    }

    /// Makes time stand still: it moves only by [`EmbeddedBroker::advance_clock`], which lets timeouts, locks and waits end
    /// one after the other, each at its time. The clock starts at the present time.
    ///
    /// Requests that wait (`max.wait.ms`, `marker_delay_ms`) then wait until the clock is moved, and group members are not
    /// removed for being silent. Clients keep their own time.
    pub fn manual_clock(mut self) -> Self {
        self.manual_clock = true;
        self
    }

    /// `transaction.version`: 2 (the default), 1 or 0.
    pub fn transaction_version(mut self, level: i16) -> Self {
        self.config.features.transaction_version = level;
        self
    }

    /// Whether share acknowledgements can be part of a transaction (KIP-1289 draft). Default true; false makes the
    /// cluster offer what Kafka 4.4.0 does.
    pub fn transactional_acks(mut self, on: bool) -> Self {
        self.config.features.transactional_acks = on;
        self
    }

    /// Whether two-phase commit (KIP-939) is offered: InitProducerId v6, transactions without timeout (`Enable2Pc`), and
    /// prepared transactions that their producer finds again (`KeepPreparedTxn`; needs `transaction.version` 2). Default
    /// false, as in Kafka 4.4.0.
    pub fn two_phase_commit(mut self, on: bool) -> Self {
        self.config.features.two_phase_commit = on;
        self
    }

    /// Whether produce and metadata requests create topics. Default true.
    pub fn auto_create_topics(mut self, on: bool) -> Self {
        self.config.auto_create_topics = on;
        self
    }

    /// Bounds and defaults of share-group settings, for instance to allow locks of a second.
    pub fn group_bounds(mut self, bounds: GroupBounds) -> Self {
        self.config.groups = bounds;
        self
    }

    /// How the first listener is secured, whose addresses are those of [`BrokerBuilder::listen`] or
    /// [`BrokerBuilder::nodes`]. Default: `Listener::plaintext("PLAINTEXT")`.
    pub fn listener(mut self, listener: Listener) -> Self {
        match self.config.listeners.first_mut() {
            Some(first) => *first = listener,
            None => self.config.listeners.push(listener),
        }
        self
    }

    /// A further listener of every node. Its clients are told of its own addresses.
    pub fn also_listen(mut self, listener: Listener) -> Self {
        self.config.listeners.push(listener);
        self
    }

    /// Who may do what. Default: everybody may do everything.
    pub fn authorizer(mut self, authorizer: Authorizer) -> Self {
        self.config.authorizer = Some(authorizer);
        self
    }

    /// Changes any other setting. The list of nodes is overwritten at the start.
    pub fn configure(mut self, change: impl FnOnce(&mut ClusterConfig)) -> Self {
        change(&mut self.config);
        self
    }

    /// Binds all addresses and starts. A call that is dropped has started nothing that lasts: its addresses are free again.
    ///
    /// # Errors
    /// An address that cannot be bound, and settings that make no sense.
    pub async fn start(mut self) -> Result<EmbeddedBroker, StartError> {
        if self.listen.is_empty() || self.listen.len() > 1000 {
            return Err(StartError::Nodes(self.listen.len()));
        }
        let level = self.config.features.transaction_version;
        if !(0..=2).contains(&level) {
            return Err(StartError::TransactionVersion(level));
        }
        self.prepare_listeners()?;
        let mut ports = Vec::new();
        for listener in &self.config.listeners {
            ports.push(Port::open(listener).await?);
        }
        let at = |node: usize| ports.iter().filter_map(move |port| port.advertised.get(node).cloned());
        let main = (0..self.listen.len()).filter_map(|node| at(node).next());
        let node = |(index, (host, port)): (usize, (String, u16))| NodeConfig { id: index as i32 + 1, host, port };
        self.config.nodes = main.enumerate().map(node).collect();
        let start = start_time();
        let (mut cluster, mut store) = self.machine(start)?;
        let mut key = [0; KEY_BYTES];
        getrandom::fill(&mut key).map_err(|error| StartError::Randomness(error.to_string()))?;
        cluster.seed_secrets(key);
        for (index, node) in self.config.nodes.iter().enumerate() {
            cluster.set_further_addresses(node.id, &at(index).skip(1).collect::<Vec<_>>());
        }
        for (topic, partitions) in &self.topics {
            if store.is_some() && cluster.topic_id(topic).is_some() {
                continue;
            }
            let refused = |message| StartError::Topic { topic: topic.clone(), message };
            cluster.create_topic(topic, *partitions).map_err(refused)?;
        }
        if let Some(store) = &mut store {
            store.commit(cluster.take_changes())?;
        }
        Ok(EmbeddedBroker::run(Hub::new(cluster, store, start, self.manual_clock), self.config, ports))
    }

    /// Gives every listener an address for each node, and checks what they are to be.
    fn prepare_listeners(&mut self) -> Result<(), SecurityError> {
        let nodes = self.listen.len();
        if self.config.listeners.is_empty() {
            self.config.listeners.push(Listener::plaintext("PLAINTEXT"));
        }
        let mut names = BTreeSet::new();
        for (index, listener) in self.config.listeners.iter_mut().enumerate() {
            if index == 0 {
                listener.addresses.clone_from(&self.listen);
                if self.advertise.is_some() || self.advertise_port.is_some() {
                    listener.advertised = Some((self.advertise.clone().unwrap_or_default(), self.advertise_port));
                }
            } else if listener.addresses.is_empty() {
                listener.addresses = vec![SocketAddr::from((Ipv4Addr::LOCALHOST, 0)); nodes];
            }
            let (listener_name, addresses) = (|| listener.name.clone(), listener.addresses.len());
            if addresses != nodes {
                return Err(SecurityError::Addresses { listener: listener_name(), addresses, nodes });
            }
            if !names.insert(listener.name.clone()) {
                return Err(SecurityError::SameName(listener_name()));
            }
            listener.check()?;
        }
        Ok(())
    }

    fn machine(&self, start: Now) -> Result<(Cluster, Option<Store>), StartError> {
        let Some(path) = &self.data_dir else { return Ok((Cluster::new(self.config.clone(), self.seed), None)) };
        let (store, saved) = Store::open(path, self.sync_writes)?;
        let Saved { values, logs } = &saved;
        tracing::info!(directory = %path.display(), values = values.len(), logs = logs.len(), "data directory opened");
        let mut cluster =
            Cluster::restore(self.config.clone(), self.seed, start, saved).map_err(|error| store.explain(error))?;
        cluster.resume_service(start);
        Ok((cluster, Some(store)))
    }
}

/// A listener whose addresses are bound.
pub(super) struct Port {
    pub(super) name: String,
    pub(super) tls: Option<TlsAcceptor>,
    /// A socket of each node.
    pub(super) sockets: Vec<TcpListener>,
    /// Where clients are told to connect to, for each node.
    pub(super) advertised: Vec<(String, u16)>,
}

impl Port {
    async fn open(listener: &Listener) -> Result<Port, StartError> {
        let tls = net::acceptor(listener)?;
        let mut port = Port { name: listener.name.clone(), tls, sockets: Vec::new(), advertised: Vec::new() };
        for (index, address) in listener.addresses.iter().enumerate() {
            let failed = |source| StartError::Listen { address: *address, source };
            let socket = TcpListener::bind(address).await.map_err(failed)?;
            let bound = socket.local_addr().map_err(failed)?;
            let (host, first) = listener.advertised.clone().unwrap_or_default();
            let host = if host.is_empty() { bound.ip().to_string() } else { host };
            let offset = u16::try_from(index).unwrap_or(u16::MAX);
            port.advertised.push((host, first.map_or(bound.port(), |first| first.saturating_add(offset))));
            port.sockets.push(socket);
        }
        Ok(port)
    }
}
