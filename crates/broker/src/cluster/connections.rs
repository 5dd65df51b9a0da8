//! Connections: one request at a time each, the next ones in a bounded queue, as Kafka mutes a busy channel.

use super::Cluster;
use super::waiters::WaiterId;
use crate::security::{ANONYMOUS, Auth};
use crate::{Now, Output};
use bytes::Bytes;
use kafka_share_messages::ApiKey;
use kafka_share_wire::Str;
use std::collections::{HashMap, VecDeque};

/// Frames that may queue behind a request that waits.
const MAX_QUEUED: usize = 256;
/// Bytes of queued frames from which on the owner should stop reading.
const QUEUE_BYTES: usize = 4 << 20;

/// A connection, never used twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConnId(pub u64);

/// Why the machine closes a connection. Kafka closes in the same cases, without an answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CloseReason {
    /// The connection is not known, or was closed.
    #[error("the connection is closed")]
    Unknown,
    /// The frame's header or body cannot be read.
    #[error("the request cannot be read: {0}")]
    Malformed(String),
    /// The broker does not serve this API or version.
    #[error("{key} version {version} is not served here")]
    Unsupported {
        /// The API.
        key: ApiKey,
        /// The version asked for.
        version: i16,
    },
    /// More requests were sent ahead than may queue.
    #[error("more than {MAX_QUEUED} requests are queued behind one that waits")]
    QueueFull,
    /// The answer would have more entries than one may.
    #[error("the answer would have more than {entries} entries; ask for fewer things at a time")]
    AnswerTooLarge {
        /// How many it may have.
        entries: usize,
    },
    /// A fault that was asked for.
    #[error("closed by an injected fault")]
    Fault,
    /// A request that is not to be answered (produce with acks 0) failed; closing is the only way to tell.
    #[error("a produce request with acks 0 failed")]
    UnansweredError,
    /// The node was stopped or restarted.
    #[error("the node stopped")]
    NodeStopped,
    /// The listener is a SASL listener, and the client asked for something else before it authenticated.
    #[error("{key} was asked for on a connection that has not authenticated")]
    Unauthenticated {
        /// The API.
        key: ApiKey,
    },
    /// The client could not prove who it is; it was told so where there is a way to.
    #[error("authentication failed")]
    AuthenticationFailed,
    /// The client did not authenticate again before its session ended (KIP-368).
    #[error("the session ended and the client did not authenticate again")]
    SessionExpired,
    /// An answer could not be written; a defect of the broker.
    #[error("the answer cannot be encoded: {0}")]
    Encode(String),
}

#[derive(Debug)]
pub(super) struct Connection {
    pub(super) node: i32,
    /// The listener it came in by.
    pub(super) listener: usize,
    pub(super) auth: Auth,
    pub(super) state: Busy,
    queue: VecDeque<Bytes>,
    queued_bytes: usize,
}

/// What the request being served waits for.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Busy {
    /// Nothing is being served.
    Idle,
    /// A request is parked.
    Parked(WaiterId),
    /// A fault holds this connection's answers back for ever.
    Stuck,
}

#[derive(Debug, Default)]
pub(super) struct Connections {
    next: u64,
    open: HashMap<ConnId, Connection>,
}

impl Connections {
    pub(super) fn len(&self) -> usize {
        self.open.len()
    }

    pub(super) fn get(&self, conn: ConnId) -> Option<&Connection> {
        self.open.get(&conn)
    }

    pub(super) fn get_mut(&mut self, conn: ConnId) -> Option<&mut Connection> {
        self.open.get_mut(&conn)
    }

    pub(super) fn of_node(&self, node: i32) -> Vec<ConnId> {
        let mut conns: Vec<_> = self.open.iter().filter(|(_, c)| c.node == node).map(|(id, _)| *id).collect();
        conns.sort_unstable();
        conns
    }
}

impl Cluster {
    /// A client connected to the first listener of `node`.
    pub fn connect(&mut self, now: Now, node: i32) -> ConnId {
        self.connect_to(now, node, 0, None)
    }

