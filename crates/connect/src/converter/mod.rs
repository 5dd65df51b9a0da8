//! From bytes to data: by short names, or by those of Connect's own classes.

mod simple;

pub use crate::schema_cache::SchemaCache;

use crate::{ConnectError, Data, Properties};
use bytes::Bytes;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

/// How keys, values or header values are read (`key.converter`, `value.converter`, `header.converter`).
///
/// ```
/// use kafka_share_connect::converter::Converter;
/// use kafka_share_connect::{Data, Properties};
///
/// let named = |name: &str| Properties::from([("value.converter".to_owned(), name.to_owned())]);
/// let long = Converter::from_properties("value.converter", &named("org.apache.kafka.connect.converters.LongConverter"))?;
/// assert_eq!(long.convert(Some(&[0, 0, 0, 0, 0, 0, 1, 0]))?, Data::Int64(256));
///
/// let json = Converter::from_properties("value.converter", &named("org.apache.kafka.connect.json.JsonConverter"))?;
/// let text = br#"{"schema": {"type": "int32", "optional": false}, "payload": 7}"#;
/// assert_eq!(json.convert(Some(text))?.json(), Some(&serde_json::json!(7)));
/// assert!(json.convert(Some(b"7")).is_err(), "schemas.enable=true is the default of this class");
/// # Ok::<(), kafka_share_connect::ConnectError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Converter {
    /// As they are.
    Bytes,
    /// UTF-8 text.
    String,
    /// JSON, schemaless (`schemas.enable=false`).
    Json,
    /// JSON objects of a `schema` and a `payload` (`schemas.enable=true`).
    JsonWithSchema,
    /// One byte, 0 or 1.
    Boolean,
    /// Two bytes, the highest first, as all numbers.
    Int16,
    /// Four bytes.
    Int32,
    /// Eight bytes.
    Int64,
    /// Four bytes, IEEE 754.
    Float32,
    /// Eight bytes, IEEE 754.
    Float64,
    /// Text that stands for a number, a boolean, a list or an object where it is the JSON of one, as Connect's
    /// `SimpleHeaderConverter` writes headers. What it reads is written the same again, but for `null` and quotes.
    Simple,
}

const NAMES: &str =
    "bytes, string, json, boolean, short, int, long, float, double or simple, or the class of Connect's converter,";

impl Converter {
    /// From the setting `name` (`key.converter`, say) and its `.schemas.enable`; bytes by default. JSON is read with schemas
    /// under the name of Connect's class, whose default that is, and without under its short name `json`.
    ///
    /// # Errors
    /// Unknown converters, and schemas that are neither `true` nor `false`.
    pub fn from_properties(name: &str, properties: &Properties) -> Result<Self, ConnectError> {
        let Some(class) = properties.get(name).map(|v| v.trim()) else { return Ok(Converter::Bytes) };
        let setting = format!("{name}.schemas.enable");
        let schemas = match properties.get(&setting).map(|v| v.trim().to_ascii_lowercase()).as_deref() {
            None => None,
            Some("true") => Some(true),
            Some("false") => Some(false),
            Some(other) => return Err(ConnectError::config(format!("{setting}={other}: true or false is expected"))),
        };
        let json = |by_default| match schemas.unwrap_or(by_default) {
            true => Converter::JsonWithSchema,
            false => Converter::Json,
        };
        let short = class.strip_prefix("org.apache.kafka.connect.converters.").unwrap_or(class);
        Ok(match short {
            "bytes" | "ByteArrayConverter" => Converter::Bytes,
            "string" | "org.apache.kafka.connect.storage.StringConverter" => Converter::String,
            "json" => json(false),
            "org.apache.kafka.connect.json.JsonConverter" => json(true),
            "boolean" | "BooleanConverter" => Converter::Boolean,
            "short" | "ShortConverter" => Converter::Int16,
            "int" | "integer" | "IntegerConverter" => Converter::Int32,
            "long" | "LongConverter" => Converter::Int64,
            "float" | "FloatConverter" => Converter::Float32,
            "double" | "DoubleConverter" => Converter::Float64,
            "simple" | "org.apache.kafka.connect.storage.SimpleHeaderConverter" => Converter::Simple,
            _ => return Err(ConnectError::config(format!("{name}={class}: {NAMES} is expected"))),
        })
    }

