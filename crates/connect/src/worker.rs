//! A worker: checks a connector, sets its group up, and runs its tasks.

use crate::worker_task::{TaskCounters, WorkerShareSinkTask};
use crate::{ConnectError, ConnectorConfig, DeliverySemantics, Properties, SinkConnector};
use kafka_share::{Admin, ClientConfig};
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::sync::watch;
use tokio::task::{JoinError, JoinHandle, JoinSet};

const CANCELLED: &str = "the task did not end in time and was cancelled; what it held is delivered again";

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
    /// Whether a broker has answered a fetch of the task, so that it is a member and has its partitions.
    pub fetching: bool,
}

impl TaskStatus {
    /// Whether the task works on records that it has read and not acknowledged yet.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        self.state == TaskState::Running && self.read > self.accepted + self.released + self.rejected
    }
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
        if configs.is_empty() {
            return Err(ConnectError::config(format!("the connector {} gave no task to run", config.class)));
        }
        let states = Arc::new(Mutex::new(vec![TaskState::Running; configs.len()]));
        let mut worker = Worker { stop, tasks: JoinSet::new(), states, counters: Vec::new() };
        for (number, properties) in configs.into_iter().enumerate() {
            let counters = Arc::new(TaskCounters::default());
            worker.counters.push(Arc::clone(&counters));
            let config = ConnectorConfig { properties, ..config.clone() };
            let sink = connector.new_task();
            let task = Own(tokio::spawn(WorkerShareSinkTask::start(config, number, sink, counters)));
            let task =
                task.await.unwrap_or_else(|e| Err(ConnectError::fatal(format!("task {number} at start: {e}"))))?;
            let (states, stopped) = (Arc::clone(&worker.states), stopped.clone());
            worker.tasks.spawn(async move {
                let mut report = Report { states, number, state: Some(TaskState::Failed(CANCELLED.into())) };
                // A sink that panics fails its own task only.
                report.state = Some(match Own(tokio::spawn(task.run(stopped))).await {
                    Ok(Ok(())) => TaskState::Stopped,
                    Ok(Err(error)) => TaskState::Failed(error.to_string()),
                    Err(error) => TaskState::Failed(format!("the sink panicked: {error}")),
                });
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
            fetching: c.fetching.load(Ordering::Relaxed),
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
        self.tasks.shutdown().await;
    }
}

/// A spawned task that ends with its owner.
struct Own<T>(JoinHandle<T>);

impl<T> Future for Own<T> {
    type Output = Result<T, JoinError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(cx)
    }
}

impl<T> Drop for Own<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Publishes how a task ended, also when it is cancelled.
struct Report {
    states: Arc<Mutex<Vec<TaskState>>>,
    number: usize,
    state: Option<TaskState>,
}

impl Drop for Report {
    fn drop(&mut self) {
        if let Some(state) = self.state.take() {
            self.states.lock().unwrap_or_else(PoisonError::into_inner)[self.number] = state;
        }
    }
}

/// Looks at the cluster, and sets the group configs that the connector's settings map to.
async fn prepare(config: &ConnectorConfig) -> Result<(), ConnectError> {
    let admin = Admin::new(client_config(&config.consumer)?)?;
    if config.semantics == DeliverySemantics::ExactlyOnce {
        let features = admin.cluster().features(Instant::now() + Duration::from_secs(30)).await?;
        if !kafka_share::transactional_acknowledgements_offered(&features) {
            return Err(ConnectError::config(
                "share.delivery.semantics=exactly-once: this cluster has no transactional acknowledgements (KIP-1289); use at-least-once",
            ));
        }
        check_same_cluster(config, &admin).await?;
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

fn client_config(properties: &Properties) -> Result<ClientConfig, ConnectError> {
    let bootstrap = properties.get("bootstrap.servers").map_or("", String::as_str);
    let mut client = ClientConfig::new(bootstrap).client_id("kafka-share-connect");
    for (name, value) in properties {
        // What is not of the connection is checked by the consumer.
        client.set(name, value)?;
    }
    Ok(client)
}

/// A transaction cannot span clusters.
async fn check_same_cluster(config: &ConnectorConfig, source: &Admin) -> Result<(), ConnectError> {
    let servers = |p: &Properties| p.get("bootstrap.servers").cloned().unwrap_or_default();
    let (from, to) = (servers(&config.consumer), servers(&config.producer));
    if from == to {
        return Ok(());
    }
    let target = Admin::new(client_config(&config.producer)?)?;
    if source.describe_cluster().await?.cluster_id == target.describe_cluster().await?.cluster_id {
        return Ok(());
    }
    Err(ConnectError::config(format!(
        "share.delivery.semantics=exactly-once: the producer's bootstrap.servers={to} is another cluster than the consumer's {from}; a transaction cannot span both"
    )))
}
