//! `delivery.timeout.ms` of batches whose answer is awaited, as in Java, and what comes after them.

use super::*;

const TIMEOUT: Duration = Duration::from_secs(120);

fn expired(bench: &Bench, batch: BatchId) -> bool {
    let error = bench.result(batch).and_then(|result| result.as_ref().err());
    error.is_some_and(|error| (error.kind, error.maybe_written) == (BatchErrorKind::TimedOut, true))
}

#[test]
fn a_batch_in_flight_ends_at_the_timeout_and_its_room_with_the_request() {
    let mut bench = Bench::idempotent(1);
    bench.confirm(0);
    let batch = bench.append(0, 1);
    let sent = bench.sent();
    let charge = bench.machine.buffered_bytes();
    assert_eq!(bench.machine.next_deadline(), Some(bench.now + TIMEOUT), "nothing else wakes the shell");
    bench.wait(TIMEOUT - Duration::from_millis(1));
    assert!(bench.sent().is_empty() && bench.result(batch).is_none());
    bench.wait(Duration::from_millis(1));
    bench.poll();
    assert!(expired(&bench, batch));
    assert_eq!((bench.machine.buffered_bytes(), bench.machine.is_idle()), (charge, false));
    bench.answer(sent[0].0, &[(0, ErrorCode::NONE, 7)]);
    bench.poll();
    assert_eq!((bench.machine.buffered_bytes(), bench.machine.is_idle()), (0, true));
    assert_eq!(bench.done.iter().filter(|(id, _)| *id == batch).count(), 1, "told once");
}

#[test]
fn nothing_is_numbered_until_it_is_known_what_became_of_an_expired_batch() {
    for written in [false, true] {
        let mut bench = Bench::idempotent(2);
        bench.confirm(0);
        let old = bench.append(0, 1);
        let first = bench.sent();
        bench.wait(Duration::from_secs(60));
        let behind = bench.append(0, 2);
        let second = bench.sent();
        assert_eq!(second[0].1, [(0, 0, 2, 2)]);
        bench.wait(Duration::from_secs(60));
        bench.poll();
        assert!(expired(&bench, old) && bench.result(behind).is_none());
        // Other partitions too: the epoch is the producer's.
        let after = bench.append(0, 3);
        bench.append(1, 1);
        assert!(bench.sent().is_empty());
        if written {
            bench.answer(first[0].0, &[(0, ErrorCode::NONE, 1)]);
            assert!(bench.sent().is_empty(), "the second is under way still");
            bench.answer(second[0].0, &[(0, ErrorCode::NONE, 2)]);
            assert!(bench.sent().iter().flat_map(|(_, rows)| rows).eq(&[(0, 1, 0, 3), (1, 1, 0, 1)]));
        } else {
            // The first was never written, so that the second is out of order; it is numbered anew, before what is younger.
            bench.lose(first[0].0);
            bench.answer(second[0].0, &[(0, ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER, -1)]);
            let sent = bench.sent();
            assert!(sent.iter().flat_map(|(_, rows)| rows).eq(&[(0, 1, 0, 2), (1, 1, 0, 1)]));
            bench.answer(sent[0].0, &[(0, ErrorCode::NONE, 1), (1, ErrorCode::NONE, 0)]);
            assert_eq!(bench.sent()[0].1, [(0, 1, 2, 3)]);
        }
        assert!(bench.result(after).is_none() && expired(&bench, old));
    }
}

#[test]
fn an_expired_batch_makes_its_transaction_abort_only_and_the_abort_waits_for_the_answer() {
    for version in [1, 2] {
        let mut bench = transactional(version);
        bench.append(0, 1);
        if version == 1 {
            bench.added();
        }
        let batch = bench.done.len();
        let sent = bench.sent();
        assert_eq!(sent.len(), 1);
        bench.wait(TIMEOUT);
        bench.poll();
        assert!(matches!(&bench.done[batch], (id, Err(_)) if expired(&bench, *id)));
        let now = bench.now;
        let transaction = bench.machine.transaction_mut().unwrap();
        assert_eq!(transaction.start_commit().unwrap_err().kind, TxnErrorKind::Abortable);
        transaction.start_abort().unwrap();
        assert!(!bench.machine.is_idle(), "an end now could come before the records");
        bench.machine.handle_produced(now, sent[0].0, Err(&LOST));
        bench.poll();
        assert!(bench.machine.is_idle());
    }
}
