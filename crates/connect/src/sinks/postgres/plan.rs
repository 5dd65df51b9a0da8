//! From rows to statements: as many rows in each as can be, with the last word on a key being the last row's.

use super::names::quoted;
use super::rows::Row;
use super::settings::InsertMode;
use super::table::Table;
use std::collections::HashMap;
use std::fmt::Write;
use std::sync::Arc;

/// Rows that one kind of statement writes.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) table: Arc<Table>,
    columns: Vec<usize>,
    keys: Vec<usize>,
    delete: bool,
    rows: Vec<Vec<Option<String>>>,
}

/// Table, columns, and whether it deletes.
type Shape = (String, Vec<usize>, bool);
/// Table and key of a row.
type Key = (String, Vec<Option<String>>);

/// Groups that may be written in any order: a key is in one of them only. Of several rows of a key the last one counts.
#[derive(Debug, Default)]
struct Wave {
    groups: Vec<Group>,
    by_shape: HashMap<Shape, usize>,
    by_key: HashMap<Key, usize>,
}

impl Wave {
    /// Whether a row with this key must wait for rows of this wave: those of its own shape, where the last one counts, come
    /// before it in the same statement (`again`). Where texts do not tell keys apart (`1` and `1.0` are one), any row of another
    /// shape may have its key, and, where only one may be there, any row at all.
    fn is_touched(&self, key: &Key, shape: &Shape, again: bool, exact: bool) -> bool {
        let own = self.by_shape.get(shape);
        match exact {
            true => self.by_key.get(key).is_some_and(|group| !again || own != Some(group)),
            false => {
                let of_table = |(other, _): &(&Shape, &usize)| other.0 == shape.0;
                self.by_shape.iter().filter(of_table).any(|(other, _)| !again || other != shape)
            }
        }
    }
}

/// What is to be done for rows in their order.
#[derive(Debug)]
pub(super) struct Plan {
    mode: InsertMode,
    /// Deletes and inserts of one key keep their order.
    keyed: bool,
    waves: Vec<Wave>,
}

impl Plan {
    pub(super) fn new(mode: InsertMode, deletes: bool) -> Self {
        Plan { mode, keyed: mode != InsertMode::Insert || deletes, waves: vec![Wave::default()] }
    }

    pub(super) fn add(&mut self, table: &Arc<Table>, row: Row) {
        let name = table.name.sql.clone();
        let key = (self.keyed && !row.keys.is_empty()).then(|| (name.clone(), row.key()));
        let shape = (name, row.columns.clone(), row.delete);
        let again = row.delete || self.mode != InsertMode::Insert;
        if let Some(key) = &key
            && self.wave().is_touched(key, &shape, again, table.tells_keys_apart(&row.keys))
        {
            self.waves.push(Wave::default());
        }
        let wave = self.wave();
        let group = *wave.by_shape.entry(shape).or_insert_with(|| {
            let table = Arc::clone(table);
            wave.groups.push(Group {
                table,
                columns: row.columns,
                keys: row.keys,
                delete: row.delete,
                rows: Vec::new(),
            });
            wave.groups.len() - 1
        });
        wave.groups[group].rows.push(row.values);
        if let Some(key) = key {
            wave.by_key.insert(key, group);
        }
    }

    fn wave(&mut self) -> &mut Wave {
        self.waves.last_mut().expect("there is always one")
    }

    /// In the order in which they are to be written.
    pub(super) fn groups(self) -> Vec<Group> {
        let mut groups = Vec::new();
        for mut wave in self.waves {
            wave.groups.sort_by(|a, b| (&a.table.name, a.delete).cmp(&(&b.table.name, b.delete)));
            groups.append(&mut wave.groups);
        }
        groups
    }
}

