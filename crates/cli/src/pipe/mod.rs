//! `kshare pipe`: any program as a processor between two topics, exactly once.

mod command;
mod counts;
mod framing;
mod task;

use crate::cluster_args::ClusterArgs;
use crate::exit::{Failure, note};
use crate::progress::{self, Line};
use crate::signals::Interrupt;
use crate::text;
use clap::{Args, ValueEnum};
use command::Program;
use counts::Counts;
use framing::Framing;
use kafka_share::admin::{AutoOffsetReset, ShareGroupSettings};
use kafka_share::net::Cluster;
use kafka_share::{Admin, Uuid};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// How often the line of progress changes, and the ends are looked for.
const TURN: Duration = Duration::from_millis(100);

/// Options of `kshare pipe`.
#[derive(Debug, Args)]
#[command(
    after_help = "COMMAND gets a line for each record on its standard input and must answer each with one line on its standard output,
in order and without holding it back; what it writes to its standard error is shown. One runs for each task, for as long
as it answers. Where it ends, the records under way come again and it is started anew; records that came again go through
by themselves, so that one that COMMAND dies of does not take others along. Without COMMAND records are copied.

--framing lines: the value is the line, the answer is the new value; key, headers and timestamp stay. A null value is an
empty line.
--framing json: an object a line with topic, partition, offset, timestamp, key, value, headers (each with name and value)
and delivery_count; bytes that are no UTF-8 stand as {\"base64\": \"..\"}. The answer is an object with key, value,
headers and timestamp, all optional, or an array of such objects, or null for no record.
A program that writes lines of its own accord would have them taken for answers: --per-batch is the safe form for those.
A program that answers only once its input ends, or that holds its output back where it is no terminal, needs
--per-batch: it is started for each batch and its input closed after it.

--semantics exactly-once (default) writes the answers and acknowledges the records in one transaction; readers of the
output need isolation.level=read_committed. Released Kafka (4.1 to 4.4) needs the acknowledgement ledger for it, a topic
that `kshare ledger create` makes, or --property ledger.auto.create=true; every member of the group must use it.
at-least-once acknowledges once the answers are written: after a crash some come twice.

Examples:
  kshare pipe --from orders --to bills --group billing --bootstrap-server HOST:9092 -- ./bill
  kshare pipe --from a --to b --group g --framing json --config client.properties -- jq -c --unbuffered '.value |= ascii_upcase'
  kshare pipe --from a --to b --group g --per-batch --tasks 4 --bootstrap-server HOST:9092 -- tr a-z A-Z
  kshare pipe --from a --to b --group g --semantics at-least-once --bootstrap-server HOST:9092

Ctrl-C and SIGTERM end it once the batches under way are done, or 10 s later. Exit code 1: it ended before that, or
--count records were not done."
)]
pub(crate) struct PipeArgs {
    /// Topic to read; can be repeated
    #[arg(long, value_name = "TOPIC", required = true)]
    from: Vec<String>,
    /// Topic to write to
    #[arg(long, value_name = "TOPIC")]
    to: String,
    /// Share group to be a member of
    #[arg(long, value_name = "GROUP")]
    group: String,
    #[command(flatten)]
    cluster: ClusterArgs,
    /// Members of the group, each with a program of its own
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1000))]
    tasks: u16,
    /// What a crash may do to the output
    #[arg(long, value_enum, default_value_t = Semantics::ExactlyOnce)]
    semantics: Semantics,
    /// What a line is
    #[arg(long, value_enum, default_value_t = Framing::Lines)]
    framing: Framing,
    /// Start the program for each batch, and close its input after it
    #[arg(long, requires = "command")]
    per_batch: bool,
    /// Start a new group at the first record, not at the end
    #[arg(long)]
    from_beginning: bool,
    /// End after so many records; a few more where the outcome of a commit stayed unknown
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// End once nothing has come for this time, such as 10s
    #[arg(long, value_name = "TIME", value_parser = text::duration)]
    until_idle: Option<Duration>,
    /// Start of the tasks' transactional ids; with one of their own, tasks that are started again end at once what they
    /// left open, and no other pipe may have it. Without, a new one each time
    #[arg(long, value_name = "PREFIX")]
    transactional_id: Option<String>,
    /// Print what was done as a JSON object
    #[arg(long)]
    json: bool,
    /// Program, and its arguments
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Semantics {
    /// Each record's answer is in the output once, whatever crashes
    ExactlyOnce,
    /// No record is lost; some come twice
    AtLeastOnce,
}

