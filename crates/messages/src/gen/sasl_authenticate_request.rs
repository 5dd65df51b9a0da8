//! SaslAuthenticateRequest (generated from protocol-specs; do not edit).

use crate::{Message, Request};
use bytes::Bytes;
use kafka_share_wire::{Reader, Result, TaggedFields, Writer};

/// Carries one token of the SASL exchange from the client.
///
/// Versions 0-2.
#[derive(Debug, Clone, PartialEq)]
pub struct SaslAuthenticateRequest {
    /// `AuthBytes`
    pub auth_bytes: Bytes,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for SaslAuthenticateRequest {
    fn default() -> Self {
        Self { auth_bytes: Bytes::new(), tagged: TaggedFields::new() }
    }
}

impl SaslAuthenticateRequest {
    pub(crate) fn read(r: &mut Reader, version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.auth_bytes = r.bytes(version >= 2)?;
        if version >= 2 {
            this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        }
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, version: i16) -> Result<()> {
        w.bytes(&self.auth_bytes, version >= 2)?;
        if version >= 2 {
            self.tagged.write(w, &[])?;
        }
        Ok(())
    }
}

impl Message for SaslAuthenticateRequest {
    const NAME: &'static str = "SaslAuthenticateRequest";
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
}

impl Request for SaslAuthenticateRequest {
    type Response = super::sasl_authenticate_response::SaslAuthenticateResponse;
    const KEY: crate::ApiKey = crate::ApiKey(36);
}
