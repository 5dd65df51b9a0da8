//! From batches to produce requests: which partitions are due, by leader.

use super::draft::{Batch, Row};
use super::partition::{Collected, Next, Phase, Sequenced, advance};
use super::types::{BatchError, BatchErrorKind, BatchId, Encoded, Output, ProduceDraft, SentBatches};
use super::{IdentityState, Producer};
use crate::transaction::{Transaction, TxnError, TxnErrorKind};
use bytes::{Bytes, BytesMut};
use kafka_share_wire::records::patch;
use std::collections::BTreeMap;
use std::time::Instant;

/// A request whose answer is awaited.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) node: i32,
    /// Partitions and the batch that was sent to each.
    pub(super) batches: Vec<(usize, BatchId)>,
    /// Bytes of `buffer.memory` of batches that were given up meanwhile: the request holds them still.
    pub(super) held: usize,
}

/// A batch whose time is over.
struct Expired {
    id: BatchId,
    charge: usize,
    in_flight: bool,
    maybe_written: bool,
}

impl Producer {
    pub(super) fn drain(&mut self, now: Instant) {
        loop {
            // A batch that is sent or given up may leave the next one due.
            self.look(now);
            let limit = self.config.max_in_flight;
            let free = self.agenda.brokers.iter().filter(|(_, b)| b.in_flight < limit && !b.ready.is_empty());
            let Some(node) = free.map(|(node, _)| *node).min() else { break };
            self.drain_node(now, node);
        }
        // Partitions that were found missing in the transaction.
        self.drive_adds(now);
    }

    pub(super) fn may_join(&mut self, at: usize) -> bool {
        let partition = &self.partitions[at];
        let topic = &self.topics[partition.topic].name;
        self.transaction.as_mut().is_none_or(|t| t.admit(topic, partition.index))
    }

    fn drain_node(&mut self, now: Instant, node: i32) {
        let mut batches = Vec::new();
        let mut rows: BTreeMap<usize, Vec<Row>> = BTreeMap::new();
        let (mut sent, mut size) = (SentBatches::default(), 0);
        // The last one may take the request over the limit only where it is alone; see `append`.
        while batches.is_empty() || size + self.config.batch_size <= self.config.max_request_size {
            let Some((at, next)) = self.take_ready(now, node) else { break };
            let given = match next {
                Next::Again => self.again(at),
                Next::First => self.number(at),
            };
            // What is left, or comes, is looked at anew: one batch of a partition in a request.
            self.note(at);
            let Some((id, batch)) = given else { continue };
            self.note_sent(now, at, id, &mut sent);
            size += batch.size();
            batches.push((at, id));
            let partition = &self.partitions[at];
            rows.entry(partition.topic).or_default().push(Row { index: partition.index, at, id, batch });
        }
        if batches.is_empty() {
            return;
        }
        let topics = rows.into_iter().map(|(topic, rows)| {
            let topic = &self.topics[topic];
            (topic.name.clone(), topic.id, rows)
        });
        let transactional_id = self.transaction.as_ref().map(|t| t.id().clone());
        let draft = ProduceDraft {
            transactional_id,
            timeout_ms: self.config.request_timeout_ms,
            topics: topics.collect(),
            sent,
        };
        let request = self.next_request;
        self.next_request += 1;
        self.requests.insert(request, Request { node, batches, held: 0 });
        self.agenda.brokers.entry(node).or_default().in_flight += 1;
        self.outputs.push_back(Output::Produce { node, request, draft });
    }

    fn note_sent(&self, now: Instant, at: usize, id: BatchId, sent: &mut SentBatches) {
        let Some(batch) = self.partitions[at].sent.iter().find(|b| b.id == id) else { return };
        let records = usize::try_from(batch.records).unwrap_or(0);
        sent.batches += 1;
        if batch.attempts > 1 {
            sent.retried += records;
        } else {
            sent.records += records;
            sent.queued = sent.queued.max(now.saturating_duration_since(batch.created));
        }
    }

    fn again(&mut self, at: usize) -> Option<(BatchId, Batch)> {
        let batch = self.partitions[at].sent.iter_mut().find(|b| b.phase != Phase::Renumber)?;
        batch.phase = Phase::InFlight;
        batch.attempts += 1;
        Some((batch.id, Batch::Encoded(batch.bytes.clone())))
    }

    /// Gives the partition's next batch its sequence numbers.
    fn number(&mut self, at: usize) -> Option<(BatchId, Batch)> {
        if self.partitions[at].renumbered.is_empty() { self.number_first(at) } else { self.number_again(at) }
    }

