//! `kshare bench produce`: what it costs to write records.

use super::CommonArgs;
use super::place::{self, Client, Place};
use super::report::{self, Row};
use super::rounds;
use crate::exit::{Failure, note};
use clap::Args;
use kafka_share::admin::{Isolation, OffsetSpec};
use serde_json::json;

/// Options of `kshare bench produce`.
#[derive(Debug, Args)]
#[command(
    after_help = "Has each client write the records to a topic of its own, one client after the other: idempotent, acks=all, without keys,
to the partitions in turn, all other settings as they are by default. The rate counts from the first record until all are
acknowledged. That the topic holds them is checked, and told where it holds more.

A peer gets six more arguments: the word produce, bootstrap servers, topic, number of records, bytes of a value and number of
partitions. It writes them (record N to partition N modulo the number of partitions) and prints
{\"records\": N, \"seconds\": S}.

Examples:
  kshare bench produce
  kshare bench produce --bootstrap-server HOST:9092 --records 200000 --size 1024
  kshare bench produce --peer 'java=java -cp kafka-clients.jar:classes share.Bench'"
)]
pub(super) struct ProduceArgs {
    #[command(flatten)]
    common: CommonArgs,
    /// Records to write
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    records: u64,
}

pub(super) async fn run(args: ProduceArgs) -> Result<(), Failure> {
    let mut place = Place::new(&args.common).await?;
    let mut clients = place.own("kshare", &[])?;
    clients.extend(place::peers(&args.common));
    let rows = rounds::in_turns(&args.common, &mut place, &clients, async |place, client, round| {
        let row = produce(&args, place, client, round).await;
        // Before the next one: it takes room.
        place.clean().await;
        row
    });
    let rows = rows.await?;
    let what = json!({ "records": args.records, "size": args.common.size, "partitions": args.common.partitions });
    report::records(args.common.json, what, &rows)
}

async fn produce(args: &ProduceArgs, place: &mut Place, client: &Client, round: u32) -> Result<Row, Failure> {
    let topic = format!("{}-{}-{round}", place.name, client.0);
    place.topic(&topic, args.common.partitions).await?;
    let numbers = [args.records.to_string(), args.common.size.to_string(), args.common.partitions.to_string()];
    let more: Vec<String> = std::iter::once(topic.clone()).chain(numbers).collect();
    let row = place.measure(client, "produce", &more).await?;
    let ends = place.admin.list_offsets(&topic, OffsetSpec::Latest, Isolation::ReadUncommitted).await?;
    let written: i64 = ends.iter().sum();
    let wanted = i64::try_from(args.records).unwrap_or(i64::MAX);
    if written < wanted {
        return Err(Failure::new(format_args!("{}: the topic holds {written} of {wanted} records", client.0)));
    }
    if written > wanted {
        note(format_args!(
            "{}: the topic holds {written} records instead of {wanted}: some were written twice",
            client.0
        ));
    }
    Ok(row)
}
