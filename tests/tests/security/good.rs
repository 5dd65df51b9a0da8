//! What works: produce and share-consume over each kind of connection.

use crate::stage::{MUTUAL, OPEN_SASL, OTHER_NAME, Properties, SASL, Stage};
use kafka_share::{Admin, ClientConfig, KafkaShareConsumer, Producer, ProducerRecord, ShareConsumerBuilder};
use kafka_share_tests::share::{numbers, receive};
use std::time::Duration;

const LONG: Duration = Duration::from_secs(60);

pub(crate) async fn all(stage: &Stage) {
    let password = "username=\"alice\" password=\"alice-secret\"";
    let mut named = stage.tls(OTHER_NAME);
    named.push(("ssl.endpoint.identification.algorithm", String::new()));
    let mut certificate = stage.tls(MUTUAL);
    certificate.push(("ssl.keystore.type", "PEM".into()));
    certificate.push(("ssl.keystore.location", stage.file("client.pem")));
    let mut old = certificate.clone();
    old.push(("ssl.enabled.protocols", "TLSv1.2".into()));
    let cases = [
        ("plain", stage.sasl(SASL, "PLAIN", password)),
        ("scram-256", stage.sasl(SASL, "SCRAM-SHA-256", password)),
        ("scram-512", stage.sasl(SASL, "SCRAM-SHA-512", password)),
        ("scram-open", stage.sasl(OPEN_SASL, "SCRAM-SHA-512", password)),
        ("oauth", stage.sasl(SASL, "OAUTHBEARER", "unsecuredLoginStringClaim_sub=\"alice\"")),
        ("certificate", certificate),
        ("certificate-1.2", old),
        ("any-name", named),
    ];
    for (name, properties) in cases {
        println!("{name}");
        round_trip(name, &properties).await;
    }
}

/// The settings of connections alone, for an admin client.
pub(crate) fn client(properties: &Properties) -> ClientConfig {
    let mut config = ClientConfig::new("");
    for (name, value) in properties {
        config.set(name, value).expect("a setting");
    }
    config
}

/// A group that begins at the first record, and a consumer in it.
pub(crate) async fn consumer(topic: &str, properties: &Properties) -> KafkaShareConsumer {
    let admin = Admin::new(client(properties)).expect("an admin client");
    let group = format!("group-{topic}");
    admin
        .alter_share_group_configs(&group, &[("share.auto.offset.reset", "earliest")])
        .await
        .expect("the group's settings");
    let with_group = properties.iter().cloned().chain([("group.id", group)]);
    let consumer = ShareConsumerBuilder::from_properties(with_group).expect("settings").build().expect("a consumer");
    consumer.subscribe([topic]).expect("a subscription");
    consumer
}

pub(crate) fn producer(properties: &Properties) -> Producer {
    kafka_share::ProducerBuilder::from_properties(properties.clone()).expect("settings").build().expect("a producer")
}

async fn round_trip(name: &str, properties: &Properties) {
    let topic = format!("topic-{name}");
    let producer = producer(properties);
    for n in 0..10 {
        let sent = producer.send(ProducerRecord::new(&topic).value(n.to_string())).await.expect("sent");
        sent.await.expect("delivered");
    }
    let consumer = consumer(&topic, properties).await;
    let got = receive(&consumer, 10).await;
    let mut all: Vec<u32> = numbers(&got).into_iter().map(|(n, _)| n).collect();
    all.sort_unstable();
    assert_eq!(all, (0..10).collect::<Vec<_>>(), "{name}");
    consumer.commit_sync(LONG).await.expect("committed");
    consumer.close(LONG).await.expect("closed");
}
