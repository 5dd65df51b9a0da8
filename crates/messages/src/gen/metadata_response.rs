//! MetadataResponse (generated from protocol-specs; do not edit).

use crate::{ErrorCode, Message};
use kafka_share_wire::{ErrorKind, Reader, Result, Str, TaggedFields, Uuid, Writer};

/// Lists brokers, controller, and the partitions of each topic with leader, epoch and replicas.
///
/// Versions 0-13.
#[derive(Debug, Clone, PartialEq)]
pub struct MetadataResponse {
    /// `ThrottleTimeMs` (versions 3-13)
    pub throttle_time_ms: i32,
    /// `Brokers`
    pub brokers: Vec<MetadataResponseBroker>,
    /// `ClusterId` (versions 2-13)
    pub cluster_id: Option<Str>,
    /// `ControllerId` (versions 1-13)
    pub controller_id: i32,
    /// `Topics`
    pub topics: Vec<MetadataResponseTopic>,
    /// `ClusterAuthorizedOperations` (versions 8-10)
    pub cluster_authorized_operations: i32,
    /// `ErrorCode` (versions 13)
    pub error_code: ErrorCode,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for MetadataResponse {
    fn default() -> Self {
        Self {
            throttle_time_ms: 0,
            brokers: Vec::new(),
            cluster_id: None,
            controller_id: -1,
            topics: Vec::new(),
            cluster_authorized_operations: i32::MIN,
            error_code: ErrorCode::NONE,
            tagged: TaggedFields::new(),
        }
    }
}

impl MetadataResponse {
    pub(crate) fn read(r: &mut Reader, version: i16) -> Result<Self> {
        let mut this = Self::default();
        if version >= 3 {
            this.throttle_time_ms = r.i32()?;
        }
        this.brokers = r.array(version >= 9, 10, |r| MetadataResponseBroker::read(r, version))?;
        if version >= 2 {
            this.cluster_id = r.nullable_string(version >= 9)?;
        }
        if version >= 1 {
            this.controller_id = r.i32()?;
        }
        this.topics = r.array(version >= 9, 8, |r| MetadataResponseTopic::read(r, version))?;
        if (8..=10).contains(&version) {
            this.cluster_authorized_operations = r.i32()?;
        }
        if version >= 13 {
            this.error_code = r.i16().map(ErrorCode)?;
        }
        if version >= 9 {
            this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        }
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, version: i16) -> Result<()> {
        if version >= 3 {
            w.i32(self.throttle_time_ms);
        }
        w.array_len(self.brokers.len(), version >= 9)?;
        for item in &self.brokers {
            item.write(w, version)?;
        }
        if version >= 2 {
            match &self.cluster_id {
                Some(value) => {
                    w.string(value, version >= 9)?;
                }
                None => {
                    w.null_string(version >= 9);
                }
            }
        }
        if version >= 1 {
            w.i32(self.controller_id);
        }
        w.array_len(self.topics.len(), version >= 9)?;
        for item in &self.topics {
            item.write(w, version)?;
        }
        if (8..=10).contains(&version) {
            w.i32(self.cluster_authorized_operations);
        } else {
            if self.cluster_authorized_operations != i32::MIN {
                return Err(ErrorKind::FieldNotInVersion {
                    field: "MetadataResponse.ClusterAuthorizedOperations",
                    version,
                }
                .at(w.len()));
            }
        }
        if version >= 13 {
            w.i16(self.error_code.0);
        }
        if version >= 9 {
            self.tagged.write(w, &[])?;
        }
        Ok(())
    }
}

/// Part of [`MetadataResponse`].
///
/// Versions 0-13.
#[derive(Debug, Clone, PartialEq)]
pub struct MetadataResponseBroker {
    /// `NodeId`
    pub node_id: i32,
    /// `Host`
    pub host: Str,
    /// `Port`
    pub port: i32,
    /// `Rack` (versions 1-13)
    pub rack: Option<Str>,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for MetadataResponseBroker {
    fn default() -> Self {
        Self { node_id: 0, host: Str::default(), port: 0, rack: None, tagged: TaggedFields::new() }
    }
}

impl MetadataResponseBroker {
    pub(crate) fn read(r: &mut Reader, version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.node_id = r.i32()?;
        this.host = r.string(version >= 9)?;
        this.port = r.i32()?;
        if version >= 1 {
            this.rack = r.nullable_string(version >= 9)?;
        }
        if version >= 9 {
            this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        }
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, version: i16) -> Result<()> {
        w.i32(self.node_id);
        w.string(&self.host, version >= 9)?;
        w.i32(self.port);
        if version >= 1 {
            match &self.rack {
                Some(value) => {
                    w.string(value, version >= 9)?;
                }
                None => {
                    w.null_string(version >= 9);
                }
            }
        }
        if version >= 9 {
            self.tagged.write(w, &[])?;
        }
        Ok(())
    }
}

/// Part of [`MetadataResponse`].
///
/// Versions 0-13.
#[derive(Debug, Clone, PartialEq)]
pub struct MetadataResponseTopic {
    /// `ErrorCode`
    pub error_code: ErrorCode,
    /// `Name` (null only in versions 12-13)
    pub name: Option<Str>,
    /// `TopicId` (versions 10-13)
    pub topic_id: Uuid,
    /// `IsInternal` (versions 1-13)
    pub is_internal: bool,
    /// `Partitions`
    pub partitions: Vec<MetadataResponsePartition>,
    /// `TopicAuthorizedOperations` (versions 8-13)
    pub topic_authorized_operations: i32,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for MetadataResponseTopic {
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

impl MetadataResponseTopic {
    pub(crate) fn read(r: &mut Reader, version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.error_code = r.i16().map(ErrorCode)?;
        this.name = if version >= 12 { r.nullable_string(version >= 9)? } else { Some(r.string(version >= 9)?) };
        if version >= 10 {
            this.topic_id = r.uuid()?;
        }
        if version >= 1 {
            this.is_internal = r.bool()?;
        }
        this.partitions = r.array(version >= 9, 18, |r| MetadataResponsePartition::read(r, version))?;
        if version >= 8 {
            this.topic_authorized_operations = r.i32()?;
        }
        if version >= 9 {
            this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        }
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, version: i16) -> Result<()> {
        w.i16(self.error_code.0);
        match &self.name {
            Some(value) => {
                w.string(value, version >= 9)?;
            }
            None => {
                if version >= 12 {
                    w.null_string(version >= 9)
                } else {
                    return Err(ErrorKind::UnexpectedNull.at(w.len()));
                };
            }
        }
        if version >= 10 {
            w.uuid(self.topic_id);
        }
        if version >= 1 {
            w.bool(self.is_internal);
        }
        w.array_len(self.partitions.len(), version >= 9)?;
        for item in &self.partitions {
            item.write(w, version)?;
        }
        if version >= 8 {
            w.i32(self.topic_authorized_operations);
        } else {
            if self.topic_authorized_operations != i32::MIN {
                return Err(ErrorKind::FieldNotInVersion {
                    field: "MetadataResponseTopic.TopicAuthorizedOperations",
                    version,
                }
                .at(w.len()));
            }
        }
        if version >= 9 {
            self.tagged.write(w, &[])?;
        }
        Ok(())
    }
}

/// Part of [`MetadataResponse`].
///
/// Versions 0-13.
#[derive(Debug, Clone, PartialEq)]
pub struct MetadataResponsePartition {
    /// `ErrorCode`
    pub error_code: ErrorCode,
    /// `PartitionIndex`
    pub partition_index: i32,
    /// `LeaderId`
    pub leader_id: i32,
    /// `LeaderEpoch` (versions 7-13)
    pub leader_epoch: i32,
    /// `ReplicaNodes`
    pub replica_nodes: Vec<i32>,
    /// `IsrNodes`
    pub isr_nodes: Vec<i32>,
    /// `OfflineReplicas` (versions 5-13)
    pub offline_replicas: Vec<i32>,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for MetadataResponsePartition {
    fn default() -> Self {
        Self {
            error_code: ErrorCode::NONE,
            partition_index: 0,
            leader_id: 0,
            leader_epoch: -1,
            replica_nodes: Vec::new(),
            isr_nodes: Vec::new(),
            offline_replicas: Vec::new(),
            tagged: TaggedFields::new(),
        }
    }
}

impl MetadataResponsePartition {
    pub(crate) fn read(r: &mut Reader, version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.error_code = r.i16().map(ErrorCode)?;
        this.partition_index = r.i32()?;
        this.leader_id = r.i32()?;
        if version >= 7 {
            this.leader_epoch = r.i32()?;
        }
        this.replica_nodes = r.array(version >= 9, 4, |r| r.i32())?;
        this.isr_nodes = r.array(version >= 9, 4, |r| r.i32())?;
        if version >= 5 {
            this.offline_replicas = r.array(version >= 9, 4, |r| r.i32())?;
        }
        if version >= 9 {
            this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        }
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, version: i16) -> Result<()> {
        w.i16(self.error_code.0);
        w.i32(self.partition_index);
        w.i32(self.leader_id);
        if version >= 7 {
            w.i32(self.leader_epoch);
        }
        w.array_len(self.replica_nodes.len(), version >= 9)?;
        for item in &self.replica_nodes {
            w.i32(*item);
        }
        w.array_len(self.isr_nodes.len(), version >= 9)?;
        for item in &self.isr_nodes {
            w.i32(*item);
        }
        if version >= 5 {
            w.array_len(self.offline_replicas.len(), version >= 9)?;
            for item in &self.offline_replicas {
                w.i32(*item);
            }
        }
        if version >= 9 {
            self.tagged.write(w, &[])?;
        }
        Ok(())
    }
}

impl Message for MetadataResponse {
    const NAME: &'static str = "MetadataResponse";
    const MIN_VERSION: i16 = 0;
    const MAX_VERSION: i16 = 13;
    const FLEXIBLE_FROM: i16 = 9;

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
