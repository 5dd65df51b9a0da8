//! Running connectors until they are told to end.

use super::workers::{Connector, Phase, Standing, Workers};
use super::{http, mask, text_of, worker_properties};
use crate::exit::Failure;
use crate::signals::Signals;
use clap::Args;
use kafka_share::{Admin, ClientConfig};
use kafka_share_connect::{
    ConnectError, ConnectorConfig, Properties, TaskState, TaskStatus, WorkerConfig, sinks, unknown_settings,
};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// How long joining the group may take before it counts as idle.
const START: Duration = Duration::from_secs(30);

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
    let configs = read_connectors(&args.connectors, &worker)?;
    let listener = http::bind(&properties).await?;
    let address = listener.as_ref().and_then(|l| l.local_addr().ok());
    let mut signals = Signals::new()?;
    let mut connectors = Vec::new();
    for config in configs {
        let name = config.name.clone();
        connectors.push(Connector::new(config).map_err(|error| refused(&name, &error))?);
    }
    let workers = Arc::new(Workers {
        connectors,
        id: http::worker_id(&properties, address),
        hosts: http::hosts(&properties),
        cluster_id: OnceLock::new(),
    });
    let served = listener.map(|listener| {
        println!("REST interface: http://{}", address.map_or_else(String::new, |a| a.to_string()));
        tokio::spawn(find_cluster_id(Arc::clone(&workers), properties.clone()));
        tokio::spawn(http::serve(listener, Arc::clone(&workers), Arc::new(properties)))
    });
    let idle = args.stop_when_idle.map(Duration::from_secs);
    watch((&workers, &mut signals), idle, Duration::from_secs(args.status_interval), served.is_some()).await;
    if let Some(served) = served {
        served.abort();
    }
    end(&workers.connectors).await
}

/// Reads the files of connectors, and says which of their settings nobody knows.
fn read_connectors(paths: &[PathBuf], worker: &WorkerConfig) -> Result<Vec<ConnectorConfig>, Failure> {
    let mut configs: Vec<ConnectorConfig> = Vec::new();
    for path in paths {
        let fail = |e: &dyn std::fmt::Display| Failure::usage(format_args!("{}: {e}", path.display()));
        let config = ConnectorConfig::from_json(&text_of(path)?, worker).map_err(|e| fail(&e))?;
        let sink = sinks::connector(&config.class).map_err(|e| fail(&e))?;
        if configs.iter().any(|c| c.name == config.name) {
            return Err(fail(&format_args!("another connector is named {:?} too", config.name)));
        }
        for problem in unknown_settings(&config, &*sink) {
            println!("connector {:?}: warning: {}", config.name, mask::text(&problem.message));
        }
        configs.push(config);
    }
    Ok(configs)
}

async fn find_cluster_id(workers: Arc<Workers>, properties: Properties) {
    let Some(servers) = properties.get("bootstrap.servers") else { return };
    let Ok(admin) = Admin::new(ClientConfig::new(servers)) else { return };
    if let Ok(cluster) = admin.describe_cluster().await {
        let _ = workers.cluster_id.set(cluster.cluster_id);
    }
}

/// Stops all, and tells what they have done.
async fn end(connectors: &[Arc<Connector>]) -> Result<(), Failure> {
    let mut failed = None;
    for connector in connectors {
        if let Phase::Failed(error) = connector.standing().phase {
            failed.get_or_insert(refused(&connector.config.name, &error));
        }
        connector.stop();
    }
    for connector in connectors {
        connector.stopped().await;
        let name = &connector.config.name;
        for task in connector.standing().tasks {
            let counts = counts(&task);
            match task.state {
                TaskState::Failed(why) => {
                    println!("{name} task {}: FAILED: {counts}", task.task);
                    let text = format!("connector {name:?} task {}: {}", task.task, mask::text(&why));
                    failed.get_or_insert(Failure::new(text));
                }
                _ => println!("{name} task {}: STOPPED: {counts}", task.task),
            }
        }
    }
    failed.map_or(Ok(()), Err)
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

/// Returns at Ctrl-C and SIGTERM, when nothing was read for `idle`, or when all has failed and nobody could restart it.
async fn watch((workers, signals): (&Workers, &mut Signals), idle: Option<Duration>, interval: Duration, served: bool) {
    let mut tick = tokio::time::interval(Duration::from_millis(200));
    let mut seen = (u64::MAX, Instant::now());
    let mut progress = Progress::new(interval);
    loop {
        tokio::select! {
            () = signals.any() => return,
            _ = tick.tick() => {}
        }
        let all: Vec<_> = workers.connectors.iter().map(|c| (c.config.name.as_str(), c.standing())).collect();
        progress.tell(&all);
        if !served && all.iter().all(|(_, standing)| standing.has_ended()) {
            return;
        }
        let status: Vec<&TaskStatus> = all.iter().flat_map(|(_, s)| &s.tasks).collect();
        let read = status.iter().map(|t| t.read).sum();
        if read != seen.0 || status.iter().any(|t| t.is_busy()) {
            seen = (read, Instant::now());
        }
        // A group that is still being joined is not idle.
        let joining = status.iter().any(|t| t.state == TaskState::Running && !t.fetching);
        let starting = joining || all.iter().any(|(_, s)| matches!(s.phase, Phase::Starting));
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
    before: Vec<Standing>,
    read: Vec<u64>,
}

impl Progress {
    fn new(interval: Duration) -> Self {
        Progress { interval, told: Instant::now(), before: Vec::new(), read: Vec::new() }
    }

    fn tell(&mut self, all: &[(&str, Standing)]) {
        for (i, (name, standing)) in all.iter().enumerate() {
            let before = self.before.get(i);
            tell_phase(name, before, standing);
            tell_tasks(name, before, standing);
        }
        let first = self.before.is_empty();
        self.before = all.iter().map(|(_, standing)| standing.clone()).collect();
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

fn tell_phase(name: &str, before: Option<&Standing>, now: &Standing) {
    let same = before.is_some_and(|b| std::mem::discriminant(&b.phase) == std::mem::discriminant(&now.phase));
    match &now.phase {
        _ if same => {}
        Phase::Started => {
            println!("connector {name:?} runs with {} tasks; Ctrl-C ends it", now.tasks.len());
            let told = before.map(|b| &b.missing[..]).unwrap_or_default();
            for topic in now.missing.iter().filter(|topic| !told.contains(topic)) {
                println!("connector {name:?}: topic {topic:?} does not exist; its records are read once it is created");
            }
        }
        Phase::Failed(error) => println!("connector {name:?}: FAILED: {}", mask::text(&error.to_string())),
        Phase::Starting | Phase::Stopped => {}
    }
}

fn tell_tasks(name: &str, before: Option<&Standing>, now: &Standing) {
    for (t, task) in now.tasks.iter().enumerate() {
        let before = before.and_then(|b| b.tasks.get(t));
        let (state, slow) = before.map_or((&TaskState::Running, false), |b| (&b.state, b.slow));
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
