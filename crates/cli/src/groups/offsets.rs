//! `kshare groups offsets`.

use super::{Common, exists_without_members, or_dash};
use crate::exit::Failure;
use crate::ledger::{self, ComesAgain};
use crate::{progress, text};
use clap::Args;
use kafka_share::admin::SharePartitionOffset;
use serde_json::{Value, json};

/// Options of `kshare groups offsets`.
#[derive(Debug, Args)]
#[command(
    after_help = "A start offset of - belongs to a partition that the group has not read yet. Lag counts the records that the group
is not done with; brokers before Kafka 4.3 do not tell it. With --delete, where members use a ledger of another name than
share-ack-ledger, name it with --property share.ack.ledger.topic=NAME: it must forget what would come again.

Examples:
  kshare groups offsets billing --bootstrap-server HOST:9092
  kshare groups offsets billing --bootstrap-server HOST:9092 --topic orders --json
  kshare groups offsets billing --bootstrap-server HOST:9092 --topic old-orders --delete"
)]
pub(super) struct OffsetsArgs {
    /// Share group
    group: String,
    #[command(flatten)]
    common: Common,
    /// Only this topic; can be repeated
    #[arg(long = "topic", value_name = "TOPIC")]
    topics: Vec<String>,
    /// Make the group, which must have no members, forget these topics
    #[arg(long, requires = "topics")]
    delete: bool,
}

pub(super) async fn run(args: OffsetsArgs) -> Result<(), Failure> {
    let admin = args.common.admin().await?;
    if args.delete {
        let topics: Vec<&str> = args.topics.iter().map(String::as_str).collect();
        exists_without_members(&admin, &args.group).await?;
        let coming = ComesAgain { group: &args.group, topics: Some(&topics) };
        let forgotten = ledger::raise_before_records_come_again(&admin, &args.common.cluster, coming).await?;
        let deleted = admin.delete_share_group_offsets(&args.group, &topics);
        let deleted = progress::during("deleting offsets", deleted).await;
        deleted.map_err(|error| forgotten.explain(error))?;
        return match args.common.json {
            true => text::print_json(&json!({ "group": args.group, "deleted": args.topics })),
            false => text::table(&mut std::io::stdout(), &[vec![format!("deleted: {}", args.topics.join(", "))]]),
        };
    }
    let look = admin.describe_share_group_offsets(&args.group);
    let mut offsets = progress::during("describing offsets", look).await?;
    if let Some(topic) = args.topics.iter().find(|t| !offsets.iter().any(|o| o.topic == **t)) {
        return Err(Failure::new(format_args!("share group {:?} has no offsets of topic {topic:?}", args.group)));
    }
    offsets.retain(|o| args.topics.is_empty() || args.topics.contains(&o.topic));
    if args.common.json {
        return text::print_json(&Value::from(offsets.iter().map(offset_json).collect::<Vec<_>>()));
    }
    text::table(&mut std::io::stdout(), &offset_rows(&offsets))
}

/// A partition as JSON.
pub(super) fn offset_json(at: &SharePartitionOffset) -> Value {
    json!({
        "topic": at.topic,
        "partition": at.partition,
        "start_offset": at.start_offset,
        "leader_epoch": at.leader_epoch,
        "lag": at.lag,
    })
}

/// Partitions as a table.
pub(super) fn offset_rows(offsets: &[SharePartitionOffset]) -> Vec<Vec<String>> {
    let mut rows = vec![text::row([&"TOPIC", &"PARTITION", &"START-OFFSET", &"LAG"])];
    rows.extend(
        offsets.iter().map(|at| text::row([&at.topic, &at.partition, &or_dash(at.start_offset), &or_dash(at.lag)])),
    );
    rows
}
