//! `postgres`: rows of a table, inserted, upserted, updated or deleted, and exactly-once where that is asked for.

mod failure;
mod names;
mod offsets;
mod plan;
mod rows;
mod session;
mod settings;
mod table;
mod value;

use crate::{
    ConnectError, ErrantRecordReporter, ExactlyOnceSupport, Properties, SinkConnector, SinkRecord, SinkTask,
    SinkTaskContext,
};
use async_trait::async_trait;
use failure::Verdict;
use names::TableName;
use offsets::{Claim, Offsets};
use plan::{Group, Plan};
use rows::{Parts, Row};
use session::Session;
use settings::Settings;
use std::collections::HashSet;
use std::sync::Arc;
use table::{Definition, Table, Tables};
use tokio_postgres::types::ToSql;

pub(super) struct PostgresConnector;

impl SinkConnector for PostgresConnector {
    fn start(&mut self, properties: &Properties) -> Result<(), ConnectError> {
        Settings::new(properties).map(drop)
    }

    fn new_task(&self) -> Box<dyn SinkTask> {
        Box::new(PostgresSink::default())
    }

    fn exactly_once_support(&self) -> ExactlyOnceSupport {
        ExactlyOnceSupport::SourceOffsets
    }

    fn settings(&self) -> Option<&'static [&'static str]> {
        Some(settings::NAMES)
    }
}

/// Writes the fields of records to the columns of the same names, many rows in a statement. Settings have the names of the JDBC
/// sinks of Confluent and Aiven.
///
/// | setting | default | |
/// |---|---|---|
/// | `connection.url` | | `postgres://HOST:PORT/DATABASE`, or `jdbc:postgresql://..`; plaintext only, for now |
/// | `connection.user`, `connection.password` | of the URL | never in logs |
/// | `table.name.format` | `${topic}` | the table, perhaps with a schema and a dot before it; `${topic}` is the record's topic, whose dots are part of the name |
/// | `insert.mode` | `insert` | `insert`; `upsert`: insert or, where the key is there, update (`ON CONFLICT`); `update` |
/// | `pk.mode` | `none` | where the primary key comes from: `record_key`, `record_value`, or `kafka` for topic, partition and offset |
/// | `pk.fields` | all of the key | names of the key's columns; one for a key that is a single value; `__connect_topic`, `__connect_partition` and `__connect_offset` by default for `kafka` |
/// | `delete.enabled` | false | records whose value is null delete the row of their key; needs `pk.mode=record_key` |
/// | `fields.whitelist` | all | fields of the value that are written |
/// | `auto.create` | false | tables that are missing are created from the schemas of records |
/// | `auto.evolve` | false | columns that are missing are added for optional fields with schemas |
/// | `batch.size` | 3000 | rows in a statement at most, 1 to 100,000 |
/// | `offsets.table.name` | `_kafka_share_offsets` | exactly-once: the table of what is stored; a second one has `_partitions` behind its name |
/// | `offsets.cleanup.interval.ms` | 10000 | exactly-once: how often rows are forgotten that the group is done with |
///
/// # Values
/// Records are JSON objects (`value.converter=json`), with schemas or without, and a field must fit the type that its column
/// has: numbers in numeric columns, integers within bounds, texts in texts. `numeric` columns take Decimals, and texts of
/// digits where there is no schema; timestamps take texts and, as everywhere in Kafka, milliseconds since 1970, in UTC; `json`
/// and `jsonb` take anything; arrays take arrays; `bytea` takes bytes of a schema, or a key of bytes; all other types take the
/// texts that the database reads. What does not fit is a bad record (`errors.tolerance`), and so are constraint violations,
/// fields without a column, and null keys. Where a record has no schema and lacks a field, its column is left out of the
/// statement: the default of an insert, unchanged in an update.
///
/// # What may happen twice, and order
/// At-least-once, records whose lock ran out or whose acknowledgement was lost are written again: with `insert.mode=upsert`
/// that makes no difference, with `insert` it makes a second row, or a violation of the primary key.
///
/// Share groups do not keep the order of records, not even of one key: while several are on their way, an older one may be
/// written last. Within a put the last one of a key counts.
///
/// # Exactly-once
/// With `share.delivery.semantics=exactly-once`, group, topic id, partition and offset of each record are stored in the transaction
/// that stores its row. A record that comes again is found there, is not written again, and is accepted. Two tasks that hold
/// the same record, because the lock of one ran out, wait for each other. Rows of offsets are forgotten below the
/// share-partition start offset, which the group is done with; the bound is kept, and a record before it that a task may still
/// hold is not written either.
///
/// A topic that is deleted and created again has another id: its records are new. Where an administrator resets the group,
/// records that are known to be stored are accepted without being written again, and the first one before the bound fails the
/// task, because nobody knows any more which of those before it are stored. With the connector stopped, there are three ways on:
/// - `UPDATE _kafka_share_offsets_partitions SET start_offset = 0 WHERE id = N` (the error tells `N`): everything before the bound
///   is written that comes, perhaps a second time; what is known to be stored, from the bound on, is not;
/// - reset the partition to the bound itself, where nothing before it is missing in the table. Not to a later offset: records from
///   the bound on need not be stored yet, and would never come again;
/// - where the table has been emptied, and all is to be written anew: delete the group's rows of `_kafka_share_offsets_partitions`.
///
/// # Failures
/// A lost connection, a database that restarts, deadlocks: the put is tried again on a new connection. A missing table, right
/// or unique constraint fails the task and says what to mend. A database that cannot be reached keeps a task from starting.
#[derive(Default)]
pub struct PostgresSink {
    settings: Option<Settings>,
    reporter: ErrantRecordReporter,
    session: Option<Session>,
    offsets: Option<Offsets>,
    tables: Tables,
}

