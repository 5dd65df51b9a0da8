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

/// Table and key of a row.
type Key = (String, Vec<Option<String>>);

/// Groups that may be written in any order: a key is in one of them only, and there once.
#[derive(Debug, Default)]
struct Wave {
    groups: Vec<Group>,
    by_shape: HashMap<(String, Vec<usize>, bool), usize>,
    by_key: HashMap<Key, (usize, usize)>,
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
        let found = key.as_ref().and_then(|key| self.wave().by_key.get(key).copied());
        if let Some((group, at)) = found {
            let same = self.wave().by_shape.get(&shape) == Some(&group);
            if same && (row.delete || self.mode != InsertMode::Insert) {
                self.wave().groups[group].rows[at] = row.values;
                return;
            }
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
        let rows = &mut wave.groups[group].rows;
        rows.push(row.values);
        let at = rows.len() - 1;
        if let Some(key) = key {
            wave.by_key.insert(key, (group, at));
        }
    }

    fn wave(&mut self) -> &mut Wave {
        self.waves.last_mut().expect("there is always one")
    }

    /// In the order in which they are to be written.
    pub(super) fn groups(self) -> Vec<Group> {
        let mut groups = Vec::new();
        for mut wave in self.waves {
            // Tasks that write the same rows lock them in the same order.
            for group in &mut wave.groups {
                if !group.keys.is_empty() && self.keyed {
                    let at: Vec<usize> =
                        group.keys.iter().filter_map(|k| group.columns.iter().position(|c| c == k)).collect();
                    group.rows.sort_by(|a, b| at.iter().map(|i| &a[*i]).cmp(at.iter().map(|i| &b[*i])));
                }
            }
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

    /// A statement that takes a list of texts for each column.
    pub(super) fn sql(&self, mode: InsertMode) -> String {
        let columns: Vec<_> = self.columns.iter().map(|c| &self.table.columns[*c]).collect();
        let lists: Vec<String> = (1..=columns.len()).map(|n| format!("${n}::text[]")).collect();
        let names: Vec<String> = (1..=columns.len()).map(|n| format!("v{n}")).collect();
        let values = format!("unnest({}) AS v({})", lists.join(", "), names.join(", "));
        let cell = |place: usize| {
            let n = self.columns.iter().position(|c| *c == place).map_or(0, |at| at + 1);
            format!("v.v{n}::{}", self.table.columns[place].cast)
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
