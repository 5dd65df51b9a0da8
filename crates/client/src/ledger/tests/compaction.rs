//! R1 and R2 over a real log: a member is stopped while others commit, tombstone and compaction passes.

use super::*;
use crate::{ErrorKind, PartitionReader, ProducerRecord};
use kafka_share_broker::{Fault, FaultAction};
use kafka_share_core::ledger::{ClaimedRange, Claims, GroupClaims, Intent, IntentKey, Layout, LedgerRecord};
use kafka_share_messages::{ApiKey, ErrorCode};

const KEY: IntentKey = IntentKey { instance: Uuid([8; 16]), counter: 1 };

/// A ledger that is compacted whenever the broker looks.
async fn broker() -> EmbeddedBroker {
    let broker = EmbeddedBroker::builder().transactional_acks(false).start().await.unwrap();
    let eager = [
        ("segment.ms", "1"),
        ("min.compaction.lag.ms", "0"),
        ("delete.retention.ms", "0"),
        ("min.cleanable.dirty.ratio", "0.01"),
    ];
    let ledger = eager.into_iter().fold(NewLedger::new().partitions(1), |l, (name, value)| l.config(name, value));
    admin(&broker).create_ledger(&ledger).await.unwrap();
    broker
}

/// Another member's transaction, put together by hand.
async fn write(producer: &TransactionalProducer, record: &LedgerRecord) {
    let (key, value) = record.encode(Layout::new(1).unwrap());
    let out = ProducerRecord::new("share-ack-ledger").partition(0).key(key);
    let out = match value {
        Some(value) => out.value(value),
        None => out,
    };
    drop(producer.send(out).await.unwrap());
    producer.commit_transaction().await.unwrap();
    producer.begin_transaction().unwrap();
}

fn intent(key: IntentKey, first: i64, last: i64) -> LedgerRecord {
    let claims = Claims::from([(TP, vec![ClaimedRange { first, last, ack: AckType::Accept }])]);
    let groups = vec![GroupClaims { group: GROUP.into(), generation: 0, claims }];
    LedgerRecord::Intent(key, Intent { transactional_id: "winner".into(), two_phase: false, native: false, groups })
}

async fn is_in_the_log(broker: &EmbeddedBroker) -> bool {
    let cluster = Cluster::new(ClientConfig::new(&broker.bootstrap_servers())).unwrap();
    let mut reader = PartitionReader::read_committed(cluster, "share-ack-ledger").await.unwrap();
    let batches = reader.read_to_end().await.unwrap();
    batches.iter().flat_map(|b| b.iter()).any(|r| r.key() == Some(&KEY.encode()[..]))
}

/// A member that has acquired the records 0 to 4 and was stopped; the winner has committed them and tombstoned its intent.
async fn stopped(broker: &EmbeddedBroker, compact: bool) -> (Arc<Member>, TransactionalProducer) {
    let config = ClientConfig::new(&broker.bootstrap_servers()).request_timeout(Duration::from_secs(6));
    let member = Member::on(Cluster::new(config).unwrap(), GROUP, SOON);
    let zombie = producer(broker, "zombie").await;
    // Its first commit attaches its reader, which then reads on.
    zombie.send_share_acks_to_transaction(acks(90, 90, AckType::Accept), &member.metadata()).await.unwrap();
    zombie.commit_transaction().await.unwrap();
    member.until_standing(90, Standing::Done(AckType::Accept)).await;
    // Nothing that it asks for is answered any more, until it gives up and asks anew: later than all that others do here.
    let stop = broker.fault(Fault::new(FaultAction::Ignore).key(ApiKey::FETCH));
    while broker.fault_hits(stop) == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let winner = producer(broker, "winner").await;
    write(&winner, &intent(KEY, 0, 4)).await;
    write(&winner, &LedgerRecord::Tombstone(KEY)).await;
    if compact {
        // The segment that is written to stays as it is.
        for n in 2..5 {
            write(&winner, &intent(IntentKey { counter: n, ..KEY }, 50 + n as i64, 50 + n as i64)).await;
            broker.advance_clock(Duration::from_secs(11));
        }
        assert!(!is_in_the_log(broker).await, "neither the intent nor its tombstone");
    }
    zombie.begin_transaction().unwrap();
    zombie.send_share_acks_to_transaction(acks(0, 4, AckType::Accept), &member.metadata()).await.unwrap();
    (member, zombie)
}

