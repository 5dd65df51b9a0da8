//! Batches that are too large for the broker.

use super::*;

const TOO_LARGE: ErrorCode = ErrorCode::MESSAGE_TOO_LARGE;

impl Bench {
    /// Parts of the one batch that was split last.
    fn parts(&mut self) -> Vec<(BatchId, u32)> {
        self.poll();
        match self.other.pop() {
            Some(Output::Split(_, parts)) => parts,
            other => panic!("a split expected, not {other:?}"),
        }
    }
}

#[test]
fn a_batch_that_is_too_large_is_sent_in_halves_under_its_sequence_numbers() {
    for compression in Compression::ALL {
        let mut bench = Bench::new(ProducerConfig { compression, ..config() }, None, 1);
        bench.machine.handle_identity(ProducerIdentity { id: 9, epoch: 0 });
        bench.confirm(0);
        let whole = bench.append(0, 8);
        let sent = bench.sent();
        let behind = bench.append(0, 2);
        let next = bench.sent();
        bench.answer(sent[0].0, &[(0, TOO_LARGE, -1)]);
        bench.answer(next[0].0, &[(0, ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER, -1)]);
        let parts = bench.parts();
        assert!(parts.len() > 1 && bench.result(whole).is_none());
        let mut at = 1;
        for (part, first) in &parts {
            assert_eq!(*first, at - 1, "{compression:?}: places in the batch before");
            let (request, body) = bench.requests.pop_front().unwrap();
            let row = header(&body.topic_data[0].partition_data[0]);
            assert_eq!((row.1, row.2), (0, i32::try_from(at).unwrap()), "the epoch stays");
            bench.answer(request, &[(0, ErrorCode::NONE, i64::from(at))]);
            bench.poll();
            assert_eq!(bench.result(*part).unwrap().as_ref().unwrap().base_offset, i64::from(at));
            at += u32::try_from(row.3).unwrap();
        }
        assert_eq!(at, 9, "every record once");
        assert!(bench.requests.is_empty(), "not before its pause");
        bench.wait(Duration::from_secs(2));
        let again = bench.sent();
        assert_eq!(again[0].1, [(0, 0, 9, 2)], "what was behind follows under its old number");
        bench.answer(again[0].0, &[(0, ErrorCode::NONE, 9)]);
        bench.poll();
        assert!(bench.result(behind).unwrap().is_ok());
        assert!(bench.machine.is_idle());
        assert_eq!(bench.machine.buffered_bytes(), 0);
    }
}

#[test]
fn it_is_split_down_to_single_records_and_only_those_that_are_too_large_fail() {
    let mut bench = Bench::idempotent(1);
    bench.confirm(0);
    let small = RecordParts { timestamp: 5, key: Some(b"k"), value: Some(b"small"), headers: &[] };
    let large = [7; 900];
    for at in 0..9 {
        let value: &[u8] = if at == 4 { &large } else { b"small" };
        bench.machine.append(bench.now, TOPIC, 0, RecordParts { value: Some(value), ..small }).unwrap();
    }
    let (mut written, mut rounds) = (0, 0);
    while !bench.machine.is_idle() {
        rounds += 1;
        assert!(rounds < 100, "no end");
        bench.poll();
        for (request, body) in std::mem::take(&mut bench.requests) {
            let row = &body.topic_data[0].partition_data[0];
            let large = row.records.as_ref().unwrap().len() > 500;
            if !large {
                written += header(row).3;
            }
            bench.answer(request, &[(0, if large { TOO_LARGE } else { ErrorCode::NONE }, 0)]);
        }
        bench.poll();
        bench.wait(Duration::from_secs(1));
    }
    assert_eq!(written, 8);
    let failed: Vec<_> = bench.done.iter().filter_map(|(_, result)| result.as_ref().err()).collect();
    assert_eq!(failed.len(), 1);
    assert_eq!((failed[0].code, failed[0].maybe_written), (Some(TOO_LARGE), false));
    for word in ["t-0", "max.message.bytes", "bytes"] {
        assert!(failed[0].text.contains(word), "{}", failed[0].text);
    }
    assert_eq!(bench.machine.buffered_bytes(), 0);
}

#[test]
fn r067_neither_a_lost_nor_an_incomplete_answer_splits() {
    let mut bench = Bench::idempotent(1);
    bench.confirm(0);
    bench.append(0, 8);
    let sent = bench.sent();
    bench.lose(sent[0].0);
    bench.wait(Duration::from_secs(2));
    let again = bench.sent();
    assert_eq!(again[0].1, sent[0].1);
    bench.answer(again[0].0, &[]);
    bench.wait(Duration::from_secs(2));
    assert_eq!(bench.sent()[0].1, sent[0].1);
}

