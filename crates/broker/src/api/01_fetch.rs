//! Fetch (v4-18): whole stored batches, without a copy. Topic ids from v13 on; leader hints from v16 on.
//!
//! Every fetch is a full one: the session id of an answer is 0, which tells clients that no session was opened (KIP-227).
//! The request waits until `min_bytes` can be read, a partition has an error, or `max_wait_ms` is over.

use super::leader_hints::{endpoints, is_stale};
use super::{Answer, Outcome, RequestContext};
use crate::cluster::{Cluster, Parked, Partition, TopicRef, WaitKey};
use bytes::Bytes;
use kafka_share_messages::fetch_request::FetchPartition;
use kafka_share_messages::fetch_response::{
    AbortedTransaction, EpochEndOffset, FetchableTopicResponse, LeaderIdAndEpoch, NodeEndpoint, PartitionData,
};
use kafka_share_messages::{ErrorCode, FetchRequest, FetchResponse};
use kafka_share_wire::Uuid;

/// Most bytes of one answer (`fetch.max.bytes` of a broker).
const MAX_BYTES: usize = 55 << 20;

pub(crate) fn handle(cluster: &mut Cluster, ctx: &RequestContext, request: FetchRequest) -> Outcome<FetchResponse> {
    if request.session_id != 0 {
        let error_code = ErrorCode::FETCH_SESSION_ID_NOT_FOUND;
        return Outcome::Reply(FetchResponse { error_code, ..Default::default() });
    }
    let fetch = Fetch { topics: resolve(cluster, ctx, &request), request };
    let wait = fetch.request.max_wait_ms;
    if wait <= 0 || fetch.is_ready(cluster, ctx) {
        return Outcome::Reply(fetch.answer(cluster, ctx));
    }
    Outcome::Park { deadline: ctx.now.after_ms(i64::from(wait)), keys: fetch.keys(), parked: Box::new(fetch) }
}

fn resolve(cluster: &Cluster, ctx: &RequestContext, request: &FetchRequest) -> Vec<Result<Uuid, ErrorCode>> {
    let find = |topic: &kafka_share_messages::fetch_request::FetchTopic| {
        let by = if ctx.version >= 13 { TopicRef::Id(topic.topic_id) } else { TopicRef::Name(&topic.topic) };
        cluster.find_topic(&by).map(|topic| topic.id)
    };
    request.topics.iter().map(find).collect()
}

struct Fetch {
    request: FetchRequest,
    /// Ids of the request's topics, in its order.
    topics: Vec<Result<Uuid, ErrorCode>>,
}

impl Parked for Fetch {
    fn resume(&mut self, cluster: &mut Cluster, ctx: &RequestContext, expired: bool) -> Option<Answer> {
        (expired || self.is_ready(cluster, ctx)).then(|| {
            let response = self.answer(cluster, ctx);
            ctx.answer(&response)
        })
    }
}

impl Fetch {
    fn keys(&self) -> Vec<WaitKey> {
        let mut keys = Vec::new();
        for (topic, id) in self.request.topics.iter().zip(&self.topics) {
            if let Ok(id) = id {
                keys.extend(topic.partitions.iter().map(|p| WaitKey::Partition(*id, p.partition)));
            }
        }
        keys
    }

    fn committed_only(&self) -> bool {
        self.request.isolation_level == 1
    }

    fn upper(&self, partition: &Partition) -> i64 {
        if self.committed_only() { partition.log.last_stable_offset() } else { partition.log.high_watermark() }
    }

    /// Whether there is an error to report or enough to read. Reads nothing.
    fn is_ready(&self, cluster: &mut Cluster, ctx: &RequestContext) -> bool {
        let enough = usize::try_from(self.request.min_bytes).unwrap_or(0);
        let mut bytes = 0;
        // A consumer that closes sends a fetch without partitions, which has nothing to wait for.
        if self.request.topics.iter().all(|topic| topic.partitions.is_empty()) {
            return true;
        }
        for (topic, id) in self.request.topics.iter().zip(&self.topics) {
            let Ok(id) = id else { return true };
            for asked in &topic.partitions {
                let Ok(partition) = check(cluster, ctx, *id, asked) else { return true };
                if diverges(partition, asked).is_some() {
                    return true;
                }
                let upper = self.upper(partition);
                let most = usize::try_from(asked.partition_max_bytes).unwrap_or(0);
                bytes += partition.log.readable(asked.fetch_offset, upper, enough.min(most.max(1)));
            }
        }
        bytes >= enough
    }

