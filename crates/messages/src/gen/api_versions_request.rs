//! ApiVersionsRequest (generated from protocol-specs; do not edit).

use crate::{Message, Request};
use kafka_share_wire::{Reader, Result, Str, TaggedFields, Writer};

/// Asks which RPCs and versions the broker speaks, and names the client software.
///
/// Versions 0-5.
#[derive(Debug, Clone, PartialEq)]
pub struct ApiVersionsRequest {
    /// `ClientSoftwareName` (versions 3-5)
    pub client_software_name: Str,
    /// `ClientSoftwareVersion` (versions 3-5)
    pub client_software_version: Str,
    /// `ClusterId` (versions 5)
    pub cluster_id: Option<Str>,
    /// `NodeId` (versions 5)
    pub node_id: i32,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for ApiVersionsRequest {
    fn default() -> Self {
        Self {
            client_software_name: Str::default(),
            client_software_version: Str::default(),
            cluster_id: None,
            node_id: -1,
            tagged: TaggedFields::new(),
        }
    }
}

impl ApiVersionsRequest {
    pub(crate) fn read(r: &mut Reader, version: i16) -> Result<Self> {
        let mut this = Self::default();
        if version >= 3 {
            this.client_software_name = r.string(true)?;
        }
        if version >= 3 {
            this.client_software_version = r.string(true)?;
        }
        if version >= 5 {
            this.cluster_id = r.nullable_string(true)?;
        }
        if version >= 5 {
            this.node_id = r.i32()?;
        }
        if version >= 3 {
            this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        }
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, version: i16) -> Result<()> {
        if version >= 3 {
            w.string(&self.client_software_name, true)?;
        }
        if version >= 3 {
            w.string(&self.client_software_version, true)?;
        }
        if version >= 5 {
            match &self.cluster_id {
                Some(value) => {
                    w.string(value, true)?;
                }
                None => {
                    w.null_string(true);
                }
            }
        }
        if version >= 5 {
            w.i32(self.node_id);
        }
        if version >= 3 {
            self.tagged.write(w, &[])?;
        }
        Ok(())
    }
}

impl Message for ApiVersionsRequest {
    const NAME: &'static str = "ApiVersionsRequest";
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

impl Request for ApiVersionsRequest {
    type Response = super::api_versions_response::ApiVersionsResponse;
    const KEY: crate::ApiKey = crate::ApiKey(18);
}
