//! Membership in a share group (KIP-932): joining, heartbeats, assignment, fencing, leaving.
//!
//! A member that the coordinator does not know (fenced, forgotten, or its group is gone) joins again with epoch 0 and the
//! same member id; the records it holds are lost to it. A new member asks every 250 ms until it has an assignment.

use crate::Backoff;
use crate::metadata::TopicIdPartition;
use kafka_share_messages::{ErrorCode, ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse};
use kafka_share_wire::Str;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// Pause between the heartbeats of a member that waits for its first assignment.
const JOIN_INTERVAL: Duration = Duration::from_millis(250);
/// How long a member without assignment asks that often.
const EAGER_TIME: Duration = Duration::from_secs(10);
/// Interval until the coordinator names one.
const DEFAULT_INTERVAL: Duration = Duration::from_secs(5);
/// Bounds of an interval that is believed: neither a storm of heartbeats nor none before the session ends.
const SHORTEST_INTERVAL: Duration = Duration::from_millis(100);
const LONGEST_INTERVAL: Duration = Duration::from_secs(60);
/// Epoch that leaves the group.
const LEAVE_EPOCH: i32 = -1;

/// What an answer means for the consumer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MembershipEvent {
    /// A new assignment.
    Assigned(BTreeSet<TopicIdPartition>),
    /// The coordinator does not know this member any more: everything it held is lost, it joins again.
    Fenced(ErrorCode),
    /// A right is missing. It may be given back, so the coordinator is asked again.
    Refused(ErrorCode, Option<String>),
    /// No retry heals this; another subscription joins anew.
    Failed(ErrorCode, Option<String>),
    /// The member has left.
    Left,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Idle,
    Member,
    Leaving,
    Failed,
}

/// The machine.
#[derive(Debug)]
pub struct Membership {
    group_id: Str,
    member_id: Str,
    rack: Option<Str>,
    state: State,
    epoch: i32,
    topics: Vec<Str>,
    /// Whether the coordinator has been told of `topics`.
    told: bool,
    /// The heartbeat in flight carries the subscription as it is now.
    telling: bool,
    assigned: bool,
    eager_until: Option<Instant>,
    interval: Duration,
    next: Instant,
    in_flight: Option<u64>,
    next_token: u64,
    failures: u32,
    backoff: Backoff,
}

impl Membership {
    /// Not a member yet. `member_id` is chosen by the client and must be new for each consumer.
    #[must_use]
    pub fn new(group_id: Str, member_id: Str, rack: Option<Str>, backoff: Backoff, now: Instant) -> Self {
        Membership {
            group_id,
            member_id,
            rack,
            state: State::Idle,
            epoch: 0,
            topics: Vec::new(),
            told: false,
            telling: false,
            assigned: false,
            eager_until: None,
            interval: DEFAULT_INTERVAL,
            next: now,
            in_flight: None,
            next_token: 0,
            failures: 0,
            backoff,
        }
    }

    /// Id of the member.
    #[must_use]
    pub fn member_id(&self) -> &Str {
        &self.member_id
    }

    /// Id of the group.
    #[must_use]
    pub fn group_id(&self) -> &Str {
        &self.group_id
    }

    /// Member epoch; 0 while not a member.
    #[must_use]
    pub fn epoch(&self) -> i32 {
        self.epoch
    }

    /// Whether the coordinator counts this member in.
    #[must_use]
    pub fn is_joined(&self) -> bool {
        self.state == State::Member && self.epoch > 0
    }

    /// Joins, or changes the subscription. An empty list leaves.
    pub fn subscribe(&mut self, now: Instant, mut topics: Vec<Str>) {
        topics.sort();
        topics.dedup();
        if topics.is_empty() {
            return self.leave(now);
        }
        if self.state != State::Member {
            // Answers to what was sent before (a leave, say) are not about this membership.
            self.in_flight = None;
            self.state = State::Member;
            self.epoch = 0;
            self.assigned = false;
        }
        if topics != self.topics || self.epoch == 0 {
            self.topics = topics;
            self.told = false;
            // What is on its way was said of the subscription before.
            self.telling = false;
            self.eager_until = Some(now + EAGER_TIME);
            self.next = now;
        }
    }

    /// Leaves the group.
    pub fn leave(&mut self, now: Instant) {
        if self.state == State::Member {
            self.state = if self.epoch > 0 || self.in_flight.is_some() { State::Leaving } else { State::Idle };
            self.in_flight = None;
            self.next = now;
        }
        self.topics.clear();
        self.assigned = false;
    }

    /// Whether there is nothing left to say to the coordinator.
    #[must_use]
    pub fn is_out(&self) -> bool {
        matches!(self.state, State::Idle | State::Failed)
    }

