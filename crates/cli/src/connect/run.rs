//! Running connectors until they are told to end.

use super::workers::{Connector, Standing, Workers};
use super::{http, mask, text_of, worker_properties};
use crate::exit::Failure;
use crate::signals::Signals;
use clap::Args;
use kafka_share::{Admin, ClientConfig};
use kafka_share_connect::{
    ConnectError, ConnectorConfig, Properties, TargetState, TaskState, TaskStatus, WorkerConfig, sinks,
};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long joining the group may take before it counts as idle.
const START: Duration = Duration::from_secs(30);
/// How long a cluster may take to tell its id, which is but told in turn.
const CLUSTER_ID: Duration = Duration::from_secs(5);

/// Which connectors are to run.
#[derive(Debug, Args)]
pub(super) struct RunArgs {
    /// Properties of the worker
    #[arg(value_name = "WORKER.PROPERTIES")]
    worker: PathBuf,
    /// Connectors, as JSON
    #[arg(value_name = "SINK.JSON", required = true)]
    connectors: Vec<PathBuf>,
    /// End, with success, once no task has read a record for this many seconds
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    stop_when_idle: Option<u64>,
    /// Tell counts every so many seconds, while records come
    #[arg(long, value_name = "SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..))]
    status_interval: u64,
}

pub(super) async fn run(args: RunArgs) -> Result<(), Failure> {
    let properties = worker_properties(&args.worker)?;
    let worker = WorkerConfig::new(properties.clone())
        .map_err(|e| Failure::usage(format_args!("{}: {e}", args.worker.display())))?;
    let mut configs: Vec<ConnectorConfig> = Vec::new();
    for path in &args.connectors {
        let fail = |e: &dyn std::fmt::Display| Failure::usage(format_args!("{}: {e}", path.display()));
        let config = ConnectorConfig::from_json(&text_of(path)?, &worker).map_err(|e| fail(&e))?;
        sinks::connector(&config.class).map_err(|e| fail(&e))?;
        if configs.iter().any(|c| c.name == config.name) {
            return Err(fail(&format_args!("another connector is named {:?} too", config.name)));
        }
        configs.push(config);
    }
    let listener = http::bind(&properties).await?;
    let address = listener.as_ref().and_then(|l| l.local_addr().ok());
    let cluster_id = if listener.is_some() { cluster_id(&properties).await } else { String::new() };
    let mut signals = Signals::new()?;
    let mut connectors = Vec::new();
    for config in configs {
        let name = config.name.clone();
        let started = tokio::select! {
            started = Connector::start(config) => started,
            () = signals.any() => return end(&connectors).await,
        };
        let connector = match started {
            Ok(connector) => connector,
            Err(error) => {
                // Those that run stop in order, whatever they say.
                let _ = end(&connectors).await;
                return Err(refused(&name, &error));
            }
        };
        let tasks = connector.standing().await.tasks.len();
        println!("connector {name:?} runs with {tasks} tasks; Ctrl-C ends it");
        connectors.push(Arc::new(connector));
    }
    let workers = Arc::new(Workers { connectors, id: http::worker_id(&properties, address), cluster_id });
    let served = listener.map(|listener| {
        println!("REST interface: http://{}", address.map_or_else(String::new, |a| a.to_string()));
        tokio::spawn(http::serve(listener, Arc::clone(&workers), Arc::new(properties)))
    });
    let idle = args.stop_when_idle.map(Duration::from_secs);
    watch((&workers, &mut signals), idle, Duration::from_secs(args.status_interval), served.is_some()).await;
    if let Some(served) = served {
        served.abort();
    }
    end(&workers.connectors).await
}

async fn cluster_id(properties: &Properties) -> String {
    let Some(servers) = properties.get("bootstrap.servers") else { return String::new() };
    let asked = async { Admin::new(ClientConfig::new(servers)).ok()?.describe_cluster().await.ok() };
    let told = tokio::time::timeout(CLUSTER_ID, asked).await.ok().flatten();
    told.map(|cluster| cluster.cluster_id).unwrap_or_default()
}

/// Stops all, and tells what they have done.
async fn end(connectors: &[Arc<Connector>]) -> Result<(), Failure> {
    let mut failed = None;
    for connector in connectors {
        connector.stop().await;
        let name = &connector.config.name;
        for task in connector.standing().await.tasks {
            let counts = counts(&task);
            match task.state {
                TaskState::Failed(why) => {
                    println!("{name} task {}: FAILED: {counts}", task.task);
                    let why = mask::text(&why);
                    failed.get_or_insert(format!("connector {name:?} task {}: {why}", task.task));
                }
                _ => println!("{name} task {}: STOPPED: {counts}", task.task),
            }
        }
    }
    failed.map_or(Ok(()), |text| Err(Failure::new(text)))
}

