//! SASL and rights: the embedded broker answers what a real Kafka 4.4.0 answers, code by code and word by word.

mod rights;
mod sasl;

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};

use bytes::Bytes;
use kafka_share_broker::{Authorizer, EmbeddedBroker, Listener, Mechanism, OAuthKey};
use kafka_share_messages::{ErrorCode, SaslAuthenticateRequest, SaslHandshakeRequest};
use kafka_share_tests::kafka::RealKafka;
use kafka_share_tests::raw::Raw;
use kafka_share_wire::Str;
use std::time::Duration;

const RELEASE: &str = "4.4.0";
/// How long a session lasts on both brokers.
const SESSION_MS: u64 = 3000;

fn properties(port: u16) -> Vec<String> {
    let login = "org.apache.kafka.common.security";
    let handler = "oauthbearer.internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler";
    let at = format!("PLAINTEXT://127.0.0.1:{{port}},SAFE://127.0.0.1:{port}");
    vec![
        format!("listeners={at},CONTROLLER://127.0.0.1:{{controller}}"),
        format!("advertised.listeners={at}"),
        "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SAFE:SASL_PLAINTEXT".into(),
        "sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,OAUTHBEARER".into(),
        format!("connections.max.reauth.ms={SESSION_MS}"),
        "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer".into(),
        "super.users=User:ANONYMOUS;User:admin".into(),
        format!(
            "listener.name.safe.plain.sasl.jaas.config={login}.plain.PlainLoginModule required \
             user_alice=\"alice-secret\" user_admin=\"admin-secret\";"
        ),
        format!("listener.name.safe.scram-sha-256.sasl.jaas.config={login}.scram.ScramLoginModule required;"),
        format!(
            "listener.name.safe.oauthbearer.sasl.jaas.config={login}.oauthbearer.OAuthBearerLoginModule required \
             unsecuredLoginStringClaim_sub=\"admin\";"
        ),
        format!("listener.name.safe.oauthbearer.sasl.server.callback.handler.class={login}.{handler}"),
    ]
}

/// A real broker with a SASL listener, and where that is.
fn real(test: &str) -> Option<(RealKafka, SocketAddr)> {
    // Another process may take the port before the broker does; then the start is tried again.
    let socket = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    let safe = socket.local_addr().expect("an address");
    drop(socket);
    let properties = properties(safe.port());
    let properties: Vec<&str> = properties.iter().map(String::as_str).collect();
    Some((RealKafka::start_with(test, RELEASE, &properties)?, safe))
}

/// The same on the embedded broker.
async fn embedded() -> (EmbeddedBroker, SocketAddr) {
    let mechanisms = [Mechanism::Plain, Mechanism::ScramSha256, Mechanism::OAuthBearer];
    let listener = Listener::sasl_plaintext("SAFE", mechanisms)
        .user_of(Mechanism::Plain, "alice", "alice-secret")
        .user_of(Mechanism::Plain, "admin", "admin-secret")
        .user_of(Mechanism::ScramSha256, "alice", "another")
        .token_key(OAuthKey::unsecured())
        .max_reauth(Duration::from_millis(SESSION_MS));
    let rights = Authorizer::new().super_user("User:ANONYMOUS").super_user("User:admin");
    let builder = EmbeddedBroker::builder().transactional_acks(false).also_listen(listener).authorizer(rights);
    let broker = builder.start().await.expect("broker");
    let safe = broker.bootstrap_servers_of("SAFE").expect("the listener").parse().expect("an address");
    (broker, safe)
}

/// Sends a token.
fn token(raw: &mut Raw, token: &[u8]) -> io::Result<kafka_share_messages::SaslAuthenticateResponse> {
    let auth_bytes = Bytes::copy_from_slice(token);
    raw.call(&SaslAuthenticateRequest { auth_bytes, ..Default::default() }, 1)
}

/// A connection of a user of PLAIN.
fn user(safe: SocketAddr, name: &str) -> Raw {
    let mut raw = Raw::connect(safe).expect("connected");
    let mechanism = Str::from_static("PLAIN");
    assert_eq!(raw.call(&SaslHandshakeRequest { mechanism }, 1).expect("shaken").error_code, ErrorCode::NONE);
    let answer = token(&mut raw, format!("\0{name}\0{name}-secret").as_bytes()).expect("an answer");
    assert_eq!(answer.error_code, ErrorCode::NONE);
    raw
}
