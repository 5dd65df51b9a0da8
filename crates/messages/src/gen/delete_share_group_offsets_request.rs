//! DeleteShareGroupOffsetsRequest (generated from protocol-specs; do not edit).

use crate::{Message, Request};
use kafka_share_wire::{Reader, Result, Str, TaggedFields, Writer};

/// Forgets what a share group without members has consumed of topics.
///
/// Versions 0.
#[derive(Debug, Clone, PartialEq)]
pub struct DeleteShareGroupOffsetsRequest {
    /// Name of the share group.
    pub group_id: Str,
    /// Topics to forget.
    pub topics: Vec<DeleteShareGroupOffsetsRequestTopic>,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for DeleteShareGroupOffsetsRequest {
    fn default() -> Self {
        Self { group_id: Str::default(), topics: Vec::new(), tagged: TaggedFields::new() }
    }
}

impl DeleteShareGroupOffsetsRequest {
    pub(crate) fn read(r: &mut Reader, version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.group_id = r.string(true)?;
        this.topics = r.array(true, 2, |r| DeleteShareGroupOffsetsRequestTopic::read(r, version))?;
        this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, version: i16) -> Result<()> {
        w.string(&self.group_id, true)?;
        w.array_len(self.topics.len(), true)?;
        for item in &self.topics {
            item.write(w, version)?;
        }
        self.tagged.write(w, &[])?;
        Ok(())
    }
}

/// Topics to forget.
///
/// Versions 0.
#[derive(Debug, Clone, PartialEq)]
pub struct DeleteShareGroupOffsetsRequestTopic {
    /// Name of the topic.
    pub topic_name: Str,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for DeleteShareGroupOffsetsRequestTopic {
    fn default() -> Self {
        Self { topic_name: Str::default(), tagged: TaggedFields::new() }
    }
}

impl DeleteShareGroupOffsetsRequestTopic {
    pub(crate) fn read(r: &mut Reader, _version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.topic_name = r.string(true)?;
        this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, _version: i16) -> Result<()> {
        w.string(&self.topic_name, true)?;
        self.tagged.write(w, &[])?;
        Ok(())
    }
}

impl Message for DeleteShareGroupOffsetsRequest {
    const NAME: &'static str = "DeleteShareGroupOffsetsRequest";
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

impl Request for DeleteShareGroupOffsetsRequest {
    type Response = super::delete_share_group_offsets_response::DeleteShareGroupOffsetsResponse;
    const KEY: crate::ApiKey = crate::ApiKey(92);
}
