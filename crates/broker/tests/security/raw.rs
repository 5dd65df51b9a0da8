//! A connection that says exactly what goes over the wire, and the client's part of SCRAM.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use hmac::{Hmac, KeyInit, Mac};
use kafka_share_messages::{
    ErrorCode, Request, SaslAuthenticateRequest, SaslAuthenticateResponse, SaslHandshakeRequest, frame,
};
use kafka_share_wire::Str;
use sha2::{Digest, Sha256, Sha512};
use std::fmt::Debug;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

pub(crate) struct Raw<S> {
    pub(crate) stream: S,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Raw<S> {
    pub(crate) async fn send<R: Request>(&mut self, request: &R, version: i16) {
        let frame = frame::encode_request(request, version, 7, &Str::from_static("test")).unwrap();
        // The broker may have closed the connection.
        let _ = self.stream.write_all(&frame.to_vec()).await;
    }

    pub(crate) async fn send_bare(&mut self, token: &[u8]) {
        self.stream.write_all(&(token.len() as i32).to_be_bytes()).await.unwrap();
        self.stream.write_all(token).await.unwrap();
    }

    /// The next frame; `None` once the connection is closed.
    pub(crate) async fn frame(&mut self) -> Option<Bytes> {
        let size = self.stream.read_i32().await.ok()?;
        let mut body = vec![0; size as usize];
        self.stream.read_exact(&mut body).await.ok()?;
        Some(Bytes::from(body))
    }

    pub(crate) async fn try_call<R: Request>(&mut self, request: &R, version: i16) -> Option<R::Response> {
        self.send(request, version).await;
        Some(frame::decode_response::<R>(self.frame().await?, version).unwrap().1)
    }

    pub(crate) async fn call<R: Request<Response: Debug>>(&mut self, request: &R) -> R::Response {
        self.try_call(request, R::MAX_VERSION).await.expect("an open connection")
    }

    pub(crate) async fn is_closed(&mut self) -> bool {
        self.frame().await.is_none()
    }

    pub(crate) async fn handshake(&mut self, mechanism: &str) -> (ErrorCode, Vec<Str>) {
        let request = SaslHandshakeRequest { mechanism: Str::from(mechanism) };
        let answer = self.try_call(&request, 1).await.expect("an answer");
        (answer.error_code, answer.mechanisms)
    }

    pub(crate) async fn token(&mut self, token: &[u8]) -> Option<SaslAuthenticateResponse> {
        let auth_bytes = Bytes::copy_from_slice(token);
        self.try_call(&SaslAuthenticateRequest { auth_bytes, ..Default::default() }, 2).await
    }

    /// Authenticates by PLAIN.
    pub(crate) async fn plain(&mut self, user: &str, password: &str) -> SaslAuthenticateResponse {
        assert_eq!(self.handshake("PLAIN").await.0, ErrorCode::NONE);
        self.token(format!("\0{user}\0{password}").as_bytes()).await.expect("an answer")
    }
}

fn mac<M: Mac + KeyInit>(key: &[u8], data: &[u8]) -> Vec<u8> {
    let mut mac = <M as KeyInit>::new_from_slice(key).unwrap();
    mac.update(data);
    mac.finalize().into_bytes().to_vec()
}

/// The client's last message of SCRAM, and what the server has to answer.
pub(crate) fn scram_final(mechanism: &str, password: &str, first: &str, server_first: &[u8]) -> (String, String) {
    let short = mechanism == "SCRAM-SHA-256";
    let hash = |data: &[u8]| if short { Sha256::digest(data).to_vec() } else { Sha512::digest(data).to_vec() };
    let hmac = |key: &[u8], data: &[u8]| {
        if short { mac::<Hmac<Sha256>>(key, data) } else { mac::<Hmac<Sha512>>(key, data) }
    };
    let server_first = std::str::from_utf8(server_first).unwrap();
    let part = |name: &str| server_first.split(',').find_map(|part| part.strip_prefix(name)).unwrap();
    let salt = STANDARD.decode(part("s=")).unwrap();
    let mut last = hmac(password.as_bytes(), &[&salt[..], &1_u32.to_be_bytes()].concat());
    let mut salted = last.clone();
    for _ in 1..part("i=").parse().unwrap() {
        last = hmac(password.as_bytes(), &last);
        salted.iter_mut().zip(&last).for_each(|(sum, byte)| *sum ^= byte);
    }
    let without_proof = format!("c=biws,r={}", part("r="));
    let signed = format!("{},{server_first},{without_proof}", first.strip_prefix("n,,").unwrap());
    let client_key = hmac(&salted, b"Client Key");
    let signature = hmac(&hash(&client_key), signed.as_bytes());
    let proof: Vec<u8> = client_key.iter().zip(signature).map(|(key, byte)| key ^ byte).collect();
    let verifier = hmac(&hmac(&salted, b"Server Key"), signed.as_bytes());
    (format!("{without_proof},p={}", STANDARD.encode(proof)), format!("v={}", STANDARD.encode(verifier)))
}
