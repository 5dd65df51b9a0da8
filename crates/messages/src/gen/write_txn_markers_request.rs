//! WriteTxnMarkersRequest (generated from protocol-specs; do not edit).

use crate::{Message, Request};
use kafka_share_wire::{Reader, Result, Str, TaggedFields, Writer};

/// Tells partition leaders to write the commit or abort marker of a transaction (sent by the coordinator).
///
/// Versions 1-2.
#[derive(Debug, Clone, PartialEq)]
pub struct WriteTxnMarkersRequest {
    /// One entry for each transaction that ends.
    pub markers: Vec<WritableTxnMarker>,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for WriteTxnMarkersRequest {
    fn default() -> Self {
        Self { markers: Vec::new(), tagged: TaggedFields::new() }
    }
}

impl WriteTxnMarkersRequest {
    pub(crate) fn read(r: &mut Reader, version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.markers = r.array(true, 17, |r| WritableTxnMarker::read(r, version))?;
        this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, version: i16) -> Result<()> {
        w.array_len(self.markers.len(), true)?;
        for item in &self.markers {
            item.write(w, version)?;
        }
        self.tagged.write(w, &[])?;
        Ok(())
    }
}

/// One entry for each transaction that ends.
///
/// Versions 1-2.
#[derive(Debug, Clone, PartialEq)]
pub struct WritableTxnMarker {
    /// Number the coordinator gave to the producer.
    pub producer_id: i64,
    /// Generation of the producer id; an older generation is fenced.
    pub producer_epoch: i16,
    /// True writes commit markers, false abort markers.
    pub transaction_result: bool,
    /// Partitions to mark, by topic.
    pub topics: Vec<WritableTxnMarkerTopic>,
    /// Leader epoch of the coordinator's own log partition; an outdated coordinator is refused.
    pub coordinator_epoch: i32,
    /// Transaction protocol the producer used: 2 for epochs raised per transaction, 0 or 1 for the older ones. (versions 2)
    pub transaction_version: i8,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for WritableTxnMarker {
    fn default() -> Self {
        Self {
            producer_id: 0,
            producer_epoch: 0,
            transaction_result: false,
            topics: Vec::new(),
            coordinator_epoch: 0,
            transaction_version: 0,
            tagged: TaggedFields::new(),
        }
    }
}

impl WritableTxnMarker {
    pub(crate) fn read(r: &mut Reader, version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.producer_id = r.i64()?;
        this.producer_epoch = r.i16()?;
        this.transaction_result = r.bool()?;
        this.topics = r.array(true, 3, |r| WritableTxnMarkerTopic::read(r, version))?;
        this.coordinator_epoch = r.i32()?;
        if version >= 2 {
            this.transaction_version = r.i8()?;
        }
        this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, version: i16) -> Result<()> {
        w.i64(self.producer_id);
        w.i16(self.producer_epoch);
        w.bool(self.transaction_result);
        w.array_len(self.topics.len(), true)?;
        for item in &self.topics {
            item.write(w, version)?;
        }
        w.i32(self.coordinator_epoch);
        if version >= 2 {
            w.i8(self.transaction_version);
        }
        self.tagged.write(w, &[])?;
        Ok(())
    }
}

/// Partitions to mark, by topic.
///
/// Versions 1-2.
#[derive(Debug, Clone, PartialEq)]
pub struct WritableTxnMarkerTopic {
    /// Name of the topic.
    pub name: Str,
    /// Numbers of the partitions inside their topic.
    pub partition_indexes: Vec<i32>,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for WritableTxnMarkerTopic {
    fn default() -> Self {
        Self { name: Str::default(), partition_indexes: Vec::new(), tagged: TaggedFields::new() }
    }
}

impl WritableTxnMarkerTopic {
    pub(crate) fn read(r: &mut Reader, _version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.name = r.string(true)?;
        this.partition_indexes = r.array(true, 4, |r| r.i32())?;
        this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, _version: i16) -> Result<()> {
        w.string(&self.name, true)?;
        w.array_len(self.partition_indexes.len(), true)?;
        for item in &self.partition_indexes {
            w.i32(*item);
        }
        self.tagged.write(w, &[])?;
        Ok(())
    }
}

impl Message for WriteTxnMarkersRequest {
    const NAME: &'static str = "WriteTxnMarkersRequest";
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

impl Request for WriteTxnMarkersRequest {
    type Response = super::write_txn_markers_response::WriteTxnMarkersResponse;
    const KEY: crate::ApiKey = crate::ApiKey(27);
}
