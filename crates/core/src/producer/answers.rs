//! Answers to produce requests: what each code means to its batch, to the sequence numbers and to the transaction.

use super::Producer;
use super::partition::{Phase, Sequenced};
use super::types::{BatchError, BatchErrorKind, BatchId, Output, ProduceFailure, Written};
use crate::metadata::{Leader, Node, TopicIdPartition};
use crate::transaction::{FENCED, TxnError, TxnErrorKind};
use kafka_share_messages::produce_response::PartitionProduceResponse;
use kafka_share_messages::{ErrorCode, ProduceResponse};
use std::collections::HashMap;
use std::time::Instant;

/// What is to be done about a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Retry,
    /// Number it anew in the next epoch.
    Renumber,
    Fail,
    FailAndFence,
}

impl Producer {
    /// Takes the answer to a produce request.
    pub fn handle_produced(&mut self, now: Instant, request: u64, result: Result<&ProduceResponse, &ProduceFailure>) {
        let Some(sent) = self.requests.remove(&request) else { return };
        self.used = self.used.saturating_sub(sent.held);
        if let Some(broker) = self.agenda.brokers.get_mut(&sent.node) {
            broker.in_flight = broker.in_flight.saturating_sub(1);
        }
        for (at, _) in &sent.batches {
            self.note(*at);
        }
        match result {
            Ok(response) => {
                let nodes: Vec<Node> = response.node_endpoints.iter().filter_map(node).collect();
                let mut answers = self.by_partition(response);
                for (at, batch) in sent.batches {
                    match answers.remove(&at) {
                        Some(answer) => self.settle(now, at, batch, answer, &nodes),
                        None => self.unanswered(now, at, batch, true, "the broker's answer leaves the partition out"),
                    }
                }
            }
            Err(failure) => {
                for (at, batch) in sent.batches {
                    if failure.fatal {
                        self.finish(now, at, batch, Fate::Fail, ErrorCode::NONE, &failure.text, failure.maybe_done);
                    } else {
                        self.unanswered(now, at, batch, failure.maybe_done, &failure.text);
                    }
                }
            }
        }
    }

