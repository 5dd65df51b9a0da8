//! `kshare ledger create`.

use super::Common;
use crate::exit::Failure;
use crate::{progress, text};
use clap::Args;
use kafka_share::ledger::NewLedger;
use serde_json::json;

/// Options of `kshare ledger create`.
#[derive(Debug, Args)]
#[command(
    after_help = "Replication and min.insync.replicas must be no less than those of the output topics. The number of partitions never
changes: all transactions of a group go through one of them.

Examples:
  kshare ledger create --bootstrap-server HOST:9092
  kshare ledger create --partitions 32 --replication-factor 3 --min-insync-replicas 2 --bootstrap-server HOST:9092
  kshare ledger create --topic-config segment.ms=60000 --bootstrap-server HOST:9092"
)]
pub(super) struct CreateArgs {
    #[command(flatten)]
    common: Common,
    /// Partitions, for ever
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    partitions: u32,
    /// Copies of each; by default three, or as many as there are brokers
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i16).range(1..))]
    replication_factor: Option<i16>,
    /// Copies that must have a record before it counts; by default one less than there are
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i16).range(1..))]
    min_insync_replicas: Option<i16>,
    /// Another setting of the topic; can be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = crate::cluster_args::pair)]
    topic_config: Vec<(String, String)>,
}

pub(super) async fn run(args: CreateArgs) -> Result<(), Failure> {
    let (admin, topic) = args.common.open().await?;
    let mut ledger = NewLedger::new().topic(&topic).partitions(args.partitions);
    if let Some(replicas) = args.replication_factor {
        ledger = ledger.replication_factor(replicas);
    }
    if let Some(replicas) = args.min_insync_replicas {
        ledger = ledger.min_in_sync_replicas(replicas);
    }
    for (name, value) in args.topic_config {
        ledger = ledger.config(name, value);
    }
    let id = progress::during("creating the ledger", admin.create_ledger(&ledger)).await?;
    if args.common.json {
        return text::print_json(&json!({ "topic": topic, "topic_id": id.to_string(), "partitions": args.partitions }));
    }
    let rows = [vec![format!("ledger: {topic}, {}", text::count(args.partitions as usize, "partition"))]];
    text::table(&mut std::io::stdout(), &rows)
}