impl std::fmt::Debug for PostgresSink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let place = self.settings.as_ref().map(|s| s.place.as_str());
        f.debug_struct("PostgresSink").field("database", &place).finish_non_exhaustive()
    }
}

#[async_trait]
impl SinkTask for PostgresSink {
    fn version(&self) -> &str {
        env!("CARGO_PKG_VERSION")
    }

    async fn start(&mut self, context: SinkTaskContext, properties: &Properties) -> Result<(), ConnectError> {
        let settings = Settings::new(properties)?;
        let mut session = Session::open(&settings).await?;
        // Where records are routed, only they tell the tables.
        if !settings.create && !settings.routed {
            for topic in &settings.topics {
                let name = table_name(&settings, topic)?;
                let table = Table::look_up(&mut session, &name).await?.ok_or_else(|| missing(&name))?;
                self.tables.insert(name, Arc::new(table));
            }
        }
        if let Some(group) = context.exactly_once() {
            self.offsets = Some(Offsets::open(&mut session, group.clone(), &settings.offsets, settings.cleanup).await?);
        }
        self.reporter = context.errant_record_reporter().clone();
        (self.session, self.settings) = (Some(session), Some(settings));
        Ok(())
    }

    /// # Cancel safety
    /// The connection goes with it, and the database rolls back what was not committed.
    async fn put(&mut self, records: &[SinkRecord]) -> Result<(), ConnectError> {
        let Some(settings) = self.settings.clone() else {
            return Err(ConnectError::fatal("the postgres sink was not started"));
        };
        // Taken, so that a put that is dropped in the middle of a transaction leaves none behind.
        let mut session = match self.session.take() {
            Some(session) if !session.is_closed() => session,
            _ => Session::open(&settings).await?,
        };
        let rows = self.rows(&mut session, &settings, records).await?;
        let result = self.write(&mut session, &settings, records, rows).await;
        // What may work later may need another connection for that.
        if !session.is_closed() && !matches!(result, Err(ConnectError::Retriable { .. })) {
            self.session = Some(session);
        }
        result
    }

    /// What was put is stored; this forgets, now and then, what the group is done with.
    async fn flush(&mut self) -> Result<(), ConnectError> {
        if let (Some(session), Some(offsets)) = (&mut self.session, &mut self.offsets) {
            offsets.forget(session).await;
        }
        Ok(())
    }

    async fn stop(&mut self) {
        self.session = None;
    }
}

fn table_name(settings: &Settings, topic: &str) -> Result<TableName, ConnectError> {
    let wrong = |e| ConnectError::config(format!("table.name.format: the table of topic {topic}: {e}"));
    settings.table.of(topic).map_err(wrong)
}

fn missing(name: &TableName) -> ConnectError {
    ConnectError::config(format!(
        "table {} does not exist (or is not visible to connection.user): create it, set table.name.format, or auto.create=true \
         for records with schemas",
        name.shown
    ))
}

type Rows = Vec<(usize, Arc<Table>, Row)>;

impl PostgresSink {
    /// Rows of the records that have one; the others are reported.
    async fn rows(
        &mut self,
        session: &mut Session,
        settings: &Settings,
        records: &[SinkRecord],
    ) -> Result<Rows, ConnectError> {
        let mut rows = Vec::with_capacity(records.len());
        for (at, record) in records.iter().enumerate() {
            let parts = Parts::of(record);
            match self.row(session, settings, record, &parts).await? {
                Ok((table, row)) => rows.push((at, table, row)),
                Err(error) => self.reporter.report(record, error),
            }
        }
        Ok(rows)
    }

    /// The inner error is about the record.
    async fn row(
        &mut self,
        session: &mut Session,
        settings: &Settings,
        record: &SinkRecord,
        parts: &Parts<'_>,
    ) -> Result<Result<(Arc<Table>, Row), String>, ConnectError> {
        let fields = match parts.fields(settings) {
            Ok(fields) => fields,
            Err(error) => return Ok(Err(error)),
        };
        let name = table_name(settings, &record.topic)?;
        let definition = Definition { name: &name, fields: &fields.all, keys: &fields.keys };
        let mut table = match self.tables.get(&name) {
            Some(table) => Arc::clone(table),
            None => match Table::look_up(session, &name).await? {
                Some(table) => self.keep(table),
                None if settings.create && !fields.delete => {
                    if let Err(error) = definition.create(session).await? {
                        return Ok(Err(error));
                    }
                    self.keep(Table::look_up(session, &name).await?.ok_or_else(|| missing(&name))?)
                }
                None if settings.create => {
                    return Ok(Err(format!(
                        "table {} does not exist, and a record that deletes does not create it",
                        name.shown
                    )));
                }
                None => return Err(missing(&name)),
            },
        };
        if settings.evolve && fields.all.iter().any(|f| table.place(&f.name).is_none()) {
            if let Err(error) = definition.evolve(session, &table).await? {
                return Ok(Err(error));
            }
            table = self.keep(Table::look_up(session, &name).await?.ok_or_else(|| missing(&name))?);
        }
        Ok(rows::row(&fields, &table).map(|row| (table, row)))
    }

