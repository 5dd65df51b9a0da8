//! Ordinary fetches, to see what is in a log.

use super::{Lab, SOON, Topic};
use crate::expect::{Check, Stop, fail, ok};
use kafka_share::net::Purpose;
use kafka_share_messages::FetchRequest;
use kafka_share_messages::fetch_request::{FetchPartition, FetchTopic};
use kafka_share_messages::fetch_response::PartitionData;
use kafka_share_wire::records::BatchIter;
use std::time::{Duration, Instant};

/// What one fetch of partition 0 brought.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Log {
    /// Offsets of data records that a reader of the isolation level hands out.
    pub(crate) offsets: Vec<i64>,
    /// The last stable offset.
    pub(crate) stable: i64,
    /// The high watermark.
    pub(crate) end: i64,
}

impl Lab {
    /// Fetches partition 0 from its start. Aborted data is left out as a read_committed consumer leaves it out.
    pub(crate) async fn read(&self, topic: &Topic, committed: bool) -> Check<Log> {
        log(self.fetched(topic, committed).await?).map_err(unreadable)
    }

    /// Names and values of the headers of each data record of partition 0, and its key and value under these names.
    pub(crate) async fn records(&self, topic: &Topic) -> Check<Vec<Vec<(String, Option<String>)>>> {
        let row = self.fetched(topic, false).await?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let mut all = Vec::new();
        for batch in BatchIter::new(row.records.unwrap_or_default()) {
            let decoded = batch.and_then(|b| b.decode(1 << 20)).map_err(unreadable)?;
            for record in decoded.iter() {
                let record = record.map_err(unreadable)?;
                let mut fields = vec![("key".into(), record.key.map(text)), ("value".into(), record.value.map(text))];
                fields.extend(record.headers.map(|h| (text(h.key), h.value.map(text))));
                all.push(fields);
            }
        }
        Ok(all)
    }

    async fn fetched(&self, topic: &Topic, committed: bool) -> Check<PartitionData> {
        let partition =
            FetchPartition { partition: 0, fetch_offset: 0, partition_max_bytes: 1 << 20, ..Default::default() };
        let row = FetchTopic {
            topic: topic.name.clone(),
            topic_id: topic.id,
            partitions: vec![partition],
            ..Default::default()
        };
        let request = FetchRequest {
            replica_id: -1,
            max_wait_ms: 200,
            min_bytes: 1,
            max_bytes: 1 << 20,
            isolation_level: i8::from(committed),
            session_epoch: -1,
            topics: vec![row],
            ..Default::default()
        };
        let response = self.call(self.cluster(), topic.node, Purpose::Fetch, &request, None).await?;
        ok("Fetch", response.error_code)?;
        let Some(row) = response.responses.into_iter().flat_map(|t| t.partitions).next() else {
            return fail("Fetch was answered without a row for the partition");
        };
        ok("Fetch, partition 0", row.error_code)?;
        Ok(row)
    }

    /// Waits until the log is stable to `end`: markers are written after EndTxn was answered. Reads it read_committed.
    pub(crate) async fn settled(&self, topic: &Topic, end: i64) -> Check<Log> {
        let until = Instant::now() + SOON;
        loop {
            let log = self.read(topic, true).await?;
            if log.stable == end {
                return Ok(log);
            }
            if Instant::now() > until {
                return fail(format!("last stable offset {} after {SOON:?}, expected {end}", log.stable));
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

fn unreadable(error: kafka_share_wire::records::RecordError) -> Stop {
    Stop::Failed(format!("fetched records cannot be read: {error}"))
}

fn log(row: PartitionData) -> Result<Log, kafka_share_wire::records::RecordError> {
    let mut aborted: Vec<(i64, i64)> =
        row.aborted_transactions.iter().flatten().map(|a| (a.producer_id, a.first_offset)).collect();
    let mut skipping = Vec::new();
    let mut offsets = Vec::new();
    for batch in BatchIter::new(row.records.unwrap_or_default()) {
        let batch = batch?;
        batch.verify_crc()?;
        let (producer, first) = (batch.producer_id, batch.base_offset);
        if batch.is_control() {
            skipping.retain(|id| *id != producer);
            continue;
        }
        aborted.retain(|(id, from)| {
            let starts = *id == producer && *from <= first;
            if starts {
                skipping.push(*id);
            }
            !starts
        });
        if batch.is_transactional() && skipping.contains(&producer) {
            continue;
        }
        for record in batch.decode(1 << 20)?.iter() {
            offsets.push(record?.offset);
        }
    }
    Ok(Log { offsets, stable: row.last_stable_offset, end: row.high_watermark })
}
