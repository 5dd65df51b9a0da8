//! Faults on request: what a test wants to go wrong, and when.
//!
//! A [`Fault`] picks requests (by API key, node, and how many to let pass first) and says what happens to them. Faults are
//! asked in the order they were injected; the first that matches is used up once per request.
//! Dead letters (KIP-1191) are written as Kafka's leader does, so a fault of Produce may pick such a write: an error, a
//! closed or an ignored request make it fail.

use crate::CoordinatorKind;
use bytes::Bytes;
use kafka_share_messages::{ApiKey, ErrorCode, Message};
use kafka_share_wire::Writer;
use std::sync::Arc;
use std::time::Duration;

/// What happens to a request that a fault picked.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum FaultAction {
    /// The request is not served; the answer carries this error wherever it has room for one.
    Error(ErrorCode),
    /// The request is not served and the connection closed.
    Close,
    /// The request is not served and never answered, nor is anything after it on the connection, which stays open.
    Ignore,
    /// The request is served and answered this much later.
    Delay(Duration),
    /// The request is served, its answer lost and the connection closed.
    ApplyAndClose,
    /// The request is served; this many bytes of the answer (size prefix included) are sent, then the connection closes.
    CutAfter(usize),
    /// The request is served; its answer lacks this many bytes at the end, under a size prefix that fits.
    Truncate(usize),
    /// The request is served; the answer's correlation id is changed by this much.
    ShiftCorrelationId(i32),
    /// The request is served; this makes the body of the answer another one. It sees every answer that the fault picks,
    /// so that a test may also only look at them.
    Rewrite(Rewrite),
    /// Before the request is served, the partition gets this leader.
    MoveLeader {
        /// The topic's name.
        topic: String,
        /// The partition.
        partition: i32,
        /// The new leader.
        node: i32,
    },
    /// Before the request is served, the coordinator of a key moves to this node, with all keys that share its partition
    /// of the internal topic.
    MoveCoordinator {
        /// What it coordinates.
        kind: CoordinatorKind,
        /// The group id, the transactional id, or `group:topic id:partition`.
        key: String,
        /// The new coordinator.
        node: i32,
    },
    /// Before the request is served, all acquisition locks of this share group expire.
    ExpireLocks(String),
    /// Before the request is served, the broker's clocks jump ahead, and what was due meanwhile happens.
    AdvanceClock(Duration),
    /// Before the request is served, the node restarts. If it is the node that was asked, the request is lost.
    RestartNode(i32),
}

/// What [`FaultAction::Rewrite`] does: from the version of the request and the encoded body of its answer (all of the frame
/// behind the response header) to the body that is sent.
///
/// ```
/// use kafka_share_broker::{FaultAction, Rewrite};
/// use kafka_share_messages::{ShareAcknowledgeResponse, Message};
///
/// let slow = Rewrite::message(|_version, answer: &mut ShareAcknowledgeResponse| answer.throttle_time_ms = 300);
/// let raw = Rewrite::new(|_version, body| body.into_iter().rev().collect());
/// # let _ = (FaultAction::Rewrite(slow), FaultAction::Rewrite(raw));
/// ```
#[derive(Clone)]
pub struct Rewrite(Arc<RewriteBody>);

type RewriteBody = dyn Fn(i16, Vec<u8>) -> Vec<u8> + Send + Sync;

impl Rewrite {
    /// From bytes to bytes.
    pub fn new(change: impl Fn(i16, Vec<u8>) -> Vec<u8> + Send + Sync + 'static) -> Self {
        Rewrite(Arc::new(change))
    }

    /// Changes the decoded answer. An answer that is no `M`, or cannot be encoded once changed, is sent as it was.
    pub fn message<M: Message>(change: impl Fn(i16, &mut M) + Send + Sync + 'static) -> Self {
        Self::new(move |version, body| {
            let Ok(mut message) = M::decode_all(Bytes::from(body.clone()), version) else { return body };
            change(version, &mut message);
            let mut writer = Writer::new();
            match message.encode(&mut writer, version) {
                Ok(()) => writer.into_bytes().to_vec(),
                Err(error) => {
                    tracing::error!(%error, "a rewritten answer cannot be encoded");
                    body
                }
            }
        })
    }

    pub(crate) fn apply(&self, version: i16, body: Vec<u8>) -> Vec<u8> {
        (self.0)(version, body)
    }
}

impl std::fmt::Debug for Rewrite {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Rewrite")
    }
}

impl PartialEq for Rewrite {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Rewrite {}

/// A fault to inject.
///
/// ```
/// use kafka_share_broker::{Fault, FaultAction};
/// use kafka_share_messages::{ApiKey, ErrorCode};
///
/// // The third and fourth produce request to node 2 are refused.
/// let fault = Fault::new(FaultAction::Error(ErrorCode::NOT_LEADER_OR_FOLLOWER))
///     .key(ApiKey::PRODUCE)
///     .node(2)
///     .skip(2)
///     .times(2);
/// # let _ = fault;
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub struct Fault {
    action: FaultAction,
    key: Option<ApiKey>,
    node: Option<i32>,
    skip: u32,
    times: u32,
}

impl Fault {
    /// Happens to the next request of any kind, once.
    pub fn new(action: FaultAction) -> Self {
        Fault { action, key: None, node: None, skip: 0, times: 1 }
    }

    /// Only requests of this API.
    pub fn key(mut self, key: ApiKey) -> Self {
        self.key = Some(key);
        self
    }

    /// Only requests to this node.
    pub fn node(mut self, node: i32) -> Self {
        self.node = Some(node);
        self
    }

    /// Lets this many matching requests pass first.
    pub fn skip(mut self, count: u32) -> Self {
        self.skip = count;
        self
    }

    /// Happens to this many requests. Default 1; `u32::MAX` does not end.
    pub fn times(mut self, count: u32) -> Self {
        self.times = count;
        self
    }
}

/// Names an injected fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FaultId(u64);

/// What is done to the answer of a request that was served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AnswerFault {
    Delay(Duration),
    Lose,
    CutAfter(usize),
    Truncate(usize),
    ShiftCorrelationId(i32),
    Rewrite(Rewrite),
}

#[derive(Debug)]
struct Injected {
    id: FaultId,
    fault: Fault,
    hits: u32,
}

/// All injected faults.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    next: u64,
    injected: Vec<Injected>,
}

impl Faults {
    pub(crate) fn inject(&mut self, fault: Fault) -> FaultId {
        let id = FaultId(self.next);
        self.next += 1;
        self.injected.push(Injected { id, fault, hits: 0 });
        id
    }

    pub(crate) fn remove(&mut self, id: FaultId) {
        self.injected.retain(|injected| injected.id != id);
    }

    pub(crate) fn clear(&mut self) {
        self.injected.clear();
    }

    pub(crate) fn hits(&self, id: FaultId) -> u32 {
        self.injected.iter().find(|injected| injected.id == id).map_or(0, |injected| injected.hits)
    }

    /// The action for a request, if a fault picks it.
    pub(crate) fn pick(&mut self, node: i32, key: ApiKey) -> Option<FaultAction> {
        for injected in &mut self.injected {
            let fault = &mut injected.fault;
            let matches = fault.key.is_none_or(|k| k == key) && fault.node.is_none_or(|n| n == node);
            if !matches || fault.times == 0 {
                continue;
            }
            if fault.skip > 0 {
                fault.skip -= 1;
                continue;
            }
            if fault.times != u32::MAX {
                fault.times -= 1;
            }
            injected.hits += 1;
            return Some(fault.action.clone());
        }
        None
    }
}
