//! The share consumer and the administration of share groups on every release that has share groups: real Kafka 4.1.1,
//! 4.2.0, 4.3.1 and 4.4.0, and the embedded broker. What the RPCs of 4.1 cannot do is refused clearly there.

mod admin;
mod delivery;
mod lab;
mod locks;
mod members;
mod reports;
mod rights;

use kafka_share_broker::{BrokerBuilder, EmbeddedBroker, GroupBounds};
use kafka_share_tests::acls::{self, AUTHORIZER};
use kafka_share_tests::kafka::RealKafka;
use lab::{Counts, Lab, Release};
use std::sync::Arc;

macro_rules! scenarios {
    ($($module:ident :: $name:ident),* $(,)?) => {
        mod embedded {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                let broker = super::embedded().await;
                let lab = super::Lab::new(&broker.bootstrap_servers(), super::Release::V4_4, super::Counts::Exact).await;
                super::$module::$name(&lab).await;
            })*
        }

        /// All scenarios at a time: each has topics and groups of its own, and they mostly wait.
        async fn all(lab: Arc<Lab>) {
            let mut tasks = tokio::task::JoinSet::new();
            let mut names = std::collections::HashMap::new();
            $({
                let lab = Arc::clone(&lab);
                let handle = tasks.spawn(async move { $module::$name(&lab).await });
                names.insert(handle.id(), stringify!($name));
            })*
            let mut failed = Vec::new();
            while let Some(done) = tasks.join_next_with_id().await {
                if let Err(error) = done {
                    failed.push(names.remove(&error.id()).unwrap_or_default());
                }
            }
            assert!(failed.is_empty(), "failed: {failed:?}");
        }
    };
}

scenarios!(
    delivery::implicit_mode_accepts_by_the_next_poll,
    delivery::accept_release_and_reject,
    delivery::every_codec_with_keys_headers_and_nulls,
    delivery::a_record_is_archived_at_the_delivery_limit,
    delivery::aborted_records_are_not_delivered_to_read_committed_groups,
    delivery::a_new_group_starts_where_its_setting_says,
    delivery::outcomes_of_asynchronous_commits,
    locks::renewed_locks_hold,
    locks::a_renewed_record_comes_again,
    locks::lost_locks_have_outcomes,
    locks::record_limit_locks_no_more_than_asked_for,
    members::unsubscribing_frees_records_at_once,
    members::closing_frees_records_at_once,
    members::two_members_share_partitions_without_overlap,
    members::a_topic_that_comes_later_is_found,
    members::join_to_first_record_is_quick,
    members::r002_a_session_whose_epoch_is_refused_frees_its_records_at_once,
    reports::r014_partitions_added_later_are_consumed,
    reports::r022_r023_closing_accepts_nothing_and_a_commit_does,
    reports::r028_a_backlog_of_large_batches_comes_once_and_without_a_wait_for_locks,
    reports::r034_acknowledgements_in_any_order_have_one_outcome_each,
    reports::r041_r107_a_topic_deleted_and_created_again_under_the_consumer,
    reports::r107_a_deleted_topic_does_not_hold_up_the_records_of_another,
    reports::r020_an_idle_member_asks_for_little_and_goes_on_with_its_assignment,
    reports::r026_renew_and_accept_from_another_task_are_one_final_word,
    reports::r032_offsets_of_an_aborted_transaction_do_not_stay_locked,
    reports::r121_times_are_the_brokers_where_it_sets_them,
    reports::r160_a_poll_that_is_dropped_loses_nothing_and_accepts_nothing,
    reports::r161_a_wakeup_that_hits_nobody_ends_a_poll_and_no_commit,
    reports::r169_consumers_that_are_dropped_free_their_records_at_once,
    admin::groups_are_listed_and_described,
    admin::offsets_are_described_altered_reset_and_deleted,
    admin::settings_are_typed_and_seen_by_every_broker,
    admin::refusals_are_typed,
);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rights_on_the_embedded_broker() {
    let broker = start(builder().authorizer(acls::authorizer())).await;
    let lab = Lab::new(&broker.bootstrap_servers(), Release::V4_4, Counts::Exact).await;
    let keeper = (&broker).into();
    tokio::join!(
        rights::withdrawn_rights_on_the_group(&lab, keeper),
        rights::withdrawn_rights_on_the_topic(&lab, keeper),
    );
}

async fn embedded() -> EmbeddedBroker {
    start(builder()).await
}

async fn start(builder: BrokerBuilder) -> EmbeddedBroker {
    builder.start().await.expect("the embedded broker starts")
}

fn builder() -> BrokerBuilder {
    // As `kafka-up` starts a real broker.
    let bounds = GroupBounds {
        record_lock_ms: (1_000, 60_000),
        session_timeout_ms: (1_000, 60_000),
        heartbeat_ms: (100, 15_000),
        ..GroupBounds::default()
    };
    EmbeddedBroker::builder().transactional_acks(false).group_bounds(bounds)
}

fn on_real(test: &str, version: &str, release: Release) {
    let Some(kafka) = RealKafka::start_with(test, version, AUTHORIZER) else { return };
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let lab = Arc::new(Lab::new(&kafka.bootstrap(), release, Counts::AtMost).await);
        let broker = kafka.address().into();
        tokio::join!(
            all(Arc::clone(&lab)),
            rights::withdrawn_rights_on_the_group(&lab, broker),
            rights::withdrawn_rights_on_the_topic(&lab, broker),
        );
    });
}

#[test]
fn kafka_4_1_1() {
    on_real("kafka_4_1_1", "4.1.1", Release::V4_1);
}

#[test]
fn kafka_4_2_0() {
    on_real("kafka_4_2_0", "4.2.0", Release::V4_2);
}

#[test]
fn kafka_4_3_1() {
    on_real("kafka_4_3_1", "4.3.1", Release::V4_3);
}

#[test]
fn kafka_4_4_0() {
    on_real("kafka_4_4_0", "4.4.0", Release::V4_4);
}
