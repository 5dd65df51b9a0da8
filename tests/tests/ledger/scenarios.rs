//! What an application does, on whatever broker: in the end each record is in the output once.

use super::stage::*;
use kafka_share::{
    AckType, ErrorKind, PartitionReader, PreparedTransaction, ShareAcknowledgements, TransactionSession,
    TransactionalShareAcknowledger,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// All of them at the same time: they mostly wait.
pub(crate) async fn all(bootstrap: &str) {
    tokio::join!(
        commits_aborts_several_calls_and_both_types(bootstrap),
        two_groups_in_one_transaction(bootstrap),
        a_member_whose_lock_has_expired_leaves_the_records_to_the_next(bootstrap),
        what_a_dead_member_committed_is_acknowledged_and_forgotten(bootstrap),
        acknowledgements_alone(bootstrap),
        a_prepared_transaction_is_ended_by_another_process(bootstrap),
        the_ledger_stays_small(bootstrap),
    );
}

async fn commits_aborts_several_calls_and_both_types(bootstrap: &str) {
    const RECORDS: usize = 60;
    let stage = Stage::set(bootstrap, RECORDS).await;
    let (consumer, producer) = (stage.consumer(), stage.producer().await);
    let choose = |n: usize| if n.is_multiple_of(7) { AckType::Reject } else { AckType::Accept };
    let (mut done, mut round) = (BTreeSet::new(), 0);
    while done.len() < RECORDS {
        producer.begin_transaction().unwrap();
        let mut taken = Vec::new();
        let records = some(&consumer).await;
        let member = consumer.share_group_metadata().unwrap();
        stage.forward(&producer, &records).await;
        taken.extend(numbers(&records));
        // In two calls: those with even numbers, then the others.
        for half in [0, 1] {
            let some = chosen(&records, choose).into_iter().zip(numbers(&records));
            let some: Vec<_> = some.filter(|(_, n)| n % 2 == half).map(|(ack, _)| ack).collect();
            let acks = ShareAcknowledgements::from_record_ids(&consumer, some).unwrap();
            producer.send_share_acks_to_transaction(acks, &member).await.unwrap();
        }
        round += 1;
        if round % 3 == 1 {
            producer.abort_transaction().await.unwrap();
        } else {
            producer.commit_transaction().await.unwrap();
            done.extend(taken);
        }
    }
    stage.until_done(&consumer, &stage.group).await;
    stage.check_output(RECORDS).await;
    consumer.close(LONG).await.unwrap();
}

async fn two_groups_in_one_transaction(bootstrap: &str) {
    const RECORDS: usize = 20;
    let stage = Stage::set(bootstrap, RECORDS).await;
    let other = name("group");
    stage.configure(&other).await;
    let (one, two) = (stage.consumer(), stage.consumer_of(&other));
    let producer = stage.producer().await;
    let (mut left_one, mut left_two) = (RECORDS, RECORDS);
    while left_one + left_two > 0 {
        producer.begin_transaction().unwrap();
        if left_one > 0 {
            let records = some(&one).await;
            left_one -= records.len();
            stage.process(&producer, &one, &records).await;
        }
        if left_two > 0 {
            let records = some(&two).await;
            left_two -= records.len();
            stage.process(&producer, &two, &records).await;
        }
        producer.commit_transaction().await.unwrap();
    }
    stage.until_done(&one, &stage.group).await;
    stage.until_done(&two, &other).await;
    let wanted: BTreeMap<usize, usize> = (0..RECORDS).map(|n| (n, 2)).collect();
    assert_eq!(stage.output().await, wanted, "each group once");
}

async fn a_member_whose_lock_has_expired_leaves_the_records_to_the_next(bootstrap: &str) {
    const RECORDS: usize = 12;
    let stage = Stage::set(bootstrap, RECORDS).await;
    let (slow, producer) = (stage.consumer(), stage.producer().await);
    let mut held = Vec::new();
    while held.iter().map(kafka_share::ShareRecords::len).sum::<usize>() < RECORDS {
        held.push(some(&slow).await);
        assert!(held.len() < 100);
    }
    // It works for longer than its lock lasts; another gets its records, and is done before.
    producer.begin_transaction().unwrap();
    for records in &held {
        stage.process(&producer, &slow, records).await;
    }
    // It gets those of the partitions that it is assigned meanwhile.
    let (quick, second) = (stage.consumer(), stage.producer().await);
    let records = some(&quick).await;
    second.begin_transaction().unwrap();
    stage.process(&second, &quick, &records).await;
    second.commit_transaction().await.unwrap();
    let error = producer.commit_transaction().await.unwrap_err();
    assert!(error.is_abortable() && error.kind() == ErrorKind::TransactionAborted, "{error}");
    assert!(error.to_string().contains("done by another member"), "{error}");
    producer.abort_transaction().await.unwrap();
    assert_eq!(producer.metrics().get("share-ack-ledger-conflicts-total"), Some(1.0));
    // Both go on, until all is done.
    let mut done: BTreeSet<usize> = numbers(&records).into_iter().collect();
    while done.len() < RECORDS {
        for (consumer, producer) in [(&slow, &producer), (&quick, &second)] {
            let records = consumer.poll(Duration::from_millis(100)).await.unwrap();
            if !records.is_empty() {
                producer.begin_transaction().unwrap();
                stage.process(producer, consumer, &records).await;
                producer.commit_transaction().await.unwrap();
                assert!(numbers(&records).into_iter().all(|n| done.insert(n)), "some were handed out again");
            }
        }
    }
    stage.check_output(RECORDS).await;
}

/// Keys of the ledger that are not tombstoned, by the last record of each.
async fn kept(stage: &Stage) -> usize {
    let mut reader = PartitionReader::read_committed(Arc::clone(&stage.cluster), &stage.ledger).await.unwrap();
    let mut last = BTreeMap::new();
    for batch in reader.read_to_end().await.unwrap() {
        for record in &batch {
            last.insert(record.key().unwrap().to_vec(), record.value().is_some());
        }
    }
    last.values().filter(|kept| **kept).count()
}

async fn what_a_dead_member_committed_is_acknowledged_and_forgotten(bootstrap: &str) {
    const RECORDS: usize = 9;
    let stage = Stage::set(bootstrap, RECORDS).await;
    let (dead, producer) = (stage.consumer(), stage.producer().await);
    let mut left = RECORDS;
    producer.begin_transaction().unwrap();
    while left > 0 {
        let records = some(&dead).await;
        left -= records.len();
        stage.process(&producer, &dead, &records).await;
    }
    // It dies between its commit and its acknowledgements: the transaction is committed by who finds its papers.
    let prepared: PreparedTransaction = producer.prepare_transaction().await.unwrap();
    drop(dead);
    drop(producer);
    let settings = stage.settings();
    let id = prepared.transactional_id.clone();
    let settings = named(settings, &id);
    TransactionSession::resume(settings, &prepared).await.unwrap().commit().await.unwrap();
    // The next member is given nothing, and tells the broker.
    let (next, second) = (stage.consumer(), stage.producer().await);
    stage.until_done(&next, &stage.group).await;
    stage.check_output(RECORDS).await;
    assert_eq!(kept(&stage).await, 1);
    // Once the start offset is past it, any member's next transaction forgets it.
    let until = Instant::now() + LONG;
    let mut count = RECORDS;
    while kept(&stage).await > 4 || second.metrics().get("share-ack-ledger-tombstones-total") == Some(0.0) {
        stage.produce(count..count + 1).await;
        let records = some(&next).await;
        count += 1;
        second.begin_transaction().unwrap();
        stage.process(&second, &next, &records).await;
        second.commit_transaction().await.unwrap();
        assert!(Instant::now() < until, "{} are kept", kept(&stage).await);
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
    stage.check_output(count).await;
}

fn named(
    mut settings: kafka_share::TransactionalProducerBuilder,
    id: &str,
) -> kafka_share::TransactionalProducerBuilder {
    settings.set("transactional.id", id).unwrap();
    settings
}

async fn acknowledgements_alone(bootstrap: &str) {
    const RECORDS: usize = 15;
    let stage = Stage::set(bootstrap, RECORDS).await;
    let consumer = stage.consumer();
    let acknowledger = TransactionalShareAcknowledger::new(stage.settings()).unwrap();
    acknowledger.init_transactions().await.unwrap();
    let mut seen = BTreeSet::new();
    while seen.len() < RECORDS {
        let records = some(&consumer).await;
        assert!(numbers(&records).into_iter().all(|n| seen.insert(n)), "some came twice");
        consumer.acknowledge_all(&records, AckType::Accept).unwrap();
        let acks = consumer.acknowledgements_for_transaction().unwrap();
        acknowledger.commit_acknowledgements(acks, &consumer.share_group_metadata().unwrap()).await.unwrap();
    }
    stage.until_done(&consumer, &stage.group).await;
}

async fn a_prepared_transaction_is_ended_by_another_process(bootstrap: &str) {
    const RECORDS: usize = 6;
    for commit in [true, false] {
        let stage = Stage::set(bootstrap, RECORDS).await;
        let consumer = stage.consumer();
        let settings = stage.settings();
        let session = TransactionSession::open(settings.clone()).await.unwrap();
        session.begin().await.unwrap();
        let mut left = RECORDS;
        while left > 0 {
            let records = some(&consumer).await;
            left -= records.len();
            stage.process(session.producer(), &consumer, &records).await;
        }
        let papers = session.prepare().await.unwrap().to_string();
        drop(session);
        let session = TransactionSession::resume(settings, &papers.parse().unwrap()).await.unwrap();
        if commit {
            session.commit().await.unwrap();
        } else {
            session.abort().await.unwrap();
            session.begin().await.unwrap();
            let mut left = RECORDS;
            while left > 0 {
                let records = some(&consumer).await;
                left -= records.len();
                stage.process(session.producer(), &consumer, &records).await;
            }
            session.commit().await.unwrap();
        }
        // Who staged them does not hear of the end; the broker gives them out again, and the ledger knows.
        stage.until_done(&consumer, &stage.group).await;
        stage.check_output(RECORDS).await;
    }
}

async fn the_ledger_stays_small(bootstrap: &str) {
    const RECORDS: usize = 200;
    // Records of one poll go into fifty transactions, one after the other.
    let stage = Stage::with_lock(bootstrap, RECORDS, 3 * LOCK).await;
    let (consumer, producer) = (stage.consumer(), stage.producer().await);
    let mut left = RECORDS;
    while left > 0 {
        let records = some(&consumer).await;
        // One transaction for every few records.
        let all = chosen(&records, |_| AckType::Accept);
        left -= records.len();
        for (part, values) in all.chunks(4).zip(numbers(&records).chunks(4)) {
            producer.begin_transaction().unwrap();
            for value in values {
                let record = kafka_share::ProducerRecord::new(&stage.output).value(value.to_string());
                drop(producer.send(record).await.unwrap());
            }
            let acks = ShareAcknowledgements::from_record_ids(&consumer, part.to_vec()).unwrap();
            producer.send_share_acks_to_transaction(acks, &consumer.share_group_metadata().unwrap()).await.unwrap();
            producer.commit_transaction().await.unwrap();
        }
    }
    stage.until_done(&consumer, &stage.group).await;
    stage.check_output(RECORDS).await;
    let metrics = producer.metrics();
    let intents = metrics.get("share-ack-ledger-intents-total").unwrap();
    assert!(intents >= 50.0, "{intents}");
    // Nearly all are confirmed, and the next transaction tombstones them; the last ones to each broker are on their way.
    let until = Instant::now() + LONG;
    let mut count = RECORDS;
    loop {
        stage.produce(count..count + 1).await;
        count += 1;
        let records = some(&consumer).await;
        producer.begin_transaction().unwrap();
        stage.process(&producer, &consumer, &records).await;
        producer.commit_transaction().await.unwrap();
        let kept = kept(&stage).await;
        if kept <= 4 {
            break;
        }
        assert!(Instant::now() < until, "{kept} are kept");
    }
    stage.check_output(count).await;
}
