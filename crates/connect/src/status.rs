//! Where tasks stand, in Connect's words.

use crate::held::Held;
use crate::metrics::{Counted, TaskMeters};
use kafka_share::MetricsSnapshot;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::watch;

/// Counters of a task, over all its lives.
#[derive(Debug, Default)]
pub struct TaskCounters {
    /// Records read.
    pub read: AtomicU64,
    /// Records that the sink has and that were accepted.
    pub accepted: AtomicU64,
    /// Records released for another try.
    pub released: AtomicU64,
    /// Records rejected.
    pub rejected: AtomicU64,
    /// A broker has answered a fetch: the task is a member and has its partitions.
    pub fetching: AtomicBool,
    /// The task has been told to pause: it holds nothing, and no put starts.
    pub paused: AtomicBool,
    /// Of the batch that is worked on, the highest delivery count; 0 where there is none.
    pub(crate) deliveries: AtomicU32,
    /// The last batch, put and commit together, took longer than the locks of its records last.
    pub(crate) slow: AtomicBool,
    /// The log says that it is.
    pub(crate) slow_said: AtomicBool,
    /// The batch that is worked on.
    held: Mutex<Held>,
    pub(crate) meters: TaskMeters,
}

impl TaskCounters {
    pub(crate) fn holds(&self, held: Held) {
        *self.held.lock().unwrap_or_else(PoisonError::into_inner) = held;
    }

    /// What the task had not acknowledged, in words; empty where there is nothing.
    pub(crate) fn held(&self) -> String {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).to_string()
    }

    /// A life of the task is over: what it had read and not acknowledged, because it was cut off, comes again. Answers how
    /// often the most delivered record of those has been delivered.
    pub(crate) fn life_ended(&self) -> u32 {
        let counted = self.done() + self.released.load(Ordering::Relaxed);
        let left = self.read.load(Ordering::Relaxed).saturating_sub(counted);
        self.released.fetch_add(left, Ordering::Relaxed);
        self.meters.count(Counted::Released, left);
        self.meters.turn(None);
        self.meters.active.store(0, Ordering::Relaxed);
        self.meters.partitions.store(0, Ordering::Relaxed);
        self.holds(Held::default());
        self.slow.store(false, Ordering::Relaxed);
        self.fetching.store(false, Ordering::Relaxed);
        self.paused.store(false, Ordering::Relaxed);
        self.deliveries.swap(0, Ordering::Relaxed)
    }

    /// Records that are dealt with for good.
    pub(crate) fn done(&self) -> u64 {
        self.accepted.load(Ordering::Relaxed) + self.rejected.load(Ordering::Relaxed)
    }
}

/// What a connector's tasks are to do, as in Connect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TargetState {
    /// Take records.
    #[default]
    Started,
    /// Take none, and hold none.
    Paused,
    /// End.
    Stopped,
}

/// Where a task stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaskState {
    /// It runs.
    Running,
    /// It takes no records until it is resumed: no put is under way, and no record is held.
    Paused,
    /// It is being started again, or waits for that.
    Restarting,
    /// It failed, for this reason, and stays so until it is restarted.
    Failed(String),
    /// It ended because it was told to.
    Unassigned,
}

impl TaskState {
    /// Whether it does nothing more by itself.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        matches!(self, TaskState::Failed(_) | TaskState::Unassigned)
    }
}

/// `RUNNING`, `PAUSED`, `RESTARTING`, `FAILED`, `UNASSIGNED`.
impl fmt::Display for TaskState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TaskState::Running => "RUNNING",
            TaskState::Paused => "PAUSED",
            TaskState::Restarting => "RESTARTING",
            TaskState::Failed(_) => "FAILED",
            TaskState::Unassigned => "UNASSIGNED",
        })
    }
}

/// State and counters of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskStatus {
    /// Number of the task, from 0.
    pub task: usize,
    /// Where it stands.
    pub state: TaskState,
    /// Why it failed the last time, if ever; kept while it runs again.
    pub trace: Option<String>,
    /// How often it was started again, by the restart policy or by [`Worker::restart`](crate::Worker::restart).
    pub restarts: u64,
    /// Records read.
    pub read: u64,
    /// Records accepted.
    pub accepted: u64,
    /// Records released.
    pub released: u64,
    /// Records rejected.
    pub rejected: u64,
    /// Whether a broker has answered a fetch of the task, so that it is a member and has its partitions.
    pub fetching: bool,
    /// Whether the last batch, put and commit together, took longer than the acquisition lock lasts, so that its locks had to
    /// be renewed or were lost: the lock is too short, or there are too many records in a batch.
    pub slow: bool,
}

impl TaskStatus {
    /// Whether the task works on records that it has read and not acknowledged yet.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        self.state == TaskState::Running && self.read > self.accepted + self.released + self.rejected
    }
}

#[derive(Debug, Clone)]
struct Entry {
    state: TaskState,
    trace: Option<String>,
    restarts: u64,
}

/// The states of all tasks of a worker.
#[derive(Debug)]
pub(crate) struct Board {
    entries: watch::Sender<Vec<Entry>>,
    counters: Vec<Arc<TaskCounters>>,
}

impl Board {
    pub(crate) fn new(tasks: usize) -> Self {
        let entry = Entry { state: TaskState::Running, trace: None, restarts: 0 };
        let counters = (0..tasks).map(|_| Arc::default()).collect();
        Board { entries: watch::Sender::new(vec![entry; tasks]), counters }
    }

    pub(crate) fn counters(&self, task: usize) -> &Arc<TaskCounters> {
        &self.counters[task]
    }

    pub(crate) fn set(&self, task: usize, state: TaskState) {
        self.entries.send_modify(|entries| {
            let entry = &mut entries[task];
            if let TaskState::Failed(why) = &state {
                entry.trace = Some(why.clone());
            }
            entry.state = state;
        });
    }

    /// A failure that the task will be started again after.
    pub(crate) fn failed_for_now(&self, task: usize, why: String) {
        self.entries.send_modify(|entries| {
            entries[task].trace = Some(why);
            entries[task].state = TaskState::Restarting;
        });
    }

    pub(crate) fn restarted(&self, task: usize) {
        self.entries.send_modify(|entries| {
            entries[task].restarts += 1;
            entries[task].state = TaskState::Running;
        });
    }

    pub(crate) async fn all_ended(&self) {
        let ended = |entries: &Vec<Entry>| entries.iter().all(|e| e.state.has_ended());
        // The sender is here: there is always one.
        let _ = self.entries.subscribe().wait_for(ended).await;
    }

    pub(crate) fn metrics(&self, task: usize) -> Option<MetricsSnapshot> {
        self.counters.get(task).map(|c| c.metrics())
    }

    pub(crate) fn read(&self) -> Vec<TaskStatus> {
        let entries = self.entries.borrow().clone();
        let row = |(task, (entry, c)): (usize, (Entry, &Arc<TaskCounters>))| {
            let paused = entry.state == TaskState::Running && c.paused.load(Ordering::Acquire);
            TaskStatus {
                task,
                state: if paused { TaskState::Paused } else { entry.state },
                trace: entry.trace,
                restarts: entry.restarts,
                read: c.read.load(Ordering::Relaxed),
                accepted: c.accepted.load(Ordering::Relaxed),
                released: c.released.load(Ordering::Relaxed),
                rejected: c.rejected.load(Ordering::Relaxed),
                fetching: c.fetching.load(Ordering::Relaxed),
                slow: c.slow.load(Ordering::Relaxed),
            }
        };
        entries.into_iter().zip(&self.counters).enumerate().map(row).collect()
    }
}
