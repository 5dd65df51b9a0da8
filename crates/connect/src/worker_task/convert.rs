//! From records as they were polled to records as sinks see them.

use super::WorkerShareSinkTask;
use crate::batch::Batch;
use crate::converter::Converter;
use crate::rows::{Converted, Fate};
use crate::{ConnectError, ConnectorConfig, Data, SinkRecord, Tolerance, TopicName};
use kafka_share::{ShareRecord, ShareRecords};
use std::sync::atomic::Ordering;

type Headers = Vec<(String, Data)>;

impl WorkerShareSinkTask {
    pub(super) fn convert_all(&mut self, polled: &ShareRecords, batch: &mut Batch<'_>, converted: &mut Converted) {
        converted.records.reserve(polled.len());
        let mut row = 0;
        for part in polled.partitions() {
            let topic = self.topics.of(part.topic());
            if self.as_they_are {
                let of_sink = |record: ShareRecord<'_>| {
                    batch.note_delivery(record.delivery_count());
                    as_it_is(&topic, &record)
                };
                converted.extend(part.iter().map(of_sink));
                continue;
            }
            for record in part.iter() {
                batch.note_delivery(record.delivery_count());
                match self.convert(&record) {
                    Ok((key, value, headers)) => {
                        let of_sink = SinkRecord::of_topic(&topic, &record, key, value, headers);
                        if self.config.transforms.is_empty() {
                            converted.push(row, of_sink);
                        } else {
                            self.transform(row, of_sink, batch, converted);
                        }
                    }
                    Err(error) => self.bad_record(batch, row, &error.to_string()),
                }
                row += 1;
            }
        }
    }

    /// Whether bytes reach the sink as they are, which nothing can go wrong with.
    pub(super) fn takes_as_they_are(config: &ConnectorConfig) -> bool {
        let converters = [config.key_converter, config.value_converter, config.header_converter];
        converters == [Converter::Bytes; 3] && config.transforms.is_empty()
    }

    fn transform(&self, row: usize, record: SinkRecord, batch: &mut Batch<'_>, converted: &mut Converted) {
        match self.config.transforms.apply(record) {
            Ok(Some(record)) => converted.push(row, record),
            // Dropped: there is nothing to put.
            Ok(None) => batch.fates.set(row, Fate::Accept),
            Err(error) => self.bad_record(batch, row, &error.to_string()),
        }
    }

    #[inline]
    fn convert(&mut self, record: &ShareRecord<'_>) -> Result<(Data, Data, Headers), ConnectError> {
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
        Ok((key, value, headers))
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
                batch.fates.set(row, Fate::Reject);
            }
            Tolerance::None => {
                batch.fates.set(row, Fate::Release);
                let text = format!("{place}: {error} (errors.tolerance=all would reject the record and go on)");
                batch.failure.get_or_insert(ConnectError::Fatal(text));
            }
        }
    }
}

/// Made in one piece: to move a record about costs more than to make it.
#[inline]
fn as_it_is(topic: &TopicName, record: &ShareRecord<'_>) -> SinkRecord {
    let data = |part: Option<&[u8]>| part.map_or(Data::Null, |part| Data::Bytes(record.share(part)));
    let headers = record.headers();
    SinkRecord {
        topic: topic.clone(),
        original_topic: topic.clone(),
        topic_id: record.topic_id(),
        partition: record.partition(),
        offset: record.offset(),
        key: data(record.key()),
        value: data(record.value()),
        headers: match headers.len() {
            0 => Vec::new(),
            _ => headers.map(|h| (String::from_utf8_lossy(h.key).into_owned(), data(h.value))).collect(),
        },
        timestamp: record.timestamp(),
        timestamp_type: record.timestamp_type(),
        delivery_count: record.delivery_count(),
    }
}
