//! Planning: which request goes to which broker now, and with which acknowledgements.

use super::{
    Action, Group, InFlight, InFlightKind, LEAVE_AFTER, LEAVE_AFTER_ACKS, METADATA_PAUSE, NodeState, ShareConsumer,
};
use crate::metadata::TopicIdPartition;
use crate::share_acks::{AckBatch, AckType, Outcome, Taken};
use crate::share_session::FINAL_EPOCH;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

impl ShareConsumer {
    /// What to do now; ask until `None`.
    pub fn poll_action(&mut self, now: Instant) -> Option<Action> {
        if let Some(topics) = self.metadata_due(now) {
            return Some(Action::RefreshMetadata(topics));
        }
        // Records are freed before the group is left, so that no other member waits for the session's end.
        if self.may_speak_to_group(now)
            && let Some((token, request)) = self.membership.poll_heartbeat(now)
        {
            return Some(Action::Heartbeat(token, request));
        }
        let mut ids: Vec<i32> = self.nodes.keys().copied().collect();
        for leader in self.leaders.values() {
            if !self.nodes.contains_key(&leader.id) {
                ids.push(leader.id);
            }
        }
        ids.sort_unstable();
        ids.dedup();
        ids.into_iter().find_map(|node| self.plan_node(node, now))
    }

    fn may_speak_to_group(&self, now: Instant) -> bool {
        !self.closing || self.sessions_closed() || self.leave_due().is_none_or(|at| at <= now)
    }

    /// When a member that closes leaves its group although brokers have not confirmed the end of its sessions.
    fn leave_due(&self) -> Option<Instant> {
        let since = self.silent_since?;
        let sent = |n: &NodeState| n.in_flight.as_ref().is_some_and(|f| !f.taken.is_empty()) || !n.groups.is_empty();
        let acks = self.nodes.values().any(sent) || self.table.oldest_pending().is_some();
        Some(since + if acks { LEAVE_AFTER_ACKS } else { LEAVE_AFTER })
    }

    fn sessions_closed(&self) -> bool {
        self.nodes.values().all(|n| n.in_flight.is_none() && !n.session.is_open())
    }

    fn metadata_due(&mut self, now: Instant) -> Option<Vec<kafka_share_wire::Str>> {
        if self.metadata.in_flight
            || self.closing
            || self.subscription.is_empty()
            || self.metadata.due.is_none_or(|due| due > now)
        {
            return None;
        }
        self.metadata.in_flight = true;
        self.metadata.due = None;
        Some(self.subscription.clone())
    }

    /// Asks for metadata soon.
    pub(super) fn want_metadata(&mut self, now: Instant) {
        let at = now + METADATA_PAUSE;
        if self.metadata.due.is_none_or(|due| due > at) {
            self.metadata.due = Some(at);
        }
    }

    /// Partitions to have in the session with a node.
    pub(super) fn wanted_partitions(&self, node: i32, now: Instant) -> BTreeSet<TopicIdPartition> {
        self.wanted(node, now).copied().collect()
    }

    /// Whether there are such.
    pub(super) fn wants_any(&self, node: i32, now: Instant) -> bool {
        self.wanted(node, now).next().is_some()
    }

    fn wanted(&self, node: i32, now: Instant) -> impl Iterator<Item = &TopicIdPartition> {
        let led = move |tp: &&TopicIdPartition| self.leaders.get(tp).is_some_and(|l| l.id == node);
        let ready = move |tp: &&TopicIdPartition| self.paused.get(tp).is_none_or(|until| *until <= now);
        self.assignment.iter().filter(led).filter(ready)
    }

    fn plan_node(&mut self, node: i32, now: Instant) -> Option<Action> {
        let state = self.nodes.entry(node).or_default();
        if state.in_flight.is_some() || state.not_before.is_some_and(|at| at > now) {
            return None;
        }
        if std::mem::take(&mut state.stray) {
            return Some(self.send_final(node));
        }
        let open = state.session.is_open();
        let members = !state.session.members().is_empty();
        if open && let Some(group) = self.next_group(node, now) {
            return Some(self.send_group(node, group));
        }
        let wanted = !self.closing && self.wants_any(node, now);
        let fetch = self.fetch_wait(node, now).filter(|_| self.may_fetch(node, now));
        if open && !wanted && (self.closing || members) && !self.paused_here(node) {
            return Some(self.send_final(node));
        }
        // A fetch cannot carry renewals, and one follows the other while the application waits: renewals go first.
        if open && wanted && fetch.is_some() && self.table.renewal_pending(node) {
            return self.send_pending(node, now);
        }
        if wanted && let Some(wait) = fetch {
            return Some(self.send_fetch(node, &self.wanted_partitions(node, now), wait));
        }
        if open && self.acks_overdue(node, now) {
            return self.send_pending(node, now);
        }
        None
    }

