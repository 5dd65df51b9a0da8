//! Acknowledgement states: order, ranges, exactly one outcome each.

use super::*;
use kafka_share_messages::ErrorCode;
use kafka_share_wire::Uuid;

const NODE: i32 = 1;

fn tp() -> TopicIdPartition {
    TopicIdPartition { topic_id: Uuid::from_halves(1, 2), partition: 0 }
}

fn open(table: &mut AckTable, ranges: &[(i64, i64)]) -> SlotRef {
    let mut start = 0;
    let mut all = Vec::new();
    for (first, last) in ranges {
        all.push(AcquiredRange { first: *first, last: *last, delivery_count: 1, start });
        start += (last - first + 1) as u32;
    }
    table.open(NODE, tp(), 1, all, Instant::now())
}

fn ack(table: &mut AckTable, offset: i64, ack: AckType) -> Result<(), AckError> {
    let handle = table.find(tp(), offset)?;
    table.acknowledge(handle, ack, Instant::now())
}

fn outcomes(table: &mut AckTable) -> Vec<(i64, i64, Outcome)> {
    std::iter::from_fn(|| table.poll_outcome()).map(|o| (o.first_offset, o.last_offset, o.outcome)).collect()
}

//= SHARE-CLIENT-05
#[test]
fn r034_any_order_goes_out_ascending_and_merged() {
    let mut table = AckTable::new();
    open(&mut table, &[(0, 9)]);
    for offset in [7, 3, 4, 5, 9] {
        ack(&mut table, offset, AckType::Accept).unwrap();
    }
    assert_eq!(ack(&mut table, 3, AckType::Accept), Err(AckError::AlreadyAcknowledged));
    let taken = table.take(NODE, true);
    let ranges: Vec<_> = taken[0].batches.iter().map(|b| (b.first, b.last, b.types.clone())).collect();
    assert_eq!(ranges, [(3, 5, vec![1]), (7, 7, vec![1]), (9, 9, vec![1])]);
    table.finish(&taken[0], Outcome::Acknowledged, None);
    let done = outcomes(&mut table);
    assert_eq!(done.iter().map(|(a, b, _)| (*a, *b)).collect::<Vec<_>>(), [(3, 5), (7, 7), (9, 9)]);
}

//= SHARE-CLIENT-17
#[test]
fn r026_renew_then_accept_is_one_final_acknowledgement() {
    let mut table = AckTable::new();
    open(&mut table, &[(0, 0)]);
    ack(&mut table, 0, AckType::Renew).unwrap();
    ack(&mut table, 0, AckType::Accept).unwrap();
    assert_eq!(ack(&mut table, 0, AckType::Reject), Err(AckError::AlreadyAcknowledged));
    let taken = table.take(NODE, true);
    assert_eq!(taken[0].batches, [AckBatch { first: 0, last: 0, types: vec![1] }]);
}

#[test]
fn a_taken_renewal_leaves_the_record_held() {
    let mut table = AckTable::new();
    let at = open(&mut table, &[(0, 1)]);
    ack(&mut table, 0, AckType::Renew).unwrap();
    assert!(table.take(NODE, false).is_empty(), "only where the request can carry renewals");
    let taken = table.take(NODE, true);
    let later = Instant::now() + std::time::Duration::from_secs(30);
    table.finish(&taken[0], Outcome::Acknowledged, Some(later));
    let renewed = RecordHandle { slot: at, index: 0 };
    assert_eq!(table.record_lock(renewed), Some(later));
    assert!(table.record_lock(RecordHandle { slot: at, index: 1 }).unwrap() < later, "the other's lock is as it was");
    assert_eq!(table.take_renewed(9), [renewed]);
    assert!(table.take_renewed(9).is_empty());
    ack(&mut table, 0, AckType::Accept).unwrap();
}

//= SHARE-CLIENT-06
#[test]
fn mixed_types_are_one_batch_with_a_type_per_offset() {
    let mut table = AckTable::new();
    let at = open(&mut table, &[(10, 12), (20, 20)]);
    ack(&mut table, 10, AckType::Accept).unwrap();
    ack(&mut table, 11, AckType::Reject).unwrap();
    table.mark_gaps(at, [2], Instant::now());
    ack(&mut table, 20, AckType::Release).unwrap();
    let taken = table.take(NODE, true);
    assert_eq!(
        taken[0].batches,
        [AckBatch { first: 10, last: 12, types: vec![1, 3, 0] }, AckBatch { first: 20, last: 20, types: vec![2] }]
    );
}

//= SHARE-ACK-16
#[test]
fn a_lost_session_ends_each_acknowledgement_once() {
    let mut table = AckTable::new();
    let at = open(&mut table, &[(0, 9)]);
    ack(&mut table, 0, AckType::Accept).unwrap();
    let sent = table.take(NODE, true);
    ack(&mut table, 1, AckType::Accept).unwrap();
    let held = table.find(tp(), 2).unwrap();
    table.lose(NODE, None);
    assert_eq!(outcomes(&mut table), [(1, 1, Outcome::LockLost)]);
    assert_eq!(table.acknowledge(held, AckType::Accept, Instant::now()), Err(AckError::LockLost));
    table.finish(&sent[0], Outcome::Unknown, None);
    assert_eq!(outcomes(&mut table), [(0, 0, Outcome::Unknown)]);
    table.unreference(at);
    assert_eq!(table.live_slots(), 0);
    table.finish(&sent[0], Outcome::Acknowledged, None);
    assert!(outcomes(&mut table).is_empty());
    assert_eq!(table.pending(), 0);
}

