//! How connections stand, for whoever looks for what is wrong: a dump without secrets.

use super::cluster::Purpose;
use crate::SecurityProtocol;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// What a connection has carried; the connection's task counts, others read.
#[derive(Debug, Default)]
pub(super) struct Traffic {
    pub(super) received: AtomicU64,
    pub(super) sent: AtomicU64,
    pub(super) waiting: AtomicU64,
    pub(super) throttled_ms: AtomicU64,
}

impl Traffic {
    pub(super) fn add(counter: &AtomicU64, value: u64) {
        counter.fetch_add(value, Relaxed);
    }
}

/// Where a connection stands.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConnectionState {
    /// None is open now; the next request opens one.
    None,
    /// The socket is being opened, encrypted and authenticated.
    Connecting,
    /// Requests flow.
    Ready,
    /// The last one is over, for this reason.
    Closed(String),
}

/// One connection of a client, or the place for one.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ConnectionInfo {
    /// The broker's id; `None` for an address of `bootstrap.servers`.
    pub node: Option<i32>,
    /// Host and port, as the client was told them.
    pub address: String,
    /// `fetch`, `session` (of one share consumer), `produce` or `coordination`.
    pub purpose: &'static str,
    /// Where it stands.
    pub state: ConnectionState,
    /// Requests that wait for their answers, or to be sent.
    pub in_flight: u64,
    /// Bytes sent, as they were before TLS.
    pub bytes_sent: u64,
    /// Bytes received, as they are after TLS.
    pub bytes_received: u64,
    /// Time that the broker asked to be left alone, in all, in milliseconds.
    pub throttled_ms: u64,
    /// Time that the last answer took, in microseconds.
    pub last_answer_us: Option<u64>,
    /// APIs that the broker offers: key, lowest and highest version; empty until it has said so.
    pub api_versions: Vec<(i16, i16, i16)>,
    /// `security.protocol`.
    pub security_protocol: SecurityProtocol,
    /// Who the client says it is: `PLAIN alice`, `OAUTHBEARER`, `certificate`; `None` where it says nothing.
    pub principal: Option<String>,
}

impl fmt::Display for ConnectionInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.node {
            Some(node) => write!(f, "broker {node} ")?,
            None => f.write_str("bootstrap ")?,
        }
        write!(f, "{} {} {}", self.address, self.purpose, self.security_protocol.name())?;
        if let Some(principal) = &self.principal {
            write!(f, " as {principal}")?;
        }
        match &self.state {
            ConnectionState::None => f.write_str(": not open")?,
            ConnectionState::Connecting => f.write_str(": connecting")?,
            ConnectionState::Ready => f.write_str(": ready")?,
            ConnectionState::Closed(why) => write!(f, ": closed ({why})")?,
        }
        write!(
            f,
            ", {} in flight, {} bytes sent, {} received, throttled for {} ms, {} APIs",
            self.in_flight,
            self.bytes_sent,
            self.bytes_received,
            self.throttled_ms,
            self.api_versions.len()
        )
    }
}

impl Purpose {
    pub(super) fn name(self) -> &'static str {
        match self {
            Purpose::Fetch => "fetch",
            Purpose::Session(_) => "session",
            Purpose::Produce => "produce",
            Purpose::Coordination => "coordination",
        }
    }
}
