//! ListTransactions (v0-2): transactional ids that this node coordinates, filtered by state, producer, age (v1 on) and a
//! pattern (v2 on).
//!
//! Kafka matches the pattern, a regular expression of re2j, against the whole id; so does this, with an expression of the
//! same family (no look-around, no back references). INVALID_REGULAR_EXPRESSION where it is none.

use super::{Outcome, RequestContext};
use crate::cluster::{Cluster, CoordinatorKind};
use crate::security::Operation;
use crate::txn_coordinator::{Status, Txn};
use kafka_share_messages::list_transactions_response::TransactionState;
use kafka_share_messages::{ErrorCode, ListTransactionsRequest, ListTransactionsResponse};
use kafka_share_wire::Str;
use regex::{Regex, RegexBuilder};
use regex_syntax::ast::parse::Parser;
use regex_syntax::ast::{self, Ast, RepetitionKind, RepetitionRange, Visitor};
use std::collections::HashSet;

/// Bytes that a compiled pattern may take.
const PATTERN_BYTES: usize = 1 << 20;

pub(crate) fn handle(
    cluster: &mut Cluster,
    ctx: &RequestContext,
    request: ListTransactionsRequest,
) -> Outcome<ListTransactionsResponse> {
    let pattern = match request.transactional_id_pattern.as_deref().filter(|p| !p.is_empty()).map(compile).transpose() {
        Ok(pattern) => pattern,
        Err(error_code) => return Outcome::Reply(ListTransactionsResponse { error_code, ..Default::default() }),
    };
    let known = |name: &Str| Status::ALL.iter().any(|s| s.name() == name.as_str()) || name.as_str() == "Dead";
    let unknown_state_filters = request.state_filters.iter().filter(|name| !known(name)).cloned().collect();
    let states: HashSet<&str> = request.state_filters.iter().map(Str::as_str).collect();
    let producers: HashSet<i64> = request.producer_id_filters.iter().copied().collect();
    let wanted = |txn: &&Txn| {
        let state = states.is_empty() || states.contains(txn.status.name());
        let producer = producers.is_empty() || producers.contains(&txn.producer_id);
        let age = ctx.now.wall_ms.saturating_sub(txn.start_ms);
        // As Kafka: one that was never begun is as old as time.
        let old = request.duration_filter < 0 || age > request.duration_filter;
        let named = pattern.as_ref().is_none_or(|pattern| pattern.is_match(&txn.id));
        let seen = cluster.may_transact(ctx, Operation::Describe, &txn.id).is_ok();
        state && producer && old && named && seen
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

/// Compiles a pattern that must match the whole id, within bounds: a client chooses it.
fn compile(pattern: &str) -> Result<Regex, ErrorCode> {
    let invalid = ErrorCode::INVALID_REGULAR_EXPRESSION;
    let pattern = unquote(pattern);
    // Parsed alone: a pattern such as `a)(b` must not become valid by what is put around it.
    let parsed = Parser::new().parse(&pattern).map_err(|_| invalid)?;
    ast::visit(&parsed, RepeatsOnce).map_err(|()| invalid)?;
    RegexBuilder::new(&format!("^(?:{pattern})$")).size_limit(PATTERN_BYTES).build().map_err(|_| invalid)
}

/// Writes quoted text (`\Q..\E`), which only Kafka's expressions have, with escapes.
fn unquote(pattern: &str) -> String {
    let mut parts = pattern.split("\\Q");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (quoted, rest) = part.split_once("\\E").unwrap_or((part, ""));
        text.push_str(&regex::escape(quoted));
        text.push_str(rest);
    }
    text
}

/// What Kafka's expressions refuse: repeated repetitions such as `a**`, and more than a thousand of one.
struct RepeatsOnce;

impl Visitor for RepeatsOnce {
    type Output = ();
    type Err = ();

    fn finish(self) -> Result<(), ()> {
        Ok(())
    }

    fn visit_pre(&mut self, node: &Ast) -> Result<(), ()> {
        let Ast::Repetition(repetition) = node else { return Ok(()) };
        let most = match &repetition.op.kind {
            RepetitionKind::Range(RepetitionRange::Exactly(n) | RepetitionRange::AtLeast(n)) => *n,
            RepetitionKind::Range(RepetitionRange::Bounded(_, n)) => *n,
            _ => 0,
        };
        if most > 1000 || matches!(*repetition.ast, Ast::Repetition(_)) { Err(()) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        let is = |pattern: &str, text: &str| compile(pattern).unwrap().is_match(text);
        assert!(
            is("a.*", "abc") && is(".*c", "abc") && is("^a.*b.*c$", "axbxc") && is("abc", "abc") && is("a[xb]c", "abc")
        );
        assert!(is("\\Qa.c\\E.*", "a.cd") && !is("\\Qa.c\\E", "abc") && is("x\\Q(", "x(") && is("(?:a*)*", "aa"));
        assert!(!is("a.*", "ba") && !is("abc", "abcd") && !is("ab.*ba", "aba") && !is("a|b", "ab"));
        for bad in ["a)(b", "[", "*", "(?=a)", "\\1", "(a{1000}){1000}", "a**", "a{1001}"] {
            assert_eq!(compile(bad).unwrap_err(), ErrorCode::INVALID_REGULAR_EXPRESSION, "{bad}");
        }
    }
}
