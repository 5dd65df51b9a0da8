//! Scripts of handshakes and tokens, played on both brokers.

use std::net::SocketAddr;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::{embedded, real, token};
use kafka_protocol::messages::AlterUserScramCredentialsRequest;
use kafka_protocol::messages::alter_user_scram_credentials_request::ScramCredentialUpsertion;
use kafka_protocol::protocol::StrBytes;
use kafka_share_messages::{ApiVersionsRequest, MetadataRequest, SaslHandshakeRequest};
use kafka_share_tests::raw::Raw;
use kafka_share_wire::Str;

/// What a client does.
#[derive(Debug, Clone)]
enum Step {
    Handshake(&'static str),
    Token(Vec<u8>),
    Versions,
    Metadata,
}

use Step::{Handshake, Metadata, Versions};

fn send(text: &str) -> Step {
    Step::Token(text.as_bytes().to_vec())
}

/// Answers in a form that is the same wherever two brokers agree; what comes after the end is not asked.
fn play(safe: SocketAddr, script: &[Step]) -> Vec<String> {
    let mut raw = Raw::connect(safe).expect("connected");
    let mut told = Vec::new();
    for step in script {
        let answer = match step {
            Handshake(mechanism) => {
                let answer = raw.call(&SaslHandshakeRequest { mechanism: Str::from_static(mechanism) }, 1);
                answer.map(|mut answer| {
                    answer.mechanisms.sort_unstable();
                    format!("{:?} {:?}", answer.error_code, answer.mechanisms)
                })
            }
            Step::Token(bytes) => token(&mut raw, bytes).map(|answer| {
                // Nonces and salts differ.
                let text = String::from_utf8_lossy(&answer.auth_bytes).into_owned();
                let shape = if text.starts_with("r=abc") { "a challenge".to_owned() } else { text };
                let lifetime = answer.session_lifetime_ms;
                format!("{:?} {:?} {shape:?} {lifetime}", answer.error_code, answer.error_message)
            }),
            Versions => raw.call(&ApiVersionsRequest::default(), 0).map(|answer| format!("{:?}", answer.error_code)),
            Metadata => raw
                .call(&MetadataRequest { topics: Some(Vec::new()), ..Default::default() }, 1)
                .map(|answer| format!("{} brokers", answer.brokers.len())),
        };
        match answer {
            Ok(text) => told.push(text),
            Err(_) => {
                told.push("closed".into());
                break;
            }
        }
    }
    told
}

fn bearer(claims: &str) -> Step {
    // {"alg":"none"}
    let token = format!("eyJhbGciOiJub25lIn0.{}.", base64_url(claims.as_bytes()));
    send(&format!("n,,\u{1}auth=Bearer {token}\u{1}\u{1}"))
}

fn base64_url(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let bits = chunk.iter().fold(0_u32, |bits, byte| (bits << 8) | u32::from(*byte)) << (8 * (3 - chunk.len()));
        let letters = (0..=chunk.len()).map(|i| char::from(LETTERS[((bits >> (18 - 6 * i)) & 63) as usize]));
        text.extend(letters);
    }
    text
}

fn scripts() -> Vec<Vec<Step>> {
    let plain = || Handshake("PLAIN");
    let alice = || send("\0alice\0alice-secret");
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs();
    let mut all = vec![
        vec![Versions, plain(), alice(), Versions, Metadata, alice(), Versions],
        vec![Versions, Versions],
        vec![Metadata],
        vec![Versions, Metadata],
        vec![alice()],
        vec![Handshake("GSSAPI"), Versions],
        vec![Handshake("plain"), Versions],
        vec![plain(), Versions, Versions],
        vec![plain(), Metadata, Versions],
        vec![plain(), plain(), Versions],
        // Sessions that are begun anew.
        vec![plain(), alice(), plain(), alice(), Versions, plain(), Versions],
        vec![plain(), alice(), plain(), send("\0admin\0admin-secret"), Versions],
        vec![plain(), alice(), plain(), send("\0alice\0x"), Versions],
        vec![plain(), alice(), plain(), Versions, Versions],
        vec![plain(), alice(), Handshake("OAUTHBEARER"), send("x"), Versions],
        vec![plain(), alice(), Handshake("GSSAPI"), Versions],
        vec![Handshake("OAUTHBEARER"), bearer(&format!(r#"{{"sub":"alice","exp":{}}}"#, now + 1000)), Versions],
    ];
    for bad in ["\0alice\0x", "\0bob\0x", "\0\0x", "\0alice\0", "a\0b", "\0a\0b\0c", "", "bob\0alice\0alice-secret"] {
        all.push(vec![plain(), send(bad), Versions]);
    }
    for first in [
        "n,,n=alice,r=abc",
        "n,a=alice,n=alice,r=abc,ext=1",
        "n,a=bob,n=alice,r=abc",
        "n,,n=bob,r=abc",
        "y,,n=alice,r=abc",
        "p=tls-unique,,n=alice,r=abc",
        "n,,n=alice,r=abc,tokenauth=true",
        "n,,n=a=2Zb,r=abc",
        "xyz",
        "",
    ] {
        for last in ["xyz", "c=biws,r=abc,p=aaaa", "c=biws,r=other,p=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="] {
            all.push(vec![Handshake("SCRAM-SHA-256"), send(first), send(last), Versions]);
        }
    }
    for claims in [
        format!(r#"{{"sub":"alice","exp":{}}}"#, now - 100),
        r#"{"sub":"alice"}"#.to_owned(),
        format!(r#"{{"exp":{}}}"#, now + 100),
        String::new(),
    ] {
        all.push(vec![Handshake("OAUTHBEARER"), bearer(&claims), send("\u{1}"), Versions]);
        all.push(vec![Handshake("OAUTHBEARER"), bearer(&claims), send("x"), Versions]);
    }
    for bad in ["xyz", "n,,\u{1}auth=Basic abc\u{1}\u{1}", "n,,\u{1}a=b\u{1}\u{1}", "n,,\u{1}auth=Bearer\u{1}\u{1}"] {
        all.push(vec![Handshake("OAUTHBEARER"), send(bad), Versions]);
    }
    all
}

/// The password does not matter: no script knows it.
fn add_scram_user(broker: SocketAddr) {
    let user = ScramCredentialUpsertion::default()
        .with_name(StrBytes::from_static_str("alice"))
        .with_mechanism(1)
        .with_iterations(4096)
        .with_salt(vec![1; 16].into())
        .with_salted_password(vec![2; 32].into());
    let request = AlterUserScramCredentialsRequest::default().with_upsertions(vec![user]);
    let answer = Raw::connect(broker).expect("connected").call_peer(&request, 0).expect("an answer");
    assert_eq!(answer.results[0].error_code, 0, "{:?}", answer.results[0].error_message);
}

#[tokio::test(flavor = "multi_thread")]
async fn sasl_is_answered_as_by_kafka() {
    let Some((kafka, real)) = real("sasl_is_answered_as_by_kafka") else { return };
    add_scram_user(kafka.address());
    let (broker, safe) = embedded().await;
    // The broker learns of the user a moment later.
    let known = [Handshake("SCRAM-SHA-256"), send("n,,n=alice,r=abc")];
    while !play(real, &known).last().is_some_and(|text| text.contains("a challenge")) {
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    for script in scripts() {
        let expected = play(real, &script);
        assert_eq!(play(safe, &script), expected, "{script:?}");
    }
    drop(broker);
}
