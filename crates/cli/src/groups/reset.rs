//! `kshare groups reset`.

use super::{Common, exists_without_members};
use crate::exit::Failure;
use crate::ledger::{self, ComesAgain};
use crate::{progress, text};
use clap::Args;
use kafka_share::Admin;
use kafka_share::admin::OffsetReset;
use kafka_share::consumer::record_limit_offered;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Options of `kshare groups reset`.
#[derive(Debug, Args)]
#[command(after_help = "The group must have no members: stop them first. It is created if it does not exist.
Kafka 4.1 cannot do it, and it is said so. Where members use a ledger of another name than share-ack-ledger, name it with
--property share.ack.ledger.topic=NAME: it must forget what comes again.

Examples:
  kshare groups reset billing --to-earliest --bootstrap-server HOST:9092
  kshare groups reset billing --to-timestamp 2026-11-29T08:00:00Z --topic orders --bootstrap-server HOST:9092
  kshare groups reset billing --to-offset 1200 --topic orders --dry-run --bootstrap-server HOST:9092")]
pub(super) struct ResetArgs {
    /// Share group
    group: String,
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    to: To,
    /// Topic to reset, all its partitions; can be repeated; by default all topics that the group has read
    #[arg(long = "topic", value_name = "TOPIC")]
    topics: Vec<String>,
    /// Only show what it would be
    #[arg(long)]
    dry_run: bool,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct To {
    /// To the first record kept
    #[arg(long)]
    to_earliest: bool,
    /// To the end: only new records are delivered
    #[arg(long)]
    to_latest: bool,
    /// To the first record at or after a time: milliseconds since 1970 or such as 2026-11-29T08:00:00Z
    #[arg(long, value_name = "TIME", value_parser = text::timestamp)]
    to_timestamp: Option<i64>,
    /// To an offset, in every partition
    #[arg(long, value_name = "OFFSET", value_parser = clap::value_parser!(i64).range(0..))]
    to_offset: Option<i64>,
}

impl To {
    fn reset(&self) -> OffsetReset {
        match (self.to_timestamp, self.to_offset) {
            (Some(time), _) => OffsetReset::Timestamp(time),
            (_, Some(offset)) => OffsetReset::Offset(offset),
            _ if self.to_latest => OffsetReset::Latest,
            _ => OffsetReset::Earliest,
        }
    }
}

pub(super) async fn run(args: ResetArgs) -> Result<(), Failure> {
    let admin = args.common.admin().await?;
    let topics: Vec<&str> = args.topics.iter().map(String::as_str).collect();
    // What cannot be done is refused before the ledger forgets anything.
    let plan =
        progress::during("planning", admin.plan_share_group_reset(&args.group, &topics, args.to.reset())).await?;
    if !args.dry_run {
        offsets_can_be_moved(&admin, &args.group).await?;
        exists_without_members(&admin, &args.group).await?;
        let coming = ComesAgain { group: &args.group, topics: (!topics.is_empty()).then_some(&topics[..]) };
        let forgotten = ledger::raise_before_records_come_again(&admin, &args.common.cluster, coming).await?;
        let starts: Vec<(&str, i32, i64)> =
            plan.iter().map(|((topic, partition), offset)| (topic.as_str(), *partition, *offset)).collect();
        let moved = progress::during("resetting offsets", admin.alter_share_group_offsets(&args.group, &starts)).await;
        moved.map_err(|error| forgotten.explain(error))?;
    }
    if args.common.json {
        let one = |((topic, partition), offset): (&(String, i32), &i64)| json!({ "topic": topic, "partition": partition, "start_offset": offset });
        let partitions: Vec<Value> = plan.iter().map(one).collect();
        let value = json!({ "group": args.group, "dry_run": args.dry_run, "partitions": partitions });
        return text::print_json(&value);
    }
    let heading = if args.dry_run { "WOULD-START-AT" } else { "NEW-START-OFFSET" };
    let mut rows = vec![text::row([&"TOPIC", &"PARTITION", &heading])];
    rows.extend(plan.iter().map(|((topic, partition), offset)| text::row([topic, partition, offset])));
    text::table(&mut std::io::stdout(), &rows)
}

/// Kafka 4.1 takes the request and does nothing.
async fn offsets_can_be_moved(admin: &Admin, group: &str) -> Result<(), Failure> {
    let cluster = admin.cluster();
    let features = cluster.features(Instant::now() + Duration::from_secs(15)).await?;
    // Both came with Kafka 4.2.
    if !record_limit_offered(&features) {
        let text = format_args!("offsets of share group {group:?} cannot be moved by this broker: it needs Kafka 4.2");
        return Err(Failure::new(text));
    }
    Ok(())
}
