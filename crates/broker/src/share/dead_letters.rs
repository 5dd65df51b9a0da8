//! Dead letters of share groups (KIP-1191): what a record becomes that was rejected or delivered too often.
//!
//! As in Kafka 4.4.0: one record per dead letter in the group's dead letter queue, an ordinary topic that must allow it
//! (`errors.deadletterqueue.group.enable`), in the partition of the same number (modulo). It says in its headers what it
//! is about; key and value come along only if the group wants that. Where the topic does not fit or the write fails the
//! record is archived all the same. Kafka's leader sends a Produce request; faults of that key apply here too, and what
//! its client would try again is tried again. Meanwhile the record is in flight, and a new leader begins anew.

use crate::Now;
use crate::cluster::{Cluster, WaitKey, check_topic_name};
use crate::log::AppendRequest;
use crate::settings::{Change, Overrides, TOPIC_DEFINITIONS, change};
use crate::share_coordinator::ShareKey;
use crate::share_partition::{Cause, DeadLetter};
use kafka_share_messages::{ApiKey, ErrorCode};
use kafka_share_wire::records::{BatchBuilder, BatchIter, BatchOptions, DecodedBatch, Header, RecordError};
use kafka_share_wire::{Str, Uuid};
use std::collections::BTreeMap;
use std::time::Duration;

/// Writes that a dead letter gets in all.
const ATTEMPTS: u32 = 5;
/// Pause after the first failure is twice this, doubled each time.
const BACKOFF: Duration = Duration::from_secs(1);
/// Longest pause.
const MAX_BACKOFF: Duration = Duration::from_secs(30);
/// A source batch that decompresses to more is not copied.
const COPY_LIMIT: usize = 1 << 20;

/// A dead letter whose write is to be tried again.
#[derive(Debug)]
struct Waiting {
    key: ShareKey,
    letter: DeadLetter,
    failures: u32,
}

/// Dead letters that wait. They are in flight, so the groups' limits of records in flight bound them.
#[derive(Debug, Default)]
pub(super) struct DeadLetters {
    next: u64,
    waiting: BTreeMap<(Duration, u64), Waiting>,
}

impl DeadLetters {
    pub(super) fn next_deadline(&self) -> Option<Duration> {
        self.waiting.first_key_value().map(|((due, _), _)| *due)
    }

    /// The share-partition has left its leader.
    pub(super) fn forget(&mut self, key: &ShareKey) {
        self.waiting.retain(|_, waiting| waiting.key != *key);
    }

    fn wait(&mut self, due: Duration, waiting: Waiting) {
        self.waiting.insert((due, self.next), waiting);
        self.next += 1;
    }

    fn due(&mut self, now: Duration) -> Option<Waiting> {
        let first = self.waiting.first_entry().filter(|entry| entry.key().0 <= now)?;
        Some(first.remove())
    }
}

/// Why a dead letter was not written.
#[derive(Debug, thiserror::Error)]
enum Failure {
    /// It is archived without.
    #[error("{0}")]
    Final(String),
    /// Perhaps later.
    #[error("the write failed too often, last with {0}")]
    Retriable(ErrorCode),
}

impl From<ErrorCode> for Failure {
    fn from(code: ErrorCode) -> Self {
        match code {
            ErrorCode::NETWORK_EXCEPTION | ErrorCode::REQUEST_TIMED_OUT | ErrorCode::NOT_LEADER_OR_FOLLOWER => {
                Failure::Retriable(code)
            }
            code => Failure::Final(format!("the write failed: {code}")),
        }
    }
}

impl From<RecordError> for Failure {
    fn from(error: RecordError) -> Self {
        Failure::Final(error.to_string())
    }
}

impl Cluster {
    /// Writes what a share-partition has sorted out.
    pub(crate) fn write_dead_letters(&mut self, now: Now, key: &ShareKey) {
        let letters = self.share.live_mut(key).map(|live| live.machine.take_dead_letters()).unwrap_or_default();
        for letter in letters {
            let key = ShareKey { group: key.group.detached(), ..key.clone() };
            self.attempt(now, Waiting { key, letter, failures: 0 });
        }
    }

    /// Tries again what is due.
    pub(super) fn retry_dead_letters(&mut self, now: Now) {
        while let Some(waiting) = self.share.dead_letters.due(now.mono) {
            self.attempt(now, waiting);
        }
    }

