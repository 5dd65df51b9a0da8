//! Share sessions of all nodes: per node, group and member one, bound to a connection.

use crate::ConnId;
use crate::cluster::Refusal;
use kafka_share_messages::ErrorCode;
use kafka_share_wire::{Str, Uuid};
use std::collections::{BTreeMap, HashMap, HashSet};

/// Epoch that opens a session.
pub(crate) const OPEN: i32 = 0;
/// Epoch that closes one.
pub(crate) const CLOSE: i32 = -1;

/// Whose session, at which node.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct SessionKey {
    pub(crate) node: i32,
    pub(crate) group: Str,
    pub(crate) member: Str,
}

/// A share session.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) conn: ConnId,
    /// Expected of the next request.
    pub(crate) epoch: i32,
    /// In the order they were added.
    pub(crate) partitions: Vec<(Uuid, i32)>,
    /// The same.
    known: HashSet<(Uuid, i32)>,
}

impl Session {
    pub(crate) fn add(&mut self, partition: (Uuid, i32)) {
        if self.known.insert(partition) {
            self.partitions.push(partition);
        }
    }

    pub(crate) fn forget(&mut self, partitions: impl Iterator<Item = (Uuid, i32)>) {
        let before = self.known.len();
        partitions.for_each(|partition| {
            self.known.remove(&partition);
        });
        if self.known.len() < before {
            self.partitions.retain(|partition| self.known.contains(partition));
        }
    }

    fn advance(&mut self) {
        self.epoch = if self.epoch == i32::MAX { 1 } else { self.epoch + 1 };
    }
}

/// All sessions.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    sessions: BTreeMap<SessionKey, Session>,
    by_conn: HashMap<ConnId, Vec<SessionKey>>,
    per_node: HashMap<i32, usize>,
}

impl Sessions {
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&SessionKey, &Session)> {
        self.sessions.iter()
    }

    pub(crate) fn get_mut(&mut self, key: &SessionKey) -> Option<&mut Session> {
        self.sessions.get_mut(key)
    }

    /// Opens a session in place of one that may be there, at epoch 1. Refused where the node has too many.
    pub(crate) fn open(&mut self, key: SessionKey, conn: ConnId, limit: usize) -> Result<&mut Session, Refusal> {
        self.remove(&key);
        let open = self.per_node.entry(key.node).or_default();
        if *open >= limit {
            let why = "The limit of share sessions has been reached.";
            return Err(Refusal::new(ErrorCode::SHARE_SESSION_LIMIT_REACHED, why));
        }
        *open += 1;
        let key = SessionKey { node: key.node, group: key.group.detached(), member: key.member.detached() };
        self.by_conn.entry(conn).or_default().push(key.clone());
        Ok(self.sessions.entry(key).or_insert(Session {
            conn,
            epoch: 1,
            partitions: Vec::new(),
            known: HashSet::new(),
        }))
    }

    /// The session that a request with `epoch` belongs to, moved on to the next epoch unless it is the last.
    pub(crate) fn enter(&mut self, key: &SessionKey, epoch: i32) -> Result<&mut Session, Refusal> {
        let none = || Refusal::new(ErrorCode::SHARE_SESSION_NOT_FOUND, "");
        let session = self.sessions.get_mut(key).ok_or_else(none)?;
        if epoch == CLOSE {
            return Ok(session);
        }
        if epoch != session.epoch {
            return Err(Refusal::new(ErrorCode::INVALID_SHARE_SESSION_EPOCH, ""));
        }
        session.advance();
        Ok(session)
    }

    pub(crate) fn remove(&mut self, key: &SessionKey) -> Option<Session> {
        let session = self.sessions.remove(key)?;
        if let Some(open) = self.per_node.get_mut(&key.node) {
            *open -= 1;
        }
        if let Some(keys) = self.by_conn.get_mut(&session.conn) {
            keys.retain(|other| other != key);
            if keys.is_empty() {
                self.by_conn.remove(&session.conn);
            }
        }
        Some(session)
    }

    /// Sessions of a connection.
    pub(crate) fn of_conn(&self, conn: ConnId) -> Vec<SessionKey> {
        self.by_conn.get(&conn).cloned().unwrap_or_default()
    }
}
