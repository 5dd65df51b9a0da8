//! EndTxnRequest (generated from protocol-specs; do not edit).

use crate::{Message, Request};
use kafka_share_wire::{Reader, Result, Str, TaggedFields, Writer};

/// Asks the transaction coordinator to commit or abort the open transaction.
///
/// Versions 0-5.
#[derive(Debug, Clone, PartialEq)]
pub struct EndTxnRequest {
    /// Names the producer whose transaction ends.
    pub transactional_id: Str,
    /// Number the coordinator gave to the producer.
    pub producer_id: i64,
    /// Generation of the producer id; an older generation is fenced.
    pub producer_epoch: i16,
    /// True commits, false aborts.
    pub committed: bool,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for EndTxnRequest {
    fn default() -> Self {
        Self {
            transactional_id: Str::default(),
            producer_id: 0,
            producer_epoch: 0,
            committed: false,
            tagged: TaggedFields::new(),
        }
    }
}

impl EndTxnRequest {
    pub(crate) fn read(r: &mut Reader, version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.transactional_id = r.string(version >= 3)?;
        this.producer_id = r.i64()?;
        this.producer_epoch = r.i16()?;
        this.committed = r.bool()?;
        if version >= 3 {
            this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        }
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, version: i16) -> Result<()> {
        w.string(&self.transactional_id, version >= 3)?;
        w.i64(self.producer_id);
        w.i16(self.producer_epoch);
        w.bool(self.committed);
        if version >= 3 {
            self.tagged.write(w, &[])?;
        }
        Ok(())
    }
}

impl Message for EndTxnRequest {
    const NAME: &'static str = "EndTxnRequest";
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
}

impl Request for EndTxnRequest {
    type Response = super::end_txn_response::EndTxnResponse;
    const KEY: crate::ApiKey = crate::ApiKey(26);
}
