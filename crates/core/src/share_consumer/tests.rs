//! The share consumer machine against a scripted cluster, by field report.

use super::*;
use crate::Backoff;
use crate::share_fetch::{self, DecodeLimits};
use kafka_share_messages::share_acknowledge_response as ack_response;
use kafka_share_messages::share_fetch_response::AcquiredRecords;
use kafka_share_messages::share_group_heartbeat_response::{Assignment, TopicPartitions};
use kafka_share_messages::{
    ErrorCode, ShareAcknowledgeRequest, ShareAcknowledgeResponse, ShareFetchRequest, ShareGroupHeartbeatResponse,
};
use kafka_share_wire::records::{BatchBuilder, BatchOptions};

mod ends;
mod hostile;
mod ledger;
mod renewals;
mod upsets;

const LOCK: Duration = Duration::from_secs(30);

const LIMITS: DecodeLimits = DecodeLimits { batch: 1 << 20, answer: 1 << 20 };

fn topic() -> Uuid {
    Uuid::from_halves(7, 7)
}

fn tp(partition: i32) -> TopicIdPartition {
    TopicIdPartition { topic_id: topic(), partition }
}

struct Rig {
    now: Instant,
    machine: ShareConsumer,
    heartbeats: Vec<i32>,
}

impl Rig {
    /// A member with the given partitions assigned, led by the given nodes.
    fn new(implicit: bool, leaders: &[i32]) -> Rig {
        Rig::with(implicit, leaders, |_| {})
    }

    fn with(implicit: bool, leaders: &[i32], adjust: impl FnOnce(&mut ConsumerConfig)) -> Rig {
        let now = Instant::now();
        let mut config = ConsumerConfig {
            group_id: "g".into(),
            member_id: "m".into(),
            rack: None,
            implicit,
            decode_limits: LIMITS,
            max_poll_records: 100,
            max_wait: Duration::from_millis(500),
            min_bytes: 1,
            max_bytes: 1 << 20,
            record_limit: false,
            backoff: Backoff { first: Duration::from_millis(100), limit: Duration::from_secs(1) },
            max_ack_age: Duration::from_secs(5),
            max_acks_pending: 10_000,
            api_timeout: Duration::from_secs(60),
            metadata_max_age: Duration::from_secs(300),
            prefetch: 0,
            lock_renewal: None,
        };
        adjust(&mut config);
        let mut machine = ShareConsumer::new(config, now);
        machine.subscribe(now, vec!["t".into()]);
        let mut rig = Rig { now, machine, heartbeats: Vec::new() };
        let partitions: Vec<i32> = (0..leaders.len() as i32).collect();
        while let Some(action) = rig.machine.poll_action(now) {
            match action {
                Action::RefreshMetadata(_) => rig.metadata(leaders, 1),
                Action::Heartbeat(token, _) => rig.machine.handle_heartbeat(now, token, Ok(&heartbeat(&partitions))),
                other => panic!("unexpected {other:?}"),
            }
        }
        rig
    }

    fn metadata(&mut self, leaders: &[i32], epoch: i32) {
        let leaders = leaders.iter().map(|id| Leader { id: *id, epoch }).collect();
        self.machine.handle_metadata(self.now, &[TopicLeaders { id: topic(), name: "t".into(), leaders }]);
    }

    /// All session requests that are due; heartbeats and metadata are answered on the way.
    fn requests(&mut self) -> Vec<Action> {
        let mut all = Vec::new();
        while let Some(action) = self.machine.poll_action(self.now) {
            match action {
                Action::Heartbeat(token, request) => {
                    self.heartbeats.push(request.member_epoch);
                    let partitions: Vec<i32> = self.machine.assignment().iter().map(|tp| tp.partition).collect();
                    let answer = heartbeat(&partitions);
                    self.machine.handle_heartbeat(self.now, token, Ok(&answer));
                }
                Action::RefreshMetadata(_) => self.machine.handle_metadata_failure(self.now),
                other => all.push(other),
            }
        }
        all
    }

