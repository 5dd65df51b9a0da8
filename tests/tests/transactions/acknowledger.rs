//! Acknowledgements in a transaction without a producer, and in one that outlives its process (KIP-1289, on the embedded
//! broker); two-phase commit without a time limit (KIP-939).

use super::embedded;
use super::scenarios::{topic, values};
use super::staging::{RECORDS, Setup, setup};
use kafka_share::net::Cluster;
use kafka_share::{
    AckType, ClientConfig, ErrorKind, ProducerRecord, ShareAcknowledgements, TransactionSession, TransactionalProducer,
    TransactionalProducerBuilder, TransactionalShareAcknowledger,
};
use kafka_share_broker::{EmbeddedBroker, Fault, FaultAction};
use kafka_share_messages::ApiKey;
use kafka_share_tests::kafka::RealKafka;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

const CLOSE: Duration = Duration::from_secs(30);

async fn acknowledger(setup: &Setup) -> TransactionalShareAcknowledger {
    let settings = TransactionalProducer::builder("", "acks").cluster(Arc::clone(&setup.cluster));
    let acknowledger = TransactionalShareAcknowledger::new(settings.max_block(Duration::from_secs(30))).unwrap();
    acknowledger.init_transactions().await.unwrap();
    acknowledger
}

/// Records of one poll, all accepted, as acknowledgements for a transaction.
async fn accepted(setup: &Setup) -> Option<(usize, ShareAcknowledgements)> {
    let records = setup.poll().await?;
    Some((records.len(), ShareAcknowledgements::from_records(&records, AckType::Accept).unwrap()))
}

async fn nothing_is_left(setup: &Setup) {
    assert!(setup.consumer.poll(Duration::from_millis(700)).await.unwrap().is_empty(), "all are acknowledged");
}

