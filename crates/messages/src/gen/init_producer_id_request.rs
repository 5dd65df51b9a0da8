//! InitProducerIdRequest (generated from protocol-specs; do not edit).

use crate::{Message, Request};
use kafka_share_wire::{ErrorKind, Reader, Result, Str, TaggedFields, Writer};

/// Obtains a producer id and epoch; for a transactional id it also fences older producers and ends what they left open.
///
/// Versions 0-6.
#[derive(Debug, Clone, PartialEq)]
pub struct InitProducerIdRequest {
    /// Names the transactional producer; null for one that is only idempotent.
    pub transactional_id: Option<Str>,
    /// How many milliseconds a transaction may stay open before the coordinator aborts it; unused without a transactional id.
    pub transaction_timeout_ms: i32,
    /// Id held so far, to raise its epoch instead of starting anew; -1 if there is none. (versions 3-6)
    pub producer_id: i64,
    /// Epoch held so far; the coordinator refuses if it has moved on. -1 if there is none. (versions 3-6)
    pub producer_epoch: i16,
    /// Asks for two-phase commit (KIP-939): the transaction gets no timeout and waits for an outside decision. (versions 6)
    pub enable2_pc: bool,
    /// Asks to leave a prepared transaction open instead of aborting it (KIP-939). (versions 6)
    pub keep_prepared_txn: bool,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for InitProducerIdRequest {
    fn default() -> Self {
        Self {
            transactional_id: Some(Str::default()),
            transaction_timeout_ms: 0,
            producer_id: -1,
            producer_epoch: -1,
            enable2_pc: false,
            keep_prepared_txn: false,
            tagged: TaggedFields::new(),
        }
    }
}

impl InitProducerIdRequest {
    pub(crate) fn read(r: &mut Reader, version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.transactional_id = r.nullable_string(version >= 2)?;
        this.transaction_timeout_ms = r.i32()?;
        if version >= 3 {
            this.producer_id = r.i64()?;
        }
        if version >= 3 {
            this.producer_epoch = r.i16()?;
        }
        if version >= 6 {
            this.enable2_pc = r.bool()?;
        }
        if version >= 6 {
            this.keep_prepared_txn = r.bool()?;
        }
        if version >= 2 {
            this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        }
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, version: i16) -> Result<()> {
        match &self.transactional_id {
            Some(value) => {
                w.string(value, version >= 2)?;
            }
            None => {
                w.null_string(version >= 2);
            }
        }
        w.i32(self.transaction_timeout_ms);
        if version >= 3 {
            w.i64(self.producer_id);
        } else {
            if self.producer_id != -1 {
                return Err(
                    ErrorKind::FieldNotInVersion { field: "InitProducerIdRequest.ProducerId", version }.at(w.len())
                );
            }
        }
        if version >= 3 {
            w.i16(self.producer_epoch);
        } else {
            if self.producer_epoch != -1 {
                return Err(
                    ErrorKind::FieldNotInVersion { field: "InitProducerIdRequest.ProducerEpoch", version }.at(w.len())
                );
            }
        }
        if version >= 6 {
            w.bool(self.enable2_pc);
        } else {
            if self.enable2_pc {
                return Err(
                    ErrorKind::FieldNotInVersion { field: "InitProducerIdRequest.Enable2Pc", version }.at(w.len())
                );
            }
        }
        if version >= 6 {
            w.bool(self.keep_prepared_txn);
        } else {
            if self.keep_prepared_txn {
                return Err(ErrorKind::FieldNotInVersion { field: "InitProducerIdRequest.KeepPreparedTxn", version }
                    .at(w.len()));
            }
        }
        if version >= 2 {
            self.tagged.write(w, &[])?;
        }
        Ok(())
    }
}

impl Message for InitProducerIdRequest {
    const NAME: &'static str = "InitProducerIdRequest";
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
}

impl Request for InitProducerIdRequest {
    type Response = super::init_producer_id_response::InitProducerIdResponse;
    const KEY: crate::ApiKey = crate::ApiKey(22);
}
