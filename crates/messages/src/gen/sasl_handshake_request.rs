//! SaslHandshakeRequest (generated from protocol-specs; do not edit).

use crate::{Message, Request};
use kafka_share_wire::{Reader, Result, Str, Writer};

/// Chooses the SASL mechanism for the connection.
///
/// Versions 0-1.
#[derive(Debug, Clone, PartialEq)]
pub struct SaslHandshakeRequest {
    /// `Mechanism`
    pub mechanism: Str,
}

impl Default for SaslHandshakeRequest {
    fn default() -> Self {
        Self { mechanism: Str::default() }
    }
}

impl SaslHandshakeRequest {
    pub(crate) fn read(r: &mut Reader, _version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.mechanism = r.string(false)?;
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, _version: i16) -> Result<()> {
        w.string(&self.mechanism, false)?;
        Ok(())
    }
}

impl Message for SaslHandshakeRequest {
    const NAME: &'static str = "SaslHandshakeRequest";
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

impl Request for SaslHandshakeRequest {
    type Response = super::sasl_handshake_response::SaslHandshakeResponse;
    const KEY: crate::ApiKey = crate::ApiKey(17);
}