    fn by_partition<'a>(&self, response: &'a ProduceResponse) -> HashMap<usize, &'a PartitionProduceResponse> {
        let mut answers = HashMap::new();
        for topic in &response.responses {
            // Named by id from version 13 on, by name before.
            let state = match self.by_name.get(&topic.name) {
                Some(at) => self.topics.get(*at),
                None => self.topics.iter().find(|t| t.id == topic.topic_id && !t.id.is_zero()),
            };
            let Some(state) = state else { continue };
            for p in &topic.partition_responses {
                if let Some(at) = usize::try_from(p.index).ok().and_then(|i| state.partitions.get(i)) {
                    answers.insert(*at, p);
                }
            }
        }
        answers
    }

    fn unanswered(&mut self, now: Instant, at: usize, batch: BatchId, maybe_done: bool, _why: &str) {
        let name = self.topics[self.partitions[at].topic].name.clone();
        self.mark_stale(now, name);
        let attempts = self.find(at, batch).map_or(1, |b| b.attempts);
        let again = self.pause(now, attempts);
        if let Some(batch) = self.find(at, batch) {
            batch.maybe_written |= maybe_done;
            batch.phase = Phase::Retry(again);
        }
    }

    fn find(&mut self, at: usize, id: BatchId) -> Option<&mut Sequenced> {
        self.partitions[at].sent.iter_mut().find(|b| b.id == id)
    }

    fn settle(&mut self, now: Instant, at: usize, batch: BatchId, answer: &PartitionProduceResponse, nodes: &[Node]) {
        let code = answer.error_code;
        if code.is_ok() || code == ErrorCode::DUPLICATE_SEQUENCE_NUMBER {
            let base_offset = if code.is_ok() { answer.base_offset } else { -1 };
            return self.written(at, batch, Written { base_offset, log_append_time: answer.log_append_time_ms });
        }
        if code == ErrorCode::MESSAGE_TOO_LARGE && self.split(now, at, batch) {
            return;
        }
        self.take_leader(now, at, answer, nodes);
        let detail = answer.error_message.as_ref().map_or(code.about(), |m| m.as_str()).to_owned();
        let records: Vec<String> = answer
            .record_errors
            .iter()
            .map(|r| format!("; record {}: {}", r.batch_index, r.batch_index_error_message.as_deref().unwrap_or("")))
            .take(3)
            .collect();
        let fate = self.fate(at, batch, code);
        let mut detail = format!("{detail}{}", records.concat());
        if code == ErrorCode::MESSAGE_TOO_LARGE {
            let size = self.find(at, batch).map_or(0, |b| b.bytes.len());
            detail = format!(
                "{detail} The record alone makes a batch of {size} bytes. Raise max.message.bytes of the topic (or \
                 message.max.bytes of the brokers), compress, or send smaller records."
            );
        }
        self.finish(now, at, batch, fate, code, &detail, false);
    }

    fn take_leader(&mut self, now: Instant, at: usize, answer: &PartitionProduceResponse, nodes: &[Node]) {
        let partition = &mut self.partitions[at];
        let topic = &self.topics[partition.topic];
        let leader = Leader { id: answer.current_leader.leader_id, epoch: answer.current_leader.leader_epoch };
        if leader.id >= 0 && leader.id != partition.leader && nodes.iter().any(|n| n.id == leader.id) {
            partition.leader = leader.id;
            let tp = TopicIdPartition { topic_id: topic.id, partition: partition.index };
            self.outputs.push_back(Output::LeaderHint(tp, leader, nodes.to_vec()));
        } else if answer.error_code.needs_metadata() {
            let name = topic.name.clone();
            self.mark_stale(now, name);
        }
    }

    fn written(&mut self, at: usize, id: BatchId, written: Written) {
        let partition = &mut self.partitions[at];
        let Some(place) = partition.sent.iter().position(|b| b.id == id) else { return };
        let Some(batch) = partition.sent.remove(place) else { return };
        partition.refusal = None;
        partition.confirmed |= batch.identity == self.identity;
        self.done(id, batch.charge, Ok(written));
    }

    fn fate(&mut self, at: usize, id: BatchId, code: ErrorCode) -> Fate {
        let transactional = self.transaction.is_some();
        let partition = &self.partitions[at];
        let place = partition.sent.iter().position(|b| b.id == id).unwrap_or(0);
        let maybe_written = partition.sent.get(place).is_some_and(|b| b.maybe_written);
        match code {
            // An earlier batch is not settled yet: this one came too soon.
            ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER
                if partition.sent.iter().take(place).any(|b| b.phase != Phase::Renumber) =>
            {
                Fate::Retry
            }
            ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER
            | ErrorCode::UNKNOWN_PRODUCER_ID
            | ErrorCode::INVALID_PRODUCER_EPOCH
            | ErrorCode::INVALID_PRODUCER_ID_MAPPING
                if !transactional && !maybe_written =>
            {
                Fate::Renumber
            }
            ErrorCode::PRODUCER_FENCED | ErrorCode::TRANSACTIONAL_ID_AUTHORIZATION_FAILED if transactional => {
                Fate::FailAndFence
            }
            // The transaction before is still being completed.
            ErrorCode::CONCURRENT_TRANSACTIONS => Fate::Retry,
            _ if code.is_retriable() => Fate::Retry,
            _ => Fate::Fail,
        }
    }

    fn finish(
        &mut self,
        now: Instant,
        at: usize,
        id: BatchId,
        fate: Fate,
        code: ErrorCode,
        detail: &str,
        maybe_done: bool,
    ) {
        match fate {
            Fate::Retry => {
                let attempts = self.find(at, id).map_or(1, |b| b.attempts);
                let again = self.pause_after(now, code, attempts);
                // Of a batch whose time is over it says nothing any more.
                if let Some(batch) = self.find(at, id) {
                    batch.phase = Phase::Retry(again);
                    batch.maybe_written |= may_be_appended(code);
                    self.partitions[at].refusal = code.is_err().then_some(code);
                }
            }
            Fate::Renumber => {
                if let Some(batch) = self.find(at, id) {
                    batch.phase = Phase::Renumber;
                }
                self.doubt();
            }
            Fate::Fail | Fate::FailAndFence => self.fail_batch(at, id, fate, code, detail, maybe_done),
        }
        self.partitions[at].renumber_behind();
    }

    fn fail_batch(&mut self, at: usize, id: BatchId, fate: Fate, code: ErrorCode, detail: &str, maybe_done: bool) {
        let partition = &mut self.partitions[at];
        let Some(place) = partition.sent.iter().position(|b| b.id == id) else { return };
        let Some(batch) = partition.sent.remove(place) else { return };
        let place = format!("{}-{}", self.topics[partition.topic].name, partition.index);
        let advice = if fate == Fate::FailAndFence && self.transaction.is_some() { FENCED } else { "" };
        let text = match code {
            ErrorCode::NONE => format!("producing to {place}: {detail}{advice}"),
            code => format!("producing to {place}: {code}: {detail}{advice}"),
        };
        let code = code.is_err().then_some(code);
        let (kind, txn_kind) = match fate {
            Fate::FailAndFence => (BatchErrorKind::Fenced, TxnErrorKind::Fenced),
            _ => (BatchErrorKind::Refused, TxnErrorKind::Abortable),
        };
        let maybe_written = batch.maybe_written || maybe_done;
        self.done(id, batch.charge, Err(BatchError { code, kind, text: text.clone(), maybe_written }));
        // Its sequence numbers are missing in the log: those behind it can never be taken in this epoch.
        self.doubt();
        self.fail_transaction_inner(TxnError { kind: txn_kind, code, text }, true);
    }
}

fn node(n: &kafka_share_messages::produce_response::NodeEndpoint) -> Option<Node> {
    Some(Node { id: n.node_id, host: n.host.detached(), port: u16::try_from(n.port).ok()? })
}

/// Codes that a broker may answer after it has appended the batch: it was not replicated in time, or leadership or the
/// disk was lost meanwhile.
fn may_be_appended(code: ErrorCode) -> bool {
    matches!(
        code,
        ErrorCode::REQUEST_TIMED_OUT
            | ErrorCode::NOT_ENOUGH_REPLICAS_AFTER_APPEND
            | ErrorCode::NOT_LEADER_OR_FOLLOWER
            | ErrorCode::KAFKA_STORAGE_ERROR
    )
}
