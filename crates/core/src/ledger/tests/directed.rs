//! One rule each: what a log says about records, checks, waiting and verdicts.

use super::super::*;
use super::log::*;
use crate::share_acks::AckType;
use crate::transaction::ProducerIdentity;
use bytes::Bytes;
use kafka_share_wire::Uuid;
use kafka_share_wire::records::BatchOptions;
use std::collections::HashMap;
use std::time::{Duration, Instant};

fn read(log: &Log) -> LedgerReader {
    let mut reader = reader();
    catch_up(&mut reader, log, Instant::now());
    reader
}

/// A check that waits a minute at most, of a transaction that acknowledges what was asked for first.
fn check(reader: &mut LedgerReader, now: Instant, counter: u64, offset: i64) -> Check {
    reader.check(now, now + Duration::from_secs(60), &key(counter), offset, 1).unwrap()
}

#[test]
fn open_committed_and_aborted() {
    let mut log = Log::default();
    log.intent(1, 1, &[accept(0, 4)]);
    assert_eq!(read(&log).standings(TP, 3, 6), [run(3, 4, Standing::Open), run(5, 6, Standing::Free)]);
    let mut aborted = log.clone();
    aborted.marker(1, false);
    assert_eq!(read(&aborted).standings(TP, 3, 6), [run(3, 6, Standing::Free)]);
    log.marker(1, true);
    assert_eq!(read(&log).standings(TP, 3, 6), [run(3, 4, DONE), run(5, 6, Standing::Free)]);
    let other = crate::metadata::TopicIdPartition { partition: 1, ..TP };
    assert_eq!(read(&log).standings(other, 0, 9), [run(0, 9, Standing::Free)]);
}

#[test]
fn types_and_overlaps_are_told_apart() {
    let mut log = Log::default();
    let reject = ClaimedRange { ack: AckType::Reject, ..accept(3, 3) };
    log.committed(1, 1, &[accept(0, 2), reject, accept(4, 5)]);
    log.intent(2, 2, &[accept(2, 8)]);
    let expected = [
        run(0, 2, DONE),
        run(3, 3, Standing::Done(AckType::Reject)),
        run(4, 5, DONE),
        run(6, 8, Standing::Open),
        run(9, 9, Standing::Free),
    ];
    assert_eq!(read(&log).standings(TP, 0, 9), expected);
}

#[test]
fn a_marker_counts_by_producer_id_alone() {
    let mut log = Log::default();
    log.intent(1, 1, &[accept(0, 4)]);
    log.intent(2, 2, &[accept(5, 9)]);
    log.marker_at_epoch(1, false, 6);
    log.marker_at_epoch(2, true, 9);
    assert_eq!(read(&log).standings(TP, 0, 9), [run(0, 4, Standing::Free), run(5, 9, DONE)]);
}

#[test]
fn an_empty_control_batch_says_nothing() {
    let mut log = Log::default();
    log.committed(1, 1, &[accept(0, 4)]);
    log.intent(2, 2, &[accept(5, 9)]);
    let marker = log.marker(2, false);
    log.marker(1, true);
    log.empty(marker, true, 2);
    assert_eq!(read(&log).standings(TP, 0, 9), [run(0, 4, DONE), run(5, 9, Standing::Open)]);
}

#[test]
fn nothing_is_handed_out_before_the_log_was_read() {
    let mut log = Log::default();
    log.committed(1, 1, &[accept(0, 4)]);
    let mut reader = reader();
    assert_eq!(reader.want(), Want::Bounds);
    assert_eq!(reader.standings(TP, 0, 9), [run(0, 9, Standing::Open)]);
    reader.handle_bounds(0, log.end);
    assert!(!reader.is_caught_up());
    assert_eq!(reader.standings(TP, 0, 9), [run(0, 9, Standing::Open)]);
    catch_up(&mut reader, &log, Instant::now());
    assert_eq!(reader.standings(TP, 0, 9), [run(0, 4, DONE), run(5, 9, Standing::Free)]);
}

