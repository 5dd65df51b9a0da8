//! TLS against small servers of our own: whose certificates are taken, which names are told, and what hostile ones get.

use kafka_share::net::Cluster;
use kafka_share::{ClientConfig, Error, ErrorKind, Sasl, TlsConfig};
use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::ServerConfig;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_rustls::TlsAcceptor;

const LONG: Duration = Duration::from_secs(20);

struct Server {
    port: u16,
    /// Its certificate, which the client trusts.
    pem: String,
    /// The names that clients asked for, once they had sent something.
    names: mpsc::Receiver<Option<String>>,
}

/// Takes connections of TLS, says which name the client asked for, and hangs up.
async fn serve(names: &[&str]) -> Server {
    let names: Vec<String> = names.iter().map(ToString::to_string).collect();
    let CertifiedKey { cert, signing_key } = generate_simple_self_signed(names).unwrap();
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(signing_key.serialize_der()));
    let provider = Arc::new(rustls_graviola::default_provider());
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = config.with_no_client_auth().with_single_cert(vec![cert.der().clone()], key).unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let (tell, names) = mpsc::channel(64);
    tokio::spawn(async move {
        loop {
            let (socket, _) = listener.accept().await.unwrap();
            let Ok(mut stream) = acceptor.accept(socket).await else { continue };
            let mut first = [0; 1];
            if stream.read_exact(&mut first).await.is_ok() {
                let _ = tell.try_send(stream.get_ref().1.server_name().map(str::to_owned));
            }
        }
    });
    Server { port, pem: cert.pem(), names }
}

async fn failure(config: ClientConfig) -> Error {
    let cluster = Cluster::new(config).unwrap();
    cluster.features(Instant::now() + Duration::from_secs(3)).await.unwrap_err()
}

#[tokio::test]
async fn r094_a_certificate_of_another_host_is_refused_unless_told_otherwise() {
    let mut server = serve(&["other.test"]).await;
    let at = |host: &str, tls| ClientConfig::new(&format!("{host}:{}", server.port)).tls(tls);
    let trusting = || TlsConfig::new().root_certificates(&server.pem);
    for host in ["localhost", "127.0.0.1"] {
        let error = failure(at(host, trusting())).await;
        assert!(error.kind() == ErrorKind::Authentication && error.is_fatal(), "{error:?}");
        assert!(
            error.to_string().contains("host name mismatch") && error.to_string().contains("other.test"),
            "{error}"
        );
    }
    assert!(server.names.try_recv().is_err(), "nothing was sent");
    let lax = trusting().dangerously_accept_any_host_name();
    let config = at("localhost", lax);
    let asked = tokio::spawn(failure(config));
    // R95: the name is still told, so that a router by names can do its work.
    let name = tokio::time::timeout(LONG, server.names.recv()).await.unwrap().unwrap();
    assert_eq!(name.as_deref(), Some("localhost"));
    assert_ne!(asked.await.unwrap().kind(), ErrorKind::Authentication);
}

#[tokio::test]
async fn r094_an_address_needs_an_entry_of_its_own() {
    let mut server = serve(&["127.0.0.1"]).await;
    let tls = TlsConfig::new().root_certificates(&server.pem);
    let asked = tokio::spawn(failure(ClientConfig::new(&format!("127.0.0.1:{}", server.port)).tls(tls.clone())));
    let name = tokio::time::timeout(LONG, server.names.recv()).await.unwrap().unwrap();
    assert_eq!(name, None, "an address is no name to be told");
    assert_ne!(asked.await.unwrap().kind(), ErrorKind::Authentication);
    let error = failure(ClientConfig::new(&format!("localhost:{}", server.port)).tls(tls)).await;
    assert_eq!(error.kind(), ErrorKind::Authentication, "{error}");
}

#[tokio::test]
async fn r095_names_are_told_without_a_check_of_names() {
    let mut server = serve(&["router.test"]).await;
    let tls = TlsConfig::new().root_certificates(&server.pem).dangerously_accept_any_host_name();
    let config = ClientConfig::new(&format!("localhost:{}", server.port)).tls(tls);
    let asked = tokio::spawn(failure(config));
    let name = tokio::time::timeout(LONG, server.names.recv()).await.unwrap().unwrap();
    assert_eq!(name.as_deref(), Some("localhost"));
    asked.abort();
}

#[tokio::test]
async fn one_broker_with_a_wrong_certificate_does_not_keep_the_others_away() {
    let (wrong, mut right) = (serve(&["other.test"]).await, serve(&["localhost"]).await);
    let roots = format!("{}{}", wrong.pem, right.pem);
    let addresses = format!("localhost:{},localhost:{}", wrong.port, right.port);
    let config = ClientConfig::new(&addresses).tls(TlsConfig::new().root_certificates(&roots));
    let asked = tokio::spawn(failure(config));
    let name = tokio::time::timeout(LONG, right.names.recv()).await.unwrap().unwrap();
    assert_eq!(name.as_deref(), Some("localhost"), "the second was asked");
    // It hangs up on everybody: what the first has is all there is to say.
    let error = asked.await.unwrap();
    assert_eq!(error.kind(), ErrorKind::Authentication, "{error}");
}

/// Answers ApiVersions with SASL in it, and whatever comes then with a size that lies.
async fn lie(size: i32) -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        loop {
            let (mut socket, _) = listener.accept().await.unwrap();
            let Ok(length) = socket.read_i32().await else { continue };
            let mut request = vec![0; usize::try_from(length).unwrap()];
            socket.read_exact(&mut request).await.unwrap();
            // Version 0 at all times: UNSUPPORTED_VERSION with a hint at first, then the keys.
            let version = i16::from_be_bytes([request[2], request[3]]);
            let error: i16 = if version == 0 { 0 } else { 35 };
            let keys: [[i16; 3]; 3] = [[18, 0, 0], [17, 0, 1], [36, 0, 2]];
            let mut body = request[4..8].to_vec();
            body.extend(error.to_be_bytes());
            body.extend((keys.len() as i32).to_be_bytes());
            body.extend(keys.iter().flatten().flat_map(|n| n.to_be_bytes()));
            let answer = |body: &[u8]| [(body.len() as i32).to_be_bytes().to_vec(), body.to_vec()].concat();
            if socket.write_all(&answer(&body)).await.is_err() {
                continue;
            }
            if version != 0 {
                let Ok(length) = socket.read_i32().await else { continue };
                let mut request = vec![0; usize::try_from(length).unwrap()];
                socket.read_exact(&mut request).await.unwrap();
                body[..4].copy_from_slice(&request[4..8]);
                body[4..6].copy_from_slice(&[0, 0]);
                let _ = socket.write_all(&answer(&body)).await;
            }
            // SaslHandshake, and the lie.
            let _ = socket.read_i32().await;
            let _ = socket.write_all(&size.to_be_bytes()).await;
            let mut rest = Vec::new();
            let _ = tokio::time::timeout(LONG, socket.read_to_end(&mut rest)).await;
        }
    });
    port
}

#[tokio::test]
async fn r097_a_size_that_lies_ends_the_connection() {
    for size in [i32::MAX, -1] {
        let port = lie(size).await;
        let config = ClientConfig::new(&format!("127.0.0.1:{port}")).sasl(Sasl::plain("alice", "hunter2"));
        let started = Instant::now();
        let error = failure(config).await;
        assert!(started.elapsed() < LONG && !error.to_string().contains("hunter2"), "{error}");
        assert!(error.to_string().contains("frame") || error.to_string().contains("bytes"), "{error}");
    }
}
