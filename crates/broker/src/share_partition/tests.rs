//! Tests of a share-partition alone: acquiring, acknowledging, locks, delivery limit, transactions, moves.

use super::*;
use kafka_share_messages::ErrorCode;
use std::time::Duration;

const LOCK: Duration = Duration::from_secs(30);
const FIVE: Deliveries = Deliveries { limit: 5, dead_letters: false };

fn limits(max_records: i64) -> AcquireLimits {
    AcquireLimits { max_records, batch_size: 500, strict: false, max_locks: 2_000, delivery_limit: 5, deadline: LOCK }
}

fn extents(batches: &[(i64, i64)]) -> Vec<Extent> {
    batches.iter().map(|(base, last)| Extent { base: *base, last: *last }).collect()
}

/// Acquires as a fetch does: from the next fetch offset on.
fn acquire_as(
    partition: &mut SharePartition,
    member: &str,
    limits: &AcquireLimits,
    log: &[(i64, i64)],
) -> Vec<(i64, i64, i16)> {
    let next = partition.next_fetch_offset();
    let from: Vec<Extent> = extents(log).into_iter().filter(|extent| extent.last >= next).collect();
    let mut out = Vec::new();
    partition.acquire(&Str::from(member), limits, &from, &mut out);
    out.iter().map(|a| (a.first, a.last, a.count)).collect()
}

fn acquire(partition: &mut SharePartition, member: &str, max: i64, log: &[(i64, i64)]) -> Vec<(i64, i64, i16)> {
    acquire_as(partition, member, &limits(max), log)
}

fn rules() -> AckRules {
    AckRules { deliveries: FIVE, renew_enabled: true, deadline: LOCK + LOCK }
}

fn ack(partition: &mut SharePartition, member: &str, acks: &[(i64, i64, &[i8])]) -> Result<bool, ErrorCode> {
    let ranges: Vec<AckRange<'_>> =
        acks.iter().map(|(first, last, types)| AckRange { first: *first, last: *last, types }).collect();
    let before = format!("{partition:?}");
    let result = partition.acknowledge(member, &ranges, &rules());
    if result.is_err() {
        assert_eq!(before, format!("{partition:?}"), "a refused request changes nothing");
    }
    check_counts(partition);
    result.map_err(|refusal| refusal.code)
}

/// The counters are what the ranges say.
fn check_counts(partition: &SharePartition) {
    let (mut available, mut acquired, mut pending, mut archiving) = (0, 0, 0, 0);
    for piece in partition.pieces(partition.start, i64::MAX) {
        match piece.slot.state {
            State::Available => available += piece.len(),
            State::Acquired { .. } => acquired += piece.len(),
            State::Pending { .. } => pending += piece.len(),
            State::Archiving { .. } => archiving += piece.len(),
            _ => {}
        }
    }
    assert_eq!((available, acquired, pending), (partition.available, partition.acquired, partition.pending));
    assert_eq!(archiving, partition.archiving);
    assert_eq!(partition.owners.iter().map(|owner| owner.locked).sum::<i64>(), acquired);
}

#[test]
fn batches_of_the_log_stay_whole_unless_the_limit_is_strict() {
    let log = [(0, 9), (10, 19), (20, 29)];
    let mut soft = SharePartition::new(0);
    assert_eq!(acquire(&mut soft, "a", 7, &log), [(0, 9, 1)]);
    assert_eq!(acquire(&mut soft, "b", 15, &log), [(10, 29, 1)]);
    let mut strict = SharePartition::new(0);
    let seven = AcquireLimits { strict: true, ..limits(7) };
    assert_eq!(acquire_as(&mut strict, "a", &seven, &log), [(0, 6, 1)]);
    assert_eq!(acquire_as(&mut strict, "a", &seven, &log), [(7, 9, 1), (10, 13, 1)]);
    ack(&mut strict, "a", &[(0, 13, &[2])]).unwrap();
    assert_eq!(acquire_as(&mut strict, "a", &seven, &log), [(0, 6, 2)], "redelivery keeps to the limit");
}

#[test]
fn in_flight_batches_follow_the_batch_size() {
    let log = [(0, 9), (10, 19), (20, 29)];
    let mut partition = SharePartition::new(0);
    let small = AcquireLimits { batch_size: 10, ..limits(100) };
    assert_eq!(acquire_as(&mut partition, "a", &small, &log), [(0, 9, 1), (10, 19, 1), (20, 29, 1)]);
}

