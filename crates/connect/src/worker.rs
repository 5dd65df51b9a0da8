//! A worker: checks a connector, sets its group up, runs its tasks, and pauses, resumes and restarts them.

use crate::group::prepare;
use crate::handle::WorkerHandle;
use crate::status::{Board, TargetState, TaskStatus};
use crate::supervisor::Supervisor;
use crate::validate::unknown_settings;
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
    handle: WorkerHandle,
    cancel: watch::Sender<bool>,
    tasks: JoinSet<()>,
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
        for problem in unknown_settings(&config, &*connector) {
            tracing::warn!(connector = %config.name, setting = problem.setting, "{}", problem.message);
        }
        let missing = prepare(&mut config).await?;
        let configs = connector.task_configs(&config.properties, config.tasks_max);
        if configs.is_empty() {
            return Err(ConnectError::config(format!("the connector {} gave no task to run", config.class)));
        }
        let connector: Arc<dyn SinkConnector> = Arc::from(connector);
        let handle = WorkerHandle {
            target: Arc::default(),
            restarts: configs.iter().map(|_| watch::Sender::new(0)).collect(),
            board: Arc::new(Board::new(configs.len())),
            missing: missing.into(),
        };
        let mut worker = Worker { handle, cancel: watch::Sender::new(false), tasks: JoinSet::new() };
        for (number, properties) in configs.into_iter().enumerate() {
            let handle = &worker.handle;
            let supervisor = Supervisor {
                number,
                config: ConnectorConfig { properties, ..config.clone() },
                connector: Arc::clone(&connector),
                board: Arc::clone(&handle.board),
                target: handle.target.subscribe(),
                restart: handle.restarts[number].subscribe(),
                cancel: worker.cancel.subscribe(),
            };
            let task = supervisor.start().await?;
            worker.tasks.spawn(supervisor.keep(task));
        }
        Ok(worker)
    }

    /// Shows and controls the worker from elsewhere.
    #[must_use]
    pub fn handle(&self) -> WorkerHandle {
        self.handle.clone()
    }

    /// See [`WorkerHandle::status`].
    #[must_use]
    pub fn status(&self) -> Vec<TaskStatus> {
        self.handle.status()
    }

    /// See [`WorkerHandle::target`].
    #[must_use]
    pub fn target(&self) -> TargetState {
        self.handle.target()
    }

    /// See [`WorkerHandle::missing_topics`].
    #[must_use]
    pub fn missing_topics(&self) -> &[String] {
        self.handle.missing_topics()
    }

    /// See [`WorkerHandle::metrics`].
    #[must_use]
    pub fn metrics(&self, task: usize) -> Option<MetricsSnapshot> {
        self.handle.metrics(task)
    }

    /// See [`WorkerHandle::pause`].
    pub fn pause(&self) {
        self.handle.pause();
    }

    /// See [`WorkerHandle::resume`].
    pub fn resume(&self) {
        self.handle.resume();
    }

    /// See [`WorkerHandle::restart`].
    ///
    /// # Errors
    /// There is no such task, or the worker was stopped.
    pub fn restart(&self, task: usize) -> Result<(), ConnectError> {
        self.handle.restart(task)
    }

    /// Waits until every task has ended, that is, has failed and is not started again by itself.
    ///
    /// # Cancel safety
    /// Holds nothing.
    pub async fn all_ended(&self) {
        self.handle.board.all_ended().await;
    }

    /// Tells all tasks to end, and waits for them up to `timeout`; tasks that take longer are cancelled, and their ends waited
    /// for, for 5 s at most: a sink that blocks its thread cannot be cancelled before it is done.
    ///
    /// # Cancel safety
    /// The tasks have been told, and go on ending; another call waits for them, and cancels those that take too long.
    pub async fn stop(&mut self, timeout: Duration) {
        self.handle.aim(TargetState::Stopped);
        let until = Instant::now() + timeout;
        while let Ok(Some(_)) = tokio::time::timeout_at(until.into(), self.tasks.join_next()).await {}
        self.cancel.send_replace(true);
        let until = Instant::now() + CANCEL;
        while let Ok(Some(_)) = tokio::time::timeout_at(until.into(), self.tasks.join_next()).await {}
        self.tasks.shutdown().await;
    }
}
