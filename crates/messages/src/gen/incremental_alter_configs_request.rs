//! IncrementalAlterConfigsRequest (generated from protocol-specs; do not edit).

use crate::{Message, Request};
use kafka_share_wire::{Reader, Result, Str, TaggedFields, Writer};

/// Changes single settings of resources and leaves the others alone.
///
/// Versions 0-1.
#[derive(Debug, Clone, PartialEq)]
pub struct IncrementalAlterConfigsRequest {
    /// `Resources`
    pub resources: Vec<AlterConfigsResource>,
    /// `ValidateOnly`
    pub validate_only: bool,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for IncrementalAlterConfigsRequest {
    fn default() -> Self {
        Self { resources: Vec::new(), validate_only: false, tagged: TaggedFields::new() }
    }
}

impl IncrementalAlterConfigsRequest {
    pub(crate) fn read(r: &mut Reader, version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.resources = r.array(version >= 1, 4, |r| AlterConfigsResource::read(r, version))?;
        this.validate_only = r.bool()?;
        if version >= 1 {
            this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        }
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, version: i16) -> Result<()> {
        w.array_len(self.resources.len(), version >= 1)?;
        for item in &self.resources {
            item.write(w, version)?;
        }
        w.bool(self.validate_only);
        if version >= 1 {
            self.tagged.write(w, &[])?;
        }
        Ok(())
    }
}

/// Part of [`IncrementalAlterConfigsRequest`].
///
/// Versions 0-1.
#[derive(Debug, Clone, PartialEq)]
pub struct AlterConfigsResource {
    /// `ResourceType`
    pub resource_type: i8,
    /// `ResourceName`
    pub resource_name: Str,
    /// `Configs`
    pub configs: Vec<AlterableConfig>,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for AlterConfigsResource {
    fn default() -> Self {
        Self { resource_type: 0, resource_name: Str::default(), configs: Vec::new(), tagged: TaggedFields::new() }
    }
}

impl AlterConfigsResource {
    pub(crate) fn read(r: &mut Reader, version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.resource_type = r.i8()?;
        this.resource_name = r.string(version >= 1)?;
        this.configs = r.array(version >= 1, 4, |r| AlterableConfig::read(r, version))?;
        if version >= 1 {
            this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        }
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, version: i16) -> Result<()> {
        w.i8(self.resource_type);
        w.string(&self.resource_name, version >= 1)?;
        w.array_len(self.configs.len(), version >= 1)?;
        for item in &self.configs {
            item.write(w, version)?;
        }
        if version >= 1 {
            self.tagged.write(w, &[])?;
        }
        Ok(())
    }
}

/// Part of [`IncrementalAlterConfigsRequest`].
///
/// Versions 0-1.
#[derive(Debug, Clone, PartialEq)]
pub struct AlterableConfig {
    /// `Name`
    pub name: Str,
    /// `ConfigOperation`
    pub config_operation: i8,
    /// `Value`
    pub value: Option<Str>,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for AlterableConfig {
    fn default() -> Self {
        Self { name: Str::default(), config_operation: 0, value: Some(Str::default()), tagged: TaggedFields::new() }
    }
}

impl AlterableConfig {
    pub(crate) fn read(r: &mut Reader, version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.name = r.string(version >= 1)?;
        this.config_operation = r.i8()?;
        this.value = r.nullable_string(version >= 1)?;
        if version >= 1 {
            this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        }
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, version: i16) -> Result<()> {
        w.string(&self.name, version >= 1)?;
        w.i8(self.config_operation);
        match &self.value {
            Some(value) => {
                w.string(value, version >= 1)?;
            }
            None => {
                w.null_string(version >= 1);
            }
        }
        if version >= 1 {
            self.tagged.write(w, &[])?;
        }
        Ok(())
    }
}

impl Message for IncrementalAlterConfigsRequest {
    const NAME: &'static str = "IncrementalAlterConfigsRequest";
    const MIN_VERSION: i16 = 0;
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

impl Request for IncrementalAlterConfigsRequest {
    type Response = super::incremental_alter_configs_response::IncrementalAlterConfigsResponse;
    const KEY: crate::ApiKey = crate::ApiKey(44);
}
