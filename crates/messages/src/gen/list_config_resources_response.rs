//! ListConfigResourcesResponse (generated from protocol-specs; do not edit).

use crate::{ErrorCode, Message};
use kafka_share_wire::{Reader, Result, Str, TaggedFields, Writer};

/// Names the resources found and their kind.
///
/// Versions 0-1.
#[derive(Debug, Clone, PartialEq)]
pub struct ListConfigResourcesResponse {
    /// `ThrottleTimeMs`
    pub throttle_time_ms: i32,
    /// `ErrorCode`
    pub error_code: ErrorCode,
    /// `ConfigResources`
    pub config_resources: Vec<ConfigResource>,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for ListConfigResourcesResponse {
    fn default() -> Self {
        Self {
            throttle_time_ms: 0,
            error_code: ErrorCode::NONE,
            config_resources: Vec::new(),
            tagged: TaggedFields::new(),
        }
    }
}

impl ListConfigResourcesResponse {
    pub(crate) fn read(r: &mut Reader, version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.throttle_time_ms = r.i32()?;
        this.error_code = r.i16().map(ErrorCode)?;
        this.config_resources = r.array(true, 2, |r| ConfigResource::read(r, version))?;
        this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, version: i16) -> Result<()> {
        w.i32(self.throttle_time_ms);
        w.i16(self.error_code.0);
        w.array_len(self.config_resources.len(), true)?;
        for item in &self.config_resources {
            item.write(w, version)?;
        }
        self.tagged.write(w, &[])?;
        Ok(())
    }
}

/// Part of [`ListConfigResourcesResponse`].
///
/// Versions 0-1.
#[derive(Debug, Clone, PartialEq)]
pub struct ConfigResource {
    /// `ResourceName`
    pub resource_name: Str,
    /// `ResourceType` (versions 1)
    pub resource_type: i8,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for ConfigResource {
    fn default() -> Self {
        Self { resource_name: Str::default(), resource_type: 16, tagged: TaggedFields::new() }
    }
}

impl ConfigResource {
    pub(crate) fn read(r: &mut Reader, version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.resource_name = r.string(true)?;
        if version >= 1 {
            this.resource_type = r.i8()?;
        }
        this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, version: i16) -> Result<()> {
        w.string(&self.resource_name, true)?;
        if version >= 1 {
            w.i8(self.resource_type);
        }
        self.tagged.write(w, &[])?;
        Ok(())
    }
}

impl Message for ListConfigResourcesResponse {
    const NAME: &'static str = "ListConfigResourcesResponse";
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

    fn throttle_time_ms(&self) -> i32 {
        self.throttle_time_ms
    }
}
