//! Writes a number of records.

use super::{Options, PATIENCE};
use crate::exit::Failure;
use clap::Args;
use kafka_share::{Producer, ProducerRecord};
use serde_json::json;
use std::time::Instant;

#[derive(Debug, Args)]
pub(super) struct Produce {
    servers: String,
    topic: String,
    records: u64,
    size: usize,
    partitions: i32,
}

pub(super) async fn run(args: Produce, options: &Options) -> Result<(), Failure> {
    let mut builder = Producer::builder(&args.servers);
    for (name, value) in options.properties()? {
        builder.set(&name, &value)?;
    }
    let producer = builder.build()?;
    let value = vec![b'x'; args.size];
    let first = Instant::now();
    let mut partition = 0;
    for _ in 0..args.records {
        // Whether all were written shows at the flush.
        drop(producer.send(ProducerRecord::new(&args.topic).partition(partition).value(&value[..])).await?);
        partition = if partition + 1 == args.partitions { 0 } else { partition + 1 };
    }
    producer.flush().await?;
    let seconds = first.elapsed().as_secs_f64();
    producer.close(PATIENCE).await?;
    println!("{}", json!({ "records": args.records, "seconds": seconds }));
    Ok(())
}
