//! DeleteGroupsRequest (generated from protocol-specs; do not edit).

use crate::{Message, Request};
use kafka_share_wire::{Reader, Result, Str, TaggedFields, Writer};

/// Deletes groups that have no members.
///
/// Versions 0-3.
#[derive(Debug, Clone, PartialEq)]
pub struct DeleteGroupsRequest {
    /// `GroupsNames`
    pub groups_names: Vec<Str>,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for DeleteGroupsRequest {
    fn default() -> Self {
        Self { groups_names: Vec::new(), tagged: TaggedFields::new() }
    }
}

impl DeleteGroupsRequest {
    pub(crate) fn read(r: &mut Reader, version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.groups_names = r.array(version >= 2, 1, |r| r.string(version >= 2))?;
        if version >= 2 {
            this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        }
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, version: i16) -> Result<()> {
        w.array_len(self.groups_names.len(), version >= 2)?;
        for item in &self.groups_names {
            w.string(item, version >= 2)?;
        }
        if version >= 2 {
            self.tagged.write(w, &[])?;
        }
        Ok(())
    }
}

impl Message for DeleteGroupsRequest {
    const NAME: &'static str = "DeleteGroupsRequest";
    const MIN_VERSION: i16 = 0;
    const MAX_VERSION: i16 = 3;
    const FLEXIBLE_FROM: i16 = 2;

    fn decode(r: &mut Reader, version: i16) -> Result<Self> {
        Self::check_version(version)?;
        Self::read(r, version)
    }

    fn encode(&self, w: &mut Writer, version: i16) -> Result<()> {
        Self::check_version(version)?;
        self.write(w, version)
    }
}

impl Request for DeleteGroupsRequest {
    type Response = super::delete_groups_response::DeleteGroupsResponse;
    const KEY: crate::ApiKey = crate::ApiKey(42);
}
