//! An idempotent or transactional producer (KIP-98, KIP-360, KIP-890): records are collected into batches by partition,
//! sent to the partitions' leaders in order, and sent again with the same sequence numbers until they are settled.
//!
//! Order of use: [`Producer::handle_topic`] with a topic's metadata, [`Producer::append`], then
//! [`Producer::poll_output`] until it answers `None`, again after every input and at [`Producer::next_deadline`].

mod agenda;
mod answers;
mod draft;
mod drain;
mod identity;
mod partition;
mod partitioner;
mod split;
mod types;

pub use partitioner::{murmur2, partition_for_key};
pub use types::{
    AppendError, Appended, BatchError, BatchErrorKind, BatchId, Encoded, Output, ProduceDraft, ProduceFailure,
    ProducerConfig, RecordParts, SentBatches, Written,
};

use crate::backoff::Jitter;
use crate::metadata::Topic;
use crate::transaction::{ProducerIdentity, Transaction, TxnError, TxnErrorKind};
use agenda::Agenda;
use drain::Request;
use kafka_share_messages::ErrorCode;
use kafka_share_wire::records::{BATCH_HEADER_LEN, BatchBuilder};
use kafka_share_wire::{Str, Uuid};
use partition::{Partition, Phase, Taken};
use partitioner::Sticky;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::time::{Duration, Instant};

/// The machine.
#[derive(Debug)]
pub struct Producer {
    config: ProducerConfig,
    transaction: Option<Transaction>,
    identity: ProducerIdentity,
    identity_state: IdentityState,
    topics: Vec<TopicState>,
    by_name: HashMap<Str, usize>,
    /// The topic of the last record, which is often that of the next.
    recent: usize,
    partitions: Vec<Partition>,
    requests: BTreeMap<u64, Request>,
    agenda: Agenda,
    outputs: VecDeque<Output>,
    /// Topics whose leaders are in doubt.
    stale: BTreeSet<Str>,
    refresh_not_before: Option<Instant>,
    adding: bool,
    add_not_before: Option<Instant>,
    add_failures: u32,
    used: usize,
    next_batch: u64,
    next_request: u64,
    closed: bool,
    polled: Option<Instant>,
    jitter: Jitter,
}

/// How an idempotent producer stands with its identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum IdentityState {
    /// None yet, or used up.
    Missing,
    Asked,
    Valid,
    /// Sequences are in doubt: once what was sent is settled, the next epoch begins.
    Doubtful,
}

#[derive(Debug)]
struct TopicState {
    name: Str,
    id: Uuid,
    /// Indexes into `partitions`, by partition number.
    partitions: Vec<usize>,
    usable: Vec<i32>,
    sticky: Sticky,
}

impl Producer {
    /// An idempotent producer, or a transactional one.
    #[must_use]
    pub fn new(config: ProducerConfig, transaction: Option<Transaction>, seed: u64) -> Self {
        Producer {
            config,
            transaction,
            identity: ProducerIdentity::NONE,
            identity_state: IdentityState::Missing,
            topics: Vec::new(),
            by_name: HashMap::new(),
            recent: 0,
            partitions: Vec::new(),
            requests: BTreeMap::new(),
            agenda: Agenda::default(),
            outputs: VecDeque::new(),
            stale: BTreeSet::new(),
            refresh_not_before: None,
            adding: false,
            add_not_before: None,
            add_failures: 0,
            used: 0,
            next_batch: 1,
            next_request: 1,
            closed: false,
            polled: None,
            jitter: Jitter::new(seed),
        }
    }

    /// The settings.
    #[must_use]
    pub fn config(&self) -> &ProducerConfig {
        &self.config
    }

    /// Bytes of the buffer that are in use.
    #[must_use]
    pub fn buffered_bytes(&self) -> usize {
        self.used
    }

    /// Requests whose answers are awaited.
    #[must_use]
    pub fn requests_in_flight(&self) -> usize {
        self.requests.len()
    }