    /// All that is pending for a node, in a request of its own.
    fn send_pending(&mut self, node: i32, now: Instant) -> Option<Action> {
        let taken = self.table.take(node, true);
        if taken.is_empty() {
            return None;
        }
        let deadline = now + self.config.api_timeout;
        Some(self.send_group(node, Group { taken, commits: Vec::new(), not_before: None, deadline, tries: 0 }))
    }

    /// Partitions that only pause after an error keep their session.
    fn paused_here(&self, node: i32) -> bool {
        !self.closing && self.assignment.iter().any(|tp| self.leaders.get(tp).is_some_and(|l| l.id == node))
    }

    fn next_group(&mut self, node: i32, now: Instant) -> Option<Group> {
        let state = self.nodes.get_mut(&node)?;
        // While closing, what was refused once goes with the request that closes the session: no more waiting.
        let due = |g: &Group| if self.closing { g.tries == 0 } else { g.not_before.is_none_or(|t| t <= now) };
        let at = state.groups.iter().position(due)?;
        state.groups.remove(at)
    }

    /// In record-limit mode one broker at a time is asked, so that no more is locked than was asked for.
    fn may_fetch(&mut self, node: i32, now: Instant) -> bool {
        if !self.config.record_limit {
            return true;
        }
        let busy = |n: &NodeState| matches!(&n.in_flight, Some(InFlight { kind: InFlightKind::Fetch(_), .. }));
        if self.nodes.values().any(busy) {
            return false;
        }
        let able: Vec<i32> = self.nodes.keys().copied().filter(|n| self.wants_any(*n, now)).collect();
        let next = able.iter().find(|n| **n > self.turn).or(able.first());
        if next == Some(&node) {
            self.turn = node;
            return true;
        }
        false
    }

    /// Latest moment for pending acknowledgements to go out by themselves.
    fn ack_age_limit(&self) -> Duration {
        self.lock_timeout.map_or(self.config.max_ack_age, |lock| self.config.max_ack_age.min(lock / 4))
    }

    /// When the oldest pending acknowledgement goes out by itself.
    pub(super) fn acks_due(&self) -> Option<Instant> {
        self.table.oldest_pending().map(|since| since + self.ack_age_limit())
    }

    fn acks_overdue(&self, node: i32, now: Instant) -> bool {
        let Some(since) = self.table.pending_since(node) else { return false };
        self.closing || self.table.pending() >= self.config.max_acks_pending || now >= since + self.ack_age_limit()
    }

    fn next_token(&mut self) -> u64 {
        self.next_token += 1;
        self.next_token
    }

    fn start(&mut self, node: i32, taken: Vec<Taken>, commits: Vec<u64>, kind: InFlightKind) -> u64 {
        let token = self.next_token();
        let state = self.nodes.entry(node).or_default();
        state.in_flight = Some(InFlight { token, ask: None, taken, commits, tries: 0, deadline: None, kind });
        token
    }

    fn send_group(&mut self, node: i32, group: Group) -> Action {
        let epoch = self.nodes.get(&node).map_or(0, |n| n.session.epoch());
        let request = self.acknowledge_request(epoch, &group.taken);
        let token = self.start(node, group.taken, group.commits, InFlightKind::Acknowledge);
        if let Some(in_flight) = self.nodes.get_mut(&node).and_then(|n| n.in_flight.as_mut()) {
            in_flight.tries = group.tries;
            in_flight.deadline = Some(group.deadline);
        }
        Action::Acknowledge(node, token, request)
    }

    fn send_final(&mut self, node: i32) -> Action {
        let mut taken = self.table.take(node, false);
        let mut commits = Vec::new();
        if let Some(state) = self.nodes.get_mut(&node) {
            for group in std::mem::take(&mut state.groups) {
                taken.extend(group.taken);
                commits.extend(group.commits);
            }
        }
        // The close frees what a renewal would keep.
        for renewal in taken.iter_mut().filter(|t| is_renewal(t)).map(split_renewals).collect::<Vec<_>>() {
            self.table.finish(&renewal, Outcome::LockLost, None);
            self.note_result(&commits, renewal.tp, Outcome::LockLost);
        }
        taken.retain(|t| !t.batches.is_empty());
        taken.sort_by_key(|t| (t.tp, t.batches[0].first));
        let request = self.acknowledge_request(FINAL_EPOCH, &taken);
        let token = self.start(node, taken, commits, InFlightKind::Close);
        Action::Acknowledge(node, token, request)
    }

