//! `kshare connect`: runs sinks from Kafka Connect's kind of files.

use crate::cluster_args::read_properties;
use crate::exit::Failure;
use clap::Args;
use kafka_share_connect::{ConnectError, ConnectorConfig, TaskState, TaskStatus, Worker, WorkerConfig, sinks};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// How long the tasks may take to end.
const STOP: Duration = Duration::from_secs(30);
/// How long joining the group may take before it counts as idle.
const START: Duration = Duration::from_secs(30);

/// Options of `kshare connect`.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  kshare connect worker.properties sink.json

worker.properties:
  bootstrap.servers=127.0.0.1:9092
  consumer.group.protocol=share
  value.converter=string

sink.json:
  {\"name\": \"orders\", \"config\": {\"connector.class\": \"file\", \"topics\": \"orders\", \"file\": \"orders.jsonl\", \"tasks.max\": 4}}

Sinks: file (file=PATH, JSON lines), kafka (target.topic=NAME, in which ${topic} is the topic of the record).

With share.delivery.semantics=exactly-once, the kafka sink's output and the acknowledgements commit together. On released Kafka
that needs the ledger: `kshare ledger create`, or ledger.auto.create=true.

A task that fails stays FAILED; with task.restart.max=N it is started again up to N times in a row, after task.restart.backoff.ms,
but not where a record would be delivered for the last time (share.max.delivery.count, 5 by default), or another process has taken the
task over.")]
pub(crate) struct ConnectArgs {
    /// Properties of the worker
    #[arg(value_name = "WORKER.PROPERTIES")]
    worker: PathBuf,
    /// Connectors, as JSON
    #[arg(value_name = "SINK.JSON", required = true)]
    connectors: Vec<PathBuf>,
    /// End, with success, once no task has read a record for this many seconds
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    stop_when_idle: Option<u64>,
}

pub(crate) async fn run(args: ConnectArgs) -> Result<(), Failure> {
    let properties = read_properties(&args.worker)?.into_iter().collect();
    let worker =
        WorkerConfig::new(properties).map_err(|e| Failure::usage(format_args!("{}: {e}", args.worker.display())))?;
    let mut configs = Vec::new();
    for path in &args.connectors {
        let fail = |e: &dyn std::fmt::Display| Failure::usage(format_args!("{}: {e}", path.display()));
        let text = std::fs::read_to_string(path).map_err(|e| fail(&e))?;
        let config = ConnectorConfig::from_json(&text, &worker).map_err(|e| fail(&e))?;
        let connector = sinks::connector(&config.class).map_err(|e| fail(&e))?;
        configs.push((config, connector));
    }
    let mut workers = Vec::new();
    for (config, connector) in configs {
        let name = config.name.clone();
        let worker = Worker::start(config, connector).await.map_err(|e| refused(&name, &e))?;
        println!("connector {name:?} runs with {} tasks; Ctrl-C ends it", worker.status().len());
        workers.push((name, worker));
    }
    watch(&workers, args.stop_when_idle.map(Duration::from_secs)).await;
    let mut failed = None;
    for (name, worker) in &mut workers {
        worker.stop(STOP).await;
        for task in worker.status() {
            let counts = format!(
                "read {} accepted {} released {} rejected {}",
                task.read, task.accepted, task.released, task.rejected
            );
            match task.state {
                TaskState::Failed(why) => {
                    println!("{name} task {}: FAILED: {counts}", task.task);
                    failed.get_or_insert(format!("connector {name:?} task {}: {why}", task.task));
                }
                _ => println!("{name} task {}: STOPPED: {counts}", task.task),
            }
        }
    }
    failed.map_or(Ok(()), |text| Err(Failure::new(text)))
}

fn refused(name: &str, error: &ConnectError) -> Failure {
    let text = format!("connector {name:?}: {error}");
    match error {
        ConnectError::Config(_) => Failure::usage(text),
        ConnectError::Kafka(kafka) if kafka.kind() == kafka_share::ErrorKind::Config => Failure::usage(text),
        _ => Failure::new(text),
    }
}

/// Returns at Ctrl-C, when all tasks have failed, or when nothing was read for `idle`.
async fn watch(workers: &[(String, Worker)], idle: Option<Duration>) {
    let mut tick = tokio::time::interval(Duration::from_millis(200));
    let interrupt = tokio::signal::ctrl_c();
    tokio::pin!(interrupt);
    let mut seen = (u64::MAX, Instant::now());
    loop {
        tokio::select! {
            _ = &mut interrupt => return,
            _ = tick.tick() => {}
        }
        let status: Vec<_> = workers.iter().flat_map(|(_, w)| w.status()).collect();
        if status.iter().all(|t| t.state.has_ended()) {
            return;
        }
        let read = status.iter().map(|t| t.read).sum();
        if read != seen.0 || status.iter().any(TaskStatus::is_busy) {
            seen = (read, Instant::now());
        }
        // A group that is still being joined is not idle.
        let starting = status.iter().any(|t| t.state == TaskState::Running && !t.fetching);
        let idle = idle.map(|limit| if starting { limit.max(START) } else { limit });
        if idle.is_some_and(|limit| seen.1.elapsed() >= limit) {
            return;
        }
    }
}
