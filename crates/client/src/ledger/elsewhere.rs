//! Whether the other partitions of a ledger were written by members that saw as many of them. After partitions were added, many
//! a group's partition is a new one, which tells nothing of what the group has done.

use super::LedgerTopic;
use crate::admin::Isolation;
use crate::net::Cluster;
use crate::{PartitionReader, Result};
use kafka_share_core::ledger::{FormatError, LedgerError, LedgerRecord};
use std::sync::Arc;
use std::time::Duration;

/// Partitions whose leaders are away are not waited for longer: what a member does not learn now, those that write there do.
const PATIENCE: Duration = Duration::from_secs(3);

/// Looks at the first record of every partition but `own`.
///
/// # Errors
/// A record by a writer that saw another number of partitions. Whatever else is wrong there is for those to say who read it.
pub(super) async fn check(cluster: &Arc<Cluster>, topic: &LedgerTopic, own: i32) -> Result<()> {
    match tokio::time::timeout(PATIENCE, look(cluster, topic, own)).await {
        Ok(Ok(None)) => Ok(()),
        Ok(Ok(Some(error))) => Err(topic.unusable(error)),
        Ok(Err(error)) => {
            tracing::debug!(%error, ledger = topic.name, "not all partitions of the ledger were looked at");
            Ok(())
        }
        Err(_) => {
            tracing::debug!(ledger = topic.name, "not all partitions of the ledger were looked at in time");
            Ok(())
        }
    }
}

async fn look(cluster: &Arc<Cluster>, topic: &LedgerTopic, own: i32) -> Result<Option<LedgerError>> {
    if topic.layout.partitions() == 1 {
        return Ok(None);
    }
    let mut reader = PartitionReader::new(Arc::clone(cluster), &topic.name, Isolation::ReadUncommitted, None).await?;
    reader.pass(own);
    while let Some(batch) = reader.next_batch().await? {
        let partition = batch.partition();
        reader.pass(partition);
        let Some(record) = batch.iter().next() else { continue };
        let (key, value) = (record.key(), record.value());
        if let Err(error @ FormatError::OtherLayout { .. }) = LedgerRecord::decode(key, value, topic.layout) {
            return Ok(Some(LedgerError::Record { partition, offset: record.offset(), error }));
        }
    }
    Ok(None)
}
