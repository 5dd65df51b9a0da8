//! Transactions that outlive the process that began them: prepared, resumed, recovered.

use super::scenarios::{topic, values};
use kafka_share::admin::TransactionFilter;
use kafka_share::net::Cluster;
use kafka_share::{
    Admin, ClientConfig, ErrorCode, ErrorKind, PreparedTransaction, ProducerRecord, TransactionSession,
    TransactionalProducer, TransactionalProducerBuilder,
};
use std::sync::Arc;
use std::time::{Duration, Instant};

const CLOSE: Duration = Duration::from_secs(30);

/// Settings of a process of its own: it shares no connection with another.
fn settings(bootstrap: &str, id: &str) -> TransactionalProducerBuilder {
    let cluster = Cluster::new(ClientConfig::new(bootstrap)).unwrap();
    TransactionalProducer::builder("", id).cluster(cluster).max_block(Duration::from_secs(20))
}

async fn send(session: &TransactionSession, topic: &str, value: &str) {
    drop(session.producer().send(ProducerRecord::new(topic).value(value)).await.unwrap());
}

/// A process that prepares a transaction with the value, and dies.
async fn prepare_and_die(bootstrap: &str, topic: &str, id: &str, value: &str) -> PreparedTransaction {
    let session = TransactionSession::open(settings(bootstrap, id)).await.unwrap();
    session.begin().await.unwrap();
    send(&session, topic, value).await;
    let prepared = session.prepare().await.unwrap();
    assert_eq!(session.prepare().await.unwrap(), prepared, "as often as one likes");
    let refused = session.producer().send(ProducerRecord::new(topic).value("late")).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidState, "{refused}");
    // Even an orderly end leaves it to whoever has the paper.
    session.close(CLOSE).await.unwrap();
    prepared.to_string().parse().unwrap()
}

pub(crate) async fn a_prepared_transaction_is_ended_by_another_process(bootstrap: &str) {
    let (cluster, topic) = topic(bootstrap, 1).await;
    for commit in [true, false] {
        let id = format!("{topic}-{commit}");
        let prepared = prepare_and_die(bootstrap, &topic, &id, &id).await;
        assert_eq!(values(&cluster, &topic).await.len(), usize::from(!commit), "neither here nor there");
        let session = TransactionSession::resume(settings(bootstrap, &id), &prepared).await.unwrap();
        if commit {
            session.commit().await.unwrap();
        } else {
            session.abort().await.unwrap();
        }
        // It died before it could write down that it was done: the same end is no error, and the other one does nothing.
        let again = TransactionSession::resume(settings(bootstrap, &id), &prepared).await.unwrap();
        if commit {
            again.commit().await.unwrap();
        } else {
            again.abort().await.unwrap();
            let other = TransactionSession::resume(settings(bootstrap, &id), &prepared).await.unwrap();
            let error = other.commit().await.unwrap_err();
            assert!(matches!(error.kind(), ErrorKind::TransactionAborted | ErrorKind::Fenced), "{error}");
        }
        assert_eq!(values(&cluster, &topic).await, [format!("{topic}-true")]);
    }
    // A session goes on after the transaction that it resumed.
    let id = format!("{topic}-next");
    let prepared = prepare_and_die(bootstrap, &topic, &id, "first").await;
    let session = TransactionSession::resume(settings(bootstrap, &id), &prepared).await.unwrap();
    session.commit().await.unwrap();
    session.begin().await.unwrap();
    send(&session, &topic, "second").await;
    session.commit().await.unwrap();
    assert_eq!(values(&cluster, &topic).await[1..], ["first", "second"]);
}

