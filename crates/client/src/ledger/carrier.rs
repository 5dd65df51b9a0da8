//! The task behind a tail: fetches one ledger partition uncommitted, through leader moves, fences owners that are due, and
//! asks for the group's start offsets now and then.

use super::elsewhere;
use super::gone::gone;
use super::tail::Shared;
use crate::admin::Admin;
use crate::alarm::Alarm;
use crate::net::{Cluster, CoordinatorKind, Purpose};
use crate::{Error, ErrorKind, Result};
use kafka_share_core::ledger::{FenceOrder, SweepPartition, Want};
use kafka_share_core::metadata::TopicIdPartition;
use kafka_share_core::transaction::ProducerIdentity;
use kafka_share_messages::fetch_request::{FetchPartition, FetchTopic};
use kafka_share_messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
use kafka_share_messages::{ErrorCode, FetchRequest, InitProducerIdRequest, ListOffsetsRequest};
use kafka_share_wire::{Str, Uuid};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

const FETCH_BYTES: i32 = 8 << 20;
const MAX_WAIT_MS: i32 = 500;
const EARLIEST: i64 = -2;
const LATEST: i64 = -1;
/// A fence is an attempt that is not made twice.
const FENCE_TIME: Duration = Duration::from_secs(30);
/// `transaction.timeout.ms` of a fence: the default. It is in force until the owner is initialised again, and so for an owner too
/// that had ended its transaction in the same moment, and goes on.
const FENCE_TIMEOUT_MS: i32 = 60_000;
/// The same for brokers whose `transaction.max.timeout.ms` is lower.
const SHORT_FENCE_TIMEOUT_MS: i32 = 1_000;
/// Between two fetches of a member that writes and is alone: else each of its transactions would be read back in two of them.
const REST: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

pub(super) struct Carrier {
    shared: Arc<Shared>,
    /// The tail's own connection: its fetches wait at the broker, and answers come in order.
    owner: crate::net::SessionOwner,
    tasks: JoinSet<()>,
    sweep_at: Instant,
}

impl Drop for Carrier {
    fn drop(&mut self) {
        self.shared.cluster.drop_sessions(self.owner);
    }
}

impl Carrier {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        let owner = shared.cluster.new_session_owner();
        let sweep_at = Instant::now() + shared.sweep_interval;
        Carrier { shared, owner, tasks: JoinSet::new(), sweep_at }
    }

    pub(super) async fn run(mut self) {
        let mut attempt = 0;
        let mut alarm = Alarm::new();
        loop {
            let shared = Arc::clone(&self.shared);
            let owner = self.owner;
            let step = async move {
                let result = step(&shared, owner).await;
                match result {
                    Ok(true) => {
                        shared.note_failure(None);
                        0
                    }
                    Ok(false) => std::future::pending().await,
                    Err(error) => {
                        tracing::debug!(%error, partition = shared.partition, "the ledger was not read");
                        shared.note_failure(Some(error));
                        tokio::time::sleep(shared.cluster.retry_pause(attempt + 1).min(LONGEST_PAUSE)).await;
                        refresh(&shared).await;
                        attempt + 1
                    }
                }
            };
            match self.meanwhile(step, &mut alarm).await {
                Some(attempts) => attempt = attempts,
                None => return,
            }
        }
    }

    /// Does what else is due until a step is done; `None` when the tail is gone.
    async fn meanwhile<T>(&mut self, step: impl Future<Output = T>, alarm: &mut Alarm) -> Option<T> {
        let mut step = std::pin::pin!(step);
        loop {
            if self.shared.stopped.load(Ordering::Acquire) {
                return None;
            }
            while self.tasks.try_join_next().is_some() {}
            while let Some(order) = self.shared.with(|reader| reader.poll_fence(Instant::now())) {
                self.tasks.spawn(fence(Arc::clone(&self.shared), order));
            }
            if self.sweep_at <= Instant::now() {
                self.sweep_at = Instant::now() + self.shared.sweep_interval;
                self.tasks.spawn(sweep(Arc::clone(&self.shared)));
            }
            let deadline = self.shared.with(|reader| reader.next_deadline());
            let deadline = deadline.map_or(self.sweep_at, |deadline| deadline.min(self.sweep_at));
            tokio::select! {
                biased;
                () = self.shared.work.notified() => {}
                result = &mut step => return Some(result),
                () = alarm.until(Some(deadline)) => {}
            }
        }
    }
}

