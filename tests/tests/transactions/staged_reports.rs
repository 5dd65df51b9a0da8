//! Field reports on acknowledgements in transactions (section D), with the whole client on the embedded broker.

use super::scenarios::transactional;
use super::staging::{RECORDS, Setup, setup};
use kafka_share::{AckType, ErrorKind, ShareAcknowledgements, ShareRecords, TopicIdPartition};
use kafka_share_broker::{CoordinatorKind, EmbeddedBroker, GroupBounds};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Transactions that meet the move.
const MOVES: usize = 6;

/// What goes away under the transaction.
#[derive(Debug, Clone, Copy)]
enum Move {
    SourceLeader,
    ShareCoordinator,
    TransactionCoordinator,
    Restart,
}

/// When, in the life of a transaction with staged acknowledgements.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Moment {
    BeforeStaging,
    AfterStaging,
    DuringEnd,
    AfterEnd,
}

impl Move {
    /// Moves what concerns partition `tp` of topic `in`, to the next node.
    fn carry_out(self, broker: &EmbeddedBroker, tp: TopicIdPartition, round: usize) {
        let nodes: Vec<i32> = broker.nodes().iter().map(|n| n.id).collect();
        let node = nodes[round % nodes.len()];
        match self {
            Move::SourceLeader => {
                for partition in 0..3 {
                    broker.move_leader("in", partition, node);
                }
            }
            Move::ShareCoordinator => {
                for partition in 0..3 {
                    let key = format!("g:{}:{partition}", tp.topic_id);
                    broker.move_coordinator(CoordinatorKind::Share, &key, node);
                }
            }
            Move::TransactionCoordinator => {
                broker.move_coordinator(CoordinatorKind::Transaction, "txn", node);
            }
            Move::Restart => drop(broker.restart_node(node)),
        }
    }
}

/// One transaction over what a poll brings, with the move at its moment. Answers how many records it committed.
async fn transact(
    broker: &EmbeddedBroker,
    setup: &Setup,
    (what, when, commit, round): (Move, Moment, bool, usize),
) -> usize {
    let Some(records) = setup.poll().await else { panic!("{what:?} {when:?}: records are left, and none comes") };
    let first = records.iter().next().unwrap();
    let tp = TopicIdPartition { topic_id: first.topic_id(), partition: first.partition() };
    let at = |moment: Moment| {
        if when == moment && round <= MOVES {
            what.carry_out(broker, tp, round);
        }
    };
    setup.producer.begin_transaction().unwrap();
    for record in records.iter() {
        let out = kafka_share::ProducerRecord::new("out").value(record.value().unwrap());
        drop(setup.producer.send(out).await.unwrap());
    }
    at(Moment::BeforeStaging);
    let staged = async {
        let acks = ShareAcknowledgements::from_records(&records, AckType::Accept)?;
        let member = setup.consumer.share_group_metadata()?;
        setup.producer.send_share_acks_to_transaction(acks, &member).await
    };
    let staged = staged.await;
    at(Moment::AfterStaging);
    if staged.is_err() || !commit {
        if let Err(error) = staged {
            assert!(error.is_abortable() || error.kind() == ErrorKind::InvalidState, "{what:?} {when:?}: {error:?}");
        }
        let (ended, ()) = tokio::join!(setup.producer.abort_transaction(), async { at(Moment::DuringEnd) });
        ended.unwrap();
        at(Moment::AfterEnd);
        give_back(setup, &records);
        return 0;
    }
    let (ended, ()) = tokio::join!(setup.producer.commit_transaction(), async { at(Moment::DuringEnd) });
    let ended = match ended {
        Err(error) if error.kind() == ErrorKind::OutcomeUnknown => setup.producer.commit_transaction().await,
        ended => ended,
    };
    at(Moment::AfterEnd);
    match ended {
        Ok(()) => records.len(),
        Err(error) => {
            assert!(error.is_abortable(), "{what:?} {when:?}: {error:?}");
            setup.producer.abort_transaction().await.unwrap();
            give_back(setup, &records);
            0
        }
    }
}

/// What is held still, and was not staged.
fn give_back(setup: &Setup, records: &ShareRecords) {
    setup.consumer.acknowledge_all(records, AckType::Release).unwrap();
    setup.consumer.commit_async().unwrap();
}

