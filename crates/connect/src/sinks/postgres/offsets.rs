//! Exactly-once: which records are stored, kept in the transaction that stores them.
//!
//! Two tables. The one of `offsets.table.name` has a row for each record that was stored: the number of its partition, and its
//! offset. The other, `.._partitions`, gives these numbers to group, topic id and partition, and says up to which offset rows
//! have been forgotten.
//!
//! A put first inserts the rows of its records, on conflict doing nothing: a record whose row is there has been stored, and is
//! passed over. Where another transaction has inserted it and has not ended, the insert waits for that one, so that of two
//! tasks that hold the same record (the lock of one ran out while its put was under way) the second knows what became of the
//! first.
//!
//! What may be forgotten is what lies before the share-partition start offset: the group is done with that. The bound is
//! written and committed before rows are deleted, and a put reads it in a statement after its insert (READ COMMITTED: each
//! statement sees what was committed before it began). So a task that has held a record since before it was forgotten finds
//! either its row or a bound above it.

use super::failure;
use super::names::TableFormat;
use super::session::Session;
use crate::{ConnectError, SinkRecord, SourceGroup};
use kafka_share::Uuid;
use kafka_share::admin::SharePartitionOffset;
use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};
use tokio_postgres::Error;

/// Behind the name of the table, for that of the partitions.
pub(super) const PARTITIONS: &str = "_partitions";
/// How long the cluster may take to say where the group stands, when rows are forgotten.
const ASK: Duration = Duration::from_secs(5);

/// A partition: topic id and number.
type Partition = (Uuid, i32);
/// A record: the number of its partition in the database, and its offset.
type Place = (i64, i64);

pub(super) struct Offsets {
    group: SourceGroup,
    table: String,
    partitions: String,
    /// For messages.
    shown: String,
    numbers: HashMap<Partition, i64>,
    /// Not later than the database has it.
    bounds: HashMap<i64, i64>,
    interval: Duration,
    next: Instant,
}

/// What a claim found.
pub(super) enum Claim {
    /// Which of the records are to be written; the others have been.
    Fresh(Vec<bool>),
    /// These are before the bound, and what became of them is forgotten.
    Forgotten(Vec<usize>),
}

impl Offsets {
    pub(super) async fn open(
        session: &mut Session,
        group: SourceGroup,
        table: &TableFormat,
        interval: Duration,
    ) -> Result<Self, ConnectError> {
        let wrong = |e: String| ConnectError::config(format!("offsets.table.name: {e}"));
        let name = table.of("").map_err(wrong)?;
        let partitions = table.with_suffix(PARTITIONS).of("").map_err(wrong)?;
        let sql = format!(
            "CREATE TABLE IF NOT EXISTS {} (id bigint GENERATED ALWAYS AS IDENTITY UNIQUE, group_id text NOT NULL, \
             topic text NOT NULL, topic_id text NOT NULL, partition int NOT NULL, start_offset bigint NOT NULL DEFAULT 0, \
             PRIMARY KEY (group_id, topic_id, partition)); \
             CREATE TABLE IF NOT EXISTS {} (partition_id bigint, \"offset\" bigint, PRIMARY KEY (partition_id, \"offset\"))",
            partitions.sql, name.sql
        );
        let there = "SELECT to_regclass($1) IS NOT NULL AND to_regclass($2) IS NOT NULL";
        let doing = format!("offsets.table.name: creating tables {} and {}", name.shown, partitions.shown);
        let rows = session.query(there, &[&name.sql, &partitions.sql]).await.map_err(|e| failure::of(&e, &doing))?;
        // Who may only write to them need not be able to create them.
        if !rows[0].get::<_, bool>(0) {
            session.define(&sql).await.map_err(|e| match failure::of(&e, &doing) {
                ConnectError::Config(text) => ConnectError::config(format!("{text}; or have them created: {sql}")),
                error => error,
            })?;
        }
        Ok(Offsets {
            group,
            table: name.sql,
            partitions: partitions.sql,
            shown: partitions.shown,
            numbers: HashMap::new(),
            bounds: HashMap::new(),
            interval,
            next: Instant::now() + interval,
        })
    }

