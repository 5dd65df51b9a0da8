//! Sinks that come with the driver.

mod file;
mod kafka;

pub use file::FileSink;
pub use kafka::KafkaSink;

use crate::{ConnectError, SinkConnector};

/// Classes that [`connector`] knows, by their short names.
pub const CLASSES: &[&str] = &["file", "kafka"];

/// A connector by its class: `file` or `kafka`.
///
/// # Errors
/// Unknown classes.
pub fn connector(class: &str) -> Result<Box<dyn SinkConnector>, ConnectError> {
    match class {
        "file" | "FileStreamSink" | "org.apache.kafka.connect.file.FileStreamSinkConnector" => {
            Ok(Box::new(file::FileConnector))
        }
        "kafka" => Ok(Box::new(kafka::KafkaConnector)),
        other => Err(ConnectError::config(format!("connector.class={other}: file or kafka is expected"))),
    }
}