    fn attempt(&mut self, now: Now, mut waiting: Waiting) {
        let (key, first) = (waiting.key.clone(), waiting.letter.first);
        let result = self.write_dead_letter(now, &key, &mut waiting.letter);
        match result {
            Err(Failure::Retriable(code)) if waiting.failures + 1 < ATTEMPTS => {
                let written = waiting.letter.first;
                if written > first {
                    waiting.failures = 0;
                    self.bury(&key, first, written - 1);
                }
                waiting.failures += 1;
                let pause = (BACKOFF * 2_u32.pow(waiting.failures)).min(MAX_BACKOFF);
                tracing::debug!(group = key.group.as_str(), %code, ?pause, "a dead letter is tried again");
                return self.share.dead_letters.wait(now.mono + pause, waiting);
            }
            Err(failure) => {
                let letter = waiting.letter;
                tracing::warn!(group = key.group.as_str(), ?letter, %failure, "archived without dead letters");
            }
            Ok(()) => {}
        }
        self.bury(&key, first, waiting.letter.last);
    }

    /// Records are done: their dead letters are written, or cannot be.
    fn bury(&mut self, key: &ShareKey, first: i64, last: i64) {
        if let Some(live) = self.share.live_mut(key) {
            live.machine.buried(first, last);
            self.share.wrote(key);
            self.wake(&WaitKey::SharePartition(key.group.clone(), key.topic, key.partition));
        }
    }

    /// Writes what is left of a dead letter, batch by batch.
    fn write_dead_letter(&mut self, now: Now, key: &ShareKey, letter: &mut DeadLetter) -> Result<(), Failure> {
        let queue = self.dead_letter_topic(&key.group)?;
        let copy = self.share_config(&key.group).dead_letter_copy;
        while letter.first <= letter.last {
            let original = if copy { self.original(key, letter.first) } else { None };
            let end = if copy { self.source_batch_end(key, letter.first) } else { i64::MAX };
            let (records, next) = self.compose(now, key, queue, letter, end, original.as_ref())?;
            self.append_dead_letters(now, queue, key.partition, &records)?;
            letter.first = next;
        }
        Ok(())
    }

    /// The group's dead letter queue, created if need be and allowed.
    fn dead_letter_topic(&mut self, group: &Str) -> Result<Uuid, Failure> {
        let refuse = |why: String| Err(Failure::Final(why));
        let Some(name) = self.share_config(group).dead_letter_topic.clone() else {
            return refuse("the group has no dead letter queue any more".into());
        };
        let prefix = &self.config.dead_letter_prefix;
        if !name.starts_with(prefix.as_str()) {
            return refuse(format!("the name of topic {name} does not begin with {prefix}"));
        }
        match self.topics.get(&name) {
            Some(topic) if topic.config.dead_letter_queue => return Ok(topic.id),
            Some(_) => return refuse(format!("topic {name} has no errors.deadletterqueue.group.enable")),
            None if !self.config.auto_create_dead_letter_topics => {
                return refuse(format!("there is no topic {name}, and the broker does not create it"));
            }
            None => {}
        }
        let partitions = self.config.default_partitions;
        let refused = |refusal: crate::cluster::Refusal| Failure::Final(refusal.message);
        check_topic_name(&name).and_then(|()| self.check_room(partitions as usize)).map_err(refused)?;
        let replicas = usize::try_from(self.config.default_replication).unwrap_or(1).max(1);
        let id = self.insert_topic(&Str::from(&name), partitions, replicas);
        let mut overrides = Overrides::new();
        for (setting, value) in
            [("errors.deadletterqueue.group.enable", "true"), ("message.timestamp.type", "CreateTime")]
        {
            change(TOPIC_DEFINITIONS, &mut overrides, setting, Change::Set, Some(value)).map_err(refused)?;
        }
        self.set_topic_overrides(id, overrides);
        Ok(id)
    }

    /// The source batch that holds `offset`, readable, if it is still there and not too large.
    fn original(&mut self, key: &ShareKey, offset: i64) -> Option<DecodedBatch> {
        let log = &mut self.topics.by_id_mut(key.topic)?.partition_mut(key.partition)?.log;
        let read = log.read(offset, offset + 1, 1, true);
        let batch = BatchIter::new(read.records).next()?.ok()?;
        batch.decode(COPY_LIMIT).ok().filter(|decoded| decoded.payload().len() <= COPY_LIMIT)
    }

