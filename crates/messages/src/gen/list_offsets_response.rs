//! ListOffsetsResponse (generated from protocol-specs; do not edit).

use crate::{ErrorCode, Message};
use kafka_share_wire::{ErrorKind, Reader, Result, Str, TaggedFields, Writer};

/// Gives the offset, time and leader epoch found for each partition.
///
/// Versions 1-11.
#[derive(Debug, Clone, PartialEq)]
pub struct ListOffsetsResponse {
    /// `ThrottleTimeMs` (versions 2-11)
    pub throttle_time_ms: i32,
    /// `Topics`
    pub topics: Vec<ListOffsetsTopicResponse>,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for ListOffsetsResponse {
    fn default() -> Self {
        Self { throttle_time_ms: 0, topics: Vec::new(), tagged: TaggedFields::new() }
    }
}

impl ListOffsetsResponse {
    pub(crate) fn read(r: &mut Reader, version: i16) -> Result<Self> {
        let mut this = Self::default();
        if version >= 2 {
            this.throttle_time_ms = r.i32()?;
        }
        this.topics = r.array(version >= 6, 3, |r| ListOffsetsTopicResponse::read(r, version))?;
        if version >= 6 {
            this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        }
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, version: i16) -> Result<()> {
        if version >= 2 {
            w.i32(self.throttle_time_ms);
        }
        w.array_len(self.topics.len(), version >= 6)?;
        for item in &self.topics {
            item.write(w, version)?;
        }
        if version >= 6 {
            self.tagged.write(w, &[])?;
        }
        Ok(())
    }
}

/// Part of [`ListOffsetsResponse`].
///
/// Versions 1-11.
#[derive(Debug, Clone, PartialEq)]
pub struct ListOffsetsTopicResponse {
    /// `Name`
    pub name: Str,
    /// `Partitions`
    pub partitions: Vec<ListOffsetsPartitionResponse>,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for ListOffsetsTopicResponse {
    fn default() -> Self {
        Self { name: Str::default(), partitions: Vec::new(), tagged: TaggedFields::new() }
    }
}

impl ListOffsetsTopicResponse {
    pub(crate) fn read(r: &mut Reader, version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.name = r.string(version >= 6)?;
        this.partitions = r.array(version >= 6, 22, |r| ListOffsetsPartitionResponse::read(r, version))?;
        if version >= 6 {
            this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        }
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, version: i16) -> Result<()> {
        w.string(&self.name, version >= 6)?;
        w.array_len(self.partitions.len(), version >= 6)?;
        for item in &self.partitions {
            item.write(w, version)?;
        }
        if version >= 6 {
            self.tagged.write(w, &[])?;
        }
        Ok(())
    }
}

/// Part of [`ListOffsetsResponse`].
///
/// Versions 1-11.
#[derive(Debug, Clone, PartialEq)]
pub struct ListOffsetsPartitionResponse {
    /// `PartitionIndex`
    pub partition_index: i32,
    /// `ErrorCode`
    pub error_code: ErrorCode,
    /// `Timestamp`
    pub timestamp: i64,
    /// `Offset`
    pub offset: i64,
    /// `LeaderEpoch` (versions 4-11)
    pub leader_epoch: i32,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for ListOffsetsPartitionResponse {
    fn default() -> Self {
        Self {
            partition_index: 0,
            error_code: ErrorCode::NONE,
            timestamp: -1,
            offset: -1,
            leader_epoch: -1,
            tagged: TaggedFields::new(),
        }
    }
}

impl ListOffsetsPartitionResponse {
    pub(crate) fn read(r: &mut Reader, version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.partition_index = r.i32()?;
        this.error_code = r.i16().map(ErrorCode)?;
        this.timestamp = r.i64()?;
        this.offset = r.i64()?;
        if version >= 4 {
            this.leader_epoch = r.i32()?;
        }
        if version >= 6 {
            this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        }
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, version: i16) -> Result<()> {
        w.i32(self.partition_index);
        w.i16(self.error_code.0);
        w.i64(self.timestamp);
        w.i64(self.offset);
        if version >= 4 {
            w.i32(self.leader_epoch);
        } else {
            if self.leader_epoch != -1 {
                return Err(ErrorKind::FieldNotInVersion {
                    field: "ListOffsetsPartitionResponse.LeaderEpoch",
                    version,
                }
                .at(w.len()));
            }
        }
        if version >= 6 {
            self.tagged.write(w, &[])?;
        }
        Ok(())
    }
}

impl Message for ListOffsetsResponse {
    const NAME: &'static str = "ListOffsetsResponse";
    const MIN_VERSION: i16 = 1;
    const MAX_VERSION: i16 = 11;
    const FLEXIBLE_FROM: i16 = 6;

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
