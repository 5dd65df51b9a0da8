//! Opening connections: name resolution, every address of a name, back-off after failures.

use super::connection::{Connection, Ended, Setup};
use crate::security::Secured;
use crate::tls::Encrypted;
use crate::tls::{Connector, refusal};
use crate::{ClientConfig, Error, ErrorKind, Result};
use kafka_share_core::backoff::Jitter;
use kafka_share_core::connection::{ConnectionConfig, SaslConfig};
use kafka_share_wire::Str;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::net::TcpStream;

/// Requests written and not answered on one connection, at most.
const MAX_IN_FLIGHT: usize = 64;
/// Requests waiting to be written on one connection, at most.
const MAX_QUEUED: usize = 1024;
/// How long at least a broker that refused the client, or was refused, is not tried again; so that passwords that are wrong
/// do not lock accounts.
const REFUSED_PAUSE: Duration = Duration::from_secs(1);
/// Connections in a row that a broker closes at the first request, after which it is taken to want authentication: a broker that
/// goes away does not come back so soon to do it again.
const UNHEARD: u32 = 3;

const SASL_IS_WANTED: &str = "it did so each time, as listeners of SASL do: set security.protocol to SASL_PLAINTEXT or SASL_SSL, sasl.mechanism and \
     sasl.jaas.config, or take a listener that asks for no authentication";

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
    /// Until when the last refusal is the answer to all who ask.
    refused: Option<(Instant, Error)>,
    /// Connections in a row that the broker closed at the first request.
    unheard: u32,
    jitter: Jitter,
}

impl Slot {
    pub(crate) fn new(seed: u64) -> Self {
        let health = Health { failures: 0, not_before: None, refused: None, unheard: 0, jitter: Jitter::new(seed) };
        Slot { health: Arc::new(Mutex::new(health)), connection: None }
    }

    /// The connection, if there is one that lives.
    pub(crate) fn live(&self) -> Option<&Connection> {
        self.connection.as_ref().filter(|c| !c.is_closed())
    }

    /// The last connection, which may be over.
    pub(crate) fn last(&self) -> Option<&Connection> {
        self.connection.as_ref()
    }

    /// The live connection, or a new one that opens after the back-off. `host` is resolved anew each time. `first`: nothing is
    /// known of the cluster yet.
    pub(crate) fn get(
        &mut self,
        config: &ClientConfig,
        secured: &Secured,
        (host, port): (&str, u16),
        first: bool,
    ) -> Connection {
        if let Some(connection) = self.live() {
            return connection.clone();
        }
        let (pause_until, refused, seed) = {
            let mut health = self.health.lock().unwrap_or_else(PoisonError::into_inner);
            (health.not_before, health.refused.clone(), health.jitter.next_u64())
        };
        let sasl = secured.sasl.as_ref().map(|s| SaslConfig { mechanism: Str::from_static(s.mechanism()), seed });
        let connection_config = ConnectionConfig {
            client_id: config.client_id.clone(),
            max_frame: config.max_frame,
            max_in_flight: MAX_IN_FLIGHT,
            max_queued: MAX_QUEUED,
            handshake_timeout: config.connection_setup_timeout,
            max_idle: config.max_idle,
            sasl,
        };
        let peer = format!("{host}:{port}");
        if let Some((_, error)) = refused.filter(|(until, _)| Instant::now() < *until) {
            return Connection::refused(&connection_config, &peer, error);
        }
        let ended = self.ended(config, first);
        let setup = Setup {
            config: connection_config,
            peer,
            sasl: secured.sasl.clone(),
            has_certificate: secured.tls.as_ref().is_some_and(|tls| tls.has_certificate()),
        };
        let timeout = config.connection_setup_timeout;
        let socket = open(host.to_owned(), port, timeout, pause_until);
        let connection = match &secured.tls {
            None => Connection::spawn(setup, socket, ended),
            Some(tls) => {
                let (tls, host) = (Arc::clone(tls), host.to_owned());
                Connection::spawn(setup, async move { encrypt(&tls, &host, port, socket.await?, timeout).await }, ended)
            }
        };
        self.connection = Some(connection.clone());
        connection
    }

    /// Remembers how a connection ended.
    fn ended(&self, config: &ClientConfig, first: bool) -> impl FnOnce(Ended) + Send + use<> {
        let health = Arc::clone(&self.health);
        let backoff = config.reconnect_backoff;
        move |ended| {
            let mut health = health.lock().unwrap_or_else(PoisonError::into_inner);
            // A connection that worked and ended counts as a first failure: the next one opens after the shortest pause.
            health.failures = if ended.was_ready { 1 } else { health.failures + 1 };
            let random = health.jitter.next_u64();
            let pause = backoff.pause(health.failures, random);
            let now = Instant::now();
            health.not_before = Some(now + pause);
            health.unheard = if ended.unheard { health.unheard + 1 } else { 0 };
            let mut error = ended.error;
            if first && health.unheard >= UNHEARD {
                error = Error::new(ErrorKind::Authentication, format!("{error}; {SASL_IS_WANTED}"));
            }
            let refused = error.kind() == ErrorKind::Authentication;
            health.refused = refused.then(|| (now + pause.max(REFUSED_PAUSE), error));
        }
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

/// Makes a socket one of TLS.
async fn encrypt(tls: &Connector, host: &str, port: u16, socket: TcpStream, timeout: Duration) -> Result<Encrypted> {
    let fail = |kind, text: String| Error::new(kind, format!("{host}:{port}: {text}"));
    let address = socket.peer_addr();
    let error = match tokio::time::timeout(timeout, tls.connect(host, socket)).await {
        Ok(Ok(stream)) => return Ok(stream),
        Ok(Err(error)) => error,
        Err(_) => return Err(fail(ErrorKind::Connect, format!("no end of the TLS handshake within {timeout:?}"))),
    };
    if let Some(why) = refusal(&error, tls.has_certificate()) {
        return Err(fail(ErrorKind::Authentication, why));
    }
    // A broker hangs up without a word on what is not Kafka to it, as does one that is just starting, or what stands before it.
    if let Ok(address) = address
        && super::probe::speaks_plain(address).await
    {
        let text = "the broker does not speak TLS: the listener is PLAINTEXT or SASL_PLAINTEXT; set security.protocol to that, or take a listener that is SSL or SASL_SSL";
        return Err(fail(ErrorKind::Authentication, text.to_owned()));
    }
    let text = format!("connection lost in the TLS handshake ({error}); is security.protocol that of the listener?");
    Err(fail(ErrorKind::Connect, text))
}
