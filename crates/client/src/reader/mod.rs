//! Reading partitions from given offsets to their end, without a group: for verification and tools.

mod aborted;

use crate::admin::{Admin, Isolation, OffsetSpec};
use crate::net::{Cluster, Purpose};
use crate::{Error, ErrorKind, Result};
use aborted::AbortFilter;
use kafka_share_core::metadata::Topic;
use kafka_share_messages::fetch_request::{FetchPartition, FetchTopic};
use kafka_share_messages::fetch_response::PartitionData;
use kafka_share_messages::{ErrorCode, FetchRequest};
use kafka_share_wire::compression::DEFAULT_DECOMPRESSED_LIMIT;
use kafka_share_wire::records::{BatchIter, DecodedBatch, Headers, Record};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Bytes asked for at once, per partition.
const PARTITION_BYTES: i32 = 1 << 20;
/// How long a broker may wait for new records, in milliseconds.
const MAX_WAIT_MS: i32 = 500;

/// A coordinator answers a commit before its markers are in the partitions.
const MARKER_WAIT: Duration = Duration::from_secs(3);
const MARKER_PAUSE: Duration = Duration::from_millis(20);

/// Reads the partitions of a topic up to the end they had when the reader was made.
#[derive(Debug)]
pub struct PartitionReader {
    cluster: Arc<Cluster>,
    topic: Arc<Topic>,
    isolation: Isolation,
    positions: Vec<Position>,
    ready: VecDeque<ReadBatch>,
    patience: Duration,
    /// Whether control batches are handed over too.
    whole: bool,
}

#[derive(Debug, Clone, Copy)]
struct Position {
    partition: i32,
    next: i64,
    end: i64,
}

/// Records that were written together.
#[derive(Debug, Clone)]
pub struct ReadBatch {
    partition: i32,
    from: i64,
    records: DecodedBatch,
}

/// A record, borrowed from its batch.
#[derive(Debug, Clone, Copy)]
pub struct ReadRecord<'a> {
    partition: i32,
    record: Record<'a>,
}

impl ReadBatch {
    /// The batch itself.
    pub(crate) fn decoded(&self) -> &DecodedBatch {
        &self.records
    }

    /// Partition.
    #[must_use]
    pub fn partition(&self) -> i32 {
        self.partition
    }

    /// Records, by offset.
    pub fn iter(&self) -> impl Iterator<Item = ReadRecord<'_>> {
        // All were read once before, so that none fails here.
        let records = self.records.iter().filter_map(std::result::Result::ok).filter(|r| r.offset >= self.from);
        records.map(|record| ReadRecord { partition: self.partition, record })
    }
}

impl<'a> IntoIterator for &'a ReadBatch {
    type Item = ReadRecord<'a>;
    type IntoIter = Box<dyn Iterator<Item = ReadRecord<'a>> + 'a>;

    fn into_iter(self) -> Self::IntoIter {
        Box::new(self.iter())
    }
}

impl<'a> ReadRecord<'a> {
    /// Partition.
    #[must_use]
    pub fn partition(&self) -> i32 {
        self.partition
    }

    /// Offset.
    #[must_use]
    pub fn offset(&self) -> i64 {
        self.record.offset
    }

    /// Milliseconds since 1970.
    #[must_use]
    pub fn timestamp(&self) -> i64 {
        self.record.timestamp
    }

    /// Key.
    #[must_use]
    pub fn key(&self) -> Option<&'a [u8]> {
        self.record.key
    }

    /// Value; `None` is a tombstone.
    #[must_use]
    pub fn value(&self) -> Option<&'a [u8]> {
        self.record.value
    }

    /// Headers, in order.
    #[must_use]
    pub fn headers(&self) -> Headers<'a> {
        self.record.headers
    }
}

async fn ends(admin: &Admin, topic: &str, isolation: Isolation) -> Result<Vec<i64>> {
    let mut ends = admin.list_offsets(topic, OffsetSpec::Latest, isolation).await?;
    if isolation == Isolation::ReadUncommitted {
        return Ok(ends);
    }
    let written = admin.list_offsets(topic, OffsetSpec::Latest, Isolation::ReadUncommitted).await?;
    let until = Instant::now() + MARKER_WAIT;
    while ends.iter().zip(&written).any(|(end, written)| end < written) && Instant::now() < until {
        tokio::time::sleep(MARKER_PAUSE).await;
        ends = admin.list_offsets(topic, OffsetSpec::Latest, isolation).await?;
    }
    Ok(ends)
}

