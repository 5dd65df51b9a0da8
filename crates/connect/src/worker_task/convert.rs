//! From records as they were polled to records as sinks see them.

use super::WorkerShareSinkTask;
use crate::batch::{Batch, Converted, Fate};
use crate::held::Held;
use crate::{ConnectError, SinkRecord, Tolerance};
use kafka_share::{ShareRecord, ShareRecords, Str};
use std::sync::atomic::Ordering;

impl WorkerShareSinkTask {
    pub(super) fn convert_all(&mut self, polled: &ShareRecords, batch: &mut Batch<'_>, converted: &mut Converted) {
        converted.records.reserve(polled.len());
        converted.rows.reserve(polled.len());
        let (mut topic, mut held) = (Str::default(), Held::default());
        for (row, record) in polled.iter().enumerate() {
            if topic != record.topic() {
                topic = Str::from(record.topic());
            }
            held.add(&topic, record.partition(), record.offset());
            batch.push(&record);
            match self.convert(&topic, &record) {
                Ok(Some(record)) => {
                    converted.records.push(record);
                    converted.rows.push(row);
                }
                // A transform has dropped it: there is nothing to put.
                Ok(None) => batch.rows[row].fate = Fate::Accept,
                Err(error) => self.bad_record(batch, row, &error.to_string()),
            }
        }
        self.counters.holds(held);
    }

    fn convert(&mut self, topic: &Str, record: &ShareRecord<'_>) -> Result<Option<SinkRecord>, ConnectError> {
        let of = |what: &str, error| ConnectError::fatal(format!("{what}: {error}"));
        let (config, [keys, values, names]) = (&self.config, &mut self.schemas);
        let share = |part: &[u8]| record.share(part);
        let key = config.key_converter.read(record.key(), keys, share).map_err(|e| of("key", e))?;
        let value = config.value_converter.read(record.value(), values, share).map_err(|e| of("value", e))?;
        let mut headers = Vec::new();
        for header in record.headers() {
            let name = String::from_utf8_lossy(header.key).into_owned();
            let value = config.header_converter.read(header.value, names, share);
            let value = value.map_err(|e| of(&format!("header {name}"), e))?;
            headers.push((name, value));
        }
        let record = SinkRecord::of_topic(topic, record, key, value, headers);
        if config.transforms.is_empty() { Ok(Some(record)) } else { config.transforms.apply(record) }
    }

    pub(super) fn bad_record(&self, batch: &mut Batch<'_>, row: usize, error: &str) {
        let place = batch.place(row);
        let meters = &self.counters.meters;
        meters.failures.fetch_add(1, Ordering::Relaxed);
        match self.config.tolerance {
            Tolerance::All => {
                meters.error_logged();
                meters.skipped.fetch_add(1, Ordering::Relaxed);
                tracing::warn!(connector = %self.config.name, task = self.number, record = place, error, "record rejected");
                batch.rows[row].fate = Fate::Reject;
            }
            Tolerance::None => {
                batch.rows[row].fate = Fate::Release;
                let text = format!("{place}: {error} (errors.tolerance=all would reject the record and go on)");
                batch.failure.get_or_insert(ConnectError::Fatal(text));
            }
        }
    }
}