#[test]
fn start_offset_moves_over_what_is_done() {
    let log = [(0, 9)];
    let mut partition = SharePartition::new(0);
    acquire(&mut partition, "a", 10, &log);
    ack(&mut partition, "a", &[(3, 5, &[1])]).unwrap();
    assert_eq!((partition.start(), partition.delivery_complete()), (0, 3));
    ack(&mut partition, "a", &[(0, 2, &[1, 3, 0])]).unwrap();
    assert_eq!((partition.start(), partition.delivery_complete()), (6, 0));
    ack(&mut partition, "a", &[(6, 9, &[1])]).unwrap();
    assert_eq!((partition.start(), partition.end(), partition.batches.len()), (10, 10, 0));
}

#[test]
fn types_per_offset_are_honoured() {
    let mut partition = SharePartition::new(0);
    acquire(&mut partition, "a", 10, &[(0, 5)]);
    ack(&mut partition, "a", &[(0, 5, &[1, 2, 2, 1, 3, 2])]).unwrap();
    assert_eq!(acquire(&mut partition, "b", 10, &[(0, 5)]), [(1, 2, 2), (5, 5, 2)]);
}

#[test]
fn below_the_start_offset_anything_is_answered_with_success() {
    let mut partition = SharePartition::new(0);
    acquire(&mut partition, "a", 10, &[(0, 9)]);
    ack(&mut partition, "a", &[(0, 4, &[1])]).unwrap();
    for code in [1, 2, 3, 4] {
        assert_eq!(ack(&mut partition, "b", &[(0, 4, &[code])]), Ok(false));
    }
    assert_eq!(ack(&mut partition, "b", &[(0, 5, &[1])]), Err(ErrorCode::INVALID_RECORD_STATE));
    assert_eq!(ack(&mut partition, "a", &[(0, 5, &[1])]), Ok(false), "only what lies above counts");
    assert_eq!(partition.start(), 6);
}

#[test]
fn refusals_say_what_is_wrong_and_change_nothing() {
    let mut partition = SharePartition::new(0);
    assert_eq!(ack(&mut partition, "a", &[(0, 0, &[1])]), Err(ErrorCode::INVALID_RECORD_STATE), "nothing in flight");
    acquire(&mut partition, "a", 10, &[(0, 9)]);
    assert_eq!(ack(&mut partition, "b", &[(0, 9, &[1])]), Err(ErrorCode::INVALID_RECORD_STATE), "not the owner");
    assert_eq!(ack(&mut partition, "a", &[(0, 10, &[1])]), Err(ErrorCode::INVALID_REQUEST), "past the end");
    assert_eq!(ack(&mut partition, "a", &[(10, 11, &[1])]), Err(ErrorCode::INVALID_REQUEST));
    ack(&mut partition, "a", &[(5, 6, &[1])]).unwrap();
    let twice = [(0, 1, &[1][..]), (4, 5, &[1][..])];
    assert_eq!(ack(&mut partition, "a", &twice), Err(ErrorCode::INVALID_RECORD_STATE), "5 is done");
    assert_eq!(partition.start(), 0, "the first range was not applied either");
    let none = AckRules { renew_enabled: false, ..rules() };
    let renew = AckRange { first: 0, last: 1, types: &[4] };
    assert_eq!(partition.acknowledge("a", &[renew], &none).unwrap_err().code, ErrorCode::INVALID_RECORD_STATE);
}

#[test]
fn locks_expire_and_renewed_ones_later() {
    let mut partition = SharePartition::new(0);
    acquire(&mut partition, "a", 10, &[(0, 9)]);
    assert_eq!(partition.next_deadline(), Some(LOCK));
    ack(&mut partition, "a", &[(2, 3, &[4])]).unwrap();
    assert!(!partition.expire(LOCK - Duration::from_millis(1), FIVE));
    assert!(partition.expire(LOCK, FIVE));
    assert_eq!((partition.acquired_records(), partition.available_records()), (2, 8));
    assert_eq!(ack(&mut partition, "a", &[(0, 0, &[1])]), Err(ErrorCode::INVALID_RECORD_STATE));
    assert_eq!(partition.next_deadline(), Some(LOCK + LOCK));
    assert!(partition.expire(LOCK + LOCK, FIVE));
    check_counts(&partition);
    assert_eq!(partition.next_deadline(), None);
    assert_eq!(acquire(&mut partition, "b", 10, &[(0, 9)]), [(0, 9, 2)]);
}

