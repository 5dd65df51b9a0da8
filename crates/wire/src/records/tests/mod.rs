//! Tests of record batches: field reports by number, properties, and an independent codec as oracle.

mod builder;
mod hostile;
mod oracle;
mod properties;
mod reports;

use bytes::{Bytes, BytesMut};

use super::*;
use crate::compression::DEFAULT_DECOMPRESSED_LIMIT;

/// A record that owns its parts.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Owned {
    offset: i64,
    timestamp: i64,
    key: Option<Vec<u8>>,
    value: Option<Vec<u8>>,
    headers: Vec<(Vec<u8>, Option<Vec<u8>>)>,
}

impl Owned {
    fn new(offset: i64, timestamp: i64, key: Option<&[u8]>, value: Option<&[u8]>) -> Self {
        Self { offset, timestamp, key: key.map(<[u8]>::to_vec), value: value.map(<[u8]>::to_vec), headers: Vec::new() }
    }

    fn header(mut self, key: &str, value: Option<&[u8]>) -> Self {
        self.headers.push((key.into(), value.map(<[u8]>::to_vec)));
        self
    }

    fn of(record: &Record<'_>) -> Self {
        Self {
            offset: record.offset,
            timestamp: record.timestamp,
            key: record.key.map(<[u8]>::to_vec),
            value: record.value.map(<[u8]>::to_vec),
            headers: record.headers.map(|header| (header.key.to_vec(), header.value.map(<[u8]>::to_vec))).collect(),
        }
    }
}

fn build(options: BatchOptions, records: &[Owned]) -> BytesMut {
    let mut builder = BatchBuilder::new(options);
    for record in records {
        let delta = i32::try_from(record.offset - options.base_offset).unwrap();
        let headers = record.headers.iter().map(|(key, value)| Header { key, value: value.as_deref() });
        let (key, value) = (record.key.as_deref(), record.value.as_deref());
        builder.append_at(delta, record.timestamp, key, value, headers).unwrap();
    }
    builder.finish().unwrap()
}

fn decode(bytes: &[u8]) -> Result<Vec<Owned>, RecordError> {
    let batch = RecordBatch::parse(&Bytes::copy_from_slice(bytes))?;
    batch.verify_crc()?;
    let decoded = batch.decode(DEFAULT_DECOMPRESSED_LIMIT)?;
    decoded.iter().map(|record| Ok(Owned::of(&record?))).collect()
}

/// Three plain records at offsets 0 to 2.
fn plain() -> Vec<Owned> {
    vec![
        Owned::new(0, 1_700_000_000_000, Some(b"k0"), Some(b"value 0")),
        Owned::new(1, 1_700_000_000_005, None, Some(b"value 1")),
        Owned::new(2, 1_700_000_000_003, Some(b""), None),
    ]
}

/// Changes header bytes and renews the checksum, as a hostile but careful peer would.
fn forge(batch: &mut [u8], at: usize, value: &[u8]) {
    batch[at..at + value.len()].copy_from_slice(value);
    let crc = crc32c::crc32c(&batch[header::ATTRIBUTES_AT..]);
    batch[header::CRC_AT..header::ATTRIBUTES_AT].copy_from_slice(&crc.to_be_bytes());
}

/// A batch around hand-made record bytes.
fn around(payload: &[u8], count: i32) -> Vec<u8> {
    let mut batch = build(BatchOptions::default(), &[]).to_vec();
    batch.extend_from_slice(payload);
    let length = (batch.len() - LOG_OVERHEAD) as i32;
    batch[header::LENGTH_AT..header::LEADER_EPOCH_AT].copy_from_slice(&length.to_be_bytes());
    forge(&mut batch, header::LAST_OFFSET_DELTA_AT, &(count.max(1) - 1).to_be_bytes());
    forge(&mut batch, header::RECORD_COUNT_AT, &count.to_be_bytes());
    batch
}
