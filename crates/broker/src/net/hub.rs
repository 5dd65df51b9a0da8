//! The machine behind its lock, and the way from its outputs to the connections.

use super::Place;
use super::outbox::Outbox;
use crate::persistence::Store;
use crate::{Cluster, ConnId, DataDirError, Now, Output};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::sync::{Notify, watch};

struct State {
    cluster: Cluster,
    outboxes: HashMap<ConnId, Arc<Outbox>>,
    deadline: Option<Duration>,
    /// Where changes are written before answers are sent; `None` in memory.
    store: Option<Store>,
    failed: bool,
}

/// Shared by all tasks of a broker. The lock is held for one call into the machine and never across an await.
pub(crate) struct Hub {
    state: Mutex<State>,
    /// The machine's next deadline may have come closer.
    timer: Notify,
    /// `None`: time moves only by hand.
    start: Option<Instant>,
    wall_start_ms: i64,
    /// Nanoseconds by which the clock was moved on by hand.
    moved: AtomicU64,
    /// Why the data directory can no longer be written.
    failure: watch::Sender<Option<Arc<DataDirError>>>,
}

/// The time at which a hub starts that is made now.
pub(crate) fn start_time() -> Now {
    let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Now { mono: Duration::ZERO, wall_ms: wall.as_millis() as i64 }
}

impl Hub {
    pub(crate) fn new(cluster: Cluster, store: Option<Store>, start: Now, manual_clock: bool) -> Self {
        Hub {
            state: Mutex::new(State { cluster, outboxes: HashMap::new(), deadline: None, store, failed: false }),
            timer: Notify::new(),
            start: (!manual_clock).then(Instant::now),
            wall_start_ms: start.wall_ms,
            moved: AtomicU64::new(0),
            failure: watch::Sender::new(None),
        }
    }

    pub(crate) fn now(&self) -> Now {
        let passed = self.start.map_or(Duration::ZERO, |start| start.elapsed());
        let mono = passed.saturating_add(Duration::from_nanos(self.moved.load(Ordering::Relaxed)));
        Now { mono, wall_ms: self.wall_start_ms.saturating_add(i64::try_from(mono.as_millis()).unwrap_or(i64::MAX)) }
    }

    pub(crate) fn is_manual(&self) -> bool {
        self.start.is_none()
    }

    fn shift(&self, by: Duration) {
        let by = u64::try_from(by.as_nanos()).unwrap_or(u64::MAX);
        // Only failed by a closure that gives none.
        let _ = self.moved.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |moved| Some(moved.saturating_add(by)));
    }

    /// Moves both clocks on and lets everything happen that was due meanwhile: on a manual clock one thing after the other,
    /// each at its time; on the system's clock all of it now.
    pub(crate) fn advance(&self, by: Duration) {
        let target = self.now().mono.saturating_add(by);
        while self.is_manual() {
            let Some(due) = self.deadline().filter(|due| *due <= target) else { break };
            self.shift(due.saturating_sub(self.now().mono));
            self.with(Cluster::handle_timeout);
            if self.deadline() == Some(due) {
                break;
            }
        }
        self.shift(target.saturating_sub(self.now().mono));
        self.with(Cluster::handle_timeout);
    }

    /// One call into the machine; its outputs are passed on before this returns.
    pub(crate) fn with<R>(&self, call: impl FnOnce(&mut Cluster, Now) -> R) -> R {
        self.enter(|state, now| call(&mut state.cluster, now))
    }

    fn enter<R>(&self, call: impl FnOnce(&mut State, Now) -> R) -> R {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let result = call(&mut state, self.now());
        self.keep(&mut state);
        while let Some(output) = state.cluster.poll_output() {
            match output {
                Output::Send { conn, segments } => {
                    if let Some(outbox) = state.outboxes.get(&conn) {
                        outbox.push(segments);
                    }
                }
                Output::AdvanceClock { by } => self.shift(by),
                Output::Close { conn } => {
                    if let Some(outbox) = state.outboxes.remove(&conn) {
                        outbox.close();
                    }
                }
            }
        }
        let deadline = state.cluster.next_deadline();
        let sooner = deadline.is_some_and(|new| state.deadline.is_none_or(|old| new < old));
        state.deadline = deadline;
        drop(state);
        if sooner {
            self.timer.notify_one();
        }
        result
    }

    /// Writes what the call has changed. If that fails no answer may go out any more: what they tell of is not kept.
    fn keep(&self, state: &mut State) {
        if let Some(store) = state.store.as_mut().filter(|_| !state.failed) {
            let changes = state.cluster.take_changes();
            if changes.is_empty() {
                return;
            }
            if let Err(error) = store.commit(changes) {
                tracing::error!(%error, "the data directory failed; the broker stops");
                state.failed = true;
                self.failure.send_replace(Some(Arc::new(error)));
            }
        }
        if state.failed {
            while state.cluster.poll_output().is_some() {}
            for (_, outbox) in state.outboxes.drain() {
                outbox.discard();
            }
        }
    }

    /// Waits until the data directory fails, which may be never.
    pub(crate) async fn failure(&self) -> Arc<DataDirError> {
        let mut failure = self.failure.subscribe();
        let found = failure.wait_for(Option::is_some).await.ok().and_then(|error| error.clone());
        match found {
            Some(error) => error,
            // The sender lives as long as this hub.
            None => std::future::pending().await,
        }
    }

    pub(super) fn connect(&self, place: Place, principal: Option<&str>, outbox: &Arc<Outbox>) -> ConnId {
        self.enter(|state, now| {
            let conn = state.cluster.connect_to(now, place.node, place.listener, principal);
            state.outboxes.insert(conn, outbox.clone());
            conn
        })
    }

    pub(super) fn disconnect(&self, conn: ConnId) {
        self.enter(|state, now| {
            state.cluster.disconnect(now, conn);
            state.outboxes.remove(&conn);
        });
    }

    pub(super) fn timer(&self) -> &Notify {
        &self.timer
    }

    pub(super) fn deadline(&self) -> Option<Duration> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).deadline
    }
}