#[test]
fn parts_of_a_batch_that_may_have_been_written_are_not_written_under_new_numbers() {
    let mut bench = Bench::idempotent(1);
    bench.confirm(0);
    bench.append(0, 4);
    let sent = bench.sent();
    bench.lose(sent[0].0);
    bench.wait(Duration::from_secs(2));
    // It was written, then the topic's limit was lowered.
    let again = bench.sent();
    bench.answer(again[0].0, &[(0, TOO_LARGE, -1)]);
    let parts = bench.parts();
    let (request, _) = bench.requests.pop_front().unwrap();
    bench.answer(request, &[(0, ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER, -1)]);
    bench.poll();
    assert!(matches!(bench.result(parts[0].0), Some(Err(BatchError { maybe_written: true, .. }))));
}

#[test]
fn a_split_does_not_end_the_transaction() {
    let mut bench = transactional(2);
    bench.append(0, 4);
    let sent = bench.sent();
    bench.answer(sent[0].0, &[(0, TOO_LARGE, -1)]);
    let mut records = 0;
    bench.poll();
    while let Some((request, body)) = bench.requests.pop_front() {
        records += header(&body.topic_data[0].partition_data[0]).3;
        bench.answer(request, &[(0, ErrorCode::NONE, 0)]);
        bench.poll();
    }
    assert_eq!(records, 4);
    bench.machine.transaction_mut().unwrap().start_commit().unwrap();
}

/// As a broker has it: sequence numbers in order, per epoch, and nothing after a gap.
struct Log {
    epoch: i16,
    next: i32,
    largest: usize,
}

impl Log {
    fn answer(&mut self, bench: &mut Bench) {
        bench.poll();
        for (request, body) in std::mem::take(&mut bench.requests) {
            let row = &body.topic_data[0].partition_data[0];
            let (_, epoch, first, records) = header(row);
            let fresh = epoch > self.epoch && first == 0;
            let code = if row.records.as_ref().unwrap().len() > self.largest {
                TOO_LARGE
            } else if fresh || (epoch == self.epoch && first == self.next) {
                (self.epoch, self.next) = (epoch, first + records);
                ErrorCode::NONE
            } else {
                ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER
            };
            bench.answer(request, &[(0, code, 0)]);
        }
    }

    /// Ten seconds, far below `delivery.timeout.ms`.
    fn answer_all(&mut self, bench: &mut Bench) {
        for _ in 0..20 {
            self.answer(bench);
            self.answer(bench);
            bench.wait(Duration::from_millis(500));
        }
        bench.poll();
        assert!(bench.machine.is_idle(), "{:?}", bench.machine);
    }
}

#[test]
fn all_that_is_behind_a_batch_that_failed_is_numbered_anew_at_once() {
    for lost in [false, true] {
        let mut bench = Bench::idempotent(1);
        bench.confirm(0);
        let mut log = Log { epoch: 0, next: 1, largest: 500 };
        let mut batches = Vec::new();
        for at in 0..4 {
            let value: &[u8] = if at == 0 { &[7; 900] } else { b"small" };
            let parts = RecordParts { timestamp: 0, key: None, value: Some(value), headers: &[] };
            batches.push(bench.machine.append(bench.now, TOPIC, 0, parts).unwrap().batch);
            bench.machine.seal_all();
            bench.poll();
        }
        if lost {
            // The third one's answer is lost: it is asked for before it is given a new number, and was not written.
            let (request, _) = bench.requests.remove(2).unwrap();
            bench.lose(request);
        }
        log.answer_all(&mut bench);
        assert_eq!(bench.result(batches[0]).unwrap().as_ref().unwrap_err().code, Some(TOO_LARGE));
        for (at, batch) in batches.iter().enumerate().skip(1) {
            let result = bench.result(*batch).unwrap();
            assert!(result.is_ok() || (lost && at == 2), "batch {at}: {result:?}");
        }
    }
}

#[test]
fn one_record_that_is_too_large_costs_its_neighbours_no_more_than_a_new_epoch() {
    let mut bench = Bench::idempotent(1);
    bench.confirm(0);
    for at in 0..9 {
        let value: &[u8] = if at == 4 { &[7; 900] } else { b"small" };
        let parts = RecordParts { timestamp: 5, key: Some(b"k"), value: Some(value), headers: &[] };
        bench.machine.append(bench.now, TOPIC, 0, parts).unwrap();
    }
    let mut log = Log { epoch: 0, next: 1, largest: 500 };
    log.answer_all(&mut bench);
    let failed = bench.done.iter().filter(|(_, result)| result.is_err()).count();
    assert_eq!((failed, log.epoch), (1, 1));
}
