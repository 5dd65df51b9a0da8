//! Tables: their columns, looked up once and kept, and those that are made from schemas.

use super::failure;
use super::names::{TableName, check, quoted};
use super::rows::Field;
use super::session::Session;
use super::value::{Kind, Source};
use crate::{ConnectError, Schema, SchemaType};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use tokio_postgres::Row;

/// Columns of a table. A value is cast to the type that is below all domains, without length or precision: a cast to a domain
/// would cut off what is too long for it, an assignment refuses it.
const COLUMNS: &str = "\
WITH RECURSIVE base(attnum, oid) AS (\
 SELECT attnum, atttypid FROM pg_catalog.pg_attribute \
 WHERE attrelid = to_regclass($1) AND attnum > 0 AND NOT attisdropped \
 UNION ALL \
 SELECT base.attnum, d.typbasetype FROM base JOIN pg_catalog.pg_type d ON d.oid = base.oid WHERE d.typtype = 'd') \
SELECT a.attname::text, format_type(a.atttypid, a.atttypmod), \
 quote_ident(n.nspname) || '.' || quote_ident(b.typname), b.typname::text, e.typname::text \
FROM pg_catalog.pg_attribute a \
JOIN base ON base.attnum = a.attnum \
JOIN pg_catalog.pg_type b ON b.oid = base.oid AND b.typtype <> 'd' \
JOIN pg_catalog.pg_namespace n ON n.oid = b.typnamespace \
LEFT JOIN pg_catalog.pg_type e ON e.oid = b.typelem AND b.typcategory = 'A' \
WHERE a.attrelid = to_regclass($1) \
ORDER BY a.attnum";

#[derive(Debug)]
pub(super) struct Column {
    pub(super) name: String,
    /// For messages: `character varying(5)`.
    pub(super) shown: String,
    pub(super) cast: String,
    pub(super) kind: Kind,
}

/// A table, and where its columns are by name.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) name: TableName,
    pub(super) columns: Vec<Column>,
    places: HashMap<String, usize>,
}

impl Table {
    /// `None`: there is no such table.
    pub(super) async fn look_up(session: &mut Session, name: &TableName) -> Result<Option<Table>, ConnectError> {
        let rows = session.query(COLUMNS, &[&name.sql]).await;
        let rows = rows.map_err(|e| failure::of(&e, &format!("looking at table {}", name.shown)))?;
        if rows.is_empty() {
            return Ok(None);
        }
        let column = |row: &Row| {
            let (base, item): (&str, Option<&str>) = (row.get(3), row.get(4));
            let kind = item.map_or_else(|| Kind::of(base), |item| Kind::Array(Box::new(Kind::of(item))));
            Column { name: row.get(0), shown: row.get(1), cast: row.get(2), kind }
        };
        let columns: Vec<Column> = rows.iter().map(column).collect();
        let places = columns.iter().enumerate().map(|(i, c)| (c.name.clone(), i)).collect();
        Ok(Some(Table { name: name.clone(), columns, places }))
    }

    pub(super) fn place(&self, column: &str) -> Option<usize> {
        self.places.get(column).copied()
    }

    /// Whether two keys are different to the database where their texts are: not so with numbers that have fractions, texts
    /// that are compared without case or blanks, times, and types that only the database knows.
    pub(super) fn tells_keys_apart(&self, keys: &[usize]) -> bool {
        keys.iter().all(|key| {
            let Column { kind, cast, .. } = &self.columns[*key];
            match kind {
                Kind::Boolean | Kind::Integer(_) | Kind::Bytes => true,
                Kind::Text => !cast.ends_with(".bpchar") && !cast.ends_with(".citext"),
                _ => false,
            }
        })
    }
}

/// What `auto.create` and `auto.evolve` make of fields.
pub(super) struct Definition<'a> {
    pub(super) name: &'a TableName,
    pub(super) fields: &'a [Field<'a>],
    /// Of the primary key.
    pub(super) keys: &'a [String],
}