#[test]
fn full_window_only_redelivers() {
    let mut partition = SharePartition::new(0);
    let small = AcquireLimits { max_locks: 10, ..limits(100) };
    let log = [(0, 9), (10, 19)];
    assert_eq!(acquire_as(&mut partition, "a", &small, &log), [(0, 9, 1)], "a batch may go beyond the limit");
    assert!(!partition.can_acquire(10));
    assert_eq!(acquire_as(&mut partition, "a", &small, &log), []);
    ack(&mut partition, "a", &[(4, 5, &[2])]).unwrap();
    assert!(partition.can_acquire(10));
    assert_eq!(acquire_as(&mut partition, "b", &small, &log), [(4, 5, 2)]);
    ack(&mut partition, "a", &[(0, 3, &[1])]).unwrap();
    assert_eq!(acquire_as(&mut partition, "b", &small, &log), [(10, 19, 1)], "the window has moved");
}

#[test]
fn r179_only_the_bad_record_of_a_batch_is_archived() {
    let log = [(0, 7)];
    let mut partition = SharePartition::new(0);
    let (mut deliveries, mut accepted) = ([0_i16; 8], [false; 8]);
    for _ in 0..60 {
        let got = acquire(&mut partition, "a", 100, &log);
        if got.is_empty() {
            break;
        }
        for (first, last, count) in got {
            let together = (first..=last).contains(&3);
            for offset in first..=last {
                deliveries[offset as usize] = count;
                accepted[offset as usize] = !together;
            }
            // The consumer fails on all it got with the bad record.
            let answer: &[i8] = if together { &[2] } else { &[1] };
            ack(&mut partition, "a", &[(first, last, answer)]).unwrap();
        }
    }
    assert_eq!(deliveries[3], 5, "the bad record had all its deliveries");
    assert!(accepted.iter().enumerate().all(|(at, done)| *done == (at != 3)), "{accepted:?} after {deliveries:?}");
    assert_eq!((partition.start(), partition.end()), (8, 8), "all are done");
}

#[test]
fn releasing_a_member_leaves_others_and_staged_records() {
    let mut partition = SharePartition::new(0);
    acquire(&mut partition, "a", 10, &[(0, 9)]);
    acquire(&mut partition, "b", 10, &[(10, 19)]);
    let range = AckRange { first: 0, last: 3, types: &[1] };
    partition.stage("a", &[range], StagedBy { producer_id: 7, epoch: 0 }).unwrap();
    assert!(partition.release_member("a", FIVE));
    check_counts(&partition);
    let (acquired, available, pending) =
        (partition.acquired_records(), partition.available_records(), partition.pending_records());
    assert_eq!((acquired, available, pending), (10, 6, 4));
    assert!(!partition.release_member("a", FIVE));
}

#[test]
fn staged_records_follow_their_transaction() {
    let by = StagedBy { producer_id: 7, epoch: 2 };
    let staged = || {
        let mut partition = SharePartition::new(0);
        acquire(&mut partition, "a", 10, &[(0, 9)]);
        let ranges = [AckRange { first: 0, last: 4, types: &[1] }, AckRange { first: 6, last: 7, types: &[3, 1] }];
        partition.stage("a", &ranges, by).unwrap();
        check_counts(&partition);
        partition
    };
    let mut waiting = staged();
    assert_eq!(ack(&mut waiting, "a", &[(0, 4, &[1])]), Err(ErrorCode::INVALID_RECORD_STATE));
    assert!(waiting.expire(LOCK, FIVE));
    assert_eq!(waiting.pending_records(), 7, "no lock runs on what is staged");
    assert_eq!(acquire(&mut waiting, "b", 10, &[(0, 9)]), [(5, 5, 2), (8, 9, 2)]);
    assert!(!waiting.complete(StagedBy { producer_id: 8, epoch: 2 }, true, FIVE), "another producer");
    assert!(!waiting.complete(StagedBy { producer_id: 7, epoch: 1 }, true, FIVE), "an older epoch");
    assert_eq!(waiting.pending_records(), 7);
    assert!(!waiting.complete(StagedBy { epoch: 3, ..by }, true, FIVE));
    check_counts(&waiting);
    assert_eq!((waiting.start(), waiting.pending_records()), (5, 0));

    let mut aborted = staged();
    assert!(aborted.complete(by, false, FIVE));
    check_counts(&aborted);
    assert_eq!(acquire(&mut aborted, "b", 10, &[(0, 9)]), [(0, 4, 2), (6, 7, 2)]);
}

