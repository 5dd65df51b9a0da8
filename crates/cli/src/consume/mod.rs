//! `kshare consume`: records of a share group, printed and then accepted.

mod format;
mod member;

use crate::cluster_args::ClusterArgs;
use crate::exit::{Failure, note};
use crate::signals::Interrupt;
use crate::{progress, text};
use clap::{Args, ValueEnum};
use format::Printer;
use kafka_share::admin::{AutoOffsetReset, ShareGroupSettings};
use kafka_share::net::Cluster;
use kafka_share::{AcknowledgementMode, Admin, KafkaShareConsumer};
use member::{Ending, Member};
use std::sync::Arc;
use std::time::Duration;

/// `max.poll.records` of Kafka.
const POLL_RECORDS: u64 = 500;

/// Options of `kshare consume`.
#[derive(Debug, Args)]
#[command(
    after_help = "A record is accepted only after its line is written and flushed. What was fetched and not printed goes back to the
group at the end, also at Ctrl-C.

--format value prints a value a line: text as it is, null for none. Values that are no UTF-8, hold control characters
(line ends too) or start with \"base64:\" are printed as \"base64:\" and their base64.
--format json prints an object a line: topic, partition, offset, timestamp (milliseconds since 1970), key, value,
headers (in order, each with name and value) and delivery_count. Bytes that are no UTF-8 stand as {\"base64\": \"..\"}.

Examples:
  kshare consume orders --group billing --bootstrap-server HOST:9092
  kshare consume orders --group billing --bootstrap-server HOST:9092 --from-beginning --count 100 --timeout 10s
  kshare consume orders --group billing --config client.properties --format json | jq .value

--from-beginning sets share.auto.offset.reset=earliest on the group, where it stays; it counts for partitions that the
group has not read yet. To read again what was read, see: kshare groups reset.

Properties are those of Kafka's share consumer. Exit code 1: --count records did not come within --timeout, or it was
interrupted before, or records that were printed could not be accepted."
)]
pub(crate) struct ConsumeArgs {
    /// Topics to read
    #[arg(required = true)]
    topics: Vec<String>,
    #[command(flatten)]
    cluster: ClusterArgs,
    /// Share group to be a member of; group.id of the properties by default
    #[arg(long, value_name = "GROUP")]
    group: Option<String>,
    /// End after so many records
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// Start a new group at the first record, not at the end
    #[arg(long)]
    from_beginning: bool,
    /// When records are accepted: those of a poll together, or each by itself
    #[arg(long, value_enum)]
    ack_mode: Option<AckMode>,
    /// What is printed of a record
    #[arg(long, value_enum, default_value_t = Format::Value)]
    format: Format,
    /// The same as --format json
    #[arg(long)]
    json: bool,
    /// End after this time, such as 10s or 2m, from the start of the command
    #[arg(long, value_name = "TIME", value_parser = text::duration)]
    timeout: Option<Duration>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum AckMode {
    /// Once all records of a poll are printed and flushed
    Implicit,
    /// Each record as soon as it is printed and flushed
    Explicit,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// The value, a line each
    Value,
    /// A JSON object a line
    Json,
}

pub(crate) async fn run(args: ConsumeArgs) -> Result<(), Failure> {
    let deadline = args.timeout.map(|time| tokio::time::Instant::now() + time);
    let interrupt = Interrupt::new()?;
    let properties = args.cluster.properties()?;
    let of = |name: &str| properties.iter().rev().find(|(n, _)| n == name).map(|(_, value)| value.clone());
    let group = args.group.clone().or_else(|| of("group.id")).filter(|g| !g.is_empty());
    let group = group.ok_or_else(|| Failure::usage("--group GROUP is missing"))?;
    let mode = args.ack_mode.unwrap_or(match of("share.acknowledgement.mode") {
        Some(mode) if mode.eq_ignore_ascii_case("explicit") => AckMode::Explicit,
        _ => AckMode::Implicit,
    });
    // A misspelt topic shall be waited for, not made.
    let mut builder = KafkaShareConsumer::builder("", &group).allow_auto_create_topics(false);
    if let Some(count) = args.count {
        // More than is asked for would only be fetched for nothing.
        builder = builder.max_poll_records(count.min(POLL_RECORDS) as usize);
    }
    for (name, value) in properties.iter().filter(|(name, _)| name != "group.id") {
        builder.set(name, value)?;
    }
    let cluster = args.cluster.connect().await?;
    prepare(&args, &cluster, &group).await?;
    // Explicit in either mode: what a poll brings beyond --count must not be accepted.
    let builder = builder.acknowledgement_mode(AcknowledgementMode::Explicit).cluster(cluster);
    let consumer = builder.build()?;
    consumer.subscribe(&args.topics)?;
    let json = args.json || args.format == Format::Json;
    let printer = Printer::new(json, mode == AckMode::Explicit);
    let mut member = Member::new(&consumer, printer, args.count);
    let ending = member.run(deadline, interrupt).await;
    let settled = progress::during("leaving the group", member.settle()).await;
    verdict(&args, member.printed(), ending, settled)
}

/// Sets the group up, and says which topics are waited for.
async fn prepare(args: &ConsumeArgs, cluster: &Arc<Cluster>, group: &str) -> Result<(), Failure> {
    let admin = Admin::on(Arc::clone(cluster));
    if args.from_beginning {
        let settings = ShareGroupSettings::new().auto_offset_reset(AutoOffsetReset::Earliest);
        let set = admin.apply_share_group_settings(group, &settings);
        let set = progress::during("setting the group up", set).await;
        set.map_err(|e| Failure::new(format_args!("--from-beginning: {e}")))?;
    }
    let topics: Vec<&str> = args.topics.iter().map(String::as_str).collect();
    for (topic, outcome) in admin.describe_topics(&topics).await? {
        match outcome {
            Err(error) if error.is_retriable() => {
                note(format_args!("topic {topic:?} does not exist yet; waiting for it"))
            }
            Err(error) => return Err(error.into()),
            Ok(_) => {}
        }
    }
    Ok(())
}

fn verdict(args: &ConsumeArgs, printed: u64, ending: Ending, settled: Result<u64, Failure>) -> Result<(), Failure> {
    match ending {
        Ending::ReaderGone => return Ok(()),
        Ending::Failed(failure) => {
            return Err(failure.context(format_args!("after {printed} records were printed")));
        }
        Ending::Counted | Ending::TimeOver | Ending::Interrupted => {}
    }
    let lost = settled?;
    if lost > 0 {
        return Err(Failure::new(format_args!(
            "{lost} of {printed} printed records could not be accepted (their lock was lost or the answer was): they come \
             again"
        )));
    }
    match (args.count, ending) {
        (Some(count), Ending::TimeOver) => {
            Err(Failure::new(format_args!("{printed} of {count} records came within --timeout")))
        }
        (Some(count), Ending::Interrupted) => {
            Err(Failure::new(format_args!("interrupted after {printed} of {count} records")))
        }
        _ => Ok(()),
    }
}
