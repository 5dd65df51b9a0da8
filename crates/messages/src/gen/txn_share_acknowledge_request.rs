//! TxnShareAcknowledgeRequest (generated from protocol-specs; do not edit).

use crate::{Message, Request};
use kafka_share_wire::{Reader, Result, Str, TaggedFields, Uuid, Writer};

/// Stages acknowledgements of acquired records in an open transaction, at the leader of the source partitions.
///
/// Versions 0.
#[derive(Debug, Clone, PartialEq)]
pub struct TxnShareAcknowledgeRequest {
    /// Names the transactional producer; the broker refuses null.
    pub transactional_id: Option<Str>,
    /// Name of the share group.
    pub group_id: Str,
    /// Id of the producer whose transaction is open.
    pub producer_id: i64,
    /// Epoch of that producer; an older one is fenced.
    pub producer_epoch: i16,
    /// Member that acquired the records.
    pub member_id: Str,
    /// Epoch of the membership; a wrong one fences the call.
    pub member_epoch: i32,
    /// Acknowledgements to stage, by topic.
    pub topics: Vec<AcknowledgeTopic>,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for TxnShareAcknowledgeRequest {
    fn default() -> Self {
        Self {
            transactional_id: Some(Str::default()),
            group_id: Str::default(),
            producer_id: 0,
            producer_epoch: 0,
            member_id: Str::default(),
            member_epoch: 0,
            topics: Vec::new(),
            tagged: TaggedFields::new(),
        }
    }
}

impl TxnShareAcknowledgeRequest {
    pub(crate) fn read(r: &mut Reader, version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.transactional_id = r.nullable_string(true)?;
        this.group_id = r.string(true)?;
        this.producer_id = r.i64()?;
        this.producer_epoch = r.i16()?;
        this.member_id = r.string(true)?;
        this.member_epoch = r.i32()?;
        this.topics = r.array(true, 18, |r| AcknowledgeTopic::read(r, version))?;
        this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, version: i16) -> Result<()> {
        match &self.transactional_id {
            Some(value) => {
                w.string(value, true)?;
            }
            None => {
                w.null_string(true);
            }
        }
        w.string(&self.group_id, true)?;
        w.i64(self.producer_id);
        w.i16(self.producer_epoch);
        w.string(&self.member_id, true)?;
        w.i32(self.member_epoch);
        w.array_len(self.topics.len(), true)?;
        for item in &self.topics {
            item.write(w, version)?;
        }
        self.tagged.write(w, &[])?;
        Ok(())
    }
}

/// Acknowledgements to stage, by topic.
///
/// Versions 0.
#[derive(Debug, Clone, PartialEq)]
pub struct AcknowledgeTopic {
    /// UUID of the topic.
    pub topic_id: Uuid,
    /// Acknowledgements to stage, by partition.
    pub partitions: Vec<AcknowledgePartition>,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for AcknowledgeTopic {
    fn default() -> Self {
        Self { topic_id: Uuid::ZERO, partitions: Vec::new(), tagged: TaggedFields::new() }
    }
}

impl AcknowledgeTopic {
    pub(crate) fn read(r: &mut Reader, version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.topic_id = r.uuid()?;
        this.partitions = r.array(true, 6, |r| AcknowledgePartition::read(r, version))?;
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

/// Acknowledgements to stage, by partition.
///
/// Versions 0.
#[derive(Debug, Clone, PartialEq)]
pub struct AcknowledgePartition {
    /// Number of the partition inside its topic.
    pub partition_index: i32,
    /// Ranges of acquired offsets, in ascending order.
    pub acknowledgement_batches: Vec<AcknowledgementBatch>,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for AcknowledgePartition {
    fn default() -> Self {
        Self { partition_index: 0, acknowledgement_batches: Vec::new(), tagged: TaggedFields::new() }
    }
}

impl AcknowledgePartition {
    pub(crate) fn read(r: &mut Reader, version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.partition_index = r.i32()?;
        this.acknowledgement_batches = r.array(true, 18, |r| AcknowledgementBatch::read(r, version))?;
        this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, version: i16) -> Result<()> {
        w.i32(self.partition_index);
        w.array_len(self.acknowledgement_batches.len(), true)?;
        for item in &self.acknowledgement_batches {
            item.write(w, version)?;
        }
        self.tagged.write(w, &[])?;
        Ok(())
    }
}

/// Ranges of acquired offsets, in ascending order.
///
/// Versions 0.
#[derive(Debug, Clone, PartialEq)]
pub struct AcknowledgementBatch {
    /// Offset at which the range begins.
    pub first_offset: i64,
    /// Offset at which the range ends; it is part of the range.
    pub last_offset: i64,
    /// One type for the whole range or one for each offset: 1 accept, 3 reject, 0 for an offset that holds no record. Others cannot be staged.
    pub acknowledge_types: Vec<i8>,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for AcknowledgementBatch {
    fn default() -> Self {
        Self { first_offset: 0, last_offset: 0, acknowledge_types: Vec::new(), tagged: TaggedFields::new() }
    }
}

impl AcknowledgementBatch {
    pub(crate) fn read(r: &mut Reader, _version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.first_offset = r.i64()?;
        this.last_offset = r.i64()?;
        this.acknowledge_types = r.array(true, 1, |r| r.i8())?;
        this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, _version: i16) -> Result<()> {
        w.i64(self.first_offset);
        w.i64(self.last_offset);
        w.array_len(self.acknowledge_types.len(), true)?;
        for item in &self.acknowledge_types {
            w.i8(*item);
        }
        self.tagged.write(w, &[])?;
        Ok(())
    }
}

impl Message for TxnShareAcknowledgeRequest {
    const NAME: &'static str = "TxnShareAcknowledgeRequest";
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
}

impl Request for TxnShareAcknowledgeRequest {
    type Response = super::txn_share_acknowledge_response::TxnShareAcknowledgeResponse;
    const KEY: crate::ApiKey = crate::ApiKey(95);
}
