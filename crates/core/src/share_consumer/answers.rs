//! What brokers answered, and what it means for sessions, locks and acknowledgements.

use super::{
    Buffered, ConsumerEvent, DeferredPart, FetchAnswer, Group, InFlight, InFlightKind, RequestFailure, ShareConsumer,
    TopicLeaders,
};
use crate::metadata::{Leader, Node, TopicIdPartition};
use crate::share_acks::{AckType, Outcome};
use crate::share_fetch::Delivery;
use crate::share_membership::MembershipEvent;
use crate::share_session::SessionPlan;
use kafka_share_messages::{ErrorCode, ShareAcknowledgeResponse, ShareGroupHeartbeatResponse};
use kafka_share_wire::{Str, Uuid};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// So many requests to a broker in a row must have failed before the application hears of an error without a code of its own:
/// about half a minute of them, which is longer than a topic takes to leave the assignment.
const SHOWN_SERVER_ERROR: u32 = 30;
/// How long a leader hint counts as one of a row.
const HINT_MEMORY: Duration = Duration::from_secs(10);

impl ShareConsumer {
    /// The coordinator's answer to a heartbeat.
    pub fn handle_heartbeat(
        &mut self,
        now: Instant,
        token: u64,
        answer: Result<&ShareGroupHeartbeatResponse, RequestFailure>,
    ) {
        let event = match answer {
            Ok(response) => self.membership.handle_response(now, token, response),
            Err(failure) if failure.fatal => {
                self.events.push_back(ConsumerEvent::Failed(failure.text));
                self.membership.handle_failure(now, token);
                None
            }
            Err(_) => {
                self.membership.handle_failure(now, token);
                None
            }
        };
        match event {
            Some(MembershipEvent::Assigned(assigned)) if !self.closing => self.assign(now, assigned),
            Some(MembershipEvent::Fenced(code)) => {
                // The sessions outlive the membership; each is closed with its acknowledgements, which frees the rest for
                // others. To forget them here would leave a request in flight, or the broker, with an epoch of its own.
                self.assignment.clear();
                self.discard_buffer();
                self.events.push_back(ConsumerEvent::Fenced(code));
            }
            Some(MembershipEvent::Refused(code, message)) => {
                let text = self.about_group(code, message);
                self.events.push_back(ConsumerEvent::Error(code, text));
            }
            Some(MembershipEvent::Failed(code, message)) => {
                // As when fenced; but nobody joins again, so every poll must say why nothing comes.
                self.assignment.clear();
                self.discard_buffer();
                self.failure = Some((code, self.about_group(code, message)));
            }
            _ => {}
        }
    }

    fn about_group(&self, code: ErrorCode, message: Option<String>) -> String {
        let text = message.unwrap_or_else(|| code.about().to_owned());
        format!("group {:?}: {text}", self.config.group_id)
    }

    pub(super) fn assign(&mut self, now: Instant, assigned: BTreeSet<TopicIdPartition>) {
        self.assignment = assigned;
        self.hints.retain(|tp, _| self.assignment.contains(tp));
        self.paused.retain(|tp, _| self.assignment.contains(tp));
        if self.leaderless().next().is_some() {
            self.want_metadata(now);
        }
    }

    /// Fresh metadata of the subscribed topics.
    pub fn handle_metadata(&mut self, now: Instant, topics: &[TopicLeaders]) {
        self.metadata.in_flight = false;
        let mut moved = Vec::new();
        for topic in topics {
            self.forget_former(topic);
            self.names.insert(topic.id, topic.name.clone());
            for (partition, leader) in topic.leaders.iter().enumerate() {
                let tp = TopicIdPartition { topic_id: topic.id, partition: partition as i32 };
                if let Some(old) = self.set_leader(tp, *leader) {
                    moved.push((old, tp));
                }
            }
        }
        for (node, tp) in moved {
            self.lose_partition(node, tp);
        }
        // What was asked for while the answer was on its way may not be in it.
        let regular = now + self.config.metadata_max_age;
        self.metadata.due = Some(self.metadata.due.map_or(regular, |due| due.min(regular)));
        if self.leaderless().next().is_some() || topics.len() < self.subscription.len() {
            self.metadata.incomplete = self.metadata.incomplete.saturating_add(1);
            let soon = now + self.config.backoff.pause(self.metadata.incomplete, 200);
            self.metadata.due = self.metadata.due.map(|due| due.min(soon));
        } else {
            self.metadata.incomplete = 0;
        }
    }

