//! Records as sinks see them.

use crate::{Schema, TopicName};
use bytes::Bytes;
use kafka_share::{ShareRecord, TimestampType, Uuid};
use serde_json::{Value, json};
use std::sync::Arc;

/// A key, value or header value after its converter.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Data {
    /// Null; on compacted topics a tombstone.
    Null,
    /// Bytes as they were.
    Bytes(Bytes),
    /// Text.
    String(String),
    /// JSON without a schema.
    Json(Value),
    /// A value of a schema, as JSON: bytes are Base64 text, maps whose keys are no texts are arrays of pairs, times are
    /// numbers.
    WithSchema(Arc<Schema>, Value),
    /// True or false.
    Boolean(bool),
    /// A short.
    Int16(i16),
    /// An int.
    Int32(i32),
    /// A long.
    Int64(i64),
    /// A float.
    Float32(f32),
    /// A double.
    Float64(f64),
}

impl Data {
    /// The bytes that this data came from, or is written as.
    #[must_use]
    pub fn to_bytes(&self) -> Option<Bytes> {
        match self {
            Data::Null => None,
            Data::Bytes(bytes) => Some(bytes.clone()),
            Data::String(text) => Some(Bytes::copy_from_slice(text.as_bytes())),
            Data::Json(value) => Some(Bytes::from(value.to_string())),
            Data::WithSchema(schema, value) => {
                Some(Bytes::from(json!({ "schema": schema.to_json(), "payload": value }).to_string()))
            }
            Data::Boolean(flag) => Some(Bytes::copy_from_slice(&[u8::from(*flag)])),
            Data::Int16(n) => Some(Bytes::copy_from_slice(&n.to_be_bytes())),
            Data::Int32(n) => Some(Bytes::copy_from_slice(&n.to_be_bytes())),
            Data::Int64(n) => Some(Bytes::copy_from_slice(&n.to_be_bytes())),
            Data::Float32(n) => Some(Bytes::copy_from_slice(&n.to_be_bytes())),
            Data::Float64(n) => Some(Bytes::copy_from_slice(&n.to_be_bytes())),
        }
    }

    /// Whether there is nothing: null, or the null of a schema or of JSON.
    #[must_use]
    pub fn is_null(&self) -> bool {
        matches!(self, Data::Null | Data::Json(Value::Null) | Data::WithSchema(_, Value::Null))
    }

    /// The JSON value, where it came from JSON.
    #[must_use]
    pub fn json(&self) -> Option<&Value> {
        match self {
            Data::Json(value) | Data::WithSchema(_, value) => Some(value),
            _ => None,
        }
    }

    /// As JSON, for sinks that write it; bytes that are no text lose what is none, and numbers that are not finite are null.
    #[must_use]
    pub fn to_json(&self) -> Value {
        match self {
            Data::Null => Value::Null,
            Data::Bytes(bytes) => Value::String(String::from_utf8_lossy(bytes).into_owned()),
            Data::String(text) => json!(text),
            Data::Json(value) | Data::WithSchema(_, value) => value.clone(),
            Data::Boolean(flag) => json!(flag),
            Data::Int16(n) => json!(n),
            Data::Int32(n) => json!(n),
            Data::Int64(n) => json!(n),
            Data::Float32(n) => json!(widened(*n)),
            Data::Float64(n) => json!(n),
        }
    }
}

/// The double that is written with the same digits: 0.1 stays 0.1, as Java writes floats.
pub(crate) fn widened(float: f32) -> f64 {
    float.to_string().parse().unwrap_or(f64::from(float))
}

/// A record for a sink.
#[derive(Debug, Clone)]
pub struct SinkRecord {
    /// Topic, as transforms have left it.
    pub topic: TopicName,
    /// Topic that the record is in.
    pub original_topic: TopicName,
    /// Id of the topic that the record is in; a topic that is deleted and created again has another.
    pub topic_id: Uuid,
    /// Partition, from 0.
    pub partition: i32,
    /// Offset in the partition.
    pub offset: i64,
    /// Key.
    pub key: Data,
    /// Value.
    pub value: Data,
    /// Headers in order; duplicates and nulls are kept.
    pub headers: Vec<(String, Data)>,
    /// Milliseconds since 1970.
    pub timestamp: i64,
    /// Who set the timestamp.
    pub timestamp_type: TimestampType,
    /// How often the record has been delivered, this time included.
    pub delivery_count: i16,
}

impl SinkRecord {
    /// From a delivered record and its converted parts.
    #[must_use]
    pub fn new(record: &ShareRecord<'_>, key: Data, value: Data, headers: Vec<(String, Data)>) -> Self {
        Self::of_topic(&TopicName::from(record.topic()), record, key, value, headers)
    }

    /// The same with the record's topic at hand, which is shared.
    #[inline]
    pub(crate) fn of_topic(
        topic: &TopicName,
        record: &ShareRecord<'_>,
        key: Data,
        value: Data,
        headers: Vec<(String, Data)>,
    ) -> Self {
        SinkRecord {
            topic: topic.clone(),
            original_topic: topic.clone(),
            topic_id: record.topic_id(),
            partition: record.partition(),
            offset: record.offset(),
            key,
            value,
            headers,
            timestamp: record.timestamp(),
            timestamp_type: record.timestamp_type(),
            delivery_count: record.delivery_count(),
        }
    }

    /// `topic-partition@offset` in Kafka, for messages.
    #[must_use]
    pub fn place(&self) -> String {
        format!("{}-{}@{}", self.original_topic, self.partition, self.offset)
    }
}

/// A record with a null key and value.
#[cfg(test)]
pub(crate) fn test_record(topic: &str, partition: i32, offset: i64) -> SinkRecord {
    SinkRecord {
        topic: topic.into(),
        original_topic: topic.into(),
        topic_id: Uuid::ZERO,
        partition,
        offset,
        key: Data::Null,
        value: Data::Null,
        headers: Vec::new(),
        timestamp: 0,
        timestamp_type: TimestampType::CreateTime,
        delivery_count: 1,
    }
}
