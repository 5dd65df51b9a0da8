//! Writing a record batch straight into a buffer.

use bytes::{BufMut, BytesMut};

use super::header::{ATTRIBUTES_AT, CONTROL_BIT, CRC_AT, DELETE_HORIZON_BIT, LOG_APPEND_BIT, TRANSACTIONAL_BIT};
use super::{BATCH_HEADER_LEN, BatchHeader, Header, LOG_OVERHEAD, RecordError, TimestampType};
use crate::compression::{Compression, compress};
use crate::varint::{encode_varint, fill_uvarlong, uvarlong_len, varint_len, varlong_len, zigzag32, zigzag64};

/// Producer id of a producer that is not idempotent.
pub const NO_PRODUCER_ID: i64 = -1;
/// Producer epoch of a producer that is not idempotent.
pub const NO_PRODUCER_EPOCH: i16 = -1;
/// Base sequence of a batch without sequences.
pub const NO_SEQUENCE: i32 = -1;

/// What a batch is like, apart from its records.
///
/// The default is an uncompressed batch of a producer that is not idempotent, with base offset 0
/// as in a produce request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchOptions {
    /// Codec of the records.
    pub compression: Compression,
    /// Level of the codec; `None` takes Kafka's default.
    pub compression_level: Option<i32>,
    /// Who sets the timestamps.
    pub timestamp_type: TimestampType,
    /// Offset of the first record; 0 in a produce request.
    pub base_offset: i64,
    /// Epoch of the appending leader, -1 in a produce request.
    pub partition_leader_epoch: i32,
    /// Id of an idempotent producer, or [`NO_PRODUCER_ID`].
    pub producer_id: i64,
    /// Epoch of an idempotent producer, or [`NO_PRODUCER_EPOCH`].
    pub producer_epoch: i16,
    /// Sequence number of the first record, or [`NO_SEQUENCE`].
    pub base_sequence: i32,
    /// Whether the batch belongs to a transaction.
    pub transactional: bool,
    /// Whether the records are control records.
    pub control: bool,
    /// Milliseconds since 1970 of the delete horizon (KIP-534), which becomes the base timestamp.
    pub delete_horizon: Option<i64>,
}

impl Default for BatchOptions {
    fn default() -> Self {
        Self {
            compression: Compression::None,
            compression_level: None,
            timestamp_type: TimestampType::CreateTime,
            base_offset: 0,
            partition_leader_epoch: -1,
            producer_id: NO_PRODUCER_ID,
            producer_epoch: NO_PRODUCER_EPOCH,
            base_sequence: NO_SEQUENCE,
            transactional: false,
            control: false,
            delete_horizon: None,
        }
    }
}

impl BatchOptions {
    fn attributes(&self) -> i16 {
        let bit = |set: bool, bit: i16| if set { bit } else { 0 };
        i16::from(self.compression.id())
            | bit(self.timestamp_type == TimestampType::LogAppendTime, LOG_APPEND_BIT)
            | bit(self.transactional, TRANSACTIONAL_BIT)
            | bit(self.control, CONTROL_BIT)
            | bit(self.delete_horizon.is_some(), DELETE_HORIZON_BIT)
    }
}

/// Builds one batch behind whatever its buffer already holds.
///
/// Records are written as they come; a codec runs over all of them in [`BatchBuilder::finish`].
/// Taking the buffer by value and giving it back keeps the builder free of lifetimes:
/// `BatchBuilder::with_buffer(options, std::mem::take(&mut frame))`.
#[derive(Debug)]
pub struct BatchBuilder {
    options: BatchOptions,
    buffer: BytesMut,
    start: usize,
    base_timestamp: Option<i64>,
    max_timestamp: i64,
    last_delta: i32,
    count: i32,
}

impl BatchBuilder {
    /// Starts a batch in a buffer of its own.
    pub fn new(options: BatchOptions) -> Self {
        Self::with_buffer(options, BytesMut::new())
    }

    /// Starts a batch behind the bytes of `buffer`.
    pub fn with_buffer(options: BatchOptions, mut buffer: BytesMut) -> Self {
        let start = buffer.len();
        buffer.put_bytes(0, BATCH_HEADER_LEN);
        Self {
            options,
            buffer,
            start,
            base_timestamp: options.delete_horizon,
            max_timestamp: -1,
            last_delta: -1,
            count: 0,
        }
    }

