//! Records and their headers, read in place.

use std::iter::FusedIterator;

use super::{BatchHeader, RecordError, TimestampType};
use crate::varint::{decode_uvarint, decode_varint, decode_varlong};

/// Bytes of the smallest record: length, attributes, two deltas, two lengths, header count.
const MIN_RECORD_LEN: usize = 7;
/// Bytes of the smallest header: two lengths.
const MIN_HEADER_LEN: usize = 2;

/// A record that borrows its batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record<'a> {
    /// Offset in the partition.
    pub offset: i64,
    /// Milliseconds since 1970; set by the producer or the broker, see
    /// [`BatchHeader::timestamp_type`].
    pub timestamp: i64,
    /// Key; null and empty are different.
    pub key: Option<&'a [u8]>,
    /// Value; null (a tombstone on compacted topics) and empty are different.
    pub value: Option<&'a [u8]>,
    /// Headers, in the order they were written.
    pub headers: Headers<'a>,
    /// Where the record starts in the batch's uncompressed payload, for
    /// [`DecodedBatch::record_at`](super::DecodedBatch::record_at).
    pub position: u32,
}

/// A record header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header<'a> {
    /// Key; by convention UTF-8, but that is the application's matter.
    pub key: &'a [u8],
    /// Value; null and empty are different.
    pub value: Option<&'a [u8]>,
}

impl<'a> Header<'a> {
    /// A header with a text key.
    pub fn new(key: &'a str, value: Option<&'a [u8]>) -> Self {
        Self { key: key.as_bytes(), value }
    }

    /// The key as text, `None` if it is not UTF-8.
    pub fn key_str(&self) -> Option<&'a str> {
        std::str::from_utf8(self.key).ok()
    }
}

/// Iterator over a record's headers: ordered, duplicates kept. The record was checked before, so
/// it cannot fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Headers<'a> {
    count: u32,
    bytes: &'a [u8],
}

impl<'a> Headers<'a> {
    /// The last value under a key, as Java's `Headers.lastHeader` gives it.
    pub fn last_with_key(&self, key: &str) -> Option<Header<'a>> {
        (*self).filter(|header| header.key == key.as_bytes()).last()
    }

    #[cold]
    #[inline(never)]
    fn checked(count: i32, bytes: &'a [u8]) -> Result<Self, RecordError> {
        if count < 0 {
            return Err(RecordError::NegativeLength("header count"));
        }
        if count as usize > bytes.len() / MIN_HEADER_LEN {
            return Err(RecordError::HeaderCountExceedsBytes { count, bytes: bytes.len() });
        }
        let mut rest = bytes;
        for _ in 0..count {
            rest = read_header(rest)?.1;
        }
        if !rest.is_empty() {
            return Err(RecordError::RecordLengthMismatch(rest.len()));
        }
        Ok(Self { count: count as u32, bytes })
    }
}

impl<'a> Iterator for Headers<'a> {
    type Item = Header<'a>;

    fn next(&mut self) -> Option<Header<'a>> {
        self.count = self.count.checked_sub(1)?;
        let (header, rest) = read_header(self.bytes).ok()?;
        self.bytes = rest;
        Some(header)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.count as usize, Some(self.count as usize))
    }
}

impl ExactSizeIterator for Headers<'_> {}
impl FusedIterator for Headers<'_> {}

/// Iterator over the records of an uncompressed payload.
///
/// After an error it ends. When the count is reached, bytes left over are an error too.
#[derive(Debug, Clone)]
pub struct RecordIter<'a> {
    payload: &'a [u8],
    rest: &'a [u8],
    left: u32,
    next_delta: u32,
    last_delta: u32,
    base_offset: i64,
    base_timestamp: i64,
    append_time: Option<i64>,
}

impl<'a> RecordIter<'a> {
    pub(super) fn new(header: &BatchHeader, payload: &'a [u8]) -> Result<Self, RecordError> {
        let count = header.record_count;
        if count < 0 {
            return Err(RecordError::NegativeRecordCount(count));
        }
        if count as usize > payload.len() / MIN_RECORD_LEN {
            return Err(RecordError::RecordCountExceedsBytes { count, bytes: payload.len() });
        }
        Ok(Self::unchecked(header, payload))
    }