/// Every other transaction is aborted by the application, and the first few meet the move. In the end each record is in the
/// output once.
async fn survives(what: Move, when: Moment) {
    let broker = super::embedded(2).await;
    let setup = setup(&broker).await;
    setup.more_deliveries().await;
    let (mut committed, mut round) = (0, 0);
    while committed < RECORDS {
        round += 1;
        assert!(round < 100, "{what:?} {when:?}: no progress");
        committed += transact(&broker, &setup, (what, when, round % 2 == 0, round)).await;
    }
    assert_eq!(setup.output().await, (0..RECORDS).collect::<Vec<_>>(), "{what:?} {when:?}");
    assert!(setup.consumer.poll(Duration::from_millis(500)).await.unwrap().is_empty(), "{what:?} {when:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r077_moves_at_each_step_leave_the_counts_exact() {
    let moves = [Move::SourceLeader, Move::ShareCoordinator, Move::TransactionCoordinator, Move::Restart];
    let moments = [Moment::BeforeStaging, Moment::AfterStaging, Moment::DuringEnd, Moment::AfterEnd];
    // They wait more than they work.
    let all: Vec<_> =
        moves.into_iter().flat_map(|what| moments.map(|when| tokio::spawn(survives(what, when)))).collect();
    for one in all {
        one.await.unwrap();
    }
}

async fn with_lock(milliseconds: i64) -> (EmbeddedBroker, Setup) {
    let bounds =
        GroupBounds { record_lock_ms: (1_000, 60_000), default_record_lock_ms: milliseconds, ..GroupBounds::default() };
    let broker = EmbeddedBroker::builder().group_bounds(bounds).start().await.unwrap();
    let setup = setup(&broker).await;
    (broker, setup)
}

//= TXN-SHARE-10
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r079_what_is_staged_outlives_its_lock_and_staging_after_the_lock_fails_cleanly() {
    const LOCK_MS: i64 = 15_000;
    let (broker, setup) = with_lock(LOCK_MS).await;
    let records = setup.poll().await.expect("records");
    let parts = |which: usize| records.iter().enumerate().filter(move |(i, _)| i % 2 == which).map(|(_, r)| r);
    let member = setup.consumer.share_group_metadata().unwrap();
    setup.producer.begin_transaction().unwrap();
    for record in parts(0) {
        let out = kafka_share::ProducerRecord::new("out").value(record.value().unwrap());
        drop(setup.producer.send(out).await.unwrap());
    }
    let ids = parts(0).map(|r| (r.id(), AckType::Accept));
    let acks = ShareAcknowledgements::from_record_ids(&setup.consumer, ids).unwrap();
    setup.producer.send_share_acks_to_transaction(acks, &member).await.unwrap();
    // Two locks long, by the broker's clock.
    broker.advance_clock(Duration::from_millis(2 * LOCK_MS as u64 + 1_000));
    setup.producer.commit_transaction().await.unwrap();
    let mut acks = ShareAcknowledgements::new();
    for record in parts(1) {
        let tp = TopicIdPartition { topic_id: record.topic_id(), partition: record.partition() };
        acks.add(tp, record.offset(), record.offset(), AckType::Accept).unwrap();
    }
    setup.producer.begin_transaction().unwrap();
    let error = setup.producer.send_share_acks_to_transaction(acks, &member).await.unwrap_err();
    assert!(error.is_abortable(), "{error:?}");
    assert_eq!(error.code(), Some(kafka_share::ErrorCode::INVALID_RECORD_STATE), "{error}");
    setup.producer.abort_transaction().await.unwrap();
    let count = parts(0).count();
    // They come again, in this or a later poll, and are counted once.
    let mut seen = count;
    while seen < RECORDS {
        let (some, _) = setup.forward().await.expect("they come again");
        setup.producer.commit_transaction().await.unwrap();
        seen += some;
    }
    assert_eq!(setup.output().await, (0..RECORDS).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r080_a_fenced_producer_and_a_transaction_that_is_too_old_give_the_records_back() {
    for fenced in [true, false] {
        let (broker, setup) = with_lock(30_000).await;
        let short = kafka_share::TransactionalProducer::builder("", "txn").cluster(Arc::clone(&setup.cluster));
        let short = short.transaction_timeout(Duration::from_secs(4)).build().unwrap();
        short.init_transactions().await.unwrap();
        let setup =
            Setup { producer: short, cluster: Arc::clone(&setup.cluster), consumer: Arc::clone(&setup.consumer) };
        let (count, _records) = setup.forward().await.expect("records");
        setup.producer.flush().await.unwrap();
        if fenced {
            transactional(&setup.cluster, "txn").init_transactions().await.unwrap();
        } else {
            let deadline = Instant::now() + Duration::from_secs(60);
            while broker.dump().transactions.iter().any(|t| t.state == "Ongoing") {
                assert!(Instant::now() < deadline, "the coordinator does not abort it");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
        let error = setup.producer.commit_transaction().await.unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Fenced | ErrorKind::TransactionAborted), "{error}");
        assert!(setup.output().await.is_empty());
        let mut again = 0;
        while again < RECORDS {
            // Long before their locks would have ended.
            again += setup.poll().await.expect("they are available").len();
        }
        assert_eq!(again, RECORDS, "{count} of them for the second time");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r080_staging_beside_a_commit_and_twice_is_refused() {
    let (_broker, setup) = with_lock(30_000).await;
    let records = setup.poll().await.expect("records");
    let record = records.iter().next().unwrap();
    // A record that was acknowledged the ordinary way, and one that is staged.
    setup.consumer.acknowledge(&record).unwrap();
    let error = ShareAcknowledgements::from_records(&records, AckType::Accept).unwrap_err();
    assert!(error.is_abortable(), "{error:?}");
    let second = records.iter().nth(1).unwrap();
    let staged = ShareAcknowledgements::from_record_ids(&setup.consumer, [(second.id(), AckType::Accept)]).unwrap();
    let error = setup.consumer.acknowledge(&second).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidState, "{error}");
    let error = ShareAcknowledgements::from_record_ids(&setup.consumer, [(second.id(), AckType::Accept)]);
    assert!(error.unwrap_err().is_abortable());
    // A commit that is under way takes nothing more; one that waits for its turn does.
    setup.producer.begin_transaction().unwrap();
    drop(setup.producer.send(kafka_share::ProducerRecord::new("out").value("1")).await.unwrap());
    let member = setup.consumer.share_group_metadata().unwrap();
    let (committed, staging) = tokio::join!(
        setup.producer.commit_transaction(),
        setup.producer.send_share_acks_to_transaction(staged, &member)
    );
    committed.unwrap();
    assert_eq!(staging.unwrap_err().kind(), ErrorKind::InvalidState, "no transaction is open any more");
    // It was not staged, so the record is held as before.
    setup.consumer.acknowledge(&second).unwrap();
}
