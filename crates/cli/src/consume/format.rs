//! Records as lines on the standard output.

use crate::text;
use kafka_share::ShareRecord;
use serde_json::{Value, json};
use std::io::{BufWriter, Stdout, Write};

/// Prints records.
#[derive(Debug)]
pub(super) struct Printer {
    out: BufWriter<Stdout>,
    json: bool,
    one_by_one: bool,
}

impl Printer {
    /// As JSON or only values; flushed one by one or poll by poll.
    pub(super) fn new(json: bool, one_by_one: bool) -> Self {
        Printer { out: BufWriter::with_capacity(1 << 16, std::io::stdout()), json, one_by_one }
    }

    /// Whether each record is flushed, and accepted, by itself.
    pub(super) fn one_by_one(&self) -> bool {
        self.one_by_one
    }

    /// Writes a record's line, which is not out before it is flushed.
    pub(super) fn print(&mut self, record: &ShareRecord<'_>) -> std::io::Result<()> {
        if self.json {
            writeln!(self.out, "{}", as_json(record))
        } else {
            writeln!(self.out, "{}", text::one_line(record.value()))
        }
    }

    pub(super) fn flush(&mut self) -> std::io::Result<()> {
        self.out.flush()
    }
}

fn as_json(record: &ShareRecord<'_>) -> Value {
    let header = |h: kafka_share::Header<'_>| json!({ "name": text::json_bytes(Some(h.key)), "value": text::json_bytes(h.value) });
    json!({
        "topic": record.topic(),
        "partition": record.partition(),
        "offset": record.offset(),
        "timestamp": record.timestamp(),
        "key": text::json_bytes(record.key()),
        "value": text::json_bytes(record.value()),
        "headers": record.headers().into_iter().map(header).collect::<Vec<_>>(),
        "delivery_count": record.delivery_count(),
    })
}
