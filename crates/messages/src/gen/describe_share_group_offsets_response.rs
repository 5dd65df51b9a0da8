//! DescribeShareGroupOffsetsResponse (generated from protocol-specs; do not edit).

use crate::{ErrorCode, Message};
use kafka_share_wire::{Reader, Result, Str, TaggedFields, Uuid, Writer};

/// Gives start offset, leader epoch and lag for each share-partition.
///
/// Versions 0-1.
#[derive(Debug, Clone, PartialEq)]
pub struct DescribeShareGroupOffsetsResponse {
    /// Milliseconds the client should stay quiet because a quota was exceeded; 0 if none was.
    pub throttle_time_ms: i32,
    /// Offsets, group by group.
    pub groups: Vec<DescribeShareGroupOffsetsResponseGroup>,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for DescribeShareGroupOffsetsResponse {
    fn default() -> Self {
        Self { throttle_time_ms: 0, groups: Vec::new(), tagged: TaggedFields::new() }
    }
}

impl DescribeShareGroupOffsetsResponse {
    pub(crate) fn read(r: &mut Reader, version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.throttle_time_ms = r.i32()?;
        this.groups = r.array(true, 6, |r| DescribeShareGroupOffsetsResponseGroup::read(r, version))?;
        this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, version: i16) -> Result<()> {
        w.i32(self.throttle_time_ms);
        w.array_len(self.groups.len(), true)?;
        for item in &self.groups {
            item.write(w, version)?;
        }
        self.tagged.write(w, &[])?;
        Ok(())
    }
}

/// Offsets, group by group.
///
/// Versions 0-1.
#[derive(Debug, Clone, PartialEq)]
pub struct DescribeShareGroupOffsetsResponseGroup {
    /// Name of the share group.
    pub group_id: Str,
    /// Offsets, topic by topic.
    pub topics: Vec<DescribeShareGroupOffsetsResponseTopic>,
    /// Error of this level; 0 means none.
    pub error_code: ErrorCode,
    /// Explanation of the error for people; null when there is nothing to add.
    pub error_message: Option<Str>,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for DescribeShareGroupOffsetsResponseGroup {
    fn default() -> Self {
        Self {
            group_id: Str::default(),
            topics: Vec::new(),
            error_code: ErrorCode::NONE,
            error_message: None,
            tagged: TaggedFields::new(),
        }
    }
}

impl DescribeShareGroupOffsetsResponseGroup {
    pub(crate) fn read(r: &mut Reader, version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.group_id = r.string(true)?;
        this.topics = r.array(true, 19, |r| DescribeShareGroupOffsetsResponseTopic::read(r, version))?;
        this.error_code = r.i16().map(ErrorCode)?;
        this.error_message = r.nullable_string(true)?;
        this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, version: i16) -> Result<()> {
        w.string(&self.group_id, true)?;
        w.array_len(self.topics.len(), true)?;
        for item in &self.topics {
            item.write(w, version)?;
        }
        w.i16(self.error_code.0);
        match &self.error_message {
            Some(value) => {
                w.string(value, true)?;
            }
            None => {
                w.null_string(true);
            }
        }
        self.tagged.write(w, &[])?;
        Ok(())
    }
}

/// Offsets, topic by topic.
///
/// Versions 0-1.
#[derive(Debug, Clone, PartialEq)]
pub struct DescribeShareGroupOffsetsResponseTopic {
    /// Name of the topic.
    pub topic_name: Str,
    /// UUID of the topic.
    pub topic_id: Uuid,
    /// Offsets, partition by partition.
    pub partitions: Vec<DescribeShareGroupOffsetsResponsePartition>,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for DescribeShareGroupOffsetsResponseTopic {
    fn default() -> Self {
        Self { topic_name: Str::default(), topic_id: Uuid::ZERO, partitions: Vec::new(), tagged: TaggedFields::new() }
    }
}

impl DescribeShareGroupOffsetsResponseTopic {
    pub(crate) fn read(r: &mut Reader, version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.topic_name = r.string(true)?;
        this.topic_id = r.uuid()?;
        this.partitions = r.array(true, 20, |r| DescribeShareGroupOffsetsResponsePartition::read(r, version))?;
        this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, version: i16) -> Result<()> {
        w.string(&self.topic_name, true)?;
        w.uuid(self.topic_id);
        w.array_len(self.partitions.len(), true)?;
        for item in &self.partitions {
            item.write(w, version)?;
        }
        self.tagged.write(w, &[])?;
        Ok(())
    }
}

/// Offsets, partition by partition.
///
/// Versions 0-1.
#[derive(Debug, Clone, PartialEq)]
pub struct DescribeShareGroupOffsetsResponsePartition {
    /// Number of the partition inside its topic.
    pub partition_index: i32,
    /// First offset that the group has not finished with (SPSO).
    pub start_offset: i64,
    /// Term of the partition's leader when the offset was stored.
    pub leader_epoch: i32,
    /// Records still to be finished by the group, -1 if unknown (KIP-1226). (versions 1)
    pub lag: i64,
    /// Error of this level; 0 means none.
    pub error_code: ErrorCode,
    /// Explanation of the error for people; null when there is nothing to add.
    pub error_message: Option<Str>,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for DescribeShareGroupOffsetsResponsePartition {
    fn default() -> Self {
        Self {
            partition_index: 0,
            start_offset: 0,
            leader_epoch: 0,
            lag: -1,
            error_code: ErrorCode::NONE,
            error_message: None,
            tagged: TaggedFields::new(),
        }
    }
}

impl DescribeShareGroupOffsetsResponsePartition {
    pub(crate) fn read(r: &mut Reader, version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.partition_index = r.i32()?;
        this.start_offset = r.i64()?;
        this.leader_epoch = r.i32()?;
        if version >= 1 {
            this.lag = r.i64()?;
        }
        this.error_code = r.i16().map(ErrorCode)?;
        this.error_message = r.nullable_string(true)?;
        this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, version: i16) -> Result<()> {
        w.i32(self.partition_index);
        w.i64(self.start_offset);
        w.i32(self.leader_epoch);
        if version >= 1 {
            w.i64(self.lag);
        }
        w.i16(self.error_code.0);
        match &self.error_message {
            Some(value) => {
                w.string(value, true)?;
            }
            None => {
                w.null_string(true);
            }
        }
        self.tagged.write(w, &[])?;
        Ok(())
    }
}

impl Message for DescribeShareGroupOffsetsResponse {
    const NAME: &'static str = "DescribeShareGroupOffsetsResponse";
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

    fn throttle_time_ms(&self) -> i32 {
        self.throttle_time_ms
    }
}
