//! PushTelemetryResponse (generated from protocol-specs; do not edit).

use crate::{ErrorCode, Message};
use kafka_share_wire::{Reader, Result, TaggedFields, Writer};

/// Acknowledges a batch of client metrics.
///
/// Versions 0.
#[derive(Debug, Clone, PartialEq)]
pub struct PushTelemetryResponse {
    /// `ThrottleTimeMs`
    pub throttle_time_ms: i32,
    /// `ErrorCode`
    pub error_code: ErrorCode,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for PushTelemetryResponse {
    fn default() -> Self {
        Self { throttle_time_ms: 0, error_code: ErrorCode::NONE, tagged: TaggedFields::new() }
    }
}

impl PushTelemetryResponse {
    pub(crate) fn read(r: &mut Reader, _version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.throttle_time_ms = r.i32()?;
        this.error_code = r.i16().map(ErrorCode)?;
        this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, _version: i16) -> Result<()> {
        w.i32(self.throttle_time_ms);
        w.i16(self.error_code.0);
        self.tagged.write(w, &[])?;
        Ok(())
    }
}

impl Message for PushTelemetryResponse {
    const NAME: &'static str = "PushTelemetryResponse";
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
