//! One record batch: borrowed, owned, and decoded.

use std::ops::Deref;

use bytes::Bytes;

use super::header::{ATTRIBUTES_AT, LENGTH_AT, MAGIC_AT, MIN_BATCH_LENGTH};
use super::{BATCH_HEADER_LEN, BatchHeader, LOG_OVERHEAD, MAGIC_V2, Record, RecordError, RecordIter};
use crate::compression::{Compression, decompress};

/// Size of the batch at the start of `bytes`, `None` if not even its framing is there.
///
/// # Errors
/// The errors of framing: magic and length.
pub(super) fn framed_size(bytes: &[u8]) -> Result<Option<usize>, RecordError> {
    let Some(head) = bytes.first_chunk::<{ MAGIC_AT + 1 }>() else {
        return Ok(None);
    };
    let magic = head[MAGIC_AT] as i8;
    match magic {
        MAGIC_V2 => {}
        0 | 1 => return Err(RecordError::UnsupportedMagic(magic)),
        _ => return Err(RecordError::UnknownMagic(magic)),
    }
    let length = i32::from_be_bytes([head[LENGTH_AT], head[LENGTH_AT + 1], head[LENGTH_AT + 2], head[LENGTH_AT + 3]]);
    if length < 0 {
        return Err(RecordError::NegativeBatchLength(length));
    }
    if length < MIN_BATCH_LENGTH {
        return Err(RecordError::BatchLengthTooSmall(length));
    }
    let size = length as usize + LOG_OVERHEAD;
    if size > i32::MAX as usize {
        return Err(RecordError::BatchTooLarge(size as u64));
    }
    Ok(Some(size))
}

/// A batch borrowed from a buffer. Dereferences to its [`BatchHeader`].
#[derive(Debug, Clone, Copy)]
pub struct RecordBatchView<'a> {
    header: BatchHeader,
    bytes: &'a [u8],
}

impl<'a> RecordBatchView<'a> {
    /// Views the batch at the start of `bytes`; bytes after it are left alone.
    ///
    /// Looks at magic and length only: a damaged batch can still be viewed, and skipped.
    ///
    /// # Errors
    /// [`RecordError::BatchIncomplete`] if bytes are missing, or an error of magic or length.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, RecordError> {
        let have = bytes.len();
        let need = framed_size(bytes)?.unwrap_or(BATCH_HEADER_LEN);
        match (bytes.first_chunk(), bytes.get(..need)) {
            (Some(header), Some(bytes)) => Ok(Self { header: BatchHeader::decode(header), bytes }),
            _ => Err(RecordError::BatchIncomplete { have, need }),
        }
    }

    /// All bytes of the batch.
    pub fn as_bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The records as on the wire, compressed or not.
    pub fn payload(&self) -> &'a [u8] {
        &self.bytes[BATCH_HEADER_LEN..]
    }

    /// Compares the checksum with the bytes, in one pass.
    ///
    /// # Errors
    /// [`RecordError::CrcMismatch`].
    pub fn verify_crc(&self) -> Result<(), RecordError> {
        let computed = crc32c::crc32c(&self.bytes[ATTRIBUTES_AT..]);
        let stored = self.header.crc;
        if computed == stored {
            return Ok(());
        }
        Err(RecordError::CrcMismatch { stored, computed })
    }

    /// Iterates over the records of an uncompressed batch.
    ///
    /// # Errors
    /// [`RecordError::Compressed`], or the header's errors ([`BatchHeader::check`]).
    pub fn records(&self) -> Result<RecordIter<'a>, RecordError> {
        self.header.check()?;
        match self.header.compression()? {
            Compression::None => RecordIter::new(&self.header, self.payload()),
            codec => Err(RecordError::Compressed(codec)),
        }
    }
}

impl Deref for RecordBatchView<'_> {
    type Target = BatchHeader;

    fn deref(&self) -> &BatchHeader {
        &self.header
    }
}

/// A batch that shares its buffer. Dereferences to its [`BatchHeader`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordBatch {
    header: BatchHeader,
    bytes: Bytes,
}