    fn number_first(&mut self, at: usize) -> Option<(BatchId, Batch)> {
        let identity = self.identity;
        let partition = &mut self.partitions[at];
        if partition.waiting.is_empty() {
            partition.seal();
        }
        let Collected { id, mut builder, created, charge } = partition.waiting.pop_front()?;
        let records = i32::try_from(builder.record_count()).unwrap_or(i32::MAX);
        builder.set_producer(identity.id, identity.epoch, partition.next_sequence);
        partition.next_sequence = advance(partition.next_sequence, records);
        partition.sent.push_back(Sequenced {
            id,
            bytes: Bytes::new(),
            records,
            identity,
            created,
            charge,
            phase: Phase::InFlight,
            attempts: 1,
            maybe_written: false,
        });
        Some((id, Batch::Collected(Box::new(builder))))
    }

    fn number_again(&mut self, at: usize) -> Option<(BatchId, Batch)> {
        let identity = self.identity;
        let partition = &mut self.partitions[at];
        let mut batch = partition.renumbered.pop_front()?;
        let mut bytes = BytesMut::from(std::mem::take(&mut batch.bytes));
        if let Err(error) = patch::set_producer(&mut bytes, identity.id, identity.epoch, partition.next_sequence) {
            let text = format!("the batch cannot be numbered: {error}");
            let kind = BatchErrorKind::Refused;
            let error = BatchError { code: None, kind, text: text.clone(), maybe_written: false };
            self.done(batch.id, batch.charge, Err(error));
            self.fail_transaction_inner(TxnError::new(TxnErrorKind::Abortable, text), false);
            return None;
        }
        partition.next_sequence = advance(partition.next_sequence, batch.records);
        batch.bytes = bytes.freeze();
        let sent = (batch.id, Batch::Encoded(batch.bytes.clone()));
        let attempts = batch.attempts + 1;
        partition.sent.push_back(Sequenced {
            identity,
            phase: Phase::InFlight,
            maybe_written: false,
            attempts,
            ..batch
        });
        Some(sent)
    }

    /// Keeps the bytes of batches that were encoded, to send the same again.
    pub fn handle_encoded(&mut self, encoded: Vec<Encoded>) {
        for Encoded { at, id, bytes } in encoded {
            if let Some(batch) = self.partitions[at].sent.iter_mut().find(|b| b.id == id) {
                batch.bytes = bytes;
            }
        }
    }

    /// Fails batches whose `delivery.timeout.ms` has passed, also those whose answer is awaited: they may be written or not.
    pub(super) fn expire(&mut self, now: Instant, at: usize) {
        let limit = self.config.delivery_timeout;
        let p = &mut self.partitions[at];
        if p.open.as_ref().is_some_and(|o| o.created + limit <= now) {
            p.seal();
        }
        let mut expired = Vec::new();
        while p.waiting.front().is_some_and(|b| b.created + limit <= now) {
            let Some(batch) = p.waiting.pop_front() else { break };
            expired.push(Expired { id: batch.id, charge: batch.charge, in_flight: false, maybe_written: false });
        }
        let unsent = expired.len();
        for queue in [&mut p.sent, &mut p.renumbered] {
            if !queue.iter().any(|batch| batch.created + limit <= now) {
                continue;
            }
            for batch in std::mem::take(queue) {
                if batch.created + limit > now {
                    queue.push_back(batch);
                    continue;
                }
                let Sequenced { id, charge, phase, maybe_written, .. } = batch;
                let in_flight = phase == Phase::InFlight;
                expired.push(Expired { id, charge, in_flight, maybe_written: in_flight || maybe_written });
            }
        }
        if expired.is_empty() {
            return;
        }
        // The sequence numbers of those that had some may be missing in the log. Others get theirs once it is known what
        // became of all requests.
        let doubtful = expired.len() > unsent;
        if doubtful {
            self.doubt();
        }
        let p = &self.partitions[at];
        let place = format!("{}-{}", self.topics[p.topic].name, p.index);
        let refusal = p.refusal.map(|code| format!(": its leader answers {code} ({})", code.about()));
        let refusal = refusal.unwrap_or_default();
        for batch in expired {
            let text = format!("records for {place} were not delivered within {} ms{refusal}", limit.as_millis());
            self.fail_expired(at, &batch, text, doubtful);
        }
    }

    fn fail_expired(&mut self, at: usize, batch: &Expired, text: String, doubtful: bool) {
        let Expired { id, mut charge, in_flight, maybe_written } = *batch;
        let mut requests = self.requests.values_mut();
        if in_flight && let Some(request) = requests.find(|r| r.batches.contains(&(at, id))) {
            request.held += std::mem::take(&mut charge);
        }
        let kind = BatchErrorKind::TimedOut;
        self.done(id, charge, Err(BatchError { code: None, kind, text: text.clone(), maybe_written }));
        if self.transaction.as_ref().is_some_and(Transaction::is_unfinished) {
            self.fail_transaction_inner(TxnError::new(TxnErrorKind::Abortable, text), doubtful);
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
