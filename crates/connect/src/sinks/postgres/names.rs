//! Names of tables and columns: always quoted, never longer than the database keeps.

use crate::ConnectError;

/// PostgreSQL cuts longer names off, and two would become one.
const LONGEST: usize = 63;
const TOPIC: &str = "${topic}";

/// A name as SQL has it.
pub(super) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// What cannot be a name, and why.
pub(super) fn check(name: &str) -> Result<(), String> {
    match name.len() {
        0 => Err("a name is empty".into()),
        1..=LONGEST if !name.contains('\0') => Ok(()),
        1..=LONGEST => Err(format!("{name:?} has a NUL character")),
        length => Err(format!("{name:?} has {length} bytes, and names in PostgreSQL have up to {LONGEST}")),
    }
}

/// A table, perhaps in a named schema.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct TableName {
    /// For SQL.
    pub(super) sql: String,
    /// For messages.
    pub(super) shown: String,
}

/// `table.name.format`: a table, or a schema, a dot and a table. `${topic}` in it is the topic of a record; dots of a topic are
/// part of the name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TableFormat {
    schema: Option<String>,
    table: String,
}

impl TableFormat {
    pub(super) fn new(setting: &str, text: &str) -> Result<Self, ConnectError> {
        let wrong = |why: &str| ConnectError::config(format!("{setting}={text}: {why}"));
        let parts: Vec<&str> = text.trim().split('.').collect();
        let format = match parts[..] {
            [table] => TableFormat { schema: None, table: table.to_owned() },
            [schema, table] => TableFormat { schema: Some(schema.to_owned()), table: table.to_owned() },
            _ => return Err(wrong("a table, or a schema, a dot and a table, is expected")),
        };
        if format.table.is_empty() || format.schema.as_ref().is_some_and(String::is_empty) {
            return Err(wrong("a name is empty"));
        }
        if !text.contains(TOPIC) {
            format.of("").map_err(|e| wrong(&e))?;
        }
        Ok(format)
    }

    /// The table of a topic.
    pub(super) fn of(&self, topic: &str) -> Result<TableName, String> {
        let parts = self.schema.iter().chain([&self.table]).map(|part| part.replace(TOPIC, topic));
        let parts: Vec<String> = parts.collect();
        parts.iter().try_for_each(|part| check(part))?;
        let sql: Vec<String> = parts.iter().map(|part| quoted(part)).collect();
        Ok(TableName { sql: sql.join("."), shown: parts.join(".") })
    }

    /// The same with something behind the table's name.
    pub(super) fn with_suffix(&self, suffix: &str) -> Self {
        TableFormat { schema: self.schema.clone(), table: format!("{}{suffix}", self.table) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_quoted_whatever_is_in_them() {
        let of = |format: &str, topic: &str| TableFormat::new("f", format).unwrap().of(topic).map(|t| t.sql);
        assert_eq!(of("${topic}", "orders").unwrap(), r#""orders""#);
        assert_eq!(of("sales.${topic}", "shop.orders").unwrap(), r#""sales"."shop.orders""#);
        assert_eq!(of("t", r#"x"; DROP TABLE t; --"#).unwrap(), r#""t""#);
        assert_eq!(of("${topic}", r#"x"; DROP TABLE t; --"#).unwrap(), r#""x""; DROP TABLE t; --""#);
        assert!(of("${topic}", &"x".repeat(64)).unwrap_err().contains("64 bytes"));
        assert!(of("${topic}", "a\0b").unwrap_err().contains("NUL"));
        for wrong in ["", ".t", "a.b.c", "s."] {
            assert!(
                TableFormat::new("table.name.format", wrong).unwrap_err().to_string().contains("table.name.format")
            );
        }
    }
}
