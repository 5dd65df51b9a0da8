//! What is around the machine: two brokers, three share-partitions, one application.

use arbitrary::{Result, Unstructured};
use kafka_share_core::Backoff;
use kafka_share_core::ledger::{Conflict, Run, Standing};
use kafka_share_core::metadata::{Leader, TopicIdPartition};
use kafka_share_core::share_acks::{AckType, Outcome, Taken};
use kafka_share_core::share_consumer::{
    Action, Chunk, ConsumerConfig, FetchAnswer, FetchPartition, RequestFailure, ShareConsumer, Standings, TopicLeaders,
};
use kafka_share_core::share_fetch;
use kafka_share_messages::share_acknowledge_response::{PartitionData, ShareAcknowledgeTopicResponse};
use kafka_share_messages::share_fetch_response::AcquiredRecords;
use kafka_share_messages::share_group_heartbeat_response::{Assignment, TopicPartitions};
use kafka_share_messages::{ErrorCode, ShareAcknowledgeRequest, ShareAcknowledgeResponse, ShareGroupHeartbeatResponse};
use kafka_share_wire::records::{BatchBuilder, BatchOptions};
use kafka_share_wire::{Str, Uuid};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

const PARTITIONS: i32 = 3;
/// Requests planned in one go, at most: more would be a loop.
const BURST: usize = 64;

pub struct World {
    machine: ShareConsumer,
    now: Instant,
    pending: Vec<Action>,
    chunks: Vec<Chunk>,
    staged: Vec<Vec<Taken>>,
    /// Next offset of each partition. Each is delivered once, so that it names an acknowledgement.
    next: [i64; PARTITIONS as usize],
    /// Acknowledgements of the application that have no outcome yet, and those that have.
    open: BTreeMap<(i32, i64), AckType>,
    done: BTreeSet<(i32, i64)>,
    commits: Vec<u64>,
    deliveries: usize,
    /// What is in the ledger, where there is one.
    ledger: Option<Ledger>,
}

/// Standings that are anyhow, and change.
#[derive(Clone, Copy)]
struct Ledger(u64);

impl Standings for Ledger {
    fn standings(&self, tp: TopicIdPartition, first: i64, last: i64) -> Vec<Run> {
        let standing = |offset: i64| match (self.0 ^ (offset as u64 / 3) ^ u64::from(tp.partition as u32)) % 5 {
            0 => Standing::Done(AckType::Accept),
            1 => Standing::Open,
            2 if self.0 % 2 == 0 => Standing::Done(AckType::Reject),
            _ => Standing::Free,
        };
        (first..=last).map(|offset| Run { first: offset, last: offset, standing: standing(offset) }).collect()
    }
}

fn topic() -> Uuid {
    Uuid::from_halves(7, 7)
}

fn tp(partition: i32) -> TopicIdPartition {
    TopicIdPartition { topic_id: topic(), partition }
}

impl World {
    pub fn new(u: &mut Unstructured<'_>) -> Result<Self> {
        let now = Instant::now();
        let config = ConsumerConfig {
            group_id: "g".into(),
            member_id: "m".into(),
            rack: None,
            implicit: false,
            max_poll_records: u.int_in_range(1..=20)?,
            max_wait: Duration::from_millis(500),
            min_bytes: 1,
            max_bytes: 1 << 20,
            decode_limits: share_fetch::DecodeLimits { batch: 1 << 20, answer: 1 << 20 },
            record_limit: u.arbitrary()?,
            backoff: Backoff { first: Duration::from_millis(100), limit: Duration::from_secs(1) },
            max_ack_age: Duration::from_secs(5),
            max_acks_pending: u.int_in_range(1..=50)?,
            api_timeout: Duration::from_secs(60),
            metadata_max_age: Duration::from_secs(300),
            prefetch: 0,
            lock_renewal: None,
        };
        let mut machine = ShareConsumer::new(config, now);
        machine.subscribe(now, vec!["t".into()]);
        let mut world = World {
            machine,
            now,
            pending: Vec::new(),
            chunks: Vec::new(),
            staged: Vec::new(),
            next: [0; PARTITIONS as usize],
            open: BTreeMap::new(),
            done: BTreeSet::new(),
            commits: Vec::new(),
            deliveries: 0,
            ledger: u.arbitrary::<bool>()?.then_some(Ledger(0)),
        };
        if world.ledger.is_some() {
            world.machine.attach_ledger();
        }
        world.metadata(&[1, 2, 1], 1);
        world.plan();
        world.answer_all_heartbeats(&[0, 1, 2]);
        Ok(world)
    }

