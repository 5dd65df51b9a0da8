//! DescribeProducersResponse (generated from protocol-specs; do not edit).

use crate::{ErrorCode, Message};
use kafka_share_wire::{Reader, Result, Str, TaggedFields, Writer};

/// Describes the producers of each partition, with the start of any open transaction.
///
/// Versions 0.
#[derive(Debug, Clone, PartialEq)]
pub struct DescribeProducersResponse {
    /// Milliseconds the client should stay quiet because a quota was exceeded; 0 if none was.
    pub throttle_time_ms: i32,
    /// Producers found, by topic.
    pub topics: Vec<TopicResponse>,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for DescribeProducersResponse {
    fn default() -> Self {
        Self { throttle_time_ms: 0, topics: Vec::new(), tagged: TaggedFields::new() }
    }
}

impl DescribeProducersResponse {
    pub(crate) fn read(r: &mut Reader, version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.throttle_time_ms = r.i32()?;
        this.topics = r.array(true, 3, |r| TopicResponse::read(r, version))?;
        this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, version: i16) -> Result<()> {
        w.i32(self.throttle_time_ms);
        w.array_len(self.topics.len(), true)?;
        for item in &self.topics {
            item.write(w, version)?;
        }
        self.tagged.write(w, &[])?;
        Ok(())
    }
}

/// Producers found, by topic.
///
/// Versions 0.
#[derive(Debug, Clone, PartialEq)]
pub struct TopicResponse {
    /// Name of the topic.
    pub name: Str,
    /// Producers found, by partition.
    pub partitions: Vec<PartitionResponse>,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for TopicResponse {
    fn default() -> Self {
        Self { name: Str::default(), partitions: Vec::new(), tagged: TaggedFields::new() }
    }
}

impl TopicResponse {
    pub(crate) fn read(r: &mut Reader, version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.name = r.string(true)?;
        this.partitions = r.array(true, 9, |r| PartitionResponse::read(r, version))?;
        this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, version: i16) -> Result<()> {
        w.string(&self.name, true)?;
        w.array_len(self.partitions.len(), true)?;
        for item in &self.partitions {
            item.write(w, version)?;
        }
        self.tagged.write(w, &[])?;
        Ok(())
    }
}

/// Producers found, by partition.
///
/// Versions 0.
#[derive(Debug, Clone, PartialEq)]
pub struct PartitionResponse {
    /// Number of the partition inside its topic.
    pub partition_index: i32,
    /// Error of this level; 0 means none.
    pub error_code: ErrorCode,
    /// Explanation of the error for people; null when there is nothing to add.
    pub error_message: Option<Str>,
    /// Producers the leader remembers.
    pub active_producers: Vec<ProducerState>,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for PartitionResponse {
    fn default() -> Self {
        Self {
            partition_index: 0,
            error_code: ErrorCode::NONE,
            error_message: None,
            active_producers: Vec::new(),
            tagged: TaggedFields::new(),
        }
    }
}

impl PartitionResponse {
    pub(crate) fn read(r: &mut Reader, version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.partition_index = r.i32()?;
        this.error_code = r.i16().map(ErrorCode)?;
        this.error_message = r.nullable_string(true)?;
        this.active_producers = r.array(true, 37, |r| ProducerState::read(r, version))?;
        this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, version: i16) -> Result<()> {
        w.i32(self.partition_index);
        w.i16(self.error_code.0);
        match &self.error_message {
            Some(value) => {
                w.string(value, true)?;
            }
            None => {
                w.null_string(true);
            }
        }
        w.array_len(self.active_producers.len(), true)?;
        for item in &self.active_producers {
            item.write(w, version)?;
        }
        self.tagged.write(w, &[])?;
        Ok(())
    }
}

/// Producers the leader remembers.
///
/// Versions 0.
#[derive(Debug, Clone, PartialEq)]
pub struct ProducerState {
    /// Number the coordinator gave to the producer.
    pub producer_id: i64,
    /// Generation of the producer id; an older generation is fenced.
    pub producer_epoch: i32,
    /// Sequence number of its newest record, -1 if none is remembered.
    pub last_sequence: i32,
    /// Time of its newest batch in milliseconds since 1970.
    pub last_timestamp: i64,
    /// Epoch of the transaction coordinator that wrote its last marker.
    pub coordinator_epoch: i32,
    /// Offset at which its open transaction begins, -1 if none is open.
    pub current_txn_start_offset: i64,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for ProducerState {
    fn default() -> Self {
        Self {
            producer_id: 0,
            producer_epoch: 0,
            last_sequence: -1,
            last_timestamp: -1,
            coordinator_epoch: 0,
            current_txn_start_offset: -1,
            tagged: TaggedFields::new(),
        }
    }
}

impl ProducerState {
    pub(crate) fn read(r: &mut Reader, _version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.producer_id = r.i64()?;
        this.producer_epoch = r.i32()?;
        this.last_sequence = r.i32()?;
        this.last_timestamp = r.i64()?;
        this.coordinator_epoch = r.i32()?;
        this.current_txn_start_offset = r.i64()?;
        this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, _version: i16) -> Result<()> {
        w.i64(self.producer_id);
        w.i32(self.producer_epoch);
        w.i32(self.last_sequence);
        w.i64(self.last_timestamp);
        w.i32(self.coordinator_epoch);
        w.i64(self.current_txn_start_offset);
        self.tagged.write(w, &[])?;
        Ok(())
    }
}

impl Message for DescribeProducersResponse {
    const NAME: &'static str = "DescribeProducersResponse";
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
