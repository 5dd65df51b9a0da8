//! The rules about forgetting: R1 (a tombstone frees records that are asked for later) and R2 (after a gap nothing counts
//! that was asked for before).

use super::super::*;
use super::log::*;
use std::time::{Duration, Instant};

fn check(reader: &mut LedgerReader, counter: u64, offset: i64, lowest_ask: u64) -> Check {
    let now = Instant::now();
    reader.check(now, now + Duration::from_secs(60), &key(counter), offset, lowest_ask).unwrap()
}

/// A member that has asked with number 1, and whose answer is still to come.
fn waiting_for_an_answer(log: &Log) -> LedgerReader {
    let mut reader = reader();
    catch_up(&mut reader, log, Instant::now());
    reader.note_asked(2);
    reader
}

#[test]
fn r1_a_tombstone_does_not_free_what_was_asked_for_before() {
    let now = Instant::now();
    let mut log = Log::default();
    // It acquires 0 to 4, and stops. Its lock expires; another commits, acknowledges and tombstones.
    let mut zombie = waiting_for_an_answer(&log);
    log.committed(2, 1, &[accept(0, 4)]);
    log.forgotten(2, 1);
    catch_up(&mut zombie, &log, now);
    assert_eq!(zombie.standings(TP, 0, 4), [run(0, 4, DONE)]);
    let late = log.intent(1, 9, &[accept(0, 4)]);
    catch_up(&mut zombie, &log, now);
    assert!(matches!(check(&mut zombie, 9, late, 1), Check::Conflicts(_)));
    // More is asked for meanwhile; the old answer still counts.
    zombie.note_asked(5);
    zombie.set_lowest_ask(1);
    assert_eq!(zombie.standings(TP, 0, 4)[0].standing, DONE);
    // All that had been asked for is settled.
    log.marker(1, false);
    catch_up(&mut zombie, &log, now);
    zombie.set_lowest_ask(2);
    assert_eq!(zombie.standings(TP, 0, 4), [run(0, 4, Standing::Free)]);
    assert_eq!(zombie.ranges(), 0);
}

#[test]
fn r1_while_reading_at_the_start_tombstones_free_at_once() {
    let mut log = Log::default();
    log.committed(2, 1, &[accept(0, 4)]);
    log.forgotten(2, 1);
    let mut reader = reader();
    catch_up(&mut reader, &log, Instant::now());
    assert_eq!((reader.standings(TP, 0, 4)[0].standing, reader.ranges()), (Standing::Free, 0));
}

#[test]
fn the_tombstone_of_an_aborted_transaction_frees_nothing() {
    let mut log = Log::default();
    log.committed(1, 1, &[accept(0, 4)]);
    log.tombstone(2, 1);
    let standing = |log: &Log| {
        let mut reader = reader();
        catch_up(&mut reader, log, Instant::now());
        reader.standings(TP, 0, 4)[0].standing
    };
    assert_eq!(standing(&log), DONE, "not before its marker");
    let mut aborted = log.clone();
    aborted.marker(2, false);
    assert_eq!(standing(&aborted), DONE);
    // Nor does a later transaction of the same producer make it count.
    aborted.committed(2, 5, &[accept(50, 50)]);
    assert_eq!(standing(&aborted), DONE);
    log.marker(2, true);
    assert_eq!(standing(&log), Standing::Free);
}

#[test]
fn r2_a_gap_drops_what_was_asked_for_before() {
    let now = Instant::now();
    let mut log = Log::default();
    let mut zombie = waiting_for_an_answer(&log);
    let intent = log.committed(2, 1, &[accept(0, 4)]);
    log.forgotten(2, 1);
    let late = log.intent(1, 9, &[accept(0, 4)]);
    // Compaction removes the intent and its tombstone before the zombie reads on.
    let mut compacted = log.clone();
    compacted.compact(intent);
    compacted.compact(2);
    zombie.handle_records(now, compacted.fetch(0), -1).unwrap();
    assert_eq!((zombie.floor(), zombie.want()), (2, Want::Bounds), "and it reads from the start again");
    assert_eq!(zombie.standings(TP, 0, 4)[0].standing, Standing::Open);
    assert_eq!(check(&mut zombie, 9, late, 1), Check::Dropped);
    catch_up(&mut zombie, &compacted, now);
    assert_eq!(check(&mut zombie, 9, late, 1), Check::Dropped);
    // What is asked for afterwards counts.
    zombie.note_asked(3);
    assert_eq!(check(&mut zombie, 9, late, 2), Check::Clear);
    assert_eq!(zombie.floor(), 2);
}

