//! ShareGroupDescribeRequest (generated from protocol-specs; do not edit).

use crate::{Message, Request};
use kafka_share_wire::{Reader, Result, Str, TaggedFields, Writer};

/// Asks a group coordinator to describe share groups.
///
/// Versions 1.
#[derive(Debug, Clone, PartialEq)]
pub struct ShareGroupDescribeRequest {
    /// Share groups asked about.
    pub group_ids: Vec<Str>,
    /// Asks to have the permitted operations filled in.
    pub include_authorized_operations: bool,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for ShareGroupDescribeRequest {
    fn default() -> Self {
        Self { group_ids: Vec::new(), include_authorized_operations: false, tagged: TaggedFields::new() }
    }
}

impl ShareGroupDescribeRequest {
    pub(crate) fn read(r: &mut Reader, _version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.group_ids = r.array(true, 1, |r| r.string(true))?;
        this.include_authorized_operations = r.bool()?;
        this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, _version: i16) -> Result<()> {
        w.array_len(self.group_ids.len(), true)?;
        for item in &self.group_ids {
            w.string(item, true)?;
        }
        w.bool(self.include_authorized_operations);
        self.tagged.write(w, &[])?;
        Ok(())
    }
}

impl Message for ShareGroupDescribeRequest {
    const NAME: &'static str = "ShareGroupDescribeRequest";
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
}

impl Request for ShareGroupDescribeRequest {
    type Response = super::share_group_describe_response::ShareGroupDescribeResponse;
    const KEY: crate::ApiKey = crate::ApiKey(77);
}
