//! What goes into the share consumer machine and what comes out of it.

use crate::Backoff;
use crate::metadata::{Leader, Node, TopicIdPartition};
use crate::share_acks::{Outcome, RecordHandle, SlotRef};
use crate::share_fetch::{self, CorruptBatch, DecodeLimits, Delivery, Entry};
use kafka_share_messages::{
    ErrorCode, ShareAcknowledgeRequest, ShareFetchRequest, ShareFetchResponse, ShareGroupHeartbeatRequest,
};
use kafka_share_wire::records::Record;
use kafka_share_wire::{Str, Uuid};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Settings of the machine.
#[derive(Debug, Clone)]
pub struct ConsumerConfig {
    /// `group.id`.
    pub group_id: Str,
    /// A member id that no other consumer uses.
    pub member_id: Str,
    /// `client.rack`.
    pub rack: Option<Str>,
    /// Whether coming back for more accepts what was delivered (`share.acknowledgement.mode=implicit`).
    pub implicit: bool,
    /// `max.poll.records`.
    pub max_poll_records: usize,
    /// `fetch.max.wait.ms`.
    pub max_wait: Duration,
    /// `fetch.min.bytes`.
    pub min_bytes: i32,
    /// `fetch.max.bytes`.
    pub max_bytes: i32,
    /// Whether `max.poll.records` is strict at the broker (`share.acquire.mode=record_limit`).
    pub record_limit: bool,
    /// Pause between retries.
    pub backoff: Backoff,
    /// Longest time an acknowledgement waits for a fetch to carry it; a quarter of the lock time if that is less.
    pub max_ack_age: Duration,
    /// Most acknowledgements that wait for a fetch to carry them.
    pub max_acks_pending: usize,
    /// Time for which a commit's acknowledgements are tried again.
    pub api_timeout: Duration,
    /// `metadata.max.age.ms`.
    pub metadata_max_age: Duration,
    /// Records that may wait here while the application works, beyond what it asked for; 0 fetches only while it waits.
    pub prefetch: usize,
    /// What the compressed batches of an answer may expand to.
    pub decode_limits: DecodeLimits,
    /// For how long the locks of records in the application's hands are renewed unasked; `None` renews nothing.
    pub lock_renewal: Option<Duration>,
}

/// What the shell must do.
#[derive(Debug)]
pub enum Action {
    /// Send to the group's coordinator; answer with `handle_heartbeat`.
    Heartbeat(u64, ShareGroupHeartbeatRequest),
    /// Send to a broker; answer with `handle_fetch`.
    Fetch(i32, u64, ShareFetchRequest),
    /// Send to a broker; answer with `handle_acknowledge`.
    Acknowledge(i32, u64, ShareAcknowledgeRequest),
    /// Ask for the metadata of these topics; answer with `handle_metadata` or `handle_metadata_failure`.
    RefreshMetadata(Vec<Str>),
}

/// A request without an answer.
#[derive(Debug, Clone)]
pub struct RequestFailure {
    /// Whether the broker may have acted on it.
    pub maybe_done: bool,
    /// Whether no retry can heal it (unsupported by the broker, say).
    pub fatal: bool,
    /// What happened.
    pub text: String,
}

/// Something the application should hear of.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConsumerEvent {
    /// An error that no retry heals; `poll` returns it.
    Error(ErrorCode, String),
    /// The same, without an error code.
    Failed(String),
    /// A corrupt batch was rejected.
    Corrupt(TopicIdPartition, CorruptBatch),
    /// A broker answered for a partition that it was not asked for; the answer is passed over.
    NotAskedFor(i32, TopicIdPartition),
    /// A partition's leader and addresses, as an error answer named them.
    LeaderHint(TopicIdPartition, Leader, Vec<Node>),
    /// The coordinator does not know this member any more; it joins again.
    Fenced(ErrorCode),
}

/// Outcomes of a commit, by share-partition; the first that is not `Acknowledged` stands for its partition.
pub type CommitResult = BTreeMap<TopicIdPartition, Outcome>;

/// Leaders of a topic's partitions, from metadata.
#[derive(Debug, Clone)]
pub struct TopicLeaders {
    /// Topic id.
    pub id: Uuid,
    /// Name.
    pub name: Str,
    /// Leaders by partition; id -1 where there is none.
    pub leaders: Vec<Leader>,
}

