//! The producer machine by field report.

use super::*;
use crate::Backoff;
use crate::metadata::Leader;
use crate::transaction::Verdict;
use kafka_share_messages::add_partitions_to_txn_response::{
    AddPartitionsToTxnPartitionResult, AddPartitionsToTxnTopicResult,
};
use kafka_share_messages::produce_response::{PartitionProduceResponse, TopicProduceResponse};
use kafka_share_messages::{
    AddPartitionsToTxnResponse, EndTxnResponse, InitProducerIdResponse, ProduceRequest, ProduceResponse,
};
use kafka_share_wire::compression::Compression;
use kafka_share_wire::records::RecordBatch;
use std::time::Duration;

mod expiry;
mod split;

const TOPIC: &str = "t";
const LOST: ProduceFailure = ProduceFailure { maybe_done: true, fatal: false, text: String::new() };

fn config() -> ProducerConfig {
    ProducerConfig {
        batch_size: 16_384,
        linger: Duration::ZERO,
        buffer_memory: 1 << 20,
        max_request_size: 1 << 20,
        compression: Compression::None,
        compression_level: None,
        delivery_timeout: Duration::from_secs(120),
        request_timeout_ms: 30_000,
        max_in_flight: 5,
        backoff: Backoff { first: Duration::from_millis(100), limit: Duration::from_secs(1) },
    }
}

/// A machine, its clock, and what it has given out.
struct Bench {
    machine: Producer,
    now: Instant,
    requests: VecDeque<(u64, ProduceRequest)>,
    done: Vec<(BatchId, Result<Written, BatchError>)>,
    other: Vec<Output>,
}

/// Partition, epoch, first sequence number and records of a sent batch.
type Sent = (i32, i16, i32, i32);

impl Bench {
    fn new(config: ProducerConfig, transaction: Option<Transaction>, partitions: usize) -> Self {
        let mut machine = Producer::new(config, transaction, 1);
        let leaders = vec![Leader { id: 1, epoch: 0 }; partitions];
        machine.handle_topic(&Topic { name: TOPIC.into(), id: Uuid([1; 16]), leaders });
        let now = Instant::now();
        Bench { machine, now, requests: VecDeque::new(), done: Vec::new(), other: Vec::new() }
    }

    fn idempotent(partitions: usize) -> Self {
        let mut bench = Self::new(config(), None, partitions);
        bench.machine.handle_identity(ProducerIdentity { id: 9, epoch: 0 });
        bench
    }

    fn append(&mut self, partition: i32, records: usize) -> BatchId {
        let parts = RecordParts { timestamp: 0, key: None, value: Some(b"value"), headers: &[] };
        let mut batch = BatchId(0);
        for _ in 0..records {
            batch = self.machine.append(self.now, TOPIC, partition, parts).unwrap().batch;
        }
        self.machine.seal_all();
        batch
    }

    fn poll(&mut self) {
        while let Some(output) = self.machine.poll_output(self.now) {
            match output {
                Output::Produce { request, draft, .. } => {
                    let (body, _, encoded) = draft.encode().unwrap();
                    self.machine.handle_encoded(encoded);
                    self.requests.push_back((request, body));
                }
                Output::Done(batch, result) => self.done.push((batch, result)),
                other => self.other.push(other),
            }
        }
    }

    /// Requests that are out now.
    fn sent(&mut self) -> Vec<(u64, Vec<Sent>)> {
        self.poll();
        let requests = self.requests.drain(..);
        requests
            .map(|(id, body)| (id, body.topic_data.iter().flat_map(|t| &t.partition_data).map(header).collect()))
            .collect()
    }

    fn answer(&mut self, request: u64, rows: &[(i32, ErrorCode, i64)]) {
        let row = |(index, error_code, base_offset): &(i32, ErrorCode, i64)| PartitionProduceResponse {
            index: *index,
            error_code: *error_code,
            base_offset: *base_offset,
            ..PartitionProduceResponse::default()
        };
        let topic = TopicProduceResponse {
            name: TOPIC.into(),
            partition_responses: rows.iter().map(row).collect(),
            ..TopicProduceResponse::default()
        };
        let response = ProduceResponse { responses: vec![topic], ..ProduceResponse::default() };
        self.machine.handle_produced(self.now, request, Ok(&response));
    }

    fn lose(&mut self, request: u64) {
        self.machine.handle_produced(self.now, request, Err(&LOST));
    }

    fn wait(&mut self, time: Duration) {
        self.now += time;
    }

    fn result(&self, batch: BatchId) -> Option<&Result<Written, BatchError>> {
        self.done.iter().find(|(id, _)| *id == batch).map(|(_, r)| r)
    }

