//! `Reader`: bounds-checked decoding of Kafka's primitive types from one frame; strings and bytes share the frame.

use crate::{ErrorKind, Result, Str, Uuid};
use bytes::Bytes;

/// Longest string that Kafka's own codec accepts, in bytes.
pub const MAX_STRING: usize = 0x7fff;

/// Elements for which memory is reserved on the word of the peer; more grow as they are decoded.
const MAX_UPFRONT: usize = 1024;

/// Reads primitives from the front of a frame.
#[derive(Debug, Clone)]
pub struct Reader {
    buf: Bytes,
    pos: usize,
    /// Where `buf` starts in the frame, for error positions of sub-readers.
    base: usize,
}

macro_rules! fixed {
    ($($(#[$doc:meta])* $name:ident: $ty:ty),* $(,)?) => {$(
        $(#[$doc])*
        /// # Errors
        /// Where the frame ends first.
        #[inline]
        pub fn $name(&mut self) -> Result<$ty> {
            Ok(<$ty>::from_be_bytes(self.chunk()?))
        }
    )*};
}

impl Reader {
    /// A reader at the start of `frame`.
    #[must_use]
    pub fn new(frame: Bytes) -> Self {
        Reader { buf: frame, pos: 0, base: 0 }
    }

    /// Bytes read so far, counted from the start of the frame.
    #[must_use]
    pub fn position(&self) -> usize {
        self.base + self.pos
    }

    /// Bytes left.
    #[must_use]
    pub fn remaining(&self) -> usize {
        self.buf.len() - self.pos
    }

    /// All bytes left, sharing the frame; the reader is at its end afterwards.
    pub fn rest(&mut self) -> Bytes {
        let rest = self.buf.slice(self.pos..);
        self.pos = self.buf.len();
        rest
    }

    /// Checks that nothing is left.
    ///
    /// # Errors
    /// Where bytes are left.
    pub fn finish(&self) -> Result<()> {
        match self.remaining() {
            0 => Ok(()),
            n => Err(ErrorKind::TrailingBytes(n).at(self.position())),
        }
    }

    #[inline]
    fn chunk<const N: usize>(&mut self) -> Result<[u8; N]> {
        match self.buf[self.pos..].first_chunk::<N>() {
            Some(chunk) => {
                self.pos += N;
                Ok(*chunk)
            }
            None => Err(self.too_short(N)),
        }
    }

    #[cold]
    fn too_short(&self, wanted: usize) -> crate::Error {
        ErrorKind::UnexpectedEnd { wanted, left: self.remaining() }.at(self.position())
    }

    fixed! {
        /// A signed byte.
        i8: i8,
        /// Two bytes, signed.
        i16: i16,
        /// Two bytes, unsigned.
        u16: u16,
        /// Four bytes, signed.
        i32: i32,
        /// Four bytes, unsigned.
        u32: u32,
        /// Eight bytes, signed.
        i64: i64,
        /// An IEEE double.
        f64: f64,
    }

    /// A boolean byte; like Java's codec, anything but zero is true.
    ///
    /// # Errors
    /// Where the frame ends first.
    pub fn bool(&mut self) -> Result<bool> {
        Ok(self.i8()? != 0)
    }

    /// A 16-byte id.
    ///
    /// # Errors
    /// Where the frame ends first.
    pub fn uuid(&mut self) -> Result<Uuid> {
        Ok(Uuid(self.chunk()?))
    }

    /// An unsigned varint of at most five bytes.
    ///
    /// # Errors
    /// Where the frame ends first or the varint is too long.
    #[inline]
    pub fn unsigned_varint(&mut self) -> Result<u32> {
        let start = self.position();
        let mut value: u32 = 0;
        for shift in [0, 7, 14, 21, 28] {
            let [byte] = self.chunk()?;
            if shift == 28 && byte > 0x0f {
                break;
            }
            value |= u32::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(ErrorKind::VarintTooLong.at(start))
    }

    /// The next `len` bytes, sharing the frame.
    ///
    /// # Errors
    /// Where the frame ends first.
    pub fn take(&mut self, len: usize) -> Result<Bytes> {
        if len > self.remaining() {
            return Err(self.too_short(len));
        }
        let slice = self.buf.slice(self.pos..self.pos + len);
        self.pos += len;
        Ok(slice)
    }

    /// A reader of the next `len` bytes, which this one skips.
    ///
    /// # Errors
    /// Where the frame ends first.
    pub fn sub_reader(&mut self, len: usize) -> Result<Reader> {
        let base = self.position();
        Ok(Reader { buf: self.take(len)?, pos: 0, base })
    }

    /// Compares a claimed element count with the bytes left, before anything is allocated for it.
    ///
    /// # Errors
    /// Where `count` elements of at least `min_size` bytes cannot be in the rest of the frame.
    pub fn check_count(&self, count: usize, min_size: usize) -> Result<()> {
        let left = self.remaining();
        match count.checked_mul(min_size.max(1)) {
            Some(need) if need <= left => Ok(()),
            _ => Err(ErrorKind::CountTooLarge { count, min_size, left }.at(self.position())),
        }
    }

    /// Length prefix of a string; `None` for null.
    fn string_len(&mut self, flexible: bool) -> Result<Option<usize>> {
        let at = self.position();
        let len = if flexible { i64::from(self.unsigned_varint()?) - 1 } else { i64::from(self.i16()?) };
        self.checked_len(len, MAX_STRING, at)
    }

    /// Length prefix of a byte field; `None` for null.
    fn bytes_len(&mut self, flexible: bool) -> Result<Option<usize>> {
        let at = self.position();
        let len = if flexible { i64::from(self.unsigned_varint()?) - 1 } else { i64::from(self.i32()?) };
        self.checked_len(len, i32::MAX as usize, at)
    }

    fn checked_len(&self, len: i64, max: usize, at: usize) -> Result<Option<usize>> {
        match len {
            -1 => Ok(None),
            n if n >= 0 && n <= max as i64 => Ok(Some(n as usize)),
            n => Err(ErrorKind::InvalidLength(n).at(at)),
        }
    }

    /// A string that may be null.
    ///
    /// # Errors
    /// Bad length, early end, or bytes that are not UTF-8.
    pub fn nullable_string(&mut self, flexible: bool) -> Result<Option<Str>> {
        let Some(len) = self.string_len(flexible)? else { return Ok(None) };
        let at = self.position();
        let bytes = self.take(len)?;
        Str::from_utf8(bytes).map(Some).map_err(|_| ErrorKind::InvalidUtf8.at(at))
    }

    /// A string.
    ///
    /// # Errors
    /// As [`Reader::nullable_string`], and null.
    pub fn string(&mut self, flexible: bool) -> Result<Str> {
        let at = self.position();
        self.nullable_string(flexible)?.ok_or_else(|| ErrorKind::UnexpectedNull.at(at))
    }

    /// A byte field that may be null; shares the frame.
    ///
    /// # Errors
    /// Bad length or early end.
    pub fn nullable_bytes(&mut self, flexible: bool) -> Result<Option<Bytes>> {
        match self.bytes_len(flexible)? {
            Some(len) => self.take(len).map(Some),
            None => Ok(None),
        }
    }

    /// A byte field; shares the frame.
    ///
    /// # Errors
    /// As [`Reader::nullable_bytes`], and null.
    pub fn bytes(&mut self, flexible: bool) -> Result<Bytes> {
        let at = self.position();
        self.nullable_bytes(flexible)?.ok_or_else(|| ErrorKind::UnexpectedNull.at(at))
    }

    /// An array's element count, checked against the bytes left; `None` for null.
    ///
    /// # Errors
    /// Bad count, or more elements than can follow.
    pub fn nullable_array_len(&mut self, flexible: bool, min_size: usize) -> Result<Option<usize>> {
        let len = self.bytes_len(flexible)?;
        if let Some(count) = len {
            self.check_count(count, min_size)?;
        }
        Ok(len)
    }

    /// An array's element count, checked against the bytes left.
    ///
    /// # Errors
    /// As [`Reader::nullable_array_len`], and null.
    pub fn array_len(&mut self, flexible: bool, min_size: usize) -> Result<usize> {
        let at = self.position();
        self.nullable_array_len(flexible, min_size)?.ok_or_else(|| ErrorKind::UnexpectedNull.at(at))
    }

    /// The marker before a nullable struct: whether the struct follows.
    ///
    /// # Errors
    /// Early end or another marker than -1 and 1.
    pub fn struct_marker(&mut self) -> Result<bool> {
        let at = self.position();
        match self.i8()? {
            -1 => Ok(false),
            1 => Ok(true),
            other => Err(ErrorKind::InvalidStructMarker(other).at(at)),
        }
    }

    /// An array; `element` reads one element of at least `min_size` bytes.
    ///
    /// # Errors
    /// As [`Reader::array_len`], and what `element` reports.
    pub fn array<T>(
        &mut self,
        flexible: bool,
        min_size: usize,
        element: impl FnMut(&mut Reader) -> Result<T>,
    ) -> Result<Vec<T>> {
        let len = self.array_len(flexible, min_size)?;
        self.elements(len, element)
    }

    /// An array that may be null; `element` reads one element of at least `min_size` bytes.
    ///
    /// # Errors
    /// As [`Reader::nullable_array_len`], and what `element` reports.
    pub fn nullable_array<T>(
        &mut self,
        flexible: bool,
        min_size: usize,
        element: impl FnMut(&mut Reader) -> Result<T>,
    ) -> Result<Option<Vec<T>>> {
        match self.nullable_array_len(flexible, min_size)? {
            Some(len) => self.elements(len, element).map(Some),
            None => Ok(None),
        }
    }

    fn elements<T>(&mut self, len: usize, mut element: impl FnMut(&mut Reader) -> Result<T>) -> Result<Vec<T>> {
        // An element in memory can be larger than on the wire, so a false count must not size the allocation.
        let mut all = Vec::with_capacity(len.min(MAX_UPFRONT));
        for _ in 0..len {
            all.push(element(self)?);
        }
        Ok(all)
    }
}
