//! Fetch (v4-18): whole stored batches, without a copy. Topic ids from v13 on; leader hints from v16 on.
//!
//! Incremental sessions (KIP-227) are opened, followed and ended as [`FetchSessions`](crate::fetch_sessions) says.
//! The request waits until `min_bytes` can be read, a partition has an error, or `max_wait_ms` is over.

use super::leader_hints::{endpoints, is_stale};
use super::{Answer, Outcome, RequestContext};
use crate::cluster::{Cluster, Parked, Partition, TopicRef, WaitKey};
use crate::fetch_sessions::{CachedPartition, Context, Followed, Seen};
use crate::security::Operation;
use bytes::Bytes;
use kafka_share_messages::fetch_request::FetchPartition;
use kafka_share_messages::fetch_response::{
    AbortedTransaction, EpochEndOffset, FetchableTopicResponse, LeaderIdAndEpoch, NodeEndpoint, PartitionData,
};
use kafka_share_messages::{ErrorCode, FetchRequest, FetchResponse};
use kafka_share_wire::Uuid;

/// Most bytes of one answer (`fetch.max.bytes` of a broker).
const MAX_BYTES: usize = 55 << 20;

pub(crate) fn handle(cluster: &mut Cluster, ctx: &RequestContext, mut request: FetchRequest) -> Outcome<FetchResponse> {
    let by_id = ctx.version >= 13;
    let entered = cluster.fetch_sessions.enter(ctx.now.mono, ctx.node, &request, by_id);
    let (context, followed) = match entered {
        Ok(entered) => entered,
        Err(error_code) => return Outcome::Reply(FetchResponse { error_code, ..Default::default() }),
    };
    request.topics.clear();
    request.forgotten_topics_data.clear();
    let fetch = Fetch { parts: resolve(cluster, ctx, followed), context, request };
    let wait = fetch.request.max_wait_ms;
    if wait <= 0 || fetch.is_ready(cluster, ctx) {
        return Outcome::Reply(fetch.answer(cluster, ctx));
    }
    Outcome::Park { deadline: ctx.now.after_ms(i64::from(wait)), keys: fetch.keys(), parked: Box::new(fetch) }
}

/// A partition to read.
struct Reading {
    followed: Followed,
    topic: Result<Uuid, ErrorCode>,
    /// Whether metadata knows it. Others are answered last and end no wait.
    exists: bool,
}

/// Finds the topics; partitions that do not exist come last.
fn resolve(cluster: &Cluster, ctx: &RequestContext, followed: Vec<Followed>) -> Vec<Reading> {
    let by_id = ctx.version >= 13;
    let find = |followed: Followed| {
        let key = &followed.key;
        let by = if by_id { TopicRef::Id(key.topic_id) } else { TopicRef::Name(&key.topic) };
        let found = cluster.allowed_topic(ctx, Operation::Read, &by);
        let exists = found.as_ref().is_ok_and(|topic| topic.partition(key.partition).is_some());
        let topic = found.map(|topic| topic.id);
        Reading { followed, topic, exists }
    };
    let mut parts: Vec<Reading> = followed.into_iter().map(find).collect();
    parts.sort_by_key(|part| !part.exists);
    parts
}

struct Fetch {
    /// Without its topics, which are in `parts`.
    request: FetchRequest,
    context: Context,
    parts: Vec<Reading>,
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
    fn existing(&self) -> impl Iterator<Item = (Uuid, &FetchPartition)> {
        let parts = self.parts.iter().filter(|part| part.exists);
        parts.filter_map(|part| Some((*part.topic.as_ref().ok()?, &part.followed.asked)))
    }

    fn keys(&self) -> Vec<WaitKey> {
        self.existing().map(|(topic, asked)| WaitKey::Partition(topic, asked.partition)).collect()
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
        if self.existing().next().is_none() {
            return true;
        }
        for (topic, asked) in self.existing() {
            let Ok(partition) = check(cluster, ctx, topic, asked) else { return true };
            if !matches!(diverges(partition, asked), Ok(None)) {
                return true;
            }
            let upper = self.upper(partition);
            let most = usize::try_from(asked.partition_max_bytes).unwrap_or(0);
            bytes += partition.log.readable(asked.fetch_offset, upper, enough.min(most.max(1)));
        }
        bytes >= enough
    }