pub(crate) async fn what_a_dead_process_left_open_is_found(bootstrap: &str) {
    let (cluster, topic) = topic(bootstrap, 1).await;
    assert!(TransactionSession::recover(settings(bootstrap, &topic)).await.unwrap().is_none(), "never heard of");
    for (commit, seen) in [(false, 0), (true, 1)] {
        let session = TransactionSession::open(settings(bootstrap, &topic)).await.unwrap();
        session.begin().await.unwrap();
        send(&session, &topic, "left").await;
        session.producer().flush().await.unwrap();
        drop(session);
        let left = |filter: TransactionFilter| {
            let admin = Admin::on(Arc::clone(&cluster));
            let prefix = topic.clone();
            async move { admin.list_transactions(&filter.id_prefix(&prefix)).await.unwrap() }
        };
        let ongoing = left(TransactionFilter::ongoing()).await;
        let ids: Vec<(&str, &str)> = ongoing.iter().map(|t| (t.transactional_id.as_str(), t.state.as_str())).collect();
        assert_eq!(ids, [(topic.as_str(), "Ongoing")]);
        assert_eq!(left(TransactionFilter::default().producer_id(ongoing[0].producer_id)).await, ongoing);
        let old = TransactionFilter::ongoing().running_longer_than(Duration::from_secs(3_600));
        assert!(left(old).await.is_empty() && left(TransactionFilter::default().state("Dead")).await.is_empty());
        let unknown = TransactionFilter::default().state("ongoing");
        let error = Admin::on(Arc::clone(&cluster)).list_transactions(&unknown).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
        let found = TransactionSession::recover(settings(bootstrap, &topic)).await.unwrap().expect("it is open");
        if commit {
            found.commit().await.unwrap();
        } else {
            found.abort().await.unwrap();
        }
        assert_eq!(values(&cluster, &topic).await.len(), seen);
        assert!(TransactionSession::recover(settings(bootstrap, &topic)).await.unwrap().is_none(), "it is over");
        assert!(left(TransactionFilter::ongoing()).await.is_empty());
    }
}

pub(crate) async fn papers_of_other_clusters_and_ids_are_refused_and_change_nothing(bootstrap: &str) {
    let (cluster, topic) = topic(bootstrap, 1).await;
    let prepared = prepare_and_die(bootstrap, &topic, &topic, "value").await;
    let elsewhere = PreparedTransaction { cluster_id: "another".into(), ..prepared.clone() };
    for (id, paper) in [(topic.as_str(), &elsewhere), ("clash", &prepared)] {
        let error = TransactionSession::resume(settings(bootstrap, id), paper).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
    }
    // A paper whose numbers were made up finds nobody, and harms nobody.
    let mut strange = prepared.clone();
    strange.identity.id += 1_000;
    let session = TransactionSession::resume(settings(bootstrap, &topic), &strange).await.unwrap();
    let error = session.commit().await.unwrap_err();
    assert_eq!(
        (error.kind(), error.code()),
        (ErrorKind::Fenced, Some(ErrorCode::INVALID_PRODUCER_ID_MAPPING)),
        "{error}"
    );
    assert!(values(&cluster, &topic).await.is_empty());
    TransactionSession::resume(settings(bootstrap, &topic), &prepared).await.unwrap().commit().await.unwrap();
    assert_eq!(values(&cluster, &topic).await, ["value"]);
}

pub(crate) async fn a_prepared_transaction_that_is_too_old_is_aborted_and_its_commit_says_so(bootstrap: &str) {
    let (cluster, topic) = topic(bootstrap, 1).await;
    // Longer than the steps up to the paper take.
    let short = settings(bootstrap, &topic).transaction_timeout(Duration::from_secs(8));
    let session = TransactionSession::open(short).await.unwrap();
    session.begin().await.unwrap();
    send(&session, &topic, "old").await;
    let prepared = session.prepare().await.unwrap();
    drop(session);
    let deadline = Instant::now() + Duration::from_secs(60);
    while TransactionSession::recover(settings(bootstrap, &topic)).await.unwrap().is_some() {
        assert!(Instant::now() < deadline, "the coordinator does not abort it");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let session = TransactionSession::resume(settings(bootstrap, &topic), &prepared).await.unwrap();
    let error = session.commit().await.unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::TransactionAborted | ErrorKind::Fenced), "{error}");
    assert!(values(&cluster, &topic).await.is_empty());
    // A new producer of that id is none the worse for it.
    let session = TransactionSession::open(settings(bootstrap, &topic)).await.unwrap();
    session.begin().await.unwrap();
    send(&session, &topic, "new").await;
    session.commit().await.unwrap();
    assert_eq!(values(&Arc::clone(&cluster), &topic).await, ["new"]);
}
