//! From values to texts that the database casts to a column's type, and what does not fit.

use crate::transforms::civil;
use crate::{Schema, SchemaType};
use serde_json::Value;

const DECIMAL: &str = "org.apache.kafka.connect.data.Decimal";
const DATE: &str = "org.apache.kafka.connect.data.Date";
const TIME: &str = "org.apache.kafka.connect.data.Time";
const TIMESTAMP: &str = "org.apache.kafka.connect.data.Timestamp";
const DEBEZIUM_TIMESTAMP: &str = "io.debezium.time.Timestamp";
const DAY: i64 = 86_400_000;

/// What columns of a type take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    Boolean,
    /// Bits.
    Integer(u32),
    Float,
    Numeric,
    Text,
    Json,
    Bytes,
    Timestamp,
    Date,
    Time,
    Array(Box<Kind>),
    /// A type whose texts only the database knows.
    Other,
}

impl Kind {
    /// By the name of the type in `pg_type`.
    pub(super) fn of(name: &str) -> Self {
        match name {
            "bool" => Kind::Boolean,
            "int2" => Kind::Integer(16),
            "int4" => Kind::Integer(32),
            "int8" => Kind::Integer(64),
            "float4" | "float8" => Kind::Float,
            "numeric" => Kind::Numeric,
            "text" | "varchar" | "bpchar" | "name" | "citext" => Kind::Text,
            "json" | "jsonb" => Kind::Json,
            "bytea" => Kind::Bytes,
            "timestamp" | "timestamptz" => Kind::Timestamp,
            "date" => Kind::Date,
            "time" => Kind::Time,
            _ => Kind::Other,
        }
    }
}

/// A value, with its schema where it has one.
#[derive(Debug, Clone, Copy)]
pub(super) enum Source<'a> {
    Bytes(&'a [u8]),
    Json(Option<&'a Schema>, &'a Value),
}

impl Source<'_> {
    /// Its type, for messages.
    pub(super) fn type_name(&self) -> String {
        match self {
            Source::Bytes(_) => "bytes".into(),
            Source::Json(Some(schema), _) => match &schema.name {
                Some(name) => format!("{} ({name})", schema.kind.name()),
                None => schema.kind.name().to_owned(),
            },
            Source::Json(None, value) => match value {
                Value::Null => "null",
                Value::Bool(_) => "boolean",
                Value::Number(n) if n.is_f64() => "number with a fraction",
                Value::Number(_) => "integer",
                Value::String(_) => "string",
                Value::Array(_) => "array",
                Value::Object(_) => "object",
            }
            .to_owned(),
        }
    }

    pub(super) fn is_null(&self) -> bool {
        matches!(self, Source::Json(_, Value::Null))
    }

    /// As the text of a column's value; the outer `None` is a misfit, the inner one NULL.
    #[allow(clippy::option_option)]
    pub(super) fn text(&self, kind: &Kind) -> Option<Option<String>> {
        match self {
            Source::Bytes(bytes) => (*kind == Kind::Bytes).then(|| Some(hex(bytes))),
            Source::Json(_, Value::Null) => Some(None),
            Source::Json(schema, value) => fit(kind, *schema, value).map(Some),
        }
    }
}

