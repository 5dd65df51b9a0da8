//! SaslAuthenticateResponse (generated from protocol-specs; do not edit).

use crate::{ErrorCode, Message};
use bytes::Bytes;
use kafka_share_wire::{Reader, Result, Str, TaggedFields, Writer};

/// Carries the broker's token back, and how long the session may last.
///
/// Versions 0-2.
#[derive(Debug, Clone, PartialEq)]
pub struct SaslAuthenticateResponse {
    /// `ErrorCode`
    pub error_code: ErrorCode,
    /// `ErrorMessage`
    pub error_message: Option<Str>,
    /// `AuthBytes`
    pub auth_bytes: Bytes,
    /// `SessionLifetimeMs` (versions 1-2)
    pub session_lifetime_ms: i64,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for SaslAuthenticateResponse {
    fn default() -> Self {
        Self {
            error_code: ErrorCode::NONE,
            error_message: Some(Str::default()),
            auth_bytes: Bytes::new(),
            session_lifetime_ms: 0,
            tagged: TaggedFields::new(),
        }
    }
}

impl SaslAuthenticateResponse {
    pub(crate) fn read(r: &mut Reader, version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.error_code = r.i16().map(ErrorCode)?;
        this.error_message = r.nullable_string(version >= 2)?;
        this.auth_bytes = r.bytes(version >= 2)?;
        if version >= 1 {
            this.session_lifetime_ms = r.i64()?;
        }
        if version >= 2 {
            this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        }
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, version: i16) -> Result<()> {
        w.i16(self.error_code.0);
        match &self.error_message {
            Some(value) => {
                w.string(value, version >= 2)?;
            }
            None => {
                w.null_string(version >= 2);
            }
        }
        w.bytes(&self.auth_bytes, version >= 2)?;
        if version >= 1 {
            w.i64(self.session_lifetime_ms);
        }
        if version >= 2 {
            self.tagged.write(w, &[])?;
        }
        Ok(())
    }
}

impl Message for SaslAuthenticateResponse {
    const NAME: &'static str = "SaslAuthenticateResponse";
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
