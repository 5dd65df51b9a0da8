//! A share consumer as one machine: membership, sessions, acknowledgements and the plan of what to ask whom.
//!
//! The shell carries [`Action`]s to brokers and their answers back, and passes the application's calls on. One request
//! per broker is under way at a time, because a share session orders its requests by epoch.

mod actions;
mod answers;
mod handing_out;
mod ledger;
mod requests;
mod types;

pub use ledger::{Standings, WaitingRecords};

pub use types::{
    Action, Chunk, CommitResult, ConsumerConfig, ConsumerEvent, FetchAnswer, FetchPartition, RequestFailure,
    TopicLeaders, decode_fetch,
};

use crate::metadata::{Leader, TopicIdPartition};
use crate::share_acks::{AckError, AckOutcome, AckTable, AckType, Outcome, RecordHandle, SlotRef, Taken};
use crate::share_fetch::{Deferred, Delivery};
use crate::share_membership::Membership;
use crate::share_session::{SessionPlan, ShareSession};
use kafka_share_messages::ErrorCode;
use kafka_share_wire::{Str, Uuid};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Grace after a lock's end before its records are given up here; broker and client count from different moments.
const LOCK_GRACE: Duration = Duration::from_secs(5);
/// How long the group is not left while brokers have not confirmed the end of their sessions: members that take over sooner
/// would wait for the records.
const LEAVE_AFTER: Duration = Duration::from_secs(1);
/// The same where acknowledgements are on their way: Kafka ends a member's sessions when it leaves, and refuses them then.
const LEAVE_AFTER_ACKS: Duration = Duration::from_secs(5);
/// Pause between metadata requests for what is not known yet.
const METADATA_PAUSE: Duration = Duration::from_millis(100);

/// The machine.
#[derive(Debug)]
pub struct ShareConsumer {
    config: ConsumerConfig,
    membership: Membership,
    table: AckTable,
    nodes: BTreeMap<i32, NodeState>,
    subscription: Vec<Str>,
    assignment: BTreeSet<TopicIdPartition>,
    leaders: BTreeMap<TopicIdPartition, Leader>,
    names: BTreeMap<Uuid, Str>,
    /// Partitions that may not be fetched before a moment, after an error of their own.
    paused: BTreeMap<TopicIdPartition, Instant>,
    buffer: VecDeque<Buffered>,
    /// What comes behind the buffer, not expanded yet.
    deferred: VecDeque<DeferredPart>,
    ledger: ledger::LedgerState,
    /// What the last poll handed out, in implicit mode.
    delivered: Vec<Chunk>,
    wanted: bool,
    /// A fetch was sent since the application began to wait.
    asked: bool,
    /// A poll ended before the fetch that it wanted was sent.
    owed: bool,
    last_poll: Option<Instant>,
    /// Leaders named in error answers, one after the other, by partition: how many, and when the last.
    hints: BTreeMap<TopicIdPartition, (u32, Instant)>,
    /// Node whose turn it is in record-limit mode.
    turn: i32,
    commits: BTreeMap<u64, Commit>,
    next_commit: u64,
    next_token: u64,
    /// Number of the next ShareFetch.
    next_ask: u64,
    /// As many acknowledgements are pending as may be.
    many_acks: bool,
    lock_timeout: Option<Duration>,
    sleeps_until: Option<Instant>,
    metadata: MetadataState,
    events: VecDeque<ConsumerEvent>,
    /// Why the membership ended for good.
    failure: Option<(ErrorCode, String)>,
    closing: bool,
    /// While closing: since when no broker has answered.
    silent_since: Option<Instant>,
}

#[derive(Debug)]
struct Buffered {
    delivery: Arc<Delivery>,
    slot: SlotRef,
    next: usize,
}

#[derive(Debug)]
struct DeferredPart {
    node: i32,
    ask: u64,
    lock_until: Instant,
    part: Deferred,
}