#[tokio::test]
async fn r1_a_tombstone_that_was_read_late_does_not_free_what_was_held() {
    let broker = broker().await;
    let (member, zombie) = stopped(&broker, false).await;
    let error = zombie.commit_transaction().await.unwrap_err();
    assert!(error.is_abortable() && error.to_string().contains("done by another member"), "{error}");
    zombie.abort_transaction().await.unwrap();
    let done = member.told.lock().unwrap().done.clone();
    assert_eq!(done, [Conflict { tp: TP, first: 0, last: 4, ack: AckType::Accept }]);
    // What is asked for from now on is free, once all else is settled.
    member.tail().with(|r| r.note_asked(3));
    member.tail().with(|r| r.set_lowest_ask(2));
    member.until_standing(0, Standing::Free).await;
}

#[tokio::test]
async fn r2_what_compaction_has_passed_is_dropped() {
    let broker = broker().await;
    let (member, zombie) = stopped(&broker, true).await;
    let error = zombie.commit_transaction().await.unwrap_err();
    assert!(error.is_abortable() && error.to_string().contains("stopped for so long"), "{error}");
    zombie.abort_transaction().await.unwrap();
    assert_eq!(member.ends(), [TransactionEnd::Committed, TransactionEnd::Aborted]);
    assert_eq!((member.told.lock().unwrap().contended, member.tail().with(|r| r.floor())), (0, 2));
    assert_eq!(member.tail().counters().read().1, 1, "it reads from the start again");
    // The log tells nothing of 0 to 4 any more: only records that are asked for from now on may be processed.
    member.until_standing(0, Standing::Free).await;
    member.until_standing(90, Standing::Done(AckType::Accept)).await;
}

#[tokio::test]
async fn an_owner_that_must_not_be_fenced_blocks() {
    blocked_by(ErrorCode::TRANSACTIONAL_ID_AUTHORIZATION_FAILED).await;
}

#[tokio::test]
async fn a_fence_that_is_refused_for_whatever_reason_blocks() {
    for code in [ErrorCode::INVALID_TRANSACTION_TIMEOUT, ErrorCode::CLUSTER_AUTHORIZATION_FAILED] {
        blocked_by(code).await;
    }
}

/// A prepared transaction of `a`, and one of `b` that claims a record of it too.
struct Conflicting {
    broker: EmbeddedBroker,
    a: TransactionalProducer,
    b: TransactionalProducer,
    _one: Arc<Member>,
    two: Arc<Member>,
}

async fn conflicting(lock: Duration) -> Conflicting {
    let broker = broker().await;
    let (one, two) = (Member::new(&broker, GROUP, lock), Member::new(&broker, GROUP, lock));
    let (a, b) = (producer(&broker, "a").await, producer(&broker, "b").await);
    a.send_share_acks_to_transaction(acks(0, 4, AckType::Accept), &one.metadata()).await.unwrap();
    a.prepare_transaction().await.unwrap();
    b.send_share_acks_to_transaction(acks(4, 9, AckType::Accept), &two.metadata()).await.unwrap();
    Conflicting { broker, a, b, _one: one, two }
}

/// Refusals that say nothing of the transaction: a limit below the default, and another change of the id under way.
#[tokio::test]
async fn a_fence_is_made_again_where_that_can_help() {
    for code in [ErrorCode::INVALID_TRANSACTION_TIMEOUT, ErrorCode::CONCURRENT_TRANSACTIONS] {
        let Conflicting { broker, a, b, _one, two: _two } = conflicting(Duration::from_millis(200)).await;
        broker.fault(Fault::new(FaultAction::Error(code)).key(ApiKey::INIT_PRODUCER_ID));
        b.commit_transaction().await.unwrap();
        let error = a.commit_transaction().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TransactionAborted, "{code}: {error}");
    }
}

/// A member waits for another's prepared transaction, whose coordinator refuses to end it.
async fn blocked_by(code: ErrorCode) {
    let Conflicting { broker, a, b, _one, two } = conflicting(Duration::from_millis(40)).await;
    // One that finds the time limit too long is asked for a shorter one.
    let asked = if code == ErrorCode::INVALID_TRANSACTION_TIMEOUT { 2 } else { 1 };
    broker.fault(Fault::new(FaultAction::Error(code)).key(ApiKey::INIT_PRODUCER_ID).times(asked));
    let error = b.commit_transaction().await.unwrap_err();
    assert!(error.is_abortable() && error.to_string().contains("no right to WRITE"), "{error}");
    assert_eq!(error.kind(), ErrorKind::TransactionAborted);
    // An operator is told what the coordinator says.
    broker.fault(Fault::new(FaultAction::Error(code)).key(ApiKey::INIT_PRODUCER_ID).times(2 * asked));
    let settled = admin(&broker).settle_ledger("share-ack-ledger", Duration::ZERO).await.unwrap();
    assert_eq!((settled.fenced, settled.not_fenced, settled.refusal), (0, 2, Some(code)));
    b.abort_transaction().await.unwrap();
    assert_eq!(two.told.lock().unwrap().contended, 1);
    a.commit_transaction().await.unwrap();
}
