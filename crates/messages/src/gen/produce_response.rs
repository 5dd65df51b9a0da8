//! ProduceResponse (generated from protocol-specs; do not edit).

use crate::{ErrorCode, Message};
use bytes::Bytes;
use kafka_share_wire::{ErrorKind, Reader, Result, Str, TaggedFields, Uuid, Writer};

/// Says for each partition at which offset its batch begins, or why it was refused.
///
/// Versions 3-13.
#[derive(Debug, Clone, PartialEq)]
pub struct ProduceResponse {
    /// `Responses`
    pub responses: Vec<TopicProduceResponse>,
    /// `ThrottleTimeMs`
    pub throttle_time_ms: i32,
    /// `NodeEndpoints` (versions 10-13, tag 0)
    pub node_endpoints: Vec<NodeEndpoint>,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for ProduceResponse {
    fn default() -> Self {
        Self { responses: Vec::new(), throttle_time_ms: 0, node_endpoints: Vec::new(), tagged: TaggedFields::new() }
    }
}

impl ProduceResponse {
    pub(crate) fn read(r: &mut Reader, version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.responses = r.array(version >= 9, 3, |r| TopicProduceResponse::read(r, version))?;
        this.throttle_time_ms = r.i32()?;
        if version >= 9 {
            let unknown = TaggedFields::read(r, |tag, field| {
                match tag {
                    0 if version >= 10 => {
                        this.node_endpoints = field.array(true, 11, |r| NodeEndpoint::read(r, version))?
                    }
                    _ => return Ok(false),
                }
                Ok(true)
            })?;
            this.tagged = unknown;
        }
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, version: i16) -> Result<()> {
        w.array_len(self.responses.len(), version >= 9)?;
        for item in &self.responses {
            item.write(w, version)?;
        }
        w.i32(self.throttle_time_ms);
        if !(version >= 10) {
            if !self.node_endpoints.is_empty() {
                return Err(
                    ErrorKind::FieldNotInVersion { field: "ProduceResponse.NodeEndpoints", version }.at(w.len())
                );
            }
        }
        if version >= 9 {
            let mut known: Vec<(u32, Bytes)> = Vec::new();
            if version >= 10 && !self.node_endpoints.is_empty() {
                let mut field = Writer::new();
                let w = &mut field;
                w.array_len(self.node_endpoints.len(), true)?;
                for item in &self.node_endpoints {
                    item.write(w, version)?;
                }
                known.push((0, field.into_bytes()));
            }
            self.tagged.write(w, &known)?;
        }
        Ok(())
    }
}

/// Part of [`ProduceResponse`].
///
/// Versions 3-13.
#[derive(Debug, Clone, PartialEq)]
pub struct TopicProduceResponse {
    /// `Name` (versions 3-12)
    pub name: Str,
    /// `TopicId` (versions 13)
    pub topic_id: Uuid,
    /// `PartitionResponses`
    pub partition_responses: Vec<PartitionProduceResponse>,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for TopicProduceResponse {
    fn default() -> Self {
        Self {
            name: Str::default(),
            topic_id: Uuid::ZERO,
            partition_responses: Vec::new(),
            tagged: TaggedFields::new(),
        }
    }
}

impl TopicProduceResponse {
    pub(crate) fn read(r: &mut Reader, version: i16) -> Result<Self> {
        let mut this = Self::default();
        if version <= 12 {
            this.name = r.string(version >= 9)?;
        }
        if version >= 13 {
            this.topic_id = r.uuid()?;
        }
        this.partition_responses = r.array(version >= 9, 22, |r| PartitionProduceResponse::read(r, version))?;
        if version >= 9 {
            this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        }
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, version: i16) -> Result<()> {
        if version <= 12 {
            w.string(&self.name, version >= 9)?;
        }
        if version >= 13 {
            w.uuid(self.topic_id);
        }
        w.array_len(self.partition_responses.len(), version >= 9)?;
        for item in &self.partition_responses {
            item.write(w, version)?;
        }
        if version >= 9 {
            self.tagged.write(w, &[])?;
        }
        Ok(())
    }
}

/// Part of [`ProduceResponse`].
///
/// Versions 3-13.
#[derive(Debug, Clone, PartialEq)]
pub struct PartitionProduceResponse {
    /// `Index`
    pub index: i32,
    /// `ErrorCode`
    pub error_code: ErrorCode,
    /// `BaseOffset`
    pub base_offset: i64,
    /// `LogAppendTimeMs`
    pub log_append_time_ms: i64,
    /// `LogStartOffset` (versions 5-13)
    pub log_start_offset: i64,
    /// `RecordErrors` (versions 8-13)
    pub record_errors: Vec<BatchIndexAndErrorMessage>,
    /// `ErrorMessage` (versions 8-13)
    pub error_message: Option<Str>,
    /// `CurrentLeader` (versions 10-13, tag 0)
    pub current_leader: LeaderIdAndEpoch,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for PartitionProduceResponse {
    fn default() -> Self {
        Self {
            index: 0,
            error_code: ErrorCode::NONE,
            base_offset: 0,
            log_append_time_ms: -1,
            log_start_offset: -1,
            record_errors: Vec::new(),
            error_message: None,
            current_leader: LeaderIdAndEpoch::default(),
            tagged: TaggedFields::new(),
        }
    }
}

impl PartitionProduceResponse {
    pub(crate) fn read(r: &mut Reader, version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.index = r.i32()?;
        this.error_code = r.i16().map(ErrorCode)?;
        this.base_offset = r.i64()?;
        this.log_append_time_ms = r.i64()?;
        if version >= 5 {
            this.log_start_offset = r.i64()?;
        }
        if version >= 8 {
            this.record_errors = r.array(version >= 9, 6, |r| BatchIndexAndErrorMessage::read(r, version))?;
        }
        if version >= 8 {
            this.error_message = r.nullable_string(version >= 9)?;
        }
        if version >= 9 {
            let unknown = TaggedFields::read(r, |tag, field| {
                match tag {
                    0 if version >= 10 => this.current_leader = LeaderIdAndEpoch::read(field, version)?,
                    _ => return Ok(false),
                }
                Ok(true)
            })?;
            this.tagged = unknown;
        }
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, version: i16) -> Result<()> {
        w.i32(self.index);
        w.i16(self.error_code.0);
        w.i64(self.base_offset);
        w.i64(self.log_append_time_ms);
        if version >= 5 {
            w.i64(self.log_start_offset);
        }
        if version >= 8 {
            w.array_len(self.record_errors.len(), version >= 9)?;
            for item in &self.record_errors {
                item.write(w, version)?;
            }
        }
        if version >= 8 {
            match &self.error_message {
                Some(value) => {
                    w.string(value, version >= 9)?;
                }
                None => {
                    w.null_string(version >= 9);
                }
            }
        }
        if !(version >= 10) {
            if self.current_leader != LeaderIdAndEpoch::default() {
                return Err(ErrorKind::FieldNotInVersion { field: "PartitionProduceResponse.CurrentLeader", version }
                    .at(w.len()));
            }
        }
        if version >= 9 {
            let mut known: Vec<(u32, Bytes)> = Vec::new();
            if version >= 10 && self.current_leader != LeaderIdAndEpoch::default() {
                let mut field = Writer::new();
                let w = &mut field;
                self.current_leader.write(w, version)?;
                known.push((0, field.into_bytes()));
            }
            self.tagged.write(w, &known)?;
        }
        Ok(())
    }
}

/// Part of [`ProduceResponse`].
///
/// Versions 8-13.
#[derive(Debug, Clone, PartialEq)]
pub struct BatchIndexAndErrorMessage {
    /// `BatchIndex` (versions 8-13)
    pub batch_index: i32,
    /// `BatchIndexErrorMessage` (versions 8-13)
    pub batch_index_error_message: Option<Str>,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for BatchIndexAndErrorMessage {
    fn default() -> Self {
        Self { batch_index: 0, batch_index_error_message: None, tagged: TaggedFields::new() }
    }
}

impl BatchIndexAndErrorMessage {
    pub(crate) fn read(r: &mut Reader, version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.batch_index = r.i32()?;
        this.batch_index_error_message = r.nullable_string(version >= 9)?;
        if version >= 9 {
            this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        }
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, version: i16) -> Result<()> {
        w.i32(self.batch_index);
        match &self.batch_index_error_message {
            Some(value) => {
                w.string(value, version >= 9)?;
            }
            None => {
                w.null_string(version >= 9);
            }
        }
        if version >= 9 {
            self.tagged.write(w, &[])?;
        }
        Ok(())
    }
}

/// Part of [`ProduceResponse`].
///
/// Versions 10-13.
#[derive(Debug, Clone, PartialEq)]
pub struct LeaderIdAndEpoch {
    /// `LeaderId` (versions 10-13)
    pub leader_id: i32,
    /// `LeaderEpoch` (versions 10-13)
    pub leader_epoch: i32,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for LeaderIdAndEpoch {
    fn default() -> Self {
        Self { leader_id: -1, leader_epoch: -1, tagged: TaggedFields::new() }
    }
}

impl LeaderIdAndEpoch {
    pub(crate) fn read(r: &mut Reader, _version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.leader_id = r.i32()?;
        this.leader_epoch = r.i32()?;
        this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, _version: i16) -> Result<()> {
        w.i32(self.leader_id);
        w.i32(self.leader_epoch);
        self.tagged.write(w, &[])?;
        Ok(())
    }
}

/// Part of [`ProduceResponse`].
///
/// Versions 10-13.
#[derive(Debug, Clone, PartialEq)]
pub struct NodeEndpoint {
    /// `NodeId` (versions 10-13)
    pub node_id: i32,
    /// `Host` (versions 10-13)
    pub host: Str,
    /// `Port` (versions 10-13)
    pub port: i32,
    /// `Rack` (versions 10-13)
    pub rack: Option<Str>,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for NodeEndpoint {
    fn default() -> Self {
        Self { node_id: 0, host: Str::default(), port: 0, rack: None, tagged: TaggedFields::new() }
    }
}

impl NodeEndpoint {
    pub(crate) fn read(r: &mut Reader, _version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.node_id = r.i32()?;
        this.host = r.string(true)?;
        this.port = r.i32()?;
        this.rack = r.nullable_string(true)?;
        this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, _version: i16) -> Result<()> {
        w.i32(self.node_id);
        w.string(&self.host, true)?;
        w.i32(self.port);
        match &self.rack {
            Some(value) => {
                w.string(value, true)?;
            }
            None => {
                w.null_string(true);
            }
        }
        self.tagged.write(w, &[])?;
        Ok(())
    }
}

impl Message for ProduceResponse {
    const NAME: &'static str = "ProduceResponse";
    const MIN_VERSION: i16 = 3;
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
