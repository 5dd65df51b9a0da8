//! Many transactions and many producers: fencing without end, epochs to their last, work that is done again.

use super::embedded;
use super::scenarios::{topic, transactional, values};
use kafka_share::net::Cluster;
use kafka_share::{ClientConfig, Error, ErrorCode, ErrorKind, ProducerRecord, Result, TransactionalProducer};
use kafka_share_broker::{Fault, FaultAction};
use kafka_share_messages::ApiKey;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn work_is_done_again_after_an_abortable_error_and_no_more_often_than_allowed() {
    let broker = embedded(2).await;
    let (cluster, topic) = topic(&broker.bootstrap_servers(), 1).await;
    let producer = Arc::new(transactional(&cluster, "again"));
    producer.init_transactions().await.unwrap();
    let tries = Arc::new(AtomicU32::new(0));
    // Records that the broker refuses with an abortable error, as often as `refusals` says.
    for (refusals, done) in [(0, true), (2, true), (3, false)] {
        tries.store(0, Ordering::Relaxed);
        if refusals > 0 {
            let refused = FaultAction::Error(ErrorCode::TRANSACTION_ABORTABLE);
            broker.fault(Fault::new(refused).key(ApiKey::PRODUCE).times(refusals));
        }
        // Spawned: the call is `Send`.
        let task = tokio::spawn({
            let (producer, tries, topic) = (Arc::clone(&producer), Arc::clone(&tries), topic.clone());
            async move {
                let work = async |txn: &TransactionalProducer| {
                    tries.fetch_add(1, Ordering::Relaxed);
                    let record = ProducerRecord::new(&topic).value(refusals.to_string());
                    txn.send(record).await?.await.map(drop)
                };
                producer.transaction(work).await
            }
        });
        let result = task.await.unwrap();
        assert_eq!(result.is_ok(), done, "{refusals} refusals: {result:?}");
        assert_eq!(tries.load(Ordering::Relaxed), 3.min(refusals + 1));
    }
    // What no retry heals is not tried again.
    tries.store(0, Ordering::Relaxed);
    let given_up: Result<()> = producer
        .transaction(async |_| {
            tries.fetch_add(1, Ordering::Relaxed);
            Err(Error::new(ErrorKind::InvalidInput, "no"))
        })
        .await;
    assert_eq!(given_up.unwrap_err().kind(), ErrorKind::InvalidInput);
    assert_eq!(tries.load(Ordering::Relaxed), 1);
    assert_eq!(values(&cluster, &topic).await, ["0", "2"]);
}

/// One of many processes with the same transactional id: takes over, writes, is thrown out. Answers what it committed, and
/// what it cannot know.
async fn rival(bootstrap: String, topic: String, number: usize) -> (Vec<String>, Vec<String>) {
    let (mut committed, mut unknown) = (Vec::new(), Vec::new());
    let cluster = Cluster::new(ClientConfig::new(&bootstrap)).unwrap();
    for round in 0..3 {
        let producer = transactional(&cluster, "one-for-all");
        let value = format!("{number}-{round}");
        let result = async {
            producer.init_transactions().await?;
            producer.begin_transaction()?;
            producer.send(ProducerRecord::new(&topic).value(value.as_str())).await?.await?;
            producer.commit_transaction().await
        };
        match result.await {
            Ok(()) => committed.push(value),
            Err(error) if error.kind() == ErrorKind::OutcomeUnknown => unknown.push(value),
            Err(error) => {
                let told =
                    matches!(error.kind(), ErrorKind::Fenced | ErrorKind::TransactionAborted | ErrorKind::Timeout);
                assert!(told || error.is_abortable() || error.is_retriable(), "{error:?}");
            }
        }
    }
    (committed, unknown)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_producers_fence_one_another_and_what_each_was_told_is_true() {
    for version in [1, 2] {
        let broker = embedded(version).await;
        let bootstrap = broker.bootstrap_servers();
        let (cluster, topic) = topic(&bootstrap, 1).await;
        let rivals: Vec<_> =
            (0..100).map(|number| tokio::spawn(rival(bootstrap.clone(), topic.clone(), number))).collect();
        let (mut committed, mut unknown) = (Vec::new(), Vec::new());
        for rival in rivals {
            let (ours, doubtful) = rival.await.unwrap();
            committed.extend(ours);
            unknown.extend(doubtful);
        }
        // Somebody wins in the end.
        let last = transactional(&cluster, "one-for-all");
        last.init_transactions().await.unwrap();
        last.transaction(async |t| t.send(ProducerRecord::new(&topic).value("last")).await?.await.map(drop))
            .await
            .unwrap();
        committed.push("last".into());
        let mut seen: BTreeMap<String, usize> = BTreeMap::new();
        for value in values(&cluster, &topic).await {
            *seen.entry(value).or_default() += 1;
        }
        for value in &committed {
            assert_eq!(seen.remove(value), Some(1), "version {version}: {value} was committed");
        }
        for value in &unknown {
            seen.remove(value);
        }
        assert!(seen.is_empty(), "version {version}: nobody was told that these were committed: {seen:?}");
    }
}

/// A short form; with `KAFKA_SHARE_TRANSACTIONS=40000` there are more of them than epochs (32,767), so that the producer is
/// given a new id on its way.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_short_transactions_take_effect_one_by_one() {
    let given = std::env::var("KAFKA_SHARE_TRANSACTIONS").ok();
    let count: u32 = given.map_or(2_000, |count| count.parse().expect("KAFKA_SHARE_TRANSACTIONS is a number"));
    let broker = embedded(2).await;
    let (cluster, topic) = topic(&broker.bootstrap_servers(), 1).await;
    let producer = transactional(&cluster, "short");
    producer.init_transactions().await.unwrap();
    let started = Instant::now();
    let mut papers = BTreeMap::new();
    for i in 0..count {
        producer.begin_transaction().unwrap();
        drop(producer.send(ProducerRecord::new(&topic).value(i.to_string())).await.unwrap());
        if i % 1_000 == 0 {
            papers.insert(i, producer.prepare_transaction().await.unwrap().identity);
        }
        if i % 10 == 9 {
            producer.abort_transaction().await.unwrap();
        } else {
            producer.commit_transaction().await.unwrap();
        }
    }
    println!("{count} transactions in {:?}", started.elapsed());
    let ids: Vec<i64> = papers.values().map(|identity| identity.id).collect();
    assert!(papers.values().all(|identity| identity.epoch >= 0));
    assert_eq!(ids.first() != ids.last(), count > 33_000, "a new id, and only at the end of the epochs: {ids:?}");
    let expected: Vec<String> = (0..count).filter(|i| i % 10 != 9).map(|i| i.to_string()).collect();
    assert_eq!(values(&cluster, &topic).await, expected);
    producer.close(Duration::from_secs(10)).await.unwrap();
}
