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

/// Plays scripts.
fn play(address: SocketAddr, level: i16, scripts: &[(&str, Script)]) -> Vec<String> {
    let mut all = Vec::new();
    for (name, script) in scripts {
        all.push(format!("== {name}"));
        all.extend(script(address, level));
    }
    all
}

/// Plays on both brokers and compares.
fn compare(kafka: &RealKafka, builder: BrokerBuilder, level: i16, scripts: &'static [(&'static str, Script)]) {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime");
    let builder = builder.transaction_version(level).transactional_acks(false);
    let broker = runtime.block_on(builder.start()).expect("a broker");
    let ours = broker.bootstrap_servers().parse().expect("an address");
    let (ours, theirs) = std::thread::scope(|scope| {
        let ours = scope.spawn(move || play(ours, level, scripts));
        let theirs = play(kafka.address(), level, scripts);
        (ours.join().expect("the embedded broker answers"), theirs)
    });
    let mut differences = String::new();
    let mut last = "";
    for (ours, theirs) in ours.iter().zip(&theirs) {
        if theirs.starts_with("== ") {
            last = theirs;
        }
        if ours != theirs {
            differences.push_str(&format!("{last}\n  ours  {ours}\n  kafka {theirs}\n"));
        }
    }
    if std::env::var_os("KAFKA_SHARE_TEST_TRANSCRIPT").is_some() {
        eprintln!("{}", theirs.join("\n"));
    }
    assert!(differences.is_empty(), "{differences}");
    assert_eq!(ours.len(), theirs.len());
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
