//! Produce (v3-13): appends one batch per partition. Topic ids from v13 on; leader hints from v10 on.
//!
//! A transactional batch must belong to a transaction that holds the partition. From v12 on (TV2) the partition is enrolled
//! here; before, the client enrolled it with AddPartitionsToTxn and it is verified. With acks 0 there is no answer:
//! an error closes the connection, as in Kafka.

use super::leader_hints::{endpoints, is_stale};
use super::{Outcome, RequestContext};
use crate::cluster::{CloseReason, Cluster, Refusal, TopicRef, WaitKey};
use crate::log::{AppendRequest, Appended, parse_batch};
use crate::security::Operation;
use crate::txn_coordinator::Participant;
use kafka_share_messages::produce_request::{PartitionProduceData, TopicProduceData};
use kafka_share_messages::produce_response::{
    LeaderIdAndEpoch, NodeEndpoint, PartitionProduceResponse, TopicProduceResponse,
};
use kafka_share_messages::{ErrorCode, ProduceRequest, ProduceResponse};
use kafka_share_wire::{Str, Uuid};
use std::collections::HashMap;

pub(crate) fn handle(cluster: &mut Cluster, ctx: &RequestContext, request: ProduceRequest) -> Outcome<ProduceResponse> {
    // As in Kafka: who may use no id at all may not write with one, and the whole request is refused.
    let may = |id: &Str| cluster.may_transact(ctx, Operation::Write, id).is_ok();
    let unnamed = !request.transactional_id.as_ref().is_some_and(may) && has_transactional(&request);
    let txn_id = request.transactional_id.as_ref().filter(|id| !id.is_empty());
    let mut responses = Vec::with_capacity(request.topic_data.len());
    let mut leaders = Vec::new();
    let mut failed = false;
    // As in Kafka: of a partition that is named twice the last records count.
    let mut last: HashMap<(&Str, Uuid, i32), &PartitionProduceData> = HashMap::new();
    for topic in &request.topic_data {
        last.extend(topic.partition_data.iter().map(|data| ((&topic.name, topic.topic_id, data.index), data)));
    }
    for topic in &request.topic_data {
        let found = find(cluster, ctx, topic);
        let mut partition_responses = Vec::with_capacity(topic.partition_data.len());
        for data in &topic.partition_data {
            if !std::ptr::eq(last[&(&topic.name, topic.topic_id, data.index)], data) {
                continue;
            }
            let result = match found {
                _ if unnamed => Err(Refusal::from(ErrorCode::TRANSACTIONAL_ID_AUTHORIZATION_FAILED).into()),
                _ if !(-1..=1).contains(&request.acks) => Err(Refusal::from(ErrorCode::INVALID_REQUIRED_ACKS).into()),
                Err(code) => Err(Refusal::from(code).into()),
                Ok(id) => append(cluster, ctx, &Batch { topic: id, data, txn_id, acks: request.acks }),
            };
            failed |= result.is_err();
            let tells_start = result.as_ref().err().is_none_or(|refused| refused.tells_start);
            let mut response = answer(data.index, result.map_err(|refused| refused.refusal));
            if let Ok(id) = found {
                finish(cluster, ctx, (id, tells_start), &mut response, &mut leaders);
            }
            partition_responses.push(response);
        }
        if partition_responses.is_empty() && !topic.partition_data.is_empty() {
            continue;
        }
        responses.push(TopicProduceResponse {
            name: topic.name.clone(),
            topic_id: topic.topic_id,
            partition_responses,
            ..Default::default()
        });
    }
    if request.acks == 0 {
        return if failed { Outcome::Close(CloseReason::UnansweredError) } else { Outcome::NoReply };
    }
    let node = |(node_id, host, port)| NodeEndpoint { node_id, host, port, ..Default::default() };
    let node_endpoints = endpoints(cluster, ctx.listener, leaders).into_iter().map(node).collect();
    Outcome::Reply(ProduceResponse { responses, node_endpoints, ..Default::default() })
}

fn has_transactional(request: &ProduceRequest) -> bool {
    let records =
        request.topic_data.iter().flat_map(|topic| &topic.partition_data).filter_map(|data| data.records.as_ref());
    records.filter_map(|records| parse_batch(records).ok()).any(|batch| batch.is_transactional())
}

struct Batch<'a> {
    topic: Uuid,
    data: &'a PartitionProduceData,
    txn_id: Option<&'a Str>,
    acks: i16,
}

/// Why a batch was not appended, and whether the answer tells where the log starts, which depends on how far it came.
struct Refused {
    refusal: Refusal,
    tells_start: bool,
}

impl From<Refusal> for Refused {
    fn from(refusal: Refusal) -> Self {
        Refused { refusal, tells_start: false }
    }
}

impl Refused {
    /// A refusal of the log itself. As in Kafka, some errors say nothing of the log all the same.
    fn by_log(refusal: Refusal) -> Self {
        let silent = matches!(
            refusal.code,
            ErrorCode::MESSAGE_TOO_LARGE | ErrorCode::CORRUPT_MESSAGE | ErrorCode::KAFKA_STORAGE_ERROR
        );
        Refused { refusal, tells_start: !silent }
    }
}

