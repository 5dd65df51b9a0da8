//! The connectors that this process runs, and what may be done with them while they run.

use kafka_share::MetricsSnapshot;
use kafka_share_connect::{ConnectError, ConnectorConfig, TargetState, TaskStatus, Worker, WorkerHandle, sinks};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// How long the tasks may take to end, beyond what a put may.
const STOP: Duration = Duration::from_secs(25);
/// Beyond that, for a connector whose sink blocks its thread.
const MORE: Duration = Duration::from_secs(10);

/// What a connector is to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Order {
    target: TargetState,
    /// Counted up to have it started again after it failed.
    attempt: u64,
}

/// Where a connector stands. Its tasks have states of their own.
#[derive(Debug, Clone, Default)]
pub(super) enum Phase {
    #[default]
    Starting,
    /// It runs, or is paused, or ends.
    Started,
    /// It did not start.
    Failed(ConnectError),
    Stopped,
}

#[derive(Debug, Clone, Default)]
struct Life {
    phase: Phase,
    /// It did not start, and is started again without being told to.
    again: bool,
    /// Of its worker, or of the one that it had.
    handle: Option<WorkerHandle>,
    /// How often it was started, how often that went well, and how often it did not.
    starts: [u64; 3],
}

/// A connector and its tasks. It is started and stopped by a task of its own: nobody who asks or tells waits for that.
#[derive(Debug)]
pub(super) struct Connector {
    pub(super) config: ConnectorConfig,
    pub(super) version: String,
    order: watch::Sender<Order>,
    life: watch::Sender<Life>,
}

/// Where a connector stands, and its tasks.
#[derive(Debug, Clone)]
pub(super) struct Standing {
    pub(super) phase: Phase,
    /// It did not start, and is started again without being told to.
    pub(super) again: bool,
    pub(super) target: TargetState,
    pub(super) tasks: Vec<TaskStatus>,
    /// Topics that did not exist when it was started.
    pub(super) missing: Vec<String>,
    /// How often it was started, how often that went well, and how often it did not.
    pub(super) starts: [u64; 3],
}

impl Standing {
    /// In Connect's words.
    pub(super) fn state(&self) -> &'static str {
        match (&self.phase, self.target) {
            (Phase::Failed(_), _) => "FAILED",
            (_, TargetState::Stopped) => "STOPPED",
            (Phase::Starting, _) => "UNASSIGNED",
            (_, TargetState::Paused) => "PAUSED",
            (_, TargetState::Started) => "RUNNING",
        }
    }

    /// Whether nothing more happens by itself.
    pub(super) fn has_ended(&self) -> bool {
        match self.phase {
            Phase::Starting => false,
            Phase::Failed(_) => !self.again,
            Phase::Stopped => true,
            Phase::Started => self.tasks.iter().all(|t| t.state.has_ended()),
        }
    }
}

impl Connector {
    /// Begins to start it.
    ///
    /// # Errors
    /// Its class is unknown.
    pub(super) fn new(config: ConnectorConfig) -> Result<Arc<Self>, ConnectError> {
        let version = sinks::connector(&config.class)?.version().to_owned();
        let connector =
            Arc::new(Connector { config, version, order: watch::Sender::default(), life: watch::Sender::default() });
        let (keeper, orders) = (Arc::clone(&connector), connector.order.subscribe());
        tokio::spawn(async move { keeper.keep(orders).await });
        Ok(connector)
    }

    pub(super) fn standing(&self) -> Standing {
        let Life { phase, again, handle, starts } = self.life.borrow().clone();
        let tasks = handle.as_ref().map(WorkerHandle::status).unwrap_or_default();
        let missing = handle.map(|h| h.missing_topics().to_vec()).unwrap_or_default();
        Standing { phase, again, target: self.order.borrow().target, tasks, missing, starts }
    }

    pub(super) fn metrics(&self) -> Vec<(TaskStatus, MetricsSnapshot)> {
        let Some(handle) = self.life.borrow().handle.clone() else { return Vec::new() };
        let of = |task: TaskStatus| handle.metrics(task.task).map(|metrics| (task, metrics));
        handle.status().into_iter().filter_map(of).collect()
    }

    /// Has a task start anew.
    ///
    /// # Errors
    /// There is no such task, or the connector is stopped.
    pub(super) fn restart_task(&self, task: usize) -> Result<(), ConnectError> {
        match &self.life.borrow().handle {
            Some(handle) => handle.restart(task),
            None => Err(ConnectError::config(format!("task {task} cannot be restarted: the connector does not run"))),
        }
    }

    /// Has it started again, where it did not start.
    pub(super) fn restart(&self) {
        if matches!(self.life.borrow().phase, Phase::Failed(_)) {
            self.order.send_modify(|order| order.attempt += 1);
        }
    }

