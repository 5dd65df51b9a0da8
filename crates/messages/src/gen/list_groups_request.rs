//! ListGroupsRequest (generated from protocol-specs; do not edit).

use crate::{Message, Request};
use kafka_share_wire::{ErrorKind, Reader, Result, Str, TaggedFields, Writer};

/// Lists the groups this broker coordinates, filtered by state and type.
///
/// Versions 0-5.
#[derive(Debug, Clone, PartialEq)]
pub struct ListGroupsRequest {
    /// `StatesFilter` (versions 4-5)
    pub states_filter: Vec<Str>,
    /// `TypesFilter` (versions 5)
    pub types_filter: Vec<Str>,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for ListGroupsRequest {
    fn default() -> Self {
        Self { states_filter: Vec::new(), types_filter: Vec::new(), tagged: TaggedFields::new() }
    }
}

impl ListGroupsRequest {
    pub(crate) fn read(r: &mut Reader, version: i16) -> Result<Self> {
        let mut this = Self::default();
        if version >= 4 {
            this.states_filter = r.array(true, 1, |r| r.string(true))?;
        }
        if version >= 5 {
            this.types_filter = r.array(true, 1, |r| r.string(true))?;
        }
        if version >= 3 {
            this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        }
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, version: i16) -> Result<()> {
        if version >= 4 {
            w.array_len(self.states_filter.len(), true)?;
            for item in &self.states_filter {
                w.string(item, true)?;
            }
        } else {
            if !self.states_filter.is_empty() {
                return Err(
                    ErrorKind::FieldNotInVersion { field: "ListGroupsRequest.StatesFilter", version }.at(w.len())
                );
            }
        }
        if version >= 5 {
            w.array_len(self.types_filter.len(), true)?;
            for item in &self.types_filter {
                w.string(item, true)?;
            }
        } else {
            if !self.types_filter.is_empty() {
                return Err(
                    ErrorKind::FieldNotInVersion { field: "ListGroupsRequest.TypesFilter", version }.at(w.len())
                );
            }
        }
        if version >= 3 {
            self.tagged.write(w, &[])?;
        }
        Ok(())
    }
}

impl Message for ListGroupsRequest {
    const NAME: &'static str = "ListGroupsRequest";
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

impl Request for ListGroupsRequest {
    type Response = super::list_groups_response::ListGroupsResponse;
    const KEY: crate::ApiKey = crate::ApiKey(16);
}