    fn send_fetch(&mut self, node: i32, wanted: &BTreeSet<TopicIdPartition>, wait: Duration) -> Action {
        self.owed = false;
        self.asked = true;
        let open = self.nodes.get(&node).is_some_and(|n| n.session.is_open());
        // Acknowledgements are not allowed in the request that opens a session; there cannot be any that still count.
        let taken = if open { self.table.take(node, false) } else { Vec::new() };
        let acked: BTreeSet<_> = taken.iter().map(|t| t.tp).collect();
        let plan = self.nodes.entry(node).or_default().session.plan_fetch(wanted, &acked);
        let request = self.fetch_request(&plan, &taken, wait);
        let token = self.start(node, taken, Vec::new(), InFlightKind::Fetch(plan));
        if let Some(in_flight) = self.nodes.get_mut(&node).and_then(|n| n.in_flight.as_mut()) {
            in_flight.ask = Some(self.next_ask);
            self.next_ask += 1;
        }
        Action::Fetch(node, token, request)
    }

    /// When the machine has something to do by itself.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Instant> {
        let nodes = self.nodes.iter().filter(|(_, n)| n.in_flight.is_none()).flat_map(|(id, n)| {
            let acks = self.table.pending_since(*id).filter(|_| n.session.is_open()).map(|t| t + self.ack_age_limit());
            let groups = n.groups.iter().filter_map(|g| g.not_before).min();
            [n.not_before, acks, groups]
        });
        let metadata = self.metadata.due.filter(|_| !self.metadata.in_flight && !self.subscription.is_empty());
        let paused = self.paused.values().copied();
        // The group is left after the last session; an answer wakes for that.
        let heartbeat = self.membership.next_deadline().map(|at| match self.leave_due() {
            Some(leave) if !self.sessions_closed() => at.max(leave),
            _ => at,
        });
        let extension = self.table.extension_due().filter(|_| !self.closing);
        let renewal = self.aside_renewal_due().filter(|_| !self.closing);
        let aside = self.aside_due().into_iter().chain(renewal);
        nodes.flatten().chain(metadata).chain(paused).chain(heartbeat).chain(extension).chain(aside).min()
    }

    /// Time has passed: pauses end, locks expire, commits that were tried too long end.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.paused.retain(|_, until| *until > now);
        let mut late = Vec::new();
        for state in self.nodes.values_mut() {
            if state.not_before.is_some_and(|at| at <= now) {
                state.not_before = None;
            }
            while let Some(at) = state.groups.iter().position(|g| g.tries > 0 && g.deadline <= now) {
                late.extend(state.groups.remove(at));
            }
        }
        for group in late {
            let outcome = Outcome::Refused(kafka_share_messages::ErrorCode::REQUEST_TIMED_OUT);
            self.end(&group.taken, &group.commits, outcome);
        }
        if !self.closing {
            self.extend_locks(now);
            self.renew_aside(now);
            self.wake_aside(now);
        }
        if let Some(before) = now.checked_sub(super::LOCK_GRACE) {
            self.table.expire(before);
            self.deferred.retain(|d| d.lock_until > before);
            self.drop_dead_buffers();
        }
    }

    /// Renews locks that the application needs for longer.
    fn extend_locks(&mut self, now: Instant) {
        let pause = self.assumed_lock() / 3;
        for (node, taken) in self.table.take_extensions(now, pause) {
            let deadline = now + self.config.api_timeout;
            let group = Group { taken, commits: Vec::new(), not_before: None, deadline, tries: 0 };
            self.nodes.entry(node).or_default().groups.push_back(group);
        }
    }
}

pub(super) fn is_renewal(taken: &Taken) -> bool {
    taken.batches.iter().any(|b| b.types.contains(&AckType::Renew.code()))
}

/// Takes the renewals out.
fn split_renewals(taken: &mut Taken) -> Taken {
    let mut renewals = Taken { slot: taken.slot, ask: taken.ask, tp: taken.tp, batches: Vec::new() };
    for batch in std::mem::take(&mut taken.batches) {
        for offset in batch.first..=batch.last {
            let at = (offset - batch.first) as usize;
            let kind = batch.types.get(at).copied().unwrap_or(batch.types[0]);
            let to = if kind == AckType::Renew.code() { &mut renewals } else { &mut *taken };
            to.batches.push(AckBatch { first: offset, last: offset, types: vec![kind] });
        }
    }
    renewals
}
