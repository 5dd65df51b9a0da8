//! The machine behind its lock, and the way from its outputs to the connections.

use super::outbox::Outbox;
use crate::{Cluster, ConnId, Now, Output};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::sync::Notify;

struct State {
    cluster: Cluster,
    outboxes: HashMap<ConnId, Arc<Outbox>>,
    deadline: Option<Duration>,
}

/// Shared by all tasks of a broker. The lock is held for one call into the machine and never across an await.
pub(crate) struct Hub {
    state: Mutex<State>,
    /// The machine's next deadline may have come closer.
    timer: Notify,
    start: Instant,
    wall_start_ms: i64,
    /// How far the clock was moved on by hand.
    jumped_ms: AtomicU64,
}

impl Hub {
    pub(crate) fn new(cluster: Cluster) -> Self {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Hub {
            state: Mutex::new(State { cluster, outboxes: HashMap::new(), deadline: None }),
            timer: Notify::new(),
            start: Instant::now(),
            wall_start_ms: wall.as_millis() as i64,
            jumped_ms: AtomicU64::new(0),
        }
    }

    pub(crate) fn now(&self) -> Now {
        let mono = self.start.elapsed() + Duration::from_millis(self.jumped_ms.load(Ordering::Relaxed));
        Now { mono, wall_ms: self.wall_start_ms + mono.as_millis() as i64 }
    }

    /// Moves both clocks on and lets everything happen that was due meanwhile.
    pub(crate) fn jump(&self, by: Duration) {
        self.jumped_ms.fetch_add(by.as_millis() as u64, Ordering::Relaxed);
        self.with(Cluster::handle_timeout);
    }

    /// One call into the machine; its outputs are passed on before this returns.
    pub(crate) fn with<R>(&self, call: impl FnOnce(&mut Cluster, Now) -> R) -> R {
        self.enter(|state, now| call(&mut state.cluster, now))
    }

    fn enter<R>(&self, call: impl FnOnce(&mut State, Now) -> R) -> R {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let result = call(&mut state, self.now());
        while let Some(output) = state.cluster.poll_output() {
            match output {
                Output::Send { conn, segments } => {
                    if let Some(outbox) = state.outboxes.get(&conn) {
                        outbox.push(segments);
                    }
                }
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

    pub(super) fn connect(&self, node: i32, outbox: &Arc<Outbox>) -> ConnId {
        self.enter(|state, now| {
            let conn = state.cluster.connect(now, node);
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
