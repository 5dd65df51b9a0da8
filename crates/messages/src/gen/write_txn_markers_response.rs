//! WriteTxnMarkersResponse (generated from protocol-specs; do not edit).

use crate::{ErrorCode, Message};
use kafka_share_wire::{Reader, Result, Str, TaggedFields, Writer};

/// Reports for each partition whether the marker was written.
///
/// Versions 1-2.
#[derive(Debug, Clone, PartialEq)]
pub struct WriteTxnMarkersResponse {
    /// Outcome, transaction by transaction.
    pub markers: Vec<WritableTxnMarkerResult>,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for WriteTxnMarkersResponse {
    fn default() -> Self {
        Self { markers: Vec::new(), tagged: TaggedFields::new() }
    }
}

impl WriteTxnMarkersResponse {
    pub(crate) fn read(r: &mut Reader, version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.markers = r.array(true, 10, |r| WritableTxnMarkerResult::read(r, version))?;
        this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, version: i16) -> Result<()> {
        w.array_len(self.markers.len(), true)?;
        for item in &self.markers {
            item.write(w, version)?;
        }
        self.tagged.write(w, &[])?;
        Ok(())
    }
}

/// Outcome, transaction by transaction.
///
/// Versions 1-2.
#[derive(Debug, Clone, PartialEq)]
pub struct WritableTxnMarkerResult {
    /// Number the coordinator gave to the producer.
    pub producer_id: i64,
    /// Outcome, topic by topic.
    pub topics: Vec<WritableTxnMarkerTopicResult>,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for WritableTxnMarkerResult {
    fn default() -> Self {
        Self { producer_id: 0, topics: Vec::new(), tagged: TaggedFields::new() }
    }
}

impl WritableTxnMarkerResult {
    pub(crate) fn read(r: &mut Reader, version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.producer_id = r.i64()?;
        this.topics = r.array(true, 3, |r| WritableTxnMarkerTopicResult::read(r, version))?;
        this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, version: i16) -> Result<()> {
        w.i64(self.producer_id);
        w.array_len(self.topics.len(), true)?;
        for item in &self.topics {
            item.write(w, version)?;
        }
        self.tagged.write(w, &[])?;
        Ok(())
    }
}

/// Outcome, topic by topic.
///
/// Versions 1-2.
#[derive(Debug, Clone, PartialEq)]
pub struct WritableTxnMarkerTopicResult {
    /// Name of the topic.
    pub name: Str,
    /// Outcome, partition by partition.
    pub partitions: Vec<WritableTxnMarkerPartitionResult>,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for WritableTxnMarkerTopicResult {
    fn default() -> Self {
        Self { name: Str::default(), partitions: Vec::new(), tagged: TaggedFields::new() }
    }
}

impl WritableTxnMarkerTopicResult {
    pub(crate) fn read(r: &mut Reader, version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.name = r.string(true)?;
        this.partitions = r.array(true, 7, |r| WritableTxnMarkerPartitionResult::read(r, version))?;
        this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, version: i16) -> Result<()> {
        w.string(&self.name, true)?;
        w.array_len(self.partitions.len(), true)?;
        for item in &self.partitions {
            item.write(w, version)?;
        }
        self.tagged.write(w, &[])?;
        Ok(())
    }
}

/// Outcome, partition by partition.
///
/// Versions 1-2.
#[derive(Debug, Clone, PartialEq)]
pub struct WritableTxnMarkerPartitionResult {
    /// Number of the partition inside its topic.
    pub partition_index: i32,
    /// Error of this level; 0 means none.
    pub error_code: ErrorCode,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for WritableTxnMarkerPartitionResult {
    fn default() -> Self {
        Self { partition_index: 0, error_code: ErrorCode::NONE, tagged: TaggedFields::new() }
    }
}

impl WritableTxnMarkerPartitionResult {
    pub(crate) fn read(r: &mut Reader, _version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.partition_index = r.i32()?;
        this.error_code = r.i16().map(ErrorCode)?;
        this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, _version: i16) -> Result<()> {
        w.i32(self.partition_index);
        w.i16(self.error_code.0);
        self.tagged.write(w, &[])?;
        Ok(())
    }
}

impl Message for WriteTxnMarkersResponse {
    const NAME: &'static str = "WriteTxnMarkersResponse";
    const MIN_VERSION: i16 = 1;
    const MAX_VERSION: i16 = 2;
    const FLEXIBLE_FROM: i16 = 1;

    fn decode(r: &mut Reader, version: i16) -> Result<Self> {
        Self::check_version(version)?;
        Self::read(r, version)
    }

    fn encode(&self, w: &mut Writer, version: i16) -> Result<()> {
        Self::check_version(version)?;
        self.write(w, version)
    }
}
