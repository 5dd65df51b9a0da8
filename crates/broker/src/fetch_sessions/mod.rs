//! Incremental fetch sessions (KIP-227): per node a bounded cache of what readers follow, so that requests name only what
//! changes and answers only what is new.

mod cache;
mod session;

pub(crate) use cache::{FetchSessions, Limits};
pub(crate) use session::{CachedPartition, Followed, Seen};

use kafka_share_messages::{ErrorCode, FetchRequest};

/// Epoch of a request that opens a session.
const INITIAL: i32 = 0;
/// Epoch of a request that wants none, and ends the one it names.
const FINAL: i32 = -1;

/// How a fetch relates to sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Context {
    /// Everything is in the request, and the answer goes without a session.
    Sessionless,
    /// Everything is in the request; the answer opens a session if there is room for one.
    Full,
    /// What changed is in the request; the answer names what is new to `session`, as long as it is at `epoch`.
    Incremental {
        /// Its id.
        session: i32,
        /// The epoch that its next request must carry.
        epoch: i32,
    },
}

impl FetchSessions {
    /// What kind of fetch a request is, and the partitions that it reads, in order. Ends and changes sessions as the request
    /// says. `FETCH_SESSION_ID_NOT_FOUND`, `INVALID_FETCH_SESSION_EPOCH`, `FETCH_SESSION_TOPIC_ID_ERROR`.
    pub(crate) fn enter(
        &mut self,
        now: std::time::Duration,
        node: i32,
        request: &FetchRequest,
        by_id: bool,
    ) -> Result<(Context, Vec<Followed>), ErrorCode> {
        let (session, epoch) = (request.session_id, request.session_epoch);
        if epoch == INITIAL || epoch == FINAL {
            self.remove(node, session);
            let context = if epoch == FINAL { Context::Sessionless } else { Context::Full };
            return Ok((context, session::asked(request, by_id)));
        }
        self.advance(now, node, request, by_id)
    }
}

#[cfg(test)]
mod tests;