    /// A topic that was deleted and created again has another id; nothing leads the former one any more.
    fn forget_former(&mut self, topic: &TopicLeaders) {
        let held = &self.assignment;
        let former = |id: &Uuid, name: &Str| *name == topic.name && *id != topic.id;
        let gone: Vec<Uuid> = self.names.iter().filter(|(id, name)| former(id, name)).map(|(id, _)| *id).collect();
        for id in gone {
            self.leaders.retain(|tp, _| tp.topic_id != id || held.contains(tp));
            // The name stays while the partitions are assigned: outcomes and errors are told under it.
            if !held.iter().any(|tp| tp.topic_id == id) {
                self.names.remove(&id);
            }
        }
    }

    /// Metadata could not be had.
    pub fn handle_metadata_failure(&mut self, now: Instant) {
        self.metadata.in_flight = false;
        self.metadata.due = Some(now + self.config.backoff.limit);
    }

    /// Sets a leader; answers the former one where the partition moved.
    fn set_leader(&mut self, tp: TopicIdPartition, leader: Leader) -> Option<i32> {
        let old = self.leaders.get(&tp).copied();
        if leader.id < 0 {
            self.leaders.remove(&tp);
            return old.map(|l| l.id);
        }
        if old.is_some_and(|old| old.epoch > leader.epoch && leader.epoch >= 0) {
            return None;
        }
        self.leaders.insert(tp, leader);
        old.filter(|old| old.id != leader.id).map(|old| old.id)
    }

    /// A partition is led by another broker now: the old one's locks on it are gone.
    fn lose_partition(&mut self, node: i32, tp: TopicIdPartition) {
        self.table.lose(node, Some(tp));
        self.deferred.retain(|d| d.node != node || d.part.tp != tp);
        self.drop_dead_buffers();
        let Some(state) = self.nodes.get_mut(&node) else { return };
        let mut ended = Vec::new();
        for group in &mut state.groups {
            let (gone, kept): (Vec<_>, Vec<_>) = std::mem::take(&mut group.taken).into_iter().partition(|t| t.tp == tp);
            group.taken = kept;
            ended.push((gone, group.commits.clone(), group.taken.is_empty()));
        }
        state.groups.retain(|g| !g.taken.is_empty());
        for (gone, commits, whole) in ended {
            for taken in &gone {
                self.table.finish(taken, Outcome::LockLost, None);
                self.note_result(&commits, tp, Outcome::LockLost);
            }
            if whole {
                self.part_done(&commits);
            }
        }
    }

    /// The connection to a broker is gone, and with it the session and all locks held through it.
    pub fn handle_disconnected(&mut self, now: Instant, node: i32) {
        let Some(state) = self.nodes.get_mut(&node) else { return };
        // A request under way reports for itself.
        if state.in_flight.is_none() && state.session.is_open() {
            self.lose_session(node);
            self.want_metadata(now);
        }
    }

    fn finish_in_flight(&mut self, now: Instant, node: i32, token: u64) -> Option<InFlight> {
        let state = self.nodes.get_mut(&node)?;
        if state.in_flight.as_ref()?.token != token {
            return None;
        }
        // While closing: who answers is not silent.
        self.silent_since = self.silent_since.map(|_| now);
        state.in_flight.take()
    }

    fn back_off(&mut self, now: Instant, node: i32) {
        let state = self.nodes.entry(node).or_default();
        state.failures += 1;
        state.not_before = Some(now + self.config.backoff.pause(state.failures, 200));
    }

    /// A session request got no answer.
    fn handle_lost(&mut self, now: Instant, node: i32, in_flight: InFlight, failure: RequestFailure) {
        let outcome = if failure.maybe_done { Outcome::Unknown } else { Outcome::LockLost };
        self.end(&in_flight.taken, &in_flight.commits, outcome);
        self.lose_session(node);
        self.back_off(now, node);
        self.want_metadata(now);
        if failure.fatal {
            self.events.push_back(ConsumerEvent::Failed(failure.text));
        }
    }

