//! Schemas of data, as Connect's JSON converter writes and reads them.

use crate::ConnectError;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

const DECIMAL: &str = "org.apache.kafka.connect.data.Decimal";

/// Type of a value.
#[derive(Debug, Clone, PartialEq)]
pub enum SchemaType {
    /// `boolean`
    Boolean,
    /// `int8`
    Int8,
    /// `int16`
    Int16,
    /// `int32`
    Int32,
    /// `int64`
    Int64,
    /// `float`
    Float32,
    /// `double`
    Float64,
    /// `bytes`, as Base64 text; so are Decimals.
    Bytes,
    /// `string`
    String,
    /// `array` of items.
    Array(Box<Schema>),
    /// `map` from keys to values: a JSON object where keys are strings, else an array of pairs.
    Map(Box<Schema>, Box<Schema>),
    /// `struct` of named fields, in their order.
    Struct(Vec<(String, Schema)>),
}

impl SchemaType {
    pub(crate) fn name(&self) -> &'static str {
        match self {
            SchemaType::Boolean => "boolean",
            SchemaType::Int8 => "int8",
            SchemaType::Int16 => "int16",
            SchemaType::Int32 => "int32",
            SchemaType::Int64 => "int64",
            SchemaType::Float32 => "float",
            SchemaType::Float64 => "double",
            SchemaType::Bytes => "bytes",
            SchemaType::String => "string",
            SchemaType::Array(_) => "array",
            SchemaType::Map(..) => "map",
            SchemaType::Struct(_) => "struct",
        }
    }
}

/// Schema of a value: its type, and what else Connect keeps of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Schema {
    /// Its type.
    pub kind: SchemaType,
    /// Whether the value may be null.
    pub optional: bool,
    /// Name: of a struct, or of a logical type (`org.apache.kafka.connect.data.Timestamp`).
    pub name: Option<String>,
    /// Version.
    pub version: Option<i32>,
    /// Documentation.
    pub doc: Option<String>,
    /// Parameters of a logical type.
    pub parameters: BTreeMap<String, String>,
    /// What null, or a missing field, stands for.
    pub default: Option<Value>,
}

fn bad(text: impl Into<String>) -> ConnectError {
    ConnectError::fatal(text)
}

impl Schema {
    /// A required value of a type.
    #[must_use]
    pub fn new(kind: SchemaType) -> Self {
        let (name, version, doc, parameters) = (None, None, None, BTreeMap::new());
        Schema { kind, optional: false, name, version, doc, parameters, default: None }
    }

    /// The same, and null is allowed.
    #[must_use]
    pub fn optional(mut self) -> Self {
        self.optional = true;
        self
    }

    /// From the `schema` of Connect's JSON envelope.
    ///
    /// # Errors
    /// What is missing or wrong in it.
    pub fn from_json(json: &Value) -> Result<Self, ConnectError> {
        let object = json.as_object().ok_or_else(|| bad(format!("a schema is an object with a type, not {json}")))?;
        let part = |name: &str| object.get(name).filter(|v| !v.is_null());
        let kind = part("type").and_then(Value::as_str).ok_or_else(|| bad("a schema must have a type, a text"))?;
        let nested = |name: &str| match part(name) {
            Some(schema) => Schema::from_json(schema).map(Box::new),
            None => Err(bad(format!("a schema of type {kind} must have {name}"))),
        };
        let kind = match kind {
            "boolean" => SchemaType::Boolean,
            "int8" => SchemaType::Int8,
            "int16" => SchemaType::Int16,
            "int32" => SchemaType::Int32,
            "int64" => SchemaType::Int64,
            "float" => SchemaType::Float32,
            "double" => SchemaType::Float64,
            "bytes" => SchemaType::Bytes,
            "string" => SchemaType::String,
            "array" => SchemaType::Array(nested("items")?),
            "map" => SchemaType::Map(nested("keys")?, nested("values")?),
            "struct" => SchemaType::Struct(fields(part("fields"))?),
            other => return Err(bad(format!("unknown schema type {other:?}"))),
        };
        let text = |name: &str| part(name).and_then(Value::as_str).map(str::to_owned);
        let mut schema = Schema {
            optional: part("optional").and_then(Value::as_bool).unwrap_or(false),
            name: text("name"),
            version: part("version").and_then(Value::as_i64).and_then(|v| i32::try_from(v).ok()),
            doc: text("doc"),
            ..Schema::new(kind)
        };
        for (name, value) in part("parameters").and_then(Value::as_object).into_iter().flatten() {
            let value = value.as_str().ok_or_else(|| bad(format!("schema parameter {name} must be a text")))?;
            schema.parameters.insert(name.clone(), value.to_owned());
        }
        if let Some(default) = part("default") {
            schema.default = Some(schema.read(Some(default), "default")?);
        }
        Ok(schema)
    }