fn counts(task: &TaskStatus) -> String {
    let TaskStatus { read, accepted, released, rejected, .. } = task;
    format!("read {read} accepted {accepted} released {released} rejected {rejected}")
}

fn refused(name: &str, error: &ConnectError) -> Failure {
    let text = mask::text(&format!("connector {name:?}: {error}"));
    match error {
        ConnectError::Config(_) => Failure::usage(text),
        ConnectError::Kafka(kafka) if kafka.kind() == kafka_share::ErrorKind::Config => Failure::usage(text),
        _ => Failure::new(text),
    }
}

/// Returns at Ctrl-C and SIGTERM, when nothing was read for `idle`, or when all tasks have failed and nobody could restart them.
async fn watch((workers, signals): (&Workers, &mut Signals), idle: Option<Duration>, interval: Duration, served: bool) {
    let mut tick = tokio::time::interval(Duration::from_millis(200));
    let mut seen = (u64::MAX, Instant::now());
    let mut progress = Progress::new(interval);
    loop {
        tokio::select! {
            () = signals.any() => return,
            _ = tick.tick() => {}
        }
        let mut all = Vec::new();
        for connector in &workers.connectors {
            all.push((connector.config.name.as_str(), connector.standing().await));
        }
        progress.tell(&all);
        let status: Vec<&TaskStatus> = all.iter().flat_map(|(_, s)| &s.tasks).collect();
        if !served && status.iter().all(|t| t.state.has_ended()) {
            return;
        }
        let read = status.iter().map(|t| t.read).sum();
        if read != seen.0 || status.iter().any(|t| t.is_busy()) {
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

/// Tells how connectors come on: states when they change, counts now and then.
struct Progress {
    interval: Duration,
    told: Instant,
    states: Vec<(TargetState, Vec<(TaskState, bool)>)>,
    read: Vec<u64>,
}

impl Progress {
    fn new(interval: Duration) -> Self {
        Progress { interval, told: Instant::now(), states: Vec::new(), read: Vec::new() }
    }

    fn tell(&mut self, all: &[(&str, Standing)]) {
        let first = self.states.is_empty();
        let states = |s: &Standing| (s.target, s.tasks.iter().map(|t| (t.state.clone(), t.slow)).collect::<Vec<_>>());
        for (i, (name, standing)) in all.iter().enumerate() {
            for (t, task) in standing.tasks.iter().enumerate() {
                let before = self.states.get(i).and_then(|(_, tasks)| tasks.get(t));
                let (state, slow) = before.map_or((&TaskState::Running, false), |(state, slow)| (state, *slow));
                if *state != task.state {
                    println!("{name} task {}: {}{}", task.task, task.state, why(task));
                }
                if task.slow && !slow {
                    println!(
                        "{name} task {}: slow: put and commit take longer than the lock; see share.acquisition.lock.timeout.ms",
                        task.task
                    );
                }
            }
        }
        self.states = all.iter().map(|(_, s)| states(s)).collect();
        let read: Vec<u64> = all.iter().map(|(_, s)| s.tasks.iter().map(|t| t.read).sum()).collect();
        let passed = self.told.elapsed();
        if first {
            self.read = read;
        } else if passed >= self.interval {
            for ((name, standing), (now, before)) in all.iter().zip(read.iter().zip(&self.read)) {
                if now != before {
                    println!("{}", line(name, standing, now.saturating_sub(*before), passed));
                }
            }
            (self.read, self.told) = (read, Instant::now());
        }
    }
}

fn why(task: &TaskStatus) -> String {
    match (&task.state, &task.trace) {
        (TaskState::Failed(why), _) => format!(": {}", mask::text(why)),
        (TaskState::Restarting, Some(why)) => format!(" after: {}", mask::text(why)),
        _ => String::new(),
    }
}

fn line(name: &str, standing: &Standing, records: u64, passed: Duration) -> String {
    let sum = |of: fn(&TaskStatus) -> u64| standing.tasks.iter().map(of).sum::<u64>();
    let running = standing.tasks.iter().filter(|t| t.state == TaskState::Running).count();
    format!(
        "{name}: {running} of {} tasks run, read {} ({:.0}/s) accepted {} released {} rejected {}",
        standing.tasks.len(),
        sum(|t| t.read),
        records as f64 / passed.as_secs_f64(),
        sum(|t| t.accepted),
        sum(|t| t.released),
        sum(|t| t.rejected),
    )
}