#[derive(Debug, Default)]
struct NodeState {
    session: ShareSession,
    in_flight: Option<InFlight>,
    groups: VecDeque<Group>,
    failures: u32,
    not_before: Option<Instant>,
    /// The broker refused an epoch of ours: it has a session that holds records, and that is closed before the next one.
    stray: bool,
    /// The last fetch brought less than a poll takes.
    dry: bool,
    /// Its last answer brought nothing.
    empty: bool,
}

#[derive(Debug)]
struct InFlight {
    token: u64,
    /// Of a fetch.
    ask: Option<u64>,
    taken: Vec<Taken>,
    commits: Vec<u64>,
    /// How often these acknowledgements were tried before, and until when they may be.
    tries: u32,
    deadline: Option<Instant>,
    kind: InFlightKind,
}

#[derive(Debug)]
enum InFlightKind {
    Fetch(SessionPlan),
    Acknowledge,
    Close,
}

/// Acknowledgements that go out together, ahead of the next fetch.
#[derive(Debug)]
struct Group {
    taken: Vec<Taken>,
    commits: Vec<u64>,
    not_before: Option<Instant>,
    deadline: Instant,
    tries: u32,
}

#[derive(Debug, Default)]
struct Commit {
    waiting: usize,
    results: CommitResult,
}

#[derive(Debug)]
struct MetadataState {
    in_flight: bool,
    due: Option<Instant>,
    /// Answers in a row that left something out.
    incomplete: u32,
}

impl ShareConsumer {
    /// A consumer that has not subscribed yet.
    #[must_use]
    pub fn new(config: ConsumerConfig, now: Instant) -> Self {
        let membership = Membership::new(
            config.group_id.clone(),
            config.member_id.clone(),
            config.rack.clone(),
            config.backoff,
            now,
        );
        ShareConsumer {
            config,
            membership,
            table: AckTable::new(),
            nodes: BTreeMap::new(),
            subscription: Vec::new(),
            assignment: BTreeSet::new(),
            leaders: BTreeMap::new(),
            names: BTreeMap::new(),
            paused: BTreeMap::new(),
            buffer: VecDeque::new(),
            deferred: VecDeque::new(),
            ledger: ledger::LedgerState::default(),
            delivered: Vec::new(),
            wanted: false,
            asked: false,
            owed: false,
            last_poll: None,
            hints: BTreeMap::new(),
            turn: i32::MIN,
            commits: BTreeMap::new(),
            next_commit: 0,
            next_token: 0,
            next_ask: 1,
            many_acks: false,
            lock_timeout: None,
            sleeps_until: None,
            metadata: MetadataState { in_flight: false, due: None, incomplete: 0 },
            events: VecDeque::new(),
            failure: None,
            closing: false,
            silent_since: None,
        }
    }

    /// Replaces the subscription. An empty one leaves the group and frees the records for others. Once closing has
    /// begun it changes nothing: the group would be joined again and the close never end.
    pub fn subscribe(&mut self, now: Instant, topics: Vec<Str>) {
        if self.closing {
            return;
        }
        self.subscription.clone_from(&topics);
        self.failure = None;
        if topics.is_empty() {
            self.assignment.clear();
            self.discard_buffer();
            self.owed = false;
        } else {
            self.metadata.due = Some(now);
        }
        self.membership.subscribe(now, topics);
    }

    /// Topics subscribed to.
    #[must_use]
    pub fn subscription(&self) -> &[Str] {
        &self.subscription
    }

    /// The membership: group, member id and epoch.
    #[must_use]
    pub fn membership(&self) -> &Membership {
        &self.membership
    }

    /// Share-partitions assigned to this member.
    #[must_use]
    pub fn assignment(&self) -> &BTreeSet<TopicIdPartition> {
        &self.assignment
    }

    /// Name of a topic, where it is known.
    #[must_use]
    pub fn topic_name(&self, id: Uuid) -> Option<&Str> {
        self.names.get(&id)
    }

    /// Length of the acquisition lock as the last answer gave it.
    #[must_use]
    pub fn lock_timeout(&self) -> Option<Duration> {
        self.lock_timeout
    }

