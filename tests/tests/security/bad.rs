//! What fails: at once, whatever is called, with a message that says what, where and what to do.

use crate::good::{client, producer};
use crate::stage::{EXPIRED, MUTUAL, OPEN_SASL, OTHER_NAME, Properties, SASL, Stage};
use kafka_share::{Admin, ErrorKind, ProducerRecord, ShareConsumerBuilder};
use std::time::{Duration, Instant};

/// Longer than what is allowed, so that a call that is late is seen to be late.
const LONG: Duration = Duration::from_secs(20);
/// How soon the application must know.
const SOON: Duration = Duration::from_secs(2);

const FAILED: &str = "SASL_AUTHENTICATION_FAILED";

type Case = (&'static str, Properties, &'static [&'static str]);

pub(crate) async fn all(stage: &Stage) {
    for (name, properties, words) in mechanisms(stage).into_iter().chain(certificates(stage)).chain(protocols(stage)) {
        refused(name, &properties, words).await;
    }
}

fn mechanisms(stage: &Stage) -> Vec<Case> {
    let wrong = "username=\"alice\" password=\"hunter2\"";
    let expired = "unsecuredLoginStringClaim_sub=\"alice\" unsecuredLoginNumberClaim_iat=\"1000\" unsecuredLoginNumberClaim_exp=\"2000\"";
    vec![
        (
            "wrong password, PLAIN",
            stage.sasl(SASL, "PLAIN", wrong),
            &["SASL PLAIN was refused", FAILED, "sasl.jaas.config"],
        ),
        (
            "wrong password, SCRAM-SHA-256",
            stage.sasl(SASL, "SCRAM-SHA-256", wrong),
            &["SASL SCRAM-SHA-256 was refused", FAILED],
        ),
        (
            "wrong password, SCRAM-SHA-512",
            stage.sasl(SASL, "SCRAM-SHA-512", wrong),
            &["SASL SCRAM-SHA-512 was refused", FAILED],
        ),
        ("no such user", stage.sasl(SASL, "SCRAM-SHA-512", "username=\"bob\" password=\"hunter2\""), &[FAILED]),
        (
            "expired token",
            stage.sasl(SASL, "OAUTHBEARER", expired),
            &["SASL OAUTHBEARER was refused", FAILED, "check the token"],
        ),
    ]
}

fn certificates(stage: &Stage) -> Vec<Case> {
    let mut untrusted = stage.tls(MUTUAL);
    untrusted.retain(|(name, _)| *name != "ssl.truststore.location");
    untrusted.push(("ssl.truststore.location", stage.file("stranger-ca.pem")));
    let mut stranger = stage.tls(MUTUAL);
    stranger.push(("ssl.keystore.location", stage.file("stranger.pem")));
    let mut missing_1_2 = stage.tls(MUTUAL);
    missing_1_2.push(("ssl.enabled.protocols", "TLSv1.2".into()));
    vec![
        ("wrong host name", stage.tls(OTHER_NAME), &["host name mismatch", "other.test", "localhost"]),
        ("expired certificate", stage.tls(EXPIRED), &["has expired"]),
        ("untrusted certificate", untrusted, &["nobody that is trusted here", "ssl.truststore.location"]),
        (
            "missing client certificate",
            stage.tls(MUTUAL),
            &["wants a certificate of the client", "ssl.keystore.location"],
        ),
        ("missing client certificate, TLS 1.2", missing_1_2, &["certificate of the client", "ssl.keystore.location"]),
        ("untrusted client certificate", stranger, &["does not trust the client's certificate"]),
    ]
}

fn protocols(stage: &Stage) -> Vec<Case> {
    let plain = |listener| vec![("bootstrap.servers", format!("localhost:{}", stage.kafka.more(listener)))];
    let to_plaintext = |mut properties: Properties, protocol: &str| {
        properties.retain(|(name, _)| !["bootstrap.servers", "security.protocol"].contains(name));
        properties.push(("bootstrap.servers", stage.kafka.bootstrap()));
        properties.push(("security.protocol", protocol.to_owned()));
        properties
    };
    let scram = stage.sasl(SASL, "SCRAM-SHA-512", "username=\"alice\" password=\"alice-secret\"");
    vec![
        ("PLAINTEXT to a TLS port", plain(MUTUAL), &["the listener speaks TLS", "security.protocol"]),
        // The broker tells what it speaks, and hangs up at the first request, again and again.
        (
            "PLAINTEXT to a SASL_PLAINTEXT port",
            plain(OPEN_SASL),
            &["listeners of SASL", "security.protocol", "sasl.mechanism"],
        ),
        ("PLAINTEXT to a SASL_SSL port", plain(SASL), &["the listener speaks TLS", "security.protocol"]),
        (
            "TLS to a PLAINTEXT port",
            to_plaintext(stage.tls(MUTUAL), "SSL"),
            &["does not speak TLS", "security.protocol"],
        ),
        ("SASL to a PLAINTEXT port", to_plaintext(scram, "SASL_PLAINTEXT"), &["asks for no authentication"]),
    ]
}

async fn refused(name: &str, properties: &Properties, words: &[&str]) {
    println!("{name}");
    let check = |what: &str, started: Instant, error: kafka_share::Error| {
        println!("  {what}, {:?}: {error}", started.elapsed());
        assert!(started.elapsed() < SOON, "{name}, {what}: {:?}", started.elapsed());
        assert_eq!(error.kind(), ErrorKind::Authentication, "{name}, {what}: {error:?}");
        assert!(error.is_fatal(), "{name}, {what}: {error:?}");
        let text = error.to_string();
        assert!(words.iter().all(|w| text.contains(w)), "{name}, {what}: {text}");
        assert!(text.contains("localhost:") || text.contains("127.0.0.1:"), "{text}");
        assert!(!format!("{error:?}").contains("hunter2"));
    };
    let started = Instant::now();
    let admin = Admin::new(client(properties)).expect("an admin client");
    check("admin", started, admin.list_groups().await.expect_err("a refusal"));
    let started = Instant::now();
    let sent = producer(properties).send(ProducerRecord::new("topic").value("1")).await;
    check("send", started, sent.map(drop).expect_err("a refusal"));
    let started = Instant::now();
    let with_group = properties.iter().cloned().chain([("group.id", "refused".to_owned())]);
    let consumer = ShareConsumerBuilder::from_properties(with_group).expect("settings").build().expect("a consumer");
    consumer.subscribe(["topic"]).expect("a subscription");
    check("poll", started, consumer.poll(LONG).await.map(drop).expect_err("a refusal"));
}
