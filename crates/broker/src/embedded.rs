//! `EmbeddedBroker`: a running cluster, and its builder.

use crate::net::{self, Hub, Limits, Place, run_timer, start_time};
use crate::persistence::{Saved, Store};
use crate::security::SecurityError;
use crate::settings::GroupBounds;
use crate::{Authorizer, Listener, Operation, Resource};
use crate::{Cluster, ClusterConfig, ClusterDump, CoordinatorKind, DataDirError, Fault, FaultId, NodeConfig, Now};
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher, Hasher};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::DuplexStream;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

/// Bytes that an in-memory connection holds in each direction.
const MEMORY_PIPE: usize = 1 << 20;

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
        cluster.seed_secrets(std::hash::RandomState::new().build_hasher().finish());
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
struct Port {
    name: String,
    tls: Option<TlsAcceptor>,
    /// A socket of each node.
    sockets: Vec<TcpListener>,
    /// Where clients are told to connect to, for each node.
    advertised: Vec<(String, u16)>,
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

/// A running cluster. Dropping it stops it and closes all connections.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// use kafka_share_broker::EmbeddedBroker;
///
/// let broker = EmbeddedBroker::builder().nodes(3).topic("orders", 4).start().await?;
/// println!("bootstrap.servers={}", broker.bootstrap_servers());
/// broker.move_leader("orders", 0, 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct EmbeddedBroker {
    hub: Arc<Hub>,
    nodes: Vec<NodeConfig>,
    /// Bootstrap servers of each listener.
    listeners: Vec<(String, String)>,
    /// By node and listener.
    memory: BTreeMap<(i32, usize), mpsc::UnboundedSender<DuplexStream>>,
    tasks: JoinSet<()>,
}

impl EmbeddedBroker {
    /// What the broker is to be like.
    pub fn builder() -> BrokerBuilder {
        BrokerBuilder::default()
    }

    fn run(hub: Hub, config: ClusterConfig, ports: Vec<Port>) -> Self {
        let hub = Arc::new(hub);
        let mut tasks = JoinSet::new();
        let mut memory = BTreeMap::new();
        let mut listeners = Vec::new();
        let max_idle = Duration::from_millis(config.connections_max_idle_ms);
        let limits = Limits { max_frame: config.max_request_bytes, max_idle };
        let max_connections = config.max_connections.max(1);
        for (index, port) in ports.into_iter().enumerate() {
            let all: Vec<String> = port.advertised.iter().map(|(host, port)| format!("{host}:{port}")).collect();
            listeners.push((port.name, all.join(",")));
            for (node, socket) in config.nodes.iter().zip(port.sockets) {
                let (sender, memory_of) = mpsc::unbounded_channel();
                memory.insert((node.id, index), sender);
                let (hub, tls) = (hub.clone(), port.tls.clone());
                let place = Place { node: node.id, listener: index };
                let listener = net::Listener { hub, place, tls, limits, max_connections, memory: memory_of };
                tasks.spawn(listener.run(socket));
            }
        }
        if !hub.is_manual() {
            tasks.spawn(run_timer(hub.clone()));
        }
        EmbeddedBroker { hub, nodes: config.nodes, listeners, memory, tasks }
    }

    /// `host:port` of every node on its first listener, comma-separated.
    #[must_use]
    pub fn bootstrap_servers(&self) -> String {
        let all: Vec<String> = self.nodes.iter().map(|n| format!("{}:{}", n.host, n.port)).collect();
        all.join(",")
    }

    /// The same for a further listener; `None` where there is none of this name.
    #[must_use]
    pub fn bootstrap_servers_of(&self, listener: &str) -> Option<String> {
        self.listeners.iter().find(|(name, _)| name == listener).map(|(_, servers)| servers.clone())
    }

    /// The listeners in their order, with the bootstrap servers of each.
    pub fn listeners(&self) -> impl Iterator<Item = (&str, &str)> {
        self.listeners.iter().map(|(name, servers)| (name.as_str(), servers.as_str()))
    }

    /// The nodes, with the ports they got.
    #[must_use]
    pub fn nodes(&self) -> &[NodeConfig] {
        &self.nodes
    }

    /// Connects to a node without a socket; `None` where there is no such node. The stream speaks the Kafka protocol
    /// like a tcp connection.
    #[must_use]
    pub fn connect_in_memory(&self, node: i32) -> Option<DuplexStream> {
        let (ours, theirs) = tokio::io::duplex(MEMORY_PIPE);
        self.memory.get(&(node, 0))?.send(theirs).ok()?;
        Some(ours)
    }

    /// The same for another listener than the first. What the listener encrypts is encrypted there too.
    #[must_use]
    pub fn connect_in_memory_to(&self, node: i32, listener: &str) -> Option<DuplexStream> {
        let index = self.listeners.iter().position(|(name, _)| name == listener)?;
        let (ours, theirs) = tokio::io::duplex(MEMORY_PIPE);
        self.memory.get(&(node, index))?.send(theirs).ok()?;
        Some(ours)
    }