    /// The transaction; `None` for an idempotent producer.
    #[must_use]
    pub fn transaction(&self) -> Option<&Transaction> {
        self.transaction.as_ref()
    }

    /// The transaction, to begin and end it. After an init or end call [`Producer::handle_transaction_settled`].
    pub fn transaction_mut(&mut self) -> Option<&mut Transaction> {
        self.transaction.as_mut()
    }

    /// Takes a topic's metadata: its partitions and their leaders.
    pub fn handle_topic(&mut self, topic: &Topic) {
        self.stale.remove(&topic.name);
        let known = self.by_name.get(&topic.name).copied();
        let at = known.unwrap_or_else(|| {
            self.topics.push(TopicState {
                name: topic.name.clone(),
                id: topic.id,
                partitions: Vec::new(),
                usable: Vec::new(),
                sticky: Sticky::default(),
            });
            self.by_name.insert(topic.name.clone(), self.topics.len() - 1);
            self.topics.len() - 1
        });
        let state = &mut self.topics[at];
        let recreated = state.id != topic.id;
        state.id = topic.id;
        state.usable.clear();
        for (index, leader) in topic.leaders.iter().enumerate() {
            if index >= state.partitions.len() {
                state.partitions.push(self.partitions.len());
                self.partitions.push(Partition::new(at, index as i32));
            }
            let partition = &mut self.partitions[state.partitions[index]];
            partition.leader = leader.id;
            // The new topic's log knows nothing of this producer, so that any first sequence would be taken.
            partition.confirmed &= !recreated;
            if leader.id >= 0 {
                state.usable.push(index as i32);
            }
            if !partition.is_idle() {
                self.agenda.note(partition, state.partitions[index]);
            }
        }
    }

    /// The partition for a record without a chosen one. `None` where the topic is not known.
    pub fn choose_partition(&mut self, topic: &str, key: Option<&[u8]>, size: usize) -> Option<i32> {
        let at = self.topic_at(topic)?;
        let state = &mut self.topics[at];
        if let Some(key) = key {
            return Some(partition_for_key(key, state.partitions.len() as u32));
        }
        let batch_size = self.config.batch_size;
        let sticky = state.sticky.choose(&state.usable, size, batch_size, &mut self.jitter);
        sticky.or_else(|| (!state.partitions.is_empty()).then_some(0))
    }

    fn topic_at(&mut self, name: &str) -> Option<usize> {
        if self.topics.get(self.recent).is_none_or(|topic| *topic.name != *name) {
            self.recent = *self.by_name.get(name)?;
        }
        Some(self.recent)
    }

    /// Names of the topics that are known: those that records were sent to.
    pub fn topics(&self) -> impl Iterator<Item = &Str> {
        self.topics.iter().map(|topic| &topic.name)
    }

    /// Number of partitions of a topic, where it is known.
    #[must_use]
    pub fn partition_count(&self, topic: &str) -> Option<usize> {
        self.by_name.get(topic).map(|at| self.topics[*at].partitions.len())
    }

    /// Why the broker had what is on its way to a partition sent again, last; `None` where it did not.
    #[must_use]
    pub fn refusal(&self, topic: &str, partition: i32) -> Option<ErrorCode> {
        let state = &self.topics[*self.by_name.get(topic)?];
        let at = *state.partitions.get(usize::try_from(partition).ok()?)?;
        self.partitions[at].refusal
    }

    /// Upper bound of what a record takes in a batch.
    #[must_use]
    pub fn estimate(record: &RecordParts<'_, '_>) -> usize {
        BatchBuilder::estimate(record.key, record.value, record.headers.iter().copied())
    }

    /// Takes a record; `partition` as chosen by the caller or by [`Producer::choose_partition`].
    ///
    /// # Errors
    /// See [`AppendError`]; the record was not taken then.
    pub fn append(
        &mut self,
        now: Instant,
        topic: &str,
        partition: i32,
        record: RecordParts<'_, '_>,
    ) -> Result<Appended, AppendError> {
        self.append_at(|| now, topic, partition, record)
    }

