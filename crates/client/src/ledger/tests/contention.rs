//! Several transactions that claim the same records.

use super::*;
use crate::{ErrorKind, ProducerRecord};
use kafka_share_broker::{Fault, FaultAction};
use kafka_share_messages::ApiKey;

#[tokio::test]
async fn what_another_has_committed_is_not_committed_again() {
    for version in [1, 2] {
        let broker = broker(version).await;
        let (one, two) = (Member::new(&broker, GROUP, SOON), Member::new(&broker, GROUP, SOON));
        let (a, b) = (producer(&broker, "a").await, producer(&broker, "b").await);
        a.send_share_acks_to_transaction(acks(0, 4, AckType::Reject), &one.metadata()).await.unwrap();
        b.send_share_acks_to_transaction(acks(3, 9, AckType::Accept), &two.metadata()).await.unwrap();
        a.commit_transaction().await.unwrap();
        let error = b.commit_transaction().await.unwrap_err();
        assert_eq!((error.kind(), error.is_abortable()), (ErrorKind::TransactionAborted, true), "{error}");
        assert!(error.to_string().contains("2 of the records"), "{error}");
        b.abort_transaction().await.unwrap();
        let done = two.told.lock().unwrap().done.clone();
        assert_eq!(done, [Conflict { tp: TP, first: 3, last: 4, ack: AckType::Reject }]);
        assert_eq!((two.ends(), metric(&b, "conflicts")), (vec![TransactionEnd::Aborted], 1.0));
        // Without them it goes.
        b.begin_transaction().unwrap();
        b.send_share_acks_to_transaction(acks(5, 9, AckType::Accept), &two.metadata()).await.unwrap();
        b.commit_transaction().await.unwrap();
        one.until_standing(9, Standing::Done(AckType::Accept)).await;
    }
}

#[tokio::test]
async fn an_owner_that_is_about_to_commit_is_waited_for() {
    let broker = broker(2).await;
    let (one, two) = (Member::new(&broker, GROUP, SOON), Member::new(&broker, GROUP, SOON));
    let (a, b) = (producer(&broker, "a").await, producer(&broker, "b").await);
    a.send_share_acks_to_transaction(acks(0, 4, AckType::Accept), &one.metadata()).await.unwrap();
    b.send_share_acks_to_transaction(acks(4, 9, AckType::Accept), &two.metadata()).await.unwrap();
    a.prepare_transaction().await.unwrap();
    let waits = async {
        while metric(&b, "waits") < 1.0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        a.abort_transaction().await
    };
    let (committed, aborted) = tokio::join!(b.commit_transaction(), waits);
    aborted.unwrap();
    committed.unwrap();
    assert_eq!((metric(&b, "waits"), metric(&b, "conflicts")), (1.0, 0.0));
}

#[tokio::test]
async fn a_stopped_owner_is_fenced_and_learns_it_from_the_ledger() {
    for version in [1, 2] {
        let broker = broker(version).await;
        let lock = Duration::from_secs(2);
        let (one, two) = (Member::new(&broker, GROUP, lock), Member::new(&broker, GROUP, lock));
        let (a, b) = (producer(&broker, "a").await, producer(&broker, "b").await);
        drop(a.send(ProducerRecord::new("out").value("a")).await.unwrap());
        a.send_share_acks_to_transaction(acks(0, 4, AckType::Accept), &one.metadata()).await.unwrap();
        a.prepare_transaction().await.unwrap();
        b.send_share_acks_to_transaction(acks(4, 9, AckType::Accept), &two.metadata()).await.unwrap();
        b.commit_transaction().await.unwrap();
        let (fences, _) = two.tail().counters().read();
        assert_eq!((metric(&b, "waits"), fences), (1.0, 1));
        let error = a.commit_transaction().await.unwrap_err();
        assert_eq!((error.kind(), error.is_abortable()), (ErrorKind::TransactionAborted, true), "{error}");
        a.abort_transaction().await.unwrap();
        assert_eq!((one.ends(), two.ends()), (vec![TransactionEnd::Aborted], vec![TransactionEnd::Committed]));
        // It is as good as new.
        a.begin_transaction().unwrap();
        a.send_share_acks_to_transaction(acks(0, 3, AckType::Accept), &one.metadata()).await.unwrap();
        a.commit_transaction().await.unwrap();
    }
}

#[tokio::test]
async fn a_commit_whose_answer_was_lost_counts_though_its_producer_was_fenced_since() {
    for version in [1, 2] {
        let broker = broker(version).await;
        let member = Member::new(&broker, GROUP, SOON);
        let a = producer(&broker, "a").await;
        a.send_share_acks_to_transaction(acks(0, 4, AckType::Accept), &member.metadata()).await.unwrap();
        // Committed, not answered, and before the next try somebody who waits has fenced the owner.
        let identity = a.prepare_transaction().await.unwrap().identity;
        broker.fault(Fault::new(FaultAction::ApplyAndClose).key(ApiKey::END_TXN));
        let refused = Fault::new(FaultAction::Error(kafka_share_messages::ErrorCode::INVALID_PRODUCER_EPOCH));
        broker.fault(refused.key(ApiKey::END_TXN).skip(0));
        a.commit_transaction().await.unwrap();
        member.until_standing(0, Standing::Done(AckType::Accept)).await;
        assert_eq!(member.ends(), [TransactionEnd::Committed]);
        assert!(identity.id >= 0);
        a.begin_transaction().unwrap();
        a.send_share_acks_to_transaction(acks(5, 9, AckType::Accept), &member.metadata()).await.unwrap();
        a.commit_transaction().await.unwrap();
    }
}

#[tokio::test]
async fn a_prepared_transaction_in_two_phases_is_not_fenced() {
    let builder = EmbeddedBroker::builder().transactional_acks(false).two_phase_commit(true);
    let broker = builder.start().await.unwrap();
    admin(&broker).create_ledger(&NewLedger::new()).await.unwrap();
    let lock = Duration::from_millis(40);
    let (one, two) = (Member::new(&broker, GROUP, lock), Member::new(&broker, GROUP, lock));
    let settings = TransactionalProducer::builder(&broker.bootstrap_servers(), "a").two_phase_commit(true);
    let a = settings.build().unwrap();
    a.init_transactions().await.unwrap();
    a.begin_transaction().unwrap();
    a.send_share_acks_to_transaction(acks(0, 4, AckType::Accept), &one.metadata()).await.unwrap();
    a.prepare_transaction().await.unwrap();
    let b = producer(&broker, "b").await;
    b.send_share_acks_to_transaction(acks(4, 9, AckType::Accept), &two.metadata()).await.unwrap();
    let error = b.commit_transaction().await.unwrap_err();
    assert!(error.is_abortable() && error.to_string().contains("two-phase"), "{error}");
    b.abort_transaction().await.unwrap();
    let contended = two.told.lock().unwrap().contended;
    assert_eq!((contended, two.ends()), (1, vec![TransactionEnd::Aborted]));
    a.commit_transaction().await.unwrap();
    assert_eq!(one.ends(), [TransactionEnd::Committed]);
}
