//! ShareFetchResponse (generated from protocol-specs; do not edit).

use crate::{ErrorCode, Message};
use bytes::Bytes;
use kafka_share_wire::{Reader, Result, Str, TaggedFields, Uuid, Writer};

/// Carries acquired records with their delivery counts and lock time, and the outcome of the acknowledgements sent along.
///
/// Versions 1-2.
#[derive(Debug, Clone, PartialEq)]
pub struct ShareFetchResponse {
    /// Milliseconds the client should stay quiet because a quota was exceeded; 0 if none was.
    pub throttle_time_ms: i32,
    /// Error of this level; 0 means none.
    pub error_code: ErrorCode,
    /// Explanation of the error for people; null when there is nothing to add.
    pub error_message: Option<Str>,
    /// Length of the acquisition lock in milliseconds, counted from this answer.
    pub acquisition_lock_timeout_ms: i32,
    /// Acquired records and outcomes, by topic.
    pub responses: Vec<ShareFetchableTopicResponse>,
    /// Addresses of the leaders that are named above as the right ones to ask.
    pub node_endpoints: Vec<NodeEndpoint>,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for ShareFetchResponse {
    fn default() -> Self {
        Self {
            throttle_time_ms: 0,
            error_code: ErrorCode::NONE,
            error_message: None,
            acquisition_lock_timeout_ms: 0,
            responses: Vec::new(),
            node_endpoints: Vec::new(),
            tagged: TaggedFields::new(),
        }
    }
}

impl ShareFetchResponse {
    pub(crate) fn read(r: &mut Reader, version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.throttle_time_ms = r.i32()?;
        this.error_code = r.i16().map(ErrorCode)?;
        this.error_message = r.nullable_string(true)?;
        this.acquisition_lock_timeout_ms = r.i32()?;
        this.responses = r.array(true, 18, |r| ShareFetchableTopicResponse::read(r, version))?;
        this.node_endpoints = r.array(true, 11, |r| NodeEndpoint::read(r, version))?;
        this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, version: i16) -> Result<()> {
        w.i32(self.throttle_time_ms);
        w.i16(self.error_code.0);
        match &self.error_message {
            Some(value) => {
                w.string(value, true)?;
            }
            None => {
                w.null_string(true);
            }
        }
        w.i32(self.acquisition_lock_timeout_ms);
        w.array_len(self.responses.len(), true)?;
        for item in &self.responses {
            item.write(w, version)?;
        }
        w.array_len(self.node_endpoints.len(), true)?;
        for item in &self.node_endpoints {
            item.write(w, version)?;
        }
        self.tagged.write(w, &[])?;
        Ok(())
    }
}

/// Acquired records and outcomes, by topic.
///
/// Versions 1-2.
#[derive(Debug, Clone, PartialEq)]
pub struct ShareFetchableTopicResponse {
    /// UUID of the topic.
    pub topic_id: Uuid,
    /// Outcome, partition by partition.
    pub partitions: Vec<PartitionData>,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for ShareFetchableTopicResponse {
    fn default() -> Self {
        Self { topic_id: Uuid::ZERO, partitions: Vec::new(), tagged: TaggedFields::new() }
    }
}

impl ShareFetchableTopicResponse {
    pub(crate) fn read(r: &mut Reader, version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.topic_id = r.uuid()?;
        this.partitions = r.array(true, 22, |r| PartitionData::read(r, version))?;
        this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, version: i16) -> Result<()> {
        w.uuid(self.topic_id);
        w.array_len(self.partitions.len(), true)?;
        for item in &self.partitions {
            item.write(w, version)?;
        }
        self.tagged.write(w, &[])?;
        Ok(())
    }
}

/// Outcome, partition by partition.
///
/// Versions 1-2.
#[derive(Debug, Clone, PartialEq)]
pub struct PartitionData {
    /// Number of the partition inside its topic.
    pub partition_index: i32,
    /// Why nothing could be acquired here; 0 if nothing went wrong.
    pub error_code: ErrorCode,
    /// Explanation of the error for people; null when there is nothing to add.
    pub error_message: Option<Str>,
    /// How the acknowledgements for this partition ended; 0 means taken.
    pub acknowledge_error_code: ErrorCode,
    /// Explanation of the acknowledgement error for people, or null.
    pub acknowledge_error_message: Option<Str>,
    /// Who leads the partition, given when this broker does not.
    pub current_leader: LeaderIdAndEpoch,
    /// Record batches; they may hold offsets that this member has not acquired.
    pub records: Option<Bytes>,
    /// Ranges this member holds the lock on, ascending.
    pub acquired_records: Vec<AcquiredRecords>,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for PartitionData {
    fn default() -> Self {
        Self {
            partition_index: 0,
            error_code: ErrorCode::NONE,
            error_message: None,
            acknowledge_error_code: ErrorCode::NONE,
            acknowledge_error_message: None,
            current_leader: LeaderIdAndEpoch::default(),
            records: None,
            acquired_records: Vec::new(),
            tagged: TaggedFields::new(),
        }
    }
}

impl PartitionData {
    pub(crate) fn read(r: &mut Reader, version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.partition_index = r.i32()?;
        this.error_code = r.i16().map(ErrorCode)?;
        this.error_message = r.nullable_string(true)?;
        this.acknowledge_error_code = r.i16().map(ErrorCode)?;
        this.acknowledge_error_message = r.nullable_string(true)?;
        this.current_leader = LeaderIdAndEpoch::read(r, version)?;
        this.records = r.nullable_bytes(true)?;
        this.acquired_records = r.array(true, 19, |r| AcquiredRecords::read(r, version))?;
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
        w.i16(self.acknowledge_error_code.0);
        match &self.acknowledge_error_message {
            Some(value) => {
                w.string(value, true)?;
            }
            None => {
                w.null_string(true);
            }
        }
        self.current_leader.write(w, version)?;
        match &self.records {
            Some(value) => {
                w.bytes(value, true)?;
            }
            None => {
                w.array_len(0, true)?;
            }
        }
        w.array_len(self.acquired_records.len(), true)?;
        for item in &self.acquired_records {
            item.write(w, version)?;
        }
        self.tagged.write(w, &[])?;
        Ok(())
    }
}

/// Who leads the partition, given when this broker does not.
///
/// Versions 1-2.
#[derive(Debug, Clone, PartialEq)]
pub struct LeaderIdAndEpoch {
    /// Broker id of the leader, -1 if nobody is known.
    pub leader_id: i32,
    /// Term of that leader.
    pub leader_epoch: i32,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for LeaderIdAndEpoch {
    fn default() -> Self {
        Self { leader_id: 0, leader_epoch: 0, tagged: TaggedFields::new() }
    }
}

impl LeaderIdAndEpoch {
    pub(crate) fn read(r: &mut Reader, _version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.leader_id = r.i32()?;
        this.leader_epoch = r.i32()?;
        this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, _version: i16) -> Result<()> {
        w.i32(self.leader_id);
        w.i32(self.leader_epoch);
        self.tagged.write(w, &[])?;
        Ok(())
    }
}

/// Ranges this member holds the lock on, ascending.
///
/// Versions 1-2.
#[derive(Debug, Clone, PartialEq)]
pub struct AcquiredRecords {
    /// Offset at which the range begins.
    pub first_offset: i64,
    /// Offset at which the range ends; it is part of the range.
    pub last_offset: i64,
    /// How often the range has been handed out, this time included.
    pub delivery_count: i16,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for AcquiredRecords {
    fn default() -> Self {
        Self { first_offset: 0, last_offset: 0, delivery_count: 0, tagged: TaggedFields::new() }
    }
}

impl AcquiredRecords {
    pub(crate) fn read(r: &mut Reader, _version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.first_offset = r.i64()?;
        this.last_offset = r.i64()?;
        this.delivery_count = r.i16()?;
        this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, _version: i16) -> Result<()> {
        w.i64(self.first_offset);
        w.i64(self.last_offset);
        w.i16(self.delivery_count);
        self.tagged.write(w, &[])?;
        Ok(())
    }
}

/// Addresses of the leaders that are named above as the right ones to ask.
///
/// Versions 1-2.
#[derive(Debug, Clone, PartialEq)]
pub struct NodeEndpoint {
    /// Broker id of a leader.
    pub node_id: i32,
    /// Name or address to connect to.
    pub host: Str,
    /// TCP port to connect to.
    pub port: i32,
    /// Rack of that broker, null if it has none.
    pub rack: Option<Str>,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for NodeEndpoint {
    fn default() -> Self {
        Self { node_id: 0, host: Str::default(), port: 0, rack: None, tagged: TaggedFields::new() }
    }
}

impl NodeEndpoint {
    pub(crate) fn read(r: &mut Reader, _version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.node_id = r.i32()?;
        this.host = r.string(true)?;
        this.port = r.i32()?;
        this.rack = r.nullable_string(true)?;
        this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, _version: i16) -> Result<()> {
        w.i32(self.node_id);
        w.string(&self.host, true)?;
        w.i32(self.port);
        match &self.rack {
            Some(value) => {
                w.string(value, true)?;
            }
            None => {
                w.null_string(true);
            }
        }
        self.tagged.write(w, &[])?;
        Ok(())
    }
}

impl Message for ShareFetchResponse {
    const NAME: &'static str = "ShareFetchResponse";
    const MIN_VERSION: i16 = 1;
    const MAX_VERSION: i16 = 2;
    const FLEXIBLE_FROM: i16 = 1;

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
