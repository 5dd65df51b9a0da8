//! ListOffsetsRequest (generated from protocol-specs; do not edit).

use crate::{Message, Request};
use kafka_share_wire::{ErrorKind, Reader, Result, Str, TaggedFields, Writer};

/// Asks which offset stands at the start, at the end or at a time of a partition.
///
/// Versions 1-11.
#[derive(Debug, Clone, PartialEq)]
pub struct ListOffsetsRequest {
    /// `ReplicaId`
    pub replica_id: i32,
    /// `IsolationLevel` (versions 2-11)
    pub isolation_level: i8,
    /// `Topics`
    pub topics: Vec<ListOffsetsTopic>,
    /// `TimeoutMs` (versions 10-11)
    pub timeout_ms: i32,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for ListOffsetsRequest {
    fn default() -> Self {
        Self { replica_id: 0, isolation_level: 0, topics: Vec::new(), timeout_ms: 0, tagged: TaggedFields::new() }
    }
}

impl ListOffsetsRequest {
    pub(crate) fn read(r: &mut Reader, version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.replica_id = r.i32()?;
        if version >= 2 {
            this.isolation_level = r.i8()?;
        }
        this.topics = r.array(version >= 6, 3, |r| ListOffsetsTopic::read(r, version))?;
        if version >= 10 {
            this.timeout_ms = r.i32()?;
        }
        if version >= 6 {
            this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        }
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, version: i16) -> Result<()> {
        w.i32(self.replica_id);
        if version >= 2 {
            w.i8(self.isolation_level);
        } else {
            if self.isolation_level != 0 {
                return Err(
                    ErrorKind::FieldNotInVersion { field: "ListOffsetsRequest.IsolationLevel", version }.at(w.len())
                );
            }
        }
        w.array_len(self.topics.len(), version >= 6)?;
        for item in &self.topics {
            item.write(w, version)?;
        }
        if version >= 10 {
            w.i32(self.timeout_ms);
        }
        if version >= 6 {
            self.tagged.write(w, &[])?;
        }
        Ok(())
    }
}

/// Part of [`ListOffsetsRequest`].
///
/// Versions 1-11.
#[derive(Debug, Clone, PartialEq)]
pub struct ListOffsetsTopic {
    /// `Name`
    pub name: Str,
    /// `Partitions`
    pub partitions: Vec<ListOffsetsPartition>,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for ListOffsetsTopic {
    fn default() -> Self {
        Self { name: Str::default(), partitions: Vec::new(), tagged: TaggedFields::new() }
    }
}

impl ListOffsetsTopic {
    pub(crate) fn read(r: &mut Reader, version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.name = r.string(version >= 6)?;
        this.partitions = r.array(version >= 6, 12, |r| ListOffsetsPartition::read(r, version))?;
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

/// Part of [`ListOffsetsRequest`].
///
/// Versions 1-11.
#[derive(Debug, Clone, PartialEq)]
pub struct ListOffsetsPartition {
    /// `PartitionIndex`
    pub partition_index: i32,
    /// `CurrentLeaderEpoch` (versions 4-11)
    pub current_leader_epoch: i32,
    /// `Timestamp`
    pub timestamp: i64,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for ListOffsetsPartition {
    fn default() -> Self {
        Self { partition_index: 0, current_leader_epoch: -1, timestamp: 0, tagged: TaggedFields::new() }
    }
}

impl ListOffsetsPartition {
    pub(crate) fn read(r: &mut Reader, version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.partition_index = r.i32()?;
        if version >= 4 {
            this.current_leader_epoch = r.i32()?;
        }
        this.timestamp = r.i64()?;
        if version >= 6 {
            this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        }
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, version: i16) -> Result<()> {
        w.i32(self.partition_index);
        if version >= 4 {
            w.i32(self.current_leader_epoch);
        }
        w.i64(self.timestamp);
        if version >= 6 {
            self.tagged.write(w, &[])?;
        }
        Ok(())
    }
}

impl Message for ListOffsetsRequest {
    const NAME: &'static str = "ListOffsetsRequest";
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
}

impl Request for ListOffsetsRequest {
    type Response = super::list_offsets_response::ListOffsetsResponse;
    const KEY: crate::ApiKey = crate::ApiKey(2);
}