    /// As [`Schema::from_json`] reads it.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let mut json = json!({ "type": self.kind.name(), "optional": self.optional });
        match &self.kind {
            SchemaType::Array(items) => json["items"] = items.to_json(),
            SchemaType::Map(keys, values) => {
                json["keys"] = keys.to_json();
                json["values"] = values.to_json();
            }
            SchemaType::Struct(fields) => {
                let field = |(name, schema): &(String, Schema)| {
                    let mut json = schema.to_json();
                    json["field"] = json!(name);
                    json
                };
                json["fields"] = fields.iter().map(field).collect();
            }
            _ => {}
        }
        if let Some(name) = &self.name {
            json["name"] = json!(name);
        }
        if let Some(version) = self.version {
            json["version"] = json!(version);
        }
        if let Some(doc) = &self.doc {
            json["doc"] = json!(doc);
        }
        if !self.parameters.is_empty() {
            json["parameters"] = json!(self.parameters);
        }
        if let Some(default) = &self.default {
            json["default"] = default.clone();
        }
        json
    }

    /// The value that a JSON value stands for: of this type, with defaults for what is null or missing. Stricter than Java,
    /// which reads a text as the number 0.
    ///
    /// # Errors
    /// What is not of the type, by its path.
    pub fn read(&self, json: Option<&Value>, path: &str) -> Result<Value, ConnectError> {
        let Some(json) = json.filter(|v| !v.is_null()) else {
            return match &self.default {
                Some(default) => Ok(default.clone()),
                None if self.optional => Ok(Value::Null),
                None => Err(bad(format!("{path}: null, and it is required and has no default"))),
            };
        };
        let whole = |bits: u32| json.as_i64().is_some_and(|n| n >> (bits - 1) == 0 || n >> (bits - 1) == -1);
        let fits = match &self.kind {
            SchemaType::Boolean => json.is_boolean(),
            SchemaType::Int8 => whole(8),
            SchemaType::Int16 => whole(16),
            SchemaType::Int32 => whole(32),
            SchemaType::Int64 => whole(64),
            SchemaType::Float32 | SchemaType::Float64 => json.is_number(),
            SchemaType::Bytes if self.name.as_deref() == Some(DECIMAL) && json.is_number() => {
                return Err(bad(format!(
                    "{path}: {json} is a Decimal written as a number (decimal.format=NUMERIC), whose digits and scale JSON \
                     numbers do not keep: have it written as Base64"
                )));
            }
            SchemaType::Bytes => json.as_str().is_some_and(is_base64),
            SchemaType::String => json.is_string(),
            SchemaType::Array(items) => return read_array(items, json, path),
            SchemaType::Map(keys, values) => return read_map(keys, values, json, path),
            SchemaType::Struct(fields) => return read_struct(fields, json, path),
        };
        if fits {
            return Ok(json.clone());
        }
        Err(misfit(path, self.kind.name(), json))
    }
}

fn misfit(path: &str, wanted: &str, json: &Value) -> ConnectError {
    let mut text = json.to_string();
    if let Some((cut, _)) = text.char_indices().nth(80) {
        text.truncate(cut);
        text.push_str("..");
    }
    bad(format!("{path}: {text} is no {wanted}"))
}

