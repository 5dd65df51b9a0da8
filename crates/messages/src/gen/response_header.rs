//! ResponseHeader (generated from protocol-specs; do not edit).

use crate::Message;
use kafka_share_wire::{Reader, Result, TaggedFields, Writer};

/// Precedes every response and repeats the correlation id of its request; the ApiVersions response always uses v0.
///
/// Versions 0-1.
#[derive(Debug, Clone, PartialEq)]
pub struct ResponseHeader {
    /// `CorrelationId`
    pub correlation_id: i32,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for ResponseHeader {
    fn default() -> Self {
        Self { correlation_id: 0, tagged: TaggedFields::new() }
    }
}

impl ResponseHeader {
    pub(crate) fn read(r: &mut Reader, version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.correlation_id = r.i32()?;
        if version >= 1 {
            this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        }
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, version: i16) -> Result<()> {
        w.i32(self.correlation_id);
        if version >= 1 {
            self.tagged.write(w, &[])?;
        }
        Ok(())
    }
}

impl Message for ResponseHeader {
    const NAME: &'static str = "ResponseHeader";
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
}
