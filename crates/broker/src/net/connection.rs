//! One client connection: frames in, answers out, both bounded.

use super::activity::Activity;
use super::outbox::Outbox;
use super::{Hub, tls};
use crate::ConnId;
use bytes::{Buf, Bytes};
use kafka_share_wire::FrameDecoder;
use std::collections::VecDeque;
use std::io::IoSlice;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::Sleep;
use tokio_rustls::TlsAcceptor;

/// Segments per vectored write.
const SLICES: usize = 64;
/// How long a client may take to receive the last answers of a connection that is being closed.
const LAST_WRITE: Duration = Duration::from_secs(5);

/// Tells the machine that the connection is gone, however its task ends.
struct Registration<'a> {
    hub: &'a Hub,
    conn: ConnId,
}

impl Drop for Registration<'_> {
    fn drop(&mut self) {
        self.hub.disconnect(self.conn);
    }
}

/// What a connection may take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Bytes of a request frame.
    pub(crate) max_frame: usize,
    /// Time without a byte in either direction.
    pub(crate) max_idle: Duration,
    /// Time from being accepted to being authenticated.
    pub(crate) authentication: Duration,
}

/// Which listener of which node.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    pub(crate) node: i32,
    /// By its place in the settings.
    pub(crate) listener: usize,
}

/// Serves a connection, encrypted or not, until it ends.
pub(super) async fn accept<S>(hub: Arc<Hub>, place: Place, limits: Limits, tls: Option<TlsAcceptor>, stream: S)
where
    S: AsyncRead + AsyncWrite + Unpin + Send,
{
    let end = tokio::time::sleep(limits.authentication);
    let Some(acceptor) = tls else { return serve(hub, place, None, limits, end, stream).await };
    match tokio::time::timeout_at(end.deadline(), acceptor.accept(stream)).await {
        Ok(Ok(stream)) => match tls::principal(stream.get_ref().1.peer_certificates()) {
            Ok(principal) => Box::pin(serve(hub, place, principal.as_deref(), limits, end, stream)).await,
            Err(error) => tracing::debug!(node = place.node, %error, "closing a connection"),
        },
        Ok(Err(error)) => tracing::debug!(node = place.node, %error, "a TLS handshake failed"),
        Err(_) => tracing::debug!(node = place.node, "a TLS handshake took too long"),
    }
}

/// Serves a connection to a node until either side closes it, it is idle for too long, or has not authenticated by `end`.
async fn serve<S>(hub: Arc<Hub>, place: Place, principal: Option<&str>, limits: Limits, end: Sleep, stream: S)
where
    S: AsyncRead + AsyncWrite + Send,
{
    let outbox = Arc::new(Outbox::default());
    let activity = Activity::new(limits.max_idle);
    let registration = Registration { hub: &hub, conn: hub.connect(place, principal, &outbox) };
    let (mut read, mut write) = tokio::io::split(stream);
    let mut writing = std::pin::pin!(write_all(&outbox, &activity, &mut write));
    let reader = Reader { hub: &hub, conn: registration.conn, outbox: &outbox, activity: &activity };
    let closed = tokio::select! {
        // In this order an answer is written in the turn that has read its request.
        biased;
        closed = reader.read_all(limits.max_frame, &mut read) => closed,
        () = &mut writing => ReadEnd::Peer,
        () = unauthenticated(&hub, registration.conn, end) => {
            tracing::debug!(conn = registration.conn.0, "closing a connection that has not authenticated in time");
            ReadEnd::Peer
        }
        () = activity.too_idle() => {
            tracing::debug!(conn = registration.conn.0, "closing an idle connection");
            ReadEnd::Peer
        }
    };
    if closed == ReadEnd::Broker {
        let _ = tokio::time::timeout(LAST_WRITE, writing).await;
    }
}

/// Returns at the end of the time to authenticate, if the client has not done so.
async fn unauthenticated(hub: &Hub, conn: ConnId, end: Sleep) {
    // Most listeners ask for nothing: no timer is needed then. Who has authenticated once stays so.
    if !hub.with(|cluster, _| cluster.is_authenticated(conn)) {
        end.await;
        if !hub.with(|cluster, _| cluster.is_authenticated(conn)) {
            return;
        }
    }
    std::future::pending().await
}

#[derive(PartialEq, Eq)]
enum ReadEnd {
    /// The peer closed or broke the connection.
    Peer,
    /// The machine closed it; answers may be left to write.
    Broker,
}

struct Reader<'a> {
    hub: &'a Hub,
    conn: ConnId,
    outbox: &'a Outbox,
    activity: &'a Activity,
}

impl Reader<'_> {
    async fn read_all(&self, max_frame: usize, read: &mut (impl AsyncRead + Unpin)) -> ReadEnd {
        let conn = self.conn;
        let mut decoder = FrameDecoder::new(max_frame.min(self.hub.with(|cluster, _| cluster.max_frame(conn))));
        loop {
            loop {
                let frame = match decoder.next_frame() {
                    Ok(Some(frame)) => frame,
                    Ok(None) => break,
                    Err(error) => {
                        tracing::debug!(conn = conn.0, %error, "closing a connection");
                        return ReadEnd::Peer;
                    }
                };
                let served = self.hub.with(|cluster, now| {
                    cluster
                        .handle_frame(now, conn, frame)
                        .map(|()| (cluster.is_backlogged(conn), cluster.max_frame(conn)))
                });
                match served {
                    Ok((backlogged, most)) => {
                        decoder.set_limit(most.min(max_frame));
                        self.outbox.room(backlogged).await;
                    }
                    Err(_) => return ReadEnd::Broker,
                }
            }
            match read.read_buf(decoder.buffer()).await {
                Ok(0) | Err(_) => return ReadEnd::Peer,
                Ok(_) => self.activity.touch(),
            }
        }
    }
}

async fn write_all(outbox: &Outbox, activity: &Activity, write: &mut (impl AsyncWrite + Unpin)) {
    while let Some(mut segments) = outbox.take().await {
        let bytes = segments.iter().map(Bytes::len).sum();
        if write_segments(&mut segments, activity, write).await.is_err() {
            return;
        }
        outbox.written(bytes);
    }
    let _ = write.shutdown().await;
}

async fn write_segments(
    segments: &mut VecDeque<Bytes>,
    activity: &Activity,
    write: &mut (impl AsyncWrite + Unpin),
) -> std::io::Result<()> {
    while !segments.is_empty() {
        let mut slices = [IoSlice::new(&[]); SLICES];
        let count = segments.len().min(SLICES);
        for (slice, segment) in slices.iter_mut().zip(segments.iter()) {
            *slice = IoSlice::new(segment);
        }
        let mut written = write.write_vectored(&slices[..count]).await?;
        if written == 0 && segments.iter().take(count).any(|s| !s.is_empty()) {
            return Err(std::io::ErrorKind::WriteZero.into());
        }
        activity.touch();
        while let Some(first) = segments.front_mut() {
            if first.len() > written {
                first.advance(written);
                break;
            }
            written -= first.len();
            segments.pop_front();
        }
    }
    write.flush().await
}
