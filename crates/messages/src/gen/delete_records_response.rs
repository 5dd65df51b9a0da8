//! DeleteRecordsResponse (generated from protocol-specs; do not edit).

use crate::{ErrorCode, Message};
use kafka_share_wire::{Reader, Result, Str, TaggedFields, Writer};

/// Gives the new log start offset of each partition.
///
/// Versions 0-2.
#[derive(Debug, Clone, PartialEq)]
pub struct DeleteRecordsResponse {
    /// `ThrottleTimeMs`
    pub throttle_time_ms: i32,
    /// `Topics`
    pub topics: Vec<DeleteRecordsTopicResult>,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for DeleteRecordsResponse {
    fn default() -> Self {
        Self { throttle_time_ms: 0, topics: Vec::new(), tagged: TaggedFields::new() }
    }
}

impl DeleteRecordsResponse {
    pub(crate) fn read(r: &mut Reader, version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.throttle_time_ms = r.i32()?;
        this.topics = r.array(version >= 2, 3, |r| DeleteRecordsTopicResult::read(r, version))?;
        if version >= 2 {
            this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        }
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, version: i16) -> Result<()> {
        w.i32(self.throttle_time_ms);
        w.array_len(self.topics.len(), version >= 2)?;
        for item in &self.topics {
            item.write(w, version)?;
        }
        if version >= 2 {
            self.tagged.write(w, &[])?;
        }
        Ok(())
    }
}

/// Part of [`DeleteRecordsResponse`].
///
/// Versions 0-2.
#[derive(Debug, Clone, PartialEq)]
pub struct DeleteRecordsTopicResult {
    /// `Name`
    pub name: Str,
    /// `Partitions`
    pub partitions: Vec<DeleteRecordsPartitionResult>,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for DeleteRecordsTopicResult {
    fn default() -> Self {
        Self { name: Str::default(), partitions: Vec::new(), tagged: TaggedFields::new() }
    }
}

impl DeleteRecordsTopicResult {
    pub(crate) fn read(r: &mut Reader, version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.name = r.string(version >= 2)?;
        this.partitions = r.array(version >= 2, 14, |r| DeleteRecordsPartitionResult::read(r, version))?;
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

/// Part of [`DeleteRecordsResponse`].
///
/// Versions 0-2.
#[derive(Debug, Clone, PartialEq)]
pub struct DeleteRecordsPartitionResult {
    /// `PartitionIndex`
    pub partition_index: i32,
    /// `LowWatermark`
    pub low_watermark: i64,
    /// `ErrorCode`
    pub error_code: ErrorCode,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for DeleteRecordsPartitionResult {
    fn default() -> Self {
        Self { partition_index: 0, low_watermark: 0, error_code: ErrorCode::NONE, tagged: TaggedFields::new() }
    }
}

impl DeleteRecordsPartitionResult {
    pub(crate) fn read(r: &mut Reader, version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.partition_index = r.i32()?;
        this.low_watermark = r.i64()?;
        this.error_code = r.i16().map(ErrorCode)?;
        if version >= 2 {
            this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        }
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, version: i16) -> Result<()> {
        w.i32(self.partition_index);
        w.i64(self.low_watermark);
        w.i16(self.error_code.0);
        if version >= 2 {
            self.tagged.write(w, &[])?;
        }
        Ok(())
    }
}

impl Message for DeleteRecordsResponse {
    const NAME: &'static str = "DeleteRecordsResponse";
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

    fn throttle_time_ms(&self) -> i32 {
        self.throttle_time_ms
    }
}
