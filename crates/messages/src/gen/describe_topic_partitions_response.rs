//! DescribeTopicPartitionsResponse (generated from protocol-specs; do not edit).

use crate::{ErrorCode, Message};
use kafka_share_wire::{Reader, Result, Str, TaggedFields, Uuid, Writer};

/// One page of partitions with their replica sets, and the cursor that continues it.
///
/// Versions 0.
#[derive(Debug, Clone, PartialEq)]
pub struct DescribeTopicPartitionsResponse {
    /// `ThrottleTimeMs`
    pub throttle_time_ms: i32,
    /// `Topics`
    pub topics: Vec<DescribeTopicPartitionsResponseTopic>,
    /// `NextCursor`
    pub next_cursor: Option<Cursor>,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for DescribeTopicPartitionsResponse {
    fn default() -> Self {
        Self { throttle_time_ms: 0, topics: Vec::new(), next_cursor: None, tagged: TaggedFields::new() }
    }
}

impl DescribeTopicPartitionsResponse {
    pub(crate) fn read(r: &mut Reader, version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.throttle_time_ms = r.i32()?;
        this.topics = r.array(true, 26, |r| DescribeTopicPartitionsResponseTopic::read(r, version))?;
        this.next_cursor = if r.struct_marker()? { Some(Cursor::read(r, version)?) } else { None };
        this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, version: i16) -> Result<()> {
        w.i32(self.throttle_time_ms);
        w.array_len(self.topics.len(), true)?;
        for item in &self.topics {
            item.write(w, version)?;
        }
        match &self.next_cursor {
            Some(value) => {
                w.struct_marker(true);
                value.write(w, version)?;
            }
            None => {
                w.struct_marker(false);
            }
        }
        self.tagged.write(w, &[])?;
        Ok(())
    }
}

/// Part of [`DescribeTopicPartitionsResponse`].
///
/// Versions 0.
#[derive(Debug, Clone, PartialEq)]
pub struct DescribeTopicPartitionsResponseTopic {
    /// `ErrorCode`
    pub error_code: ErrorCode,
    /// `Name`
    pub name: Option<Str>,
    /// `TopicId`
    pub topic_id: Uuid,
    /// `IsInternal`
    pub is_internal: bool,
    /// `Partitions`
    pub partitions: Vec<DescribeTopicPartitionsResponsePartition>,
    /// `TopicAuthorizedOperations`
    pub topic_authorized_operations: i32,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for DescribeTopicPartitionsResponseTopic {
    fn default() -> Self {
        Self {
            error_code: ErrorCode::NONE,
            name: Some(Str::default()),
            topic_id: Uuid::ZERO,
            is_internal: false,
            partitions: Vec::new(),
            topic_authorized_operations: i32::MIN,
            tagged: TaggedFields::new(),
        }
    }
}

impl DescribeTopicPartitionsResponseTopic {
    pub(crate) fn read(r: &mut Reader, version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.error_code = r.i16().map(ErrorCode)?;
        this.name = r.nullable_string(true)?;
        this.topic_id = r.uuid()?;
        this.is_internal = r.bool()?;
        this.partitions = r.array(true, 20, |r| DescribeTopicPartitionsResponsePartition::read(r, version))?;
        this.topic_authorized_operations = r.i32()?;
        this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, version: i16) -> Result<()> {
        w.i16(self.error_code.0);
        match &self.name {
            Some(value) => {
                w.string(value, true)?;
            }
            None => {
                w.null_string(true);
            }
        }
        w.uuid(self.topic_id);
        w.bool(self.is_internal);
        w.array_len(self.partitions.len(), true)?;
        for item in &self.partitions {
            item.write(w, version)?;
        }
        w.i32(self.topic_authorized_operations);
        self.tagged.write(w, &[])?;
        Ok(())
    }
}

/// Part of [`DescribeTopicPartitionsResponse`].
///
/// Versions 0.
#[derive(Debug, Clone, PartialEq)]
pub struct DescribeTopicPartitionsResponsePartition {
    /// `ErrorCode`
    pub error_code: ErrorCode,
    /// `PartitionIndex`
    pub partition_index: i32,
    /// `LeaderId`
    pub leader_id: i32,
    /// `LeaderEpoch`
    pub leader_epoch: i32,
    /// `ReplicaNodes`
    pub replica_nodes: Vec<i32>,
    /// `IsrNodes`
    pub isr_nodes: Vec<i32>,
    /// `EligibleLeaderReplicas`
    pub eligible_leader_replicas: Option<Vec<i32>>,
    /// `LastKnownElr`
    pub last_known_elr: Option<Vec<i32>>,
    /// `OfflineReplicas`
    pub offline_replicas: Vec<i32>,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for DescribeTopicPartitionsResponsePartition {
    fn default() -> Self {
        Self {
            error_code: ErrorCode::NONE,
            partition_index: 0,
            leader_id: 0,
            leader_epoch: -1,
            replica_nodes: Vec::new(),
            isr_nodes: Vec::new(),
            eligible_leader_replicas: None,
            last_known_elr: None,
            offline_replicas: Vec::new(),
            tagged: TaggedFields::new(),
        }
    }
}

impl DescribeTopicPartitionsResponsePartition {
    pub(crate) fn read(r: &mut Reader, _version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.error_code = r.i16().map(ErrorCode)?;
        this.partition_index = r.i32()?;
        this.leader_id = r.i32()?;
        this.leader_epoch = r.i32()?;
        this.replica_nodes = r.array(true, 4, |r| r.i32())?;
        this.isr_nodes = r.array(true, 4, |r| r.i32())?;
        this.eligible_leader_replicas = r.nullable_array(true, 4, |r| r.i32())?;
        this.last_known_elr = r.nullable_array(true, 4, |r| r.i32())?;
        this.offline_replicas = r.array(true, 4, |r| r.i32())?;
        this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, _version: i16) -> Result<()> {
        w.i16(self.error_code.0);
        w.i32(self.partition_index);
        w.i32(self.leader_id);
        w.i32(self.leader_epoch);
        w.array_len(self.replica_nodes.len(), true)?;
        for item in &self.replica_nodes {
            w.i32(*item);
        }
        w.array_len(self.isr_nodes.len(), true)?;
        for item in &self.isr_nodes {
            w.i32(*item);
        }
        match &self.eligible_leader_replicas {
            Some(value) => {
                w.array_len(value.len(), true)?;
                for item in value {
                    w.i32(*item);
                }
            }
            None => {
                w.null_array(true);
            }
        }
        match &self.last_known_elr {
            Some(value) => {
                w.array_len(value.len(), true)?;
                for item in value {
                    w.i32(*item);
                }
            }
            None => {
                w.null_array(true);
            }
        }
        w.array_len(self.offline_replicas.len(), true)?;
        for item in &self.offline_replicas {
            w.i32(*item);
        }
        self.tagged.write(w, &[])?;
        Ok(())
    }
}

/// Part of [`DescribeTopicPartitionsResponse`].
///
/// Versions 0.
#[derive(Debug, Clone, PartialEq)]
pub struct Cursor {
    /// `TopicName`
    pub topic_name: Str,
    /// `PartitionIndex`
    pub partition_index: i32,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for Cursor {
    fn default() -> Self {
        Self { topic_name: Str::default(), partition_index: 0, tagged: TaggedFields::new() }
    }
}

impl Cursor {
    pub(crate) fn read(r: &mut Reader, _version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.topic_name = r.string(true)?;
        this.partition_index = r.i32()?;
        this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, _version: i16) -> Result<()> {
        w.string(&self.topic_name, true)?;
        w.i32(self.partition_index);
        self.tagged.write(w, &[])?;
        Ok(())
    }
}

impl Message for DescribeTopicPartitionsResponse {
    const NAME: &'static str = "DescribeTopicPartitionsResponse";
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