    pub(super) fn pause(&self) {
        self.order.send_if_modified(|order| {
            let runs = order.target == TargetState::Started;
            order.target = if runs { TargetState::Paused } else { order.target };
            runs
        });
    }

    /// Goes on after a pause, or starts again after a stop.
    pub(super) fn resume(&self) {
        self.order.send_modify(|order| order.target = TargetState::Started);
    }

    pub(super) fn stop(&self) {
        self.order.send_modify(|order| order.target = TargetState::Stopped);
    }

    /// Waits until it is stopped, for as long as its tasks may take.
    pub(super) async fn stopped(&self) {
        let limit = self.stop_limit().saturating_add(MORE);
        let mut life = self.life.subscribe();
        let ended = life.wait_for(|life| matches!(life.phase, Phase::Stopped | Phase::Failed(_)));
        let _ = tokio::time::timeout(limit, ended).await;
    }

    fn stop_limit(&self) -> Duration {
        self.config.shutdown_timeout.saturating_add(STOP)
    }

    /// Does what it is told, one after the other.
    async fn keep(&self, mut orders: watch::Receiver<Order>) {
        let (mut worker, mut failures): (Option<Worker>, u32) = (None, 0);
        // The attempt that failed, and when it is made again unasked.
        let (mut failed, mut again): (Option<u64>, Option<Instant>) = (None, None);
        loop {
            let order = *orders.borrow_and_update();
            match (order.target, &worker) {
                (TargetState::Stopped, _) => {
                    if let Some(mut running) = worker.take() {
                        running.stop(self.stop_limit()).await;
                    }
                    (failed, again) = (None, None);
                    self.life.send_modify(|life| life.phase = Phase::Stopped);
                }
                (TargetState::Paused, Some(worker)) => worker.pause(),
                (TargetState::Started, Some(worker)) => worker.resume(),
                (_, None) if failed == Some(order.attempt) => {}
                (_, None) => match self.begin(&mut orders).await {
                    None => continue,
                    Some(Ok(started)) => {
                        (worker, failures) = (Some(started), 0);
                        // It may have been told something else meanwhile.
                        continue;
                    }
                    Some(Err(error)) => {
                        let wait = self.config.restart.wait(failures).filter(|_| error.is_retriable());
                        (failed, again) = (Some(order.attempt), wait.map(|wait| Instant::now() + wait));
                        failures = failures.saturating_add(1);
                        self.life.send_modify(|life| {
                            (life.phase, life.again) = (Phase::Failed(error), again.is_some());
                            life.starts[2] += 1;
                        });
                    }
                },
            }
            let later = async {
                match again {
                    Some(at) => tokio::time::sleep_until(at.into()).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                changed = orders.changed() => if changed.is_err() { return },
                () = later => (failed, again) = (None, None),
            }
        }
    }

    /// Starts it; `None` where it is told to stop before it has.
    async fn begin(&self, orders: &mut watch::Receiver<Order>) -> Option<Result<Worker, ConnectError>> {
        self.life.send_modify(|life| {
            life.phase = Phase::Starting;
            life.starts[0] += 1;
        });
        let started = tokio::select! {
            started = self.start() => started,
            _ = orders.wait_for(|o| o.target == TargetState::Stopped) => return None,
        };
        if let Ok(worker) = &started {
            self.life.send_modify(|life| {
                (life.phase, life.handle) = (Phase::Started, Some(worker.handle()));
                life.starts[1] += 1;
            });
        }
        Some(started)
    }

    async fn start(&self) -> Result<Worker, ConnectError> {
        let sink = sinks::connector(&self.config.class)?;
        // A sink that panics takes nothing else with it.
        let mut started = Own(tokio::spawn(Worker::start(self.config.clone(), sink)));
        let panicked = |error| Err(ConnectError::fatal(format!("the connector panicked at its start: {error}")));
        (&mut started.0).await.unwrap_or_else(panicked)
    }
}

/// A spawned task that ends with its owner.
struct Own<T>(JoinHandle<T>);

impl<T> Drop for Own<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// All connectors, in the order of their files.
#[derive(Debug)]
pub(super) struct Workers {
    pub(super) connectors: Vec<Arc<Connector>>,
    /// `host:port` of the REST interface, or of none.
    pub(super) id: String,
    /// Hosts that the REST interface is called by.
    pub(super) hosts: Vec<String>,
    pub(super) cluster_id: OnceLock<String>,
}

impl Workers {
    pub(super) fn named(&self, name: &str) -> Option<&Arc<Connector>> {
        self.connectors.iter().find(|c| c.config.name == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_started_again_by_itself_has_not_ended() {
        let failed = |again| Standing {
            phase: Phase::Failed(ConnectError::config("no such thing")),
            again,
            target: TargetState::Started,
            tasks: Vec::new(),
            missing: Vec::new(),
            starts: [1, 0, 1],
        };
        assert!(!failed(true).has_ended() && failed(false).has_ended());
    }
}
