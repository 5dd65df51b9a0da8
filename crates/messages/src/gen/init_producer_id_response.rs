//! InitProducerIdResponse (generated from protocol-specs; do not edit).

use crate::{ErrorCode, Message};
use kafka_share_wire::{ErrorKind, Reader, Result, TaggedFields, Writer};

/// Grants the producer id and epoch that the producer must use from now on.
///
/// Versions 0-6.
#[derive(Debug, Clone, PartialEq)]
pub struct InitProducerIdResponse {
    /// Milliseconds the client should stay quiet because a quota was exceeded; 0 if none was.
    pub throttle_time_ms: i32,
    /// Error of this level; 0 means none.
    pub error_code: ErrorCode,
    /// Id to use from now on.
    pub producer_id: i64,
    /// Epoch to use from now on.
    pub producer_epoch: i16,
    /// Producer id of the transaction that was kept open, -1 if there is none. (versions 6)
    pub ongoing_txn_producer_id: i64,
    /// Producer epoch of the transaction that was kept open, -1 if there is none. (versions 6)
    pub ongoing_txn_producer_epoch: i16,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for InitProducerIdResponse {
    fn default() -> Self {
        Self {
            throttle_time_ms: 0,
            error_code: ErrorCode::NONE,
            producer_id: -1,
            producer_epoch: 0,
            ongoing_txn_producer_id: -1,
            ongoing_txn_producer_epoch: -1,
            tagged: TaggedFields::new(),
        }
    }
}

impl InitProducerIdResponse {
    pub(crate) fn read(r: &mut Reader, version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.throttle_time_ms = r.i32()?;
        this.error_code = r.i16().map(ErrorCode)?;
        this.producer_id = r.i64()?;
        this.producer_epoch = r.i16()?;
        if version >= 6 {
            this.ongoing_txn_producer_id = r.i64()?;
        }
        if version >= 6 {
            this.ongoing_txn_producer_epoch = r.i16()?;
        }
        if version >= 2 {
            this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        }
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, version: i16) -> Result<()> {
        w.i32(self.throttle_time_ms);
        w.i16(self.error_code.0);
        w.i64(self.producer_id);
        w.i16(self.producer_epoch);
        if version >= 6 {
            w.i64(self.ongoing_txn_producer_id);
        } else {
            if self.ongoing_txn_producer_id != -1 {
                return Err(ErrorKind::FieldNotInVersion {
                    field: "InitProducerIdResponse.OngoingTxnProducerId",
                    version,
                }
                .at(w.len()));
            }
        }
        if version >= 6 {
            w.i16(self.ongoing_txn_producer_epoch);
        } else {
            if self.ongoing_txn_producer_epoch != -1 {
                return Err(ErrorKind::FieldNotInVersion {
                    field: "InitProducerIdResponse.OngoingTxnProducerEpoch",
                    version,
                }
                .at(w.len()));
            }
        }
        if version >= 2 {
            self.tagged.write(w, &[])?;
        }
        Ok(())
    }
}

impl Message for InitProducerIdResponse {
    const NAME: &'static str = "InitProducerIdResponse";
    const MIN_VERSION: i16 = 0;
    const MAX_VERSION: i16 = 6;
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
