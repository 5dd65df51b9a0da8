//! SaslHandshakeResponse (generated from protocol-specs; do not edit).

use crate::{ErrorCode, Message};
use kafka_share_wire::{Reader, Result, Str, Writer};

/// Accepts the mechanism, or lists those the broker offers.
///
/// Versions 0-1.
#[derive(Debug, Clone, PartialEq)]
pub struct SaslHandshakeResponse {
    /// `ErrorCode`
    pub error_code: ErrorCode,
    /// `Mechanisms`
    pub mechanisms: Vec<Str>,
}

impl Default for SaslHandshakeResponse {
    fn default() -> Self {
        Self { error_code: ErrorCode::NONE, mechanisms: Vec::new() }
    }
}

impl SaslHandshakeResponse {
    pub(crate) fn read(r: &mut Reader, _version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.error_code = r.i16().map(ErrorCode)?;
        this.mechanisms = r.array(false, 2, |r| r.string(false))?;
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, _version: i16) -> Result<()> {
        w.i16(self.error_code.0);
        w.array_len(self.mechanisms.len(), false)?;
        for item in &self.mechanisms {
            w.string(item, false)?;
        }
        Ok(())
    }
}

impl Message for SaslHandshakeResponse {
    const NAME: &'static str = "SaslHandshakeResponse";
    const MIN_VERSION: i16 = 0;
    const MAX_VERSION: i16 = 1;
    const FLEXIBLE_FROM: i16 = i16::MAX;

    fn decode(r: &mut Reader, version: i16) -> Result<Self> {
        Self::check_version(version)?;
        Self::read(r, version)
    }

    fn encode(&self, w: &mut Writer, version: i16) -> Result<()> {
        Self::check_version(version)?;
        self.write(w, version)
    }
}
