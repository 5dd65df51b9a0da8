//! DescribeConfigsResponse (generated from protocol-specs; do not edit).

use crate::{ErrorCode, Message};
use kafka_share_wire::{Reader, Result, Str, TaggedFields, Writer};

/// Lists each resource's settings with value, source and synonyms.
///
/// Versions 1-4.
#[derive(Debug, Clone, PartialEq)]
pub struct DescribeConfigsResponse {
    /// `ThrottleTimeMs`
    pub throttle_time_ms: i32,
    /// `Results`
    pub results: Vec<DescribeConfigsResult>,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for DescribeConfigsResponse {
    fn default() -> Self {
        Self { throttle_time_ms: 0, results: Vec::new(), tagged: TaggedFields::new() }
    }
}

impl DescribeConfigsResponse {
    pub(crate) fn read(r: &mut Reader, version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.throttle_time_ms = r.i32()?;
        this.results = r.array(version >= 4, 7, |r| DescribeConfigsResult::read(r, version))?;
        if version >= 4 {
            this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        }
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, version: i16) -> Result<()> {
        w.i32(self.throttle_time_ms);
        w.array_len(self.results.len(), version >= 4)?;
        for item in &self.results {
            item.write(w, version)?;
        }
        if version >= 4 {
            self.tagged.write(w, &[])?;
        }
        Ok(())
    }
}

/// Part of [`DescribeConfigsResponse`].
///
/// Versions 1-4.
#[derive(Debug, Clone, PartialEq)]
pub struct DescribeConfigsResult {
    /// `ErrorCode`
    pub error_code: ErrorCode,
    /// `ErrorMessage`
    pub error_message: Option<Str>,
    /// `ResourceType`
    pub resource_type: i8,
    /// `ResourceName`
    pub resource_name: Str,
    /// `Configs`
    pub configs: Vec<DescribeConfigsResourceResult>,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for DescribeConfigsResult {
    fn default() -> Self {
        Self {
            error_code: ErrorCode::NONE,
            error_message: Some(Str::default()),
            resource_type: 0,
            resource_name: Str::default(),
            configs: Vec::new(),
            tagged: TaggedFields::new(),
        }
    }
}

impl DescribeConfigsResult {
    pub(crate) fn read(r: &mut Reader, version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.error_code = r.i16().map(ErrorCode)?;
        this.error_message = r.nullable_string(version >= 4)?;
        this.resource_type = r.i8()?;
        this.resource_name = r.string(version >= 4)?;
        this.configs = r.array(version >= 4, 9, |r| DescribeConfigsResourceResult::read(r, version))?;
        if version >= 4 {
            this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        }
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, version: i16) -> Result<()> {
        w.i16(self.error_code.0);
        match &self.error_message {
            Some(value) => {
                w.string(value, version >= 4)?;
            }
            None => {
                w.null_string(version >= 4);
            }
        }
        w.i8(self.resource_type);
        w.string(&self.resource_name, version >= 4)?;
        w.array_len(self.configs.len(), version >= 4)?;
        for item in &self.configs {
            item.write(w, version)?;
        }
        if version >= 4 {
            self.tagged.write(w, &[])?;
        }
        Ok(())
    }
}

/// Part of [`DescribeConfigsResponse`].
///
/// Versions 1-4.
#[derive(Debug, Clone, PartialEq)]
pub struct DescribeConfigsResourceResult {
    /// `Name`
    pub name: Str,
    /// `Value`
    pub value: Option<Str>,
    /// `ReadOnly`
    pub read_only: bool,
    /// `ConfigSource`
    pub config_source: i8,
    /// `IsSensitive`
    pub is_sensitive: bool,
    /// `Synonyms`
    pub synonyms: Vec<DescribeConfigsSynonym>,
    /// `ConfigType` (versions 3-4)
    pub config_type: i8,
    /// `Documentation` (versions 3-4)
    pub documentation: Option<Str>,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for DescribeConfigsResourceResult {
    fn default() -> Self {
        Self {
            name: Str::default(),
            value: Some(Str::default()),
            read_only: false,
            config_source: -1,
            is_sensitive: false,
            synonyms: Vec::new(),
            config_type: 0,
            documentation: Some(Str::default()),
            tagged: TaggedFields::new(),
        }
    }
}

impl DescribeConfigsResourceResult {
    pub(crate) fn read(r: &mut Reader, version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.name = r.string(version >= 4)?;
        this.value = r.nullable_string(version >= 4)?;
        this.read_only = r.bool()?;
        this.config_source = r.i8()?;
        this.is_sensitive = r.bool()?;
        this.synonyms = r.array(version >= 4, 4, |r| DescribeConfigsSynonym::read(r, version))?;
        if version >= 3 {
            this.config_type = r.i8()?;
        }
        if version >= 3 {
            this.documentation = r.nullable_string(version >= 4)?;
        }
        if version >= 4 {
            this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        }
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, version: i16) -> Result<()> {
        w.string(&self.name, version >= 4)?;
        match &self.value {
            Some(value) => {
                w.string(value, version >= 4)?;
            }
            None => {
                w.null_string(version >= 4);
            }
        }
        w.bool(self.read_only);
        w.i8(self.config_source);
        w.bool(self.is_sensitive);
        w.array_len(self.synonyms.len(), version >= 4)?;
        for item in &self.synonyms {
            item.write(w, version)?;
        }
        if version >= 3 {
            w.i8(self.config_type);
        }
        if version >= 3 {
            match &self.documentation {
                Some(value) => {
                    w.string(value, version >= 4)?;
                }
                None => {
                    w.null_string(version >= 4);
                }
            }
        }
        if version >= 4 {
            self.tagged.write(w, &[])?;
        }
        Ok(())
    }
}

/// Part of [`DescribeConfigsResponse`].
///
/// Versions 1-4.
#[derive(Debug, Clone, PartialEq)]
pub struct DescribeConfigsSynonym {
    /// `Name`
    pub name: Str,
    /// `Value`
    pub value: Option<Str>,
    /// `Source`
    pub source: i8,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for DescribeConfigsSynonym {
    fn default() -> Self {
        Self { name: Str::default(), value: Some(Str::default()), source: 0, tagged: TaggedFields::new() }
    }
}

impl DescribeConfigsSynonym {
    pub(crate) fn read(r: &mut Reader, version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.name = r.string(version >= 4)?;
        this.value = r.nullable_string(version >= 4)?;
        this.source = r.i8()?;
        if version >= 4 {
            this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        }
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, version: i16) -> Result<()> {
        w.string(&self.name, version >= 4)?;
        match &self.value {
            Some(value) => {
                w.string(value, version >= 4)?;
            }
            None => {
                w.null_string(version >= 4);
            }
        }
        w.i8(self.source);
        if version >= 4 {
            self.tagged.write(w, &[])?;
        }
        Ok(())
    }
}

impl Message for DescribeConfigsResponse {
    const NAME: &'static str = "DescribeConfigsResponse";
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

    fn throttle_time_ms(&self) -> i32 {
        self.throttle_time_ms
    }
}