impl Group {
    /// The values, a list for each column, of at most `batch` rows each.
    pub(super) fn batches(&self, batch: usize) -> impl Iterator<Item = Vec<Vec<Option<&str>>>> {
        self.rows.chunks(batch).map(|rows| {
            let column = |i: usize| rows.iter().map(|row| row[i].as_deref()).collect();
            (0..self.columns.len()).map(column).collect()
        })
    }

    /// A statement that takes a list of texts for each column. Of rows that the database takes for the same key, the last one
    /// counts; and tasks that write the same rows lock them in the same order, that of their keys.
    pub(super) fn sql(&self, mode: InsertMode) -> String {
        let columns: Vec<_> = self.columns.iter().map(|c| &self.table.columns[*c]).collect();
        let lists: Vec<String> = (1..=columns.len()).map(|n| format!("${n}::text[]")).collect();
        let names: Vec<String> = (1..=columns.len()).map(|n| format!("v{n}")).collect();
        let cell = |place: usize| {
            let n = self.columns.iter().position(|c| *c == place).map_or(0, |at| at + 1);
            format!("v.v{n}::{}", self.table.columns[place].cast)
        };
        let values = match (mode == InsertMode::Insert && !self.delete) || self.keys.is_empty() {
            true => format!("unnest({}) AS v({})", lists.join(", "), names.join(", ")),
            false => {
                let keys = self.keys.iter().map(|k| cell(*k)).collect::<Vec<_>>().join(", ");
                format!(
                    "(SELECT DISTINCT ON ({keys}) v.* FROM unnest({}) WITH ORDINALITY AS v({}, n) ORDER BY {keys}, v.n DESC) AS v",
                    lists.join(", "),
                    names.join(", ")
                )
            }
        };
        let name = |place: usize| quoted(&self.table.columns[place].name);
        let table = &self.table.name.sql;
        let same = |keys: &[usize]| {
            let same: Vec<String> = keys.iter().map(|k| format!("t.{} = {}", name(*k), cell(*k))).collect();
            same.join(" AND ")
        };
        if self.delete {
            return format!("DELETE FROM {table} AS t USING {values} WHERE {}", same(&self.keys));
        }
        let rest: Vec<usize> = self.columns.iter().copied().filter(|c| !self.keys.contains(c)).collect();
        if mode == InsertMode::Update {
            let mut set: Vec<String> = rest.iter().map(|c| format!("{} = {}", name(*c), cell(*c))).collect();
            if set.is_empty() {
                // Nothing but the key: the row stays as it is.
                set = self.keys.iter().map(|c| format!("{} = {}", name(*c), cell(*c))).collect();
            }
            return format!("UPDATE {table} AS t SET {} FROM {values} WHERE {}", set.join(", "), same(&self.keys));
        }
        let list = |places: &[usize], of: &dyn Fn(usize) -> String| -> String {
            places.iter().map(|p| of(*p)).collect::<Vec<_>>().join(", ")
        };
        let mut sql = format!(
            "INSERT INTO {table} ({}) SELECT {} FROM {values}",
            list(&self.columns, &name),
            list(&self.columns, &cell)
        );
        if mode == InsertMode::Upsert {
            let _ = write!(sql, " ON CONFLICT ({}) ", list(&self.keys, &name));
            match rest.is_empty() {
                true => sql.push_str("DO NOTHING"),
                false => {
                    let set = list(&rest, &|c| format!("{0} = EXCLUDED.{0}", name(c)));
                    let _ = write!(sql, "DO UPDATE SET {set}");
                }
            }
        }
        sql
    }

    pub(super) fn doing(&self) -> String {
        let what = if self.delete { "deleting from" } else { "writing to" };
        format!("{what} table {}", self.table.name.shown)
    }

    /// The columns, and the values where there is one row only.
    pub(super) fn single(&self) -> Option<impl Iterator<Item = (usize, &str)>> {
        let [row] = &self.rows[..] else { return None };
        Some(self.columns.iter().zip(row).filter_map(|(column, value)| Some((*column, value.as_deref()?))))
    }
}
