//! TLS: certificates of both sides, and what is no TLS.

use crate::raw::Raw;
use kafka_share_broker::{
    Authorizer, ClientAuth, EmbeddedBroker, Listener, Mechanism, Operation, Resource, StartError,
};
use kafka_share_messages::metadata_request::MetadataRequestTopic;
use kafka_share_messages::{ApiVersionsRequest, ErrorCode, MetadataRequest};
use kafka_share_wire::Str;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

struct Authority {
    pem: String,
    issuer: Issuer<'static, KeyPair>,
}

/// A certificate and its key, as PEM.
struct Identity {
    chain: String,
    key: String,
}

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "test authority");
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        Authority { pem, issuer: Issuer::new(params, key) }
    }

    fn sign(&self, name: &str) -> Identity {
        let mut params = CertificateParams::new(["localhost".to_owned()]).unwrap();
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, name);
        params.distinguished_name.push(DnType::OrganizationName, "tests");
        let key = KeyPair::generate().unwrap();
        let chain = params.signed_by(&key, &self.issuer).unwrap().pem();
        Identity { chain, key: key.serialize_pem() }
    }
}

fn client(authority: &Authority, identity: Option<&Identity>) -> TlsConnector {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(authority.pem.as_bytes()).unwrap()).unwrap();
    let builder = ClientConfig::builder_with_provider(Arc::new(rustls_graviola::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots);
    let config = match identity {
        Some(Identity { chain, key }) => {
            let chain = vec![CertificateDer::from_pem_slice(chain.as_bytes()).unwrap()];
            builder.with_client_auth_cert(chain, PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap()).unwrap()
        }
        None => builder.with_no_client_auth(),
    };
    TlsConnector::from(Arc::new(config))
}

async fn connect(broker: &EmbeddedBroker, connector: &TlsConnector) -> std::io::Result<Raw<TlsStream<TcpStream>>> {
    let stream = TcpStream::connect(("127.0.0.1", broker.nodes()[0].port)).await?;
    let name = ServerName::try_from("localhost").unwrap();
    Ok(Raw { stream: connector.connect(name, stream).await? })
}

fn versions() -> ApiVersionsRequest {
    ApiVersionsRequest::default()
}

fn metadata(topic: &str) -> MetadataRequest {
    let topic = MetadataRequestTopic { name: Some(Str::from(topic)), ..Default::default() };
    MetadataRequest { topics: Some(vec![topic]), ..Default::default() }
}

#[tokio::test]
async fn tls_carries_the_protocol() {
    let authority = Authority::new();
    let Identity { chain, key } = authority.sign("broker");
    let broker = EmbeddedBroker::builder().listener(Listener::ssl("SSL", chain, key)).start().await.unwrap();
    let mut raw = connect(&broker, &client(&authority, None)).await.unwrap();
    assert!(raw.try_call(&versions(), 0).await.unwrap().error_code.is_ok());
    // Another authority's client does not trust the broker.
    assert!(connect(&broker, &client(&Authority::new(), None)).await.is_err());
    assert!(raw.try_call(&versions(), 0).await.unwrap().error_code.is_ok());
}