impl PartitionReader {
    /// All partitions from their first to their last committed record. A transaction whose commit was answered a
    /// moment ago is seen: its markers are waited for, for at most three seconds. One that stays open holds the end
    /// back (last stable offset).
    ///
    /// # Cancel safety
    /// Only asks (Metadata, ListOffsets); there is no reader yet.
    ///
    /// # Errors
    /// Topics that do not exist, partitions without a leader for too long.
    pub async fn read_committed(cluster: Arc<Cluster>, topic: &str) -> Result<Self> {
        Self::new(cluster, topic, Isolation::ReadCommitted, None).await
    }

    /// All partitions, or those with an offset to start from, up to their end.
    ///
    /// # Cancel safety
    /// Only asks (Metadata, ListOffsets); there is no reader yet.
    ///
    /// # Errors
    /// As [`PartitionReader::read_committed`]; partitions that do not exist.
    pub async fn new(
        cluster: Arc<Cluster>,
        topic: &str,
        isolation: Isolation,
        from: Option<&[(i32, i64)]>,
    ) -> Result<Self> {
        let admin = Admin::on(Arc::clone(&cluster));
        let patience = cluster.config().default_api_timeout;
        let ends = ends(&admin, topic, isolation).await?;
        let starts = match from {
            Some(from) => from.to_vec(),
            None => {
                let first = admin.list_offsets(topic, OffsetSpec::Earliest, isolation).await?;
                (0..).zip(first).collect()
            }
        };
        let mut positions = Vec::new();
        for (partition, next) in starts {
            let end = usize::try_from(partition).ok().and_then(|i| ends.get(i));
            let Some(end) = end else {
                let text = format!("partition {partition} is out of range: topic {topic:?} has {}", ends.len());
                return Err(Error::new(ErrorKind::InvalidInput, text));
            };
            positions.push(Position { partition, next, end: *end });
        }
        let topic = cluster.topic(topic, false, Instant::now() + patience).await?;
        Ok(PartitionReader { cluster, topic, isolation, positions, ready: VecDeque::new(), patience, whole: false })
    }

    /// Hands over control batches too, which have no records for applications.
    pub(crate) fn whole(mut self) -> Self {
        self.whole = true;
        self
    }

    /// Reads no more of a partition.
    pub(crate) fn pass(&mut self, partition: i32) {
        self.positions.retain(|position| position.partition != partition);
        self.ready.retain(|batch| batch.partition() != partition);
    }

    /// Where a partition is read to.
    pub(crate) fn ends(&self) -> impl Iterator<Item = (i32, i64)> {
        self.positions.iter().map(|p| (p.partition, p.end))
    }

    /// The next batch that has records; `None` at the end of all partitions.
    ///
    /// # Cancel safety
    /// Nothing is lost: what was read comes with the next call.
    ///
    /// # Errors
    /// Damaged batches; refusals; no progress for `default.api.timeout.ms`.
    pub async fn next_batch(&mut self) -> Result<Option<ReadBatch>> {
        let deadline = Instant::now() + self.patience;
        let mut attempt = 0;
        loop {
            if let Some(batch) = self.ready.pop_front() {
                return Ok(Some(batch));
            }
            // The partition that is farthest behind in the order of reading.
            let Some(at) = self.positions.iter().position(|p| p.next < p.end) else { return Ok(None) };
            let before = self.positions[at].next;
            match self.fetch(at, deadline).await {
                Ok(()) if self.positions[at].next > before => attempt = 0,
                Ok(()) => attempt += 1,
                Err(error) if error.is_retriable() && Instant::now() < deadline => {
                    attempt += 1;
                    self.cluster.refresh_topics(std::slice::from_ref(&self.topic.name), deadline).await?;
                    self.topic = self.cluster.topic(&self.topic.name, false, deadline).await?;
                }
                Err(error) => return Err(error),
            }
            if attempt > 0 && !self.cluster.pause_before_retry(attempt, deadline).await {
                let Position { partition, next, end } = self.positions[at];
                let text = format!("{}-{partition}: nothing came at offset {next}, the end is {end}", self.topic.name);
                return Err(Error::new(ErrorKind::Timeout, text));
            }
        }
    }

