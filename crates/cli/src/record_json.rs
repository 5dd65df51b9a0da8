//! A record as a JSON object, the same wherever one is printed.

use crate::text;
use kafka_share::ShareRecord;
use serde_json::{Value, json};

/// Topic, partition, offset, timestamp, key, value, headers in order, delivery count.
pub(crate) fn as_json(record: &ShareRecord<'_>) -> Value {
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