    /// The whole request was refused.
    fn handle_refused(
        &mut self,
        now: Instant,
        node: i32,
        in_flight: InFlight,
        code: ErrorCode,
        message: Option<String>,
    ) {
        self.end(&in_flight.taken, &in_flight.commits, Outcome::Refused(code));
        let open = self.nodes.get(&node).is_some_and(|n| n.session.is_open());
        self.lose_session(node);
        if !matches!(in_flight.kind, InFlightKind::Close) {
            self.back_off(now, node);
            // A new session takes the place of the old one, but not its locks: they would last to their end.
            let stray = match code {
                ErrorCode::SHARE_SESSION_NOT_FOUND => false,
                ErrorCode::INVALID_SHARE_SESSION_EPOCH => true,
                _ => open,
            };
            self.nodes.entry(node).or_default().stray = stray;
        }
        let session = matches!(
            code,
            ErrorCode::SHARE_SESSION_NOT_FOUND
                | ErrorCode::INVALID_SHARE_SESSION_EPOCH
                | ErrorCode::SHARE_SESSION_LIMIT_REACHED
        );
        // Kafka answers so while the session has a topic that was deleted; the next assignment does not have it any more.
        let failures = self.nodes.get(&node).map_or(0, |n| n.failures);
        let passing = code == ErrorCode::UNKNOWN_SERVER_ERROR && failures < SHOWN_SERVER_ERROR;
        if passing {
            self.want_metadata(now);
        }
        if !session && !passing && !code.is_retriable() {
            let text = message.unwrap_or_else(|| code.about().to_owned());
            self.events.push_back(ConsumerEvent::Error(code, format!("share session with broker {node}: {text}")));
        }
    }

    /// A broker's answer to a fetch.
    pub fn handle_fetch(&mut self, now: Instant, node: i32, token: u64, answer: Result<FetchAnswer, RequestFailure>) {
        let Some(in_flight) = self.finish_in_flight(now, node, token) else { return };
        let answer = match answer {
            Ok(answer) => answer,
            Err(failure) => return self.handle_lost(now, node, in_flight, failure),
        };
        if answer.error.is_err() {
            return self.handle_refused(now, node, in_flight, answer.error, answer.message);
        }
        let InFlightKind::Fetch(plan) = &in_flight.kind else { return };
        let ask = in_flight.ask.unwrap_or_default();
        self.table.set_renewal(node, answer.renewals);
        let answer = self.drop_unasked(node, plan, answer);
        self.session_advanced(node, Some(plan));
        let codes = answer.partitions.iter().map(|p| (p.tp, p.ack_error)).collect();
        self.settle(now, node, in_flight, &codes, None);
        let lock = self.note_lock(answer.lock);
        let before = self.waiting_records();
        for partition in answer.partitions {
            if partition.error.is_err() {
                self.partition_error(
                    now,
                    partition.tp,
                    partition.error,
                    partition.message,
                    partition.leader,
                    &answer.nodes,
                );
            } else {
                self.hints.remove(&partition.tp);
                self.deliver(now, node, ask, partition.delivery, now + lock);
            }
        }
        let brought = self.waiting_records().saturating_sub(before);
        let state = self.nodes.entry(node).or_default();
        state.dry = brought < self.config.max_poll_records;
        state.empty = brought == 0;
    }

    /// Leaves out partitions that the session does not have: nothing said to the broker about them could be right.
    fn drop_unasked(&mut self, node: i32, plan: &SessionPlan, mut answer: FetchAnswer) -> FetchAnswer {
        let members = self.nodes.get(&node).map(|n| n.session.members());
        let asked = |tp: &TopicIdPartition| plan.listed.contains(tp) || members.is_some_and(|m| m.contains(tp));
        let stranger = answer.partitions.iter().map(|p| p.tp).find(|tp| !asked(tp));
        if let Some(tp) = stranger {
            answer.partitions.retain(|p| asked(&p.tp));
            self.events.push_back(ConsumerEvent::NotAskedFor(node, tp));
        }
        answer
    }

    fn session_advanced(&mut self, node: i32, plan: Option<&SessionPlan>) {
        let state = self.nodes.entry(node).or_default();
        state.failures = 0;
        match plan {
            Some(plan) => state.session.fetch_done(plan),
            None => state.session.acknowledge_done(),
        }
    }

