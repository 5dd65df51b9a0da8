//! From batches to produce requests: which partitions are due, by leader.

use super::partition::{Next, Phase, Sequenced, advance};
use super::types::{BatchError, BatchErrorKind, BatchId, Output, SentBatches};
use super::{IdentityState, Producer};
use crate::transaction::{Transaction, TxnError, TxnErrorKind};
use bytes::BytesMut;
use kafka_share_messages::ProduceRequest;
use kafka_share_messages::produce_request::{PartitionProduceData, TopicProduceData};
use kafka_share_wire::records::{RecordError, patch};
use std::collections::BTreeMap;
use std::time::Instant;

/// A request whose answer is awaited.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) node: i32,
    /// Partitions and the batch that was sent to each.
    pub(super) batches: Vec<(usize, BatchId)>,
}

impl Producer {
    pub(super) fn drain(&mut self, now: Instant) {
        let mut by_node: BTreeMap<i32, Vec<(usize, Next)>> = BTreeMap::new();
        // Starts at another partition every time, so that none is starved where requests are full.
        let count = self.partitions.len();
        let start = if count == 0 { 0 } else { self.jitter.next_u64() as usize % count };
        for at in (start..count).chain(0..start) {
            let Some(next) = self.due(now, at) else { continue };
            let leader = self.partitions[at].leader;
            if leader < 0 {
                let name = self.topics[self.partitions[at].topic].name.clone();
                self.mark_stale(now, name);
            } else if self.may_join(at) {
                by_node.entry(leader).or_default().push((at, next));
            }
        }
        for (node, due) in by_node {
            self.drain_node(now, node, due);
        }
        // Partitions that were found missing in the transaction.
        self.drive_adds(now);
    }

    fn due(&self, now: Instant, at: usize) -> Option<Next> {
        let partition = &self.partitions[at];
        let busy = self.nodes.get(&partition.leader).is_some_and(|n| *n >= self.config.max_in_flight);
        if busy {
            return None;
        }
        partition.next(now, self.config.linger, self.config.max_in_flight, self.may_number())
    }

    fn may_join(&mut self, at: usize) -> bool {
        let partition = &self.partitions[at];
        let topic = &self.topics[partition.topic].name;
        self.transaction.as_mut().is_none_or(|t| t.admit(topic, partition.index))
    }

    fn drain_node(&mut self, now: Instant, node: i32, due: Vec<(usize, Next)>) {
        let mut batches = Vec::new();
        let mut rows: BTreeMap<usize, Vec<PartitionProduceData>> = BTreeMap::new();
        let mut sent = SentBatches::default();
        for (at, next) in due {
            let bytes = match next {
                Next::Again => self.again(at),
                Next::First => match self.number(at) {
                    Some(bytes) => bytes,
                    None => continue,
                },
            };
            self.note_sent(now, at, bytes.0, &mut sent);
            batches.push((at, bytes.0));
            let partition = &self.partitions[at];
            let row = PartitionProduceData { index: partition.index, records: Some(bytes.1), ..Default::default() };
            rows.entry(partition.topic).or_default().push(row);
            // The last one may take the request over the limit only where it is alone; see `append`.
            if sent.bytes + self.config.batch_size > self.config.max_request_size {
                break;
            }
        }
        if batches.is_empty() {
            return;
        }
        let topic = |(topic, partition_data): (usize, Vec<PartitionProduceData>)| TopicProduceData {
            name: self.topics[topic].name.clone(),
            topic_id: self.topics[topic].id,
            partition_data,
            ..TopicProduceData::default()
        };
        let body = ProduceRequest {
            transactional_id: self.transaction.as_ref().map(|t| t.id().clone()),
            acks: -1,
            timeout_ms: self.config.request_timeout_ms,
            topic_data: rows.into_iter().map(topic).collect(),
            ..ProduceRequest::default()
        };
        let request = self.next_request;
        self.next_request += 1;
        self.requests.insert(request, Request { node, batches });
        *self.nodes.entry(node).or_default() += 1;
        self.outputs.push_back(Output::Produce { node, request, body, sent });
    }

    fn note_sent(&self, now: Instant, at: usize, id: BatchId, sent: &mut SentBatches) {
        let Some(batch) = self.partitions[at].sent.iter().find(|b| b.id == id) else { return };
        let records = usize::try_from(batch.records).unwrap_or(0);
        sent.batches += 1;
        sent.bytes += batch.bytes.len();
        sent.largest = sent.largest.max(batch.bytes.len());
        if batch.attempts > 1 {
            sent.retried += records;
        } else {
            sent.records += records;
            sent.queued = sent.queued.max(now.saturating_duration_since(batch.created));
        }
    }

    fn again(&mut self, at: usize) -> (BatchId, bytes::Bytes) {
        let batch = &mut self.partitions[at].sent[0];
        batch.phase = Phase::InFlight;
        batch.attempts += 1;
        (batch.id, batch.bytes.clone())
    }