    fn answer(&self, cluster: &mut Cluster, ctx: &RequestContext) -> FetchResponse {
        let mut left = usize::try_from(self.request.max_bytes).unwrap_or(0).min(MAX_BYTES);
        let mut nothing_yet = true;
        let mut leaders = Vec::new();
        let mut responses = Vec::with_capacity(self.topics.len());
        for (topic, id) in self.request.topics.iter().zip(&self.topics) {
            let mut partitions = Vec::with_capacity(topic.partitions.len());
            for asked in &topic.partitions {
                let result = match id {
                    Ok(id) => self.read(cluster, ctx, *id, asked, left, nothing_yet),
                    Err(code) => Err(*code),
                };
                let data = result.unwrap_or_else(|code| failed(cluster, ctx, *id, asked, code, &mut leaders));
                let size = data.records.as_ref().map_or(0, Bytes::len);
                left = left.saturating_sub(size);
                nothing_yet &= size == 0;
                partitions.push(data);
            }
            responses.push(FetchableTopicResponse {
                topic: topic.topic.clone(),
                topic_id: topic.topic_id,
                partitions,
                ..Default::default()
            });
        }
        let node = |(node_id, host, port)| NodeEndpoint { node_id, host, port, ..Default::default() };
        let node_endpoints = endpoints(cluster, leaders).into_iter().map(node).collect();
        FetchResponse { responses, node_endpoints, ..Default::default() }
    }

    fn read(
        &self,
        cluster: &mut Cluster,
        ctx: &RequestContext,
        topic: Uuid,
        asked: &FetchPartition,
        left: usize,
        at_least_one: bool,
    ) -> Result<PartitionData, ErrorCode> {
        let partition = check(cluster, ctx, topic, asked)?;
        let diverging = diverges(partition, asked);
        let upper = self.upper(partition);
        let log = &mut partition.log;
        let most = usize::try_from(asked.partition_max_bytes).unwrap_or(0).min(left);
        let mut data = PartitionData {
            partition_index: asked.partition,
            high_watermark: log.high_watermark(),
            last_stable_offset: log.last_stable_offset(),
            log_start_offset: log.start_offset(),
            preferred_read_replica: -1,
            records: Some(Bytes::new()),
            ..Default::default()
        };
        if let Some((epoch, end_offset)) = diverging {
            data.diverging_epoch = EpochEndOffset { epoch, end_offset, ..Default::default() };
            return Ok(data);
        }
        let read = log.read(asked.fetch_offset, upper, most, at_least_one);
        if self.committed_only() {
            let txn = |txn: crate::log::AbortedTxn| AbortedTransaction {
                producer_id: txn.producer_id,
                first_offset: txn.first_offset,
                ..Default::default()
            };
            let aborted = log.aborted(asked.fetch_offset, read.next_offset.max(asked.fetch_offset));
            data.aborted_transactions = Some(aborted.into_iter().map(txn).collect());
        }
        data.records = Some(read.records);
        Ok(data)
    }
}

fn check<'a>(
    cluster: &'a mut Cluster,
    ctx: &RequestContext,
    topic: Uuid,
    asked: &FetchPartition,
) -> Result<&'a mut Partition, ErrorCode> {
    let partition = cluster.led_partition(ctx.node, topic, asked.partition, asked.current_leader_epoch)?;
    let log = &partition.log;
    if asked.fetch_offset < log.start_offset() || asked.fetch_offset > log.high_watermark() {
        return Err(ErrorCode::OFFSET_OUT_OF_RANGE);
    }
    Ok(partition)
}

/// Where the reader's past differs from the log, if it says which epoch it read last (KIP-595).
fn diverges(partition: &Partition, asked: &FetchPartition) -> Option<(i32, i64)> {
    if asked.last_fetched_epoch < 0 {
        return None;
    }
    let (epoch, end) = partition.log.end_of_epoch(asked.last_fetched_epoch);
    (epoch < asked.last_fetched_epoch || end < asked.fetch_offset).then_some((epoch, end))
}

fn failed(
    cluster: &Cluster,
    ctx: &RequestContext,
    topic: Result<Uuid, ErrorCode>,
    asked: &FetchPartition,
    code: ErrorCode,
    leaders: &mut Vec<i32>,
) -> PartitionData {
    let mut data = PartitionData {
        partition_index: asked.partition,
        error_code: code,
        high_watermark: -1,
        last_stable_offset: -1,
        log_start_offset: -1,
        preferred_read_replica: -1,
        records: Some(Bytes::new()),
        ..Default::default()
    };
    if ctx.version >= 16
        && is_stale(code)
        && let Ok(topic) = topic
    {
        let (leader_id, leader_epoch) = cluster.leader_of(topic, asked.partition);
        data.current_leader = LeaderIdAndEpoch { leader_id, leader_epoch, ..Default::default() };
        leaders.push(leader_id);
    }
    data
}
