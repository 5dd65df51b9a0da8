//! Exactly-once by the acknowledgement ledger: the embedded broker without transactional acknowledgements, on both
//! transaction versions, and real Kafka 4.4.0 and 4.1.1.

mod changed;
mod chaos;
mod full_disk;
mod refusals;
mod replicas;
mod rights;
mod scenarios;
mod stage;

use kafka_share_broker::{EmbeddedBroker, GroupBounds};
use kafka_share_tests::acls::{self, AUTHORIZER};
use kafka_share_tests::kafka::RealKafka;
use kafka_share_tests::kafka_cluster::RealCluster;
use std::sync::{Mutex, PoisonError};

/// One test with real brokers at a time.
static BROKERS: Mutex<()> = Mutex::new(());

async fn embedded(transaction_version: i16) {
    let bounds = GroupBounds { record_lock_ms: (1_000, 60_000), ..GroupBounds::default() };
    let builder = EmbeddedBroker::builder().nodes(3).transactional_acks(false).group_bounds(bounds);
    let broker = builder.transaction_version(transaction_version).start().await.expect("a broker");
    Box::pin(scenarios::all(&broker.bootstrap_servers())).await;
    Box::pin(refusals::all(&broker.bootstrap_servers())).await;
    Box::pin(changed::all(&broker.bootstrap_servers())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn embedded_v1() {
    embedded(1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn embedded_v2() {
    embedded(2).await;
}

/// What real brokers refuse, the embedded one does.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rights_on_the_embedded_broker() {
    let bounds = GroupBounds { record_lock_ms: (1_000, 60_000), ..GroupBounds::default() };
    let builder = EmbeddedBroker::builder().transactional_acks(false).group_bounds(bounds);
    let broker = builder.authorizer(acls::authorizer()).start().await.expect("a broker");
    let (bootstrap, keeper) = (broker.bootstrap_servers(), (&broker).into());
    tokio::join!(
        refusals::rights(&bootstrap, keeper),
        rights::what_the_guide_lists_is_enough(&bootstrap, keeper),
        rights::without_write_on_others_ids_their_records_wait(&bootstrap, keeper),
    );
}

/// `KAFKA_SHARE_LEDGER_SEEDS=FROM..TO` runs others.
#[test]
fn members_that_stop_and_die_double_nothing() {
    let _turn = BROKERS.lock().unwrap_or_else(PoisonError::into_inner);
    let seeds = std::env::var("KAFKA_SHARE_LEDGER_SEEDS").unwrap_or_default();
    let seeds = seeds.split_once("..").and_then(|(from, to)| Some(from.parse::<u64>().ok()?..to.parse::<u64>().ok()?));
    let test = "members_that_stop_and_die_double_nothing";
    let kafka = RealKafka::start_with(test, "4.4.0", chaos::PROPERTIES);
    for seed in seeds.unwrap_or(1..2) {
        std::thread::scope(|scope| {
            scope.spawn(|| chaos::embedded(2, seed));
            scope.spawn(|| chaos::embedded(1, seed));
            if let Some(kafka) = &kafka {
                scope.spawn(|| chaos::real(&kafka.bootstrap(), kafka.version(), seed));
            }
        });
    }
}

/// The newest and the first release with share groups, side by side, as they mostly wait.
#[test]
fn real_kafka() {
    let _turn = BROKERS.lock().unwrap_or_else(PoisonError::into_inner);
    let run = |version: &str, properties: &[&str]| {
        let lock = "group.share.min.record.lock.duration.ms=1000";
        let properties = [properties, &[lock]].concat();
        let Some(kafka) = RealKafka::start_with("real_kafka", version, &properties) else { return };
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        let bootstrap = kafka.bootstrap();
        runtime.block_on(scenarios::all(&bootstrap));
        runtime.block_on(refusals::all(&bootstrap));
        runtime.block_on(changed::all(&bootstrap));
        if properties.len() > 1 {
            let broker = kafka.address().into();
            runtime.block_on(async {
                tokio::join!(
                    refusals::rights(&bootstrap, broker),
                    rights::what_the_guide_lists_is_enough(&bootstrap, broker),
                    rights::without_write_on_others_ids_their_records_wait(&bootstrap, broker),
                )
            });
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(|| run("4.4.0", AUTHORIZER));
        scope.spawn(|| run("4.1.1", &[]));
    });
}

#[test]
fn a_real_ledger_with_too_few_replicas_in_sync() {
    let _turn = BROKERS.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(cluster) = RealCluster::start("a_real_ledger_with_too_few_replicas_in_sync", "4.4.0") else { return };
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(replicas::all_aborts_until_they_are_back(&cluster));
}

#[test]
fn a_real_broker_whose_disk_is_full() {
    let _turn = BROKERS.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(mut kafka) = RealKafka::start("a_real_broker_whose_disk_is_full", "4.4.0") else { return };
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(full_disk::all_is_done_once_there_is_room(&mut kafka));
}
