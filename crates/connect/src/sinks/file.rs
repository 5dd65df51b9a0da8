//! `file`: JSON lines. Each record is one object; the file is synced to disk before records are acknowledged.

use crate::{ConnectError, Data, Properties, SinkConnector, SinkRecord, SinkTask, SinkTaskContext};
use async_trait::async_trait;
use serde_json::json;
use std::path::PathBuf;
use tokio::fs::{File, OpenOptions};
use tokio::io::AsyncWriteExt;

pub(super) struct FileConnector;

impl SinkConnector for FileConnector {
    fn start(&mut self, properties: &Properties) -> Result<(), ConnectError> {
        path(properties, 0).map(drop)
    }

    fn new_task(&self) -> Box<dyn SinkTask> {
        Box::new(FileSink::default())
    }
}

/// Writes `file` (task 0) or `file.N` (task N), appending.
#[derive(Debug, Default)]
pub struct FileSink {
    file: Option<File>,
    path: PathBuf,
}

fn path(properties: &Properties, task: usize) -> Result<PathBuf, ConnectError> {
    let name = properties.get("file").filter(|f| !f.is_empty());
    let name = name.ok_or_else(|| ConnectError::config("file is missing: the path to write to"))?;
    Ok(if task == 0 { PathBuf::from(name) } else { PathBuf::from(format!("{name}.{task}")) })
}

fn line(record: &SinkRecord) -> String {
    let header = |(key, value): &(String, Data)| json!([key, value.to_json()]);
    let object = json!({
        "topic": record.topic.as_str(),
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
        "key": record.key.to_json(),
        "value": record.value.to_json(),
        "headers": record.headers.iter().map(header).collect::<Vec<_>>(),
    });
    object.to_string() + "\n"
}

#[async_trait]
impl SinkTask for FileSink {
    fn version(&self) -> &str {
        env!("CARGO_PKG_VERSION")
    }

    async fn start(&mut self, context: SinkTaskContext, properties: &Properties) -> Result<(), ConnectError> {
        self.path = path(properties, context.task())?;
        let fail = |e: std::io::Error| ConnectError::config(format!("file={}: {e}", self.path.display()));
        let file = OpenOptions::new().create(true).append(true).open(&self.path).await.map_err(fail)?;
        self.file = Some(file);
        Ok(())
    }

    async fn put(&mut self, records: &[SinkRecord]) -> Result<(), ConnectError> {
        let Some(file) = &mut self.file else { return Err(ConnectError::fatal("the file sink was not started")) };
        let lines: String = records.iter().map(line).collect();
        let fail = |error: std::io::Error| ConnectError::retriable(format!("{}: {error}", self.path.display()));
        // Of now: what another has appended since is not to be cut off.
        let len = file.metadata().await.map_err(fail)?.len();
        let written = async {
            file.write_all(lines.as_bytes()).await?;
            file.flush().await
        };
        let Err(error) = written.await else { return Ok(()) };
        // No half line is left behind. A full disk may have room again later.
        let _ = file.set_len(len).await;
        Err(fail(error))
    }

    async fn flush(&mut self) -> Result<(), ConnectError> {
        let Some(file) = &mut self.file else { return Ok(()) };
        let synced = async {
            file.flush().await?;
            file.sync_data().await
        };
        synced.await.map_err(|e| ConnectError::retriable(format!("{}: {e}", self.path.display())))
    }

    async fn stop(&mut self) {
        let _ = self.flush().await;
        self.file = None;
    }
}
