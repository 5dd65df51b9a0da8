//! Opening connections: name resolution, every address of a name, back-off after failures.

use super::connection::Connection;
use crate::{ClientConfig, Error, ErrorKind, Result};
use kafka_share_core::backoff::Jitter;
use kafka_share_core::connection::ConnectionConfig;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::net::TcpStream;

/// Requests written and not answered on one connection, at most.
const MAX_IN_FLIGHT: usize = 64;
/// Requests waiting to be written on one connection, at most.
const MAX_QUEUED: usize = 1024;

/// A place for one connection, with the memory of its failures.
#[derive(Debug)]
pub(crate) struct Slot {
    health: Arc<Mutex<Health>>,
    connection: Option<Connection>,
}

#[derive(Debug)]
struct Health {
    failures: u32,
    not_before: Option<Instant>,
    jitter: Jitter,
}

impl Slot {
    pub(crate) fn new(seed: u64) -> Self {
        let health = Health { failures: 0, not_before: None, jitter: Jitter::new(seed) };
        Slot { health: Arc::new(Mutex::new(health)), connection: None }
    }

    /// The connection, if there is one that lives.
    pub(crate) fn live(&self) -> Option<&Connection> {
        self.connection.as_ref().filter(|c| !c.is_closed())
    }

    /// The live connection, or a new one that opens after the back-off. `host` is resolved anew each time.
    pub(crate) fn get(&mut self, config: &ClientConfig, host: &str, port: u16) -> Connection {
        if let Some(connection) = self.live() {
            return connection.clone();
        }
        let pause_until = self.health.lock().unwrap_or_else(PoisonError::into_inner).not_before;
        let open = open(host.to_owned(), port, config.connection_setup_timeout, pause_until);
        let health = Arc::clone(&self.health);
        let backoff = config.reconnect_backoff;
        let connection_config = ConnectionConfig {
            client_id: config.client_id.clone(),
            max_frame: config.max_frame,
            max_in_flight: MAX_IN_FLIGHT,
            max_queued: MAX_QUEUED,
            handshake_timeout: config.connection_setup_timeout,
            max_idle: config.max_idle,
        };
        let connection = Connection::spawn(connection_config, format!("{host}:{port}"), open, move |ended| {
            let mut health = health.lock().unwrap_or_else(PoisonError::into_inner);
            // A connection that worked and ended counts as a first failure: the next one opens after the shortest pause.
            health.failures = if ended.was_ready { 1 } else { health.failures + 1 };
            let random = health.jitter.next_u64();
            health.not_before = Some(Instant::now() + backoff.pause(health.failures, random));
        });
        self.connection = Some(connection.clone());
        connection
    }

    /// Forgets the connection; it closes once nobody uses it.
    pub(crate) fn drop_connection(&mut self) {
        self.connection = None;
    }
}

async fn open(host: String, port: u16, timeout: Duration, pause_until: Option<Instant>) -> Result<TcpStream> {
    if let Some(until) = pause_until {
        tokio::time::sleep_until(until.into()).await;
    }
    let fail = |text: String| Error::new(ErrorKind::Connect, text);
    let resolved = tokio::time::timeout(timeout, tokio::net::lookup_host((host.as_str(), port))).await;
    let addresses: Vec<_> = resolved
        .map_err(|_| fail(format!("{host}: name not resolved within {timeout:?}")))?
        .map_err(|e| fail(format!("{host}: name not resolved: {e}")))?
        .collect();
    let mut last = format!("{host}: the name has no address");
    for address in addresses {
        match tokio::time::timeout(timeout, TcpStream::connect(address)).await {
            Ok(Ok(socket)) => {
                // Frames are written whole; waiting to fill packets only adds delay.
                socket.set_nodelay(true).map_err(|e| fail(format!("{address}: {e}")))?;
                return Ok(socket);
            }
            Ok(Err(error)) => last = format!("{host}:{port} ({address}): {error}"),
            Err(_) => last = format!("{host}:{port} ({address}): no connection within {timeout:?}"),
        }
    }
    Err(fail(last))
}