async fn an_acknowledger_commits_all_of_them(version: i16) {
    let broker = embedded(version).await;
    let setup = setup(&broker).await;
    let acknowledger = acknowledger(&setup).await;
    let mut seen = 0;
    while seen < RECORDS {
        // Only a member has metadata, and only who was handed records is one for sure.
        let (count, acks) = accepted(&setup).await.expect("records");
        let member = setup.consumer.share_group_metadata().unwrap();
        acknowledger.commit_acknowledgements(ShareAcknowledgements::new(), &member).await.unwrap();
        acknowledger.abort_acknowledgements().await.unwrap();
        acknowledger.commit_acknowledgements(acks, &member).await.unwrap();
        seen += count;
    }
    assert_eq!(seen, RECORDS);
    nothing_is_left(&setup).await;
    acknowledger.close(CLOSE).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_acknowledger_commits_all_of_them_on_version_2() {
    an_acknowledger_commits_all_of_them(2).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_acknowledger_commits_all_of_them_on_version_1() {
    an_acknowledger_commits_all_of_them(1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refused_commit_of_acknowledgements_gives_the_records_back() {
    let broker = embedded(2).await;
    let setup = setup(&broker).await;
    let acknowledger = acknowledger(&setup).await;
    let (count, acks) = accepted(&setup).await.expect("records");
    let member = setup.consumer.share_group_metadata().unwrap();
    let refused = FaultAction::Error(kafka_share::ErrorCode::INVALID_RECORD_STATE);
    broker.fault(Fault::new(refused).key(ApiKey::TXN_SHARE_ACKNOWLEDGE).times(1));
    let error = acknowledger.commit_acknowledgements(acks, &member).await.unwrap_err();
    assert!(error.is_abortable(), "{error:?}");
    // Those that some leader had staged are available by the abort; the others are released. None waits for its lock.
    let mut again = 0;
    while again < count {
        let (some, acks) = accepted(&setup).await.expect("they come again");
        again += some;
        acknowledger.commit_acknowledgements(acks, &member).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn acknowledgements_that_a_cluster_cannot_take_go_back_to_their_consumer() {
    let broker = EmbeddedBroker::builder().transactional_acks(false).start().await.unwrap();
    let setup = setup(&broker).await;
    let acknowledger = acknowledger(&setup).await;
    let records = setup.poll().await.expect("records");
    setup.consumer.acknowledge_all(&records, AckType::Accept).unwrap();
    let acks = setup.consumer.acknowledgements_for_transaction().unwrap();
    let member = setup.consumer.share_group_metadata().unwrap();
    for _ in 0..2 {
        let error = acknowledger.commit_acknowledgements(acks_of(&acks), &member).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    }
    let error = acknowledger.commit_acknowledgements(acks, &member).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    let outcomes = setup.consumer.commit_sync(CLOSE).await.unwrap();
    assert!(!outcomes.is_empty(), "they are ordinary acknowledgements again");
}

/// The same ranges, without their tie to the consumer.
fn acks_of(acks: &ShareAcknowledgements) -> ShareAcknowledgements {
    let mut copy = ShareAcknowledgements::new();
    for (tp, batch) in acks.iter() {
        copy.add(tp, batch.first_offset(), batch.last_offset(), batch.types()[0]).unwrap();
    }
    copy
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unknown_outcome_is_completed_and_not_aborted() {
    let broker = embedded(2).await;
    let setup = setup(&broker).await;
    let settings = TransactionalProducer::builder("", "acks").cluster(Arc::clone(&setup.cluster));
    let acknowledger = TransactionalShareAcknowledger::new(settings.max_block(Duration::from_secs(4))).unwrap();
    acknowledger.init_transactions().await.unwrap();
    let (_, acks) = accepted(&setup).await.expect("records");
    let member = setup.consumer.share_group_metadata().unwrap();
    broker.fault(Fault::new(FaultAction::ApplyAndClose).key(ApiKey::END_TXN).times(u32::MAX));
    let error = acknowledger.commit_acknowledgements(acks, &member).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutcomeUnknown, "{error}");
    assert_eq!(acknowledger.abort_acknowledgements().await.unwrap_err().kind(), ErrorKind::OutcomeUnknown);
    broker.clear_faults();
    acknowledger.complete_commit().await.unwrap();
    acknowledger.abort_acknowledgements().await.expect("nothing is open");
}

/// Polls a future `times` times and drops it; answers whether it was done.
async fn poll_times<T>(times: usize, future: impl Future<Output = T>) -> Option<T> {
    let mut future = pin!(future);
    let mut left = times;
    poll_fn(|context| {
        if left == 0 {
            return Poll::Ready(None);
        }
        left -= 1;
        future.as_mut().poll(context).map(Some)
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commit_acknowledgements_dropped_at_every_await_point() {
    let broker = embedded(2).await;
    let setup = setup(&broker).await;
    setup.more_deliveries().await;
    let acknowledger = acknowledger(&setup).await;
    let mut accepted_in_all = 0;
    let mut times = 0;
    while accepted_in_all < RECORDS {
        let Some(records) = setup.poll().await else { break };
        let count = records.len();
        let acks = ShareAcknowledgements::from_records(&records, AckType::Accept).unwrap();
        let member = setup.consumer.share_group_metadata().unwrap();
        let done = poll_times(times, acknowledger.commit_acknowledgements(acks, &member)).await;
        times += 1;
        match done {
            Some(result) => {
                result.unwrap();
                accepted_in_all += count;
            }
            None => match acknowledger.abort_acknowledgements().await {
                // What was not staged is held still.
                Ok(()) => {
                    setup.consumer.acknowledge_all(&records, AckType::Release).unwrap();
                    setup.consumer.commit_sync(CLOSE).await.unwrap();
                }
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::OutcomeUnknown, "{error}");
                    acknowledger.complete_commit().await.unwrap();
                    accepted_in_all += count;
                }
            },
        }
    }
    assert_eq!(accepted_in_all, RECORDS, "each was accepted once");
    nothing_is_left(&setup).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn staged_acknowledgements_follow_the_transaction_that_outlives_its_process() {
    for commit in [true, false] {
        let broker = embedded(2).await;
        let setup = setup(&broker).await;
        let mut forwarded = 0;
        let mut papers = Vec::new();
        while forwarded < RECORDS {
            let own = TransactionalProducer::builder("", &format!("own-{}", papers.len()));
            let own = own.cluster(Arc::clone(&setup.cluster)).build().unwrap();
            own.init_transactions().await.unwrap();
            let setup = Setup { producer: own, cluster: Arc::clone(&setup.cluster), consumer: setup.consumer.clone() };
            let (count, _) = setup.forward().await.expect("records");
            forwarded += count;
            papers.push(setup.producer.prepare_transaction().await.unwrap());
        }
        let bootstrap = broker.bootstrap_servers();
        for paper in &papers {
            let settings = TransactionalProducer::builder(&bootstrap, &paper.transactional_id);
            let session = TransactionSession::resume(settings, paper).await.unwrap();
            if commit {
                session.commit().await.unwrap();
            } else {
                session.abort().await.unwrap();
            }
        }
        if commit {
            assert_eq!(setup.output().await, (0..RECORDS).collect::<Vec<_>>());
            nothing_is_left(&setup).await;
        } else {
            assert!(setup.output().await.is_empty());
            let mut again = 0;
            while again < RECORDS {
                again += setup.poll().await.expect("they are available at once").len();
            }
            assert_eq!(again, RECORDS);
        }
    }
}

fn two_phase(bootstrap: &str, id: &str) -> TransactionalProducerBuilder {
    let cluster = Cluster::new(ClientConfig::new(bootstrap)).unwrap();
    TransactionalProducer::builder("", id).cluster(cluster).two_phase_commit(true)
}

/// Prepares a transaction without a time limit, is taken over, and is committed by whoever took over. Answers the former
/// session.
async fn take_over(bootstrap: &str) -> TransactionSession {
    let (cluster, topic) = topic(bootstrap, 1).await;
    let former = TransactionSession::open(two_phase(bootstrap, "two-phase")).await.unwrap();
    former.begin().await.unwrap();
    drop(former.producer().send(ProducerRecord::new(&topic).value("kept")).await.unwrap());
    assert_eq!(former.prepare().await.unwrap().expires_ms, -1, "it has no time limit");
    let session = TransactionSession::recover(two_phase(bootstrap, "two-phase")).await.unwrap().expect("it is kept");
    session.commit().await.unwrap();
    assert_eq!(values(&cluster, &topic).await, ["kept"]);
    assert!(TransactionSession::recover(two_phase(bootstrap, "two-phase")).await.unwrap().is_none());
    former
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_prepared_transaction_is_taken_over_and_its_former_owner_fenced() {
    let broker = EmbeddedBroker::builder().two_phase_commit(true).start().await.unwrap();
    let former = take_over(&broker.bootstrap_servers()).await;
    let error = former.abort().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Fenced, "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_phase_commit_is_refused_by_name_where_it_is_not_offered() {
    let broker = embedded(2).await;
    let error = TransactionSession::open(two_phase(&broker.bootstrap_servers(), "two-phase")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().contains("transaction.two.phase.commit.enable"), "{error}");
}

/// Kafka 4.4 has transactions without a time limit, but does not hand them over: what is open is found by describing it.
#[test]
fn two_phase_commit_on_kafka_4_4() {
    let properties = ["unstable.api.versions.enable=true", "transaction.two.phase.commit.enable=true"];
    let Some(kafka) = RealKafka::start_with("two_phase_commit_on_kafka_4_4", "4.4.0", &properties) else { return };
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async { drop(take_over(&kafka.bootstrap()).await) });
}
