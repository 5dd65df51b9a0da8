//! A plain blocking connection to a broker, for tests that say exactly what goes over the wire.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use kafka_protocol::messages::{RequestHeader, ResponseHeader};
use kafka_protocol::protocol::{Decodable, Encodable, HeaderVersion, StrBytes};
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

    /// As [`Raw::call`], with a message of the kafka-protocol crate, for what this workspace does not speak. Only
    /// versions with tagged fields.
    ///
    /// # Errors
    /// As [`Raw::call`].
    pub fn call_peer<R: kafka_protocol::protocol::Request>(
        &mut self,
        request: &R,
        version: i16,
    ) -> io::Result<R::Response> {
        self.correlation += 1;
        let header = RequestHeader::default()
            .with_request_api_key(R::KEY)
            .with_request_api_version(version)
            .with_correlation_id(self.correlation)
            .with_client_id(Some(StrBytes::from_static_str("kafka-share-tests")));
        let mut frame = BytesMut::from(&[0; 4][..]);
        header.encode(&mut frame, R::header_version(version)).map_err(io::Error::other)?;
        request.encode(&mut frame, version).map_err(io::Error::other)?;
        let size = u32::try_from(frame.len() - 4).map_err(io::Error::other)?;
        frame[..4].copy_from_slice(&size.to_be_bytes());
        self.socket.write_all(&frame)?;
        let mut body = self.frame()?;
        let header =
            ResponseHeader::decode(&mut body, R::Response::header_version(version)).map_err(io::Error::other)?;
        self.expect(header.correlation_id)?;
        R::Response::decode(&mut body, version).map_err(io::Error::other)
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
        let body = self.frame()?;
        let (correlation, response) = decode_response::<R>(body, version).map_err(io::Error::other)?;
        self.expect(correlation)?;
        Ok(response)
    }

    fn frame(&mut self) -> io::Result<Bytes> {
        let mut size = [0; 4];
        self.socket.read_exact(&mut size)?;
        let size = u32::from_be_bytes(size);
        if size > MAX_FRAME {
            return Err(io::Error::other(format!("a response of {size} bytes")));
        }
        let mut body = vec![0; size as usize];
        self.socket.read_exact(&mut body)?;
        Ok(Bytes::from(body))
    }

    fn expect(&self, correlation: i32) -> io::Result<()> {
        if correlation != self.correlation {
            return Err(io::Error::other(format!("answer {correlation} to request {}", self.correlation)));
        }
        Ok(())
    }
}