#[test]
fn only_intents_of_the_own_group_count() {
    let mut log = Log::default();
    log.records(1, &[LedgerRecord::Intent(key(1), intent_of("other", 0, claims(&[accept(0, 4)])))]);
    let mut both = intent_of("other", 0, claims(&[accept(0, 4)]));
    both.groups.push(intent_of("g", 0, claims(&[accept(5, 9)])).groups.remove(0));
    log.records(2, &[LedgerRecord::Intent(key(2), both)]);
    let reader = read(&log);
    assert_eq!(reader.standings(TP, 0, 9), [run(0, 4, Standing::Free), run(5, 9, Standing::Open)]);
    // With what its intent claims for the other one, which is remembered.
    assert_eq!(reader.ranges(), 2);
}

#[test]
fn the_lower_intent_goes_first() {
    let now = Instant::now();
    let mut log = Log::default();
    let first = log.intent(1, 1, &[accept(0, 9)]);
    let second = log.intent(2, 2, &[accept(5, 14)]);
    let mut reader = read(&log);
    assert_eq!(check(&mut reader, now, 1, first), Check::Clear);
    assert_eq!(check(&mut reader, now, 2, second), Check::Waiting);
    let mut lost = log.clone();
    lost.marker(1, true);
    catch_up(&mut reader, &lost, now);
    let conflict = Conflict { tp: TP, first: 5, last: 9, ack: AckType::Accept };
    assert_eq!(check(&mut reader, now, 2, second), Check::Conflicts(vec![conflict]));
    log.marker(1, false);
    assert_eq!(check(&mut read(&log), now, 2, second), Check::Clear);
}

#[test]
fn a_check_needs_the_log_up_to_the_own_intent() {
    let now = Instant::now();
    let mut log = Log::default();
    let mut reader = read(&log);
    let offset = log.intent(1, 1, &[accept(0, 9)]);
    assert_eq!(check(&mut reader, now, 1, offset), Check::Reading);
    catch_up(&mut reader, &log, now);
    assert_eq!(check(&mut reader, now, 1, offset), Check::Clear);
}

#[test]
fn own_earlier_intents_count() {
    let now = Instant::now();
    let mut log = Log::default();
    log.committed(1, 1, &[accept(0, 4)]);
    let again = log.intent(1, 2, &[accept(4, 6)]);
    let mut reader = read(&log);
    let conflict = Conflict { tp: TP, first: 4, last: 4, ack: AckType::Accept };
    assert_eq!(check(&mut reader, now, 2, again), Check::Conflicts(vec![conflict]));
}

#[test]
fn an_owner_is_fenced_once_after_a_quarter_of_the_lock() {
    let now = Instant::now();
    let mut log = Log::default();
    let first = log.intent(1, 1, &[accept(0, 9)]);
    let second = log.intent(2, 2, &[accept(5, 14)]);
    let mut reader = read(&log);
    reader.set_record_lock(LOCK);
    assert_eq!(reader.next_deadline(), None, "nobody waits");
    assert_eq!(check(&mut reader, now, 2, second), Check::Waiting);
    let due = now + LOCK / 4;
    assert_eq!(reader.next_deadline(), Some(due));
    assert_eq!(reader.poll_fence(due - Duration::from_millis(1)), None);
    // Asking again does not put it off.
    assert_eq!(check(&mut reader, due - Duration::from_millis(1), 2, second), Check::Waiting);
    let owner = ProducerIdentity { id: 1, epoch: 5 };
    assert_eq!(reader.poll_fence(due), Some(FenceOrder { intent: first, transactional_id: "tid".into(), owner }));
    assert_eq!((reader.poll_fence(due + LOCK), reader.next_deadline()), (None, None));
    // The verdict is the marker, whatever the fence was answered.
    assert_eq!(check(&mut reader, due, 2, second), Check::Waiting);
    log.marker_at_epoch(1, true, 6);
    catch_up(&mut reader, &log, due);
    assert!(matches!(check(&mut reader, due, 2, second), Check::Conflicts(_)));
}

