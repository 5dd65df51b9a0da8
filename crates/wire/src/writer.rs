//! `Writer`: encodes Kafka's primitive types; large byte fields are kept as shared segments and never copied.

use crate::reader::MAX_STRING;
use crate::{ErrorKind, Frame, Result, Str, Uuid};
use bytes::{BufMut, Bytes, BytesMut};

/// Byte fields from this size on travel as their own segment; below it a copy is cheaper than a second buffer.
const SHARE_FROM: usize = 2048;

/// Collects an encoded message.
#[derive(Debug, Default)]
pub struct Writer {
    segments: Vec<Bytes>,
    segments_len: usize,
    buf: BytesMut,
}

macro_rules! fixed {
    ($($(#[$doc:meta])* $name:ident: $ty:ty, $put:ident),* $(,)?) => {$(
        $(#[$doc])*
        #[inline]
        pub fn $name(&mut self, value: $ty) {
            self.buf.$put(value);
        }
    )*};
}

impl Writer {
    /// An empty writer.
    #[must_use]
    pub fn new() -> Self {
        Writer { segments: Vec::new(), segments_len: 0, buf: BytesMut::with_capacity(256) }
    }

    /// A writer that leaves room for a frame's size prefix; end it with [`Writer::into_frame`].
    #[must_use]
    pub fn for_frame() -> Self {
        let mut writer = Self::new();
        writer.buf.put_i32(0);
        writer
    }

    /// Bytes written so far.
    #[must_use]
    pub fn len(&self) -> usize {
        self.segments_len + self.buf.len()
    }

    /// Whether nothing was written.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The message in one piece.
    #[must_use]
    pub fn into_bytes(mut self) -> Bytes {
        if self.segments.is_empty() {
            return self.buf.freeze();
        }
        let mut all = BytesMut::with_capacity(self.len());
        for segment in self.segments.drain(..) {
            all.extend_from_slice(&segment);
        }
        all.extend_from_slice(&self.buf);
        all.freeze()
    }

    /// The frame, its size prefix filled in.
    ///
    /// # Errors
    /// Where the frame is longer than a 32-bit size can say.
    pub fn into_frame(mut self) -> Result<Frame> {
        let body = self.len() - 4;
        let size = i32::try_from(body).map_err(|_| ErrorKind::TooLong(body).at(0))?.to_be_bytes();
        if self.segments.is_empty() {
            self.buf[..4].copy_from_slice(&size);
        } else {
            // Only this writer holds the first segment, so this does not copy.
            let mut first = BytesMut::from(std::mem::take(&mut self.segments[0]));
            first[..4].copy_from_slice(&size);
            self.segments[0] = first.freeze();
        }
        if !self.buf.is_empty() {
            self.segments.push(self.buf.freeze());
        }
        Ok(Frame::from_segments(self.segments))
    }

    /// Raw bytes, shared instead of copied when they are large.
    pub fn shared(&mut self, bytes: &Bytes) {
        if bytes.len() < SHARE_FROM {
            self.buf.extend_from_slice(bytes);
            return;
        }
        if !self.buf.is_empty() {
            self.segments_len += self.buf.len();
            self.segments.push(self.buf.split().freeze());
        }
        self.segments_len += bytes.len();
        self.segments.push(bytes.clone());
    }

    fixed! {
        /// A signed byte.
        i8: i8, put_i8,
        /// Two bytes, signed.
        i16: i16, put_i16,
        /// Two bytes, unsigned.
        u16: u16, put_u16,
        /// Four bytes, signed.
        i32: i32, put_i32,
        /// Four bytes, unsigned.
        u32: u32, put_u32,
        /// Eight bytes, signed.
        i64: i64, put_i64,
        /// An IEEE double.
        f64: f64, put_f64,
    }

    /// A boolean byte.
    pub fn bool(&mut self, value: bool) {
        self.buf.put_i8(i8::from(value));
    }

    /// A 16-byte id.
    pub fn uuid(&mut self, value: Uuid) {
        self.buf.extend_from_slice(&value.0);
    }

    /// An unsigned varint.
    #[inline]
    pub fn unsigned_varint(&mut self, mut value: u32) {
        while value >= 0x80 {
            self.buf.put_u8((value as u8) | 0x80);
            value >>= 7;
        }
        self.buf.put_u8(value as u8);
    }

    /// A string.
    ///
    /// # Errors
    /// Where it is longer than 32,767 bytes.
    pub fn string(&mut self, value: &Str, flexible: bool) -> Result<()> {
        let len = value.as_bytes().len();
        if len > MAX_STRING {
            return Err(ErrorKind::TooLong(len).at(self.len()));
        }
        if flexible {
            self.unsigned_varint(len as u32 + 1);
        } else {
            self.i16(len as i16);
        }
        self.buf.extend_from_slice(value.as_bytes());
        Ok(())
    }

    /// A null string.
    pub fn null_string(&mut self, flexible: bool) {
        if flexible {
            self.unsigned_varint(0);
        } else {
            self.i16(-1);
        }
    }

    /// A byte field.
    ///
    /// # Errors
    /// Where it is longer than a 32-bit length can say.
    pub fn bytes(&mut self, value: &Bytes, flexible: bool) -> Result<()> {
        self.array_len(value.len(), flexible)?;
        self.shared(value);
        Ok(())
    }

    /// The element count of an array, or the length of a byte field.
    ///
    /// # Errors
    /// Where it does not fit 32 bits.
    pub fn array_len(&mut self, len: usize, flexible: bool) -> Result<()> {
        let len32 = i32::try_from(len).ok().filter(|n| *n < i32::MAX);
        let len32 = len32.ok_or_else(|| ErrorKind::TooLong(len).at(self.len()))?;
        if flexible {
            self.unsigned_varint(len32 as u32 + 1);
        } else {
            self.i32(len32);
        }
        Ok(())
    }

    /// A null array or byte field.
    pub fn null_array(&mut self, flexible: bool) {
        if flexible {
            self.unsigned_varint(0);
        } else {
            self.i32(-1);
        }
    }

    /// The marker before a nullable struct.
    pub fn struct_marker(&mut self, present: bool) {
        self.i8(if present { 1 } else { -1 });
    }
}