    /// The application came back: in implicit mode what the last poll handed out counts as accepted now.
    pub fn accept_delivered(&mut self, now: Instant) {
        for chunk in self.delivered.drain(..) {
            self.table.acknowledge_held(chunk.slot, chunk.indexes(), AckType::Accept, now);
        }
    }

    /// Whether records wait in the buffer.
    #[must_use]
    pub fn has_records(&self) -> bool {
        !self.buffer.is_empty() || !self.deferred.is_empty() || self.table.has_renewed()
    }

    /// Acknowledges one record.
    ///
    /// # Errors
    /// See [`AckError`].
    pub fn acknowledge(&mut self, now: Instant, handle: RecordHandle, ack: AckType) -> Result<(), AckError> {
        self.table.acknowledge(handle, ack, now)
    }

    /// As [`ShareConsumer::acknowledge`], asking for the time only where it matters.
    ///
    /// # Errors
    /// See [`AckError`].
    #[inline]
    pub fn acknowledge_by(
        &mut self,
        handle: RecordHandle,
        ack: AckType,
        now: impl FnOnce() -> Instant,
    ) -> Result<(), AckError> {
        self.table.acknowledge_by(handle, ack, now)
    }

    /// Acknowledges a record by share-partition and offset.
    ///
    /// # Errors
    /// See [`AckError`].
    pub fn acknowledge_offset(
        &mut self,
        now: Instant,
        tp: TopicIdPartition,
        offset: i64,
        ack: AckType,
    ) -> Result<(), AckError> {
        let handle = self.table.find(tp, offset)?;
        self.table.acknowledge(handle, ack, now)
    }

    /// Acknowledges all records of chunks that have not been spoken of; answers how many.
    ///
    /// # Errors
    /// [`AckError::NoRenewal`], and nothing is acknowledged then.
    pub fn acknowledge_chunks(&mut self, now: Instant, chunks: &[Chunk], ack: AckType) -> Result<usize, AckError> {
        chunks.iter().try_for_each(|chunk| self.table.check_renewal(chunk.slot, ack))?;
        let mark = |chunk: &Chunk| self.table.acknowledge_held(chunk.slot, chunk.indexes(), ack, now);
        Ok(chunks.iter().map(mark).sum())
    }

    /// The shell asks again at this moment ([`ShareConsumer::next_deadline`]), unless something comes up before.
    pub fn sleeps_until(&mut self, deadline: Option<Instant>) {
        self.sleeps_until = deadline;
    }

    /// Whether the acknowledgements given since this was asked last are due before the shell asks again: ask
    /// [`ShareConsumer::poll_action`] and [`ShareConsumer::next_deadline`] now then.
    #[inline]
    pub fn take_ack_news(&mut self) -> bool {
        let many = self.table.pending() >= self.config.max_acks_pending;
        let crossed = many && !std::mem::replace(&mut self.many_acks, many);
        self.many_acks = many;
        let first = self.table.take_news();
        crossed || first && self.sleeps_until.is_none_or(|until| self.acks_due().is_some_and(|due| due < until))
    }

    /// Renews the lock of a record without handing it out again; it goes out as pending acknowledgements do.
    ///
    /// # Errors
    /// See [`AckError`].
    pub fn extend_lock(&mut self, now: Instant, handle: RecordHandle) -> Result<(), AckError> {
        self.table.extend(handle, now)
    }

    /// Renews the locks of all records of chunks that have not been spoken of; answers how many.
    pub fn extend_chunks(&mut self, now: Instant, chunks: &[Chunk]) -> usize {
        let extend = |chunk: &Chunk| self.table.extend_held(chunk.slot, chunk.indexes(), now);
        chunks.iter().map(extend).sum()
    }

    /// When the lock of a delivered record ends, as far as this client knows; `None` where it is lost.
    #[must_use]
    pub fn lock_deadline(&self, handle: RecordHandle) -> Option<Instant> {
        self.table.record_lock(handle)
    }