    pub(super) fn deliver(&mut self, now: Instant, node: i32, ask: u64, mut delivery: Delivery, lock_until: Instant) {
        if ask < self.floor() {
            // As if never asked for: the session is closed next, which frees it for all.
            return;
        }
        if let Some(part) = delivery.rest.take() {
            self.deferred.push_back(DeferredPart { node, ask, lock_until, part });
        }
        if delivery.ranges.is_empty() {
            return;
        }
        let slot = self.table.open(node, delivery.tp, ask, std::mem::take(&mut delivery.ranges), lock_until);
        self.table.mark_gaps(slot, delivery.gaps.drain(..), now);
        self.table.acknowledge_held(slot, delivery.rejected.drain(..), AckType::Reject, now);
        self.table.acknowledge_held(slot, delivery.missing.drain(..), AckType::Release, now);
        for corrupt in delivery.corrupt.drain(..) {
            self.events.push_back(ConsumerEvent::Corrupt(delivery.tp, corrupt));
        }
        if delivery.entries.is_empty() || self.closing || !self.assignment.contains(&delivery.tp) {
            // Revoked meanwhile: whoever has the partition now gets the records.
            let all = delivery.entries.iter().map(|e| e.index);
            self.table.acknowledge_held(slot, all, AckType::Release, now);
            self.table.unreference(slot);
            return;
        }
        let delivery = Arc::new(delivery);
        if self.keeps_deliveries() {
            self.table.attach(slot, Arc::clone(&delivery));
        }
        self.buffer.push_back(Buffered { delivery, slot, next: 0 });
    }

    fn partition_error(
        &mut self,
        now: Instant,
        tp: TopicIdPartition,
        code: ErrorCode,
        message: Option<String>,
        leader: Leader,
        nodes: &[Node],
    ) {
        let known = self.leaders.get(&tp).copied();
        if leader.id >= 0 && known.is_none_or(|k| leader.epoch > k.epoch) {
            if let Some(old) = self.set_leader(tp, leader) {
                self.lose_partition(old, tp);
            }
            self.events.push_back(ConsumerEvent::LeaderHint(tp, leader, nodes.to_vec()));
            // One hint is followed at once. Brokers that name each other are asked less and less often.
            let count = match self.hints.get(&tp) {
                Some((count, at)) if now.saturating_duration_since(*at) < HINT_MEMORY => count + 1,
                _ => 0,
            };
            self.hints.insert(tp, (count, now));
            if count > 0 {
                self.paused.insert(tp, now + self.config.backoff.pause(count, 200));
            }
            return;
        }
        self.paused.insert(tp, now + self.config.backoff.pause(2, 200));
        match code {
            ErrorCode::TOPIC_AUTHORIZATION_FAILED | ErrorCode::INVALID_TOPIC_EXCEPTION => {
                let name = self.names.get(&tp.topic_id).map_or_else(|| tp.topic_id.to_string(), ToString::to_string);
                let text = message.unwrap_or_else(|| code.about().to_owned());
                self.events.push_back(ConsumerEvent::Error(
                    code,
                    format!("topic {name:?} partition {}: {text}", tp.partition),
                ));
            }
            _ => self.want_metadata(now),
        }
    }

    /// Ends the acknowledgements of an answered request, partition by partition; retries those that may be retried.
    fn settle(
        &mut self,
        now: Instant,
        node: i32,
        request: InFlight,
        codes: &BTreeMap<TopicIdPartition, ErrorCode>,
        renewed: Option<Instant>,
    ) {
        let InFlight { taken, commits, tries, deadline, kind, .. } = request;
        let deadline = deadline.unwrap_or(now + self.config.api_timeout);
        // After a close there is no session to try again in: the broker releases what it refused.
        let may_retry = !matches!(kind, InFlightKind::Close) && now < deadline;
        let mut again = Vec::new();
        for taken in taken {
            let outcome = match codes.get(&taken.tp) {
                Some(code) if code.is_ok() => Outcome::Acknowledged,
                Some(code) if may_retry && is_worth_a_retry(*code) => {
                    again.push(taken);
                    continue;
                }
                Some(code) => Outcome::Refused(*code),
                None => Outcome::Unknown,
            };
            self.table.finish(&taken, outcome, renewed);
            self.note_result(&commits, taken.tp, outcome);
        }
        if self.table.take_followed() {
            self.send_followed(node, &commits, deadline);
        }
        if again.is_empty() {
            return self.part_done(&commits);
        }
        let not_before = Some(now + self.config.backoff.pause(tries + 1, 200));
        let group = Group { taken: again, commits, not_before, deadline, tries: tries + 1 };
        self.nodes.entry(node).or_default().groups.push_back(group);
    }

