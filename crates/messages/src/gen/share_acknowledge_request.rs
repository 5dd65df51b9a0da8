//! ShareAcknowledgeRequest (generated from protocol-specs; do not edit).

use crate::{Message, Request};
use kafka_share_wire::{ErrorKind, Reader, Result, Str, TaggedFields, Uuid, Writer};

/// Acknowledges acquired records without fetching more, inside the share session.
///
/// Versions 1-2.
#[derive(Debug, Clone, PartialEq)]
pub struct ShareAcknowledgeRequest {
    /// Name of the share group.
    pub group_id: Option<Str>,
    /// UUID the member chose for itself and keeps for its whole life.
    pub member_id: Option<Str>,
    /// Next epoch of the open share session, or -1 to end it; 0 is refused here.
    pub share_session_epoch: i32,
    /// Set when some acknowledgement is a renewal; a fetch must then ask for no records. (versions 2)
    pub is_renew_ack: bool,
    /// Acknowledgements, by topic.
    pub topics: Vec<AcknowledgeTopic>,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for ShareAcknowledgeRequest {
    fn default() -> Self {
        Self {
            group_id: None,
            member_id: Some(Str::default()),
            share_session_epoch: 0,
            is_renew_ack: false,
            topics: Vec::new(),
            tagged: TaggedFields::new(),
        }
    }
}

impl ShareAcknowledgeRequest {
    pub(crate) fn read(r: &mut Reader, version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.group_id = r.nullable_string(true)?;
        this.member_id = r.nullable_string(true)?;
        this.share_session_epoch = r.i32()?;
        if version >= 2 {
            this.is_renew_ack = r.bool()?;
        }
        this.topics = r.array(true, 18, |r| AcknowledgeTopic::read(r, version))?;
        this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, version: i16) -> Result<()> {
        match &self.group_id {
            Some(value) => {
                w.string(value, true)?;
            }
            None => {
                w.null_string(true);
            }
        }
        match &self.member_id {
            Some(value) => {
                w.string(value, true)?;
            }
            None => {
                w.null_string(true);
            }
        }
        w.i32(self.share_session_epoch);
        if version >= 2 {
            w.bool(self.is_renew_ack);
        } else {
            if self.is_renew_ack {
                return Err(
                    ErrorKind::FieldNotInVersion { field: "ShareAcknowledgeRequest.IsRenewAck", version }.at(w.len())
                );
            }
        }
        w.array_len(self.topics.len(), true)?;
        for item in &self.topics {
            item.write(w, version)?;
        }
        self.tagged.write(w, &[])?;
        Ok(())
    }
}

/// Acknowledgements, by topic.
///
/// Versions 1-2.
#[derive(Debug, Clone, PartialEq)]
pub struct AcknowledgeTopic {
    /// UUID of the topic.
    pub topic_id: Uuid,
    /// Acknowledgements, by partition.
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

/// Acknowledgements, by partition.
///
/// Versions 1-2.
#[derive(Debug, Clone, PartialEq)]
pub struct AcknowledgePartition {
    /// Number of the partition inside its topic.
    pub partition_index: i32,
    /// Ranges of acquired offsets to acknowledge, in ascending order.
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

/// Ranges of acquired offsets to acknowledge, in ascending order.
///
/// Versions 1-2.
#[derive(Debug, Clone, PartialEq)]
pub struct AcknowledgementBatch {
    /// Offset at which the range begins.
    pub first_offset: i64,
    /// Offset at which the range ends; it is part of the range.
    pub last_offset: i64,
    /// One type for the whole range or one for each offset: 1 accept, 2 release, 3 reject, 4 renew, 0 for an offset that holds no record.
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

impl Message for ShareAcknowledgeRequest {
    const NAME: &'static str = "ShareAcknowledgeRequest";
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
}

impl Request for ShareAcknowledgeRequest {
    type Response = super::share_acknowledge_response::ShareAcknowledgeResponse;
    const KEY: crate::ApiKey = crate::ApiKey(79);
}
