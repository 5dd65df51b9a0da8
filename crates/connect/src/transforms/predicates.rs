//! What tells whether a transform is for a record.

use super::settings::Settings;
use crate::{ConnectError, SinkRecord};
use regex::Regex;
use std::fmt::Debug;
use std::sync::Arc;

/// True or false of each record.
pub trait Predicate: Debug + Send + Sync {
    /// Whether it is true of this one.
    fn test(&self, record: &SinkRecord) -> bool;
}

pub(super) fn build(settings: &mut Settings<'_>) -> Result<Arc<dyn Predicate>, ConnectError> {
    let class = settings.need("type")?;
    let short = class.strip_prefix("org.apache.kafka.connect.transforms.predicates.").unwrap_or(&class);
    Ok(match short {
        "TopicNameMatches" => {
            let text = settings.need("pattern")?;
            let pattern = Regex::new(&format!("^(?:{text})$"));
            Arc::new(TopicNameMatches(pattern.map_err(|e| settings.wrong("pattern", &text, &e.to_string()))?))
        }
        "HasHeaderKey" => Arc::new(HasHeaderKey(settings.need("name")?)),
        "RecordIsTombstone" => Arc::new(RecordIsTombstone),
        _ => {
            let known = "TopicNameMatches, HasHeaderKey or RecordIsTombstone is expected";
            return Err(settings.wrong("type", &class, known));
        }
    })
}

#[derive(Debug)]
struct TopicNameMatches(Regex);

impl Predicate for TopicNameMatches {
    fn test(&self, record: &SinkRecord) -> bool {
        self.0.is_match(record.topic.as_str())
    }
}

#[derive(Debug)]
struct HasHeaderKey(String);

impl Predicate for HasHeaderKey {
    fn test(&self, record: &SinkRecord) -> bool {
        record.headers.iter().any(|(key, _)| *key == self.0)
    }
}

#[derive(Debug)]
struct RecordIsTombstone;

impl Predicate for RecordIsTombstone {
    fn test(&self, record: &SinkRecord) -> bool {
        record.value.is_null()
    }
}
