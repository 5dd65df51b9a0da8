//! A share fetch: acquiring from the partitions of a session, and waiting for records.

use super::response::{fetch_endpoints, leader_of};
use super::sessions::SessionKey;
use crate::GroupConfig;
use crate::api::{Answer, RequestContext};
use crate::cluster::{Cluster, Parked, WaitKey};
use crate::share_coordinator::ShareKey;
use crate::share_partition::{AcquireLimits, Acquired, Extent};
use kafka_share_messages::share_fetch_response::{
    AcquiredRecords, LeaderIdAndEpoch, PartitionData, ShareFetchableTopicResponse,
};
use kafka_share_messages::{ErrorCode, ShareFetchResponse};
use kafka_share_wire::{Str, Uuid};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

/// What became of the acknowledgements that came with a fetch.
#[derive(Debug, Clone)]
pub(crate) struct AckResult {
    pub(crate) tp: (Uuid, i32),
    pub(crate) code: ErrorCode,
    pub(crate) message: Option<Str>,
}

/// A share fetch that is being served or waits.
pub(crate) struct ShareFetch {
    pub(crate) session: SessionKey,
    /// Partitions of the session, rotated.
    pub(crate) partitions: Vec<(Uuid, i32)>,
    pub(crate) acks: Vec<AckResult>,
    pub(crate) max_records: i64,
    pub(crate) batch_size: i64,
    pub(crate) strict: bool,
    pub(crate) min_bytes: usize,
    pub(crate) max_bytes: usize,
    /// The session is new: all partitions are told of.
    pub(crate) full: bool,
    /// Partitions that could not be fetched when the request came.
    pub(crate) errors: usize,
}

/// What one attempt has found.
#[derive(Default)]
struct Found {
    partitions: Vec<((Uuid, i32), PartitionData)>,
    errors: usize,
    acquired: bool,
}

impl ShareFetch {
    /// What to wait for.
    pub(crate) fn wait_keys(&self) -> Vec<WaitKey> {
        let keys = |(topic, partition): &(Uuid, i32)| {
            let group = self.session.group.clone();
            [WaitKey::Partition(*topic, *partition), WaitKey::SharePartition(group, *topic, *partition)]
        };
        self.partitions.iter().flat_map(keys).collect()
    }

    /// Serves the fetch if there is something to give, or if it must be answered now.
    pub(crate) fn attempt(
        &mut self,
        cluster: &mut Cluster,
        ctx: &RequestContext,
        must_answer: bool,
    ) -> Option<ShareFetchResponse> {
        let config = cluster.share_config(&self.session.group);
        let mut found = Found::default();
        if !self.partitions.is_empty() && cluster.share.sessions.get_mut(&self.session).is_none() {
            // The member left while this waited: what it acquired now would stay locked for nothing.
            self.partitions.clear();
            return Some(self.response(cluster, ctx.listener, &config, found));
        }
        let enough = must_answer || self.enough_bytes(cluster, ctx, &config);
        if enough {
            self.acquire(cluster, ctx, &config, &mut found);
        } else {
            found.errors = self.count_errors(cluster, ctx);
        }
        let broken = found.errors > self.errors || (found.errors == self.partitions.len() && found.errors > 0);
        if !must_answer && !found.acquired && !broken {
            return None;
        }
        if !enough {
            self.acquire(cluster, ctx, &config, &mut found);
        }
        Some(self.response(cluster, ctx.listener, &config, found))
    }

    /// Errors as of now, which answers of later attempts are compared with.
    pub(crate) fn count_errors(&self, cluster: &Cluster, ctx: &RequestContext) -> usize {
        let node = self.session.node;
        let fails = |(topic, p): &&(Uuid, i32)| {
            cluster.may_read(ctx, *topic).is_err() || cluster.share_leader(node, *topic, *p).is_err()
        };
        self.partitions.iter().filter(fails).count()
    }

    fn enough_bytes(&self, cluster: &mut Cluster, ctx: &RequestContext, config: &GroupConfig) -> bool {
        if self.min_bytes <= 1 {
            return true;
        }
        let mut bytes = 0;
        for tp in &self.partitions {
            if prepare(cluster, ctx, self.session.node, &self.session.group, *tp).is_err() {
                continue;
            }
            let Cluster { topics, share, .. } = cluster;
            let key = ShareKey { group: self.session.group.clone(), topic: tp.0, partition: tp.1 };
            let (Some(live), Some(partition)) =
                (share.live_mut(&key), topics.by_id(tp.0).and_then(|topic| topic.partition(tp.1)))
            else {
                continue;
            };
            if !live.machine.can_acquire(config.max_record_locks as i64) {
                continue;
            }
            let upper = upper(config, &partition.log);
            bytes += partition.log.readable(live.machine.next_fetch_offset(), upper, self.min_bytes);
            if bytes >= self.min_bytes {
                return true;
            }
        }
        false
    }