    pub fn step(&mut self, u: &mut Unstructured<'_>) -> Result<()> {
        match u.int_in_range(0..=16)? {
            0 => self.now += Duration::from_millis(u64::from(u.arbitrary::<u16>()?)),
            1 | 2 => self.poll(),
            3 | 4 => self.acknowledge(u)?,
            5 | 6 => self.plan(),
            7 | 8 | 9 => self.answer(u)?,
            10 => {
                let leaders = [u.int_in_range(-1..=3)?, u.int_in_range(-1..=3)?, u.int_in_range(1..=2)?];
                self.metadata(&leaders, u.int_in_range(-1..=20)?);
            }
            11 => {
                let deadline = self.now + Duration::from_secs(u.int_in_range(0..=60)?);
                self.commits.push(self.machine.commit(deadline));
            }
            12 => match u.int_in_range(0..=3)? {
                0 => self.machine.handle_disconnected(self.now, u.int_in_range(1..=3)?),
                1 => self.machine.subscribe(self.now, Vec::new()),
                2 => self.machine.subscribe(self.now, vec![Str::from_static("t")]),
                _ if u.ratio(1, 8)? => self.machine.close(self.now),
                _ => self.machine.stop_waiting(),
            },
            13 => self.transaction(u)?,
            14 => {
                if let Some(at) = self.machine.next_deadline() {
                    self.now = self.now.max(at);
                }
                self.machine.handle_timeout(self.now);
            }
            15 => self.chunks.clear(),
            _ => self.ledger(u)?,
        }
        Ok(())
    }

    fn poll(&mut self) {
        self.machine.accept_delivered(self.now);
        let look = self.ledger.as_ref().map(|ledger| ledger as &dyn Standings);
        self.chunks.extend(self.machine.take_up_to(self.now, usize::MAX, look));
        self.chunks.drain(..self.chunks.len().saturating_sub(50));
    }

    fn acknowledge(&mut self, u: &mut Unstructured<'_>) -> Result<()> {
        if self.chunks.is_empty() {
            return Ok(());
        }
        let chunk = u.choose(&self.chunks)?.clone();
        let kind = *u.choose(&[AckType::Accept, AckType::Release, AckType::Reject])?;
        let entry = *u.choose(chunk.entries())?;
        let partition = chunk.tp().partition;
        let offset = chunk.record(&entry).offset;
        if u.ratio(1, 4)? {
            let before: Vec<i64> = chunk.entries().iter().map(|e| chunk.record(e).offset).collect();
            let spoken = before.iter().filter(|o| self.knows(partition, **o)).count();
            let chunks = std::slice::from_ref(&chunk);
            let count = self.machine.acknowledge_chunks(self.now, chunks, kind).expect("no renewal was asked for");
            // All that nobody spoke of before are spoken of now, or the delivery is dead and none is.
            assert!(count == 0 || count == before.len() - spoken, "{count} of {} with {spoken} known", before.len());
            if count > 0 {
                for offset in before {
                    if !self.knows(partition, offset) {
                        self.open.insert((partition, offset), kind);
                    }
                }
            }
            return Ok(());
        }
        if self.machine.acknowledge(self.now, chunk.handle(&entry), kind).is_ok() {
            assert!(!self.knows(partition, offset), "offset {offset} was acknowledged twice");
            self.open.insert((partition, offset), kind);
        }
        Ok(())
    }

    fn knows(&self, partition: i32, offset: i64) -> bool {
        self.open.contains_key(&(partition, offset)) || self.done.contains(&(partition, offset))
    }

