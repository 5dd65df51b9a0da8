//! `kshare bench`: what it costs to consume, to produce and to do both in transactions, beside other clients in one run.

mod connect;
mod consume;
mod peer;
mod place;
mod process;
mod produce;
mod report;
mod rounds;
mod transactions;

use crate::cluster_args::ClusterArgs;
use crate::exit::Failure;
use clap::{Args, Subcommand};
pub(crate) use peer::{PeerArgs, run as run_peer};
use std::path::PathBuf;

/// Options of `kshare bench`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, after_help = AFTER_HELP)]
pub(crate) struct BenchArgs {
    #[command(subcommand)]
    what: Option<What>,
    #[command(flatten)]
    consume: consume::ConsumeArgs,
}

const AFTER_HELP: &str = "Without a command it consumes: kshare bench is kshare bench consume.

Each client is a process of its own, one after the other, and its whole processor time counts, start and end included.
Whoever comes first meets a cluster that is not warm: compare by several --rounds. Without --bootstrap-server this process runs an embedded broker, whose processor time is in no figure. Processor time and
memory are measured on Linux only. What TLS leaves of the records per processor second is one divided by its CPU RATIO.

--peer NAME=COMMAND adds a client. The command gets more arguments (see the help of consume, produce and transactions),
does what they ask for, prints one line such as {\"records\": 1000000, \"seconds\": 4.2} and exits with 0.

Examples:
  kshare bench
  kshare bench produce --size 1024
  kshare bench connect --rounds 5
  kshare bench produce --size 1024 --tls --rounds 5
  kshare bench transactions --records-per-transaction 1,100
  kshare bench consume --bootstrap-server HOST:9092 --records 200000
  kshare bench --rounds 5 --peer 'java=java -cp kafka-clients.jar:classes share.Bench'";

#[derive(Debug, Subcommand)]
enum What {
    /// Consumes a topic in a share group, every record accepted explicitly.
    Consume(consume::ConsumeArgs),
    /// Writes records with an idempotent producer, acks=all.
    Produce(produce::ProduceArgs),
    /// Consumes by the sink driver, beside the bare consumer.
    Connect(connect::ConnectArgs),
    /// Consumes, produces and commits, in transactions of so many records.
    Transactions(transactions::TransactionsArgs),
}

/// What all benches have in common.
#[derive(Debug, Args)]
struct CommonArgs {
    #[command(flatten)]
    cluster: ClusterArgs,
    /// Bytes of a record's value
    #[arg(long, value_name = "BYTES", default_value_t = 100)]
    size: usize,
    /// Partitions of the topics
    #[arg(long, value_name = "N", default_value_t = 12, value_parser = clap::value_parser!(i32).range(1..))]
    partitions: i32,
    /// Another client: NAME=COMMAND; can be repeated
    #[arg(long, value_name = "NAME=COMMAND", value_parser = crate::cluster_args::pair)]
    peer: Vec<(String, String)>,
    /// Rounds in which every client runs once, each round beginning with the next client; figures are medians of rounds
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,
    /// Measures this project's client a second time, by TLS: NAME-tls
    #[arg(long)]
    tls: bool,
    /// File of properties by which a cluster is reached by TLS; as --tls, with --bootstrap-server
    #[arg(long, value_name = "FILE")]
    tls_config: Option<PathBuf>,
    /// JSON on standard output
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(args: BenchArgs) -> Result<(), Failure> {
    match args.what {
        None => consume::run(args.consume).await,
        Some(What::Consume(args)) => consume::run(args).await,
        Some(What::Connect(args)) => connect::run(args).await,
        Some(What::Produce(args)) => produce::run(args).await,
        Some(What::Transactions(args)) => transactions::run(args).await,
    }
}
