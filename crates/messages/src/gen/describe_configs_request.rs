//! DescribeConfigsRequest (generated from protocol-specs; do not edit).

use crate::{Message, Request};
use kafka_share_wire::{ErrorKind, Reader, Result, Str, TaggedFields, Writer};

/// Reads settings of topics, brokers, groups and other resources.
///
/// Versions 1-4.
#[derive(Debug, Clone, PartialEq)]
pub struct DescribeConfigsRequest {
    /// `Resources`
    pub resources: Vec<DescribeConfigsResource>,
    /// `IncludeSynonyms`
    pub include_synonyms: bool,
    /// `IncludeDocumentation` (versions 3-4)
    pub include_documentation: bool,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for DescribeConfigsRequest {
    fn default() -> Self {
        Self {
            resources: Vec::new(),
            include_synonyms: false,
            include_documentation: false,
            tagged: TaggedFields::new(),
        }
    }
}

impl DescribeConfigsRequest {
    pub(crate) fn read(r: &mut Reader, version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.resources = r.array(version >= 4, 4, |r| DescribeConfigsResource::read(r, version))?;
        this.include_synonyms = r.bool()?;
        if version >= 3 {
            this.include_documentation = r.bool()?;
        }
        if version >= 4 {
            this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        }
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, version: i16) -> Result<()> {
        w.array_len(self.resources.len(), version >= 4)?;
        for item in &self.resources {
            item.write(w, version)?;
        }
        w.bool(self.include_synonyms);
        if version >= 3 {
            w.bool(self.include_documentation);
        } else {
            if self.include_documentation {
                return Err(ErrorKind::FieldNotInVersion {
                    field: "DescribeConfigsRequest.IncludeDocumentation",
                    version,
                }
                .at(w.len()));
            }
        }
        if version >= 4 {
            self.tagged.write(w, &[])?;
        }
        Ok(())
    }
}

/// Part of [`DescribeConfigsRequest`].
///
/// Versions 1-4.
#[derive(Debug, Clone, PartialEq)]
pub struct DescribeConfigsResource {
    /// `ResourceType`
    pub resource_type: i8,
    /// `ResourceName`
    pub resource_name: Str,
    /// `ConfigurationKeys`
    pub configuration_keys: Option<Vec<Str>>,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for DescribeConfigsResource {
    fn default() -> Self {
        Self {
            resource_type: 0,
            resource_name: Str::default(),
            configuration_keys: Some(Vec::new()),
            tagged: TaggedFields::new(),
        }
    }
}

impl DescribeConfigsResource {
    pub(crate) fn read(r: &mut Reader, version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.resource_type = r.i8()?;
        this.resource_name = r.string(version >= 4)?;
        this.configuration_keys = r.nullable_array(version >= 4, 1, |r| r.string(version >= 4))?;
        if version >= 4 {
            this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        }
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, version: i16) -> Result<()> {
        w.i8(self.resource_type);
        w.string(&self.resource_name, version >= 4)?;
        match &self.configuration_keys {
            Some(value) => {
                w.array_len(value.len(), version >= 4)?;
                for item in value {
                    w.string(item, version >= 4)?;
                }
            }
            None => {
                w.null_array(version >= 4);
            }
        }
        if version >= 4 {
            self.tagged.write(w, &[])?;
        }
        Ok(())
    }
}

impl Message for DescribeConfigsRequest {
    const NAME: &'static str = "DescribeConfigsRequest";
    const MIN_VERSION: i16 = 1;
    const MAX_VERSION: i16 = 4;
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

impl Request for DescribeConfigsRequest {
    type Response = super::describe_configs_response::DescribeConfigsResponse;
    const KEY: crate::ApiKey = crate::ApiKey(32);
}
