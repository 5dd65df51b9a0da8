//! A ledger that its brokers refuse to write to, as too few of its replicas are in sync: nothing is committed or acknowledged,
//! and all is done once they are back.

use super::stage::*;
use kafka_share::admin::SharePartitionOffset;
use kafka_share::{Error, ErrorCode, KafkaShareConsumer, ShareRecords, TransactionalProducer};
use kafka_share_tests::kafka_cluster::RealCluster;
use std::time::Duration;

const REPLICAS: i16 = 3;
const RECORDS: usize = 12;
const LOCK: Duration = Duration::from_secs(30);

pub(crate) async fn all_aborts_until_they_are_back(cluster: &RealCluster) {
    // One more than the other topics need.
    let stage = Stage::with(&cluster.bootstrap(), RECORDS, LOCK, (REPLICAS, REPLICAS)).await;
    let consumer = stage.consumer();
    let settings = stage.settings().max_block(Duration::from_secs(20));
    let producer = settings.build().unwrap();
    producer.init_transactions().await.unwrap();
    cluster.terminate(cluster.nodes()[0]).unwrap();
    loop {
        let records = some(&consumer).await;
        let error = processed(&stage, &producer, &consumer, &records).await.expect_err("too few are in sync");
        if refused(&error) {
            break;
        }
    }
    assert!(stage.output().await.is_empty());
    let offsets = stage.admin().describe_share_group_offsets(&stage.group).await.unwrap();
    let untouched = |offset: &SharePartitionOffset| offset.start_offset.is_none_or(|start| start == 0);
    assert!(offsets.iter().all(untouched), "nothing is acknowledged: {offsets:?}");

    cluster.restart(cluster.nodes()[0]).unwrap();
    cluster.wait_in_sync(&[&stage.input, &stage.output, &stage.ledger], LONG).unwrap();
    let mut done = 0;
    while done < RECORDS {
        let records = some(&consumer).await;
        if processed(&stage, &producer, &consumer, &records).await.is_ok() {
            done += records.len();
        }
    }
    stage.until_done(&consumer, &stage.group).await;
    stage.check_output(RECORDS).await;
}

/// A transaction that may fail, as connections and locks go with a node. It is aborted then.
async fn processed(
    stage: &Stage,
    producer: &TransactionalProducer,
    consumer: &KafkaShareConsumer,
    records: &ShareRecords,
) -> Result<(), Error> {
    let result = stage.attempt(producer, consumer, records).await;
    if let Err(error) = &result {
        assert!(error.is_abortable(), "{error:?}");
        producer.abort_transaction().await?;
    }
    result
}

fn refused(error: &Error) -> bool {
    let codes = [ErrorCode::NOT_ENOUGH_REPLICAS, ErrorCode::NOT_ENOUGH_REPLICAS_AFTER_APPEND];
    let text = error.to_string();
    text.contains("ledger") && codes.iter().any(|code| text.contains(&code.to_string()))
}
