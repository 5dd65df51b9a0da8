//! The embedded broker before its judges: programs on the official Java clients, which also pass on a real Kafka.

use kafka_share_broker::{BrokerBuilder, EmbeddedBroker, Fault, FaultAction};
use kafka_share_messages::{ApiKey, ErrorCode};
use kafka_share_tests::java::{JavaProject, available, succeed};
use kafka_share_tests::kafka::{self, RealKafka};
use tokio::runtime::Runtime;

const PROGRAM: &str = "clients.Transactions";

/// Runs the program on the clients of a release.
fn run(clients: &str, bootstrap: &str) {
    let jars = kafka::jars(clients).unwrap_or_else(|e| panic!("the jars of Kafka {clients}: {e}"));
    let printed = succeed(JavaProject::build("clients").command_with(&jars, PROGRAM).arg(bootstrap));
    assert!(printed.ends_with("ok\n"), "{printed}");
}

fn on_embedded(test: &str, clients: &str, builder: BrokerBuilder) {
    if !available(test) {
        return;
    }
    let runtime = Runtime::new().expect("runtime");
    let broker = runtime.block_on(builder.start()).expect("broker");
    run(clients, &broker.bootstrap_servers());
    // The programs are gone, and so are their connections, once the broker has seen the closed sockets.
    runtime.block_on(async {
        while broker.connection_count() > 0 {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        broker.shutdown().await;
    });
}

#[test]
fn java_transactions_on_three_nodes() {
    on_embedded("java_transactions_on_three_nodes", "4.4.0", EmbeddedBroker::builder().nodes(3));
}

#[test]
fn java_transactions_under_transaction_version_1() {
    let builder = EmbeddedBroker::builder().transaction_version(1).transactional_acks(false);
    on_embedded("java_transactions_under_transaction_version_1", "4.4.0", builder);
}

#[test]
fn java_4_1_transactions_on_the_embedded_broker() {
    on_embedded("java_4_1_transactions_on_the_embedded_broker", "4.1.1", EmbeddedBroker::builder());
}

/// Java's consumers follow partitions by incremental fetch sessions, and open new ones when those are lost.
#[test]
fn java_readers_follow_fetch_sessions_and_survive_their_loss() {
    let test = "java_readers_follow_fetch_sessions_and_survive_their_loss";
    if !available(test) {
        return;
    }
    let program = JavaProject::build("clients");
    let runtime = Runtime::new().expect("runtime");
    let broker = runtime.block_on(EmbeddedBroker::builder().start()).expect("broker");
    let lost = [ErrorCode::FETCH_SESSION_ID_NOT_FOUND, ErrorCode::INVALID_FETCH_SESSION_EPOCH];
    let faults =
        lost.map(|code| broker.fault(Fault::new(FaultAction::Error(code)).key(ApiKey::FETCH).skip(4).times(2)));
    // Slow enough to be seen.
    let slow = FaultAction::Delay(std::time::Duration::from_millis(50));
    broker.fault(Fault::new(slow).key(ApiKey::FETCH).times(u32::MAX));
    let (followed, done) = std::thread::scope(|scope| {
        let servers = broker.bootstrap_servers();
        let run = scope.spawn(move || program.run(PROGRAM, [servers]));
        let mut followed = false;
        while !run.is_finished() {
            followed |= broker.dump().fetch_sessions.iter().any(|session| session.epoch >= 2);
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        (followed, run.join())
    });
    assert!(done.is_ok() && followed, "ended well: {}, sessions: {followed}", done.is_ok());
    assert_eq!(faults.map(|id| broker.fault_hits(id)), [2, 2]);
}

#[test]
fn java_transactions_on_a_real_kafka() {
    let Some(kafka) = RealKafka::start("java_transactions_on_a_real_kafka", "4.4.0") else { return };
    run("4.4.0", &kafka.bootstrap());
}

#[test]
fn java_transactions_on_a_real_kafka_under_transaction_version_1() {
    let test = "java_transactions_on_a_real_kafka_under_transaction_version_1";
    let Some(kafka) = RealKafka::start_with_features(test, "4.4.0", &["transaction.version=1"], &[]) else { return };
    run("4.4.0", &kafka.bootstrap());
}