    /// Writes a first batch to the partition, so that several may be in flight afterwards.
    fn confirm(&mut self, partition: i32) {
        self.append(partition, 1);
        let sent = self.sent();
        self.answer(sent[0].0, &[(partition, ErrorCode::NONE, 0)]);
    }
}

fn header(row: &kafka_share_messages::produce_request::PartitionProduceData) -> Sent {
    let batch = RecordBatch::parse(row.records.as_ref().unwrap()).unwrap();
    batch.verify_crc().unwrap();
    (row.index, batch.producer_epoch, batch.base_sequence, batch.record_count)
}

//= PRODUCE-CLIENT-01
#[test]
fn r070_sequences_advance_by_records() {
    let mut bench = Bench::idempotent(1);
    let mut firsts = Vec::new();
    for records in [1, 3, 2] {
        bench.append(0, records);
        let sent = bench.sent();
        firsts.push(sent[0].1[0].2);
        bench.answer(sent[0].0, &[(0, ErrorCode::NONE, 0)]);
    }
    assert_eq!(firsts, [0, 1, 4]);
}

//= PRODUCE-CLIENT-02
#[test]
fn r062_sequences_wrap_to_zero() {
    let mut bench = Bench::idempotent(1);
    bench.machine.partitions[0].next_sequence = 2_147_483_640;
    let mut firsts = Vec::new();
    for _ in 0..4 {
        bench.append(0, 3);
        let sent = bench.sent();
        firsts.push(sent[0].1[0].2);
        bench.answer(sent[0].0, &[(0, ErrorCode::NONE, 0)]);
    }
    assert_eq!(firsts, [2_147_483_640, 2_147_483_643, 2_147_483_646, 1]);
}

//= PRODUCE-CLIENT-03
#[test]
fn five_in_flight_in_order_and_one_until_the_epoch_is_known() {
    let mut bench = Bench::idempotent(1);
    for _ in 0..3 {
        bench.append(0, 1);
    }
    let first = bench.sent();
    assert_eq!(first.len(), 1, "a broker that does not know the producer takes any sequence");
    bench.answer(first[0].0, &[(0, ErrorCode::NONE, 0)]);
    bench.poll();
    for _ in 0..6 {
        bench.append(0, 1);
        bench.poll();
    }
    let sent = bench.sent();
    let sequences: Vec<i32> = sent.iter().map(|(_, rows)| rows[0].2).collect();
    assert_eq!(sequences, [1, 2, 3, 4, 5]);
}

//= PRODUCE-CLIENT-04
#[test]
fn r067_a_lost_answer_repeats_the_same_bytes_alone_and_in_order() {
    let mut bench = Bench::idempotent(1);
    bench.confirm(0);
    let batches: Vec<BatchId> = (0..3)
        .map(|_| {
            let batch = bench.append(0, 2);
            bench.poll();
            batch
        })
        .collect();
    let sent = bench.sent();
    for (request, _) in &sent {
        bench.lose(*request);
    }
    assert!(bench.sent().is_empty(), "not before the pause");
    for (at, batch) in batches.iter().enumerate() {
        bench.wait(Duration::from_secs(2));
        let again = bench.sent();
        assert_eq!(again.len(), 1);
        assert_eq!(again[0].1, sent[at].1, "same sequence, same records");
        let code = if at == 0 { ErrorCode::DUPLICATE_SEQUENCE_NUMBER } else { ErrorCode::NONE };
        bench.answer(again[0].0, &[(0, code, 7)]);
        bench.poll();
        assert!(bench.result(*batch).unwrap().is_ok());
    }
}

//= PRODUCE-CLIENT-05
#[test]
fn r059_a_bump_resets_quiet_partitions_too() {
    let mut bench = Bench::idempotent(2);
    bench.append(1, 40);
    let sent = bench.sent();
    bench.answer(sent[0].0, &[(1, ErrorCode::NONE, 0)]);
    let batch = bench.append(0, 1);
    let sent = bench.sent();
    bench.answer(sent[0].0, &[(0, ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER, -1)]);
    let sent = bench.sent();
    assert_eq!(sent[0].1, [(0, 1, 0, 1)], "numbered anew in the next epoch");
    bench.answer(sent[0].0, &[(0, ErrorCode::NONE, 0)]);
    bench.append(1, 1);
    assert_eq!(bench.sent()[0].1, [(1, 1, 0, 1)]);
    assert!(bench.result(batch).unwrap().is_ok());
}