    /// What had to follow renewals goes out for the commits that wait for these: it was given before them, or beside them.
    fn send_followed(&mut self, node: i32, commits: &[u64], deadline: Instant) {
        let waited_for: Vec<u64> = commits.iter().copied().filter(|id| self.commits.contains_key(id)).collect();
        if waited_for.is_empty() || !self.nodes.get(&node).is_some_and(|n| n.session.is_open()) {
            return;
        }
        let taken = self.table.take(node, true);
        if taken.is_empty() {
            return;
        }
        for id in &waited_for {
            self.commits.entry(*id).or_default().waiting += 1;
        }
        let group = Group { taken, commits: waited_for, not_before: None, deadline, tries: 0 };
        self.nodes.entry(node).or_default().groups.push_back(group);
    }

    /// A broker's answer to an acknowledge request.
    pub fn handle_acknowledge(
        &mut self,
        now: Instant,
        node: i32,
        token: u64,
        answer: Result<ShareAcknowledgeResponse, RequestFailure>,
    ) {
        let Some(in_flight) = self.finish_in_flight(now, node, token) else { return };
        let response = match answer {
            Ok(response) => response,
            Err(failure) => return self.handle_lost(now, node, in_flight, failure),
        };
        if response.error_code.is_err() {
            let message = response.error_message.as_ref().map(ToString::to_string);
            return self.handle_refused(now, node, in_flight, response.error_code, message);
        }
        let named = Duration::from_millis(u64::try_from(response.acquisition_lock_timeout_ms).unwrap_or(0));
        let lock = self.note_lock(named);
        let partitions = response.responses.iter().flat_map(|t| {
            t.partitions.iter().map(|p| (TopicIdPartition { topic_id: t.topic_id, partition: p.partition_index }, p))
        });
        let mut codes = BTreeMap::new();
        let mut hints = Vec::new();
        for (tp, p) in partitions {
            codes.insert(tp, p.error_code);
            let leader = Leader { id: p.current_leader.leader_id, epoch: p.current_leader.leader_epoch };
            if p.error_code.is_err() && p.error_code.needs_metadata() {
                hints.push((tp, p.error_code, leader));
            }
        }
        if matches!(in_flight.kind, InFlightKind::Close) {
            self.settle(now, node, in_flight, &codes, None);
            return self.lose_session(node);
        }
        self.session_advanced(node, None);
        let renewed = Some(now + lock);
        self.settle(now, node, in_flight, &codes, renewed);
        let nodes: Vec<Node> = response
            .node_endpoints
            .iter()
            .filter_map(|n| Some(Node { id: n.node_id, host: n.host.detached(), port: u16::try_from(n.port).ok()? }))
            .collect();
        for (tp, code, leader) in hints {
            self.partition_error(now, tp, code, None, leader, &nodes);
        }
    }
}

/// Codes after which the locks are still held and the same acknowledgement may succeed.
fn is_worth_a_retry(code: ErrorCode) -> bool {
    let lost = matches!(
        code,
        ErrorCode::NOT_LEADER_OR_FOLLOWER
            | ErrorCode::FENCED_LEADER_EPOCH
            | ErrorCode::UNKNOWN_LEADER_EPOCH
            | ErrorCode::UNKNOWN_TOPIC_OR_PARTITION
            | ErrorCode::UNKNOWN_TOPIC_ID
            | ErrorCode::SHARE_SESSION_NOT_FOUND
            | ErrorCode::INVALID_SHARE_SESSION_EPOCH
            | ErrorCode::CORRUPT_MESSAGE
    );
    code.is_retriable() && !lost
}