/// One request for the reader; false where it wants none.
async fn step(shared: &Shared, owner: crate::net::SessionOwner) -> Result<bool> {
    match shared.with(|reader| reader.want()) {
        Want::Nothing => return Ok(false),
        Want::Bounds => {
            if !shared.looked_elsewhere.load(Ordering::Relaxed) {
                elsewhere::check(&shared.cluster, &shared.topic, shared.partition).await?;
                shared.looked_elsewhere.store(true, Ordering::Relaxed);
            }
            let (start, end) = (bound(shared, EARLIEST).await?, bound(shared, LATEST).await?);
            shared.with(|reader| reader.handle_bounds(start, end));
        }
        Want::Records(_) => {
            rest(shared).await;
            if let Want::Records(offset) = shared.with(|reader| reader.want()) {
                fetch(shared, owner, offset).await?;
            }
        }
    }
    Ok(true)
}

/// Leaves the ledger alone for a while, where nothing is missed by it.
async fn rest(shared: &Shared) {
    if shared.with(|reader| reader.is_alone(Instant::now())) {
        // Whoever asks is answered with whatever it brings: an early end does no harm.
        let _ = tokio::time::timeout(REST, shared.asked.notified()).await;
    }
}

/// The leader, of a topic that is still the one that was opened.
async fn leader(shared: &Shared, deadline: Instant) -> Result<i32> {
    let ledger = &shared.topic;
    let find = || async { shared.cluster.topic(&ledger.name, false, deadline).await.map_err(|e| allowed(shared, e)) };
    let mut topic = find().await?;
    if topic.id != ledger.id || topic.leaders.len() != ledger.layout.partitions() as usize {
        // What was learned before may be older than the ledger's description.
        shared.cluster.refresh_topics(&[Str::from(&ledger.name)], deadline).await?;
        topic = find().await?;
    }
    if topic.id != ledger.id {
        return Err(ledger.unusable("it was deleted and made anew: stop all members, then start them again"));
    }
    if topic.leaders.len() != ledger.layout.partitions() as usize {
        return Err(ledger.unusable(format_args!(
            "it has {} partitions now and had {}: their number must never change; stop all members, and create a new \
             ledger under another name",
            topic.leaders.len(),
            ledger.layout.partitions()
        )));
    }
    let tp = TopicIdPartition { topic_id: ledger.id, partition: shared.partition };
    match shared.cluster.leader(tp) {
        Some(leader) => Ok(leader.id),
        None => Err(Error::broker(ErrorCode::LEADER_NOT_AVAILABLE, format_args!("reading {}", place(shared)), None)),
    }
}

fn place(shared: &Shared) -> String {
    format!("ledger {}-{}", shared.topic.name, shared.partition)
}

fn allowed(shared: &Shared, error: Error) -> Error {
    match error.code() {
        Some(ErrorCode::TOPIC_AUTHORIZATION_FAILED) => shared.topic.unauthorised("READ"),
        _ => error,
    }
}

async fn refresh(shared: &Shared) {
    let deadline = shared.cluster.request_deadline(Instant::now() + FENCE_TIME);
    if let Err(error) = shared.cluster.refresh_topics(&[Str::from(&shared.topic.name)], deadline).await {
        tracing::debug!(%error, "metadata of the ledger was not refreshed");
    }
}

async fn bound(shared: &Shared, timestamp: i64) -> Result<i64> {
    let deadline = shared.cluster.request_deadline(Instant::now() + FENCE_TIME);
    let leader = leader(shared, deadline).await?;
    let partition = ListOffsetsPartition {
        partition_index: shared.partition,
        current_leader_epoch: -1,
        timestamp,
        ..ListOffsetsPartition::default()
    };
    let row =
        ListOffsetsTopic { name: Str::from(&shared.topic.name), partitions: vec![partition], ..Default::default() };
    let request = ListOffsetsRequest {
        replica_id: -1,
        isolation_level: 0,
        topics: vec![row],
        timeout_ms: 30_000,
        ..ListOffsetsRequest::default()
    };
    let response = shared.cluster.call_node(leader, Purpose::Coordination, &request, deadline).await?;
    let answer = response.topics.iter().flat_map(|t| &t.partitions).find(|p| p.partition_index == shared.partition);
    let answer = answer.ok_or_else(|| left_out(shared))?;
    match answer.error_code {
        ErrorCode::NONE if answer.offset >= 0 => Ok(answer.offset),
        ErrorCode::NONE => Err(left_out(shared)),
        code => Err(allowed(shared, Error::broker(code, format_args!("bounds of {}", place(shared)), None))),
    }
}