//= PRODUCE-CLIENT-06
#[test]
fn r061_no_bump_before_earlier_batches_are_settled() {
    let mut bench = Bench::idempotent(1);
    bench.confirm(0);
    let one = bench.append(0, 1);
    bench.poll();
    let two = bench.append(0, 1);
    bench.poll();
    let three = bench.append(0, 1);
    let sent = bench.sent();
    bench.lose(sent[0].0);
    bench.answer(sent[1].0, &[(0, ErrorCode::MESSAGE_TOO_LARGE, -1)]);
    bench.answer(sent[2].0, &[(0, ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER, -1)]);
    bench.wait(Duration::from_secs(2));
    let again = bench.sent();
    assert_eq!(again[0].1, sent[0].1, "the first keeps its identity");
    assert!(bench.result(two).unwrap().is_err());
    bench.answer(again[0].0, &[(0, ErrorCode::DUPLICATE_SEQUENCE_NUMBER, -1)]);
    bench.wait(Duration::from_secs(2));
    // The third is tried once more under its old number, which can never be taken; then it is numbered anew.
    let third = bench.sent();
    assert_eq!(third[0].1, sent[2].1);
    bench.answer(third[0].0, &[(0, ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER, -1)]);
    let renumbered = bench.sent();
    assert_eq!(renumbered[0].1, [(0, 1, 0, 1)]);
    bench.answer(renumbered[0].0, &[(0, ErrorCode::NONE, 9)]);
    bench.poll();
    assert!(bench.result(one).unwrap().is_ok() && bench.result(three).unwrap().is_ok());
}

//= PRODUCE-CLIENT-07
#[test]
fn r064_a_forgotten_producer_recovers_and_a_batch_in_doubt_is_not_doubled() {
    let mut bench = Bench::idempotent(1);
    bench.confirm(0);
    let batch = bench.append(0, 1);
    let sent = bench.sent();
    bench.answer(sent[0].0, &[(0, ErrorCode::UNKNOWN_PRODUCER_ID, -1)]);
    let again = bench.sent();
    assert_eq!(again[0].1, [(0, 1, 0, 1)]);
    bench.answer(again[0].0, &[(0, ErrorCode::NONE, 1)]);
    bench.poll();
    assert!(bench.result(batch).unwrap().is_ok());
    // Here the first try may have been written, so that writing it under a new number could double it.
    let batch = bench.append(0, 1);
    let sent = bench.sent();
    bench.lose(sent[0].0);
    bench.wait(Duration::from_secs(2));
    let again = bench.sent();
    bench.answer(again[0].0, &[(0, ErrorCode::UNKNOWN_PRODUCER_ID, -1)]);
    bench.poll();
    assert!(matches!(bench.result(batch), Some(Err(BatchError { maybe_written: true, .. }))));
}

//= PRODUCE-CLIENT-08
#[test]
fn the_last_epoch_is_followed_by_a_new_producer_id() {
    let mut bench = Bench::idempotent(1);
    bench.machine.handle_identity(ProducerIdentity { id: 9, epoch: i16::MAX - 1 });
    bench.append(0, 1);
    let sent = bench.sent();
    bench.answer(sent[0].0, &[(0, ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER, -1)]);
    assert!(bench.sent().is_empty());
    assert!(matches!(bench.other[..], [Output::NewIdentity(_)]));
    bench.machine.handle_identity(ProducerIdentity { id: 10, epoch: 0 });
    assert_eq!(bench.sent()[0].1, [(0, 0, 0, 1)]);
}

#[test]
fn r065_delivery_has_an_end() {
    let mut bench = Bench::idempotent(1);
    let batch = bench.append(0, 1);
    let mut last = 0;
    for _ in 0..300 {
        for (request, _) in bench.sent() {
            last = request;
            bench.lose(request);
        }
        bench.wait(Duration::from_millis(500));
    }
    assert!(last > 10);
    let Some(Err(error)) = bench.result(batch) else { panic!("still waiting") };
    assert_eq!((error.kind, error.maybe_written), (BatchErrorKind::TimedOut, true));
    assert!(bench.machine.is_idle());
}