#[test]
fn records_that_are_set_aside_have_their_owner_fenced_too() {
    let now = Instant::now();
    let mut log = Log::default();
    log.intent(1, 1, &[accept(0, 9)]);
    let mut reader = read(&log);
    reader.set_record_lock(LOCK);
    // Whoever gives up before the limit fences nobody.
    reader.wait_for(now, now + LOCK / 8, TP, 9, 20);
    assert_eq!(reader.next_deadline(), None);
    reader.wait_for(now, now + LOCK, TP, 10, 20);
    assert_eq!(reader.next_deadline(), None, "nothing there is claimed");
    reader.wait_for(now, now + LOCK, TP, 9, 20);
    assert!(reader.poll_fence(now + LOCK / 4).is_some());
}

#[test]
fn two_phases_and_missing_rights_block() {
    let now = Instant::now();
    let mut log = Log::default();
    let prepared = Intent { two_phase: true, ..intent_of("g", 0, claims(&[accept(0, 1)])) };
    log.records(1, &[LedgerRecord::Intent(key(1), prepared)]);
    let other = log.intent(2, 2, &[accept(10, 11)]);
    let mine = log.intent(3, 3, &[accept(1, 1)]);
    let yours = log.intent(4, 4, &[accept(11, 12)]);
    let mut reader = read(&log);
    reader.set_record_lock(LOCK);
    assert_eq!(check(&mut reader, now, 3, mine), Check::Blocked);
    reader.wait_for(now, now + LOCK, TP, 0, 0);
    assert_eq!(reader.poll_fence(now + LOCK / 4), None, "nobody fences a prepared transaction");
    assert_eq!(check(&mut reader, now, 4, yours), Check::Waiting);
    assert_eq!(reader.poll_fence(now + LOCK / 4).unwrap().intent, other);
    reader.handle_fence_refused(other);
    assert_eq!(check(&mut reader, now, 4, yours), Check::Blocked);
}

#[test]
fn the_own_marker_ends_the_check() {
    let now = Instant::now();
    for (commit, verdict) in [(true, Verdict::Committed), (false, Verdict::Aborted)] {
        let mut log = Log::default();
        // The marker of the transaction before may be read late.
        log.marker(1, !commit);
        let mut reader = read(&Log::default());
        reader.watch(key(1), 1);
        let offset = log.intent(1, 1, &[accept(0, 9)]);
        catch_up(&mut reader, &log, now);
        reader.handle_written(&key(1), offset);
        assert_eq!((check(&mut reader, now, 1, offset), reader.verdict(&key(1))), (Check::Clear, None));
        log.marker_at_epoch(1, commit, 6);
        log.marker(1, !commit);
        catch_up(&mut reader, &log, now);
        assert_eq!(check(&mut reader, now, 1, offset), Check::Ended(verdict));
        assert_eq!(reader.verdict(&key(1)), Some(verdict));
        reader.unwatch(&key(1));
        assert_eq!(reader.verdict(&key(1)), None);
    }
}

#[test]
fn a_verdict_that_was_compacted_away_is_not_guessed() {
    let now = Instant::now();
    let mut log = Log::default();
    let mut reader = read(&log);
    reader.watch(key(1), 1);
    let offset = log.intent(1, 1, &[accept(0, 9)]);
    reader.handle_written(&key(1), offset);
    let marker = log.marker(1, true);
    log.committed(2, 2, &[accept(20, 20)]);
    log.compact(offset);
    log.compact(marker);
    catch_up(&mut reader, &log, now);
    assert_eq!(reader.verdict(&key(1)), Some(Verdict::Lost));
}

#[test]
fn an_open_intent_whose_marker_is_gone_has_the_log_read_again() {
    let now = Instant::now();
    let mut log = Log::default();
    let intent = log.intent(1, 1, &[accept(0, 9)]);
    let marker = log.marker(1, false);
    log.committed(2, 2, &[accept(20, 20)]);
    // Compaction takes markers after what they decide; here it has not.
    log.empty(marker, true, 1);
    let end = log.end;
    let mut reader = reader();
    reader.handle_bounds(0, end);
    reader.handle_records(now, log.fetch(0), end).unwrap();
    assert!(reader.is_caught_up());
    assert_eq!(reader.standings(TP, 0, 9), [run(0, 9, Standing::Open)]);
    for _ in 0..2 {
        // One answer alone may show it: brokers read the two without a lock.
        assert_eq!(reader.want(), Want::Records(end));
        reader.handle_records(now, Bytes::new(), end).unwrap();
    }
    assert_eq!(reader.want(), Want::Bounds);
    log.compact(intent);
    catch_up(&mut reader, &log, now);
    assert_eq!(reader.standings(TP, 0, 9), [run(0, 9, Standing::Free)]);
}

