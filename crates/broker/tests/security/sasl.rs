//! SASL state by state: what Kafka 4.4.0 answers, this broker answers.

use crate::raw::{Raw, scram_final};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use kafka_share_broker::{BrokerBuilder, Cluster, ClusterConfig, EmbeddedBroker, Listener, Mechanism, Now, OAuthKey};
use kafka_share_messages::{
    ApiVersionsRequest, ErrorCode, MetadataRequest, Request, SaslAuthenticateRequest, SaslHandshakeRequest, frame,
};
use kafka_share_wire::Str;
use proptest::prelude::*;
use std::sync::{LazyLock, Mutex};
use std::time::Duration;
use tokio::io::{AsyncWriteExt, DuplexStream};

const ALL: [Mechanism; 4] = [Mechanism::Plain, Mechanism::ScramSha256, Mechanism::ScramSha512, Mechanism::OAuthBearer];

fn listener() -> Listener {
    Listener::sasl_plaintext("SASL", ALL)
        .user("alice", "alice-secret")
        .user("admin", "admin-secret")
        .token_key(OAuthKey::unsecured())
}

fn builder() -> BrokerBuilder {
    EmbeddedBroker::builder()
        .manual_clock()
        .listener(listener())
        .configure(|config| config.failed_authentication_delay_ms = 0)
}

async fn start() -> EmbeddedBroker {
    builder().start().await.unwrap()
}

fn connect(broker: &EmbeddedBroker) -> Raw<DuplexStream> {
    Raw { stream: broker.connect_in_memory(1).unwrap() }
}

fn versions() -> ApiVersionsRequest {
    let name = Str::from_static("test");
    ApiVersionsRequest {
        client_software_name: name.clone(),
        client_software_version: Str::from_static("1"),
        node_id: -1,
        ..Default::default()
    }
}

