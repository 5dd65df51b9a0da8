//! Nodes of the cluster and where they listen.

use super::Cluster;
use crate::NodeConfig;
use kafka_share_wire::Str;

/// A node.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub(crate) id: i32,
    pub(crate) host: Str,
    pub(crate) port: i32,
    /// Where its further listeners are, in their order.
    pub(crate) further: Vec<(Str, i32)>,
    /// Whether it leads and answers.
    pub(crate) alive: bool,
}

impl Node {
    pub(crate) fn new(config: &NodeConfig) -> Self {
        Node {
            id: config.id,
            host: Str::from(&config.host),
            port: i32::from(config.port),
            further: Vec::new(),
            alive: true,
        }
    }

    /// Where clients of a listener find this node.
    pub(crate) fn endpoint(&self, listener: usize) -> (Str, i32) {
        let further = listener.checked_sub(1).and_then(|index| self.further.get(index));
        further.map_or_else(|| (self.host.clone(), self.port), |(host, port)| (host.clone(), *port))
    }
}

impl Cluster {
    /// Sets where `node` says it listens, once the port is known. `false` where there is no such node.
    pub fn set_address(&mut self, node: i32, host: &str, port: u16) -> bool {
        let Some(node) = self.nodes.iter_mut().find(|n| n.id == node) else { return false };
        node.host = Str::from(host);
        node.port = i32::from(port);
        true
    }

    /// Says where the listeners of `node` are that follow the first, in their order. `false` where there is no such node.
    pub fn set_further_addresses(&mut self, node: i32, addresses: &[(String, u16)]) -> bool {
        let Some(node) = self.nodes.iter_mut().find(|n| n.id == node) else { return false };
        node.further = addresses.iter().map(|(host, port)| (Str::from(host), i32::from(*port))).collect();
        true
    }

    pub(crate) fn node(&self, id: i32) -> Option<&Node> {
        self.nodes.iter().find(|node| node.id == id)
    }

    pub(crate) fn alive_nodes(&self) -> impl Iterator<Item = &Node> {
        self.nodes.iter().filter(|node| node.alive)
    }

    /// The node that plays the controller: the first that is alive.
    pub(crate) fn controller_id(&self) -> i32 {
        self.alive_nodes().next().map_or(-1, |node| node.id)
    }
}
