//! DescribeTopicPartitionsRequest (generated from protocol-specs; do not edit).

use crate::{Message, Request};
use kafka_share_wire::{Reader, Result, Str, TaggedFields, Writer};

/// Pages through the partitions of topics, with a cursor for the next page.
///
/// Versions 0.
#[derive(Debug, Clone, PartialEq)]
pub struct DescribeTopicPartitionsRequest {
    /// `Topics`
    pub topics: Vec<TopicRequest>,
    /// `ResponsePartitionLimit`
    pub response_partition_limit: i32,
    /// `Cursor`
    pub cursor: Option<Cursor>,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for DescribeTopicPartitionsRequest {
    fn default() -> Self {
        Self { topics: Vec::new(), response_partition_limit: 2000, cursor: None, tagged: TaggedFields::new() }
    }
}

impl DescribeTopicPartitionsRequest {
    pub(crate) fn read(r: &mut Reader, version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.topics = r.array(true, 2, |r| TopicRequest::read(r, version))?;
        this.response_partition_limit = r.i32()?;
        this.cursor = if r.struct_marker()? { Some(Cursor::read(r, version)?) } else { None };
        this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, version: i16) -> Result<()> {
        w.array_len(self.topics.len(), true)?;
        for item in &self.topics {
            item.write(w, version)?;
        }
        w.i32(self.response_partition_limit);
        match &self.cursor {
            Some(value) => {
                w.struct_marker(true);
                value.write(w, version)?;
            }
            None => {
                w.struct_marker(false);
            }
        }
        self.tagged.write(w, &[])?;
        Ok(())
    }
}

/// Part of [`DescribeTopicPartitionsRequest`].
///
/// Versions 0.
#[derive(Debug, Clone, PartialEq)]
pub struct TopicRequest {
    /// `Name`
    pub name: Str,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for TopicRequest {
    fn default() -> Self {
        Self { name: Str::default(), tagged: TaggedFields::new() }
    }
}

impl TopicRequest {
    pub(crate) fn read(r: &mut Reader, _version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.name = r.string(true)?;
        this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, _version: i16) -> Result<()> {
        w.string(&self.name, true)?;
        self.tagged.write(w, &[])?;
        Ok(())
    }
}

/// Part of [`DescribeTopicPartitionsRequest`].
///
/// Versions 0.
#[derive(Debug, Clone, PartialEq)]
pub struct Cursor {
    /// `TopicName`
    pub topic_name: Str,
    /// `PartitionIndex`
    pub partition_index: i32,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for Cursor {
    fn default() -> Self {
        Self { topic_name: Str::default(), partition_index: 0, tagged: TaggedFields::new() }
    }
}

impl Cursor {
    pub(crate) fn read(r: &mut Reader, _version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.topic_name = r.string(true)?;
        this.partition_index = r.i32()?;
        this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, _version: i16) -> Result<()> {
        w.string(&self.topic_name, true)?;
        w.i32(self.partition_index);
        self.tagged.write(w, &[])?;
        Ok(())
    }
}

impl Message for DescribeTopicPartitionsRequest {
    const NAME: &'static str = "DescribeTopicPartitionsRequest";
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

impl Request for DescribeTopicPartitionsRequest {
    type Response = super::describe_topic_partitions_response::DescribeTopicPartitionsResponse;
    const KEY: crate::ApiKey = crate::ApiKey(75);
}
