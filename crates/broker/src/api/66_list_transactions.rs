//! ListTransactions (v0-2): transactional ids that this node coordinates, filtered by state, producer, age (v1 on) and a
//! pattern (v2 on).
//!
//! Kafka matches the pattern as a regular expression of re2j; here `.*` and literal text are understood, and other
//! patterns refused with INVALID_REGULAR_EXPRESSION.

use super::{Outcome, RequestContext};
use crate::cluster::{Cluster, CoordinatorKind};
use crate::txn_coordinator::{Status, Txn};
use kafka_share_messages::list_transactions_response::TransactionState;
use kafka_share_messages::{ErrorCode, ListTransactionsRequest, ListTransactionsResponse};
use kafka_share_wire::Str;

pub(crate) fn handle(
    cluster: &mut Cluster,
    ctx: &RequestContext,
    request: ListTransactionsRequest,
) -> Outcome<ListTransactionsResponse> {
    let pattern = match request.transactional_id_pattern.as_deref().filter(|p| !p.is_empty()).map(parts).transpose() {
        Ok(pattern) => pattern,
        Err(error_code) => return Outcome::Reply(ListTransactionsResponse { error_code, ..Default::default() }),
    };
    let known = |name: &Str| Status::ALL.iter().any(|s| s.name() == name.as_str()) || name.as_str() == "Dead";
    let unknown_state_filters = request.state_filters.iter().filter(|name| !known(name)).cloned().collect();
    let wanted = |txn: &&Txn| {
        let state = request.state_filters.is_empty()
            || request.state_filters.iter().any(|name| name.as_str() == txn.status.name());
        let producer = request.producer_id_filters.is_empty() || request.producer_id_filters.contains(&txn.producer_id);
        let age = ctx.now.wall_ms.saturating_sub(txn.start_ms);
        let old = request.duration_filter < 0 || (txn.start_ms >= 0 && age > request.duration_filter);
        let named = pattern.as_ref().is_none_or(|parts| matches(parts, &txn.id));
        state && producer && old && named
    };
    let found: Vec<TransactionState> = cluster
        .transactions
        .iter()
        .filter(wanted)
        .map(|txn| TransactionState {
            transactional_id: txn.id.clone(),
            producer_id: txn.producer_id,
            transaction_state: Str::from_static(txn.status.name()),
            ..Default::default()
        })
        .collect();
    let transaction_states = found
        .into_iter()
        .filter(|txn| cluster.check_coordinator(ctx.node, CoordinatorKind::Transaction, &txn.transactional_id).is_ok())
        .collect();
    Outcome::Reply(ListTransactionsResponse { unknown_state_filters, transaction_states, ..Default::default() })
}

/// The literal parts between the `.*` of a pattern.
fn parts(pattern: &str) -> Result<Vec<String>, ErrorCode> {
    let pattern = pattern.trim_start_matches('^').trim_end_matches('$');
    let parts: Vec<String> = pattern.split(".*").map(str::to_owned).collect();
    let special = |c: char| "\\^$.|?*+()[]{}".contains(c);
    if parts.iter().any(|part| part.contains(special)) {
        return Err(ErrorCode::INVALID_REGULAR_EXPRESSION);
    }
    Ok(parts)
}

fn matches(parts: &[String], text: &str) -> bool {
    let [first, middle @ ..] = parts else { return true };
    let Some((last, middle)) = middle.split_last() else { return first == text };
    let Some(mut rest) = text.strip_prefix(first.as_str()) else { return false };
    for part in middle {
        let Some(at) = rest.find(part.as_str()) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        let is = |pattern: &str, text: &str| matches(&parts(pattern).unwrap(), text);
        assert!(is("a.*", "abc") && is(".*c", "abc") && is("^a.*b.*c$", "axbxc") && is("abc", "abc"));
        assert!(!is("a.*", "ba") && !is("abc", "abcd") && !is("ab.*ba", "aba"));
        assert_eq!(parts("a[b]"), Err(ErrorCode::INVALID_REGULAR_EXPRESSION));
    }
}
