//! A plain blocking connection to a broker, for tests that say exactly what goes over the wire.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use bytes::Bytes;
use kafka_share_messages::frame::{decode_response, encode_request};
use kafka_share_messages::{Message, Request};
use kafka_share_wire::Str;

/// Largest response that is read.
const MAX_FRAME: u32 = 64 << 20;

/// A connection.
#[derive(Debug)]
pub struct Raw {
    socket: TcpStream,
    correlation: i32,
    client: Str,
}

impl Raw {
    /// Connects.
    ///
    /// # Errors
    /// A broker that cannot be reached.
    pub fn connect(address: SocketAddr) -> io::Result<Self> {
        let socket = TcpStream::connect_timeout(&address, Duration::from_secs(10))?;
        socket.set_read_timeout(Some(Duration::from_secs(60)))?;
        socket.set_nodelay(true)?;
        Ok(Self { socket, correlation: 0, client: Str::from_static("kafka-share-tests") })
    }

    /// Sends a request and waits for its answer.
    ///
    /// # Errors
    /// A connection that breaks, and bytes that are not a valid answer.
    pub fn call<R: Request>(&mut self, request: &R, version: i16) -> io::Result<R::Response> {
        self.send(request, version)?;
        self.receive::<R>(version)
    }

    /// As [`Raw::call`], in the newest version.
    ///
    /// # Errors
    /// As [`Raw::call`].
    pub fn latest<R: Request>(&mut self, request: &R) -> io::Result<R::Response> {
        self.call(request, <R as Message>::MAX_VERSION)
    }

    /// Sends a request.
    ///
    /// # Errors
    /// A connection that breaks.
    pub fn send<R: Request>(&mut self, request: &R, version: i16) -> io::Result<()> {
        self.correlation += 1;
        let frame = encode_request(request, version, self.correlation, &self.client).map_err(io::Error::other)?;
        self.socket.write_all(&frame.to_vec())
    }

    /// Waits for the answer to the one request that was sent.
    ///
    /// # Errors
    /// A connection that breaks, and bytes that are not a valid answer.
    pub fn receive<R: Request>(&mut self, version: i16) -> io::Result<R::Response> {
        let mut size = [0; 4];
        self.socket.read_exact(&mut size)?;
        let size = u32::from_be_bytes(size);
        if size > MAX_FRAME {
            return Err(io::Error::other(format!("a response of {size} bytes")));
        }
        let mut body = vec![0; size as usize];
        self.socket.read_exact(&mut body)?;
        let (correlation, response) = decode_response::<R>(Bytes::from(body), version).map_err(io::Error::other)?;
        if correlation != self.correlation {
            return Err(io::Error::other(format!("answer {correlation} to request {}", self.correlation)));
        }
        Ok(response)
    }
}
