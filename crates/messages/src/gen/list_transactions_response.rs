//! ListTransactionsResponse (generated from protocol-specs; do not edit).

use crate::{ErrorCode, Message};
use kafka_share_wire::{Reader, Result, Str, TaggedFields, Writer};

/// Names the transactions found with producer and state.
///
/// Versions 0-2.
#[derive(Debug, Clone, PartialEq)]
pub struct ListTransactionsResponse {
    /// Milliseconds the client should stay quiet because a quota was exceeded; 0 if none was.
    pub throttle_time_ms: i32,
    /// Error of this level; 0 means none.
    pub error_code: ErrorCode,
    /// State names of the request that the coordinator does not know.
    pub unknown_state_filters: Vec<Str>,
    /// Transactions found.
    pub transaction_states: Vec<TransactionState>,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for ListTransactionsResponse {
    fn default() -> Self {
        Self {
            throttle_time_ms: 0,
            error_code: ErrorCode::NONE,
            unknown_state_filters: Vec::new(),
            transaction_states: Vec::new(),
            tagged: TaggedFields::new(),
        }
    }
}

impl ListTransactionsResponse {
    pub(crate) fn read(r: &mut Reader, version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.throttle_time_ms = r.i32()?;
        this.error_code = r.i16().map(ErrorCode)?;
        this.unknown_state_filters = r.array(true, 1, |r| r.string(true))?;
        this.transaction_states = r.array(true, 11, |r| TransactionState::read(r, version))?;
        this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, version: i16) -> Result<()> {
        w.i32(self.throttle_time_ms);
        w.i16(self.error_code.0);
        w.array_len(self.unknown_state_filters.len(), true)?;
        for item in &self.unknown_state_filters {
            w.string(item, true)?;
        }
        w.array_len(self.transaction_states.len(), true)?;
        for item in &self.transaction_states {
            item.write(w, version)?;
        }
        self.tagged.write(w, &[])?;
        Ok(())
    }
}

/// Transactions found.
///
/// Versions 0-2.
#[derive(Debug, Clone, PartialEq)]
pub struct TransactionState {
    /// Names the transactional producer across restarts.
    pub transactional_id: Str,
    /// Number the coordinator gave to the producer.
    pub producer_id: i64,
    /// Name of the state the coordinator holds for it, such as Ongoing or PrepareCommit.
    pub transaction_state: Str,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for TransactionState {
    fn default() -> Self {
        Self {
            transactional_id: Str::default(),
            producer_id: 0,
            transaction_state: Str::default(),
            tagged: TaggedFields::new(),
        }
    }
}

impl TransactionState {
    pub(crate) fn read(r: &mut Reader, _version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.transactional_id = r.string(true)?;
        this.producer_id = r.i64()?;
        this.transaction_state = r.string(true)?;
        this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, _version: i16) -> Result<()> {
        w.string(&self.transactional_id, true)?;
        w.i64(self.producer_id);
        w.string(&self.transaction_state, true)?;
        self.tagged.write(w, &[])?;
        Ok(())
    }
}

impl Message for ListTransactionsResponse {
    const NAME: &'static str = "ListTransactionsResponse";
    const MIN_VERSION: i16 = 0;
    const MAX_VERSION: i16 = 2;
    const FLEXIBLE_FROM: i16 = 0;

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
