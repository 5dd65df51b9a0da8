//! Typed keys and values. A record that does not deserialise is handed over with its error: it is still held, and can be
//! released or rejected.

use super::records::{ShareRecord, ShareRecords};
use kafka_share_wire::records::Headers;
use std::error::Error as StdError;
use std::fmt;

/// What a deserialiser may look at beside the bytes.
#[derive(Debug, Clone, Copy)]
pub struct DeserializeContext<'a> {
    /// Topic of the record.
    pub topic: &'a str,
    /// Headers of the record.
    pub headers: Headers<'a>,
    /// Whether the bytes are the key.
    pub is_key: bool,
}

/// Makes a value of the bytes of a key or value; [`Deserialize`] makes one of a closure.
pub trait Deserializer {
    /// What comes out.
    type Output;

    /// `bytes` is `None` for null, which is different from empty.
    ///
    /// # Errors
    /// Whatever is wrong with the bytes; the record is handed to the application with it.
    fn deserialize(
        &self,
        bytes: Option<&[u8]>,
        context: &DeserializeContext<'_>,
    ) -> Result<Self::Output, Box<dyn StdError + Send + Sync>>;
}

/// A closure as a [`Deserializer`].
#[derive(Debug, Clone, Copy)]
pub struct Deserialize<F>(F);

impl<F> Deserialize<F> {
    /// From a closure; null is `None`.
    pub fn new<T>(closure: F) -> Self
    where
        F: Fn(Option<&[u8]>) -> Result<T, Box<dyn StdError + Send + Sync>>,
    {
        Deserialize(closure)
    }
}

impl<T, F> Deserializer for Deserialize<F>
where
    F: Fn(Option<&[u8]>) -> Result<T, Box<dyn StdError + Send + Sync>>,
{
    type Output = T;

    fn deserialize(
        &self,
        bytes: Option<&[u8]>,
        _: &DeserializeContext<'_>,
    ) -> Result<T, Box<dyn StdError + Send + Sync>> {
        (self.0)(bytes)
    }
}

/// Bytes as they are; null stays null.
#[derive(Debug, Clone, Copy, Default)]
pub struct BytesDeserializer;

impl Deserializer for BytesDeserializer {
    type Output = Option<Vec<u8>>;

    fn deserialize(
        &self,
        bytes: Option<&[u8]>,
        _: &DeserializeContext<'_>,
    ) -> Result<Self::Output, Box<dyn StdError + Send + Sync>> {
        Ok(bytes.map(<[u8]>::to_vec))
    }
}

/// UTF-8 text; null stays null.
#[derive(Debug, Clone, Copy, Default)]
pub struct StringDeserializer;

impl Deserializer for StringDeserializer {
    type Output = Option<String>;

    fn deserialize(
        &self,
        bytes: Option<&[u8]>,
        _: &DeserializeContext<'_>,
    ) -> Result<Self::Output, Box<dyn StdError + Send + Sync>> {
        Ok(bytes.map(std::str::from_utf8).transpose()?.map(str::to_owned))
    }
}

/// A key or value that did not deserialise, and where.
#[derive(Debug)]
pub struct DeserializeError {
    /// Topic.
    pub topic: String,
    /// Partition.
    pub partition: i32,
    /// Offset.
    pub offset: i64,
    /// Whether it is the key.
    pub is_key: bool,
    /// What the deserialiser said.
    pub source: Box<dyn StdError + Send + Sync>,
}

impl fmt::Display for DeserializeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let part = if self.is_key { "key" } else { "value" };
        let DeserializeError { topic, partition, offset, source, .. } = self;
        write!(f, "{part} of {topic}-{partition}@{offset} does not deserialise: {source}")
    }
}

impl StdError for DeserializeError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        Some(self.source.as_ref())
    }
}

/// A record with its key and value, or with what is wrong with them.
#[derive(Debug)]
pub struct TypedShareRecord<'a, K, V> {
    /// The record, to acknowledge it in either case.
    pub record: ShareRecord<'a>,
    /// Key and value.
    pub content: Result<(K, V), DeserializeError>,
}

impl ShareRecords {
    /// The records with their keys and values deserialised, one after the other as they are asked for.
    ///
    /// An error is that of one record; those before and after it are read as if it were not there. What becomes of the
    /// record is for the application to say, by the error:
    ///
    /// - never readable (not the format, fields that are missing): `Reject`, so that it is archived and hinders nobody; keep
    ///   it elsewhere first if it matters, or have the broker do so (dead letter queue, KIP-1191).
    /// - not readable now (a schema registry that does not answer): `Release`, so that it comes again, at once and perhaps
    ///   to another member, until the group's delivery count limit (5 by default, see
    ///   [`delivery_count`](crate::ShareRecord::delivery_count)). Commit and wait a little before the next poll.
    /// - to be tried again here: nothing for the moment, or `Renew` before its
    ///   [lock](crate::ShareRecord::lock_deadline) ends.
    ///
    /// In implicit mode the next poll accepts the record like all others.
    ///
    /// ```no_run
    /// # async fn example(consumer: kafka_share::KafkaShareConsumer) -> kafka_share::Result<()> {
    /// use kafka_share::{AckType, StringDeserializer};
    /// # let records = consumer.poll(std::time::Duration::from_secs(1)).await?;
    /// for typed in records.deserialize(&StringDeserializer, &StringDeserializer) {
    ///     match typed.content {
    ///         Ok((_key, value)) => {
    ///             println!("{value:?}");
    ///             consumer.acknowledge(&typed.record)?;
    ///         }
    ///         Err(error) => {
    ///             eprintln!("{error}");
    ///             // What the deserialiser said decides: here, a connection that failed may be better next time.
    ///             let passing = error.source.is::<std::io::Error>();
    ///             let ack = if passing { AckType::Release } else { AckType::Reject };
    ///             consumer.acknowledge_with(&typed.record, ack)?;
    ///         }
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn deserialize<'a, K: Deserializer, V: Deserializer>(
        &'a self,
        key: &'a K,
        value: &'a V,
    ) -> impl Iterator<Item = TypedShareRecord<'a, K::Output, V::Output>> {
        self.iter().map(move |record| {
            let content = part(&record, key, true, record.key())
                .and_then(|k| Ok((k, part(&record, value, false, record.value())?)));
            TypedShareRecord { record, content }
        })
    }
}

fn part<D: Deserializer>(
    record: &ShareRecord<'_>,
    deserializer: &D,
    is_key: bool,
    bytes: Option<&[u8]>,
) -> Result<D::Output, DeserializeError> {
    let context = DeserializeContext { topic: record.topic(), headers: record.headers(), is_key };
    deserializer.deserialize(bytes, &context).map_err(|source| DeserializeError {
        topic: record.topic().to_owned(),
        partition: record.partition(),
        offset: record.offset(),
        is_key,
        source,
    })
}