#[test]
fn staging_is_all_or_nothing() {
    let mut partition = SharePartition::new(0);
    acquire(&mut partition, "a", 5, &[(0, 4)]);
    acquire(&mut partition, "b", 5, &[(5, 9)]);
    let ranges = [AckRange { first: 0, last: 4, types: &[1] }, AckRange { first: 5, last: 9, types: &[1] }];
    let refused = partition.stage("a", &ranges, StagedBy { producer_id: 1, epoch: 0 }).unwrap_err();
    assert_eq!((refused.code, partition.pending_records()), (ErrorCode::INVALID_RECORD_STATE, 0));
}

//= TXN-SHARE-11
#[test]
fn staging_what_is_settled_already_is_refused() {
    // A member was paused past its lock; meanwhile another one processed the records, and the start offset moved.
    let mut partition = SharePartition::new(0);
    acquire(&mut partition, "paused", 10, &[(0, 9)]);
    partition.release_member("paused", FIVE);
    acquire(&mut partition, "other", 10, &[(0, 9)]);
    ack(&mut partition, "other", &[(0, 9, &[1])]).unwrap();
    assert_eq!(ack(&mut partition, "paused", &[(0, 9, &[1])]), Ok(false), "an ordinary one is harmless");
    for (first, last) in [(0, 9), (3, 3)] {
        let late = AckRange { first, last, types: &[1] };
        let refused = partition.stage("paused", &[late], StagedBy { producer_id: 1, epoch: 0 }).unwrap_err();
        assert_eq!(refused.code, ErrorCode::INVALID_RECORD_STATE);
    }
}

#[test]
fn a_move_keeps_everything_but_locks() {
    let mut partition = SharePartition::new(0);
    let log = [(0, 9), (10, 19)];
    acquire(&mut partition, "a", 10, &log);
    acquire(&mut partition, "a", 10, &log);
    ack(&mut partition, "a", &[(2, 3, &[1]), (4, 5, &[2])]).unwrap();
    let staged = AckRange { first: 6, last: 7, types: &[1] };
    let by = StagedBy { producer_id: 7, epoch: 0 };
    partition.stage("a", &[staged], by).unwrap();
    let mut moved = SharePartition::restore(partition.start(), &partition.snapshot());
    check_counts(&moved);
    assert_eq!((moved.start(), moved.end(), moved.pending_records()), (0, 8, 2));
    assert_eq!(
        acquire(&mut moved, "b", 100, &log),
        [(0, 1, 1), (4, 5, 2), (8, 19, 1)],
        "first deliveries were not stored"
    );
    assert!(moved.stages(7) && !moved.stages(8));
    moved.complete(by, true, FIVE);
    ack(&mut moved, "b", &[(0, 1, &[1]), (4, 5, &[1]), (8, 19, &[1])]).unwrap();
    assert_eq!((moved.start(), moved.batches.len()), (20, 0));
}

#[test]
fn deleted_records_are_forgotten() {
    let mut partition = SharePartition::new(0);
    acquire(&mut partition, "a", 10, &[(0, 9)]);
    partition.advance_to(4);
    check_counts(&partition);
    assert_eq!((partition.start(), partition.acquired_records()), (4, 6));
    partition.advance_to(50);
    assert_eq!((partition.start(), partition.end(), partition.acquired_records()), (50, 50, 0));
    assert_eq!(acquire(&mut partition, "a", 10, &[(50, 59)]), [(50, 59, 1)]);
}

