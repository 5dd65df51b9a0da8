//! A loopback proxy that resets a connection (RST, not a clean end) once it has carried a number of bytes.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// A running proxy. Dropping it closes all connections.
#[derive(Debug)]
pub struct Resets {
    address: SocketAddr,
    left: Arc<AtomicI64>,
    _tasks: JoinSet<()>,
}

impl Resets {
    /// Listens on a free loopback port, and leads to a broker.
    ///
    /// # Errors
    /// No port can be bound.
    pub async fn start(broker: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let left = Arc::new(AtomicI64::new(i64::MAX));
        let mut tasks = JoinSet::new();
        tasks.spawn(accept(listener, broker, Arc::clone(&left)));
        Ok(Resets { address, left, _tasks: tasks })
    }

    /// Where clients connect to.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Resets the connection that carries the last of this many bytes, in either direction, behind it.
    pub fn reset_after(&self, bytes: i64) {
        self.left.store(bytes, Ordering::SeqCst);
    }

    /// Whether it has come to that.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.left.load(Ordering::SeqCst) <= 0
    }
}

async fn accept(listener: TcpListener, broker: SocketAddr, left: Arc<AtomicI64>) {
    let mut carried = JoinSet::new();
    while let Ok((client, _)) = listener.accept().await {
        carried.spawn(carry(client, broker, Arc::clone(&left)));
    }
}

async fn carry(mut client: TcpStream, broker: SocketAddr, left: Arc<AtomicI64>) {
    let Ok(mut broker) = TcpStream::connect(broker).await else { return };
    let (mut from_client, mut from_broker) = (vec![0; 16 << 10], vec![0; 16 << 10]);
    loop {
        let carried = tokio::select! {
            read = client.read(&mut from_client) => pass(read, &from_client, &mut broker, &left).await,
            read = broker.read(&mut from_broker) => pass(read, &from_broker, &mut client, &left).await,
        };
        match carried {
            Some(false) => {}
            Some(true) => {
                // With this, closing sends a reset and drops what was not sent.
                client.set_zero_linger().ok();
                broker.set_zero_linger().ok();
                return;
            }
            None => return,
        }
    }
}

/// Whether the connection is to be reset; `None` at its end.
async fn pass(read: io::Result<usize>, bytes: &[u8], to: &mut TcpStream, left: &AtomicI64) -> Option<bool> {
    let read = read.ok().filter(|read| *read > 0)?;
    let before = left.fetch_sub(read as i64, Ordering::SeqCst);
    let reset = before > 0 && before <= read as i64;
    let most = if reset { usize::try_from(before).unwrap_or(0) } else { read };
    to.write_all(&bytes[..most]).await.ok()?;
    Some(reset)
}
