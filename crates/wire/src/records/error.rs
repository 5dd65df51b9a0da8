//! Errors of record batches; each variant names the rule that was broken.

use thiserror::Error;

use crate::compression::{Compression, CompressionError};
use crate::varint::VarintError;

/// Why a record batch cannot be read or written.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RecordError {
    /// Not even one whole batch is there.
    #[error("the first record batch is incomplete: {have} bytes of {need}; it may be larger than the fetch limit")]
    BatchIncomplete {
        /// Bytes there.
        have: usize,
        /// Bytes needed: the batch, or its header where the header is cut.
        need: usize,
    },
    /// The batch is of message format v0 or v1.
    #[error(
        "message format v{0} is not supported, only v2 is: it was dropped with Kafka 4.0 (KIP-724); rewrite the topic with a newer producer"
    )]
    UnsupportedMagic(i8),
    /// The magic byte is none that Kafka defines.
    #[error("unknown record batch magic {0}: the bytes are no record batch, or damaged")]
    UnknownMagic(i8),
    /// The batch length is negative.
    #[error("record batch length {0} is negative")]
    NegativeBatchLength(i32),
    /// The batch length leaves no room for the batch header.
    #[error("record batch length {0} is below the {min} bytes of a batch header", min = super::header::MIN_BATCH_LENGTH)]
    BatchLengthTooSmall(i32),
    /// The batch would be larger than a frame can be.
    #[error("a record batch of {0} bytes exceeds what a frame can hold (2^31 - 1 bytes)")]
    BatchTooLarge(u64),
    /// The checksum does not match the bytes.
    #[error("record batch checksum is {stored:#010x} but its bytes give {computed:#010x}")]
    CrcMismatch {
        /// In the header.
        stored: u32,
        /// Of the bytes.
        computed: u32,
    },
    /// The base offset is negative, or the last offset exceeds 64 bits.
    #[error("record batch offsets are out of range: base {base_offset}, last delta {last_offset_delta}")]
    InvalidOffsets {
        /// In the header.
        base_offset: i64,
        /// In the header.
        last_offset_delta: i32,
    },
    /// The record count is negative.
    #[error("record count {0} is negative")]
    NegativeRecordCount(i32),
    /// The batch claims more records than its bytes can hold.
    #[error("record batch claims {count} records in {bytes} bytes")]
    RecordCountExceedsBytes {
        /// In the header.
        count: i32,
        /// Bytes of the decompressed payload.
        bytes: usize,
    },
    /// Bytes are left after the last record.
    #[error("{0} bytes are left after the last record of the batch")]
    TrailingBytes(usize),
    /// A field ends behind the record, or the record behind the batch.
    #[error("a record is cut off: {0}")]
    RecordTruncated(&'static str),
    /// A length or count within a record is negative where it may not be.
    #[error("a record has a negative length or count: {0}")]
    NegativeLength(&'static str),
    /// The record's fields end before the record does.
    #[error("a record claims {0} bytes more than its fields take")]
    RecordLengthMismatch(usize),
    /// Header count cannot fit into the record's bytes.
    #[error("a record claims {count} headers in {bytes} bytes")]
    HeaderCountExceedsBytes {
        /// As claimed.
        count: i32,
        /// Bytes left in the record.
        bytes: usize,
    },
    /// Record offsets must rise and stay within the batch.
    #[error("record offset delta {delta} is out of order or beyond the batch's last delta {last}")]
    OffsetOutOfBatch {
        /// The record's.
        delta: i32,
        /// The batch's.
        last: i32,
    },
    /// A number within a record is malformed.
    #[error("a record is malformed: {0}")]
    Varint(#[from] VarintError),
    /// The attributes name a codec that does not exist.
    #[error("unknown compression codec {0} in the batch attributes")]
    UnknownCompression(u8),
    /// Records of a compressed batch cannot be read in place.
    #[error("the batch is compressed with {0}: decode it first")]
    Compressed(Compression),
    /// The payload cannot be decompressed, or not be compressed.
    #[error(transparent)]
    Compression(#[from] CompressionError),
    /// No record can be added behind the given offset delta.
    #[error("offset delta {delta} does not follow the batch's last delta {last}")]
    OffsetNotIncreasing {
        /// Asked for.
        delta: i32,
        /// Of the last record appended.
        last: i32,
    },
    /// A key, value or header exceeds 2^31 - 1 bytes.
    #[error("{0} exceeds 2^31 - 1 bytes")]
    FieldTooLarge(&'static str),
    /// The batch holds data records, not control records.
    #[error("the batch is no control batch")]
    NotControl,
    /// A control record's key or value is malformed.
    #[error("control record is malformed: {0}")]
    MalformedControl(&'static str),
}
