//! `EmbeddedBroker`: a running cluster.

mod builder;

pub use builder::{BrokerBuilder, StartError};

use crate::net::{self, Hub, Limits, Place, run_timer};
use crate::{Cluster, ClusterConfig, ClusterDump, CoordinatorKind, DataDirError, Fault, FaultId, NodeConfig, Now};
use crate::{Operation, Resource};
use builder::Port;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::DuplexStream;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// Bytes that an in-memory connection holds in each direction.
const MEMORY_PIPE: usize = 1 << 20;

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
        let authentication = Duration::from_millis(config.authentication_timeout_ms);
        let limits = Limits { max_frame: config.max_request_bytes, max_idle, authentication };
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
