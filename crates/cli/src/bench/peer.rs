//! This project's client in `kshare bench`: consumes a number of records and says how long it took.

use crate::exit::Failure;
use clap::Args;
use kafka_share::{AcknowledgementMode, KafkaShareConsumer};
use serde_json::json;
use std::time::{Duration, Instant};

/// Name of the command that runs it.
pub(super) const PEER: &str = "bench-peer";
/// A client that gets nothing for so long gives up.
const PATIENCE: Duration = Duration::from_secs(60);

/// What every peer of `kshare bench` is given.
#[derive(Debug, Args)]
pub(crate) struct PeerArgs {
    servers: String,
    topic: String,
    group: String,
    records: u64,
    /// Records fetched ahead.
    #[arg(long, default_value_t = 0)]
    prefetch: usize,
}

pub(crate) async fn run(args: PeerArgs) -> Result<(), Failure> {
    let consumer = KafkaShareConsumer::builder(&args.servers, &args.group)
        .acknowledgement_mode(AcknowledgementMode::Explicit)
        .prefetch(args.prefetch)
        .build()?;
    consumer.subscribe([&args.topic])?;
    let (mut records, mut first, mut last) = (0, None, Instant::now());
    while records < args.records {
        let polled = consumer.poll(Duration::from_secs(1)).await?;
        if polled.is_empty() && last.elapsed() > PATIENCE {
            return Err(Failure::new(format_args!("{records} of {} records came", args.records)));
        }
        if polled.is_empty() {
            continue;
        }
        first.get_or_insert_with(Instant::now);
        for record in &polled {
            consumer.acknowledge(&record)?;
            records += 1;
        }
        last = Instant::now();
    }
    let seconds = first.map_or(0.0, |first| (last - first).as_secs_f64());
    consumer.commit_sync(PATIENCE).await?;
    consumer.close(PATIENCE).await?;
    println!("{}", json!({ "records": records, "seconds": seconds }));
    Ok(())
}