    /// As [`Producer::append`]; looks at the clock only where a batch begins.
    ///
    /// # Errors
    /// As there.
    pub fn append_at(
        &mut self,
        now: impl FnOnce() -> Instant,
        topic: &str,
        partition: i32,
        record: RecordParts<'_, '_>,
    ) -> Result<Appended, AppendError> {
        if self.closed {
            return Err(AppendError::Closed);
        }
        if let Some(transaction) = &self.transaction {
            transaction.check_open()?;
        }
        let state = self.topic_at(topic).map(|at| &self.topics[at]).ok_or(AppendError::UnknownTopic)?;
        let count = state.partitions.len();
        let at = usize::try_from(partition).ok().and_then(|i| state.partitions.get(i)).copied();
        let at = at.ok_or(AppendError::NoSuchPartition(partition, count))?;
        if record.timestamp < 0 {
            let text = format!("timestamp {} is negative; it counts milliseconds since 1970", record.timestamp);
            return Err(AppendError::Invalid(text));
        }
        let size = Self::estimate(&record);
        let config = &self.config;
        for (setting, limit) in [("max.request.size", config.max_request_size), ("buffer.memory", config.buffer_memory)]
        {
            if size + BATCH_HEADER_LEN > limit {
                return Err(AppendError::TooLarge { size, setting, limit });
            }
        }
        if self.used + size > config.buffer_memory {
            return Err(AppendError::Full);
        }
        let options = config.batch_options(self.transaction.is_some());
        let fresh = BatchId(self.next_batch);
        let taken = self.partitions[at]
            .append(now, fresh, options, config.batch_size, size, record)
            .map_err(|e| AppendError::Invalid(e.to_string()))?;
        self.used += size;
        Ok(Appended { batch: taken.batch, index: taken.index, wake: self.note_append(at, taken) })
    }

    /// Answers whether the shell must poll before it would of itself.
    fn note_append(&mut self, at: usize, taken: Taken) -> bool {
        if taken.filled {
            self.note(at);
        }
        let Some(begun) = taken.begun else { return taken.filled };
        self.next_batch += 1;
        self.agenda.batches += 1;
        // A moment that has come stays: the next poll looks at what is due by it.
        if self.partitions[at].timer.is_none_or(|timer| timer > begun) {
            self.schedule(begun, at);
        }
        if self.config.linger.is_zero() {
            self.note(at);
        }
        // A busy broker's next answer will do for a full batch; the poll that is due anyway for one that lingers.
        let busy = self.agenda.brokers.get(&self.partitions[at].leader);
        let busy = busy.is_some_and(|b| b.in_flight >= self.config.max_in_flight);
        let lingers_first = self.agenda.armed.is_none_or(|armed| begun + self.config.linger < armed);
        (taken.filled && !busy) || lingers_first
    }

    /// Closes all open batches, so that they are sent without waiting for more records. Batches begun later have ids
    /// above the one given back.
    pub fn seal_all(&mut self) -> BatchId {
        for (at, partition) in self.partitions.iter_mut().enumerate().filter(|(_, p)| p.open.is_some()) {
            partition.seal();
            self.agenda.note(partition, at);
        }
        BatchId(self.next_batch - 1)
    }

    /// Why brokers had something that is still on its way sent again, last: topic, partition and code.
    #[must_use]
    pub fn any_refusal(&self) -> Option<(&Str, i32, ErrorCode)> {
        let refused = |p: &Partition| Some((&self.topics[p.topic].name, p.index, p.refusal?));
        self.partitions.iter().filter(|p| !p.is_idle()).find_map(refused)
    }

    /// Takes no more records.
    pub fn close(&mut self) {
        self.closed = true;
        self.seal_all();
    }

