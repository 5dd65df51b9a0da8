//! The official share consumer on the embedded broker; the same program passes on a real Kafka, which proves it.

use kafka_share_broker::EmbeddedBroker;
use kafka_share_tests::java::{JavaProject, available};
use kafka_share_tests::kafka::RealKafka;
use tokio::runtime::Runtime;

const PROGRAM: &str = "share.Consumers";

#[test]
fn java_share_consumers_on_the_embedded_broker() {
    if !available("java_share_consumers_on_the_embedded_broker") {
        return;
    }
    let runtime = Runtime::new().expect("a runtime");
    let broker = runtime.block_on(EmbeddedBroker::builder().nodes(3).start()).expect("a broker");
    JavaProject::build("share").run(PROGRAM, [broker.bootstrap_servers()]);
    let left = broker.with_cluster(|cluster, _| cluster.share_dump());
    let held: i64 = left.partitions.iter().map(|p| p.acquired + p.pending).sum();
    assert_eq!((left.sessions.len(), held), (0, 0), "consumers that close leave nothing behind: {left:?}");
}

#[test]
fn java_share_consumers_on_a_real_kafka() {
    let Some(kafka) = RealKafka::start("java_share_consumers_on_a_real_kafka", "4.4.0") else { return };
    JavaProject::build("share").run(PROGRAM, [kafka.bootstrap()]);
}
