//! Schemas of JSON envelopes, kept so that not every record has its own read (`schemas.cache.size`).

use crate::{ConnectError, Schema};
use serde_json::value::RawValue;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// Schemas by their JSON text; the oldest goes where there is no room.
#[derive(Debug, Default)]
pub struct SchemaCache {
    size: usize,
    by_text: HashMap<Box<str>, Arc<Schema>>,
    order: VecDeque<Box<str>>,
    last: Option<(Box<str>, Arc<Schema>)>,
}

impl SchemaCache {
    /// For so many schemas; 0 keeps none.
    #[must_use]
    pub fn new(size: usize) -> Self {
        SchemaCache { size, ..SchemaCache::default() }
    }

    /// The schema of a text; `None` where the text is null.
    pub(crate) fn schema(&mut self, text: &RawValue) -> Result<Option<Arc<Schema>>, ConnectError> {
        let text = text.get();
        if text == "null" {
            return Ok(None);
        }
        // Records in a row are most often of one schema: no hash is needed then.
        if let Some((_, schema)) = self.last.as_ref().filter(|(known, _)| **known == *text) {
            return Ok(Some(Arc::clone(schema)));
        }
        let schema = match self.by_text.get(text) {
            Some(schema) => Arc::clone(schema),
            None => self.read(text)?,
        };
        if self.size > 0 {
            self.last = Some((text.into(), Arc::clone(&schema)));
        }
        Ok(Some(schema))
    }

    fn read(&mut self, text: &str) -> Result<Arc<Schema>, ConnectError> {
        let json = serde_json::from_str(text).map_err(|e| ConnectError::fatal(format!("not JSON: {e}")))?;
        let schema = Arc::new(Schema::from_json(&json)?);
        if self.size > 0 {
            if self.order.len() >= self.size
                && let Some(oldest) = self.order.pop_front()
            {
                self.by_text.remove(&oldest);
            }
            self.order.push_back(text.into());
            self.by_text.insert(text.into(), Arc::clone(&schema));
        }
        Ok(schema)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema(cache: &mut SchemaCache, kind: &str) -> Arc<Schema> {
        let text = RawValue::from_string(format!(r#"{{"type":"{kind}"}}"#)).unwrap();
        cache.schema(&text).unwrap().unwrap()
    }

    #[test]
    fn a_schema_is_read_once_until_there_is_no_room() {
        let mut cache = SchemaCache::new(2);
        let first = schema(&mut cache, "int32");
        let other = schema(&mut cache, "string");
        assert!(Arc::ptr_eq(&first, &schema(&mut cache, "int32")));
        assert!(Arc::ptr_eq(&other, &schema(&mut cache, "string")));
        schema(&mut cache, "boolean");
        assert!(!Arc::ptr_eq(&first, &schema(&mut cache, "int32")), "the oldest had to go");
        assert_eq!((cache.by_text.len(), cache.order.len()), (2, 2));
        let mut none = SchemaCache::new(0);
        assert!(!Arc::ptr_eq(&schema(&mut none, "int8"), &schema(&mut none, "int8")));
        assert!(none.by_text.is_empty() && none.last.is_none());
    }

    #[test]
    fn null_is_no_schema_and_nonsense_is_said() {
        let mut cache = SchemaCache::new(2);
        let raw = |text: &str| RawValue::from_string(text.to_owned()).unwrap();
        assert_eq!(cache.schema(&raw("null")).unwrap(), None);
        assert!(cache.schema(&raw(r#"{"type":"word"}"#)).unwrap_err().to_string().contains("word"));
        assert!(cache.by_text.is_empty());
    }
}