fn fields(json: Option<&Value>) -> Result<Vec<(String, Schema)>, ConnectError> {
    let list = json.and_then(Value::as_array).ok_or_else(|| bad("the fields of a struct's schema must be an array"))?;
    let mut fields: Vec<(String, Schema)> = Vec::with_capacity(list.len());
    for field in list {
        let name = field.get("field").and_then(Value::as_str);
        let name = name.ok_or_else(|| bad("each field of a struct's schema must have a field, its name"))?;
        if fields.iter().any(|(n, _)| n == name) {
            return Err(bad(format!("field {name} is in the struct's schema twice")));
        }
        fields.push((name.to_owned(), Schema::from_json(field)?));
    }
    Ok(fields)
}

fn read_array(items: &Schema, json: &Value, path: &str) -> Result<Value, ConnectError> {
    let list = json.as_array().ok_or_else(|| misfit(path, "array", json))?;
    let read = |(i, item)| items.read(Some(item), &format!("{path}[{i}]"));
    list.iter().enumerate().map(read).collect()
}

fn read_map(keys: &Schema, values: &Schema, json: &Value, path: &str) -> Result<Value, ConnectError> {
    if keys.kind == SchemaType::String && !keys.optional {
        let map = json.as_object().ok_or_else(|| misfit(path, "map (a JSON object)", json))?;
        let read =
            |(key, value): (&String, &Value)| Ok((key.clone(), values.read(Some(value), &format!("{path}[{key:?}]"))?));
        return map.iter().map(read).collect::<Result<Map<_, _>, _>>().map(Value::Object);
    }
    let list = json.as_array().ok_or_else(|| misfit(path, "map (a JSON array of pairs)", json))?;
    let read = |(i, pair): (usize, &Value)| match pair.as_array().map(Vec::as_slice) {
        Some([key, value]) => {
            let path = format!("{path}[{i}]");
            Ok(json!([keys.read(Some(key), &path)?, values.read(Some(value), &path)?]))
        }
        _ => Err(misfit(path, "map (a JSON array of pairs)", pair)),
    };
    list.iter().enumerate().map(read).collect()
}

fn read_struct(fields: &[(String, Schema)], json: &Value, path: &str) -> Result<Value, ConnectError> {
    let object = json.as_object().ok_or_else(|| misfit(path, "struct (a JSON object)", json))?;
    let mut read = Map::new();
    for (name, schema) in fields {
        read.insert(name.clone(), schema.read(object.get(name), &format!("{path}.{name}"))?);
    }
    Ok(Value::Object(read))
}

