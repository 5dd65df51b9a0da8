//! Requests that wait: a table keyed by what they wait for and by deadline.

use super::Cluster;
use super::connections::Busy;
use crate::Now;
use crate::api::{Answer, RequestContext};
use kafka_share_wire::{Str, Uuid};
use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::time::Duration;

/// Something that requests wait for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum WaitKey {
    /// Records or a last stable offset of a partition, or its leader.
    Partition(Uuid, i32),
    /// Records of a share-partition that can be acquired.
    SharePartition(Str, Uuid, i32),
}

/// A request that cannot be answered yet.
pub(crate) trait Parked: Send {
    /// Tries again; `expired` says that its time is over and it must answer with what there is.
    fn resume(&mut self, cluster: &mut Cluster, ctx: &RequestContext, expired: bool) -> Option<Answer>;
}

pub(crate) type WaiterId = u64;

struct Waiter {
    ctx: RequestContext,
    deadline: Duration,
    keys: Vec<WaitKey>,
    parked: Box<dyn Parked>,
}

#[derive(Default)]
pub(super) struct Waiters {
    next: WaiterId,
    waiters: HashMap<WaiterId, Waiter>,
    by_key: HashMap<WaitKey, BTreeSet<WaiterId>>,
    by_deadline: BTreeSet<(Duration, WaiterId)>,
    woken: BTreeSet<WaiterId>,
}

impl fmt::Debug for Waiters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Waiters").field("waiting", &self.waiters.len()).finish_non_exhaustive()
    }
}

impl Waiters {
    pub(super) fn len(&self) -> usize {
        self.waiters.len()
    }

    pub(super) fn next_deadline(&self) -> Option<Duration> {
        self.by_deadline.first().map(|(deadline, _)| *deadline)
    }

    fn insert(&mut self, waiter: Waiter) -> WaiterId {
        let id = self.next;
        self.next += 1;
        for key in &waiter.keys {
            self.by_key.entry(key.clone()).or_default().insert(id);
        }
        self.by_deadline.insert((waiter.deadline, id));
        self.waiters.insert(id, waiter);
        id
    }

    pub(super) fn remove(&mut self, id: WaiterId) {
        self.take(id);
    }

    fn take(&mut self, id: WaiterId) -> Option<Waiter> {
        let waiter = self.waiters.remove(&id)?;
        self.by_deadline.remove(&(waiter.deadline, id));
        self.woken.remove(&id);
        for key in &waiter.keys {
            if let Some(ids) = self.by_key.get_mut(key) {
                ids.remove(&id);
                if ids.is_empty() {
                    self.by_key.remove(key);
                }
            }
        }
        Some(waiter)
    }
}

impl Cluster {
    /// Has everything that waits for `key` tried again before the current call into the machine ends.
    pub(crate) fn wake(&mut self, key: &WaitKey) {
        // Whoever changes a log wakes its readers.
        if let WaitKey::Partition(topic, partition) = key {
            self.dirty.log((*topic, *partition));
        }
        if let Some(ids) = self.waiters.by_key.get(key) {
            self.waiters.woken.extend(ids.iter().copied());
        }
    }

    pub(super) fn park(
        &mut self,
        ctx: RequestContext,
        deadline: Duration,
        keys: Vec<WaitKey>,
        parked: Box<dyn Parked>,
    ) {
        let conn = ctx.conn;
        let id = self.waiters.insert(Waiter { ctx, deadline, keys, parked });
        if let Some(connection) = self.connections.get_mut(conn) {
            connection.state = Busy::Parked(id);
        }
    }

    pub(crate) fn run_woken(&mut self, now: Now) {
        while let Some(id) = self.waiters.woken.pop_first() {
            self.resume(now, id, false);
        }
    }

    pub(super) fn expire_waiters(&mut self, now: Now) {
        while let Some((deadline, id)) = self.waiters.by_deadline.first().copied() {
            if deadline > now.mono {
                return;
            }
            self.resume(now, id, true);
        }
    }

    fn resume(&mut self, now: Now, id: WaiterId, expired: bool) {
        let Some(mut waiter) = self.waiters.take(id) else { return };
        waiter.ctx.now = now;
        let conn = waiter.ctx.conn;
        let answer = waiter.parked.resume(self, &waiter.ctx, expired);
        let Some(connection) = self.connections.get_mut(conn) else { return };
        match answer {
            Some(answer) => {
                connection.state = Busy::Idle;
                // A fault may park the answer once more.
                self.finish(&waiter.ctx, answer);
                self.drain(now, conn);
            }
            // An expired request is asked only once more: it has to answer.
            None if expired => {
                connection.state = Busy::Stuck;
                debug_assert!(false, "an expired request did not answer");
            }
            None => {
                let id = self.waiters.insert(waiter);
                connection.state = Busy::Parked(id);
            }
        }
    }

    /// Requests that wait, such as fetches of partitions without news.
    #[must_use]
    pub fn waiting_requests(&self) -> usize {
        self.waiters.len()
    }
}
