//! What must hold on every cluster.

pub(crate) use super::bad_input::bad_records_are_refused_and_the_transaction_goes_on;
pub(crate) use super::checkpoints::checkpoints_commit_what_came_before_them_and_no_more;
pub(crate) use super::java::java_reads_what_we_commit;
pub(crate) use super::ledger::the_ledger_takes_over_from_who_stops_and_doubles_nothing;
pub(crate) use super::sessions::{
    a_prepared_transaction_is_ended_by_another_process,
    a_prepared_transaction_that_is_too_old_is_aborted_and_its_commit_says_so,
    papers_of_other_clusters_and_ids_are_refused_and_change_nothing, what_a_dead_process_left_open_is_found,
};
pub(crate) use super::too_large::batches_over_the_topics_limit_are_split_and_written_once;
use kafka_share::admin::{ConfigResource, Isolation, NewTopic, OffsetSpec};
use kafka_share::net::Cluster;
use kafka_share::{
    Admin, ClientConfig, Compression, ErrorCode, ErrorKind, PartitionReader, Producer, ProducerRecord,
    TransactionalProducer,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

const CLOSE: Duration = Duration::from_secs(30);

/// A name that no other test of this or another process uses.
pub(crate) fn name(what: &str) -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("{what}-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

pub(crate) async fn topic(bootstrap: &str, partitions: i32) -> (Arc<Cluster>, String) {
    let admin = Admin::new(ClientConfig::new(bootstrap)).unwrap();
    let topic = name("topic");
    admin.create_topic(NewTopic::new(&topic, partitions)).await.unwrap();
    (Arc::clone(admin.cluster()), topic)
}

pub(crate) fn transactional(cluster: &Arc<Cluster>, id: &str) -> TransactionalProducer {
    let builder = TransactionalProducer::builder("", id).cluster(Arc::clone(cluster));
    builder.max_block(Duration::from_secs(20)).build().unwrap()
}

/// Values as read_committed sees them, by partition and offset.
pub(crate) async fn values(cluster: &Arc<Cluster>, topic: &str) -> Vec<String> {
    let mut reader = PartitionReader::read_committed(Arc::clone(cluster), topic).await.unwrap();
    let batches = reader.read_to_end().await.unwrap();
    let text = |v: Option<&[u8]>| String::from_utf8(v.unwrap_or(b"null").to_vec()).unwrap();
    batches.iter().flat_map(|b| b.iter().map(|r| text(r.value())).collect::<Vec<_>>()).collect()
}

pub(crate) async fn idempotent_records_of_every_codec(bootstrap: &str) {
    let (cluster, topic) = topic(bootstrap, 1).await;
    let mut expected = Vec::new();
    for codec in Compression::ALL {
        let builder = Producer::builder("").cluster(Arc::clone(&cluster)).compression(codec);
        let producer = builder.batch_size(4096).build().unwrap();
        let mut deliveries = Vec::new();
        for i in 0..1000 {
            let value = format!("{} {i}", codec.name());
            deliveries.push(producer.send(ProducerRecord::new(&topic).value(value.as_bytes())).await.unwrap());
            expected.push(value);
        }
        producer.flush().await.unwrap();
        for (i, delivery) in deliveries.into_iter().enumerate() {
            assert_eq!(delivery.await.unwrap().offset() as usize, expected.len() - 1000 + i);
        }
        producer.close(CLOSE).await.unwrap();
    }
    assert_eq!(values(&cluster, &topic).await, expected);
}

pub(crate) async fn keys_choose_partitions_and_headers_survive(bootstrap: &str) {
    let (cluster, topic) = topic(bootstrap, 4).await;
    let producer = Producer::builder("").cluster(Arc::clone(&cluster)).build().unwrap();
    for (key, partition) in [("21", None), ("foobar", None), ("x", Some(3))] {
        let mut record = ProducerRecord::new(&topic).key(key.as_bytes()).timestamp(1234);
        record = record.header("h", key.as_bytes()).null_header("h").header("empty", b"");
        if let Some(partition) = partition {
            record = record.partition(partition);
        }
        let wanted = partition.unwrap_or_else(|| kafka_share_core_partition(key));
        assert_eq!(producer.send(record).await.unwrap().await.unwrap().partition(), wanted);
    }
    let error = producer.send(ProducerRecord::new(&topic).partition(4)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    let error = producer.send(ProducerRecord::new(&topic).value(vec![0; 2 << 20])).await.unwrap_err();
    assert!(error.to_string().contains("max.request.size"), "{error}");
    let mut reader = PartitionReader::read_committed(cluster, &topic).await.unwrap();
    let batches = reader.read_to_end().await.unwrap();
    let records: Vec<_> = batches.iter().flat_map(|b| b.iter()).collect();
    assert_eq!(records.len(), 3);
    for record in records {
        assert_eq!((record.value(), record.timestamp()), (None, 1234));
        let headers: Vec<_> = record.headers().map(|h| (h.key_str().unwrap(), h.value)).collect();
        assert_eq!(headers, [("h", record.key()), ("h", None), ("empty", Some(&b""[..]))]);
    }
}

/// Java's murmur2, for the two keys of the test above among four partitions.
fn kafka_share_core_partition(key: &str) -> i32 {
    let hash: i32 = if key == "21" { -973_932_308 } else { -790_332_482 };
    (hash & i32::MAX) % 4
}

pub(crate) async fn committed_is_read_and_aborted_is_not(bootstrap: &str) {
    let (cluster, topic) = topic(bootstrap, 2).await;
    let producer = transactional(&cluster, &name("txn"));
    producer.init_transactions().await.unwrap();
    for round in 0..6 {
        producer.begin_transaction().unwrap();
        for i in 0..10 {
            let value = format!("{round}-{i}");
            let record = ProducerRecord::new(&topic).partition(i % 2).value(value.into_bytes());
            drop(producer.send(record).await.unwrap());
        }
        if round % 2 == 0 {
            producer.commit_transaction().await.unwrap();
        } else {
            producer.flush().await.unwrap();
            producer.abort_transaction().await.unwrap();
        }
    }
    let mut read = values(&cluster, &topic).await;
    read.sort();
    let mut expected: Vec<String> = (0..6).step_by(2).flat_map(|r| (0..10).map(move |i| format!("{r}-{i}"))).collect();
    expected.sort();
    assert_eq!(read, expected);
    let from = Some(&[(0, 0), (1, 0)][..]);
    let uncommitted = PartitionReader::new(Arc::clone(&cluster), &topic, Isolation::ReadUncommitted, from).await;
    let batches = uncommitted.unwrap().read_to_end().await.unwrap();
    assert_eq!(batches.iter().map(|b| b.iter().count()).sum::<usize>(), 60);
    producer.close(CLOSE).await.unwrap();
}

pub(crate) async fn r058_empty_transactions_end_well(bootstrap: &str) {
    let (cluster, topic) = topic(bootstrap, 1).await;
    let producer = transactional(&cluster, &name("txn"));
    assert_eq!(producer.begin_transaction().unwrap_err().kind(), ErrorKind::InvalidState);
    producer.init_transactions().await.unwrap();
    assert_eq!(producer.commit_transaction().await.unwrap_err().kind(), ErrorKind::InvalidState);
    for _ in 0..3 {
        producer.begin_transaction().unwrap();
        producer.commit_transaction().await.unwrap();
        producer.begin_transaction().unwrap();
        producer.abort_transaction().await.unwrap();
    }
    let error = producer.send(ProducerRecord::new(&topic).value(b"x")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidState);
    producer.transaction(async |t| t.send(ProducerRecord::new(&topic).value(b"x")).await.map(drop)).await.unwrap();
    assert_eq!(values(&cluster, &topic).await, ["x"]);
}

pub(crate) async fn r050_a_restarted_producer_ends_what_the_first_left(bootstrap: &str) {
    let (cluster, topic) = topic(bootstrap, 1).await;
    let id = name("txn");
    let first = transactional(&cluster, &id);
    first.init_transactions().await.unwrap();
    first.begin_transaction().unwrap();
    drop(first.send(ProducerRecord::new(&topic).value(b"lost")).await.unwrap());
    first.flush().await.unwrap();
    drop(first);
    let second = transactional(&cluster, &id);
    second.init_transactions().await.unwrap();
    second.begin_transaction().unwrap();
    drop(second.send(ProducerRecord::new(&topic).value(b"kept")).await.unwrap());
    second.commit_transaction().await.unwrap();
    assert_eq!(values(&cluster, &topic).await, ["kept"]);
}

pub(crate) async fn r068_a_fenced_producer_stays_fenced(bootstrap: &str) {
    let (cluster, topic) = topic(bootstrap, 1).await;
    let id = name("txn");
    let first = transactional(&cluster, &id);
    first.init_transactions().await.unwrap();
    first.begin_transaction().unwrap();
    drop(first.send(ProducerRecord::new(&topic).value(b"fenced")).await.unwrap());
    first.flush().await.unwrap();
    let second = transactional(&cluster, &id);
    second.init_transactions().await.unwrap();
    let fenced = first.commit_transaction().await.unwrap_err();
    assert_eq!((fenced.kind(), fenced.is_fatal()), (ErrorKind::Fenced, true), "{fenced}");
    for error in [
        first.send(ProducerRecord::new(&topic)).await.unwrap_err(),
        first.commit_transaction().await.unwrap_err(),
        first.abort_transaction().await.unwrap_err(),
        first.init_transactions().await.unwrap_err(),
        first.begin_transaction().unwrap_err(),
    ] {
        assert_eq!(error.to_string(), fenced.to_string());
    }
    assert_eq!(first.close(CLOSE).await.unwrap_err().kind(), ErrorKind::Fenced);
    second.begin_transaction().unwrap();
    drop(second.send(ProducerRecord::new(&topic).value(b"second")).await.unwrap());
    second.commit_transaction().await.unwrap();
    assert_eq!(values(&cluster, &topic).await, ["second"]);
}

pub(crate) async fn many_short_transactions(bootstrap: &str) {
    let (cluster, topic) = topic(bootstrap, 3).await;
    let producer = transactional(&cluster, &name("txn"));
    producer.init_transactions().await.unwrap();
    let started = Instant::now();
    for i in 0..200 {
        producer.begin_transaction().unwrap();
        for p in 0..3 {
            let record = ProducerRecord::new(&topic).partition(p).value(i.to_string().into_bytes());
            drop(producer.send(record).await.unwrap());
        }
        producer.commit_transaction().await.unwrap();
    }
    eprintln!("200 transactions in {:?}", started.elapsed());
    let expected: Vec<String> = (0..3).flat_map(|_| (0..200).map(|i| i.to_string())).collect();
    assert_eq!(values(&cluster, &topic).await, expected);
}

pub(crate) async fn a_dropped_transaction_is_aborted_and_never_committed(bootstrap: &str) {
    let (cluster, topic) = topic(bootstrap, 1).await;
    let producer = transactional(&cluster, &name("txn"));
    producer.init_transactions().await.unwrap();
    let sent = tokio::sync::Notify::new();
    let dropped = producer.transaction(async |t| {
        drop(t.send(ProducerRecord::new(&topic).value(b"dropped")).await?);
        t.flush().await?;
        sent.notify_one();
        std::future::pending::<()>().await;
        Ok(())
    });
    tokio::select! {
        _ = dropped => unreachable!("it never ends"),
        () = sent.notified() => {}
    }
    assert_eq!(producer.begin_transaction().unwrap_err().kind(), ErrorKind::TransactionAborted);
    assert!(producer.commit_transaction().await.is_err());
    let result =
        producer.transaction(async |t| t.send(ProducerRecord::new(&topic).value(b"kept")).await.map(drop)).await;
    result.unwrap();
    assert_eq!(values(&cluster, &topic).await, ["kept"]);
    let refused = producer.transaction(async |t| {
        drop(t.send(ProducerRecord::new(&topic).value(b"given up")).await?);
        Err::<(), _>(kafka_share::Error::new(ErrorKind::InvalidInput, "no"))
    });
    assert_eq!(refused.await.unwrap_err().kind(), ErrorKind::InvalidInput);
    assert_eq!(values(&cluster, &topic).await, ["kept"]);
}

pub(crate) async fn r065_a_topic_that_does_not_exist_ends_in_time(bootstrap: &str) {
    let config = ClientConfig::new(bootstrap);
    let producer = Producer::builder("").client_config(config).max_block(Duration::from_secs(60)).build().unwrap();
    let started = Instant::now();
    let error = producer.send(ProducerRecord::new("not a legal/topic name")).await.unwrap_err();
    assert!(error.code().is_some_and(ErrorCode::is_err), "{error:?}");
    assert!(started.elapsed() < Duration::from_secs(30), "{:?}", started.elapsed());
    producer.close(CLOSE).await.unwrap();
}

pub(crate) async fn topics_configs_and_offsets_are_administered(bootstrap: &str) {
    let (cluster, topic) = topic(bootstrap, 2).await;
    let admin = Admin::on(Arc::clone(&cluster));
    let again = admin.create_topic(NewTopic::new(&topic, 2)).await.unwrap_err();
    assert_eq!(again.code(), Some(ErrorCode::TOPIC_ALREADY_EXISTS));
    let described = admin.describe_topics(&[&topic]).await.unwrap().remove(0).1.unwrap();
    assert_eq!(described.partitions.len(), 2);
    assert!(admin.list_topics().await.unwrap().iter().any(|t| t.name == topic && t.id == described.id));
    assert!(!admin.describe_cluster().await.unwrap().brokers.is_empty());
    let producer = Producer::builder("").cluster(Arc::clone(&cluster)).build().unwrap();
    for _ in 0..5 {
        producer.send(ProducerRecord::new(&topic).partition(1).value(b"v")).await.unwrap().await.unwrap();
    }
    let latest = admin.list_offsets(&topic, OffsetSpec::Latest, Isolation::ReadCommitted).await.unwrap();
    assert_eq!(latest, [0, 5]);
    let group = name("group");
    let changes = [("share.auto.offset.reset", "earliest")];
    admin.alter_share_group_configs(&group, &changes).await.unwrap();
    let configs = admin.describe_configs(&ConfigResource::Group(group), &[changes[0].0]).await.unwrap();
    let entry = &configs[changes[0].0];
    assert_eq!((entry.value.as_deref(), entry.is_default), (Some("earliest"), false));
    let deleted = admin.delete_topics(&[&topic]).await.unwrap();
    assert!(deleted[0].1.is_ok());
    let gone = admin.delete_topics(&[&topic]).await.unwrap();
    assert_eq!(gone[0].1.as_ref().unwrap_err().code(), Some(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION));
}

pub(crate) async fn r056_a_commit_after_the_coordinators_timeout_says_so(bootstrap: &str) {
    let (cluster, topic) = topic(bootstrap, 1).await;
    let admin = Admin::on(Arc::clone(&cluster));
    let builder = TransactionalProducer::builder("", &name("txn")).cluster(Arc::clone(&cluster));
    // Longer than the second transaction takes.
    let producer = builder.transaction_timeout(Duration::from_secs(8)).build().unwrap();
    producer.init_transactions().await.unwrap();
    producer.begin_transaction().unwrap();
    producer.send(ProducerRecord::new(&topic).value("late")).await.unwrap().await.unwrap();
    // Record and abort marker: coordinators look for old transactions every ten seconds.
    while admin.list_offsets(&topic, OffsetSpec::Latest, Isolation::ReadCommitted).await.unwrap() != [2] {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let error = producer.commit_transaction().await.unwrap_err();
    assert_eq!((error.kind(), error.is_abortable()), (ErrorKind::TransactionAborted, true), "{error:?}");
    let features = cluster.features(Instant::now() + CLOSE).await.unwrap();
    if features.feature("transaction.version") < 2 {
        // There the coordinator does not tell its own fencing from that of another producer.
        assert_eq!(producer.abort_transaction().await.unwrap_err().kind(), ErrorKind::Fenced);
        return assert!(values(&cluster, &topic).await.is_empty());
    }
    producer.abort_transaction().await.unwrap();
    producer.begin_transaction().unwrap();
    drop(producer.send(ProducerRecord::new(&topic).value("in time")).await.unwrap());
    producer.commit_transaction().await.unwrap();
    assert_eq!(values(&cluster, &topic).await, ["in time"]);
}
