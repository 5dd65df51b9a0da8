//! DescribeTransactionsResponse (generated from protocol-specs; do not edit).

use crate::{ErrorCode, Message};
use kafka_share_wire::{Reader, Result, Str, TaggedFields, Writer};

/// Describes each transaction: state, producer, start, timeout and partitions.
///
/// Versions 0.
#[derive(Debug, Clone, PartialEq)]
pub struct DescribeTransactionsResponse {
    /// Milliseconds the client should stay quiet because a quota was exceeded; 0 if none was.
    pub throttle_time_ms: i32,
    /// One entry for each id asked about.
    pub transaction_states: Vec<TransactionState>,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for DescribeTransactionsResponse {
    fn default() -> Self {
        Self { throttle_time_ms: 0, transaction_states: Vec::new(), tagged: TaggedFields::new() }
    }
}

impl DescribeTransactionsResponse {
    pub(crate) fn read(r: &mut Reader, version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.throttle_time_ms = r.i32()?;
        this.transaction_states = r.array(true, 28, |r| TransactionState::read(r, version))?;
        this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, version: i16) -> Result<()> {
        w.i32(self.throttle_time_ms);
        w.array_len(self.transaction_states.len(), true)?;
        for item in &self.transaction_states {
            item.write(w, version)?;
        }
        self.tagged.write(w, &[])?;
        Ok(())
    }
}

/// One entry for each id asked about.
///
/// Versions 0.
#[derive(Debug, Clone, PartialEq)]
pub struct TransactionState {
    /// Error of this level; 0 means none.
    pub error_code: ErrorCode,
    /// Names the transactional producer across restarts.
    pub transactional_id: Str,
    /// Name of the state the coordinator holds for it, such as Ongoing or PrepareCommit.
    pub transaction_state: Str,
    /// Milliseconds after which the coordinator aborts it.
    pub transaction_timeout_ms: i32,
    /// Begin of the open transaction in milliseconds since 1970, -1 if none is open.
    pub transaction_start_time_ms: i64,
    /// Number the coordinator gave to the producer.
    pub producer_id: i64,
    /// Generation of the producer id; an older generation is fenced.
    pub producer_epoch: i16,
    /// Partitions in the open transaction; while it ends, those still waiting for their marker.
    pub topics: Vec<TopicData>,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for TransactionState {
    fn default() -> Self {
        Self {
            error_code: ErrorCode::NONE,
            transactional_id: Str::default(),
            transaction_state: Str::default(),
            transaction_timeout_ms: 0,
            transaction_start_time_ms: 0,
            producer_id: 0,
            producer_epoch: 0,
            topics: Vec::new(),
            tagged: TaggedFields::new(),
        }
    }
}

impl TransactionState {
    pub(crate) fn read(r: &mut Reader, version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.error_code = r.i16().map(ErrorCode)?;
        this.transactional_id = r.string(true)?;
        this.transaction_state = r.string(true)?;
        this.transaction_timeout_ms = r.i32()?;
        this.transaction_start_time_ms = r.i64()?;
        this.producer_id = r.i64()?;
        this.producer_epoch = r.i16()?;
        this.topics = r.array(true, 3, |r| TopicData::read(r, version))?;
        this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, version: i16) -> Result<()> {
        w.i16(self.error_code.0);
        w.string(&self.transactional_id, true)?;
        w.string(&self.transaction_state, true)?;
        w.i32(self.transaction_timeout_ms);
        w.i64(self.transaction_start_time_ms);
        w.i64(self.producer_id);
        w.i16(self.producer_epoch);
        w.array_len(self.topics.len(), true)?;
        for item in &self.topics {
            item.write(w, version)?;
        }
        self.tagged.write(w, &[])?;
        Ok(())
    }
}

/// Partitions in the open transaction; while it ends, those still waiting for their marker.
///
/// Versions 0.
#[derive(Debug, Clone, PartialEq)]
pub struct TopicData {
    /// Name of the topic.
    pub topic: Str,
    /// Partitions of the topic.
    pub partitions: Vec<i32>,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for TopicData {
    fn default() -> Self {
        Self { topic: Str::default(), partitions: Vec::new(), tagged: TaggedFields::new() }
    }
}

impl TopicData {
    pub(crate) fn read(r: &mut Reader, _version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.topic = r.string(true)?;
        this.partitions = r.array(true, 4, |r| r.i32())?;
        this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, _version: i16) -> Result<()> {
        w.string(&self.topic, true)?;
        w.array_len(self.partitions.len(), true)?;
        for item in &self.partitions {
            w.i32(*item);
        }
        self.tagged.write(w, &[])?;
        Ok(())
    }
}

impl Message for DescribeTransactionsResponse {
    const NAME: &'static str = "DescribeTransactionsResponse";
    const MIN_VERSION: i16 = 0;
    const MAX_VERSION: i16 = 0;
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
