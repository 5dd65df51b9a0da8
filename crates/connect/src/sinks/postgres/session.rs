//! A connection to the database, with the statements that are prepared on it.

use super::failure;
use super::settings::Settings;
use crate::ConnectError;
use std::collections::HashMap;
use std::time::Duration;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Error, NoTls, Row, Statement};

/// Statements that are kept. There is one for each set of columns that records have.
const STATEMENTS: usize = 256;

/// Also of a server that takes connections and says nothing.
const OPENED_WITHIN: Duration = Duration::from_secs(30);

/// What is acknowledged must be on disk, and nobody waits without end for what another holds, be its machine dead. Settings
/// that are there already stay.
const LIMITS: &str = "\
SELECT set_config(s.name, s.value, false) FROM (VALUES ('synchronous_commit', 'on'), ('lock_timeout', '30s'), \
 ('idle_in_transaction_session_timeout', '60s')) AS s(name, value) \
WHERE current_setting(s.name) IN ('off', '0')";

pub(super) struct Session {
    client: Client,
    statements: HashMap<String, Statement>,
}

pub(super) type Parameters<'a> = [&'a (dyn ToSql + Sync)];

impl Session {
    /// A connection that is there within [`OPENED_WITHIN`].
    pub(super) async fn open(settings: &Settings) -> Result<Self, ConnectError> {
        tokio::time::timeout(OPENED_WITHIN, Self::connect(settings)).await.unwrap_or_else(|_| {
            let place = &settings.place;
            let text = format!("connection.url: no connection to {place} within {} s", OPENED_WITHIN.as_secs());
            Err(ConnectError::retriable(text))
        })
    }

    async fn connect(settings: &Settings) -> Result<Self, ConnectError> {
        let fail = |e: &Error| failure::of_connecting(e, &settings.place);
        let (client, connection) = settings.connection.connect(NoTls).await.map_err(|e| fail(&e))?;
        let place = settings.place.clone();
        // It ends with its client.
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(place, error = failure::text(&error), "the connection to the database has ended");
            }
        });
        let session = Session { client, statements: HashMap::new() };
        session.client.batch_execute(LIMITS).await.map_err(|e| fail(&e))?;
        Ok(session)
    }

    pub(super) fn is_closed(&self) -> bool {
        self.client.is_closed()
    }

    async fn prepared(&mut self, sql: &str) -> Result<Statement, Error> {
        if let Some(statement) = self.statements.get(sql) {
            return Ok(statement.clone());
        }
        if self.statements.len() >= STATEMENTS {
            self.statements.clear();
        }
        let statement = self.client.prepare(sql).await?;
        self.statements.insert(sql.to_owned(), statement.clone());
        Ok(statement)
    }

    pub(super) async fn query(&mut self, sql: &str, parameters: &Parameters<'_>) -> Result<Vec<Row>, Error> {
        let statement = self.prepared(sql).await?;
        self.client.query(&statement, parameters).await
    }

    pub(super) async fn execute(&mut self, sql: &str, parameters: &Parameters<'_>) -> Result<u64, Error> {
        let statement = self.prepared(sql).await?;
        self.client.execute(&statement, parameters).await
    }

    /// Statements without parameters.
    pub(super) async fn run(&self, sql: &str) -> Result<(), Error> {
        self.client.batch_execute(sql).await
    }

    /// Definitions, of which only one session at a time makes any: `IF NOT EXISTS` alone fails where two are at it.
    pub(super) async fn define(&mut self, sql: &str) -> Result<(), Error> {
        // Any number will do that all tasks have in common.
        let alone = "BEGIN; SELECT pg_advisory_xact_lock(5273864312879465)";
        let defined = match self.run(alone).await {
            Ok(()) => self.run(&format!("{sql}; COMMIT")).await,
            Err(error) => Err(error),
        };
        if defined.is_err() {
            let _ = self.run("ROLLBACK").await;
        }
        // Their plans may be of before.
        self.statements.clear();
        defined
    }
}
