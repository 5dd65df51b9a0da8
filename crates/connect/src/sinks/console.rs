//! `console`: prints records on the standard output, one a line.

use crate::{ConnectError, Data, Properties, SinkConnector, SinkRecord, SinkTask, SinkTaskContext};
use async_trait::async_trait;
use std::fmt::Write as _;
use std::io::{self, Write as _};

pub(super) struct ConsoleConnector;

impl SinkConnector for ConsoleConnector {
    fn start(&mut self, properties: &Properties) -> Result<(), ConnectError> {
        Layout::new(properties).map(drop)
    }

    fn new_task(&self) -> Box<dyn SinkTask> {
        Box::new(ConsoleSink::default())
    }

    fn settings(&self) -> Option<&'static [&'static str]> {
        Some(&[
            "print.topic",
            "print.timestamp",
            "print.partition",
            "print.offset",
            "print.delivery",
            "print.headers",
            "print.key",
            "print.value",
            "key.separator",
        ])
    }
}

/// What of a record is printed, by the names of Kafka's console consumers.
#[derive(Debug, Default)]
struct Layout {
    topic: bool,
    timestamp: bool,
    partition: bool,
    offset: bool,
    delivery: bool,
    headers: bool,
    key: bool,
    value: bool,
    separator: String,
}

impl Layout {
    fn new(properties: &Properties) -> Result<Self, ConnectError> {
        let flag = |name: &str, default| match properties.get(name).map(|v| v.trim().to_ascii_lowercase()).as_deref() {
            None => Ok(default),
            Some("true") => Ok(true),
            Some("false") => Ok(false),
            Some(other) => Err(ConnectError::config(format!("{name}={other}: true or false is expected"))),
        };
        Ok(Layout {
            topic: flag("print.topic", false)?,
            timestamp: flag("print.timestamp", false)?,
            partition: flag("print.partition", false)?,
            offset: flag("print.offset", false)?,
            delivery: flag("print.delivery", false)?,
            headers: flag("print.headers", false)?,
            key: flag("print.key", false)?,
            value: flag("print.value", true)?,
            separator: properties.get("key.separator").map_or("\t", String::as_str).replace("\\t", "\t"),
        })
    }

    fn line(&self, record: &SinkRecord) -> String {
        let mut parts = Vec::new();
        if self.topic {
            parts.push(record.topic.to_string());
        }
        if self.timestamp {
            parts.push(format!("Timestamp:{}", record.timestamp));
        }
        if self.partition {
            parts.push(format!("Partition:{}", record.partition));
        }
        if self.offset {
            parts.push(format!("Offset:{}", record.offset));
        }
        if self.delivery {
            parts.push(format!("Delivery:{}", record.delivery_count));
        }
        if self.headers {
            let header = |(name, value): &(String, Data)| format!("{}:{}", one_line(name), text(value));
            let headers: Vec<String> = record.headers.iter().map(header).collect();
            parts.push(if headers.is_empty() { "NO_HEADERS".into() } else { headers.join(",") });
        }
        if self.key {
            parts.push(text(&record.key));
        }
        if self.value {
            parts.push(text(&record.value));
        }
        parts.join(&self.separator) + "\n"
    }
}

/// Texts as they are, all else as JSON.
fn text(data: &Data) -> String {
    match data.to_json() {
        serde_json::Value::String(text) => one_line(&text),
        json => json.to_string(),
    }
}

/// Control characters would end the line, or do things to a terminal.
fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for c in text.chars() {
        match c.is_control() && c != '\t' {
            true => _ = write!(line, "{}", c.escape_default()),
            false => line.push(c),
        }
    }
    line
}

type Output = fn(&[u8]) -> io::Result<()>;

fn standard_output(lines: &[u8]) -> io::Result<()> {
    // Tasks write whole puts, so that their lines do not mix.
    let mut out = io::stdout().lock();
    out.write_all(lines)?;
    out.flush()
}

