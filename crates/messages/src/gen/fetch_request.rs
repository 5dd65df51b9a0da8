//! FetchRequest (generated from protocol-specs; do not edit).

use crate::{Message, Request};
use bytes::Bytes;
use kafka_share_wire::{ErrorKind, Reader, Result, Str, TaggedFields, Uuid, Writer};

/// Reads record batches from partitions, as a plain consumer or a replica, inside an incremental fetch session.
///
/// Versions 4-18.
#[derive(Debug, Clone, PartialEq)]
pub struct FetchRequest {
    /// `ClusterId` (versions 12-18, tag 0)
    pub cluster_id: Option<Str>,
    /// `ReplicaId` (versions 4-14)
    pub replica_id: i32,
    /// `ReplicaState` (versions 15-18, tag 1)
    pub replica_state: ReplicaState,
    /// `MaxWaitMs`
    pub max_wait_ms: i32,
    /// `MinBytes`
    pub min_bytes: i32,
    /// `MaxBytes`
    pub max_bytes: i32,
    /// `IsolationLevel`
    pub isolation_level: i8,
    /// `SessionId` (versions 7-18)
    pub session_id: i32,
    /// `SessionEpoch` (versions 7-18)
    pub session_epoch: i32,
    /// `Topics`
    pub topics: Vec<FetchTopic>,
    /// `ForgottenTopicsData` (versions 7-18)
    pub forgotten_topics_data: Vec<ForgottenTopic>,
    /// `RackId` (versions 11-18)
    pub rack_id: Str,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for FetchRequest {
    fn default() -> Self {
        Self {
            cluster_id: None,
            replica_id: -1,
            replica_state: ReplicaState::default(),
            max_wait_ms: 0,
            min_bytes: 0,
            max_bytes: i32::MAX,
            isolation_level: 0,
            session_id: 0,
            session_epoch: -1,
            topics: Vec::new(),
            forgotten_topics_data: Vec::new(),
            rack_id: Str::default(),
            tagged: TaggedFields::new(),
        }
    }
}

impl FetchRequest {
    pub(crate) fn read(r: &mut Reader, version: i16) -> Result<Self> {
        let mut this = Self::default();
        if version <= 14 {
            this.replica_id = r.i32()?;
        }
        this.max_wait_ms = r.i32()?;
        this.min_bytes = r.i32()?;
        this.max_bytes = r.i32()?;
        this.isolation_level = r.i8()?;
        if version >= 7 {
            this.session_id = r.i32()?;
        }
        if version >= 7 {
            this.session_epoch = r.i32()?;
        }
        this.topics = r.array(version >= 12, 3, |r| FetchTopic::read(r, version))?;
        if version >= 7 {
            this.forgotten_topics_data = r.array(version >= 12, 3, |r| ForgottenTopic::read(r, version))?;
        }
        if version >= 11 {
            this.rack_id = r.string(version >= 12)?;
        }
        if version >= 12 {
            let unknown = TaggedFields::read(r, |tag, field| {
                match tag {
                    0 => this.cluster_id = field.nullable_string(true)?,
                    1 if version >= 15 => this.replica_state = ReplicaState::read(field, version)?,
                    _ => return Ok(false),
                }
                Ok(true)
            })?;
            this.tagged = unknown;
        }
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, version: i16) -> Result<()> {
        if version <= 14 {
            w.i32(self.replica_id);
        } else {
            if self.replica_id != -1 {
                return Err(ErrorKind::FieldNotInVersion { field: "FetchRequest.ReplicaId", version }.at(w.len()));
            }
        }
        w.i32(self.max_wait_ms);
        w.i32(self.min_bytes);
        w.i32(self.max_bytes);
        w.i8(self.isolation_level);
        if version >= 7 {
            w.i32(self.session_id);
        }
        if version >= 7 {
            w.i32(self.session_epoch);
        }
        w.array_len(self.topics.len(), version >= 12)?;
        for item in &self.topics {
            item.write(w, version)?;
        }
        if version >= 7 {
            w.array_len(self.forgotten_topics_data.len(), version >= 12)?;
            for item in &self.forgotten_topics_data {
                item.write(w, version)?;
            }
        } else {
            if !self.forgotten_topics_data.is_empty() {
                return Err(
                    ErrorKind::FieldNotInVersion { field: "FetchRequest.ForgottenTopicsData", version }.at(w.len())
                );
            }
        }
        if version >= 11 {
            w.string(&self.rack_id, version >= 12)?;
        }
        if !(version >= 15) {
            if self.replica_state != ReplicaState::default() {
                return Err(ErrorKind::FieldNotInVersion { field: "FetchRequest.ReplicaState", version }.at(w.len()));
            }
        }
        if version >= 12 {
            let mut known: Vec<(u32, Bytes)> = Vec::new();
            if self.cluster_id.is_some() {
                let mut field = Writer::new();
                let w = &mut field;
                match &self.cluster_id {
                    Some(value) => {
                        w.string(value, true)?;
                    }
                    None => {
                        w.null_string(true);
                    }
                }
                known.push((0, field.into_bytes()));
            }
            if version >= 15 && self.replica_state != ReplicaState::default() {
                let mut field = Writer::new();
                let w = &mut field;
                self.replica_state.write(w, version)?;
                known.push((1, field.into_bytes()));
            }
            self.tagged.write(w, &known)?;
        }
        Ok(())
    }
}

/// Part of [`FetchRequest`].
///
/// Versions 15-18.
#[derive(Debug, Clone, PartialEq)]
pub struct ReplicaState {
    /// `ReplicaId` (versions 15-18)
    pub replica_id: i32,
    /// `ReplicaEpoch` (versions 15-18)
    pub replica_epoch: i64,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for ReplicaState {
    fn default() -> Self {
        Self { replica_id: -1, replica_epoch: -1, tagged: TaggedFields::new() }
    }
}

impl ReplicaState {
    pub(crate) fn read(r: &mut Reader, _version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.replica_id = r.i32()?;
        this.replica_epoch = r.i64()?;
        this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, _version: i16) -> Result<()> {
        w.i32(self.replica_id);
        w.i64(self.replica_epoch);
        self.tagged.write(w, &[])?;
        Ok(())
    }
}

/// Part of [`FetchRequest`].
///
/// Versions 4-18.
#[derive(Debug, Clone, PartialEq)]
pub struct FetchTopic {
    /// `Topic` (versions 4-12)
    pub topic: Str,
    /// `TopicId` (versions 13-18)
    pub topic_id: Uuid,
    /// `Partitions`
    pub partitions: Vec<FetchPartition>,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for FetchTopic {
    fn default() -> Self {
        Self { topic: Str::default(), topic_id: Uuid::ZERO, partitions: Vec::new(), tagged: TaggedFields::new() }
    }
}

impl FetchTopic {
    pub(crate) fn read(r: &mut Reader, version: i16) -> Result<Self> {
        let mut this = Self::default();
        if version <= 12 {
            this.topic = r.string(version >= 12)?;
        }
        if version >= 13 {
            this.topic_id = r.uuid()?;
        }
        this.partitions = r.array(version >= 12, 16, |r| FetchPartition::read(r, version))?;
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

/// Part of [`FetchRequest`].
///
/// Versions 4-18.
#[derive(Debug, Clone, PartialEq)]
pub struct FetchPartition {
    /// `Partition`
    pub partition: i32,
    /// `CurrentLeaderEpoch` (versions 9-18)
    pub current_leader_epoch: i32,
    /// `FetchOffset`
    pub fetch_offset: i64,
    /// `LastFetchedEpoch` (versions 12-18)
    pub last_fetched_epoch: i32,
    /// `LogStartOffset` (versions 5-18)
    pub log_start_offset: i64,
    /// `PartitionMaxBytes`
    pub partition_max_bytes: i32,
    /// `ReplicaDirectoryId` (versions 17-18, tag 0)
    pub replica_directory_id: Uuid,
    /// `HighWatermark` (versions 18, tag 1)
    pub high_watermark: i64,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for FetchPartition {
    fn default() -> Self {
        Self {
            partition: 0,
            current_leader_epoch: -1,
            fetch_offset: 0,
            last_fetched_epoch: -1,
            log_start_offset: -1,
            partition_max_bytes: 0,
            replica_directory_id: Uuid::ZERO,
            high_watermark: i64::MAX,
            tagged: TaggedFields::new(),
        }
    }
}

impl FetchPartition {
    pub(crate) fn read(r: &mut Reader, version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.partition = r.i32()?;
        if version >= 9 {
            this.current_leader_epoch = r.i32()?;
        }
        this.fetch_offset = r.i64()?;
        if version >= 12 {
            this.last_fetched_epoch = r.i32()?;
        }
        if version >= 5 {
            this.log_start_offset = r.i64()?;
        }
        this.partition_max_bytes = r.i32()?;
        if version >= 12 {
            let unknown = TaggedFields::read(r, |tag, field| {
                match tag {
                    0 if version >= 17 => this.replica_directory_id = field.uuid()?,
                    1 if version >= 18 => this.high_watermark = field.i64()?,
                    _ => return Ok(false),
                }
                Ok(true)
            })?;
            this.tagged = unknown;
        }
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, version: i16) -> Result<()> {
        w.i32(self.partition);
        if version >= 9 {
            w.i32(self.current_leader_epoch);
        }
        w.i64(self.fetch_offset);
        if version >= 12 {
            w.i32(self.last_fetched_epoch);
        } else {
            if self.last_fetched_epoch != -1 {
                return Err(
                    ErrorKind::FieldNotInVersion { field: "FetchPartition.LastFetchedEpoch", version }.at(w.len())
                );
            }
        }
        if version >= 5 {
            w.i64(self.log_start_offset);
        }
        w.i32(self.partition_max_bytes);
        if version >= 12 {
            let mut known: Vec<(u32, Bytes)> = Vec::new();
            if version >= 17 && self.replica_directory_id != Uuid::ZERO {
                let mut field = Writer::new();
                let w = &mut field;
                w.uuid(self.replica_directory_id);
                known.push((0, field.into_bytes()));
            }
            if version >= 18 && self.high_watermark != i64::MAX {
                let mut field = Writer::new();
                let w = &mut field;
                w.i64(self.high_watermark);
                known.push((1, field.into_bytes()));
            }
            self.tagged.write(w, &known)?;
        }
        Ok(())
    }
}

/// Part of [`FetchRequest`].
///
/// Versions 7-18.
#[derive(Debug, Clone, PartialEq)]
pub struct ForgottenTopic {
    /// `Topic` (versions 7-12)
    pub topic: Str,
    /// `TopicId` (versions 13-18)
    pub topic_id: Uuid,
    /// `Partitions` (versions 7-18)
    pub partitions: Vec<i32>,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for ForgottenTopic {
    fn default() -> Self {
        Self { topic: Str::default(), topic_id: Uuid::ZERO, partitions: Vec::new(), tagged: TaggedFields::new() }
    }
}

impl ForgottenTopic {
    pub(crate) fn read(r: &mut Reader, version: i16) -> Result<Self> {
        let mut this = Self::default();
        if version <= 12 {
            this.topic = r.string(version >= 12)?;
        }
        if version >= 13 {
            this.topic_id = r.uuid()?;
        }
        this.partitions = r.array(version >= 12, 4, |r| r.i32())?;
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
            w.i32(*item);
        }
        if version >= 12 {
            self.tagged.write(w, &[])?;
        }
        Ok(())
    }
}

impl Message for FetchRequest {
    const NAME: &'static str = "FetchRequest";
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
}

impl Request for FetchRequest {
    type Response = super::fetch_response::FetchResponse;
    const KEY: crate::ApiKey = crate::ApiKey(1);
}
