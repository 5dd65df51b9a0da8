//! What a member has written itself needs no reading, as long as nobody else's records lie between.

use super::super::*;
use super::log::*;
use crate::transaction::ProducerIdentity;
use std::time::{Duration, Instant};

const OWNER: ProducerIdentity = ProducerIdentity { id: 1, epoch: 5 };

/// A member that has read an empty log, with the log.
fn member() -> (LedgerReader, Log) {
    let (mut reader, log) = (reader(), Log::default());
    catch_up(&mut reader, &log, Instant::now());
    (reader, log)
}

/// Writes tombstones and an intent, and tells the reader where they lie.
fn write(
    reader: &mut LedgerReader,
    log: &mut Log,
    tombstones: &[u64],
    counter: u64,
    range: ClaimedRange,
) -> (i64, Check) {
    let mut records: Vec<LedgerRecord> = tombstones.iter().map(|c| LedgerRecord::Tombstone(key(*c))).collect();
    records.push(LedgerRecord::Intent(key(counter), intent_of("g", 0, claims(&[range]))));
    reader.watch(key(counter), OWNER.id);
    let base = log.records(OWNER.id, &records);
    let offset = log.end - 1;
    reader.handle_written(&key(counter), offset);
    let now = Instant::now();
    reader.handle_own_records(now, OWNER, (base..).zip(records).collect()).unwrap();
    (offset, reader.check(now, now + LOCK, &key(counter), offset, 1).unwrap())
}

fn commit(reader: &mut LedgerReader, log: &mut Log, counter: u64) {
    log.marker(OWNER.id, true);
    reader.handle_committed(&key(counter), false);
    reader.unwatch(&key(counter));
}

#[test]
fn who_is_alone_reads_nothing_back() {
    let (mut reader, mut log) = member();
    for counter in 0..5 {
        let first = counter as i64 * 10;
        assert_eq!(write(&mut reader, &mut log, &[], counter, accept(first, first + 9)).1, Check::Clear);
        assert_eq!(reader.position(), Some(log.end));
        commit(&mut reader, &mut log, counter);
    }
    assert!(reader.is_alone(Instant::now()));
    assert!(!reader.is_alone(Instant::now() + Duration::from_secs(2)), "it does not write any more");
    // All but the last marker is known.
    assert_eq!(
        reader.standings(TP, 0, 59),
        [run(0, 39, DONE), run(40, 49, Standing::Open), run(50, 59, Standing::Free)]
    );
    let again = write(&mut reader, &mut log, &[], 9, accept(45, 52)).1;
    assert!(matches!(&again, Check::Conflicts(c) if c[0].first == 45 && c[0].last == 49), "{again:?}");
}

#[test]
fn own_tombstones_free_what_is_asked_for_later() {
    let (mut reader, mut log) = member();
    write(&mut reader, &mut log, &[], 0, accept(0, 9));
    commit(&mut reader, &mut log, 0);
    reader.note_asked(2);
    assert_eq!(write(&mut reader, &mut log, &[0], 1, accept(10, 19)).1, Check::Clear);
    commit(&mut reader, &mut log, 1);
    assert_eq!(write(&mut reader, &mut log, &[], 2, accept(20, 29)).1, Check::Clear);
    assert_eq!(reader.standings(TP, 0, 19), [run(0, 19, DONE)], "asked for before");
    reader.set_lowest_ask(2);
    assert_eq!(reader.standings(TP, 0, 19), [run(0, 9, Standing::Free), run(10, 19, DONE)]);
}

#[test]
fn whatever_lies_between_has_to_be_read() {
    // Before the marker of the transaction before, between it and the next, and where there was none before.
    for before_marker in [true, false] {
        let (mut reader, mut log) = member();
        write(&mut reader, &mut log, &[], 0, accept(0, 9));
        if before_marker {
            log.intent(7, 77, &[accept(10, 19)]);
        }
        commit(&mut reader, &mut log, 0);
        if !before_marker {
            log.intent(7, 77, &[accept(10, 19)]);
        }
        let (offset, check) = write(&mut reader, &mut log, &[], 1, accept(15, 15));
        assert_eq!(check, Check::Reading);
        let now = Instant::now();
        catch_up(&mut reader, &log, now);
        assert!(!reader.is_alone(now), "somebody else writes too");
        assert_eq!(reader.check(now, now + LOCK, &key(1), offset, 1).unwrap(), Check::Waiting);
    }
    let (mut reader, mut log) = member();
    log.outside(&LedgerRecord::Generation { group: "g".into(), generation: 3 });
    assert_eq!(write(&mut reader, &mut log, &[], 0, accept(0, 9)).1, Check::Reading);
}

#[test]
fn a_marker_that_may_be_of_any_kind_has_to_be_read() {
    let (mut reader, mut log) = member();
    write(&mut reader, &mut log, &[], 0, accept(0, 9));
    // Nobody has said how it ended.
    log.marker(OWNER.id, false);
    let (offset, check) = write(&mut reader, &mut log, &[], 1, accept(0, 9));
    assert_eq!(check, Check::Reading);
    let now = Instant::now();
    catch_up(&mut reader, &log, now);
    assert_eq!(reader.check(now, now + LOCK, &key(1), offset, 1).unwrap(), Check::Clear);
}

#[test]
fn an_answer_that_was_under_way_is_nothing_new() {
    let (mut reader, mut log) = member();
    let Want::Records(asked) = reader.want() else { panic!("{:?}", reader.want()) };
    write(&mut reader, &mut log, &[], 0, accept(0, 9));
    commit(&mut reader, &mut log, 0);
    let late = log.fetch(asked);
    write(&mut reader, &mut log, &[0], 1, accept(10, 19));
    let (position, standings) = (reader.position(), reader.standings(TP, 0, 29));
    reader.handle_records(Instant::now(), late, -1).unwrap();
    assert_eq!((reader.position(), reader.standings(TP, 0, 29)), (position, standings));
    assert_eq!((reader.floor(), reader.want()), (0, Want::Records(log.end)));
    assert!(reader.is_alone(Instant::now()));
}

#[test]
fn a_reader_that_is_behind_reads() {
    let mut log = Log::default();
    log.committed(7, 77, &[accept(0, 9)]);
    let mut reader = reader();
    assert_eq!(write(&mut reader, &mut log, &[], 0, accept(0, 9)).1, Check::Reading);
    reader.handle_bounds(0, log.end);
    let (offset, check) = write(&mut reader, &mut log, &[], 1, accept(20, 29));
    assert_eq!(check, Check::Reading);
    catch_up(&mut reader, &log, Instant::now());
    let now = Instant::now();
    assert_eq!(reader.check(now, now + LOCK, &key(1), offset, 1).unwrap(), Check::Clear);
}
