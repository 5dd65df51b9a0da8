//! DescribeProducersRequest (generated from protocol-specs; do not edit).

use crate::{Message, Request};
use kafka_share_wire::{Reader, Result, Str, TaggedFields, Writer};

/// Asks a partition's leader which producers it remembers.
///
/// Versions 0.
#[derive(Debug, Clone, PartialEq)]
pub struct DescribeProducersRequest {
    /// Partitions asked about, by topic.
    pub topics: Vec<TopicRequest>,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for DescribeProducersRequest {
    fn default() -> Self {
        Self { topics: Vec::new(), tagged: TaggedFields::new() }
    }
}

impl DescribeProducersRequest {
    pub(crate) fn read(r: &mut Reader, version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.topics = r.array(true, 3, |r| TopicRequest::read(r, version))?;
        this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, version: i16) -> Result<()> {
        w.array_len(self.topics.len(), true)?;
        for item in &self.topics {
            item.write(w, version)?;
        }
        self.tagged.write(w, &[])?;
        Ok(())
    }
}

/// Partitions asked about, by topic.
///
/// Versions 0.
#[derive(Debug, Clone, PartialEq)]
pub struct TopicRequest {
    /// Name of the topic.
    pub name: Str,
    /// Numbers of the partitions inside their topic.
    pub partition_indexes: Vec<i32>,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for TopicRequest {
    fn default() -> Self {
        Self { name: Str::default(), partition_indexes: Vec::new(), tagged: TaggedFields::new() }
    }
}

impl TopicRequest {
    pub(crate) fn read(r: &mut Reader, _version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.name = r.string(true)?;
        this.partition_indexes = r.array(true, 4, |r| r.i32())?;
        this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, _version: i16) -> Result<()> {
        w.string(&self.name, true)?;
        w.array_len(self.partition_indexes.len(), true)?;
        for item in &self.partition_indexes {
            w.i32(*item);
        }
        self.tagged.write(w, &[])?;
        Ok(())
    }
}

impl Message for DescribeProducersRequest {
    const NAME: &'static str = "DescribeProducersRequest";
    const MIN_VERSION: i16 = 0;
    const MAX_VERSION: i16 = 0;
    const FLEXIBLE_FROM: i16 = 0;

    fn decode(r: &mut Reader, version: i16) -> Result<Self> {
        Self::check_version(version)?;
        Self::read(r, version)
    }

    fn encode(&self, w: &mut Writer, version: i16) -> Result<()> {
        Self::check_version(version)?;
        self.write(w, version)
    }
}

impl Request for DescribeProducersRequest {
    type Response = super::describe_producers_response::DescribeProducersResponse;
    const KEY: crate::ApiKey = crate::ApiKey(61);
}
