//! Example: orders from a share group become rows of a PostgreSQL table and receipts in a Kafka topic, all or nothing.
//!
//! Each batch is a transaction of two parties. Both are prepared; then the decision is written to a recovery log; then both
//! are committed. Whenever the process dies, the next one finds in the log what was decided and finishes it; what was
//! prepared and not decided is rolled back. See `pipeline.rs` for the order of the steps and why it is the right one.
//!
//! On a cluster with transactional acknowledgements (KIP-1289; the embedded broker) the acknowledgements of the orders are
//! part of it, so that each order is counted exactly once. On released Kafka they go out after both commits: table and
//! topic always agree, and an order is counted again where the process dies in between.

mod database;
mod pipeline;
mod recovery_log;

use clap::Parser;
use pipeline::{Pipeline, Step};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// Errors of three libraries, for people to read.
pub(crate) type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Orders from a share group become rows of a table and receipts in a topic, all or nothing.
#[derive(Debug, Parser)]
pub(crate) struct Options {
    /// Kafka brokers, host:port[,host:port..]
    #[arg(long, value_name = "HOST:PORT")]
    bootstrap_server: String,
    /// Connection to PostgreSQL, which needs max_prepared_transactions above 0
    #[arg(long, value_name = "CONNECTION", default_value = "host=127.0.0.1 user=example dbname=postgres")]
    database: String,
    /// File of the recovery log
    #[arg(long, value_name = "FILE")]
    log: PathBuf,
    /// Topic of the orders
    #[arg(long, default_value = "orders")]
    input: String,
    /// Topic of the receipts
    #[arg(long, default_value = "receipts")]
    output: String,
    /// Share group; the transactional id too
    #[arg(long, default_value = "shop")]
    group: String,
    /// Ends when no order came for so many milliseconds
    #[arg(long, value_name = "MS", default_value_t = 3000)]
    idle: u64,
    /// Kills the process after a step of its Nth batch, for trying out the recovery
    #[arg(long, value_name = "STEP")]
    die_after: Option<Step>,
    /// N of --die-after
    #[arg(long, value_name = "N", default_value_t = 1)]
    die_in: u64,
}

#[tokio::main]
async fn main() -> ExitCode {
    match run(Options::parse()).await {
        Ok(orders) => {
            println!("{orders} orders");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(options: Options) -> Result<u64, Failure> {
    let idle = Duration::from_millis(options.idle);
    let mut pipeline = Pipeline::start(options).await?;
    let mut orders = 0;
    loop {
        match pipeline.batch(idle).await? {
            0 => break,
            count => orders += count,
        }
    }
    pipeline.close().await?;
    Ok(orders)
}
