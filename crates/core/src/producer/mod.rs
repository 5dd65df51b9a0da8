//! An idempotent or transactional producer (KIP-98, KIP-360, KIP-890): records are collected into batches by partition,
//! sent to the partitions' leaders in order, and sent again with the same sequence numbers until they are settled.
//!
//! Order of use: [`Producer::handle_topic`] with a topic's metadata, [`Producer::append`], then
//! [`Producer::poll_output`] until it answers `None`, again after every input and at [`Producer::next_deadline`].

mod answers;
mod drain;
mod identity;
mod partition;
mod partitioner;
mod split;
mod types;

pub use partitioner::{murmur2, partition_for_key};
pub use types::{
    AppendError, Appended, BatchError, BatchErrorKind, BatchId, Output, ProduceFailure, ProducerConfig, RecordParts,
    SentBatches, Written,
};

use crate::backoff::Jitter;
use crate::metadata::Topic;
use crate::transaction::{ProducerIdentity, Transaction, TxnError, TxnErrorKind};
use drain::Request;
use kafka_share_messages::ErrorCode;
use kafka_share_wire::records::{BATCH_HEADER_LEN, BatchBuilder, BatchOptions};
use kafka_share_wire::{Str, Uuid};
use partition::{Partition, Phase};
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
    partitions: Vec<Partition>,
    requests: BTreeMap<u64, Request>,
    nodes: HashMap<i32, usize>,
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
            partitions: Vec::new(),
            requests: BTreeMap::new(),
            nodes: HashMap::new(),
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
        }
    }

    /// The partition for a record without a chosen one. `None` where the topic is not known.
    pub fn choose_partition(&mut self, topic: &str, key: Option<&[u8]>, size: usize) -> Option<i32> {
        let state = &mut self.topics[*self.by_name.get(topic)?];
        if let Some(key) = key {
            return Some(partition_for_key(key, state.partitions.len() as u32));
        }
        let batch_size = self.config.batch_size;
        let sticky = state.sticky.choose(&state.usable, size, batch_size, &mut self.jitter);
        sticky.or_else(|| (!state.partitions.is_empty()).then_some(0))
    }

    /// Number of partitions of a topic, where it is known.
    #[must_use]
    pub fn partition_count(&self, topic: &str) -> Option<usize> {
        self.by_name.get(topic).map(|at| self.topics[*at].partitions.len())
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
        if self.closed {
            return Err(AppendError::Closed);
        }
        if let Some(transaction) = &self.transaction {
            transaction.check_open()?;
        }
        let state = self.by_name.get(topic).map(|at| &self.topics[*at]).ok_or(AppendError::UnknownTopic)?;
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
        let options = BatchOptions {
            compression: config.compression,
            compression_level: config.compression_level,
            transactional: self.transaction.is_some(),
            ..BatchOptions::default()
        };
        let fresh = BatchId(self.next_batch);
        let (batch, index, wake) = self.partitions[at]
            .append(now, fresh, options, config.batch_size, size, record)
            .map_err(|e| AppendError::Invalid(e.to_string()))?;
        self.next_batch += u64::from(batch == fresh);
        self.used += size;
        Ok(Appended { batch, index, wake })
    }

    /// Closes all open batches, so that they are sent without waiting for more records. Batches begun later have ids
    /// above the one given back.
    pub fn seal_all(&mut self) -> BatchId {
        for partition in &mut self.partitions {
            partition.seal();
        }
        BatchId(self.next_batch - 1)
    }

    /// Takes no more records.
    pub fn close(&mut self) {
        self.closed = true;
        self.seal_all();
    }

    /// Whether nothing waits and nothing is in flight.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.requests.is_empty() && !self.adding && self.partitions.iter().all(Partition::is_idle)
    }

    /// Gives up all batches that are not in flight at this moment.
    pub fn abort_unsent(&mut self, kind: BatchErrorKind, why: &str) {
        for at in 0..self.partitions.len() {
            let p = &mut self.partitions[at];
            p.seal();
            let collected = p.waiting.drain(..).map(|b| (b.id, b.charge, false));
            let mut gone: Vec<(BatchId, usize, bool)> = collected.collect();
            gone.extend(p.renumbered.drain(..).map(|b| (b.id, b.charge, b.maybe_written)));
            for batch in std::mem::take(&mut p.sent) {
                if batch.phase == Phase::InFlight {
                    p.sent.push_back(batch);
                } else {
                    gone.push((batch.id, batch.charge, batch.maybe_written));
                }
            }
            for (id, charge, maybe_written) in gone {
                let error = BatchError { code: None, kind, text: why.to_owned(), maybe_written };
                self.done(id, charge, Err(error));
            }
        }
    }

    /// The transaction has been initialised, or has ended: its identity counts from now on.
    pub fn handle_transaction_settled(&mut self) {
        if let Some(identity) = self.transaction.as_ref().map(Transaction::identity) {
            self.adopt(identity);
        }
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
            self.expire(now);
            self.drive_identity();
            self.drive_adds(now);
            self.drain(now);
            self.drive_refresh(now);
        }
        self.outputs.pop_front()
    }

    /// When to poll again, if nothing else happens.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Instant> {
        let (linger, delivery) = (self.config.linger, self.config.delivery_timeout);
        let partitions = self.partitions.iter().flat_map(|p| p.deadlines(linger, delivery));
        let all = partitions.chain(self.add_not_before).chain(self.refresh_not_before);
        // What has come due by the last poll was done then, or waits for an answer.
        all.filter(|at| self.polled.is_none_or(|polled| *at > polled)).min()
    }
}

#[cfg(test)]
mod tests;