    /// Takes pending ACCEPT and REJECT acknowledgements out of the ordinary path, for a transaction. `None`, and nothing
    /// taken, while somebody waits for a commit: which of them went with it could not be told.
    pub fn take_for_transaction(&mut self) -> Option<Vec<Taken>> {
        let committing = self.commits.values().any(|c| c.waiting > 0);
        (!committing).then(|| self.table.take_for_transaction())
    }

    /// Stages all records of `chunks` for a transaction. `None`, and nothing changed, where one of them is not held any
    /// more or was spoken of before.
    pub fn stage_chunks(&mut self, chunks: &[Chunk], ack: AckType) -> Option<Vec<Taken>> {
        let mut taken = Vec::with_capacity(chunks.len());
        for chunk in chunks {
            match self.table.stage_held(chunk.slot, chunk.indexes(), ack) {
                Some(part) => taken.push(part),
                None => {
                    self.table.unstage(&taken);
                    return None;
                }
            }
        }
        Some(taken)
    }

    /// Stages single records for a transaction, each with its own type. `None`, and nothing changed, where one of them
    /// is not held any more, was spoken of before, or is named twice.
    pub fn stage_records(&mut self, records: &[(RecordHandle, AckType)]) -> Option<Vec<Taken>> {
        self.table.stage_records(records)
    }

    /// Staged records go back to being held, as if nothing had been said of them.
    pub fn unstage(&mut self, taken: &[Taken]) {
        self.table.unstage(taken);
    }

    /// The transaction that holds `taken` has ended.
    pub fn finish_transaction(&mut self, taken: &[Taken], outcome: Outcome) {
        for taken in taken {
            self.table.finish(taken, outcome, None);
        }
    }

    /// The transaction was aborted, and may not have taken `taken`: what is held still is released, at once.
    pub fn release_from_transaction(&mut self, now: Instant, taken: &[Taken]) {
        for taken in taken {
            self.table.release_staged(taken, now);
        }
        let sent = self.commit(now + self.config.api_timeout);
        self.forget_commit(sent);
    }

    /// The transaction never took `taken`: they are ordinary pending acknowledgements again.
    pub fn return_from_transaction(&mut self, now: Instant, taken: &[Taken]) {
        for taken in taken {
            self.table.put_back(taken, now);
        }
    }

    /// Sends all acknowledgements given so far, without waiting for a fetch to carry them. Later ones do not belong to
    /// this commit. Where there are none, it is done at once.
    pub fn commit(&mut self, deadline: Instant) -> u64 {
        self.next_commit += 1;
        let id = self.next_commit;
        let mut commit = Commit::default();
        for node in self.table.pending_nodes() {
            let taken = self.table.take(node, true);
            if !taken.is_empty() {
                let group = Group { taken, commits: Vec::new(), not_before: None, deadline, tries: 0 };
                self.nodes.entry(node).or_default().groups.push_back(group);
            }
        }
        // What is already on its way was acknowledged before this commit too.
        for state in self.nodes.values_mut() {
            let in_flight = state.in_flight.iter_mut().filter(|f| !f.taken.is_empty()).map(|f| &mut f.commits);
            for commits in in_flight.chain(state.groups.iter_mut().map(|g| &mut g.commits)) {
                commits.push(id);
                commit.waiting += 1;
            }
        }
        self.commits.insert(id, commit);
        id
    }

    /// Result of a commit by share-partition, once every part has one.
    pub fn poll_commit(&mut self, id: u64) -> Option<CommitResult> {
        if self.commits.get(&id)?.waiting > 0 {
            return None;
        }
        self.commits.remove(&id).map(|c| c.results)
    }

    /// Nobody waits for this commit any more; its acknowledgements go on.
    pub fn forget_commit(&mut self, id: u64) {
        self.commits.remove(&id);
    }