    /// A client connected to a listener of `node`, by its place in [`ClusterConfig::listeners`](crate::ClusterConfig). TLS
    /// is the owner's: it says whose certificate the client has shown (`User:CN=..`), if any.
    pub fn connect_to(&mut self, _now: Now, node: i32, listener: usize, principal: Option<&str>) -> ConnId {
        let id = ConnId(self.connections.next);
        self.connections.next += 1;
        let alive = self.node(node).is_some_and(|n| n.alive);
        let settings = self.config.listeners.get(listener);
        // A listener that is not known lets nobody in.
        if let Some(settings) = settings.filter(|_| alive) {
            let auth = if settings.protocol.has_sasl() {
                Auth::sasl()
            } else {
                Auth::Open(principal.map_or(ANONYMOUS, Str::from))
            };
            let (queue, queued_bytes) = (VecDeque::new(), 0);
            let connection = Connection { node, listener, auth, state: Busy::Idle, queue, queued_bytes };
            self.connections.open.insert(id, connection);
        } else {
            self.output.push_back(Output::Close { conn: id });
        }
        id
    }

    /// The client's connection is gone: what it waited for is dropped, its share sessions end.
    pub fn disconnect(&mut self, now: Now, conn: ConnId) {
        let Some(connection) = self.connections.open.remove(&conn) else { return };
        if let Busy::Parked(waiter) = connection.state {
            self.waiters.remove(waiter);
        }
        crate::share::on_disconnect(self, now, conn, connection.node);
        self.run_woken(now);
    }

    /// Connections that are open.
    #[must_use]
    pub fn connection_count(&self) -> usize {
        self.connections.len()
    }

    /// Whether the owner should stop reading from `conn` until an answer was sent on it.
    #[must_use]
    pub fn is_backlogged(&self, conn: ConnId) -> bool {
        let backlog = |c: &Connection| c.queued_bytes >= QUEUE_BYTES || c.queue.len() >= MAX_QUEUED / 2;
        self.connections.open.get(&conn).is_some_and(backlog)
    }

    /// A request frame (without its size prefix) came in on `conn`.
    ///
    /// # Errors
    /// Why the connection must be closed, which it is for the machine already; its [`Output::Close`] is queued.
    pub fn handle_frame(&mut self, now: Now, conn: ConnId, frame: Bytes) -> Result<(), CloseReason> {
        let connection = self.connections.get_mut(conn).ok_or(CloseReason::Unknown)?;
        if connection.state != Busy::Idle {
            if connection.queue.len() >= MAX_QUEUED {
                return Err(self.close(now, conn, CloseReason::QueueFull));
            }
            connection.queued_bytes += frame.len();
            connection.queue.push_back(frame);
            return Ok(());
        }
        let node = connection.node;
        let result = self.serve(now.plus(self.ahead), conn, node, frame);
        let now = now.plus(self.ahead);
        let result = result.map_err(|reason| self.close(now, conn, reason));
        self.run_woken(now);
        result
    }

    /// Nothing more is answered on this connection.
    pub(super) fn hold(&mut self, conn: ConnId) {
        if let Some(connection) = self.connections.get_mut(conn) {
            connection.state = Busy::Stuck;
        }
    }

    /// Serves what queued behind a request that was answered.
    pub(super) fn drain(&mut self, now: Now, conn: ConnId) {
        while let Some(connection) = self.connections.get_mut(conn) {
            if connection.state != Busy::Idle {
                return;
            }
            let Some(frame) = connection.queue.pop_front() else { return };
            connection.queued_bytes -= frame.len();
            let node = connection.node;
            if let Err(reason) = self.serve(now, conn, node, frame) {
                self.close(now, conn, reason);
            }
        }
    }

    pub(crate) fn close(&mut self, now: Now, conn: ConnId, reason: CloseReason) -> CloseReason {
        tracing::debug!(conn = conn.0, %reason, "closing a connection");
        self.output.push_back(Output::Close { conn });
        self.disconnect(now, conn);
        reason
    }
}