fn left_out(shared: &Shared) -> Error {
    let text = format!("reading {}: the broker's answer leaves it out", place(shared));
    Error::new(ErrorKind::Protocol, text).with_severity(crate::Severity::Retriable)
}

async fn fetch(shared: &Shared, owner: crate::net::SessionOwner, offset: i64) -> Result<()> {
    let deadline = shared.cluster.request_deadline(Instant::now() + FENCE_TIME);
    let leader = leader(shared, deadline).await?;
    let row = FetchPartition {
        partition: shared.partition,
        current_leader_epoch: -1,
        fetch_offset: offset,
        partition_max_bytes: FETCH_BYTES,
        ..FetchPartition::default()
    };
    let topic = FetchTopic {
        topic: Str::from(&shared.topic.name),
        topic_id: shared.topic.id,
        partitions: vec![row],
        ..FetchTopic::default()
    };
    let request = FetchRequest {
        max_wait_ms: MAX_WAIT_MS,
        min_bytes: 1,
        max_bytes: FETCH_BYTES,
        isolation_level: 0,
        session_epoch: -1,
        topics: vec![topic],
        ..FetchRequest::default()
    };
    let response = shared.cluster.call_node(leader, Purpose::Session(owner), &request, deadline).await?;
    let answers = response.responses.into_iter().flat_map(|t| t.partitions);
    let answer = answers.into_iter().find(|p| p.partition_index == shared.partition);
    let code = answer.as_ref().map_or(response.error_code, |a| a.error_code);
    match (code, answer) {
        (ErrorCode::NONE, Some(answer)) => {
            let records = answer.records.unwrap_or_default();
            let read = |r: &mut kafka_share_core::ledger::LedgerReader| {
                let result = r.handle_records(Instant::now(), records, answer.last_stable_offset);
                (result, r.want())
            };
            let (result, want) = shared.with(read);
            if want == Want::Bounds {
                shared.counters.restarts.fetch_add(1, Ordering::Relaxed);
            }
            if let Err(error) = result {
                tracing::error!(%error, "the ledger cannot be used");
            }
            Ok(())
        }
        (ErrorCode::NONE, None) => Err(left_out(shared)),
        (ErrorCode::OFFSET_OUT_OF_RANGE, _) => {
            // A broker that is not the leader any more may have less than what is known: only leaders answer this.
            let (start, end) = (bound(shared, EARLIEST).await?, bound(shared, LATEST).await?);
            if (start..=end).contains(&offset) {
                let what = format_args!("reading {} at offset {offset}", place(shared)).to_string();
                return Err(Error::broker(ErrorCode::NOT_LEADER_OR_FOLLOWER, what, None));
            }
            shared.with(|reader| reader.handle_out_of_range());
            shared.counters.restarts.fetch_add(1, Ordering::Relaxed);
            Ok(())
        }
        (code, _) => {
            let what = format_args!("reading {} at offset {offset}", place(shared)).to_string();
            Err(allowed(shared, Error::broker(code, what, None)))
        }
    }
}