impl Definition<'_> {
    fn column(&self, field: &Field<'_>) -> Result<String, String> {
        check(&field.name)?;
        let is_key = self.keys.contains(&field.name);
        let Some(kind) = sql_type(&field.source) else {
            return Err(format!(
                "field {:?} is {} without a schema, which does not tell the type of its column: create the table yourself, or \
                 write records with schemas (value.converter=json, value.converter.schemas.enable=true)",
                field.name,
                field.source.type_name()
            ));
        };
        let optional = matches!(field.source, Source::Json(Some(schema), _) if schema.optional);
        let required = if is_key || !optional { " NOT NULL" } else { "" };
        Ok(format!("{} {kind}{required}", quoted(&field.name)))
    }

    /// # Errors
    /// The inner error is about the record.
    pub(super) async fn create(&self, session: &mut Session) -> Result<Result<(), String>, ConnectError> {
        let mut parts = Vec::new();
        for field in self.fields {
            match self.column(field) {
                Ok(column) => parts.push(column),
                Err(error) => return Ok(Err(error)),
            }
        }
        if !self.keys.is_empty() {
            let keys: Vec<String> = self.keys.iter().map(|k| quoted(k)).collect();
            parts.push(format!("PRIMARY KEY ({})", keys.join(", ")));
        }
        let sql = format!("CREATE TABLE IF NOT EXISTS {} ({})", self.name.sql, parts.join(", "));
        let doing = format!("auto.create=true, creating table {}", self.name.shown);
        session.define(&sql).await.map_err(|e| failure::of(&e, &doing))?;
        tracing::info!(table = self.name.shown, "table created");
        Ok(Ok(()))
    }

    /// Adds columns for the fields that have none. They must be optional: older rows have no value for them.
    ///
    /// # Errors
    /// The inner error is about the record.
    pub(super) async fn evolve(
        &self,
        session: &mut Session,
        table: &Table,
    ) -> Result<Result<(), String>, ConnectError> {
        let mut parts = BTreeSet::new();
        for field in self.fields.iter().filter(|f| table.place(&f.name).is_none()) {
            let column = match self.column(field) {
                Ok(column) if !column.ends_with(" NOT NULL") => column,
                Ok(_) => {
                    return Ok(Err(format!(
                        "field {:?} is not optional, so that no column can be added for it to table {}, whose rows have no value \
                         for it: make it optional, or add the column yourself",
                        field.name, table.name.shown
                    )));
                }
                Err(error) => return Ok(Err(error)),
            };
            parts.insert(format!("ADD COLUMN IF NOT EXISTS {column}"));
        }
        let sql = format!("ALTER TABLE {} {}", self.name.sql, parts.into_iter().collect::<Vec<_>>().join(", "));
        let doing = format!("auto.evolve=true, adding columns to table {}", self.name.shown);
        session.define(&sql).await.map_err(|e| failure::of(&e, &doing))?;
        tracing::info!(table = self.name.shown, "columns added");
        Ok(Ok(()))
    }
}

/// Tables by name.
pub(super) type Tables = HashMap<TableName, Arc<Table>>;

/// As the JDBC sinks choose them; structs and maps, which these do not take, are `JSONB`.
fn sql_type(source: &Source<'_>) -> Option<String> {
    match source {
        Source::Bytes(_) => Some("BYTEA".into()),
        Source::Json(schema, _) => schema.map(of_schema),
    }
}

fn of_schema(schema: &Schema) -> String {
    let logical = schema.name.as_deref().and_then(|n| n.strip_prefix("org.apache.kafka.connect.data."));
    match (logical, &schema.kind) {
        (Some("Decimal"), _) => "DECIMAL",
        (Some("Date"), _) => "DATE",
        (Some("Time"), _) => "TIME",
        (Some("Timestamp"), _) => "TIMESTAMP",
        (_, SchemaType::Boolean) => "BOOLEAN",
        (_, SchemaType::Int8 | SchemaType::Int16) => "SMALLINT",
        (_, SchemaType::Int32) => "INT",
        (_, SchemaType::Int64) => "BIGINT",
        (_, SchemaType::Float32) => "REAL",
        (_, SchemaType::Float64) => "DOUBLE PRECISION",
        (_, SchemaType::Bytes) => "BYTEA",
        (_, SchemaType::String) => "TEXT",
        (_, SchemaType::Map(..) | SchemaType::Struct(_)) => "JSONB",
        (_, SchemaType::Array(items)) => return format!("{}[]", of_schema(items).trim_end_matches("[]")),
    }
    .to_owned()
}