    fn fetch(&mut self) -> (i32, u64, ShareFetchRequest) {
        let mut requests = self.requests();
        assert_eq!(requests.len(), 1, "{requests:?}");
        match requests.remove(0) {
            Action::Fetch(node, token, request) => (node, token, request),
            other => panic!("a fetch was expected, not {other:?}"),
        }
    }

    fn acknowledge(&mut self) -> (i32, u64, ShareAcknowledgeRequest) {
        let mut requests = self.requests();
        assert_eq!(requests.len(), 1, "{requests:?}");
        match requests.remove(0) {
            Action::Acknowledge(node, token, request) => (node, token, request),
            other => panic!("an acknowledge was expected, not {other:?}"),
        }
    }

    fn poll(&mut self) -> Vec<Chunk> {
        self.machine.accept_delivered(self.now);
        self.machine.take_records(self.now)
    }

    /// Polls, lets the only broker answer with offsets `first..=last` of partition 0, polls again.
    fn receive(&mut self, first: i64, last: i64) -> Vec<Chunk> {
        assert!(self.poll().is_empty());
        let (node, token, _) = self.fetch();
        self.machine.handle_fetch(self.now, node, token, Ok(records(&[(0, first, last)])));
        self.poll()
    }

    fn ack_all(&mut self, chunks: &[Chunk]) {
        for chunk in chunks {
            self.machine.acknowledge_chunks(self.now, std::slice::from_ref(chunk), AckType::Accept).unwrap();
        }
    }