    fn answer(&self, cluster: &mut Cluster, ctx: &RequestContext) -> FetchResponse {
        let mut left = usize::try_from(self.request.max_bytes).unwrap_or(0).min(MAX_BYTES);
        let mut nothing_yet = true;
        let mut leaders = Vec::new();
        let mut all = Vec::with_capacity(self.parts.len());
        for part in &self.parts {
            let asked = &part.followed.asked;
            let result = match part.topic {
                Ok(id) => self.read(cluster, ctx, id, asked, left, nothing_yet),
                Err(code) => Err(code),
            };
            let data = result.unwrap_or_else(|code| {
                let mut data = failed(cluster, ctx, part.topic, asked, code, &mut leaders);
                // As Kafka: null where the log was asked, empty where there is none.
                data.aborted_transactions = (!part.exists).then(Vec::new);
                data
            });
            let size = data.records.as_ref().map_or(0, Bytes::len);
            left = left.saturating_sub(size);
            nothing_yet &= size == 0;
            all.push(data);
        }
        let (session_id, told) = match self.tell(cluster, ctx, &all) {
            Ok(told) => told,
            Err(error_code) => return FetchResponse { error_code, ..Default::default() },
        };
        let told = self.parts.iter().zip(all).zip(told).filter(|(_, told)| *told).map(|(part, _)| part);
        let node = |(node_id, host, port)| NodeEndpoint { node_id, host, port, ..Default::default() };
        let node_endpoints = endpoints(cluster, ctx.listener, leaders).into_iter().map(node).collect();
        FetchResponse { session_id, responses: by_topic(told), node_endpoints, ..Default::default() }
    }

    /// The session that the answer names, and for each partition whether the answer has it.
    fn tell(
        &self,
        cluster: &mut Cluster,
        ctx: &RequestContext,
        all: &[PartitionData],
    ) -> Result<(i32, Vec<bool>), ErrorCode> {
        let seen = self.parts.iter().zip(all).map(|(part, data)| (part.followed.key.clone(), seen_of(data)));
        match self.context {
            Context::Sessionless => Ok((0, vec![true; all.len()])),
            Context::Full => {
                let cached = self.parts.iter().zip(all);
                let cached =
                    cached.map(|(part, data)| CachedPartition::new(part.followed.clone(), Some(&seen_of(data))));
                let by_id = ctx.version >= 13;
                let (now, partitions) = (ctx.now.mono, cached.collect());
                let id = cluster.fetch_sessions.open(now, ctx.node, by_id, partitions, &mut cluster.rng);
                Ok((id, vec![true; all.len()]))
            }
            Context::Incremental { session, epoch } => {
                let seen: Vec<_> = seen.collect();
                Ok((session, cluster.fetch_sessions.tell(ctx.node, (session, epoch), &seen)?))
            }
        }
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
        let diverging = diverges(partition, asked)?;
        let upper = self.upper(partition);
        let log = &mut partition.log;
        let most = usize::try_from(asked.partition_max_bytes).unwrap_or(0).min(left);
        let mut data = PartitionData {
            partition_index: asked.partition,
            high_watermark: log.high_watermark(),
            last_stable_offset: log.last_stable_offset(),
            log_start_offset: log.start_offset(),
            preferred_read_replica: -1,
            aborted_transactions: None,
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

fn seen_of(data: &PartitionData) -> Seen {
    Seen {
        high_watermark: data.high_watermark,
        log_start_offset: data.log_start_offset,
        has_records: data.records.as_ref().is_some_and(|records| !records.is_empty()),
        failed: !data.error_code.is_ok(),
        diverges: data.diverging_epoch.end_offset >= 0,
    }
}

/// Groups neighbours of one topic.
fn by_topic<'a>(all: impl Iterator<Item = (&'a Reading, PartitionData)>) -> Vec<FetchableTopicResponse> {
    let mut topics: Vec<FetchableTopicResponse> = Vec::new();
    for (part, data) in all {
        let key = &part.followed.key;
        match topics.last_mut() {
            Some(last) if last.topic_id == key.topic_id && last.topic == key.topic => last.partitions.push(data),
            _ => topics.push(FetchableTopicResponse {
                topic: key.topic.clone(),
                topic_id: key.topic_id,
                partitions: vec![data],
                ..Default::default()
            }),
        }
    }
    topics
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

/// Where the reader's past differs from the log, if it says which epoch it read last (KIP-595). An epoch that is yet to come
/// is out of range.
fn diverges(partition: &Partition, asked: &FetchPartition) -> Result<Option<(i32, i64)>, ErrorCode> {
    if asked.last_fetched_epoch < 0 {
        return Ok(None);
    }
    if asked.last_fetched_epoch > partition.leader_epoch {
        return Err(ErrorCode::OFFSET_OUT_OF_RANGE);
    }
    let (epoch, end) = partition.log.end_of_epoch(asked.last_fetched_epoch);
    Ok((epoch < asked.last_fetched_epoch || end < asked.fetch_offset).then_some((epoch, end)))
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