#[test]
fn r2_batches_that_lost_records_are_gaps() {
    let now = Instant::now();
    let mut log = Log::default();
    log.committed(2, 1, &[accept(0, 4)]);
    let both = log.records(2, &[LedgerRecord::Tombstone(key(1)), LedgerRecord::Tombstone(key(7))]);
    let marker = log.marker(2, true);
    for (base, control) in [(both, false), (marker, true), (0, false)] {
        let mut reader = reader();
        reader.handle_bounds(0, 0);
        reader.note_asked(2);
        let mut compacted = log.clone();
        compacted.empty(base, control, 2);
        reader.handle_records(now, compacted.fetch(0), -1).unwrap();
        assert_eq!((reader.floor(), reader.want()), (2, Want::Bounds), "the batch at {base}");
    }
    let mut reader = reader();
    reader.handle_bounds(0, 0);
    reader.note_asked(2);
    reader.handle_records(now, log.fetch(0), -1).unwrap();
    assert_eq!((reader.floor(), reader.want()), (0, Want::Records(log.end)), "without one, none is seen");
}

#[test]
fn r2_an_offset_out_of_range_is_a_gap() {
    let log = Log::default();
    let mut reader = waiting_for_an_answer(&log);
    reader.handle_out_of_range();
    assert_eq!((reader.floor(), reader.want()), (2, Want::Bounds));
}

#[test]
fn r2_gaps_at_the_start_drop_what_was_asked_for() {
    let now = Instant::now();
    let mut log = Log::default();
    log.committed(2, 1, &[accept(0, 4)]);
    log.forgotten(2, 1);
    log.committed(2, 2, &[accept(5, 6)]);
    log.compact(0);
    log.compact(2);
    // Nothing was asked for.
    let mut first = reader();
    catch_up(&mut first, &log, now);
    assert_eq!((first.floor(), first.is_caught_up()), (0, true));
    // Attached late, to a consumer that holds what request 3 brought and waits for the answer of 4.
    let mut late = reader();
    late.note_asked(5);
    late.set_lowest_ask(3);
    late.handle_bounds(0, log.end);
    // Who asks after the end was learned is not safe from what lies below it: see the next test.
    late.note_asked(7);
    catch_up(&mut late, &log, now);
    assert_eq!((late.floor(), late.is_caught_up()), (7, true));
    // Without a gap nothing is dropped, and R1 holds for what was asked for before.
    let mut whole = Log::default();
    whole.committed(2, 1, &[accept(0, 4)]);
    whole.forgotten(2, 1);
    let mut late = reader();
    late.note_asked(5);
    late.set_lowest_ask(3);
    catch_up(&mut late, &whole, now);
    assert_eq!((late.floor(), late.standings(TP, 0, 4)[0].standing), (0, DONE));
}

#[test]
fn r2_a_record_asked_for_while_reading_from_the_start_is_dropped_after_a_gap() {
    let now = Instant::now();
    let mut log = Log::default();
    let intent = log.intent(2, 1, &[accept(0, 0)]);
    let mut reader = reader();
    reader.handle_bounds(0, log.end);
    // The owner's lock has expired, and this member gets the record, and stops. The owner commits, gets the record again,
    // acknowledges it, and its tombstone is written; compaction takes the intent.
    reader.note_asked(2);
    log.marker(2, true);
    log.forgotten(2, 1);
    log.compact(intent);
    catch_up(&mut reader, &log, now);
    let late = log.intent(1, 9, &[accept(0, 0)]);
    catch_up(&mut reader, &log, now);
    assert_eq!((reader.floor(), check(&mut reader, 9, late, 1)), (2, Check::Dropped));
}

#[test]
fn a_marker_missed_while_reading_from_the_start_is_not_taken_from_a_later_transaction() {
    let now = Instant::now();
    let mut log = Log::default();
    let aborted = log.intent(7, 1, &[accept(0, 0)]);
    let marker = log.marker(7, false);
    log.committed(2, 2, &[accept(5, 5)]);
    let mut reader = reader();
    reader.handle_bounds(0, log.end);
    // The first answer ends behind the intent; then its transaction is compacted away, and its producer commits another.
    reader.handle_records(now, log.fetch_between(0, 1), -1).unwrap();
    log.compact(aborted);
    log.compact(marker);
    log.committed(7, 3, &[accept(1, 1)]);
    reader.handle_records(now, log.fetch(1), -1).unwrap();
    assert_eq!((reader.want(), reader.is_caught_up()), (Want::Records(aborted), false), "it looks for the intent");
    assert_eq!(reader.standings(TP, 0, 0)[0].standing, Standing::Open);
    reader.handle_records(now, log.fetch(aborted), -1).unwrap();
    assert_eq!(reader.want(), Want::Bounds, "and reads again");
    catch_up(&mut reader, &log, now);
    assert_eq!(reader.standings(TP, 0, 1), [run(0, 0, Standing::Free), run(1, 1, DONE)]);
}

#[test]
fn an_intent_that_is_still_there_was_judged_by_its_own_marker() {
    let now = Instant::now();
    let mut log = Log::default();
    let aborted = log.intent(7, 1, &[accept(0, 0)]);
    let gone = log.intent(2, 2, &[accept(5, 5)]);
    log.marker(7, false);
    log.marker(2, false);
    log.compact(gone);
    let mut reader = reader();
    reader.handle_bounds(0, log.end);
    reader.handle_records(now, log.fetch_between(0, 1), -1).unwrap();
    reader.handle_records(now, log.fetch(1), -1).unwrap();
    assert_eq!(reader.want(), Want::Records(aborted));
    // A broker may have nothing to give for once.
    reader.handle_records(now, bytes::Bytes::new(), -1).unwrap();
    assert_eq!(reader.want(), Want::Records(aborted));
    reader.handle_records(now, log.fetch(aborted), -1).unwrap();
    assert_eq!((reader.want(), reader.is_caught_up()), (Want::Records(log.end), true));
    assert_eq!(reader.standings(TP, 0, 0)[0].standing, Standing::Free);
}

