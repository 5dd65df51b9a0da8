//! The 61 bytes in front of a batch's records.

use super::RecordError;
use crate::compression::Compression;

/// Length of the batch header, base offset to record count.
pub const BATCH_HEADER_LEN: usize = 61;
/// Bytes of a batch that its length field does not count: base offset and the field itself.
pub const LOG_OVERHEAD: usize = 12;
/// The only magic byte that is read and written.
pub const MAGIC_V2: i8 = 2;
/// Least value of the length field.
pub(crate) const MIN_BATCH_LENGTH: i32 = (BATCH_HEADER_LEN - LOG_OVERHEAD) as i32;

pub(crate) const BASE_OFFSET_AT: usize = 0;
pub(crate) const LENGTH_AT: usize = 8;
pub(crate) const LEADER_EPOCH_AT: usize = 12;
pub(crate) const MAGIC_AT: usize = 16;
pub(crate) const CRC_AT: usize = 17;
/// The checksum covers everything from here on.
pub(crate) const ATTRIBUTES_AT: usize = 21;
pub(crate) const LAST_OFFSET_DELTA_AT: usize = 23;
pub(crate) const BASE_TIMESTAMP_AT: usize = 27;
pub(crate) const MAX_TIMESTAMP_AT: usize = 35;
pub(crate) const PRODUCER_ID_AT: usize = 43;
pub(crate) const PRODUCER_EPOCH_AT: usize = 51;
pub(crate) const BASE_SEQUENCE_AT: usize = 53;
pub(crate) const RECORD_COUNT_AT: usize = 57;

pub(crate) const COMPRESSION_MASK: i16 = 0x07;
pub(crate) const LOG_APPEND_BIT: i16 = 0x08;
pub(crate) const TRANSACTIONAL_BIT: i16 = 0x10;
pub(crate) const CONTROL_BIT: i16 = 0x20;
pub(crate) const DELETE_HORIZON_BIT: i16 = 0x40;

/// Who set the timestamps of a batch's records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum TimestampType {
    /// The producer, per record.
    #[default]
    CreateTime,
    /// The broker on append: all records carry the batch's max timestamp.
    LogAppendTime,
}

/// A batch header, decoded. Epochs, counts and deltas are as on the wire and not yet judged;
/// see [`BatchHeader::check`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchHeader {
    /// Offset of the first record, before compaction.
    pub base_offset: i64,
    /// The length field: bytes of the batch after it.
    pub batch_length: i32,
    /// Epoch of the leader that appended the batch, -1 if unknown.
    pub partition_leader_epoch: i32,
    /// CRC-32C of everything from the attributes on.
    pub crc: u32,
    /// Bits; use the accessors.
    pub attributes: i16,
    /// Offset of the last record, before compaction, less the base offset.
    pub last_offset_delta: i32,
    /// Milliseconds since 1970; record timestamps are deltas to it.
    pub base_timestamp: i64,
    /// Milliseconds since 1970: greatest of the records', or the log-append time.
    pub max_timestamp: i64,
    /// -1 if the producer is not idempotent.
    pub producer_id: i64,
    /// -1 if the producer is not idempotent.
    pub producer_epoch: i16,
    /// Sequence number of the first record, -1 if the producer is not idempotent.
    pub base_sequence: i32,
    /// Number of records.
    pub record_count: i32,
}

impl BatchHeader {
    pub(crate) fn decode(bytes: &[u8; BATCH_HEADER_LEN]) -> Self {
        Self {
            base_offset: i64::from_be_bytes(field(bytes, BASE_OFFSET_AT)),
            batch_length: i32::from_be_bytes(field(bytes, LENGTH_AT)),
            partition_leader_epoch: i32::from_be_bytes(field(bytes, LEADER_EPOCH_AT)),
            crc: u32::from_be_bytes(field(bytes, CRC_AT)),
            attributes: i16::from_be_bytes(field(bytes, ATTRIBUTES_AT)),
            last_offset_delta: i32::from_be_bytes(field(bytes, LAST_OFFSET_DELTA_AT)),
            base_timestamp: i64::from_be_bytes(field(bytes, BASE_TIMESTAMP_AT)),
            max_timestamp: i64::from_be_bytes(field(bytes, MAX_TIMESTAMP_AT)),
            producer_id: i64::from_be_bytes(field(bytes, PRODUCER_ID_AT)),
            producer_epoch: i16::from_be_bytes(field(bytes, PRODUCER_EPOCH_AT)),
            base_sequence: i32::from_be_bytes(field(bytes, BASE_SEQUENCE_AT)),
            record_count: i32::from_be_bytes(field(bytes, RECORD_COUNT_AT)),
        }
    }

