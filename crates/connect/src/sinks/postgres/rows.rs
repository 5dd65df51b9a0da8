//! From records to rows: which fields, which of them are the primary key, and which row a tombstone deletes.

use super::settings::{PkMode, Settings};
use super::table::Table;
use super::value::Source;
use crate::{Data, Schema, SchemaType, SinkRecord};
use serde_json::Value;
use std::borrow::Cow;
use std::sync::{Arc, LazyLock};

/// A field of a record that a column is for.
#[derive(Debug, Clone)]
pub(super) struct Field<'a> {
    pub(super) name: String,
    pub(super) source: Source<'a>,
}

/// Fields of a record, those of its key first.
#[derive(Debug)]
pub(super) struct Fields<'a> {
    pub(super) all: Vec<Field<'a>>,
    /// How many of them are the key, by name.
    pub(super) keys: Vec<String>,
    pub(super) delete: bool,
}

/// A row to be written, or the key of one to be deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Row {
    /// Columns by their place in the table, ascending.
    pub(super) columns: Vec<usize>,
    pub(super) values: Vec<Option<String>>,
    /// Which of the columns are the primary key.
    pub(super) keys: Vec<usize>,
    pub(super) delete: bool,
}

impl Row {
    pub(super) fn key(&self) -> Vec<Option<String>> {
        let value = |place: &usize| self.columns.iter().position(|c| c == place).and_then(|at| self.values[at].clone());
        self.keys.iter().map(value).collect()
    }
}

/// Parts of a record that are no JSON, as JSON with a schema, so that all have a place to be borrowed from.
#[derive(Debug)]
pub(super) struct Parts<'a> {
    key: Part<'a>,
    value: Part<'a>,
    place: [Part<'a>; 3],
}

#[derive(Debug)]
enum Part<'a> {
    Bytes(&'a [u8]),
    Json(Option<&'a Schema>, Cow<'a, Value>),
}

/// Schemas of values that tell their type themselves.
static PLAIN: LazyLock<Plain> = LazyLock::new(|| Plain {
    string: Schema::new(SchemaType::String),
    boolean: Schema::new(SchemaType::Boolean),
    int16: Schema::new(SchemaType::Int16),
    int32: Schema::new(SchemaType::Int32),
    int64: Schema::new(SchemaType::Int64),
    float32: Schema::new(SchemaType::Float32),
    float64: Schema::new(SchemaType::Float64),
});

struct Plain {
    string: Schema,
    boolean: Schema,
    int16: Schema,
    int32: Schema,
    int64: Schema,
    float32: Schema,
    float64: Schema,
}

impl<'a> Part<'a> {
    fn of(data: &'a Data) -> Self {
        let schema = match data {
            Data::Bytes(bytes) => return Part::Bytes(bytes),
            Data::WithSchema(schema, value) => return Part::Json(Some(schema), Cow::Borrowed(value)),
            Data::Json(value) => return Part::Json(None, Cow::Borrowed(value)),
            Data::Null => return Part::Json(None, Cow::Owned(Value::Null)),
            Data::String(_) => &PLAIN.string,
            Data::Boolean(_) => &PLAIN.boolean,
            Data::Int16(_) => &PLAIN.int16,
            Data::Int32(_) => &PLAIN.int32,
            Data::Int64(_) => &PLAIN.int64,
            Data::Float32(_) => &PLAIN.float32,
            Data::Float64(_) => &PLAIN.float64,
        };
        Part::Json(Some(schema), Cow::Owned(data.to_json()))
    }

    fn source(&self) -> Source<'_> {
        match self {
            Part::Bytes(bytes) => Source::Bytes(bytes),
            Part::Json(schema, value) => Source::Json(*schema, value),
        }
    }
}

impl<'a> Parts<'a> {
    pub(super) fn of(record: &'a SinkRecord) -> Self {
        Parts {
            key: Part::of(&record.key),
            value: Part::of(&record.value),
            place: [
                // As Kafka knows it: transforms may route records of several topics to one table.
                Part::Json(Some(&PLAIN.string), Cow::Owned(record.original_topic.as_str().into())),
                Part::Json(Some(&PLAIN.int32), Cow::Owned(record.partition.into())),
                Part::Json(Some(&PLAIN.int64), Cow::Owned(record.offset.into())),
            ],
        }
    }

