//! Consumes, produces and commits, in transactions.

use super::{Options, PATIENCE, Progress};
use crate::exit::Failure;
use clap::Args;
use kafka_share::consumer::AcquireMode;
use kafka_share::{ProducerRecord, TransactionalProducer};
use serde_json::json;
use std::time::{Duration, Instant};

#[derive(Debug, Args)]
pub(super) struct Transactions {
    servers: String,
    topic: String,
    group: String,
    output: String,
    records_per_transaction: usize,
    records: u64,
}

pub(super) async fn run(args: Transactions, options: &Options) -> Result<(), Failure> {
    // What is fetched ahead is more than one poll's worth; the poll then keeps to its limit by itself.
    let mode = if options.prefetch > 0 { AcquireMode::BatchOptimized } else { AcquireMode::RecordLimit };
    let poll = (args.records_per_transaction, mode);
    let consumer = super::consumer(&args.servers, &args.topic, &args.group, options, poll)?;
    let mut builder = TransactionalProducer::builder(&args.servers, &args.group);
    for (name, value) in options.properties()? {
        builder.set(&name, &value)?;
    }
    if let Some(ledger) = &options.ledger {
        builder.set("share.ack.transaction.backend", "ledger")?;
        builder.set("share.ack.ledger.topic", ledger)?;
    }
    let producer = builder.build()?;
    let staged = options.native || options.ledger.is_some();
    let mut latencies = Vec::new();
    producer.init_transactions().await?;
    let (mut progress, mut transactions) = (Progress::new(args.records), 0);
    while !progress.is_done() {
        let polled = consumer.poll(Duration::from_secs(1)).await?;
        if !progress.came(polled.len())? {
            continue;
        }
        let began = Instant::now();
        producer.begin_transaction()?;
        for record in &polled {
            let value = record.value().unwrap_or_default();
            // A record that fails has the commit fail.
            drop(producer.send(ProducerRecord::new(&args.output).value(value)).await?);
        }
        if staged {
            for record in &polled {
                consumer.acknowledge(&record)?;
            }
            let acks = consumer.acknowledgements_for_transaction()?;
            producer.send_share_acks_to_transaction(acks, &consumer.share_group_metadata()?).await?;
        }
        producer.commit_transaction().await?;
        latencies.push(began.elapsed());
        if !staged {
            for record in &polled {
                consumer.acknowledge(&record)?;
            }
        }
        transactions += 1;
        progress.done();
    }
    consumer.commit_sync(PATIENCE).await?;
    consumer.close(PATIENCE).await?;
    producer.close(PATIENCE).await?;
    let seconds = progress.seconds();
    latencies.sort_unstable();
    let median = latencies.get(latencies.len() / 2).map(|time| time.as_secs_f64() * 1000.0);
    println!(
        "{}",
        json!({
            "records": progress.records, "seconds": seconds, "transactions": transactions,
            "median_transaction_ms": median,
        })
    );
    Ok(())
}