fn unsecured(claims: &str) -> String {
    let part = |text: &str| URL_SAFE_NO_PAD.encode(text);
    format!("{}.{}.", part(r#"{"alg":"none"}"#), part(claims))
}

fn bearer(token: &str) -> Vec<u8> {
    format!("n,,\u{1}auth=Bearer {token}\u{1}\u{1}").into_bytes()
}

#[tokio::test]
async fn every_listener_says_that_it_knows_sasl() {
    let broker = builder().also_listen(Listener::plaintext("OPEN")).start().await.unwrap();
    let mut open = broker.connect_in_memory_to(1, "OPEN").map(|stream| Raw { stream }).unwrap();
    let mut sasl = connect(&broker);
    for raw in [&mut open, &mut sasl] {
        let answer = raw.call(&versions()).await;
        let keys: Vec<_> = answer.api_keys.iter().filter(|k| [17, 36].contains(&k.api_key)).collect();
        assert_eq!(keys.iter().map(|k| (k.min_version, k.max_version)).collect::<Vec<_>>(), [(0, 1), (0, 2)]);
    }
    // There, it is always the wrong moment; the connection goes on.
    assert_eq!(open.handshake("PLAIN").await, (ErrorCode::ILLEGAL_SASL_STATE, Vec::new()));
    let answer = open.token(b"x").await.unwrap();
    assert_eq!(answer.error_code, ErrorCode::ILLEGAL_SASL_STATE);
    let why = "SaslAuthenticate request received after successful authentication";
    assert_eq!(answer.error_message.as_deref(), Some(why));
    assert!(open.call(&versions()).await.error_code.is_ok());
}

#[tokio::test]
async fn a_refused_question_for_versions_is_asked_again() {
    let broker = start().await;
    let mut raw = connect(&broker);
    // A version that is yet to be, as a newer client begins.
    let mut frame = frame::encode_request(&versions(), 3, 7, &Str::from_static("test")).unwrap().to_vec();
    frame[6..8].copy_from_slice(&99_i16.to_be_bytes());
    raw.stream.write_all(&frame).await.unwrap();
    let answer = frame::decode_response::<ApiVersionsRequest>(raw.frame().await.unwrap(), 0).unwrap().1;
    assert_eq!(answer.error_code, ErrorCode::UNSUPPORTED_VERSION);
    let unnamed = ApiVersionsRequest { client_software_name: Str::from_static("-"), ..versions() };
    assert_eq!(raw.call(&unnamed).await.error_code, ErrorCode::INVALID_REQUEST);
    assert!(raw.call(&versions()).await.error_code.is_ok());
    // Once told, it is not told again.
    raw.send(&versions(), 0).await;
    assert!(raw.is_closed().await);
}

#[tokio::test]
async fn a_session_is_never_too_short_to_end() {
    let short = listener().max_reauth(Duration::from_micros(10));
    let broker = builder().listener(short).start().await.unwrap();
    let mut raw = connect(&broker);
    assert_eq!(raw.plain("alice", "alice-secret").await.session_lifetime_ms, 1);
    broker.advance_clock(Duration::from_millis(2));
    raw.send(&versions(), 0).await;
    assert!(raw.is_closed().await);
}

#[tokio::test(start_paused = true)]
async fn who_does_not_authenticate_in_time_is_closed() {
    let broker = start().await;
    let begun = tokio::time::Instant::now();
    let (mut known, mut slow) = (connect(&broker), connect(&broker));
    assert!(known.plain("alice", "alice-secret").await.error_code.is_ok());
    assert_eq!(slow.handshake("PLAIN").await.0, ErrorCode::NONE);
    assert!(slow.is_closed().await);
    assert_eq!(begun.elapsed().as_secs(), 10);
    assert!(known.call(&versions()).await.error_code.is_ok());
}

#[tokio::test]
async fn nonces_and_salts_do_not_follow_from_the_seed() {
    let mut challenges = Vec::new();
    for _ in 0..2 {
        let broker = builder().seed(5).start().await.unwrap();
        let mut raw = connect(&broker);
        raw.handshake("SCRAM-SHA-256").await;
        let answer = raw.token(b"n,,n=alice,r=abc").await.unwrap().auth_bytes;
        let text = String::from_utf8(answer.to_vec()).unwrap();
        challenges.push(text.split(',').map(str::to_owned).collect::<Vec<_>>());
    }
    assert!(challenges[0][0].starts_with("r=abc") && challenges[0][1].starts_with("s="));
    assert_ne!(challenges[0][0], challenges[1][0]);
    assert_ne!(challenges[0][1], challenges[1][1]);
}

#[tokio::test]
async fn a_listener_that_is_not_there_lets_nobody_in() {
    let broker = start().await;
    broker.with_cluster(|cluster, now| {
        let conn = cluster.connect_to(now, 1, 9, None);
        assert!(!cluster.is_authenticated(conn));
        assert_eq!(cluster.connection_count(), 0);
    });
}

#[tokio::test]
async fn plain_lets_in_whoever_knows_the_password() {
    let broker = start().await;
    let mut raw = connect(&broker);
    assert!(raw.call(&versions()).await.error_code.is_ok());
    let answer = raw.plain("alice", "alice-secret").await;
    assert_eq!((answer.error_code, answer.session_lifetime_ms), (ErrorCode::NONE, 0));
    assert_eq!(answer.error_message.as_deref(), Some(""));
    assert!(answer.auth_bytes.is_empty());
    assert_eq!(raw.call(&MetadataRequest::default()).await.brokers.len(), 1);
    // The session does not end, so it cannot be begun anew.
    assert_eq!(raw.handshake("PLAIN").await.0, ErrorCode::ILLEGAL_SASL_STATE);
    assert_eq!(raw.token(b"x").await.unwrap().error_code, ErrorCode::ILLEGAL_SASL_STATE);
    assert!(raw.call(&versions()).await.error_code.is_ok());
}

#[tokio::test]
async fn who_does_not_know_it_is_told_and_the_connection_is_closed() {
    let broker = start().await;
    for (token, why) in [
        ("\0alice\0x", "Authentication failed: Invalid username or password"),
        ("\0bob\0x", "Authentication failed: Invalid username or password"),
        ("\0\0x", "Authentication failed: username not specified"),
        ("\0alice\0", "Authentication failed: password not specified"),
        ("a\0b", "Invalid SASL/PLAIN response: expected 3 tokens, got 2"),
        (
            "bob\0alice\0alice-secret",
            "Authentication failed: Client requested an authorization id that is different from username",
        ),
    ] {
        let mut raw = connect(&broker);
        raw.handshake("PLAIN").await;
        let answer = raw.token(token.as_bytes()).await.unwrap();
        assert_eq!(answer.error_code, ErrorCode::SASL_AUTHENTICATION_FAILED, "{token:?}");
        assert_eq!(answer.error_message.as_deref(), Some(why));
        assert!(raw.is_closed().await);
    }
}

#[tokio::test]
async fn a_failure_is_told_after_a_while() {
    let broker = EmbeddedBroker::builder().manual_clock().listener(listener()).start().await.unwrap();
    let mut raw = connect(&broker);
    raw.handshake("PLAIN").await;
    let auth_bytes = bytes::Bytes::from_static(b"\0alice\0x");
    raw.send(&SaslAuthenticateRequest { auth_bytes, ..Default::default() }, 2).await;
    while broker.with_cluster(|cluster, _| cluster.waiting_requests()) == 0 {
        tokio::task::yield_now().await;
    }
    broker.advance_clock(Duration::from_millis(99));
    assert_eq!(broker.with_cluster(|cluster, _| cluster.waiting_requests()), 1);
    broker.advance_clock(Duration::from_millis(1));
    assert!(raw.frame().await.is_some() && raw.is_closed().await);
}

#[tokio::test]
async fn scram_proves_both_sides() {
    let broker = start().await;
    for mechanism in ["SCRAM-SHA-256", "SCRAM-SHA-512"] {
        let invalid = format!(
            "Authentication failed during authentication due to invalid credentials with SASL mechanism {mechanism}"
        );
        let mut nonces = Vec::new();
        for password in ["alice-secret", "alice-secret", "wrong"] {
            let mut raw = connect(&broker);
            raw.handshake(mechanism).await;
            let first = "n,,n=alice,r=abc";
            let challenge = raw.token(first.as_bytes()).await.unwrap();
            assert_eq!((challenge.error_code, challenge.session_lifetime_ms), (ErrorCode::NONE, 0));
            nonces.push(challenge.auth_bytes.clone());
            let (last, verifier) = scram_final(mechanism, password, first, &challenge.auth_bytes);
            let answer = raw.token(last.as_bytes()).await.unwrap();
            if password == "wrong" {
                assert_eq!(answer.error_code, ErrorCode::SASL_AUTHENTICATION_FAILED);
                assert_eq!(answer.error_message.as_deref(), Some(&invalid[..]));
                assert!(raw.is_closed().await);
            } else {
                assert_eq!((answer.error_code, &answer.auth_bytes[..]), (ErrorCode::NONE, verifier.as_bytes()));
                assert!(raw.call(&versions()).await.error_code.is_ok());
            }
        }
        nonces.dedup();
        assert_eq!(nonces.len(), 3, "nonces do not repeat");
        for first in ["n,,n=bob,r=abc", "y,,n=alice,r=abc", "xyz", "n,,n=alice,r=abc,tokenauth=true"] {
            let mut raw = connect(&broker);
            raw.handshake(mechanism).await;
            let answer = raw.token(first.as_bytes()).await.unwrap();
            assert_eq!(answer.error_message.as_deref(), Some(&invalid[..]), "{first}");
            assert!(raw.is_closed().await);
        }
    }
}

#[tokio::test]
async fn a_token_lets_in_until_its_end() {
    let broker = start().await;
    let now = broker.now().wall_ms / 1000;
    let mut raw = connect(&broker);
    raw.handshake("OAUTHBEARER").await;
    let token = unsecured(&format!(r#"{{"sub":"alice","exp":{}}}"#, now + 60));
    let answer = raw.token(&bearer(&token)).await.unwrap();
    assert_eq!(answer.error_code, ErrorCode::NONE);
    assert!((58_000..=60_000).contains(&answer.session_lifetime_ms), "{}", answer.session_lifetime_ms);
    assert!(raw.call(&versions()).await.error_code.is_ok());
    broker.advance_clock(Duration::from_secs(61));
    raw.send(&versions(), 0).await;
    assert!(raw.is_closed().await, "the session is over");
}

#[tokio::test]
async fn a_token_that_is_not_good_is_refused_in_two_steps() {
    let broker = start().await;
    let now = broker.now().wall_ms / 1000;
    let invalid = r#"{"status":"invalid_token"}"#;
    for claims in [format!(r#"{{"sub":"alice","exp":{}}}"#, now - 1), r#"{"sub":"alice"}"#.into(), String::new()] {
        let mut raw = connect(&broker);
        raw.handshake("OAUTHBEARER").await;
        let answer = raw.token(&bearer(&unsecured(&claims))).await.unwrap();
        assert_eq!((answer.error_code, &answer.auth_bytes[..]), (ErrorCode::NONE, invalid.as_bytes()));
        let answer = raw.token(&[1]).await.unwrap();
        assert_eq!(answer.error_code, ErrorCode::SASL_AUTHENTICATION_FAILED);
        assert_eq!(answer.error_message.as_deref(), Some(invalid));
        assert!(raw.is_closed().await);
    }
    let mut raw = connect(&broker);
    raw.handshake("OAUTHBEARER").await;
    let why = "Authentication failed during authentication due to invalid credentials with SASL mechanism OAUTHBEARER";
    assert_eq!(raw.token(b"xyz").await.unwrap().error_message.as_deref(), Some(why));
    let mut raw = connect(&broker);
    raw.handshake("OAUTHBEARER").await;
    assert!(raw.token(b"n,,\x01auth=Basic abc\x01\x01").await.is_none(), "Kafka closes without a word");
}

#[tokio::test]
async fn an_unknown_mechanism_is_told_which_there_are() {
    let broker = start().await;
    let mut raw = connect(&broker);
    let (code, mechanisms) = raw.handshake("GSSAPI").await;
    assert_eq!(code, ErrorCode::UNSUPPORTED_SASL_MECHANISM);
    assert_eq!(mechanisms, ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"].map(Str::from_static));
    assert!(raw.is_closed().await);
}

#[tokio::test]
async fn nothing_but_authentication_is_served_before_it() {
    let broker = start().await;
    let mut raw = connect(&broker);
    assert!(raw.try_call(&MetadataRequest::default(), 13).await.is_none());
    let mut raw = connect(&broker);
    assert!(raw.token(b"\0alice\0alice-secret").await.is_none(), "there was no handshake");
    let mut raw = connect(&broker);
    raw.call(&versions()).await;
    assert!(raw.try_call(&MetadataRequest::default(), 13).await.is_none());
    let mut raw = connect(&broker);
    raw.call(&versions()).await;
    assert!(raw.try_call(&versions(), 0).await.is_none(), "the versions are told once");
    // After the handshake the answer says what is wrong.
    let mut raw = connect(&broker);
    raw.handshake("PLAIN").await;
    let answer = raw.try_call(&versions(), 0).await.unwrap();
    assert_eq!(answer.error_code, ErrorCode::ILLEGAL_SASL_STATE);
    assert!(raw.is_closed().await);
    let mut raw = connect(&broker);
    raw.handshake("PLAIN").await;
    assert_eq!(raw.handshake("PLAIN").await, (ErrorCode::ILLEGAL_SASL_STATE, Vec::new()));
    assert!(raw.is_closed().await);
    let mut raw = connect(&broker);
    raw.handshake("PLAIN").await;
    assert!(raw.try_call(&MetadataRequest::default(), 1).await.unwrap().brokers.is_empty());
    assert!(raw.is_closed().await);
}

#[tokio::test]
async fn the_oldest_clients_send_tokens_without_headers() {
    let broker = start().await;
    let handshake = SaslHandshakeRequest { mechanism: Str::from_static("PLAIN") };
    let mut raw = connect(&broker);
    assert!(raw.try_call(&handshake, 0).await.unwrap().error_code.is_ok());
    raw.send_bare(b"\0alice\0alice-secret").await;
    assert_eq!(raw.frame().await.unwrap().len(), 0);
    assert!(raw.call(&versions()).await.error_code.is_ok());
    let mut raw = connect(&broker);
    assert!(raw.try_call(&handshake, 0).await.unwrap().error_code.is_ok());
    raw.send_bare(b"\0alice\0x").await;
    assert!(raw.is_closed().await);
}

#[tokio::test]
async fn frames_are_small_until_the_client_is_known() {
    let broker = start().await;
    let mut raw = connect(&broker);
    raw.stream.write_all(&524_289_i32.to_be_bytes()).await.unwrap();
    assert!(raw.is_closed().await);
    let mut raw = connect(&broker);
    raw.plain("alice", "alice-secret").await;
    raw.stream.write_all(&524_289_i32.to_be_bytes()).await.unwrap();
    raw.stream.write_all(&[0xff; 1000]).await.unwrap();
    // It waits for the rest of a large frame, which others may send.
    assert!(connect(&broker).call(&versions()).await.error_code.is_ok());
    assert_eq!(broker.connection_count(), 1 + 1);
}

/// A broker whose sessions last three seconds.
async fn short_sessions() -> EmbeddedBroker {
    let listener = listener().max_reauth(Duration::from_secs(3));
    builder().listener(listener).start().await.unwrap()
}

#[tokio::test]
async fn a_session_that_is_not_begun_anew_ends() {
    let broker = short_sessions().await;
    let mut raw = connect(&broker);
    assert_eq!(raw.plain("alice", "alice-secret").await.session_lifetime_ms, 3000);
    broker.advance_clock(Duration::from_secs(3));
    assert!(raw.call(&versions()).await.error_code.is_ok());
    broker.advance_clock(Duration::from_millis(1));
    assert!(raw.try_call(&versions(), 0).await.is_none());
}

#[tokio::test]
async fn a_session_can_be_begun_anew_even_late() {
    let broker = short_sessions().await;
    let mut raw = connect(&broker);
    raw.plain("alice", "alice-secret").await;
    for _ in 0..3 {
        broker.advance_clock(Duration::from_secs(4));
        assert_eq!(raw.plain("alice", "alice-secret").await.session_lifetime_ms, 3000);
        assert!(raw.call(&versions()).await.error_code.is_ok());
    }
    // Once a second is enough.
    assert_eq!(raw.handshake("PLAIN").await.0, ErrorCode::ILLEGAL_SASL_STATE);
    assert!(raw.call(&versions()).await.error_code.is_ok());
}

#[tokio::test]
async fn a_session_stays_its_users_and_its_mechanisms() {
    let broker = short_sessions().await;
    let mut raw = connect(&broker);
    raw.plain("alice", "alice-secret").await;
    let answer = raw.plain("admin", "admin-secret").await;
    let why = "Cannot change principals during re-authentication from User.alice: User.admin";
    assert_eq!(answer.error_code, ErrorCode::SASL_AUTHENTICATION_FAILED);
    assert_eq!(answer.error_message.as_deref(), Some(why));
    assert!(raw.is_closed().await);
    let mut raw = connect(&broker);
    raw.plain("alice", "alice-secret").await;
    assert_eq!(raw.handshake("SCRAM-SHA-256").await.0, ErrorCode::NONE);
    assert!(raw.token(b"n,,n=alice,r=abc").await.is_none());
    let mut raw = connect(&broker);
    raw.plain("alice", "alice-secret").await;
    let mechanism = Str::from_static("GSSAPI");
    assert!(raw.try_call(&SaslHandshakeRequest { mechanism }, 1).await.is_none());
    let mut raw = connect(&broker);
    raw.plain("alice", "alice-secret").await;
    assert_eq!(raw.handshake("PLAIN").await.0, ErrorCode::NONE);
    let answer = raw.try_call(&versions(), 0).await.unwrap();
    assert_eq!(answer.error_code, ErrorCode::ILLEGAL_SASL_STATE, "nothing else comes between");
    assert!(raw.is_closed().await);
}

#[tokio::test]
async fn nobody_sees_a_password() {
    let debug = format!("{:?}", listener());
    assert!(!debug.contains("secret"), "{debug}");
    let broker = start().await;
    let config = broker.with_cluster(|cluster, _| format!("{cluster:?}"));
    assert!(!config.contains("secret") && !broker.dump_json().contains("secret"));
    assert_eq!(SaslHandshakeRequest::KEY.0, 17);
}

/// One for all cases: keys are derived from passwords at its start, which takes its time.
static CLUSTER: LazyLock<Mutex<Cluster>> = LazyLock::new(|| {
    let config = ClusterConfig { listeners: vec![listener()], ..Default::default() };
    Mutex::new(Cluster::new(config, 7))
});

/// Something that a client may send, most of it at the wrong time.
fn frame() -> impl Strategy<Value = Vec<u8>> {
    let handshake = |mechanism: &'static str, version| {
        let request = SaslHandshakeRequest { mechanism: Str::from_static(mechanism) };
        frame::encode_request(&request, version, 1, &Str::from_static("x")).unwrap().to_vec()
    };
    let token = |auth_bytes: Vec<u8>| {
        let request = SaslAuthenticateRequest { auth_bytes: auth_bytes.into(), ..Default::default() };
        frame::encode_request(&request, 2, 1, &Str::from_static("x")).unwrap().to_vec()
    };
    let tokens = prop_oneof![
        Just(b"\0alice\0alice-secret".to_vec()),
        Just(b"n,,n=alice,r=abc".to_vec()),
        Just(bearer(&unsecured(r#"{"sub":"alice","exp":9e99}"#))),
        "n,[a=]{0,4},n=[a=2C,]{0,9},r=[!-~]{0,9}(,[a-z]=[a-z])?".prop_map(String::into_bytes),
        "c=[A-Za-z/=]{0,8},r=[!-~]{0,9},p=[A-Za-z/=]{0,64}".prop_map(String::into_bytes),
        "n,(a=[a-z]{0,3})?,\u{1}([a-z]{0,4}=[A-Za-z. ]{0,20}\u{1}){0,3}\u{1}?".prop_map(String::into_bytes),
        proptest::collection::vec(any::<u8>(), 0..40),
    ];
    let versions = frame::encode_request(&versions(), 3, 1, &Str::from_static("x")).unwrap();
    prop_oneof![
        (prop::sample::select(vec!["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "?"]), 0..2_i16)
            .prop_map(move |(mechanism, version)| handshake(mechanism, version)),
        tokens.prop_map(token),
        Just(versions.to_vec()),
        proptest::collection::vec(any::<u8>(), 0..40),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn whatever_comes_is_answered_or_closed(frames in proptest::collection::vec(frame(), 1..8)) {
        let mut cluster = CLUSTER.lock().unwrap();
        let conn = cluster.connect(Now::default(), 1);
        for frame in frames {
            // A size prefix is not the machine's.
            let frame = bytes::Bytes::from(frame);
            let frame = frame.slice(frame.len().min(4)..);
            if cluster.handle_frame(Now::default(), conn, frame).is_err() {
                break;
            }
        }
        cluster.disconnect(Now::default(), conn);
        while cluster.poll_output().is_some() {}
        prop_assert_eq!((cluster.connection_count(), cluster.waiting_requests()), (0, 0));
    }
}
