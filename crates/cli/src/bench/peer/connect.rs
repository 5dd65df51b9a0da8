//! Has a task of the sink driver consume a number of records, into nothing.

use super::{Options, PATIENCE, Progress};
use crate::exit::Failure;
use clap::Args;
use kafka_share_connect::{
    ConnectError, ConnectorConfig, Properties, SinkConnector, SinkRecord, SinkTask, SinkTaskContext, Worker,
    WorkerConfig,
};
use serde_json::json;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

#[derive(Debug, Args)]
pub(super) struct Connect {
    servers: String,
    topic: String,
    group: String,
    records: u64,
}

/// How often a sink that gets no records is looked at.
const LOOK: Duration = Duration::from_secs(1);

/// Throws records away, and counts them as the bare consumer's loop does.
#[derive(Clone)]
struct Nowhere(Arc<Count>);

struct Count {
    progress: Mutex<Progress>,
    done: Notify,
}

impl Count {
    /// So many have come; whether some are still to come, within their time.
    fn came(&self, records: usize) -> Result<bool, Failure> {
        let mut progress = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        if progress.came(records)? {
            progress.done();
        }
        Ok(!progress.is_done())
    }
}

impl SinkConnector for Nowhere {
    fn start(&mut self, _properties: &Properties) -> Result<(), ConnectError> {
        Ok(())
    }

    fn new_task(&self) -> Box<dyn SinkTask> {
        Box::new(self.clone())
    }
}

#[async_trait::async_trait]
impl SinkTask for Nowhere {
    fn version(&self) -> &str {
        "1"
    }

    async fn start(&mut self, _context: SinkTaskContext, _properties: &Properties) -> Result<(), ConnectError> {
        Ok(())
    }

    async fn put(&mut self, records: &[SinkRecord]) -> Result<(), ConnectError> {
        if !self.0.came(records.len()).map_err(|error| ConnectError::config(error.to_string()))? {
            self.0.done.notify_one();
        }
        Ok(())
    }
}

pub(super) async fn run(args: Connect, options: &Options) -> Result<(), Failure> {
    let owned = |pairs: &[(&str, &str)]| -> Properties {
        pairs.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect()
    };
    let mut worker = owned(&[("bootstrap.servers", &args.servers), ("consumer.group.protocol", "share")]);
    worker.extend(options.properties()?);
    let mode = if options.commits { "explicit" } else { "implicit" };
    let connector = owned(&[
        ("name", "bench"),
        ("connector.class", "nowhere"),
        ("topics", &args.topic),
        ("share.group.id", &args.group),
        ("share.acknowledgement.mode", mode),
        // As the bare consumer's.
        ("consumer.override.share.acquire.mode", "batch_optimized"),
    ]);
    let fail = |error: ConnectError| Failure::new(error);
    let config = ConnectorConfig::new(connector, &WorkerConfig::new(worker).map_err(fail)?).map_err(fail)?;
    let count = Arc::new(Count { progress: Mutex::new(Progress::new(args.records)), done: Notify::new() });
    let mut worker = Worker::start(config, Box::new(Nowhere(Arc::clone(&count)))).await.map_err(fail)?;
    while count.came(0)? {
        let _ = tokio::time::timeout(LOOK, count.done.notified()).await;
    }
    worker.stop(PATIENCE).await;
    let progress = count.progress.lock().unwrap_or_else(PoisonError::into_inner);
    println!("{}", json!({ "records": progress.records, "seconds": progress.seconds() }));
    Ok(())
}
