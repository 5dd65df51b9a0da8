//! The sessions of all nodes. A full cache gives a new session the place of one that was long unused, or of a smaller one
//! that has had its time; otherwise the reader goes without.

use super::session::{CachedPartition, Followed, PartitionKey, Seen, Session};
use super::{Context, INITIAL};
use crate::rng::Rng;
use kafka_share_messages::{ErrorCode, FetchRequest};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Limits of a node's cache.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// `max.incremental.fetch.session.cache.slots`.
    pub(crate) slots: usize,
    /// `min.incremental.fetch.session.eviction.ms`.
    pub(crate) eviction: Duration,
    /// Bytes of one session; a reader of more goes without.
    pub(crate) session_bytes: usize,
    /// Bytes of all sessions of a node.
    pub(crate) total_bytes: usize,
}

#[derive(Debug, Default)]
struct Cache {
    sessions: BTreeMap<i32, Session>,
    by_use: BTreeSet<(Duration, i32)>,
    weight: usize,
}

/// The sessions of all nodes.
#[derive(Debug)]
pub(crate) struct FetchSessions {
    limits: Limits,
    nodes: BTreeMap<i32, Cache>,
}

impl FetchSessions {
    pub(crate) fn new(limits: Limits) -> Self {
        FetchSessions { limits, nodes: BTreeMap::new() }
    }

    /// Sessions of all nodes: node, id, epoch, partitions.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (i32, i32, i32, usize)> {
        self.nodes.iter().flat_map(|(node, cache)| {
            cache.sessions.iter().map(|(id, session)| (*node, *id, session.epoch, session.len()))
        })
    }

    #[cfg(test)]
    pub(super) fn set_epoch(&mut self, node: i32, id: i32, epoch: i32) {
        if let Some(session) = self.nodes.get_mut(&node).and_then(|cache| cache.sessions.get_mut(&id)) {
            session.epoch = epoch;
        }
    }

    pub(super) fn remove(&mut self, node: i32, id: i32) {
        if let Some(cache) = self.nodes.get_mut(&node) {
            cache.remove(id);
        }
    }

    /// A node that stops forgets its sessions.
    pub(crate) fn forget_node(&mut self, node: i32) {
        self.nodes.remove(&node);
    }

    /// A request of an open session.
    pub(super) fn advance(
        &mut self,
        now: Duration,
        node: i32,
        request: &FetchRequest,
        by_id: bool,
    ) -> Result<(Context, Vec<Followed>), ErrorCode> {
        let unknown = ErrorCode::FETCH_SESSION_ID_NOT_FOUND;
        let limits = self.limits;
        let cache = self.nodes.get_mut(&node).ok_or(unknown)?;
        let id = request.session_id;
        let session = cache.sessions.get_mut(&id).ok_or(unknown)?;
        if session.epoch != request.session_epoch {
            return Err(ErrorCode::INVALID_FETCH_SESSION_EPOCH);
        }
        if session.by_id != by_id {
            return Err(ErrorCode::FETCH_SESSION_TOPIC_ID_ERROR);
        }
        let before = session.weight;
        session.change(request);
        cache.weight = cache.weight - before + session.weight;
        if session.len() == 0 {
            cache.remove(id);
            return Ok((Context::Sessionless, super::session::asked(request, by_id)));
        }
        if session.weight > limits.session_bytes || cache.weight > limits.total_bytes {
            cache.remove(id);
            return Err(unknown);
        }
        session.epoch = if session.epoch == i32::MAX { INITIAL + 1 } else { session.epoch + 1 };
        let (epoch, followed) = (session.epoch, session.followed());
        cache.touch(now, id);
        Ok((Context::Incremental { session: id, epoch }, followed))
    }

    /// Opens a session if there is room; gives its id, 0 for none.
    pub(crate) fn open(
        &mut self,
        now: Duration,
        node: i32,
        by_id: bool,
        partitions: Vec<CachedPartition>,
        rng: &mut Rng,
    ) -> i32 {
        let limits = self.limits;
        let cache = self.nodes.entry(node).or_default();
        let session = Session::new(now, by_id, partitions);
        if session.weight > limits.session_bytes
            || (cache.sessions.len() >= limits.slots && !cache.evict(now, session.len(), limits.eviction))
            || cache.weight + session.weight > limits.total_bytes
        {
            return 0;
        }
        let id = loop {
            let id = (rng.next_u64() >> 33) as i32;
            if id != 0 && !cache.sessions.contains_key(&id) {
                break id;
            }
        };
        cache.weight += session.weight;
        cache.by_use.insert((now, id));
        cache.sessions.insert(id, session);
        id
    }

    /// Which of an answer's partitions are told. An error where the session went on while the request waited; a session that
    /// is gone filters nothing.
    pub(crate) fn tell(
        &mut self,
        node: i32,
        (id, epoch): (i32, i32),
        seen: &[(PartitionKey, Seen)],
    ) -> Result<Vec<bool>, ErrorCode> {
        let Some(session) = self.nodes.get_mut(&node).and_then(|cache| cache.sessions.get_mut(&id)) else {
            return Ok(vec![true; seen.len()]);
        };
        if session.epoch != epoch {
            return Err(ErrorCode::INVALID_FETCH_SESSION_EPOCH);
        }
        Ok(seen.iter().map(|(key, seen)| session.tell(key, seen)).collect())
    }
}

impl Cache {
    fn remove(&mut self, id: i32) {
        if let Some(session) = self.sessions.remove(&id) {
            self.by_use.remove(&(session.last_used, id));
            self.weight -= session.weight;
        }
    }

    fn touch(&mut self, now: Duration, id: i32) {
        if let Some(session) = self.sessions.get_mut(&id) {
            self.by_use.remove(&(session.last_used, id));
            session.last_used = now;
            self.by_use.insert((now, id));
        }
    }

    /// Makes room for a session of `size` partitions.
    fn evict(&mut self, now: Duration, size: usize, eviction: Duration) -> bool {
        let stale = self.by_use.first().filter(|(used, _)| now.saturating_sub(*used) > eviction).map(|(_, id)| *id);
        let small = || {
            let had_its_time = |session: &&Session| now.saturating_sub(session.created) > eviction;
            let old = self.sessions.iter().filter(|(_, session)| had_its_time(session));
            old.min_by_key(|(id, session)| (session.len(), **id)).filter(|(_, s)| s.len() <= size).map(|(id, _)| *id)
        };
        let Some(id) = stale.or_else(small) else { return false };
        self.remove(id);
        true
    }
}
