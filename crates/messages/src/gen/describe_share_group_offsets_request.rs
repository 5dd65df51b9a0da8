//! DescribeShareGroupOffsetsRequest (generated from protocol-specs; do not edit).

use crate::{Message, Request};
use kafka_share_wire::{Reader, Result, Str, TaggedFields, Writer};

/// Asks for the start offset and the lag of share-partitions of groups.
///
/// Versions 0-1.
#[derive(Debug, Clone, PartialEq)]
pub struct DescribeShareGroupOffsetsRequest {
    /// Share groups asked about.
    pub groups: Vec<DescribeShareGroupOffsetsRequestGroup>,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for DescribeShareGroupOffsetsRequest {
    fn default() -> Self {
        Self { groups: Vec::new(), tagged: TaggedFields::new() }
    }
}

impl DescribeShareGroupOffsetsRequest {
    pub(crate) fn read(r: &mut Reader, version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.groups = r.array(true, 3, |r| DescribeShareGroupOffsetsRequestGroup::read(r, version))?;
        this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, version: i16) -> Result<()> {
        w.array_len(self.groups.len(), true)?;
        for item in &self.groups {
            item.write(w, version)?;
        }
        self.tagged.write(w, &[])?;
        Ok(())
    }
}

/// Share groups asked about.
///
/// Versions 0-1.
#[derive(Debug, Clone, PartialEq)]
pub struct DescribeShareGroupOffsetsRequestGroup {
    /// Name of the share group.
    pub group_id: Str,
    /// Partitions asked about, by topic; null for all the group has.
    pub topics: Option<Vec<DescribeShareGroupOffsetsRequestTopic>>,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for DescribeShareGroupOffsetsRequestGroup {
    fn default() -> Self {
        Self { group_id: Str::default(), topics: Some(Vec::new()), tagged: TaggedFields::new() }
    }
}

impl DescribeShareGroupOffsetsRequestGroup {
    pub(crate) fn read(r: &mut Reader, version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.group_id = r.string(true)?;
        this.topics = r.nullable_array(true, 3, |r| DescribeShareGroupOffsetsRequestTopic::read(r, version))?;
        this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, version: i16) -> Result<()> {
        w.string(&self.group_id, true)?;
        match &self.topics {
            Some(value) => {
                w.array_len(value.len(), true)?;
                for item in value {
                    item.write(w, version)?;
                }
            }
            None => {
                w.null_array(true);
            }
        }
        self.tagged.write(w, &[])?;
        Ok(())
    }
}

/// Partitions asked about, by topic; null for all the group has.
///
/// Versions 0-1.
#[derive(Debug, Clone, PartialEq)]
pub struct DescribeShareGroupOffsetsRequestTopic {
    /// Name of the topic.
    pub topic_name: Str,
    /// Partitions of the topic.
    pub partitions: Vec<i32>,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for DescribeShareGroupOffsetsRequestTopic {
    fn default() -> Self {
        Self { topic_name: Str::default(), partitions: Vec::new(), tagged: TaggedFields::new() }
    }
}

impl DescribeShareGroupOffsetsRequestTopic {
    pub(crate) fn read(r: &mut Reader, _version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.topic_name = r.string(true)?;
        this.partitions = r.array(true, 4, |r| r.i32())?;
        this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, _version: i16) -> Result<()> {
        w.string(&self.topic_name, true)?;
        w.array_len(self.partitions.len(), true)?;
        for item in &self.partitions {
            w.i32(*item);
        }
        self.tagged.write(w, &[])?;
        Ok(())
    }
}

impl Message for DescribeShareGroupOffsetsRequest {
    const NAME: &'static str = "DescribeShareGroupOffsetsRequest";
    const MIN_VERSION: i16 = 0;
    const MAX_VERSION: i16 = 1;
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

impl Request for DescribeShareGroupOffsetsRequest {
    type Response = super::describe_share_group_offsets_response::DescribeShareGroupOffsetsResponse;
    const KEY: crate::ApiKey = crate::ApiKey(90);
}
