//! What a task is told to do, and how long what is under way may go on after a stop.

use crate::ConnectError;
use crate::status::TargetState;
use std::future::Future;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// For what a task does at its end: the last flush, acknowledgements, the sink's stop.
pub(crate) const CLOSE: Duration = Duration::from_secs(10);

/// Orders of one life of a task.
#[derive(Debug, Clone)]
pub(crate) struct Orders {
    target: watch::Receiver<TargetState>,
    grace: Duration,
    stopped: Arc<OnceLock<Instant>>,
}

impl Orders {
    /// `grace`: how long a put may go on after a stop (`task.shutdown.graceful.timeout.ms`).
    pub(crate) fn new(target: watch::Receiver<TargetState>, grace: Duration) -> Self {
        Orders { target, grace, stopped: Arc::default() }
    }

    pub(crate) fn now(&self) -> TargetState {
        *self.target.borrow()
    }

    /// Waits for another state than `state`; `None` where nobody gives orders any more.
    pub(crate) async fn other_than(&mut self, state: TargetState) -> Option<TargetState> {
        self.target.wait_for(|t| *t != state).await.ok().map(|t| *t)
    }

    /// Waits until the task is to stop. A worker that is gone tells just that.
    pub(crate) async fn stop(&self) {
        let mut target = self.target.clone();
        let _ = target.wait_for(|t| *t == TargetState::Stopped).await;
        self.stopped.get_or_init(Instant::now);
    }

    /// Waits `time`, or less where the task is to stop or to pause: answers whether it was so.
    pub(crate) async fn interrupt_within(&self, time: Duration) -> bool {
        let mut target = self.target.clone();
        tokio::time::timeout(time, async { drop(target.wait_for(|t| *t != TargetState::Started).await) }).await.is_ok()
    }

    /// Waits until the time that is left after a stop is over, and `more` of it.
    pub(crate) async fn grace_over(&self, more: Duration) {
        self.stop().await;
        let since = *self.stopped.get_or_init(Instant::now);
        tokio::time::sleep_until((since + self.grace + more).into()).await;
    }

    /// Has the sink work, for as long as it may: `limit` (`task.put.timeout.ms`), and the time that is left after a stop.
    pub(crate) async fn limited<T>(
        &self,
        what: &str,
        limit: Option<Duration>,
        more: Duration,
        work: impl Future<Output = Result<T, ConnectError>>,
    ) -> Result<T, Cut> {
        let too_long = async {
            match limit {
                Some(limit) => tokio::time::sleep(limit).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            result = work => result.map_err(Cut::Failed),
            () = self.grace_over(more) => Err(Cut::Over(ConnectError::StaysFailed(format!(
                "{what} did not end within task.shutdown.graceful.timeout.ms={} of the stop and was cancelled",
                self.grace.as_millis()
            )))),
            () = too_long => Err(Cut::Over(ConnectError::fatal(format!(
                "{what} did not return within task.put.timeout.ms={} and was cancelled: raise it, or lower \
                 consumer.override.max.poll.records",
                limit.unwrap_or_default().as_millis()
            )))),
        }
    }
}

/// Why the sink's work has no result.
#[derive(Debug)]
pub(crate) enum Cut {
    /// It failed.
    Failed(ConnectError),
    /// It was cancelled, so that the sink cannot be used any more.
    Over(ConnectError),
}
