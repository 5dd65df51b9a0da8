//! Asks a broker that hung up in the TLS handshake whether it speaks plain Kafka, so that the user is told instead of left
//! waiting. A listener of TLS says nothing to that; nothing is sent but who this software is.

use kafka_share_messages::{ApiVersionsRequest, frame};
use kafka_share_wire::Str;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Time for the whole of it.
const PATIENCE: Duration = Duration::from_millis(500);
/// Anything that is not what other peers would say by chance.
const ID: i32 = 0x4B53_0001;
/// Answers of brokers are of some hundred bytes.
const MAX_ANSWER: i32 = 1 << 20;

/// Whether there is a broker that answers in plain.
pub(super) async fn speaks_plain(address: SocketAddr) -> bool {
    tokio::time::timeout(PATIENCE, ask(address)).await.ok().flatten().unwrap_or(false)
}

async fn ask(address: SocketAddr) -> Option<bool> {
    // Version 0, which has no words of its own, is understood by all.
    let request =
        frame::encode_request(&ApiVersionsRequest::default(), 0, ID, &Str::from_static("kafka-share")).ok()?;
    let mut socket = TcpStream::connect(address).await.ok()?;
    socket.write_all(&request.to_vec()).await.ok()?;
    let size = socket.read_i32().await.ok()?;
    let id = socket.read_i32().await.ok()?;
    Some((4..MAX_ANSWER).contains(&size) && id == ID)
}
