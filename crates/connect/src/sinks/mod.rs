//! Sinks that come with the driver.

mod blackhole;
mod console;
mod file;
mod kafka;
#[cfg(feature = "postgres")]
mod postgres;

pub use blackhole::BlackholeSink;
pub use console::ConsoleSink;
pub use file::FileSink;
pub use kafka::KafkaSink;
#[cfg(feature = "postgres")]
pub use postgres::PostgresSink;

use crate::{ConnectError, SinkConnector};

/// Classes that [`connector`] knows, by their short names.
pub const CLASSES: &[&str] = &[
    "blackhole",
    "console",
    "file",
    "kafka",
    #[cfg(feature = "postgres")]
    "postgres",
];

/// A connector by its class: `blackhole`, `console`, `file`, `kafka` or `postgres`, which is in the crate's feature of that
/// name. `FileStreamSink` is `file`, and the JDBC sinks of Confluent and of Aiven are `postgres`.
///
/// # Errors
/// Unknown classes.
pub fn connector(class: &str) -> Result<Box<dyn SinkConnector>, ConnectError> {
    match class {
        "blackhole" => Ok(Box::new(blackhole::BlackholeConnector)),
        "console" => Ok(Box::new(console::ConsoleConnector)),
        "file" | "FileStreamSink" | "org.apache.kafka.connect.file.FileStreamSinkConnector" => {
            Ok(Box::new(file::FileConnector))
        }
        "kafka" => Ok(Box::new(kafka::KafkaConnector)),
        #[cfg(feature = "postgres")]
        "postgres" | "io.confluent.connect.jdbc.JdbcSinkConnector" | "io.aiven.connect.jdbc.JdbcSinkConnector" => {
            Ok(Box::new(postgres::PostgresConnector))
        }
        #[cfg(not(feature = "postgres"))]
        "postgres" => Err(ConnectError::config(
            "connector.class=postgres: this program was built without it (feature postgres of kafka-share-connect)",
        )),
        other => Err(ConnectError::config(format!(
            "connector.class={other}: blackhole, console, file, kafka or postgres is expected"
        ))),
    }
}
