//! FetchResponse (generated from protocol-specs; do not edit).

use crate::{ErrorCode, Message};
use bytes::Bytes;
use kafka_share_wire::{ErrorKind, Reader, Result, Str, TaggedFields, Uuid, Writer};

/// Carries the record batches read, with the high watermark, the last stable offset and the aborted transactions.
///
/// Versions 4-18.
#[derive(Debug, Clone, PartialEq)]
pub struct FetchResponse {
    /// `ThrottleTimeMs`
    pub throttle_time_ms: i32,
    /// `ErrorCode` (versions 7-18)
    pub error_code: ErrorCode,
    /// `SessionId` (versions 7-18)
    pub session_id: i32,
    /// `Responses`
    pub responses: Vec<FetchableTopicResponse>,
    /// `NodeEndpoints` (versions 16-18, tag 0)
    pub node_endpoints: Vec<NodeEndpoint>,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for FetchResponse {
    fn default() -> Self {
        Self {
            throttle_time_ms: 0,
            error_code: ErrorCode::NONE,
            session_id: 0,
            responses: Vec::new(),
            node_endpoints: Vec::new(),
            tagged: TaggedFields::new(),
        }
    }
}

impl FetchResponse {
    pub(crate) fn read(r: &mut Reader, version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.throttle_time_ms = r.i32()?;
        if version >= 7 {
            this.error_code = r.i16().map(ErrorCode)?;
        }
        if version >= 7 {
            this.session_id = r.i32()?;
        }
        this.responses = r.array(version >= 12, 3, |r| FetchableTopicResponse::read(r, version))?;
        if version >= 12 {
            let unknown = TaggedFields::read(r, |tag, field| {
                match tag {
                    0 if version >= 16 => {
                        this.node_endpoints = field.array(true, 11, |r| NodeEndpoint::read(r, version))?
                    }
                    _ => return Ok(false),
                }
                Ok(true)
            })?;
            this.tagged = unknown;
        }
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, version: i16) -> Result<()> {
        w.i32(self.throttle_time_ms);
        if version >= 7 {
            w.i16(self.error_code.0);
        }
        if version >= 7 {
            w.i32(self.session_id);
        } else {
            if self.session_id != 0 {
                return Err(ErrorKind::FieldNotInVersion { field: "FetchResponse.SessionId", version }.at(w.len()));
            }
        }
        w.array_len(self.responses.len(), version >= 12)?;
        for item in &self.responses {
            item.write(w, version)?;
        }
        if !(version >= 16) {
            if !self.node_endpoints.is_empty() {
                return Err(ErrorKind::FieldNotInVersion { field: "FetchResponse.NodeEndpoints", version }.at(w.len()));
            }
        }
        if version >= 12 {
            let mut known: Vec<(u32, Bytes)> = Vec::new();
            if version >= 16 && !self.node_endpoints.is_empty() {
                let mut field = Writer::new();
                let w = &mut field;
                w.array_len(self.node_endpoints.len(), true)?;
                for item in &self.node_endpoints {
                    item.write(w, version)?;
                }
                known.push((0, field.into_bytes()));
            }
            self.tagged.write(w, &known)?;
        }
        Ok(())
    }
}

/// Part of [`FetchResponse`].
///
/// Versions 4-18.
#[derive(Debug, Clone, PartialEq)]
pub struct FetchableTopicResponse {
    /// `Topic` (versions 4-12)
    pub topic: Str,
    /// `TopicId` (versions 13-18)
    pub topic_id: Uuid,
    /// `Partitions`
    pub partitions: Vec<PartitionData>,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for FetchableTopicResponse {
    fn default() -> Self {
        Self { topic: Str::default(), topic_id: Uuid::ZERO, partitions: Vec::new(), tagged: TaggedFields::new() }
    }
}

impl FetchableTopicResponse {
    pub(crate) fn read(r: &mut Reader, version: i16) -> Result<Self> {
        let mut this = Self::default();
        if version <= 12 {
            this.topic = r.string(version >= 12)?;
        }
        if version >= 13 {
            this.topic_id = r.uuid()?;
        }
        this.partitions = r.array(version >= 12, 30, |r| PartitionData::read(r, version))?;
        if version >= 12 {
            this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        }
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, version: i16) -> Result<()> {
        if version <= 12 {
            w.string(&self.topic, version >= 12)?;
        }
        if version >= 13 {
            w.uuid(self.topic_id);
        }
        w.array_len(self.partitions.len(), version >= 12)?;
        for item in &self.partitions {
            item.write(w, version)?;
        }
        if version >= 12 {
            self.tagged.write(w, &[])?;
        }
        Ok(())
    }
}

/// Part of [`FetchResponse`].
///
/// Versions 4-18.
#[derive(Debug, Clone, PartialEq)]
pub struct PartitionData {
    /// `PartitionIndex`
    pub partition_index: i32,
    /// `ErrorCode`
    pub error_code: ErrorCode,
    /// `HighWatermark`
    pub high_watermark: i64,
    /// `LastStableOffset`
    pub last_stable_offset: i64,
    /// `LogStartOffset` (versions 5-18)
    pub log_start_offset: i64,
    /// `DivergingEpoch` (versions 12-18, tag 0)
    pub diverging_epoch: EpochEndOffset,
    /// `CurrentLeader` (versions 12-18, tag 1)
    pub current_leader: LeaderIdAndEpoch,
    /// `SnapshotId` (versions 12-18, tag 2)
    pub snapshot_id: SnapshotId,
    /// `AbortedTransactions`
    pub aborted_transactions: Option<Vec<AbortedTransaction>>,
    /// `PreferredReadReplica` (versions 11-18)
    pub preferred_read_replica: i32,
    /// `Records`
    pub records: Option<Bytes>,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for PartitionData {
    fn default() -> Self {
        Self {
            partition_index: 0,
            error_code: ErrorCode::NONE,
            high_watermark: 0,
            last_stable_offset: -1,
            log_start_offset: -1,
            diverging_epoch: EpochEndOffset::default(),
            current_leader: LeaderIdAndEpoch::default(),
            snapshot_id: SnapshotId::default(),
            aborted_transactions: Some(Vec::new()),
            preferred_read_replica: -1,
            records: None,
            tagged: TaggedFields::new(),
        }
    }
}

impl PartitionData {
    pub(crate) fn read(r: &mut Reader, version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.partition_index = r.i32()?;
        this.error_code = r.i16().map(ErrorCode)?;
        this.high_watermark = r.i64()?;
        this.last_stable_offset = r.i64()?;
        if version >= 5 {
            this.log_start_offset = r.i64()?;
        }
        this.aborted_transactions = r.nullable_array(version >= 12, 16, |r| AbortedTransaction::read(r, version))?;
        if version >= 11 {
            this.preferred_read_replica = r.i32()?;
        }
        this.records = r.nullable_bytes(version >= 12)?;
        if version >= 12 {
            let unknown = TaggedFields::read(r, |tag, field| {
                match tag {
                    0 => this.diverging_epoch = EpochEndOffset::read(field, version)?,
                    1 => this.current_leader = LeaderIdAndEpoch::read(field, version)?,
                    2 => this.snapshot_id = SnapshotId::read(field, version)?,
                    _ => return Ok(false),
                }
                Ok(true)
            })?;
            this.tagged = unknown;
        }
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, version: i16) -> Result<()> {
        w.i32(self.partition_index);
        w.i16(self.error_code.0);
        w.i64(self.high_watermark);
        w.i64(self.last_stable_offset);
        if version >= 5 {
            w.i64(self.log_start_offset);
        }
        match &self.aborted_transactions {
            Some(value) => {
                w.array_len(value.len(), version >= 12)?;
                for item in value {
                    item.write(w, version)?;
                }
            }
            None => {
                w.null_array(version >= 12);
            }
        }
        if version >= 11 {
            w.i32(self.preferred_read_replica);
        } else {
            if self.preferred_read_replica != -1 {
                return Err(
                    ErrorKind::FieldNotInVersion { field: "PartitionData.PreferredReadReplica", version }.at(w.len())
                );
            }
        }
        match &self.records {
            Some(value) => {
                w.bytes(value, version >= 12)?;
            }
            None => {
                w.null_array(version >= 12);
            }
        }
        if !(version >= 12) {
            if self.diverging_epoch != EpochEndOffset::default() {
                return Err(ErrorKind::FieldNotInVersion { field: "PartitionData.DivergingEpoch", version }.at(w.len()));
            }
        }
        if !(version >= 12) {
            if self.current_leader != LeaderIdAndEpoch::default() {
                return Err(ErrorKind::FieldNotInVersion { field: "PartitionData.CurrentLeader", version }.at(w.len()));
            }
        }
        if !(version >= 12) {
            if self.snapshot_id != SnapshotId::default() {
                return Err(ErrorKind::FieldNotInVersion { field: "PartitionData.SnapshotId", version }.at(w.len()));
            }
        }
        if version >= 12 {
            let mut known: Vec<(u32, Bytes)> = Vec::new();
            if self.diverging_epoch != EpochEndOffset::default() {
                let mut field = Writer::new();
                let w = &mut field;
                self.diverging_epoch.write(w, version)?;
                known.push((0, field.into_bytes()));
            }
            if self.current_leader != LeaderIdAndEpoch::default() {
                let mut field = Writer::new();
                let w = &mut field;
                self.current_leader.write(w, version)?;
                known.push((1, field.into_bytes()));
            }
            if self.snapshot_id != SnapshotId::default() {
                let mut field = Writer::new();
                let w = &mut field;
                self.snapshot_id.write(w, version)?;
                known.push((2, field.into_bytes()));
            }
            self.tagged.write(w, &known)?;
        }
        Ok(())
    }
}

/// Part of [`FetchResponse`].
///
/// Versions 12-18.
#[derive(Debug, Clone, PartialEq)]
pub struct EpochEndOffset {
    /// `Epoch` (versions 12-18)
    pub epoch: i32,
    /// `EndOffset` (versions 12-18)
    pub end_offset: i64,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for EpochEndOffset {
    fn default() -> Self {
        Self { epoch: -1, end_offset: -1, tagged: TaggedFields::new() }
    }
}

impl EpochEndOffset {
    pub(crate) fn read(r: &mut Reader, _version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.epoch = r.i32()?;
        this.end_offset = r.i64()?;
        this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, _version: i16) -> Result<()> {
        w.i32(self.epoch);
        w.i64(self.end_offset);
        self.tagged.write(w, &[])?;
        Ok(())
    }
}

/// Part of [`FetchResponse`].
///
/// Versions 12-18.
#[derive(Debug, Clone, PartialEq)]
pub struct LeaderIdAndEpoch {
    /// `LeaderId` (versions 12-18)
    pub leader_id: i32,
    /// `LeaderEpoch` (versions 12-18)
    pub leader_epoch: i32,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for LeaderIdAndEpoch {
    fn default() -> Self {
        Self { leader_id: -1, leader_epoch: -1, tagged: TaggedFields::new() }
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

/// Part of [`FetchResponse`].
///
/// Versions 12-18.
#[derive(Debug, Clone, PartialEq)]
pub struct SnapshotId {
    /// `EndOffset` (versions 12-18)
    pub end_offset: i64,
    /// `Epoch` (versions 12-18)
    pub epoch: i32,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for SnapshotId {
    fn default() -> Self {
        Self { end_offset: -1, epoch: -1, tagged: TaggedFields::new() }
    }
}

impl SnapshotId {
    pub(crate) fn read(r: &mut Reader, _version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.end_offset = r.i64()?;
        this.epoch = r.i32()?;
        this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, _version: i16) -> Result<()> {
        w.i64(self.end_offset);
        w.i32(self.epoch);
        self.tagged.write(w, &[])?;
        Ok(())
    }
}

/// Part of [`FetchResponse`].
///
/// Versions 4-18.
#[derive(Debug, Clone, PartialEq)]
pub struct AbortedTransaction {
    /// `ProducerId`
    pub producer_id: i64,
    /// `FirstOffset`
    pub first_offset: i64,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for AbortedTransaction {
    fn default() -> Self {
        Self { producer_id: 0, first_offset: 0, tagged: TaggedFields::new() }
    }
}

impl AbortedTransaction {
    pub(crate) fn read(r: &mut Reader, version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.producer_id = r.i64()?;
        this.first_offset = r.i64()?;
        if version >= 12 {
            this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        }
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, version: i16) -> Result<()> {
        w.i64(self.producer_id);
        w.i64(self.first_offset);
        if version >= 12 {
            self.tagged.write(w, &[])?;
        }
        Ok(())
    }
}

/// Part of [`FetchResponse`].
///
/// Versions 16-18.
#[derive(Debug, Clone, PartialEq)]
pub struct NodeEndpoint {
    /// `NodeId` (versions 16-18)
    pub node_id: i32,
    /// `Host` (versions 16-18)
    pub host: Str,
    /// `Port` (versions 16-18)
    pub port: i32,
    /// `Rack` (versions 16-18)
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

impl Message for FetchResponse {
    const NAME: &'static str = "FetchResponse";
    const MIN_VERSION: i16 = 4;
    const MAX_VERSION: i16 = 18;
    const FLEXIBLE_FROM: i16 = 12;

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
