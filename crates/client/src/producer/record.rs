//! A record to send, and where it was written.

use bytes::Bytes;
use kafka_share_wire::records::Header;
use std::borrow::Cow;

/// Bytes of a key, a value or a header: borrowed, owned or shared.
#[derive(Debug, Clone)]
pub enum Payload<'a> {
    /// Borrowed.
    Borrowed(&'a [u8]),
    /// Owned.
    Owned(Vec<u8>),
    /// Shared.
    Shared(Bytes),
}

impl std::ops::Deref for Payload<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Payload::Borrowed(bytes) => bytes,
            Payload::Owned(bytes) => bytes,
            Payload::Shared(bytes) => bytes,
        }
    }
}

impl<'a> From<&'a [u8]> for Payload<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Payload::Borrowed(bytes)
    }
}

impl<'a, const N: usize> From<&'a [u8; N]> for Payload<'a> {
    fn from(bytes: &'a [u8; N]) -> Self {
        Payload::Borrowed(bytes)
    }
}

impl<'a> From<&'a Vec<u8>> for Payload<'a> {
    fn from(bytes: &'a Vec<u8>) -> Self {
        Payload::Borrowed(bytes)
    }
}

impl<'a> From<&'a str> for Payload<'a> {
    fn from(text: &'a str) -> Self {
        Payload::Borrowed(text.as_bytes())
    }
}

impl From<Vec<u8>> for Payload<'_> {
    fn from(bytes: Vec<u8>) -> Self {
        Payload::Owned(bytes)
    }
}

impl From<String> for Payload<'_> {
    fn from(text: String) -> Self {
        Payload::Owned(text.into_bytes())
    }
}

impl From<Bytes> for Payload<'_> {
    fn from(bytes: Bytes) -> Self {
        Payload::Shared(bytes)
    }
}

type HeaderParts<'a> = (Cow<'a, str>, Option<Payload<'a>>);

/// A record to send. Key, value and headers are borrowed or owned.
///
/// ```
/// use kafka_share::ProducerRecord;
/// let record = ProducerRecord::new("orders").key(b"k1").value("text").header("source", b"web");
/// # let _ = record;
/// ```
#[derive(Debug, Clone)]
pub struct ProducerRecord<'a> {
    pub(super) topic: Cow<'a, str>,
    pub(super) partition: Option<i32>,
    pub(super) timestamp: Option<i64>,
    pub(super) key: Option<Payload<'a>>,
    pub(super) value: Option<Payload<'a>>,
    pub(super) headers: Vec<HeaderParts<'a>>,
}

impl<'a> ProducerRecord<'a> {
    /// A record without key and value: a tombstone until [`ProducerRecord::value`] is called.
    #[must_use]
    pub fn new(topic: impl Into<Cow<'a, str>>) -> Self {
        ProducerRecord {
            topic: topic.into(),
            partition: None,
            timestamp: None,
            key: None,
            value: None,
            headers: Vec::new(),
        }
    }

    /// The partition; else the key's hash chooses it, or where there is no key the producer.
    #[must_use]
    pub fn partition(mut self, partition: i32) -> Self {
        self.partition = Some(partition);
        self
    }

    /// Milliseconds since 1970, from 0 on; else the time of the send.
    #[must_use]
    pub fn timestamp(mut self, milliseconds: i64) -> Self {
        self.timestamp = Some(milliseconds);
        self
    }

    /// The key.
    #[must_use]
    pub fn key(mut self, key: impl Into<Payload<'a>>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// The value.
    #[must_use]
    pub fn value(mut self, value: impl Into<Payload<'a>>) -> Self {
        self.value = Some(value.into());
        self
    }

    /// Adds a header; names may repeat.
    #[must_use]
    pub fn header(mut self, name: impl Into<Cow<'a, str>>, value: impl Into<Payload<'a>>) -> Self {
        self.headers.push((name.into(), Some(value.into())));
        self
    }

    /// Adds a header, with or without a value.
    #[must_use]
    pub fn header_opt(mut self, name: impl Into<Cow<'a, str>>, value: Option<impl Into<Payload<'a>>>) -> Self {
        self.headers.push((name.into(), value.map(Into::into)));
        self
    }

    /// Adds a header without a value.
    #[must_use]
    pub fn null_header(mut self, name: impl Into<Cow<'a, str>>) -> Self {
        self.headers.push((name.into(), None));
        self
    }

    pub(super) fn wire_headers(&self) -> Vec<Header<'_>> {
        self.headers.iter().map(|(name, value)| Header::new(name, value.as_deref())).collect()
    }
}

/// Where a record was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordMetadata {
    pub(super) partition: i32,
    pub(super) offset: i64,
    pub(super) timestamp: i64,
}

impl RecordMetadata {
    /// Its partition.
    #[must_use]
    pub fn partition(&self) -> i32 {
        self.partition
    }

    /// Its offset; -1 where the broker had it already and no longer knows where.
    #[must_use]
    pub fn offset(&self) -> i64 {
        self.offset
    }

    /// Its timestamp: the record's, or the broker's on topics with log-append time. Milliseconds since 1970.
    #[must_use]
    pub fn timestamp(&self) -> i64 {
        self.timestamp
    }
}
