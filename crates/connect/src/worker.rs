//! A worker: checks a connector, sets its group up, runs its tasks, and pauses, resumes and restarts them.

use crate::group::prepare;
use crate::status::{Board, TargetState, TaskStatus};
use crate::supervisor::Supervisor;
use crate::{ConnectError, ConnectorConfig, DeliverySemantics, SinkConnector};
use kafka_share::MetricsSnapshot;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// How long tasks that are cancelled may take to be gone.
const CANCEL: Duration = Duration::from_secs(5);

/// Runs the tasks of one connector.
///
/// A task that fails stays FAILED, as in Connect, until [`Worker::restart`], unless
/// [`task.restart.max`](crate::RestartPolicy) says otherwise. A worker that is dropped takes its tasks with it as they are:
/// what they held is delivered again, and what they had in open transactions is never seen.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let broker = kafka_share_broker::EmbeddedBroker::builder().topic("orders", 1).start().await?;
/// # let servers = broker.bootstrap_servers();
/// use kafka_share_connect::{ConnectorConfig, TaskState, Worker, WorkerConfig, sinks};
/// use std::time::Duration;
///
/// let properties = [("bootstrap.servers", servers.as_str()), ("consumer.group.protocol", "share"), ("task.restart.max", "5")];
/// let worker = WorkerConfig::new(properties.map(|(n, v)| (n.to_owned(), v.to_owned())).into())?;
/// let json = r#"{"name": "copy", "config": {"connector.class": "kafka", "topics": "orders", "target.topic": "copies"}}"#;
/// let config = ConnectorConfig::from_json(json, &worker)?;
/// let mut worker = Worker::start(config, sinks::connector("kafka")?).await?;
/// worker.pause();
/// worker.resume();
/// worker.restart(0)?;
/// assert!(worker.restart(1).is_err(), "there is one task");
/// worker.stop(Duration::from_secs(10)).await;
/// assert_eq!(worker.status()[0].state, TaskState::Unassigned);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Worker {
    target: watch::Sender<TargetState>,
    restarts: Vec<watch::Sender<u64>>,
    cancel: watch::Sender<bool>,
    tasks: JoinSet<()>,
    board: Arc<Board>,
}

impl Worker {
    /// Checks the connector and the cluster, sets the share group up, and starts all tasks.
    ///
    /// # Cancel safety
    /// Settings of the group may have been set, and the ledger created where `ledger.auto.create` says so. Tasks that were
    /// started end as those of a worker that is dropped.
    ///
    /// # Errors
    /// Wrong settings by name; exactly-once where the sink cannot, or where the cluster has neither native transactional
    /// acknowledgements nor a ledger; a cluster that cannot be reached; a task that does not start.
    pub async fn start(
        mut config: ConnectorConfig,
        mut connector: Box<dyn SinkConnector>,
    ) -> Result<Self, ConnectError> {
        connector.start(&config.properties)?;
        if config.semantics == DeliverySemantics::ExactlyOnce {
            config.exactly_once(connector.exactly_once_support())?;
        }
        prepare(&mut config).await?;
        let configs = connector.task_configs(&config.properties, config.tasks_max);
        if configs.is_empty() {
            return Err(ConnectError::config(format!("the connector {} gave no task to run", config.class)));
        }
        let connector: Arc<dyn SinkConnector> = Arc::from(connector);
        let (target, board) = (watch::Sender::default(), Arc::new(Board::new(configs.len())));
        let cancel = watch::Sender::new(false);
        let mut worker = Worker { target, restarts: Vec::new(), cancel, tasks: JoinSet::new(), board };
        for (number, properties) in configs.into_iter().enumerate() {
            let (order, restart) = watch::channel(0);
            let supervisor = Supervisor {
                number,
                config: ConnectorConfig { properties, ..config.clone() },
                connector: Arc::clone(&connector),
                board: Arc::clone(&worker.board),
                target: worker.target.subscribe(),
                restart,
                cancel: worker.cancel.subscribe(),
            };
            let task = supervisor.start().await?;
            worker.tasks.spawn(supervisor.keep(task));
            worker.restarts.push(order);
        }
        Ok(worker)
    }

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

    /// The metrics of a task at this moment, under Connect's names (`sink-task-metrics`, `connector-task-metrics`,
    /// `task-error-metrics`), and those of share groups (`share-sink-task-metrics`); `None` where there is no such task.
    #[must_use]
    pub fn metrics(&self, task: usize) -> Option<MetricsSnapshot> {
        self.board.metrics(task)
    }

    /// Has all tasks take no more records, until [`Worker::resume`]. A put that is under way is ended and acknowledged first;
    /// one that waits to be tried again is given up, and its records are released. A task that is
    /// [`Paused`](crate::TaskState::Paused) is no member of the group and holds nothing, so that no lock runs out meanwhile.
    pub fn pause(&self) {
        self.aim(TargetState::Paused);
    }

    /// Has paused tasks go on.
    pub fn resume(&self) {
        self.aim(TargetState::Started);
    }

    fn aim(&self, state: TargetState) {
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
        if *self.target.borrow() == TargetState::Stopped {
            return Err(ConnectError::config(format!("task {task} cannot be restarted: the worker was stopped")));
        }
        order.send_modify(|n| *n += 1);
        Ok(())
    }

    /// Waits until every task has ended, that is, has failed and is not started again by itself.
    ///
    /// # Cancel safety
    /// Holds nothing.
    pub async fn all_ended(&self) {
        self.board.all_ended().await;
    }

    /// Tells all tasks to end, and waits for them up to `timeout`; tasks that take longer are cancelled, and their ends waited
    /// for, for 5 s at most: a sink that blocks its thread cannot be cancelled before it is done.
    ///
    /// # Cancel safety
    /// The tasks have been told, and go on ending; another call waits for them, and cancels those that take too long.
    pub async fn stop(&mut self, timeout: Duration) {
        self.aim(TargetState::Stopped);
        let until = Instant::now() + timeout;
        while let Ok(Some(_)) = tokio::time::timeout_at(until.into(), self.tasks.join_next()).await {}
        self.cancel.send_replace(true);
        let until = Instant::now() + CANCEL;
        while let Ok(Some(_)) = tokio::time::timeout_at(until.into(), self.tasks.join_next()).await {}
        self.tasks.shutdown().await;
    }
}