    /// Starts closing: final acknowledgements, session by session, then out of the group.
    pub fn close(&mut self, now: Instant) {
        if self.closing {
            return;
        }
        self.closing = true;
        self.silent_since = Some(now);
        self.wanted = false;
        self.owed = false;
        self.delivered.clear();
        self.discard_buffer();
        self.subscription.clear();
        self.assignment.clear();
        self.membership.leave(now);
    }

    /// Nobody carries requests any more: what was sent ends as unknown, all else as lost, and nothing can be acknowledged.
    pub fn abort(&mut self, now: Instant) {
        self.close(now);
        for node in self.nodes.keys().copied().collect::<Vec<_>>() {
            let sent = self.nodes.get_mut(&node).and_then(|n| n.in_flight.take());
            if let Some(InFlight { taken, commits, .. }) = sent {
                self.end(&taken, &commits, Outcome::Unknown);
            }
            self.lose_session(node);
        }
    }

    /// Whether every session is closed and the group left.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.closing
            && self.membership.is_out()
            && self.nodes.values().all(|n| n.in_flight.is_none() && !n.session.is_open())
    }

    /// The next outcome of an acknowledgement.
    pub fn poll_outcome(&mut self) -> Option<AckOutcome> {
        self.table.poll_outcome()
    }

    /// Why the group does not have this member, where no retry heals it; until the next subscription.
    #[must_use]
    pub fn failure(&self) -> Option<&(ErrorCode, String)> {
        self.failure.as_ref()
    }

    /// Something the application should hear of.
    pub fn poll_event(&mut self) -> Option<ConsumerEvent> {
        self.events.pop_front()
    }

    /// Deliveries whose records are not all settled, for tests of memory.
    #[must_use]
    pub fn live_slots(&self) -> usize {
        self.table.live_slots()
    }

    /// Share-partitions that wait for something, for messages: assigned but without a leader.
    pub fn leaderless(&self) -> impl Iterator<Item = TopicIdPartition> + '_ {
        self.assignment.iter().copied().filter(|tp| !self.leaders.contains_key(tp))
    }

    fn discard_buffer(&mut self) {
        self.deferred.clear();
        self.forget_aside();
        for buffered in std::mem::take(&mut self.buffer) {
            self.table.unreference(buffered.slot);
        }
    }

    /// The session with a node is gone: nothing acquired through it can be acknowledged any more.
    fn lose_session(&mut self, node: i32) {
        self.table.lose(node, None);
        self.deferred.retain(|d| d.node != node);
        self.drop_dead_buffers();
        let Some(state) = self.nodes.get_mut(&node) else { return };
        state.session.reset();
        // What had to be closed is.
        state.stray = false;
        for group in std::mem::take(&mut state.groups) {
            self.end(&group.taken, &group.commits, Outcome::LockLost);
        }
    }

    fn drop_dead_buffers(&mut self) {
        self.drop_dead_aside();
        let table = &mut self.table;
        self.buffer.retain(|b| {
            let live = table.lock_until(b.slot).is_some();
            if !live {
                table.unreference(b.slot);
            }
            live
        });
    }

    /// Ends acknowledgements of a whole request with one outcome.
    fn end(&mut self, taken: &[Taken], commits: &[u64], outcome: Outcome) {
        for taken in taken {
            self.table.finish(taken, outcome, None);
            self.note_result(commits, taken.tp, outcome);
        }
        self.part_done(commits);
    }

    fn note_result(&mut self, commits: &[u64], tp: TopicIdPartition, outcome: Outcome) {
        for id in commits {
            if let Some(commit) = self.commits.get_mut(id) {
                let slot = commit.results.entry(tp).or_insert(outcome);
                if *slot == Outcome::Acknowledged {
                    *slot = outcome;
                }
            }
        }
    }

    fn part_done(&mut self, commits: &[u64]) {
        for id in commits {
            if let Some(commit) = self.commits.get_mut(id) {
                commit.waiting = commit.waiting.saturating_sub(1);
            }
        }
    }
}

#[cfg(test)]
mod tests;
