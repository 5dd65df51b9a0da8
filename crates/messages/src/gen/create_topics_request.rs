//! CreateTopicsRequest (generated from protocol-specs; do not edit).

use crate::{Message, Request};
use kafka_share_wire::{Reader, Result, Str, TaggedFields, Writer};

/// Creates topics with their partition count or a replica placement, and their settings.
///
/// Versions 2-7.
#[derive(Debug, Clone, PartialEq)]
pub struct CreateTopicsRequest {
    /// `Topics`
    pub topics: Vec<CreatableTopic>,
    /// `timeoutMs`
    pub timeout_ms: i32,
    /// `validateOnly`
    pub validate_only: bool,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for CreateTopicsRequest {
    fn default() -> Self {
        Self { topics: Vec::new(), timeout_ms: 60000, validate_only: false, tagged: TaggedFields::new() }
    }
}

impl CreateTopicsRequest {
    pub(crate) fn read(r: &mut Reader, version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.topics = r.array(version >= 5, 10, |r| CreatableTopic::read(r, version))?;
        this.timeout_ms = r.i32()?;
        this.validate_only = r.bool()?;
        if version >= 5 {
            this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        }
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, version: i16) -> Result<()> {
        w.array_len(self.topics.len(), version >= 5)?;
        for item in &self.topics {
            item.write(w, version)?;
        }
        w.i32(self.timeout_ms);
        w.bool(self.validate_only);
        if version >= 5 {
            self.tagged.write(w, &[])?;
        }
        Ok(())
    }
}

/// Part of [`CreateTopicsRequest`].
///
/// Versions 2-7.
#[derive(Debug, Clone, PartialEq)]
pub struct CreatableTopic {
    /// `Name`
    pub name: Str,
    /// `NumPartitions`
    pub num_partitions: i32,
    /// `ReplicationFactor`
    pub replication_factor: i16,
    /// `Assignments`
    pub assignments: Vec<CreatableReplicaAssignment>,
    /// `Configs`
    pub configs: Vec<CreatableTopicConfig>,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for CreatableTopic {
    fn default() -> Self {
        Self {
            name: Str::default(),
            num_partitions: 0,
            replication_factor: 0,
            assignments: Vec::new(),
            configs: Vec::new(),
            tagged: TaggedFields::new(),
        }
    }
}

impl CreatableTopic {
    pub(crate) fn read(r: &mut Reader, version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.name = r.string(version >= 5)?;
        this.num_partitions = r.i32()?;
        this.replication_factor = r.i16()?;
        this.assignments = r.array(version >= 5, 6, |r| CreatableReplicaAssignment::read(r, version))?;
        this.configs = r.array(version >= 5, 3, |r| CreatableTopicConfig::read(r, version))?;
        if version >= 5 {
            this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        }
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, version: i16) -> Result<()> {
        w.string(&self.name, version >= 5)?;
        w.i32(self.num_partitions);
        w.i16(self.replication_factor);
        w.array_len(self.assignments.len(), version >= 5)?;
        for item in &self.assignments {
            item.write(w, version)?;
        }
        w.array_len(self.configs.len(), version >= 5)?;
        for item in &self.configs {
            item.write(w, version)?;
        }
        if version >= 5 {
            self.tagged.write(w, &[])?;
        }
        Ok(())
    }
}

/// Part of [`CreateTopicsRequest`].
///
/// Versions 2-7.
#[derive(Debug, Clone, PartialEq)]
pub struct CreatableReplicaAssignment {
    /// `PartitionIndex`
    pub partition_index: i32,
    /// `BrokerIds`
    pub broker_ids: Vec<i32>,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for CreatableReplicaAssignment {
    fn default() -> Self {
        Self { partition_index: 0, broker_ids: Vec::new(), tagged: TaggedFields::new() }
    }
}

impl CreatableReplicaAssignment {
    pub(crate) fn read(r: &mut Reader, version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.partition_index = r.i32()?;
        this.broker_ids = r.array(version >= 5, 4, |r| r.i32())?;
        if version >= 5 {
            this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        }
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, version: i16) -> Result<()> {
        w.i32(self.partition_index);
        w.array_len(self.broker_ids.len(), version >= 5)?;
        for item in &self.broker_ids {
            w.i32(*item);
        }
        if version >= 5 {
            self.tagged.write(w, &[])?;
        }
        Ok(())
    }
}

/// Part of [`CreateTopicsRequest`].
///
/// Versions 2-7.
#[derive(Debug, Clone, PartialEq)]
pub struct CreatableTopicConfig {
    /// `Name`
    pub name: Str,
    /// `Value`
    pub value: Option<Str>,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for CreatableTopicConfig {
    fn default() -> Self {
        Self { name: Str::default(), value: Some(Str::default()), tagged: TaggedFields::new() }
    }
}

impl CreatableTopicConfig {
    pub(crate) fn read(r: &mut Reader, version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.name = r.string(version >= 5)?;
        this.value = r.nullable_string(version >= 5)?;
        if version >= 5 {
            this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        }
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, version: i16) -> Result<()> {
        w.string(&self.name, version >= 5)?;
        match &self.value {
            Some(value) => {
                w.string(value, version >= 5)?;
            }
            None => {
                w.null_string(version >= 5);
            }
        }
        if version >= 5 {
            self.tagged.write(w, &[])?;
        }
        Ok(())
    }
}

impl Message for CreateTopicsRequest {
    const NAME: &'static str = "CreateTopicsRequest";
    const MIN_VERSION: i16 = 2;
    const MAX_VERSION: i16 = 7;
    const FLEXIBLE_FROM: i16 = 5;

    fn decode(r: &mut Reader, version: i16) -> Result<Self> {
        Self::check_version(version)?;
        Self::read(r, version)
    }

    fn encode(&self, w: &mut Writer, version: i16) -> Result<()> {
        Self::check_version(version)?;
        self.write(w, version)
    }
}

impl Request for CreateTopicsRequest {
    type Response = super::create_topics_response::CreateTopicsResponse;
    const KEY: crate::ApiKey = crate::ApiKey(19);
}