    fn acquire(&self, cluster: &mut Cluster, ctx: &RequestContext, config: &GroupConfig, found: &mut Found) {
        let mut left = self.max_records;
        let share_of_bytes = self.max_bytes / self.partitions.len().max(1);
        found.errors = 0;
        for tp in &self.partitions {
            let limits = AcquireLimits {
                max_records: left,
                batch_size: self.batch_size,
                strict: self.strict,
                max_locks: config.max_record_locks as i64,
                delivery_limit: config.delivery_count_limit,
                deadline: ctx.now.after_ms(config.record_lock_duration_ms),
            };
            if let Err(code) = prepare(cluster, ctx, self.session.node, &self.session.group, *tp) {
                found.errors += 1;
                found.partitions.push((*tp, failed(cluster, *tp, code)));
                continue;
            }
            if left <= 0 {
                continue;
            }
            let Gotten { records, got, acquired } =
                acquire_one(cluster, &self.session, *tp, config, &limits, share_of_bytes);
            // Even where all of it was filtered out as aborted: Kafka answers then, with nothing.
            found.acquired |= acquired;
            if got.is_empty() {
                continue;
            }
            left -= got.iter().map(Acquired::len).sum::<i64>();
            let ranges = got.into_iter().map(|range| AcquiredRecords {
                first_offset: range.first,
                last_offset: range.last,
                delivery_count: range.count,
                ..Default::default()
            });
            let data = PartitionData {
                partition_index: tp.1,
                records: Some(records),
                acquired_records: ranges.collect(),
                ..Default::default()
            };
            found.partitions.push((*tp, data));
        }
    }

    fn response(
        &mut self,
        cluster: &Cluster,
        listener: usize,
        config: &Arc<GroupConfig>,
        found: Found,
    ) -> ShareFetchResponse {
        let mut all = Answered::new(found.partitions);
        if self.full {
            for tp in &self.partitions {
                all.of(*tp);
            }
        }
        for result in std::mem::take(&mut self.acks) {
            let data = all.of(result.tp);
            data.acknowledge_error_code = result.code;
            data.acknowledge_error_message = result.message;
            if result.code == ErrorCode::NOT_LEADER_OR_FOLLOWER {
                data.current_leader = hint(cluster, result.tp);
            }
        }
        let all = all.partitions;
        let leaders: BTreeSet<i32> = all.iter().map(|(_, data)| data.current_leader.leader_id).collect();
        let mut responses: Vec<ShareFetchableTopicResponse> = Vec::new();
        let mut places: HashMap<Uuid, usize> = HashMap::new();
        for ((topic_id, _), data) in all {
            let place = *places.entry(topic_id).or_insert(responses.len());
            if place == responses.len() {
                responses.push(ShareFetchableTopicResponse { topic_id, ..Default::default() });
            }
            responses[place].partitions.push(data);
        }
        // 0 is the default of an unset hint; only nodes that hints name are told of.
        let named = |id: &i32| {
            responses.iter().flat_map(|r| &r.partitions).any(|p| p.current_leader.leader_id == *id && is_not_leader(p))
        };
        let leaders = leaders.into_iter().filter(named).collect();
        ShareFetchResponse {
            acquisition_lock_timeout_ms: i32::try_from(config.record_lock_duration_ms).unwrap_or(i32::MAX),
            responses,
            node_endpoints: fetch_endpoints(cluster, listener, &leaders),
            ..Default::default()
        }
    }
}

fn is_not_leader(data: &PartitionData) -> bool {
    [data.error_code, data.acknowledge_error_code].contains(&ErrorCode::NOT_LEADER_OR_FOLLOWER)
}

/// The partitions of an answer, in order.
struct Answered {
    partitions: Vec<((Uuid, i32), PartitionData)>,
    places: HashMap<(Uuid, i32), usize>,
}

impl Answered {
    fn new(partitions: Vec<((Uuid, i32), PartitionData)>) -> Self {
        let places = partitions.iter().enumerate().map(|(place, (tp, _))| (*tp, place)).collect();
        Answered { partitions, places }
    }

    /// What is answered for a partition, which comes last if it was not there.
    fn of(&mut self, tp: (Uuid, i32)) -> &mut PartitionData {
        let place = *self.places.entry(tp).or_insert(self.partitions.len());
        if place == self.partitions.len() {
            let records = Some(bytes::Bytes::new());
            self.partitions.push((tp, PartitionData { partition_index: tp.1, records, ..Default::default() }));
        }
        &mut self.partitions[place].1
    }
}

fn hint(cluster: &Cluster, tp: (Uuid, i32)) -> LeaderIdAndEpoch {
    let (leader_id, leader_epoch) = leader_of(cluster, tp.0, tp.1);
    LeaderIdAndEpoch { leader_id, leader_epoch, ..Default::default() }
}

fn failed(cluster: &Cluster, tp: (Uuid, i32), code: ErrorCode) -> PartitionData {
    let current_leader =
        if code == ErrorCode::NOT_LEADER_OR_FOLLOWER { hint(cluster, tp) } else { LeaderIdAndEpoch::default() };
    PartitionData {
        partition_index: tp.1,
        error_code: code,
        current_leader,
        records: Some(bytes::Bytes::new()),
        ..Default::default()
    }
}