    /// Numbers for the partitions of records, before the transaction.
    pub(super) async fn know(&mut self, session: &mut Session, records: &[&SinkRecord]) -> Result<(), ConnectError> {
        for record in records {
            let partition = (record.topic_id, record.partition);
            if self.numbers.contains_key(&partition) {
                continue;
            }
            let number = self.number(session, record).await;
            let number = number.map_err(|e| failure::of(&e, &format!("writing to table {}", self.shown)))?;
            self.numbers.insert(partition, number);
        }
        Ok(())
    }

    async fn number(&self, session: &mut Session, record: &SinkRecord) -> Result<i64, Error> {
        let (group, id) = (self.group.group_id(), record.topic_id.to_string());
        let topic = record.original_topic.as_str();
        let insert = format!(
            "INSERT INTO {} (group_id, topic, topic_id, partition) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING",
            self.partitions
        );
        session.execute(&insert, &[&group, &topic, &id, &record.partition]).await?;
        let select =
            format!("SELECT id FROM {} WHERE group_id = $1 AND topic_id = $2 AND partition = $3", self.partitions);
        // Committed, and nobody but an administrator deletes it: then the next try inserts it.
        let rows = session.query(&select, &[&group, &id, &record.partition]).await?;
        Ok(rows.first().map_or(-1, |row| row.get(0)))
    }

    fn place(&self, record: &SinkRecord) -> Place {
        let number = self.numbers.get(&(record.topic_id, record.partition)).copied().unwrap_or(-1);
        (number, record.offset)
    }

    /// Takes records, inside the transaction that is to store them.
    pub(super) async fn claim(
        &mut self,
        session: &mut Session,
        records: &[&SinkRecord],
    ) -> Result<Claim, ConnectError> {
        let places: Vec<Place> = records.iter().map(|r| self.place(r)).collect();
        // Always in the same order: of two tasks with the same records one waits for the other, and not each for each.
        let mut sorted = places.clone();
        sorted.sort_unstable();
        sorted.dedup();
        let (numbers, offsets): (Vec<i64>, Vec<i64>) = sorted.into_iter().unzip();
        let doing = "storing which records are stored";
        let insert = format!(
            "INSERT INTO {} (partition_id, \"offset\") SELECT p, o FROM unnest($1::bigint[], $2::bigint[]) AS v(p, o) \
             ON CONFLICT DO NOTHING RETURNING partition_id, \"offset\"",
            self.table
        );
        let rows = session.query(&insert, &[&numbers, &offsets]).await.map_err(|e| failure::of(&e, doing))?;
        let fresh: HashSet<Place> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
        let bounds = self.read_bounds(session, &numbers).await?;
        let is_forgotten = |place: &Place| fresh.contains(place) && bounds.get(&place.0).is_some_and(|b| place.1 < *b);
        let forgotten: Vec<usize> = (0..places.len()).filter(|i| is_forgotten(&places[*i])).collect();
        if !forgotten.is_empty() {
            return Ok(Claim::Forgotten(forgotten));
        }
        Ok(Claim::Fresh(places.iter().map(|place| fresh.contains(place)).collect()))
    }

    /// In a statement of its own, after the insert.
    async fn read_bounds(&mut self, session: &mut Session, numbers: &[i64]) -> Result<HashMap<i64, i64>, ConnectError> {
        let select = format!("SELECT id, start_offset FROM {} WHERE id = ANY($1)", self.partitions);
        let rows = session.query(&select, &[&numbers]).await;
        let rows = rows.map_err(|e| failure::of(&e, &format!("reading table {}", self.shown)))?;
        let bounds: HashMap<i64, i64> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
        if numbers.iter().any(|n| !bounds.contains_key(n)) {
            // An administrator has had the group forgotten, so that its records are written again.
            self.numbers.retain(|_, number| bounds.contains_key(number));
            return Err(ConnectError::retriable(format!(
                "rows of table {} are gone; the records are put again",
                self.shown
            )));
        }
        self.bounds.extend(bounds.iter().map(|(number, bound)| (*number, *bound)));
        Ok(bounds)
    }

