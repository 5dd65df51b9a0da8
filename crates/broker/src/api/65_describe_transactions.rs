//! DescribeTransactions (v0): state, identity and partitions of transactional ids that this node coordinates.
//!
//! Staged share acknowledgements show as partitions of `__share_group_state`, which is what the transaction holds.

use super::{Outcome, RequestContext, budget};
use crate::cluster::{Cluster, CoordinatorKind};
use crate::security::Operation;
use crate::txn_coordinator::{Participant, Txn};
use kafka_share_messages::describe_transactions_response::{TopicData, TransactionState};
use kafka_share_messages::{DescribeTransactionsRequest, DescribeTransactionsResponse, ErrorCode};
use kafka_share_wire::Str;
use std::collections::BTreeMap;

pub(crate) fn handle(
    cluster: &mut Cluster,
    ctx: &RequestContext,
    request: DescribeTransactionsRequest,
) -> Outcome<DescribeTransactionsResponse> {
    let states = request.transactional_ids.into_iter().map(|transactional_id| {
        describe(cluster, ctx, &transactional_id).unwrap_or_else(|error_code| TransactionState {
            error_code,
            transactional_id,
            ..Default::default()
        })
    });
    let weight = |state: &TransactionState| state.topics.iter().map(|topic| 1 + topic.partitions.len()).sum();
    budget::reply(budget::rows(states, weight), |transaction_states| DescribeTransactionsResponse {
        transaction_states,
        ..Default::default()
    })
}

fn describe(cluster: &mut Cluster, ctx: &RequestContext, id: &Str) -> Result<TransactionState, ErrorCode> {
    cluster.may_transact(ctx, Operation::Describe, id)?;
    if id.is_empty() {
        return Err(ErrorCode::INVALID_REQUEST);
    }
    cluster.check_coordinator(ctx.node, CoordinatorKind::Transaction, id)?;
    let txn = cluster.transactions.get(id).ok_or(ErrorCode::TRANSACTIONAL_ID_NOT_FOUND)?;
    Ok(TransactionState {
        transactional_id: id.clone(),
        transaction_state: Str::from_static(txn.status.name()),
        transaction_timeout_ms: txn.timeout_ms,
        transaction_start_time_ms: txn.start_ms,
        producer_id: txn.producer_id,
        producer_epoch: txn.epoch,
        topics: topics(cluster, ctx, txn),
        ..Default::default()
    })
}

fn topics(cluster: &Cluster, ctx: &RequestContext, txn: &Txn) -> Vec<TopicData> {
    let mut found: BTreeMap<Str, Vec<i32>> = BTreeMap::new();
    for member in &txn.participants {
        let (name, index) = match member {
            Participant::Partition(topic, index) => match cluster.topics.by_id(*topic) {
                Some(topic) => (topic.name.clone(), *index),
                None => continue,
            },
            Participant::ShareState(index) => (Str::from_static(CoordinatorKind::Share.topic()), *index),
        };
        found.entry(name).or_default().push(index);
    }
    let seen = |(name, _): &(Str, Vec<i32>)| cluster.may_topic(ctx, Operation::Describe, name).is_ok();
    found
        .into_iter()
        .filter(seen)
        .map(|(topic, partitions)| TopicData { topic, partitions, ..Default::default() })
        .collect()
}
