//! Records as sinks see them.

use bytes::Bytes;
use kafka_share::ShareRecord;

/// A key or value after its converter.
#[derive(Debug, Clone, PartialEq)]
pub enum Data {
    /// Null; on compacted topics a tombstone.
    Null,
    /// Bytes as they were.
    Bytes(Bytes),
    /// Text.
    String(String),
    /// JSON without a schema.
    Json(serde_json::Value),
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
        }
    }
}

/// A record for a sink.
#[derive(Debug, Clone)]
pub struct SinkRecord {
    /// Topic.
    pub topic: String,
    /// Partition, from 0.
    pub partition: i32,
    /// Offset in the partition.
    pub offset: i64,
    /// Key.
    pub key: Data,
    /// Value.
    pub value: Data,
    /// Headers in order; duplicates and nulls are kept.
    pub headers: Vec<(String, Option<Bytes>)>,
    /// Milliseconds since 1970.
    pub timestamp: i64,
    /// How often the record has been delivered, this time included.
    pub delivery_count: i16,
}

impl SinkRecord {
    /// From a delivered record and its converted key and value.
    #[must_use]
    pub fn new(record: &ShareRecord<'_>, key: Data, value: Data) -> Self {
        let header = |h: kafka_share::Header<'_>| {
            (String::from_utf8_lossy(h.key).into_owned(), h.value.map(Bytes::copy_from_slice))
        };
        SinkRecord {
            topic: record.topic().to_owned(),
            partition: record.partition(),
            offset: record.offset(),
            key,
            value,
            headers: record.headers().map(header).collect(),
            timestamp: record.timestamp(),
            delivery_count: record.delivery_count(),
        }
    }

    /// `topic-partition@offset`, for messages.
    #[must_use]
    pub fn place(&self) -> String {
        format!("{}-{}@{}", self.topic, self.partition, self.offset)
    }
}
