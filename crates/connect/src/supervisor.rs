//! One task's lives: it runs, fails, and is started again by the policy or by order.

use crate::batch::is_last;
use crate::restart::Failures;
use crate::status::{Board, TargetState, TaskState};
use crate::worker_task::WorkerShareSinkTask;
use crate::{ConnectError, ConnectorConfig, SinkConnector};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::sync::watch;
use tokio::task::{JoinError, JoinHandle};

/// How long a task may take to end after its put has, or was cancelled.
const END: Duration = Duration::from_secs(30);

/// Why a task was cut off, and the records that it had not acknowledged.
fn cancelled(held: &str) -> String {
    let none = if held.is_empty() { "nothing" } else { held };
    format!("the task did not end in time and was cancelled; what it held is delivered again: {none}")
}

/// Why a life of a task ended.
enum End {
    Stopped,
    /// Why, and whether the restart policy counts.
    Failed(ConnectError),
    /// It is to be started again by order.
    Restart,
    /// The worker did not wait longer.
    Cancelled,
}

/// What a task is started from, again and again.
pub(crate) struct Supervisor {
    pub(crate) number: usize,
    pub(crate) config: ConnectorConfig,
    pub(crate) connector: Arc<dyn SinkConnector>,
    pub(crate) board: Arc<Board>,
    pub(crate) target: watch::Receiver<TargetState>,
    /// Counts orders to start it again.
    pub(crate) restart: watch::Receiver<u64>,
    /// Whether the worker waits no longer.
    pub(crate) cancel: watch::Receiver<bool>,
}

impl Supervisor {
    pub(crate) async fn start(&self) -> Result<WorkerShareSinkTask, ConnectError> {
        let (sink, counters) = (self.connector.new_task(), Arc::clone(self.board.counters(self.number)));
        // A sink that panics fails its own task only.
        let started = tokio::spawn(WorkerShareSinkTask::start(self.config.clone(), self.number, sink, counters));
        let panicked = |e| Err(ConnectError::fatal(format!("task {} at start: {e}", self.number)));
        let (mut started, mut cancel) = (Own(started), self.cancel.clone());
        tokio::select! {
            biased;
            started = &mut started => started.unwrap_or_else(panicked),
            () = until_told(&mut cancel) => {
                started.cut_off().await;
                Err(ConnectError::fatal(cancelled("")))
            }
        }
    }

    /// Runs it until the worker is told to stop. A task that failed for good waits for an order to start it again.
    pub(crate) async fn keep(mut self, first: WorkerShareSinkTask) {
        let mut report =
            Report { board: Arc::clone(&self.board), number: self.number, cancelled: true, held: String::new() };
        let mut failures = Failures::new(self.config.restart);
        let mut task = Some(first);
        let counters = Arc::clone(self.board.counters(self.number));
        loop {
            let mut well = Duration::ZERO;
            let end = match task.take() {
                Some(task) => Ok(task),
                None => self.start().await.inspect(|_| self.board.restarted(self.number)),
            };
            let end = match end {
                Ok(task) => {
                    let (began, done) = (Instant::now(), counters.done());
                    let end = self.run(task).await;
                    if counters.done() > done {
                        well = began.elapsed();
                    }
                    end
                }
                // However long it took, it did not run.
                Err(_) if *self.cancel.borrow() => End::Cancelled,
                Err(error) => End::Failed(error),
            };
            report.held = counters.held();
            let held = counters.life_ended();
            let again = match end {
                End::Cancelled => return,
                End::Restart if *self.target.borrow() != TargetState::Stopped => {
                    self.board.set(self.number, TaskState::Restarting);
                    failures.forget();
                    true
                }
                End::Stopped | End::Restart => {
                    self.board.set(self.number, TaskState::Unassigned);
                    false
                }
                End::Failed(error) => {
                    let limit = self.config.delivery_limit();
                    let error = match is_last(held, limit) {
                        true => error.staying("a record", held, limit),
                        false => error,
                    };
                    let wait = if error.stays_failed() { None } else { failures.next(well) };
                    self.after_failure(error.to_string(), wait, &mut failures).await
                }
            };
            if !again {
                report.cancelled = false;
                return;
            }
        }
    }