    /// Converts. Null stays null.
    ///
    /// # Errors
    /// Bytes that are not what the converter reads: these will never convert.
    pub fn convert(self, bytes: Option<&[u8]>) -> Result<Data, ConnectError> {
        self.read(bytes, &mut SchemaCache::default(), Bytes::copy_from_slice)
    }

    /// Converts with what is at hand: schemas that were read before, and a way to keep bytes without copying them.
    ///
    /// # Errors
    /// As [`Converter::convert`].
    #[inline]
    pub fn read(
        self,
        bytes: Option<&[u8]>,
        schemas: &mut SchemaCache,
        share: impl FnOnce(&[u8]) -> Bytes,
    ) -> Result<Data, ConnectError> {
        match (bytes, self) {
            (None, _) => Ok(Data::Null),
            (Some(bytes), Converter::Bytes) => Ok(Data::Bytes(share(bytes))),
            (Some(bytes), _) => self.read_other(bytes, schemas, share),
        }
    }

    fn read_other(
        self,
        bytes: &[u8],
        schemas: &mut SchemaCache,
        share: impl FnOnce(&[u8]) -> Bytes,
    ) -> Result<Data, ConnectError> {
        Ok(match self {
            Converter::Bytes => Data::Bytes(share(bytes)),
            Converter::Simple => simple::read(bytes, share),
            Converter::String => match std::str::from_utf8(bytes) {
                Ok(text) => Data::String(text.to_owned()),
                Err(error) => return Err(ConnectError::fatal(format!("not UTF-8: {error}"))),
            },
            Converter::Json => Data::Json(parse(bytes)?),
            Converter::JsonWithSchema => envelope(bytes, schemas)?,
            Converter::Boolean => match sized("boolean", bytes)? {
                [0] => Data::Boolean(false),
                [1] => Data::Boolean(true),
                [other] => {
                    return Err(ConnectError::fatal(format!("not a boolean: {other}, where 0 or 1 is expected")));
                }
            },
            Converter::Int16 => Data::Int16(i16::from_be_bytes(sized("short", bytes)?)),
            Converter::Int32 => Data::Int32(i32::from_be_bytes(sized("int", bytes)?)),
            Converter::Int64 => Data::Int64(i64::from_be_bytes(sized("long", bytes)?)),
            Converter::Float32 => Data::Float32(f32::from_be_bytes(sized("float", bytes)?)),
            Converter::Float64 => Data::Float64(f64::from_be_bytes(sized("double", bytes)?)),
        })
    }
}

fn parse(bytes: &[u8]) -> Result<Value, ConnectError> {
    let json = serde_json::from_slice(bytes).map_err(|error| ConnectError::fatal(format!("not JSON: {error}")))?;
    match long_integer(bytes) {
        None => Ok(json),
        Some((number, field)) => {
            let of = field.map_or_else(String::new, |f| format!("field {f}: "));
            Err(ConnectError::fatal(format!("{of}{number} has more than 64 bits, and would become another number")))
        }
    }
}