    fn transaction(&mut self, u: &mut Unstructured<'_>) -> Result<()> {
        if u.arbitrary()? {
            // Nothing is taken beside a commit.
            self.staged.extend(self.machine.take_for_transaction().filter(|taken| !taken.is_empty()));
        } else if let Some(taken) = self.staged.pop() {
            if u.arbitrary()? {
                let outcome = *u.choose(&[Outcome::Acknowledged, Outcome::Unknown, Outcome::LockLost])?;
                self.machine.finish_transaction(&taken, outcome);
            } else {
                self.machine.return_from_transaction(self.now, &taken);
            }
        }
        Ok(())
    }

    fn ledger(&mut self, u: &mut Unstructured<'_>) -> Result<()> {
        let Some(ledger) = &mut self.ledger else { return Ok(()) };
        match u.int_in_range(0..=5)? {
            0 => {
                ledger.0 = u.arbitrary()?;
                self.machine.ledger_moved();
            }
            1 => self.machine.drop_below(u.int_in_range(0..=self.machine.next_ask())?),
            2 => self.machine.hold_fetches(u.arbitrary()?),
            3 => {
                if let Some(taken) = self.staged.last() {
                    self.machine.renew_staged(self.now, taken);
                }
            }
            4 => {
                if let Some(taken) = self.staged.pop() {
                    self.machine.commit_by_ledger(self.now, &taken);
                }
            }
            _ => {
                let Some(taken) = self.staged.pop() else { return Ok(()) };
                let batch = taken.first().and_then(|t| Some((t.tp, t.batches.first()?)));
                let conflict =
                    batch.map(|(tp, b)| Conflict { tp, first: b.first, last: b.first, ack: AckType::Accept });
                let done: Vec<Conflict> = conflict.into_iter().filter(|_| u.arbitrary().unwrap_or(false)).collect();
                self.machine.abort_by_ledger(self.now, &taken, &done, u.arbitrary()?);
                // They have their outcome, and may come again under the same lock.
                self.check();
                let offsets = |t: &Taken| {
                    let partition = t.tp.partition;
                    let all = t.batches.iter().flat_map(|b| b.first..=b.last);
                    all.map(|offset| (partition, offset)).collect::<Vec<_>>()
                };
                taken.iter().flat_map(offsets).for_each(|key| {
                    self.done.remove(&key);
                });
                self.chunks.clear();
            }
        }
        Ok(())
    }

    fn metadata(&mut self, leaders: &[i32], epoch: i32) {
        let leaders = leaders.iter().map(|id| Leader { id: *id, epoch }).collect();
        self.machine.handle_metadata(self.now, &[TopicLeaders { id: topic(), name: "t".into(), leaders }]);
    }

    fn plan(&mut self) {
        for _ in 0..BURST {
            let Some(action) = self.machine.poll_action(self.now) else { return };
            if let Action::Fetch(_, _, request) = &action {
                let acks =
                    request.topics.iter().flat_map(|t| &t.partitions).any(|p| !p.acknowledgement_batches.is_empty());
                assert!(request.share_session_epoch != 0 || !acks, "acknowledgements at epoch 0");
                for p in request.topics.iter().flat_map(|t| &t.partitions) {
                    let batches = &p.acknowledgement_batches;
                    ordered(batches.iter().map(|b| (b.first_offset, b.last_offset, b.acknowledge_types.len())));
                }
            }
            if let Action::Acknowledge(_, _, request) = &action {
                assert_ne!(request.share_session_epoch, 0, "ShareAcknowledge at epoch 0");
                for p in request.topics.iter().flat_map(|t| &t.partitions) {
                    let batches = &p.acknowledgement_batches;
                    ordered(batches.iter().map(|b| (b.first_offset, b.last_offset, b.acknowledge_types.len())));
                }
            }
            match action {
                // Metadata comes by itself, in steps of its own.
                Action::RefreshMetadata(_) => self.machine.handle_metadata_failure(self.now),
                other => self.pending.push(other),
            }
        }
        panic!("{BURST} requests were planned in one go");
    }

    fn answer_all_heartbeats(&mut self, partitions: &[i32]) {
        for action in std::mem::take(&mut self.pending) {
            match action {
                Action::Heartbeat(token, _) => {
                    self.machine.handle_heartbeat(self.now, token, Ok(&heartbeat(partitions)))
                }
                other => self.pending.push(other),
            }
        }
    }