impl RecordBatch {
    /// Takes the batch at the start of `bytes`; bytes after it are left out.
    ///
    /// # Errors
    /// As [`RecordBatchView::parse`].
    pub fn parse(bytes: &Bytes) -> Result<Self, RecordError> {
        let view = RecordBatchView::parse(bytes)?;
        Ok(Self { header: view.header, bytes: bytes.slice(..view.bytes.len()) })
    }

    /// Borrows the batch.
    pub fn view(&self) -> RecordBatchView<'_> {
        RecordBatchView { header: self.header, bytes: &self.bytes }
    }

    /// The decoded header.
    pub fn header(&self) -> &BatchHeader {
        &self.header
    }

    /// All bytes of the batch.
    pub fn as_bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// Gives up the batch for its bytes.
    pub fn into_bytes(self) -> Bytes {
        self.bytes
    }

    /// See [`RecordBatchView::verify_crc`].
    ///
    /// # Errors
    /// [`RecordError::CrcMismatch`].
    pub fn verify_crc(&self) -> Result<(), RecordError> {
        self.view().verify_crc()
    }

    /// Makes the records readable: shares the frame if they are uncompressed, else decompresses
    /// them once, to `limit` bytes at most.
    ///
    /// Does not verify the checksum.
    ///
    /// # Errors
    /// The header's errors ([`BatchHeader::check`]), a count that the bytes cannot hold, and
    /// [`RecordError::Compression`].
    pub fn decode(&self, limit: usize) -> Result<DecodedBatch, RecordError> {
        self.header.check()?;
        let payload = match self.header.compression()? {
            Compression::None => self.bytes.slice(BATCH_HEADER_LEN..),
            codec => decompress(codec, &self.bytes[BATCH_HEADER_LEN..], limit)?,
        };
        RecordIter::new(&self.header, &payload)?;
        Ok(DecodedBatch { header: self.header, payload })
    }
}

impl Deref for RecordBatch {
    type Target = BatchHeader;

    fn deref(&self) -> &BatchHeader {
        &self.header
    }
}

/// A batch whose records can be read: the header and the uncompressed payload.
///
/// Cheap to clone. Keeps the frame alive (uncompressed batches) or the decompressed buffer.
/// Dereferences to its [`BatchHeader`].
#[derive(Debug, Clone)]
pub struct DecodedBatch {
    header: BatchHeader,
    payload: Bytes,
}

impl DecodedBatch {
    /// The decoded header.
    pub fn header(&self) -> &BatchHeader {
        &self.header
    }

    /// The uncompressed records.
    pub fn payload(&self) -> &Bytes {
        &self.payload
    }

    /// Iterates over the records, checking each as it comes.
    pub fn iter(&self) -> RecordIter<'_> {
        RecordIter::unchecked(&self.header, &self.payload)
    }

    /// Reads again the record at a [`Record::position`] that this batch gave out earlier.
    ///
    /// # Errors
    /// Errors of the record's bytes; a position that is not a record's start gives such an error, or
    /// nonsense, but never a panic.
    #[inline]
    pub fn record_at(&self, position: u32) -> Result<Record<'_>, RecordError> {
        RecordIter::unchecked(&self.header, &self.payload).record_at(position)
    }

    /// A shared handle to a part of a record that this batch gave out: no copy.
    ///
    /// A slice that is not of this batch is copied.
    pub fn share(&self, part: &[u8]) -> Bytes {
        let whole = self.payload.as_ptr_range();
        let range = part.as_ptr_range();
        if range.start >= whole.start && range.end <= whole.end {
            self.payload.slice_ref(part)
        } else {
            Bytes::copy_from_slice(part)
        }
    }
}

impl Deref for DecodedBatch {
    type Target = BatchHeader;

    fn deref(&self) -> &BatchHeader {
        &self.header
    }
}

impl<'a> IntoIterator for &'a DecodedBatch {
    type Item = Result<Record<'a>, RecordError>;
    type IntoIter = RecordIter<'a>;

    fn into_iter(self) -> RecordIter<'a> {
        self.iter()
    }
}