/// A part of a delivery that was handed to the application.
#[derive(Debug, Clone)]
pub struct Chunk {
    /// The delivery it is part of.
    pub delivery: Arc<Delivery>,
    pub(super) slot: SlotRef,
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) lock_until: Instant,
}

impl Chunk {
    /// The share-partition.
    #[must_use]
    #[inline]
    pub fn tp(&self) -> TopicIdPartition {
        self.delivery.tp
    }

    /// The records' entries.
    #[must_use]
    #[inline]
    pub fn entries(&self) -> &[Entry] {
        &self.delivery.entries[self.start..self.end]
    }

    /// When the locks of these records end, as known when they were handed out.
    #[must_use]
    pub fn lock_until(&self) -> Instant {
        self.lock_until
    }

    pub(super) fn indexes(&self) -> impl Iterator<Item = u32> + Clone + '_ {
        self.entries().iter().map(|e| e.index)
    }

    /// Handle of a record.
    #[must_use]
    #[inline]
    pub fn handle(&self, entry: &Entry) -> RecordHandle {
        RecordHandle { slot: self.slot, index: entry.index }
    }

    /// The record itself.
    ///
    /// # Panics
    /// With an entry that is not of this delivery. Entries of it were decoded once before.
    #[must_use]
    #[inline]
    pub fn record(&self, entry: &Entry) -> Record<'_> {
        let record = self.delivery.batches.get(entry.batch as usize).map(|b| b.record_at(entry.position));
        record.and_then(Result::ok).expect("an entry of this delivery")
    }
}

/// A ShareFetch answer, decoded outside of any lock.
#[derive(Debug)]
pub struct FetchAnswer {
    /// Error of the whole answer.
    pub error: ErrorCode,
    /// The broker's words on it.
    pub message: Option<String>,
    /// Length of the acquisition lock.
    pub lock: Duration,
    /// Partitions.
    pub partitions: Vec<FetchPartition>,
    /// Addresses of the leaders named.
    pub nodes: Vec<Node>,
    /// Whether the broker can renew locks.
    pub renewals: bool,
}

/// One partition of a ShareFetch answer.
#[derive(Debug)]
pub struct FetchPartition {
    /// The share-partition.
    pub tp: TopicIdPartition,
    /// Why nothing was fetched.
    pub error: ErrorCode,
    /// The broker's words on it.
    pub message: Option<String>,
    /// What became of the acknowledgements.
    pub ack_error: ErrorCode,
    /// Leader named by the broker.
    pub leader: Leader,
    /// What was acquired.
    pub delivery: Delivery,
}

/// Decodes a ShareFetch answer. `limits` bound what compressed batches may expand to. `renewals`: whether the broker has
/// ShareAcknowledge version 2.
#[must_use]
pub fn decode_fetch(response: ShareFetchResponse, limits: DecodeLimits, renewals: bool) -> FetchAnswer {
    let mut room = share_fetch::Room::new(limits);
    let rows =
        response.responses.into_iter().flat_map(|topic| topic.partitions.into_iter().map(move |p| (topic.topic_id, p)));
    let partitions: Vec<FetchPartition> = rows
        .map(|(topic_id, p)| {
            let tp = TopicIdPartition { topic_id, partition: p.partition_index };
            let delivery = share_fetch::decode_within(tp, p.records, &p.acquired_records, &mut room);
            FetchPartition {
                tp,
                error: p.error_code,
                message: p.error_message.as_ref().map(ToString::to_string),
                ack_error: p.acknowledge_error_code,
                leader: Leader { id: p.current_leader.leader_id, epoch: p.current_leader.leader_epoch },
                delivery,
            }
        })
        .collect();
    let node = |n: &kafka_share_messages::share_fetch_response::NodeEndpoint| {
        Some(Node { id: n.node_id, host: n.host.detached(), port: u16::try_from(n.port).ok()? })
    };
    FetchAnswer {
        error: response.error_code,
        message: response.error_message.as_ref().map(ToString::to_string),
        lock: Duration::from_millis(u64::try_from(response.acquisition_lock_timeout_ms).unwrap_or(0)),
        partitions,
        nodes: response.node_endpoints.iter().filter_map(node).collect(),
        renewals,
    }
}
