//! CreatePartitionsResponse (generated from protocol-specs; do not edit).

use crate::{ErrorCode, Message};
use kafka_share_wire::{Reader, Result, Str, TaggedFields, Writer};

/// Reports the outcome for each topic to grow.
///
/// Versions 0-3.
#[derive(Debug, Clone, PartialEq)]
pub struct CreatePartitionsResponse {
    /// `ThrottleTimeMs`
    pub throttle_time_ms: i32,
    /// `Results`
    pub results: Vec<CreatePartitionsTopicResult>,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for CreatePartitionsResponse {
    fn default() -> Self {
        Self { throttle_time_ms: 0, results: Vec::new(), tagged: TaggedFields::new() }
    }
}

impl CreatePartitionsResponse {
    pub(crate) fn read(r: &mut Reader, version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.throttle_time_ms = r.i32()?;
        this.results = r.array(version >= 2, 5, |r| CreatePartitionsTopicResult::read(r, version))?;
        if version >= 2 {
            this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        }
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, version: i16) -> Result<()> {
        w.i32(self.throttle_time_ms);
        w.array_len(self.results.len(), version >= 2)?;
        for item in &self.results {
            item.write(w, version)?;
        }
        if version >= 2 {
            self.tagged.write(w, &[])?;
        }
        Ok(())
    }
}

/// Part of [`CreatePartitionsResponse`].
///
/// Versions 0-3.
#[derive(Debug, Clone, PartialEq)]
pub struct CreatePartitionsTopicResult {
    /// `Name`
    pub name: Str,
    /// `ErrorCode`
    pub error_code: ErrorCode,
    /// `ErrorMessage`
    pub error_message: Option<Str>,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for CreatePartitionsTopicResult {
    fn default() -> Self {
        Self { name: Str::default(), error_code: ErrorCode::NONE, error_message: None, tagged: TaggedFields::new() }
    }
}

impl CreatePartitionsTopicResult {
    pub(crate) fn read(r: &mut Reader, version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.name = r.string(version >= 2)?;
        this.error_code = r.i16().map(ErrorCode)?;
        this.error_message = r.nullable_string(version >= 2)?;
        if version >= 2 {
            this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        }
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, version: i16) -> Result<()> {
        w.string(&self.name, version >= 2)?;
        w.i16(self.error_code.0);
        match &self.error_message {
            Some(value) => {
                w.string(value, version >= 2)?;
            }
            None => {
                w.null_string(version >= 2);
            }
        }
        if version >= 2 {
            self.tagged.write(w, &[])?;
        }
        Ok(())
    }
}

impl Message for CreatePartitionsResponse {
    const NAME: &'static str = "CreatePartitionsResponse";
    const MIN_VERSION: i16 = 0;
    const MAX_VERSION: i16 = 3;
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
