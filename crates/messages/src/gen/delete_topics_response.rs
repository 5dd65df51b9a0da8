//! DeleteTopicsResponse (generated from protocol-specs; do not edit).

use crate::{ErrorCode, Message};
use kafka_share_wire::{ErrorKind, Reader, Result, Str, TaggedFields, Uuid, Writer};

/// Reports the outcome for each topic to delete.
///
/// Versions 1-6.
#[derive(Debug, Clone, PartialEq)]
pub struct DeleteTopicsResponse {
    /// `ThrottleTimeMs`
    pub throttle_time_ms: i32,
    /// `Responses`
    pub responses: Vec<DeletableTopicResult>,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for DeleteTopicsResponse {
    fn default() -> Self {
        Self { throttle_time_ms: 0, responses: Vec::new(), tagged: TaggedFields::new() }
    }
}

impl DeleteTopicsResponse {
    pub(crate) fn read(r: &mut Reader, version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.throttle_time_ms = r.i32()?;
        this.responses = r.array(version >= 4, 4, |r| DeletableTopicResult::read(r, version))?;
        if version >= 4 {
            this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        }
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, version: i16) -> Result<()> {
        w.i32(self.throttle_time_ms);
        w.array_len(self.responses.len(), version >= 4)?;
        for item in &self.responses {
            item.write(w, version)?;
        }
        if version >= 4 {
            self.tagged.write(w, &[])?;
        }
        Ok(())
    }
}

/// Part of [`DeleteTopicsResponse`].
///
/// Versions 1-6.
#[derive(Debug, Clone, PartialEq)]
pub struct DeletableTopicResult {
    /// `Name` (null only in versions 6)
    pub name: Option<Str>,
    /// `TopicId` (versions 6)
    pub topic_id: Uuid,
    /// `ErrorCode`
    pub error_code: ErrorCode,
    /// `ErrorMessage` (versions 5-6)
    pub error_message: Option<Str>,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for DeletableTopicResult {
    fn default() -> Self {
        Self {
            name: Some(Str::default()),
            topic_id: Uuid::ZERO,
            error_code: ErrorCode::NONE,
            error_message: None,
            tagged: TaggedFields::new(),
        }
    }
}

impl DeletableTopicResult {
    pub(crate) fn read(r: &mut Reader, version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.name = if version >= 6 { r.nullable_string(version >= 4)? } else { Some(r.string(version >= 4)?) };
        if version >= 6 {
            this.topic_id = r.uuid()?;
        }
        this.error_code = r.i16().map(ErrorCode)?;
        if version >= 5 {
            this.error_message = r.nullable_string(true)?;
        }
        if version >= 4 {
            this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        }
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, version: i16) -> Result<()> {
        match &self.name {
            Some(value) => {
                w.string(value, version >= 4)?;
            }
            None => {
                if version >= 6 {
                    w.null_string(version >= 4)
                } else {
                    return Err(ErrorKind::UnexpectedNull.at(w.len()));
                };
            }
        }
        if version >= 6 {
            w.uuid(self.topic_id);
        }
        w.i16(self.error_code.0);
        if version >= 5 {
            match &self.error_message {
                Some(value) => {
                    w.string(value, true)?;
                }
                None => {
                    w.null_string(true);
                }
            }
        }
        if version >= 4 {
            self.tagged.write(w, &[])?;
        }
        Ok(())
    }
}

impl Message for DeleteTopicsResponse {
    const NAME: &'static str = "DeleteTopicsResponse";
    const MIN_VERSION: i16 = 1;
    const MAX_VERSION: i16 = 6;
    const FLEXIBLE_FROM: i16 = 4;

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