    /// Everything up to the end.
    ///
    /// # Cancel safety
    /// Only reads (Fetch). Batches that it had collected are gone with it, and the reader stands behind them: take them
    /// one by one with [`next_batch`](Self::next_batch) where a call may be dropped.
    ///
    /// # Errors
    /// As [`PartitionReader::next_batch`].
    pub async fn read_to_end(&mut self) -> Result<Vec<ReadBatch>> {
        let mut all = Vec::new();
        while let Some(batch) = self.next_batch().await? {
            all.push(batch);
        }
        Ok(all)
    }

    async fn fetch(&mut self, at: usize, deadline: Instant) -> Result<()> {
        let Position { partition, next, .. } = self.positions[at];
        let place = format!("{}-{partition}", self.topic.name);
        let leader = usize::try_from(partition).ok().and_then(|i| self.topic.leaders.get(i)).filter(|l| l.id >= 0);
        let Some(leader) = leader else {
            return Err(Error::broker(ErrorCode::LEADER_NOT_AVAILABLE, format_args!("reading {place}"), None));
        };
        let row = FetchPartition {
            partition,
            current_leader_epoch: -1,
            fetch_offset: next,
            partition_max_bytes: PARTITION_BYTES,
            ..FetchPartition::default()
        };
        let topic = FetchTopic {
            topic: self.topic.name.clone(),
            topic_id: self.topic.id,
            partitions: vec![row],
            ..FetchTopic::default()
        };
        let request = FetchRequest {
            max_wait_ms: MAX_WAIT_MS,
            min_bytes: 1,
            max_bytes: PARTITION_BYTES,
            isolation_level: self.isolation.code(),
            session_epoch: -1,
            topics: vec![topic],
            ..FetchRequest::default()
        };
        let limit = self.cluster.request_deadline(deadline);
        let response = self.cluster.call_node(leader.id, Purpose::Fetch, &request, limit).await?;
        let answers = response.responses.into_iter().flat_map(|t| t.partitions);
        let answer = answers.into_iter().find(|p| p.partition_index == partition);
        let code = answer.as_ref().map_or(response.error_code, |a| a.error_code);
        if code.is_err() {
            return Err(Error::broker(code, format_args!("reading {place} at offset {next}"), None));
        }
        match answer {
            Some(answer) => self.take(at, &place, answer),
            None => Err(Error::new(ErrorKind::Protocol, format!("reading {place}: the broker's answer leaves it out"))),
        }
    }

    fn take(&mut self, at: usize, place: &str, answer: PartitionData) -> Result<()> {
        let damaged = |offset: i64, e: &dyn std::fmt::Display| {
            Error::new(ErrorKind::Protocol, format!("{place}: damaged batch at offset {offset}: {e}"))
        };
        let committed = self.isolation == Isolation::ReadCommitted;
        let mut filter = AbortFilter::new(answer.aborted_transactions.as_deref().filter(|_| committed));
        let position = &mut self.positions[at];
        for batch in BatchIter::new(answer.records.unwrap_or_default()) {
            let batch = batch.map_err(|e| damaged(position.next, &e))?;
            let offset = batch.base_offset;
            batch.verify_crc().map_err(|e| damaged(offset, &e))?;
            let records = batch.decode(DEFAULT_DECOMPRESSED_LIMIT).map_err(|e| damaged(offset, &e))?;
            if let Some(Err(error)) = records.iter().find(std::result::Result::is_err) {
                return Err(damaged(offset, &error));
            }
            let admitted = self.whole || filter.admits(&records);
            let (from, next) = (position.next, batch.next_offset());
            if admitted && next > from && offset < position.end {
                self.ready.push_back(ReadBatch { partition: position.partition, from, records });
            }
            position.next = from.max(next);
        }
        Ok(())
    }
}