/// Prints each record on a line of its own; control characters in it are escaped. Records are acknowledged once they are
/// printed.
///
/// | setting | default | |
/// |---|---|---|
/// | `print.value` | true | the value |
/// | `print.key` | false | the key, before the value |
/// | `print.topic`, `print.timestamp`, `print.partition`, `print.offset` | false | where it comes from |
/// | `print.delivery` | false | how often it has been delivered |
/// | `print.headers` | false | `name:value`, with commas between, or `NO_HEADERS` |
/// | `key.separator` | tab | between all of these |
///
/// A standard output that is closed fails the task, which is not started again by itself: nobody would see what it prints.
#[derive(Debug)]
pub struct ConsoleSink {
    layout: Layout,
    output: Output,
}

impl Default for ConsoleSink {
    fn default() -> Self {
        ConsoleSink { layout: Layout::default(), output: standard_output }
    }
}

#[async_trait]
impl SinkTask for ConsoleSink {
    fn version(&self) -> &str {
        env!("CARGO_PKG_VERSION")
    }

    async fn start(&mut self, _context: SinkTaskContext, properties: &Properties) -> Result<(), ConnectError> {
        self.layout = Layout::new(properties)?;
        Ok(())
    }

    async fn put(&mut self, records: &[SinkRecord]) -> Result<(), ConnectError> {
        let lines: String = records.iter().map(|r| self.layout.line(r)).collect();
        let output = self.output;
        // A terminal or a pipe may take its time.
        let written = tokio::task::spawn_blocking(move || output(lines.as_bytes())).await;
        let written = written.map_err(|e| ConnectError::fatal(format!("printing: {e}")))?;
        written.map_err(|error| match error.kind() {
            io::ErrorKind::BrokenPipe => ConnectError::StaysFailed(format!(
                "the standard output is closed ({error}): records that were not printed are delivered again"
            )),
            _ => ConnectError::retriable(format!("the standard output: {error}")),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn record() -> SinkRecord {
        SinkRecord {
            topic: "orders".into(),
            original_topic: "orders".into(),
            topic_id: kafka_share::Uuid::ZERO,
            partition: 3,
            offset: 42,
            key: Data::String("k".into()),
            value: Data::Json(json!({"a": 1})),
            headers: vec![("trace".into(), Data::String("x\ny".into()))],
            timestamp: 7,
            timestamp_type: kafka_share::TimestampType::CreateTime,
            delivery_count: 2,
        }
    }

    fn layout(settings: &[(&str, &str)]) -> Layout {
        Layout::new(&settings.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect()).unwrap()
    }

    #[test]
    fn lines_have_what_was_asked_for() {
        assert_eq!(layout(&[]).line(&record()), "{\"a\":1}\n");
        let names = ["topic", "timestamp", "partition", "offset", "delivery", "headers", "key"];
        let settings: Vec<String> = names.iter().map(|n| format!("print.{n}")).collect();
        let mut settings: Vec<(&str, &str)> = settings.iter().map(|n| (n.as_str(), "true")).collect();
        settings.push(("key.separator", "|"));
        let line = "orders|Timestamp:7|Partition:3|Offset:42|Delivery:2|trace:x\\ny|k|{\"a\":1}\n";
        assert_eq!(layout(&settings).line(&record()), line);
        let mut text = record();
        text.value = Data::String("two\nlines\u{1b}[31m".into());
        assert_eq!(layout(&[]).line(&text), "two\\nlines\\u{1b}[31m\n");
        let wrong = Properties::from([("print.key".to_owned(), "yes".to_owned())]);
        assert!(ConsoleConnector.start(&wrong).unwrap_err().to_string().contains("print.key=yes"));
    }

    #[tokio::test]
    async fn a_closed_output_is_an_error_that_no_restart_mends() {
        let closed: Output = |_| Err(io::ErrorKind::BrokenPipe.into());
        let mut sink = ConsoleSink { layout: layout(&[]), output: closed };
        let error = sink.put(&[record()]).await.unwrap_err();
        assert!(error.stays_failed() && error.to_string().contains("standard output is closed"), "{error}");
        sink.output = |_| Err(io::ErrorKind::StorageFull.into());
        assert!(sink.put(&[record()]).await.unwrap_err().is_retriable());
    }
}