#[test]
fn an_open_intent_at_the_stable_offset_is_no_suspicion() {
    let now = Instant::now();
    let mut log = Log::default();
    let intent = log.intent(1, 1, &[accept(0, 9)]);
    let mut reader = read(&log);
    for _ in 0..10 {
        reader.handle_records(now, Bytes::new(), intent).unwrap();
        reader.handle_records(now, Bytes::new(), -1).unwrap();
    }
    assert_eq!(reader.want(), Want::Records(log.end));
}

#[test]
fn a_tombstone_is_due_when_all_is_confirmed() {
    let mut log = Log::default();
    log.committed(1, 1, &[accept(0, 4), accept(10, 14)]);
    let mut reader = read(&log);
    reader.handle_confirmed(TP, 0, 99);
    assert_eq!(reader.tombstones_due(), 0, "not an own one");
    reader.handle_committed(&key(1), false);
    reader.handle_confirmed(TP, 0, 3);
    reader.handle_confirmed(TP, 12, 12);
    reader.handle_confirmed(TP, 10, 11);
    reader.handle_confirmed(TP, 13, 20);
    assert_eq!(reader.tombstones_due(), 0);
    reader.handle_confirmed(TP, 4, 4);
    assert_eq!(reader.take_tombstones(5), [key(1)]);
    assert_eq!(reader.take_tombstones(5), []);
    reader.return_tombstones([key(1)]);
    assert_eq!(reader.take_tombstones(0), []);
    assert_eq!(reader.take_tombstones(5), [key(1)]);
    // Somebody else has done it meanwhile.
    reader.return_tombstones([key(1)]);
    log.forgotten(2, 1);
    catch_up(&mut reader, &log, Instant::now());
    assert_eq!(reader.take_tombstones(5), []);
}

#[test]
fn what_a_dead_owner_left_is_due_when_the_start_offsets_have_passed_it() {
    let (now, age) = (Instant::now(), Duration::from_secs(60));
    let mut log = Log::default();
    log.committed(1, 1, &[accept(0, 4)]);
    log.intent(2, 2, &[accept(5, 9)]);
    let mut both = intent_of("other", 0, claims(&[accept(100, 104)]));
    both.groups.push(intent_of("g", 0, claims(&[accept(20, 24)])).groups.remove(0));
    log.records(3, &[LedgerRecord::Intent(key(3), both)]);
    log.marker(3, true);
    let mut reader = reader();
    catch_up(&mut reader, &log, now);
    let later = now + age;
    let place = |group: &str| SweepPartition { group: group.into(), tp: TP };
    assert!(reader.sweep(later - Duration::from_millis(1), age).is_empty(), "its owner may be at it");
    assert_eq!(reader.sweep(later, age).into_iter().collect::<Vec<_>>(), [place("g"), place("other")]);
    reader.handle_start_offsets(later, age, &HashMap::from([(place("g"), 4), (place("other"), 500)]));
    assert_eq!(reader.tombstones_due(), 0);
    reader.handle_start_offsets(later, age, &HashMap::from([(place("g"), 25)]));
    assert_eq!(reader.take_tombstones(9), [key(1)], "not what is open, nor what another group still needs");
    reader.handle_start_offsets(later, age, &HashMap::from([(place("g"), 25), (place("other"), 105)]));
    assert_eq!(reader.take_tombstones(9), [key(1), key(3)]);
}

