//! Records as lines for a program, and its answers as records.

use crate::record_json::as_json;
use crate::text;
use kafka_share::{ProducerRecord, ShareRecord};
use serde_json::Value;

/// How a record becomes a line, and a line records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Framing {
    /// The value, a line each; the answer is the new value
    Lines,
    /// A JSON object a line; the answer is an object, an array of objects, or null
    Json,
}

/// Why a record or an answer does not fit its framing.
pub(super) type Misfit = String;

/// Appends a record's line.
pub(super) fn write(framing: Framing, record: &ShareRecord<'_>, to: &mut Vec<u8>) -> Result<(), Misfit> {
    match framing {
        Framing::Lines => {
            let value = record.value().unwrap_or_default();
            if value.contains(&b'\n') {
                let place = place(record);
                return Err(format!(
                    "the value of {place} has a line end, which --framing lines cannot carry: use --framing json"
                ));
            }
            to.extend_from_slice(value);
        }
        Framing::Json => {
            serde_json::to_writer(&mut *to, &as_json(record)).map_err(|e| format!("{}: {e}", place(record)))?;
        }
    }
    to.push(b'\n');
    Ok(())
}

/// Where a record lies, for messages.
pub(super) fn place(record: &ShareRecord<'_>) -> String {
    format!("{}-{}@{}", record.topic(), record.partition(), record.offset())
}

/// The record itself, for another topic.
pub(super) fn copy<'a>(record: &ShareRecord<'a>, to: &'a str) -> Result<ProducerRecord<'a>, Misfit> {
    let copy = without_value(record, to)?;
    Ok(match record.value() {
        Some(value) => copy.value(value),
        None => copy,
    })
}

/// Key, headers and time of a record.
fn without_value<'a>(record: &ShareRecord<'a>, to: &'a str) -> Result<ProducerRecord<'a>, Misfit> {
    let mut copy = ProducerRecord::new(to);
    if record.timestamp() >= 0 {
        copy = copy.timestamp(record.timestamp());
    }
    if let Some(key) = record.key() {
        copy = copy.key(key);
    }
    for header in record.headers() {
        let name = std::str::from_utf8(header.key)
            .map_err(|_| format!("{} has a header whose name is no UTF-8, as Kafka demands", place(record)))?;
        copy = copy.header_opt(name, header.value);
    }
    Ok(copy)
}

/// What a program made of a record: none, one or several.
pub(super) fn read<'a>(
    framing: Framing,
    record: &ShareRecord<'a>,
    answer: &'a [u8],
    to: &'a str,
) -> Result<Vec<ProducerRecord<'a>>, Misfit> {
    match framing {
        Framing::Lines => Ok(vec![without_value(record, to)?.value(answer)]),
        Framing::Json => {
            let bad =
                |what: &dyn std::fmt::Display| format!("the answer to {} is not as it must be: {what}", place(record));
            let answer: Value = serde_json::from_slice(answer).map_err(|e| bad(&e))?;
            let made = match answer {
                Value::Null => Vec::new(),
                Value::Array(all) => {
                    all.into_iter().map(|one| from_json(one, to)).collect::<Result<_, _>>().map_err(|e| bad(&e))?
                }
                one => vec![from_json(one, to).map_err(|e| bad(&e))?],
            };
            Ok(made)
        }
    }
}

fn from_json(value: Value, to: &str) -> Result<ProducerRecord<'_>, Misfit> {
    let Value::Object(mut object) = value else {
        return Err("an object with key, value and headers is expected, or null for no record".into());
    };
    let mut record = ProducerRecord::new(to);
    match object.remove("timestamp") {
        None | Some(Value::Null) => {}
        Some(value) => {
            let millis = value.as_i64().filter(|ms| *ms >= 0);
            record = record.timestamp(millis.ok_or("timestamp: milliseconds since 1970 are expected")?);
        }
    }
    if let Some(key) = bytes(object.remove("key")).map_err(|e| format!("key: {e}"))? {
        record = record.key(key);
    }
    if let Some(value) = bytes(object.remove("value")).map_err(|e| format!("value: {e}"))? {
        record = record.value(value);
    }
    let headers = match object.remove("headers") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(headers)) => headers,
        Some(_) => return Err("headers: an array of objects with name and value is expected".into()),
    };
    for header in headers {
        let Value::Object(mut header) = header else {
            return Err("headers: an array of objects with name and value is expected".into());
        };
        let Some(Value::String(name)) = header.remove("name") else {
            return Err("headers: a name is missing".into());
        };
        let value = bytes(header.remove("value")).map_err(|e| format!("header {name:?}: {e}"))?;
        record = record.header_opt(name, value);
    }
    Ok(record)
}

/// A string is its text, `{"base64": ".."}` its bytes, null or nothing no bytes; other JSON is its own text.
fn bytes(value: Option<Value>) -> Result<Option<Vec<u8>>, Misfit> {
    match value {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.into_bytes())),
        Some(Value::Object(object)) if object.len() == 1 && object.contains_key("base64") => {
            let text = object["base64"].as_str().ok_or("base64: a string is expected")?;
            text::from_base64(text).map(Some).ok_or_else(|| "base64: it is not base64".into())
        }
        Some(other) => Ok(Some(other.to_string().into_bytes())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn json_becomes_bytes_or_is_refused() {
        let of = |text: &str| bytes(Some(serde_json::from_str(text).unwrap()));
        assert_eq!(of("null"), Ok(None));
        assert_eq!(of("\"a\\nb\""), Ok(Some(b"a\nb".to_vec())));
        assert_eq!(of("{\"base64\": \"/w==\"}"), Ok(Some(vec![0xff])));
        assert_eq!(of("{\"base64\": \"/w==\", \"x\": 1}"), Ok(Some(b"{\"base64\":\"/w==\",\"x\":1}".to_vec())));
        assert_eq!(of("[1, 2.5]"), Ok(Some(b"[1,2.5]".to_vec())));
        for bad in ["{\"base64\": \"/w=\"}", "{\"base64\": 1}", "{\"base64\": \"*\"}"] {
            assert!(of(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn answers_that_are_no_records_are_refused_by_name() {
        for (text, word) in [
            ("1", "object"),
            ("\"x\"", "object"),
            ("{\"timestamp\": -1}", "timestamp"),
            ("{\"timestamp\": \"now\"}", "timestamp"),
            ("{\"headers\": {}}", "headers"),
            ("{\"headers\": [1]}", "headers"),
            ("{\"headers\": [{\"value\": \"x\"}]}", "name"),
        ] {
            let error = from_json(serde_json::from_str(text).unwrap(), "t").unwrap_err();
            assert!(error.contains(word), "{text}: {error}");
        }
        assert!(from_json(json!({ "offset": 1, "topic": "other", "delivery_count": 3 }), "t").is_ok());
    }
}
