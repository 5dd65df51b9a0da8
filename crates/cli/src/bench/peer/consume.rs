//! Consumes a number of records.

use super::{Options, PATIENCE, Progress};
use crate::exit::Failure;
use clap::Args;
use kafka_share::consumer::AcquireMode;
use serde_json::json;
use std::time::Duration;

#[derive(Debug, Args)]
pub(super) struct Consume {
    servers: String,
    topic: String,
    group: String,
    records: u64,
}

/// As `max.poll.records` is by default.
const POLL: usize = 500;

pub(super) async fn run(args: Consume, options: &Options) -> Result<(), Failure> {
    let consumer =
        super::consumer(&args.servers, &args.topic, &args.group, options, (POLL, AcquireMode::BatchOptimized))?;
    let mut progress = Progress::new(args.records);
    while !progress.is_done() {
        let polled = consumer.poll(Duration::from_secs(1)).await?;
        if !progress.came(polled.len())? {
            continue;
        }
        for record in &polled {
            consumer.acknowledge(&record)?;
        }
        if options.commits {
            consumer.commit_sync(PATIENCE).await?;
        }
        progress.done();
    }
    consumer.commit_sync(PATIENCE).await?;
    consumer.close(PATIENCE).await?;
    println!("{}", json!({ "records": progress.records, "seconds": progress.seconds() }));
    Ok(())
}
