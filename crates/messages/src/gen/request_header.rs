//! RequestHeader (generated from protocol-specs; do not edit).

use crate::Message;
use kafka_share_wire::{Reader, Result, Str, TaggedFields, Writer};

/// Precedes every request: which RPC and version it is, its correlation id and the client's name.
///
/// Versions 1-2.
#[derive(Debug, Clone, PartialEq)]
pub struct RequestHeader {
    /// `RequestApiKey`
    pub request_api_key: i16,
    /// `RequestApiVersion`
    pub request_api_version: i16,
    /// `CorrelationId`
    pub correlation_id: i32,
    /// `ClientId`
    pub client_id: Option<Str>,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for RequestHeader {
    fn default() -> Self {
        Self {
            request_api_key: 0,
            request_api_version: 0,
            correlation_id: 0,
            client_id: Some(Str::default()),
            tagged: TaggedFields::new(),
        }
    }
}

impl RequestHeader {
    pub(crate) fn read(r: &mut Reader, version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.request_api_key = r.i16()?;
        this.request_api_version = r.i16()?;
        this.correlation_id = r.i32()?;
        this.client_id = r.nullable_string(false)?;
        if version >= 2 {
            this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        }
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, version: i16) -> Result<()> {
        w.i16(self.request_api_key);
        w.i16(self.request_api_version);
        w.i32(self.correlation_id);
        match &self.client_id {
            Some(value) => {
                w.string(value, false)?;
            }
            None => {
                w.null_string(false);
            }
        }
        if version >= 2 {
            self.tagged.write(w, &[])?;
        }
        Ok(())
    }
}

impl Message for RequestHeader {
    const NAME: &'static str = "RequestHeader";
    const MIN_VERSION: i16 = 1;
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
