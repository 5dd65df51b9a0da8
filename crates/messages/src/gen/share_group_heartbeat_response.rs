//! ShareGroupHeartbeatResponse (generated from protocol-specs; do not edit).

use crate::{ErrorCode, Message};
use kafka_share_wire::{Reader, Result, Str, TaggedFields, Uuid, Writer};

/// Gives the member its epoch, its heartbeat interval and, when changed, its assignment.
///
/// Versions 1.
#[derive(Debug, Clone, PartialEq)]
pub struct ShareGroupHeartbeatResponse {
    /// Milliseconds the client should stay quiet because a quota was exceeded; 0 if none was.
    pub throttle_time_ms: i32,
    /// Error of this level; 0 means none.
    pub error_code: ErrorCode,
    /// Explanation of the error for people; null when there is nothing to add.
    pub error_message: Option<Str>,
    /// Member the answer is for.
    pub member_id: Option<Str>,
    /// Epoch to send with the next heartbeat.
    pub member_epoch: i32,
    /// Milliseconds to wait until the next heartbeat.
    pub heartbeat_interval_ms: i32,
    /// Share-partitions to fetch from; null while nothing changed.
    pub assignment: Option<Assignment>,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for ShareGroupHeartbeatResponse {
    fn default() -> Self {
        Self {
            throttle_time_ms: 0,
            error_code: ErrorCode::NONE,
            error_message: None,
            member_id: None,
            member_epoch: 0,
            heartbeat_interval_ms: 0,
            assignment: None,
            tagged: TaggedFields::new(),
        }
    }
}

impl ShareGroupHeartbeatResponse {
    pub(crate) fn read(r: &mut Reader, version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.throttle_time_ms = r.i32()?;
        this.error_code = r.i16().map(ErrorCode)?;
        this.error_message = r.nullable_string(true)?;
        this.member_id = r.nullable_string(true)?;
        this.member_epoch = r.i32()?;
        this.heartbeat_interval_ms = r.i32()?;
        this.assignment = if r.struct_marker()? { Some(Assignment::read(r, version)?) } else { None };
        this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, version: i16) -> Result<()> {
        w.i32(self.throttle_time_ms);
        w.i16(self.error_code.0);
        match &self.error_message {
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
        w.i32(self.member_epoch);
        w.i32(self.heartbeat_interval_ms);
        match &self.assignment {
            Some(value) => {
                w.struct_marker(true);
                value.write(w, version)?;
            }
            None => {
                w.struct_marker(false);
            }
        }
        self.tagged.write(w, &[])?;
        Ok(())
    }
}

/// Share-partitions to fetch from; null while nothing changed.
///
/// Versions 1.
#[derive(Debug, Clone, PartialEq)]
pub struct Assignment {
    /// Assigned partitions, by topic.
    pub topic_partitions: Vec<TopicPartitions>,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for Assignment {
    fn default() -> Self {
        Self { topic_partitions: Vec::new(), tagged: TaggedFields::new() }
    }
}

impl Assignment {
    pub(crate) fn read(r: &mut Reader, version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.topic_partitions = r.array(true, 18, |r| TopicPartitions::read(r, version))?;
        this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, version: i16) -> Result<()> {
        w.array_len(self.topic_partitions.len(), true)?;
        for item in &self.topic_partitions {
            item.write(w, version)?;
        }
        self.tagged.write(w, &[])?;
        Ok(())
    }
}

/// Part of [`ShareGroupHeartbeatResponse`].
///
/// Versions 1.
#[derive(Debug, Clone, PartialEq)]
pub struct TopicPartitions {
    /// UUID of the topic.
    pub topic_id: Uuid,
    /// Partitions of the topic.
    pub partitions: Vec<i32>,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for TopicPartitions {
    fn default() -> Self {
        Self { topic_id: Uuid::ZERO, partitions: Vec::new(), tagged: TaggedFields::new() }
    }
}

impl TopicPartitions {
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

impl Message for ShareGroupHeartbeatResponse {
    const NAME: &'static str = "ShareGroupHeartbeatResponse";
    const MIN_VERSION: i16 = 1;
    const MAX_VERSION: i16 = 1;
    const FLEXIBLE_FROM: i16 = 1;

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
