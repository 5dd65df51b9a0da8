//! What is logged while a test runs, spans included.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::DefaultGuard;
use tracing::{Event, Level, Metadata, Subscriber};

/// A span or an event: its name or message, and its fields as text.
#[derive(Debug, Clone, Default)]
pub(crate) struct Line {
    pub(crate) text: String,
    pub(crate) level: Option<Level>,
    pub(crate) fields: BTreeMap<String, String>,
}

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let value = format!("{value:?}");
        if field.name() == "message" {
            self.text = value;
        } else {
            self.fields.insert(field.name().to_owned(), value.trim_matches('"').to_owned());
        }
    }
}

/// Collects what the client logs on this thread (so: in a runtime of one thread) until it is dropped.
pub(crate) struct Log {
    lines: Arc<Mutex<Lines>>,
    _guard: DefaultGuard,
}

#[derive(Default)]
struct Lines {
    spans: Vec<Line>,
    events: Vec<Line>,
}

impl Log {
    pub(crate) fn start() -> Log {
        let lines = Arc::default();
        let collector = Collector { lines: Arc::clone(&lines) };
        Log { lines, _guard: tracing::subscriber::set_default(collector) }
    }

    pub(crate) fn spans(&self, name: &str) -> Vec<Line> {
        self.lines.lock().unwrap().spans.iter().filter(|s| s.text == name).cloned().collect()
    }

    /// Events whose message has `part` in it.
    pub(crate) fn events(&self, part: &str) -> Vec<Line> {
        self.lines.lock().unwrap().events.iter().filter(|e| e.text.contains(part)).cloned().collect()
    }
}

struct Collector {
    lines: Arc<Mutex<Lines>>,
}

fn ours(metadata: &Metadata<'_>) -> bool {
    metadata.target().starts_with("kafka_share::")
}

impl Subscriber for Collector {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        ours(metadata)
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut line =
            Line { text: span.metadata().name().into(), level: Some(*span.metadata().level()), ..Line::default() };
        span.record(&mut line);
        let mut lines = self.lines.lock().unwrap();
        lines.spans.push(line);
        Id::from_u64(lines.spans.len() as u64)
    }

    fn record(&self, span: &Id, values: &Record<'_>) {
        values.record(&mut self.lines.lock().unwrap().spans[span.into_u64() as usize - 1]);
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line { level: Some(*event.metadata().level()), ..Line::default() };
        event.record(&mut line);
        self.lines.lock().unwrap().events.push(line);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}
