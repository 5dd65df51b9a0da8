//! The database's side: rows inserted in a transaction that is prepared, then committed or rolled back by its name.

use crate::Failure;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, NoTls};

/// An order as it comes from the topic.
#[derive(Debug)]
pub(crate) struct Order {
    pub(crate) partition: i32,
    pub(crate) offset: i64,
    pub(crate) text: String,
}

#[derive(Debug)]
pub(crate) struct Database {
    client: Client,
}

impl Database {
    pub(crate) async fn connect(connection: &str) -> Result<Self, Failure> {
        let (client, driver) = tokio_postgres::connect(connection, NoTls).await?;
        tokio::spawn(async move {
            if let Err(error) = driver.await {
                eprintln!("the connection to the database is lost: {error}");
            }
        });
        let table = "CREATE TABLE IF NOT EXISTS orders (id serial, partition int, offset_ bigint, text text)";
        client.batch_execute(table).await?;
        Ok(Database { client })
    }

    /// First phase: from here on the transaction survives this process, and the database's restart.
    pub(crate) async fn prepare(&self, gid: &str, orders: &[Order]) -> Result<(), Failure> {
        self.client.batch_execute("BEGIN").await?;
        for order in orders {
            let insert = "INSERT INTO orders (partition, offset_, text) VALUES ($1, $2, $3)";
            self.client.execute(insert, &[&order.partition, &order.offset, &order.text]).await?;
        }
        Ok(self.client.batch_execute(&format!("PREPARE TRANSACTION {}", quoted(gid))).await?)
    }

    /// Second phase. A transaction that is not there was committed before.
    pub(crate) async fn commit(&self, gid: &str) -> Result<(), Failure> {
        self.finish("COMMIT", gid).await
    }

    /// A transaction that is not there was rolled back before.
    pub(crate) async fn roll_back(&self, gid: &str) -> Result<(), Failure> {
        self.finish("ROLLBACK", gid).await
    }

    async fn finish(&self, how: &str, gid: &str) -> Result<(), Failure> {
        match self.client.batch_execute(&format!("{how} PREPARED {}", quoted(gid))).await {
            Err(error) if error.code() == Some(&SqlState::UNDEFINED_OBJECT) => Ok(()),
            result => Ok(result?),
        }
    }

    /// Names of prepared transactions that begin with `prefix`.
    pub(crate) async fn prepared(&self, prefix: &str) -> Result<Vec<String>, Failure> {
        let query = "SELECT gid FROM pg_prepared_xacts WHERE starts_with(gid, $1) AND database = current_database()";
        let rows = self.client.query(query, &[&prefix]).await?;
        Ok(rows.iter().map(|row| row.get(0)).collect())
    }
}

/// A text as SQL has it; these statements take no parameters.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}