#[test]
fn a_new_generation_forgets_what_was_before() {
    let now = Instant::now();
    let raise = |generation| LedgerRecord::Generation { group: "g".into(), generation };
    let mut log = Log::default();
    log.committed(1, 1, &[accept(0, 4)]);
    log.outside(&LedgerRecord::Generation { group: "other".into(), generation: 9 });
    assert_eq!(read(&log).standings(TP, 0, 4), [run(0, 4, DONE)]);
    log.outside(&raise(2));
    let mut reader = read(&log);
    assert_eq!((reader.generation(), reader.floor()), (2, 0));
    assert_eq!(reader.standings(TP, 0, 4), [run(0, 4, Standing::Free)]);
    // Somebody from before the reset has woken up: it does not count, and must not commit.
    let late = log.intent(2, 2, &[accept(0, 4)]);
    catch_up(&mut reader, &log, now);
    assert_eq!(reader.standings(TP, 0, 4), [run(0, 4, Standing::Free)]);
    assert_eq!(check(&mut reader, now, 2, late), Check::Dropped);
    // Whoever holds records when it is raised drops them.
    reader.note_asked(4);
    log.outside(&raise(3));
    catch_up(&mut reader, &log, now);
    assert_eq!((reader.generation(), reader.floor()), (3, 4));
    // The generation is not forgotten when the log is read again.
    reader.handle_out_of_range();
    assert_eq!(reader.generation(), 3);
}