fn fit(kind: &Kind, schema: Option<&Schema>, value: &Value) -> Option<String> {
    let logical = schema.and_then(|s| s.name.as_deref());
    let is_bytes = schema.is_some_and(|s| s.kind == SchemaType::Bytes);
    let string = || value.as_str().filter(|s| !is_bytes && !s.contains('\0')).map(str::to_owned);
    match kind {
        Kind::Boolean => value.as_bool().map(|b| b.to_string()),
        Kind::Integer(bits) => {
            let n = value.as_i64()?;
            let rest = n >> (bits - 1);
            (rest == 0 || rest == -1).then(|| n.to_string())
        }
        Kind::Float => value.as_number().map(ToString::to_string),
        Kind::Numeric if logical == Some(DECIMAL) => {
            let scale = schema?.parameters.get("scale")?.parse().ok()?;
            decimal(&base64(value.as_str()?)?, scale)
        }
        Kind::Numeric => match value {
            Value::Number(n) => Some(n.to_string()),
            // Where JSON has no schema, decimals are written like that, so that no digit is lost.
            Value::String(text) if schema.is_none() && is_decimal(text) => Some(text.clone()),
            _ => None,
        },
        Kind::Text | Kind::Other => string(),
        Kind::Json => Some(value.to_string()),
        Kind::Bytes if is_bytes => base64(value.as_str()?).map(|bytes| hex(&bytes)),
        Kind::Bytes => None,
        Kind::Timestamp => match (value, logical) {
            (Value::Number(ms), None | Some(TIMESTAMP | DEBEZIUM_TIMESTAMP)) => Some(timestamp(ms.as_i64()?)),
            (Value::Number(days), Some(DATE)) => Some(timestamp(days.as_i64()?.checked_mul(DAY)?)),
            // Of a logical type that counts something else.
            (Value::Number(_), Some(_)) => None,
            _ => string(),
        },
        Kind::Date if logical == Some(DATE) => Some(date(value.as_i64()?)),
        Kind::Time if logical == Some(TIME) => value.as_i64().filter(|ms| (0..DAY).contains(ms)).map(time),
        Kind::Date | Kind::Time => string(),
        Kind::Array(items) => {
            let schema = match schema.map(|s| &s.kind) {
                Some(SchemaType::Array(items)) => Some(&**items),
                Some(_) => return None,
                None => None,
            };
            let item = |value: &Value| match value {
                Value::Null => Some("NULL".to_owned()),
                // More dimensions have the same type.
                Value::Array(_) if **items != Kind::Json => {
                    let inner = schema.map(|s| Schema::new(s.kind.clone()));
                    fit(kind, inner.as_ref(), value)
                }
                _ => fit(items, schema, value).map(|text| array_item(&text)),
            };
            let items: Option<Vec<String>> = value.as_array()?.iter().map(item).collect();
            Some(format!("{{{}}}", items?.join(",")))
        }
    }
}

fn array_item(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    let mut text = String::with_capacity(2 + bytes.len() * 2);
    text.push_str("\\x");
    bytes.iter().for_each(|b| _ = write!(text, "{b:02x}"));
    text
}

/// RFC 4648 with padding, as the converter has checked it.
fn base64(text: &str) -> Option<Vec<u8>> {
    let digit = |c: u8| {
        Some(match c {
            b'A'..=b'Z' => c - b'A',
            b'a'..=b'z' => c - b'a' + 26,
            b'0'..=b'9' => c - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        })
    };
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let (mut bits, mut count) = (0_u32, 0);
    for c in text.trim_end_matches('=').bytes() {
        bits = (bits << 6) | u32::from(digit(c)?);
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
            bits &= (1 << count) - 1;
        }
    }
    Some(bytes)
}

/// A Decimal: a signed number, the highest byte first, and how many of its digits are behind the point.
fn decimal(bytes: &[u8], scale: i32) -> Option<String> {
    let negative = bytes.first()? & 0x80 != 0;
    let mut magnitude: Vec<u8> = bytes.to_vec();
    if negative {
        // Two's complement.
        let mut carry = true;
        for byte in magnitude.iter_mut().rev() {
            let (sum, over) = (!*byte).overflowing_add(u8::from(carry));
            (*byte, carry) = (sum, over);
        }
    }
    let mut digits: Vec<u8> = vec![0];
    for byte in magnitude {
        let mut carry = u32::from(byte);
        for digit in &mut digits {
            carry += u32::from(*digit) * 256;
            *digit = (carry % 10) as u8;
            carry /= 10;
        }
        while carry > 0 {
            digits.push((carry % 10) as u8);
            carry /= 10;
        }
    }
    let digits: String = digits.iter().rev().map(|d| char::from(b'0' + d)).collect();
    Some(format!("{}{digits}e{}", if negative { "-" } else { "" }, -i64::from(scale)))
}

fn is_decimal(text: &str) -> bool {
    let body = text.strip_prefix(['-', '+']).unwrap_or(text);
    let mut parts = body.splitn(2, '.');
    let digits = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
    body.bytes().any(|b| b.is_ascii_digit()) && parts.all(digits)
}

fn date(days: i64) -> String {
    let (year, month, day) = civil(days);
    match year > 0 {
        true => format!("{year:04}-{month:02}-{day:02}"),
        false => format!("{:04}-{month:02}-{day:02} BC", 1 - year),
    }
}

fn time(ms: i64) -> String {
    let (h, m, s) = (ms / 3_600_000, ms / 60_000 % 60, ms / 1000 % 60);
    format!("{h:02}:{m:02}:{s:02}.{:03}", ms % 1000)
}

