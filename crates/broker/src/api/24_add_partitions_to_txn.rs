//! AddPartitionsToTxn: v0-3 from producers (TV1), v4-5 batched from brokers, which may only ask (`VerifyOnly`).
//!
//! In v0-3 a partition that does not exist spoils the whole request: the others are OPERATION_NOT_ATTEMPTED. Internal
//! topics are refused with TOPIC_AUTHORIZATION_FAILED, as Kafka does. Before v2, fencing is INVALID_PRODUCER_EPOCH.

use super::{Outcome, RequestContext};
use crate::cluster::{Cluster, CoordinatorKind};
use crate::security::Operation;
use crate::txn_coordinator::Participant;
use kafka_share_messages::add_partitions_to_txn_request::{AddPartitionsToTxnTopic, AddPartitionsToTxnTransaction};
use kafka_share_messages::add_partitions_to_txn_response::{
    AddPartitionsToTxnPartitionResult, AddPartitionsToTxnResult, AddPartitionsToTxnTopicResult,
};
use kafka_share_messages::{AddPartitionsToTxnRequest, AddPartitionsToTxnResponse, ErrorCode};

pub(crate) fn handle(
    cluster: &mut Cluster,
    ctx: &RequestContext,
    request: AddPartitionsToTxnRequest,
) -> Outcome<AddPartitionsToTxnResponse> {
    if ctx.version < 4 {
        let txn = AddPartitionsToTxnTransaction {
            transactional_id: request.v3_and_below_transactional_id,
            producer_id: request.v3_and_below_producer_id,
            producer_epoch: request.v3_and_below_producer_epoch,
            topics: request.v3_and_below_topics,
            ..Default::default()
        };
        let results_by_topic_v3_and_below = one(cluster, ctx, &txn);
        return Outcome::Reply(AddPartitionsToTxnResponse { results_by_topic_v3_and_below, ..Default::default() });
    }
    if let Err(error_code) = cluster.may_cluster(ctx, Operation::ClusterAction) {
        return Outcome::Reply(AddPartitionsToTxnResponse { error_code, ..Default::default() });
    }
    let results_by_transaction = request
        .transactions
        .iter()
        .map(|txn| AddPartitionsToTxnResult {
            transactional_id: txn.transactional_id.clone(),
            topic_results: one(cluster, ctx, txn),
            ..Default::default()
        })
        .collect();
    Outcome::Reply(AddPartitionsToTxnResponse { results_by_transaction, ..Default::default() })
}

fn one(
    cluster: &mut Cluster,
    ctx: &RequestContext,
    txn: &AddPartitionsToTxnTransaction,
) -> Vec<AddPartitionsToTxnTopicResult> {
    if ctx.version < 4
        && let Err(code) = cluster.may_transact(ctx, Operation::Write, &txn.transactional_id)
    {
        return each(&txn.topics, |_, _| code);
    }
    let mut bad = false;
    let mut members = Vec::new();
    let mut results = each(&txn.topics, |topic, index| {
        let found = cluster.topics.get(&topic.name);
        let allowed = cluster.may_topic(ctx, Operation::Write, &topic.name).is_ok();
        if ctx.version < 4 && (!allowed || found.is_some_and(|t| t.internal)) {
            bad = true;
            return ErrorCode::TOPIC_AUTHORIZATION_FAILED;
        }
        match found.filter(|t| t.partition(index).is_some()) {
            Some(found) => members.push(Participant::Partition(found.id, index)),
            None => {
                bad = true;
                return ErrorCode::UNKNOWN_TOPIC_OR_PARTITION;
            }
        }
        ErrorCode::OPERATION_NOT_ATTEMPTED
    });
    if bad {
        return results;
    }
    let producer = (txn.producer_id, txn.producer_epoch);
    if txn.verify_only {
        let mut members = members.into_iter();
        let transactions = &mut cluster.transactions;
        return each(&txn.topics, |_, _| {
            let member = members.next().map(|member| transactions.verify(&txn.transactional_id, producer, member));
            member.and_then(Result::err).unwrap_or(ErrorCode::NONE)
        });
    }
    let code = enrol(cluster, ctx, txn, &members).err().unwrap_or(ErrorCode::NONE);
    for result in results.iter_mut().flat_map(|topic| &mut topic.results_by_partition) {
        result.partition_error_code = match code {
            ErrorCode::PRODUCER_FENCED if ctx.version < 2 => ErrorCode::INVALID_PRODUCER_EPOCH,
            code => code,
        };
    }
    results
}

fn enrol(
    cluster: &mut Cluster,
    ctx: &RequestContext,
    txn: &AddPartitionsToTxnTransaction,
    members: &[Participant],
) -> Result<(), ErrorCode> {
    let id = &txn.transactional_id;
    if id.is_empty() {
        return Err(ErrorCode::INVALID_REQUEST);
    }
    cluster.check_coordinator(ctx.node, CoordinatorKind::Transaction, id)?;
    cluster.check_marker_memory(members.len())?;
    cluster.transactions.enrol(ctx.now, id, (txn.producer_id, txn.producer_epoch), members, ctx.version >= 4)
}

fn each(
    topics: &[AddPartitionsToTxnTopic],
    mut result: impl FnMut(&AddPartitionsToTxnTopic, i32) -> ErrorCode,
) -> Vec<AddPartitionsToTxnTopicResult> {
    let mut all = Vec::with_capacity(topics.len());
    for topic in topics {
        let results_by_partition = topic
            .partitions
            .iter()
            .map(|index| AddPartitionsToTxnPartitionResult {
                partition_index: *index,
                partition_error_code: result(topic, *index),
                ..Default::default()
            })
            .collect();
        all.push(AddPartitionsToTxnTopicResult {
            name: topic.name.clone(),
            results_by_partition,
            ..Default::default()
        });
    }
    all
}
