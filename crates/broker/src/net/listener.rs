//! A node's listener, on tcp and in memory, and the machine's timer.

use super::{Hub, Limits, Place, connection};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

/// Pause after a failed accept, which most often means that the process is out of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Accepts the connections of one listener of a node; dropping its future closes them all.
pub(crate) struct Listener {
    pub(crate) hub: Arc<Hub>,
    pub(crate) place: Place,
    /// Where connections are encrypted.
    pub(crate) tls: Option<TlsAcceptor>,
    pub(crate) limits: Limits,
    /// Connections that may be open; further ones wait unaccepted.
    pub(crate) max_connections: usize,
    /// Where in-memory connections come from.
    pub(crate) memory: mpsc::UnboundedReceiver<DuplexStream>,
}

impl Listener {
    fn serve<S>(&self, stream: S) -> impl Future<Output = ()> + Send + use<S>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        connection::accept(self.hub.clone(), self.place, self.limits, self.tls.clone(), stream)
    }

    pub(crate) async fn run(mut self, tcp: TcpListener) {
        let mut connections = JoinSet::new();
        loop {
            let room = connections.len() < self.max_connections;
            tokio::select! {
                accepted = tcp.accept(), if room => match accepted {
                    Ok((stream, _)) => {
                        // A client may have gone already; then serving it ends at once.
                        let _ = stream.set_nodelay(true);
                        connections.spawn(self.serve(stream));
                    }
                    Err(error) => {
                        tracing::warn!(node = self.place.node, %error, "cannot accept a connection");
                        tokio::time::sleep(ACCEPT_PAUSE).await;
                    }
                },
                Some(stream) = self.memory.recv(), if room => {
                    connections.spawn(self.serve(stream));
                }
                Some(_) = connections.join_next() => {}
            }
        }
    }
}

/// Calls the machine when its deadlines come.
pub(crate) async fn run_timer(hub: Arc<Hub>) {
    loop {
        let changed = hub.timer().notified();
        let left = hub.deadline().map(|deadline| deadline.saturating_sub(hub.now().mono));
        match left {
            None => changed.await,
            Some(left) if left.is_zero() => hub.with(crate::Cluster::handle_timeout),
            Some(left) => {
                // Rounded up: tokio's timer counts milliseconds, and waking early would spin.
                let _ = tokio::time::timeout(left + Duration::from_millis(1), changed).await;
            }
        }
    }
}