/// In UTC, which columns without a time zone pass over.
fn timestamp(ms: i64) -> String {
    let date = date(ms.div_euclid(DAY));
    let (date, era) = date.split_once(' ').unwrap_or((&date, ""));
    format!("{date} {}+00 {era}", time(ms.rem_euclid(DAY))).trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn plain(kind: &Kind, value: &Value) -> Option<String> {
        Source::Json(None, value).text(kind).flatten()
    }

    #[test]
    fn values_fit_or_do_not() {
        let long = Kind::Integer(64);
        for (kind, value, text) in [
            (&Kind::Boolean, json!(true), Some("true")),
            (&Kind::Boolean, json!(1), None),
            (&Kind::Integer(16), json!(32_767), Some("32767")),
            (&Kind::Integer(16), json!(32_768), None),
            (&Kind::Integer(32), json!(-2_147_483_648_i64), Some("-2147483648")),
            (&long, json!(u64::MAX), None),
            (&long, json!(1.0), None),
            (&long, json!("1"), None),
            (&Kind::Float, json!(0.1), Some("0.1")),
            (&Kind::Numeric, json!("12.50"), Some("12.50")),
            (&Kind::Numeric, json!("12,50"), None),
            (&Kind::Numeric, json!("."), None),
            (&Kind::Text, json!("a'b"), Some("a'b")),
            (&Kind::Text, json!("a\0b"), None),
            (&Kind::Text, json!(1), None),
            (&Kind::Json, json!("a"), Some("\"a\"")),
            (&Kind::Json, json!({"a": [1]}), Some("{\"a\":[1]}")),
            (&Kind::Bytes, json!("AQ=="), None),
            (&Kind::Timestamp, json!(1_709_251_199_999_i64), Some("2024-02-29 23:59:59.999+00")),
            (&Kind::Timestamp, json!(-62_167_219_200_001_i64), Some("0002-12-31 23:59:59.999+00 BC")),
            (&Kind::Date, json!(7), None),
            (&Kind::Array(Box::new(Kind::Text)), json!(["a\"", null, "\\"]), Some("{\"a\\\"\",NULL,\"\\\\\"}")),
            (&Kind::Array(Box::new(Kind::Integer(32))), json!([[1], [2]]), Some("{{\"1\"},{\"2\"}}")),
            (&Kind::Array(Box::new(Kind::Integer(32))), json!(["a"]), None),
        ] {
            assert_eq!(plain(kind, &value).as_deref(), text, "{kind:?} {value}");
        }
        assert_eq!(Source::Json(None, &Value::Null).text(&Kind::Text), Some(None));
        assert_eq!(Source::Bytes(&[1, 255]).text(&Kind::Bytes), Some(Some("\\x01ff".into())));
        assert_eq!(Source::Bytes(&[1]).text(&Kind::Text), None);
    }

    #[test]
    fn logical_types_are_read() {
        let named = |kind, name: &str| Schema { name: Some(name.into()), ..Schema::new(kind) };
        let with = |schema: &Schema, kind: &Kind, value: Value| Source::Json(Some(schema), &value).text(kind).flatten();
        let mut money = named(SchemaType::Bytes, DECIMAL);
        money.parameters.insert("scale".into(), "2".into());
        for (bytes, text) in [("BNI=", "1234e-2"), ("/w==", "-1e-2"), ("AA==", "0e-2"), ("/4A=", "-128e-2")] {
            assert_eq!(with(&money, &Kind::Numeric, json!(bytes)).as_deref(), Some(text));
        }
        assert_eq!(with(&money, &Kind::Text, json!("BNI=")), None);
        assert_eq!(with(&named(SchemaType::Int32, DATE), &Kind::Date, json!(19_782)).as_deref(), Some("2024-02-29"));
        assert_eq!(
            with(&named(SchemaType::Int32, TIME), &Kind::Time, json!(3_723_004)).as_deref(),
            Some("01:02:03.004")
        );
        assert_eq!(with(&named(SchemaType::Int32, TIME), &Kind::Time, json!(DAY)), None);
        // Not everything that is a number counts milliseconds.
        let at = |name, n: i64| with(&named(SchemaType::Int64, name), &Kind::Timestamp, json!(n));
        assert_eq!(at(TIMESTAMP, 1_709_251_199_999), Some(timestamp(1_709_251_199_999)));
        assert_eq!(at(DATE, 19_782), Some(timestamp(19_782 * DAY)));
        assert_eq!(at(DATE, i64::MAX), None);
        assert_eq!(at("io.debezium.time.MicroTimestamp", 1_700_000_000_000_000), None);
        let bytes = Schema::new(SchemaType::Bytes);
        assert_eq!(with(&bytes, &Kind::Bytes, json!("AQL/")).as_deref(), Some("\\x0102ff"));
        let text = "a string of any length, with padding";
        assert_eq!(base64("YSBzdHJpbmcgb2YgYW55IGxlbmd0aCwgd2l0aCBwYWRkaW5n").unwrap(), text.as_bytes());
    }
}