    pub(crate) fn encode(&self) -> [u8; BATCH_HEADER_LEN] {
        let mut bytes = [0; BATCH_HEADER_LEN];
        put(&mut bytes, BASE_OFFSET_AT, &self.base_offset.to_be_bytes());
        put(&mut bytes, LENGTH_AT, &self.batch_length.to_be_bytes());
        put(&mut bytes, LEADER_EPOCH_AT, &self.partition_leader_epoch.to_be_bytes());
        put(&mut bytes, MAGIC_AT, &MAGIC_V2.to_be_bytes());
        put(&mut bytes, CRC_AT, &self.crc.to_be_bytes());
        put(&mut bytes, ATTRIBUTES_AT, &self.attributes.to_be_bytes());
        put(&mut bytes, LAST_OFFSET_DELTA_AT, &self.last_offset_delta.to_be_bytes());
        put(&mut bytes, BASE_TIMESTAMP_AT, &self.base_timestamp.to_be_bytes());
        put(&mut bytes, MAX_TIMESTAMP_AT, &self.max_timestamp.to_be_bytes());
        put(&mut bytes, PRODUCER_ID_AT, &self.producer_id.to_be_bytes());
        put(&mut bytes, PRODUCER_EPOCH_AT, &self.producer_epoch.to_be_bytes());
        put(&mut bytes, BASE_SEQUENCE_AT, &self.base_sequence.to_be_bytes());
        put(&mut bytes, RECORD_COUNT_AT, &self.record_count.to_be_bytes());
        bytes
    }

    /// Checks what the framing does not: offsets, record count, codec.
    ///
    /// # Errors
    /// [`RecordError::InvalidOffsets`], [`RecordError::NegativeRecordCount`] or
    /// [`RecordError::UnknownCompression`].
    pub fn check(&self) -> Result<(), RecordError> {
        let last = self.base_offset.checked_add(i64::from(self.last_offset_delta));
        if self.base_offset < 0 || self.last_offset_delta < 0 || last.is_none() {
            return Err(RecordError::InvalidOffsets {
                base_offset: self.base_offset,
                last_offset_delta: self.last_offset_delta,
            });
        }
        if self.record_count < 0 {
            return Err(RecordError::NegativeRecordCount(self.record_count));
        }
        self.compression().map(|_| ())
    }

    /// Size of the whole batch in bytes, header included.
    pub fn size(&self) -> usize {
        LOG_OVERHEAD + usize::try_from(self.batch_length).unwrap_or(0)
    }

    /// Offset of the last record, before compaction. Saturates if the header is damaged.
    pub fn last_offset(&self) -> i64 {
        self.base_offset.saturating_add(i64::from(self.last_offset_delta))
    }

    /// Offset after the batch.
    pub fn next_offset(&self) -> i64 {
        self.last_offset().saturating_add(1)
    }

    /// Sequence number of the last record, -1 without sequences; wraps from 2^31 - 1 to 0.
    pub fn last_sequence(&self) -> i32 {
        if self.base_sequence < 0 {
            return -1;
        }
        let last = i64::from(self.base_sequence) + i64::from(self.last_offset_delta.max(0));
        (last & i64::from(i32::MAX)) as i32
    }

    /// The codec of the records.
    ///
    /// # Errors
    /// [`RecordError::UnknownCompression`] for ids 5 to 7.
    pub fn compression(&self) -> Result<Compression, RecordError> {
        let id = (self.attributes & COMPRESSION_MASK) as u8;
        Compression::from_id(id).ok_or(RecordError::UnknownCompression(id))
    }

    /// Who set the timestamps.
    pub fn timestamp_type(&self) -> TimestampType {
        if self.attributes & LOG_APPEND_BIT == 0 { TimestampType::CreateTime } else { TimestampType::LogAppendTime }
    }

    /// Whether the batch belongs to a transaction.
    pub fn is_transactional(&self) -> bool {
        self.attributes & TRANSACTIONAL_BIT != 0
    }

    /// Whether the batch holds control records, which are never given to applications.
    pub fn is_control(&self) -> bool {
        self.attributes & CONTROL_BIT != 0
    }

    /// Whether the base timestamp is the delete horizon of tombstones and markers (KIP-534).
    pub fn has_delete_horizon(&self) -> bool {
        self.attributes & DELETE_HORIZON_BIT != 0
    }

    /// Whether an idempotent producer wrote the batch.
    pub fn has_producer_id(&self) -> bool {
        self.producer_id >= 0
    }
}

fn field<const N: usize>(bytes: &[u8; BATCH_HEADER_LEN], at: usize) -> [u8; N] {
    let mut out = [0; N];
    out.copy_from_slice(&bytes[at..at + N]);
    out
}

fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    bytes[at..at + value.len()].copy_from_slice(value);
}
