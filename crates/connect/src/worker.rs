//! A worker: checks a connector, sets its group up, and runs its tasks.

use crate::worker_task::{TaskCounters, WorkerShareSinkTask};
use crate::{ConnectError, ConnectorConfig, DeliverySemantics, SinkConnector};
use kafka_share::{Admin, ClientConfig};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Where a task stands, in Connect's words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaskState {
    /// It runs.
    Running,
    /// It ended because it was told to.
    Stopped,
    /// It failed, for this reason.
    Failed(String),
}

/// State and counters of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskStatus {
    /// Number of the task, from 0.
    pub task: usize,
    /// Where it stands.
    pub state: TaskState,
    /// Records read.
    pub read: u64,
    /// Records accepted.
    pub accepted: u64,
    /// Records released.
    pub released: u64,
    /// Records rejected.
    pub rejected: u64,
}

/// Runs the tasks of one connector.
#[derive(Debug)]
pub struct Worker {
    stop: watch::Sender<bool>,
    tasks: JoinSet<()>,
    states: Arc<Mutex<Vec<TaskState>>>,
    counters: Vec<Arc<TaskCounters>>,
}

impl Worker {
    /// Checks the connector and the cluster, sets the share group up, and starts all tasks.
    ///
    /// # Errors
    /// Wrong settings by name; exactly-once where the sink or the cluster cannot; a cluster that cannot be reached.
    pub async fn start(config: ConnectorConfig, mut connector: Box<dyn SinkConnector>) -> Result<Self, ConnectError> {
        connector.start(&config.properties)?;
        if config.semantics == DeliverySemantics::ExactlyOnce && !connector.supports_exactly_once() {
            return Err(ConnectError::config(format!(
                "share.delivery.semantics=exactly-once: the sink {} does not write to Kafka, so its output cannot be part of a transaction",
                config.class
            )));
        }
        prepare(&config).await?;
        let (stop, stopped) = watch::channel(false);
        let configs = connector.task_configs(&config.properties, config.tasks_max);
        let states = Arc::new(Mutex::new(vec![TaskState::Running; configs.len()]));
        let mut worker = Worker { stop, tasks: JoinSet::new(), states, counters: Vec::new() };
        for (number, properties) in configs.into_iter().enumerate() {
            let counters = Arc::new(TaskCounters::default());
            worker.counters.push(Arc::clone(&counters));
            let config = ConnectorConfig { properties, ..config.clone() };
            let task = WorkerShareSinkTask::start(config, number, connector.new_task(), counters).await?;
            let (states, stopped) = (Arc::clone(&worker.states), stopped.clone());
            worker.tasks.spawn(async move {
                // A sink that panics fails its own task only.
                let state = match tokio::spawn(task.run(stopped)).await {
                    Ok(Ok(())) => TaskState::Stopped,
                    Ok(Err(error)) => TaskState::Failed(error.to_string()),
                    Err(error) => TaskState::Failed(format!("the task panicked: {error}")),
                };
                states.lock().unwrap_or_else(PoisonError::into_inner)[number] = state;
            });
        }
        Ok(worker)
    }

    /// State and counters of all tasks.
    #[must_use]
    pub fn status(&self) -> Vec<TaskStatus> {
        let states = self.states.lock().unwrap_or_else(PoisonError::into_inner);
        let row = |(task, (state, c)): (usize, (&TaskState, &Arc<TaskCounters>))| TaskStatus {
            task,
            state: state.clone(),
            read: c.read.load(Ordering::Relaxed),
            accepted: c.accepted.load(Ordering::Relaxed),
            released: c.released.load(Ordering::Relaxed),
            rejected: c.rejected.load(Ordering::Relaxed),
        };
        states.iter().zip(&self.counters).enumerate().map(row).collect()
    }

    /// Waits until every task has ended by itself, that is, has failed.
    ///
    /// # Cancel safety
    /// Holds nothing.
    pub async fn all_ended(&mut self) {
        while self.tasks.join_next().await.is_some() {}
    }

    /// Tells all tasks to end, and waits for them up to `timeout`; tasks that take longer are cancelled.
    pub async fn stop(&mut self, timeout: Duration) {
        let _ = self.stop.send(true);
        let until = Instant::now() + timeout;
        while let Ok(Some(_)) = tokio::time::timeout_at(until.into(), self.tasks.join_next()).await {}
        self.tasks.abort_all();
    }
}

/// Looks at the cluster, and sets the group configs that the connector's settings map to.
async fn prepare(config: &ConnectorConfig) -> Result<(), ConnectError> {
    let bootstrap = config.consumer.get("bootstrap.servers").map_or("", String::as_str);
    let admin = Admin::new(ClientConfig::new(bootstrap).client_id("kafka-share-connect"))?;
    if config.semantics == DeliverySemantics::ExactlyOnce {
        let features = admin.cluster().features(Instant::now() + Duration::from_secs(30)).await?;
        if !kafka_share::transactional_acknowledgements_offered(&features) {
            return Err(ConnectError::config(
                "share.delivery.semantics=exactly-once: this cluster has no transactional acknowledgements (KIP-1289); use at-least-once",
            ));
        }
    }
    let lock = config
        .lock_timeout
        .map(|t| ("share.record.lock.duration.ms", "share.acquisition.lock.timeout.ms", t.as_millis().to_string()));
    let count =
        config.max_delivery_count.map(|n| ("share.delivery.count.limit", "share.max.delivery.count", n.to_string()));
    for (name, setting, value) in lock.into_iter().chain(count) {
        if let Err(error) = admin.alter_share_group_configs(&config.group_id, &[(name, &value)]).await {
            // Without the right to alter configs the group's own value counts; a value out of bounds is a mistake.
            if error.kind() != kafka_share::ErrorKind::Authorization {
                return Err(ConnectError::config(format!("{setting}={value} (group config {name}): {error}")));
            }
            tracing::warn!(setting, %error, "the group's own value stays in force");
        }
    }
    Ok(())
}
