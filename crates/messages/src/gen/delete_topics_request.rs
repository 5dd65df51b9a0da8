//! DeleteTopicsRequest (generated from protocol-specs; do not edit).

use crate::{Message, Request};
use kafka_share_wire::{ErrorKind, Reader, Result, Str, TaggedFields, Uuid, Writer};

/// Deletes topics, named by name or by id.
///
/// Versions 1-6.
#[derive(Debug, Clone, PartialEq)]
pub struct DeleteTopicsRequest {
    /// `Topics` (versions 6)
    pub topics: Vec<DeleteTopicState>,
    /// `TopicNames` (versions 1-5)
    pub topic_names: Vec<Str>,
    /// `TimeoutMs`
    pub timeout_ms: i32,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for DeleteTopicsRequest {
    fn default() -> Self {
        Self { topics: Vec::new(), topic_names: Vec::new(), timeout_ms: 0, tagged: TaggedFields::new() }
    }
}

impl DeleteTopicsRequest {
    pub(crate) fn read(r: &mut Reader, version: i16) -> Result<Self> {
        let mut this = Self::default();
        if version >= 6 {
            this.topics = r.array(true, 18, |r| DeleteTopicState::read(r, version))?;
        }
        if version <= 5 {
            this.topic_names = r.array(version >= 4, 1, |r| r.string(version >= 4))?;
        }
        this.timeout_ms = r.i32()?;
        if version >= 4 {
            this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        }
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, version: i16) -> Result<()> {
        if version >= 6 {
            w.array_len(self.topics.len(), true)?;
            for item in &self.topics {
                item.write(w, version)?;
            }
        } else {
            if !self.topics.is_empty() {
                return Err(ErrorKind::FieldNotInVersion { field: "DeleteTopicsRequest.Topics", version }.at(w.len()));
            }
        }
        if version <= 5 {
            w.array_len(self.topic_names.len(), version >= 4)?;
            for item in &self.topic_names {
                w.string(item, version >= 4)?;
            }
        }
        w.i32(self.timeout_ms);
        if version >= 4 {
            self.tagged.write(w, &[])?;
        }
        Ok(())
    }
}

/// Part of [`DeleteTopicsRequest`].
///
/// Versions 6.
#[derive(Debug, Clone, PartialEq)]
pub struct DeleteTopicState {
    /// `Name` (versions 6)
    pub name: Option<Str>,
    /// `TopicId` (versions 6)
    pub topic_id: Uuid,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for DeleteTopicState {
    fn default() -> Self {
        Self { name: None, topic_id: Uuid::ZERO, tagged: TaggedFields::new() }
    }
}

impl DeleteTopicState {
    pub(crate) fn read(r: &mut Reader, _version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.name = r.nullable_string(true)?;
        this.topic_id = r.uuid()?;
        this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, _version: i16) -> Result<()> {
        match &self.name {
            Some(value) => {
                w.string(value, true)?;
            }
            None => {
                w.null_string(true);
            }
        }
        w.uuid(self.topic_id);
        self.tagged.write(w, &[])?;
        Ok(())
    }
}

impl Message for DeleteTopicsRequest {
    const NAME: &'static str = "DeleteTopicsRequest";
    const MIN_VERSION: i16 = 1;
    const MAX_VERSION: i16 = 6;
    const FLEXIBLE_FROM: i16 = 4;

    fn decode(r: &mut Reader, version: i16) -> Result<Self> {
        Self::check_version(version)?;
        Self::read(r, version)
    }

    fn encode(&self, w: &mut Writer, version: i16) -> Result<()> {
        Self::check_version(version)?;
        self.write(w, version)
    }
}

impl Request for DeleteTopicsRequest {
    type Response = super::delete_topics_response::DeleteTopicsResponse;
    const KEY: crate::ApiKey = crate::ApiKey(20);
}
