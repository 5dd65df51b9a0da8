//! `file`: JSON lines. Each record is one object; the file is synced to disk before records are acknowledged.

mod own_file;

use crate::{ConnectError, Data, Properties, SinkConnector, SinkRecord, SinkTask, SinkTaskContext};
use async_trait::async_trait;
use own_file::{Refusal, open};
use serde_json::json;
use std::io;
use std::path::{Path, PathBuf};
use tokio::fs::File;
use tokio::io::AsyncWriteExt;

pub(super) struct FileConnector;

impl SinkConnector for FileConnector {
    fn start(&mut self, properties: &Properties) -> Result<(), ConnectError> {
        rotate_bytes(properties)?;
        path(properties, 0).map(drop)
    }

    fn new_task(&self) -> Box<dyn SinkTask> {
        Box::new(FileSink::default())
    }

    fn settings(&self) -> Option<&'static [&'static str]> {
        Some(&["file", "file.rotate.bytes"])
    }
}

/// Writes `file` (task 0) or `file.N` (task N), appending. Records are acknowledged once they are on disk.
///
/// | setting | default | |
/// |---|---|---|
/// | `file` | | path to write to |
/// | `file.rotate.bytes` | never | once the file is this long, it is renamed to `PATH.000001`, then `.000002` and so on, and a new one is begun |
///
/// No line is ever left half written before another: after a failed write the file is cut back to its last whole line before
/// anything else is written, and half a line that a process left that died is cut off at the start.
///
/// A file has one writer: each task holds a lock on its own (advisory; the system frees it when the process ends), and a second
/// connector or worker on the same path is refused. So is a file with something in it that this sink has not written: nothing
/// is ever cut off or appended there.
#[derive(Debug, Default)]
pub struct FileSink {
    lines: Option<Lines>,
}

/// The file that is written now.
#[derive(Debug)]
struct Lines {
    file: File,
    path: PathBuf,
    rotate: Option<u64>,
    /// A write has not ended well, and what is behind this length may be half a line.
    torn: Option<u64>,
}

fn path(properties: &Properties, task: usize) -> Result<PathBuf, ConnectError> {
    let name = properties.get("file").filter(|f| !f.is_empty());
    let name = name.ok_or_else(|| ConnectError::config("file is missing: the path to write to"))?;
    Ok(if task == 0 { PathBuf::from(name) } else { PathBuf::from(format!("{name}.{task}")) })
}