    /// Whether nothing waits and nothing is in flight.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.requests.is_empty() && !self.adding && self.agenda.batches == 0
    }

    /// Gives up all batches that are not in flight at this moment.
    pub fn abort_unsent(&mut self, kind: BatchErrorKind, why: &str) {
        let mut gap = false;
        for at in 0..self.partitions.len() {
            let p = &mut self.partitions[at];
            if p.is_idle() {
                continue;
            }
            self.agenda.note(p, at);
            p.seal();
            let collected = p.waiting.drain(..).map(|b| (b.id, b.charge, false));
            let mut gone: Vec<(BatchId, usize, bool)> = collected.collect();
            gone.extend(p.renumbered.drain(..).map(|b| (b.id, b.charge, b.maybe_written)));
            for batch in std::mem::take(&mut p.sent) {
                if batch.phase == Phase::InFlight {
                    p.sent.push_back(batch);
                } else {
                    gone.push((batch.id, batch.charge, batch.maybe_written));
                    gap = true;
                }
            }
            for (id, charge, maybe_written) in gone {
                let error = BatchError { code: None, kind, text: why.to_owned(), maybe_written };
                self.done(id, charge, Err(error));
            }
        }
        if gap {
            self.doubt();
            self.transaction.iter_mut().for_each(Transaction::doubt_sequences);
        }
    }

    /// The transaction has been initialised, or has ended: its identity counts from now on.
    pub fn handle_transaction_settled(&mut self) {
        if let Some(identity) = self.transaction.as_ref().map(Transaction::identity) {
            self.adopt(identity);
        }
        self.note_held();
    }

    /// The transaction failed for a reason outside of this machine (acknowledgements).
    pub fn fail_transaction(&mut self, error: TxnError) {
        self.fail_transaction_inner(error, false);
    }

    fn fail_transaction_inner(&mut self, error: TxnError, needs_epoch: bool) {
        let Some(transaction) = &mut self.transaction else { return };
        let kind = match error.kind {
            TxnErrorKind::Fenced => BatchErrorKind::Fenced,
            _ => BatchErrorKind::Aborted,
        };
        let why = format!("the transaction failed: {error}");
        transaction.fail(error, needs_epoch);
        self.abort_unsent(kind, &why);
    }

    fn done(&mut self, id: BatchId, charge: usize, result: Result<Written, BatchError>) {
        self.used = self.used.saturating_sub(charge);
        self.agenda.batches = self.agenda.batches.saturating_sub(1);
        self.outputs.push_back(Output::Done(id, result));
    }

    fn pause(&mut self, now: Instant, attempts: u32) -> Instant {
        now + self.config.backoff.pause(attempts.max(1), self.jitter.next_u64())
    }

    /// As [`Producer::pause`]; shorter where the transaction before is still being completed, which takes milliseconds.
    fn pause_after(&mut self, now: Instant, code: ErrorCode, attempts: u32) -> Instant {
        let usual = self.pause(now, attempts);
        match code {
            ErrorCode::CONCURRENT_TRANSACTIONS => {
                usual.min(now + Duration::from_millis(1 << attempts.saturating_sub(1).min(6)))
            }
            _ => usual,
        }
    }

    /// What to do now; ask until `None`.
    pub fn poll_output(&mut self, now: Instant) -> Option<Output> {
        if self.outputs.is_empty() {
            self.polled = Some(now);
            self.wake_up(now);
            self.look(now);
            self.drive_identity();
            self.drive_adds(now);
            self.drain(now);
            self.drive_refresh(now);
        }
        let output = self.outputs.pop_front();
        if output.is_none() {
            self.agenda.armed = self.next_deadline();
        }
        output
    }

    /// When to poll again, if nothing else happens.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Instant> {
        let all = self.agenda.next_timer().into_iter().chain(self.add_not_before).chain(self.refresh_not_before);
        // What has come due by the last poll was done then, or waits for an answer.
        all.filter(|at| self.polled.is_none_or(|polled| *at > polled)).min()
    }
}

#[cfg(test)]
mod tests;
