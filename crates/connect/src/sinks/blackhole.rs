//! `blackhole`: takes every record and keeps none, to measure what everything before it costs.

use crate::{ConnectError, Properties, SinkConnector, SinkRecord, SinkTask, SinkTaskContext};
use async_trait::async_trait;

pub(super) struct BlackholeConnector;

impl SinkConnector for BlackholeConnector {
    fn start(&mut self, _properties: &Properties) -> Result<(), ConnectError> {
        Ok(())
    }

    fn new_task(&self) -> Box<dyn SinkTask> {
        Box::new(BlackholeSink)
    }

    fn settings(&self) -> Option<&'static [&'static str]> {
        Some(&[])
    }
}

/// Takes every record and keeps none. It has no settings.
#[derive(Debug, Default)]
pub struct BlackholeSink;

#[async_trait]
impl SinkTask for BlackholeSink {
    fn version(&self) -> &str {
        env!("CARGO_PKG_VERSION")
    }

    async fn start(&mut self, _context: SinkTaskContext, _properties: &Properties) -> Result<(), ConnectError> {
        Ok(())
    }

    async fn put(&mut self, _records: &[SinkRecord]) -> Result<(), ConnectError> {
        Ok(())
    }
}