/// What every task needs to know.
#[derive(Debug)]
struct Plan {
    from: Vec<String>,
    to: String,
    group: String,
    properties: Vec<(String, String)>,
    semantics: Semantics,
    framing: Framing,
    program: Option<Program>,
    transactional_id: String,
}

pub(crate) async fn run(args: PipeArgs) -> Result<(), Failure> {
    let interrupt = Interrupt::new()?;
    if args.from.contains(&args.to) {
        return Err(Failure::usage("--to is one of the topics of --from: every answer would be read again"));
    }
    let properties = args.cluster.properties()?;
    let cluster = args.cluster.connect().await?;
    prepare(&args, &cluster).await?;
    let own = || format!("kshare-pipe-{}-{}", args.group, Uuid::random());
    let plan = Arc::new(Plan {
        transactional_id: args.transactional_id.clone().unwrap_or_else(own),
        from: args.from,
        to: args.to,
        group: args.group,
        properties,
        semantics: args.semantics,
        framing: args.framing,
        program: (!args.command.is_empty()).then_some(Program { words: args.command, per_batch: args.per_batch }),
    });
    let counts = Arc::new(Counts::new(args.count));
    let (stop, stopped) = watch::channel(false);
    let mut tasks = JoinSet::new();
    for number in 0..usize::from(args.tasks) {
        tasks.spawn(task::keep_running(Arc::clone(&plan), Arc::clone(&counts), number, stopped.clone()));
    }
    let ends = Ends { count: args.count, until_idle: args.until_idle, interrupt };
    let result = watch(&counts, &ends, &stop, tasks).await;
    if args.json {
        text::print_json(&counts.json())?;
    } else {
        note(counts.line());
    }
    result?;
    match args.count {
        Some(count) if counts.read.load(Relaxed) < count => {
            Err(Failure::new(format_args!("{} of {count} records were done", counts.read.load(Relaxed))))
        }
        _ => Ok(()),
    }
}

struct Ends {
    count: Option<u64>,
    until_idle: Option<Duration>,
    interrupt: Interrupt,
}

impl Ends {
    fn have_come(&self, counts: &Counts) -> bool {
        self.interrupt.is_set()
            || self.count.is_some_and(|count| counts.read.load(Relaxed) >= count)
            || self.until_idle.is_some_and(|time| counts.idle() >= time)
    }
}

/// Waits for the tasks; stops all once one of the ends has come, or one of them has failed.
async fn watch(
    counts: &Counts,
    ends: &Ends,
    stop: &watch::Sender<bool>,
    mut tasks: JoinSet<Result<(), Failure>>,
) -> Result<(), Failure> {
    let mut shown = Line::new();
    let mut result = Ok(());
    let mut turn = tokio::time::interval(TURN);
    loop {
        tokio::select! {
            ended = tasks.join_next() => match ended {
                None => break,
                Some(Ok(Ok(()))) => {}
                Some(failed) => {
                    let failure = match failed {
                        Ok(Err(failure)) => failure,
                        _ => Failure::new("a task failed; nothing is lost: what it held comes again"),
                    };
                    result = result.and(Err(failure));
                    let _ = stop.send(true);
                }
            },
            _ = turn.tick() => {
                shown.say(|| counts.line());
                if ends.have_come(counts) {
                    let _ = stop.send(true);
                }
            }
        }
    }
    shown.clear();
    result
}

/// Sets the group up, and says which topics are missing.
async fn prepare(args: &PipeArgs, cluster: &Arc<Cluster>) -> Result<(), Failure> {
    let admin = Admin::on(Arc::clone(cluster));
    if args.from_beginning {
        let settings = ShareGroupSettings::new().auto_offset_reset(AutoOffsetReset::Earliest);
        let set =
            progress::during("setting the group up", admin.apply_share_group_settings(&args.group, &settings)).await;
        set.map_err(|e| Failure::from(e).context("--from-beginning"))?;
    }
    let topics: Vec<&str> = args.from.iter().chain([&args.to]).map(String::as_str).collect();
    for (topic, outcome) in admin.describe_topics(&topics).await? {
        match outcome {
            Err(error) if error.is_retriable() && topic != args.to => {
                note(format_args!("topic {topic:?} does not exist yet; waiting for it"));
            }
            // Where brokers create topics, the first record does.
            Err(error) if error.is_retriable() => note(format_args!("topic {topic:?} does not exist yet")),
            Err(error) => return Err(error.into()),
            Ok(_) => {}
        }
    }
    Ok(())
}