/// The first integer of a JSON text that would be read as a float, and the name before it.
fn long_integer(json: &[u8]) -> Option<(&str, Option<&str>)> {
    let text = std::str::from_utf8(json).ok()?;
    let (mut at, mut last, mut field) = (0, None, None);
    while let Some(byte) = json.get(at) {
        let start = at;
        at += 1;
        match byte {
            b'"' => {
                while *json.get(at)? != b'"' {
                    at += if json[at] == b'\\' { 2 } else { 1 };
                }
                last = text.get(start + 1..at);
                at += 1;
            }
            b':' => field = last,
            b'-' | b'0'..=b'9' => {
                while json.get(at).is_some_and(|b| matches!(b, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-')) {
                    at += 1;
                }
                let number = &text[start..at];
                let whole = !number.contains(['.', 'e', 'E']);
                if whole && number.parse::<i64>().is_err() && number.parse::<u64>().is_err() {
                    return Some((number, field));
                }
            }
            _ => {}
        }
    }
    None
}

fn sized<const N: usize>(what: &str, bytes: &[u8]) -> Result<[u8; N], ConnectError> {
    let fail = |_| ConnectError::fatal(format!("not a {what}: {} bytes, where {N} are expected", bytes.len()));
    bytes.try_into().map_err(fail)
}

/// JSON with a schema.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Envelope<'a> {
    #[serde(borrow)]
    schema: &'a RawValue,
    #[serde(borrow)]
    payload: &'a RawValue,
}

