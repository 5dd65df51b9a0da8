//! The two clients, which go on after each kill as a real client would.

use crate::kill::{PARTITIONS, Shared};
use crate::wire::{init, numbers, produce};
use kafka_share_messages::share_fetch_request::{self, FetchPartition, FetchTopic};
use kafka_share_messages::txn_share_acknowledge_request::{
    AcknowledgePartition, AcknowledgeTopic, AcknowledgementBatch,
};
use kafka_share_messages::{
    EndTxnRequest, ErrorCode, ShareFetchRequest, ShareGroupHeartbeatRequest, TxnShareAcknowledgeRequest,
};
use kafka_share_tests::raw::Raw;
use kafka_share_wire::Str;
use kafka_share_wire::records::BatchOptions;
use std::collections::BTreeSet;
use std::io;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Sender;

const GROUP: Str = Str::from_static("g");
const MEMBER: Str = Str::from_static("AAAAAAAAAAAAAAAAAAAAAA");
const TXN: &str = "pipeline";

/// Writes numbers until it is enough. A batch is repeated under its sequence number until it is acknowledged.
pub(crate) fn write(shared: &Shared, progress: &Sender<()>) {
    let mut raw = shared.connect();
    let (producer_id, producer_epoch) = loop {
        match init(&mut raw, None) {
            Ok(identity) => break identity,
            Err(_) => raw = shared.connect(),
        }
    };
    let mut sequences = [0; PARTITIONS as usize];
    let mut number = 0;
    let mut pending = false;
    while pending || !shared.enough.load(Ordering::SeqCst) {
        let index = (number / 3) % i64::from(PARTITIONS);
        let batch = [number, number + 1, number + 2];
        let base_sequence = sequences[index as usize];
        let options = BatchOptions { producer_id, producer_epoch, base_sequence, ..BatchOptions::default() };
        match produce(&mut raw, (shared.input, index as i32), options, None, &batch) {
            Ok(ErrorCode::NONE) => {
                number += 3;
                sequences[index as usize] += 3;
                pending = false;
                shared.written.store(number, Ordering::SeqCst);
                let _ = progress.send(());
            }
            Ok(code) => panic!("produce: {code}"),
            Err(_) => {
                pending = true;
                raw = shared.connect();
            }
        }
    }
    shared.finished.store(true, Ordering::SeqCst);
}

/// Moves numbers until all that were written are moved.
pub(crate) fn shift(shared: &Shared, progress: &Sender<()>) {
    loop {
        let mut raw = shared.connect();
        let mut session = match Session::open(&mut raw) {
            Ok(session) => session,
            Err(_) => continue,
        };
        loop {
            match session.step(&mut raw, shared, progress) {
                Ok(true) => {}
                Ok(false) => return,
                Err(_) => break,
            }
        }
    }
}

/// Reads in a group of its own, each fetch with the acknowledgements of what the one before gave. A record whose
/// acknowledgement was answered must not come again; in the end all are acknowledged.
pub(crate) fn acknowledge(shared: &Shared, progress: &Sender<()>) {
    let group = Str::from_static("h");
    let (mut acknowledged, mut unanswered) = (BTreeSet::new(), BTreeSet::new());
    let offsets = |(index, first, last)| (first..=last).map(move |offset: i64| (index, offset));
    'connections: loop {
        let mut raw = shared.connect();
        let beat = ShareGroupHeartbeatRequest {
            group_id: group.clone(),
            member_id: MEMBER,
            subscribed_topic_names: Some(vec![Str::from_static("in")]),
            ..Default::default()
        };
        match raw.latest(&beat) {
            Ok(response) => assert!(response.error_code.is_ok(), "heartbeat: {}", response.error_code),
            Err(_) => continue,
        }
        let mut delivered: Vec<(i32, i64, i64)> = Vec::new();
        for epoch in 0.. {
            let finished = shared.finished.load(Ordering::SeqCst);
            let Ok(response) = raw.latest(&fetch_and_acknowledge(shared, &group, epoch, &delivered)) else {
                unanswered.extend(delivered.into_iter().flat_map(offsets));
                continue 'connections;
            };
            assert!(response.error_code.is_ok(), "share fetch: {}", response.error_code);
            for range in delivered.drain(..) {
                acknowledged.extend(offsets(range));
                let _ = progress.send(());
            }
            for data in response.responses.iter().flat_map(|topic| &topic.partitions) {
                assert!(data.error_code.is_ok() && data.acknowledge_error_code.is_ok());
                for range in &data.acquired_records {
                    let index = data.partition_index;
                    let again = acknowledged.range((index, range.first_offset)..=(index, range.last_offset)).next();
                    assert_eq!(again, None, "delivered again after its acknowledgement was answered");
                    delivered.push((index, range.first_offset, range.last_offset));
                }
            }
            if finished && delivered.is_empty() {
                let all = acknowledged.union(&unanswered).count();
                assert_eq!(all as i64, shared.written.load(Ordering::SeqCst), "some were never delivered");
                return;
            }
        }
    }
}

fn fetch_and_acknowledge(shared: &Shared, group: &Str, epoch: i32, acks: &[(i32, i64, i64)]) -> ShareFetchRequest {
    let of = |index: i32| FetchPartition {
        partition_index: index,
        acknowledgement_batches: acks
            .iter()
            .filter(|(partition, ..)| *partition == index)
            .map(|(_, first, last)| share_fetch_request::AcknowledgementBatch {
                first_offset: *first,
                last_offset: *last,
                acknowledge_types: vec![1],
                ..Default::default()
            })
            .collect(),
        ..Default::default()
    };
    ShareFetchRequest {
        group_id: Some(group.clone()),
        member_id: Some(MEMBER),
        share_session_epoch: epoch,
        max_wait_ms: 20,
        min_bytes: 1,
        max_bytes: 1 << 20,
        max_records: 12,
        batch_size: 12,
        topics: vec![FetchTopic {
            topic_id: shared.input,
            partitions: (0..PARTITIONS).map(of).collect(),
            ..Default::default()
        }],
        ..Default::default()
    }
}

