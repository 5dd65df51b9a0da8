//! Records as lines on the standard output.

use crate::record_json::as_json;
use crate::text;
use kafka_share::ShareRecord;
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
