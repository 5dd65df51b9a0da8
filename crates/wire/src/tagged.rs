//! Tagged fields that this build does not know (KIP-482): kept, and written back in tag order.

use crate::{ErrorKind, Reader, Result, Writer};
use bytes::Bytes;

/// Unknown tagged fields of one struct, in ascending tag order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TaggedFields(Vec<(u32, Bytes)>);

impl TaggedFields {
    /// No unknown fields.
    #[must_use]
    pub const fn new() -> Self {
        TaggedFields(Vec::new())
    }

    /// Number of unknown fields.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The fields in tag order.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &Bytes)> {
        self.0.iter().map(|(tag, data)| (*tag, data))
    }

    /// Adds a field; keeps the order, replaces a field of the same tag.
    pub fn insert(&mut self, tag: u32, data: Bytes) {
        match self.0.binary_search_by_key(&tag, |(t, _)| *t) {
            Ok(i) => self.0[i].1 = data,
            Err(i) => self.0.insert(i, (tag, data)),
        }
    }

    /// Reads a whole tag section. `known` is asked for each tag and answers whether it consumed the reader that
    /// holds the field's content; what it does not know is kept here.
    ///
    /// # Errors
    /// Tags out of order, sizes beyond the end, content that does not fill its size, or what `known` reports.
    pub fn read(reader: &mut Reader, mut known: impl FnMut(u32, &mut Reader) -> Result<bool>) -> Result<Self> {
        let count = reader.unsigned_varint()? as usize;
        // Each field takes a tag and a size.
        reader.check_count(count, 2)?;
        let mut unknown = Vec::new();
        let mut previous = None;
        for _ in 0..count {
            let at = reader.position();
            let tag = reader.unsigned_varint()?;
            if let Some(previous) = previous.filter(|p| tag <= *p) {
                return Err(ErrorKind::TagOrder { tag, previous }.at(at));
            }
            previous = Some(tag);
            let size = reader.unsigned_varint()? as usize;
            let mut field = reader.sub_reader(size)?;
            if !known(tag, &mut field)? {
                unknown.push((tag, field.rest()));
            } else if field.remaining() > 0 {
                return Err(ErrorKind::TagTrailing { tag, left: field.remaining() }.at(at));
            }
        }
        Ok(TaggedFields(unknown))
    }

    /// Writes the section: `known` fields (already encoded, ascending) merged with the unknown ones.
    ///
    /// # Errors
    /// None at present; the signature leaves room for length checks.
    pub fn write(&self, writer: &mut Writer, known: &[(u32, Bytes)]) -> Result<()> {
        writer.unsigned_varint((self.0.len() + known.len()) as u32);
        let mut unknown = self.0.iter().peekable();
        for (tag, data) in known {
            while let Some((t, d)) = unknown.next_if(|(t, _)| t < tag) {
                put(writer, *t, d);
            }
            put(writer, *tag, data);
        }
        for (tag, data) in unknown {
            put(writer, *tag, data);
        }
        Ok(())
    }
}

fn put(writer: &mut Writer, tag: u32, data: &Bytes) {
    writer.unsigned_varint(tag);
    writer.unsigned_varint(data.len() as u32);
    writer.shared(data);
}
