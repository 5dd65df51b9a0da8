//! How saved values are written: big-endian numbers, length-prefixed text, counts before lists.

use bytes::{BufMut, Bytes, BytesMut};
use kafka_share_wire::{ErrorKind, Reader, Result, Str, Uuid};

/// Collects an encoded value.
#[derive(Debug, Default)]
pub(crate) struct Encoder(BytesMut);

impl Encoder {
    pub(crate) fn finish(self) -> Bytes {
        self.0.freeze()
    }

    pub(crate) fn i8(&mut self, value: i8) -> &mut Self {
        self.0.put_i8(value);
        self
    }

    pub(crate) fn bool(&mut self, value: bool) -> &mut Self {
        self.i8(i8::from(value))
    }

    pub(crate) fn i16(&mut self, value: i16) -> &mut Self {
        self.0.put_i16(value);
        self
    }

    pub(crate) fn i32(&mut self, value: i32) -> &mut Self {
        self.0.put_i32(value);
        self
    }

    pub(crate) fn i64(&mut self, value: i64) -> &mut Self {
        self.0.put_i64(value);
        self
    }

    pub(crate) fn uuid(&mut self, value: Uuid) -> &mut Self {
        self.0.put_slice(&value.0);
        self
    }

    pub(crate) fn text(&mut self, value: &str) -> &mut Self {
        self.bytes(value.as_bytes())
    }

    pub(crate) fn bytes(&mut self, value: &[u8]) -> &mut Self {
        self.count(value.len());
        self.0.put_slice(value);
        self
    }

    pub(crate) fn count(&mut self, count: usize) -> &mut Self {
        self.0.put_u32(count as u32);
        self
    }

    pub(crate) fn optional<T>(&mut self, value: Option<T>, write: impl FnOnce(&mut Self, T)) -> &mut Self {
        self.bool(value.is_some());
        if let Some(value) = value {
            write(self, value);
        }
        self
    }

    pub(crate) fn list<T>(
        &mut self,
        items: impl ExactSizeIterator<Item = T>,
        mut write: impl FnMut(&mut Self, T),
    ) -> &mut Self {
        self.count(items.len());
        for item in items {
            write(self, item);
        }
        self
    }
}

/// Reads what [`Encoder`] wrote; never beyond the value's end, and takes no memory on a count's word.
#[derive(Debug)]
pub(crate) struct Decoder(Reader);

impl Decoder {
    pub(crate) fn new(bytes: Bytes) -> Self {
        Decoder(Reader::new(bytes))
    }

    pub(crate) fn finish(&self) -> Result<()> {
        self.0.finish()
    }

    pub(crate) fn i8(&mut self) -> Result<i8> {
        self.0.i8()
    }

    pub(crate) fn bool(&mut self) -> Result<bool> {
        self.0.bool()
    }

    pub(crate) fn i16(&mut self) -> Result<i16> {
        self.0.i16()
    }

    pub(crate) fn i32(&mut self) -> Result<i32> {
        self.0.i32()
    }

    pub(crate) fn i64(&mut self) -> Result<i64> {
        self.0.i64()
    }

    pub(crate) fn uuid(&mut self) -> Result<Uuid> {
        self.0.uuid()
    }

    pub(crate) fn bytes(&mut self) -> Result<Bytes> {
        let len = self.0.u32()? as usize;
        self.0.take(len)
    }

    /// Text of its own, not a part of what it was read from.
    pub(crate) fn text(&mut self) -> Result<Str> {
        let at = self.0.position();
        let bytes = self.bytes()?;
        Str::from_utf8(bytes).map(|text| text.detached()).map_err(|_| ErrorKind::InvalidUtf8.at(at))
    }

    pub(crate) fn optional<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T>) -> Result<Option<T>> {
        if self.bool()? { read(self).map(Some) } else { Ok(None) }
    }

    /// Any list, map or set.
    pub(crate) fn list<T, C: FromIterator<T>>(&mut self, mut read: impl FnMut(&mut Self) -> Result<T>) -> Result<C> {
        let count = self.0.u32()?;
        (0..count).map(|_| read(self)).collect()
    }
}
