//! Has a task of the sink driver consume a number of records, into nothing.

use super::{Options, PATIENCE, Progress};
use crate::exit::Failure;
use clap::Args;
use kafka_share_connect::{
    ConnectError, ConnectorConfig, Properties, SinkConnector, SinkRecord, SinkTask, SinkTaskContext, Worker,
    WorkerConfig,
};
use serde_json::json;
use tokio::sync::mpsc;

#[derive(Debug, Args)]
pub(super) struct Connect {
    servers: String,
    topic: String,
    group: String,
    records: u64,
}

/// Throws records away, and tells how many.
struct Nowhere(mpsc::UnboundedSender<usize>);

impl SinkConnector for Nowhere {
    fn start(&mut self, _properties: &Properties) -> Result<(), ConnectError> {
        Ok(())
    }

    fn new_task(&self) -> Box<dyn SinkTask> {
        Box::new(Nowhere(self.0.clone()))
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
        let _ = self.0.send(records.len());
        Ok(())
    }
}

pub(super) async fn run(args: Connect, options: &Options) -> Result<(), Failure> {
    let owned = |pairs: &[(&str, &str)]| -> Properties {
        pairs.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect()
    };
    let worker = owned(&[("bootstrap.servers", &args.servers), ("consumer.group.protocol", "share")]);
    let mode = if options.commits { "explicit" } else { "implicit" };
    let connector = owned(&[
        ("name", "bench"),
        ("connector.class", "nowhere"),
        ("topics", &args.topic),
        ("share.group.id", &args.group),
        ("share.acknowledgement.mode", mode),
    ]);
    let fail = |error: ConnectError| Failure::new(error);
    let config = ConnectorConfig::new(connector, &WorkerConfig::new(worker).map_err(fail)?).map_err(fail)?;
    let (tell, mut told) = mpsc::unbounded_channel();
    let mut worker = Worker::start(config, Box::new(Nowhere(tell))).await.map_err(fail)?;
    let mut progress = Progress::new(args.records);
    while !progress.is_done() {
        let came = tokio::time::timeout(PATIENCE, told.recv()).await.ok().flatten().unwrap_or(0);
        if progress.came(came)? {
            progress.done();
        }
    }
    worker.stop(PATIENCE).await;
    println!("{}", json!({ "records": progress.records, "seconds": progress.seconds() }));
    Ok(())
}