    /// # Errors
    /// What is wrong with the record, for these settings.
    pub(super) fn fields(&self, settings: &Settings) -> Result<Fields<'_>, String> {
        let value = self.value.source();
        let delete = value.is_null();
        if delete && !settings.delete {
            return Err("the value is null, and delete.enabled=false: set delete.enabled=true and pk.mode=record_key for records \
                 that delete, or drop them with a transform (Filter with RecordIsTombstone)"
                .into());
        }
        let values = if delete { Vec::new() } else { members("value", value)? };
        let mut all = match settings.pk {
            PkMode::None => Vec::new(),
            PkMode::Kafka => {
                let names = settings.pk_fields.iter().cloned();
                names.zip(&self.place).map(|(name, part)| Field { name, source: part.source() }).collect()
            }
            PkMode::RecordKey => key_fields(self.key.source(), settings)?,
            PkMode::RecordValue => values
                .iter()
                .filter(|f| settings.pk_fields.is_empty() || settings.pk_fields.contains(&f.name))
                .cloned()
                .collect(),
        };
        let is_missing = |name: &&String| settings.pk != PkMode::None && !all.iter().any(|f| f.name == **name);
        if let Some(missing) = settings.pk_fields.iter().find(is_missing) {
            let part = if settings.pk == PkMode::RecordKey { "key" } else { "value" };
            return Err(format!("the {part} has no field {missing:?}, which pk.fields names"));
        }
        if let Some(null) = all.iter().find(|f| f.source.is_null()) {
            return Err(format!("field {:?} of the primary key is null", null.name));
        }
        let keys: Vec<String> = all.iter().map(|f| f.name.clone()).collect();
        let wanted = |name: &String| settings.whitelist.is_empty() || settings.whitelist.contains(name);
        all.extend(values.into_iter().filter(|f| !keys.contains(&f.name) && wanted(&f.name)));
        if all.is_empty() {
            return Err("no field is left to write: see fields.whitelist".into());
        }
        Ok(Fields { all, keys, delete })
    }
}

fn key_fields<'a>(key: Source<'a>, settings: &Settings) -> Result<Vec<Field<'a>>, String> {
    if key.is_null() {
        return Err("the key is null, and pk.mode=record_key takes the primary key from it".into());
    }
    if matches!(key, Source::Json(_, Value::Object(_))) {
        let fields = members("key", key)?.into_iter();
        return Ok(fields.filter(|f| settings.pk_fields.is_empty() || settings.pk_fields.contains(&f.name)).collect());
    }
    match &settings.pk_fields[..] {
        [name] => Ok(vec![Field { name: name.clone(), source: key }]),
        _ => Err(format!(
            "the key is a single value ({}): pk.fields must name the one column that it is for",
            key.type_name()
        )),
    }
}

fn members<'a>(part: &str, source: Source<'a>) -> Result<Vec<Field<'a>>, String> {
    let Source::Json(schema, Value::Object(object)) = source else {
        return Err(format!(
            "the {part} is {}, and an object with fields is expected ({part}.converter=json)",
            source.type_name()
        ));
    };
    let fields = match schema.map(|s| &s.kind) {
        Some(SchemaType::Struct(fields)) => Some(fields),
        Some(other) => return Err(format!("the {part} is a {}, and a struct is expected", other.name())),
        None => None,
    };
    Ok(match fields {
        Some(fields) => fields
            .iter()
            .map(|(name, schema)| {
                let value = object.get(name).unwrap_or(&Value::Null);
                Field { name: name.clone(), source: Source::Json(Some(schema), value) }
            })
            .collect(),
        None => {
            object.iter().map(|(name, value)| Field { name: name.clone(), source: Source::Json(None, value) }).collect()
        }
    })
}

/// # Errors
/// The field that does not fit, or has no column.
pub(super) fn row(fields: &Fields<'_>, table: &Arc<Table>) -> Result<Row, String> {
    let mut cells: Vec<(usize, Option<String>)> = Vec::with_capacity(fields.all.len());
    for field in &fields.all {
        let Some(place) = table.place(&field.name) else {
            return Err(format!(
                "field {:?} has no column in table {}: add the column, set auto.evolve=true for records with schemas, or leave \
                 the field out with fields.whitelist",
                field.name, table.name.shown
            ));
        };
        let column = &table.columns[place];
        let Some(text) = field.source.text(&column.kind) else {
            return Err(format!(
                "field {:?} is {}, and does not fit column {:?} of table {}, which is {}",
                field.name,
                field.source.type_name(),
                column.name,
                table.name.shown,
                column.shown
            ));
        };
        cells.push((place, text));
    }
    cells.sort_unstable_by_key(|(place, _)| *place);
    let keys = fields.keys.iter().filter_map(|name| table.place(name)).collect();
    let (columns, values) = cells.into_iter().unzip();
    Ok(Row { columns, values, keys, delete: fields.delete })
}