    /// Gives the partition's next batch its sequence numbers.
    fn number(&mut self, at: usize) -> Option<(BatchId, bytes::Bytes)> {
        let identity = self.identity;
        let partition = &mut self.partitions[at];
        let sequence = partition.next_sequence;
        let numbered: Result<Sequenced, (BatchId, usize, RecordError)> =
            if let Some(mut batch) = partition.renumbered.pop_front() {
                let mut bytes = BytesMut::from(batch.bytes);
                batch.bytes = bytes::Bytes::new();
                match patch::set_producer(&mut bytes, identity.id, identity.epoch, sequence) {
                    Ok(()) => Ok(Sequenced { bytes: bytes.freeze(), attempts: batch.attempts + 1, ..batch }),
                    Err(error) => Err((batch.id, batch.charge, error)),
                }
            } else {
                if partition.waiting.is_empty() {
                    partition.seal();
                }
                let mut batch = partition.waiting.pop_front()?;
                batch.builder.set_producer(identity.id, identity.epoch, sequence);
                let (id, created, charge) = (batch.id, batch.created, batch.charge);
                let records = i32::try_from(batch.builder.record_count()).unwrap_or(i32::MAX);
                match batch.builder.finish() {
                    Ok(bytes) => Ok(Sequenced {
                        id,
                        bytes: bytes.freeze(),
                        records,
                        identity,
                        created,
                        charge,
                        phase: Phase::InFlight,
                        attempts: 1,
                        maybe_written: false,
                    }),
                    Err(error) => Err((id, charge, error)),
                }
            };
        match numbered {
            Ok(batch) => {
                let batch = Sequenced { identity, phase: Phase::InFlight, maybe_written: false, ..batch };
                partition.next_sequence = advance(sequence, batch.records);
                let sent = (batch.id, batch.bytes.clone());
                partition.sent.push_back(batch);
                Some(sent)
            }
            Err((id, charge, error)) => {
                let text = format!("the batch cannot be encoded: {error}");
                let kind = BatchErrorKind::Refused;
                self.done(id, charge, Err(BatchError { code: None, kind, text: text.clone(), maybe_written: false }));
                self.fail_transaction_inner(TxnError::new(TxnErrorKind::Abortable, text), false);
                None
            }
        }
    }

    /// Fails batches whose `delivery.timeout.ms` has passed, except those whose answer is awaited.
    pub(super) fn expire(&mut self, now: Instant) {
        let limit = self.config.delivery_timeout;
        let mut expired = Vec::new();
        let mut doubtful = false;
        for p in &mut self.partitions {
            if p.open.as_ref().is_some_and(|o| o.created + limit <= now) {
                p.seal();
            }
            let topic = &self.topics[p.topic].name;
            while p.waiting.front().is_some_and(|b| b.created + limit <= now) {
                let Some(batch) = p.waiting.pop_front() else { break };
                expired.push((batch.id, batch.charge, false, format!("{topic}-{}", p.index)));
            }
            for queue in [&mut p.sent, &mut p.renumbered] {
                let mut at = 0;
                while let Some(batch) = queue.get(at) {
                    if batch.phase == Phase::InFlight || batch.created + limit > now {
                        at += 1;
                        continue;
                    }
                    if let Some(batch) = queue.remove(at) {
                        doubtful = true;
                        expired.push((batch.id, batch.charge, batch.maybe_written, format!("{topic}-{}", p.index)));
                    }
                }
            }
        }
        if doubtful {
            self.doubt();
        }
        for (id, charge, maybe_written, place) in expired {
            let text = format!("records for {place} were not delivered within {} ms", limit.as_millis());
            let kind = BatchErrorKind::TimedOut;
            self.done(id, charge, Err(BatchError { code: None, kind, text: text.clone(), maybe_written }));
            if self.transaction.as_ref().is_some_and(Transaction::is_unfinished) {
                self.fail_transaction_inner(TxnError::new(TxnErrorKind::Abortable, text), doubtful);
            }
        }
    }

    pub(super) fn mark_stale(&mut self, now: Instant, topic: kafka_share_wire::Str) {
        if self.stale.insert(topic) && self.refresh_not_before.is_none() {
            self.refresh_not_before = Some(now);
        }
    }

    pub(super) fn drive_refresh(&mut self, now: Instant) {
        if self.stale.is_empty() {
            self.refresh_not_before = None;
        } else if self.refresh_not_before.is_none_or(|at| at <= now) {
            self.refresh_not_before = Some(self.pause(now, 2));
            self.outputs.push_back(Output::RefreshMetadata(self.stale.iter().cloned().collect()));
        }
    }

    /// Whether an idempotent producer is in the middle of getting a new epoch.
    #[must_use]
    pub fn is_between_epochs(&self) -> bool {
        matches!(self.identity_state, IdentityState::Doubtful | IdentityState::Asked)
    }
}
