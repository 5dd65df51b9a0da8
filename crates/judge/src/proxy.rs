//! Stands between a client and a broker: passes frames on as they are, and shows them to the watch first.

use super::watch::Watch;
use bytes::Bytes;
use kafka_share_wire::FrameDecoder;
use std::io::{Error, ErrorKind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// Largest frame that is passed on, in bytes: what brokers allow by default.
const MOST: usize = 100 << 20;

/// The watch, as the proxy's connections share it.
#[derive(Clone)]
pub(super) struct Shared(Arc<Mutex<Watch>>);

impl Shared {
    pub(super) fn new(watch: Watch) -> Self {
        Shared(Arc::new(Mutex::new(watch)))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Watch> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Passes connections on until it is dropped; `connect` opens one to the broker.
pub(super) async fn run(listener: TcpListener, connect: impl Fn() -> Option<DuplexStream>, watch: Shared) {
    let mut connections = JoinSet::new();
    let mut number = 0;
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let Ok((client, _)) = accepted else { continue };
                let Some(broker) = connect() else { continue };
                number += 1;
                connections.spawn(pass(number, client, broker, watch.clone()));
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn pass(number: u64, client: TcpStream, broker: DuplexStream, watch: Shared) {
    let _ = client.set_nodelay(true);
    let (from_client, to_client) = client.into_split();
    let (from_broker, to_broker) = tokio::io::split(broker);
    let requests = frames(from_client, to_broker, |frame| watch.lock().request(number, frame));
    let answers = frames(from_broker, to_client, |frame| watch.lock().answer(number, frame));
    // Either end ends both, and the sockets are closed only when this returns: after the watch knows.
    let (mut requests, mut answers) = (Box::pin(requests), Box::pin(answers));
    tokio::select! {
        _ = &mut requests => {}
        _ = &mut answers => {}
    }
    watch.lock().disconnected(number);
}

/// Copies frames; each is looked at before it goes on.
async fn frames(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    mut look: impl FnMut(&Bytes),
) -> std::io::Result<()> {
    let mut decoder = FrameDecoder::new(MOST);
    loop {
        while let Some(frame) = decoder.next_frame().map_err(|e| Error::new(ErrorKind::InvalidData, e.to_string()))? {
            look(&frame);
            let size = i32::try_from(frame.len()).map_err(|e| Error::new(ErrorKind::InvalidData, e))?;
            to.write_all(&size.to_be_bytes()).await?;
            to.write_all(&frame).await?;
        }
        if from.read_buf(decoder.buffer()).await? == 0 {
            return Ok(());
        }
    }
}
