//! This project's client in `kshare bench`: does as a peer does, and says how long it took.

mod connect;
mod consume;
mod produce;
mod transactions;

use crate::exit::Failure;
use crate::properties::{pair, read_properties};
use clap::{Args, Subcommand};
use kafka_share::consumer::AcquireMode;
use kafka_share::{AcknowledgementMode, KafkaShareConsumer};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// A client that gets nothing for so long gives up.
const PATIENCE: Duration = Duration::from_secs(60);

/// What every peer of `kshare bench` is given, after options of this one.
#[derive(Debug, Args)]
pub(crate) struct PeerArgs {
    #[command(flatten)]
    options: Options,
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Args)]
struct Options {
    /// Records fetched ahead.
    #[arg(long, default_value_t = 0)]
    prefetch: usize,
    /// Acknowledgements are committed after each poll.
    #[arg(long)]
    commits: bool,
    /// Acknowledgements in the transaction.
    #[arg(long, conflicts_with = "ledger")]
    native: bool,
    /// Acknowledgements by the ledger of this name.
    #[arg(long)]
    ledger: Option<String>,
    /// Properties under their Kafka names.
    #[arg(long)]
    config: Option<PathBuf>,
    /// A property, before those of the file.
    #[arg(long, value_parser = pair)]
    property: Vec<(String, String)>,
}

impl Options {
    /// How the cluster is reached, the strongest last; what a bench settles itself is left out.
    fn properties(&self) -> Result<Vec<(String, String)>, Failure> {
        let mut all = self.config.as_deref().map(read_properties).transpose()?.unwrap_or_default();
        all.extend(self.property.iter().cloned());
        all.retain(|(name, _)| !["group.id", "transactional.id"].contains(&name.as_str()));
        Ok(all)
    }
}

#[derive(Debug, Subcommand)]
enum What {
    Connect(connect::Connect),
    Consume(consume::Consume),
    Produce(produce::Produce),
    Transactions(transactions::Transactions),
}

pub(crate) async fn run(args: PeerArgs) -> Result<(), Failure> {
    match args.what {
        What::Connect(what) => connect::run(what, &args.options).await,
        What::Consume(what) => consume::run(what, &args.options).await,
        What::Produce(what) => produce::run(what, &args.options).await,
        What::Transactions(what) => transactions::run(what, &args.options).await,
    }
}

/// A consumer in explicit mode whose polls bring at most so many records.
fn consumer(
    servers: &str,
    topic: &str,
    group: &str,
    options: &Options,
    (poll, mode): (usize, AcquireMode),
) -> Result<KafkaShareConsumer, Failure> {
    let mut builder = KafkaShareConsumer::builder(servers, group);
    for (name, value) in options.properties()? {
        builder.set(&name, &value)?;
    }
    if let Some(ledger) = &options.ledger {
        builder.set("share.ack.transaction.backend", "ledger")?;
        builder.set("share.ack.ledger.topic", ledger)?;
    }
    let consumer = builder
        .acknowledgement_mode(AcknowledgementMode::Explicit)
        .max_poll_records(poll)
        .acquire_mode(mode)
        .prefetch(options.prefetch)
        .build()?;
    consumer.subscribe([topic])?;
    Ok(consumer)
}

/// Records that come, until all have.
struct Progress {
    wanted: u64,
    records: u64,
    first: Option<Instant>,
    last: Instant,
}

impl Progress {
    fn new(wanted: u64) -> Self {
        Progress { wanted, records: 0, first: None, last: Instant::now() }
    }

    fn is_done(&self) -> bool {
        self.records >= self.wanted
    }

    /// A poll that brought so many; whether there are any.
    fn came(&mut self, records: usize) -> Result<bool, Failure> {
        if records == 0 && self.last.elapsed() > PATIENCE {
            return Err(Failure::new(format_args!("{} of {} records came", self.records, self.wanted)));
        }
        if records > 0 {
            self.first.get_or_insert_with(Instant::now);
            self.records += records as u64;
        }
        Ok(records > 0)
    }

    /// They are worked off.
    fn done(&mut self) {
        self.last = Instant::now();
    }

    fn seconds(&self) -> f64 {
        self.first.map_or(0.0, |first| (self.last - first).as_secs_f64())
    }
}