#[test]
fn what_others_wrote_ends_the_reading() {
    let now = Instant::now();
    let plain = |value: &'static [u8]| [(key(1).encode(), Some(Bytes::from_static(value)))];
    let foreign = [(Bytes::from("user-1"), Some(Bytes::from("{}")))];
    let outside = LedgerRecord::Intent(key(1), intent_of("g", 0, claims(&[accept(0, 1)])));
    let inside = LedgerRecord::Generation { group: "g".into(), generation: 1 };
    let none = BatchOptions::default();
    type Write<'a> = &'a dyn Fn(&mut Log) -> i64;
    let cases: [(Write<'_>, &str); 6] = [
        (&|log| log.push(none, &foreign), "not of a ledger"),
        (&|log| log.outside(&outside), "outside a transaction"),
        (&|log| log.records(1, std::slice::from_ref(&inside)), "inside a transaction"),
        (&|log| log.push(none, &plain(b"KL\x02")), "upgrade"),
        (&|log| log.push(none, &plain(b"KL\x01\x01\x05")), "5 partitions"),
        (&|log| log.push(none, &plain(b"KL\x01\x01\x01")), "damaged"),
    ];
    for (write, told) in cases {
        let mut log = Log::default();
        log.committed(1, 1, &[accept(0, 4)]);
        let at = log.end;
        write(&mut log);
        let mut reader = reader();
        reader.handle_bounds(0, log.end);
        let error = reader.handle_records(now, log.fetch(0), -1).unwrap_err();
        assert!(error.to_string().contains(told) && error.to_string().contains(&format!("offset {at}")), "{error}");
        assert_eq!((reader.want(), reader.error()), (Want::Nothing, Some(&error)));
        assert_eq!(reader.standings(TP, 0, 4), [run(0, 4, Standing::Open)]);
        assert_eq!(reader.check(now, now, &key(1), 0, 1), Err(error.clone()));
        assert_eq!(reader.handle_records(now, Bytes::new(), -1), Err(error));
    }
}

#[test]
fn damaged_batches_and_groups_in_the_wrong_place_end_it_too() {
    let now = Instant::now();
    let mut log = Log::default();
    log.committed(1, 1, &[accept(0, 4)]);
    let mut bytes = log.fetch(0).to_vec();
    *bytes.last_mut().unwrap() ^= 1;
    let mut reader = reader();
    reader.handle_bounds(0, log.end);
    let error = reader.handle_records(now, bytes.into(), -1).unwrap_err();
    assert!(matches!(error, LedgerError::Batch { offset: 1, .. }), "{error}");

    let layout = Layout::new(2).unwrap();
    let mut groups = (0..).map(|i: i32| format!("g{i}"));
    let wrong = groups.find(|g| layout.partition_for(g) == 1).unwrap();
    let mut log = Log::default();
    let (key, value) = LedgerRecord::Intent(key(1), intent_of(&wrong, 0, claims(&[accept(0, 1)]))).encode(layout);
    let options =
        BatchOptions { producer_id: 1, producer_epoch: 0, base_sequence: 0, transactional: true, ..Default::default() };
    log.push(options, &[(key, value)]);
    let group = groups.find(|g| layout.partition_for(g) == 0).unwrap();
    let mut reader = LedgerReader::new(ReaderConfig { group: group.into(), layout, max_ranges: 10 });
    reader.handle_bounds(0, log.end);
    assert!(reader.handle_records(now, log.fetch(0), -1).unwrap_err().to_string().contains("another partition"));
}

#[test]
fn memory_is_bounded() {
    let now = Instant::now();
    let mut reader = LedgerReader::new(ReaderConfig { group: "g".into(), layout: layout(), max_ranges: 3 });
    let mut log = Log::default();
    log.intent(1, 1, &[accept(0, 0), accept(2, 2), accept(4, 4)]);
    log.marker(1, false);
    log.intent(1, 2, &[accept(0, 0), accept(2, 2), accept(4, 4)]);
    reader.handle_bounds(0, log.end);
    reader.handle_records(now, log.fetch(0), -1).unwrap();
    log.intent(2, 3, &[accept(7, 7)]);
    let error = reader.handle_records(now, log.fetch(3), -1).unwrap_err();
    assert_eq!(error, LedgerError::TooLarge { partition: 0, limit: 3 });
    assert!(error.to_string().contains("kshare ledger compact"), "{error}");
    assert_eq!(key(1).instance, Uuid([9; 16]));
}

/// An intent of several groups is remembered with all that it claims.
#[test]
fn what_is_claimed_for_other_groups_is_counted_too() {
    let now = Instant::now();
    let mut log = Log::default();
    let both = |counter: u64, ranges: &[ClaimedRange]| {
        let mut intent = intent_of("g", 0, claims(&[accept(0, 0)]));
        intent.groups.extend(intent_of("h", 0, claims(ranges)).groups);
        LedgerRecord::Intent(key(counter), intent)
    };
    log.records(1, &[both(1, &[accept(0, 0), accept(2, 2)])]);
    let mut reader = LedgerReader::new(ReaderConfig { group: "g".into(), layout: layout(), max_ranges: 3 });
    reader.handle_bounds(0, log.end);
    catch_up(&mut reader, &log, now);
    assert_eq!(reader.ranges(), 3);
    log.marker(1, false);
    catch_up(&mut reader, &log, now);
    assert_eq!(reader.ranges(), 0);
    let from = log.end;
    log.records(1, &[both(2, &[accept(0, 0), accept(2, 2), accept(4, 4)])]);
    let error = reader.handle_records(now, log.fetch(from), -1).unwrap_err();
    assert_eq!(error, LedgerError::TooLarge { partition: 0, limit: 3 });
}

fn left(generation: u64) -> LedgerRecord {
    LedgerRecord::Left { group: "g".into(), generation }
}

fn native(log: &mut Log, producer_id: i64, counter: u64, ranges: &[ClaimedRange]) -> i64 {
    let intent = Intent { native: true, ..intent_of("g", 0, claims(ranges)) };
    log.records(producer_id, &[LedgerRecord::Intent(key(counter), intent)])
}

#[test]
fn a_group_that_has_left_commits_nothing_by_the_ledger_alone() {
    let now = Instant::now();
    let mut log = Log::default();
    let before = log.intent(1, 1, &[accept(0, 4)]);
    let mut reader = read(&log);
    assert_eq!(check(&mut reader, now, 1, before), Check::Clear);
    log.outside(&LedgerRecord::Left { group: "other".into(), generation: 0 });
    catch_up(&mut reader, &log, now);
    assert!(!reader.has_left());
    log.outside(&left(0));
    let alone = log.intent(2, 2, &[accept(5, 9)]);
    let both = native(&mut log, 3, 3, &[accept(10, 14)]);
    catch_up(&mut reader, &log, now);
    assert!(reader.has_left());
    assert_eq!(check(&mut reader, now, 2, alone), Check::Left);
    assert_eq!(check(&mut reader, now, 3, both), Check::Clear);
    // The next generation is on the ledger again.
    log.outside(&LedgerRecord::Generation { group: "g".into(), generation: 1 });
    log.outside(&left(0));
    catch_up(&mut reader, &log, now);
    assert!(!reader.has_left());
    log.outside(&left(1));
    catch_up(&mut reader, &log, now);
    assert!(reader.has_left());
}

#[test]
fn intents_are_needed_until_nothing_of_the_ledger_alone_is_left() {
    let now = Instant::now();
    let mut log = Log::default();
    log.committed(1, 1, &[accept(0, 4)]);
    let mut reader = read(&log);
    assert!(reader.needs_intent(), "the group is on the ledger");
    log.outside(&left(0));
    native(&mut log, 2, 2, &[accept(5, 9)]);
    catch_up(&mut reader, &log, now);
    assert!(reader.needs_intent(), "what was committed is not tombstoned");
    log.forgotten(2, 1);
    catch_up(&mut reader, &log, now);
    assert!(!reader.needs_intent(), "an open intent that brokers know of does not matter");
    let mut late = super::log::reader();
    assert!(late.needs_intent(), "nothing was read");
    catch_up(&mut late, &log, now);
    assert!(!late.needs_intent());
    // Somebody who has not read of it.
    let alone = log.intent(3, 3, &[accept(20, 24)]);
    catch_up(&mut late, &log, now);
    assert!(late.needs_intent());
    assert_eq!(check(&mut late, now, 3, alone), Check::Left);
}

#[test]
fn what_brokers_know_with_the_commit_is_tombstoned_without_confirmation() {
    let now = Instant::now();
    let mut log = Log::default();
    native(&mut log, 1, 1, &[accept(0, 4)]);
    log.marker(1, true);
    native(&mut log, 2, 2, &[accept(5, 9)]);
    let mut reader = read(&log);
    reader.handle_committed(&key(1), false);
    assert_eq!(reader.take_tombstones(9), [key(1)]);
    // That of a member that died is due once it is old.
    log.marker(2, true);
    catch_up(&mut reader, &log, now);
    let age = Duration::from_secs(60);
    assert!(reader.sweep(now, age).is_empty());
    assert_eq!(reader.tombstones_due(), 0);
    assert!(reader.sweep(now + age * 2, age).is_empty(), "start offsets are not needed");
    assert_eq!(reader.take_tombstones(9), [key(1), key(2)]);
}

#[test]
fn what_somebody_else_has_tombstoned_is_not_waited_for() {
    let now = Instant::now();
    let mut log = Log::default();
    log.committed(1, 1, &[accept(0, 4)]);
    log.committed(1, 2, &[accept(5, 9)]);
    log.committed(1, 3, &[accept(10, 14)]);
    let mut reader = read(&log);
    reader.note_asked(2);
    (1..=3).for_each(|counter| reader.handle_committed(&key(counter), false));
    reader.handle_confirmed(TP, 0, 2);
    assert_eq!(reader.unconfirmed(&key(1)), Some(&claims(&[accept(3, 4)])));
    log.forgotten(2, 1);
    log.outside(&LedgerRecord::Tombstone(key(2)));
    catch_up(&mut reader, &log, now);
    let waited: Vec<u64> = (1..=3).filter(|counter| reader.unconfirmed(&key(*counter)).is_some()).collect();
    assert_eq!(waited, [3]);
    reader.handle_confirmed(TP, 0, 9);
    assert_eq!(reader.tombstones_due(), 0);
    log.outside(&LedgerRecord::Generation { group: "g".into(), generation: 1 });
    catch_up(&mut reader, &log, now);
    assert_eq!(reader.unconfirmed(&key(3)), None);
}

#[test]
fn an_intent_of_several_readers_is_done_when_they_say_so() {
    let mut log = Log::default();
    log.committed(1, 1, &[accept(0, 9)]);
    let mut readers = [read(&log), read(&log)];
    readers.iter_mut().for_each(|r| r.handle_committed(&key(1), true));
    readers[0].handle_confirmed(TP, 0, 5);
    readers[1].handle_confirmed(TP, 5, 8);
    let left = |readers: &[LedgerReader; 2]| {
        let [one, other] = readers.each_ref().map(|r| r.unconfirmed(&key(1)).unwrap());
        common_claims(one, other)
    };
    assert_eq!(left(&readers), claims(&[accept(9, 9)]));
    readers[0].handle_confirmed(TP, 0, 9);
    assert!(left(&readers).is_empty());
    assert_eq!(readers[0].tombstones_due(), 0, "it does not know of the other's");
    readers[0].handle_done(&key(1));
    assert_eq!(readers[0].take_tombstones(9), [key(1)]);
}