    fn keep(&mut self, table: Table) -> Arc<Table> {
        let table = Arc::new(table);
        self.tables.insert(table.name.clone(), Arc::clone(&table));
        table
    }

    /// Writes rows in one transaction; exactly-once, without those that are stored.
    async fn write(
        &mut self,
        session: &mut Session,
        settings: &Settings,
        records: &[SinkRecord],
        mut rows: Rows,
    ) -> Result<(), ConnectError> {
        loop {
            if rows.is_empty() {
                return Ok(());
            }
            let written = self.transaction(session, settings, records, &rows).await;
            let forgotten = match written {
                Ok(forgotten) if forgotten.is_empty() => return Ok(()),
                Ok(forgotten) => forgotten,
                Err(error) => {
                    let _ = session.run("ROLLBACK").await;
                    return Err(error);
                }
            };
            if let Err(error) = session.run("ROLLBACK").await {
                return Err(failure::of(&error, "rolling back"));
            }
            let old: Vec<&SinkRecord> = forgotten.iter().map(|i| &records[rows[*i].0]).collect();
            if let Some(offsets) = &self.offsets {
                offsets.must_be_done(&old).await?;
            }
            tracing::info!(records = old.len(), "records that the group was done with long ago are not written");
            let old: HashSet<usize> = forgotten.iter().map(|i| rows[*i].0).collect();
            rows.retain(|(at, ..)| !old.contains(at));
        }
    }

    /// Answers which of the rows cannot be written because what became of them is forgotten; then it is to be rolled back.
    async fn transaction(
        &mut self,
        session: &mut Session,
        settings: &Settings,
        records: &[SinkRecord],
        rows: &Rows,
    ) -> Result<Vec<usize>, ConnectError> {
        let of: Vec<&SinkRecord> = rows.iter().map(|(at, ..)| &records[*at]).collect();
        if let Some(offsets) = &mut self.offsets {
            offsets.know(session, &of).await?;
        }
        let begun = session.run("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE").await;
        begun.map_err(|e| failure::of(&e, "beginning a transaction"))?;
        let mut plan = Plan::new(settings.insert, settings.delete);
        let fresh = match &mut self.offsets {
            None => vec![true; rows.len()],
            Some(offsets) => match offsets.claim(session, &of).await? {
                Claim::Fresh(fresh) => fresh,
                Claim::Forgotten(forgotten) => return Ok(forgotten),
            },
        };
        let stored = fresh.iter().filter(|f| !**f).count();
        if stored > 0 {
            tracing::debug!(records = stored, "records are stored already");
        }
        for ((_, table, row), _) in rows.iter().zip(fresh).filter(|(_, fresh)| *fresh) {
            plan.add(table, row.clone());
        }
        for group in plan.groups() {
            self.write_group(session, settings, &group).await?;
        }
        // What a commit says of deferred constraints is about the records, too.
        session.run("COMMIT").await.map_err(|e| failure::of(&e, "committing"))?;
        Ok(Vec::new())
    }

    async fn write_group(
        &mut self,
        session: &mut Session,
        settings: &Settings,
        group: &Group,
    ) -> Result<(), ConnectError> {
        let sql = group.sql(settings.insert);
        for lists in group.batches(settings.batch) {
            let parameters: Vec<&(dyn ToSql + Sync)> = lists.iter().map(|l| l as &(dyn ToSql + Sync)).collect();
            let Err(error) = session.execute(&sql, &parameters).await else { continue };
            let mut doing = group.doing();
            match failure::verdict(&error) {
                Verdict::LookAgain => _ = self.tables.remove(&group.table.name),
                Verdict::Record => {
                    if let Some(column) = culprit(session, group).await {
                        doing = format!("{doing}, column {column}");
                    }
                }
                _ => {}
            }
            return Err(failure::of(&error, &doing));
        }
        Ok(())
    }
}

/// The column of a single row whose text the database cannot read, which it does not say itself.
async fn culprit(session: &mut Session, group: &Group) -> Option<String> {
    let values = group.single()?;
    session.run("ROLLBACK").await.ok()?;
    for (place, value) in values {
        let column = &group.table.columns[place];
        let cast = session.execute(&format!("SELECT $1::text::{}", column.cast), &[&value]).await;
        if cast.is_err() {
            return Some(format!("{:?} ({})", column.name, column.shown));
        }
    }
    None
}
