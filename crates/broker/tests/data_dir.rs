//! The data directory as users of the library see it.

use kafka_share_broker::{DataDirError, EmbeddedBroker, StartError};

fn builder(path: &std::path::Path) -> kafka_share_broker::BrokerBuilder {
    EmbeddedBroker::builder().data_dir(path)
}

#[tokio::test]
async fn topics_live_on_under_their_ids_whatever_the_number_of_nodes() {
    let directory = tempfile::tempdir().unwrap();
    let id = |broker: &EmbeddedBroker, name: &str| broker.with_cluster(|cluster, _| cluster.topic_id(name));
    let broker = builder(directory.path()).nodes(3).topic("t", 6).start().await.unwrap();
    let (topic, cluster) = (id(&broker, "t"), broker.with_cluster(|cluster, _| cluster.cluster_id().to_owned()));
    assert!(topic.is_some());
    broker.shutdown().await;
    // The builder's topic is there already, and another one gets an id that was never used.
    let broker = builder(directory.path()).nodes(1).topic("t", 6).topic("u", 1).start().await.unwrap();
    assert_eq!(id(&broker, "t"), topic);
    assert_ne!(id(&broker, "u"), topic);
    assert_eq!(broker.with_cluster(|cluster, _| cluster.cluster_id().to_owned()), cluster);
    let dump = broker.dump();
    assert_eq!(dump.partitions.iter().filter(|partition| partition.leader == 1).count(), 7);
    broker.shutdown().await;
    let broker = builder(directory.path()).nodes(2).sync_writes(true).start().await.unwrap();
    assert_eq!(id(&broker, "t"), topic);
}

#[tokio::test]
async fn a_directory_has_one_broker_at_a_time_and_is_free_after_its_end() {
    let directory = tempfile::tempdir().unwrap();
    let broker = builder(directory.path()).start().await.unwrap();
    let refused = builder(directory.path()).start().await.unwrap_err();
    assert!(matches!(&refused, StartError::DataDir(DataDirError::InUse { .. })), "{refused}");
    drop(broker);
    // Dropping does not wait for the tasks.
    let end = std::time::Instant::now() + std::time::Duration::from_secs(30);
    while let Err(error) = builder(directory.path()).start().await {
        assert!(std::time::Instant::now() < end, "{error}");
        tokio::task::yield_now().await;
    }
}
