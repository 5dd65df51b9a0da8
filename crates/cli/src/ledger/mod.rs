//! `kshare ledger`: the acknowledgement ledger, which makes share groups exactly-once on released Kafka.

mod create;
mod generation;
mod leave;
mod settle;
mod show;

pub(crate) use generation::{ComesAgain, raise_before_records_come_again};

use crate::cluster_args::ClusterArgs;
use crate::exit::Failure;
use clap::{Args, Subcommand};
use kafka_share::Admin;
use kafka_share::ledger::DEFAULT_LEDGER_TOPIC;

/// Options of `kshare ledger`.
#[derive(Debug, Args)]
#[command(
    after_help = "Released Kafka (4.1 to 4.4) cannot acknowledge in a transaction. The ledger is a compacted topic in which producers
write, in the transaction of their output, which records it acknowledges. Every member of a group must use it.

Examples:
  kshare ledger create --bootstrap-server HOST:9092
  kshare ledger describe --bootstrap-server HOST:9092
  kshare ledger check --bootstrap-server HOST:9092
  kshare ledger compact --older-than 5m --bootstrap-server HOST:9092
  kshare ledger leave billing --wait 1m --bootstrap-server HOST:9092
  kshare ledger raise billing --bootstrap-server HOST:9092"
)]
pub(crate) struct LedgerArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Creates the topic with the settings that it needs, or checks the one that is there.
    Create(create::CreateArgs),
    /// Shows partitions, open intents with their producers, and what brokers were not told of yet.
    Describe(show::DescribeArgs),
    /// Looks for what members would stumble over; exit code 1 if there is any.
    Check(show::CheckArgs),
    /// Settles what dead applications left: ends their transactions, and removes intents that nobody needs.
    Compact(settle::CompactArgs),
    /// Has a group's members go on natively, where the cluster offers that.
    Leave(leave::LeaveArgs),
    /// Has the ledger forget a group whose records are to come again.
    Raise(generation::RaiseArgs),
}

/// What all of them take.
#[derive(Debug, Args)]
struct Common {
    #[command(flatten)]
    cluster: ClusterArgs,
    /// Topic; share.ack.ledger.topic of the properties by default
    #[arg(long, value_name = "TOPIC")]
    topic: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Common {
    async fn open(&self) -> Result<(Admin, String), Failure> {
        let topic = match &self.topic {
            Some(topic) => topic.clone(),
            None => topic_of(&self.cluster)?,
        };
        Ok((Admin::on(self.cluster.connect().await?), topic))
    }
}

/// The ledger that the properties name.
fn topic_of(cluster: &ClusterArgs) -> Result<String, Failure> {
    let named = cluster.property_value("share.ack.ledger.topic")?;
    Ok(named.filter(|topic| !topic.is_empty()).unwrap_or_else(|| DEFAULT_LEDGER_TOPIC.to_owned()))
}

pub(crate) async fn run(args: LedgerArgs) -> Result<(), Failure> {
    match args.command {
        Command::Create(args) => create::run(args).await,
        Command::Describe(args) => show::describe(args).await,
        Command::Check(args) => show::check(args).await,
        Command::Compact(args) => settle::run(args).await,
        Command::Leave(args) => leave::run(args).await,
        Command::Raise(args) => generation::run(args).await,
    }
}