fn find(cluster: &Cluster, ctx: &RequestContext, topic: &TopicProduceData) -> Result<Uuid, ErrorCode> {
    let topic = if ctx.version >= 13 { TopicRef::Id(topic.topic_id) } else { TopicRef::Name(&topic.name) };
    let found = cluster.allowed_topic(ctx, Operation::Write, &topic)?;
    // Kafka lets only its own admin clients write there, and embedded coordinators keep nothing in these logs.
    if found.internal { Err(ErrorCode::INVALID_TOPIC_EXCEPTION) } else { Ok(found.id) }
}

fn append(cluster: &mut Cluster, ctx: &RequestContext, batch: &Batch<'_>) -> Result<Appended, Refused> {
    let records = batch.data.records.as_ref().filter(|records| !records.is_empty());
    let records =
        records.ok_or_else(|| Refusal::new(ErrorCode::INVALID_RECORD, "the produce request has no record batch"))?;
    cluster.check_memory(records.len()).map_err(Refusal::from)?;
    let (topic, index) = (batch.topic, batch.data.index);
    let partition = cluster.led_partition(ctx.node, topic, index, -1).map_err(Refusal::from)?;
    let header = *parse_batch(records)?.header();
    let known = partition.log.producers().get(header.producer_id);
    let stale = known.is_some_and(|state| header.producer_epoch < state.epoch);
    let open = partition.log.producers().has_open(header.producer_id, header.producer_epoch);
    let replicas = partition.replicas.clone();
    let in_sync = replicas.iter().filter(|id| cluster.node(**id).is_some_and(|n| n.alive)).count();
    let gone = || Refusal::from(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
    let verified = match batch.txn_id {
        // As Kafka: without a producer there is no transaction to be part of, and nothing is checked.
        Some(id) if header.is_transactional() && header.producer_id >= 0 && !open => {
            // The coordinator is not asked about a producer that the log knows to be fenced.
            if stale {
                return Err(
                    Refusal::new(ErrorCode::INVALID_PRODUCER_EPOCH, "the producer's epoch is not the last").into()
                );
            }
            let member = Participant::Partition(topic, index);
            verify(cluster, ctx, id, (header.producer_id, header.producer_epoch), member)?;
            true
        }
        _ => false,
    };
    let found = cluster.topics.by_id_mut(topic).ok_or_else(gone)?;
    if batch.acks == -1 && in_sync < found.config.min_insync_replicas.min(replicas.len()) {
        return Err(Refused::by_log(ErrorCode::NOT_ENOUGH_REPLICAS.into()));
    }
    let config = found.config;
    let partition = found.partition_mut(index).ok_or_else(gone)?;
    let before = partition.log.bytes();
    let appended = partition.log.append(&AppendRequest {
        records,
        config: &config,
        leader_epoch: partition.leader_epoch,
        now_ms: ctx.now.wall_ms,
        in_transaction: verified,
        epoch_per_transaction: ctx.version >= 12,
    });
    let appended = appended.map_err(Refused::by_log)?;
    let grown = partition.log.bytes() - before;
    cluster.log_bytes += grown;
    cluster.wake(&WaitKey::Partition(topic, index));
    Ok(appended)
}

/// Asks the transaction coordinator, as the partition's leader does in Kafka (KIP-890).
fn verify(
    cluster: &mut Cluster,
    ctx: &RequestContext,
    txn_id: &Str,
    producer: (i64, i16),
    member: Participant,
) -> Result<(), Refusal> {
    let result = if ctx.version >= 12 {
        cluster.transactions.enrol(ctx.now, txn_id, producer, &[member], true)
    } else {
        cluster.transactions.verify(txn_id, producer, member)
    };
    result.map_err(|code| {
        let code = match code {
            ErrorCode::PRODUCER_FENCED => ErrorCode::INVALID_PRODUCER_EPOCH,
            ErrorCode::TRANSACTION_ABORTABLE if ctx.version < 11 => ErrorCode::INVALID_TXN_STATE,
            ErrorCode::CONCURRENT_TRANSACTIONS if ctx.version < 12 => ErrorCode::NOT_ENOUGH_REPLICAS,
            code => code,
        };
        Refusal::new(code, "the partition is not part of this producer's transaction")
    })
}

fn answer(index: i32, result: Result<Appended, Refusal>) -> PartitionProduceResponse {
    match result {
        Ok(appended) => PartitionProduceResponse {
            index,
            base_offset: appended.base_offset,
            log_append_time_ms: appended.log_append_time,
            ..Default::default()
        },
        Err(refusal) => PartitionProduceResponse {
            index,
            error_code: refusal.code,
            error_message: Some(Str::from(refusal.message)).filter(|m| !m.is_empty()),
            base_offset: -1,
            log_append_time_ms: -1,
            log_start_offset: -1,
            ..Default::default()
        },
    }
}

/// Adds the log's start to a success and the leader to an error.
fn finish(
    cluster: &Cluster,
    ctx: &RequestContext,
    (topic, tells_start): (Uuid, bool),
    response: &mut PartitionProduceResponse,
    leaders: &mut Vec<i32>,
) {
    if tells_start {
        let partition = cluster.topics.by_id(topic).and_then(|t| t.partition(response.index));
        response.log_start_offset = partition.map_or(-1, |p| p.log.start_offset());
    }
    if ctx.version >= 10 && is_stale(response.error_code) {
        let (leader_id, leader_epoch) = cluster.leader_of(topic, response.index);
        response.current_leader = LeaderIdAndEpoch { leader_id, leader_epoch, ..Default::default() };
        leaders.push(leader_id);
    }
}
