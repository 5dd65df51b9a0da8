//! TxnShareAcknowledgeResponse (generated from protocol-specs; do not edit).

use crate::{ErrorCode, Message};
use kafka_share_wire::{Reader, Result, Str, TaggedFields, Uuid, Writer};

/// Reports for each share-partition whether its acknowledgements are staged.
///
/// Versions 0.
#[derive(Debug, Clone, PartialEq)]
pub struct TxnShareAcknowledgeResponse {
    /// Milliseconds the client should stay quiet because a quota was exceeded; 0 if none was.
    pub throttle_time_ms: i32,
    /// Error that hit the request as a whole; 0 means none.
    pub error_code: ErrorCode,
    /// Outcome, topic by topic.
    pub responses: Vec<TxnShareAcknowledgeTopicResponse>,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for TxnShareAcknowledgeResponse {
    fn default() -> Self {
        Self { throttle_time_ms: 0, error_code: ErrorCode::NONE, responses: Vec::new(), tagged: TaggedFields::new() }
    }
}

impl TxnShareAcknowledgeResponse {
    pub(crate) fn read(r: &mut Reader, version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.throttle_time_ms = r.i32()?;
        this.error_code = r.i16().map(ErrorCode)?;
        this.responses = r.array(true, 18, |r| TxnShareAcknowledgeTopicResponse::read(r, version))?;
        this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, version: i16) -> Result<()> {
        w.i32(self.throttle_time_ms);
        w.i16(self.error_code.0);
        w.array_len(self.responses.len(), true)?;
        for item in &self.responses {
            item.write(w, version)?;
        }
        self.tagged.write(w, &[])?;
        Ok(())
    }
}

/// Outcome, topic by topic.
///
/// Versions 0.
#[derive(Debug, Clone, PartialEq)]
pub struct TxnShareAcknowledgeTopicResponse {
    /// UUID of the topic.
    pub topic_id: Uuid,
    /// Outcome, partition by partition.
    pub partitions: Vec<PartitionData>,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for TxnShareAcknowledgeTopicResponse {
    fn default() -> Self {
        Self { topic_id: Uuid::ZERO, partitions: Vec::new(), tagged: TaggedFields::new() }
    }
}

impl TxnShareAcknowledgeTopicResponse {
    pub(crate) fn read(r: &mut Reader, version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.topic_id = r.uuid()?;
        this.partitions = r.array(true, 8, |r| PartitionData::read(r, version))?;
        this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, version: i16) -> Result<()> {
        w.uuid(self.topic_id);
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
/// Versions 0.
#[derive(Debug, Clone, PartialEq)]
pub struct PartitionData {
    /// Number of the partition inside its topic.
    pub partition_index: i32,
    /// 0 means staged; after any other code the transaction can only be aborted.
    pub error_code: ErrorCode,
    /// Explanation of the error for people; null when there is nothing to add.
    pub error_message: Option<Str>,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for PartitionData {
    fn default() -> Self {
        Self { partition_index: 0, error_code: ErrorCode::NONE, error_message: None, tagged: TaggedFields::new() }
    }
}

impl PartitionData {
    pub(crate) fn read(r: &mut Reader, _version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.partition_index = r.i32()?;
        this.error_code = r.i16().map(ErrorCode)?;
        this.error_message = r.nullable_string(true)?;
        this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, _version: i16) -> Result<()> {
        w.i32(self.partition_index);
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

impl Message for TxnShareAcknowledgeResponse {
    const NAME: &'static str = "TxnShareAcknowledgeResponse";
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

    fn throttle_time_ms(&self) -> i32 {
        self.throttle_time_ms
    }
}
