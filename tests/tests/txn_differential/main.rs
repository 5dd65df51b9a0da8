//! The same raw requests of transactional producers and readers are played to the embedded broker and to a real Kafka
//! 4.4.0, under both transaction versions: the answers must agree field by field. Left out, as they are chosen at random or
//! measured: producer ids (compared by order), session ids, times, texts of errors.

mod look;
mod player;
mod random;
mod scripts;
mod sessions;

use std::net::SocketAddr;

use kafka_share_broker::{BrokerBuilder, EmbeddedBroker};
use kafka_share_tests::kafka::RealKafka;

type Script = fn(SocketAddr, i16) -> Vec<String>;

/// How often a script may be played. A rule that differs differs each time; a real broker that writes its markers, or ends a
/// transaction of its own, later than usual does not.
const ROUNDS: usize = 3;

/// Plays on both brokers and compares; scripts that differ are played again.
fn compare(kafka: &RealKafka, builder: BrokerBuilder, level: i16, scripts: &'static [(&'static str, Script)]) {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime");
    let builder = builder.transaction_version(level).transactional_acks(false);
    let broker = runtime.block_on(builder.start()).expect("a broker");
    let ours = broker.bootstrap_servers().parse().expect("an address");
    let mut differences = String::new();
    for (name, script) in scripts {
        let mut found = differ(name, *script, level, ours, kafka.address());
        for _ in 1..ROUNDS {
            let Some(first) = found else { break };
            eprintln!("{first}");
            found = differ(name, *script, level, ours, kafka.address());
        }
        differences.push_str(&found.unwrap_or_default());
    }
    assert!(differences.is_empty(), "{differences}");
}

/// Plays a script on both brokers; answers what differs.
fn differ(name: &str, script: Script, level: i16, ours: SocketAddr, theirs: SocketAddr) -> Option<String> {
    let (ours, theirs) = std::thread::scope(|scope| {
        let ours = scope.spawn(move || script(ours, level));
        let theirs = script(theirs, level);
        (ours.join().expect("the embedded broker answers"), theirs)
    });
    if std::env::var_os("KAFKA_SHARE_TEST_TRANSCRIPT").is_some() {
        eprintln!("== {name}\n{}", theirs.join("\n"));
    }
    let mut text = String::new();
    for (ours, theirs) in ours.iter().zip(&theirs).filter(|(ours, theirs)| ours != theirs) {
        text.push_str(&format!("  ours  {ours}\n  kafka {theirs}\n"));
    }
    if ours.len() != theirs.len() {
        text.push_str(&format!("  {} lines, and {} of Kafka\n", ours.len(), theirs.len()));
    }
    if text.is_empty() { None } else { Some(format!("== {name}\n{text}")) }
}

#[test]
fn transactions_under_version_2_are_kafkas() {
    let Some(kafka) = RealKafka::start("transactions_under_version_2_are_kafkas", "4.4.0") else { return };
    compare(&kafka, EmbeddedBroker::builder(), 2, scripts::ALL);
}

#[test]
fn transactions_under_version_1_are_kafkas() {
    let test = "transactions_under_version_1_are_kafkas";
    let Some(kafka) = RealKafka::start_with_features(test, "4.4.0", &["transaction.version=1"], &[]) else { return };
    compare(&kafka, EmbeddedBroker::builder(), 1, scripts::ALL);
}

#[test]
fn unstable_init_producer_id_is_kafkas() {
    let test = "unstable_init_producer_id_is_kafkas";
    let unstable = ["unstable.api.versions.enable=true"];
    let Some(kafka) = RealKafka::start_with(test, "4.4.0", &unstable) else { return };
    let builder = EmbeddedBroker::builder().configure(|config| config.features.unstable_api_versions = true);
    compare(&kafka, builder, 2, scripts::UNSTABLE);
}

/// The first release with share groups answers as the latest does.
#[test]
fn contenders_of_the_first_release_are_told_the_same() {
    let test = "contenders_of_the_first_release_are_told_the_same";
    let Some(kafka) = RealKafka::start(test, "4.1.1") else { return };
    compare(&kafka, EmbeddedBroker::builder(), 2, scripts::CONTENDERS);
}
