//! IncrementalAlterConfigsResponse (generated from protocol-specs; do not edit).

use crate::{ErrorCode, Message};
use kafka_share_wire::{Reader, Result, Str, TaggedFields, Writer};

/// Reports the outcome for each resource to change.
///
/// Versions 0-1.
#[derive(Debug, Clone, PartialEq)]
pub struct IncrementalAlterConfigsResponse {
    /// `ThrottleTimeMs`
    pub throttle_time_ms: i32,
    /// `Responses`
    pub responses: Vec<AlterConfigsResourceResponse>,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for IncrementalAlterConfigsResponse {
    fn default() -> Self {
        Self { throttle_time_ms: 0, responses: Vec::new(), tagged: TaggedFields::new() }
    }
}

impl IncrementalAlterConfigsResponse {
    pub(crate) fn read(r: &mut Reader, version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.throttle_time_ms = r.i32()?;
        this.responses = r.array(version >= 1, 6, |r| AlterConfigsResourceResponse::read(r, version))?;
        if version >= 1 {
            this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        }
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, version: i16) -> Result<()> {
        w.i32(self.throttle_time_ms);
        w.array_len(self.responses.len(), version >= 1)?;
        for item in &self.responses {
            item.write(w, version)?;
        }
        if version >= 1 {
            self.tagged.write(w, &[])?;
        }
        Ok(())
    }
}

/// Part of [`IncrementalAlterConfigsResponse`].
///
/// Versions 0-1.
#[derive(Debug, Clone, PartialEq)]
pub struct AlterConfigsResourceResponse {
    /// `ErrorCode`
    pub error_code: ErrorCode,
    /// `ErrorMessage`
    pub error_message: Option<Str>,
    /// `ResourceType`
    pub resource_type: i8,
    /// `ResourceName`
    pub resource_name: Str,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for AlterConfigsResourceResponse {
    fn default() -> Self {
        Self {
            error_code: ErrorCode::NONE,
            error_message: Some(Str::default()),
            resource_type: 0,
            resource_name: Str::default(),
            tagged: TaggedFields::new(),
        }
    }
}

impl AlterConfigsResourceResponse {
    pub(crate) fn read(r: &mut Reader, version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.error_code = r.i16().map(ErrorCode)?;
        this.error_message = r.nullable_string(version >= 1)?;
        this.resource_type = r.i8()?;
        this.resource_name = r.string(version >= 1)?;
        if version >= 1 {
            this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        }
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, version: i16) -> Result<()> {
        w.i16(self.error_code.0);
        match &self.error_message {
            Some(value) => {
                w.string(value, version >= 1)?;
            }
            None => {
                w.null_string(version >= 1);
            }
        }
        w.i8(self.resource_type);
        w.string(&self.resource_name, version >= 1)?;
        if version >= 1 {
            self.tagged.write(w, &[])?;
        }
        Ok(())
    }
}

impl Message for IncrementalAlterConfigsResponse {
    const NAME: &'static str = "IncrementalAlterConfigsResponse";
    const MIN_VERSION: i16 = 0;
    const MAX_VERSION: i16 = 1;
    const FLEXIBLE_FROM: i16 = 1;

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
