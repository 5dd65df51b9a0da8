//! `kshare demo`: exactly-once out of a share group, counted record by record.

mod chaos;
mod engine;
mod input;
mod member;
mod processes;
mod report;
mod state;
mod task;
mod verify;

use crate::cluster_args::ClusterArgs;
use crate::exit::Failure;
use crate::text;
use clap::{Args, ValueEnum};
use engine::Engine;
use indicatif::{ProgressBar, ProgressStyle};
pub(crate) use member::{MemberArgs, run as run_member};
use report::Report;
use state::Progress;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Options of `kshare demo`.
#[derive(Debug, Args)]
#[command(
    after_help = "Each line of the input is a record. Tasks read it through one share group, change it to upper case, write it
to an output topic, and acknowledge. A read_committed reader then counts what is missing and what is there twice.

Examples:
  kshare demo
  kshare demo --input access.log --tasks 16 --partitions 6
  kshare demo --chaos --seed 42 --json
  kshare demo --bootstrap-server HOST:9092
  kshare demo --bootstrap-server HOST:9092 --chaos --duration 10m
  kshare demo --bootstrap-server HOST:9092 --semantics at-least-once

On released Kafka exactly-once goes by the acknowledgement ledger (see kshare ledger), one of the demo's own.
With --chaos and a broker named, each task is a process, which is killed (SIGKILL) and stopped for longer than its locks
hold (SIGSTOP) over and over, at points of its work and at any moment.

Exit code 0 only if nothing is missing and, exactly-once, nothing is there twice."
)]
pub(crate) struct DemoArgs {
    #[command(flatten)]
    cluster: ClusterArgs,
    /// File to read, one record a line; a year of hourly temperatures by default
    #[arg(long, value_name = "FILE")]
    input: Option<PathBuf>,
    /// Members of the share group
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=200))]
    tasks: u16,
    /// Partitions of the input topic
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=1000))]
    partitions: u16,
    /// When records are acknowledged
    #[arg(long, value_enum, default_value_t = Semantics::ExactlyOnce)]
    semantics: Semantics,
    /// How acknowledgements get into transactions
    #[arg(long, value_enum, default_value_t = BackendArg::Auto)]
    backend: BackendArg,
    /// Drop tasks at random points and pause them past their locks, or kill and stop their processes where a broker is named;
    /// on the embedded broker, move leaders and restart nodes
    #[arg(long)]
    chaos: bool,
    /// With --chaos and a broker named: go on with the input from its start for this time, such as 10m
    #[arg(long, value_name = "TIME", value_parser = text::duration, requires = "chaos")]
    duration: Option<Duration>,
    /// Leave topics and group on the cluster
    #[arg(long)]
    keep: bool,
    /// Seed of the chaos
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Records a transaction, at most
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    batch: u16,
    /// Nodes of the embedded broker
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=16))]
    nodes: u16,
    /// Seconds after which the run is given up, beyond --duration
    #[arg(long, default_value_t = 300, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    timeout: u64,
    /// Print one JSON object instead of a table
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Semantics {
    /// Output and acknowledgement commit together
    ExactlyOnce,
    /// Acknowledge after the output is committed
    AtLeastOnce,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum BackendArg {
    /// Native where the cluster offers it, else the ledger
    Auto,
    /// TxnShareAcknowledge (KIP-1289), which no released broker has
    Native,
    /// The acknowledgement ledger, on any broker
    Ledger,
    /// Native, and the ledger beside it, as members do that move from the one to the other
    Both,
}

impl Semantics {
    fn name(self) -> &'static str {
        match self {
            Semantics::ExactlyOnce => "exactly-once",
            Semantics::AtLeastOnce => "at-least-once",
        }
    }
}

/// What all parts of a run need to know.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) input_topic: String,
    pub(crate) output_topic: String,
    pub(crate) group: String,
    pub(crate) tasks: u16,
    pub(crate) partitions: i32,
    pub(crate) semantics: Semantics,
    pub(crate) chaos: bool,
    pub(crate) seed: u64,
    pub(crate) batch: usize,
    pub(crate) deadline: Instant,
    /// none, native, ledger or both
    pub(crate) backend: &'static str,
    /// Topic of the ledger, where there is one.
    pub(crate) ledger: String,
    /// Whether a poll acquires no more than it hands out: under chaos each record that is only held wears out.
    pub(crate) record_limit: bool,
}