/// RFC 4648 with padding, as Java writes it.
fn is_base64(text: &str) -> bool {
    let body = text.trim_end_matches('=');
    text.len().is_multiple_of(4)
        && text.len() - body.len() <= 2
        && body.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'+' || b == b'/')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order() -> Value {
        json!({"type": "struct", "name": "order", "version": 2, "optional": false, "fields": [
            {"field": "id", "type": "int32", "optional": false},
            {"field": "note", "type": "string", "optional": true},
            {"field": "state", "type": "string", "optional": false, "default": "new"},
            {"field": "at", "type": "int64", "optional": false, "name": "org.apache.kafka.connect.data.Timestamp", "version": 1},
            {"field": "tags", "type": "array", "optional": true, "items": {"type": "string", "optional": false}},
            {"field": "rates", "type": "map", "optional": true, "keys": {"type": "string", "optional": false},
             "values": {"type": "double", "optional": false}},
            {"field": "codes", "type": "map", "optional": true, "keys": {"type": "int8", "optional": false},
             "values": {"type": "bytes", "optional": true}},
        ]})
    }

    #[test]
    fn a_schema_comes_back_as_it_was_written() {
        let schema = Schema::from_json(&order()).unwrap();
        assert_eq!(Schema::from_json(&schema.to_json()).unwrap(), schema);
        assert_eq!(schema.to_json()["fields"][2], order()["fields"][2]);
        for (json, word) in [
            (json!({}), "type"),
            (json!({"type": "int7"}), "int7"),
            (json!({"type": "array"}), "items"),
            (json!({"type": "map", "keys": {"type": "string"}}), "values"),
            (json!({"type": "struct"}), "fields"),
            (json!({"type": "struct", "fields": [{"type": "int8"}]}), "name"),
            (
                json!({"type": "struct", "fields": [{"type": "int8", "field": "a"}, {"type": "int8", "field": "a"}]}),
                "twice",
            ),
            (json!({"type": "int8", "parameters": {"scale": 2}}), "scale"),
            (json!({"type": "int8", "default": "x"}), "default"),
            (json!("int8"), "object"),
        ] {
            let error = Schema::from_json(&json).unwrap_err();
            assert!(!error.is_retriable() && error.to_string().contains(word), "{json}: {error}");
        }
    }

    #[test]
    fn values_are_checked_and_completed() {
        let schema = Schema::from_json(&order()).unwrap();
        let whole = json!({"id": 1, "at": 1_700_000_000_000_i64, "tags": ["a"], "rates": {"x": 1}, "codes": [[1, "AQ=="], [2, null]],
                           "unknown": 1});
        let read = schema.read(Some(&whole), "value").unwrap();
        assert_eq!(
            read,
            json!({"id": 1, "note": null, "state": "new", "at": 1_700_000_000_000_i64, "tags": ["a"],
                                "rates": {"x": 1}, "codes": [[1, "AQ=="], [2, null]]})
        );
        for (change, path) in [
            (json!({"id": null}), "value.id: null"),
            (json!({"id": "7"}), "value.id: \"7\" is no int32"),
            (json!({"id": 2_147_483_648_i64}), "value.id"),
            (json!({"id": 1.5}), "value.id"),
            (json!({"note": 1}), "value.note"),
            (json!({"tags": [1]}), "value.tags[0]"),
            (json!({"rates": {"x": "much"}}), "value.rates[\"x\"]"),
            (json!({"rates": [1]}), "value.rates"),
            (json!({"codes": [[128, "AQ=="]]}), "value.codes[0]"),
            (json!({"codes": [[1, "A!=="]]}), "value.codes[0]"),
            (json!({"codes": [[1]]}), "pairs"),
        ] {
            let mut json = whole.clone();
            json.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
            let error = schema.read(Some(&json), "value").unwrap_err().to_string();
            assert!(error.contains(path), "{change}: {error}");
        }
        assert!(schema.read(Some(&json!([])), "value").is_err());
        assert!(schema.read(None, "value").is_err());
    }

    #[test]
    fn decimals_are_read_as_base64_only() {
        let schema = Schema { name: Some(DECIMAL.into()), ..Schema::new(SchemaType::Bytes) };
        assert_eq!(schema.read(Some(&json!("AQ==")), "price").unwrap(), json!("AQ=="));
        for number in [json!(0.1), json!(12)] {
            let error = schema.read(Some(&number), "price").unwrap_err();
            assert!(
                !error.is_retriable() && error.to_string().contains("price: ") && error.to_string().contains("Base64")
            );
        }
    }

    #[test]
    fn numbers_fit_their_width() {
        for (kind, least, most) in [
            (SchemaType::Int8, i64::from(i8::MIN), i64::from(i8::MAX)),
            (SchemaType::Int16, i64::from(i16::MIN), i64::from(i16::MAX)),
            (SchemaType::Int32, i64::from(i32::MIN), i64::from(i32::MAX)),
        ] {
            let schema = Schema::new(kind);
            let read = |n: i64| schema.read(Some(&json!(n)), "value").is_ok();
            assert_eq!([least - 1, least, -1, 0, most, most + 1].map(read), [false, true, true, true, true, false]);
        }
        let long = Schema::new(SchemaType::Int64);
        assert!(
            long.read(Some(&json!(i64::MIN)), "value").is_ok() && long.read(Some(&json!(u64::MAX)), "value").is_err()
        );
    }
}