/// A null schema leaves the payload as it is.
fn envelope(bytes: &[u8], schemas: &mut SchemaCache) -> Result<Data, ConnectError> {
    let other = || {
        ConnectError::fatal(
            "with schemas.enable=true, JSON must be an object of \"schema\" and \"payload\", and nothing else: set \
             schemas.enable=false of the converter for plain JSON",
        )
    };
    // A list of two would be taken for one.
    if !bytes.trim_ascii_start().starts_with(b"{") {
        parse(bytes)?;
        return Err(other());
    }
    let parts: Envelope<'_> = serde_json::from_slice(bytes).map_err(|error| match error.is_data() {
        true => other(),
        false => ConnectError::fatal(format!("not JSON: {error}")),
    })?;
    let payload = parse(parts.payload.get().as_bytes())?;
    let Some(schema) = schemas.schema(parts.schema)? else {
        return Ok(if payload.is_null() { Data::Null } else { Data::Json(payload) });
    };
    let value = schema.read(Some(&payload), "payload")?;
    Ok(Data::WithSchema(schema, value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn named(class: &str, schemas: Option<&str>) -> Result<Converter, ConnectError> {
        let mut properties = Properties::from([("value.converter".to_owned(), class.to_owned())]);
        properties.extend(schemas.map(|s| ("value.converter.schemas.enable".to_owned(), s.to_owned())));
        Converter::from_properties("value.converter", &properties)
    }

    #[test]
    fn converters_by_name() {
        let class = "org.apache.kafka.connect.json.JsonConverter";
        for (name, schemas, converter) in [
            ("json", None, Converter::Json),
            ("json", Some("true"), Converter::JsonWithSchema),
            (class, None, Converter::JsonWithSchema),
            (class, Some("false"), Converter::Json),
            ("org.apache.kafka.connect.converters.ByteArrayConverter", None, Converter::Bytes),
            ("org.apache.kafka.connect.storage.StringConverter", None, Converter::String),
            ("org.apache.kafka.connect.converters.ShortConverter", None, Converter::Int16),
            ("org.apache.kafka.connect.converters.BooleanConverter", None, Converter::Boolean),
            ("org.apache.kafka.connect.storage.SimpleHeaderConverter", None, Converter::Simple),
        ] {
            assert_eq!(named(name, schemas).unwrap(), converter, "{name}");
        }
        for (name, schemas, word) in
            [("avro", None, "value.converter=avro"), ("json", Some("yes"), "schemas.enable=yes")]
        {
            assert!(named(name, schemas).unwrap_err().to_string().contains(word));
        }
    }

    #[test]
    fn converts_or_says_why_not() {
        assert_eq!(Converter::String.convert(Some(b"a")).unwrap(), Data::String("a".into()));
        assert_eq!(Converter::Json.convert(None).unwrap(), Data::Null);
        assert!(!Converter::String.convert(Some(b"\xff")).unwrap_err().is_retriable());
        assert!(Converter::Json.convert(Some(b"{")).unwrap_err().to_string().contains("not JSON"));
    }

    #[test]
    fn json_numbers_stay_the_same_or_are_refused() {
        let same = r#"{"a":[18446744073709551615,-9223372036854775808],"b\"":"99999999999999999999","f":[0.1,122.416294033786585,1e300]}"#;
        let read = Converter::Json.convert(Some(same.as_bytes())).unwrap();
        assert_eq!(read.json().unwrap()["f"][1].as_f64(), "122.416294033786585".parse().ok());
        let again = Converter::Json.convert(read.to_bytes().as_deref()).unwrap();
        assert_eq!(again, read);
        assert_eq!(read.json().unwrap()["a"], json!([u64::MAX, i64::MIN]));
        for (json, name) in [
            (r#"{"a":1,"n":18446744073709551616}"#, "field n: 18446744073709551616"),
            (r#"{"n\"m": [1, -9223372036854775809]}"#, "-9223372036854775809"),
            ("99999999999999999999", "99999999999999999999"),
        ] {
            for converter in [Converter::Json, Converter::JsonWithSchema] {
                let json = match converter {
                    Converter::Json => json.to_owned(),
                    _ => format!(r#"{{"schema":null,"payload":{json}}}"#),
                };
                let error = converter.convert(Some(json.as_bytes())).unwrap_err();
                assert!(!error.is_retriable() && error.to_string().contains(name), "{error}");
            }
        }
    }

    #[test]
    fn what_is_read_is_written_the_same() {
        for (converter, bytes) in [
            (Converter::Bytes, &b"\xff\x00"[..]),
            (Converter::String, "h\u{e4}".as_bytes()),
            (Converter::Json, br#"{"a":[1,null]}"#),
            (Converter::Boolean, &[1]),
            (Converter::Int16, &[0x80, 1]),
            (Converter::Int32, &[0xff, 0, 0, 1]),
            (Converter::Int64, &[0x80, 0, 0, 0, 0, 0, 0, 1]),
            (Converter::Float32, &[0x3f, 0x80, 0, 1]),
            (Converter::Float64, &[0x3f, 0xf0, 0, 0, 0, 0, 0, 1]),
        ] {
            let data = converter.convert(Some(bytes)).unwrap();
            assert_eq!(data.to_bytes().as_deref(), Some(bytes), "{converter:?}");
            if !matches!(converter, Converter::Bytes | Converter::String | Converter::Json) {
                let longer = bytes.repeat(2);
                for wrong in [&b""[..], &bytes[1..], &longer[..]] {
                    let error = converter.convert(Some(wrong)).unwrap_err().to_string();
                    assert!(error.contains("are expected"), "{error}");
                }
            }
        }
        assert!(Converter::Boolean.convert(Some(&[2])).unwrap_err().to_string().contains("0 or 1"));
    }

    #[test]
    fn envelopes_of_schema_and_payload() {
        let read = |json: Value| Converter::JsonWithSchema.convert(Some(json.to_string().as_bytes()));
        let schema =
            json!({"type": "struct", "optional": true, "fields": [{"field": "n", "type": "int32", "default": 3}]});
        let data = read(json!({"schema": schema, "payload": {}})).unwrap();
        assert_eq!(data.json(), Some(&json!({"n": 3})));
        assert_eq!(Converter::JsonWithSchema.convert(data.to_bytes().as_deref()).unwrap(), data);
        assert_eq!(read(json!({"schema": null, "payload": [1]})).unwrap(), Data::Json(json!([1])));
        assert_eq!(read(json!({"schema": null, "payload": null})).unwrap(), Data::Null);
        assert!(read(json!({"schema": schema, "payload": null})).unwrap().is_null());
        for (json, word) in [
            (json!({"n": 1}), "schemas.enable=false"),
            (json!({"schema": schema, "payload": {}, "more": 1}), "nothing else"),
            (json!({"schema": schema, "pay": {}}), "payload"),
            (json!({"schema": schema, "payload": {"n": "x"}}), "payload.n"),
            (json!([null, 1]), "schema"),
        ] {
            let error = read(json).unwrap_err();
            assert!(!error.is_retriable() && error.to_string().contains(word), "{error}");
        }
    }
}
