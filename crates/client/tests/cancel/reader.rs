//! Every async method of the partition reader, dropped at each of its await points: no batch is skipped or comes twice.

use crate::admin::async_methods;
use crate::support::{Mode, Rig};
use crate::{POINTS, drop_after};
use kafka_share::admin::Isolation;
use kafka_share::net::Cluster;
use kafka_share::reader::{PartitionReader, ReadBatch};
use kafka_share::{AckType, ClientConfig};
use std::collections::BTreeSet;
use std::sync::Arc;

fn offsets(batches: &[ReadBatch]) -> Vec<i64> {
    batches.iter().flat_map(|b| b.iter().map(|r| r.offset()).collect::<Vec<_>>()).collect()
}

async fn new(cluster: &Arc<Cluster>, topic: &str) -> PartitionReader {
    let isolation = Isolation::ReadUncommitted;
    PartitionReader::new(Arc::clone(cluster), topic, isolation, Some(&[(0, 1)])).await.unwrap()
}

#[tokio::test]
async fn reader_methods_dropped_at_every_await_point() {
    let rig = Rig::new(1).await;
    // A batch each.
    for offset in 0..4 {
        rig.produce(offset..offset + 1).await;
    }
    let topic = rig.topic();
    let cluster = || Cluster::new(ClientConfig::new(&rig.broker.bootstrap_servers())).unwrap();
    let mut called = Vec::new();
    dropped_at_each_point!(cluster, called,
        read_committed => async |c: &Arc<Cluster>| {
            let mut reader = PartitionReader::read_committed(Arc::clone(c), &topic).await.unwrap();
            offsets(&reader.read_to_end().await.unwrap()) == [0, 1, 2, 3]
        },
        new => async |c: &Arc<Cluster>| offsets(&new(c, &topic).await.read_to_end().await.unwrap()) == [1, 2, 3],
    );
    let mut dropped = 0;
    for points in 0..POINTS {
        let cluster = cluster();
        // What a dropped call read comes with the next.
        let mut reader = new(&cluster, &topic).await;
        let mut seen = Vec::new();
        while seen.len() < 3 {
            match drop_after(points, reader.next_batch()).await {
                Some(batch) => seen.extend(batch.unwrap()),
                None => {
                    dropped += 1;
                    seen.extend(reader.next_batch().await.unwrap());
                }
            }
        }
        assert_eq!(offsets(&seen), [1, 2, 3], "after {points} await points");
        assert!(reader.next_batch().await.unwrap().is_none());
        // What it collected is gone with it: the reader stands behind that, wherever it is, and skips nothing else.
        let mut reader = new(&cluster, &topic).await;
        let read = drop_after(points, reader.read_to_end()).await.map(Result::unwrap);
        let rest = offsets(&reader.read_to_end().await.unwrap());
        match read {
            Some(all) => assert_eq!((offsets(&all), rest), (vec![1, 2, 3], vec![])),
            None => assert!([1, 2, 3].ends_with(&rest), "{rest:?} after {points} await points"),
        }
    }
    assert!(dropped > 0, "no call was dropped on its way");
    let tested = called.into_iter().chain(["next_batch", "read_to_end"]).map(str::to_owned);
    assert_eq!(async_methods("src/reader"), tested.collect::<BTreeSet<_>>(), "each async method, and no other");
    // It was none of the group's business.
    let consumer = rig.consumer(Mode::Explicit);
    for records in rig.receive(&consumer, 4).await {
        consumer.acknowledge_all(&records, AckType::Accept).unwrap();
    }
}