/// Offsets from which on readers must wait.
fn upper(config: &GroupConfig, log: &crate::log::PartitionLog) -> i64 {
    if config.read_committed { log.last_stable_offset() } else { log.high_watermark() }
}

/// Checks the leader and loads the share-partition.
fn prepare(
    cluster: &mut Cluster,
    ctx: &RequestContext,
    node: i32,
    group: &Str,
    tp: (Uuid, i32),
) -> Result<(), ErrorCode> {
    cluster.may_read(ctx, tp.0)?;
    cluster.share_leader(node, tp.0, tp.1)?;
    cluster.load_share_partition(ctx.now, group, tp).map_err(|refusal| refusal.code)
}

/// What one partition gave.
#[derive(Default)]
struct Gotten {
    records: bytes::Bytes,
    got: Vec<Acquired>,
    /// Something was acquired, though perhaps nothing that is delivered.
    acquired: bool,
}

/// Acquires from one partition: the record batches to send, and which of their records are acquired.
fn acquire_one(
    cluster: &mut Cluster,
    session: &SessionKey,
    tp: (Uuid, i32),
    config: &GroupConfig,
    limits: &AcquireLimits,
    max_bytes: usize,
) -> Gotten {
    let nothing = Gotten::default();
    let Cluster { topics, share, .. } = cluster;
    let Some(partition) = topics.by_id_mut(tp.0).and_then(|topic| topic.partition_mut(tp.1)) else { return nothing };
    let log = &mut partition.log;
    let key = ShareKey { group: session.group.clone(), topic: tp.0, partition: tp.1 };
    let mut extents = std::mem::take(&mut share.extents);
    let Some(live) = share.live_mut(&key) else { return nothing };
    let machine = &mut live.machine;
    let start = machine.start();
    machine.advance_to(log.start_offset());
    let (mut got, mut acquired) = (Vec::new(), false);
    if machine.can_acquire(limits.max_locks) {
        let upper = upper(config, log);
        let from = machine.next_fetch_offset();
        collect(log, from, upper, machine.end() + limits.max_records, max_bytes, &mut extents);
        machine.acquire(&session.member, limits, &extents, &mut got);
        acquired = !got.is_empty();
        if config.read_committed {
            drop_aborted(log, machine, &mut got);
        }
    }
    let moved = machine.start() != start;
    share.extents = extents;
    // Acquiring is not stored: locks and delivery counts of records under one do not outlive the leader.
    if moved {
        share.start_moved(&key);
    }
    share.arm(&key);
    let (Some(first), Some(last)) = (got.first(), got.last()) else { return Gotten { acquired, ..nothing } };
    let read = log.read(first.first, last.last + 1, usize::MAX, true);
    Gotten { records: read.records, got, acquired }
}

/// The log's batches from `from` on, as far as bytes and records may be wanted.
fn collect(
    log: &crate::log::PartitionLog,
    from: i64,
    upper: i64,
    enough: i64,
    max_bytes: usize,
    extents: &mut Vec<Extent>,
) {
    extents.clear();
    let mut bytes = 0;
    for batch in log.batches(from, upper) {
        bytes += batch.len as usize;
        if !extents.is_empty() && bytes > max_bytes {
            return;
        }
        extents.push(Extent { base: batch.base_offset, last: batch.last_offset });
        if batch.last_offset >= enough {
            return;
        }
    }
}

/// Takes records of aborted transactions out of what was acquired; they are done.
fn drop_aborted(
    log: &crate::log::PartitionLog,
    machine: &mut crate::share_partition::SharePartition,
    got: &mut Vec<Acquired>,
) {
    let (Some(first), Some(last)) = (got.first().map(|a| a.first), got.last().map(|a| a.last)) else { return };
    let aborted = log.aborted(first, last + 1);
    if aborted.is_empty() {
        return;
    }
    let hit = |batch: &&crate::log::BatchEntry| {
        let inside = |txn: &crate::log::AbortedTxn| {
            txn.producer_id == batch.producer_id
                && txn.first_offset <= batch.base_offset
                && batch.last_offset < txn.last_offset
        };
        batch.transactional && !batch.control && aborted.iter().any(inside)
    };
    for batch in log.batches(first, last + 1).filter(hit) {
        let (from, to) = (batch.base_offset, batch.last_offset);
        let parts: Vec<Acquired> = std::mem::take(got);
        for range in parts {
            if range.last < from || range.first > to {
                got.push(range);
                continue;
            }
            machine.archive_acquired(range.first.max(from), range.last.min(to));
            if range.first < from {
                got.push(Acquired { last: from - 1, ..range });
            }
            if range.last > to {
                got.push(Acquired { first: to + 1, ..range });
            }
        }
    }
}

impl Parked for ShareFetch {
    fn resume(&mut self, cluster: &mut Cluster, ctx: &RequestContext, expired: bool) -> Option<Answer> {
        let response = self.attempt(cluster, ctx, expired)?;
        Some(ctx.answer(&response))
    }
}