#[test]
fn batches_that_were_read_before_are_passed_over() {
    let now = Instant::now();
    let mut log = Log::default();
    log.committed(2, 1, &[accept(0, 4)]);
    let both = [2, 3]
        .map(|n| LedgerRecord::Intent(key(n), intent_of("g", 0, claims(&[accept(n as i64 * 10, n as i64 * 10)]))));
    log.records(3, &both);
    let mut reader = waiting_for_an_answer(&log);
    assert_eq!((reader.floor(), reader.want()), (0, Want::Records(4)));
    reader.handle_records(now, log.fetch(0), -1).unwrap();
    assert_eq!((reader.floor(), reader.want(), reader.ranges()), (0, Want::Records(4), 3));
    // A broker gives the whole batch that holds the wanted offset.
    let mut middle = super::log::reader();
    middle.handle_bounds(3, log.end + 1);
    middle.note_asked(2);
    middle.handle_records(now, log.fetch(3), -1).unwrap();
    assert_eq!((middle.floor(), middle.want(), middle.ranges()), (0, Want::Records(4), 1));
}

/// Whoever reads it cannot know what the deleted records said: one that starts, and one that has to read it again.
#[test]
fn a_log_whose_first_records_were_deleted_is_refused_until_the_generation_is_raised() {
    let now = Instant::now();
    let mut log = Log::default();
    log.committed(2, 1, &[accept(0, 4)]);
    log.committed(2, 2, &[accept(5, 6)]);
    let refused = |reader: &mut LedgerReader, log: &Log| {
        let error = LedgerError::Deleted { partition: reader.partition(), start: 2 };
        while let Want::Records(offset) = reader.want() {
            let _ = reader.handle_records(now, log.fetch(offset), -1);
        }
        assert_eq!((reader.error(), reader.is_caught_up()), (Some(&error), false));
        assert_eq!(reader.standings(TP, 0, 0)[0].standing, Standing::Open, "nothing is handed out");
    };
    let mut first = reader();
    first.handle_bounds(2, log.end);
    refused(&mut first, &log);
    // Of a log that has nothing else any more, too.
    let mut empty = reader();
    empty.handle_bounds(log.end, log.end);
    assert!(matches!(empty.error(), Some(LedgerError::Deleted { .. })));
    // One that is at work, and was overtaken by the deletion.
    let mut late = reader();
    catch_up(&mut late, &log, now);
    late.note_asked(5);
    late.handle_out_of_range();
    assert_eq!(late.floor(), 5);
    late.handle_bounds(2, log.end);
    refused(&mut late, &log);

    log.outside(&LedgerRecord::Generation { group: "g".into(), generation: 1 });
    let mut anew = reader();
    anew.handle_bounds(2, log.end);
    catch_up(&mut anew, &log, now);
    assert_eq!((anew.error(), anew.is_caught_up(), anew.generation()), (None, true, 1));
    assert_eq!(anew.standings(TP, 5, 5)[0].standing, Standing::Free, "what is done counts no more");
    let mut other = LedgerReader::new(ReaderConfig { group: "other".into(), layout: layout(), max_ranges: 3 });
    other.handle_bounds(2, log.end);
    refused(&mut other, &log);
}

#[test]
fn r2_makes_room_for_what_r1_keeps() {
    let now = Instant::now();
    let mut log = Log::default();
    let mut reader = LedgerReader::new(ReaderConfig { group: "g".into(), layout: layout(), max_ranges: 3 });
    catch_up(&mut reader, &log, now);
    reader.note_asked(2);
    for counter in 0..4 {
        log.committed(2, counter, &[accept(counter as i64, counter as i64)]);
        log.forgotten(2, counter);
    }
    catch_up(&mut reader, &log, now);
    // One more than there is room for: what was asked for is dropped, and with it what was kept for it.
    assert_eq!((reader.floor(), reader.ranges(), reader.error()), (2, 1, None));
    assert_eq!(reader.standings(TP, 0, 3), [run(0, 2, Standing::Free), run(3, 3, DONE)]);
    let late = log.intent(1, 9, &[accept(0, 0)]);
    catch_up(&mut reader, &log, now);
    assert_eq!(check(&mut reader, 9, late, 1), Check::Dropped);
    // What nobody has tombstoned is the limit.
    log.committed(2, 10, &[accept(10, 10), accept(20, 20), accept(30, 30), accept(40, 40)]);
    let result = reader.handle_records(now, log.fetch(late + 1), -1);
    assert!(matches!(result, Err(LedgerError::TooLarge { limit: 3, .. })), "{result:?}");
}