    /// One life.
    async fn run(&mut self, task: WorkerShareSinkTask) -> End {
        let (tell, told) = watch::channel(*self.target.borrow_and_update());
        let mut running = Own(tokio::spawn(task.run(told)));
        let mut cancel = self.cancel.clone();
        loop {
            tokio::select! {
                biased;
                ended = &mut running => return end(ended),
                // A worker that is gone takes its tasks with it.
                Ok(()) = self.target.changed() => drop(tell.send(*self.target.borrow_and_update())),
                Ok(()) = self.restart.changed() => break,
                () = until_told(&mut cancel) => {
                    running.cut_off().await;
                    return End::Cancelled;
                }
            }
        }
        let _ = tell.send(TargetState::Stopped);
        tokio::select! {
            biased;
            _ = &mut running => return End::Restart,
            () = until_told(&mut cancel) => {}
            // It cancels its own put; this is for a sink that blocks its thread.
            () = tokio::time::sleep(self.config.shutdown_timeout + END) => {}
        }
        let held = self.board.counters(self.number).held();
        tracing::warn!(connector = %self.config.name, task = self.number, "{}", cancelled(&held));
        // Two sinks of one task must not be there side by side.
        running.cut_off().await;
        if *cancel.borrow() { End::Cancelled } else { End::Restart }
    }

    /// Answers whether the task is to be started again.
    async fn after_failure(&mut self, why: String, wait: Option<Duration>, failures: &mut Failures) -> bool {
        match wait {
            // Whoever runs the worker is told by the state.
            None => {
                tracing::info!(connector = %self.config.name, task = self.number, error = %why, "the task failed");
                self.board.set(self.number, TaskState::Failed(why.clone()));
            }
            Some(wait) => {
                tracing::warn!(connector = %self.config.name, task = self.number, error = %why, ?wait, "the task is restarted");
                self.board.failed_for_now(self.number, why.clone());
            }
        }
        let pause = async {
            match wait {
                Some(wait) => tokio::time::sleep(wait).await,
                None => std::future::pending().await,
            }
        };
        let stopped = tokio::select! {
            biased;
            _ = self.target.wait_for(|t| *t == TargetState::Stopped) => true,
            Ok(()) = self.restart.changed() => {
                failures.forget();
                false
            }
            () = pause => false,
        };
        match stopped {
            true => self.board.set(self.number, TaskState::Failed(why)),
            false => self.board.set(self.number, TaskState::Restarting),
        }
        !stopped
    }
}

/// Returns once it is true.
async fn until_told(cancel: &mut watch::Receiver<bool>) {
    if cancel.wait_for(|c| *c).await.is_err() {
        // The worker was dropped, which ends this too.
        std::future::pending::<()>().await;
    }
}

fn end(ended: Result<Result<(), ConnectError>, JoinError>) -> End {
    match ended {
        Ok(Ok(())) => End::Stopped,
        Ok(Err(error)) => End::Failed(error),
        Err(error) => End::Failed(ConnectError::fatal(format!("the sink panicked: {error}"))),
    }
}

/// A spawned task that ends with its owner.
struct Own<T>(JoinHandle<T>);

impl<T> Own<T> {
    /// Cancels it, and waits until it is gone.
    async fn cut_off(&mut self) {
        self.0.abort();
        if !self.0.is_finished() {
            let _ = (&mut self.0).await;
        }
    }
}

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

/// Tells of a task that is cancelled.
struct Report {
    board: Arc<Board>,
    number: usize,
    cancelled: bool,
    held: String,
}

impl Drop for Report {
    fn drop(&mut self) {
        if self.cancelled {
            let held = match self.held.is_empty() {
                true => self.board.counters(self.number).held(),
                false => std::mem::take(&mut self.held),
            };
            self.board.set(self.number, TaskState::Failed(cancelled(&held)));
        }
    }
}
