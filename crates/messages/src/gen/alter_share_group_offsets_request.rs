//! AlterShareGroupOffsetsRequest (generated from protocol-specs; do not edit).

use crate::{Message, Request};
use kafka_share_wire::{Reader, Result, Str, TaggedFields, Writer};

/// Moves the start offset of share-partitions of an empty share group.
///
/// Versions 0.
#[derive(Debug, Clone, PartialEq)]
pub struct AlterShareGroupOffsetsRequest {
    /// Name of the share group.
    pub group_id: Str,
    /// Partitions to move, by topic.
    pub topics: Vec<AlterShareGroupOffsetsRequestTopic>,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for AlterShareGroupOffsetsRequest {
    fn default() -> Self {
        Self { group_id: Str::default(), topics: Vec::new(), tagged: TaggedFields::new() }
    }
}

impl AlterShareGroupOffsetsRequest {
    pub(crate) fn read(r: &mut Reader, version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.group_id = r.string(true)?;
        this.topics = r.array(true, 3, |r| AlterShareGroupOffsetsRequestTopic::read(r, version))?;
        this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, version: i16) -> Result<()> {
        w.string(&self.group_id, true)?;
        w.array_len(self.topics.len(), true)?;
        for item in &self.topics {
            item.write(w, version)?;
        }
        self.tagged.write(w, &[])?;
        Ok(())
    }
}

/// Partitions to move, by topic.
///
/// Versions 0.
#[derive(Debug, Clone, PartialEq)]
pub struct AlterShareGroupOffsetsRequestTopic {
    /// Name of the topic.
    pub topic_name: Str,
    /// Partitions to move.
    pub partitions: Vec<AlterShareGroupOffsetsRequestPartition>,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for AlterShareGroupOffsetsRequestTopic {
    fn default() -> Self {
        Self { topic_name: Str::default(), partitions: Vec::new(), tagged: TaggedFields::new() }
    }
}

impl AlterShareGroupOffsetsRequestTopic {
    pub(crate) fn read(r: &mut Reader, version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.topic_name = r.string(true)?;
        this.partitions = r.array(true, 13, |r| AlterShareGroupOffsetsRequestPartition::read(r, version))?;
        this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, version: i16) -> Result<()> {
        w.string(&self.topic_name, true)?;
        w.array_len(self.partitions.len(), true)?;
        for item in &self.partitions {
            item.write(w, version)?;
        }
        self.tagged.write(w, &[])?;
        Ok(())
    }
}

/// Partitions to move.
///
/// Versions 0.
#[derive(Debug, Clone, PartialEq)]
pub struct AlterShareGroupOffsetsRequestPartition {
    /// Number of the partition inside its topic.
    pub partition_index: i32,
    /// Offset from which the group is to consume.
    pub start_offset: i64,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for AlterShareGroupOffsetsRequestPartition {
    fn default() -> Self {
        Self { partition_index: 0, start_offset: 0, tagged: TaggedFields::new() }
    }
}

impl AlterShareGroupOffsetsRequestPartition {
    pub(crate) fn read(r: &mut Reader, _version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.partition_index = r.i32()?;
        this.start_offset = r.i64()?;
        this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, _version: i16) -> Result<()> {
        w.i32(self.partition_index);
        w.i64(self.start_offset);
        self.tagged.write(w, &[])?;
        Ok(())
    }
}

impl Message for AlterShareGroupOffsetsRequest {
    const NAME: &'static str = "AlterShareGroupOffsetsRequest";
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

impl Request for AlterShareGroupOffsetsRequest {
    type Response = super::alter_share_group_offsets_response::AlterShareGroupOffsetsResponse;
    const KEY: crate::ApiKey = crate::ApiKey(91);
}