#[tokio::test]
async fn what_is_no_tls_is_closed_at_once() {
    let authority = Authority::new();
    let Identity { chain, key } = authority.sign("broker");
    let broker = EmbeddedBroker::builder().listener(Listener::ssl("SSL", chain, key)).start().await.unwrap();
    for bytes in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0, 0, 0, 18, 0, 18, 0, 0, 0, 0, 0, 1, 0, 4], &[0xff; 64]] {
        let mut stream = TcpStream::connect(("127.0.0.1", broker.nodes()[0].port)).await.unwrap();
        stream.write_all(bytes).await.unwrap();
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest).await;
        // An alert at most.
        assert!(rest.len() < 16, "{rest:?}");
    }
    assert_eq!(broker.connection_count(), 0, "the machine never heard of them");
    // TLS to a listener that has none is closed too.
    let plain = EmbeddedBroker::builder().start().await.unwrap();
    assert!(connect(&plain, &client(&authority, None)).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_handshake_that_stalls_is_closed_in_time() {
    let authority = Authority::new();
    let Identity { chain, key } = authority.sign("broker");
    let broker = EmbeddedBroker::builder().manual_clock().listener(Listener::ssl("SSL", chain, key));
    let broker = broker.start().await.unwrap();
    let begun = tokio::time::Instant::now();
    let mut stream = broker.connect_in_memory(1).unwrap();
    // The head of a ClientHello, and nothing after it.
    stream.write_all(&[22, 3, 1, 1, 0]).await.unwrap();
    assert_eq!(stream.read_to_end(&mut Vec::new()).await.unwrap(), 0);
    assert_eq!(begun.elapsed().as_secs(), 10);
}

#[tokio::test]
async fn a_certificate_makes_a_principal() {
    let authority = Authority::new();
    let Identity { chain, key } = authority.sign("broker");
    let listener = Listener::ssl("SSL", chain, key).client_auth(ClientAuth::Requested, &authority.pem[..]);
    let rights = Authorizer::new().allow("User:O=tests,CN=alice", Operation::Describe, Resource::topic("t"));
    let broker = EmbeddedBroker::builder().listener(listener).authorizer(rights).topic("t", 1).start().await.unwrap();
    for (identity, code) in [
        (Some(authority.sign("alice")), ErrorCode::NONE),
        (Some(authority.sign("bob")), ErrorCode::TOPIC_AUTHORIZATION_FAILED),
        (None, ErrorCode::TOPIC_AUTHORIZATION_FAILED),
    ] {
        let mut raw = connect(&broker, &client(&authority, identity.as_ref())).await.unwrap();
        assert_eq!(raw.call(&metadata("t")).await.topics[0].error_code, code);
    }
}

#[tokio::test]
async fn a_certificate_can_be_required() {
    let authority = Authority::new();
    let Identity { chain, key } = authority.sign("broker");
    let listener = Listener::ssl("SSL", chain, key).client_auth(ClientAuth::Required, &authority.pem[..]);
    let broker = EmbeddedBroker::builder().listener(listener).start().await.unwrap();
    let alice = authority.sign("alice");
    let mut raw = connect(&broker, &client(&authority, Some(&alice))).await.unwrap();
    assert!(raw.try_call(&versions(), 0).await.unwrap().error_code.is_ok());
    let stranger = Authority::new().sign("alice");
    for identity in [None, Some(&stranger)] {
        // With TLS 1.3 the client hears of it only when it reads.
        let refused = match connect(&broker, &client(&authority, identity)).await {
            Ok(mut raw) => raw.try_call(&versions(), 0).await.is_none(),
            Err(_) => true,
        };
        assert!(refused);
    }
}

#[tokio::test]
async fn sasl_inside_tls_goes_by_the_user() {
    let authority = Authority::new();
    let Identity { chain, key } = authority.sign("broker");
    let listener = Listener::sasl_ssl("SASL_SSL", chain, key, [Mechanism::Plain]).user("alice", "pw");
    let rights = Authorizer::new().allow("User:alice", Operation::Describe, Resource::topic("t"));
    let broker = EmbeddedBroker::builder().listener(listener).authorizer(rights).topic("t", 1).start().await.unwrap();
    let mut raw = connect(&broker, &client(&authority, None)).await.unwrap();
    assert!(raw.plain("alice", "pw").await.error_code.is_ok());
    assert!(raw.call(&metadata("t")).await.topics[0].error_code.is_ok());
}

#[tokio::test]
async fn certificates_and_keys_that_do_not_fit_are_told() {
    let authority = Authority::new();
    let good = authority.sign("broker");
    let other = authority.sign("other");
    let encrypted = "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n";
    for (chain, key, part) in [
        ("", &good.key[..], "has no certificate"),
        (&good.chain, "", "has no certificate"),
        ("garbage", &good.key, "no certificate in the PEM"),
        (&good.chain, "garbage", "no private key in the PEM"),
        (&good.chain, encrypted, "encrypted"),
        (&good.chain, &other.key, "listener SSL"),
    ] {
        let started = EmbeddedBroker::builder().listener(Listener::ssl("SSL", chain, key)).start().await;
        let error = started.expect_err(part);
        assert!(matches!(error, StartError::Security(_)) && error.to_string().contains(part), "{error}");
        assert!(!error.to_string().contains("PRIVATE"), "{error}");
    }
    let no_authority = Listener::ssl("SSL", &good.chain[..], &good.key[..]).client_auth(ClientAuth::Required, "");
    assert!(EmbeddedBroker::builder().listener(no_authority).start().await.is_err());
    let no_mechanism = Listener::sasl_plaintext("SASL", []);
    assert!(EmbeddedBroker::builder().listener(no_mechanism).start().await.is_err());
    let no_key = Listener::sasl_plaintext("SASL", [Mechanism::OAuthBearer]);
    assert!(EmbeddedBroker::builder().listener(no_key).start().await.is_err());
    let twice = EmbeddedBroker::builder().also_listen(Listener::plaintext("PLAINTEXT"));
    assert!(twice.start().await.unwrap_err().to_string().contains("two listeners"));
}