#[test]
fn a_lost_lock_is_told_after_its_slot_is_used_again() {
    let late = Instant::now() + std::time::Duration::from_secs(60);
    type Lose = fn(&mut AckTable, Instant);
    let ways: [(&str, Lose, AckError); 4] = [
        ("the session", |table, _| table.lose(NODE, None), AckError::LockLost),
        ("its time", |table, late| table.expire(late), AckError::LockLost),
        ("to a later delivery", |table, _| _ = open(table, &[(0, 9)]), AckError::LockLost),
        ("not at all", |table, _| assert_eq!(ack_all(table, 0), 10), AckError::NotHeld),
    ];
    for (way, lose, told) in ways {
        let mut table = AckTable::new();
        let at = open(&mut table, &[(0, 9)]);
        let handle = table.find(tp(), 3).unwrap();
        // Nothing of it is in the buffer, as all was handed out.
        table.unreference(at);
        lose(&mut table, late);
        for round in 1..40 {
            let again = table.acknowledge(handle, AckType::Accept, Instant::now());
            assert_eq!(again, Err(told), "lost: {way}, uses of the slot since: {round}");
            assert_eq!(table.extend(handle, Instant::now()), Err(told), "lost: {way}");
            let next = open(&mut table, &[(round * 10, round * 10 + 9)]);
            assert_eq!(ack_all(&mut table, round * 10), 10);
            table.unreference(next);
        }
    }
}

/// Accepts ten offsets and has the broker take them.
fn ack_all(table: &mut AckTable, first: i64) -> usize {
    let acked = (first..first + 10).filter(|offset| ack(table, *offset, AckType::Accept).is_ok()).count();
    for taken in table.take(NODE, true) {
        table.finish(&taken, Outcome::Acknowledged, None);
    }
    acked
}

#[test]
fn staged_acknowledgements_leave_the_ordinary_path() {
    let mut table = AckTable::new();
    open(&mut table, &[(0, 3)]);
    for (offset, kind) in [(0, AckType::Accept), (1, AckType::Release), (2, AckType::Reject)] {
        ack(&mut table, offset, kind).unwrap();
    }
    let staged = table.take_for_transaction();
    assert_eq!(staged[0].batches.len(), 2);
    assert_eq!(ack(&mut table, 0, AckType::Accept), Err(AckError::InTransaction));
    let plain = table.take(NODE, true);
    assert_eq!(plain[0].batches, [AckBatch { first: 1, last: 1, types: vec![2] }]);
    table.finish(&staged[0], Outcome::Acknowledged, None);
    assert_eq!(outcomes(&mut table).len(), 2);
}

#[test]
fn slots_are_freed_once_all_is_said() {
    let mut table = AckTable::new();
    for round in 0..1000_i64 {
        let at = open(&mut table, &[(round * 10, round * 10 + 9)]);
        for offset in round * 10..round * 10 + 10 {
            ack(&mut table, offset, AckType::Accept).unwrap();
        }
        table.unreference(at);
        for taken in table.take(NODE, true) {
            table.finish(&taken, Outcome::Refused(ErrorCode::INVALID_RECORD_STATE), None);
        }
        while table.poll_outcome().is_some() {}
    }
    assert_eq!(table.live_slots(), 0);
}

#[test]
fn acknowledgements_given_back_after_the_lock_was_lost_end_as_lost() {
    let mut table = AckTable::new();
    let slot = open(&mut table, &[(0, 2)]);
    ack(&mut table, 1, AckType::Reject).unwrap();
    let taken = table.take_for_transaction();
    table.unreference(slot);
    table.lose(NODE, None);
    assert_eq!(outcomes(&mut table), []);
    table.put_back(&taken[0], Instant::now());
    assert_eq!(outcomes(&mut table), [(1, 1, Outcome::LockLost)]);
    assert_eq!((table.live_slots(), table.pending()), (0, 0));
}

#[test]
fn single_records_are_staged_all_or_none() {
    let mut table = AckTable::new();
    open(&mut table, &[(0, 9)]);
    ack(&mut table, 5, AckType::Release).unwrap();
    let handle = |table: &AckTable, offset, ack| (table.find(tp(), offset).unwrap(), ack);
    let accept = |table: &AckTable, offset| handle(table, offset, AckType::Accept);
    let with_spoken_of = [accept(&table, 3), accept(&table, 4), accept(&table, 5)];
    assert_eq!(table.stage_records(&with_spoken_of), None);
    let twice = [accept(&table, 3), accept(&table, 3)];
    assert_eq!(table.stage_records(&twice), None);
    let good = [accept(&table, 2), accept(&table, 3), handle(&table, 4, AckType::Reject), accept(&table, 7)];
    let taken = table.stage_records(&good).unwrap();
    let ranges: Vec<_> = taken.iter().flat_map(|t| &t.batches).map(|b| (b.first, b.last, b.types.clone())).collect();
    assert_eq!(ranges, [(2, 3, vec![1]), (4, 4, vec![3]), (7, 7, vec![1])]);
    assert_eq!(ack(&mut table, 3, AckType::Accept), Err(AckError::InTransaction));
    table.unstage(&taken);
    ack(&mut table, 3, AckType::Accept).unwrap();
}