    /// For a header that has passed [`RecordIter::new`] before.
    #[inline]
    pub(super) fn unchecked(header: &BatchHeader, payload: &'a [u8]) -> Self {
        Self {
            payload,
            rest: payload,
            left: header.record_count as u32,
            next_delta: 0,
            last_delta: header.last_offset_delta as u32,
            base_offset: header.base_offset,
            base_timestamp: header.base_timestamp,
            append_time: match header.timestamp_type() {
                TimestampType::CreateTime => None,
                TimestampType::LogAppendTime => Some(header.max_timestamp),
            },
        }
    }

    #[inline]
    pub(super) fn record_at(mut self, position: u32) -> Result<Record<'a>, RecordError> {
        self.rest =
            self.payload.get(position as usize..).ok_or(RecordError::RecordTruncated("position beyond the batch"))?;
        self.read()
    }

    #[inline(always)]
    fn read(&mut self) -> Result<Record<'a>, RecordError> {
        let position = (self.payload.len() - self.rest.len()) as u32;
        let (length, rest) = decode_varint(self.rest)?;
        let (body, rest) = split(rest, length, "record")?;
        self.rest = rest;
        // The attributes byte has no meaning yet.
        let Some((_, body)) = body.split_first() else {
            return Err(RecordError::RecordTruncated("attributes"));
        };
        let (timestamp_delta, body) = decode_varlong(body)?;
        let (offset_delta, body) = decode_varint(body)?;
        if (offset_delta as u32) < self.next_delta || offset_delta as u32 > self.last_delta {
            return Err(RecordError::OffsetOutOfBatch { delta: offset_delta, last: self.last_delta as i32 });
        }
        self.next_delta = offset_delta as u32 + 1;
        let (key, body) = nullable(body, "key")?;
        let (value, body) = nullable(body, "value")?;
        let headers = match body {
            [0] => Headers::default(),
            _ => {
                let (count, body) = decode_varint(body)?;
                Headers::checked(count, body)?
            }
        };
        Ok(Record {
            offset: self.base_offset.wrapping_add(i64::from(offset_delta)),
            timestamp: match self.append_time {
                Some(time) => time,
                None => self.base_timestamp.wrapping_add(timestamp_delta),
            },
            key,
            value,
            headers,
            position,
        })
    }

    #[cold]
    fn end(&mut self) -> Option<Result<Record<'a>, RecordError>> {
        let trailing = std::mem::take(&mut self.rest).len();
        (trailing > 0).then_some(Err(RecordError::TrailingBytes(trailing)))
    }
}

impl<'a> Iterator for RecordIter<'a> {
    type Item = Result<Record<'a>, RecordError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.left == 0 {
            return self.end();
        }
        self.left -= 1;
        let record = self.read();
        if record.is_err() {
            self.left = 0;
            self.rest = &[];
        }
        Some(record)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.left as usize;
        (left.min(1), Some(left + 1))
    }
}

impl FusedIterator for RecordIter<'_> {}

#[inline(always)]
fn split<'a>(bytes: &'a [u8], length: i32, what: &'static str) -> Result<(&'a [u8], &'a [u8]), RecordError> {
    // A negative length becomes one that no slice has.
    match bytes.split_at_checked(length as usize) {
        Some(parts) => Ok(parts),
        None if length < 0 => Err(RecordError::NegativeLength(what)),
        None => Err(RecordError::RecordTruncated(what)),
    }
}

type Nullable<'a> = (Option<&'a [u8]>, &'a [u8]);

#[inline(always)]
fn nullable<'a>(bytes: &'a [u8], what: &'static str) -> Result<Nullable<'a>, RecordError> {
    // Zig-zag image 1 is -1: null.
    let (raw, rest) = decode_uvarint(bytes)?;
    if raw == 1 {
        return Ok((None, rest));
    }
    let length = (raw >> 1) as i32 ^ -((raw & 1) as i32);
    let (field, rest) = split(rest, length, what)?;
    Ok((Some(field), rest))
}

fn read_header(bytes: &[u8]) -> Result<(Header<'_>, &[u8]), RecordError> {
    let (length, rest) = decode_varint(bytes)?;
    let (key, rest) = split(rest, length, "header key")?;
    let (value, rest) = nullable(rest, "header value")?;
    Ok((Header { key, value }, rest))
}
