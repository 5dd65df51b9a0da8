//! `kshare groups reset`.

use super::Common;
use crate::exit::Failure;
use crate::{ledger, progress, text};
use clap::Args;
use kafka_share::admin::OffsetReset;
use serde_json::{Value, json};

/// Options of `kshare groups reset`.
#[derive(Debug, Args)]
#[command(after_help = "The group must have no members: stop them first. It is created if it does not exist.
Kafka 4.1 cannot do it, and it is said so.

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
    let to = args.to.reset();
    if !args.dry_run {
        let whole = topics.is_empty();
        ledger::raise_before_records_come_again(&admin, &args.common.cluster, &[&args.group], whole).await?;
    }
    let plan = async {
        match args.dry_run {
            true => admin.plan_share_group_reset(&args.group, &topics, to).await,
            false => admin.reset_share_group_offsets(&args.group, &topics, to).await,
        }
    };
    let done = progress::during("resetting offsets", plan).await?;
    if args.common.json {
        let one = |((topic, partition), offset): (&(String, i32), &i64)| json!({ "topic": topic, "partition": partition, "start_offset": offset });
        let partitions: Vec<Value> = done.iter().map(one).collect();
        let value = json!({ "group": args.group, "dry_run": args.dry_run, "partitions": partitions });
        return text::print_json(&value);
    }
    let heading = if args.dry_run { "WOULD-START-AT" } else { "NEW-START-OFFSET" };
    let mut rows = vec![text::row([&"TOPIC", &"PARTITION", &heading])];
    rows.extend(done.iter().map(|((topic, partition), offset)| text::row([topic, partition, offset])));
    text::table(&mut std::io::stdout(), &rows)
}