    /// Allows a principal (`User:alice`, or `User:*` for everybody) an operation. If there was no authoriser before, there is
    /// one from now on, and what is not allowed is denied.
    pub fn allow(&self, principal: &str, operation: Operation, resource: Resource) {
        self.hub.with(|cluster, _| cluster.allow(principal, operation, resource));
    }

    /// Denies a principal an operation, whatever is allowed. If there was no authoriser before, there is one from now on.
    pub fn deny(&self, principal: &str, operation: Operation, resource: Resource) {
        self.hub.with(|cluster, _| cluster.deny(principal, operation, resource));
    }

    /// Takes back what [`EmbeddedBroker::allow`] gave; says whether there was such a rule.
    pub fn remove_allow(&self, principal: &str, operation: Operation, resource: &Resource) -> bool {
        self.hub.with(|cluster, _| cluster.remove_allow(principal, operation, resource))
    }

    /// Takes back what [`EmbeddedBroker::deny`] took; says whether there was such a rule.
    pub fn remove_deny(&self, principal: &str, operation: Operation, resource: &Resource) -> bool {
        self.hub.with(|cluster, _| cluster.remove_deny(principal, operation, resource))
    }

    /// Calls into the machine, for what has no method here. Keep it short: all connections wait meanwhile.
    pub fn with_cluster<R>(&self, call: impl FnOnce(&mut Cluster, Now) -> R) -> R {
        self.hub.with(call)
    }

    /// See [`Cluster::move_leader`].
    pub fn move_leader(&self, topic: &str, partition: i32, node: i32) -> bool {
        self.hub.with(|cluster, now| cluster.move_leader(now, topic, partition, node))
    }

    /// See [`Cluster::move_coordinator`].
    pub fn move_coordinator(&self, kind: CoordinatorKind, key: &str, node: i32) -> bool {
        self.hub.with(|cluster, now| cluster.move_coordinator(now, kind, key, node))
    }

    /// See [`Cluster::restart_node`].
    pub fn restart_node(&self, node: i32) -> bool {
        self.hub.with(|cluster, now| cluster.restart_node(now, node))
    }

    /// See [`Cluster::stop_node`].
    pub fn stop_node(&self, node: i32) -> bool {
        self.hub.with(|cluster, now| cluster.stop_node(now, node))
    }

    /// See [`Cluster::start_node`].
    pub fn start_node(&self, node: i32) -> bool {
        self.hub.with(|cluster, now| cluster.start_node(now, node))
    }

    /// Makes something go wrong; see [`Fault`].
    pub fn fault(&self, fault: Fault) -> FaultId {
        self.hub.with(|cluster, _| cluster.inject(fault))
    }

    /// See [`Cluster::fault_hits`].
    #[must_use]
    pub fn fault_hits(&self, id: FaultId) -> u32 {
        self.hub.with(|cluster, _| cluster.fault_hits(id))
    }

    /// Takes all faults back.
    pub fn clear_faults(&self) {
        self.hub.with(|cluster, _| cluster.clear_faults());
    }

    /// Moves the broker's clocks on, so that timeouts, locks and sessions of that time run out before this returns. What
    /// clients are told of it is on its way by then.
    pub fn advance_clock(&self, by: Duration) {
        self.hub.advance(by);
    }

    /// The broker's time.
    #[must_use]
    pub fn now(&self) -> Now {
        self.hub.now()
    }

    /// Lets all acquisition locks of a share group expire now; says how many share-partitions had any.
    pub fn expire_locks(&self, group: &str) -> usize {
        self.hub.with(|cluster, now| cluster.expire_share_locks(now, group))
    }

    /// What the cluster looks like inside; see [`ClusterDump`].
    #[must_use]
    pub fn dump(&self) -> ClusterDump {
        self.hub.with(|cluster, now| cluster.dump(now))
    }

    /// [`EmbeddedBroker::dump`] as indented JSON.
    #[must_use]
    pub fn dump_json(&self) -> String {
        self.dump().to_json()
    }

    /// Connections that are open.
    #[must_use]
    pub fn connection_count(&self) -> usize {
        self.hub.with(|cluster, _| cluster.connection_count())
    }

    /// Waits until the data directory cannot be written any more, and says why. From then on the broker closes every
    /// connection and acknowledges nothing; what it acknowledged before is kept. Without a data directory, or while
    /// that works, this waits for ever. A call that is dropped has no effect.
    pub async fn failed(&self) -> Arc<DataDirError> {
        self.hub.failure().await
    }

    /// Stops listening, closes all connections and waits until that is done.
    ///
    /// # Cancel safety
    /// Dropping the future stops the broker all the same, without the wait.
    pub async fn shutdown(mut self) {
        self.tasks.shutdown().await;
    }
}

impl std::fmt::Debug for EmbeddedBroker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EmbeddedBroker").field("nodes", &self.nodes).finish_non_exhaustive()
    }
}
