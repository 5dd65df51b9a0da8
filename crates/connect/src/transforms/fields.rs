//! `InsertField`, `ReplaceField` and `MaskField`: fields of JSON objects and of structs.

use super::settings::Settings;
use super::{Side, Transformation};
use crate::{ConnectError, Data, Schema, SchemaType, SinkRecord};
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// The fields of a key or value. A struct's schema comes along, to be changed with them.
pub(super) struct Fields<'a> {
    pub(super) schema: Option<&'a mut Vec<(String, Schema)>>,
    pub(super) values: &'a mut Map<String, Value>,
}

/// Has `change` work on the fields. Null stays as it is.
pub(super) fn change(
    side: Side,
    record: &mut SinkRecord,
    change: impl FnOnce(Fields<'_>) -> Result<(), ConnectError>,
) -> Result<(), ConnectError> {
    let none = || {
        let text = "has no fields: it must be a JSON object, or a struct of JSON with schemas";
        Err(ConnectError::fatal(format!("the {} {text}", side.name())))
    };
    match side.of(record) {
        data if data.is_null() => Ok(()),
        Data::Json(Value::Object(values)) => change(Fields { schema: None, values }),
        Data::WithSchema(schema, Value::Object(values)) => {
            let schema = Arc::make_mut(schema);
            match &mut schema.kind {
                SchemaType::Struct(fields) => change(Fields { schema: Some(fields), values }),
                _ => none(),
            }
        }
        _ => none(),
    }
}

#[derive(Debug)]
pub(super) struct InsertField {
    side: Side,
    topic: Option<Insertion>,
    partition: Option<Insertion>,
    offset: Option<Insertion>,
    timestamp: Option<Insertion>,
    fixed: Option<(Insertion, String)>,
}

#[derive(Debug)]
struct Insertion {
    field: String,
    optional: bool,
}

impl Insertion {
    fn of(name: Option<String>) -> Option<Self> {
        let name = name?;
        Some(match name.strip_suffix('!') {
            Some(field) => Insertion { field: field.to_owned(), optional: false },
            None => Insertion { field: name.strip_suffix('?').unwrap_or(&name).to_owned(), optional: true },
        })
    }

    fn put(&self, fields: &mut Fields<'_>, kind: Schema, value: Value) -> Result<(), ConnectError> {
        if let Some(schema) = &mut fields.schema {
            if schema.iter().any(|(name, _)| *name == self.field) {
                return Err(ConnectError::fatal(format!("the struct has a field {} already", self.field)));
            }
            schema.push((self.field.clone(), if self.optional { kind.optional() } else { kind }));
        }
        fields.values.insert(self.field.clone(), value);
        Ok(())
    }
}

impl InsertField {
    pub(super) fn new(side: Side, settings: &mut Settings<'_>) -> Result<Self, ConnectError> {
        let mut field = |name: &str| Insertion::of(settings.take(name));
        let (topic, partition) = (field("topic.field"), field("partition.field"));
        let (offset, timestamp) = (field("offset.field"), field("timestamp.field"));
        let fixed = match field("static.field") {
            Some(at) => Some((at, settings.need("static.value")?)),
            None => None,
        };
        if [&topic, &partition, &offset, &timestamp].iter().all(|f| f.is_none()) && fixed.is_none() {
            return Err(settings
                .missing("topic.field, partition.field, offset.field, timestamp.field or static.field is expected"));
        }
        Ok(InsertField { side, topic, partition, offset, timestamp, fixed })
    }
}

impl Transformation for InsertField {
    fn apply(&self, mut record: SinkRecord) -> Result<Option<SinkRecord>, ConnectError> {
        let (topic, partition) = (record.topic.clone(), record.partition);
        let (offset, timestamp) = (record.offset, record.timestamp);
        change(self.side, &mut record, |mut fields| {
            let fields = &mut fields;
            if let Some(at) = &self.topic {
                at.put(fields, Schema::new(SchemaType::String), json!(topic.as_str()))?;
            }
            if let Some(at) = &self.partition {
                at.put(fields, Schema::new(SchemaType::Int32), json!(partition))?;
            }
            if let Some(at) = &self.offset {
                at.put(fields, Schema::new(SchemaType::Int64), json!(offset))?;
            }
            if let Some(at) = self.timestamp.as_ref().filter(|_| timestamp >= 0) {
                let mut schema = Schema::new(SchemaType::Int64);
                schema.name = Some("org.apache.kafka.connect.data.Timestamp".to_owned());
                schema.version = Some(1);
                at.put(fields, schema, json!(timestamp))?;
            }
            if let Some((at, value)) = &self.fixed {
                at.put(fields, Schema::new(SchemaType::String), json!(value))?;
            }
            Ok(())
        })?;
        Ok(Some(record))
    }
}

#[derive(Debug)]
pub(super) struct ReplaceField {
    side: Side,
    include: Vec<String>,
    exclude: Vec<String>,
    renames: Vec<(String, String)>,
}

impl ReplaceField {
    pub(super) fn new(side: Side, settings: &mut Settings<'_>) -> Result<Self, ConnectError> {
        let (include, exclude) = (settings.list("include"), settings.list("exclude"));
        let renames = settings.take("renames").unwrap_or_default();
        let renames = pairs(&renames).map_err(|part| settings.wrong("renames", &part, "old:new is expected"))?;
        Ok(ReplaceField { side, include, exclude, renames })
    }

    /// Its new name, if it stays.
    fn kept(&self, name: &str) -> Option<String> {
        let is = |list: &[String]| list.iter().any(|n| n == name);
        if is(&self.exclude) || !self.include.is_empty() && !is(&self.include) {
            return None;
        }
        let new = self.renames.iter().find(|(old, _)| old == name).map(|(_, new)| new.as_str());
        Some(new.unwrap_or(name).to_owned())
    }
}

/// `a:b,c:d`; what is not of this form is the error.
pub(super) fn pairs(list: &str) -> Result<Vec<(String, String)>, String> {
    let pair = |text: &str| match text.split_once(':') {
        Some((a, b)) if !a.is_empty() && !b.is_empty() && !b.contains(':') => {
            Ok((a.trim().to_owned(), b.trim().to_owned()))
        }
        _ => Err(text.to_owned()),
    };
    list.split(',').map(str::trim).filter(|p| !p.is_empty()).map(pair).collect()
}

impl Transformation for ReplaceField {
    fn apply(&self, mut record: SinkRecord) -> Result<Option<SinkRecord>, ConnectError> {
        change(self.side, &mut record, |fields| {
            if let Some(schema) = fields.schema {
                let old = std::mem::take(schema);
                schema.extend(old.into_iter().filter_map(|(name, of)| Some((self.kept(&name)?, of))));
                if let Some(twice) = (1..schema.len()).find(|i| schema[..*i].iter().any(|(n, _)| *n == schema[*i].0)) {
                    return Err(ConnectError::fatal(format!("two fields would be named {}", schema[twice].0)));
                }
            }
            let old = std::mem::take(fields.values);
            fields.values.extend(old.into_iter().filter_map(|(name, of)| Some((self.kept(&name)?, of))));
            Ok(())
        })?;
        Ok(Some(record))
    }
}

#[derive(Debug)]
pub(super) struct MaskField {
    side: Side,
    fields: Vec<String>,
    replacement: Option<String>,
}

impl MaskField {
    pub(super) fn new(side: Side, settings: &mut Settings<'_>) -> Result<Self, ConnectError> {
        let (fields, replacement) = (settings.list("fields"), settings.take("replacement"));
        if fields.is_empty() {
            return Err(settings.missing("fields is missing: the fields to mask"));
        }
        Ok(MaskField { side, fields, replacement })
    }

    fn masked(&self, name: &str, value: &Value, kind: Option<&Schema>) -> Result<Value, ConnectError> {
        let fail = |why: &str| ConnectError::fatal(format!("field {name} cannot be masked: {why}"));
        if kind.is_some_and(|k| matches!(k.kind, SchemaType::Bytes | SchemaType::Struct(_))) {
            return Err(fail("it is bytes or a struct"));
        }
        let Some(replacement) = &self.replacement else {
            return Ok(match value {
                Value::Null => Value::Null,
                Value::Bool(_) => json!(false),
                Value::Number(n) if n.is_f64() => json!(0.0),
                Value::Number(_) => json!(0),
                Value::String(_) => json!(""),
                Value::Array(_) => json!([]),
                Value::Object(_) => json!({}),
            });
        };
        let masked = match value {
            Value::Null => return Ok(Value::Null),
            Value::String(_) => Some(json!(replacement)),
            Value::Number(n) if n.is_f64() => {
                replacement.parse::<f64>().ok().filter(|f| f.is_finite()).map(|f| json!(f))
            }
            Value::Number(_) => replacement.parse::<i64>().ok().map(|n| json!(n)),
            _ => return Err(fail("a replacement is for numbers and texts")),
        };
        let masked = masked.ok_or_else(|| fail(&format!("its replacement {replacement:?} is not of its type")))?;
        match kind {
            Some(kind) => kind.read(Some(&masked), name),
            None => Ok(masked),
        }
    }
}

impl Transformation for MaskField {
    fn apply(&self, mut record: SinkRecord) -> Result<Option<SinkRecord>, ConnectError> {
        change(self.side, &mut record, |fields| {
            for name in &self.fields {
                let kind = fields.schema.as_ref().and_then(|s| s.iter().find(|(n, _)| n == name)).map(|(_, s)| s);
                if let Some(value) = fields.values.get_mut(name) {
                    *value = self.masked(name, value, kind)?;
                }
            }
            Ok(())
        })?;
        Ok(Some(record))
    }
}
