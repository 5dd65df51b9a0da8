//! Which partitions are looked at: those that something happened to, those whose time has come, and those that waited
//! for their leader. Never all of them.

use super::Producer;
use super::partition::Partition;
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::time::Instant;

/// What is to be done next.
#[derive(Debug, Default)]
pub(super) struct Agenda {
    /// Partitions that something happened to.
    changed: VecDeque<usize>,
    /// When each partition is due, apart from answers; see [`Partition::timer`].
    timers: BTreeSet<(Instant, usize)>,
    /// Due, but without a leader or not in the transaction yet.
    held: BTreeSet<usize>,
    /// By leader.
    pub(super) brokers: HashMap<i32, Broker>,
    /// Batches that are not done.
    pub(super) batches: usize,
    /// When the machine is polled again at the latest.
    pub(super) armed: Option<Instant>,
}

/// What a broker has and will get.
#[derive(Debug, Default)]
pub(super) struct Broker {
    pub(super) in_flight: usize,
    /// Partitions that are due, in the order in which they became so.
    pub(super) ready: VecDeque<usize>,
}

impl Agenda {
    /// Something happened to the partition: it is looked at in the next poll.
    pub(super) fn note(&mut self, partition: &mut Partition, at: usize) {
        if !partition.noted {
            partition.noted = true;
            self.changed.push_back(at);
        }
    }

    pub(super) fn next_timer(&self) -> Option<Instant> {
        self.timers.first().map(|(at, _)| *at)
    }

    /// Sets the partition's timer to the earliest of its deadlines that is still to come.
    pub(super) fn set_timer(&mut self, partition: &mut Partition, at: usize, next: Option<Instant>) {
        if partition.timer == next {
            return;
        }
        if let Some(old) = partition.timer {
            self.timers.remove(&(old, at));
        }
        partition.timer = next;
        self.timers.extend(next.map(|next| (next, at)));
    }
}

impl Producer {
    /// As [`Agenda::note`].
    pub(super) fn note(&mut self, at: usize) {
        self.agenda.note(&mut self.partitions[at], at);
    }

    /// Looks again at all that have something to send.
    pub(super) fn note_all(&mut self) {
        for (at, partition) in self.partitions.iter_mut().enumerate().filter(|(_, p)| !p.is_idle()) {
            self.agenda.note(partition, at);
        }
    }

    /// Looks again at those that were held up.
    pub(super) fn note_held(&mut self) {
        for at in std::mem::take(&mut self.agenda.held) {
            self.note(at);
        }
    }

    /// Notes the partitions whose time has come.
    pub(super) fn wake_up(&mut self, now: Instant) {
        while let Some((moment, at)) = self.agenda.timers.first().copied().filter(|(moment, _)| *moment <= now) {
            self.agenda.timers.remove(&(moment, at));
            self.partitions[at].timer = None;
            self.note(at);
        }
    }

    /// Looks at what was noted: gives up what is too old, and lines up behind its leader what is due.
    pub(super) fn look(&mut self, now: Instant) {
        while let Some(at) = self.agenda.changed.pop_front() {
            self.partitions[at].noted = false;
            self.expire(now, at);
            let fresh = self.may_number();
            let partition = &mut self.partitions[at];
            if partition.next(now, self.config.linger, self.config.max_in_flight, fresh).is_some() {
                if partition.leader < 0 {
                    self.agenda.held.insert(at);
                    let name = self.topics[partition.topic].name.clone();
                    self.mark_stale(now, name);
                } else if partition.lined_up != Some(partition.leader) {
                    partition.lined_up = Some(partition.leader);
                    self.agenda.brokers.entry(partition.leader).or_default().ready.push_back(at);
                }
            }
            self.schedule(now, at);
        }
    }

    /// What has come due by now was done, or waits for an answer.
    pub(super) fn schedule(&mut self, now: Instant, at: usize) {
        let partition = &mut self.partitions[at];
        let (linger, delivery) = (self.config.linger, self.config.delivery_timeout);
        let next = partition.deadlines(linger, delivery).filter(|moment| *moment > now).min();
        self.agenda.set_timer(partition, at, next);
    }

    /// The partition's leader is free; `None` where it has nothing to send to it after all.
    pub(super) fn take_ready(&mut self, now: Instant, node: i32) -> Option<(usize, super::partition::Next)> {
        loop {
            let at = self.agenda.brokers.get_mut(&node)?.ready.pop_front()?;
            let fresh = self.may_number();
            let partition = &mut self.partitions[at];
            // It may have moved to another broker, and stand in line there.
            if partition.lined_up != Some(node) {
                continue;
            }
            partition.lined_up = None;
            if partition.leader != node {
                self.note(at);
                continue;
            }
            let Some(next) = partition.next(now, self.config.linger, self.config.max_in_flight, fresh) else {
                continue;
            };
            if self.may_join(at) {
                return Some((at, next));
            }
            self.agenda.held.insert(at);
        }
    }
}