    /// The heartbeat to send now, with a token for its answer.
    pub fn poll_heartbeat(&mut self, now: Instant) -> Option<(u64, ShareGroupHeartbeatRequest)> {
        if self.in_flight.is_some() || self.next > now {
            return None;
        }
        let mut request = ShareGroupHeartbeatRequest {
            group_id: self.group_id.clone(),
            member_id: self.member_id.clone(),
            member_epoch: self.epoch,
            ..ShareGroupHeartbeatRequest::default()
        };
        match self.state {
            State::Idle | State::Failed => return None,
            State::Leaving => request.member_epoch = LEAVE_EPOCH,
            State::Member if self.epoch == 0 || !self.told => {
                request.subscribed_topic_names = Some(self.topics.clone());
                request.rack_id = self.rack.clone();
                self.telling = true;
            }
            State::Member => {}
        }
        self.next_token += 1;
        self.in_flight = Some(self.next_token);
        Some((self.next_token, request))
    }

    /// The answer to a heartbeat. Answers to heartbeats of an earlier membership are ignored.
    pub fn handle_response(
        &mut self,
        now: Instant,
        token: u64,
        response: &ShareGroupHeartbeatResponse,
    ) -> Option<MembershipEvent> {
        if self.in_flight != Some(token) {
            return None;
        }
        self.in_flight = None;
        if self.state == State::Leaving {
            self.state = State::Idle;
            self.epoch = 0;
            return Some(MembershipEvent::Left);
        }
        match response.error_code {
            ErrorCode::NONE => self.accepted(now, response),
            ErrorCode::UNKNOWN_MEMBER_ID | ErrorCode::FENCED_MEMBER_EPOCH | ErrorCode::GROUP_ID_NOT_FOUND => {
                self.epoch = 0;
                self.told = false;
                self.assigned = false;
                self.eager_until = Some(now + EAGER_TIME);
                self.failures += 1;
                self.next = if self.failures > 1 { now + self.pause() } else { now };
                Some(MembershipEvent::Fenced(response.error_code))
            }
            code if code.is_retriable() => {
                self.retry(now);
                None
            }
            code => {
                let message = response.error_message.as_ref().map(ToString::to_string);
                if matches!(code, ErrorCode::GROUP_AUTHORIZATION_FAILED | ErrorCode::TOPIC_AUTHORIZATION_FAILED) {
                    self.retry(now);
                    return Some(MembershipEvent::Refused(code, message));
                }
                self.state = State::Failed;
                self.epoch = 0;
                Some(MembershipEvent::Failed(code, message))
            }
        }
    }

    fn accepted(&mut self, now: Instant, response: &ShareGroupHeartbeatResponse) -> Option<MembershipEvent> {
        if response.member_epoch <= 0 {
            // A member has an epoch above 0; to send another would leave the group, or join it with every heartbeat.
            self.telling = false;
            self.retry(now);
            return None;
        }
        self.failures = 0;
        self.told |= std::mem::take(&mut self.telling);
        self.epoch = response.member_epoch;
        if let Ok(ms @ 1..) = u64::try_from(response.heartbeat_interval_ms) {
            self.interval = Duration::from_millis(ms).clamp(SHORTEST_INTERVAL, LONGEST_INTERVAL);
        }
        let assigned = response.assignment.as_ref().map(|assignment| {
            let topics = assignment.topic_partitions.iter();
            let pairs = topics
                .flat_map(|t| t.partitions.iter().map(|p| TopicIdPartition { topic_id: t.topic_id, partition: *p }));
            pairs.filter(|tp| tp.partition >= 0).collect::<BTreeSet<_>>()
        });
        if let Some(assigned) = &assigned {
            self.assigned = !assigned.is_empty();
        }
        let eager = !self.assigned && self.eager_until.is_some_and(|until| now < until);
        self.next = match self.told {
            true if eager => now + JOIN_INTERVAL.min(self.interval),
            true => now + self.interval,
            false => now,
        };
        assigned.map(MembershipEvent::Assigned)
    }

    /// A heartbeat got no answer.
    pub fn handle_failure(&mut self, now: Instant, token: u64) {
        if self.in_flight == Some(token) {
            self.in_flight = None;
            if self.state == State::Leaving && self.failures > 0 {
                // One retry; then the session timeout does it.
                self.state = State::Idle;
            }
            self.retry(now);
        }
    }

    fn retry(&mut self, now: Instant) {
        self.failures += 1;
        self.next = now + self.pause();
    }

    fn pause(&self) -> Duration {
        self.backoff.pause(self.failures, 200)
    }

    /// When [`Membership::poll_heartbeat`] has something to say.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Instant> {
        let active = matches!(self.state, State::Member | State::Leaving);
        (active && self.in_flight.is_none()).then_some(self.next)
    }
}

#[cfg(test)]
#[path = "share_membership_tests.rs"]
mod tests;
