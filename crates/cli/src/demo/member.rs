//! A task of the demo as a process of its own, which can be killed and stopped. It tells on its standard output what it
//! does, in lines; see [`super::chaos`].

use super::chaos::{ABORTED, DONE, Dice, Hand, MET, Strikes};
use super::state::Progress;
use super::{Plan, Semantics, task};
use crate::cluster_args::ClusterArgs;
use crate::exit::Failure;
use clap::Args;
use kafka_share::net::Cluster;
use std::io::BufRead;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

/// How often what was done is told.
const TELL: Duration = Duration::from_millis(50);

/// Options of a task's process.
#[derive(Debug, Args)]
pub(crate) struct MemberArgs {
    #[command(flatten)]
    cluster: ClusterArgs,
    #[arg(long)]
    input_topic: String,
    #[arg(long)]
    output_topic: String,
    #[arg(long)]
    group: String,
    #[arg(long, value_enum)]
    semantics: Semantics,
    #[arg(long)]
    backend: String,
    #[arg(long)]
    ledger: String,
    #[arg(long)]
    batch: usize,
    #[arg(long)]
    record_limit: bool,
    #[arg(long)]
    transactional_id: String,
    #[arg(long)]
    lock_ms: u64,
    #[arg(long)]
    seed: u64,
    /// Which numbers of the seed
    #[arg(long)]
    stream: u64,
}

impl MemberArgs {
    /// The arguments that give this member.
    pub(super) fn words(cluster: &ClusterArgs, plan: &Plan, id: &str, lock: Duration, stream: u64) -> Vec<String> {
        let mut words = vec!["demo-member".to_owned()];
        let mut give = |name: &str, value: String| words.extend([format!("--{name}"), value]);
        if let Some(servers) = &cluster.bootstrap_server {
            give("bootstrap-server", servers.clone());
        }
        if let Some(file) = &cluster.config {
            give("config", file.display().to_string());
        }
        for (name, value) in &cluster.property {
            give("property", format!("{name}={value}"));
        }
        give("input-topic", plan.input_topic.clone());
        give("output-topic", plan.output_topic.clone());
        give("group", plan.group.clone());
        give("semantics", plan.semantics.name().to_owned());
        give("backend", plan.backend.to_owned());
        give("ledger", plan.ledger.clone());
        give("batch", plan.batch.to_string());
        give("transactional-id", id.to_owned());
        give("lock-ms", lock.as_millis().to_string());
        give("seed", plan.seed.to_string());
        give("stream", stream.to_string());
        if plan.record_limit {
            words.push("--record-limit".to_owned());
        }
        words
    }

    fn plan(&self) -> Result<Plan, Failure> {
        let backend = ["none", "native", "ledger", "both"].into_iter().find(|b| *b == self.backend);
        Ok(Plan {
            input_topic: self.input_topic.clone(),
            output_topic: self.output_topic.clone(),
            group: self.group.clone(),
            tasks: 1,
            partitions: 1,
            semantics: self.semantics,
            chaos: true,
            seed: self.seed,
            batch: self.batch,
            deadline: Instant::now(),
            backend: backend.ok_or_else(|| Failure::usage(format_args!("--backend {}", self.backend)))?,
            ledger: self.ledger.clone(),
            record_limit: self.record_limit,
        })
    }
}

/// Works until it is killed, or whoever started it is gone.
pub(crate) async fn run(args: MemberArgs) -> Result<(), Failure> {
    let plan = args.plan()?;
    let cluster = Cluster::new(args.cluster.client_config()?)?;
    let hand = Hand(answers());
    let mut strikes = Strikes::Signalled(Dice::new(plan.seed, args.stream), hand);
    let progress = Arc::new(Progress::new(&plan, 0));
    tokio::spawn(tell(Arc::clone(&progress)));
    let lock = Duration::from_millis(args.lock_ms);
    // What ends its life ends the process; it is started again.
    match task::live(&cluster, &plan, &progress, &args.transactional_id, lock, &mut strikes).await {
        Ok(_) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// A line of the standard input for each time that it may go on. Its end is the process's end.
fn answers() -> mpsc::Receiver<()> {
    let (sender, receiver) = mpsc::channel(1);
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines() {
            if line.is_err() || sender.blocking_send(()).is_err() {
                break;
            }
        }
        std::process::exit(0);
    });
    receiver
}

async fn tell(progress: Arc<Progress>) {
    let (mut told, mut aborted, mut again, mut met) = (0, 0, 0, [0; 3]);
    loop {
        tokio::time::sleep(TELL).await;
        let (done, failed) = (progress.commits.load(Ordering::Relaxed), progress.aborts.load(Ordering::Relaxed));
        let redelivered = progress.redelivered.load(Ordering::Relaxed);
        if done > told || redelivered > again {
            println!("{DONE} {} {}", done - told, redelivered - again);
        }
        if failed > aborted {
            println!("{ABORTED} {}", failed - aborted);
        }
        let counters = [&progress.fences, &progress.ledger_restarts, &progress.done_elsewhere];
        let now = counters.map(|counter| counter.load(Ordering::Relaxed));
        if now != met {
            println!("{MET} {} {} {}", now[0] - met[0], now[1] - met[1], now[2] - met[2]);
        }
        (told, aborted, again, met) = (done, failed, redelivered, now);
    }
}
