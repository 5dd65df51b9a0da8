//! What may be asked of a worker, and said to it, from anywhere while it runs or ends.

use crate::ConnectError;
use crate::status::{Board, TargetState, TaskStatus};
use kafka_share::MetricsSnapshot;
use std::sync::Arc;
use tokio::sync::watch;

/// A handle to a [`Worker`](crate::Worker), for interfaces that show and control it: cheap to clone, and of use while the worker
/// stops, and after it.
#[derive(Debug, Clone)]
pub struct WorkerHandle {
    pub(crate) target: Arc<watch::Sender<TargetState>>,
    pub(crate) restarts: Arc<[watch::Sender<u64>]>,
    pub(crate) board: Arc<Board>,
    pub(crate) missing: Arc<[String]>,
}

impl WorkerHandle {
    /// State and counters of all tasks.
    #[must_use]
    pub fn status(&self) -> Vec<TaskStatus> {
        self.board.read()
    }

    /// What all tasks are told to do.
    #[must_use]
    pub fn target(&self) -> TargetState {
        *self.target.borrow()
    }

    /// The connector's topics that did not exist when the worker started. Their records are read once they are created.
    #[must_use]
    pub fn missing_topics(&self) -> &[String] {
        &self.missing
    }

    /// The metrics of a task at this moment, under Connect's names (`sink-task-metrics`, `connector-task-metrics`,
    /// `task-error-metrics`), and those of share groups (`share-sink-task-metrics`); `None` where there is no such task.
    #[must_use]
    pub fn metrics(&self, task: usize) -> Option<MetricsSnapshot> {
        self.board.metrics(task)
    }

    /// Has all tasks take no more records, until [`resume`](Self::resume). A put that is under way is ended and acknowledged
    /// first; one that waits to be tried again is given up, and its records are released. A task that is
    /// [`Paused`](crate::TaskState::Paused) is no member of the group and holds nothing, so that no lock runs out meanwhile.
    pub fn pause(&self) {
        self.aim(TargetState::Paused);
    }

    /// Has paused tasks go on.
    pub fn resume(&self) {
        self.aim(TargetState::Started);
    }

    pub(crate) fn aim(&self, state: TargetState) {
        self.target.send_if_modified(|target| {
            let change = *target != TargetState::Stopped && *target != state;
            if change {
                *target = state;
            }
            change
        });
    }

    /// Has a task start anew, with a new sink and new clients, whether it has failed, waits or runs. One that runs ends
    /// orderly first, for `task.shutdown.graceful.timeout.ms` at most. Returns at once: [`TaskStatus::restarts`] counts.
    ///
    /// # Errors
    /// There is no such task, or the worker was stopped.
    pub fn restart(&self, task: usize) -> Result<(), ConnectError> {
        let Some(order) = self.restarts.get(task) else {
            return Err(ConnectError::config(format!(
                "there is no task {task}: tasks are 0 to {}",
                self.restarts.len() - 1
            )));
        };
        if self.target() == TargetState::Stopped {
            return Err(ConnectError::config(format!("task {task} cannot be restarted: the worker was stopped")));
        }
        order.send_modify(|n| *n += 1);
        Ok(())
    }
}