    fn answer(&mut self, u: &mut Unstructured<'_>) -> Result<()> {
        if self.pending.is_empty() {
            return Ok(());
        }
        let action = self.pending.swap_remove(u.choose_index(self.pending.len())?);
        let lost = u.ratio(1, 10)?.then_some(RequestFailure {
            maybe_done: u.arbitrary()?,
            fatal: u.ratio(1, 8)?,
            text: "lost".into(),
        });
        // Mostly success; else any code.
        let code = if u.ratio(1, 5)? { ErrorCode(u.int_in_range(-1..=135)?) } else { ErrorCode::NONE };
        match action {
            Action::Heartbeat(token, _) => {
                let partitions: Vec<i32> = (0..PARTITIONS).filter(|_| u.ratio(3, 4).unwrap_or(true)).collect();
                let response = ShareGroupHeartbeatResponse { error_code: code, ..heartbeat(&partitions) };
                self.machine.handle_heartbeat(self.now, token, lost.map_or(Ok(&response), Err));
            }
            Action::Fetch(node, token, request) => {
                let wants: Vec<i32> =
                    request.topics.iter().flat_map(|t| &t.partitions).map(|p| p.partition_index).collect();
                let answer = match lost {
                    Some(lost) => Err(lost),
                    None => Ok(self.fetched(u, code, &wants)?),
                };
                self.machine.handle_fetch(self.now, node, token, answer);
            }
            Action::Acknowledge(node, token, request) => {
                let mut response = acknowledged(&request, ErrorCode::NONE);
                if u.arbitrary()? {
                    response.error_code = code;
                } else {
                    response.responses.iter_mut().flat_map(|t| &mut t.partitions).for_each(|p| p.error_code = code);
                }
                if u.ratio(1, 10)? {
                    response.responses.clear();
                }
                self.machine.handle_acknowledge(self.now, node, token, lost.map_or(Ok(response), Err));
            }
            Action::RefreshMetadata(_) => unreachable!("answered at once"),
        }
        Ok(())
    }

    fn fetched(&mut self, u: &mut Unstructured<'_>, code: ErrorCode, wants: &[i32]) -> Result<FetchAnswer> {
        let mut partitions = Vec::new();
        for partition in wants.iter().copied().filter(|p| (0..PARTITIONS).contains(p)) {
            let count = u.int_in_range(0..=12)?;
            let acquired = self.acquire(partition, count);
            let row = FetchPartition {
                tp: tp(partition),
                error: if u.ratio(1, 8)? { ErrorCode(u.int_in_range(-1..=135)?) } else { ErrorCode::NONE },
                message: None,
                ack_error: if u.ratio(1, 8)? { ErrorCode(u.int_in_range(-1..=135)?) } else { ErrorCode::NONE },
                leader: Leader { id: u.int_in_range(-1..=3)?, epoch: u.int_in_range(-1..=20)? },
                delivery: acquired,
            };
            partitions.push(row);
        }
        self.deliveries += partitions.len();
        let lock = Duration::from_millis(u64::from(u.arbitrary::<u16>()?));
        Ok(FetchAnswer { error: code, message: None, lock, partitions, nodes: Vec::new(), renewals: true })
    }

    /// The next `count` offsets of a partition; of every seventh the record is a gap.
    fn acquire(&mut self, partition: i32, count: i64) -> share_fetch::Delivery {
        let first = self.next[partition as usize];
        self.next[partition as usize] += count;
        if count == 0 {
            return share_fetch::decode(tp(partition), None, &[], 1 << 20);
        }
        let mut builder = BatchBuilder::new(BatchOptions { base_offset: first, ..BatchOptions::default() });
        for i in (0..count).filter(|i| *i == 0 || (first + i) % 7 != 3) {
            builder.append_at(i as i32, 0, None, Some(b"v"), []).expect("a record");
        }
        let row = AcquiredRecords {
            first_offset: first,
            last_offset: first + count - 1,
            delivery_count: 1,
            ..Default::default()
        };
        let records = builder.finish().expect("a batch").freeze();
        share_fetch::decode(tp(partition), Some(records), &[row], 1 << 20)
    }