fn rotate_bytes(properties: &Properties) -> Result<Option<u64>, ConnectError> {
    let Some(value) = properties.get("file.rotate.bytes") else { return Ok(None) };
    match value.trim().parse() {
        Ok(bytes) if bytes > 0 => Ok(Some(bytes)),
        _ => Err(ConnectError::config(format!("file.rotate.bytes={value}: a number of bytes from 1 is expected"))),
    }
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

impl Lines {
    fn failed(&self, error: &io::Error) -> ConnectError {
        ConnectError::retriable(format!("{}: {error}", self.path.display()))
    }

    /// Cuts off what a write that failed, or was given up, may have left.
    async fn mend(&mut self) -> io::Result<()> {
        let Some(whole) = self.torn else { return Ok(()) };
        // One that was given up may be under way still.
        let _ = self.file.flush().await;
        if self.file.metadata().await?.len() > whole {
            self.file.set_len(whole).await?;
        }
        self.torn = None;
        Ok(())
    }

    async fn write(&mut self, lines: &[u8]) -> io::Result<()> {
        self.mend().await?;
        // Of now: what another has appended since is not to be cut off.
        let mut len = self.file.metadata().await?.len();
        if self.rotate.is_some_and(|limit| len >= limit) {
            self.rotate().await?;
            len = self.file.metadata().await?.len();
        }
        self.torn = Some(len);
        self.file.write_all(lines).await?;
        self.file.flush().await?;
        self.torn = None;
        Ok(())
    }

    /// On to the next file. All lines of the one before are synced first.
    async fn rotate(&mut self) -> io::Result<()> {
        self.file.sync_all().await?;
        let mut number = 1;
        let old = loop {
            let name = format!("{}.{number:06}", self.path.display());
            if !tokio::fs::try_exists(&name).await? {
                break name;
            }
            number += 1;
        };
        tokio::fs::rename(&self.path, old).await?;
        self.file = open(&self.path).await.map_err(io::Error::other)?;
        // The names, too, must be there after the power was out.
        let folder = self.path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        File::open(folder).await?.sync_all().await
    }
}

#[async_trait]
impl SinkTask for FileSink {
    fn version(&self) -> &str {
        env!("CARGO_PKG_VERSION")
    }

    async fn start(&mut self, context: SinkTaskContext, properties: &Properties) -> Result<(), ConnectError> {
        let (path, rotate) = (path(properties, context.task())?, rotate_bytes(properties)?);
        let fail = |e: Refusal| {
            let text = format!("file={}: {e}", path.display());
            // A worker that is stopped may take a while to let go.
            if matches!(e, Refusal::Locked) { ConnectError::retriable(text) } else { ConnectError::config(text) }
        };
        let file = open(&path).await.map_err(fail)?;
        self.lines = Some(Lines { file, path, rotate, torn: None });
        Ok(())
    }

    async fn put(&mut self, records: &[SinkRecord]) -> Result<(), ConnectError> {
        let Some(out) = &mut self.lines else { return Err(ConnectError::fatal("the file sink was not started")) };
        let lines: String = records.iter().map(line).collect();
        let Err(mut error) = out.write(lines.as_bytes()).await else { return Ok(()) };
        if let Err(second) = out.mend().await {
            error = io::Error::new(
                error.kind(),
                format!(
                    "{error}; half a line may be at the end, which is cut off before the next write ({second} now)"
                ),
            );
        }
        // A full disk may have room again later.
        Err(out.failed(&error))
    }

    async fn flush(&mut self) -> Result<(), ConnectError> {
        let Some(out) = &mut self.lines else { return Ok(()) };
        let synced = async {
            out.file.flush().await?;
            out.file.sync_data().await
        };
        synced.await.map_err(|e| out.failed(&e))
    }

    async fn stop(&mut self) {
        let Some(mut out) = self.lines.take() else { return };
        if let Err(error) = out.mend().await {
            tracing::warn!(file = %out.path.display(), %error, "half a line may be at the end; it is cut off at the next start");
        }
        let _ = out.file.sync_data().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(value: &str) -> SinkRecord {
        SinkRecord {
            topic: "t".into(),
            original_topic: "t".into(),
            topic_id: kafka_share::Uuid::ZERO,
            partition: 0,
            offset: 0,
            key: Data::Null,
            value: Data::String(value.into()),
            headers: Vec::new(),
            timestamp: 0,
            timestamp_type: kafka_share::TimestampType::CreateTime,
            delivery_count: 1,
        }
    }

    async fn started(path: &Path, more: &[(&str, &str)]) -> FileSink {
        let mut properties = Properties::from([("file".to_owned(), path.display().to_string())]);
        properties.extend(more.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())));
        let mut sink = FileSink::default();
        sink.start(SinkTaskContext::new(0, None, None), &properties).await.unwrap();
        sink
    }

    fn values(path: &Path) -> Vec<String> {
        let text = std::fs::read_to_string(path).unwrap();
        let value = |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap()["value"].to_string();
        text.lines().map(value).collect()
    }

    #[tokio::test]
    async fn half_a_line_is_cut_off_before_the_next_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        let mut sink = started(&path, &[]).await;
        sink.put(&[record("1")]).await.unwrap();
        // As a write leaves it that fails in the middle, on a file that can neither be written nor cut.
        let lines = sink.lines.as_mut().unwrap();
        lines.torn = Some(lines.file.metadata().await.unwrap().len());
        let whole = std::mem::replace(&mut lines.file, File::open(&path).await.unwrap());
        let mut half = std::fs::OpenOptions::new().append(true).open(&path).unwrap();
        io::Write::write_all(&mut half, b"{\"topic\":").unwrap();
        for _ in 0..2 {
            let error = sink.put(&[record("2")]).await.unwrap_err();
            assert!(error.is_retriable() && error.to_string().contains("half a line"), "{error}");
        }
        sink.lines.as_mut().unwrap().file = whole;
        sink.put(&[record("2")]).await.unwrap();
        sink.stop().await;
        assert_eq!(values(&path), ["\"1\"", "\"2\""]);
    }

    #[tokio::test]
    async fn what_was_written_before_is_appended_to_and_a_second_sink_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        let mut sink = started(&path, &[]).await;
        sink.put(&[record("1")]).await.unwrap();
        let properties = Properties::from([("file".to_owned(), path.display().to_string())]);
        let context = SinkTaskContext::new(0, None, None);
        let error = FileSink::default().start(context, &properties).await.unwrap_err().to_string();
        assert!(error.contains("file=") && error.contains("holds its lock"), "{error}");
        sink.stop().await;
        let mut half = std::fs::OpenOptions::new().append(true).open(&path).unwrap();
        io::Write::write_all(&mut half, b"{\"topic\":\"t\",\"par").unwrap();
        let mut sink = started(&path, &[]).await;
        sink.put(&[record("2")]).await.unwrap();
        sink.stop().await;
        assert_eq!(values(&path), ["\"1\"", "\"2\""]);
        std::fs::write(&path, "my notes").unwrap();
        let context = SinkTaskContext::new(0, None, None);
        let error = FileSink::default().start(context, &properties).await.unwrap_err().to_string();
        assert!(error.contains("not what this sink writes"), "{error}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "my notes");
    }

    #[tokio::test]
    async fn long_files_are_rotated() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        let mut sink = started(&path, &[("file.rotate.bytes", "150")]).await;
        for i in 0..5 {
            sink.put(&[record(&i.to_string())]).await.unwrap();
        }
        sink.stop().await;
        let old = |n: u32| folder.path().join(format!("f.{n:06}"));
        assert_eq!(values(&old(1)), ["\"0\"", "\"1\""]);
        assert_eq!(values(&old(2)), ["\"2\"", "\"3\""]);
        assert_eq!(values(&path), ["\"4\""]);
        let wrong = Properties::from([("file".into(), "f".into()), ("file.rotate.bytes".into(), "0".into())]);
        assert!(FileConnector.start(&wrong).unwrap_err().to_string().contains("file.rotate.bytes=0"));
    }
}
