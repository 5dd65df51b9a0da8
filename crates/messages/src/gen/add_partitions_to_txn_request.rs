//! AddPartitionsToTxnRequest (generated from protocol-specs; do not edit).

use crate::{Message, Request};
use kafka_share_wire::{ErrorKind, Reader, Result, Str, TaggedFields, Writer};

/// Enrols partitions in a transaction before they are written to (clients up to v3), or checks the enrolment (brokers, v4 on).
///
/// Versions 0-5.
#[derive(Debug, Clone, PartialEq)]
pub struct AddPartitionsToTxnRequest {
    /// Transactions with their partitions; one request of a broker may batch several. (versions 4-5)
    pub transactions: Vec<AddPartitionsToTxnTransaction>,
    /// Transactional id of the one transaction a client names. (versions 0-3)
    pub v3_and_below_transactional_id: Str,
    /// Producer id of the one transaction a client names. (versions 0-3)
    pub v3_and_below_producer_id: i64,
    /// Producer epoch of the one transaction a client names. (versions 0-3)
    pub v3_and_below_producer_epoch: i16,
    /// Partitions to enrol, by topic. (versions 0-3)
    pub v3_and_below_topics: Vec<AddPartitionsToTxnTopic>,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for AddPartitionsToTxnRequest {
    fn default() -> Self {
        Self {
            transactions: Vec::new(),
            v3_and_below_transactional_id: Str::default(),
            v3_and_below_producer_id: 0,
            v3_and_below_producer_epoch: 0,
            v3_and_below_topics: Vec::new(),
            tagged: TaggedFields::new(),
        }
    }
}

impl AddPartitionsToTxnRequest {
    pub(crate) fn read(r: &mut Reader, version: i16) -> Result<Self> {
        let mut this = Self::default();
        if version >= 4 {
            this.transactions = r.array(true, 14, |r| AddPartitionsToTxnTransaction::read(r, version))?;
        }
        if version <= 3 {
            this.v3_and_below_transactional_id = r.string(version >= 3)?;
        }
        if version <= 3 {
            this.v3_and_below_producer_id = r.i64()?;
        }
        if version <= 3 {
            this.v3_and_below_producer_epoch = r.i16()?;
        }
        if version <= 3 {
            this.v3_and_below_topics = r.array(version >= 3, 3, |r| AddPartitionsToTxnTopic::read(r, version))?;
        }
        if version >= 3 {
            this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        }
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, version: i16) -> Result<()> {
        if version >= 4 {
            w.array_len(self.transactions.len(), true)?;
            for item in &self.transactions {
                item.write(w, version)?;
            }
        } else {
            if !self.transactions.is_empty() {
                return Err(ErrorKind::FieldNotInVersion { field: "AddPartitionsToTxnRequest.Transactions", version }
                    .at(w.len()));
            }
        }
        if version <= 3 {
            w.string(&self.v3_and_below_transactional_id, version >= 3)?;
        } else {
            if !self.v3_and_below_transactional_id.is_empty() {
                return Err(ErrorKind::FieldNotInVersion {
                    field: "AddPartitionsToTxnRequest.V3AndBelowTransactionalId",
                    version,
                }
                .at(w.len()));
            }
        }
        if version <= 3 {
            w.i64(self.v3_and_below_producer_id);
        } else {
            if self.v3_and_below_producer_id != 0 {
                return Err(ErrorKind::FieldNotInVersion {
                    field: "AddPartitionsToTxnRequest.V3AndBelowProducerId",
                    version,
                }
                .at(w.len()));
            }
        }
        if version <= 3 {
            w.i16(self.v3_and_below_producer_epoch);
        } else {
            if self.v3_and_below_producer_epoch != 0 {
                return Err(ErrorKind::FieldNotInVersion {
                    field: "AddPartitionsToTxnRequest.V3AndBelowProducerEpoch",
                    version,
                }
                .at(w.len()));
            }
        }
        if version <= 3 {
            w.array_len(self.v3_and_below_topics.len(), version >= 3)?;
            for item in &self.v3_and_below_topics {
                item.write(w, version)?;
            }
        } else {
            if !self.v3_and_below_topics.is_empty() {
                return Err(ErrorKind::FieldNotInVersion {
                    field: "AddPartitionsToTxnRequest.V3AndBelowTopics",
                    version,
                }
                .at(w.len()));
            }
        }
        if version >= 3 {
            self.tagged.write(w, &[])?;
        }
        Ok(())
    }
}

/// Transactions with their partitions; one request of a broker may batch several.
///
/// Versions 4-5.
#[derive(Debug, Clone, PartialEq)]
pub struct AddPartitionsToTxnTransaction {
    /// Names the transactional producer across restarts. (versions 4-5)
    pub transactional_id: Str,
    /// Number the coordinator gave to the producer. (versions 4-5)
    pub producer_id: i64,
    /// Generation of the producer id; an older generation is fenced. (versions 4-5)
    pub producer_epoch: i16,
    /// Only checks the enrolment and changes nothing. (versions 4-5)
    pub verify_only: bool,
    /// Partitions of this transaction, by topic. (versions 4-5)
    pub topics: Vec<AddPartitionsToTxnTopic>,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for AddPartitionsToTxnTransaction {
    fn default() -> Self {
        Self {
            transactional_id: Str::default(),
            producer_id: 0,
            producer_epoch: 0,
            verify_only: false,
            topics: Vec::new(),
            tagged: TaggedFields::new(),
        }
    }
}

impl AddPartitionsToTxnTransaction {
    pub(crate) fn read(r: &mut Reader, version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.transactional_id = r.string(true)?;
        this.producer_id = r.i64()?;
        this.producer_epoch = r.i16()?;
        this.verify_only = r.bool()?;
        this.topics = r.array(true, 3, |r| AddPartitionsToTxnTopic::read(r, version))?;
        this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, version: i16) -> Result<()> {
        w.string(&self.transactional_id, true)?;
        w.i64(self.producer_id);
        w.i16(self.producer_epoch);
        w.bool(self.verify_only);
        w.array_len(self.topics.len(), true)?;
        for item in &self.topics {
            item.write(w, version)?;
        }
        self.tagged.write(w, &[])?;
        Ok(())
    }
}

/// Part of [`AddPartitionsToTxnRequest`].
///
/// Versions 0-5.
#[derive(Debug, Clone, PartialEq)]
pub struct AddPartitionsToTxnTopic {
    /// Name of the topic.
    pub name: Str,
    /// Partitions of the topic.
    pub partitions: Vec<i32>,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for AddPartitionsToTxnTopic {
    fn default() -> Self {
        Self { name: Str::default(), partitions: Vec::new(), tagged: TaggedFields::new() }
    }
}

impl AddPartitionsToTxnTopic {
    pub(crate) fn read(r: &mut Reader, version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.name = r.string(version >= 3)?;
        this.partitions = r.array(version >= 3, 4, |r| r.i32())?;
        if version >= 3 {
            this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        }
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, version: i16) -> Result<()> {
        w.string(&self.name, version >= 3)?;
        w.array_len(self.partitions.len(), version >= 3)?;
        for item in &self.partitions {
            w.i32(*item);
        }
        if version >= 3 {
            self.tagged.write(w, &[])?;
        }
        Ok(())
    }
}

impl Message for AddPartitionsToTxnRequest {
    const NAME: &'static str = "AddPartitionsToTxnRequest";
    const MIN_VERSION: i16 = 0;
    const MAX_VERSION: i16 = 5;
    const FLEXIBLE_FROM: i16 = 3;

    fn decode(r: &mut Reader, version: i16) -> Result<Self> {
        Self::check_version(version)?;
        Self::read(r, version)
    }

    fn encode(&self, w: &mut Writer, version: i16) -> Result<()> {
        Self::check_version(version)?;
        self.write(w, version)
    }
}

impl Request for AddPartitionsToTxnRequest {
    type Response = super::add_partitions_to_txn_response::AddPartitionsToTxnResponse;
    const KEY: crate::ApiKey = crate::ApiKey(24);
}
