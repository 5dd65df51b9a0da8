//! ShareFetchRequest (generated from protocol-specs; do not edit).

use crate::{Message, Request};
use kafka_share_wire::{ErrorKind, Reader, Result, Str, TaggedFields, Uuid, Writer};

/// Acquires records of share-partitions from their leader, and may carry acknowledgements of earlier ones.
///
/// Versions 1-2.
#[derive(Debug, Clone, PartialEq)]
pub struct ShareFetchRequest {
    /// Name of the share group.
    pub group_id: Option<Str>,
    /// UUID the member chose for itself and keeps for its whole life.
    pub member_id: Option<Str>,
    /// 0 opens the share session and -1 ends it; in between it grows by one with each request.
    pub share_session_epoch: i32,
    /// How many milliseconds the broker may hold the answer back until enough is there.
    pub max_wait_ms: i32,
    /// How many bytes are enough to answer early.
    pub min_bytes: i32,
    /// Bytes of records the answer should not exceed; the first batch comes whole anyway.
    pub max_bytes: i32,
    /// Records to acquire at most; strict only in record-limit mode, otherwise whole batches may exceed it.
    pub max_records: i32,
    /// How many records the broker should aim to put into one acquired range.
    pub batch_size: i32,
    /// 0 acquires whole batches (batch-optimised), 1 never exceeds MaxRecords (record-limit, KIP-1206). (versions 2)
    pub share_acquire_mode: i8,
    /// Set when some acknowledgement is a renewal; a fetch must then ask for no records. (versions 2)
    pub is_renew_ack: bool,
    /// Partitions to add to the share session, and acknowledgements, by topic.
    pub topics: Vec<FetchTopic>,
    /// Partitions that leave the share session.
    pub forgotten_topics_data: Vec<ForgottenTopic>,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for ShareFetchRequest {
    fn default() -> Self {
        Self {
            group_id: None,
            member_id: Some(Str::default()),
            share_session_epoch: 0,
            max_wait_ms: 0,
            min_bytes: 0,
            max_bytes: i32::MAX,
            max_records: 0,
            batch_size: 0,
            share_acquire_mode: 0,
            is_renew_ack: false,
            topics: Vec::new(),
            forgotten_topics_data: Vec::new(),
            tagged: TaggedFields::new(),
        }
    }
}

impl ShareFetchRequest {
    pub(crate) fn read(r: &mut Reader, version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.group_id = r.nullable_string(true)?;
        this.member_id = r.nullable_string(true)?;
        this.share_session_epoch = r.i32()?;
        this.max_wait_ms = r.i32()?;
        this.min_bytes = r.i32()?;
        this.max_bytes = r.i32()?;
        this.max_records = r.i32()?;
        this.batch_size = r.i32()?;
        if version >= 2 {
            this.share_acquire_mode = r.i8()?;
        }
        if version >= 2 {
            this.is_renew_ack = r.bool()?;
        }
        this.topics = r.array(true, 18, |r| FetchTopic::read(r, version))?;
        this.forgotten_topics_data = r.array(true, 18, |r| ForgottenTopic::read(r, version))?;
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
        w.i32(self.max_wait_ms);
        w.i32(self.min_bytes);
        w.i32(self.max_bytes);
        w.i32(self.max_records);
        w.i32(self.batch_size);
        if version >= 2 {
            w.i8(self.share_acquire_mode);
        }
        if version >= 2 {
            w.bool(self.is_renew_ack);
        } else {
            if self.is_renew_ack {
                return Err(ErrorKind::FieldNotInVersion { field: "ShareFetchRequest.IsRenewAck", version }.at(w.len()));
            }
        }
        w.array_len(self.topics.len(), true)?;
        for item in &self.topics {
            item.write(w, version)?;
        }
        w.array_len(self.forgotten_topics_data.len(), true)?;
        for item in &self.forgotten_topics_data {
            item.write(w, version)?;
        }
        self.tagged.write(w, &[])?;
        Ok(())
    }
}

/// Partitions to add to the share session, and acknowledgements, by topic.
///
/// Versions 1-2.
#[derive(Debug, Clone, PartialEq)]
pub struct FetchTopic {
    /// UUID of the topic.
    pub topic_id: Uuid,
    /// Partitions of the topic.
    pub partitions: Vec<FetchPartition>,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for FetchTopic {
    fn default() -> Self {
        Self { topic_id: Uuid::ZERO, partitions: Vec::new(), tagged: TaggedFields::new() }
    }
}

impl FetchTopic {
    pub(crate) fn read(r: &mut Reader, version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.topic_id = r.uuid()?;
        this.partitions = r.array(true, 6, |r| FetchPartition::read(r, version))?;
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

/// Partitions of the topic.
///
/// Versions 1-2.
#[derive(Debug, Clone, PartialEq)]
pub struct FetchPartition {
    /// Number of the partition inside its topic.
    pub partition_index: i32,
    /// Ranges of acquired offsets to acknowledge, in ascending order.
    pub acknowledgement_batches: Vec<AcknowledgementBatch>,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for FetchPartition {
    fn default() -> Self {
        Self { partition_index: 0, acknowledgement_batches: Vec::new(), tagged: TaggedFields::new() }
    }
}

impl FetchPartition {
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

/// Partitions that leave the share session.
///
/// Versions 1-2.
#[derive(Debug, Clone, PartialEq)]
pub struct ForgottenTopic {
    /// UUID of the topic.
    pub topic_id: Uuid,
    /// Partitions of the topic.
    pub partitions: Vec<i32>,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for ForgottenTopic {
    fn default() -> Self {
        Self { topic_id: Uuid::ZERO, partitions: Vec::new(), tagged: TaggedFields::new() }
    }
}

impl ForgottenTopic {
    pub(crate) fn read(r: &mut Reader, _version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.topic_id = r.uuid()?;
        this.partitions = r.array(true, 4, |r| r.i32())?;
        this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, _version: i16) -> Result<()> {
        w.uuid(self.topic_id);
        w.array_len(self.partitions.len(), true)?;
        for item in &self.partitions {
            w.i32(*item);
        }
        self.tagged.write(w, &[])?;
        Ok(())
    }
}

impl Message for ShareFetchRequest {
    const NAME: &'static str = "ShareFetchRequest";
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

impl Request for ShareFetchRequest {
    type Response = super::share_fetch_response::ShareFetchResponse;
    const KEY: crate::ApiKey = crate::ApiKey(78);
}