/// Has the owner's transaction aborted by its coordinator, unless it is being committed. The answer is only logged: what
/// became of it is for the marker to say.
async fn fence(shared: Arc<Shared>, order: FenceOrder) {
    let FenceOrder { intent, transactional_id, owner } = order;
    shared.counters.fences.fetch_add(1, Ordering::Relaxed);
    let code = call_fence(&shared.cluster, &transactional_id, owner, Instant::now() + FENCE_TIME).await.ok();
    tracing::info!(intent, transactional.id = %transactional_id, ?code, "fenced the owner of an open intent");
    match code {
        Some(code) if took_effect(code) => {}
        // Nothing was done: it may be tried again.
        None => shared.with(|reader| reader.handle_fence_lost(Instant::now(), intent)),
        // Some change of the transactional id is under way, which need not be this transaction's end.
        Some(code) if code.is_retriable() || code == ErrorCode::CONCURRENT_TRANSACTIONS => {
            shared.with(|reader| reader.handle_fence_lost(Instant::now(), intent));
        }
        Some(code) => {
            tracing::warn!(
                transactional.id = %transactional_id, %code,
                "a stopped member's transaction holds records, and its coordinator refuses to end it (it needs WRITE on the \
                 transactional id)"
            );
            shared.with(|reader| reader.handle_fence_refused(intent));
        }
    }
}

/// Whether the transaction that an answer to a fence is about is over, or will be without further help: it is aborted now or
/// as the answer comes, somebody else was faster, or its owner was.
pub(super) fn took_effect(code: ErrorCode) -> bool {
    let over = [
        ErrorCode::NONE,
        ErrorCode::PRODUCER_FENCED,
        ErrorCode::INVALID_PRODUCER_EPOCH,
        ErrorCode::INVALID_TXN_STATE,
        // Transactional ids expire only without a transaction.
        ErrorCode::INVALID_PRODUCER_ID_MAPPING,
    ];
    over.contains(&code)
}

/// Has a coordinator end the transaction of a producer, which must not go on; the answer's code.
pub(super) async fn call_fence(
    cluster: &Cluster,
    transactional_id: &Str,
    owner: ProducerIdentity,
    deadline: Instant,
) -> Result<ErrorCode> {
    let mut request = InitProducerIdRequest {
        transactional_id: Some(transactional_id.clone()),
        transaction_timeout_ms: FENCE_TIMEOUT_MS,
        producer_id: owner.id,
        producer_epoch: owner.epoch,
        ..InitProducerIdRequest::default()
    };
    let kind = CoordinatorKind::Transaction;
    let mut answer = cluster.call_coordinator(kind, transactional_id, &request, deadline, |r| r.error_code).await?;
    if answer.error_code == ErrorCode::INVALID_TRANSACTION_TIMEOUT {
        request.transaction_timeout_ms = SHORT_FENCE_TIMEOUT_MS;
        answer = cluster.call_coordinator(kind, transactional_id, &request, deadline, |r| r.error_code).await?;
    }
    Ok(answer.error_code)
}

/// Has intents tombstoned whose owner is dead, once the start offsets have passed them.
async fn sweep(shared: Arc<Shared>) {
    let age = shared.sweep_interval;
    let places = shared.with(|reader| reader.sweep(Instant::now(), age));
    if places.is_empty() {
        return;
    }
    let groups: BTreeSet<Str> = places.iter().map(|place| place.group.clone()).collect();
    let admin = Admin::on(Arc::clone(&shared.cluster));
    let mut starts = HashMap::new();
    for group in groups {
        match admin.describe_share_group_offsets(&group).await {
            Ok(offsets) => starts.extend(offsets.into_iter().filter_map(|o| {
                let tp = TopicIdPartition { topic_id: o.topic_id, partition: o.partition };
                Some((SweepPartition { group: group.clone(), tp }, o.start_offset?))
            })),
            Err(error) => tracing::debug!(%error, group = %group, "start offsets for the ledger were not read"),
        }
    }
    let untold = places.iter().filter(|place| !starts.contains_key(*place));
    let untold: BTreeSet<Uuid> = untold.map(|place| place.tp.topic_id).collect();
    let deadline = shared.cluster.request_deadline(Instant::now() + FENCE_TIME);
    match gone(&shared.cluster, untold, deadline).await {
        Ok(gone) => {
            let over = places.into_iter().filter(|place| gone.contains(&place.tp.topic_id));
            starts.extend(over.map(|place| (place, i64::MAX)));
        }
        Err(error) => tracing::debug!(%error, "topics of the ledger were not looked up"),
    }
    if !starts.is_empty() {
        shared.with(|reader| reader.handle_start_offsets(Instant::now(), age, &starts));
    }
}