    pub fn check(&mut self) {
        while let Some(outcome) = self.machine.poll_outcome() {
            for offset in outcome.first_offset..=outcome.last_offset {
                let key = (outcome.tp.partition, offset);
                if let Some(kind) = self.open.remove(&key) {
                    assert_eq!(outcome.ack_type, Some(kind), "{key:?}");
                    self.done.insert(key);
                } else {
                    assert!(!self.done.contains(&key), "{key:?} has a second outcome: {outcome:?}");
                }
            }
        }
        while self.machine.poll_event().is_some() {}
        while let Some(quiet) = self.machine.poll_quiet_outcome() {
            for offset in quiet.first_offset..=quiet.last_offset {
                let key = (quiet.tp.partition, offset);
                assert!(!self.open.contains_key(&key), "{key:?} was spoken of, and is settled without a word");
            }
        }
        assert!(self.machine.lowest_ask() <= self.machine.next_ask());
        assert!(self.machine.live_slots() <= self.deliveries, "more deliveries are kept than there were");
    }

    /// Ends all that is open, lets the machine close, and counts.
    pub fn end(&mut self) {
        for taken in std::mem::take(&mut self.staged) {
            self.machine.finish_transaction(&taken, Outcome::Unknown);
        }
        self.machine.close(self.now);
        for _ in 0..1000 {
            self.plan();
            for action in std::mem::take(&mut self.pending) {
                match action {
                    Action::Heartbeat(token, request) => {
                        let answer =
                            ShareGroupHeartbeatResponse { member_epoch: request.member_epoch, ..heartbeat(&[]) };
                        self.machine.handle_heartbeat(self.now, token, Ok(&answer));
                    }
                    Action::Fetch(node, token, _) => {
                        let lost = RequestFailure { maybe_done: true, fatal: false, text: "lost".into() };
                        self.machine.handle_fetch(self.now, node, token, Err(lost));
                    }
                    Action::Acknowledge(node, token, request) => {
                        self.machine.handle_acknowledge(
                            self.now,
                            node,
                            token,
                            Ok(acknowledged(&request, ErrorCode::NONE)),
                        );
                    }
                    Action::RefreshMetadata(_) => {}
                }
            }
            self.check();
            if self.machine.is_closed() {
                break;
            }
            self.now += Duration::from_millis(500);
            self.machine.handle_timeout(self.now);
        }
        assert!(self.machine.is_closed(), "closing does not end");
        assert!(self.open.is_empty(), "acknowledgements without an outcome: {:?}", self.open);
        for id in std::mem::take(&mut self.commits) {
            assert!(self.machine.poll_commit(id).is_some(), "commit {id} never ends");
        }
        self.now += Duration::from_secs(3600);
        self.machine.handle_timeout(self.now);
        self.check();
        assert_eq!(self.machine.live_slots(), 0, "deliveries are kept after the end");
        assert_eq!(self.machine.lowest_ask(), self.machine.next_ask(), "a request counts after the end");
    }
}

fn ordered(batches: impl Iterator<Item = (i64, i64, usize)>) {
    let mut last = -1;
    for (first, end, types) in batches {
        assert!(first > last && end >= first, "batches overlap or fall");
        assert!(types == 1 || types as i64 == end - first + 1, "{types} types for {first}..={end}");
        last = end;
    }
}

fn heartbeat(partitions: &[i32]) -> ShareGroupHeartbeatResponse {
    let rows = vec![TopicPartitions { topic_id: topic(), partitions: partitions.to_vec(), ..Default::default() }];
    ShareGroupHeartbeatResponse {
        member_epoch: 3,
        heartbeat_interval_ms: 5000,
        assignment: Some(Assignment { topic_partitions: rows, ..Default::default() }),
        ..Default::default()
    }
}

fn acknowledged(request: &ShareAcknowledgeRequest, code: ErrorCode) -> ShareAcknowledgeResponse {
    let row = |partition_index| PartitionData { partition_index, error_code: code, ..Default::default() };
    let topics = request.topics.iter().map(|t| ShareAcknowledgeTopicResponse {
        topic_id: t.topic_id,
        partitions: t.partitions.iter().map(|p| row(p.partition_index)).collect(),
        ..Default::default()
    });
    ShareAcknowledgeResponse { responses: topics.collect(), acquisition_lock_timeout_ms: 30_000, ..Default::default() }
}
