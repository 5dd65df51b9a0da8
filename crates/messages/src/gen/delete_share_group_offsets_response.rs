//! DeleteShareGroupOffsetsResponse (generated from protocol-specs; do not edit).

use crate::{ErrorCode, Message};
use kafka_share_wire::{Reader, Result, Str, TaggedFields, Uuid, Writer};

/// Reports the outcome for each topic forgotten.
///
/// Versions 0.
#[derive(Debug, Clone, PartialEq)]
pub struct DeleteShareGroupOffsetsResponse {
    /// Milliseconds the client should stay quiet because a quota was exceeded; 0 if none was.
    pub throttle_time_ms: i32,
    /// Error of this level; 0 means none.
    pub error_code: ErrorCode,
    /// Explanation of the error for people; null when there is nothing to add.
    pub error_message: Option<Str>,
    /// Outcome, topic by topic.
    pub responses: Vec<DeleteShareGroupOffsetsResponseTopic>,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for DeleteShareGroupOffsetsResponse {
    fn default() -> Self {
        Self {
            throttle_time_ms: 0,
            error_code: ErrorCode::NONE,
            error_message: None,
            responses: Vec::new(),
            tagged: TaggedFields::new(),
        }
    }
}

impl DeleteShareGroupOffsetsResponse {
    pub(crate) fn read(r: &mut Reader, version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.throttle_time_ms = r.i32()?;
        this.error_code = r.i16().map(ErrorCode)?;
        this.error_message = r.nullable_string(true)?;
        this.responses = r.array(true, 21, |r| DeleteShareGroupOffsetsResponseTopic::read(r, version))?;
        this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, version: i16) -> Result<()> {
        w.i32(self.throttle_time_ms);
        w.i16(self.error_code.0);
        match &self.error_message {
            Some(value) => {
                w.string(value, true)?;
            }
            None => {
                w.null_string(true);
            }
        }
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
pub struct DeleteShareGroupOffsetsResponseTopic {
    /// Name of the topic.
    pub topic_name: Str,
    /// UUID of the topic.
    pub topic_id: Uuid,
    /// Error of this level; 0 means none.
    pub error_code: ErrorCode,
    /// Explanation of the error for people; null when there is nothing to add.
    pub error_message: Option<Str>,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for DeleteShareGroupOffsetsResponseTopic {
    fn default() -> Self {
        Self {
            topic_name: Str::default(),
            topic_id: Uuid::ZERO,
            error_code: ErrorCode::NONE,
            error_message: None,
            tagged: TaggedFields::new(),
        }
    }
}

impl DeleteShareGroupOffsetsResponseTopic {
    pub(crate) fn read(r: &mut Reader, _version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.topic_name = r.string(true)?;
        this.topic_id = r.uuid()?;
        this.error_code = r.i16().map(ErrorCode)?;
        this.error_message = r.nullable_string(true)?;
        this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, _version: i16) -> Result<()> {
        w.string(&self.topic_name, true)?;
        w.uuid(self.topic_id);
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

impl Message for DeleteShareGroupOffsetsResponse {
    const NAME: &'static str = "DeleteShareGroupOffsetsResponse";
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
