//! What a tool sees of a ledger partition.

use super::log::{Log, accept, claims, intent_of, key, layout};
use crate::ledger::{IntentState, LedgerRecord, Survey};
use kafka_share_wire::records::{BatchIter, BatchOptions};

fn survey(log: &Log) -> Survey {
    let mut survey = Survey::new(layout(), 0);
    for batch in BatchIter::new(log.fetch(0)) {
        survey.handle_batch(&batch.unwrap().decode(1 << 20).unwrap());
    }
    survey
}

fn seen(survey: &Survey) -> Vec<(i64, u64, IntentState)> {
    survey.intents().iter().map(|(offset, found)| (*offset, found.key.counter, found.state)).collect()
}

#[test]
fn markers_and_tombstones_decide_by_producer() {
    let mut log = Log::default();
    let done = log.committed(1, 1, &[accept(0, 4)]);
    let open = log.intent(2, 2, &[accept(5, 9)]);
    log.intent(3, 3, &[accept(10, 10)]);
    log.marker(3, false);
    log.committed(4, 4, &[accept(20, 20)]);
    log.forgotten(4, 4);
    // An aborted tombstone, and one whose transaction is open, do not count.
    log.tombstone(5, 1);
    log.marker(5, false);
    log.tombstone(6, 1);
    let found = survey(&log);
    assert_eq!(seen(&found), [(done, 1, IntentState::Committed), (open, 2, IntentState::Open)]);
    assert_eq!((found.records(), found.faults().len()), (7, 0));
    // A fence ends it with a higher epoch.
    log.marker_at_epoch(2, true, 9);
    log.outside(&LedgerRecord::Tombstone(key(1)));
    assert_eq!(seen(&survey(&log)), [(open, 2, IntentState::Committed)]);
}

#[test]
fn generations_outdate_what_was_before() {
    let mut log = Log::default();
    let raise = |group: &str, generation| LedgerRecord::Generation { group: group.into(), generation };
    log.committed(1, 1, &[accept(0, 4)]);
    log.outside(&raise("g", 2));
    log.outside(&raise("other", 1));
    let now = LedgerRecord::Intent(key(2), intent_of("g", 2, claims(&[accept(0, 4)])));
    log.records(1, std::slice::from_ref(&now));
    let found = survey(&log);
    let outdated: Vec<_> = found.intents().values().map(|i| (i.key.counter, found.is_outdated(i))).collect();
    assert_eq!(outdated, [(1, true), (2, false)]);
    assert_eq!(found.generations().iter().map(|(g, n)| (g.as_str(), *n)).collect::<Vec<_>>(), [("g", 2), ("other", 1)]);
}

#[test]
fn what_members_refuse_is_told_and_passed_over() {
    let mut log = Log::default();
    log.push(BatchOptions::default(), &[(bytes::Bytes::from("user-1"), Some(bytes::Bytes::from("{}")))]);
    log.outside(&LedgerRecord::Intent(key(1), intent_of("g", 0, claims(&[accept(0, 1)]))));
    log.records(1, &[LedgerRecord::Generation { group: "g".into(), generation: 1 }]);
    let done = log.committed(1, 2, &[accept(0, 4)]);
    let found = survey(&log);
    assert_eq!(found.faults().len(), 3, "{:?}", found.faults());
    assert_eq!(seen(&found), [(done, 2, IntentState::Committed)]);
}

#[test]
fn who_has_left_is_told_by_generation() {
    let mut log = Log::default();
    let left = |group: &str, generation| LedgerRecord::Left { group: group.into(), generation };
    log.outside(&left("g", 0));
    log.outside(&left("other", 1));
    let found = survey(&log);
    assert_eq!(found.left().map(|g| g.as_str()).collect::<Vec<_>>(), ["g", "other"]);
    log.outside(&LedgerRecord::Generation { group: "g".into(), generation: 1 });
    let found = survey(&log);
    assert_eq!(found.left().map(|g| g.as_str()).collect::<Vec<_>>(), ["other"]);
    assert_eq!((found.generation("g"), found.generation("nobody"), found.faults().len()), (1, 0, 0));
    log.records(1, &[left("g", 1)]);
    assert_eq!(survey(&log).faults().len(), 1);
}