#[test]
fn the_buffer_has_a_limit_and_room_comes_back() {
    let small = ProducerConfig { buffer_memory: 2000, max_request_size: 1500, batch_size: 500, ..config() };
    let mut bench = Bench::new(small, None, 1);
    bench.machine.handle_identity(ProducerIdentity { id: 9, epoch: 0 });
    let value = [0; 400];
    let parts = RecordParts { timestamp: 0, key: None, value: Some(&value), headers: &[] };
    let mut taken = 0;
    let error = loop {
        match bench.machine.append(bench.now, TOPIC, 0, parts) {
            Ok(_) => taken += 1,
            Err(error) => break error,
        }
    };
    assert_eq!((taken, error), (4, AppendError::Full));
    let large = RecordParts { value: Some(&[0; 1500]), ..parts };
    assert!(matches!(bench.machine.append(bench.now, TOPIC, 0, large), Err(AppendError::TooLarge { .. })));
    let sent = bench.sent();
    bench.answer(sent[0].0, &[(0, ErrorCode::NONE, 0)]);
    bench.poll();
    bench.machine.append(bench.now, TOPIC, 0, parts).unwrap();
    bench.machine.close();
    assert_eq!(bench.machine.append(bench.now, TOPIC, 0, parts), Err(AppendError::Closed));
    assert!(matches!(bench.machine.append(bench.now, TOPIC, 7, parts), Err(AppendError::Closed)));
}

#[test]
fn a_batch_may_be_larger_than_a_request_and_a_request_than_the_buffer() {
    // Java takes such settings too.
    let odd = ProducerConfig { batch_size: 2000, max_request_size: 500, buffer_memory: 1500, ..config() };
    let mut bench = Bench::new(odd, None, 2);
    bench.machine.handle_identity(ProducerIdentity { id: 9, epoch: 0 });
    for partition in [0, 1] {
        bench.append(partition, 8);
    }
    let sent = bench.sent();
    let batches: Vec<Vec<Sent>> = sent.iter().map(|(_, batches)| batches.clone()).collect();
    assert_eq!(batches, [vec![(0, 0, 0, 8)], vec![(1, 0, 0, 8)]]);
    let wide = ProducerConfig { max_request_size: 1 << 20, buffer_memory: 1500, ..config() };
    let mut bench = Bench::new(wide, None, 1);
    let large = RecordParts { timestamp: 0, key: None, value: Some(&[0; 1500]), headers: &[] };
    let refused = bench.machine.append(bench.now, TOPIC, 0, large);
    assert!(matches!(refused, Err(AppendError::TooLarge { .. })), "{refused:?}");
}

#[test]
fn linger_waits_and_next_deadline_tells_when() {
    let mut bench = Bench::new(ProducerConfig { linger: Duration::from_millis(5), ..config() }, None, 1);
    bench.machine.handle_identity(ProducerIdentity { id: 9, epoch: 0 });
    let parts = RecordParts { timestamp: 0, key: None, value: None, headers: &[] };
    assert!(bench.machine.append(bench.now, TOPIC, 0, parts).unwrap().wake);
    assert!(!bench.machine.append(bench.now, TOPIC, 0, parts).unwrap().wake);
    assert!(bench.sent().is_empty());
    assert_eq!(bench.machine.next_deadline(), Some(bench.now + Duration::from_millis(5)));
    bench.wait(Duration::from_millis(5));
    assert_eq!(bench.sent()[0].1, [(0, 0, 0, 2)]);
    let end = bench.now - Duration::from_millis(5) + bench.machine.config().delivery_timeout;
    assert_eq!(bench.machine.next_deadline(), Some(end), "only the answer matters now, or the end of the delivery");
}

fn transactional(version: i16) -> Bench {
    let mut transaction = Transaction::new("txn".into(), 60_000);
    transaction.handle_feature(version);
    transaction.start_init().unwrap();
    let answer = InitProducerIdResponse { producer_id: 9, producer_epoch: 0, ..InitProducerIdResponse::default() };
    assert_eq!(transaction.handle_init(&answer), Verdict::Done);
    let mut bench = Bench::new(config(), Some(transaction), 2);
    bench.machine.handle_transaction_settled();
    bench.begin();
    bench
}

impl Bench {
    /// Partition 0 is added to the transaction, as transaction.version 1 wants it.
    fn added(&mut self) {
        self.poll();
        let row = AddPartitionsToTxnTopicResult {
            name: TOPIC.into(),
            results_by_partition: vec![AddPartitionsToTxnPartitionResult::default()],
            ..AddPartitionsToTxnTopicResult::default()
        };
        let added = AddPartitionsToTxnResponse {
            results_by_topic_v3_and_below: vec![row],
            ..AddPartitionsToTxnResponse::default()
        };
        self.machine.handle_added(self.now, &added);
    }

    fn begin(&mut self) {
        let now = self.now;
        self.machine.transaction_mut().unwrap().begin(now).unwrap();
    }
}