impl Plan {
    /// Properties of consumers and producers.
    fn backend_properties(&self) -> [(&str, &str); 2] {
        [("share.ack.transaction.backend", self.backend), ("share.ack.ledger.topic", &self.ledger)]
    }

    /// Whether the run needs a ledger.
    fn has_ledger(&self) -> bool {
        matches!(self.backend, "ledger" | "both")
    }

    fn transactional_ids(&self) -> impl Iterator<Item = String> {
        (0..self.tasks).map(|task| self.transactional_id(task))
    }
}

pub(crate) async fn run(args: DemoArgs) -> Result<(), Failure> {
    let lines = input::read(args.input.as_deref())?;
    let engine = Engine::start(&args.cluster, args.nodes, args.chaos, args.seed).await?;
    let unique =
        format!("{:x}{:03x}", std::time::UNIX_EPOCH.elapsed().map_or(0, |t| t.as_millis()), std::process::id() & 0xfff);
    let plan = Plan {
        input_topic: format!("kshare-demo-{unique}-in"),
        output_topic: format!("kshare-demo-{unique}-out"),
        group: format!("kshare-demo-{unique}"),
        tasks: args.tasks,
        partitions: i32::from(args.partitions),
        semantics: args.semantics,
        chaos: args.chaos,
        seed: args.seed,
        batch: usize::from(args.batch),
        deadline: Instant::now() + Duration::from_secs(args.timeout) + args.duration.unwrap_or_default(),
        backend: engine.check(args.semantics, args.backend).await?,
        ledger: format!("kshare-demo-{unique}-ledger"),
        record_limit: args.chaos && engine.limits_records().await?,
    };
    let setup = engine.prepare(&plan).await?;
    input::load(&engine, &plan, &lines).await?;
    let bar = progress_bar(lines.len(), args.json);
    let progress = Arc::new(Progress::new(&plan, lines.len()));
    let started = Instant::now();
    let ids = if args.chaos && engine.embedded().is_none() {
        let way = (setup.lock, &lines[..], args.duration);
        processes::run(&engine, (&plan, &args.cluster), &progress, way, &bar).await?
    } else {
        run_tasks(&engine, &plan, &progress, setup.lock, &bar).await;
        plan.transactional_ids().collect()
    };
    let seconds = started.elapsed().as_secs_f64();
    bar.finish_and_clear();
    verify::end_what_was_left(&engine, ids).await?;
    let total = progress.total();
    let counts = verify::count(&engine, &plan, &lines, &progress).await?;
    let report = Report { plan: &plan, progress: &progress, counts, seconds, input_records: total };
    report.print(args.json);
    if !args.keep {
        engine.finish(&plan).await;
    }
    report.verdict()
}

fn progress_bar(records: usize, hidden: bool) -> ProgressBar {
    let bar = if hidden { ProgressBar::hidden() } else { ProgressBar::new(records as u64) };
    let template = "{bar:40} {pos}/{len} records committed, {per_sec}, {elapsed} {msg}";
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar
}

/// Runs all tasks, and the chaos beside them, until every record is committed or the time is over.
async fn run_tasks(engine: &Engine, plan: &Plan, progress: &Arc<Progress>, lock: Duration, bar: &ProgressBar) {
    let mut set = tokio::task::JoinSet::new();
    for number in 0..plan.tasks {
        let (cluster, plan, progress) = (engine.cluster(), plan.clone(), Arc::clone(progress));
        set.spawn(task::keep_running(cluster, plan, progress, number, lock));
    }
    let chaos = chaos::Chaos::new(engine.embedded(), plan);
    let mut tick = tokio::time::interval(Duration::from_millis(20));
    let mut chaos = Box::pin(chaos.run(Arc::clone(progress)));
    let mut idle = verify::IdleCheck::new(lock);
    loop {
        tokio::select! {
            _ = tick.tick() => {
                bar.set_position(progress.committed() as u64);
                if progress.is_complete() || Instant::now() >= plan.deadline {
                    break;
                }
                if idle.is_due(progress) && verify::all_there(engine, plan, progress).await {
                    break;
                }
            }
            () = &mut chaos, if plan.chaos => {}
        }
    }
    progress.stop();
    while set.join_next().await.is_some() {}
    bar.set_position(progress.committed() as u64);
}
