//! Names of settings: whatever Kafka's own clients know is known here, with effect, with a refusal or with a reason.
//!
//! The lists are those of kafka-clients 4.4.0; `byte_oracle` in the tests of the workspace compares them with the jar.

use crate::log::Log;
use kafka_share::{Error, ErrorKind, KafkaShareConsumer, Producer, ShareConsumerBuilder, TransactionalProducer};
use std::collections::BTreeSet;

const CONSUMER: &str = include_str!("../data/java-consumer-properties.txt");
const PRODUCER: &str = include_str!("../data/java-producer-properties.txt");
/// `ShareConsumerConfig.SHARE_GROUP_UNSUPPORTED_CONFIGS`
const SHARE_REFUSES: &str = include_str!("../data/java-share-refuses.txt");

/// How a builder takes a property.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Taken {
    /// It has an effect, or its value is bad.
    Known,
    Refused,
    WithoutEffect(String),
    Unknown,
}

fn taken(log: &Log, name: &str, result: Result<(), Error>) -> Taken {
    let of = |part: &str| log.events(part).into_iter().find(|e| e.fields["name"] == name);
    if of("is not known to this client").is_some() {
        return Taken::Unknown;
    }
    if let Some(event) = of("has no effect on this client") {
        assert!(result.is_ok(), "{name}");
        return Taken::WithoutEffect(event.fields["reason"].clone());
    }
    match result {
        Err(error) if error.to_string().contains("cannot be set on a share consumer: ") => Taken::Refused,
        Err(error) => {
            assert!(error.kind() == ErrorKind::Config && error.to_string().contains(name), "{name}: {error}");
            Taken::Known
        }
        Ok(()) => Taken::Known,
    }
}

#[test]
fn each_property_of_the_java_consumer_is_known() {
    let log = Log::start();
    let mut refused = BTreeSet::new();
    for name in CONSUMER.lines() {
        let result = ShareConsumerBuilder::from_properties([(name, "PLAINTEXT")]).map(drop);
        match taken(&log, name, result) {
            Taken::Known => {}
            Taken::Refused => drop(refused.insert(name)),
            Taken::WithoutEffect(reason) => assert!(reason.len() > 10, "{name}: {reason:?}"),
            Taken::Unknown => panic!("{name} is not known to the share consumer"),
        }
    }
    assert_eq!(refused, SHARE_REFUSES.lines().collect());
    let typo = ShareConsumerBuilder::from_properties([("max.pol.records", "1")]).map(drop);
    assert_eq!(taken(&log, "max.pol.records", typo), Taken::Unknown);
}

#[test]
fn each_property_of_the_java_producer_is_known() {
    let log = Log::start();
    for name in PRODUCER.lines() {
        let result = kafka_share::ProducerBuilder::from_properties([(name, "PLAINTEXT")]).map(drop);
        match taken(&log, name, result) {
            Taken::Known => {}
            Taken::WithoutEffect(reason) => assert!(reason.len() > 10, "{name}: {reason:?}"),
            other => panic!("{name}: {other:?}"),
        }
    }
    let typo = kafka_share::ProducerBuilder::from_properties([("linger", "1")]).map(drop);
    assert_eq!(taken(&log, "linger", typo), Taken::Unknown);
}

#[tokio::test]
async fn a_protocol_whose_settings_are_missing_is_refused_whatever_the_order() {
    let cases: [(&str, &str, &str); 3] = [
        ("SSL", "ssl.truststore.location", "ssl.truststore=/not/there"),
        ("SASL_SSL", "ssl.truststore.location", "sasl.jaas.config is missing"),
        ("SASL_PLAINTEXT", "sasl.jaas.config", "sasl.jaas.config: "),
    ];
    for (protocol, name, words) in cases {
        let mut properties = vec![
            ("bootstrap.servers", "127.0.0.1:1"),
            ("group.id", "g"),
            ("security.protocol", protocol),
            (name, "/not/there"),
        ];
        for _ in 0..2 {
            properties.reverse();
            let consumer = ShareConsumerBuilder::from_properties(properties.clone()).unwrap();
            let mut properties = properties.clone();
            properties.retain(|(name, _)| *name != "group.id");
            let producer = kafka_share::ProducerBuilder::from_properties(properties).unwrap();
            for error in [consumer.build().map(drop).unwrap_err(), producer.build().map(drop).unwrap_err()] {
                assert!(error.kind() == ErrorKind::Config && error.to_string().contains(words), "{protocol}: {error}");
            }
        }
    }
}

#[tokio::test]
async fn connection_settings_beside_a_cluster_are_refused_by_name() {
    let time = std::time::Duration::from_secs;
    let config = kafka_share::ClientConfig::new("127.0.0.1:1").request_timeout(time(5));
    let cluster = kafka_share::net::Cluster::new(config.clone()).unwrap();
    // Less than the 30 s of a client of its own, and more than this cluster's.
    let consumer = || KafkaShareConsumer::builder("", "group").cluster(cluster.clone());
    let error = consumer().fetch_max_wait(time(6)).build().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
    assert!(error.to_string().contains("fetch.max.wait.ms must be less than request.timeout.ms (5000)"), "{error}");
    let mut named = consumer();
    named.set("request.timeout.ms", "30000").unwrap();
    let producer = || Producer::builder("").cluster(cluster.clone());
    let mut named_of_producer = producer();
    named_of_producer.set("request.timeout.ms", "30000").unwrap();
    let other = || kafka_share::ClientConfig::new("").request_timeout(time(7));
    let errors = [
        named.build().map(drop),
        consumer().client_config(|c| c.request_timeout(time(7))).build().map(drop),
        named_of_producer.build().map(drop),
        producer().client_config(other()).build().map(drop),
        TransactionalProducer::builder("", "id").cluster(cluster.clone()).client_config(other()).build().map(drop),
    ];
    for error in errors {
        let error = error.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config);
        assert!(error.to_string().contains("request.timeout.ms (") && error.to_string().contains("cluster"), "{error}");
    }
    // The same as the cluster's, said again, is none the worse.
    consumer().client_config(|c| c.request_timeout(time(5))).build().unwrap();
    producer().client_config(config).build().unwrap();
}

#[tokio::test]
async fn fetch_min_bytes_is_what_brokers_are_asked_for() {
    use crate::support::{GROUP, LONG, Rig};
    let rig = Rig::new(1).await;
    let builder = KafkaShareConsumer::builder(&rig.broker.bootstrap_servers(), GROUP).fetch_min_bytes(100_000);
    // Nothing is brought before the wait is over, for want of bytes.
    let wait = std::time::Duration::from_secs(2);
    let consumer = builder.fetch_max_wait(wait).build().unwrap();
    consumer.subscribe([rig.topic()]).unwrap();
    rig.produce(0..1).await;
    let started = std::time::Instant::now();
    assert_eq!(rig.receive(&consumer, 1).await.len(), 1);
    assert!(started.elapsed() >= wait, "{:?}", started.elapsed());
    consumer.close(LONG).await.unwrap();
    let negative = KafkaShareConsumer::builder("h:1", GROUP).fetch_min_bytes(-1).build().unwrap_err();
    assert!(negative.to_string().contains("fetch.min.bytes"), "{negative}");
}
