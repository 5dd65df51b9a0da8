//! The official share consumers of four releases on the embedded broker; the same program passes on a real Kafka of each
//! release, which proves it.

use kafka_share_broker::EmbeddedBroker;
use kafka_share_tests::java::{JavaProject, available, succeed};
use kafka_share_tests::kafka::{self, RealKafka};
use tokio::runtime::Runtime;

const PROGRAM: &str = "share.Consumers";

/// Runs the program on the clients of a release.
fn run(clients: &str, arguments: &[&str]) {
    let jars = kafka::jars(clients).unwrap_or_else(|e| panic!("the jars of Kafka {clients}: {e}"));
    let printed = succeed(JavaProject::build("share").command_with(&jars, PROGRAM).args(arguments));
    assert!(printed.contains(&format!("ok {clients}")), "{printed}");
}

fn on_embedded(test: &str, clients: &str) {
    if !available(test) {
        return;
    }
    let runtime = Runtime::new().expect("a runtime");
    let broker = runtime.block_on(EmbeddedBroker::builder().nodes(3).start()).expect("a broker");
    run(clients, &[&broker.bootstrap_servers(), "exact"]);
    let left = broker.with_cluster(|cluster, _| cluster.share_dump());
    let held: i64 = left.partitions.iter().map(|p| p.acquired + p.pending).sum();
    assert_eq!((left.sessions.len(), held), (0, 0), "consumers that close leave nothing behind: {left:?}");
}

fn on_real(test: &str, version: &str) {
    let Some(kafka) = RealKafka::start(test, version) else { return };
    run(version, &[&kafka.bootstrap()]);
}

#[test]
fn java_4_4_share_consumers_on_the_embedded_broker() {
    on_embedded("java_4_4_share_consumers_on_the_embedded_broker", "4.4.0");
}

#[test]
fn java_4_2_share_consumers_on_the_embedded_broker() {
    on_embedded("java_4_2_share_consumers_on_the_embedded_broker", "4.2.0");
}

#[test]
fn java_4_1_share_consumers_on_the_embedded_broker() {
    on_embedded("java_4_1_share_consumers_on_the_embedded_broker", "4.1.1");
}

#[test]
fn java_4_4_share_consumers_on_a_real_kafka() {
    on_real("java_4_4_share_consumers_on_a_real_kafka", "4.4.0");
}

#[test]
fn java_4_2_share_consumers_on_a_real_kafka() {
    on_real("java_4_2_share_consumers_on_a_real_kafka", "4.2.0");
}

#[test]
fn java_4_1_share_consumers_on_a_real_kafka() {
    on_real("java_4_1_share_consumers_on_a_real_kafka", "4.1.1");
}
