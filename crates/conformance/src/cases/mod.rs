//! The cases, by theme.

mod ack_states;
mod acks;
mod batches;
mod dead_letters;
mod delivery;
mod fetching;
mod groups;
mod heartbeats;
mod isolation;
mod locks;
mod membership;
mod native;
mod offset_admin;
mod offsets;
mod produce;
mod redelivery;
mod renewals;
mod session;
mod session_edges;
mod settings;
mod transactions;
mod txn_fencing;
mod txn_reading;

use crate::{Case, Need};
use kafka_share_messages::ApiKey;

/// What every case about share groups needs.
const SHARE: &[Need] = &[Need::Api(ApiKey::SHARE_FETCH, 1), Need::Feature("share.version", 1)];
/// RENEW and record_limit came with version 2 of the share RPCs.
const SHARE_V2: &[Need] =
    &[Need::Api(ApiKey::SHARE_FETCH, 2), Need::Api(ApiKey::SHARE_ACKNOWLEDGE, 2), Need::Feature("share.version", 1)];
/// Nothing beyond what any Kafka has.
const ANY: &[Need] = &[];

/// All cases.
#[must_use]
pub fn all() -> Vec<Case> {
    let modules = [
        membership::CASES,
        heartbeats::CASES,
        groups::CASES,
        session::CASES,
        session_edges::CASES,
        acks::CASES,
        ack_states::CASES,
        delivery::CASES,
        fetching::CASES,
        redelivery::CASES,
        locks::CASES,
        renewals::CASES,
        settings::CASES,
        offsets::CASES,
        offset_admin::CASES,
        isolation::CASES,
        produce::CASES,
        batches::CASES,
        transactions::CASES,
        txn_fencing::CASES,
        txn_reading::CASES,
        dead_letters::CASES,
        native::CASES,
    ];
    modules.concat()
}

/// The cases of which `pattern` is the name, one of the ids, or the start of one of them (`SHARE-SESSION`).
#[must_use]
pub fn matching(pattern: &str) -> Vec<Case> {
    let hits = |case: &Case| {
        case.name == pattern || case.ids.iter().any(|id| *id == pattern || id.starts_with(&format!("{pattern}-")))
    };
    all().into_iter().filter(hits).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_unique_and_ids_found() {
        let names: BTreeSet<&str> = all().iter().map(|c| c.name).collect();
        assert_eq!(names.len(), all().len());
        assert!(all().len() >= 250);
        assert!(matching("SHARE-SESSION").len() > 3);
        assert_eq!(matching("SHARE-SESSIO").len(), 0);
        assert_eq!(matching(all()[0].name).len(), 1);
    }
}