//= TXN-CLIENT-02 TXN-TV2-04
#[test]
fn r052_version_1_adds_partitions_first_and_version_2_does_not() {
    let mut bench = transactional(1);
    bench.append(0, 1);
    assert!(bench.sent().is_empty());
    assert!(matches!(bench.other[..], [Output::AddPartitions(_)]));
    let mut bench = transactional(2);
    bench.append(0, 1);
    assert_eq!(bench.sent().len(), 1);
    assert!(bench.other.is_empty());
}

//= TXN-CLIENT-08
#[test]
fn a_failed_batch_fails_the_transaction_and_what_waits_with_it() {
    let mut bench = transactional(2);
    let one = bench.append(0, 1);
    let sent = bench.sent();
    let two = bench.append(0, 1);
    bench.answer(sent[0].0, &[(0, ErrorCode::MESSAGE_TOO_LARGE, -1)]);
    bench.poll();
    assert!(bench.result(one).unwrap().is_err());
    assert_eq!(bench.result(two).unwrap().as_ref().unwrap_err().kind, BatchErrorKind::Aborted);
    let parts = RecordParts { timestamp: 0, key: None, value: None, headers: &[] };
    assert!(matches!(bench.machine.append(bench.now, TOPIC, 0, parts), Err(AppendError::Transaction(_))));
    let transaction = bench.machine.transaction_mut().unwrap();
    assert!(transaction.start_commit().is_err());
    transaction.start_abort().unwrap();
    transaction.end().unwrap();
    let answer = EndTxnResponse { producer_id: 9, producer_epoch: 1, ..EndTxnResponse::default() };
    let now = bench.now;
    assert_eq!(bench.machine.transaction_mut().unwrap().handle_end(now, &answer), Verdict::Done);
    bench.machine.handle_transaction_settled();
    bench.begin();
    bench.append(0, 1);
    assert_eq!(bench.sent()[0].1, [(0, 1, 0, 1)]);
}

#[test]
fn a_record_that_comes_when_a_retry_is_due_does_not_put_it_off() {
    let mut bench = Bench::new(ProducerConfig { linger: Duration::from_secs(60), ..config() }, None, 1);
    bench.machine.handle_identity(ProducerIdentity { id: 9, epoch: 0 });
    bench.append(0, 1);
    let sent = bench.sent();
    bench.lose(sent[0].0);
    assert!(bench.sent().is_empty());
    bench.wait(Duration::from_millis(500));
    let parts = RecordParts { timestamp: 0, key: None, value: None, headers: &[] };
    bench.machine.append(bench.now, TOPIC, 0, parts).unwrap();
    assert_eq!(bench.sent().len(), 1, "the retry is due");
}

/// On transaction.version 1 the end gives no new epoch by itself.
#[test]
fn numbers_that_an_abort_gave_up_begin_anew() {
    let mut bench = transactional(1);
    bench.append(0, 2);
    bench.added();
    let sent = bench.sent();
    bench.lose(sent[0].0);
    bench.machine.transaction_mut().unwrap().start_abort().unwrap();
    bench.machine.abort_unsent(BatchErrorKind::Aborted, "aborted");
    let transaction = bench.machine.transaction_mut().unwrap();
    transaction.end().unwrap();
    let ended = EndTxnResponse { producer_id: -1, producer_epoch: -1, ..EndTxnResponse::default() };
    assert_eq!(transaction.handle_end(bench.now, &ended), Verdict::Done);
    assert!(transaction.needs_new_epoch());
}

//= TXN-CLIENT-09
/// KIP-890: the end of a transaction gives the next epoch, and another producer id after the last one.
#[test]
fn the_end_of_the_epochs_gives_another_producer_id() {
    let mut bench = transactional(2);
    let last = i16::MAX - 1;
    for (turn, (given, (id, epoch))) in [(0, (9, last)), (last, (11, 0)), (0, (11, 1))].into_iter().enumerate() {
        bench.append(0, 2);
        let sent = bench.sent();
        assert_eq!(sent[0].1, [(0, given, 0, 2)], "numbers begin anew with each identity");
        bench.answer(sent[0].0, &[(0, ErrorCode::NONE, 2 * turn as i64)]);
        bench.poll();
        let now = bench.now;
        let transaction = bench.machine.transaction_mut().unwrap();
        transaction.start_commit().unwrap();
        transaction.end().unwrap();
        let answer = EndTxnResponse { producer_id: id, producer_epoch: epoch, ..EndTxnResponse::default() };
        assert_eq!(transaction.handle_end(now, &answer), Verdict::Done);
        bench.machine.handle_transaction_settled();
        let identity = bench.machine.transaction_mut().unwrap().identity();
        assert_eq!((identity.id, identity.epoch), (id, epoch));
        bench.begin();
    }
}