    /// Records before the bound: a task whose lock ran out long ago may hold them still, and the group is done with them. If it
    /// is not, it was reset, and nobody knows which of them are stored.
    pub(super) async fn must_be_done(&self, records: &[&SinkRecord]) -> Result<(), ConnectError> {
        let starts = self.group.start_offsets().await?;
        for record in records {
            let at = |s: &&SharePartitionOffset| s.topic_id == record.topic_id && s.partition == record.partition;
            let start = starts.iter().find(at).and_then(|s| s.start_offset);
            // Where the group says nothing of the partition, it was reset too.
            if start.is_none_or(|start| start <= record.offset) {
                return Err(ConnectError::StaysFailed(self.was_reset(record)));
            }
        }
        Ok(())
    }

    /// What to do about a group that was reset to before the bound. Neither way loses a record by itself: the bound is where
    /// rows are kept from, so that only a reset to just there has nothing to be guessed.
    fn was_reset(&self, record: &SinkRecord) -> String {
        let (number, _) = self.place(record);
        let bound = self.bounds.get(&number).copied().unwrap_or_default();
        format!(
            "{place}: the offsets of group {group} were reset to before offset {bound}, up to which this partition was done \
             with and forgotten in table {table}: which of those records are stored is not known any more. Either write them, \
             whether they are stored or not (a second row, unless insert.mode=upsert): stop the connector, and run UPDATE {sql} \
             SET start_offset = 0 WHERE id = {number}; what is stored from offset {bound} on is passed over all the same. Or, \
             if nothing before it is missing in the target, reset the partition to offset {bound}, and to no later one: not all \
             of what follows need be stored, and what is, is known",
            place = record.place(),
            group = self.group.group_id(),
            table = self.shown,
            sql = self.partitions,
        )
    }

    /// Forgets, now and then, what the group is done with. What does not work is tried again later.
    pub(super) async fn forget(&mut self, session: &mut Session) {
        if self.next > Instant::now() {
            return;
        }
        let starts = match tokio::time::timeout(ASK, self.group.start_offsets()).await {
            Ok(Ok(starts)) => starts,
            Ok(Err(error)) => return self.later(&error.to_string()),
            Err(_) => return self.later("the cluster does not say in time where the group stands"),
        };
        for start in starts {
            let Some(offset) = start.start_offset else { continue };
            let Some(number) = self.numbers.get(&(start.topic_id, start.partition)).copied() else { continue };
            if self.bounds.get(&number).is_some_and(|bound| *bound >= offset) {
                continue;
            }
            if let Err(error) = self.forget_before(session, number, offset).await {
                return self.later(&failure::text(&error));
            }
            self.bounds.insert(number, offset);
        }
        self.next = Instant::now() + self.interval;
    }

    fn later(&mut self, why: &str) {
        tracing::warn!(why, "rows of offsets were not forgotten");
        self.next = Instant::now() + self.interval.max(ASK);
    }

    /// Two transactions: who finds no row must find the bound.
    async fn forget_before(&self, session: &mut Session, number: i64, offset: i64) -> Result<(), Error> {
        let raise = format!("UPDATE {} SET start_offset = $2 WHERE id = $1 AND start_offset < $2", self.partitions);
        // Another task has done it already, or is about to delete the rows.
        if session.execute(&raise, &[&number, &offset]).await? == 0 {
            return Ok(());
        }
        let delete = format!("DELETE FROM {} WHERE partition_id = $1 AND \"offset\" < $2", self.table);
        session.execute(&delete, &[&number, &offset]).await?;
        Ok(())
    }
}
