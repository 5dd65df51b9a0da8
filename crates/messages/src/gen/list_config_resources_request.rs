//! ListConfigResourcesRequest (generated from protocol-specs; do not edit).

use crate::{Message, Request};
use kafka_share_wire::{ErrorKind, Reader, Result, TaggedFields, Writer};

/// Lists the resources that have settings of their own, by kind.
///
/// Versions 0-1.
#[derive(Debug, Clone, PartialEq)]
pub struct ListConfigResourcesRequest {
    /// `ResourceTypes` (versions 1)
    pub resource_types: Vec<i8>,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for ListConfigResourcesRequest {
    fn default() -> Self {
        Self { resource_types: Vec::new(), tagged: TaggedFields::new() }
    }
}

impl ListConfigResourcesRequest {
    pub(crate) fn read(r: &mut Reader, version: i16) -> Result<Self> {
        let mut this = Self::default();
        if version >= 1 {
            this.resource_types = r.array(true, 1, |r| r.i8())?;
        }
        this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, version: i16) -> Result<()> {
        if version >= 1 {
            w.array_len(self.resource_types.len(), true)?;
            for item in &self.resource_types {
                w.i8(*item);
            }
        } else {
            if !self.resource_types.is_empty() {
                return Err(ErrorKind::FieldNotInVersion {
                    field: "ListConfigResourcesRequest.ResourceTypes",
                    version,
                }
                .at(w.len()));
            }
        }
        self.tagged.write(w, &[])?;
        Ok(())
    }
}

impl Message for ListConfigResourcesRequest {
    const NAME: &'static str = "ListConfigResourcesRequest";
    const MIN_VERSION: i16 = 0;
    const MAX_VERSION: i16 = 1;
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

impl Request for ListConfigResourcesRequest {
    type Response = super::list_config_resources_response::ListConfigResourcesResponse;
    const KEY: crate::ApiKey = crate::ApiKey(74);
}