#[test]
fn the_queue_of_locks_stays_small() {
    let mut partition = SharePartition::new(0);
    acquire(&mut partition, "a", 10, &[(0, 9)]);
    for round in 0..10_000 {
        let deadline = LOCK + Duration::from_millis(round);
        let range = AckRange { first: 3, last: 4, types: &[4] };
        partition.acknowledge("a", &[range], &AckRules { deadline, ..rules() }).unwrap();
    }
    assert!(partition.locks.len() < 200, "{} entries", partition.locks.len());
    check_counts(&partition);
}

#[test]
fn random_histories_keep_every_rule() {
    for seed in 0..300 {
        let mut rng = crate::rng::Rng::new(seed);
        let mut pick = |n: i64| (rng.next_u64() % n as u64) as i64;
        let mut partition = SharePartition::new(0);
        let log: Vec<(i64, i64)> = (0..30).map(|n| (n * 5, n * 5 + 4)).collect();
        let mut done_before = 0;
        for step in 0..200 {
            let member = ["a", "b", "c"][pick(3) as usize];
            match pick(6) {
                0 | 1 => {
                    let strict = pick(2) == 0;
                    let wanted = AcquireLimits { strict, max_locks: 60, ..limits(pick(20) + 1) };
                    let got = acquire_as(&mut partition, member, &wanted, &log);
                    assert!(got.windows(2).all(|pair| pair[0].1 < pair[1].0), "ascending: {got:?}");
                    let records: i64 = got.iter().map(|(first, last, _)| last - first + 1).sum();
                    assert!(!strict || records <= wanted.max_records);
                }
                2 | 3 => {
                    let first = partition.start() + pick(30);
                    let last = first + pick(6);
                    let types: Vec<i8> = (first..=last).map(|_| pick(5) as i8).collect();
                    let _ = ack(&mut partition, member, &[(first, last, &types)]);
                }
                4 => {
                    partition.release_member(member, FIVE);
                }
                _ => {
                    partition.expire(LOCK + LOCK, FIVE);
                }
            }
            check_counts(&partition);
            assert!(partition.start() >= done_before, "the start offset never goes back (seed {seed}, step {step})");
            assert!(partition.start() <= partition.end());
            done_before = partition.start();
        }
    }
}

#[test]
fn dead_letters_stay_in_flight_until_they_are_buried() {
    let dead = Deliveries { limit: 2, dead_letters: true };
    let rules = AckRules { deliveries: dead, ..rules() };
    let mut partition = SharePartition::new(0);
    acquire(&mut partition, "a", 10, &[(0, 9)]);
    let ranges = [AckRange { first: 0, last: 3, types: &[3, 3, 0, 3] }, AckRange { first: 4, last: 4, types: &[1] }];
    partition.acknowledge("a", &ranges, &rules).unwrap();
    check_counts(&partition);
    let letter = |first, last, count, cause| DeadLetter { first, last, count, cause };
    assert_eq!(partition.take_dead_letters(), [letter(0, 1, 1, Cause::Rejected), letter(3, 3, 1, Cause::Rejected)]);
    assert_eq!((partition.start(), partition.delivery_complete()), (0, 2), "they hold the start offset");
    assert_eq!(ack(&mut partition, "a", &[(0, 0, &[1])]), Err(ErrorCode::INVALID_RECORD_STATE));
    assert!(partition.expire(LOCK, dead));
    assert_eq!(acquire(&mut partition, "b", 10, &[(0, 9)]), [(5, 9, 2)], "nobody gets them");
    partition.release_member("b", dead);
    assert_eq!(partition.take_dead_letters(), [letter(5, 9, 2, Cause::DeliveryLimit)]);
    let stored = partition.snapshot();
    assert!(stored.iter().filter(|batch| batch.state == StoredState::Archiving).count() >= 3, "{stored:?}");

    let mut moved = SharePartition::resume(partition.start(), &stored, 2);
    check_counts(&moved);
    let all =
        [letter(0, 1, 1, Cause::Rejected), letter(3, 3, 1, Cause::Rejected), letter(5, 9, 2, Cause::DeliveryLimit)];
    assert_eq!(moved.take_dead_letters(), all, "the new leader begins again");
    moved.buried(0, 1);
    assert_eq!(moved.start(), 3);
    moved.buried(5, 9);
    assert_eq!((moved.start(), moved.delivery_complete()), (3, 6));
    moved.buried(3, 3);
    check_counts(&moved);
    assert_eq!((moved.start(), moved.end(), moved.archiving_records()), (10, 10, 0));
}
