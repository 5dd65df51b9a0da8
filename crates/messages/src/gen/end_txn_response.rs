//! EndTxnResponse (generated from protocol-specs; do not edit).

use crate::{ErrorCode, Message};
use kafka_share_wire::{Reader, Result, TaggedFields, Writer};

/// Confirms the decision; from v5 on it also grants the epoch for the next transaction.
///
/// Versions 0-5.
#[derive(Debug, Clone, PartialEq)]
pub struct EndTxnResponse {
    /// Milliseconds the client should stay quiet because a quota was exceeded; 0 if none was.
    pub throttle_time_ms: i32,
    /// Error of this level; 0 means none.
    pub error_code: ErrorCode,
    /// Id for the next transaction; it changes when the epochs run out. (versions 5)
    pub producer_id: i64,
    /// Epoch for the next transaction. (versions 5)
    pub producer_epoch: i16,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for EndTxnResponse {
    fn default() -> Self {
        Self {
            throttle_time_ms: 0,
            error_code: ErrorCode::NONE,
            producer_id: -1,
            producer_epoch: -1,
            tagged: TaggedFields::new(),
        }
    }
}

impl EndTxnResponse {
    pub(crate) fn read(r: &mut Reader, version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.throttle_time_ms = r.i32()?;
        this.error_code = r.i16().map(ErrorCode)?;
        if version >= 5 {
            this.producer_id = r.i64()?;
        }
        if version >= 5 {
            this.producer_epoch = r.i16()?;
        }
        if version >= 3 {
            this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        }
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, version: i16) -> Result<()> {
        w.i32(self.throttle_time_ms);
        w.i16(self.error_code.0);
        if version >= 5 {
            w.i64(self.producer_id);
        }
        if version >= 5 {
            w.i16(self.producer_epoch);
        }
        if version >= 3 {
            self.tagged.write(w, &[])?;
        }
        Ok(())
    }
}

impl Message for EndTxnResponse {
    const NAME: &'static str = "EndTxnResponse";
    const MIN_VERSION: i16 = 0;
    const MAX_VERSION: i16 = 5;
    const FLEXIBLE_FROM: i16 = 3;

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
