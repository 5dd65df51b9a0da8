//! The producers, the partition reader and the administration against the embedded broker, on both transaction
//! versions, and against a real Kafka 4.4.0. `KAFKA_SHARE_TEST_BOOTSTRAP` names a running cluster to use instead.

mod acknowledger;
mod bad_input;
mod checkpoints;
mod crowds;
mod faults;
mod java;
mod leaders;
mod ledger;
mod scenarios;
mod sessions;
mod staged_reports;
mod staging;
mod too_large;
mod tools;

use kafka_share_broker::EmbeddedBroker;
use kafka_share_tests::kafka::RealKafka;

macro_rules! scenarios {
    ($($name:ident),* $(,)?) => {
        mod embedded_v2 {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                let broker = super::embedded(2).await;
                super::scenarios::$name(&broker.bootstrap_servers()).await;
            })*
        }

        mod embedded_v1 {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                let broker = super::embedded(1).await;
                super::scenarios::$name(&broker.bootstrap_servers()).await;
            })*
        }

        /// One broker for all: it takes ten seconds to start.
        #[test]
        fn real_kafka_4_4() {
            let given = std::env::var("KAFKA_SHARE_TEST_BOOTSTRAP").ok();
            let kafka = if given.is_none() { RealKafka::start("real_kafka_4_4", "4.4.0") } else { None };
            let Some(bootstrap) = given.or_else(|| kafka.as_ref().map(RealKafka::bootstrap)) else { return };
            let runtime = tokio::runtime::Runtime::new().expect("a runtime");
            $(
                eprintln!("{}", stringify!($name));
                runtime.block_on(scenarios::$name(&bootstrap));
            )*
            if let Some(kafka) = &kafka {
                runtime.block_on(tools::kafka_tools_find_our_batches_well_formed(kafka));
            }
        }
    };
}

async fn embedded(transaction_version: i16) -> EmbeddedBroker {
    let broker = EmbeddedBroker::builder().nodes(3).transaction_version(transaction_version).start().await;
    broker.expect("the embedded broker starts")
}

scenarios!(
    idempotent_records_of_every_codec,
    keys_choose_partitions_and_headers_survive,
    committed_is_read_and_aborted_is_not,
    r056_a_commit_after_the_coordinators_timeout_says_so,
    r058_empty_transactions_end_well,
    r050_a_restarted_producer_ends_what_the_first_left,
    r068_a_fenced_producer_stays_fenced,
    many_short_transactions,
    a_dropped_transaction_is_aborted_and_never_committed,
    r065_a_topic_that_does_not_exist_ends_in_time,
    topics_configs_and_offsets_are_administered,
    batches_over_the_topics_limit_are_split_and_written_once,
    java_reads_what_we_commit,
    a_prepared_transaction_is_ended_by_another_process,
    what_a_dead_process_left_open_is_found,
    papers_of_other_clusters_and_ids_are_refused_and_change_nothing,
    a_prepared_transaction_that_is_too_old_is_aborted_and_its_commit_says_so,
    checkpoints_commit_what_came_before_them_and_no_more,
    bad_records_are_refused_and_the_transaction_goes_on,
    the_ledger_takes_over_from_who_stops_and_doubles_nothing,
);

/// The first release with share groups, and the last one on transaction.version 1; side by side, as they mostly wait.
#[test]
fn the_ledger_on_other_releases() {
    let test = "the_ledger_on_other_releases";
    let run = |version: &str, features: &[&str]| {
        let Some(kafka) = RealKafka::start_with_features(test, version, features, &[]) else { return };
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        let bootstrap = kafka.bootstrap();
        runtime.block_on(scenarios::the_ledger_takes_over_from_who_stops_and_doubles_nothing(&bootstrap));
    };
    std::thread::scope(|scope| {
        scope.spawn(|| run("4.1.1", &[]));
        scope.spawn(|| run("4.4.0", &["transaction.version=1"]));
    });
}
