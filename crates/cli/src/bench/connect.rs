//! `kshare bench connect`: what the sink driver costs over the bare consumer.

use super::CommonArgs;
use super::place::Place;
use super::report::{self, Row};
use super::rounds;
use crate::exit::Failure;
use clap::Args;
use serde_json::json;

/// Options of `kshare bench connect`.
#[derive(Debug, Args)]
#[command(
    after_help = "Fills a topic, and has it consumed in turns by the bare share consumer and by one task of the sink driver, whose sink throws
all away. Each accepts every record explicitly, once with acknowledgements that go with the next fetch (the driver's
share.acknowledgement.mode=implicit) and once with a commit that is waited for after each poll (its default). The ratios are to
the first line of each pair.

Examples:
  kshare bench connect --rounds 5
  kshare bench connect --size 1000 --partitions 1"
)]
pub(super) struct ConnectArgs {
    #[command(flatten)]
    common: CommonArgs,
    /// Records to consume
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    records: u64,
}

pub(super) async fn run(args: ConnectArgs) -> Result<(), Failure> {
    let mut place = Place::new(&args.common).await?;
    let rows = compared(&args, &mut place).await;
    place.clean().await;
    let rows = rows?;
    let what = json!({ "records": args.records, "size": args.common.size, "partitions": args.common.partitions });
    if args.common.json {
        return report::records(true, what, &rows);
    }
    let (with_next, waited) = rows.split_at(rows.len() / 2);
    for (mode, pair) in [("with the next fetch", with_next), ("waited for", waited)] {
        println!("acknowledgements {mode}:");
        report::records(false, what.clone(), pair)?;
    }
    Ok(())
}

async fn compared(args: &ConnectArgs, place: &mut Place) -> Result<Vec<Row>, Failure> {
    let topic = place.name.clone();
    place.topic(&topic, args.common.partitions).await?;
    place.fill(&topic, args.records, &args.common).await?;
    let commits = ["--commits".to_owned()];
    let mut clients = Vec::new();
    for (name, options) in
        [("consumer", &[][..]), ("driver", &[]), ("consumer-commits", &commits), ("driver-commits", &commits)]
    {
        clients.extend(place.own(name, options)?);
    }
    rounds::in_turns(&args.common, place, &clients, async |place, client, round| {
        let group = format!("{topic}-{}-{round}", client.0);
        place.group(&group).await?;
        let what = if client.0.starts_with("driver") { "connect" } else { "consume" };
        place.measure(client, what, &[topic.clone(), group, args.records.to_string()]).await
    })
    .await
}
