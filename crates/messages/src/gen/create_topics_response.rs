//! CreateTopicsResponse (generated from protocol-specs; do not edit).

use crate::{ErrorCode, Message};
use bytes::Bytes;
use kafka_share_wire::{Reader, Result, Str, TaggedFields, Uuid, Writer};

/// Reports each topic created, or the reason it was not.
///
/// Versions 2-7.
#[derive(Debug, Clone, PartialEq)]
pub struct CreateTopicsResponse {
    /// `ThrottleTimeMs`
    pub throttle_time_ms: i32,
    /// `Topics`
    pub topics: Vec<CreatableTopicResult>,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for CreateTopicsResponse {
    fn default() -> Self {
        Self { throttle_time_ms: 0, topics: Vec::new(), tagged: TaggedFields::new() }
    }
}

impl CreateTopicsResponse {
    pub(crate) fn read(r: &mut Reader, version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.throttle_time_ms = r.i32()?;
        this.topics = r.array(version >= 5, 6, |r| CreatableTopicResult::read(r, version))?;
        if version >= 5 {
            this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        }
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, version: i16) -> Result<()> {
        w.i32(self.throttle_time_ms);
        w.array_len(self.topics.len(), version >= 5)?;
        for item in &self.topics {
            item.write(w, version)?;
        }
        if version >= 5 {
            self.tagged.write(w, &[])?;
        }
        Ok(())
    }
}

/// Part of [`CreateTopicsResponse`].
///
/// Versions 2-7.
#[derive(Debug, Clone, PartialEq)]
pub struct CreatableTopicResult {
    /// `Name`
    pub name: Str,
    /// `TopicId` (versions 7)
    pub topic_id: Uuid,
    /// `ErrorCode`
    pub error_code: ErrorCode,
    /// `ErrorMessage`
    pub error_message: Option<Str>,
    /// `TopicConfigErrorCode` (versions 5-7, tag 0)
    pub topic_config_error_code: ErrorCode,
    /// `NumPartitions` (versions 5-7)
    pub num_partitions: i32,
    /// `ReplicationFactor` (versions 5-7)
    pub replication_factor: i16,
    /// `Configs` (versions 5-7)
    pub configs: Option<Vec<CreatableTopicConfigs>>,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for CreatableTopicResult {
    fn default() -> Self {
        Self {
            name: Str::default(),
            topic_id: Uuid::ZERO,
            error_code: ErrorCode::NONE,
            error_message: Some(Str::default()),
            topic_config_error_code: ErrorCode::NONE,
            num_partitions: -1,
            replication_factor: -1,
            configs: Some(Vec::new()),
            tagged: TaggedFields::new(),
        }
    }
}

impl CreatableTopicResult {
    pub(crate) fn read(r: &mut Reader, version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.name = r.string(version >= 5)?;
        if version >= 7 {
            this.topic_id = r.uuid()?;
        }
        this.error_code = r.i16().map(ErrorCode)?;
        this.error_message = r.nullable_string(version >= 5)?;
        if version >= 5 {
            this.num_partitions = r.i32()?;
        }
        if version >= 5 {
            this.replication_factor = r.i16()?;
        }
        if version >= 5 {
            this.configs = r.nullable_array(true, 6, |r| CreatableTopicConfigs::read(r, version))?;
        }
        if version >= 5 {
            let unknown = TaggedFields::read(r, |tag, field| {
                match tag {
                    0 => this.topic_config_error_code = field.i16().map(ErrorCode)?,
                    _ => return Ok(false),
                }
                Ok(true)
            })?;
            this.tagged = unknown;
        }
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, version: i16) -> Result<()> {
        w.string(&self.name, version >= 5)?;
        if version >= 7 {
            w.uuid(self.topic_id);
        }
        w.i16(self.error_code.0);
        match &self.error_message {
            Some(value) => {
                w.string(value, version >= 5)?;
            }
            None => {
                w.null_string(version >= 5);
            }
        }
        if version >= 5 {
            w.i32(self.num_partitions);
        }
        if version >= 5 {
            w.i16(self.replication_factor);
        }
        if version >= 5 {
            match &self.configs {
                Some(value) => {
                    w.array_len(value.len(), true)?;
                    for item in value {
                        item.write(w, version)?;
                    }
                }
                None => {
                    w.null_array(true);
                }
            }
        }
        if version >= 5 {
            let mut known: Vec<(u32, Bytes)> = Vec::new();
            if self.topic_config_error_code != ErrorCode::NONE {
                let mut field = Writer::new();
                let w = &mut field;
                w.i16(self.topic_config_error_code.0);
                known.push((0, field.into_bytes()));
            }
            self.tagged.write(w, &known)?;
        }
        Ok(())
    }
}

/// Part of [`CreateTopicsResponse`].
///
/// Versions 5-7.
#[derive(Debug, Clone, PartialEq)]
pub struct CreatableTopicConfigs {
    /// `Name` (versions 5-7)
    pub name: Str,
    /// `Value` (versions 5-7)
    pub value: Option<Str>,
    /// `ReadOnly` (versions 5-7)
    pub read_only: bool,
    /// `ConfigSource` (versions 5-7)
    pub config_source: i8,
    /// `IsSensitive` (versions 5-7)
    pub is_sensitive: bool,
    /// Tagged fields that this build does not know.
    pub tagged: TaggedFields,
}

impl Default for CreatableTopicConfigs {
    fn default() -> Self {
        Self {
            name: Str::default(),
            value: Some(Str::default()),
            read_only: false,
            config_source: -1,
            is_sensitive: false,
            tagged: TaggedFields::new(),
        }
    }
}

impl CreatableTopicConfigs {
    pub(crate) fn read(r: &mut Reader, _version: i16) -> Result<Self> {
        let mut this = Self::default();
        this.name = r.string(true)?;
        this.value = r.nullable_string(true)?;
        this.read_only = r.bool()?;
        this.config_source = r.i8()?;
        this.is_sensitive = r.bool()?;
        this.tagged = TaggedFields::read(r, |_, _| Ok(false))?;
        Ok(this)
    }

    pub(crate) fn write(&self, w: &mut Writer, _version: i16) -> Result<()> {
        w.string(&self.name, true)?;
        match &self.value {
            Some(value) => {
                w.string(value, true)?;
            }
            None => {
                w.null_string(true);
            }
        }
        w.bool(self.read_only);
        w.i8(self.config_source);
        w.bool(self.is_sensitive);
        self.tagged.write(w, &[])?;
        Ok(())
    }
}

impl Message for CreateTopicsResponse {
    const NAME: &'static str = "CreateTopicsResponse";
    const MIN_VERSION: i16 = 2;
    const MAX_VERSION: i16 = 7;
    const FLEXIBLE_FROM: i16 = 5;

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