    fn source_batch_end(&self, key: &ShareKey, offset: i64) -> i64 {
        let log = self.topics.by_id(key.topic).and_then(|t| t.partition(key.partition)).map(|p| &p.log);
        let batch = log.and_then(|log| log.batches(offset, i64::MAX).next());
        batch.map_or(
            i64::MAX,
            |batch| if batch.base_offset > offset { batch.base_offset - 1 } else { batch.last_offset },
        )
    }

    /// A batch of dead letters from the letter's first offset up to `end`, as far as the queue takes it. Gives the next
    /// offset.
    fn compose(
        &self,
        now: Now,
        key: &ShareKey,
        queue: Uuid,
        letter: &DeadLetter,
        end: i64,
        original: Option<&DecodedBatch>,
    ) -> Result<(bytes::Bytes, i64), Failure> {
        let limit = self.topics.by_id(queue).map_or(usize::MAX, |topic| topic.config.max_message_bytes);
        let topic = self.topics.by_id(key.topic).map_or_else(|| key.topic.to_string(), |topic| topic.name.to_string());
        let (partition, count) = (key.partition.to_string(), letter.count.to_string());
        let message = match letter.cause {
            Cause::Rejected => "Offset rejected by client.",
            Cause::DeliveryLimit => "Offset delivery count exceeded the threshold.",
        };
        let mut records = original.map(|batch| batch.iter().map_while(Result::ok).peekable());
        let mut builder = BatchBuilder::new(BatchOptions::default());
        let mut offset = letter.first;
        while offset <= letter.last.min(end) {
            let record = records.as_mut().and_then(|records| {
                while records.next_if(|record| record.offset < offset).is_some() {}
                records.next_if(|record| record.offset == offset)
            });
            let (found_key, value) = record.map_or((None, None), |record| (record.key, record.value));
            let number = offset.to_string();
            let headers = [
                ("__dlq.errors.topic", topic.as_str()),
                ("__dlq.errors.partition", partition.as_str()),
                ("__dlq.errors.offset", number.as_str()),
                ("__dlq.errors.group", key.group.as_str()),
                ("__dlq.errors.delivery.count", count.as_str()),
                ("__dlq.errors.message", message),
            ];
            let headers = headers.map(|(name, value)| Header::new(name, Some(value.as_bytes())));
            // One that does not fit alone is sent, and refused, alone.
            let full = builder.would_exceed(limit, BatchBuilder::estimate(found_key, value, headers));
            if full && !builder.is_empty() {
                break;
            }
            builder.append(now.wall_ms, found_key, value, headers)?;
            offset += 1;
        }
        Ok((builder.finish()?.freeze(), offset))
    }

    /// Does what a Produce request with acks -1 to the queue's leader does.
    fn append_dead_letters(
        &mut self,
        now: Now,
        queue: Uuid,
        source: i32,
        records: &bytes::Bytes,
    ) -> Result<(), Failure> {
        let topic = self.topics.by_id(queue).ok_or(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)?;
        let index = source % i32::try_from(topic.partitions.len()).unwrap_or(i32::MAX).max(1);
        let partition = topic.partition(index).ok_or(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)?;
        if partition.leader < 0 {
            return Err(ErrorCode::NOT_LEADER_OR_FOLLOWER.into());
        }
        let in_sync = partition.replicas.iter().filter(|id| self.node(**id).is_some_and(|node| node.alive)).count();
        if in_sync < topic.config.min_insync_replicas.min(partition.replicas.len()) {
            return Err(ErrorCode::NOT_ENOUGH_REPLICAS.into());
        }
        let leader = partition.leader;
        if let Some(code) = self.inner_fault(leader, ApiKey::PRODUCE) {
            return Err(code.into());
        }
        self.check_memory(records.len())?;
        let topic = self.topics.by_id_mut(queue).ok_or(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)?;
        let config = topic.config;
        let partition = topic.partition_mut(index).ok_or(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)?;
        let before = partition.log.bytes();
        let request = AppendRequest {
            records,
            config: &config,
            leader_epoch: partition.leader_epoch,
            now_ms: now.wall_ms,
            in_transaction: true,
            epoch_per_transaction: false,
        };
        partition.log.append(&request).map_err(|refusal| Failure::from(refusal.code))?;
        let grown = partition.log.bytes() - before;
        self.log_bytes += grown;
        self.wake(&WaitKey::Partition(queue, index));
        Ok(())
    }
}
