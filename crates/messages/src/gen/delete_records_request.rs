//! DeleteRecordsRequest (generated from protocol-specs; do not edit).

use crate::{Message, Request};
use kafka_share_wire::{Reader, Result, Str, TaggedFields, Writer};

/// Drops the records of partitions below an offset by moving the log start.
///
/// Versions 0-2.
#[derive(Debug, Clone, PartialEq)]
pub struct DeleteRecordsRequest {
    /// `Topics`
    pub topics: Vec<DeleteRecordsTopic>,
    /// `TimeoutMs`
    pub timeout_ms: i32,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for DeleteRecordsRequest {
    fn default() -> Self {
        Self { topics: Vec::new(), timeout_ms: 0, tagged: TaggedFields::new() }
    }
}

impl DeleteRecordsRequest {
    pub(crate) fn read(r: &mut Reader, version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.topics = r.array(version >= 2, 3, |r| DeleteRecordsTopic::read(r, version))?;
        this.timeout_ms = r.i32()?;
        if version >= 2 {
            this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        }
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, version: i16) -> Result<()> {
        w.array_len(self.topics.len(), version >= 2)?;
        for item in &self.topics {
            item.write(w, version)?;
        }
        w.i32(self.timeout_ms);
        if version >= 2 {
            self.tagged.write(w, &[])?;
        }
        Ok(())
    }
}

/// Part of [`DeleteRecordsRequest`].
///
/// Versions 0-2.
#[derive(Debug, Clone, PartialEq)]
pub struct DeleteRecordsTopic {
    /// `Name`
    pub name: Str,
    /// `Partitions`
    pub partitions: Vec<DeleteRecordsPartition>,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for DeleteRecordsTopic {
    fn default() -> Self {
        Self { name: Str::default(), partitions: Vec::new(), tagged: TaggedFields::new() }
    }
}

impl DeleteRecordsTopic {
    pub(crate) fn read(r: &mut Reader, version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.name = r.string(version >= 2)?;
        this.partitions = r.array(version >= 2, 12, |r| DeleteRecordsPartition::read(r, version))?;
        if version >= 2 {
            this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        }
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, version: i16) -> Result<()> {
        w.string(&self.name, version >= 2)?;
        w.array_len(self.partitions.len(), version >= 2)?;
        for item in &self.partitions {
            item.write(w, version)?;
        }
        if version >= 2 {
            self.tagged.write(w, &[])?;
        }
        Ok(())
    }
}

/// Part of [`DeleteRecordsRequest`].
///
/// Versions 0-2.
#[derive(Debug, Clone, PartialEq)]
pub struct DeleteRecordsPartition {
    /// `PartitionIndex`
    pub partition_index: i32,
    /// `Offset`
    pub offset: i64,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for DeleteRecordsPartition {
    fn default() -> Self {
        Self { partition_index: 0, offset: 0, tagged: TaggedFields::new() }
    }
}

impl DeleteRecordsPartition {
    pub(crate) fn read(r: &mut Reader, version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.partition_index = r.i32()?;
        this.offset = r.i64()?;
        if version >= 2 {
            this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        }
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, version: i16) -> Result<()> {
        w.i32(self.partition_index);
        w.i64(self.offset);
        if version >= 2 {
            self.tagged.write(w, &[])?;
        }
        Ok(())
    }
}

impl Message for DeleteRecordsRequest {
    const NAME: &'static str = "DeleteRecordsRequest";
    const MIN_VERSION: i16 = 0;
    const MAX_VERSION: i16 = 2;
    const FLEXIBLE_FROM: i16 = 2;

    fn decode(r: &mut Reader, version: i16) -> Result<Self> {
        Self::check_version(version)?;
        Self::read(r, version)
    }

    fn encode(&self, w: &mut Writer, version: i16) -> Result<()> {
        Self::check_version(version)?;
        self.write(w, version)
    }
}

impl Request for DeleteRecordsRequest {
    type Response = super::delete_records_response::DeleteRecordsResponse;
    const KEY: crate::ApiKey = crate::ApiKey(21);
}