    fn outcomes(&mut self) -> Vec<(i64, i64, Outcome)> {
        std::iter::from_fn(|| self.machine.poll_outcome()).map(|o| (o.first_offset, o.last_offset, o.outcome)).collect()
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

fn records(parts: &[(i32, i64, i64)]) -> FetchAnswer {
    let partitions = parts.iter().map(|(p, first, last)| {
        let mut builder = BatchBuilder::new(BatchOptions { base_offset: *first, ..BatchOptions::default() });
        for i in *first..=*last {
            builder.append(i, None, Some(b"v"), []).unwrap();
        }
        let acquired =
            [AcquiredRecords { first_offset: *first, last_offset: *last, delivery_count: 1, ..Default::default() }];
        partition(
            *p,
            ErrorCode::NONE,
            share_fetch::decode(tp(*p), Some(builder.finish().unwrap().freeze()), &acquired, 1 << 20),
        )
    });
    FetchAnswer { partitions: partitions.collect(), ..refusal(ErrorCode::NONE) }
}

fn partition(p: i32, error: ErrorCode, delivery: Delivery) -> FetchPartition {
    let leader = Leader { id: -1, epoch: -1 };
    FetchPartition { tp: tp(p), error, message: None, ack_error: ErrorCode::NONE, leader, delivery }
}

fn refusal(error: ErrorCode) -> FetchAnswer {
    FetchAnswer { error, message: None, lock: LOCK, partitions: Vec::new(), nodes: Vec::new(), renewals: true }
}

fn acked(rows: &[(i32, ErrorCode)]) -> ShareAcknowledgeResponse {
    let partitions = rows.iter().map(|(p, code)| ack_response::PartitionData {
        partition_index: *p,
        error_code: *code,
        ..Default::default()
    });
    let topic = ack_response::ShareAcknowledgeTopicResponse {
        topic_id: topic(),
        partitions: partitions.collect(),
        ..Default::default()
    };
    ShareAcknowledgeResponse { responses: vec![topic], ..Default::default() }
}

fn lost(maybe_done: bool) -> RequestFailure {
    RequestFailure { maybe_done, fatal: false, text: "connection lost".into() }
}

fn ranges(request: &ShareAcknowledgeRequest) -> Vec<(i64, i64, Vec<i8>)> {
    let partitions = request.topics.iter().flat_map(|t| &t.partitions);
    let batches = partitions.flat_map(|p| &p.acknowledgement_batches);
    batches.map(|b| (b.first_offset, b.last_offset, b.acknowledge_types.clone())).collect()
}

//= SHARE-CLIENT-28
#[test]
fn acknowledgements_ride_on_the_next_fetch() {
    let mut rig = Rig::new(true, &[1]);
    assert_eq!(rig.receive(0, 4).iter().map(|c| c.entries().len()).sum::<usize>(), 5);
    assert!(rig.poll().is_empty());
    let (_, _, request) = rig.fetch();
    assert_eq!(request.share_session_epoch, 1);
    let batch = &request.topics[0].partitions[0].acknowledgement_batches[0];
    assert_eq!((batch.first_offset, batch.last_offset, &batch.acknowledge_types[..]), (0, 4, &[1][..]));
}

#[test]
fn one_by_one_acknowledgements_are_one_request() {
    let mut rig = Rig::with(false, &[1], |c| c.max_poll_records = 500);
    let chunks = rig.receive(0, 499);
    for chunk in &chunks {
        for entry in chunk.entries() {
            rig.machine.acknowledge(rig.now, chunk.handle(entry), AckType::Accept).unwrap();
            rig.now += Duration::from_millis(1);
            assert!(rig.requests().is_empty());
        }
    }
    rig.machine.commit(rig.now + LOCK);
    let (_, _, request) = rig.acknowledge();
    assert_eq!(ranges(&request), [(0, 499, vec![1])]);
}

#[test]
fn the_shell_is_woken_for_acknowledgements_only_where_they_are_due_before_it_wakes() {
    let mut rig = Rig::new(false, &[1]);
    let chunks = rig.receive(0, 9);
    rig.machine.take_ack_news();
    let handle = |at: usize| chunks[0].handle(&chunks[0].entries()[at]);
    // A heartbeat, say, is due before their age is.
    rig.machine.sleeps_until(Some(rig.now + Duration::from_millis(100)));
    rig.machine.acknowledge(rig.now, handle(0), AckType::Accept).unwrap();
    assert!(!rig.machine.take_ack_news());
    let due = rig.machine.next_deadline().unwrap();
    rig.machine.commit(rig.now + LOCK);
    rig.machine.sleeps_until(Some(due + Duration::from_secs(60)));
    rig.machine.acknowledge(rig.now, handle(1), AckType::Accept).unwrap();
    assert!(rig.machine.take_ack_news());
    assert!(!rig.machine.take_ack_news(), "told once");
}

#[test]
fn r002_a_refused_session_ends_its_acknowledgements_and_opens_anew() {
    let mut rig = Rig::new(false, &[1]);
    let chunks = rig.receive(0, 9);
    rig.ack_all(&chunks);
    let commit = rig.machine.commit(rig.now + LOCK);
    let (node, token, _) = rig.acknowledge();
    let answer = ShareAcknowledgeResponse { error_code: ErrorCode::INVALID_SHARE_SESSION_EPOCH, ..Default::default() };
    rig.machine.handle_acknowledge(rig.now, node, token, Ok(answer));
    let result = rig.machine.poll_commit(commit).unwrap();
    assert_eq!(result[&tp(0)], Outcome::Refused(ErrorCode::INVALID_SHARE_SESSION_EPOCH));
    assert_eq!(rig.outcomes(), [(0, 9, Outcome::Refused(ErrorCode::INVALID_SHARE_SESSION_EPOCH))]);
    rig.poll();
    assert!(rig.requests().is_empty(), "not before a pause");
    rig.now += Duration::from_millis(200);
    rig.machine.handle_timeout(rig.now);
    // What the broker has is closed first, which frees the records; one that has nothing says so.
    let (node, token, request) = rig.acknowledge();
    assert_eq!((request.share_session_epoch, request.topics.len()), (-1, 0));
    let answer = ShareAcknowledgeResponse { error_code: ErrorCode::SHARE_SESSION_NOT_FOUND, ..Default::default() };
    rig.machine.handle_acknowledge(rig.now, node, token, Ok(answer));
    let (_, _, request) = rig.fetch();
    assert_eq!((request.share_session_epoch, request.topics.len()), (0, 1));
}

//= SHARE-SESSION-15
#[test]
fn r003_the_request_that_opens_a_session_carries_no_acknowledgements() {
    let mut rig = Rig::new(false, &[1]);
    let chunks = rig.receive(0, 4);
    rig.machine.handle_disconnected(rig.now, 1);
    for chunk in &chunks {
        for entry in chunk.entries() {
            let result = rig.machine.acknowledge(rig.now, chunk.handle(entry), AckType::Accept);
            assert!(result.is_err());
        }
    }
    rig.poll();
    let (_, _, request) = rig.fetch();
    assert_eq!(request.share_session_epoch, 0);
    assert!(request.topics[0].partitions[0].acknowledgement_batches.is_empty());
}

#[test]
fn r004_a_connection_lost_between_requests_ends_every_acknowledgement() {
    let mut rig = Rig::new(false, &[1]);
    let chunks = rig.receive(0, 4);
    rig.ack_all(&chunks);
    rig.machine.handle_disconnected(rig.now, 1);
    assert_eq!(rig.outcomes(), [(0, 4, Outcome::LockLost)]);
    let commit = rig.machine.commit(rig.now + LOCK);
    assert_eq!(rig.machine.poll_commit(commit), Some(CommitResult::new()));
}

//= SHARE-SESSION-15
#[test]
fn buffered_records_of_a_lost_session_are_discarded() {
    let mut rig = Rig::with(false, &[1], |c| c.max_poll_records = 2);
    assert_eq!(rig.receive(0, 9).len(), 1);
    assert!(rig.machine.has_records());
    rig.machine.handle_disconnected(rig.now, 1);
    assert!(rig.poll().is_empty());
}

//= SHARE-CLIENT-09
#[test]
fn r005_an_idle_consumer_closes_the_session_of_a_former_leader() {
    let mut rig = Rig::new(false, &[1]);
    rig.receive(0, 0);
    rig.metadata(&[2], 2);
    let (node, _, request) = rig.acknowledge();
    assert_eq!((node, request.share_session_epoch), (1, -1));
}

//= SHARE-SESSION-13
#[test]
fn r007_one_request_per_broker_at_a_time() {
    let mut rig = Rig::new(false, &[1]);
    let chunks = rig.receive(0, 4);
    rig.poll();
    let (node, token, _) = rig.fetch();
    rig.ack_all(&chunks);
    let commit = rig.machine.commit(rig.now + LOCK);
    assert!(rig.requests().is_empty());
    rig.machine.handle_fetch(rig.now, node, token, Ok(refusal(ErrorCode::NONE)));
    let (node, token, request) = rig.acknowledge();
    assert_eq!(request.share_session_epoch, 2);
    rig.machine.handle_acknowledge(rig.now, node, token, Ok(acked(&[(0, ErrorCode::NONE)])));
    assert_eq!(rig.machine.poll_commit(commit).unwrap()[&tp(0)], Outcome::Acknowledged);
}

#[test]
fn r008_refusals_are_shown_and_asked_again_slowly() {
    let mut rig = Rig::new(false, &[1]);
    rig.poll();
    let mut requests = 0;
    let end = rig.now + Duration::from_secs(2);
    while rig.now < end {
        rig.poll();
        for action in rig.requests() {
            let Action::Fetch(node, token, _) = action else { panic!("{action:?}") };
            requests += 1;
            rig.machine.handle_fetch(rig.now, node, token, Ok(refusal(ErrorCode::GROUP_AUTHORIZATION_FAILED)));
            assert!(matches!(
                rig.machine.poll_event(),
                Some(ConsumerEvent::Error(ErrorCode::GROUP_AUTHORIZATION_FAILED, _))
            ));
        }
        rig.now += Duration::from_millis(10);
        rig.machine.handle_timeout(rig.now);
    }
    assert!((2..=8).contains(&requests), "{requests} requests in two seconds");
}

//= SHARE-CLIENT-10
#[test]
fn r013_a_named_leader_is_asked_next() {
    let mut rig = Rig::new(false, &[1]);
    rig.poll();
    let (node, token, _) = rig.fetch();
    let mut moved = partition(0, ErrorCode::NOT_LEADER_OR_FOLLOWER, share_fetch::decode(tp(0), None, &[], 0));
    moved.leader = Leader { id: 9, epoch: 5 };
    rig.machine.handle_fetch(
        rig.now,
        node,
        token,
        Ok(FetchAnswer { partitions: vec![moved], ..refusal(ErrorCode::NONE) }),
    );
    assert!(matches!(rig.machine.poll_event(), Some(ConsumerEvent::LeaderHint(_, Leader { id: 9, .. }, _))));
    rig.poll();
    let nodes: Vec<i32> = rig
        .requests()
        .iter()
        .map(|a| match a {
            Action::Fetch(node, ..) | Action::Acknowledge(node, ..) => *node,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(nodes, [1, 9], "the old session is closed, the new leader is asked");
}

#[test]
fn r014_partitions_that_metadata_does_not_know_yet_are_asked_for_again() {
    let mut rig = Rig::new(false, &[1]);
    rig.machine.assign(rig.now, [tp(0), tp(3)].into());
    rig.now += METADATA_PAUSE;
    assert!(matches!(rig.machine.poll_action(rig.now), Some(Action::RefreshMetadata(_))));
    rig.metadata(&[1], 1);
    rig.now += METADATA_PAUSE;
    assert!(matches!(rig.machine.poll_action(rig.now), Some(Action::RefreshMetadata(_))));
    rig.metadata(&[1, 1, 1, 1], 1);
    rig.poll();
    let (_, _, request) = rig.fetch();
    let asked: Vec<i32> = request.topics[0].partitions.iter().map(|p| p.partition_index).collect();
    assert_eq!(asked, [0, 3]);
}

//= SHARE-CLIENT-07
#[test]
fn r022_closing_never_accepts_what_was_not_come_back_for() {
    let mut rig = Rig::new(true, &[1]);
    rig.receive(0, 2);
    rig.machine.close(rig.now);
    let (node, token, request) = rig.acknowledge();
    assert_eq!(request.share_session_epoch, -1);
    assert!(request.topics.is_empty());
    rig.machine.handle_acknowledge(rig.now, node, token, Ok(acked(&[])));
    assert!(rig.requests().is_empty());
    assert_eq!(rig.heartbeats.last(), Some(&-1), "the group is left after the session");
    assert!(rig.machine.is_closed());
}

//= SHARE-CLIENT-08
#[test]
fn closing_sends_what_was_acknowledged() {
    let mut rig = Rig::new(false, &[1]);
    let chunks = rig.receive(0, 2);
    rig.ack_all(&chunks);
    rig.machine.close(rig.now);
    // Overdue acknowledgements and the close are one request.
    let (_, _, request) = rig.acknowledge();
    assert_eq!((request.share_session_epoch, ranges(&request)), (-1, vec![(0, 2, vec![1])]));
}

//= SHARE-CLIENT-11
#[test]
fn r028_surplus_of_whole_batches_is_kept_and_delivered() {
    let mut rig = Rig::with(true, &[1], |c| c.max_poll_records = 7);
    let mut counts = vec![rig.receive(0, 15).iter().map(|c| c.entries().len()).sum::<usize>()];
    while rig.machine.has_records() {
        counts.push(rig.poll().iter().map(|c| c.entries().len()).sum());
    }
    assert_eq!(counts.iter().sum::<usize>(), 16);
    assert!(counts.iter().all(|c| *c <= 7));
}

//= SHARE-CLIENT-12
#[test]
fn r035_outcomes_are_per_partition() {
    let mut rig = Rig::new(false, &[1, 1, 1]);
    rig.poll();
    let (node, token, _) = rig.fetch();
    rig.machine.handle_fetch(rig.now, node, token, Ok(records(&[(0, 0, 1), (1, 0, 1), (2, 0, 1)])));
    let chunks = rig.poll();
    rig.ack_all(&chunks);
    let commit = rig.machine.commit(rig.now + LOCK);
    let (node, token, _) = rig.acknowledge();
    let rows =
        [(0, ErrorCode::NONE), (1, ErrorCode::NOT_LEADER_OR_FOLLOWER), (2, ErrorCode::COORDINATOR_NOT_AVAILABLE)];
    rig.machine.handle_acknowledge(rig.now, node, token, Ok(acked(&rows)));
    assert_eq!(rig.machine.poll_commit(commit), None);
    rig.now += Duration::from_millis(200);
    rig.machine.handle_timeout(rig.now);
    let (node, token, request) = rig.acknowledge();
    assert_eq!(request.topics[0].partitions.iter().map(|p| p.partition_index).collect::<Vec<_>>(), [2]);
    rig.machine.handle_acknowledge(rig.now, node, token, Ok(acked(&[(2, ErrorCode::NONE)])));
    let result = rig.machine.poll_commit(commit).unwrap();
    assert_eq!(result[&tp(0)], Outcome::Acknowledged);
    assert_eq!(result[&tp(1)], Outcome::Refused(ErrorCode::NOT_LEADER_OR_FOLLOWER));
    assert_eq!(result[&tp(2)], Outcome::Acknowledged);
}

#[test]
fn r040_retried_commits_end_at_their_deadline() {
    let mut rig = Rig::with(false, &[1], |c| c.api_timeout = Duration::from_secs(3));
    let chunks = rig.receive(0, 0);
    rig.ack_all(&chunks);
    let commit = rig.machine.commit(rig.now + Duration::from_secs(3));
    let mut sent = 0;
    for _ in 0..1000 {
        for action in rig.requests() {
            let Action::Acknowledge(node, token, _) = action else { continue };
            sent += 1;
            rig.machine.handle_acknowledge(
                rig.now,
                node,
                token,
                Ok(acked(&[(0, ErrorCode::COORDINATOR_NOT_AVAILABLE)])),
            );
        }
        rig.now += Duration::from_millis(10);
        rig.machine.handle_timeout(rig.now);
    }
    assert_eq!(rig.machine.poll_commit(commit).unwrap()[&tp(0)], Outcome::Refused(ErrorCode::REQUEST_TIMED_OUT));
    assert!(sent < 40, "{sent}");
}

//= SHARE-CLIENT-27
#[test]
fn r041_a_deleted_topic_ends_its_commit_at_once() {
    let mut rig = Rig::new(false, &[1]);
    let chunks = rig.receive(0, 0);
    rig.ack_all(&chunks);
    let commit = rig.machine.commit(rig.now + LOCK);
    let (node, token, _) = rig.acknowledge();
    rig.machine.handle_acknowledge(rig.now, node, token, Ok(acked(&[(0, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)])));
    assert_eq!(
        rig.machine.poll_commit(commit).unwrap()[&tp(0)],
        Outcome::Refused(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)
    );
}

//= SHARE-CLIENT-13
#[test]
fn an_answer_lost_after_sending_is_unknown_and_before_it_lost() {
    for (maybe_done, outcome) in [(true, Outcome::Unknown), (false, Outcome::LockLost)] {
        let mut rig = Rig::new(false, &[1]);
        let chunks = rig.receive(0, 1);
        rig.ack_all(&chunks);
        rig.machine.commit(rig.now + LOCK);
        let (node, token, _) = rig.acknowledge();
        rig.machine.handle_acknowledge(rig.now, node, token, Err(lost(maybe_done)));
        assert_eq!(rig.outcomes(), [(0, 1, outcome)]);
    }
}

#[test]
fn renewals_go_by_themselves_and_move_the_lock() {
    let mut rig = Rig::new(false, &[1]);
    let chunks = rig.receive(0, 1);
    let handle = chunks[0].handle(&chunks[0].entries()[0]);
    rig.machine.acknowledge(rig.now, handle, AckType::Renew).unwrap();
    rig.machine.commit(rig.now + LOCK);
    let (node, token, request) = rig.acknowledge();
    assert!(request.is_renew_ack);
    assert_eq!(ranges(&request), [(0, 0, vec![4])]);
    let mut answer = acked(&[(0, ErrorCode::NONE)]);
    answer.acquisition_lock_timeout_ms = 30_000;
    rig.machine.handle_acknowledge(rig.now, node, token, Ok(answer));
    rig.machine.acknowledge(rig.now, handle, AckType::Accept).unwrap();
}

//= SHARE-CLIENT-15
#[test]
fn record_limit_asks_one_broker_at_a_time() {
    let mut rig = Rig::with(false, &[1, 2, 3], |c| c.record_limit = true);
    let mut asked = Vec::new();
    for _ in 0..6 {
        rig.poll();
        let (node, token, request) = rig.fetch();
        assert_eq!(request.share_acquire_mode, 1);
        asked.push(node);
        rig.machine.handle_fetch(rig.now, node, token, Ok(refusal(ErrorCode::NONE)));
    }
    assert_eq!(asked, [1, 2, 3, 1, 2, 3]);
}

/// Else each batch would come after as many waits as there are other brokers.
#[test]
fn brokers_without_records_hold_up_no_others_under_a_record_limit() {
    let mut rig = Rig::with(false, &[1, 2, 3], |c| c.record_limit = true);
    let mut waits = Vec::new();
    for round in 0..9 {
        rig.poll();
        let (node, token, request) = rig.fetch();
        waits.push((node, request.max_wait_ms));
        let brings = node == 1 && round >= 3;
        let answer = if brings { records(&[(0, round, round)]) } else { refusal(ErrorCode::NONE) };
        rig.machine.handle_fetch(rig.now, node, token, Ok(answer));
        let chunks = rig.machine.take_records(rig.now);
        rig.ack_all(&chunks);
    }
    let unknown = [(1, 0), (2, 0), (3, 166)];
    let (nobody, one) = ([(1, 166)], [(2, 0), (3, 0), (1, 166), (2, 0), (3, 0)]);
    assert_eq!(waits, [&unknown[..], &nobody, &one].concat());
}

//= SHARE-CLIENT-14
#[test]
fn expired_locks_are_let_go() {
    let mut rig = Rig::new(false, &[1]);
    rig.receive(0, 99);
    rig.now += LOCK + LOCK_GRACE + Duration::from_secs(1);
    rig.machine.handle_timeout(rig.now);
    assert_eq!(rig.machine.table.live_slots(), 0);
}

#[test]
fn subscribing_after_close_does_not_join_again() {
    let mut rig = Rig::new(false, &[1]);
    rig.machine.close(rig.now);
    rig.machine.subscribe(rig.now, vec!["t".into()]);
    while let Some(action) = rig.machine.poll_action(rig.now) {
        match action {
            Action::Heartbeat(token, request) => {
                assert_eq!(request.member_epoch, -1, "the group is joined again");
                rig.machine.handle_heartbeat(rig.now, token, Ok(&heartbeat(&[])));
            }
            other => panic!("unexpected {other:?}"),
        }
    }
    assert!(rig.machine.is_closed());
}
