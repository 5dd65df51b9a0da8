//! ProduceRequest (generated from protocol-specs; do not edit).

use crate::{Message, Request};
use bytes::Bytes;
use kafka_share_wire::{Reader, Result, Str, TaggedFields, Uuid, Writer};

/// Appends record batches to partitions this broker leads, with the durability the producer asks for.
///
/// Versions 3-13.
#[derive(Debug, Clone, PartialEq)]
pub struct ProduceRequest {
    /// `TransactionalId`
    pub transactional_id: Option<Str>,
    /// `Acks`
    pub acks: i16,
    /// `TimeoutMs`
    pub timeout_ms: i32,
    /// `TopicData`
    pub topic_data: Vec<TopicProduceData>,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for ProduceRequest {
    fn default() -> Self {
        Self { transactional_id: None, acks: 0, timeout_ms: 0, topic_data: Vec::new(), tagged: TaggedFields::new() }
    }
}

impl ProduceRequest {
    pub(crate) fn read(r: &mut Reader, version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.transactional_id = r.nullable_string(version >= 9)?;
        this.acks = r.i16()?;
        this.timeout_ms = r.i32()?;
        this.topic_data = r.array(version >= 9, 3, |r| TopicProduceData::read(r, version))?;
        if version >= 9 {
            this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        }
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, version: i16) -> Result<()> {
        match &self.transactional_id {
            Some(value) => {
                w.string(value, version >= 9)?;
            }
            None => {
                w.null_string(version >= 9);
            }
        }
        w.i16(self.acks);
        w.i32(self.timeout_ms);
        w.array_len(self.topic_data.len(), version >= 9)?;
        for item in &self.topic_data {
            item.write(w, version)?;
        }
        if version >= 9 {
            self.tagged.write(w, &[])?;
        }
        Ok(())
    }
}

/// Part of [`ProduceRequest`].
///
/// Versions 3-13.
#[derive(Debug, Clone, PartialEq)]
pub struct TopicProduceData {
    /// `Name` (versions 3-12)
    pub name: Str,
    /// `TopicId` (versions 13)
    pub topic_id: Uuid,
    /// `PartitionData`
    pub partition_data: Vec<PartitionProduceData>,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for TopicProduceData {
    fn default() -> Self {
        Self { name: Str::default(), topic_id: Uuid::ZERO, partition_data: Vec::new(), tagged: TaggedFields::new() }
    }
}

impl TopicProduceData {
    pub(crate) fn read(r: &mut Reader, version: i16) -> Result<Self> {
        let mut this = Self::default();
        if version <= 12 {
            this.name = r.string(version >= 9)?;
        }
        if version >= 13 {
            this.topic_id = r.uuid()?;
        }
        this.partition_data = r.array(version >= 9, 6, |r| PartitionProduceData::read(r, version))?;
        if version >= 9 {
            this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        }
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, version: i16) -> Result<()> {
        if version <= 12 {
            w.string(&self.name, version >= 9)?;
        }
        if version >= 13 {
            w.uuid(self.topic_id);
        }
        w.array_len(self.partition_data.len(), version >= 9)?;
        for item in &self.partition_data {
            item.write(w, version)?;
        }
        if version >= 9 {
            self.tagged.write(w, &[])?;
        }
        Ok(())
    }
}

/// Part of [`ProduceRequest`].
///
/// Versions 3-13.
#[derive(Debug, Clone, PartialEq)]
pub struct PartitionProduceData {
    /// `Index`
    pub index: i32,
    /// `Records`
    pub records: Option<Bytes>,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for PartitionProduceData {
    fn default() -> Self {
        Self { index: 0, records: None, tagged: TaggedFields::new() }
    }
}

impl PartitionProduceData {
    pub(crate) fn read(r: &mut Reader, version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.index = r.i32()?;
        this.records = r.nullable_bytes(version >= 9)?;
        if version >= 9 {
            this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        }
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, version: i16) -> Result<()> {
        w.i32(self.index);
        match &self.records {
            Some(value) => {
                w.bytes(value, version >= 9)?;
            }
            None => {
                w.null_array(version >= 9);
            }
        }
        if version >= 9 {
            self.tagged.write(w, &[])?;
        }
        Ok(())
    }
}

impl Message for ProduceRequest {
    const NAME: &'static str = "ProduceRequest";
    const MIN_VERSION: i16 = 3;
    const MAX_VERSION: i16 = 13;
    const FLEXIBLE_FROM: i16 = 9;

    fn decode(r: &mut Reader, version: i16) -> Result<Self> {
        Self::check_version(version)?;
        Self::read(r, version)
    }

    fn encode(&self, w: &mut Writer, version: i16) -> Result<()> {
        Self::check_version(version)?;
        self.write(w, version)
    }
}

impl Request for ProduceRequest {
    type Response = super::produce_response::ProduceResponse;
    const KEY: crate::ApiKey = crate::ApiKey(0);
}
