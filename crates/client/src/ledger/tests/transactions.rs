//! Transactions that nobody stands in the way of.

use super::*;
use crate::{PartitionReader, ProducerRecord, TransactionSession};

async fn output(broker: &EmbeddedBroker) -> usize {
    let cluster = Cluster::new(ClientConfig::new(&broker.bootstrap_servers())).unwrap();
    let mut reader = PartitionReader::read_committed(cluster, "out").await.unwrap();
    reader.read_to_end().await.unwrap().iter().map(|b| b.iter().count()).sum()
}

#[tokio::test]
async fn committed_acknowledgements_are_done_and_tombstoned_once_they_are_confirmed() {
    for version in [1, 2] {
        let broker = broker(version).await;
        let member = Member::new(&broker, GROUP, SOON);
        let producer = producer(&broker, "a").await;
        drop(producer.send(ProducerRecord::new("out").value("1")).await.unwrap());
        producer.send_share_acks_to_transaction(acks(0, 4, AckType::Accept), &member.metadata()).await.unwrap();
        producer.send_share_acks_to_transaction(acks(5, 6, AckType::Reject), &member.metadata()).await.unwrap();
        producer.commit_transaction().await.unwrap();
        assert_eq!((member.ends(), output(&broker).await), (vec![TransactionEnd::Committed; 2], 1));
        member.until_standing(4, Standing::Done(AckType::Accept)).await;
        member.until_standing(5, Standing::Done(AckType::Reject)).await;
        member.until_standing(7, Standing::Free).await;

        // The broker confirms; the next transaction writes the tombstone, and what is asked for later is free.
        member.tail().with(|r| r.handle_confirmed(TP, 0, 6));
        member.tail().with(|r| r.note_asked(3));
        member.tail().with(|r| r.set_lowest_ask(2));
        producer.begin_transaction().unwrap();
        producer.send_share_acks_to_transaction(acks(7, 7, AckType::Accept), &member.metadata()).await.unwrap();
        producer.commit_transaction().await.unwrap();
        member.until_standing(7, Standing::Done(AckType::Accept)).await;
        assert_eq!(member.tail().with(|r| r.standings(TP, 0, 4)[0].standing), Standing::Done(AckType::Accept), "R1");
        member.tail().with(|r| r.set_lowest_ask(3));
        member.until_standing(0, Standing::Free).await;
        assert_eq!((metric(&producer, "intents"), metric(&producer, "tombstones")), (2.0, 1.0));
        assert_eq!((metric(&producer, "waits"), metric(&producer, "conflicts")), (0.0, 0.0));
        let late = Member::new(&broker, GROUP, SOON);
        let topic = Arc::clone(member.tail().topic());
        late.attach(&topic, &LedgerSettings::default()).unwrap();
        late.until_standing(7, Standing::Done(AckType::Accept)).await;
    }
}

#[tokio::test]
async fn aborted_acknowledgements_leave_nothing_and_give_tombstones_back() {
    let broker = broker(2).await;
    let member = Member::new(&broker, GROUP, SOON);
    let producer = producer(&broker, "a").await;
    producer.send_share_acks_to_transaction(acks(0, 4, AckType::Accept), &member.metadata()).await.unwrap();
    producer.commit_transaction().await.unwrap();
    member.tail().with(|r| r.handle_confirmed(TP, 0, 4));

    producer.begin_transaction().unwrap();
    producer.send_share_acks_to_transaction(acks(5, 9, AckType::Accept), &member.metadata()).await.unwrap();
    // Prepared, its intent is in the ledger; then it is aborted all the same.
    producer.prepare_transaction().await.unwrap();
    member.until_standing(5, Standing::Open).await;
    producer.abort_transaction().await.unwrap();
    member.until_standing(5, Standing::Free).await;
    assert_eq!(member.ends(), [TransactionEnd::Committed, TransactionEnd::Aborted]);
    assert_eq!(member.tail().with(|r| r.tombstones_due()), 1);

    // One that never got as far as its intent.
    producer.begin_transaction().unwrap();
    producer.send_share_acks_to_transaction(acks(5, 9, AckType::Accept), &member.metadata()).await.unwrap();
    producer.abort_transaction().await.unwrap();
    assert_eq!(metric(&producer, "intents"), 2.0);
    // And one without acknowledgements.
    producer.begin_transaction().unwrap();
    drop(producer.send(ProducerRecord::new("out").value("1")).await.unwrap());
    producer.commit_transaction().await.unwrap();
    assert_eq!((metric(&producer, "intents"), output(&broker).await), (2.0, 1));
}

#[tokio::test]
async fn two_groups_of_one_partition_share_an_intent_and_those_of_two_have_one_each() {
    let broker = broker(2).await;
    let layout = kafka_share_core::ledger::Layout::new(8).unwrap();
    let place = |group: &str| layout.partition_for(group);
    let mut names = (0..).map(|i| format!("g{i}"));
    let same = names.find(|g| place(g) == place(GROUP)).unwrap();
    let other = names.find(|g| place(g) != place(GROUP)).unwrap();
    for (group, intents) in [(same, 1.0), (other, 2.0)] {
        let members = [Member::new(&broker, GROUP, SOON), Member::new(&broker, &group, SOON)];
        let producer = producer(&broker, &group).await;
        let first = if intents == 1.0 { 0 } else { 10 };
        for member in &members {
            let staged = acks(first, first + 4, AckType::Accept);
            producer.send_share_acks_to_transaction(staged, &member.metadata()).await.unwrap();
        }
        producer.commit_transaction().await.unwrap();
        for member in &members {
            member.until_standing(first, Standing::Done(AckType::Accept)).await;
        }
        assert_eq!(metric(&producer, "intents"), intents, "{group}");
    }
}

