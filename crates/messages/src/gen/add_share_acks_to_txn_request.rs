//! AddShareAcksToTxnRequest (generated from protocol-specs; do not edit).

use crate::{Message, Request};
use kafka_share_wire::{Reader, Result, Str, TaggedFields, Uuid, Writer};

/// Enrols the stored state of share-partitions in a transaction before acknowledgements are staged (transaction.version 1).
///
/// Versions 0.
#[derive(Debug, Clone, PartialEq)]
pub struct AddShareAcksToTxnRequest {
    /// Names the transactional producer across restarts.
    pub transactional_id: Str,
    /// Id of the producer whose transaction is open.
    pub producer_id: i64,
    /// Epoch of that producer; an older one is fenced.
    pub producer_epoch: i16,
    /// Share group whose acknowledgements will be staged.
    pub group_id: Str,
    /// Share-partitions to enrol, by topic.
    pub topics: Vec<AddShareAcksToTxnTopic>,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for AddShareAcksToTxnRequest {
    fn default() -> Self {
        Self {
            transactional_id: Str::default(),
            producer_id: 0,
            producer_epoch: 0,
            group_id: Str::default(),
            topics: Vec::new(),
            tagged: TaggedFields::new(),
        }
    }
}

impl AddShareAcksToTxnRequest {
    pub(crate) fn read(r: &mut Reader, version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.transactional_id = r.string(true)?;
        this.producer_id = r.i64()?;
        this.producer_epoch = r.i16()?;
        this.group_id = r.string(true)?;
        this.topics = r.array(true, 18, |r| AddShareAcksToTxnTopic::read(r, version))?;
        this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, version: i16) -> Result<()> {
        w.string(&self.transactional_id, true)?;
        w.i64(self.producer_id);
        w.i16(self.producer_epoch);
        w.string(&self.group_id, true)?;
        w.array_len(self.topics.len(), true)?;
        for item in &self.topics {
            item.write(w, version)?;
        }
        self.tagged.write(w, &[])?;
        Ok(())
    }
}

/// Share-partitions to enrol, by topic.
///
/// Versions 0.
#[derive(Debug, Clone, PartialEq)]
pub struct AddShareAcksToTxnTopic {
    /// UUID of the topic.
    pub topic_id: Uuid,
    /// Numbers of the partitions inside the topic.
    pub partitions: Vec<i32>,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for AddShareAcksToTxnTopic {
    fn default() -> Self {
        Self { topic_id: Uuid::ZERO, partitions: Vec::new(), tagged: TaggedFields::new() }
    }
}

impl AddShareAcksToTxnTopic {
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

impl Message for AddShareAcksToTxnRequest {
    const NAME: &'static str = "AddShareAcksToTxnRequest";
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

impl Request for AddShareAcksToTxnRequest {
    type Response = super::add_share_acks_to_txn_response::AddShareAcksToTxnResponse;
    const KEY: crate::ApiKey = crate::ApiKey(96);
}
