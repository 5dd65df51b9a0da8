//! The connectors that this process runs, and what may be done with them while they run.

use kafka_share::MetricsSnapshot;
use kafka_share_connect::{ConnectError, ConnectorConfig, TargetState, TaskStatus, Worker, sinks};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::RwLock;

/// How long the tasks may take to end, beyond what a put may.
const STOP: Duration = Duration::from_secs(25);

/// A connector and its tasks.
#[derive(Debug)]
pub(super) struct Connector {
    pub(super) config: ConnectorConfig,
    pub(super) version: String,
    /// Written to while it is stopped, or started again after that.
    worker: RwLock<Worker>,
}

/// Where a connector stands, and its tasks.
#[derive(Debug)]
pub(super) struct Standing {
    pub(super) target: TargetState,
    pub(super) tasks: Vec<TaskStatus>,
}

impl Connector {
    pub(super) async fn start(config: ConnectorConfig) -> Result<Self, ConnectError> {
        let sink = sinks::connector(&config.class)?;
        let version = sink.version().to_owned();
        let worker = RwLock::new(Worker::start(config.clone(), sink).await?);
        Ok(Connector { config, version, worker })
    }

    pub(super) async fn standing(&self) -> Standing {
        let worker = self.worker.read().await;
        Standing { target: worker.target(), tasks: worker.status() }
    }

    pub(super) async fn metrics(&self) -> Vec<(TaskStatus, MetricsSnapshot)> {
        let worker = self.worker.read().await;
        let of = |task: TaskStatus| worker.metrics(task.task).map(|metrics| (task, metrics));
        worker.status().into_iter().filter_map(of).collect()
    }

    pub(super) async fn restart(&self, task: usize) -> Result<(), ConnectError> {
        self.worker.read().await.restart(task)
    }

    pub(super) async fn pause(&self) {
        self.worker.read().await.pause();
    }

    /// Goes on after a pause, or starts again after a stop.
    pub(super) async fn resume(&self) -> Result<(), ConnectError> {
        {
            let worker = self.worker.read().await;
            if worker.target() != TargetState::Stopped {
                worker.resume();
                return Ok(());
            }
        }
        let mut worker = self.worker.write().await;
        if worker.target() == TargetState::Stopped {
            let sink = sinks::connector(&self.config.class)?;
            *worker = Worker::start(self.config.clone(), sink).await?;
        }
        Ok(())
    }

    pub(super) async fn stop(&self) {
        let limit = self.config.shutdown_timeout.saturating_add(STOP);
        self.worker.write().await.stop(limit).await;
    }
}

/// All connectors, in the order of their files.
#[derive(Debug)]
pub(super) struct Workers {
    pub(super) connectors: Vec<Arc<Connector>>,
    /// `host:port` of the REST interface, or of none.
    pub(super) id: String,
    pub(super) cluster_id: String,
}

impl Workers {
    pub(super) fn named(&self, name: &str) -> Option<&Arc<Connector>> {
        self.connectors.iter().find(|c| c.config.name == name)
    }
}