#[test]
fn a_renewal_answered_after_its_session_was_lost_frees_the_slot() {
    let mut table = AckTable::new();
    let slot = open(&mut table, &[(0, 0)]);
    ack(&mut table, 0, AckType::Renew).unwrap();
    let taken = table.take(NODE, true);
    table.unreference(slot);
    table.lose(NODE, None);
    table.finish(&taken[0], Outcome::Acknowledged, None);
    assert_eq!((table.live_slots(), table.pending()), (0, 0));
}

#[test]
fn the_first_of_a_slots_acknowledgements_is_news_and_the_others_are_not() {
    let mut table = AckTable::new();
    open(&mut table, &[(0, 2)]);
    assert!(!table.take_news());
    ack(&mut table, 0, AckType::Accept).unwrap();
    assert!(table.take_news());
    ack(&mut table, 1, AckType::Accept).unwrap();
    assert!(!table.take_news());
    table.take(NODE, true);
    ack(&mut table, 2, AckType::Accept).unwrap();
    assert!(table.take_news());
}

#[test]
fn a_renewal_of_one_record_keeps_that_record_only() {
    let mut table = AckTable::new();
    let at = open(&mut table, &[(0, 2)]);
    ack(&mut table, 1, AckType::Renew).unwrap();
    let taken = table.take(NODE, true);
    let (now, later) = (Instant::now(), Instant::now() + std::time::Duration::from_secs(30));
    table.finish(&taken[0], Outcome::Acknowledged, Some(later));
    ack(&mut table, 2, AckType::Accept).unwrap();
    assert_eq!(outcomes(&mut table), [(1, 1, Outcome::Acknowledged)]);
    table.expire(now + std::time::Duration::from_secs(1));
    assert_eq!(outcomes(&mut table), [(2, 2, Outcome::LockLost)]);
    assert_eq!(ack(&mut table, 0, AckType::Accept), Err(AckError::LockLost));
    ack(&mut table, 1, AckType::Accept).unwrap();
    table.unreference(at);
    table.expire(later + std::time::Duration::from_secs(1));
    assert_eq!(outcomes(&mut table), [(1, 1, Outcome::LockLost)]);
    assert_eq!((table.live_slots(), table.pending()), (0, 0));
}

#[test]
fn an_extension_has_no_outcome_and_is_not_handed_out_again() {
    let mut table = AckTable::new();
    let at = open(&mut table, &[(0, 3)]);
    let handle = |index| RecordHandle { slot: at, index };
    for index in 0..3 {
        table.extend(handle(index), Instant::now()).unwrap();
    }
    ack(&mut table, 0, AckType::Accept).unwrap();
    let taken = table.take(NODE, true);
    assert_eq!(taken[0].batches, [AckBatch { first: 0, last: 2, types: vec![1, 4, 4] }]);
    // One is settled while its extension is on its way.
    ack(&mut table, 1, AckType::Release).unwrap();
    assert_eq!(ack(&mut table, 1, AckType::Accept), Err(AckError::AlreadyAcknowledged));
    let until = Instant::now() + std::time::Duration::from_secs(30);
    table.finish(&taken[0], Outcome::Acknowledged, Some(until));
    assert_eq!(outcomes(&mut table), [(0, 0, Outcome::Acknowledged)]);
    assert!(table.take_renewed(9).is_empty());
    assert!(table.is_held(handle(2)) && table.record_lock(handle(2)) == Some(until));
    assert_eq!(table.take(NODE, true)[0].batches, [AckBatch { first: 1, last: 1, types: vec![2] }]);
    // Lost with the session, it is lost without an outcome: nothing had been said of it.
    table.extend(handle(2), Instant::now()).unwrap();
    table.lose(NODE, None);
    assert!(outcomes(&mut table).is_empty());
    assert_eq!(table.acknowledge(handle(2), AckType::Accept, until), Err(AckError::LockLost));
}

//= SHARE-CLIENT-18
#[test]
fn a_refused_renewal_leaves_the_record_to_its_lock() {
    let mut table = AckTable::new();
    open(&mut table, &[(0, 0)]);
    ack(&mut table, 0, AckType::Renew).unwrap();
    let taken = table.take(NODE, true);
    let refused = Outcome::Refused(ErrorCode::INVALID_RECORD_STATE);
    table.finish(&taken[0], refused, None);
    assert_eq!(outcomes(&mut table), [(0, 0, refused)]);
    assert!(table.take_renewed(1).is_empty());
    ack(&mut table, 0, AckType::Accept).unwrap();
}
