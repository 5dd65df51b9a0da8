//! ShareGroupHeartbeat: joining, staying, leaving.

use super::{GroupCoordinator, Member, ShareGroup, TopicPartition};
use crate::cluster::Refusal;
use kafka_share_messages::ErrorCode;
use kafka_share_wire::{Str, Uuid};
use std::collections::BTreeSet;
use std::time::Duration;

/// Member epoch of a member that joins.
const JOIN: i32 = 0;
/// Member epoch of a member that leaves.
const LEAVE: i32 = -1;

/// A heartbeat and what it is judged by.
pub(crate) struct Heartbeat<'a> {
    pub(crate) group: &'a Str,
    pub(crate) member: &'a Str,
    pub(crate) epoch: i32,
    pub(crate) rack: Option<&'a Str>,
    pub(crate) topics: Option<&'a [Str]>,
    pub(crate) client_id: &'a Str,
    pub(crate) session_timeout_ms: i64,
    pub(crate) assignment_interval_ms: i64,
    pub(crate) max_members: usize,
    /// Id and partitions of a topic that exists.
    pub(crate) lookup: &'a dyn Fn(&str) -> Option<(Uuid, i32)>,
}

/// What a member learns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HeartbeatReply {
    pub(crate) epoch: i32,
    /// Where it changed, the member joined, or the request was a full one (with topics).
    pub(crate) assignment: Option<BTreeSet<TopicPartition>>,
}

fn refuse<T>(code: ErrorCode, why: impl Into<String>) -> Result<T, Refusal> {
    Err(Refusal::new(code, why))
}

impl Heartbeat<'_> {
    fn check(&self) -> Result<(), Refusal> {
        let bad = |why: &str| refuse(ErrorCode::INVALID_REQUEST, why);
        if self.member.trim().is_empty() {
            return bad("MemberId can't be empty.");
        }
        if self.group.trim().is_empty() {
            return bad("GroupId can't be empty.");
        }
        if self.rack.is_some_and(|rack| rack.trim().is_empty()) {
            return bad("RackId can't be empty.");
        }
        if self.epoch == JOIN && self.topics.is_none_or(<[Str]>::is_empty) {
            return bad("SubscribedTopicNames must be set in first request.");
        }
        if self.epoch < LEAVE {
            return bad("MemberEpoch is invalid.");
        }
        Ok(())
    }
}

impl GroupCoordinator {
    /// Serves a heartbeat.
    pub(crate) fn heartbeat(&mut self, now: Duration, beat: &Heartbeat<'_>) -> Result<HeartbeatReply, Refusal> {
        beat.check()?;
        if beat.epoch == JOIN {
            self.groups.entry(beat.group.detached()).or_default();
        }
        let Some(group) = self.groups.get_mut(beat.group.as_str()) else {
            let why = format!("Group {} not found.", beat.group.as_str());
            return refuse(ErrorCode::GROUP_ID_NOT_FOUND, why);
        };
        let known = group.check_member(beat)?;
        if let Some(deadline) = known {
            self.deadlines.remove(&(deadline, beat.group.clone(), beat.member.clone()));
        }
        if beat.epoch == LEAVE {
            group.remove(beat.member);
            return Ok(HeartbeatReply { epoch: LEAVE, assignment: None });
        }
        let deadline = now + Duration::from_millis(u64::try_from(beat.session_timeout_ms).unwrap_or(0));
        let before = group.epoch;
        group.update_member(beat, deadline);
        self.deadlines.insert((deadline, beat.group.detached(), beat.member.detached()));
        group.refresh_topics(beat.lookup);
        // One heartbeat is one change, whatever it changes.
        group.epoch = group.epoch.min(before + 1);
        group.assign(now, beat.assignment_interval_ms);
        Ok(group.reconcile(beat))
    }
}

impl ShareGroup {
    /// Checks the member and its epoch; gives the deadline of one that is known.
    fn check_member(&self, beat: &Heartbeat<'_>) -> Result<Option<Duration>, Refusal> {
        let name = beat.member.as_str();
        let Some(member) = self.members.get(name) else {
            if beat.epoch != JOIN {
                let why = format!("Member {name} is not a member of group {}.", beat.group.as_str());
                return refuse(ErrorCode::UNKNOWN_MEMBER_ID, why);
            }
            if self.members.len() >= beat.max_members {
                let why = format!("The share group has reached its maximum capacity of {} members.", beat.max_members);
                return refuse(ErrorCode::GROUP_MAX_SIZE_REACHED, why);
            }
            return Ok(None);
        };
        if beat.epoch > member.epoch {
            let why = format!(
                "The share group member has a greater member epoch ({}) than the one known by the group coordinator \
                 ({}). The member must abandon all its partitions and rejoin.",
                beat.epoch, member.epoch
            );
            return refuse(ErrorCode::FENCED_MEMBER_EPOCH, why);
        }
        if beat.epoch > JOIN && beat.epoch < member.epoch && beat.epoch != member.previous_epoch {
            let why = format!(
                "The share group member has a smaller member epoch ({}) than the one known by the group coordinator \
                 ({}). The member must abandon all its partitions and rejoin.",
                beat.epoch, member.epoch
            );
            return refuse(ErrorCode::FENCED_MEMBER_EPOCH, why);
        }
        Ok(Some(member.deadline))
    }

    /// Adds the member or takes over what it says of itself; a new subscription raises the group's epoch.
    fn update_member(&mut self, beat: &Heartbeat<'_>, deadline: Duration) {
        let sorted = |topics: &[Str]| {
            let mut topics: Vec<Str> = topics.iter().map(Str::detached).collect();
            topics.sort_unstable();
            topics.dedup();
            topics
        };
        let topics = beat.topics.map(sorted);
        if let Some(member) = self.members.get_mut(beat.member.as_str()) {
            member.deadline = deadline;
            member.client_id = beat.client_id.detached();
            if let Some(rack) = beat.rack {
                member.rack = Some(rack.detached());
            }
            if let Some(topics) = topics.filter(|topics| *topics != member.topics) {
                member.topics = topics;
                self.epoch += 1;
            }
            return;
        }
        self.epoch += 1;
        let member = Member {
            epoch: JOIN,
            previous_epoch: LEAVE,
            client_id: beat.client_id.detached(),
            rack: beat.rack.map(Str::detached),
            topics: topics.unwrap_or_default(),
            assigned: BTreeSet::new(),
            target: BTreeSet::new(),
            deadline,
        };
        self.members.insert(beat.member.detached(), member);
    }

    /// Brings the member to the group's assignment.
    fn reconcile(&mut self, beat: &Heartbeat<'_>) -> HeartbeatReply {
        let epoch = self.assignment_epoch;
        let Some(member) = self.members.get_mut(beat.member.as_str()) else {
            return HeartbeatReply { epoch, assignment: None };
        };
        if member.epoch != epoch {
            member.previous_epoch = std::mem::replace(&mut member.epoch, epoch);
        }
        let changed = member.assigned != member.target;
        if changed {
            member.assigned = member.target.clone();
        }
        let told = changed || beat.epoch == JOIN || beat.topics.is_some();
        HeartbeatReply { epoch, assignment: told.then(|| member.assigned.clone()) }
    }
}

#[cfg(test)]
mod tests;