#[tokio::test]
async fn an_intent_of_several_readers_is_tombstoned_once_all_have_their_part_confirmed() {
    let broker = broker(2).await;
    let layout = kafka_share_core::ledger::Layout::new(8).unwrap();
    let same = (0..).map(|i| format!("g{i}")).find(|g| layout.partition_for(g) == layout.partition_for(GROUP)).unwrap();
    // Two of one group, and one of another.
    let members = [GROUP, GROUP, same.as_str()].map(|group| Member::new(&broker, group, SOON));
    let producer = producer(&broker, "a").await;
    for (member, first) in members.iter().zip([0, 5, 0]) {
        let staged = acks(first, first + 4, AckType::Accept);
        producer.send_share_acks_to_transaction(staged, &member.metadata()).await.unwrap();
    }
    producer.commit_transaction().await.unwrap();
    assert_eq!(metric(&producer, "intents"), 1.0);
    let mut next = 100;
    for (member, first) in members.iter().zip([0, 5, 0]) {
        producer.begin_transaction().unwrap();
        producer
            .send_share_acks_to_transaction(acks(next, next, AckType::Accept), &members[0].metadata())
            .await
            .unwrap();
        producer.commit_transaction().await.unwrap();
        next += 1;
        assert_eq!(metric(&producer, "tombstones"), 0.0, "a part is not confirmed");
        member.tail().with(|r| r.handle_confirmed(TP, first, first + 4));
    }
    producer.begin_transaction().unwrap();
    producer.send_share_acks_to_transaction(acks(next, next, AckType::Accept), &members[0].metadata()).await.unwrap();
    producer.commit_transaction().await.unwrap();
    assert_eq!(metric(&producer, "tombstones"), 1.0);
}

#[tokio::test]
async fn the_same_offsets_twice_are_refused() {
    let broker = broker(2).await;
    let (one, two) = (Member::new(&broker, GROUP, SOON), Member::new(&broker, GROUP, SOON));
    let producer = producer(&broker, "a").await;
    producer.send_share_acks_to_transaction(acks(0, 4, AckType::Accept), &one.metadata()).await.unwrap();
    let error =
        producer.send_share_acks_to_transaction(acks(4, 5, AckType::Accept), &two.metadata()).await.unwrap_err();
    assert!(error.is_abortable() && error.to_string().contains("put into this transaction before"), "{error}");
    assert!(producer.commit_transaction().await.unwrap_err().is_abortable());
    producer.abort_transaction().await.unwrap();
    assert_eq!((one.ends(), two.ends()), (vec![TransactionEnd::Aborted], vec![TransactionEnd::Aborted]));
}

#[tokio::test]
async fn a_prepared_transaction_is_committed_by_another_process() {
    let broker = broker(2).await;
    let member = Member::new(&broker, GROUP, SOON);
    let settings = TransactionalProducer::builder(&broker.bootstrap_servers(), "a");
    let session = TransactionSession::open(settings.clone()).await.unwrap();
    session.begin().await.unwrap();
    drop(session.producer().send(ProducerRecord::new("out").value("1")).await.unwrap());
    let metadata = member.metadata();
    session.producer().send_share_acks_to_transaction(acks(0, 4, AckType::Accept), &metadata).await.unwrap();
    let prepared = session.prepare().await.unwrap();
    assert_eq!(session.prepare().await.unwrap(), prepared, "again, without a second intent");
    assert_eq!(metric(session.producer(), "intents"), 1.0);
    drop(session);
    member.until_standing(0, Standing::Open).await;
    let session = TransactionSession::resume(settings, &prepared).await.unwrap();
    session.commit().await.unwrap();
    member.until_standing(0, Standing::Done(AckType::Accept)).await;
    assert_eq!(output(&broker).await, 1);
}

#[tokio::test]
async fn a_reader_follows_its_leader() {
    let broker = broker(2).await;
    let member = Member::new(&broker, GROUP, SOON);
    let producer = producer(&broker, "a").await;
    for (turn, node) in (0..6).zip([1, 2, 1].into_iter().cycle()) {
        producer.send_share_acks_to_transaction(acks(turn, turn, AckType::Accept), &member.metadata()).await.unwrap();
        producer.commit_transaction().await.unwrap();
        member.until_standing(turn, Standing::Done(AckType::Accept)).await;
        let partition = member.tail().with(|r| r.partition());
        let node = broker.nodes().get(node as usize - 1).unwrap().id;
        broker.move_leader("share-ack-ledger", partition, node);
        producer.begin_transaction().unwrap();
    }
    assert_eq!(member.tail().with(|r| (r.floor(), r.ranges())), (0, 6));
    assert!(member.tail().error().is_none());
}
