//! `kshare bench consume`: what it costs to consume a topic as a share group.

use super::CommonArgs;
use super::place::{self, Place};
use super::report::{self, Row};
use super::rounds;
use crate::exit::Failure;
use clap::Args;
use serde_json::json;

/// Options of `kshare bench consume`.
#[derive(Debug, Args)]
#[command(
    after_help = "Fills a topic, and has each client consume all of it in a share group of its own, accepting every record explicitly,
one client after the other. The rate counts from a client's first record to its last.

A peer gets five more arguments: the word consume, bootstrap servers, topic, group and number of records. It consumes that
many records, explicitly accepted, and prints {\"records\": N, \"seconds\": S}: from its first record to its last; what it
commits after them is not in it.

Examples:
  kshare bench consume
  kshare bench consume --bootstrap-server HOST:9092 --records 200000
  kshare bench consume --partitions 1 --prefetch 1000
  kshare bench consume --peer 'java=java -cp kafka-clients.jar:classes share.Bench'"
)]
pub(super) struct ConsumeArgs {
    #[command(flatten)]
    common: CommonArgs,
    /// Records to consume
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    records: u64,
    /// Records that this project's client fetches ahead while it works on others; its locks run meanwhile
    #[arg(long, value_name = "N", default_value_t = 0)]
    prefetch: usize,
}

pub(super) async fn run(args: ConsumeArgs) -> Result<(), Failure> {
    let mut place = Place::new(&args.common).await?;
    let rows = consume(&args, &mut place).await;
    place.clean().await;
    let what = json!({
        "records": args.records, "size": args.common.size, "partitions": args.common.partitions,
        "prefetch": args.prefetch,
    });
    report::records(args.common.json, what, &rows?)
}

async fn consume(args: &ConsumeArgs, place: &mut Place) -> Result<Vec<Row>, Failure> {
    let topic = place.name.clone();
    place.topic(&topic, args.common.partitions).await?;
    place.fill(&topic, args.records, &args.common).await?;
    let mut clients = place.own("kshare", &[format!("--prefetch={}", args.prefetch)])?;
    clients.extend(place::peers(&args.common));
    rounds::in_turns(&args.common, place, &clients, async |place, client, round| {
        let group = format!("{topic}-{}-{round}", client.0);
        place.group(&group).await?;
        place.measure(client, "consume", &[topic.clone(), group, args.records.to_string()]).await
    })
    .await
}
