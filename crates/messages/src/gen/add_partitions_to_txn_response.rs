//! AddPartitionsToTxnResponse (generated from protocol-specs; do not edit).

use crate::{ErrorCode, Message};
use kafka_share_wire::{ErrorKind, Reader, Result, Str, TaggedFields, Writer};

/// Says for each partition whether it belongs to the transaction now.
///
/// Versions 0-5.
#[derive(Debug, Clone, PartialEq)]
pub struct AddPartitionsToTxnResponse {
    /// Milliseconds the client should stay quiet because a quota was exceeded; 0 if none was.
    pub throttle_time_ms: i32,
    /// Error that hit the request as a whole. (versions 4-5)
    pub error_code: ErrorCode,
    /// Outcome, transaction by transaction. (versions 4-5)
    pub results_by_transaction: Vec<AddPartitionsToTxnResult>,
    /// Outcome for the one transaction of a client, topic by topic. (versions 0-3)
    pub results_by_topic_v3_and_below: Vec<AddPartitionsToTxnTopicResult>,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for AddPartitionsToTxnResponse {
    fn default() -> Self {
        Self {
            throttle_time_ms: 0,
            error_code: ErrorCode::NONE,
            results_by_transaction: Vec::new(),
            results_by_topic_v3_and_below: Vec::new(),
            tagged: TaggedFields::new(),
        }
    }
}

impl AddPartitionsToTxnResponse {
    pub(crate) fn read(r: &mut Reader, version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.throttle_time_ms = r.i32()?;
        if version >= 4 {
            this.error_code = r.i16().map(ErrorCode)?;
        }
        if version >= 4 {
            this.results_by_transaction = r.array(true, 3, |r| AddPartitionsToTxnResult::read(r, version))?;
        }
        if version <= 3 {
            this.results_by_topic_v3_and_below =
                r.array(version >= 3, 3, |r| AddPartitionsToTxnTopicResult::read(r, version))?;
        }
        if version >= 3 {
            this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        }
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, version: i16) -> Result<()> {
        w.i32(self.throttle_time_ms);
        if version >= 4 {
            w.i16(self.error_code.0);
        }
        if version >= 4 {
            w.array_len(self.results_by_transaction.len(), true)?;
            for item in &self.results_by_transaction {
                item.write(w, version)?;
            }
        } else {
            if !self.results_by_transaction.is_empty() {
                return Err(ErrorKind::FieldNotInVersion {
                    field: "AddPartitionsToTxnResponse.ResultsByTransaction",
                    version,
                }
                .at(w.len()));
            }
        }
        if version <= 3 {
            w.array_len(self.results_by_topic_v3_and_below.len(), version >= 3)?;
            for item in &self.results_by_topic_v3_and_below {
                item.write(w, version)?;
            }
        } else {
            if !self.results_by_topic_v3_and_below.is_empty() {
                return Err(ErrorKind::FieldNotInVersion {
                    field: "AddPartitionsToTxnResponse.ResultsByTopicV3AndBelow",
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

/// Outcome, transaction by transaction.
///
/// Versions 4-5.
#[derive(Debug, Clone, PartialEq)]
pub struct AddPartitionsToTxnResult {
    /// Names the transactional producer across restarts. (versions 4-5)
    pub transactional_id: Str,
    /// Outcome inside one transaction, topic by topic. (versions 4-5)
    pub topic_results: Vec<AddPartitionsToTxnTopicResult>,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for AddPartitionsToTxnResult {
    fn default() -> Self {
        Self { transactional_id: Str::default(), topic_results: Vec::new(), tagged: TaggedFields::new() }
    }
}

impl AddPartitionsToTxnResult {
    pub(crate) fn read(r: &mut Reader, version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.transactional_id = r.string(true)?;
        this.topic_results = r.array(true, 3, |r| AddPartitionsToTxnTopicResult::read(r, version))?;
        this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, version: i16) -> Result<()> {
        w.string(&self.transactional_id, true)?;
        w.array_len(self.topic_results.len(), true)?;
        for item in &self.topic_results {
            item.write(w, version)?;
        }
        self.tagged.write(w, &[])?;
        Ok(())
    }
}

/// Part of [`AddPartitionsToTxnResponse`].
///
/// Versions 0-5.
#[derive(Debug, Clone, PartialEq)]
pub struct AddPartitionsToTxnTopicResult {
    /// Name of the topic.
    pub name: Str,
    /// Outcome, partition by partition.
    pub results_by_partition: Vec<AddPartitionsToTxnPartitionResult>,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for AddPartitionsToTxnTopicResult {
    fn default() -> Self {
        Self { name: Str::default(), results_by_partition: Vec::new(), tagged: TaggedFields::new() }
    }
}

impl AddPartitionsToTxnTopicResult {
    pub(crate) fn read(r: &mut Reader, version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.name = r.string(version >= 3)?;
        this.results_by_partition =
            r.array(version >= 3, 6, |r| AddPartitionsToTxnPartitionResult::read(r, version))?;
        if version >= 3 {
            this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        }
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, version: i16) -> Result<()> {
        w.string(&self.name, version >= 3)?;
        w.array_len(self.results_by_partition.len(), version >= 3)?;
        for item in &self.results_by_partition {
            item.write(w, version)?;
        }
        if version >= 3 {
            self.tagged.write(w, &[])?;
        }
        Ok(())
    }
}

/// Part of [`AddPartitionsToTxnResponse`].
///
/// Versions 0-5.
#[derive(Debug, Clone, PartialEq)]
pub struct AddPartitionsToTxnPartitionResult {
    /// Number of the partition inside its topic.
    pub partition_index: i32,
    /// Error of this partition; 0 means it is enrolled.
    pub partition_error_code: ErrorCode,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for AddPartitionsToTxnPartitionResult {
    fn default() -> Self {
        Self { partition_index: 0, partition_error_code: ErrorCode::NONE, tagged: TaggedFields::new() }
    }
}

impl AddPartitionsToTxnPartitionResult {
    pub(crate) fn read(r: &mut Reader, version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.partition_index = r.i32()?;
        this.partition_error_code = r.i16().map(ErrorCode)?;
        if version >= 3 {
            this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        }
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, version: i16) -> Result<()> {
        w.i32(self.partition_index);
        w.i16(self.partition_error_code.0);
        if version >= 3 {
            self.tagged.write(w, &[])?;
        }
        Ok(())
    }
}

impl Message for AddPartitionsToTxnResponse {
    const NAME: &'static str = "AddPartitionsToTxnResponse";
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

    fn throttle_time_ms(&self) -> i32 {
        self.throttle_time_ms
    }
}