/// A share session and a producer, both new after each kill.
struct Session {
    member_epoch: i32,
    epoch: i32,
    producer: (i64, i16),
}

impl Session {
    fn open(raw: &mut Raw) -> io::Result<Session> {
        let beat = ShareGroupHeartbeatRequest {
            group_id: GROUP,
            member_id: MEMBER,
            subscribed_topic_names: Some(vec![Str::from_static("in")]),
            ..Default::default()
        };
        let response = raw.latest(&beat)?;
        assert!(response.error_code.is_ok(), "heartbeat: {}", response.error_code);
        // Ends what was open when the broker was killed: its staged acknowledgements are undone or final after this.
        let producer = init(raw, Some(TXN))?;
        Ok(Session { member_epoch: response.member_epoch, epoch: 0, producer })
    }

    /// One fetch and the transaction that moves what it gave; `false` once everything was moved.
    fn step(&mut self, raw: &mut Raw, shared: &Shared, progress: &Sender<()>) -> io::Result<bool> {
        let finished = shared.finished.load(Ordering::SeqCst);
        let found = self.fetch(raw, shared)?;
        if found.is_empty() {
            return Ok(!finished);
        }
        self.transact(raw, shared, &found)?;
        let _ = progress.send(());
        Ok(true)
    }

    fn fetch(&mut self, raw: &mut Raw, shared: &Shared) -> io::Result<Vec<Found>> {
        let partition = |index| FetchPartition { partition_index: index, ..Default::default() };
        let partitions = if self.epoch == 0 { (0..PARTITIONS).map(partition).collect() } else { Vec::new() };
        let topics = vec![FetchTopic { topic_id: shared.input, partitions, ..Default::default() }];
        let request = ShareFetchRequest {
            group_id: Some(GROUP),
            member_id: Some(MEMBER),
            share_session_epoch: self.epoch,
            max_wait_ms: 20,
            min_bytes: 1,
            max_bytes: 1 << 20,
            max_records: 12,
            batch_size: 12,
            topics: if self.epoch == 0 { topics } else { Vec::new() },
            ..Default::default()
        };
        let response = raw.latest(&request)?;
        assert!(response.error_code.is_ok(), "share fetch: {}", response.error_code);
        self.epoch += 1;
        let mut all = Vec::new();
        for data in response.responses.iter().flat_map(|topic| &topic.partitions) {
            assert!(data.error_code.is_ok(), "share fetch: {}", data.error_code);
            let Some(records) = data.records.clone() else { continue };
            let ranges: Vec<(i64, i64)> =
                data.acquired_records.iter().map(|range| (range.first_offset, range.last_offset)).collect();
            let acquired = |offset: i64| ranges.iter().any(|(first, last)| (*first..=*last).contains(&offset));
            let records: Vec<i64> = numbers(records)
                .into_iter()
                .filter(|(offset, _)| acquired(*offset))
                .map(|(_, number)| number)
                .collect();
            if !ranges.is_empty() {
                all.push((data.partition_index, ranges, records));
            }
        }
        Ok(all)
    }

    fn transact(&mut self, raw: &mut Raw, shared: &Shared, found: &[Found]) -> io::Result<()> {
        let (producer_id, producer_epoch) = self.producer;
        // An epoch per transaction: each begins at sequence 0.
        for (index, _, records) in found {
            let options = BatchOptions {
                producer_id,
                producer_epoch,
                base_sequence: 0,
                transactional: true,
                ..Default::default()
            };
            let code = produce(raw, (shared.output, *index), options, Some(TXN), records)?;
            assert!(code.is_ok(), "produce: {code}");
        }
        let partition = |(index, ranges, _): &Found| AcknowledgePartition {
            partition_index: *index,
            acknowledgement_batches: ranges
                .iter()
                .map(|(first, last)| AcknowledgementBatch {
                    first_offset: *first,
                    last_offset: *last,
                    acknowledge_types: vec![1],
                    ..Default::default()
                })
                .collect(),
            ..Default::default()
        };
        let request = TxnShareAcknowledgeRequest {
            transactional_id: Some(Str::from_static(TXN)),
            group_id: GROUP,
            producer_id,
            producer_epoch,
            member_id: MEMBER,
            member_epoch: self.member_epoch,
            topics: vec![AcknowledgeTopic {
                topic_id: shared.input,
                partitions: found.iter().map(partition).collect(),
                ..Default::default()
            }],
            ..Default::default()
        };
        let response = raw.latest(&request)?;
        assert!(response.error_code.is_ok(), "stage: {}", response.error_code);
        for data in response.responses.iter().flat_map(|topic| &topic.partitions) {
            assert!(data.error_code.is_ok(), "stage: {}", data.error_code);
        }
        let end = EndTxnRequest {
            transactional_id: Str::from_static(TXN),
            producer_id,
            producer_epoch,
            committed: true,
            ..Default::default()
        };
        let response = raw.call(&end, 5)?;
        assert!(response.error_code.is_ok(), "commit: {}", response.error_code);
        self.producer = (response.producer_id, response.producer_epoch);
        Ok(())
    }
}

/// Partition, acquired ranges, numbers.
type Found = (i32, Vec<(i64, i64)>, Vec<i64>);