    /// Appends a record with the next offset and gives its offset delta.
    ///
    /// `timestamp` is in milliseconds since 1970.
    ///
    /// # Errors
    /// [`RecordError::FieldTooLarge`], or [`RecordError::BatchTooLarge`] if the batch would exceed
    /// 2^31 - 1 bytes. The batch stays as it was.
    pub fn append<'h, H>(
        &mut self,
        timestamp: i64,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: H,
    ) -> Result<i32, RecordError>
    where
        H: IntoIterator<Item = Header<'h>, IntoIter: Clone>,
    {
        let next = self.last_delta.saturating_add(1);
        self.append_at(next, timestamp, key, value, headers)
    }

    /// Appends a record at an offset delta of its own, which may leave a gap.
    ///
    /// # Errors
    /// As [`BatchBuilder::append`], and [`RecordError::OffsetNotIncreasing`].
    pub fn append_at<'h, H>(
        &mut self,
        offset_delta: i32,
        timestamp: i64,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: H,
    ) -> Result<i32, RecordError>
    where
        H: IntoIterator<Item = Header<'h>, IntoIter: Clone>,
    {
        if offset_delta <= self.last_delta {
            return Err(RecordError::OffsetNotIncreasing { delta: offset_delta, last: self.last_delta });
        }
        let headers = headers.into_iter();
        let timestamp_delta = timestamp.wrapping_sub(self.base_timestamp.unwrap_or(timestamp));
        let body = body_len(offset_delta, timestamp_delta, key, value, headers.clone())?;
        let length = i32::try_from(body).map_err(|_| RecordError::FieldTooLarge("record"))?;
        let record_len = varint_len(length) + body;
        let size = (self.size() + record_len) as u64;
        if size > i32::MAX as u64 {
            return Err(RecordError::BatchTooLarge(size));
        }
        self.buffer.reserve(record_len);
        self.write_record(length, offset_delta, timestamp_delta, key, value, headers);
        self.base_timestamp.get_or_insert(timestamp);
        self.max_timestamp = self.max_timestamp.max(timestamp);
        self.last_delta = offset_delta;
        self.count += 1;
        Ok(offset_delta)
    }

    #[inline]
    fn write_record<'h>(
        &mut self,
        length: i32,
        offset_delta: i32,
        timestamp_delta: i64,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: impl Iterator<Item = Header<'h>> + Clone,
    ) {
        // Length, attributes, timestamp and offset deltas, key length: at most 31 bytes, one write.
        let mut head = [0_u8; 32];
        let mut at = fill_uvarlong(u64::from(zigzag32(length)), &mut head, 0) + 1;
        at = fill_uvarlong(zigzag64(timestamp_delta), &mut head, at);
        at = fill_uvarlong(u64::from(zigzag32(offset_delta)), &mut head, at);
        at = fill_uvarlong(u64::from(zigzag32(wire_len(key))), &mut head, at);
        self.buffer.put_slice(&head[..at]);
        self.buffer.put_slice(key.unwrap_or_default());
        encode_varint(wire_len(value), &mut self.buffer);
        self.buffer.put_slice(value.unwrap_or_default());
        encode_varint(headers.clone().count() as i32, &mut self.buffer);
        for header in headers {
            encode_varint(header.key.len() as i32, &mut self.buffer);
            self.buffer.put_slice(header.key);
            encode_varint(wire_len(header.value), &mut self.buffer);
            self.buffer.put_slice(header.value.unwrap_or_default());
        }
    }

    /// Number of records so far.
    pub fn record_count(&self) -> usize {
        self.count as usize
    }

    /// Whether no record was appended yet.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Size of the batch so far in bytes, header included, before compression.
    pub fn size(&self) -> usize {
        self.buffer.len() - self.start
    }

    /// Upper bound of what a record with these parts adds, in bytes before compression.
    pub fn estimate<'h>(
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: impl IntoIterator<Item = Header<'h>>,
    ) -> usize {
        // Length 5, attributes 1, timestamp delta 10, offset delta 5, two lengths and a count.
        const FIXED: usize = 36;
        let headers: usize =
            headers.into_iter().map(|header| 10 + header.key.len() + header.value.map_or(0, <[u8]>::len)).sum();
        FIXED + key.map_or(0, <[u8]>::len) + value.map_or(0, <[u8]>::len) + headers
    }

    /// Whether a record of `estimate` bytes (see [`BatchBuilder::estimate`]) would take the batch
    /// above `limit` bytes before compression.
    pub fn would_exceed(&self, limit: usize, estimate: usize) -> bool {
        self.size().saturating_add(estimate) > limit
    }

    /// Sets the producer's id, epoch and first sequence number, at any time before the finish.
    pub fn set_producer(&mut self, producer_id: i64, producer_epoch: i16, base_sequence: i32) {
        self.options.producer_id = producer_id;
        self.options.producer_epoch = producer_epoch;
        self.options.base_sequence = base_sequence;
    }

    /// Marks the batch as part of a transaction or not, at any time before the finish.
    pub fn set_transactional(&mut self, transactional: bool) {
        self.options.transactional = transactional;
    }

    /// Sets the last offset delta to a later one than the last record's, as compaction leaves it
    /// when it removes the last records.
    ///
    /// # Errors
    /// [`RecordError::OffsetNotIncreasing`] if it lies before the last record.
    pub fn set_last_offset_delta(&mut self, delta: i32) -> Result<(), RecordError> {
        if delta < self.last_delta {
            return Err(RecordError::OffsetNotIncreasing { delta, last: self.last_delta });
        }
        self.last_delta = delta;
        Ok(())
    }

    /// Compresses the records, writes the header with length, checksum, counts and timestamps, and
    /// gives back the buffer, which now ends with the batch.
    ///
    /// A batch without records is valid, if unusual: compaction leaves such batches.
    ///
    /// # Errors
    /// [`RecordError::Compression`] for a level out of range.
    pub fn finish(mut self) -> Result<BytesMut, RecordError> {
        if self.options.compression != Compression::None {
            let records = self.buffer.split_off(self.start + BATCH_HEADER_LEN);
            let BatchOptions { compression, compression_level, .. } = self.options;
            compress(compression, compression_level, &records, &mut self.buffer)?;
        }
        let size = self.size();
        let batch_length = i32::try_from(size - LOG_OVERHEAD).map_err(|_| RecordError::BatchTooLarge(size as u64))?;
        let header = self.header(batch_length).encode();
        let batch = &mut self.buffer[self.start..];
        batch[..BATCH_HEADER_LEN].copy_from_slice(&header);
        let crc = crc32c::crc32c(&batch[ATTRIBUTES_AT..]);
        batch[CRC_AT..ATTRIBUTES_AT].copy_from_slice(&crc.to_be_bytes());
        Ok(self.buffer)
    }

    fn header(&self, batch_length: i32) -> BatchHeader {
        let options = &self.options;
        BatchHeader {
            base_offset: options.base_offset,
            batch_length,
            partition_leader_epoch: options.partition_leader_epoch,
            crc: 0,
            attributes: options.attributes(),
            last_offset_delta: self.last_delta.max(0),
            base_timestamp: self.base_timestamp.unwrap_or(-1),
            max_timestamp: self.max_timestamp,
            producer_id: options.producer_id,
            producer_epoch: options.producer_epoch,
            base_sequence: options.base_sequence,
            record_count: self.count,
        }
    }
}

fn wire_len(field: Option<&[u8]>) -> i32 {
    field.map_or(-1, |bytes| bytes.len() as i32)
}

fn field_len(field: Option<&[u8]>, what: &'static str) -> Result<usize, RecordError> {
    let bytes = field.map_or(0, <[u8]>::len);
    if bytes > i32::MAX as usize {
        return Err(RecordError::FieldTooLarge(what));
    }
    Ok(varint_len(wire_len(field)) + bytes)
}

#[inline]
fn body_len<'h>(
    offset_delta: i32,
    timestamp_delta: i64,
    key: Option<&[u8]>,
    value: Option<&[u8]>,
    headers: impl Iterator<Item = Header<'h>>,
) -> Result<usize, RecordError> {
    let mut length = 1
        + varlong_len(timestamp_delta)
        + varint_len(offset_delta)
        + field_len(key, "key")?
        + field_len(value, "value")?;
    let mut count = 0_u64;
    for header in headers {
        count += 1;
        length += field_len(Some(header.key), "header key")?;
        length += field_len(header.value, "header value")?;
    }
    Ok(length + uvarlong_len(count << 1))
}
