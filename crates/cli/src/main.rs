//! `kshare`: command line for Kafka share groups.

mod bench;
mod broker;
mod cluster_args;
mod conformance;
mod connect;
mod connections;
mod consume;
mod demo;
mod exit;
mod groups;
mod ledger;
mod pipe;
mod produce;
mod progress;
mod properties;
mod record_json;
mod signals;
mod text;

use clap::{Parser, Subcommand};
use exit::Failure;
use std::io::IsTerminal;
use std::process::ExitCode;

/// Kafka share groups: produce, consume, administer; exactly-once demo, embedded broker, sinks, conformance.
#[derive(Debug, Parser)]
#[command(name = "kshare", version, propagate_version = true, after_help = AFTER_HELP)]
struct Args {
    #[command(subcommand)]
    command: Command,
}

const AFTER_HELP: &str = "Examples:
  kshare demo                                  exactly-once out of a share group, on an embedded broker
  kshare demo --chaos --seed 7                 the same, with members dropped and leaders moved
  kshare demo --bootstrap-server HOST:9092 --semantics at-least-once
  kshare broker --listen 127.0.0.1:9092        an embedded broker for development and tests
  kshare broker --data-dir data --topic orders:4   the same, kept on disk from run to run
  kshare produce orders --bootstrap-server HOST:9092 < lines.txt
  kshare consume orders --group billing --bootstrap-server HOST:9092
  kshare pipe --from orders --to bills --group billing --bootstrap-server HOST:9092 -- ./bill
  kshare ledger create --bootstrap-server HOST:9092     what exactly-once needs on released Kafka
  kshare groups describe billing --bootstrap-server HOST:9092
  kshare connections --bootstrap-server HOST:9092       can each broker be reached, and how
  kshare conformance --bootstrap-server HOST:9092   judges a broker
  kshare bench                                 what consuming costs; also bench produce, bench transactions

Exit codes: 0 done, 1 failed, 2 wrong usage. KSHARE_LOG=debug shows what goes on.";

#[derive(Debug, Subcommand)]
enum Command {
    /// Runs exactly-once tasks over real input, and counts what came out.
    Demo(demo::DemoArgs),
    /// Writes lines of the standard input as records.
    Produce(produce::ProduceArgs),
    /// Prints records as a member of a share group, and accepts those that were printed.
    Consume(consume::ConsumeArgs),
    /// Runs any program as a processor between topics, exactly once.
    Pipe(pipe::PipeArgs),
    /// Creates, shows, checks and settles the acknowledgement ledger.
    Ledger(ledger::LedgerArgs),
    /// Lists, describes, resets, deletes and configures share groups.
    Groups(groups::GroupsArgs),
    /// Connects to every broker, and tells how each connection stands.
    Connections(connections::ConnectionsArgs),
    /// Runs the embedded broker. For development and tests: production is Apache Kafka.
    Broker(broker::BrokerArgs),
    /// Runs sinks on share groups, from Kafka Connect's kind of files.
    Connect(connect::ConnectArgs),
    /// Judges a broker by the rules of share groups and transactions.
    Conformance(conformance::ConformanceArgs),
    /// Measures what consuming, producing and transactions cost, beside other clients.
    Bench(bench::BenchArgs),
    /// A task of `kshare demo --chaos` in a process of its own.
    #[command(hide = true)]
    DemoMember(demo::MemberArgs),
    /// A client that `kshare bench` measures.
    #[command(hide = true)]
    BenchPeer(bench::PeerArgs),
}

fn main() -> ExitCode {
    let args = Args::parse();
    // A broker tells what happens; other commands show their own progress.
    let level = if matches!(args.command, Command::Broker(_)) { "error,kafka_share_broker=info" } else { "error" };
    let filter = tracing_subscriber::EnvFilter::try_from_env("KSHARE_LOG")
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new(level));
    let colours = std::io::stderr().is_terminal();
    tracing_subscriber::fmt().with_env_filter(filter).with_ansi(colours).with_writer(std::io::stderr).init();
    let mut runtime = match args.command {
        // One task that consumes needs one thread; more of them mostly wake each other.
        Command::BenchPeer(_) => tokio::runtime::Builder::new_current_thread(),
        _ => tokio::runtime::Builder::new_multi_thread(),
    };
    let runtime = match runtime.enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return Failure::new(format!("the runtime does not start: {error}")).report(),
    };
    let result = runtime.block_on(async {
        match args.command {
            Command::Demo(args) => Box::pin(demo::run(args)).await,
            Command::DemoMember(args) => Box::pin(demo::run_member(args)).await,
            Command::Produce(args) => Box::pin(produce::run(args)).await,
            Command::Consume(args) => Box::pin(consume::run(args)).await,
            Command::Pipe(args) => Box::pin(pipe::run(args)).await,
            Command::Ledger(args) => Box::pin(ledger::run(args)).await,
            Command::Groups(args) => Box::pin(groups::run(args)).await,
            Command::Connections(args) => Box::pin(connections::run(args)).await,
            Command::Broker(args) => Box::pin(broker::run(args)).await,
            Command::Connect(args) => Box::pin(connect::run(args)).await,
            Command::Conformance(args) => conformance::run(args).await,
            Command::Bench(args) => Box::pin(bench::run(args)).await,
            Command::BenchPeer(args) => Box::pin(bench::run_peer(args)).await,
        }
    });
    // Tasks that still say goodbye to a broker must not hold up the exit.
    runtime.shutdown_background();
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
